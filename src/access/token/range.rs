//! Ranges of numbers, compared exactly as decimals.

use std::cmp::Ordering;
use std::fmt;

use serde_json::value::RawValue;

use super::members::Scalar;
use crate::board::{canonical_number, compare_numbers};

/// The longest text of a number, in bytes. Numbers that are accepted are compared and written again.
const LONGEST: usize = 64;

/// A range of numbers; both ends belong to it. The ends are canonical texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    from: Box<str>,
    to: Box<str>,
}

impl Range {
    /// Reads a range: a list of the smallest and the largest number.
    pub(super) fn read(raw: &RawValue) -> Option<Self> {
        let [from, to] = serde_json::from_str::<[&RawValue; 2]>(raw.get()).ok()?;
        let (from, to) = (number(from)?, number(to)?);
        (compare_numbers(&from, &to)? != Ordering::Greater).then_some(Self { from, to })
    }

    /// Returns the canonical text of a number if it is in the range. `5`, `5.0` and `50e-1` have the same text, so that
    /// a field which is free in a range has no more texts than numbers.
    pub(super) fn admit(&self, raw: &RawValue) -> Option<Box<str>> {
        let number = number(raw)?;
        let is_within = compare_numbers(&self.from, &number)? != Ordering::Greater
            && compare_numbers(&number, &self.to)? != Ordering::Greater;
        is_within.then_some(number)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.from, self.to)
    }
}

/// Returns the canonical text of a value that is a number.
fn number(raw: &RawValue) -> Option<Box<str>> {
    match Scalar::read(raw)? {
        Scalar::Number(text) if text.len() <= LONGEST => canonical_number(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        let range = Range::read(raw("[-1.5, 5]")).unwrap();
        assert_eq!(range.to_string(), "-1.5 to 5");
        for (number, admitted) in [
            ("5", Some("5")),
            ("5.0", Some("5")),
            ("50e-1", Some("5")),
            ("-1.50", Some("-1.5")),
            ("-0", Some("0")),
            ("0.1", Some("0.1")),
            ("5.0000000000000000000000000001", None),
            ("-1.5000000000000000000000000001", None),
            ("-1000000", None),
            ("1e400", None),
            ("1e-400", None),
            ("\"3\"", None),
            ("true", None),
            ("[3]", None),
        ] {
            assert_eq!(range.admit(raw(number)).as_deref(), admitted, "{number}");
        }
        let long = format!("1.{}", "0".repeat(70));
        assert_eq!(range.admit(raw(&long)), None);
    }

    #[test]
    fn a_range_has_two_numbers_in_order() {
        for wrong in ["[5, 1]", "[1]", "[1, 2, 3]", "[\"1\", 2]", "[null, 1]", "1", "{}", "[1, 1e999]"] {
            assert_eq!(Range::read(raw(wrong)), None, "{wrong}");
        }
        assert!(Range::read(raw("[1, 1.0]")).is_some());
    }
}
