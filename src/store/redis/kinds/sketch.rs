//! APPROX_COUNT_DISTINCT.

use super::limits::ValueLimits;
use super::redis_kind::{CellSize, Folded, RedisKind};
use super::verb::{Verb, VerbWord};
use crate::board::{Aggregate, Amount, Change, Mark, Sketch, Timestamp, Track, Value};
use crate::store::redis::scripts::Form;
use crate::store::sizing::{Content, sketch_bytes};

/// APPROX_COUNT_DISTINCT. Cells are sketches of 2,048 bytes at most, the total is all of them merged, and the score its
/// estimate.
pub(super) struct Sketches;

impl RedisKind for Sketches {
    fn form(&self, is_ranked: bool) -> Form {
        if is_ranked { &["kind/sketch", "ranked"] } else { &["kind/sketch", "unranked"] }
    }

    fn verb<'a>(&self, change: &'a Change, undoes: bool) -> Verb<'a> {
        match change {
            Change::Seen(value) => {
                let Mark { register, rank } = Mark::of(value.as_str());
                Verb { verb: "mark", a: VerbWord::Number(register.into()), b: rank.into() }
            }
            Change::Amount(_) | Change::Forget(_) | Change::Set { .. } | Change::Not(_) => Verb::usual(change, undoes),
        }
    }

    fn read_cell(&self, text: &[u8]) -> Option<Aggregate> {
        Sketch::from_bytes(text).map(Aggregate::Sketch)
    }

    fn is_sound(&self, cell: &Aggregate) -> bool {
        matches!(cell, Aggregate::Sketch(_))
    }

    fn has_totals(&self) -> bool {
        true
    }

    fn fold(&self, _track: &Track, cells: &[(Timestamp, Aggregate)]) -> Folded {
        let mut merged = Sketch::default();
        for (_, cell) in cells {
            if let Aggregate::Sketch(sketch) = cell {
                merged.merge(sketch);
            }
        }
        let estimate = merged.estimate();
        let score = (estimate != 0).then_some(Value::Exact(Amount(estimate)));
        Folded { score, total: (!merged.is_empty()).then(|| merged.as_bytes().to_vec()) }
    }

    fn withdraws_with_other_cells(&self) -> bool {
        true
    }

    fn limits(&self) -> ValueLimits {
        ValueLimits {
            // A script estimates one sketch for each total that changed.
            ranked_changes: 20,
            combined_cells: 24,
            audited_cells: 400,
            // It takes little time next to reading a sketch.
            audited_slot: 0,
        }
    }

    fn read_weight(&self) -> u64 {
        16
    }

    fn largest_cell(&self) -> usize {
        Sketch::MAX_BYTES
    }

    fn largest_total(&self, _track: &Track) -> usize {
        Sketch::MAX_BYTES
    }

    fn cell_size(&self, content: Content) -> CellSize {
        CellSize::Text(sketch_bytes(content.values.div_ceil(content.slots)))
    }

    fn total_size(&self, content: Content) -> Option<usize> {
        Some(sketch_bytes(content.values))
    }
}
