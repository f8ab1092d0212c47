//! The value of a metric for one subject: an exact number or a mean.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use super::{Amount, AmountError, Decimals, Kind, Scale, Score, Tie};

/// A subject's score, or the value of a window.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A whole number of the board's smallest unit: every metric except `AVG`.
    Exact(Amount),
    /// A number of the board's smallest unit that need not be whole: a mean, or a value whose oldest slot is weighted.
    /// A mean is the correctly rounded quotient of two integers, so that every store computes the same. Finite, and
    /// never −0.
    Real(f64),
}

impl Value {
    /// The value of an additive metric for a subject without data.
    pub const ZERO: Self = Value::Exact(Amount(0));

    /// Parses a JSON number as a score of this kind, in the unit in which responses show it.
    ///
    /// A mean may have more digits than the board has decimals, and is then the nearest number that is possible.
    pub fn parse(text: &str, kind: Kind, decimals: Decimals) -> Result<Self, AmountError> {
        if !kind.has_fractions() {
            return Amount::parse(text, decimals).map(Value::Exact);
        }
        let shown = || text.chars().take(40).collect::<String>();
        // One conversion of the digits as they are written, so that the result is the nearest number.
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let is_number = serde_json::from_str::<f64>(text).is_ok_and(f64::is_finite);
        let exponent = exponent.parse::<i32>().ok().filter(|_| is_number);
        let exponent = exponent.ok_or_else(|| AmountError::NotANumber { text: shown() })?;
        let units = format!("{mantissa}e{}", exponent.saturating_add(decimals.digits().into())).parse::<f64>();
        match units.ok().filter(|units| units.is_finite()) {
            // Adding 0.0 turns −0 into 0.
            Some(units) => Ok(Value::Real(units + 0.0)),
            None => Err(AmountError::Range { text: shown(), decimals: decimals.digits() }),
        }
    }

    /// Returns the mean of `count` amounts with this sum, or `None` if `count` is not positive.
    pub fn mean(sum: i64, count: i64) -> Option<Self> {
        // Adding 0.0 turns −0 into 0.
        (count > 0).then(|| Value::Real(sum as f64 / count as f64 + 0.0))
    }

    /// Returns the value as a float. The conversion is exact, because amounts stay within ±(2^53 − 1).
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Exact(amount) => amount.0 as f64,
            Value::Real(real) => real,
        }
    }

    /// Returns the value in the unit of its board, as responses show it: without a second key.
    pub fn shown(self, scale: impl Into<Scale>) -> Shown {
        let scale = scale.into();
        let value = match self {
            Value::Exact(number) => Value::Exact(scale.amount(number)),
            // There are no second keys where values are not whole.
            real @ Value::Real(_) => real,
        };
        Shown { value, decimals: scale.decimals }
    }

    /// Returns the value in units, without a second key.
    pub fn as_units(self, scale: Scale) -> f64 {
        match self {
            Value::Exact(number) => scale.amount(number).0 as f64,
            Value::Real(real) => real,
        }
    }

    /// Returns what orders the value among those with the same score, if its board has such.
    pub fn tie(self, scale: Scale) -> Option<Tie> {
        if let Value::Exact(number) = self { scale.tie(number) } else { None }
    }
}

impl From<Amount> for Value {
    fn from(amount: Amount) -> Self {
        Value::Exact(amount)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl Hash for Value {
    /// Hashes the value as a float: equal values have the same float.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_f64().to_bits().hash(state);
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Exact(a), Value::Exact(b)) => a.cmp(b),
            _ => self.as_f64().total_cmp(&other.as_f64()),
        }
    }
}

/// A value to display. Serializes as a JSON number: exact where the value is exact, otherwise the shortest text that
/// parses to the same float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    value: Value,
    decimals: Decimals,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Exact(amount) => Score { units: amount.0, decimals: self.decimals }.fmt(f),
            Value::Real(real) => f.write_str(&with_point_moved(real, usize::from(self.decimals.digits()))),
        }
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Exact(amount) => Score { units: amount.0, decimals: self.decimals }.serialize(serializer),
            Value::Real(_) => serde_json::value::RawValue::from_string(self.to_string())
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

/// Returns the shortest decimal text of `units` divided by 10^`digits`. The decimal point is moved in the text, because
/// a division would round a second time.
fn with_point_moved(units: f64, digits: usize) -> String {
    let text = units.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let padded = format!("{whole:0>width$}", width = digits + 1);
    let (whole, moved) = padded.split_at(padded.len() - digits);
    let fraction = format!("{moved}{fraction}");
    let fraction = fraction.trim_end_matches('0');
    let sign = if units < 0.0 { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read_as_they_are_shown() {
        let decimals = Decimals::new(1).unwrap();
        let mean = |text| Value::parse(text, Kind::Mean, decimals);
        assert_eq!(mean("4.55"), Ok(Value::Real(45.5)));
        assert_eq!(mean("-1e2"), Ok(Value::Real(-1000.0)));
        for wrong in ["", "x", "1e999", "1e", "NaN", "inf", "01", "1,2", "1e99999999999"] {
            assert!(mean(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Value::parse("1.5", Kind::Sum, decimals), Ok(Value::Exact(Amount(15))));
        assert!(Value::parse("1.55", Kind::Sum, decimals).is_err());
    }

    #[test]
    fn values_are_shown_with_decimals_without_double_rounding() {
        for (units, digits, shown) in [
            (16.66, 1, "1.666"),
            (0.5, 2, "0.005"),
            (-1500.0, 2, "-15"),
            (-0.25, 0, "-0.25"),
            (10.0 / 3.0, 0, "3.3333333333333335"),
            (10.0 / 3.0, 3, "0.0033333333333333335"),
            (1e15, 2, "10000000000000"),
        ] {
            let decimals = Decimals::new(digits).unwrap();
            assert_eq!(Value::Real(units).shown(decimals).to_string(), shown);
            assert_eq!(serde_json::to_string(&Value::Real(units).shown(decimals)).unwrap(), shown);
        }
        assert_eq!(Value::Exact(Amount(150)).shown(Decimals::new(2).unwrap()).to_string(), "1.5");
    }

    #[test]
    fn empty_means_are_none_and_zero_is_unsigned() {
        assert_eq!(Value::mean(0, 0), None);
        assert_eq!(Value::mean(5, -1), None);
        assert_eq!(Value::mean(0, 3).unwrap().shown(Decimals::default()).to_string(), "0");
        assert_eq!(Value::mean(4, 2), Some(Value::Real(2.0)));
        assert!(Value::Real(-0.5) < Value::Real(0.25) && Value::Real(2.0) == Value::Exact(Amount(2)));
    }
}
