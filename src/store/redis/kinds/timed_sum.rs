//! COUNT and SUM where equal scores are ordered by time.

use super::redis_kind::{CellSize, Folded, RedisKind};
use super::sum::Sums;
use crate::board::{Aggregate, Amount, Timestamp, Track, Value};
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// COUNT and SUM where equal scores are ordered by time. A cell has a sum and a time, and so has the score, which is also
/// the total: only a subject whose sum is 0, and which has no score then, has a total of its own.
pub(super) struct TimedSums;

impl RedisKind for TimedSums {
    fn form(&self, is_ranked: bool) -> Form {
        if is_ranked { &["kind/timed_sum", "ranked"] } else { &["kind/timed_sum", "unranked"] }
    }

    fn read_cell(&self, text: &[u8]) -> Option<Aggregate> {
        Sums.read_cell(text)
    }

    fn is_sound(&self, cell: &Aggregate) -> bool {
        Sums.is_sound(cell)
    }

    fn has_totals(&self) -> bool {
        true
    }

    fn fold(&self, track: &Track, cells: &[(Timestamp, Aggregate)]) -> Folded {
        let split = track.kind().split();
        let all = cells.iter().fold(0, |all, (_, cell)| match cell {
            Aggregate::Sum(amount) => split.joined(all, amount.0),
            _ => all,
        });
        match split.score(all) {
            0 => Folded { score: None, total: (all != 0).then(|| all.to_string().into_bytes()) },
            _ => Folded { score: Some(Value::Exact(Amount(all))), total: None },
        }
    }

    fn cell_size(&self, _content: Content) -> CellSize {
        CellSize::Number
    }

    fn total_size(&self, _content: Content) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation};

    #[test]
    fn a_sum_of_zero_has_a_total_with_its_time_and_no_score() {
        let mut definition = Definition::new("COUNT(3h, e, s)".parse().unwrap(), "1h".parse().unwrap());
        definition.ties = Some("first".parse().unwrap());
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let number = |score: i64, second: i64| (score << 30) - second;
        let cell = |score, second| (Timestamp::default(), Aggregate::Sum(Amount(number(score, second))));
        let fold = |cells: &[(Timestamp, Aggregate)]| TimedSums.fold(board.edition().main(), cells);
        assert_eq!(fold(&[cell(2, 7), cell(1, 9), cell(-2, 8)]).score, Some(Value::Exact(Amount(number(1, 9)))));
        let none = fold(&[cell(2, 7), cell(-2, 8)]);
        assert_eq!((none.score, none.total.as_deref()), (None, Some(&b"-8"[..])));
        assert_eq!(fold(&[]), Folded::default());
        let largest = (Timestamp::default(), Aggregate::Sum(Amount(i64::MAX)));
        assert!(fold(&[largest.clone(), largest]).score.is_some(), "damaged cells are no panic");
    }
}
