//! Short forms for what a test is given.

use rolltop::board::{Amount, BoardName, Definition, EventId, Subject, Timestamp};
use rolltop::store::Increment;

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

/// An increment that happens now and carries no id.
pub fn plus(who: &str, amount: i64) -> Increment {
    Increment { subject: subject(who), change: Change::Amount(Amount(amount)), retract: false, at: None, id: None }
}

pub trait With {
    fn at(self, time: &str) -> Self;
    fn at_time(self, time: Timestamp) -> Self;
    fn id(self, id: &str) -> Self;
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
}
