//! AVG.

use super::redis_kind::{CellSize, Folded, RedisKind};
use crate::board::{Aggregate, Amount, Averaging, Timestamp, Track};
use crate::store::redis::numbers::is_exact;
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// The length of sum and count, with a sum of up to five digits.
const EXPECTED: usize = 7;

/// AVG. Cells and totals are `sum,count`, and the score is sum divided by count, each with that of the prior.
pub(super) struct Means;

impl RedisKind for Means {
    fn form(&self, is_ranked: bool) -> Form {
        if is_ranked { &["kind/mean", "ranked"] } else { &["kind/mean", "unranked"] }
    }

    fn option(&self, track: &Track) -> String {
        let Averaging { min_samples, prior: (sum, count) } = track.averaging();
        format!("{min_samples},{sum},{count}")
    }

    fn read_cell(&self, text: &[u8]) -> Option<Aggregate> {
        let (sum, count) = std::str::from_utf8(text).ok()?.split_once(',')?;
        Some(Aggregate::Mean { sum: Amount(sum.parse().ok()?), count: count.parse().ok()? })
    }

    fn is_sound(&self, cell: &Aggregate) -> bool {
        matches!(cell, Aggregate::Mean { sum, count } if is_exact(sum.0) && is_exact(*count))
    }

    fn has_totals(&self) -> bool {
        true
    }

    fn fold(&self, track: &Track, cells: &[(Timestamp, Aggregate)]) -> Folded {
        let (sum, count) = cells.iter().fold((0_i64, 0_i64), |(sum, count), (_, cell)| match cell {
            Aggregate::Mean { sum: more, count: times } => (sum.saturating_add(more.0), count.saturating_add(*times)),
            _ => (sum, count),
        });
        let score = track.averaging().score(sum, count);
        let total = (sum != 0 || count != 0).then(|| format!("{sum},{count}").into_bytes());
        Folded { score, total }
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
    use crate::board::{Board, BoardName, Generation, Value};

    #[test]
    fn a_mean_below_min_samples_has_a_total_but_no_score() {
        let mut definition = board("AVG(3h, e, v, s)").definition().clone();
        definition.min_samples = 3;
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let mean = |sum, count| (Timestamp::default(), Aggregate::Mean { sum: Amount(sum), count });
        let few = Means.fold(board.edition().main(), &[mean(5, 2)]);
        assert_eq!((few.score, few.total.as_deref()), (None, Some(&b"5,2"[..])));
        assert_eq!(Means.fold(board.edition().main(), &[mean(5, 2), mean(5, 1)]).score, Value::mean(10, 3));
        assert_eq!(Means.fold(board.edition().main(), &[mean(5, 2), mean(-5, -2)]), Folded::default());
    }
}
