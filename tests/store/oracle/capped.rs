//! The counters of a cap for each person, computed from the beginning for every result.

use std::collections::BTreeMap;

use rolltop::board::{Aggregate, Amount, BoardTrack, Change, DayCount, Frame, Kind, Timestamp};
use rolltop::store::Content;

use super::history::Taken;

/// The counters of one subject.
#[derive(Default)]
pub struct Counters {
    /// By day and person.
    counts: BTreeMap<(Timestamp, String), i64>,
    capped: Option<Timestamp>,
}

impl Counters {
    /// Returns the state after all past items, for a window with this floor.
    pub fn after(board: &BoardTrack, past: &[Taken], floor: Timestamp) -> Counters {
        let mut all = Counters::default();
        for taken in past {
            all.take(board, taken);
        }
        all.forget_before(floor);
        all
    }

    /// Returns the state after all past items that has not expired.
    pub fn remembered(board: &BoardTrack, past: &[Taken], frame: &Frame) -> Counters {
        let mut all = Counters::after(board, past, frame.window.floor);
        all.capped = all.capped.filter(|at| *at >= frame.window.floor);
        all
    }

    fn take(&mut self, board: &BoardTrack, taken: &Taken) {
        self.forget_before(taken.floor);
        match (&taken.merged, &taken.change) {
            (Some(Content::Dropped { at }), _) => {
                self.capped = self.capped.max(Some(*at));
                return;
            }
            (_, Change::Forget(value)) => {
                if let Some((day, person)) = DayCount::split(value.as_str()) {
                    self.counts.remove(&(day, person.to_owned()));
                }
                return;
            }
            (Some(Content::Value { value, at, .. }), change) => {
                let counter = DayCount::read(value.as_str(), *at).expect("a counter");
                let held = self.counts.entry((counter.day, counter.person.to_owned())).or_default();
                // What an edition is filled with replaces what it has, what is imported is added.
                *held = if matches!(change, Change::Set { .. }) { counter.count } else { *held + counter.count };
            }
            (_, Change::Seen(person)) => {
                let day = board.day_of(taken.at).expect("the day of an item");
                let held = self.counts.entry((day, person.as_str().to_owned())).or_default();
                *held += if taken.retract { -1 } else { 1 };
            }
            _ => panic!("{taken:?} is of no person"),
        }
        while board.max_values().is_some_and(|most| self.counts.len() > most as usize) {
            let oldest = self.counters().min_by_key(|counter| (counter.at(), counter.text()));
            let Some(DayCount { day, person, count }) = oldest else { return };
            let key = (day, person.to_owned());
            self.capped = self.capped.max(Some(DayCount { day, person, count }.at()));
            self.counts.remove(&key);
        }
    }

    fn forget_before(&mut self, floor: Timestamp) {
        self.counts.retain(|(day, _), _| *day >= floor);
    }

    fn counters(&self) -> impl Iterator<Item = DayCount<'_>> {
        self.counts.iter().map(|((day, person), count)| DayCount { day: *day, person, count: *count })
    }

    /// Returns whether each count is one that a counter can have.
    pub fn fit(&self) -> bool {
        self.counts.values().all(|count| (-DayCount::MOST..=DayCount::MOST).contains(count))
    }

    /// Returns what the counters of each slot add.
    pub fn aggregates(&self, board: &BoardTrack) -> BTreeMap<Timestamp, Aggregate> {
        let Kind::Capped { most } = board.kind() else { panic!("a board without a cap") };
        let mut sums: BTreeMap<Timestamp, i64> = BTreeMap::new();
        for counter in self.counters() {
            *sums.entry(board.calendar().slot_of(counter.day)).or_default() += counter.count.min(most.into());
        }
        sums.into_iter().map(|(slot, sum)| (slot, Aggregate::Sum(Amount(sum)))).collect()
    }

    pub fn contents(self) -> Vec<Content> {
        let value =
            |counter: DayCount<'_>| Content::Value { value: counter.text(), at: counter.at(), retracted: false };
        self.counters().map(value).chain(self.capped.map(|at| Content::Dropped { at })).collect()
    }

    /// Returns whether counters of slots from this one on were dropped.
    pub fn is_capped_from(&self, slot: Timestamp) -> bool {
        self.capped.is_some_and(|at| at >= slot)
    }
}
