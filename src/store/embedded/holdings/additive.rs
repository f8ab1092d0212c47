//! COUNT and SUM: amounts that are added up.

use super::{Holdings, OutOfRange};
use crate::store::embedded::hashed_name::HashedName;

impl Holdings {
    /// Adds to the amount that a subject has in a slot. Fails if the result would exceed `bound`. Returns the new
    /// amount. O(log n).
    pub(in super::super) fn add(
        &mut self,
        name: HashedName,
        slot: i64,
        amount: i64,
        bound: i64,
    ) -> Result<i64, OutOfRange> {
        self.change_sum(name, slot, bound, |old| old.checked_add(amount))
    }

    /// Sets the amount that a subject has in a slot. Fails if it exceeds `bound`. Returns the amount. O(log n).
    pub(in super::super) fn set_sum(
        &mut self,
        name: HashedName,
        slot: i64,
        sum: i64,
        bound: i64,
    ) -> Result<i64, OutOfRange> {
        self.change_sum(name, slot, bound, |_| Some(sum))
    }

    fn change_sum(
        &mut self,
        name: HashedName,
        slot: i64,
        bound: i64,
        next: impl FnOnce(i64) -> Option<i64>,
    ) -> Result<i64, OutOfRange> {
        let slot = self.number(slot);
        let known = self.subjects.id(name);
        let old = known.and_then(|id| self.subjects.amount_in(id, slot)).unwrap_or(0);
        let new = next(old).filter(|new| new.unsigned_abs() <= bound.unsigned_abs()).ok_or(OutOfRange)?;
        if new == old {
            return Ok(new);
        }
        let id = self.id_or_add(known, name)?;
        if new == 0 {
            self.remove_cell(id, slot)
        } else {
            self.set_cell(id, slot, new)
        };
        self.add_to_score(id, new - old);
        self.remove_subject_if_empty(id);
        Ok(new)
    }

    /// Adds to the score, where the score is a sum of cells.
    pub(super) fn add_to_score(&mut self, id: u32, change: i64) {
        if let Some(record) = self.subjects.get(id).filter(|_| change != 0) {
            self.set_key(id, record.key + change);
        }
    }
}
