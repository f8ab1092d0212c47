//! The values of a subject that may have millions: texts, their order by time, and an index, none of which is ever
//! moved as a whole.

use std::hash::BuildHasher;

use super::few::Few;
use super::texts::Texts;
use super::{Moment, Sighting};
use crate::store::embedded::ranking::{Entry, Ranking};
use crate::store::embedded::table::{self, Extendible};

/// The largest number of texts that are moved for each value removed.
const MOVED: usize = 16;

/// Values with their times.
#[derive(Debug, Default)]
pub(super) struct Many {
    texts: Texts,
    /// The values seen, ordered by time (stored as scores) and bytes.
    seen: Ranking,
    gone: Ranking,
    index: Extendible<Indexed>,
    hasher: rapidhash::fast::RandomState,
}

/// The hash of a value, and the reference to its text.
#[derive(Clone, Copy, Debug)]
struct Indexed([u32; 2]);

impl table::Entry for Indexed {
    /// This many texts would take 16 GB, so no text has this reference.
    const VACANT: Self = Indexed([0, u32::MAX]);

    fn is_vacant(&self) -> bool {
        self.0[1] == u32::MAX
    }

    fn hash(&self) -> u32 {
        self.0[0]
    }
}

impl Many {
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn get(&self, value: &str) -> Option<Sighting> {
        self.find(self.hash(value), value).map(|text| self.texts.known(text))
    }

    /// Sets the time of a value. O(log values).
    pub(super) fn set(&mut self, value: &str, new: Sighting) {
        let hash = self.hash(value);
        let Some(text) = self.find(hash, value) else {
            let text = self.texts.push(value, new);
            self.index.insert(Indexed([hash, text]));
            return self.enlist(Entry::new(new.at, value, text), new.gone);
        };
        let old = self.texts.known(text);
        let entry = Entry::new(old.at, value, text);
        if old.gone == new.gone {
            let (ranking, texts) = self.ranking(old.gone);
            ranking.replace(entry, entry.with_score(new.at), texts);
        } else {
            self.unlist(entry, old.gone);
            self.enlist(entry.with_score(new.at), new.gone);
        }
        self.texts.set_known(text, new);
    }

    /// Removes a value. Returns whether it was stored. O(log values).
    pub(super) fn forget(&mut self, value: &str) -> bool {
        let hash = self.hash(value);
        let Some(text) = self.find(hash, value) else { return false };
        let known = self.texts.known(text);
        self.unlist(Entry::new(known.at, value, text), known.gone);
        self.index.remove(hash, |held| held.0[1] == text);
        let freed = self.texts.free(text);
        self.compact(2 * freed);
        true
    }

    /// Returns the values seen, or with `gone` the values retracted, oldest first.
    pub(super) fn moments(&self, gone: bool) -> impl Iterator<Item = Moment<'_>> {
        self.order(gone).ascending(0).map(|entry| self.moment(entry))
    }

    /// Returns the same values from this time and value on. O(log values) to start.
    pub(super) fn from(&self, gone: bool, at: i64, value: &str) -> impl Iterator<Item = Moment<'_>> {
        let place = self.order(gone).place_from(at, value, &self.texts);
        self.order(gone).ascending(place).map(|entry| self.moment(entry))
    }

    /// Returns the values seen, newest first, without the first `skipped`.
    pub(super) fn newest(&self, skipped: usize) -> impl Iterator<Item = Moment<'_>> {
        self.seen.descending(skipped).map(|entry| self.moment(entry))
    }

    /// Returns the number of values with a time of `floor` or later. O(log values).
    pub(super) fn count_from(&self, gone: bool, floor: i64) -> usize {
        self.order(gone).len() - self.order(gone).below(floor)
    }

    fn moment(&self, entry: Entry) -> Moment<'_> {
        Moment { at: entry.score, value: self.texts.text(entry.id) }
    }

    fn order(&self, gone: bool) -> &Ranking {
        if gone { &self.gone } else { &self.seen }
    }

    fn ranking(&mut self, gone: bool) -> (&mut Ranking, &Texts) {
        (if gone { &mut self.gone } else { &mut self.seen }, &self.texts)
    }

    fn enlist(&mut self, entry: Entry, gone: bool) {
        let (ranking, texts) = self.ranking(gone);
        ranking.insert(entry, texts);
    }

    fn unlist(&mut self, entry: Entry, gone: bool) {
        let (ranking, texts) = self.ranking(gone);
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
        for _ in 0..MOVED {
            let Some((text, looked)) = self.texts.next_to_move() else { return };
            if let Some(text) = text {
                self.relocate(text);
            }
            bytes = bytes.saturating_sub(looked);
            if bytes == 0 {
                return;
            }
        }
    }

    fn relocate(&mut self, text: u32) {
        let (value, known) = (self.texts.text(text).to_owned(), self.texts.known(text));
        let moved = self.texts.push(&value, known);
        if let Some(held) = self.index.find_mut(self.hash(&value), |held| held.0[1] == text) {
            held.0[1] = moved;
        }
        let (ranking, texts) = self.ranking(known.gone);
        ranking.replace(Entry::new(known.at, &value, text), Entry::new(known.at, &value, moved), texts);
        self.texts.free(text);
    }

    /// Returns the values in the form for few. There must be few.
    pub(super) fn to_few(&self) -> Few {
        let mut few = Few::default();
        for gone in [false, true] {
            self.moments(gone).for_each(|moment| few.set(moment.value, Sighting { at: moment.at, gone }));
        }
        few
    }

    /// Returns the number of entries of rankings and index moved so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> usize {
        self.seen.moved() + self.gone.moved() + self.index.moved()
    }

    /// Returns the bytes that texts use.
    #[cfg(test)]
    pub(super) fn text_bytes(&self) -> usize {
        self.texts.memory_bytes()
    }
}
