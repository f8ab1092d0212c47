//! The time that breaks ties: which of two subjects with the same score is first, and how exactly times are kept.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::spellings::spellings;
use super::text::text;
use super::{Order, Timestamp};

/// Which of several subjects with the same score is first, by their times.
///
/// Parses and prints as `first`, or with a precision that is not the usual second as `first:1ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ties {
    pub order: TiesOrder,
    pub precision: Precision,
}

/// The subject that is first among equal scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TiesOrder {
    /// The one whose time is the earliest: it has had its score for longer.
    First,
    /// The one whose time is the latest.
    Last,
}

/// How exactly the times are kept. The more exactly, the smaller are the scores that a board can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    Millisecond,
    Tenth,
    Second,
    Minute,
}

spellings! {
    TiesOrder { First = "first", Last = "last" }
    print as_str;
    parse of;
}

spellings! {
    Precision { Millisecond = "1ms", Tenth = "100ms", Second = "1s", Minute = "1m" }
    print as_str;
    parse of;
}

/// The reason why a text is not a [`Ties`]. Contains the first 64 characters of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not first or last, nor one of them with a precision: first:1ms, first:100ms, first:1s or first:1m")]
pub struct TiesError(String);

impl FromStr for Ties {
    type Err = TiesError;

    fn from_str(text: &str) -> Result<Self, TiesError> {
        Self::read(text).ok_or_else(|| TiesError(text.chars().take(64).collect()))
    }
}

text! { Ties: serialize_displayed, deserialize_from_str; }

/// Where equal scores are ordered by time: how a time becomes the key of a number.
///
/// A time is a number of steps since the beginning of 2020, so that it is the same in every board, store and period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Steps {
    /// The length of a step, in milliseconds.
    pub length: i64,
    /// The number of the last step.
    pub last: i64,
}

/// What orders subjects with the same score, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// A second key.
    Key(i64),
    /// A time.
    Time(Timestamp),
}

impl Ties {
    fn read(text: &str) -> Option<Self> {
        let (order, precision) = text.split_once(':').unwrap_or((text, Precision::Second.as_str()));
        Some(Self { order: TiesOrder::of(order)?, precision: Precision::of(precision)? })
    }

    /// Returns whether the later of two times is the smaller key, on a board with this order.
    pub(super) fn is_reversed(self, order: Order) -> bool {
        (self.order == TiesOrder::First) == (order == Order::Desc)
    }
}

impl fmt::Display for Ties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.order.as_str())?;
        match self.precision {
            Precision::Second => Ok(()),
            precision => write!(f, ":{}", precision.as_str()),
        }
    }
}

impl Precision {
    /// Returns the length of a step, in milliseconds.
    pub(super) const fn millis(self) -> i64 {
        match self {
            Precision::Millisecond => 1,
            Precision::Tenth => 100,
            Precision::Second => 1_000,
            Precision::Minute => 60_000,
        }
    }

    /// Returns the number of bits that steps until 2054, or longer, take.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Precision::Millisecond => 40,
            Precision::Tenth => 34,
            Precision::Second => 30,
            Precision::Minute => 25,
        }
    }
}

impl Steps {
    /// 2020-01-01T00:00:00Z, in milliseconds.
    pub const FIRST: i64 = 1_577_836_800_000;

    /// Returns the step of a time, or 0, which stands for no time, if it is before the first step or after the last one. If it
    /// were in these, slots would have the same time, and nobody could tell which of them leaves with it.
    pub(super) fn at(self, time: Timestamp) -> i64 {
        let step = time.millis().saturating_sub(Self::FIRST).div_euclid(self.length);
        if (1..=self.last).contains(&step) { step } else { 0 }
    }

    /// Returns the time at which a step begins.
    pub(super) fn time(self, step: i64) -> Timestamp {
        Timestamp::from_millis(Self::FIRST + step * self.length)
    }
}

impl Serialize for Tie {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Tie::Key(key) => key.serialize(serializer),
            Tie::Time(time) => time.serialize(serializer),
        }
    }
}

impl fmt::Display for Tie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tie::Key(key) => key.fmt(f),
            Tie::Time(time) => time.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_read_as_they_are_written() {
        for text in ["first", "last", "first:1ms", "last:100ms", "first:1m"] {
            assert_eq!(text.parse::<Ties>().unwrap().to_string(), text);
        }
        assert_eq!("last:1s".parse::<Ties>().unwrap().to_string(), "last");
        for wrong in ["", "First", "first:", "first:2s", "first:1s:1s", ":1s", "first 1s"] {
            let error = wrong.parse::<Ties>().unwrap_err().to_string();
            assert!(error.contains("first:100ms"), "{error}");
        }
    }

    #[test]
    fn the_first_step_and_the_last_one_are_times() {
        let steps = Steps { length: 1_000, last: (1 << 30) - 1 };
        let at = |millis: i64| steps.at(Timestamp::from_millis(millis));
        assert_eq!([at(0), at(Steps::FIRST), at(Steps::FIRST + 999)], [0; 3]);
        assert_eq!([at(Steps::FIRST + 1_000), at(Steps::FIRST + 1_999)], [1; 2]);
        let last = Steps::FIRST + steps.last * 1_000;
        assert_eq!([at(last), at(last + 999), at(last + 1_000), at(i64::MAX)], [steps.last, steps.last, 0, 0]);
        assert!(steps.time(steps.last).to_string().starts_with("2054-01"));
    }
}
