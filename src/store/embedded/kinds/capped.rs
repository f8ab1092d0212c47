//! COUNT with a cap for each person: a slot has what its counters add.

use super::StoredKind;
use super::sum::Sum;
use crate::board::{Aggregate, Change, DayCount, Kind, Timestamp, Value, counted};
use crate::store::embedded::aggregate_state::AggregateState;
use crate::store::embedded::day_counts::{self, Counters};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellAt, CellWrite, Holdings, OutOfRange, Remainder, WriteTo};
use crate::store::embedded::last_seen::{Floors, LastSeen};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::memory::Demand;
use crate::store::embedded::owned_state::{Owned, SubjectData};
use crate::store::embedded::record::Cell;
use crate::store::embedded::subjects::Subjects;
use crate::store::sizing::{Content, TEXT_BYTES, allocated};

/// COUNT with a cap. A slot has a cell as long as it has a counter, also if that adds 0. Cells and scores are those of a
/// sum.
#[derive(Debug)]
pub(super) struct Capped;

/// The largest number of counters that a visit or a write removes for one subject, which takes some microseconds.
const MAX_REMOVED: usize = 64;

impl StoredKind for Capped {
    fn new_state(&self, _ranked: bool) -> Box<dyn AggregateState> {
        Box::<Owned<Counters>>::default()
    }

    fn check(&self, holdings: &Holdings, to: &WriteTo<'_>, change: &Change) -> Result<(), OutOfRange> {
        if !holdings.subjects.has_room() {
            return Err(OutOfRange);
        }
        let Change::Seen(person) = change else { return Ok(()) };
        let counter = holdings.counter_after(to, person.as_str());
        holdings.check_day_count(to, counter)
    }

    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange> {
        let CellWrite { holdings, to, operations } = write;
        match change {
            Change::Seen(person) => {
                let counter = holdings.counter_after(to, person.as_str());
                holdings.set_day_count(to, counter, operations)
            }
            Change::Forget(value) => {
                if let Some((day, person)) = DayCount::split(value.as_str())
                    && holdings.forget_day_count(to, day.millis(), person)
                {
                    operations.value(None, to.name.text, value.as_str());
                }
                Ok(())
            }
            Change::Amount(_) | Change::Set { .. } | Change::Not(_) => Err(OutOfRange),
        }
    }

    fn demand(&self, holdings: &Holdings, id: u32, to: &WriteTo<'_>, change: &Change) -> Demand {
        let Change::Seen(person) = change else { return Demand::Nothing };
        match counters(&holdings.subjects, id).and_then(|counters| counters.get(to.day, person.as_str())) {
            None => Demand::Value,
            Some(_) => Demand::Nothing,
        }
    }

    fn merge(&self, _write: CellWrite<'_>, _aggregate: &Aggregate) -> Result<(), OutOfRange> {
        // A slot has what its counters add, and these are merged one by one.
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
        // Cells are computed from the counters.
    }

    fn write_subject(
        &self,
        holdings: &Holdings,
        id: u32,
        within: Remainder,
        end: usize,
        operations: &mut LogOperations,
    ) -> Option<Remainder> {
        let (subject, counters) = (holdings.subjects.whole_text(id), counters(&holdings.subjects, id)?);
        let (day, person) = match within {
            Remainder::Value { at, value, .. } => (at, value),
            _ => {
                if let Some(at) = counters.dropped {
                    operations.capped(at, subject);
                }
                (i64::MIN, Box::default())
            }
        };
        for counter in counters.from(day, &person) {
            if operations.len() >= end {
                let (at, value) = (counter.day.millis(), counter.person.into());
                return Some(Remainder::Value { retracted: false, at, value });
            }
            operations.value(Some(stored(counter)), subject, counter.text().as_str());
        }
        None
    }

    fn restore_value(
        &self,
        holdings: &mut Holdings,
        name: HashedName,
        text: &str,
        last_seen: Option<LastSeen>,
        floors: Floors,
    ) {
        let Some((day, person)) = DayCount::split(text) else { return };
        let live = last_seen.map(|last_seen| last_seen.at).filter(|at| *at >= floors.seen);
        match live.and_then(|at| DayCount::read(text, Timestamp::from_millis(at))) {
            Some(counter) => {
                if let Some(id) = holdings.restored_id(name) {
                    holdings.put_counter(id, counter);
                }
            }
            None => {
                let Some(id) = holdings.subjects.id(name) else { return };
                change(&mut holdings.subjects, id, |counters| counters.remove(day.millis(), person));
                holdings.remove_subject_if_empty(id);
            }
        }
    }

    fn dropped(&self, holdings: &Holdings, id: u32) -> Option<i64> {
        counters(&holdings.subjects, id)?.dropped
    }

    fn set_dropped(&self, holdings: &mut Holdings, id: u32, at: i64) {
        change(&mut holdings.subjects, id, |counters| counters.dropped = Some(at));
    }

    fn restored(&self, holdings: &mut Holdings, id: u32, floors: Floors) {
        while self.has_expired(holdings, id, floors) {
            holdings.remove_expired_counters(id, floors, usize::MAX);
        }
        holdings.recount_counters(id);
    }

    fn expires(&self) -> bool {
        true
    }

    fn remove_expired(&self, holdings: &mut Holdings, id: u32, floors: Floors) -> u64 {
        holdings.remove_expired_counters(id, floors, MAX_REMOVED) as u64
    }

    fn has_expired(&self, holdings: &Holdings, id: u32, floors: Floors) -> bool {
        counters(&holdings.subjects, id).is_some_and(|counters| counters.has_any_before(floors.seen))
    }

    fn bytes(&self, content: Content, _ranked: bool) -> usize {
        size_of::<Option<Box<Counters>>>()
            + allocated(size_of::<Counters>())
            + day_counts::estimated_bytes(content, TEXT_BYTES)
    }
}

fn counters(subjects: &Subjects, id: u32) -> Option<&Counters> {
    Owned::of(subjects, id)
}

fn change<T>(subjects: &mut Subjects, id: u32, change: impl FnOnce(&mut Counters) -> T) -> Option<T> {
    Owned::change(subjects, id, change)
}

/// Returns a counter as the log and the contents of a track have it: as a value, which its [text](DayCount::text) is.
fn stored(counter: DayCount<'_>) -> LastSeen {
    LastSeen { at: counter.at().millis(), retracted: false }
}

impl Holdings {
    /// Returns what a person with this count adds.
    fn counted(&self, count: i64) -> i64 {
        if let Kind::Capped { most } = self.traits.kind { counted(count, most) } else { 0 }
    }

    /// Returns the count that a person has in a day.
    fn held_count(&self, name: HashedName, day: Timestamp, person: &str) -> Option<i64> {
        counters(&self.subjects, self.subjects.id(name)?)?.get(day.millis(), person)
    }

    /// Returns a counter as it is after an item of the person.
    fn counter_after<'a>(&self, to: &WriteTo<'_>, person: &'a str) -> DayCount<'a> {
        let day = Timestamp::from_millis(to.day);
        let held = self.held_count(to.name, day, person).unwrap_or(0);
        DayCount { day, person, count: held + if to.retract { -1 } else { 1 } }
    }

    /// Returns an error if a counter, or its cell, would be out of range.
    fn check_day_count(&self, to: &WriteTo<'_>, counter: DayCount<'_>) -> Result<(), OutOfRange> {
        let held = self.held_count(to.name, counter.day, counter.person).unwrap_or(0);
        let cell =
            self.subjects.id(to.name).and_then(|id| self.subjects.amount_in(id, self.number(counter.day.millis())));
        let sum = cell.unwrap_or(0) + self.counted(counter.count) - self.counted(held);
        let is_within = (-DayCount::MOST..=DayCount::MOST).contains(&counter.count) && sum.abs() <= to.bound;
        if is_within { Ok(()) } else { Err(OutOfRange) }
    }

    /// Sets a counter of a day within the window, and appends the operations that restore what changed. O(log counters +
    /// log n).
    pub(in crate::store::embedded) fn set_day_count(
        &mut self,
        to: &WriteTo<'_>,
        counter: DayCount<'_>,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        self.check_day_count(to, counter)?;
        let (subject, floors, day) = (to.name.text, to.floors, counter.day.millis());
        let id = self.id_or_add(self.subjects.id(to.name), to.name)?;
        self.remove_expired_counters(id, floors, MAX_REMOVED);
        let held = self.put_counter(id, counter);
        operations.value(Some(stored(counter)), subject, counter.text().as_str());
        let more = self.counted(counter.count) - self.counted(held.unwrap_or(0));
        let mut score_change = self.add_to_cell(id, self.number(day), more);
        if held.is_none()
            && let Some((text, at, less)) = self.drop_surplus_counter(id, floors.seen)
        {
            score_change -= less;
            operations.value(None, subject, &text);
            if let Some(at) = self.record_dropped(id, at) {
                operations.capped(at, subject);
            }
        }
        self.add_to_score(id, score_change);
        Ok(())
    }

    /// Puts a counter in the place of the one of its person and day. Returns the count before.
    fn put_counter(&mut self, id: u32, counter: DayCount<'_>) -> Option<i64> {
        let is_limited = self.traits.max_values.is_some();
        let put = |counters: &mut Counters| {
            if is_limited {
                counters.keep_order();
            }
            counters.set(counter.day.millis(), counter.person, counter.count)
        };
        change(&mut self.subjects, id, put).flatten()
    }

    /// Adds the count of a counter of another board to that of its person in the day, or with `sets` sets it.
    pub(in crate::store::embedded) fn merge_day_count(
        &mut self,
        to: &WriteTo<'_>,
        counter: DayCount<'_>,
        sets: bool,
        operations: &mut LogOperations,
    ) -> Result<(), OutOfRange> {
        let held = self.held_count(to.name, counter.day, counter.person);
        let count = if sets { counter.count } else { held.unwrap_or(0) + counter.count };
        if held == Some(count) {
            return Ok(());
        }
        self.set_day_count(to, DayCount { count, ..counter }, operations)
    }

    /// Removes the counter of a person in a day. Returns whether there was one. O(log counters + log n).
    fn forget_day_count(&mut self, to: &WriteTo<'_>, day: i64, person: &str) -> bool {
        let Some(id) = self.subjects.id(to.name) else { return false };
        let Some(Some(count)) = change(&mut self.subjects, id, |counters| counters.remove(day, person)) else {
            return false;
        };
        // One of a day that has expired is subtracted with its slot.
        if day >= to.floors.seen {
            let less = self.leave_cell(id, day, count);
            self.add_to_score(id, -less);
        }
        self.remove_subject_if_empty(id);
        true
    }

    /// Adds to the cell of a slot, which is created if there is none. Returns the change of the score.
    fn add_to_cell(&mut self, id: u32, slot: i64, by: i64) -> i64 {
        let held = self.subjects.amount_in(id, slot).unwrap_or(0);
        self.set_cell(id, slot, held + by);
        by
    }

    /// Subtracts what a removed counter had added. Its cell goes with the last counter of its slot. Returns the amount.
    fn leave_cell(&mut self, id: u32, day: i64, count: i64) -> i64 {
        let (slot, less) = (self.number(day), self.counted(count));
        let numbering = &self.subjects.numbering;
        let within = numbering.start(slot)..numbering.end(slot);
        let next_day = counters(&self.subjects, id).and_then(|counters| counters.days.from(&within.start).next());
        let is_last = next_day.is_none_or(|(day, _)| *day >= within.end);
        if is_last {
            self.remove_cell(id, slot);
        } else {
            self.add_to_cell(id, slot, -less);
        }
        less
    }

    /// Removes the oldest counter of the window if there are more than the board remembers. Returns its text and time,
    /// and what it had added.
    fn drop_surplus_counter(&mut self, id: u32, floor: i64) -> Option<(Box<str>, i64, i64)> {
        let most = self.traits.max_values?;
        let held = counters(&self.subjects, id)?;
        if held.count_from(floor) <= most {
            return None;
        }
        let oldest = held.oldest(floor)?;
        let (day, person, count) = (oldest.day.millis(), Box::<str>::from(oldest.person), oldest.count);
        let (text, at) = (oldest.text(), oldest.at().millis());
        change(&mut self.subjects, id, |counters| counters.remove(day, &person));
        Some((text.as_str().into(), at, self.leave_cell(id, day, count)))
    }

    /// Returns the counters of a subject from this day and person on, in the order of days and persons.
    pub(in crate::store::embedded) fn day_counts_from<'a>(
        &'a self,
        name: HashedName,
        (day, person): (i64, &'a str),
    ) -> impl Iterator<Item = DayCount<'a>> {
        let counters = self.subjects.id(name).and_then(|id| counters(&self.subjects, id));
        counters.into_iter().flat_map(move |counters| counters.from(day, person))
    }

    /// Returns the largest number of bytes that the counters of a subject add to the log, with this many for each besides.
    pub(in crate::store::embedded) fn log_bytes_of_counters(&self, name: HashedName, each: usize) -> usize {
        let counters = self.subjects.id(name).and_then(|id| counters(&self.subjects, id));
        counters.map_or(0, |counters| counters.memory_bytes() + counters.len() * each)
    }

    /// Removes up to `most` counters from before the floor. Returns how many it removed.
    fn remove_expired_counters(&mut self, id: u32, floors: Floors, most: usize) -> usize {
        if !counters(&self.subjects, id).is_some_and(|counters| counters.has_any_before(floors.seen)) {
            return 0;
        }
        change(&mut self.subjects, id, |counters| counters.remove_before(floors.seen, most)).unwrap_or(0)
    }

    /// Computes the cells of a subject from its counters.
    fn recount_counters(&mut self, id: u32) {
        let Some(held) = counters(&self.subjects, id) else { return };
        let mut cells: Vec<Cell> = Vec::new();
        for (day, of_day) in held.days.all() {
            let slot = self.subjects.numbering.number(*day);
            let amount: i64 = of_day.all().map(|(_, count)| self.counted(*count)).sum();
            match cells.last_mut() {
                Some(last) if last.slot == slot => last.amount += amount,
                _ => cells.push(Cell { slot, amount, place: 0 }),
            }
        }
        for (at, cell) in cells.into_iter().enumerate() {
            self.subjects.insert_cell(id, at, cell);
        }
    }
}
