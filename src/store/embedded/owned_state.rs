//! A state of subjects of which each has something that owns memory of its own, such as the values that are counted.

use std::any::Any;
use std::fmt::Debug;

use super::aggregate_state::{AggregateState, Garbage, rename};
use super::slab::Column;
use super::subjects::Subjects;

/// The data of all subjects.
#[derive(Debug, Default)]
pub(super) struct Owned<T> {
    column: Column<Box<T>>,
    /// The bytes of all subjects' data, with the allocator's overhead.
    bytes: usize,
}

/// Data of one subject.
pub(super) trait SubjectData: Any + Debug + Default + Send {
    /// Returns the number of its parts. What has many takes long to drop.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool;

    /// Returns its bytes and those that it owns, with the allocator's overhead. O(1).
    fn memory_bytes(&self) -> usize;
}

/// The largest number of parts that are dropped under the board's lock.
const MAX_DROPPED_AT_ONCE: usize = 256;

impl<T: SubjectData> Owned<T> {
    /// Returns the data of a subject.
    pub(super) fn of(subjects: &Subjects, id: u32) -> Option<&T> {
        subjects.state::<Self>()?.column.get(id).map(|data| &**data)
    }

    /// Changes the data of a subject, and counts the memory that it takes.
    pub(super) fn change<R>(subjects: &mut Subjects, id: u32, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let state = subjects.state_mut::<Self>()?;
        let data = state.column.get_mut(id)?;
        let before = data.memory_bytes();
        let changed = change(data);
        state.bytes += data.memory_bytes();
        state.bytes -= before;
        Some(changed)
    }
}

impl<T: SubjectData> AggregateState for Owned<T> {
    fn subject_added(&mut self, id: u32) {
        let data = Box::<T>::default();
        self.bytes += data.memory_bytes();
        self.column.set(id, data);
    }

    fn is_empty(&self, id: u32) -> bool {
        self.column.get(id).is_none_or(|data| data.is_empty())
    }

    fn remove_subject(&mut self, id: u32, _len: usize) -> Option<Garbage> {
        let data = self.column.take(id)?;
        self.bytes -= data.memory_bytes();
        if data.len() > MAX_DROPPED_AT_ONCE { Some(data) } else { None }
    }

    fn free_chunk(&mut self, id: u32) {
        self.column.free_chunk(id);
    }

    fn change_id(&mut self, from: u32, to: u32) {
        rename(&mut self.column, from, to);
    }

    fn memory_bytes(&self) -> usize {
        self.column.memory_bytes() + self.bytes
    }

    #[cfg(test)]
    fn owned_bytes(&self) -> (usize, usize) {
        (self.bytes, self.column.iter().map(|data| data.memory_bytes()).sum())
    }
}
