//! MIN and MAX: the extreme of each slot, and the best of them.
//!
//! Memory keeps every slot's extreme. When the best one is removed, all of them are scanned: 2,000 adjacent numbers
//! take a microsecond, which is less than the update of the ranking takes.

use super::{StoredKind, is_exact};
use crate::board::{Aggregate, Amount, Change, Value};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellAt, Holdings, OutOfRange, WriteTo};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::record::Cell;

/// MIN or MAX, as the traits of the track say.
#[derive(Debug)]
pub(super) struct Extreme;

impl StoredKind for Extreme {
    fn apply(
        &self,
        holdings: &mut Holdings,
        to: &WriteTo<'_>,
        change: &Change,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        let extreme = match change {
            Change::Amount(amount) => holdings.apply_measurement(to.name, to.slot, amount.0)?,
            Change::Set { sum, .. } => holdings.set_extreme(to.name, to.slot, sum.0)?,
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => return Err(OutOfRange),
        };
        if let Some(extreme) = extreme {
            operations.amount(to.slot, extreme, to.name.text);
        }
        Ok(())
    }

    fn merge(
        &self,
        holdings: &mut Holdings,
        to: &WriteTo<'_>,
        aggregate: &Aggregate,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        match aggregate {
            Aggregate::Extreme(amount) if is_exact(*amount) => {
                self.apply(holdings, to, &Change::Amount(*amount), operations)
            }
            _ => Err(OutOfRange),
        }
    }

    fn aggregate(&self, _holdings: &Holdings, _id: u32, cell: Cell, _at: usize) -> Aggregate {
        Aggregate::Extreme(Amount(cell.amount))
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        let extremes = holdings.subjects.cells_from(id, first).map(|cell| cell.amount);
        extremes.reduce(|a, b| holdings.traits.kind.better(a, b)).map(|best| Value::Exact(Amount(best)))
    }

    fn key_without(&self, holdings: &mut Holdings, id: u32, key: i64, amount: i64) -> i64 {
        // If the best extreme is in a different slot, it is still the best.
        if amount == key { holdings.computed_key(id) } else { key }
    }

    fn write_cell(&self, _holdings: &Holdings, _id: u32, _at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        operations.amount(cell.start, cell.amount, cell.subject);
    }
}

impl Holdings {
    /// Applies a measurement. Returns the slot's extreme if that changed it. O(log n).
    fn apply_measurement(&mut self, name: HashedName, slot: i64, amount: i64) -> Result<Option<i64>, OutOfRange> {
        let slot = self.number(slot);
        let known = self.subjects.id(name);
        let held = known.and_then(|id| self.subjects.amount_in(id, slot));
        let extreme = held.map_or(amount, |held| self.traits.kind.better(held, amount));
        self.change_extreme(known, name, slot, extreme)
    }

    /// Sets a slot's extreme, which may make it worse. Returns it if that changed it. O(log n + slots).
    fn set_extreme(&mut self, name: HashedName, slot: i64, extreme: i64) -> Result<Option<i64>, OutOfRange> {
        self.change_extreme(self.subjects.id(name), name, self.number(slot), extreme)
    }

    fn change_extreme(
        &mut self,
        known: Option<u32>,
        name: HashedName,
        slot: i64,
        extreme: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        let id = self.id_or_add(known, name)?;
        let old = self.set_cell(id, slot, extreme);
        if old == Some(extreme) {
            return Ok(None);
        }
        let key = self.subjects.get(id).map_or(self.traits.absent_key(), |record| record.key);
        let better = self.traits.kind.better(key, extreme) == extreme || key == self.traits.absent_key();
        if better {
            self.set_key(id, extreme);
        } else if old == Some(key) {
            self.set_key(id, self.computed_key(id));
        }
        Ok(Some(extreme))
    }
}
