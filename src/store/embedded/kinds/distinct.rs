//! COUNT_DISTINCT: each value counts in the slot in which it was last seen.

use super::StoredKind;
use super::sum::Sum;
use crate::board::{Aggregate, Change, Value};
use crate::store::embedded::aggregate_state::AggregateState;
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellAt, CellWrite, Holdings, OutOfRange, Remainder, WriteTo};
use crate::store::embedded::last_seen::{self, Floors, LastSeen, LastSeenValues};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::memory::Demand;
use crate::store::embedded::owned_state::{Owned, SubjectData};
use crate::store::embedded::record::Cell;
use crate::store::embedded::subjects::Subjects;
use crate::store::sizing::{Content, TEXT_BYTES, allocated};

/// COUNT_DISTINCT. A value counts 1 in its slot, so cells and scores are those of a sum.
#[derive(Debug)]
pub(super) struct Distinct;

impl StoredKind for Distinct {
    fn new_state(&self, _ranked: bool) -> Box<dyn AggregateState> {
        Box::<Owned<LastSeenValues>>::default()
    }

    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange> {
        let CellWrite { holdings, to, operations } = write;
        match change {
            Change::Seen(value) => holdings.set_last_seen(to, value.as_str(), operations)?,
            Change::Forget(value) => {
                if holdings.forget_value(to.name, value.as_str(), to.floors) {
                    operations.value(None, to.name.text, value.as_str());
                }
            }
            Change::Amount(_) | Change::Set { .. } | Change::Not(_) => return Err(OutOfRange),
        }
        Ok(())
    }

    fn demand(&self, holdings: &Holdings, id: u32, to: &WriteTo<'_>, change: &Change) -> Demand {
        let Change::Seen(value) = change else { return Demand::Nothing };
        match values(&holdings.subjects, id).and_then(|values| values.get(value.as_str())) {
            None => Demand::Value,
            Some(_) if to.retract => Demand::Nothing,
            // The value counts in the slot of its newest time.
            Some(_) => holdings.demand_in_slot(id, to.slot),
        }
    }

    fn merge(&self, _write: CellWrite<'_>, _aggregate: &Aggregate) -> Result<(), OutOfRange> {
        // A slot has the values that were last seen in it, and these are merged one by one.
        Err(OutOfRange)
    }

    fn aggregate(&self, holdings: &Holdings, id: u32, cell: Cell, at: usize) -> Aggregate {
        Sum.aggregate(holdings, id, cell, at)
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        Sum.value(holdings, id, first)
    }

    fn sort_key_without(&self, holdings: &mut Holdings, id: u32, sort_key: i64, amount: i64) -> i64 {
        Sum.sort_key_without(holdings, id, sort_key, amount)
    }

    fn write_cell(&self, _: &Holdings, _: u32, _: usize, _: CellAt<'_>, _: &mut LogOperations) {
        // Cells are computed from the values.
    }

    fn write_subject(
        &self,
        holdings: &Holdings,
        id: u32,
        within: Remainder,
        end: usize,
        operations: &mut LogOperations,
    ) -> Option<Remainder> {
        holdings.write_values(id, within, end, operations)
    }

    fn restore_value(
        &self,
        holdings: &mut Holdings,
        name: HashedName,
        value: &str,
        last_seen: Option<LastSeen>,
        floors: Floors,
    ) {
        match last_seen.filter(|last_seen| last_seen.at >= floors.of(last_seen.retracted)) {
            Some(last_seen) => {
                if let Some(id) = holdings.restored_id(name) {
                    change_values(&mut holdings.subjects, id, |values| values.set(value, last_seen));
                }
            }
            None => {
                let Some(id) = holdings.subjects.id(name) else { return };
                change_values(&mut holdings.subjects, id, |values| values.remove(value));
                holdings.remove_subject_if_empty(id);
            }
        }
    }

    fn dropped(&self, holdings: &Holdings, id: u32) -> Option<i64> {
        values(&holdings.subjects, id)?.capped
    }

    fn set_dropped(&self, holdings: &mut Holdings, id: u32, at: i64) {
        change_values(&mut holdings.subjects, id, |values| values.capped = Some(at));
    }

    fn restored(&self, holdings: &mut Holdings, id: u32, floors: Floors) {
        while self.has_expired(holdings, id, floors) {
            holdings.remove_expired_values(id, floors, usize::MAX);
        }
        holdings.recount_values(id);
    }

    fn expires(&self) -> bool {
        true
    }

    fn remove_expired(&self, holdings: &mut Holdings, id: u32, floors: Floors) -> u64 {
        holdings.remove_expired_values(id, floors, MAX_REMOVED_PER_VISIT) as u64
    }

    fn has_expired(&self, holdings: &Holdings, id: u32, floors: Floors) -> bool {
        values(&holdings.subjects, id).is_some_and(|values| values.has_any_before(floors))
    }

    fn bytes(&self, content: Content, _ranked: bool) -> usize {
        let values = last_seen::estimated_bytes(content.values, TEXT_BYTES);
        size_of::<Option<Box<LastSeenValues>>>() + allocated(size_of::<LastSeenValues>()) + values
    }
}

impl SubjectData for LastSeenValues {
    fn len(&self) -> usize {
        self.len()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
}

fn values(subjects: &Subjects, id: u32) -> Option<&LastSeenValues> {
    Owned::of(subjects, id)
}

fn change_values<T>(subjects: &mut Subjects, id: u32, change: impl FnOnce(&mut LastSeenValues) -> T) -> Option<T> {
    Owned::change(subjects, id, change)
}

/// The largest number of values (and of tombstones) that one visit removes for one subject, which takes some
/// microseconds.
const MAX_REMOVED_PER_VISIT: usize = 64;
/// The largest number of expired values (and of expired tombstones) that one write removes, which takes some
/// microseconds.
const MAX_REMOVED_PER_WRITE: usize = 64;

impl Holdings {
    /// Returns what is stored about a subject's values.
    pub(in crate::store::embedded) fn last_seen(&self, name: HashedName) -> Option<&LastSeenValues> {
        values(&self.subjects, self.subjects.id(name)?)
    }

    /// Records that a value was seen or retracted at a time within the window, and appends the operations that restore
    /// what changed. The newest time decides; at the same time, the retraction does. O(log values + log n).
    fn set_last_seen(
        &mut self,
        to: &WriteTo<'_>,
        value: &str,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        let (subject, floors) = (to.name.text, to.floors);
        let new = LastSeen { at: to.at, retracted: to.retract };
        let id = self.id_or_add(self.subjects.id(to.name), to.name)?;
        self.remove_expired_values(id, floors, MAX_REMOVED_PER_WRITE);
        let Some(values) = values(&self.subjects, id) else { return Ok(()) };
        let old = values.get(value).filter(|old| old.at >= floors.of(old.retracted));
        let holds = match old {
            None => true,
            Some(old) if new.retracted && !old.retracted => new.at >= old.at,
            Some(old) => new.at > old.at,
        };
        if !holds {
            return Ok(());
        }
        change_values(&mut self.subjects, id, |values| values.set(value, new));
        operations.value(Some(new), subject, value);
        let from = old.filter(|old| !old.retracted).map(|old| self.number(old.at));
        let to = (!new.retracted).then(|| self.number(new.at));
        let mut score_change = 0;
        if from != to {
            score_change += from.map_or(0, |slot| self.change_value_count(id, slot, -1));
            score_change += to.map_or(0, |slot| self.change_value_count(id, slot, 1));
        }
        if let Some((dropped, at)) = self.remove_surplus(id, new.retracted, floors.of(new.retracted)) {
            operations.value(None, subject, &dropped);
            if !new.retracted {
                score_change += self.change_value_count(id, self.number(at), -1);
                if let Some(at) = self.record_dropped(id, at) {
                    operations.capped(at, subject);
                }
            }
        }
        self.add_to_score(id, score_change);
        Ok(())
    }

    /// Removes all that is stored about a value of a subject. Returns whether anything was. O(log values + log n).
    fn forget_value(&mut self, name: HashedName, value: &str, floors: Floors) -> bool {
        let Some(id) = self.subjects.id(name) else { return false };
        let Some(old) = values(&self.subjects, id).and_then(|values| values.get(value)) else { return false };
        change_values(&mut self.subjects, id, |values| values.remove(value));
        // A value that has expired is subtracted with its slot.
        if !old.retracted && old.at >= floors.seen {
            let score_change = self.change_value_count(id, self.number(old.at), -1);
            self.add_to_score(id, score_change);
        }
        self.remove_subject_if_empty(id);
        true
    }

    /// Removes up to `most` seen values and up to `most` tombstones from before their floors. Returns how many it
    /// removed.
    pub(in crate::store::embedded) fn remove_expired_values(&mut self, id: u32, floors: Floors, most: usize) -> usize {
        if !values(&self.subjects, id).is_some_and(|values| values.has_any_before(floors)) {
            return 0;
        }
        change_values(&mut self.subjects, id, |values| values.remove_before(floors, most)).unwrap_or(0)
    }

    /// Removes the oldest value of the window if there are more values than the board remembers. Returns it and its
    /// time.
    fn remove_surplus(&mut self, id: u32, retracted: bool, floor: i64) -> Option<(Box<str>, i64)> {
        let most = self.traits.max_values?;
        let values = values(&self.subjects, id)?;
        if values.count_from(retracted, floor) <= most {
            return None;
        }
        // Expired values may still be stored: they are removed little by little.
        let oldest = values.from(retracted, floor, "").next().map(|seen| (Box::from(seen.value), seen.at));
        let (value, at): (Box<str>, i64) = oldest?;
        change_values(&mut self.subjects, id, |values| values.remove(&value));
        Some((value, at))
    }

    /// Records that a value of this time was dropped. Returns the time if it is the newest such time.
    pub(in crate::store::embedded) fn record_dropped(&mut self, id: u32, at: i64) -> Option<i64> {
        let is_newest = self.kind.dropped(self, id).is_none_or(|dropped| dropped < at);
        is_newest.then(|| self.kind.set_dropped(self, id, at))?;
        Some(at)
    }

    /// Merges the time of a value that was dropped elsewhere. Returns the time if it is the newest such time.
    pub(in crate::store::embedded) fn merge_dropped(
        &mut self,
        name: HashedName,
        at: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        let id = self.id_or_add(self.subjects.id(name), name)?;
        Ok(self.record_dropped(id, at))
    }

    /// Returns the newest time of a value of a subject that was dropped.
    pub(in crate::store::embedded) fn dropped(&self, name: HashedName) -> Option<i64> {
        self.kind.dropped(self, self.subjects.id(name)?)
    }

    /// Adds to the number of values in a slot. Returns the change of the score.
    fn change_value_count(&mut self, id: u32, slot: i64, by: i64) -> i64 {
        let held = self.subjects.amount_in(id, slot).unwrap_or(0);
        if held + by == 0 {
            self.remove_cell(id, slot)
        } else {
            self.set_cell(id, slot, held + by)
        };
        by
    }

    /// Sets the newest time of a dropped value, if the window contains it.
    pub(in crate::store::embedded) fn restore_capped(&mut self, name: HashedName, at: i64, floors: Floors) {
        if at < floors.seen {
            return;
        }
        if let Some(id) = self.restored_id(name) {
            self.kind.set_dropped(self, id, at);
        }
    }

    /// Computes the cells of a COUNT_DISTINCT subject from the times of its values.
    fn recount_values(&mut self, id: u32) {
        let Some(values) = values(&self.subjects, id) else { return };
        let mut cells: Vec<Cell> = Vec::new();
        let mut end = i64::MIN;
        // The values are ordered by time, so each belongs to the last slot or begins a new one.
        for (_, last_seen) in values.all().filter(|(_, last_seen)| !last_seen.retracted) {
            match cells.last_mut() {
                Some(last) if last_seen.at < end => last.amount += 1,
                _ => {
                    let slot = self.subjects.numbering.number(last_seen.at);
                    end = self.subjects.numbering.end(slot);
                    cells.push(Cell { slot, amount: 1, place: 0 });
                }
            }
        }
        for (at, cell) in cells.into_iter().enumerate() {
            self.subjects.insert_cell(id, at, cell);
        }
    }

    fn write_values(
        &self,
        id: u32,
        within: Remainder,
        end: usize,
        operations: &mut LogOperations,
    ) -> Option<Remainder> {
        let (subject, values) = (self.subjects.whole_text(id), values(&self.subjects, id)?);
        let (first, after) = match within {
            Remainder::Value { retracted, at, value } => (retracted, Some((at, value))),
            _ => {
                if let Some(at) = values.capped {
                    operations.capped(at, subject);
                }
                (false, None)
            }
        };
        for retracted in [false, true] {
            if first && !retracted {
                continue;
            }
            let after = after.as_ref().filter(|_| first == retracted);
            let (at, value) = after.map_or((i64::MIN, ""), |(at, value)| (*at, value));
            for seen in values.from(retracted, at, value) {
                if operations.len() >= end {
                    return Some(Remainder::Value { retracted, at: seen.at, value: Box::from(seen.value) });
                }
                operations.value(Some(LastSeen { at: seen.at, retracted }), subject, seen.value);
            }
        }
        None
    }
}
