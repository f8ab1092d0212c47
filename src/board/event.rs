//! An event as it happened, and what it adds to a board whose metric names its type.

use super::{EventId, Timestamp};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Boards whose metric names this type take it.
    pub kind: Box<str>,
    pub fields: Fields,
    /// When it happened; the store's now if absent.
    pub at: Option<Timestamp>,
    /// Counts once per (board, subject, id) within the dedupe horizon.
    pub id: Option<EventId>,
    /// Undoes its twin, which happened at `at`.
    pub retract: bool,
}

/// A field's value as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Text(Box<str>),
    /// The number's own text: a float on the way would lose what an amount promises to keep.
    Number(Box<str>),
    Bool(bool),
}

impl Field {
    /// What it is, for a message.
    pub(super) fn described(&self) -> &'static str {
        match self {
            Field::Text(_) => "a text",
            Field::Number(_) => "a number",
            Field::Bool(_) => "a truth value",
        }
    }
}

/// Fields by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(Box<str>, Field)>);

impl Fields {
    /// Sets a field; of two with the same name the later one holds.
    pub fn set(&mut self, name: impl Into<Box<str>>, value: Field) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, held)) => *held = value,
            None => self.0.push((name, value)),
        }
    }

    /// A field's value. O(fields): events have few.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// A field's value, which there must be. O(fields).
    pub(super) fn require(&self, name: &str) -> Result<&Field, FieldFault> {
        self.get(name).ok_or_else(|| FieldFault::Missing { field: name.into() })
    }

    /// All fields, in the order sent.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

/// Why an event cannot be counted on a board, naming the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// The metric needs a field that the event has not.
    #[error("the field '{field}' is missing")]
    Missing { field: Box<str> },
    /// The field is there, but not of the kind that the metric needs, or not a value it takes.
    #[error("the field '{field}': {detail}")]
    Invalid { field: Box<str>, detail: String },
    /// As [`Invalid`](Self::Invalid), of an amount: the board says why.
    #[error("the field '{field}': {source}")]
    Amount { field: Box<str>, source: super::AmountError },
}

impl FieldFault {
    /// The field at fault.
    pub fn field(&self) -> &str {
        match self {
            FieldFault::Missing { field } | FieldFault::Invalid { field, .. } | FieldFault::Amount { field, .. } => {
                field
            }
        }
    }
}
