//! A decoded operation, and the codes of operations: see [`log_operations`](super::log_operations).

use super::clock::ClockRecord;
use super::edition_counts::EditionCounts;
use super::fingerprint::Fingerprint;
use super::import_progress::Progress;
use super::last_seen::LastSeen;
use crate::board::{Epoch, Generation, Mark, Moderation, SourceNumber, TrackId};
use crate::store::{ImportId, MAX_EDITIONS, SheetId};

pub(super) const TRACK: u8 = 1;
pub(super) const SLOT: u8 = 2;
pub(super) const AMOUNT: u8 = 3;
pub(super) const SAMPLES: u8 = 4;
pub(super) const MARKED: u8 = 5;
pub(super) const SKETCH: u8 = 6;
pub(super) const SEEN: u8 = 7;
pub(super) const RETRACTED: u8 = 8;
pub(super) const DROPPED: u8 = 9;
pub(super) const CAPPED: u8 = 10;
pub(super) const ID: u8 = 11;
pub(super) const REMOVED: u8 = 12;
pub(super) const ADVANCED: u8 = 13;
pub(super) const DEFINED: u8 = 14;
pub(super) const UNDEFINED: u8 = 15;
pub(super) const CLOCK: u8 = 16;
pub(super) const SIMULATED: u8 = 17;
pub(super) const EVENTS: u8 = 18;
pub(super) const LAST: u8 = 19;
pub(super) const ROW: u8 = 20;
pub(super) const IMPORT_BEGUN: u8 = 21;
pub(super) const IMPORT_ENDED: u8 = 22;
pub(super) const MERGED: u8 = 23;
pub(super) const EDITIONS: u8 = 24;
pub(super) const COUNTS: u8 = 25;
pub(super) const MODERATED: u8 = 26;
pub(super) const SHEET: u8 = 27;
pub(super) const EARLIER: u8 = 28;
pub(super) const REACHED: u8 = 29;
pub(super) const ATTRIBUTES: u8 = 30;

/// A decoded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogOperation<'a> {
    /// The operations that follow are about this track. Ids are about the board of the track.
    Track(TrackId),
    /// The subject has this amount, or extreme, in this slot. On a `from_first` board, it has a counter that began at
    /// this time.
    Amount { slot: i64, amount: i64, subject: &'a str },
    /// The subject has this sum and count in this slot.
    Samples { slot: i64, sum: i64, count: i64, subject: &'a str },
    /// The newest value of the subject in this slot, and its time.
    Last { slot: i64, at: i64, value: i64, subject: &'a str },
    /// A register of the subject's sketch in this slot is at least this high.
    Marked { slot: i64, mark: Mark, subject: &'a str },
    /// The subject's sketch in this slot.
    Sketch { slot: i64, sketch: &'a [u8], subject: &'a str },
    /// A value of the subject was last seen or retracted at this time. `None` means that nothing is stored about it.
    Value { last_seen: Option<LastSeen>, subject: &'a str, value: &'a str },
    /// The newest value of the subject that was dropped had this time.
    Capped { at: i64, subject: &'a str },
    /// An id was counted.
    Id { arrival: i64, fingerprint: Fingerprint },
    /// The subject has no data.
    Removed { subject: &'a str },
    /// The number of items counted in this slot.
    Events { slot: i64, count: u64 },
    /// The board's time has reached `now`.
    Advanced { now: i64 },
    /// The board was defined at this time. Versions that do not know this operation read it as
    /// [`Advanced`](Self::Advanced).
    DefinedAt { at: i64 },
    /// Whether the board has counted a sample. Without this operation it is not known. Earlier versions read it as
    /// [`Advanced`](Self::Advanced), or as a time of definition that the following operation replaces.
    Sampled { any: bool },
    /// An import into the board is open.
    ImportBegun { import: ImportId },
    /// An import into the board was ended.
    ImportEnded { import: ImportId },
    /// What is merged of an open import into the track.
    Merged { import: ImportId, progress: Progress },
    /// A board was defined.
    Defined { generation: Generation, name: &'a str, definition: &'a str },
    /// A board was removed.
    Undefined { generation: Generation },
    /// The editions of a board: the form that [`Board::stored_editions`](crate::board::Board::stored_editions) returns,
    /// the definition of the current one, and the id of its first track, to which the operations of the board belong
    /// from here on.
    Editions { generation: Generation, epoch: Epoch, main: TrackId, definition: &'a str, form: &'a str },
    /// What is counted about the two editions of the board.
    Counts { editions: [TrackId; MAX_EDITIONS], counts: EditionCounts },
    /// What is set for a subject of the board.
    Moderated { subject: &'a str, moderation: Moderation },
    /// The attributes of a subject of the board, as they are stored.
    Attributes { subject: &'a str, text: &'a str },
    /// A sheet of the track has this text.
    Sheet { id: SheetId, text: &'a str },
    /// The first ranks of the track as they were at this time, encoded, or `None` if they are not known.
    Earlier { at: i64, lines: Option<&'a [u8]> },
    /// What the board has reached of a source, in the stored form.
    Reached { source: SourceNumber, text: &'a str },
    /// A reading of the system clock.
    Clock(ClockRecord),
    /// The time of the simulated clock.
    Simulated { now: i64 },
    /// The row of a table with this id. `None` means that there is no such row.
    Row { table: &'a str, id: &'a str, text: Option<&'a str> },
}
