//! The estimated memory of a subject in the server, computed from the structures in which Redis 7 stores the keys.
//!
//! | structure | bytes | content |
//! |---|---|---|
//! | field of a hash table | 43, and two texts | entry of 24 bytes, for which the allocator takes 32; 8 to 16 bytes of buckets |
//! | member of a large sorted set | 96, and a text | a table's entry, and a node of the skip list with 1.33 levels on average |
//! | member of a set | 43, and a text | a table's entry |
//! | key | 59, and a text | a table's entry, and an object of 16 bytes |
//! | text | its length and 2 (from 32 bytes on 4, from 256 on 6), rounded up as allocators do | |
//! | small hash or sorted set | 7, and 2 for a text, 2 to 5 for an amount, 10 for a time | one block, rounded up as allocators do |
//!
//! The size is that of `used_memory`. `MEMORY USAGE` returns 8 bytes less for each entry of a table, because it does
//! not know that the allocator rounds up. Valkey 8 and later take less: their tables have no separate entries. A test
//! compares the results with a server, and `docs/performance-figures.md` with 100,000 subjects.

use super::expiry;
use super::id_buckets;
use super::keys::StoreKeys;
use super::kinds::{self, CellSize};
use crate::board::{Board, BoardTrack, Subject, Track};
use crate::store::sizing::{Content, TEXT_BYTES, allocated};
use crate::store::{BytesPerSubject, IdCost};

/// An entry of a table: three pointers, and one or two pointers of buckets, 11 bytes on average.
const TABLE_ENTRY: usize = 32 + 11;
/// A node of a skip list: three words, and 16 bytes for each level, rounded up.
const SKIP_LIST_NODE: usize = 53;
const OBJECT: usize = 16;
/// The sorted set and the list of its levels, when it is no longer small.
const SKIP_LIST: usize = 850;
/// A hash when it is no longer small.
const HASH_TABLE: usize = 64;

/// The number of subjects that a key is taken to have, where a board has a ranking for each key.
const SUBJECTS_OF_KEY: usize = 10;

/// The limits up to which hashes and sorted sets are small, if the server's configuration is the default.
const SMALL_HASH_FIELDS: usize = 512;
const SMALL_SET_MEMBERS: usize = 128;
const SMALL_TEXT: usize = 64;

/// The bytes before and after the content of a small hash or sorted set.
const SMALL_ENDS: usize = 7;
/// The bytes of a time in milliseconds there, or of its text: 13 digits.
const SMALL_TIME: usize = 10;
const TIME_TEXT: usize = 13;
/// The bytes of an amount of up to five digits there.
const SMALL_AMOUNT: usize = 5;
/// The bytes of a name of one letter there.
const SMALL_LETTER: usize = 3;

/// The length of an amount of up to five digits as text.
const AMOUNT_TEXT: usize = 5;

/// The measured bytes of an id of 16 bytes: see `docs/data-model.md`.
const ID: u64 = 98;

/// Returns what the ids of this board cost.
pub(super) fn id_cost(board: &Board) -> IdCost {
    IdCost { bytes: ID, stored_at_most: id_buckets::longest_stored(board) }
}

/// Returns the estimated memory of a subject in this track.
pub(super) fn bytes_per_subject(keys: &StoreKeys, track: &BoardTrack) -> BytesPerSubject {
    let keys = keys.board(track.board().name(), track.board().generation(), track.id());
    // Keys of all kinds of data of a subject have the same length.
    let length = keys.subject(&Subject::from_stored("s".repeat(TEXT_BYTES))).len();
    BytesPerSubject::new(track, |content| bytes(track, length, content))
}

/// Returns the bytes of a subject with some content. The keys of its own have this length.
fn bytes(track: &Track, key_length: usize, content: Content) -> usize {
    let key = TABLE_ENTRY + text(key_length) + OBJECT;
    let kind = kinds::of(track.kind());
    let mut bytes = 0;
    if track.kind().remembers_values() {
        // A counter of a person also has the start of its day.
        let length = if track.days().is_some() { TIME_TEXT + 1 + TEXT_BYTES } else { TEXT_BYTES };
        bytes += key + sorted_set(content.values, length);
    } else if !track.is_ranked() {
        bytes += key + slots_of_subject(track, content);
    }
    if track.is_ranked() {
        let has_keys = track.most_keys().is_some();
        let stored = if has_keys { TEXT_BYTES + 1 + TEXT_BYTES } else { TEXT_BYTES };
        bytes += if has_keys { ranking_of_key(key_length) / SUBJECTS_OF_KEY } else { member(TEXT_BYTES) };
        bytes += content.slots * field(stored, cell_text(kind.cell_size(content)));
        bytes += kind.total_size(content).map_or(0, |length| field(stored, length));
    }
    if expiry::has_subject_keys(track) {
        bytes += expiry::periods(track, content.slots) * (TABLE_ENTRY + text(TEXT_BYTES));
    }
    bytes
}

/// Returns the bytes of a member of a large sorted set.
fn member(length: usize) -> usize {
    TABLE_ENTRY + text(length) + SKIP_LIST_NODE
}

/// Returns the bytes of a small ranking of a key, whose name has about this length, and of its key in the list.
fn ranking_of_key(name_length: usize) -> usize {
    let lines = allocated(SMALL_ENDS + SUBJECTS_OF_KEY * (small(TEXT_BYTES) + SMALL_AMOUNT));
    TABLE_ENTRY + text(name_length) + OBJECT + lines + member(TEXT_BYTES)
}

/// Returns the bytes of the hash with the slots of a subject of an unranked track.
fn slots_of_subject(track: &Track, content: Content) -> usize {
    let cell = kinds::of(track.kind()).cell_size(content);
    if track.is_from_first() {
        return allocated(SMALL_ENDS + SMALL_LETTER + SMALL_TIME + SMALL_LETTER + SMALL_AMOUNT);
    }
    if content.slots < SMALL_HASH_FIELDS && cell_text(cell) <= SMALL_TEXT {
        // One more field says when the key was last cleaned.
        let cleaned = SMALL_LETTER + SMALL_TIME;
        allocated(SMALL_ENDS + cleaned + content.slots * (SMALL_TIME + small_cell(cell)))
    } else {
        HASH_TABLE + field(1, TIME_TEXT) + content.slots * field(TIME_TEXT, cell_text(cell))
    }
}

/// Returns the bytes of the sorted set with the values of a subject, of this length.
fn sorted_set(values: usize, length: usize) -> usize {
    if values <= SMALL_SET_MEMBERS {
        allocated(SMALL_ENDS + values * (small(length) + SMALL_TIME))
    } else {
        SKIP_LIST + values * member(length)
    }
}

/// Returns the length of the text of a cell.
fn cell_text(cell: CellSize) -> usize {
    match cell {
        CellSize::Number => AMOUNT_TEXT,
        CellSize::Text(length) => length,
    }
}

/// Returns the bytes of a field of a hash that is not small.
fn field(name: usize, value: usize) -> usize {
    TABLE_ENTRY + text(name) + text(value)
}

/// Returns the bytes of a text of its own.
fn text(length: usize) -> usize {
    let around = match length {
        ..32 => 2,
        32..256 => 4,
        256.. => 6,
    };
    allocated(length + around)
}

/// Returns the bytes of a text in a small hash or sorted set.
fn small(length: usize) -> usize {
    length + 2
}

/// Returns the bytes of a cell in a small hash.
fn small_cell(cell: CellSize) -> usize {
    match cell {
        CellSize::Number => SMALL_AMOUNT,
        CellSize::Text(length) => small(length),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::board::{BoardName, Definition, Generation};

    #[test]
    fn estimates_are_close_to_what_100_000_subjects_took() {
        for (metric, ranked, one_slot, all_slots) in [
            ("COUNT(24h, e, s)", true, 179, 1_711),
            ("COUNT(24h, e, s)", false, 233, 808),
            ("AVG(24h, e, v, s)", true, 260, 1_958),
            ("AVG(24h, e, v, s)", false, 237, 936),
            ("MAX(24h, e, v, s)", true, 269, 1_845),
            ("MAX(24h, e, v, s)", false, 237, 808),
            ("COUNT_DISTINCT(24h, e, s, v)", true, 398, 2_708),
            ("COUNT_DISTINCT(24h, e, s, v)", false, 220, 1_001),
            ("APPROX_COUNT_DISTINCT(24h, e, s, v)", true, 245, 1_849),
            ("APPROX_COUNT_DISTINCT(24h, e, s, v)", false, 236, 808),
        ] {
            let definition = Definition { ranked, ..Definition::new(metric.parse().unwrap(), "1h".parse().unwrap()) };
            let board = Board::new(BoardName::parse("hot-posts").unwrap(), Generation(1), definition).unwrap();
            let track = Arc::new(board).main();
            let estimate = bytes_per_subject(&StoreKeys::new("rolltop"), &track);
            for (estimated, measured) in [(estimate.one_slot, one_slot), (estimate.all_slots, all_slots)] {
                let deviation = (estimated as f64 - f64::from(measured)).abs() / f64::from(measured);
                assert!(deviation < 0.1, "{metric}, ranked {ranked}: {estimated} estimated, {measured} measured");
            }
        }
    }
}
