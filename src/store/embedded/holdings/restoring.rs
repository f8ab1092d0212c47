//! Restoring while a store is opened: creates records from checkpoints and the log, without scores, places or lists.
//! [`rebuild`](Holdings::rebuild) computes these at the end. Each call sets an absolute state, so applying a log twice
//! ends in the same state.

use super::Holdings;
use crate::board::{Mark, Sketch};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::last_seen::{Floors, LastSeen};
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

    /// Sets the sum and the count of a cell.
    pub(in super::super) fn restore_samples(&mut self, name: HashedName, slot: i64, (sum, count): (i64, i64)) {
        let Some(id) = self.restored_id(name) else { return };
        let slot = self.number(slot);
        if (sum, count) == (0, 0) {
            return self.remove_restored_cell(id, slot);
        }
        if self.restore_cell(id, slot, sum).is_some() {
            self.set_count(id, slot, count, 0);
        }
    }

    /// Sets the sketch of a cell.
    pub(in super::super) fn restore_sketch(&mut self, name: HashedName, slot: i64, sketch: Sketch) {
        let Some(id) = self.restored_id(name) else { return };
        let at = self.restore_cell(id, self.number(slot), 0);
        if let (Some(at), Some(sketches)) = (at, self.subjects.aggregates.sketches_mut(id)) {
            sketches.set(at, sketch);
        }
    }

    /// Raises a register of a cell's sketch.
    pub(in super::super) fn restore_mark(&mut self, name: HashedName, slot: i64, mark: Mark) {
        let Some(id) = self.restored_id(name) else { return };
        let at = self.restore_cell(id, self.number(slot), 0);
        if let (Some(at), Some(sketches)) = (at, self.subjects.aggregates.sketches_mut(id)) {
            sketches.mark(at, mark);
        }
    }

    /// Sets what is stored about a value. `None` removes the value.
    pub(in super::super) fn restore_last_seen(&mut self, name: HashedName, value: &str, last_seen: Option<LastSeen>) {
        let Some(id) = self.restored_id(name) else { return };
        let Some(values) = self.subjects.aggregates.last_seen_mut(id) else { return };
        match last_seen {
            Some(last_seen) => values.set(value, last_seen),
            None => drop(values.remove(value)),
        }
    }

    /// Sets the newest time of a dropped value.
    pub(in super::super) fn restore_capped(&mut self, name: HashedName, at: i64) {
        let Some(id) = self.restored_id(name) else { return };
        if let Some(values) = self.subjects.aggregates.last_seen_mut(id) {
            values.capped = Some(at);
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
            while self.has_expired_values(id, floors) {
                self.remove_expired_values(id, floors, usize::MAX);
            }
            self.recount_values(id);
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
            let key = match self.subjects.aggregates.sketches(id) {
                Some(sketches) => sketches.merged.estimate(),
                None => self.computed_key(id),
            };
            if let Some(record) = self.subjects.get_mut(id) {
                record.key = key;
            }
            if key != self.traits.absent_key() {
                entries.push(Entry::new(key, self.subjects.text(id), id));
            }
        }
        self.ranking = Ranking::build(entries, &self.subjects.texts());
    }

    fn restored_id(&mut self, name: HashedName) -> Option<u32> {
        self.id_or_add(self.subjects.id(name), name).ok()
    }

    /// Sets a cell. Returns its index, or `None` if it expired long ago.
    fn restore_cell(&mut self, id: u32, slot: i64, amount: i64) -> Option<usize> {
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

    fn remove_restored_cell(&mut self, id: u32, slot: i64) {
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

    /// Computes the cells of a COUNT_DISTINCT subject from the times of its values.
    fn recount_values(&mut self, id: u32) {
        let subjects = &mut self.subjects;
        let Some(values) = subjects.aggregates.last_seen(id) else { return };
        let mut cells: Vec<Cell> = Vec::new();
        let mut end = i64::MIN;
        // The values are ordered by time, so each belongs to the last slot or begins a new one.
        for (_, last_seen) in values.all().filter(|(_, last_seen)| !last_seen.retracted) {
            match cells.last_mut() {
                Some(last) if last_seen.at < end => last.amount += 1,
                _ => {
                    let slot = subjects.numbering.number(last_seen.at);
                    end = subjects.numbering.end(slot);
                    cells.push(Cell { slot, amount: 1, place: 0 });
                }
            }
        }
        for (at, cell) in cells.into_iter().enumerate() {
            subjects.insert_cell(id, at, cell);
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
