//! An event, and the fields that metrics read from it.

use super::{EventId, Timestamp, number};

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's type. Boards whose metric names this type count the event.
    pub kind: Box<str>,
    pub fields: Fields,
    /// The time when the event happened. If absent, the store's time on arrival.
    pub at: Option<Timestamp>,
    /// The event's id: the event counts once per (board, subject, id) within the dedupe horizon.
    pub id: Option<EventId>,
    /// Whether this event reverses an earlier event, which happened at `at`.
    pub retract: bool,
}

/// The value of a field, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Text(Box<str>),
    /// The number's original text: a conversion to float would lose the exactness that amounts promise.
    Number(Box<str>),
    Bool(bool),
}

impl Field {
    /// Returns the text of a number: of a number, or of a text that is one, such as `"19.99"`. Clients whose decimal
    /// numbers have no JSON form (Python's `Decimal`, JavaScript beyond 2^53) send them as texts.
    pub(super) fn number(&self) -> Option<&str> {
        match self {
            Field::Number(number) => Some(number),
            Field::Text(text) => Some(&**text).filter(|text| number::is_number(text)),
            Field::Bool(_) => None,
        }
    }

    /// Returns a description of the type, for a message.
    pub(super) fn described(&self) -> &'static str {
        match self {
            Field::Text(_) => "a text",
            Field::Number(_) => "a number",
            Field::Bool(_) => "a boolean",
        }
    }
}

/// The fields of an event, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(Box<str>, Field)>);

impl Fields {
    /// Creates fields from a list in which no name occurs twice.
    pub(crate) fn from_distinct(fields: Vec<(Box<str>, Field)>) -> Self {
        Self(fields)
    }

    /// Sets a field. A later value replaces an earlier one of the same name.
    pub fn set(&mut self, name: impl Into<Box<str>>, value: Field) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, held)) => *held = value,
            None => self.0.push((name, value)),
        }
    }

    /// Returns a field's value. O(fields), which is fast because events have few.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Returns the value of a required field. O(fields).
    pub(super) fn require(&self, name: &str) -> Result<&Field, FieldFault> {
        self.get(name).ok_or_else(|| FieldFault::Missing { field: name.into() })
    }

    /// Returns all fields, in the order sent.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

/// The reason why an event cannot be counted on a board, with the field at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// The event lacks a field that the metric needs.
    #[error("the field '{field}' is missing")]
    Missing { field: Box<str> },
    /// The field has a type that the metric cannot use, or a value that it does not accept.
    #[error("the field '{field}': {detail}")]
    Invalid { field: Box<str>, detail: String },
    /// The field is not a valid amount of the board, for the reason in `source`.
    #[error("the field '{field}': {source}")]
    Amount { field: Box<str>, source: super::AmountError },
}

impl FieldFault {
    /// Returns the field at fault.
    pub fn field(&self) -> &str {
        match self {
            FieldFault::Missing { field } | FieldFault::Invalid { field, .. } | FieldFault::Amount { field, .. } => {
                field
            }
        }
    }
}
