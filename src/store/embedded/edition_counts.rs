//! The counts about two editions of a board, as the log has them.

use crate::board::NotCounted;
use crate::store::MAX_EDITIONS;

/// The number of items that one edition did not count, by reason, in the order of [`NotCounted::COUNTED`].
pub(super) type Missed = [u64; NotCounted::COUNTED.len()];

/// The counts about two editions of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EditionCounts {
    /// The time, in milliseconds, since which both editions have received every item.
    pub since: i64,
    /// The time at which the last fill ended.
    pub filled: Option<i64>,
    /// For each edition, the items that only the other one counted.
    pub missed: [Missed; MAX_EDITIONS],
}
