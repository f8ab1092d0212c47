//! The estimated memory of a subject, computed from the sizes of the types and how full their containers are.
//!
//! | part | bytes | source |
//! |---|---|---|
//! | record | 32 | [`Record`] |
//! | name | its length and 1, rounded up to 8 | [`Arena`](super::arena) |
//! | index | 10 | an entry of 8 at a load of 0.72 to 0.9 ([`hash_table`](super::hash_table)) |
//! | ranking | 35 | an entry of 28; leaves are 0.79 full after random updates ([`ranking`](super::ranking)) |
//! | slot lists | 4 a slot | [`SlotList`](super::slot_list) of a ranked board |
//! | cells after the first | 16 a slot, in pieces of rounded size | [`PackedCell`], [`pool`](super::pool) |
//! | AVG | 32, and 8 a slot from two slots on | [`MeanTotal`], [`pool`](super::pool) |
//! | COUNT_DISTINCT | values by text and time | [`last_seen`] |
//! | APPROX_COUNT_DISTINCT | a sketch a slot, and the merged one of a ranked board | [`Sketches`] |
//!
//! A test compares the results with what a board's tables take, and `docs/performance.md` with the memory of the
//! process.

use super::aggregate_state::MeanTotal;
use super::last_seen::{self, LastSeenValues};
use super::pool::rounded_units;
use super::ranking::Entry;
use super::record::{PackedCell, Record};
use super::subject_sketches::{self, Sketches};
use crate::board::{Board, Kind, Mode};
use crate::store::BytesPerSubject;
use crate::store::sizing::{Content, TEXT_BYTES, allocated};

/// The size of an entry of the index at its usual load.
const INDEX: usize = 10;

/// The share of a leaf of the ranking that is in use after random updates, in hundredths.
const FILLED: usize = 79;

/// Returns the estimated memory of a subject of this board.
pub(super) fn bytes_per_subject(board: &Board) -> BytesPerSubject {
    // The process grows by about a tenth more than the tables take: blocks and pages of the allocator are not full.
    BytesPerSubject::new(board, |content| bytes(board, content) * 11 / 10)
}

fn bytes(board: &Board, content: Content) -> usize {
    let Content { slots, values, .. } = content;
    let mut bytes = size_of::<Record>() + INDEX + (1 + TEXT_BYTES).next_multiple_of(8);
    if board.definition().mode == Mode::FromFirst {
        return bytes;
    }
    if board.is_ranked() {
        bytes += size_of::<Entry>() * 100 / FILLED + size_of::<u32>() * slots;
    }
    if slots > 1 {
        bytes += size_of::<PackedCell>() * rounded_units(slots - 1);
    }
    let in_column = size_of::<Option<Box<()>>>();
    bytes
        + match board.kind() {
            Kind::Sum | Kind::Min | Kind::Max => 0,
            Kind::Mean => {
                let counts = if slots > 1 { size_of::<i64>() * rounded_units(slots) } else { 0 };
                size_of::<Option<MeanTotal>>() + counts
            }
            Kind::Distinct => {
                in_column + allocated(size_of::<LastSeenValues>()) + last_seen::estimated_bytes(values, TEXT_BYTES)
            }
            Kind::Sketch => {
                let sketches = subject_sketches::estimated_bytes(slots, values, board.is_ranked());
                in_column + allocated(size_of::<Sketches>()) + sketches
            }
        }
}
