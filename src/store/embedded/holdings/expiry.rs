//! What leaves without being subtracted: slots that an unranked board keeps no longer, counters that ended, values
//! whose time has passed; and the memory that all of it leaves vacant.

use super::Holdings;
use crate::store::embedded::ranking::{Entry, Texts};

/// The most values (and tombstones) that one visit forgets of one subject: some microseconds.
const FORGOTTEN_PER_VISIT: usize = 64;

impl Holdings {
    /// Unranked boards: drops a subject's slices before the slot of this number. O(1) if there are none, else O(slices).
    pub(super) fn drop_before(&mut self, id: u32, floor: i64) {
        while self.subjects.slice_at(id, 0).is_some_and(|oldest| oldest.slot < floor) {
            self.subjects.close(id, 0);
        }
    }

    /// Frees whatever of this subject has expired at `now`, the window beginning at `floor`, and the subject if nothing
    /// is left; moves what is left where that gives memory back. Ranked boards' slices wait for retiring. Answers how
    /// much work it was, in subjects' worth.
    pub(in super::super) fn tidy(&mut self, id: u32, floor: i64, now: i64) -> u64 {
        let before = self.subjects.slices(id);
        let forgotten = self.forget_values(id, floor, FORGOTTEN_PER_VISIT);
        if let Some(life) = self.rule.life {
            if self.counter_of(id).is_some_and(|counter| counter.start + life <= now) {
                self.release(id);
            }
        } else if !self.rule.ranked {
            self.drop_before(id, self.number(self.oldest_kept));
        }
        self.release_if_empty(id);
        let mut work = 1 + forgotten as u64 / 2 + (before - self.subjects.slices(id).min(before)) as u64 / 16;
        if self.subjects.get(id).is_some() {
            self.subjects.compact(id);
            work += self.move_down(id);
        }
        work
    }

    /// Whether a visit would still find values to forget.
    pub(in super::super) fn has_expired_values(&self, id: u32, floor: i64) -> bool {
        self.subjects.extras.sightings(id).is_some_and(|sightings| sightings.reaches_before(floor))
    }

    /// During a compaction gives a subject a lower id, if there is one; answers how much work it was. O(slices + log n).
    fn move_down(&mut self, id: u32) -> u64 {
        if !self.subjects.can_move_down(id) || self.is_walk_between(id) {
            return 0;
        }
        let Some(lower) = self.subjects.lower_id(id) else { return 0 };
        let len = self.subjects.slices(lower);
        if self.rule.ranked {
            for at in 0..len {
                if let Some(slice) = self.subjects.slice_at(lower, at)
                    && let Some(list) = self.lists.get_mut(&slice.slot)
                {
                    list.rename(slice.place, lower);
                }
            }
            let key = self.subjects.get(lower).map_or(self.rule.absent(), |record| record.key);
            if key != self.rule.absent() {
                let entry = Entry::new(key, self.subjects.text(id), id);
                self.ranking.remove(entry, &self.subjects);
                let entry = Entry::new(key, self.subjects.text(lower), lower);
                self.ranking.insert(entry, &self.subjects);
            }
        }
        self.subjects.vacate(id);
        4 + len as u64 / 4
    }
}
