//! COUNT_DISTINCT, and COUNT with a cap for each person, whose counters are stored as values are.

use super::redis_kind::{CellSize, Folded, RedisKind};
use super::sum::Sums;
use crate::board::{Aggregate, Kind, Timestamp, Track};
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// Values, each stored with the time when it was last seen. On a ranked board each adds to the slot of that time, so cells
/// and scores are those of a sum: a value 1, and a counter what it counts. A slot with a counter has a cell, also if that
/// is 0.
pub(super) struct StoredValues {
    ranked: Form,
    unranked: Form,
    option: fn(&Track) -> String,
}

impl StoredValues {
    pub const DISTINCT: Self = Self {
        ranked: &["kind/sum", "ranked", "kind/distinct"],
        unranked: &["kind/distinct"],
        option: |track| match track.tombstone_life() {
            Some(life) => format!("{},{life}", most(track)),
            None => most(track),
        },
    };
    /// A board with a cap is ranked.
    pub const CAPPED: Self = Self {
        ranked: &["kind/sum", "ranked", "kind/capped"],
        unranked: &["kind/sum", "ranked", "kind/capped"],
        option: |track| {
            let Kind::Capped { most: each } = track.kind() else { return String::new() };
            format!("cap:{each},{}{}", most(track), if track.is_all_time() { ",all" } else { "" })
        },
    };
}

/// Returns the largest number of values of a subject as a text, which is empty without a limit.
fn most(track: &Track) -> String {
    track.max_values().map_or_else(String::new, |most| most.to_string())
}

impl RedisKind for StoredValues {
    fn form(&self, is_ranked: bool) -> Form {
        if is_ranked { self.ranked } else { self.unranked }
    }

    fn option(&self, track: &Track) -> String {
        (self.option)(track)
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
