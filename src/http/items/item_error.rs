//! Errors of items that are found before the store is called.

use std::fmt;

use crate::board::AttributesError;
use crate::http::codes::{Code, ItemCode};
use crate::http::problem::Problem;

/// Reason for which an item cannot be counted.
#[derive(Debug)]
pub(in crate::http) struct ItemError {
    pub(in crate::http) code: ItemCode,
    /// The invalid field; empty if the error is not about a field.
    pub(in crate::http) field: String,
    pub(in crate::http) detail: String,
    /// Whether the structure of the item is wrong (a missing or unknown field, a wrong type) rather than a value. In an
    /// item that is sent alone, such an error fails the whole request.
    pub(in crate::http) is_structural: bool,
    /// Whether the item could be valid under another definition of the board.
    pub(in crate::http) depends_on_board: bool,
}

/// A field that an item must not have.
pub(in crate::http) enum UnexpectedField {
    Unknown(String),
    Repeated(&'static str),
}

impl ItemError {
    /// Creates an error about the structure of an item.
    pub(in crate::http) fn structural(code: ItemCode, field: &str, detail: impl Into<String>) -> Self {
        Self { code, field: field.to_owned(), detail: detail.into(), is_structural: true, depends_on_board: false }
    }

    /// Creates an error about a value of an item.
    pub(in crate::http) fn value(code: ItemCode, field: &str, error: impl fmt::Display) -> Self {
        Self { code, field: field.to_owned(), detail: error.to_string(), is_structural: false, depends_on_board: false }
    }

    /// Returns the error of an item whose attributes are refused.
    pub(in crate::http) fn of_attributes(error: &AttributesError) -> Self {
        Self::value(ItemCode::InvalidAttributes, "attributes", error)
    }

    /// Marks the error as dependent on the definition of the board.
    pub(in crate::http) fn depending_on_board(mut self) -> Self {
        self.depends_on_board = true;
        self
    }

    /// Creates the error of an unexpected field. `fields` are the names of the item's fields, and `repeated` is the
    /// code for a repeated field.
    pub(in crate::http) fn unexpected(field: UnexpectedField, fields: &[&str], repeated: ItemCode) -> Self {
        match field {
            UnexpectedField::Unknown(name) => {
                let detail = format!("unknown field '{name}'; expected one of {}", fields.join(", "));
                ItemError::structural(ItemCode::UnknownField, &name, detail)
            }
            UnexpectedField::Repeated(name) => {
                ItemError::structural(repeated, name, format!("the field '{name}' is given more than once"))
            }
        }
    }
}

/// The problem of a request that consists of a single item with this error.
impl From<ItemError> for Problem {
    fn from(error: ItemError) -> Self {
        let code = match error.code {
            ItemCode::UnknownField => Code::UnknownField,
            ItemCode::MissingKey => Code::MissingKey,
            ItemCode::UnexpectedKey => Code::UnexpectedKey,
            _ => Code::InvalidField,
        };
        Problem::new(code, error.detail).with("field", error.field)
    }
}
