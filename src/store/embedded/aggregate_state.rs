//! The state that some kinds of metrics keep of a subject in addition to one number per slot.
//!
//! Sums and extremes need only one number per slot, which cells hold. The other kinds define their state in
//! [`kinds`](super::kinds).

use std::any::Any;
use std::fmt::Debug;

use super::slab::Column;

/// Data of a subject that was released or emptied, kept so that it can be dropped without the board's lock: dropping it
/// takes long.
pub(super) type Garbage = Box<dyn Any + Send>;

/// The additional state of a track's subjects, by subject id. The methods are called with each change of subjects and
/// cells. By default they do nothing.
pub(super) trait AggregateState: Any + Debug + Send {
    /// Returns whether references are left for a piece of any size.
    fn has_room(&self) -> bool {
        true
    }

    /// Adds a subject without cells.
    fn subject_added(&mut self, _id: u32) {}

    /// Adds a cell at this index. There are now `len` cells.
    fn cell_inserted(&mut self, _id: u32, _at: usize, _len: usize) {}

    /// Removes the cell at this index, which had the number `amount`. There are `len` cells left. Totals that are
    /// expensive to compute are not updated until [`recompute_totals`](Self::recompute_totals).
    fn cell_removed(&mut self, _id: u32, _at: usize, _len: usize, _amount: i64) {}

    /// Computes the cached total of all cells. There are `len` cells, with this sum. O(cells), and for sketches
    /// O(cells x registers).
    fn recompute_totals(&mut self, _id: u32, _len: usize, _sum: i64) {}

    /// Returns whether a subject has no state besides cells.
    fn is_empty(&self, _id: u32) -> bool {
        true
    }

    /// Removes all state of a subject, which had `len` cells. Returns what takes long to drop.
    fn remove_subject(&mut self, _id: u32, _len: usize) -> Option<Garbage> {
        None
    }

    /// Frees the chunk of this id, which no longer holds a subject.
    fn free_chunk(&mut self, _id: u32) {}

    /// Moves the state of one id to another.
    fn change_id(&mut self, _from: u32, _to: u32) {}

    fn is_sparse(&self) -> bool {
        false
    }

    fn begin_compaction(&mut self) {}

    /// Moves the state of a subject with `len` cells if its memory is to be freed by the compaction.
    fn compact(&mut self, _id: u32, _len: usize) {}

    /// Returns the bytes used: for what the states of single subjects own, with the allocator's overhead. O(1).
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Returns the bytes that the states of single subjects own: as kept, and counted one by one.
    #[cfg(test)]
    fn owned_bytes(&self) -> (usize, usize) {
        (0, 0)
    }
}

/// No state: one number per slot is enough.
#[derive(Debug)]
pub(super) struct NoState;

impl AggregateState for NoState {}

/// Moves the entry of one id to another.
pub(super) fn rename<T>(column: &mut Column<T>, from: u32, to: u32) {
    if let Some(held) = column.take(from) {
        column.set(to, held);
    }
}
