//! The estimated memory of a subject, computed from the sizes of the types and how full their containers are.
//!
//! | part | bytes | source |
//! |---|---|---|
//! | record | 32 | [`Record`] |
//! | name | its length and 1, rounded up to 8 | [`Arena`](super::arena) |
//! | index | 10 | an entry of 8 at a load of 0.72 to 0.9 ([`hash_table`](super::hash_table)) |
//! | ranking | 35 | an entry of 28; leaves are 0.79 full after random updates ([`ranking`](super::ranking)) |
//! | with `BY` | the key before the name, its number, a tenth of the key itself | [`Groups`], for ten subjects a key |
//! | slot lists | 4 a slot | [`SlotList`](super::slot_list) of a ranked board |
//! | cells after the first | 16 a slot, in pieces of rounded size | [`PackedCell`], [`pool`](super::pool) |
//! | AVG, LAST | 32, and 8 a slot from two slots on | [`cell_pairs`](super::cell_pairs) |
//! | COUNT_DISTINCT | values by text and time | [`last_seen`](super::last_seen) |
//! | APPROX_COUNT_DISTINCT | a sketch a slot, and the merged one of a ranked board | [`subject_sketches`](super::subject_sketches) |
//!
//! A test compares the results with what a board's data takes, and `docs/performance-figures.md` with the memory of the
//! process.

use super::groups::Groups;
use super::kinds;
use super::pool::rounded_units;
use super::ranking::Entry;
use super::record::{PackedCell, Record};
use crate::board::{Board, Track};
use crate::store::sizing::{Content, TEXT_BYTES};
use crate::store::{BytesPerSubject, IdCost};

/// The size of an entry of the index at its usual load.
const INDEX: usize = 10;

/// The share of a leaf of the ranking that is in use after random updates, in hundredths.
const FILLED: usize = 79;

/// The largest measured number of bytes of an id: see `docs/data-model-embedded.md`. Ids are not stored as texts.
const ID: u64 = 37;

/// Returns what the ids of this board cost.
pub(super) fn id_cost(board: &Board) -> IdCost {
    IdCost { bytes: ID, stored_at_most: board.dedupe_horizon() + board.dedupe_bucket() }
}

/// Returns the estimated memory of a subject in this track.
pub(super) fn bytes_per_subject(track: &Track) -> BytesPerSubject {
    // The process grows by about a tenth more than the data takes: blocks and pages of the allocator are not full.
    BytesPerSubject::new(track, |content| bytes(track, content) * 11 / 10)
}

fn bytes(track: &Track, content: Content) -> usize {
    let slots = content.slots;
    let mut bytes = size_of::<Record>() + INDEX + (1 + TEXT_BYTES).next_multiple_of(8);
    if track.metric().by.is_some() {
        // The text has the key before the name.
        bytes += (1 + TEXT_BYTES).next_multiple_of(8) + Groups::bytes_per_subject(TEXT_BYTES);
    }
    if track.is_from_first() {
        return bytes;
    }
    if track.is_ranked() {
        bytes += size_of::<Entry>() * 100 / FILLED + size_of::<u32>() * slots;
    }
    if slots > 1 {
        bytes += size_of::<PackedCell>() * rounded_units(slots - 1);
    }
    bytes + kinds::of(track.kind()).bytes(content, track.is_ranked())
}
