//! AVG: the sum and the number of measurements, per slot and in total.

use super::{Holdings, OutOfRange};
use crate::board::Value;
use crate::store::embedded::hashed_name::HashedName;

/// The sum and the count of a slot.
pub(in super::super) type Samples = (i64, i64);

impl Holdings {
    /// Adds to the sum and the count of a slot. Fails if one of them would exceed `bound`. Returns the new sum and
    /// count. O(log n).
    pub(in super::super) fn add_samples(
        &mut self,
        name: HashedName,
        slot: i64,
        (sum, count): Samples,
        bound: i64,
    ) -> Result<Samples, OutOfRange> {
        self.change_samples(name, slot, bound, |(old_sum, old_count)| {
            Some((old_sum.checked_add(sum)?, old_count.checked_add(count)?))
        })
    }

    /// Sets the sum and the count of a slot. Fails if one of them exceeds `bound`. Returns them. O(log n).
    pub(in super::super) fn set_samples(
        &mut self,
        name: HashedName,
        slot: i64,
        samples: Samples,
        bound: i64,
    ) -> Result<Samples, OutOfRange> {
        self.change_samples(name, slot, bound, |_| Some(samples))
    }

    fn change_samples(
        &mut self,
        name: HashedName,
        slot: i64,
        bound: i64,
        next: impl FnOnce(Samples) -> Option<Samples>,
    ) -> Result<Samples, OutOfRange> {
        let slot = self.number(slot);
        let known = self.subjects.id(name);
        let old = known.map_or((0, 0), |id| self.samples(id, slot));
        let (sum, count) = next(old).ok_or(OutOfRange)?;
        if sum.unsigned_abs().max(count.unsigned_abs()) > bound.unsigned_abs() {
            return Err(OutOfRange);
        }
        if (sum, count) == old {
            return Ok(old);
        }
        let id = self.id_or_add(known, name)?;
        if (sum, count) == (0, 0) {
            self.remove_cell(id, slot);
        } else {
            self.set_cell(id, slot, sum);
            self.set_count(id, slot, count, sum - old.0);
        }
        self.set_key(id, self.mean_key(id));
        self.remove_subject_if_empty(id);
        Ok((sum, count))
    }

    /// Sets the count of an existing cell, and adds `sum_change` to the total sum.
    pub(super) fn set_count(&mut self, id: u32, slot: i64, count: i64, sum_change: i64) {
        let (at, len) = (self.subjects.find_cell(id, slot), self.subjects.cell_count(id));
        if let (Ok(at), Some(means)) = (at, self.subjects.aggregates.means_mut()) {
            means.set(id, at, len, count, sum_change);
        }
    }

    /// Returns the sum and the count of a cell.
    pub(super) fn samples(&self, id: u32, slot: i64) -> Samples {
        let Ok(at) = self.subjects.find_cell(id, slot) else { return (0, 0) };
        let count =
            self.subjects.aggregates.means().map_or(0, |means| means.count(id, at, self.subjects.cell_count(id)));
        (self.subjects.cell_at(id, at).map_or(0, |cell| cell.amount), count)
    }

    /// Returns the key of the mean of all cells. O(1).
    pub(super) fn mean_key(&self, id: u32) -> i64 {
        let total = self.subjects.aggregates.means().and_then(|means| means.total(id));
        let enough = total.filter(|total| total.count >= self.traits.min_samples);
        self.traits.key_of_score(enough.and_then(|total| Value::mean(total.sum, total.count)))
    }
}
