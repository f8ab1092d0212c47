//! Expiry of what is not subtracted: slots that an unranked track no longer keeps, counters that have ended, and values
//! whose time has passed. Also frees the memory that they used.

use super::Holdings;
use crate::store::embedded::last_seen::Floors;

impl Holdings {
    /// Drops an unranked track's cells of a subject before the slot of this number. O(1) if there are none, otherwise
    /// O(cells).
    pub(super) fn remove_cells_before(&mut self, id: u32, floor: i64) {
        while self.subjects.cell_at(id, 0).is_some_and(|oldest| oldest.slot < floor) {
            self.subjects.remove_cell(id, 0);
        }
    }

    /// Removes everything of this subject that has expired at `now`, and the subject itself if nothing is left.
    /// Moves the rest if the compaction needs it. Cells of ranked tracks are left to retiring. Returns the amount of
    /// work done, in subjects.
    pub(in super::super) fn expire_subject(&mut self, id: u32, floors: Floors, now: i64) -> u64 {
        let before = self.subjects.cell_count(id);
        let removed = self.kind.remove_expired(self, id, floors);
        if let Some(duration) = self.traits.counter_duration {
            if self.counter_of(id).is_some_and(|counter| counter.start + duration <= now) {
                self.remove_subject(id);
            }
        } else if !self.traits.ranked {
            self.remove_cells_before(id, self.number(self.oldest_kept));
        }
        self.remove_subject_if_empty(id);
        let mut work = 1 + removed / 2 + (before - self.subjects.cell_count(id).min(before)) as u64 / 16;
        if self.subjects.get(id).is_some() {
            self.subjects.compact(id);
            work += self.move_down(id);
        }
        work
    }

    /// Gives a subject a lower id during a compaction, if there is one. Returns the amount of work done. O(cells + log
    /// n).
    fn move_down(&mut self, id: u32) -> u64 {
        if !self.subjects.can_move_down(id) || self.is_ahead_of_walk(id) {
            return 0;
        }
        let Some(lower) = self.subjects.move_to_lower_id(id) else { return 0 };
        let len = self.subjects.cell_count(lower);
        if self.traits.ranked {
            for at in 0..len {
                if let Some(cell) = self.subjects.cell_at(lower, at) {
                    self.lists.set_id(cell.slot, cell.place, lower);
                }
            }
            let sort_key = self.subjects.get(lower).map_or(self.traits.absent_sort_key(), |record| record.sort_key);
            if sort_key != self.traits.absent_sort_key() && !self.is_hidden(lower) {
                let entry = self.subjects.entry(lower, sort_key);
                self.ranking.remove(entry.with_id(id), &self.subjects);
                self.ranking.insert(entry, &self.subjects);
            }
        }
        self.subjects.free_id(id);
        self.contents_walks.count_upheaval();
        4 + len as u64 / 4
    }
}
