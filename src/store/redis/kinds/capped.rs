//! COUNT with a cap for each person.

use super::redis_kind::{CellSize, Folded, RedisKind};
use super::sum::Sums;
use crate::board::{Aggregate, Kind, Timestamp, Track};
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// COUNT with a cap. Counters are stored as values of COUNT_DISTINCT are. Each adds to the slot of its day, so cells and
/// scores are those of a sum; but a slot with a counter has a cell, also if that is 0.
pub(super) struct CappedCounts;

impl RedisKind for CappedCounts {
    fn form(&self, _is_ranked: bool) -> Form {
        // A board with a cap is ranked.
        &["kind/sum", "ranked", "kind/capped"]
    }

    fn option(&self, track: &Track) -> String {
        let Kind::Capped { most: each } = track.kind() else { return String::new() };
        let most = track.max_values().map_or_else(String::new, |most| most.to_string());
        format!("cap:{each},{most}{}", if track.is_all_time() { ",all" } else { "" })
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
