//! COUNT and SUM: amounts that are added up.

use super::StoredKind;
use crate::board::{Aggregate, Amount, Change, Value};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellAt, Holdings, OutOfRange, WriteTo};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::record::Cell;

/// COUNT and SUM.
#[derive(Debug)]
pub(super) struct Sum;

impl StoredKind for Sum {
    fn check(&self, holdings: &Holdings, to: &WriteTo<'_>, change: &Change) -> Result<(), OutOfRange> {
        let fits = match change {
            Change::Amount(amount) => holdings.can_add(to.name, to.slot, amount.0, to.bound),
            Change::Set { sum, .. } => sum.0.unsigned_abs() <= to.bound.unsigned_abs(),
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => false,
        };
        if fits && holdings.subjects.has_room() { Ok(()) } else { Err(OutOfRange) }
    }

    fn apply(
        &self,
        holdings: &mut Holdings,
        to: &WriteTo<'_>,
        change: &Change,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        let sum = match change {
            Change::Amount(amount) => holdings.add(to.name, to.slot, amount.0, to.bound)?,
            Change::Set { sum, .. } => holdings.set_sum(to.name, to.slot, sum.0, to.bound)?,
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => return Err(OutOfRange),
        };
        operations.amount(to.slot, sum, to.name.text);
        Ok(())
    }

    fn merge(
        &self,
        holdings: &mut Holdings,
        to: &WriteTo<'_>,
        aggregate: &Aggregate,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        let Aggregate::Sum(amount) = aggregate else { return Err(OutOfRange) };
        self.apply(holdings, to, &Change::Amount(*amount), operations)
    }

    fn aggregate(&self, _holdings: &Holdings, _id: u32, cell: Cell, _at: usize) -> Aggregate {
        Aggregate::Sum(Amount(cell.amount))
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        Some(Value::Exact(Amount(holdings.subjects.cells_from(id, first).map(|cell| cell.amount).sum())))
    }

    fn key_without(&self, _holdings: &mut Holdings, _id: u32, key: i64, amount: i64) -> i64 {
        key - amount
    }

    fn write_cell(&self, _holdings: &Holdings, _id: u32, _at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        operations.amount(cell.start, cell.amount, cell.subject);
    }
}

impl Holdings {
    /// Adds to the amount that a subject has in a slot. Fails if the result would exceed `bound`. Returns the new
    /// amount. O(log n).
    pub(in crate::store::embedded) fn add(
        &mut self,
        name: HashedName,
        slot: i64,
        amount: i64,
        bound: i64,
    ) -> Result<i64, OutOfRange> {
        self.change_sum(name, slot, bound, |old| old.checked_add(amount))
    }

    /// Sets the amount that a subject has in a slot. Fails if it exceeds `bound`. Returns the amount. O(log n).
    pub(in crate::store::embedded) fn set_sum(
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
        let (old, new) = self.next_sum(known, slot, bound, next)?;
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

    /// Returns whether [`add`](Self::add) would succeed. O(log slots).
    pub(in crate::store::embedded) fn can_add(&self, name: HashedName, slot: i64, amount: i64, bound: i64) -> bool {
        let next = |old: i64| old.checked_add(amount);
        let sum = self.next_sum(self.subjects.id(name), self.number(slot), bound, next);
        sum.is_ok() && self.subjects.has_room()
    }

    /// Returns the amount of a cell and the next one. Nothing is within a bound below 0.
    fn next_sum(
        &self,
        known: Option<u32>,
        slot: i64,
        bound: i64,
        next: impl FnOnce(i64) -> Option<i64>,
    ) -> Result<(i64, i64), OutOfRange> {
        let old = known.and_then(|id| self.subjects.amount_in(id, slot)).unwrap_or(0);
        let is_within = |new: &i64| u64::try_from(bound).is_ok_and(|bound| new.unsigned_abs() <= bound);
        let new = next(old).filter(is_within).ok_or(OutOfRange)?;
        Ok((old, new))
    }

    /// Adds to the score, where the score is a sum of cells.
    pub(super) fn add_to_score(&mut self, id: u32, change: i64) {
        if let Some(record) = self.subjects.get(id).filter(|_| change != 0) {
            self.set_key(id, record.key + change);
        }
    }
}
