//! Restoring while a store is opened: creates records from checkpoints and the log, without scores, places or lists.
//! [`rebuild`](Holdings::rebuild) computes these at the end. Each call sets an absolute state, so applying a log twice
//! ends in the same state.
//!
//! What has expired at the board's time is not restored. A checkpoint and a log contain much of that: with it, a start
//! would need more memory than the store had.

use super::Holdings;
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::last_seen::Floors;
use crate::store::embedded::ranking::{Ranking, Unsorted};
use crate::store::embedded::record::{Cell, Counter};

impl Holdings {
    /// Sets the time for what is restored from now on: the start of the newest slot, that of the oldest slot that is
    /// kept, and the board's time.
    pub(in super::super) fn restore_at(&mut self, head: i64, oldest_kept: i64, now: i64) {
        self.subjects.numbering.move_to(head);
        self.first_restored = match self.traits.counter_duration {
            Some(duration) => now - duration + 1,
            None => self.number(oldest_kept),
        };
    }

    /// Sets the number of a cell.
    pub(in super::super) fn restore_amount(&mut self, name: HashedName, slot: i64, amount: i64) {
        if self.traits.counter_duration.is_some() {
            return self.restore_counter(name, Counter { start: slot, amount });
        }
        if amount == 0 && self.traits.absent_sort_key() == 0 {
            self.remove_restored_cell(name, slot);
        } else {
            self.restore_cell(name, slot, amount);
        }
    }

    /// Sets a counter. One that has ended takes the place of an earlier one, so that is removed.
    fn restore_counter(&mut self, name: HashedName, counter: Counter) {
        if counter.start < self.first_restored {
            self.restore_removed(name);
        } else if let Some(id) = self.restored_id(name) {
            self.set_counter(id, counter);
        }
    }

    /// Removes all data of a subject.
    pub(in super::super) fn restore_removed(&mut self, name: HashedName) {
        if let Some(id) = self.subjects.id(name) {
            self.subjects.remove(id);
        }
    }

    /// Completes the restored data: drops what has expired since it was restored (which finishes any retiring), and
    /// computes cached totals, scores, lists and the ranking. `floors` and `head` are those at `now`.
    /// [`oldest_kept`](Self::oldest_kept) must be set before. O(n log n).
    pub(in super::super) fn rebuild(&mut self, floors: Floors, head: i64, now: i64) {
        self.subjects.numbering.move_to(head);
        let mut entries = Unsorted::default();
        let mut next = 0;
        while let Some(id) = self.subjects.next_from(next) {
            next = id + 1;
            self.kind.restored(self, id, floors);
            self.drop_expired(id, floors.seen, now);
            if self.subjects.is_empty(id) {
                self.subjects.remove(id);
                continue;
            }
            if !self.traits.ranked {
                continue;
            }
            self.add_to_slot_lists(id);
            self.subjects.recompute_totals(id);
            let sort_key = self.kind.restored_sort_key(self, id);
            if let Some(record) = self.subjects.get_mut(id) {
                record.sort_key = sort_key;
            }
            if sort_key != self.traits.absent_sort_key() && !self.is_hidden(id) {
                let entry = self.subjects.entry(id, sort_key);
                if let Some(groups) = self.subjects.groups_mut() {
                    groups.ranked(entry.group());
                }
                entries.push(entry);
            }
        }
        self.ranking = Ranking::build(entries, &self.subjects.texts());
    }

    pub(in super::super) fn restored_id(&mut self, name: HashedName) -> Option<u32> {
        self.id_or_add(self.subjects.id(name), name).ok()
    }

    /// Sets the number of the cell of the slot that starts at `slot`. Returns the subject, the number of the slot and
    /// the index of the cell, or `None` if the slot has expired.
    pub(in super::super) fn restore_cell(
        &mut self,
        name: HashedName,
        slot: i64,
        amount: i64,
    ) -> Option<(u32, i64, usize)> {
        let slot = self.number(slot);
        if slot < self.first_restored {
            return None;
        }
        let id = self.restored_id(name)?;
        self.subjects.numbering.range(slot);
        let at = match self.subjects.find_cell(id, slot) {
            Ok(at) => {
                self.subjects.set_amount(id, at, amount);
                at
            }
            Err(at) => {
                self.subjects.insert_cell(id, at, Cell { slot, amount, place: 0 });
                at
            }
        };
        Some((id, slot, at))
    }

    /// Removes the cell of the slot that starts at `slot`, if there is one.
    pub(in super::super) fn remove_restored_cell(&mut self, name: HashedName, slot: i64) {
        let (Some(id), slot) = (self.subjects.id(name), self.number(slot)) else { return };
        if slot >= self.first_restored
            && let Ok(at) = self.subjects.find_cell(id, slot)
        {
            self.subjects.remove_cell(id, at);
            self.remove_subject_if_empty(id);
        }
    }

    fn drop_expired(&mut self, id: u32, floor: i64, now: i64) {
        match self.traits.counter_duration {
            Some(duration) => {
                if self.counter_of(id).is_some_and(|counter| counter.start + duration <= now) {
                    self.subjects.remove(id);
                }
            }
            None => {
                let floor = if self.traits.ranked { floor } else { self.oldest_kept };
                self.remove_cells_before(id, self.number(floor));
            }
        }
    }

    /// Adds a subject to its slots' lists.
    fn add_to_slot_lists(&mut self, id: u32) {
        for at in 0..self.subjects.cell_count(id) {
            let Some(cell) = self.subjects.cell_at(id, at) else { continue };
            let place = self.list(cell.slot, id);
            self.subjects.set_place(id, at, place);
        }
    }
}
