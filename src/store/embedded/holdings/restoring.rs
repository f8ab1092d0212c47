//! Restoring while a store is opened: creates records from checkpoints and the log, without scores, places or lists.
//! [`rebuild`](Holdings::rebuild) computes these at the end. Each call sets an absolute state, so applying a log twice
//! ends in the same state.

use super::Holdings;
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::last_seen::Floors;
use crate::store::embedded::numbering::MAX_SLOT_AGE;
use crate::store::embedded::ranking::{Entry, Ranking, TextSource, Unsorted};
use crate::store::embedded::record::{Cell, Counter};
use crate::store::embedded::slot_list::SlotList;

/// The number of slots before the newest that any board may still need: a board keeps at most 4,001, and a time zone
/// may skip some.
const SLOTS_NEEDED: i64 = MAX_SLOT_AGE / 4;

impl Holdings {
    /// Sets the number of a cell.
    pub(in super::super) fn restore_amount(&mut self, name: HashedName, slot: i64, amount: i64) {
        let Some(id) = self.restored_id(name) else { return };
        if self.traits.counter_duration.is_some() {
            return self.set_counter(id, Counter { start: slot, amount });
        }
        let slot = self.number(slot);
        if amount == 0 && self.traits.absent_key() == 0 {
            self.remove_restored_cell(id, slot);
        } else {
            self.restore_cell(id, slot, amount);
        }
    }

    /// Removes all data of a subject.
    pub(in super::super) fn restore_removed(&mut self, name: HashedName) {
        if let Some(id) = self.subjects.id(name) {
            self.subjects.remove(id);
        }
    }

    /// Completes the restored data: drops what has expired (which finishes any retiring), and computes cached totals,
    /// scores, lists and the ranking. `floors` and `head` are those at `now`. [`oldest_kept`](Self::oldest_kept) must be
    /// set before. O(n log n).
    pub(in super::super) fn rebuild(&mut self, floors: Floors, head: i64, now: i64) {
        self.reach_slot(self.number(head));
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
            let key = self.kind.restored_key(self, id);
            if let Some(record) = self.subjects.get_mut(id) {
                record.key = key;
            }
            if key != self.traits.absent_key() {
                entries.push(Entry::new(key, self.subjects.text(id), id));
            }
        }
        self.ranking = Ranking::build(entries, &self.subjects.texts());
    }

    pub(in super::super) fn restored_id(&mut self, name: HashedName) -> Option<u32> {
        self.id_or_add(self.subjects.id(name), name).ok()
    }

    /// Sets a cell. Returns its index, or `None` if it expired long ago.
    pub(in super::super) fn restore_cell(&mut self, id: u32, slot: i64, amount: i64) -> Option<usize> {
        self.reach_slot(slot);
        if slot < self.first_kept {
            return None;
        }
        match self.subjects.find_cell(id, slot) {
            Ok(at) => {
                self.subjects.set_amount(id, at, amount);
                Some(at)
            }
            Err(at) => {
                self.subjects.insert_cell(id, at, Cell { slot, amount, place: 0 });
                Some(at)
            }
        }
    }

    pub(in super::super) fn remove_restored_cell(&mut self, id: u32, slot: i64) {
        if slot >= self.first_kept
            && let Ok(at) = self.subjects.find_cell(id, slot)
        {
            self.subjects.remove_cell(id, at);
        }
    }

    /// Records that time has reached a slot. A log may cover the whole life of a board, so cells that expired long ago
    /// are dropped from time to time. Otherwise the ordinals of the remaining cells would be ambiguous. O(n) once in
    /// some thousand slots.
    fn reach_slot(&mut self, slot: i64) {
        if self.traits.counter_duration.is_none() && slot - self.first_kept.max(0) >= MAX_SLOT_AGE - SLOTS_NEEDED {
            self.first_kept = slot - SLOTS_NEEDED;
            let mut next = 0;
            while let Some(id) = self.subjects.next_from(next) {
                next = id + 1;
                self.remove_cells_before(id, self.first_kept);
            }
        }
        self.subjects.numbering.range(slot);
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
            let numbering = &self.subjects.numbering;
            let list = self.lists.entry(cell.slot).or_insert_with(|| SlotList::new(numbering.start(cell.slot)));
            let place = list.push(id);
            self.subjects.set_place(id, at, place);
        }
    }
}
