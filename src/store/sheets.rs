//! The sheets of an ended period: the texts that have its ranking once it is packed.

use std::fmt;
use std::sync::Arc;

use super::{Result, StoreError};
use crate::board::Frame;

/// The name of one of the sheets of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SheetId {
    /// Lines of the ranking. The first sheet has the best ones.
    Lines(u64),
    /// A part of the register, which tells in which sheet the line of a subject is.
    Register(u64),
    /// The numbers of lines and subjects. It is there once all lines are.
    Head,
}

impl SheetId {
    /// Reads what `to_string` returns.
    pub(in crate::store) fn parse(text: &str) -> Option<Self> {
        let id = match text.split_at_checked(1)? {
            ("h", "") => SheetId::Head,
            ("l", number) => SheetId::Lines(number.parse().ok()?),
            ("r", number) => SheetId::Register(number.parse().ok()?),
            _ => return None,
        };
        (id.to_string() == text).then_some(id)
    }

    /// Returns a number by which the sheets of a period are spread over the partitions of a board.
    pub(in crate::store) fn number(self) -> u64 {
        match self {
            SheetId::Lines(number) | SheetId::Register(number) => number,
            SheetId::Head => 0,
        }
    }
}

impl fmt::Display for SheetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SheetId::Lines(number) => write!(f, "l{number}"),
            SheetId::Register(number) => write!(f, "r{number}"),
            SheetId::Head => f.write_str("h"),
        }
    }
}

/// Some of the sheets of a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheets {
    pub frame: Frame,
    /// The text of each requested sheet, in the order of the request; `None` if there is no such sheet.
    pub texts: Vec<Option<Arc<str>>>,
}

/// The largest number of bytes of the text of a sheet.
pub const MAX_SHEET_BYTES: usize = 1 << 20;

/// Returns [`StoreError::Unsupported`] if a text is too long for a sheet.
pub(in crate::store) fn check(text: &str) -> Result<()> {
    if text.len() <= MAX_SHEET_BYTES {
        return Ok(());
    }
    let detail = format!("a sheet of {} bytes; it must have at most {MAX_SHEET_BYTES}", text.len());
    Err(StoreError::Unsupported { detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for id in [SheetId::Lines(0), SheetId::Lines(u64::MAX), SheetId::Register(12), SheetId::Head] {
            assert_eq!(SheetId::parse(&id.to_string()), Some(id));
        }
        for bad in ["", "h1", "l", "l01", "r-1", "x1", "é"] {
            assert_eq!(SheetId::parse(bad), None, "{bad}");
        }
    }
}
