//! Short functions that create the inputs of tests.

use std::sync::Arc;

use rolltop::board::{
    Aggregate, Amount, Board, BoardName, BoardTrack, Change, Counted, Definition, EventId, Generation, Subject, Tier,
    TierBound, Tiers, Timestamp, Value,
};
use rolltop::store::{Increment, SlotContents};

/// What names a track: a board stands for its main one.
pub trait OnTrack {
    fn track(&self) -> BoardTrack;
}

impl OnTrack for Arc<Board> {
    fn track(&self) -> BoardTrack {
        self.main()
    }
}

impl OnTrack for BoardTrack {
    fn track(&self) -> BoardTrack {
        self.clone()
    }
}

/// Returns a board to define, with a generation that no other has.
///
/// # Panics
/// Panics if the definition is not valid.
pub fn new_board(name: &BoardName, definition: &Definition) -> Board {
    let generation = Generation(rand::random_range(1..=u64::MAX - 100));
    Board::new(name.clone(), generation, definition.clone()).unwrap_or_else(|error| panic!("{error}"))
}

pub fn t(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn name(text: &str) -> BoardName {
    BoardName::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn definition(metric: &str, slot: &str) -> Definition {
    Definition::new(metric.parse().unwrap_or_else(|e| panic!("{e}")), slot.parse().unwrap_or_else(|e| panic!("{e}")))
}

/// Returns an increment that happens now and has no id.
pub fn plus(who: &str, amount: i64) -> Increment {
    Increment {
        other: None,
        subject: subject(who),
        change: Change::Amount(Amount(amount)),
        retract: false,
        at: None,
        id: None,
        period: None,
        event: None,
    }
}

/// Returns the definition of a board without a ranking.
pub fn unranked(metric: &str, slot: &str) -> Definition {
    Definition { ranked: false, ..definition(metric, slot) }
}

pub fn value(text: &str) -> Counted {
    Counted::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns an event with a value that was seen now.
pub fn seen(who: &str, what: &str) -> Increment {
    Increment { change: Change::Seen(value(what)), ..plus(who, 0) }
}

/// Returns a sample of a sum or an extreme.
pub fn sample(who: &str, sum: i64, at: &str) -> Increment {
    sample_of(who, sum, 1, at)
}

/// Returns a sample of this many measurements.
pub fn sample_of(who: &str, sum: i64, count: i64, at: &str) -> Increment {
    Increment { change: Change::Set { sum: Amount(sum), count }, ..plus(who, 0).at(at) }
}

/// Returns a mean as a score.
pub fn mean(sum: i64, count: i64) -> Option<Value> {
    Some(Value::Real(sum as f64 / count as f64))
}

/// Returns a whole score.
pub fn exact(units: i64) -> Option<Value> {
    Some(Value::Exact(Amount(units)))
}

/// Returns the amounts of slots that contain sums.
pub fn sums(slots: &[(Timestamp, Aggregate)]) -> Vec<(Timestamp, i64)> {
    slots.iter().map(|(slot, aggregate)| (*slot, aggregate.units())).collect()
}

/// Access to the whole number in a result. Panics if there is none.
pub trait Units {
    fn units(&self) -> i64;
}

impl Units for Value {
    fn units(&self) -> i64 {
        match self {
            Value::Exact(amount) => amount.0,
            Value::Real(real) => panic!("{real} is not exact"),
        }
    }
}

impl Units for Option<Value> {
    fn units(&self) -> i64 {
        self.expect("a score").units()
    }
}

impl Units for Aggregate {
    fn units(&self) -> i64 {
        match self {
            Aggregate::Sum(amount) | Aggregate::Extreme(amount) => amount.0,
            other => panic!("{other:?} is not one number"),
        }
    }
}

impl Units for SlotContents {
    fn units(&self) -> i64 {
        self.aggregates.iter().map(|(_, aggregate)| aggregate.units()).sum()
    }
}

pub trait With {
    fn at(self, time: &str) -> Self;
    fn at_time(self, time: Timestamp) -> Self;
    fn id(self, id: &str) -> Self;
    /// Returns the retraction of this increment.
    fn undone(self) -> Self;
}

impl With for Increment {
    fn at(self, time: &str) -> Self {
        self.at_time(t(time))
    }

    fn at_time(self, time: Timestamp) -> Self {
        Increment { at: Some(time), ..self }
    }

    fn id(self, id: &str) -> Self {
        Increment { id: Some(EventId::parse(id).unwrap_or_else(|error| panic!("{error}"))), ..self }
    }

    fn undone(self) -> Self {
        Increment { retract: true, ..self }
    }
}

/// Returns the track with a tier for which ties are counted.
pub fn counting_ties(track: BoardTrack) -> BoardTrack {
    let tier = Tier::new("gold", TierBound::Top("5".parse().unwrap())).unwrap();
    track.with_tiers(Some(Arc::new(Tiers::new(vec![tier]).unwrap())))
}
