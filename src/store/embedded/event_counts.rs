//! The number of items counted in each slot.

use std::collections::BTreeMap;

use super::log_operations::LogOperations;
use super::numbering::MAX_SLOT_AGE;

/// The number of items counted in each slot that is kept, by the slot's start in milliseconds.
#[derive(Debug, Default)]
pub(super) struct EventCounts {
    counts: BTreeMap<i64, u64>,
    /// The slots whose counts changed since they were written to the log.
    changed: Vec<i64>,
}

impl EventCounts {
    /// Counts items of a slot. O(log slots).
    pub(super) fn add(&mut self, slot: i64, items: u64) {
        let count = self.counts.entry(slot).or_default();
        *count = count.saturating_add(items);
        if !self.changed.contains(&slot) {
            self.changed.push(slot);
        }
    }

    /// Sets the counts of slots, each of which is given once. O(slots log slots).
    pub(super) fn set(&mut self, counts: impl IntoIterator<Item = (i64, u64)>) {
        for (slot, count) in counts {
            if self.counts.insert(slot, count) != Some(count) {
                self.changed.push(slot);
            }
        }
    }

    /// Sets the count of a slot while a store is opened.
    pub(super) fn restore(&mut self, slot: i64, count: u64) {
        self.counts.insert(slot, count);
        // A log may cover many more slots than any board keeps.
        if self.counts.len() as i64 > MAX_SLOT_AGE {
            self.counts.pop_first();
        }
    }

    /// Appends the counts that changed since the last call to a portion of the log.
    pub(super) fn log_changes(&mut self, operations: &mut LogOperations) {
        for slot in self.changed.drain(..) {
            if let Some(count) = self.counts.get(&slot) {
                operations.events(slot, *count);
            }
        }
    }

    /// Appends all counts to a checkpoint.
    pub(super) fn write(&self, operations: &mut LogOperations) {
        for (slot, count) in &self.counts {
            operations.events(*slot, *count);
        }
    }

    /// Forgets the slots before this one.
    pub(super) fn forget_before(&mut self, slot: i64) {
        self.counts = self.counts.split_off(&slot);
    }

    /// Returns the approximate number of bytes that the counts use.
    pub(super) fn memory_bytes(&self) -> usize {
        // The nodes of the tree are at least half full.
        self.counts.len() * size_of::<(i64, u64)>() * 3 / 2 + self.changed.capacity() * size_of::<i64>()
    }

    /// Returns the count of each slot from this one on, oldest first.
    pub(super) fn since(&self, slot: i64) -> impl Iterator<Item = (i64, u64)> {
        self.counts.range(slot..).map(|(slot, count)| (*slot, *count))
    }
}
