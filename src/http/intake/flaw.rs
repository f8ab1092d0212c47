//! What can be wrong with an item before the store sees it.

use std::fmt;

use crate::http::codes::{Code, ItemCode};
use crate::http::problem::Problem;

/// Why an item cannot be counted.
#[derive(Debug)]
pub(in crate::http) struct Flaw {
    pub(in crate::http) code: ItemCode,
    /// The field at fault; empty if it is none of them.
    pub(in crate::http) field: String,
    pub(in crate::http) detail: String,
    /// The *shape* is wrong (a missing or unknown field, another type), not merely a value. One that is sent alone
    /// makes the whole request unsound.
    pub(in crate::http) of_shape: bool,
    /// Another definition of the board could have made a difference.
    pub(in crate::http) of_board: bool,
}

/// A field that does not belong.
pub(in crate::http) enum Stray {
    Unknown(String),
    Repeated(&'static str),
}

impl Flaw {
    pub(in crate::http) fn shape(code: ItemCode, field: &str, detail: impl Into<String>) -> Self {
        Self { code, field: field.to_owned(), detail: detail.into(), of_shape: true, of_board: false }
    }

    pub(in crate::http) fn value(code: ItemCode, field: &str, error: impl fmt::Display) -> Self {
        Self { code, field: field.to_owned(), detail: error.to_string(), of_shape: false, of_board: false }
    }

    /// The same, as far as the definition of the board known here goes.
    pub(in crate::http) fn of_board(mut self) -> Self {
        self.of_board = true;
        self
    }

    /// What a field that does not belong is told: `item` says what it was sent as ("an increment"), `fields` what
    /// there is; a field given twice makes the item one of code `twice`.
    pub(in crate::http) fn stray(stray: Stray, item: &str, fields: &str, twice: ItemCode) -> Self {
        match stray {
            Stray::Unknown(name) => {
                let detail = format!("there is no field '{name}'; {item} has {fields}");
                Flaw::shape(ItemCode::UnknownField, &name, detail)
            }
            Stray::Repeated(name) => Flaw::shape(twice, name, format!("the field '{name}' is given twice")),
        }
    }
}

/// A single item of the wrong shape: the request itself was not sound.
pub(in crate::http) fn unsound(flaw: Flaw) -> Problem {
    let code = if flaw.code == ItemCode::UnknownField { Code::UnknownField } else { Code::InvalidField };
    Problem::new(code, flaw.detail).with("field", flaw.field)
}
