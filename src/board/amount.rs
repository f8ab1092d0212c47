//! Exact amounts: integers scaled by the board's decimals, parsed from text and never through a float.

use std::fmt;

use serde::{Serialize, Serializer};

use super::Weight;

/// The largest magnitude that a sorted-set score, a Lua number and a JSON reader all hold exactly: 2^53 − 1.
pub const EXACT_MAX: i64 = (1 << 53) - 1;

/// The digits of a number are below this, so that they can be multiplied by every weight. A number with more digits is out
/// of range, or has more decimals than a board keeps, whatever the weight. (A product such as 5^33 x 2^33 is refused too.)
const MAX_MANTISSA: u128 = 10_u128.pow(22);

/// The number of digits after the decimal point that a board keeps: 0 to 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimals(u8);

/// An amount in the board's smallest unit: with 2 decimals, 1.50 is 150.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(pub i64);

/// A score to display: units and the number of decimals. Serializes as an exact JSON number, which is an integer where
/// the board has no decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// The score in the board's smallest unit.
    pub units: i64,
    /// The board's decimals.
    pub decimals: Decimals,
}

/// The reason why a text is not an [`Amount`] of a board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// The text is not a JSON number.
    #[error("'{text}' is not a number")]
    NotANumber { text: String },
    /// The number has more decimals than the board keeps.
    #[error("'{text}' has more decimals than the {decimals} this board keeps")]
    Precision { text: String, decimals: u8 },
    /// The number is beyond ±(2^53 − 1) units.
    #[error("'{text}' is beyond what a board with {decimals} decimals holds exactly")]
    Range { text: String, decimals: u8 },
}

impl AmountError {
    /// Returns the error that a computed amount is out of range.
    pub(super) fn out_of_range(amount: Score) -> Self {
        AmountError::Range { text: amount.to_string(), decimals: amount.decimals.0 }
    }
}

impl Decimals {
    /// The largest number of decimals that a board can keep.
    pub const MAX: u8 = 9;

    /// No decimals: amounts are whole numbers.
    pub const NONE: Self = Self(0);

    /// Returns `None` above [`MAX`](Self::MAX).
    pub const fn new(digits: u8) -> Option<Self> {
        if digits <= Self::MAX { Some(Self(digits)) } else { None }
    }

    /// Returns the number of digits after the decimal point.
    pub const fn digits(self) -> u8 {
        self.0
    }

    /// Returns the number of units in one whole.
    const fn scale(self) -> u64 {
        10u64.pow(self.0 as u32)
    }
}

impl Amount {
    /// Returns one whole, the default amount of an increment.
    pub const fn one(decimals: Decimals) -> Self {
        Self(decimals.scale() as i64)
    }

    /// Parses a JSON number (`-12`, `166.6`, `1.5e3`) exactly.
    pub fn parse(text: &str, decimals: Decimals) -> Result<Self, AmountError> {
        Self::parse_times(text, Weight::ONE, decimals)
    }

    /// Parses a JSON number and multiplies it by a weight, exactly.
    pub fn parse_times(text: &str, weight: Weight, decimals: Decimals) -> Result<Self, AmountError> {
        let shown = || {
            let text: String = text.chars().take(40).collect();
            if weight == Weight::ONE { text } else { format!("{text} * {}", weight.number()) }
        };
        let not_a_number = || AmountError::NotANumber { text: text.chars().take(40).collect() };
        let precision = || AmountError::Precision { text: shown(), decimals: decimals.0 };
        let range = || AmountError::Range { text: shown(), decimals: decimals.0 };

        let (negative, body) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match body.find(['e', 'E']) {
            Some(at) => (&body[..at], parse_exponent(&body[at + 1..]).ok_or_else(not_a_number)?),
            None => (body, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return Err(not_a_number()),
            Some((whole, fraction)) => (whole, fraction),
            None => (mantissa, ""),
        };
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || leading_zero || !digits(whole) || !digits(fraction) {
            return Err(not_a_number());
        }

        // value = mantissa x 10^shift units. Trailing zeros carry no precision, so they are dropped first.
        let significant = whole.len() + fraction.len()
            - fraction.bytes().rev().chain(whole.bytes().rev()).take_while(|b| *b == b'0').count();
        if significant == 0 {
            return Ok(Self(0));
        }
        let Score { units: factor, decimals: of_factor } = weight.number();
        let mut shift = whole.len() as i64 - significant as i64 + exponent;
        shift += i64::from(decimals.0) - i64::from(of_factor.0);
        let mut digits = whole.bytes().chain(fraction.bytes()).take(significant);
        let is_short = significant <= 16 && (0..=16).contains(&shift);
        if is_short && weight == Weight::ONE {
            // Most numbers: below 10^16, without a weight.
            let units = digits.fold(0_i64, |all, b| all * 10 + i64::from(b - b'0'));
            let units = units.checked_mul(10_i64.pow(shift as u32)).filter(|units| *units <= EXACT_MAX);
            return units.map(|units| Self(if negative { -units } else { units })).ok_or_else(range);
        }
        let mantissa =
            digits.try_fold(0, |all, b| Some(all * 10 + u128::from(b - b'0')).filter(|all| *all < MAX_MANTISSA));
        let Some(mantissa) = mantissa else { return Err(if shift < 0 { precision() } else { range() }) };
        let mut units = mantissa * u128::from(factor.unsigned_abs());
        while shift < 0 && units.is_multiple_of(10) {
            (units, shift) = (units / 10, shift + 1);
        }
        if shift < 0 {
            return Err(precision());
        }
        let scale = 10_u128.checked_pow(shift.min(40) as u32);
        let units = scale.and_then(|scale| units.checked_mul(scale)).and_then(|units| i64::try_from(units).ok());
        let units = units.filter(|units| *units <= EXACT_MAX).ok_or_else(range)?;
        Ok(Self(if negative == (factor < 0) { units } else { -units }))
    }
}

/// Parses an exponent. Saturates far beyond any exponent that matters, so that `1e99999999999` is reported as out of
/// range and does not panic.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

impl Score {
    /// Parses a JSON number, with the fewest decimals. Returns `None` if it is not a number, or not exact with 9 decimals.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parsed = |decimals| Some(Self { units: Amount::parse(text, decimals).ok()?.0, decimals });
        (0..=Decimals::MAX).filter_map(Decimals::new).find_map(parsed)
    }

    /// Returns whether [`Display`](fmt::Display) prints an integer.
    pub fn is_integer(self) -> bool {
        self.units.unsigned_abs().is_multiple_of(self.decimals.scale())
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = self.decimals.scale();
        let magnitude = self.units.unsigned_abs();
        let sign = if self.units < 0 { "-" } else { "" };
        let (whole, part) = (magnitude / scale, magnitude % scale);
        if part == 0 {
            return write!(f, "{sign}{whole}");
        }
        let fraction = format!("{part:0width$}", width = usize::from(self.decimals.0));
        write!(f, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.decimals.0 == 0 {
            return serializer.serialize_i64(self.units);
        }
        // A raw JSON number: a conversion to float could print a number next to the exact one.
        serde_json::value::RawValue::from_string(self.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn d(digits: u8) -> Decimals {
        Decimals::new(digits).unwrap()
    }

    #[test]
    fn amounts_are_parsed_exactly() {
        for (text, digits, units) in [
            ("1", 0, 1),
            ("-1", 0, -1),
            ("0", 0, 0),
            ("-0", 2, 0),
            ("0.00", 0, 0),
            ("166.6", 2, 16_660),
            ("166.60000", 2, 16_660),
            ("1e3", 0, 1_000),
            ("1.5E+3", 0, 1_500),
            ("1500e-2", 0, 15),
            ("0.1", 1, 1),
            ("9007199254740991", 0, EXACT_MAX),
            ("90071992547409.91", 2, EXACT_MAX),
            ("0e999999999999999999999", 0, 0),
        ] {
            assert_eq!(Amount::parse(text, d(digits)), Ok(Amount(units)), "{text}");
        }
    }

    #[test]
    fn invalid_imprecise_and_large_amounts_are_refused() {
        for text in
            ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "NaN", "Infinity", "0x1", "1_000", " 1", "\"1\"", "true"]
        {
            assert!(matches!(Amount::parse(text, d(2)), Err(AmountError::NotANumber { .. })), "{text}");
        }
        for (text, digits) in [("0.5", 0), ("1.234", 2), ("1e-3", 2), ("1e-999999999999", 9)] {
            assert!(matches!(Amount::parse(text, d(digits)), Err(AmountError::Precision { .. })), "{text}");
        }
        for (text, digits) in
            [("9007199254740992", 0), ("1e16", 0), ("90071992547409.92", 2), ("1e99999999999999999999", 0)]
        {
            assert!(matches!(Amount::parse(text, d(digits)), Err(AmountError::Range { .. })), "{text}");
        }
    }

    #[test]
    fn amounts_are_multiplied_exactly() {
        let weight = |text: &str| match text.strip_prefix('-') {
            Some(text) => -Weight::parse(text).unwrap(),
            None => Weight::parse(text).unwrap(),
        };
        for (text, by, digits, units) in [
            ("19.99", "0.1", 3, 1_999),
            ("0.25", "4", 0, 1),
            ("-2.5", "-0.4", 0, 1),
            ("3", "-2", 2, -600),
            ("1e20", "0.000000001", 0, 100_000_000_000),
            ("9007199254740991000000000", "0.000000001", 0, EXACT_MAX),
            ("0.000000001", "9007199254740991", 9, EXACT_MAX),
            ("0", "0.5", 0, 0),
        ] {
            assert_eq!(Amount::parse_times(text, weight(by), d(digits)), Ok(Amount(units)), "{text} * {by}");
        }
        for (text, by, digits, error) in [
            ("19.99", "0.1", 2, "'19.99 * 0.1' has more decimals than the 2 this board keeps"),
            ("1", "0.5", 0, "'1 * 0.5' has more decimals than the 0 this board keeps"),
            ("9007199254740991", "2", 0, "'9007199254740991 * 2' is beyond what a board with 0 decimals holds exactly"),
            ("1e99", "-2", 0, "'1e99 * -2' is beyond what a board with 0 decimals holds exactly"),
            ("x", "2", 0, "'x' is not a number"),
        ] {
            let found = Amount::parse_times(text, weight(by), d(digits)).unwrap_err();
            assert_eq!(found.to_string(), error);
        }
    }

    proptest! {
        /// Against integers of any size: a product is exact or refused.
        #[test]
        fn products_are_exact(a in -EXACT_MAX..=EXACT_MAX, of in 0u8..=9, b in 1..=EXACT_MAX, by in 0u8..=9, digits in 0u8..=9) {
            let shown = Score { units: a, decimals: d(of) }.to_string();
            let weight = Weight::parse(&Score { units: b, decimals: d(by) }.to_string()).unwrap();
            let (product, unit) = (i128::from(a) * i128::from(b), 10_i128.pow(u32::from(of + by)));
            // In units of the board: product x 10^digits / unit. The first factor is below 2^106, the second 2^30.
            let scaled = product.checked_mul(10_i128.pow(u32::from(digits)));
            let expected = scaled.filter(|scaled| scaled % unit == 0).map(|scaled| scaled / unit);
            let expected = expected.filter(|units| units.unsigned_abs() <= EXACT_MAX as u128);
            let found = Amount::parse_times(&shown, weight, d(digits)).ok().map(|Amount(units)| i128::from(units));
            prop_assert!(scaled.is_none() || found == expected, "{shown} * {}: {found:?}, {expected:?}", weight.number());
        }

        #[test]
        fn displayed_amounts_round_trip(units in -EXACT_MAX..=EXACT_MAX, digits in 0u8..=9) {
            let shown = Score { units, decimals: d(digits) };
            prop_assert_eq!(Amount::parse(&shown.to_string(), d(digits)), Ok(Amount(units)));
            prop_assert_eq!(serde_json::to_string(&shown).unwrap(), shown.to_string());
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "[-+0-9.eE]{0,12}", digits in 0u8..=9) {
            if let Ok(Amount(units)) = Amount::parse(&text, d(digits)) {
                let float: f64 = text.parse().unwrap();
                prop_assert!((float * 10f64.powi(i32::from(digits)) - units as f64).abs() <= 1.0);
            }
        }
    }
}
