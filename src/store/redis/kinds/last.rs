//! LAST.

use super::redis_kind::{CellSize, Folded, RedisKind};
use crate::board::{Aggregate, Amount, Timestamp, Track, Value};
use crate::store::redis::numbers::is_exact;
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// The length of a time and a value of up to five digits.
const EXPECTED: usize = 19;

/// LAST. Cells are `time,value`. The total is `start,value` of the newest slot with a cell, and the score its value.
pub(super) struct NewestValues;

impl RedisKind for NewestValues {
    fn form(&self, is_ranked: bool) -> Form {
        if is_ranked { &["kind/last", "ranked"] } else { &["kind/last", "unranked"] }
    }

    fn read_cell(&self, text: &[u8]) -> Option<Aggregate> {
        let (at, value) = std::str::from_utf8(text).ok()?.split_once(',')?;
        Some(Aggregate::Last { at: Timestamp::from_millis(at.parse().ok()?), value: Amount(value.parse().ok()?) })
    }

    fn is_sound(&self, cell: &Aggregate) -> bool {
        matches!(cell, Aggregate::Last { value, .. } if is_exact(value.0))
    }

    fn has_totals(&self) -> bool {
        true
    }

    fn fold(&self, _track: &Track, cells: &[(Timestamp, Aggregate)]) -> Folded {
        match cells.last() {
            Some((start, Aggregate::Last { value, .. })) => Folded {
                score: Some(Value::Exact(*value)),
                total: Some(format!("{},{}", start.millis(), value.0).into_bytes()),
            },
            _ => Folded::default(),
        }
    }

    fn cell_size(&self, _content: Content) -> CellSize {
        CellSize::Text(EXPECTED)
    }

    fn total_size(&self, _content: Content) -> Option<usize> {
        Some(EXPECTED)
    }
}

#[cfg(test)]
mod tests {
    use super::super::redis_kind::tests::board;
    use super::*;

    #[test]
    fn the_total_is_that_of_the_newest_slot() {
        let board = board("LAST(3h, rating, elo, player)");
        let cell = |start: i64, at: i64, value: i64| {
            (Timestamp::from_millis(start), Aggregate::Last { at: Timestamp::from_millis(at), value: Amount(value) })
        };
        let folded = NewestValues.fold(board.edition().main(), &[cell(0, 70, 9), cell(60, 61, -3)]);
        assert_eq!((folded.score, folded.total.as_deref()), (Some(Value::Exact(Amount(-3))), Some(&b"60,-3"[..])));
        assert_eq!(NewestValues.fold(board.edition().main(), &[]), Folded::default());
        assert_eq!(NewestValues.read_cell(b"61,-3"), Some(cell(60, 61, -3).1));
        assert_eq!(NewestValues.read_cell(b"61"), None);
    }
}
