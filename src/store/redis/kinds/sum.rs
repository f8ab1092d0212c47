//! COUNT and SUM.

use super::redis_kind::{CellSize, Folded, RedisKind};
use crate::board::{Aggregate, Amount, Timestamp, Track, Value};
use crate::store::redis::numbers::{is_exact, read_amount};
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// COUNT and SUM. A cell is an amount, and the score is the sum of the cells.
pub(super) struct Sums;

impl RedisKind for Sums {
    fn form(&self, is_ranked: bool) -> Form {
        if is_ranked { &["kind/sum", "ranked"] } else { &["kind/sum", "unranked"] }
    }

    fn option(&self, track: &Track) -> String {
        track.key_bound().map_or_else(String::new, |keys| format!("key:{},{}", keys.split.size(), keys.most))
    }

    fn adds_in_any_order(&self) -> bool {
        true
    }

    fn read_cell(&self, text: &[u8]) -> Option<Aggregate> {
        read_amount(text).map(Aggregate::Sum)
    }

    fn is_sound(&self, cell: &Aggregate) -> bool {
        matches!(cell, Aggregate::Sum(amount) if is_exact(amount.0))
    }

    fn has_totals(&self) -> bool {
        false
    }

    fn fold(&self, _track: &Track, cells: &[(Timestamp, Aggregate)]) -> Folded {
        let sum = cells.iter().fold(0_i64, |sum, (_, cell)| match cell {
            Aggregate::Sum(amount) => sum.saturating_add(amount.0),
            _ => sum,
        });
        Folded { score: (sum != 0).then_some(Value::Exact(Amount(sum))), total: None }
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
    use super::super::redis_kind::tests::board;
    use super::*;

    #[test]
    fn sums_of_zero_have_no_score_and_large_cells_do_not_overflow() {
        let sums = |of: &[i64]| -> Vec<(Timestamp, Aggregate)> {
            of.iter().map(|units| (Timestamp::default(), Aggregate::Sum(Amount(*units)))).collect()
        };
        let board = board("SUM(3h, e, v, s)");
        assert_eq!(Sums.fold(board.edition().main(), &sums(&[5, -5])), Folded::default());
        assert_eq!(
            Sums.fold(board.edition().main(), &sums(&[i64::MAX, i64::MAX])).score,
            Some(Value::Exact(Amount(i64::MAX)))
        );
    }

    #[test]
    fn only_exact_numbers_are_sound_cells() {
        let sound = |text: &str| Sums.read_cell(text.as_bytes()).filter(|cell| Sums.is_sound(cell));
        assert_eq!(sound("9007199254740992"), None);
        assert_eq!(sound("much"), None);
        assert_eq!(sound("-7"), Some(Aggregate::Sum(Amount(-7))));
    }
}
