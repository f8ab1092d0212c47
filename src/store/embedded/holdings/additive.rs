//! COUNT and SUM: amounts that add up.

use super::{Holdings, OutOfRange};

impl Holdings {
    /// Adds to what a subject has in a slot, unless that would pass `bound`; answers the new amount. O(log n).
    pub(in super::super) fn add(
        &mut self,
        subject: &str,
        slot: i64,
        amount: i64,
        bound: i64,
    ) -> Result<i64, OutOfRange> {
        self.change_sum(subject, slot, bound, |old| old.checked_add(amount))
    }

    /// Sets what a subject has in a slot, unless that would pass `bound`; answers it. O(log n).
    pub(in super::super) fn set_sum(
        &mut self,
        subject: &str,
        slot: i64,
        sum: i64,
        bound: i64,
    ) -> Result<i64, OutOfRange> {
        self.change_sum(subject, slot, bound, |_| Some(sum))
    }

    fn change_sum(
        &mut self,
        subject: &str,
        slot: i64,
        bound: i64,
        next: impl FnOnce(i64) -> Option<i64>,
    ) -> Result<i64, OutOfRange> {
        let known = self.slab.id(subject);
        let old = known.and_then(|id| self.slab.get(id)).and_then(|record| record.amount(slot)).unwrap_or(0);
        let new = next(old).filter(|new| new.unsigned_abs() <= bound.unsigned_abs()).ok_or(OutOfRange)?;
        if new == old {
            return Ok(new);
        }
        // No memory holds the four billion subjects at which ids run out.
        let id = known.or_else(|| self.slab.intern(subject)).ok_or(OutOfRange)?;
        if new == 0 {
            self.cut(id, slot)
        } else {
            self.put(id, slot, new)
        };
        self.raise(id, new - old);
        self.enqueue(id);
        Ok(new)
    }

    /// Adds to the score, where it is a sum of slices.
    pub(super) fn raise(&mut self, id: u32, change: i64) {
        if let Some(record) = self.slab.get(id).filter(|_| change != 0) {
            self.rescore(id, record.key + change);
        }
    }
}
