//! Numbers of scripts and of the server. Both compute with floats, which are exact up to ±(2^53 − 1).

use crate::board::{Amount, EXACT_MAX};

/// Returns whether scripts compute with the number exactly.
pub(super) fn is_exact(number: i64) -> bool {
    number.unsigned_abs() <= EXACT_MAX.unsigned_abs()
}

/// Returns the number for a script. A number that is not exact there is out of range of every slot. It becomes one that
/// is out of range whatever the slot holds.
pub(super) fn exact_or_refused(number: i64) -> i64 {
    if is_exact(number) { number } else { 2 * (EXACT_MAX + 1) * number.signum() }
}

/// Reads an amount. Scores are whole numbers, but newer servers print large ones as `1e+15`.
pub(super) fn read_amount(text: &[u8]) -> Option<Amount> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(units) = text.parse() {
        return Some(Amount(units));
    }
    let float: f64 = text.parse().ok()?;
    (float.fract() == 0.0 && float.abs() <= EXACT_MAX as f64).then_some(Amount(float as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly_in_every_notation() {
        for (text, units) in [
            ("17", 17),
            ("-3", -3),
            ("9007199254740991", EXACT_MAX),
            ("-9007199254740991", -EXACT_MAX),
            ("1e+15", 1_000_000_000_000_000),
            ("1.5e+3", 1_500),
            ("-0", 0),
        ] {
            assert_eq!(read_amount(text.as_bytes()), Some(Amount(units)), "{text}");
        }
        for bad in ["", "1.5", "nan", "inf", "1e+16", "x"] {
            assert_eq!(read_amount(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(read_amount(&[0xff]), None);
    }

    #[test]
    fn numbers_that_are_not_exact_stay_out_of_range() {
        for number in [0, -7, EXACT_MAX, -EXACT_MAX] {
            assert_eq!(exact_or_refused(number), number);
        }
        for number in [EXACT_MAX + 1, i64::MAX, i64::MIN] {
            let refused = exact_or_refused(number);
            assert!(refused.unsigned_abs() > 2 * EXACT_MAX.unsigned_abs() && refused.signum() == number.signum());
        }
    }
}
