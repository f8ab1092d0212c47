//! Numbers exactly as the service writes them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A decimal number of any size, exactly: a score, an amount or a value.
///
/// It keeps the text of the number in JSON. To calculate with it, parse [`as_str`](Self::as_str) into the type of your
/// choice, such as an integer or that of a decimal library, or take the nearest `f64`.
#[derive(Clone)]
pub struct Decimal(Box<RawValue>);

/// The error of a text that is not a number of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotADecimal(String);

impl Decimal {
    /// Returns the text, such as `-2.50`.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the nearest `f64`, which is not the same number from 16 digits on.
    pub fn to_f64(&self) -> f64 {
        // What JSON takes for a number, Rust does too.
        self.as_str().parse().unwrap_or(f64::NAN)
    }

    fn of(raw: Box<RawValue>) -> Result<Self, NotADecimal> {
        // What is JSON and begins like a number is one.
        match raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            true => Ok(Self(raw)),
            false => Err(NotADecimal(raw.get().to_owned())),
        }
    }
}

impl FromStr for Decimal {
    type Err = NotADecimal;

    fn from_str(text: &str) -> Result<Self, NotADecimal> {
        let not = || NotADecimal(text.to_owned());
        // `from_string` would take white space around it.
        if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
            return Err(not());
        }
        RawValue::from_string(text.to_owned()).map_err(|_| not()).and_then(Self::of)
    }
}

macro_rules! from_integers {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Decimal {
            fn from(number: $kind) -> Self {
                // The text of an integer is JSON.
                Self(RawValue::from_string(number.to_string()).unwrap_or_default())
            }
        }
    )*};
}
from_integers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);

macro_rules! from_texts {
    ($($kind:ty),*) => {$(
        impl TryFrom<$kind> for Decimal {
            type Error = NotADecimal;

            fn try_from(text: $kind) -> Result<Self, NotADecimal> {
                text.parse()
            }
        }
    )*};
}
from_texts!(&str, String, &String);

macro_rules! from_floats {
    ($($kind:ty),*) => {$(
        /// Takes the shortest text that is this number: `0.1` for 0.1.
        impl TryFrom<$kind> for Decimal {
            type Error = NotADecimal;

            fn try_from(number: $kind) -> Result<Self, NotADecimal> {
                // JSON has no text for infinity, nor for what is no number.
                let text = number.is_finite().then(|| serde_json::to_string(&number).ok()).flatten();
                text.ok_or_else(|| NotADecimal(number.to_string()))?.parse()
            }
        }
    )*};
}
from_floats!(f32, f64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Compares the texts: `2.5` and `2.50` differ. The service writes equal numbers of a board alike.
impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Decimal {}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(Deserialize::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for NotADecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Cow<'_, str> = match self.0.char_indices().nth(40) {
            Some((end, _)) => format!("{}…", &self.0[..end]).into(),
            None => self.0.as_str().into(),
        };
        write!(f, "'{shown}' is not a decimal number, such as 19.99")
    }
}

impl std::error::Error for NotADecimal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_text() {
        let number: Decimal = serde_json::from_str("12345678901234567890.1234567890").unwrap();
        assert_eq!(number.to_string(), "12345678901234567890.1234567890");
        assert_eq!(serde_json::to_string(&number).unwrap(), number.as_str());
        assert_eq!(Decimal::from(-7).as_str(), "-7");
        assert_eq!(Decimal::from(u128::MAX).as_str(), "340282366920938463463374607431768211455");
        assert_eq!(
            (Decimal::try_from(0.1).unwrap().as_str(), Decimal::try_from(0.1_f32).unwrap().as_str()),
            ("0.1", "0.1")
        );
        assert_eq!(Decimal::try_from("19.990").unwrap().as_str(), "19.990");
        assert_eq!(Decimal::from(u64::MAX).to_f64(), u64::MAX as f64);
        assert_eq!(format!("{:>5}", Decimal::from(12)), "   12");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", " 1", "1 ", "1\n", "NaN", "inf", "\"1\"", "null", "[1]", "1.", ".5", "+1", "01", "0x1"] {
            assert!(text.parse::<Decimal>().is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<Decimal>("\"1\"").is_err());
        assert!(Decimal::try_from(f64::NAN).is_err() && Decimal::try_from(f32::NEG_INFINITY).is_err());
        let long = "é".repeat(100).parse::<Decimal>().unwrap_err();
        assert!(long.to_string().chars().count() < 100);
    }
}
