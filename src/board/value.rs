//! What a metric says about one subject: an exact number, or a mean.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use super::{Amount, Decimals, Score};

/// A subject's score, or the value of a window.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// In the board's smallest unit: every metric but `AVG`.
    Exact(Amount),
    /// In the board's smallest unit, but not whole: a mean (the correctly rounded quotient of two integers, so that
    /// every store has the same), or a count whose oldest slot is weighted. Finite, and never −0.
    Real(f64),
}

impl Value {
    /// What additive metrics say of a subject nobody has counted.
    pub const ZERO: Self = Value::Exact(Amount(0));

    /// The mean of so many amounts; `None` of none.
    pub fn mean(sum: i64, count: i64) -> Option<Self> {
        // Adding 0.0 turns −0 into 0.
        (count > 0).then(|| Value::Real(sum as f64 / count as f64 + 0.0))
    }

    /// The value as a float: exact, for amounts stay within ±(2^53 − 1).
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Exact(amount) => amount.0 as f64,
            Value::Real(real) => real,
        }
    }

    /// The value with its point set, as answers show it.
    pub fn shown(self, decimals: Decimals) -> Shown {
        Shown { value: self, decimals }
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
    /// What is equal has the same float.
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

/// A value to be shown. Serialises as a JSON number: exact where the value is, else the shortest that reads back.
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

/// The shortest decimal text of `units`, divided by 10^`digits` by moving its point: a division would round again.
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
    fn the_point_moves_and_nothing_is_rounded_twice() {
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
    fn means_of_nothing_are_nothing_and_zero_has_no_sign() {
        assert_eq!(Value::mean(0, 0), None);
        assert_eq!(Value::mean(5, -1), None);
        assert_eq!(Value::mean(0, 3).unwrap().shown(Decimals::default()).to_string(), "0");
        assert_eq!(Value::mean(4, 2), Some(Value::Real(2.0)));
        assert!(Value::Real(-0.5) < Value::Real(0.25) && Value::Real(2.0) == Value::Exact(Amount(2)));
    }
}
