//! AVG: the sum and the number of measurements, per slot and in total.

use super::StoredKind;
use crate::board::{Aggregate, Amount, Change, Value};
use crate::store::embedded::aggregate_state::AggregateState;
use crate::store::embedded::cell_pairs::{self, CellPairs};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellAt, CellWrite, Holdings, OutOfRange, WriteTo};
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
        let (known, slot) = (holdings.subjects.id(to.name), holdings.number(to.slot));
        holdings.next_samples(known, slot, to.bound, |old| next(old, change, to.retract))?;
        if holdings.subjects.has_room() { Ok(()) } else { Err(OutOfRange) }
    }

    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange> {
        let retract = write.to.retract;
        write.change_samples(|old| next(old, change, retract))
    }

    fn merge(&self, write: CellWrite<'_>, aggregate: &Aggregate) -> Result<(), OutOfRange> {
        let Aggregate::Mean { sum, count } = aggregate else { return Err(OutOfRange) };
        write.change_samples(|old| added(old, (sum.0, *count)))
    }

    fn aggregate(&self, holdings: &Holdings, id: u32, cell: Cell, at: usize) -> Aggregate {
        Aggregate::Mean { sum: Amount(cell.amount), count: holdings.second(id, at) }
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        let sum = holdings.subjects.cells_from(id, first).map(|cell| cell.amount).sum();
        let count: i64 = (first..holdings.subjects.cell_count(id)).map(|at| holdings.second(id, at)).sum();
        holdings.traits.averaging.score(sum, count)
    }

    fn sort_key_without(&self, holdings: &mut Holdings, id: u32, _sort_key: i64, _amount: i64) -> i64 {
        holdings.mean_sort_key(id)
    }

    fn write_cell(&self, holdings: &Holdings, id: u32, at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        operations.samples(cell.start, (cell.amount, holdings.second(id, at)), cell.subject);
    }

    fn bytes(&self, content: Content, _ranked: bool) -> usize {
        cell_pairs::estimated_bytes(content.slots)
    }
}

/// The sum and the count of a slot.
type SumAndCount = (i64, i64);

/// Returns the sum and the count of a slot after a change, or `None` if they are out of range.
fn next(old: SumAndCount, change: &Change, retract: bool) -> Option<SumAndCount> {
    match change {
        Change::Amount(amount) if retract => added(old, (-amount.0, -1)),
        Change::Amount(amount) => added(old, (amount.0, 1)),
        Change::Set { sum, count } => Some((sum.0, *count)),
        Change::Seen(_) | Change::Forget(_) | Change::Not(_) => None,
    }
}

/// Returns the sum of two samples, or `None` if it is out of range.
fn added(old: SumAndCount, new: SumAndCount) -> Option<SumAndCount> {
    Some((old.0.checked_add(new.0)?, old.1.checked_add(new.1)?))
}

impl CellWrite<'_> {
    /// Changes the sum and the count of a slot. Fails if one of them would exceed the bound. O(log n).
    fn change_samples(self, next: impl FnOnce(SumAndCount) -> Option<SumAndCount>) -> Result<(), OutOfRange> {
        let samples = self.holdings.change_samples(self.to, next)?;
        self.operations.samples(self.to.slot, samples, self.to.name.text);
        Ok(())
    }
}

impl Holdings {
    fn change_samples(
        &mut self,
        to: &WriteTo<'_>,
        next: impl FnOnce(SumAndCount) -> Option<SumAndCount>,
    ) -> Result<SumAndCount, OutOfRange> {
        let (known, slot) = (self.subjects.id(to.name), self.number(to.slot));
        let (old, (sum, count)) = self.next_samples(known, slot, to.bound, next)?;
        if (sum, count) == old {
            return Ok(old);
        }
        let id = self.id_or_add(known, to.name)?;
        if (sum, count) == (0, 0) {
            self.remove_cell(id, slot);
        } else {
            self.set_cell(id, slot, sum);
            self.set_second(id, slot, count, sum - old.0);
        }
        self.set_sort_key(id, self.mean_sort_key(id));
        self.remove_subject_if_empty(id);
        Ok((sum, count))
    }

    /// Returns the sum and the count of a cell, and the next ones.
    fn next_samples(
        &self,
        known: Option<u32>,
        slot: i64,
        bound: i64,
        next: impl FnOnce(SumAndCount) -> Option<SumAndCount>,
    ) -> Result<(SumAndCount, SumAndCount), OutOfRange> {
        let old = known.map_or((0, 0), |id| self.samples(id, slot));
        let new = next(old).filter(|(sum, count)| sum.unsigned_abs().max(count.unsigned_abs()) <= bound.unsigned_abs());
        Ok((old, new.ok_or(OutOfRange)?))
    }

    /// Returns the sum and the count of a cell.
    fn samples(&self, id: u32, slot: i64) -> SumAndCount {
        let Ok(at) = self.subjects.find_cell(id, slot) else { return (0, 0) };
        (self.subjects.cell_at(id, at).map_or(0, |cell| cell.amount), self.second(id, at))
    }

    /// Restores the sum and the count of a cell.
    pub(in crate::store::embedded) fn restore_samples(
        &mut self,
        name: HashedName,
        slot: i64,
        (sum, count): SumAndCount,
    ) {
        if (sum, count) == (0, 0) {
            return self.remove_restored_cell(name, slot);
        }
        if let Some((id, slot, _)) = self.restore_cell(name, slot, sum) {
            self.set_second(id, slot, count, 0);
        }
    }

    /// Returns the sort key of the mean of all cells. O(1).
    fn mean_sort_key(&self, id: u32) -> i64 {
        let total = self.subjects.state::<CellPairs>().and_then(|pairs| pairs.total(id));
        let score = total.and_then(|total| self.traits.averaging.score(total.first, total.second));
        self.traits.sort_key_of_score(score)
    }
}
