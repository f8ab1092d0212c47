//! MIN and MAX.

use super::redis_kind::{CellSize, Folded, RedisKind};
use crate::board::{Aggregate, Amount, Kind, Timestamp, Track, Value};
use crate::store::redis::numbers::{is_exact, read_amount};
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// The length of a step of a staircase: start and extreme as big-endian doubles.
const STEP: usize = 16;

/// MIN or MAX. A cell is the slot's extreme, the total a staircase, and the score its first step.
pub(super) struct Extremes {
    kind: Kind,
    option: &'static str,
}

impl Extremes {
    pub const MIN: Self = Self { kind: Kind::Min, option: "min" };
    pub const MAX: Self = Self { kind: Kind::Max, option: "max" };

    /// Returns the slots whose extreme beats that of every later slot, oldest first.
    fn staircase(&self, cells: &[(Timestamp, Aggregate)]) -> Vec<(Timestamp, i64)> {
        let mut stairs: Vec<(Timestamp, i64)> = Vec::new();
        for (start, cell) in cells.iter().rev() {
            let Aggregate::Extreme(Amount(extreme)) = cell else { continue };
            let beats = |later: i64| later != *extreme && self.kind.better(later, *extreme) == *extreme;
            if stairs.last().is_none_or(|(_, later)| beats(*later)) {
                stairs.push((*start, *extreme));
            }
        }
        stairs.reverse();
        stairs
    }
}

impl RedisKind for Extremes {
    fn form(&self, is_ranked: bool) -> Form {
        if is_ranked { &["kind/extreme", "ranked"] } else { &["kind/extreme", "unranked"] }
    }

    fn option(&self, _track: &Track) -> String {
        self.option.to_owned()
    }

    fn read_cell(&self, text: &[u8]) -> Option<Aggregate> {
        read_amount(text).map(Aggregate::Extreme)
    }

    fn is_sound(&self, cell: &Aggregate) -> bool {
        matches!(cell, Aggregate::Extreme(amount) if is_exact(amount.0))
    }

    fn has_totals(&self) -> bool {
        true
    }

    fn fold(&self, _track: &Track, cells: &[(Timestamp, Aggregate)]) -> Folded {
        let stairs = self.staircase(cells);
        let score = stairs.first().map(|(_, extreme)| Value::Exact(Amount(*extreme)));
        let total = stairs.iter().flat_map(|(start, extreme)| {
            let doubles = [start.millis() as f64, *extreme as f64];
            doubles.into_iter().flat_map(f64::to_be_bytes)
        });
        Folded { score, total: Some(total.collect()).filter(|total: &Vec<u8>| !total.is_empty()) }
    }

    fn largest_total(&self, track: &Track) -> usize {
        STEP * track.slots() as usize
    }

    fn cell_size(&self, _content: Content) -> CellSize {
        CellSize::Number
    }

    fn total_size(&self, content: Content) -> Option<usize> {
        Some(STEP * content.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::super::redis_kind::tests::board;
    use super::*;

    fn extremes(of: &[i64]) -> Vec<(Timestamp, Aggregate)> {
        (0..).map(Timestamp::from_millis).zip(of.iter().map(|extreme| Aggregate::Extreme(Amount(*extreme)))).collect()
    }

    #[test]
    fn a_staircase_has_only_slots_better_than_all_later_ones() {
        let starts = |kind: Extremes, of: &[i64]| -> Vec<(i64, i64)> {
            kind.staircase(&extremes(of)).iter().map(|(start, extreme)| (start.millis(), *extreme)).collect()
        };
        assert_eq!(starts(Extremes::MAX, &[3, 9, 5, 5, 2]), [(1, 9), (3, 5), (4, 2)]);
        assert_eq!(starts(Extremes::MIN, &[3, 9, 5, 5, 2]), [(4, 2)]);
        assert_eq!(starts(Extremes::MIN, &[1, 2, 3]), [(0, 1), (1, 2), (2, 3)]);
        let board = board("MAX(3h, e, v, s)");
        let folded = Extremes::MAX.fold(board.edition().main(), &extremes(&[7, 1]));
        assert_eq!(folded.score, Some(Value::Exact(Amount(7))));
        assert_eq!(folded.total.map(|total| total.len()), Some(32));
        assert_eq!(Extremes::MAX.fold(board.edition().main(), &[]), Folded::default());
    }
}
