//! Rates: how many of something are allowed in a time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::board::spellings::spellings;

/// A rate such as `200/s` or `6000/m burst 500`: a number in a unit of time, and the largest number at once, which is
/// the same number if none is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u32,
    unit: RateUnit,
    burst: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RateUnit {
    Second,
    Minute,
    Hour,
}

/// A text is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    #[error(
        "expected a rate such as 200/s, 6000/m or 1000/h, perhaps with the largest number at once: 200/s burst 1000"
    )]
    Syntax,
    #[error("a rate is at least 1 an hour and at most 10,000,000 a second")]
    Range,
    #[error("a burst is at least 1 and at most what the rate allows in a day")]
    Burst,
}

spellings! {
    RateUnit { Second = "s", Minute = "m", Hour = "h" }
    print as_str;
    parse of;
}

impl RateUnit {
    const fn seconds(self) -> u64 {
        match self {
            RateUnit::Second => 1,
            RateUnit::Minute => 60,
            RateUnit::Hour => 3_600,
        }
    }
}

impl Rate {
    const MOST_A_SECOND: u64 = 10_000_000;
    const DAY: u64 = 86_400;

    fn new(count: u32, unit: RateUnit, burst: u32) -> Result<Self, RateError> {
        let (number, seconds) = (u64::from(count), unit.seconds());
        if count == 0 || number > Self::MOST_A_SECOND * seconds {
            return Err(RateError::Range);
        }
        if burst == 0 || u64::from(burst) * seconds > number * Self::DAY {
            return Err(RateError::Burst);
        }
        Ok(Self { count, unit, burst })
    }

    /// Returns the largest number at once.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// Returns the time in nanoseconds after which another one is allowed, rounded up: at least 100.
    pub fn interval(self) -> u64 {
        (self.unit.seconds() * 1_000_000_000).div_ceil(self.count.into())
    }

    /// Returns whether this rate allows no more than `other`, in the long run and at once.
    pub fn is_within(self, other: Rate) -> bool {
        let (own, others) = (u64::from(self.count), u64::from(other.count));
        own * other.unit.seconds() <= others * self.unit.seconds() && self.burst <= other.burst
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { text.parse::<u32>().map_err(|_| RateError::Range) } else { Err(RateError::Syntax) }
        };
        let mut words = text.split_ascii_whitespace();
        let (count, unit) = words.next().and_then(|rate| rate.split_once('/')).ok_or(RateError::Syntax)?;
        let unit = RateUnit::of(unit).ok_or(RateError::Syntax)?;
        let count = number(count)?;
        let burst = match (words.next(), words.next(), words.next()) {
            (None, ..) => count,
            (Some("burst"), Some(burst), None) => number(burst)?,
            _ => return Err(RateError::Syntax),
        };
        Self::new(count, unit, burst)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.unit.as_str())?;
        if self.burst == self.count { Ok(()) } else { write!(f, " burst {}", self.burst) }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| serde::de::Error::custom(format!("'{text}': {error}")))
    }
}

/// The limits of a key. What is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRates {
    /// Requests of all kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Rate>,
    /// Increments, samples and events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Rate>,
    /// The number of streams and exports that are open at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
}

impl KeyRates {
    /// Returns whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether these limits allow no more than `others`.
    pub fn are_within(&self, others: &KeyRates) -> bool {
        let is_within = |own: Option<Rate>, other: Option<Rate>| {
            other.is_none_or(|other| own.is_some_and(|own| own.is_within(other)))
        };
        is_within(self.requests, others.requests)
            && is_within(self.items, others.items)
            && others.streams.is_none_or(|others| self.streams.is_some_and(|own| own <= others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn rates_are_parsed_strictly_and_shown_as_they_are_written() {
        for text in ["200/s", "6000/m", "1/h", "200/s burst 1000", "10000000/s", "3/s burst 1", "1/s burst 86400"] {
            assert_eq!(rate(text).to_string(), text);
        }
        assert_eq!(rate(" 5/s  burst  5 "), rate("5/s"));
        for (wrong, error) in [
            ("", RateError::Syntax),
            ("200", RateError::Syntax),
            ("200/d", RateError::Syntax),
            ("+2/s", RateError::Syntax),
            ("2/s burst", RateError::Syntax),
            ("2/s burst 3 4", RateError::Syntax),
            ("2/s of 3", RateError::Syntax),
            ("0/s", RateError::Range),
            ("10000001/s", RateError::Range),
            ("99999999999/s", RateError::Range),
            ("2/s burst 0", RateError::Burst),
            ("1/s burst 86401", RateError::Burst),
        ] {
            assert_eq!(wrong.parse::<Rate>(), Err(error), "{wrong}");
        }
        let intervals = ["200/s", "3/s", "1/h", "10000000/s"].map(|text| rate(text).interval());
        assert_eq!(intervals, [5_000_000, 333_333_334, 3_600_000_000_000, 100]);
    }

    #[test]
    fn a_rate_is_within_one_that_allows_as_much_in_the_long_run_and_at_once() {
        let is_within = |own: &str, other: &str| rate(own).is_within(rate(other));
        assert!(is_within("60/m", "1/s burst 60") && is_within("1/s burst 60", "60/m"));
        assert!(!is_within("60/m", "1/s") && !is_within("61/m", "1/s burst 100"));
        let rates = |text: &str| serde_json::from_str::<KeyRates>(text).unwrap();
        let (none, some) = (rates("{}"), rates(r#"{"requests":"5/s","streams":3}"#));
        assert!(none.is_empty() && some.are_within(&none) && !none.are_within(&some) && some.are_within(&some));
        assert!(rates(r#"{"requests":"4/s","streams":2,"items":"1/s"}"#).are_within(&some));
        assert!(!rates(r#"{"requests":"4/s"}"#).are_within(&some));
        assert_eq!(serde_json::to_string(&some).unwrap(), r#"{"requests":"5/s","streams":3}"#);
        assert!(serde_json::from_str::<KeyRates>(r#"{"bytes":"5/s"}"#).is_err());
    }
}
