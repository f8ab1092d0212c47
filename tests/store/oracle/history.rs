//! The counted items, and the content of each slot computed from them.

use std::collections::BTreeMap;

use rolltop::board::{Aggregate, Amount, BoardTrack, Change, KeyBound, Kind, Mark, Sketch, Timestamp};
use rolltop::store::Content;

use super::capped::Counters;
use super::distinct::LastSeen;

/// A counted item.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The slot that it belongs to. On a `from_first` board, its own time.
    pub slot: Timestamp,
    /// The time when it happened, never later than its arrival.
    pub at: Timestamp,
    /// The time when it arrived.
    pub now: Timestamp,
    /// The floor of the window when it arrived.
    pub floor: Timestamp,
    pub change: Change,
    pub retract: bool,
    /// The slot that is kept beside the total, if it belongs to one.
    pub beside: Option<Timestamp>,
    /// The content that was merged, if it is not an item. A value of COUNT_DISTINCT is like an item.
    pub merged: Option<Content>,
}

impl Taken {
    /// Returns the amount that it adds, if it is an amount.
    pub fn units(&self) -> i128 {
        match &self.change {
            Change::Amount(amount) if self.retract => -i128::from(amount.0),
            Change::Amount(amount) => i128::from(amount.0),
            other => panic!("{other:?} is not an amount"),
        }
    }
}

/// All effects of items on one slot. Each metric uses a part of it.
#[derive(Default)]
struct Cell {
    sum: i128,
    count: i128,
    extreme: Option<i64>,
    last: Option<(Timestamp, i64)>,
    /// The newest time, in the form of a key, of what was added up where equal scores are ordered by time.
    newest: i128,
    sketch: Sketch,
}

impl Cell {
    fn take(&mut self, kind: Kind, taken: &Taken) {
        if let Some(Content::Cell { aggregate, .. }) = &taken.merged {
            return self.merge(kind, aggregate);
        }
        match (&taken.change, kind) {
            (Change::Amount(amount), Kind::TimedSum(split)) => {
                let score = i128::from(split.score(amount.0));
                self.sum += if taken.retract { -score } else { score };
                if score != 0 {
                    self.note_time(split.key(amount.0));
                }
                return;
            }
            (Change::Set { sum, .. }, Kind::TimedSum(split)) => {
                (self.sum, self.newest) = (split.score(sum.0).into(), split.key(sum.0).into());
                return;
            }
            _ => {}
        }
        match &taken.change {
            Change::Amount(_) => {
                self.sum += taken.units();
                self.count += if taken.retract { -1 } else { 1 };
                if let (Kind::Last, Ok(units)) = (kind, i64::try_from(taken.units()))
                    && self.last.is_none_or(|(at, _)| at <= taken.at)
                {
                    self.last = Some((taken.at, units));
                }
                if let (Kind::Min | Kind::Max, Ok(units)) = (kind, i64::try_from(taken.units())) {
                    let better = |held: i64| if kind == Kind::Min { held.min(units) } else { held.max(units) };
                    self.extreme = Some(self.extreme.map_or(units, better));
                }
            }
            Change::Not(_) => unreachable!("it is not taken"),
            // The last-seen scheme says what it leaves.
            Change::Forget(_) => {}
            Change::Seen(value) => {
                self.sketch.mark(Mark::of(value.as_str()));
            }
            Change::Set { sum, count } => {
                (self.sum, self.count) = (i128::from(sum.0), i128::from(*count));
                self.extreme = Some(sum.0);
                self.last = Some((taken.at, sum.0));
            }
        }
    }

    fn note_time(&mut self, key: i64) {
        if i128::from(key).abs() > self.newest.abs() {
            self.newest = key.into();
        }
    }

    fn merge(&mut self, kind: Kind, other: &Aggregate) {
        match other {
            Aggregate::Sum(sum) if matches!(kind, Kind::TimedSum(_)) => {
                self.sum += i128::from(kind.split().score(sum.0));
                self.note_time(kind.split().key(sum.0));
            }
            Aggregate::Sum(sum) => self.sum += i128::from(sum.0),
            Aggregate::Mean { sum, count } => {
                self.sum += i128::from(sum.0);
                self.count += i128::from(*count);
            }
            Aggregate::Extreme(amount) => {
                self.extreme = Some(self.extreme.map_or(amount.0, |held| kind.better(held, amount.0)));
            }
            Aggregate::Last { at, value } => {
                if self.last.is_none_or(|(held, _)| held < *at) {
                    self.last = Some((*at, value.0));
                }
            }
            Aggregate::Sketch(sketch) => self.sketch.merge(sketch),
        }
    }

    fn fits(&self, board: &BoardTrack) -> bool {
        let within = |units: i128| units.abs() <= i128::from(board.slot_bound().0);
        let has_key_within = || {
            let Some(KeyBound { split, most }) = board.key_bound() else { return true };
            let (low, size) = (self.sum.rem_euclid(split.size().into()), i128::from(split.size()));
            let key = if low < size / 2 { low } else { low - size };
            key.abs() <= i128::from(most)
        };
        match board.kind() {
            Kind::Sum => within(self.sum) && has_key_within(),
            // Whatever its time is.
            Kind::TimedSum(split) => within((self.sum.abs() + 1) * i128::from(split.size()) - 1),
            Kind::Mean => within(self.sum) && within(self.count),
            Kind::Min | Kind::Max | Kind::Last | Kind::Distinct | Kind::Capped { .. } | Kind::Sketch => true,
        }
    }

    fn aggregate(self, kind: Kind) -> Option<Aggregate> {
        let aggregate = match kind {
            Kind::Sum => Aggregate::Sum(whole(self.sum)),
            Kind::TimedSum(split) => Aggregate::Sum(whole(self.sum * i128::from(split.size()) + self.newest)),
            Kind::Mean => Aggregate::Mean { sum: whole(self.sum), count: whole(self.count).0 },
            Kind::Min | Kind::Max => Aggregate::Extreme(Amount(self.extreme?)),
            Kind::Last => {
                let (at, units) = self.last?;
                Aggregate::Last { at, value: Amount(units) }
            }
            Kind::Sketch => Aggregate::Sketch(self.sketch),
            Kind::Capped { .. } => panic!("its counters say what its slots hold"),
            Kind::Distinct => panic!("the last-seen scheme says what its slots hold"),
        };
        (!aggregate.is_empty()).then_some(aggregate)
    }
}

pub fn whole(units: i128) -> Amount {
    Amount(i64::try_from(units).expect("the slot bound keeps every sum within 2^53"))
}

/// Returns the content of each slot from `floor` on that has data.
pub fn aggregates(board: &BoardTrack, past: &[Taken], floor: Timestamp) -> BTreeMap<Timestamp, Aggregate> {
    if let Kind::Capped { .. } = board.kind() {
        return Counters::after(board, past, floor).aggregates(board);
    }
    if board.kind() == Kind::Distinct {
        return LastSeen::after(board, past, floor).aggregates(board);
    }
    let mut cells: BTreeMap<Timestamp, Cell> = BTreeMap::new();
    for taken in past.iter().filter(|taken| taken.slot >= floor) {
        cells.entry(taken.slot).or_default().take(board.kind(), taken);
    }
    cells.into_iter().filter_map(|(slot, cell)| Some((slot, cell.aggregate(board.kind())?))).collect()
}

/// Returns the item that is the newest value of all, for LAST.
pub fn newest(past: &[Taken]) -> Option<&Taken> {
    past.iter().fold(None, |newest: Option<&Taken>, taken| match newest {
        Some(newest) if taken.merged.is_some() && taken.at <= newest.at => Some(newest),
        Some(newest) if matches!(taken.change, Change::Amount(_)) && taken.at < newest.at => Some(newest),
        _ => Some(taken),
    })
}

/// Returns whether the content of a slot is within its bounds.
pub fn fits(board: &BoardTrack, past: &[Taken], slot: Timestamp) -> bool {
    if let Kind::Capped { .. } = board.kind() {
        return Counters::after(board, past, slot).fit();
    }
    let mut cell = Cell::default();
    for taken in past.iter().filter(|taken| taken.slot == slot) {
        cell.take(board.kind(), taken);
    }
    cell.fits(board)
}

/// A counter of a `from_first` board, which began with a subject's event.
pub struct Counter {
    pub start: Timestamp,
    pub end: Timestamp,
    pub units: i128,
}

impl Counter {
    /// Returns the last counter that was begun.
    pub fn after(board: &BoardTrack, past: &[Taken]) -> Option<Counter> {
        let life = board.length().approximate_millis();
        let mut counter: Option<Counter> = None;
        for taken in past {
            match &mut counter {
                Some(counter) if taken.at < counter.end && taken.now < counter.end => counter.units += taken.units(),
                _ if taken.retract => {}
                _ => {
                    let (start, end) = (taken.at, taken.at.plus_millis(life));
                    counter = Some(Counter { start, end, units: taken.units() });
                }
            }
        }
        counter
    }

    /// Returns the counter that is active at `now`.
    pub fn at(board: &BoardTrack, past: &[Taken], now: Timestamp) -> Option<Counter> {
        Counter::after(board, past).filter(|counter| counter.start <= now && now < counter.end)
    }

    /// Returns whether the content of the last counter is within its bounds.
    pub fn fits(board: &BoardTrack, past: &[Taken]) -> bool {
        let bound = i128::from(board.slot_bound().0);
        Counter::after(board, past).is_none_or(|counter| counter.units.abs() <= bound)
    }
}
