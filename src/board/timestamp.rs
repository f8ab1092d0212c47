//! Timestamps: instants in whole milliseconds since the Unix epoch.

use std::fmt;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant in milliseconds since 1970-01-01T00:00:00Z, between the years 1970 and 9999.
///
/// Parsed and written as RFC 3339 in UTC, with milliseconds only where they are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The reason why a text is not a [`Timestamp`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a time as RFC 3339 writes it, such as 2026-01-31T09:30:00Z, between the years 1970 and 9999")]
pub struct TimestampError {
    text: String,
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

    /// Parses RFC 3339 with any offset. Fractions finer than milliseconds are cut off.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let error = || TimestampError { text: text.chars().take(64).collect() };
        let millis = DateTime::parse_from_rfc3339(text).map_err(|_| error())?.timestamp_millis();
        if (Self::EPOCH.0..=Self::MAX.0).contains(&millis) { Ok(Self(millis)) } else { Err(error()) }
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

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_any_offset_and_writes_utc() {
        let t = Timestamp::parse("2026-01-01T01:00:00.250+01:00").unwrap();
        assert_eq!(t.to_string(), "2026-01-01T00:00:00.250Z");
        assert_eq!(Timestamp::parse("2026-01-01T00:00:00Z").unwrap().to_string(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn refuses_what_is_no_time_or_out_of_range() {
        for text in ["", "now", "2026-01-01", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn is_written_as_chrono_writes_it_and_reads_back(ms in 0..=Timestamp::MAX.millis(), whole in proptest::bool::ANY) {
            let t = Timestamp::from_millis(if whole { ms / 1_000 * 1_000 } else { ms });
            let format = if t.millis() % 1_000 == 0 { chrono::SecondsFormat::Secs } else { chrono::SecondsFormat::Millis };
            proptest::prop_assert_eq!(t.to_string(), t.to_utc().to_rfc3339_opts(format, true));
            proptest::prop_assert_eq!(Timestamp::parse(&t.to_string()), Ok(t));
        }
    }
}
