//! Estimates of the memory of subjects.

use crate::board::{Kind, Sketch, Track};

/// The length of the names and values for which memory is estimated, in bytes.
pub(in crate::store) const TEXT_BYTES: usize = 12;

/// The number of further values over which the memory of one of them is averaged.
const FURTHER_VALUES: usize = 200;

/// The number of values in a slot with which a sketch has its largest size.
const FULL: usize = 4 * Sketch::MAX_BYTES;

/// The estimated memory of one subject of a board, in bytes. Names and values have 12 bytes, and amounts up to five
/// digits. What a board takes beside its subjects is not included, nor are ids, and data that has expired and is not
/// deleted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytesPerSubject {
    /// With data in one slot. Of metrics that count distinct values, with one value.
    pub one_slot: u64,
    /// With data in every slot that the board keeps. Of metrics that count distinct values, with a value of its own in
    /// each slot.
    pub all_slots: u64,
    /// The memory that each further value adds, for metrics that count distinct values: the mean of the next 200 values
    /// in one slot.
    pub each_value: Option<u64>,
    /// The most that a subject takes, whatever its data. `None` if nothing limits it: COUNT_DISTINCT and a cap without
    /// [`max_values`](crate::board::Definition::max_values).
    pub at_most: Option<u64>,
}

/// What the ids of a board's items cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdCost {
    /// The measured memory of an id of 16 bytes while it is stored, in bytes.
    pub bytes: u64,
    /// The longest time for which an id is stored from its arrival, in milliseconds, while housekeeping keeps up. It is
    /// longer than the [horizon](crate::board::Board::dedupe_horizon), because ids are deleted together with others.
    pub stored_at_most: i64,
}

/// What a subject has, for an estimate.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Content {
    /// The number of slots with data, at least 1.
    pub slots: usize,
    /// The number of distinct values in all slots together, for metrics that count them. Each is in one slot.
    pub values: usize,
    /// The number of slots whose extreme is better than that of every later slot, for MIN and MAX.
    pub steps: usize,
    /// Whether the number of values is limited.
    pub is_limited: bool,
}

impl BytesPerSubject {
    /// Computes an estimate with a store's function for the bytes of a subject with some content.
    pub(in crate::store) fn new(track: &Track, bytes: impl Fn(Content) -> usize) -> Self {
        let most_values = track.max_values().map(|most| most as usize);
        let is_limited = most_values.is_some();
        let bytes =
            |slots: usize, values: usize, steps: usize| bytes(Content { slots, values, steps, is_limited }) as u64;
        let kept = track.kept() as usize;
        let one_each = kept.min(most_values.unwrap_or(kept));
        let one_slot = bytes(1, 1, 1);
        let further = bytes(1, 1 + FURTHER_VALUES, 1) - one_slot;
        Self {
            one_slot,
            // With few values, data is in as few slots.
            all_slots: bytes(one_each, one_each, likely_steps(kept)),
            each_value: track.kind().counts_values().then_some(further.div_ceil(FURTHER_VALUES as u64)),
            at_most: match track.kind() {
                Kind::Distinct | Kind::Capped { .. } => most_values.map(|most| bytes(one_each, most, 1)),
                Kind::Sketch => Some(bytes(kept, kept * FULL, 1)),
                Kind::Sum | Kind::TimedSum(_) | Kind::Mean | Kind::Min | Kind::Max | Kind::Last => {
                    Some(bytes(kept, 1, kept))
                }
            },
        }
    }
}

impl std::ops::Add for BytesPerSubject {
    type Output = Self;

    /// Returns the memory of a subject with data in two [tracks](crate::board::Board::tracks) of a board.
    fn add(self, other: Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Self {
            one_slot: self.one_slot + other.one_slot,
            all_slots: self.all_slots + other.all_slots,
            each_value: both(self.each_value, other.each_value),
            at_most: both(self.at_most, other.at_most),
        }
    }
}

/// Returns the expected number of slots whose extreme is better than that of every later slot, if the extremes are
/// random: 1 + 1/2 + 1/3 + …
fn likely_steps(slots: usize) -> usize {
    (1..=slots).map(|nth| 1.0 / nth as f64).sum::<f64>().round() as usize
}

/// Returns the bytes of a sketch of this number of values: 3 for each, until it has all registers.
pub(in crate::store) fn sketch_bytes(values: usize) -> usize {
    let sparse = 3 * values;
    if sparse < Sketch::MAX_BYTES { sparse } else { Sketch::MAX_BYTES }
}

/// Returns the bytes that an allocator takes for a block. jemalloc, which servers are built with, and mimalloc, which
/// this program uses, round in the same way: to 8 or a multiple of 16 up to 128 bytes, above that to four sizes for
/// each doubling.
pub(in crate::store) fn allocated(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=8 => 8,
        9..=128 => bytes.next_multiple_of(16),
        _ => bytes.next_multiple_of(1 << ((bytes - 1).ilog2() - 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation};

    #[test]
    fn blocks_are_rounded_to_the_sizes_of_allocators() {
        for (bytes, size) in
            [(0, 0), (1, 8), (9, 16), (24, 32), (128, 128), (129, 160), (256, 256), (257, 320), (2_054, 2_560)]
        {
            assert_eq!(allocated(bytes), size, "{bytes}");
        }
    }

    #[test]
    fn no_subject_takes_more_than_the_most() {
        let mut definition = Definition::new("COUNT_DISTINCT(1h, a, s, v)".parse().unwrap(), "1m".parse().unwrap());
        definition.max_values = Some(5);
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let bytes = BytesPerSubject::new(&board.tracks()[0], |content| 100 * content.slots + 10 * content.values);
        assert_eq!((bytes.one_slot, bytes.all_slots, bytes.at_most), (110, 550, Some(550)));
    }

    #[test]
    fn a_subject_takes_memory_in_every_window() {
        let bytes =
            |one_slot, at_most| BytesPerSubject { one_slot, all_slots: 2 * one_slot, each_value: None, at_most };
        let windows = [bytes(100, Some(500)), bytes(110, Some(700)), bytes(130, Some(150))];
        let all = windows.into_iter().reduce(|all, window| all + window).unwrap();
        assert_eq!(all.one_slot, windows.iter().map(|window| window.one_slot).sum::<u64>());
        assert_eq!(all.all_slots, windows.iter().map(|window| window.all_slots).sum::<u64>());
        assert_eq!(all.at_most, windows.iter().map(|window| window.at_most).sum());
        assert_eq!(all.each_value, None);
        assert_eq!((all + bytes(1, None)).at_most, None);
    }

    #[test]
    fn random_extremes_have_few_steps() {
        assert_eq!([1, 2, 3, 24, 2_000].map(likely_steps), [1, 2, 2, 4, 8]);
    }
}
