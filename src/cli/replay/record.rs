//! The result of parsing a line of a log: an increment, or a reason for skipping the line.

use std::borrow::Cow;
use std::fmt;

use crate::board::{Amount, AmountError, Decimals, Timestamp};

/// An increment from a log. The server checks its range and precision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record<'l> {
    pub subject: Cow<'l, str>,
    /// A JSON number as written, never converted to a float. If absent, one.
    pub amount: Option<Cow<'l, str>>,
    /// The key of the ranking.
    pub by: Option<Cow<'l, str>>,
    /// A value to count, or the text of a number.
    pub value: Option<Cow<'l, str>>,
    /// The time when it happened. If absent, the time of its arrival.
    pub at: Option<Timestamp>,
    pub id: Option<Cow<'l, str>>,
}

/// The reason why a line is not posted. Ordered as in the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    Blank,
    LineTooLong,
    NotUtf8,
    NotAccessLog,
    NoRequest,
    NotJson,
    FieldCount,
    NoSubject,
    NoTime,
    BadTime,
    NoAmount,
    BadAmount,
    NoKey,
    NoValue,
    NoId,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Skip::Blank => "blank line",
            Skip::LineTooLong => "line longer than 1 MiB",
            Skip::NotUtf8 => "field is not UTF-8",
            Skip::NotAccessLog => "not an access-log line",
            Skip::NoRequest => "request has no method and path",
            Skip::NotJson => "not a JSON object",
            Skip::FieldCount => "number of fields differs from the header",
            Skip::NoSubject => "no subject",
            Skip::NoTime => "no time",
            Skip::BadTime => "time cannot be parsed",
            Skip::NoAmount => "no amount",
            Skip::BadAmount => "amount is not a number",
            Skip::NoKey => "no key of a ranking",
            Skip::NoValue => "no value",
            Skip::NoId => "no id",
        })
    }
}

/// Returns the text if it is a JSON number.
pub fn amount(text: Cow<'_, str>) -> Result<Cow<'_, str>, Skip> {
    match Amount::parse(&text, Decimals::default()) {
        Err(AmountError::NotANumber { .. }) => Err(Skip::BadAmount),
        // Whether a more precise or larger number fits is decided by the board.
        Ok(_) | Err(_) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_json_numbers_and_kept_unchanged() {
        for good in ["1", "-3", "2.55", "1e400", "0.000000000001", "99999999999999999999"] {
            assert_eq!(amount(good.into()).unwrap(), good);
        }
        for bad in ["", " 1", "+1", ".5", "1,5", "NaN", "0x10", "1 2", "--1", "1e", "\"1\""] {
            assert_eq!(amount(bad.into()), Err(Skip::BadAmount), "{bad}");
        }
    }
}
