//! What parts return, and the stamp that says what state of the part it is from.

use std::sync::Arc;

use crate::board::{Aggregate, Timestamp};
use crate::store::redis::merge;

/// A mark of the content of a part when it was read. Equal stamps and equal heads mean equal rankings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The part's version.
    pub version: Arc<str>,
    /// The incarnation of the part's node.
    pub incarnation: u64,
}

impl Stamp {
    /// Creates a stamp. Returns `None` if the answer must not be cached: the part has no version, or the
    /// incarnation changed while it was read.
    pub fn new(version: &str, incarnation: Option<u64>) -> Option<Self> {
        let incarnation = incarnation.filter(|_| !version.is_empty())?;
        Some(Self { version: version.into(), incarnation })
    }
}

/// The slots with data, oldest first.
pub(super) type Cells = Vec<(Timestamp, Aggregate)>;

/// The data about a subject that its part returns besides the score.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub slots: Cells,
    /// The time of the latest value that was dropped because of `max_values`.
    pub capped: Option<Timestamp>,
}

/// What a part returned, with its stamp if that is known.
pub(super) type StampedShare<T> = merge::Share<T, Option<Stamp>>;

/// Consecutive lines of a part.
pub(super) type Excerpt = merge::Excerpt<About>;
