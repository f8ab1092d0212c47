//! Operations: the encoded state after a change. The log and checkpoints consist of operations.
//!
//! Each operation is absolute: it contains what a subject has afterwards, not what was added. So applying a sequence of
//! operations again, from any earlier point, ends in the same state.
//!
//! Operations are small because they refer to earlier ones: [`LogOperation::Track`] names the track of all that follow,
//! a slot is written only when it differs from the previous one, and a subject that is the same as the previous one is
//! written as an empty text. Every [`LogOperations`] buffer begins with a track, which resets all of these, so buffers
//! can be joined in any order.
//!
//! ```text
//! code      then
//! Track     id (8 bytes); 0 for operations of the store itself
//! Slot      start of the slot in milliseconds (8 bytes); applies to Amount, Samples, Marked, Sketch, Events and Last
//! Amount    amount (signed varint), subject
//! Samples   sum, count (signed varints), subject
//! Marked    register (2 bytes), rank (1 byte), subject
//! Sketch    length (varint) and bytes of the sketch, subject
//! Seen      time (8 bytes), subject, value       Retracted: the same
//! Dropped   subject, value
//! Capped    time (8 bytes), subject
//! Id        arrival (8 bytes), fingerprint (16 bytes)
//! Removed   subject
//! Advanced  time (8 bytes); if one more Advanced follows, the time of the board's definition; if two more follow, 0 if
//!           the board has counted no sample, otherwise 1
//! Events    count (varint)
//! Last      time (8 bytes), value (signed varint), subject
//! Defined   generation (8 bytes), name, definition as JSON
//! Undefined generation (8 bytes)
//! Clock     wall clock and uptime in milliseconds (8 bytes each), boot id (16 bytes)
//! Simulated time of the simulated clock (8 bytes)
//! Row       table, id, then 1 and the text, or 0 if there is no such row
//! Begun     import (8 bytes)                     Ended: the same
//! Merged    import (8 bytes), last piece that is merged, piece that is merged in part, contents done of it (varints)
//! Editions  generation, epoch, id of the first track of the current edition (8 bytes each), its definition as JSON,
//!           stored form of the editions
//! Counts    time since which both editions receive everything (8 bytes); 1 and the time of the last fill (8 bytes), or
//!           0; for each edition the id of its first track (8 bytes), then by reason the items that only the other one
//!           counted (varints)
//! Moderated subject, letters: see [`Moderation::letters`]
//! Attributes subject, text: see [`Attributes`]; the text is empty if there are none
//! Sheet     id as text, text
//! Earlier   time (8 bytes); 0 if the ranks then are not known, or 1 and the length (varint) of the lines: each is a rank
//!           (varint) and a subject, which is empty if it was removed
//! Reached   number of the source (varint), stored form of what is reached
//! ```
//!
//! Integers are little-endian. A text is its length as a varint, then its bytes.

mod decoding;

use std::collections::BTreeMap;
use std::ops::Bound;

pub(super) use self::decoding::{OperationError, operations};
use super::clock::ClockRecord;
use super::edition_counts::EditionCounts;
use super::fingerprint::Fingerprint;
use super::import_progress::Progress;
use super::last_seen::LastSeen;
pub(super) use super::log_operation::LogOperation;
use super::log_operation::*;
use crate::board::{Attributes, EarlierRanks, Epoch, Generation, Mark, Moderation, SourceNumber, TrackId};
use crate::store::{ImportId, MAX_EDITIONS, Reached, SheetId};

/// The length of the [`LogOperation::Track`] at the start of a buffer.
const HEADER: usize = 9;

/// The entries of a map whose operations are written together: about this many bytes, after this key or from the first on.
pub(super) struct Portion<K> {
    pub(super) after: Option<K>,
    pub(super) bytes: usize,
}

/// A buffer of encoded operations of one track, or of the store.
#[derive(Debug)]
pub(super) struct LogOperations {
    bytes: Vec<u8>,
    /// The slot that was written last.
    slot: Option<i64>,
    /// The range in `bytes` of the subject that was written last.
    subject: std::ops::Range<usize>,
}

impl LogOperations {
    /// Creates an empty buffer for operations of a track.
    pub(super) fn of(track: TrackId) -> Self {
        let mut bytes = Vec::with_capacity(64);
        bytes.push(TRACK);
        bytes.extend_from_slice(&track.0.to_le_bytes());
        Self { bytes, slot: None, subject: 0..0 }
    }

    /// Creates an empty buffer for operations that belong to no board.
    pub(super) fn of_store() -> Self {
        Self::of(TrackId(0))
    }

    /// Returns the number of bytes, including the track.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no operations after the track.
    pub(super) fn is_empty(&self) -> bool {
        self.len() <= HEADER
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends the operations that `write` writes of entries of a map: those of a portion. Returns the last key if there may
    /// be more.
    pub(super) fn portion<K: Ord + Clone, V>(
        &mut self,
        map: &BTreeMap<K, V>,
        Portion { after, bytes }: Portion<K>,
        write: impl Fn(&mut Self, &K, &V),
    ) -> Option<K> {
        let end = self.len() + bytes;
        for (key, value) in map.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)) {
            write(self, key, value);
            if self.len() >= end {
                return Some(key.clone());
            }
        }
        None
    }

    /// Appends another buffer, including its track.
    pub(super) fn append(&mut self, other: &LogOperations) {
        self.bytes.extend_from_slice(&other.bytes);
        (self.slot, self.subject) = (None, 0..0);
    }

    /// Moves the operations of another buffer here, if it has any.
    pub(super) fn append_changes(&mut self, other: &mut LogOperations) {
        if !other.is_empty() {
            self.append(other);
            other.clear();
        }
    }

    /// Clears the buffer except for the track.
    pub(super) fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        (self.slot, self.subject) = (None, 0..0);
    }

    pub(super) fn amount(&mut self, slot: i64, amount: i64, subject: &str) {
        self.slot(slot);
        self.bytes.push(AMOUNT);
        self.signed(amount);
        self.subject(subject);
    }

    pub(super) fn samples(&mut self, slot: i64, (sum, count): (i64, i64), subject: &str) {
        self.slot(slot);
        self.bytes.push(SAMPLES);
        self.signed(sum);
        self.signed(count);
        self.subject(subject);
    }

    pub(super) fn last(&mut self, slot: i64, at: i64, value: i64, subject: &str) {
        self.slot(slot);
        self.timed(LAST, at);
        self.signed(value);
        self.subject(subject);
    }

    pub(super) fn marked(&mut self, slot: i64, mark: Mark, subject: &str) {
        self.slot(slot);
        self.bytes.push(MARKED);
        self.bytes.extend_from_slice(&mark.register.to_le_bytes());
        self.bytes.push(mark.rank);
        self.subject(subject);
    }

    pub(super) fn sketch(&mut self, slot: i64, sketch: &[u8], subject: &str) {
        self.slot(slot);
        self.bytes.push(SKETCH);
        self.unsigned(sketch.len() as u64);
        self.bytes.extend_from_slice(sketch);
        self.subject(subject);
    }

    pub(super) fn value(&mut self, last_seen: Option<LastSeen>, subject: &str, value: &str) {
        match last_seen {
            Some(LastSeen { at, retracted }) => self.timed(if retracted { RETRACTED } else { SEEN }, at),
            None => self.bytes.push(DROPPED),
        }
        self.subject(subject);
        self.text(value);
    }

    pub(super) fn capped(&mut self, at: i64, subject: &str) {
        self.timed(CAPPED, at);
        self.subject(subject);
    }

    pub(super) fn id(&mut self, arrival: i64, fingerprint: Fingerprint) {
        self.timed(ID, arrival);
        self.bytes.extend_from_slice(&fingerprint.0.to_le_bytes());
    }

    pub(super) fn removed(&mut self, subject: &str) {
        self.bytes.push(REMOVED);
        self.subject(subject);
    }

    pub(super) fn advanced(&mut self, now: i64) {
        self.timed(ADVANCED, now);
    }

    /// Appends the time of the board's definition, and the time that the board has reached. A time is that of the
    /// definition if another one follows it, so nothing may come between the two.
    pub(super) fn defined_at(&mut self, at: i64, now: i64) {
        self.advanced(at);
        self.advanced(now);
    }

    /// Appends whether the board has counted a sample, the time of its definition, and the time that it has reached. A
    /// number is whether there are samples if two times follow it, so nothing may come between the three.
    ///
    /// Versions before this one read the number as a time that the board reached long ago, or as the time of the
    /// definition, until the next operation corrects that. So they can open a directory that contains it.
    pub(super) fn sampled(&mut self, any: bool, defined_at: i64, now: i64) {
        self.advanced(i64::from(any));
        self.defined_at(defined_at, now);
    }

    pub(super) fn import_begun(&mut self, import: ImportId) {
        self.import(IMPORT_BEGUN, import);
    }

    pub(super) fn import_ended(&mut self, import: ImportId) {
        self.import(IMPORT_ENDED, import);
    }

    pub(super) fn merged(&mut self, import: ImportId, progress: Progress) {
        self.import(MERGED, import);
        self.unsigned(progress.through);
        self.unsigned(progress.partial);
        self.unsigned(progress.done);
    }

    fn import(&mut self, code: u8, import: ImportId) {
        self.bytes.push(code);
        self.bytes.extend_from_slice(&import.0.to_le_bytes());
    }

    pub(super) fn events(&mut self, slot: i64, count: u64) {
        self.slot(slot);
        self.bytes.push(EVENTS);
        self.unsigned(count);
    }

    pub(super) fn defined(&mut self, generation: Generation, name: &str, definition: &str) {
        self.bytes.push(DEFINED);
        self.bytes.extend_from_slice(&generation.0.to_le_bytes());
        self.text(name);
        self.text(definition);
    }

    pub(super) fn undefined(&mut self, generation: Generation) {
        self.bytes.push(UNDEFINED);
        self.bytes.extend_from_slice(&generation.0.to_le_bytes());
    }

    pub(super) fn editions(
        &mut self,
        (generation, epoch): (Generation, Epoch),
        main: TrackId,
        definition: &str,
        form: &str,
    ) {
        self.bytes.push(EDITIONS);
        for number in [generation.0, epoch.0, main.0] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.text(definition);
        self.text(form);
    }

    pub(super) fn edition_counts(&mut self, editions: [TrackId; MAX_EDITIONS], counts: &EditionCounts) {
        self.timed(COUNTS, counts.since);
        self.bytes.push(u8::from(counts.filled.is_some()));
        if let Some(filled) = counts.filled {
            self.bytes.extend_from_slice(&filled.to_le_bytes());
        }
        for (edition, missed) in editions.iter().zip(counts.missed) {
            self.bytes.extend_from_slice(&edition.0.to_le_bytes());
            missed.into_iter().for_each(|items| self.unsigned(items));
        }
    }

    pub(super) fn moderated(&mut self, subject: &str, moderation: Moderation) {
        self.bytes.push(MODERATED);
        self.subject(subject);
        self.text(moderation.letters());
    }

    pub(super) fn attributes(&mut self, subject: &str, attributes: &Attributes) {
        self.bytes.push(ATTRIBUTES);
        self.subject(subject);
        self.text(attributes.stored());
    }

    pub(super) fn sheet(&mut self, id: SheetId, text: &str) {
        self.bytes.push(SHEET);
        self.text(&id.to_string());
        self.text(text);
    }

    pub(super) fn reached(&mut self, source: SourceNumber, reached: &Reached) {
        self.bytes.push(REACHED);
        self.unsigned(source.0.into());
        self.text(&reached.text());
    }

    pub(super) fn earlier_ranks(&mut self, ranks: &EarlierRanks) {
        self.timed(EARLIER, ranks.at().millis());
        self.bytes.push(u8::from(ranks.lines().is_some()));
        if let Some(lines) = ranks.lines() {
            let mut encoded = Self { bytes: Vec::new(), slot: None, subject: 0..0 };
            for line in lines {
                encoded.unsigned(line.rank);
                encoded.text(line.subject.as_ref().map_or("", |subject| subject.as_str()));
            }
            self.unsigned(encoded.bytes.len() as u64);
            self.bytes.extend_from_slice(&encoded.bytes);
        }
    }

    pub(super) fn clock(&mut self, record: ClockRecord) {
        self.timed(CLOCK, record.wall);
        self.bytes.extend_from_slice(&record.uptime.to_le_bytes());
        self.bytes.extend_from_slice(&record.boot.to_le_bytes());
    }

    pub(super) fn simulated(&mut self, now: i64) {
        self.timed(SIMULATED, now);
    }

    pub(super) fn row(&mut self, table: &str, id: &str, text: Option<&str>) {
        self.bytes.push(ROW);
        self.text(table);
        self.text(id);
        self.bytes.push(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    fn slot(&mut self, slot: i64) {
        if self.slot != Some(slot) {
            self.slot = Some(slot);
            self.timed(SLOT, slot);
        }
    }

    fn timed(&mut self, code: u8, time: i64) {
        self.bytes.push(code);
        self.bytes.extend_from_slice(&time.to_le_bytes());
    }

    fn subject(&mut self, subject: &str) {
        if self.bytes[self.subject.clone()] == *subject.as_bytes() {
            return self.bytes.push(0);
        }
        self.unsigned(subject.len() as u64);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(subject.as_bytes());
        self.subject = start..self.bytes.len();
    }

    fn text(&mut self, text: &str) {
        self.unsigned(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Appends a varint: seven bits per byte, the lowest first. The top bit is set if more bytes follow.
    fn unsigned(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends a signed varint: small numbers of either sign become small unsigned numbers (zigzag encoding).
    fn signed(&mut self, number: i64) {
        self.unsigned(((number << 1) ^ (number >> 63)) as u64);
    }
}

#[cfg(test)]
mod tests;
