//! The values of a subject that may have millions: texts, their order by time, and an index, none of which is ever
//! moved as a whole.

use std::hash::BuildHasher;

use super::few::FewValues;
use super::texts::{self, ValueTexts};
use super::{LastSeen, SeenValue};
use crate::store::embedded::hash_table::{self, ExtendibleTable};
use crate::store::embedded::ranking::{Entry, Ranking, UNGROUPED};
use crate::store::sizing::allocated;

/// The largest number of texts that are moved for each value removed.
const MAX_MOVED: usize = 16;

/// Values with their times.
#[derive(Debug, Default)]
pub(super) struct ManyValues {
    texts: ValueTexts,
    /// The values seen, ordered by time (stored as scores) and bytes.
    seen: Ranking,
    retracted: Ranking,
    index: ExtendibleTable<IndexEntry>,
    hasher: rapidhash::fast::RandomState,
}

/// Returns the estimated bytes of this number of values with texts of this length. The rankings' leaves and the index
/// are on average four fifths full.
pub(super) fn estimated_bytes(values: usize, length: usize) -> usize {
    let in_arrays = (size_of::<Entry>() + size_of::<IndexEntry>()) * 5 / 4;
    allocated(size_of::<ManyValues>()) + values * (texts::size(length) + in_arrays)
}

/// The hash of a value, and the reference to its text.
#[derive(Clone, Copy, Debug)]
struct IndexEntry([u32; 2]);

impl hash_table::TableEntry for IndexEntry {
    /// This many texts would take 16 GB, so no text has this reference.
    const VACANT: Self = IndexEntry([0, u32::MAX]);

    fn is_vacant(&self) -> bool {
        self.0[1] == u32::MAX
    }

    fn hash(&self) -> u32 {
        self.0[0]
    }
}

impl ManyValues {
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn get(&self, value: &str) -> Option<LastSeen> {
        self.find(self.hash(value), value).map(|text| self.texts.last_seen(text))
    }

    /// Sets the time of a value. O(log values).
    pub(super) fn set(&mut self, value: &str, new: LastSeen) {
        let hash = self.hash(value);
        let Some(text) = self.find(hash, value) else {
            let text = self.texts.push(value, new);
            self.index.insert(IndexEntry([hash, text]));
            return self.insert_in_order(Entry::new(new.at, value, text), new.retracted);
        };
        let old = self.texts.last_seen(text);
        let entry = Entry::new(old.at, value, text);
        if old.retracted == new.retracted {
            let (ranking, texts) = self.ranking_mut(old.retracted);
            ranking.replace(entry, entry.with_score(new.at), texts);
        } else {
            self.remove_from_order(entry, old.retracted);
            self.insert_in_order(entry.with_score(new.at), new.retracted);
        }
        self.texts.set_last_seen(text, new);
    }

    /// Removes a value. Returns whether it was stored. O(log values).
    pub(super) fn remove(&mut self, value: &str) -> bool {
        let hash = self.hash(value);
        let Some(text) = self.find(hash, value) else { return false };
        let known = self.texts.last_seen(text);
        self.remove_from_order(Entry::new(known.at, value, text), known.retracted);
        self.index.remove(hash, |held| held.0[1] == text);
        let freed = self.texts.free(text);
        self.compact(2 * freed);
        true
    }

    /// Returns the values seen, or with `retracted` the values retracted, oldest first.
    pub(super) fn values(&self, retracted: bool) -> impl Iterator<Item = SeenValue<'_>> {
        self.ranking_of(retracted).ascending(0).map(|entry| self.seen_value(entry))
    }

    /// Returns the same values from this time and value on. O(log values) to start.
    pub(super) fn from(&self, retracted: bool, at: i64, value: &str) -> impl Iterator<Item = SeenValue<'_>> {
        let place = self.ranking_of(retracted).position_from(UNGROUPED, at, value, &self.texts);
        self.ranking_of(retracted).ascending(place).map(|entry| self.seen_value(entry))
    }

    /// Returns the values seen, newest first, without the first `skipped`.
    pub(super) fn newest(&self, skipped: usize) -> impl Iterator<Item = SeenValue<'_>> {
        self.seen.descending(skipped).map(|entry| self.seen_value(entry))
    }

    /// Returns the number of values with a time of `floor` or later. O(log values).
    pub(super) fn count_from(&self, retracted: bool, floor: i64) -> usize {
        self.ranking_of(retracted).len() - self.ranking_of(retracted).position_of_score(UNGROUPED, floor)
    }

    /// Returns the number of values seen that are at this time and value, or after it. O(log values).
    pub(super) fn count_from_place(&self, at: i64, value: &str) -> usize {
        self.seen.len() - self.seen.position_from(UNGROUPED, at, value, &self.texts)
    }

    fn seen_value(&self, entry: Entry) -> SeenValue<'_> {
        SeenValue { at: entry.score(), value: self.texts.text(entry.id) }
    }

    fn ranking_of(&self, retracted: bool) -> &Ranking {
        if retracted { &self.retracted } else { &self.seen }
    }

    fn ranking_mut(&mut self, retracted: bool) -> (&mut Ranking, &ValueTexts) {
        (if retracted { &mut self.retracted } else { &mut self.seen }, &self.texts)
    }

    fn insert_in_order(&mut self, entry: Entry, retracted: bool) {
        let (ranking, texts) = self.ranking_mut(retracted);
        ranking.insert(entry, texts);
    }

    fn remove_from_order(&mut self, entry: Entry, retracted: bool) {
        let (ranking, texts) = self.ranking_mut(retracted);
        ranking.remove(entry, texts);
    }

    fn hash(&self, value: &str) -> u32 {
        (self.hasher.hash_one(value.as_bytes()) >> 32) as u32
    }

    fn find(&self, hash: u32, value: &str) -> Option<u32> {
        self.index.find(hash, |held| self.texts.text(held.0[1]) == value).map(|held| held.0[1])
    }

    /// Moves some texts out of blocks that are less than half in use, and scans at most about `bytes` bytes for that.
    /// With twice the number of bytes freed, blocks are emptied as fast as they become sparse.
    fn compact(&mut self, mut bytes: usize) {
        for _ in 0..MAX_MOVED {
            let Some((text, scanned)) = self.texts.next_to_move() else { return };
            if let Some(text) = text {
                self.relocate(text);
            }
            bytes = bytes.saturating_sub(scanned);
            if bytes == 0 {
                return;
            }
        }
    }

    fn relocate(&mut self, text: u32) {
        let (value, known) = (self.texts.text(text).to_owned(), self.texts.last_seen(text));
        let moved = self.texts.push(&value, known);
        if let Some(held) = self.index.find_mut(self.hash(&value), |held| held.0[1] == text) {
            held.0[1] = moved;
        }
        let (ranking, texts) = self.ranking_mut(known.retracted);
        ranking.replace(Entry::new(known.at, &value, text), Entry::new(known.at, &value, moved), texts);
        self.texts.free(text);
    }

    /// Returns the values in the form for few. There must be few.
    pub(super) fn to_few(&self) -> FewValues {
        let mut few = FewValues::default();
        for retracted in [false, true] {
            self.values(retracted).for_each(|seen| few.set(seen.value, LastSeen { at: seen.at, retracted }));
        }
        few
    }

    /// Returns the number of entries of rankings and index moved so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> usize {
        self.seen.moved() + self.retracted.moved() + self.index.moved()
    }

    /// Returns the bytes that the values use, with some of the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        let orders = self.seen.memory_bytes() + self.retracted.memory_bytes();
        allocated(size_of::<Self>()) + self.texts.memory_bytes() + orders + self.index.memory_bytes()
    }

    /// Returns the bytes that texts use.
    #[cfg(test)]
    pub(super) fn text_bytes(&self) -> usize {
        let (kept, counted) = self.texts.counted_capacity();
        assert_eq!(kept, counted);
        self.texts.memory_bytes()
    }
}
