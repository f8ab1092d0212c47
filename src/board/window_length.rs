//! The length of a metric's window: a duration, or all time.

use std::fmt;
use std::str::FromStr;

use super::{Span, SpanError, Timestamp};

/// The length of a metric's window. Parses and prints as `24h` or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowLength {
    /// Everything counts, however old. Nothing expires.
    All,
    /// What is older expires.
    Span(Span),
}

impl WindowLength {
    /// Returns the duration, or `None` if everything counts.
    pub fn span(self) -> Option<Span> {
        match self {
            WindowLength::All => None,
            WindowLength::Span(span) => Some(span),
        }
    }

    /// Returns whether two lengths are the same, however they are written: `60m` and `1h`.
    pub fn is_as_long_as(self, other: WindowLength) -> bool {
        match (self, other) {
            (WindowLength::All, WindowLength::All) => true,
            (WindowLength::Span(a), WindowLength::Span(b)) => a.is_as_long_as(b),
            _ => false,
        }
    }

    /// Returns the nominal length in milliseconds, as [`Span::approximate_millis`] does. All time is as long as the
    /// whole range of [`Timestamp`].
    pub fn approximate_millis(self) -> i64 {
        self.span().map_or(Timestamp::MAX.millis(), Span::approximate_millis)
    }
}

impl From<Span> for WindowLength {
    fn from(span: Span) -> Self {
        WindowLength::Span(span)
    }
}

impl FromStr for WindowLength {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        if text.eq_ignore_ascii_case("all") { Ok(WindowLength::All) } else { text.parse().map(WindowLength::Span) }
    }
}

impl fmt::Display for WindowLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowLength::All => f.write_str("all"),
            WindowLength::Span(span) => span.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_round_trip() {
        for (text, canonical) in [("all", "all"), ("ALL", "all"), ("24h", "24h"), ("1y", "1y")] {
            let length: WindowLength = text.parse().unwrap();
            assert_eq!(length.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(length));
        }
        assert!("every".parse::<WindowLength>().is_err());
    }

    #[test]
    fn all_time_is_as_long_as_itself_only() {
        let length = |text: &str| text.parse::<WindowLength>().unwrap();
        assert!(length("60m").is_as_long_as(length("1h")) && length("12mo").is_as_long_as(length("1y")));
        assert!(length("all").is_as_long_as(length("all")));
        assert!(!length("all").is_as_long_as(length("4294967295w")));
        assert_eq!(length("all").approximate_millis(), Timestamp::MAX.millis());
    }
}
