//! The last-seen scheme, computed from the beginning for every result.

use std::collections::BTreeMap;

use rolltop::board::{Aggregate, Amount, BoardTrack, Change, Counted, Frame, Timestamp};
use rolltop::store::Content;

use super::history::Taken;

/// The state of each value of one subject.
#[derive(Default)]
pub struct LastSeen {
    values: BTreeMap<Counted, State>,
    capped: Option<Timestamp>,
}

#[derive(Clone, Copy)]
enum State {
    Seen(Timestamp),
    /// The value was retracted: a tombstone.
    Gone(Timestamp),
}

impl LastSeen {
    /// Returns the state after all past events, for a window with this floor.
    pub fn after(board: &BoardTrack, past: &[Taken], floor: Timestamp) -> LastSeen {
        let mut all = LastSeen::of(board, past);
        // Tombstones make no difference to a read.
        all.forget_before(floor, floor);
        all
    }

    /// Returns the state after all past events with the tombstones that have not expired.
    pub fn remembered(board: &BoardTrack, past: &[Taken], frame: &Frame) -> LastSeen {
        let mut all = LastSeen::of(board, past);
        all.forget_before(frame.window.floor, LastSeen::oldest_tombstone(board, frame));
        all.capped = all.capped.filter(|at| *at >= frame.window.floor);
        all
    }

    /// Returns the time before which tombstones have expired.
    pub fn oldest_tombstone(board: &BoardTrack, frame: &Frame) -> Timestamp {
        board.tombstone_life().map_or(frame.window.floor, |life| frame.as_of.plus_millis(-life))
    }

    fn of(board: &BoardTrack, past: &[Taken]) -> LastSeen {
        let mut all = LastSeen::default();
        for taken in past {
            if let Some(Content::Dropped { at }) = taken.merged {
                all.capped = all.capped.max(Some(at));
                continue;
            }
            if let Change::Forget(value) = &taken.change {
                all.values.remove(value);
                continue;
            }
            let Change::Seen(value) = &taken.change else { panic!("{taken:?} is not a value that was seen") };
            let gone = board.tombstone_life().map_or(taken.floor, |life| taken.now.plus_millis(-life));
            all.forget_before(taken.floor, gone);
            match taken.retract {
                false => all.see(value, taken.at),
                true => all.retract(value, taken.at),
            }
            // A tombstone may have expired already.
            all.forget_before(taken.floor, gone);
            all.cap(board, taken.retract);
        }
        all
    }

    /// Forgets the values seen and those retracted before their floors.
    fn forget_before(&mut self, seen: Timestamp, gone: Timestamp) {
        self.values.retain(|_, state| match state {
            State::Seen(at) => *at >= seen,
            State::Gone(at) => *at >= gone,
        });
    }

    fn see(&mut self, value: &Counted, at: Timestamp) {
        match self.values.get(value) {
            Some(State::Seen(known) | State::Gone(known)) if at <= *known => {}
            _ => {
                self.values.insert(value.clone(), State::Seen(at));
            }
        }
    }

    fn retract(&mut self, value: &Counted, at: Timestamp) {
        match self.values.get(value) {
            Some(State::Seen(known) | State::Gone(known)) if at < *known => {}
            _ => {
                self.values.insert(value.clone(), State::Gone(at));
            }
        }
    }

    /// Drops the values that were seen or retracted longest ago, while there are more than the board remembers.
    fn cap(&mut self, board: &BoardTrack, gone: bool) {
        let Some(most) = board.max_values() else { return };
        loop {
            let mut alike: Vec<(Timestamp, Counted)> = Vec::new();
            for (value, state) in &self.values {
                match (state, gone) {
                    (State::Seen(at), false) | (State::Gone(at), true) => alike.push((*at, value.clone())),
                    _ => {}
                }
            }
            if alike.len() <= most as usize {
                return;
            }
            let Some((at, value)) = alike.into_iter().min() else { return };
            self.values.remove(&value);
            if !gone {
                self.capped = self.capped.max(Some(at));
            }
        }
    }

    /// Returns the number of values last seen in each slot.
    pub fn aggregates(&self, board: &BoardTrack) -> BTreeMap<Timestamp, Aggregate> {
        let mut counts: BTreeMap<Timestamp, i64> = BTreeMap::new();
        for (_, at) in self.newest_first() {
            *counts.entry(board.calendar().slot_of(at)).or_default() += 1;
        }
        counts.into_iter().map(|(slot, count)| (slot, Aggregate::Sum(Amount(count)))).collect()
    }

    /// Returns the values, newest first. Values of the same time are ordered by bytes, the greatest first.
    pub fn newest_first(&self) -> Vec<(Counted, Timestamp)> {
        let mut seen: Vec<(Timestamp, Counted)> = Vec::new();
        for (value, state) in &self.values {
            if let State::Seen(at) = state {
                seen.push((*at, value.clone()));
            }
        }
        seen.sort();
        seen.into_iter().rev().map(|(at, value)| (value, at)).collect()
    }

    /// Returns the values seen and retracted, and the time of the newest one that was dropped.
    pub fn contents(self) -> Vec<Content> {
        let of_value = |(value, state)| match state {
            State::Seen(at) => Content::Value { value, at, retracted: false },
            State::Gone(at) => Content::Value { value, at, retracted: true },
        };
        self.values.into_iter().map(of_value).chain(self.capped.map(|at| Content::Dropped { at })).collect()
    }

    /// Returns whether values of slots from this one on were dropped.
    pub fn is_capped_from(&self, slot: Timestamp) -> bool {
        self.capped.is_some_and(|at| at >= slot)
    }
}
