//! MIN and MAX: the extreme of each slot, and the best of them.
//!
//! Memory keeps every slot's extreme. When the best one is removed, all of them are scanned: 2,000 adjacent numbers
//! take a microsecond, which is less than the update of the ranking takes.

use super::{StoredKind, is_exact};
use crate::board::{Aggregate, Amount, Change, Value};
use crate::store::embedded::holdings::{CellAt, CellWrite, Holdings, OutOfRange};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::record::Cell;

/// MIN or MAX, as the traits of the track say.
#[derive(Debug)]
pub(super) struct Extreme;

impl StoredKind for Extreme {
    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange> {
        let CellWrite { holdings, to, operations } = write;
        let (known, slot) = (holdings.subjects.id(to.name), holdings.number(to.slot));
        let extreme = match change {
            Change::Amount(amount) => {
                let held = known.and_then(|id| holdings.subjects.amount_in(id, slot));
                held.map_or(amount.0, |held| holdings.traits.kind.better(held, amount.0))
            }
            // It may make the extreme worse.
            Change::Set { sum, .. } => sum.0,
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => return Err(OutOfRange),
        };
        let id = holdings.id_or_add(known, to.name)?;
        if holdings.set_extreme(id, slot, extreme) {
            operations.amount(to.slot, extreme, to.name.text);
        }
        Ok(())
    }

    fn merge(&self, write: CellWrite<'_>, aggregate: &Aggregate) -> Result<(), OutOfRange> {
        match aggregate {
            Aggregate::Extreme(amount) if is_exact(*amount) => self.apply(write, &Change::Amount(*amount)),
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

    fn sort_key_without(&self, holdings: &mut Holdings, id: u32, sort_key: i64, amount: i64) -> i64 {
        // If the best extreme is in a different slot, it is still the best.
        if amount == sort_key { holdings.computed_sort_key(id) } else { sort_key }
    }

    fn write_cell(&self, _holdings: &Holdings, _id: u32, _at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        operations.amount(cell.start, cell.amount, cell.subject);
    }
}

impl Holdings {
    /// Sets a slot's extreme. Returns whether that changed it. O(log n), and O(log n + slots) if that makes it worse.
    fn set_extreme(&mut self, id: u32, slot: i64, extreme: i64) -> bool {
        let old = self.set_cell(id, slot, extreme);
        if old == Some(extreme) {
            return false;
        }
        let sort_key = self.subjects.get(id).map_or(self.traits.absent_sort_key(), |record| record.sort_key);
        let better = self.traits.kind.better(sort_key, extreme) == extreme || sort_key == self.traits.absent_sort_key();
        if better {
            self.set_sort_key(id, extreme);
        } else if old == Some(sort_key) {
            self.set_sort_key(id, self.computed_sort_key(id));
        }
        true
    }
}
