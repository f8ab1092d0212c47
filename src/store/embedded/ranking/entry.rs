//! An entry of the ranking, and the order of entries.

use std::cmp::Ordering;

/// A source of the texts by which equal scores are ordered, by id.
pub(in super::super) trait TextSource {
    /// Returns the text of a subject: its name within its group.
    fn text(&self, id: u32) -> &str;
}

/// The group of the entries of a ranking without groups.
pub(in super::super) const UNGROUPED: u32 = 0;

/// A subject's entry in the ranking.
///
/// It names its subject by id and contains the first twelve bytes of the text, so that ties rarely have to read the text
/// itself, which costs two cache misses. Group, score and the first four bytes are one number, so that few comparisons
/// need a branch. The layout avoids padding: 28 bytes, not 32.
///
/// A ranking may consist of groups, one after the other, each ordered by itself: the rankings of a board's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(4))]
pub(in super::super) struct Entry {
    /// From the highest bits on: the group and the score, as [`GroupScore`] has them, and four bytes of the text.
    head: u128,
    /// The next eight bytes of the text.
    further: u64,
    pub id: u32,
}

const _: () = assert!(size_of::<Entry>() == 28);

/// The bit of a score that is inverted, so that negative ones come first.
const SIGN: u64 = 1 << 63;

/// A group and a score as one number, in the order of the group, then of the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupScore(u128);

impl GroupScore {
    pub(super) fn new(group: u32, score: i64) -> Self {
        Self(u128::from(group) << 64 | u128::from(score.cast_unsigned() ^ SIGN))
    }

    /// Returns the number with the first four bytes of a text after it.
    fn with_start(self, start: u32) -> u128 {
        self.0 << 32 | u128::from(start)
    }
}

impl Entry {
    pub(in super::super) fn new(score: i64, text: &str, id: u32) -> Self {
        let [first, second] = words(text, 0);
        let head = GroupScore::new(UNGROUPED, score).with_start((first >> 32) as u32);
        Self { head, further: first << 32 | second >> 32, id }
    }

    pub(in super::super) fn group(&self) -> u32 {
        (self.head >> 96) as u32
    }

    pub(in super::super) fn score(&self) -> i64 {
        ((self.head >> 32) as u64 ^ SIGN).cast_signed()
    }

    pub(super) fn group_score(&self) -> GroupScore {
        GroupScore(self.head >> 32)
    }

    /// Returns the same entry in a group.
    pub(in super::super) fn in_group(self, group: u32) -> Self {
        Self { head: self.head & (u128::MAX >> 32) | u128::from(group) << 96, ..self }
    }

    /// Returns the entry of the same subject with a different id.
    pub(in super::super) fn with_id(self, id: u32) -> Self {
        Self { id, ..self }
    }

    /// Returns the entry of the same subject with a different score.
    pub(in super::super) fn with_score(self, score: i64) -> Self {
        Self { head: GroupScore::new(self.group(), score).with_start(self.head as u32), ..self }
    }

    /// Compares by group, then by score, then by the bytes of the subject. Where the prefixes are equal, compares the
    /// texts.
    #[inline]
    pub(super) fn cmp(&self, other: &Entry, texts: &impl TextSource) -> Ordering {
        match { self.head }.cmp(&{ other.head }) {
            Ordering::Equal => self.cmp_texts(other, texts),
            unequal => unequal,
        }
    }

    /// Compares two entries whose heads are equal.
    #[inline(never)]
    fn cmp_texts(&self, other: &Entry, texts: &impl TextSource) -> Ordering {
        match { self.further }.cmp(&{ other.further }) {
            Ordering::Equal if self.id == other.id => Ordering::Equal,
            Ordering::Equal => texts.text(self.id).as_bytes().cmp(texts.text(other.id).as_bytes()),
            unequal => unequal,
        }
    }

    /// Compares only the data in the entries: the group, the score and the prefix of the subject.
    pub(super) fn cmp_key(&self, other: &Entry) -> Ordering {
        match { self.head }.cmp(&{ other.head }) {
            Ordering::Equal => { self.further }.cmp(&{ other.further }),
            unequal => unequal,
        }
    }
}

/// Returns the number of leading entries that satisfy `holds`. No entry after one that does not satisfy it may satisfy
/// it.
///
/// Tests every [`STRIDE`]th entry first. These can be read from memory in parallel, while a binary search has to wait
/// for each before it knows the next.
pub(super) fn count_while(entries: &[Entry], holds: impl Fn(&Entry) -> bool) -> usize {
    let strides = entries.iter().step_by(STRIDE).map(|entry| usize::from(holds(entry))).sum::<usize>();
    let Some(from) = strides.checked_sub(1).map(|whole| whole * STRIDE) else { return 0 };
    let to = entries.len().min(from + STRIDE);
    from + entries[from..to].partition_point(holds)
}

/// The distance of the entries that [`count_while`] tests first.
const STRIDE: usize = 32;

/// The number of bytes of its text that an entry contains.
pub(super) const PREFIX: usize = 12;

/// The number of bytes of a text that [`words`] reads.
pub(super) const WORDS: usize = 16;

/// Returns sixteen bytes of a text from the byte `from` on, as numbers in the order of the bytes. A text that ends
/// earlier is padded with zeros, which keeps the order because no subject contains a zero byte.
pub(super) fn words(text: &str, from: usize) -> [u64; 2] {
    let mut bytes = [0; WORDS];
    let part = text.as_bytes().get(from..).unwrap_or_default();
    let count = part.len().min(WORDS);
    bytes[..count].copy_from_slice(&part[..count]);
    let both = u128::from_be_bytes(bytes);
    [(both >> 64) as u64, both as u64]
}
