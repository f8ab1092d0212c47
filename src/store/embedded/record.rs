//! A subject's record of 32 bytes, which contains its newest cell, and the packed form of cells.

use super::pool::{NONE, Unit};
use super::slab::SlabValue;

/// The content of one slot for one subject, as callers see it. Some metrics keep further state per slot in
/// [`AggregateState`](super::aggregate_state::AggregateState).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The slot's number: see [`Numbering`](super::numbering::Numbering).
    pub slot: i64,
    /// For COUNT, SUM and AVG, the sum. For MIN and MAX, the slot's extreme. For LAST, the newest value. For
    /// COUNT_DISTINCT, the number of values last seen in the slot. For APPROX_COUNT_DISTINCT, 0. A cell without data is
    /// removed.
    pub amount: i64,
    /// The subject's place in the slot's list, so that it can be removed from the list without a search. 0 on an
    /// unranked board, which has no lists.
    pub place: u32,
}

/// The data that tracks of every kind hold of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The sort key of the cells' combined value, as in the ranking:
    /// [`absent_sort_key`](super::track_traits::TrackTraits::absent_sort_key) if the subject is not ranked. On a `from_first`
    /// board, the time when the subject's counter began.
    pub sort_key: i64,
    /// The newest cell, if there is any, or the counter of a `from_first` board.
    pub newest: PackedCell,
    /// The reference of the older cells, oldest first, if there are any.
    pub older: u32,
    /// The reference of the text, or [`NONE`] if the record is not in use.
    pub text: u32,
}

/// A [`Cell`] in 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedCell {
    pub amount: i64,
    pub place: u32,
    /// The number of the slot, modulo 65,536.
    pub ordinal: u16,
    /// In a record's newest cell: the total number of cells.
    pub count: u16,
}

/// A subject's counter on a `from_first` board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    /// The time when it began, in milliseconds.
    pub start: i64,
    pub amount: i64,
}

const _: () = assert!(size_of::<Record>() == 32 && size_of::<PackedCell>() == 16);

impl SlabValue for Record {
    fn vacant(next: u32) -> Self {
        Self { sort_key: 0, newest: PackedCell::default(), older: next, text: NONE }
    }

    fn is_vacant(&self) -> bool {
        self.text == NONE
    }

    fn next(&self) -> u32 {
        self.older
    }
}

impl Unit for PackedCell {
    const ZERO: Self = Self { amount: 0, place: 0, ordinal: 0, count: 0 };
    const PER_CHUNK: usize = 4_096;

    fn link(to: u16) -> Self {
        Self { ordinal: to, ..Self::ZERO }
    }

    fn linked(self) -> u16 {
        self.ordinal
    }
}

impl Record {
    /// Creates a record without cells.
    pub(super) fn new(text: u32, sort_key: i64) -> Self {
        Self { sort_key, newest: PackedCell::default(), older: NONE, text }
    }

    /// Returns the number of cells.
    pub(super) fn len(&self) -> usize {
        usize::from(self.newest.count)
    }
}
