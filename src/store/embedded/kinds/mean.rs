//! AVG: the sum and the number of measurements, per slot and in total.

use super::StoredKind;
use crate::board::{Aggregate, Amount, Change, Value};
use crate::store::embedded::aggregate_state::AggregateState;
use crate::store::embedded::cell_pairs::{self, CellPairs};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellAt, Holdings, OutOfRange, WriteTo};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::record::Cell;
use crate::store::sizing::Content;

/// AVG.
#[derive(Debug)]
pub(super) struct Mean;

impl StoredKind for Mean {
    fn new_state(&self, _ranked: bool) -> Box<dyn AggregateState> {
        Box::<CellPairs>::default()
    }

    fn check(&self, holdings: &Holdings, to: &WriteTo<'_>, change: &Change) -> Result<(), OutOfRange> {
        let next = |old| match change {
            Change::Amount(amount) => added(old, sample(*amount, to.retract)),
            Change::Set { sum, count } => Some((sum.0, *count)),
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => None,
        };
        holdings.next_samples(holdings.subjects.id(to.name), holdings.number(to.slot), to.bound, next)?;
        if holdings.subjects.has_room() { Ok(()) } else { Err(OutOfRange) }
    }

    fn apply(
        &self,
        holdings: &mut Holdings,
        to: &WriteTo<'_>,
        change: &Change,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        let samples = match change {
            Change::Amount(amount) => holdings.add_samples(to.name, to.slot, sample(*amount, to.retract), to.bound)?,
            Change::Set { sum, count } => holdings.set_samples(to.name, to.slot, (sum.0, *count), to.bound)?,
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => return Err(OutOfRange),
        };
        operations.samples(to.slot, samples, to.name.text);
        Ok(())
    }

    fn merge(
        &self,
        holdings: &mut Holdings,
        to: &WriteTo<'_>,
        aggregate: &Aggregate,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        let Aggregate::Mean { sum, count } = aggregate else { return Err(OutOfRange) };
        let samples = holdings.add_samples(to.name, to.slot, (sum.0, *count), to.bound)?;
        operations.samples(to.slot, samples, to.name.text);
        Ok(())
    }

    fn aggregate(&self, holdings: &Holdings, id: u32, cell: Cell, at: usize) -> Aggregate {
        Aggregate::Mean { sum: Amount(cell.amount), count: holdings.count_at(id, at) }
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        let sum = holdings.subjects.cells_from(id, first).map(|cell| cell.amount).sum();
        let count: i64 = (first..holdings.subjects.cell_count(id)).map(|at| holdings.count_at(id, at)).sum();
        Value::mean(sum, count).filter(|_| count >= holdings.traits.min_samples)
    }

    fn key_without(&self, holdings: &mut Holdings, id: u32, _key: i64, _amount: i64) -> i64 {
        holdings.mean_key(id)
    }

    fn write_cell(&self, holdings: &Holdings, id: u32, at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        operations.samples(cell.start, (cell.amount, holdings.count_at(id, at)), cell.subject);
    }

    fn bytes(&self, content: Content, _ranked: bool) -> usize {
        cell_pairs::estimated_bytes(content.slots)
    }
}

/// The sum and the count of a slot.
pub(in crate::store::embedded) type Samples = (i64, i64);

/// Returns the sum and the count that one measurement adds.
fn sample(amount: Amount, retract: bool) -> Samples {
    if retract { (-amount.0, -1) } else { (amount.0, 1) }
}

/// Returns the sum of two samples, or `None` if it is out of range.
fn added(old: Samples, new: Samples) -> Option<Samples> {
    Some((old.0.checked_add(new.0)?, old.1.checked_add(new.1)?))
}

impl Holdings {
    /// Adds to the sum and the count of a slot. Fails if one of them would exceed `bound`. Returns the new sum and
    /// count. O(log n).
    pub(in crate::store::embedded) fn add_samples(
        &mut self,
        name: HashedName,
        slot: i64,
        samples: Samples,
        bound: i64,
    ) -> Result<Samples, OutOfRange> {
        self.change_samples(name, slot, bound, |old| added(old, samples))
    }

    /// Sets the sum and the count of a slot. Fails if one of them exceeds `bound`. Returns them. O(log n).
    pub(in crate::store::embedded) fn set_samples(
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
        let (old, (sum, count)) = self.next_samples(known, slot, bound, next)?;
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

    /// Returns the sum and the count of a cell, and the next ones.
    fn next_samples(
        &self,
        known: Option<u32>,
        slot: i64,
        bound: i64,
        next: impl FnOnce(Samples) -> Option<Samples>,
    ) -> Result<(Samples, Samples), OutOfRange> {
        let old = known.map_or((0, 0), |id| self.samples(id, slot));
        let new = next(old).filter(|(sum, count)| sum.unsigned_abs().max(count.unsigned_abs()) <= bound.unsigned_abs());
        Ok((old, new.ok_or(OutOfRange)?))
    }

    /// Sets the count of an existing cell, and adds `sum_change` to the total sum.
    fn set_count(&mut self, id: u32, slot: i64, count: i64, sum_change: i64) {
        let (at, len) = (self.subjects.find_cell(id, slot), self.subjects.cell_count(id));
        if let (Ok(at), Some(pairs)) = (at, self.subjects.state_mut::<CellPairs>()) {
            pairs.set(id, at, len, count, sum_change);
        }
    }

    /// Returns the sum and the count of a cell.
    fn samples(&self, id: u32, slot: i64) -> Samples {
        let Ok(at) = self.subjects.find_cell(id, slot) else { return (0, 0) };
        let count =
            self.subjects.state::<CellPairs>().map_or(0, |pairs| pairs.second(id, at, self.subjects.cell_count(id)));
        (self.subjects.cell_at(id, at).map_or(0, |cell| cell.amount), count)
    }

    /// Restores the sum and the count of a cell.
    pub(in crate::store::embedded) fn restore_samples(
        &mut self,
        name: HashedName,
        slot: i64,
        (sum, count): (i64, i64),
    ) {
        if (sum, count) == (0, 0) {
            return self.remove_restored_cell(name, slot);
        }
        if let Some((id, slot, _)) = self.restore_cell(name, slot, sum) {
            self.set_count(id, slot, count, 0);
        }
    }

    /// Returns the count of the cell at index `at`.
    fn count_at(&self, id: u32, at: usize) -> i64 {
        self.subjects.state::<CellPairs>().map_or(0, |pairs| pairs.second(id, at, self.subjects.cell_count(id)))
    }

    /// Returns the key of the mean of all cells. O(1).
    fn mean_key(&self, id: u32) -> i64 {
        let total = self.subjects.state::<CellPairs>().and_then(|pairs| pairs.total(id));
        let enough = total.filter(|total| total.second >= self.traits.min_samples);
        self.traits.key_of_score(enough.and_then(|total| Value::mean(total.first, total.second)))
    }
}
