//! A subject's record, holding all its slices.

use std::sync::Arc;

/// What one subject has in one slot. What else a metric keeps of a slot stands in its [`Extra`](super::extra::Extra).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The slot's start, in milliseconds. On a `from_first` board when the subject's counter began.
    pub slot: i64,
    /// COUNT, SUM, AVG: the sum; MIN, MAX: the slot's own extreme; COUNT_DISTINCT: how many values were last seen in
    /// it; APPROX_COUNT_DISTINCT: 0. A slice that holds nothing is gone.
    pub amount: i64,
    /// Where the slot's list of subjects has this one, so that leaving the list costs no search. 0 on an unranked
    /// board, which has no lists.
    pub place: u32,
}

/// All that a board holds of one subject, but for its [`Extra`](super::extra::Extra).
#[derive(Debug)]
pub(super) struct Record {
    /// Shared with the slab's index.
    pub text: Arc<str>,
    /// By slot, oldest first. The score's parts, retiring ones included.
    pub slices: Vec<Slice>,
    /// The key of what the slices say together, which is what the ranking says:
    /// [`Rule::absent`](super::rule::Rule::absent) if the subject is not ranked.
    pub key: i64,
    /// Waits in the queue of records to fold into the database; an empty one keeps its id until then.
    pub queued: bool,
}

impl Record {
    /// Where the slice of `slot` is, or would be.
    pub(super) fn find(&self, slot: i64) -> Result<usize, usize> {
        // Nearly every write is about the newest slot.
        match self.slices.last() {
            Some(last) if last.slot == slot => Ok(self.slices.len() - 1),
            Some(last) if last.slot > slot => self.slices.binary_search_by_key(&slot, |slice| slice.slot),
            _ => Err(self.slices.len()),
        }
    }

    /// What it holds in `slot`.
    pub(super) fn amount(&self, slot: i64) -> Option<i64> {
        self.find(slot).ok().map(|at| self.slices[at].amount)
    }

    /// Where the first slice at or after `slot` is.
    pub(super) fn first_from(&self, slot: i64) -> usize {
        self.slices.partition_point(|slice| slice.slot < slot)
    }
}
