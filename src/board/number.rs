//! Exact comparison of decimal texts. Through floats, 9007199254740993 and 9007199254740992 would be equal.

use std::cmp::Ordering;

/// The longest number that is printed without an exponent, in characters.
const MAX_PLAIN: i64 = 40;

/// The exact value of a decimal text: 0.d₁d₂d₃… x 10^`point`, where the first and the last digit are not 0. Without
/// digits it is zero.
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    point: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (negative, body) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match body.find(['e', 'E']) {
            Some(at) => (&body[..at], exponent(&body[at + 1..])?),
            None => (body, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some((whole, fraction)) => (whole.as_bytes(), fraction.as_bytes()),
            None => (mantissa.as_bytes(), &b""[..]),
        };
        if whole.is_empty() || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
            return None;
        }
        let zeros = |digits: &[u8]| digits.iter().take_while(|d| **d == b'0').count();
        let zeros_behind = |digits: &[u8]| digits.iter().rev().take_while(|d| **d == b'0').count();

        let mut whole = &whole[zeros(whole)..];
        let mut fraction = &fraction[..fraction.len() - zeros_behind(fraction)];
        let mut point = whole.len() as i64 + exponent;
        if fraction.is_empty() {
            whole = &whole[..whole.len() - zeros_behind(whole)];
        }
        if whole.is_empty() {
            let leading = zeros(fraction);
            fraction = &fraction[leading..];
            point = exponent - leading as i64;
        }
        Some(Self { negative, whole, fraction, point })
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied()
    }

    fn sign(&self) -> i8 {
        match self {
            _ if self.is_zero() => 0,
            Decimal { negative: true, .. } => -1,
            _ => 1,
        }
    }
}

/// Parses an exponent. Saturates at ±10^18: no number of practical length needs a larger exponent.
fn exponent(text: &str) -> Option<i64> {
    const MAX: i64 = 1_000_000_000_000_000_000;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse().unwrap_or(MAX).min(MAX);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// Returns whether a text is a decimal number. O(length).
pub(super) fn is_number(text: &str) -> bool {
    Decimal::parse(text).is_some()
}

/// Compares two decimal texts. Returns `None` if one of them is not a number. O(length), no allocation.
pub(crate) fn compare(a: &str, b: &str) -> Option<Ordering> {
    let (a, b) = (Decimal::parse(a)?, Decimal::parse(b)?);
    let magnitudes = || a.point.cmp(&b.point).then_with(|| a.digits().cmp(b.digits()));
    Some(match a.sign().cmp(&b.sign()) {
        Ordering::Equal if a.is_zero() => Ordering::Equal,
        Ordering::Equal if a.negative => magnitudes().reverse(),
        Ordering::Equal => magnitudes(),
        unequal => unequal,
    })
}

/// Returns the canonical text of a number, however it was written: `1.50` and `15e-1` are both `1.5`. Returns `None` if
/// the text is not a number, or if the number is too large or too small for a float.
pub(crate) fn canonical(text: &str) -> Option<Box<str>> {
    let number = Decimal::parse(text)?;
    if number.is_zero() {
        return Some("0".into());
    }
    let float: f64 = text.parse().ok()?;
    if float == 0.0 || !float.is_finite() {
        return None;
    }
    let digits: String = number.digits().map(char::from).collect();
    let (count, point) = (digits.len() as i64, number.point);
    let sign = if number.negative { "-" } else { "" };
    let text = match point {
        _ if point <= 0 && count - point <= MAX_PLAIN => format!("{sign}0.{}{digits}", zeros(-point)),
        1.. if point < count && count <= MAX_PLAIN => {
            let (whole, fraction) = digits.split_at(point as usize);
            format!("{sign}{whole}.{fraction}")
        }
        1.. if point >= count && point <= MAX_PLAIN => format!("{sign}{digits}{}", zeros(point - count)),
        _ => format!("{sign}{digits}e{}", point - count),
    };
    Some(text.into())
}

/// Returns `count` zeros. The callers limit `count` to [`MAX_PLAIN`].
fn zeros(count: i64) -> String {
    "0".repeat(usize::try_from(count).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_compared_exactly() {
        for (a, b, order) in [
            ("1.0", "1", Ordering::Equal),
            ("0", "-0.00e5", Ordering::Equal),
            ("9007199254740993", "9007199254740992", Ordering::Greater),
            ("0.1", "0.10000000000000000000001", Ordering::Less),
            ("-2", "-10", Ordering::Greater),
            ("-1", "0", Ordering::Less),
            ("100", "99.99", Ordering::Greater),
            ("1e3", "1000.0", Ordering::Equal),
            ("12e-1", "1.2", Ordering::Equal),
            ("0.001e3", "1", Ordering::Equal),
            ("1e99999999999999999999", "2", Ordering::Greater),
            ("1e-99999999999999999999", "0", Ordering::Greater),
            ("-1e999", "1e-999", Ordering::Less),
        ] {
            assert_eq!(compare(a, b), Some(order), "{a} {b}");
            assert_eq!(compare(b, a), Some(order.reverse()), "{b} {a}");
        }
        for bad in ["", "-", ".5", "1.", "1e", "1e+", "x", "1x", "+1", "NaN", "1.2.3"] {
            assert_eq!((compare(bad, "1"), canonical(bad)), (None, None), "{bad}");
        }
    }

    #[test]
    fn each_number_has_one_canonical_text() {
        for (text, canon) in [
            ("007", "7"),
            ("1.50", "1.5"),
            ("15e-1", "1.5"),
            ("-0.0", "0"),
            ("1e3", "1000"),
            ("1.5E+3", "1500"),
            ("0.0001", "0.0001"),
            ("1e39", "1000000000000000000000000000000000000000"),
            ("1e40", "1e40"),
            ("-12.5e60", "-125e59"),
            ("1e-60", "1e-60"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(canon), "{text}");
            assert_eq!(canonical(canon).as_deref(), Some(canon), "{text}");
        }
        assert_eq!(
            (canonical("1e309"), canonical("1e-400"), canonical("1.2e-99999999999999999999")),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn agrees_with_integers(a in -1_000_000i64..1_000_000, b in -1_000_000i64..1_000_000, shift in 0i32..12) {
            let (left, right) = (format!("{a}e-{shift}"), format!("{b}e-{shift}"));
            prop_assert_eq!(compare(&left, &right), Some(a.cmp(&b)));
            prop_assert_eq!(compare(&canonical(&left).unwrap(), &left), Some(Ordering::Equal));
        }

        #[test]
        fn canonical_texts_are_equal_iff_the_numbers_are(
            a in "-?[0-9]{1,4}(\\.[0-9]{1,3})?(e-?[0-9]{1,2})?",
            b in "-?[0-9]{1,4}(\\.[0-9]{1,3})?(e-?[0-9]{1,2})?",
        ) {
            let same = canonical(&a) == canonical(&b);
            prop_assert_eq!(same, compare(&a, &b) == Some(Ordering::Equal));
        }
    }
}
