//! The values of a subject that has few: one byte string, which is searched from its beginning.

use std::ops::Range;

use super::{LastSeen, SeenValue, decode, encode};
use crate::store::sizing::allocated;

/// Values one after another, in the order of (retracted, time, bytes). Each is stored as eight bytes for the time and
/// `retracted`, two bytes for the length of the text, and the text. The string has no spare capacity, because most are
/// written once and then kept.
#[derive(Debug, Default)]
pub(super) struct FewValues(Vec<u8>);

/// The bytes of a value before its text.
const HEAD: usize = 10;

/// Returns the estimated bytes of this number of values with texts of this length.
pub(super) fn estimated_bytes(values: usize, length: usize) -> usize {
    allocated(values * (HEAD + length))
}

impl FewValues {
    /// Returns the bytes that the values use, with the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        allocated(self.0.capacity())
    }

    /// Returns the number of values. O(values), like every method below.
    pub(super) fn len(&self) -> usize {
        self.records().count()
    }

    /// Returns all values, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, LastSeen)> {
        // Only valid UTF-8 is written.
        self.records().map(|(_, value, last_seen)| (std::str::from_utf8(value).unwrap_or_default(), last_seen))
    }

    /// Returns the values seen, or with `retracted` the values retracted, oldest first.
    pub(super) fn values(&self, retracted: bool) -> impl Iterator<Item = SeenValue<'_>> {
        let of_kind = move |(_, last_seen): &(&str, LastSeen)| last_seen.retracted == retracted;
        self.all().filter(of_kind).map(|(value, last_seen)| SeenValue { at: last_seen.at, value })
    }

    pub(super) fn get(&self, value: &str) -> Option<LastSeen> {
        self.find(value).map(|(_, last_seen)| last_seen)
    }

    pub(super) fn set(&mut self, value: &str, last_seen: LastSeen) {
        self.remove(value);
        let key = (last_seen.retracted, last_seen.at, value.as_bytes());
        let after = self.records().find(|(_, held, known)| (known.retracted, known.at, *held) > key);
        let place = after.map_or(self.0.len(), |(range, ..)| range.start);
        // Values have at most 512 bytes.
        let length = value.len() as u16;
        let record = encode(last_seen).into_iter().chain(length.to_le_bytes()).chain(value.bytes());
        self.0.reserve_exact(HEAD + value.len());
        self.0.splice(place..place, record);
    }

    /// Removes a value. Returns whether it was stored.
    pub(super) fn remove(&mut self, value: &str) -> bool {
        let Some((range, _)) = self.find(value) else { return false };
        self.0.drain(range);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        true
    }

    fn find(&self, value: &str) -> Option<(Range<usize>, LastSeen)> {
        self.records().find(|(_, held, _)| *held == value.as_bytes()).map(|(range, _, last_seen)| (range, last_seen))
    }

    /// Returns each value with its range of bytes, its text and its time.
    fn records(&self) -> impl Iterator<Item = (Range<usize>, &[u8], LastSeen)> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let (known, rest) = self.0.get(start..)?.split_first_chunk()?;
            let (length, rest) = rest.split_first_chunk()?;
            let text = rest.get(..usize::from(u16::from_le_bytes(*length)))?;
            let range = start..start + HEAD + text.len();
            start = range.end;
            Some((range, text, decode(*known)))
        })
    }
}
