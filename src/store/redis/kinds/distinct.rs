//! COUNT_DISTINCT.

use super::redis_kind::{CellSize, Folded, RedisKind};
use super::sum::Sums;
use crate::board::{Aggregate, Timestamp, Track};
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// COUNT_DISTINCT. Each value is stored with the time when it was last seen. On a ranked board it counts 1 in the slot
/// of that time, so cells and scores are those of a sum.
pub(super) struct DistinctValues;

impl RedisKind for DistinctValues {
    fn form(&self, is_ranked: bool) -> Form {
        if is_ranked { &["kind/sum", "ranked", "kind/distinct"] } else { &["kind/distinct"] }
    }

    fn option(&self, track: &Track) -> String {
        let most = track.max_values().map_or_else(String::new, |most| most.to_string());
        match track.tombstone_life() {
            Some(life) => format!("{most},{life}"),
            None => most,
        }
    }

    fn read_cell(&self, text: &[u8]) -> Option<Aggregate> {
        Sums.read_cell(text)
    }

    fn is_sound(&self, cell: &Aggregate) -> bool {
        Sums.is_sound(cell)
    }

    fn has_totals(&self) -> bool {
        Sums.has_totals()
    }

    fn fold(&self, track: &Track, cells: &[(Timestamp, Aggregate)]) -> Folded {
        Sums.fold(track, cells)
    }

    fn cell_size(&self, _content: Content) -> CellSize {
        CellSize::Text(1)
    }

    fn total_size(&self, content: Content) -> Option<usize> {
        Sums.total_size(content)
    }
}
