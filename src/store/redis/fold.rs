//! Computes the score and the total of a subject from its cells, as the scripts store them.

use redis::Value as Raw;

use super::reply;
use crate::board::{Aggregate, Amount, Board, EXACT_MAX, Kind, Sketch, Timestamp, Value};

/// The score and the total of one subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Folded {
    /// `None` if the subject is not ranked.
    pub score: Option<Value>,
    /// The total as it is stored, or `None` if the board stores none for the subject.
    pub total: Option<Vec<u8>>,
}

/// Returns whether scores are computed from totals that are stored beside the ranking.
pub(super) fn has_totals(kind: Kind) -> bool {
    !matches!(kind, Kind::Sum | Kind::Distinct)
}

/// Reads a cell. Returns `None` for a cell that the metric cannot have written. Such a cell does not count.
pub(super) fn read_cell(bytes: Vec<u8>, kind: Kind) -> Option<Aggregate> {
    let aggregate = reply::aggregate(&Raw::BulkString(bytes), kind).ok()??;
    let is_exact = |amount: i64| amount.unsigned_abs() <= EXACT_MAX.unsigned_abs();
    let is_sound = match &aggregate {
        Aggregate::Sum(amount) | Aggregate::Extreme(amount) => is_exact(amount.0),
        Aggregate::Mean { sum, count } => is_exact(sum.0) && is_exact(*count),
        Aggregate::Sketch(_) => true,
    };
    is_sound.then_some(aggregate)
}

/// Folds the cells of one subject, oldest first.
pub(super) fn fold(board: &Board, cells: &[(Timestamp, Aggregate)]) -> Folded {
    let kind = board.kind();
    let aggregates = || cells.iter().map(|(_, aggregate)| aggregate);
    match kind {
        Kind::Sum | Kind::Distinct => {
            let (sum, _) = add_up(aggregates());
            let score = Some(Value::Exact(Amount(sum)));
            Folded { score: score.filter(|_| sum != 0), total: None }
        }
        Kind::Mean => {
            let (sum, count) = add_up(aggregates());
            let is_ranked = count >= board.min_samples() && count > 0;
            let score = if is_ranked { Value::mean(sum, count) } else { None };
            let total = (sum != 0 || count != 0).then(|| format!("{sum},{count}").into_bytes());
            Folded { score, total }
        }
        Kind::Min | Kind::Max => {
            let stairs = staircase(kind, cells);
            let score = stairs.first().map(|(_, extreme)| Value::Exact(Amount(*extreme)));
            let total = stairs.iter().flat_map(|(start, extreme)| {
                let doubles = [start.millis() as f64, *extreme as f64];
                doubles.into_iter().flat_map(f64::to_be_bytes)
            });
            Folded { score, total: Some(total.collect()).filter(|total: &Vec<u8>| !total.is_empty()) }
        }
        Kind::Sketch => {
            let mut merged = Sketch::default();
            for aggregate in aggregates() {
                if let Aggregate::Sketch(sketch) = aggregate {
                    merged.merge(sketch);
                }
            }
            let estimate = merged.estimate();
            let score = (estimate != 0).then_some(Value::Exact(Amount(estimate)));
            Folded { score, total: (!merged.is_empty()).then(|| merged.as_bytes().to_vec()) }
        }
    }
}

/// Returns sum and count of all cells. With damaged cells the result may exceed the range of the type; it is then the
/// limit of the range.
fn add_up<'a>(aggregates: impl Iterator<Item = &'a Aggregate>) -> (i64, i64) {
    aggregates.fold((0_i64, 0_i64), |(sum, count), aggregate| match aggregate {
        Aggregate::Sum(amount) => (sum.saturating_add(amount.0), count),
        Aggregate::Mean { sum: more, count: times } => (sum.saturating_add(more.0), count.saturating_add(*times)),
        Aggregate::Extreme(_) | Aggregate::Sketch(_) => (sum, count),
    })
}

/// Returns the slots whose extreme beats that of every later slot, oldest first.
fn staircase(kind: Kind, cells: &[(Timestamp, Aggregate)]) -> Vec<(Timestamp, i64)> {
    let mut stairs: Vec<(Timestamp, i64)> = Vec::new();
    for (start, aggregate) in cells.iter().rev() {
        let Aggregate::Extreme(Amount(extreme)) = aggregate else { continue };
        let beats =
            stairs.last().is_none_or(|(_, later)| later != extreme && kind.better(*later, *extreme) == *extreme);
        if beats {
            stairs.push((*start, *extreme));
        }
    }
    stairs.reverse();
    stairs
}

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
    Some(match kind != Kind::Mean && is_whole {
        true => Value::Exact(Amount(text.parse().unwrap_or(real as i64))),
        // Adding 0.0 turns −0 into 0.
        false => Value::Real(real + 0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};

    fn board(metric: &str) -> Board {
        let definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
    }

    fn extremes(of: &[i64]) -> Vec<(Timestamp, Aggregate)> {
        (0..).map(Timestamp::from_millis).zip(of.iter().map(|extreme| Aggregate::Extreme(Amount(*extreme)))).collect()
    }

    #[test]
    fn a_staircase_has_only_slots_better_than_all_later_ones() {
        let starts = |kind, of: &[i64]| -> Vec<(i64, i64)> {
            staircase(kind, &extremes(of)).iter().map(|(start, extreme)| (start.millis(), *extreme)).collect()
        };
        assert_eq!(starts(Kind::Max, &[3, 9, 5, 5, 2]), [(1, 9), (3, 5), (4, 2)]);
        assert_eq!(starts(Kind::Min, &[3, 9, 5, 5, 2]), [(4, 2)]);
        assert_eq!(starts(Kind::Min, &[1, 2, 3]), [(0, 1), (1, 2), (2, 3)]);
        let folded = fold(&board("MAX(3h, e, v, s)"), &extremes(&[7, 1]));
        assert_eq!(folded.score, Some(Value::Exact(Amount(7))));
        assert_eq!(folded.total.map(|total| total.len()), Some(32));
        assert_eq!(fold(&board("MAX(3h, e, v, s)"), &[]), Folded::default());
    }

    #[test]
    fn sums_of_zero_have_no_score_and_large_cells_do_not_overflow() {
        let sums = |of: &[i64]| -> Vec<(Timestamp, Aggregate)> {
            of.iter().map(|units| (Timestamp::default(), Aggregate::Sum(Amount(*units)))).collect()
        };
        let board = board("SUM(3h, e, v, s)");
        assert_eq!(fold(&board, &sums(&[5, -5])), Folded::default());
        assert_eq!(fold(&board, &sums(&[i64::MAX, i64::MAX])).score, Some(Value::Exact(Amount(i64::MAX))));
        assert_eq!(read_cell(b"9007199254740992".to_vec(), Kind::Sum), None);
        assert_eq!(read_cell(b"much".to_vec(), Kind::Sum), None);
        assert_eq!(read_cell(b"-7".to_vec(), Kind::Sum), Some(Aggregate::Sum(Amount(-7))));
    }

    #[test]
    fn a_mean_below_min_samples_has_a_total_but_no_score() {
        let mut definition = board("AVG(3h, e, v, s)").definition().clone();
        definition.min_samples = 3;
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let mean = |sum, count| (Timestamp::default(), Aggregate::Mean { sum: Amount(sum), count });
        let few = fold(&board, &[mean(5, 2)]);
        assert_eq!((few.score, few.total.as_deref()), (None, Some(&b"5,2"[..])));
        assert_eq!(fold(&board, &[mean(5, 2), mean(5, 1)]).score, Value::mean(10, 3));
        assert_eq!(fold(&board, &[mean(5, 2), mean(-5, -2)]), Folded::default());
    }

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
