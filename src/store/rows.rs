//! Tables of small texts that a store keeps beside the boards.

use std::collections::BTreeMap;
use std::fmt;

use super::{Result, StoreError};
use crate::board::spellings::spellings;

/// A table of small texts that the store keeps for the service, beside the boards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableName {
    Keys,
    KeyUses,
    Tiers,
    Sources,
}

/// The rows of a table at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Changes with the rows. Versions have no order: they can only be compared for equality.
    pub version: u64,
    /// The text of each row by its id.
    pub rows: BTreeMap<String, String>,
}

spellings! {
    TableName { Keys = "keys", KeyUses = "key-uses", Tiers = "tiers", Sources = "sources" }
    pub all ALL;
    /// Returns the name under which the table is stored.
    pub print as_str;
}

impl TableName {
    /// The largest number of rows of a table.
    pub const MAX_ROWS: usize = 10_000;
    /// The largest number of bytes of the ids and texts of a table together. A table of this size is read as a whole,
    /// and the embedded store writes it into every manifest.
    pub const MAX_BYTES: usize = 16 << 20;
    /// The largest number of bytes of the id of a row. An id has at least one.
    pub const MAX_ID_BYTES: usize = 128;
    /// The largest number of bytes of the text of a row.
    pub const MAX_TEXT_BYTES: usize = 16 << 10;

    /// Checks the arguments of [`change_row`](super::Store::change_row).
    ///
    /// Returns [`StoreError::InvalidRow`] if the id or a text is too long, or the id is empty.
    pub fn check(self, id: &str, from: Option<&str>, to: Option<&str>) -> Result<()> {
        let invalid = |what: String| Err(StoreError::InvalidRow { detail: format!("table '{self}': {what}") });
        if id.is_empty() || id.len() > Self::MAX_ID_BYTES {
            return invalid(format!("an id has {} bytes; it must have 1 to {}", id.len(), Self::MAX_ID_BYTES));
        }
        let longest = from.into_iter().chain(to).map(str::len).max().unwrap_or(0);
        if longest > Self::MAX_TEXT_BYTES {
            return invalid(format!("a text has {longest} bytes; it must have at most {}", Self::MAX_TEXT_BYTES));
        }
        Ok(())
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
