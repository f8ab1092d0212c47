//! The results of calls about the two editions of a board.

use crate::board::{Frame, NotCounted, Timestamp, Value};

/// The state of the two editions of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DualRun {
    /// The time since which both editions have received every item: the latest time at which a partition got its second
    /// edition, or an item whose effect on one of them was not known.
    pub since: Timestamp,
    /// For each edition, the current one first: by reason, the number of items that only the other one counted. Reasons
    /// of no item may be left out.
    pub not_counted: [Vec<(NotCounted, u64)>; 2],
    /// The time at which the last [fill](super::Store::end_fill) ended in all partitions.
    pub filled: Option<Timestamp>,
    /// Whether each item since then is known to have been written to both editions. `None` if it is not known: after a
    /// restart of Redis, whose log may have cut a script.
    pub is_exact: Option<bool>,
    /// Changes if a server is restarted or replaced, which may have lost what it was given.
    pub server_runs: u64,
}

/// What subjects have in a track of each edition, at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    pub frames: [Frame; 2],
    /// For each requested subject, in their order, the score in both tracks; on an unranked track the value of its
    /// window. `None` if it is not ranked or has no value.
    pub values: Vec<[Option<Value>; 2]>,
}

impl Compared {
    /// The largest number of subjects that one call compares.
    pub const MAX_SUBJECTS: usize = 1_000;
}

/// The largest number of cells that one [fill](super::Store::fill) names.
pub const MAX_FILLED: usize = 1_000;
