//! Numbers of items by outcome, as receipts return them and metrics record them.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::codes::ItemCode;
use crate::board::Timestamp;

/// Numbers of increments or samples by outcome.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) rejected: RejectedCounts,
}

/// Numbers of events by outcome.
#[derive(Clone, Debug, Default)]
pub(super) struct EventCounts {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) unmatched: u64,
    pub(super) unknown: u64,
    /// Events of sources that were handled before.
    pub(super) repeated: u64,
    /// Events of sources that some board has not counted yet.
    pub(super) waiting: u64,
    /// Rejected by every board that counts the type, or before reaching any board.
    pub(super) rejected: u64,
    /// Rejections by code, those before reaching any board included.
    pub(super) by_code: RejectedCounts,
    /// The time of the newest item of a source that a board has counted, now or before.
    pub(super) newest: Option<Timestamp>,
    /// Sums over all boards: an event is included once for each board that it was sent to.
    pub(super) on_boards: Counts,
}

/// Numbers of rejected items by code. Of most requests none is rejected, so there is nothing then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RejectedCounts(Option<Box<[u64; ItemCode::ALL.len()]>>);

impl EventCounts {
    /// Returns the numbers of items that were all for one board.
    pub(super) fn of_one_board(&self) -> Counts {
        Counts { accepted: self.accepted, duplicates: self.duplicates, rejected: self.by_code.clone() }
    }
}

impl RejectedCounts {
    /// Adds one rejection with this code.
    pub(super) fn add(&mut self, code: ItemCode) {
        self.0.get_or_insert_default()[code as usize] += 1;
    }

    /// Returns the number of rejections with this code.
    pub(super) fn of(&self, code: ItemCode) -> u64 {
        self.0.as_ref().map_or(0, |counts| counts[code as usize])
    }

    /// Adds the difference between two numbers of each code.
    pub(super) fn add_difference(&mut self, before: &Self, now: &Self) {
        if before == now {
            return;
        }
        for (sum, code) in self.0.get_or_insert_default().iter_mut().zip(ItemCode::ALL) {
            *sum += now.of(*code).saturating_sub(before.of(*code));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Serialize for RejectedCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let counts = self.0.iter().flat_map(|counts| counts.iter());
        for (code, count) in ItemCode::ALL.iter().zip(counts).filter(|(_, count)| **count > 0) {
            map.serialize_entry(code, count)?;
        }
        map.end()
    }
}
