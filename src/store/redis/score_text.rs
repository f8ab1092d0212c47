//! Scores as text, as the ranking has them.

use crate::board::{Amount, EXACT_MAX, Kind, Value};

/// Returns the score as text for the ranking. Reading it back gives the same number.
pub(super) fn score_text(score: Option<Value>) -> String {
    match score {
        None => String::new(),
        Some(Value::Exact(Amount(units))) => units.to_string(),
        Some(Value::Real(real)) => format!("{real:e}"),
    }
}

/// Reads a score from the ranking. A fraction on a board of whole numbers is read too, because an audit must be able to
/// show it.
pub(super) fn read_score(text: &[u8], kind: Kind) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let real: f64 = text.parse().ok()?;
    let is_whole = real.fract() == 0.0 && real.abs() <= EXACT_MAX as f64;
    Some(match is_whole && !kind.has_fractions() {
        true => Value::Exact(Amount(text.parse().unwrap_or(real as i64))),
        // Adding 0.0 turns −0 into 0.
        false => Value::Real(real + 0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_round_trip() {
        for (text, kind, score) in [
            ("17", Kind::Sum, Some(Value::Exact(Amount(17)))),
            ("1e+15", Kind::Sum, Some(Value::Exact(Amount(1_000_000_000_000_000)))),
            ("1.5", Kind::Sum, Some(Value::Real(1.5))),
            ("3.3333333333333335", Kind::Mean, Value::mean(10, 3)),
            ("", Kind::Sum, None),
        ] {
            assert_eq!(read_score(text.as_bytes(), kind), score, "{text}");
        }
        for value in [Value::mean(10, 3), Value::mean(1, 7), Some(Value::Exact(Amount(-9)))] {
            let kind = if matches!(value, Some(Value::Real(_))) { Kind::Mean } else { Kind::Sum };
            assert_eq!(read_score(score_text(value).as_bytes(), kind), value);
        }
    }
}
