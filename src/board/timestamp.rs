//! Timestamps: instants in whole milliseconds since the Unix epoch.

use std::fmt;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Serialize, Serializer};

use super::text::text;

/// An instant in milliseconds since 1970-01-01T00:00:00Z, between the years 1970 and 9999.
///
/// Parsed and written as RFC 3339 in UTC, with milliseconds only where they are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The reason why a text is not a [`Timestamp`]. Contains the first 64 characters of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    #[error("'{0}' is not a time in RFC 3339 format, such as 2026-01-31T09:30:00Z")]
    Syntax(String),
    #[error("'{0}' is not within the years 1970 to 9999")]
    OutOfRange(String),
    /// Leap seconds are inserted at the end of a day in UTC only.
    #[error("'{0}' has the second 60, which exists at 23:59:60 UTC only")]
    LeapSecond(String),
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// 9999-12-31T23:59:59.999Z, the last instant that RFC 3339 can write.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999);

    /// Creates the instant this many milliseconds after the epoch, clamped to [`EPOCH`](Self::EPOCH) and
    /// [`MAX`](Self::MAX).
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::EPOCH.0 {
            Self::EPOCH
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// Returns the milliseconds since the epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Parses RFC 3339 with any offset. Fractions finer than milliseconds are cut off. A leap second counts as the
    /// second after it.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let shown = || text.chars().take(64).collect();
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| TimestampError::Syntax(shown()))?.to_utc();
        let is_leap_second = time.nanosecond() >= 1_000_000_000;
        if is_leap_second && (time.hour(), time.minute()) != (23, 59) {
            return Err(TimestampError::LeapSecond(shown()));
        }
        let millis = time.timestamp_millis();
        let is_valid = (Self::EPOCH.0..=Self::MAX.0).contains(&millis);
        if is_valid { Ok(Self(millis)) } else { Err(TimestampError::OutOfRange(shown())) }
    }

    /// Returns the instant this many milliseconds later (earlier if negative), clamped to the valid range.
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Returns the same instant as a `DateTime`, for calendar arithmetic.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or(DateTime::UNIX_EPOCH)
    }
}

/// The length of the longest form: `2026-01-31T09:30:00.250Z`.
const LONGEST: usize = 24;

impl Timestamp {
    /// Writes the text into `buffer`. Every response contains several timestamps, and this is faster than the
    /// formatter.
    fn write_into(self, buffer: &mut [u8; LONGEST]) -> &str {
        let utc = self.to_utc();
        let mut at = 0;
        let mut put = |value: u32, digits: usize, after: u8| {
            let mut rest = value;
            for place in (at..at + digits).rev() {
                buffer[place] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            buffer[at + digits] = after;
            at += digits + 1;
        };
        put(utc.year().unsigned_abs(), 4, b'-');
        put(utc.month(), 2, b'-');
        put(utc.day(), 2, b'T');
        put(utc.hour(), 2, b':');
        put(utc.minute(), 2, b':');
        match (self.0 % 1_000) as u32 {
            0 => put(utc.second(), 2, b'Z'),
            millis => {
                put(utc.second(), 2, b'.');
                put(millis, 3, b'Z');
            }
        }
        std::str::from_utf8(&buffer[..at]).unwrap_or_default()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.write_into(&mut [0; LONGEST]))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.write_into(&mut [0; LONGEST]))
    }
}

text! { Timestamp: deserialize; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_offset_is_parsed_and_printed_in_utc() {
        let t = Timestamp::parse("2026-01-01T01:00:00.250+01:00").unwrap();
        assert_eq!(t.to_string(), "2026-01-01T00:00:00.250Z");
        assert_eq!(Timestamp::parse("2026-01-01T00:00:00Z").unwrap().to_string(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn errors_name_the_reason() {
        for (text, reason) in [
            ("", "RFC 3339"),
            ("now", "RFC 3339"),
            ("2026-01-01", "RFC 3339"),
            ("2026-13-01T00:00:00Z", "RFC 3339"),
            ("2026-01-01T00:00:61Z", "RFC 3339"),
            ("1969-12-31T23:59:59Z", "1970 to 9999"),
            ("9999-12-31T23:59:59-01:00", "1970 to 9999"),
            ("2026-01-01T10:15:60Z", "23:59:60"),
            ("2016-12-31T23:59:60+01:00", "23:59:60"),
        ] {
            let error = Timestamp::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_leap_second_counts_as_the_second_after_it() {
        for text in ["2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00"] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), "2017-01-01T00:00:00Z");
        }
    }

    proptest::proptest! {
        #[test]
        fn formatting_matches_chrono_and_round_trips(ms in 0..=Timestamp::MAX.millis(), whole in proptest::bool::ANY) {
            let t = Timestamp::from_millis(if whole { ms / 1_000 * 1_000 } else { ms });
            let format = if t.millis() % 1_000 == 0 { chrono::SecondsFormat::Secs } else { chrono::SecondsFormat::Millis };
            proptest::prop_assert_eq!(t.to_string(), t.to_utc().to_rfc3339_opts(format, true));
            proptest::prop_assert_eq!(Timestamp::parse(&t.to_string()), Ok(t));
        }
    }
}
