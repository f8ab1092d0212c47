//! LAST: the newest value of each slot with its time, and the newest of them.

use super::{StoredKind, is_exact};
use crate::board::{Aggregate, Amount, Change, Timestamp, Value};
use crate::store::embedded::aggregate_state::AggregateState;
use crate::store::embedded::cell_pairs::{self, CellPairs};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellAt, CellWrite, Holdings, OutOfRange, WriteTo};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::record::Cell;
use crate::store::sizing::Content;

/// LAST. A cell's number is the value, and its second number the time.
#[derive(Debug)]
pub(super) struct Last;

impl StoredKind for Last {
    fn new_state(&self, _ranked: bool) -> Box<dyn AggregateState> {
        Box::<CellPairs>::default()
    }

    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange> {
        let CellWrite { holdings, to, operations } = write;
        let (known, slot) = (holdings.subjects.id(to.name), holdings.number(to.slot));
        let held = holdings.last_in(known, slot);
        let (at, value) = match change {
            // What arrives without a time is the newest, also if a write with a later time was applied in between.
            Change::Amount(value) if !to.is_timed => (held.map_or(to.at, |held| held.max(to.at)), value.0),
            Change::Amount(_) if held.is_some_and(|held| to.at < held) => return Ok(()),
            Change::Amount(value) => (to.at, value.0),
            Change::Set { sum, .. } => (to.at, sum.0),
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => return Err(OutOfRange),
        };
        let id = holdings.id_or_add(known, to.name)?;
        holdings.set_cell(id, slot, value);
        holdings.set_second(id, slot, at, 0);
        let sort_key = holdings.newest_sort_key(id);
        holdings.set_sort_key(id, sort_key);
        operations.last(to.slot, at, value, to.name.text);
        Ok(())
    }

    fn merge(&self, write: CellWrite<'_>, aggregate: &Aggregate) -> Result<(), OutOfRange> {
        let (at, value) = match aggregate {
            Aggregate::Last { at, value } if is_exact(*value) => (at.millis(), *value),
            _ => return Err(OutOfRange),
        };
        let CellWrite { holdings, to, operations } = write;
        let held = holdings.last_in(holdings.subjects.id(to.name), holdings.number(to.slot));
        if held.is_some_and(|held| at <= held) {
            return Ok(());
        }
        let to = &WriteTo { at, ..*to };
        self.apply(CellWrite { holdings, to, operations }, &Change::Set { sum: value, count: 1 })
    }

    fn aggregate(&self, holdings: &Holdings, id: u32, cell: Cell, at: usize) -> Aggregate {
        Aggregate::Last { at: Timestamp::from_millis(holdings.second(id, at)), value: Amount(cell.amount) }
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        let newest = holdings.subjects.cell_count(id).checked_sub(1).filter(|newest| *newest >= first)?;
        holdings.subjects.cell_at(id, newest).map(|cell| Value::Exact(Amount(cell.amount)))
    }

    fn sort_key_without(&self, holdings: &mut Holdings, id: u32, _sort_key: i64, _amount: i64) -> i64 {
        holdings.newest_sort_key(id)
    }

    fn write_cell(&self, holdings: &Holdings, id: u32, at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        operations.last(cell.start, holdings.second(id, at), cell.amount, cell.subject);
    }

    fn bytes(&self, content: Content, _ranked: bool) -> usize {
        cell_pairs::estimated_bytes(content.slots)
    }
}

impl Holdings {
    /// Restores the time and the value of a cell.
    pub(in crate::store::embedded) fn restore_last(&mut self, name: HashedName, slot: i64, at: i64, value: i64) {
        if let Some((id, slot, _)) = self.restore_cell(name, slot, value) {
            self.set_second(id, slot, at, 0);
        }
    }

    /// Returns the time of the cell that a subject has in a slot.
    fn last_in(&self, known: Option<u32>, slot: i64) -> Option<i64> {
        let id = known?;
        self.subjects.find_cell(id, slot).ok().map(|at| self.second(id, at))
    }

    /// Returns the sort key of the newest cell.
    fn newest_sort_key(&self, id: u32) -> i64 {
        let record = self.subjects.get(id).filter(|record| record.len() > 0);
        record.map_or(self.traits.absent_sort_key(), |record| record.newest.amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation};
    use crate::store::embedded::track_data::TrackData;

    #[test]
    fn a_value_without_a_time_is_never_older() {
        const SLOT: i64 = 3_600_000;
        let definition = Definition::new("LAST(2h, rating, elo, player)".parse().unwrap(), "1h".parse().unwrap());
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let mut data = TrackData::new(board.edition().main(), Timestamp::from_millis(SLOT));
        let name = HashedName::from("ann");
        let (floors, mut operations) = (data.floors(), LogOperations::of(board.edition().main().id()));
        let holdings = &mut data.holdings;
        let mut held_after = |at: i64, is_timed: bool, value: i64| {
            let to = WriteTo { name, slot: SLOT, at: SLOT + at, is_timed, day: SLOT, retract: false, bound: 1, floors };
            let write = CellWrite { holdings, to: &to, operations: &mut operations };
            Last.apply(write, &Change::Amount(Amount(value))).unwrap();
            match holdings.aggregates(name, SLOT, SLOT)[..] {
                [(_, Aggregate::Last { at, value })] => (at.millis() - SLOT, value.0),
                ref other => panic!("{other:?}"),
            }
        };
        assert_eq!(held_after(500, true, 1), (500, 1));
        assert_eq!(held_after(400, true, 2), (500, 1));
        assert_eq!(held_after(400, false, 3), (500, 3));
        assert_eq!(held_after(600, false, 4), (600, 4));
        assert_eq!(held_after(600, true, 5), (600, 5));
    }
}
