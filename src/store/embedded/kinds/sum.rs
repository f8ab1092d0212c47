//! COUNT and SUM: amounts that are added up.

use super::StoredKind;
use crate::board::{Aggregate, Amount, Change, Value};
use crate::store::embedded::holdings::{CellAt, CellWrite, Holdings, OutOfRange, WriteTo};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::record::Cell;

/// COUNT and SUM.
#[derive(Debug)]
pub(super) struct Sum;

impl StoredKind for Sum {
    fn check(&self, holdings: &Holdings, to: &WriteTo<'_>, change: &Change) -> Result<(), OutOfRange> {
        holdings.next_sum(holdings.subjects.id(to.name), holdings.number(to.slot), to.bound, change)?;
        if holdings.subjects.has_room() { Ok(()) } else { Err(OutOfRange) }
    }

    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange> {
        let CellWrite { holdings, to, operations } = write;
        let sum = holdings.change_sum(to, change)?;
        operations.amount(to.slot, sum, to.name.text);
        Ok(())
    }

    fn merge(&self, write: CellWrite<'_>, aggregate: &Aggregate) -> Result<(), OutOfRange> {
        let Aggregate::Sum(amount) = aggregate else { return Err(OutOfRange) };
        self.apply(write, &Change::Amount(*amount))
    }

    fn aggregate(&self, _holdings: &Holdings, _id: u32, cell: Cell, _at: usize) -> Aggregate {
        Aggregate::Sum(Amount(cell.amount))
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        Some(Value::Exact(Amount(holdings.subjects.cells_from(id, first).map(|cell| cell.amount).sum())))
    }

    fn sort_key_without(&self, _holdings: &mut Holdings, _id: u32, sort_key: i64, amount: i64) -> i64 {
        sort_key - amount
    }

    fn write_cell(&self, _holdings: &Holdings, _id: u32, _at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        operations.amount(cell.start, cell.amount, cell.subject);
    }
}

impl Holdings {
    /// Changes the amount that a subject has in a slot. Fails if the result would exceed the bound. Returns the new
    /// amount. O(log n).
    fn change_sum(&mut self, to: &WriteTo<'_>, change: &Change) -> Result<i64, OutOfRange> {
        let (known, slot) = (self.subjects.id(to.name), self.number(to.slot));
        let (old, new) = self.next_sum(known, slot, to.bound, change)?;
        if new == old {
            return Ok(new);
        }
        let id = self.id_or_add(known, to.name)?;
        if new == 0 {
            self.remove_cell(id, slot)
        } else {
            self.set_cell(id, slot, new)
        };
        self.add_to_score(id, new - old);
        self.remove_subject_if_empty(id);
        Ok(new)
    }

    /// Returns the amount of a cell and the one after a change. Nothing is within a bound below 0. O(log slots).
    fn next_sum(&self, known: Option<u32>, slot: i64, bound: i64, change: &Change) -> Result<(i64, i64), OutOfRange> {
        let old = known.and_then(|id| self.subjects.amount_in(id, slot)).unwrap_or(0);
        let new = match change {
            Change::Amount(amount) => old.checked_add(amount.0),
            Change::Set { sum, .. } => Some(sum.0),
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => None,
        };
        let is_within = |new: &i64| {
            u64::try_from(bound).is_ok_and(|bound| new.unsigned_abs() <= bound)
                && self.traits.keys.is_none_or(|keys| keys.holds(*new))
        };
        Ok((old, new.filter(is_within).ok_or(OutOfRange)?))
    }

    /// Adds to the score, where the score is a sum of cells.
    pub(super) fn add_to_score(&mut self, id: u32, change: i64) {
        if let Some(record) = self.subjects.get(id).filter(|_| change != 0) {
            self.set_sort_key(id, record.sort_key + change);
        }
    }
}
