//! Numbers of items by outcome, as receipts return them and metrics record them.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::codes::ItemCode;

/// Numbers of increments or samples by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) rejected: RejectedCounts,
}

/// Numbers of events by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventCounts {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) unmatched: u64,
    pub(super) unknown: u64,
    /// Rejected by every board that counts the type, or before reaching any board.
    pub(super) rejected: u64,
    /// Sums over all boards: an event is included once for each board that it was sent to.
    pub(super) on_boards: Counts,
}

/// Numbers of rejected items by code.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RejectedCounts([u64; ItemCode::ALL.len()]);

impl RejectedCounts {
    /// Adds one rejection with this code.
    pub(super) fn add(&mut self, code: ItemCode) {
        self.0[code as usize] += 1;
    }

    /// Returns the number of rejections with this code.
    pub(super) fn of(&self, code: ItemCode) -> u64 {
        self.0[code as usize]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

impl Serialize for RejectedCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (code, count) in ItemCode::ALL.iter().zip(self.0).filter(|(_, count)| *count > 0) {
            map.serialize_entry(code, &count)?;
        }
        map.end()
    }
}
