//! Contents: what a board holds, read in steps and merged into another board in pieces.
//!
//! Scores, totals and ranks are not contents: they follow from what subjects have in their slots.

use std::fmt;

use crate::board::{Aggregate, Amount, Counted, Frame, Generation, Subject, Timestamp};

/// One thing that a subject has in a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// What the subject has in the slot that starts at `slot`. Of all kinds except COUNT_DISTINCT.
    Cell { slot: Timestamp, aggregate: Aggregate },
    /// COUNT_DISTINCT: the time when a value was last seen or, if it is `retracted`, taken back.
    Value { value: Counted, at: Timestamp, retracted: bool },
    /// COUNT_DISTINCT: the time of the newest value that was dropped because the board remembers a limited number.
    Dropped { at: Timestamp },
    /// The counter of a subject of a `from_first` board, and the time at which it began.
    Counter { start: Timestamp, amount: Amount },
}

/// The position at which a walk over the contents of a track continues. Opaque: pass only a cursor that the previous
/// step returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentsCursor(pub(crate) String);

/// The result of one bounded step of a walk over the contents of a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentsStep {
    pub frame: Frame,
    /// In no order.
    pub contents: Vec<(Subject, Content)>,
    /// The cursor of the next step, or `None` at the end of the walk.
    pub next: Option<ContentsCursor>,
}

/// Identifies the contents that are merged into a board, however often parts of them are sent: the board that they are
/// of, and the walk in which they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImportId(pub u64);

impl ImportId {
    /// Returns the id of contents of a board of this generation, which were read in the walk with this number. (Of the
    /// generation 32 bits are enough to tell the few imports of a board apart.)
    pub fn new(board: Generation, walk: u32) -> Self {
        Self(board.0 & !u64::from(u32::MAX) | u64::from(walk))
    }

    /// Returns whether both are contents of the same board. A board gets these once, whichever walk read them.
    pub fn is_of_same_board(self, other: Self) -> bool {
        self.0 >> 32 == other.0 >> 32
    }

    /// Reads what `to_string` returns: 16 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let id = u64::from_str_radix(text, 16).ok().map(Self)?;
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for ImportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The result of [`Store::begin_import`](super::Store::begin_import).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportBegun {
    /// The import is open. For each track of the board, in its order: the number of the last piece that is merged in
    /// all partitions, 0 if none is.
    Open { through: Vec<u64> },
    /// An import of contents of the same board was ended before.
    Ended,
    /// Another import is open.
    OtherOpen(ImportId),
    /// The board may have samples. What an older store has for the same subject and slot cannot be merged with these.
    MayHaveSamples,
    /// The board has had [`MAX_IMPORTS`] imports.
    TooMany,
}

/// The largest number of imports that a board remembers, so that none of them counts twice.
pub const MAX_IMPORTS: usize = 16;

/// A piece of an import: a part of what one track receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// From 1, and less than 2^40. Within an import each piece has a number of its own, and the pieces of a track are
    /// merged in the order of their numbers.
    pub number: u64,
    /// At most [`MAX_CONTENTS`](Self::MAX_CONTENTS). The slot of a cell is the start of a slot of the track, for LAST
    /// the slot that contains the time of its value.
    pub contents: Vec<(Subject, Content)>,
    /// Starts of slots, each with a number of items that were counted in it. They are added when all contents of the
    /// piece are done. Those of slots that the track does not have are left out.
    pub events: Vec<(Timestamp, u64)>,
}

impl Piece {
    /// The largest number of contents in a piece.
    pub const MAX_CONTENTS: usize = 1_000;
}

/// What became of the contents of a piece. Each of them is one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    pub merged: u64,
    /// Their slots are below the floor of the track, so they no longer count.
    pub expired: u64,
    /// Together with what the subject has, they would exceed the bound of a slot; or the subject's data is damaged; or
    /// they are not contents of the track: of another kind, or of a slot that does not exist or is after the head.
    pub refused: u64,
    /// They were merged, or not, by an earlier call for the same piece.
    pub repeated: u64,
}

impl Merged {
    /// Adds the numbers of another result.
    pub fn add(&mut self, other: Self) {
        self.merged += other.merged;
        self.expired += other.expired;
        self.refused += other.refused;
        self.repeated += other.repeated;
    }
}
