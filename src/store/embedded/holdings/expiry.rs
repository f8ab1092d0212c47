//! What leaves without being subtracted: slots that an unranked board keeps no longer, counters that ended, values
//! whose time has passed.

use super::Holdings;

/// The most values (and tombstones) that one visit forgets of one subject: some microseconds.
const FORGOTTEN_PER_VISIT: usize = 64;

impl Holdings {
    /// Unranked boards: drops a subject's slices before `floor`. O(1) if there are none.
    pub(super) fn drop_before(&mut self, id: u32, floor: i64) {
        let Some(record) = self.slab.get(id) else { return };
        // Mostly there is none or one.
        let expired: Vec<i64> = record.slices.iter().map(|slice| slice.slot).take_while(|slot| *slot < floor).collect();
        for slot in expired {
            self.cut(id, slot);
        }
    }

    /// Lets go of whatever of this subject has expired at `now`, the window beginning at `floor`; a subject that has
    /// nothing left then is to be forgotten. Ranked boards' slices wait for retiring. Answers how much work it was,
    /// in subjects' worth.
    pub(in super::super) fn tidy(&mut self, id: u32, floor: i64, now: i64) -> u64 {
        if self.slab.get(id).is_none() {
            return 1;
        }
        let forgotten = self.forget_values(id, floor, FORGOTTEN_PER_VISIT);
        if let Some(life) = self.rule.life {
            self.drop_before(id, now - life + 1);
        } else if !self.rule.ranked {
            self.drop_before(id, self.oldest_kept);
        }
        if self.slab.is_empty(id) {
            // The database must forget it, and then its id is free.
            self.enqueue(id);
        }
        1 + forgotten as u64 / 2
    }

    /// Whether a visit would still find values to forget.
    pub(in super::super) fn has_expired_values(&mut self, id: u32, floor: i64) -> bool {
        self.sightings_mut(id).is_some_and(|sightings| sightings.reaches_before(floor))
    }
}
