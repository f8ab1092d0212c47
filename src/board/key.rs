//! Which fields of an event name a subject, or the value that is counted.

use std::fmt;

use super::{FieldFault, Fields};

/// What names a subject: a field, something derived from one, or several together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The field's own text.
    Field(Box<str>),
    /// `prefix(ip, 24)`: the network of so many bits that an IP address is in, such as `203.0.113.0/24`.
    Prefix { field: Box<str>, bits: u8 },
    /// `(ip, device_id)`: a compact JSON array of the parts, such as `["203.0.113.9","d-1"]`. Never nested.
    Tuple(Vec<Key>),
}

impl Key {
    /// The text that the fields give: of a text field the text, of a number the number as sent, of a truth value
    /// `true` or `false`; of several a compact JSON array, in which numbers and truth values stay what they are.
    pub fn text(&self, fields: &Fields) -> Result<String, FieldFault> {
        let _ = fields;
        unimplemented!("helper A")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Field(field) => f.write_str(field),
            Key::Prefix { field, bits } => write!(f, "prefix({field}, {bits})"),
            Key::Tuple(parts) => {
                f.write_str("(")?;
                for (i, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}
