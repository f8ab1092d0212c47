//! Durations as users write them: `90s`, `15m`, `24h`, `7d`, `2w`, `1mo`, `1y`.

use std::fmt;
use std::str::FromStr;

use super::Timestamp;
use super::spellings::spellings;
use super::text::text;

/// The unit a duration is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// A duration: a positive number of one [`Unit`]. The unit is kept, because `7d` and `1w` divide time at different
/// points although both are nominally 604,800 seconds long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    count: u32,
    unit: Unit,
}

/// The reason why a text is not a [`Span`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a duration: write a whole number from 1 and a unit, s, m, h, d, w, mo or y, such as 90s, 15m, 24h or 7d"
)]
pub struct SpanError {
    text: String,
}

spellings! {
    Unit { Second = "s", Minute = "m", Hour = "h", Day = "d", Week = "w", Month = "mo", Year = "y" }
    print suffix;
    parse of_suffix;
}

impl Unit {
    /// Returns the nominal length in seconds, or `None` for months and years, whose lengths differ by days.
    fn seconds(self) -> Option<u64> {
        match self {
            Unit::Second => Some(1),
            Unit::Minute => Some(60),
            Unit::Hour => Some(3_600),
            Unit::Day => Some(86_400),
            Unit::Week => Some(604_800),
            Unit::Month | Unit::Year => None,
        }
    }
}

impl Span {
    pub const HOUR: Span = Span { count: 1, unit: Unit::Hour };
    /// One calendar day.
    pub const DAY: Span = Span { count: 1, unit: Unit::Day };

    /// Creates a duration of `count` units. Returns `None` if `count` is zero.
    pub const fn new(count: u32, unit: Unit) -> Option<Self> {
        if count == 0 { None } else { Some(Self { count, unit }) }
    }

    /// Returns the duration of this many milliseconds, rounded up to a second, in the largest unit up to days of which
    /// it is a whole number. One day is written as 24 hours.
    pub fn of_millis(millis: i64) -> Self {
        let seconds = u64::try_from(millis).unwrap_or(0).div_ceil(1_000).max(1);
        let whole = |unit: Unit| {
            let count =
                unit.seconds().filter(|length| seconds.is_multiple_of(*length)).map(|length| seconds / length)?;
            Span::new(u32::try_from(count).ok()?, unit)
        };
        let units = [Unit::Day, Unit::Hour, Unit::Minute, Unit::Second];
        let mut spans = units.into_iter().filter_map(whole).filter(|span| *span != Span::DAY);
        spans.next().unwrap_or(Span { count: u32::MAX, unit: Unit::Second })
    }

    /// Returns the number of units.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Returns the unit as written.
    pub const fn unit(self) -> Unit {
        self.unit
    }

    /// Returns the nominal length in seconds (a day has 86,400), or `None` for months and years.
    pub fn seconds(self) -> Option<u64> {
        self.unit.seconds().map(|unit| unit * u64::from(self.count))
    }

    /// Returns the number of months, if the length is a number of months or years.
    pub fn months(self) -> Option<u64> {
        match self.unit {
            Unit::Month => Some(u64::from(self.count)),
            Unit::Year => Some(12 * u64::from(self.count)),
            Unit::Second | Unit::Minute | Unit::Hour | Unit::Day | Unit::Week => None,
        }
    }

    /// Returns whether it is a day or longer, so that it is divided by the calendar.
    pub fn is_a_day_or_longer(self) -> bool {
        self.seconds().is_none_or(|seconds| seconds >= 86_400)
    }

    /// Returns whether two spans have the same length, however they are written: `60m` and `1h`, `12mo` and `1y`. A
    /// span in months or years has the same length only as a span of the same number of months.
    pub fn is_as_long_as(self, other: Span) -> bool {
        self.seconds() == other.seconds() && self.months() == other.months()
    }

    /// Returns the nominal length in milliseconds. A month counts as 31 days and a year as 366, so use this for
    /// horizons and timeouts, never for slots.
    ///
    /// The result is at most the whole range of [`Timestamp`], some 8,000 years, so that adding it to an instant cannot
    /// overflow.
    pub fn approximate_millis(self) -> i64 {
        let days = match self.unit {
            Unit::Year => 366,
            _ => 31,
        };
        let seconds = self.seconds().unwrap_or(u64::from(self.count) * days * 86_400);
        i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000).min(Timestamp::MAX.millis())
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let error = || SpanError { text: text.chars().take(64).collect() };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, suffix) = text.split_at(digits);
        let unit = Unit::of_suffix(suffix).ok_or_else(error)?;
        if number.starts_with('0') {
            return Err(error());
        }
        let count = number.parse().map_err(|_| error())?;
        Span::new(count, unit).ok_or_else(error)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.count, self.unit.suffix())
    }
}

text! { Span: serialize_displayed, deserialize_from_str; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_written_in_their_largest_unit() {
        for (text, written) in [
            ("90s", "90s"),
            ("120s", "2m"),
            ("135m", "135m"),
            ("24h", "24h"),
            ("48h", "2d"),
            ("36h", "36h"),
            ("1w", "7d"),
            ("1d", "24h"),
        ] {
            let millis = text.parse::<Span>().unwrap().approximate_millis();
            assert_eq!(Span::of_millis(millis).to_string(), written);
        }
        assert_eq!(Span::of_millis(1_001).to_string(), "2s");
        assert_eq!([i64::MIN, 0, 1].map(|millis| Span::of_millis(millis).to_string()), ["1s", "1s", "1s"]);
        Span::of_millis(i64::MAX);
    }

    #[test]
    fn every_unit_round_trips() {
        for text in ["1s", "90s", "15m", "24h", "7d", "2w", "1mo", "1y", "4294967295s"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_spans_are_refused() {
        for text in ["", "h", "0h", "01h", "-1h", "1.5h", "1 h", "1H", "1ms", "h1", "4294967296s", "1hh", "१h", "1yr"]
        {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_week_and_seven_days_have_equal_length_but_differ() {
        let (week, days): (Span, Span) = ("1w".parse().unwrap(), "7d".parse().unwrap());
        assert_eq!(week.seconds(), days.seconds());
        assert_ne!(week, days);
        assert_eq!("1mo".parse::<Span>().unwrap().seconds(), None);
    }

    #[test]
    fn a_year_has_twelve_months() {
        let span = |text: &str| text.parse::<Span>().unwrap();
        assert!(span("1y").is_as_long_as(span("12mo")) && !span("1y").is_as_long_as(span("365d")));
        assert!(!span("1y").is_as_long_as(span("1mo")));
        assert_eq!((span("2y").months(), span("2y").seconds(), span("24h").months()), (Some(24), None, None));
    }

    #[test]
    fn span_lengths_are_limited_to_the_time_range() {
        let millis = |text: &str| text.parse::<Span>().unwrap().approximate_millis();
        assert_eq!((millis("90s"), millis("1mo"), millis("1y")), (90_000, 31 * 86_400_000, 366 * 86_400_000));
        for text in ["4294967295y", "4294967295mo", "4294967295w", "4294967295d", "4294967295h", "100000mo"] {
            assert_eq!(millis(text), Timestamp::MAX.millis(), "{text}");
        }
        assert_eq!(millis("4294967295s"), 4_294_967_295_000);
    }
}
