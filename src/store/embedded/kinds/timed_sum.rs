//! COUNT and SUM where equal scores are ordered by time: amounts that are added up, with the newest of their times.

use super::{StoredKind, is_exact};
use crate::board::{Aggregate, Amount, Change, Split, Value};
use crate::store::embedded::holdings::{CellAt, CellWrite, Holdings, OutOfRange, WriteTo};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::record::Cell;

/// COUNT and SUM where equal scores are ordered by time. The number of a cell has its sum and its newest time; a cell with
/// a sum of 0 stays for its time. See [`Split`].
#[derive(Debug)]
pub(super) struct TimedSum;

impl StoredKind for TimedSum {
    fn check(&self, holdings: &Holdings, to: &WriteTo<'_>, change: &Change) -> Result<(), OutOfRange> {
        holdings.next_timed_sum(to, |split, old| after(split, old, change, to.retract))?;
        if holdings.subjects.has_room() { Ok(()) } else { Err(OutOfRange) }
    }

    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange> {
        let retract = write.to.retract;
        write.change_timed_sum(|split, old| after(split, old, change, retract))
    }

    fn merge(&self, write: CellWrite<'_>, aggregate: &Aggregate) -> Result<(), OutOfRange> {
        match aggregate {
            Aggregate::Sum(amount) if is_exact(*amount) => {
                write.change_timed_sum(|split, old| Some(split.joined(old, amount.0)))
            }
            _ => Err(OutOfRange),
        }
    }

    fn aggregate(&self, _holdings: &Holdings, _id: u32, cell: Cell, _at: usize) -> Aggregate {
        Aggregate::Sum(Amount(cell.amount))
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        let split = holdings.traits.kind.split();
        let all = holdings.subjects.cells_from(id, first).fold(0, |all, cell| split.joined(all, cell.amount));
        Some(if split.score(all) == 0 { Value::ZERO } else { Value::Exact(Amount(all)) })
    }

    fn sort_key_without(&self, holdings: &mut Holdings, id: u32, sort_key: i64, amount: i64) -> i64 {
        holdings.timed_sort_key(id, sort_key, |split| Some(split.without(sort_key, amount)))
    }

    fn write_cell(&self, _holdings: &Holdings, _id: u32, _at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        operations.amount(cell.start, cell.amount, cell.subject);
    }
}

/// Returns the number of a cell after a change, or `None` if no number can be that.
fn after(split: Split, old: i64, change: &Change, retract: bool) -> Option<i64> {
    match change {
        Change::Amount(amount) if !is_exact(*amount) => None,
        // What adds nothing does not count for the time either.
        Change::Amount(amount) if split.score(amount.0) == 0 => Some(old),
        Change::Amount(amount) => Some(split.joined(old, if retract { -amount.0 } else { amount.0 })),
        // What the slot of another track has.
        Change::Set { sum, .. } => Some(sum.0),
        Change::Seen(_) | Change::Forget(_) | Change::Not(_) => None,
    }
}

impl CellWrite<'_> {
    /// Changes the number of a cell. Fails if its sum would exceed the bound. O(log n).
    fn change_timed_sum(self, next: impl FnOnce(Split, i64) -> Option<i64>) -> Result<(), OutOfRange> {
        let CellWrite { holdings, to, operations } = self;
        let (old, new) = holdings.next_timed_sum(to, next)?;
        if new != old {
            let id = holdings.id_or_add(holdings.subjects.id(to.name), to.name)?;
            let slot = holdings.number(to.slot);
            let sort_key = holdings.subjects.get(id).map_or(0, |record| record.sort_key);
            if new == 0 {
                holdings.remove_cell(id, slot);
            } else {
                holdings.set_cell(id, slot, new);
            }
            let sort_key = holdings.timed_sort_key(id, sort_key, |split| split.replaced(sort_key, old, new));
            holdings.set_sort_key(id, sort_key);
            holdings.remove_subject_if_empty(id);
        }
        operations.amount(to.slot, new, to.name.text);
        Ok(())
    }
}

impl Holdings {
    /// Returns the number of a cell and the next one.
    fn next_timed_sum(
        &self,
        to: &WriteTo<'_>,
        next: impl FnOnce(Split, i64) -> Option<i64>,
    ) -> Result<(i64, i64), OutOfRange> {
        let (split, slot) = (self.traits.kind.split(), self.number(to.slot));
        let old = self.subjects.id(to.name).and_then(|id| self.subjects.amount_in(id, slot)).unwrap_or(0);
        let new = next(split, old).filter(|new| split.score(*new).abs() <= split.largest_score_within(to.bound));
        Ok((old, new.ok_or(OutOfRange)?))
    }

    /// Returns the sort key of a subject whose cells were just changed: the one that follows from that before or, if none does
    /// or the subject was in no ranking, that of all its cells. O(1), and O(slots) in the second case.
    fn timed_sort_key(&self, id: u32, before: i64, follows: impl FnOnce(Split) -> Option<i64>) -> i64 {
        let split = self.traits.kind.split();
        match follows(split).filter(|_| before != self.traits.absent_sort_key()) {
            Some(key) if split.score(key) == 0 => self.traits.absent_sort_key(),
            Some(key) => key,
            None => self.computed_sort_key(id),
        }
    }
}
