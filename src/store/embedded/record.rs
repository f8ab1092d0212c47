//! A subject's record, 32 bytes with its newest slice, and the cells in which its older slices are.

use super::pool::{NONE, Unit};
use super::slab::Hold;

/// What one subject has in one slot, as callers see it. What else a metric keeps of a slot stands in
/// [`Extras`](super::extra::Extras).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The slot's number: see [`Numbering`](super::numbering::Numbering).
    pub slot: i64,
    /// COUNT, SUM, AVG: the sum; MIN, MAX: the slot's own extreme; COUNT_DISTINCT: how many values were last seen in
    /// it; APPROX_COUNT_DISTINCT: 0. A slice that holds nothing is removed.
    pub amount: i64,
    /// Where the slot's list has the subject, so that leaving the list costs no search. 0 on an unranked board, which
    /// has no lists.
    pub place: u32,
}

/// What all boards hold of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The key of what the slices say together, which is what the ranking says:
    /// [`Rule::absent`](super::rule::Rule::absent) if the subject is not ranked. On a `from_first` board when the
    /// subject's counter began.
    pub key: i64,
    /// The newest slice, if there is any, or the counter of a `from_first` board.
    pub newest: Cell,
    /// The reference of the older slices, oldest first, where there are any.
    pub more: u32,
    /// The reference of the text; [`NONE`] where there is no subject.
    pub text: u32,
}

/// A slice in 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub amount: i64,
    pub place: u32,
    /// The number of the slot, modulo 65,536.
    pub ordinal: u16,
    /// Of a record's newest cell: how many slices there are in all.
    pub count: u16,
}

const _: () = assert!(size_of::<Record>() == 32 && size_of::<Cell>() == 16);

impl Hold for Record {
    fn vacant(next: u32) -> Self {
        Self { key: 0, newest: Cell::default(), more: next, text: NONE }
    }

    fn is_vacant(&self) -> bool {
        self.text == NONE
    }

    fn next(&self) -> u32 {
        self.more
    }
}

impl Unit for Cell {
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
    /// A record without slices.
    pub(super) fn new(text: u32, key: i64) -> Self {
        Self { key, newest: Cell::default(), more: NONE, text }
    }

    /// How many slices there are.
    pub(super) fn len(&self) -> usize {
        usize::from(self.newest.count)
    }
}
