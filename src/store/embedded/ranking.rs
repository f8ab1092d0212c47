//! Order statistics: who stands where among millions, in a handful of memory reads.
//!
//! Entries are kept sorted by (score, subject bytes) in chunks of at most [`MOST`] entries; a Fenwick tree over the
//! chunks' sizes turns "which place is this?" and "who is at place n?" into O(log n). An entry names its subject by
//! id and carries the subject's first sixteen bytes, so that ties rarely have to look at the text, which is two
//! cache misses away: at a million subjects that is most of what an update costs.

use std::cmp::Ordering;

/// The most entries of one chunk: a few pages of memory, moved by one `memmove`.
const MOST: usize = 512;
/// How full chunks are when built in bulk: room to grow before the first split.
const FILL: usize = 384;

/// One subject's place in the ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub score: i64,
    prefix: [u64; 2],
    pub id: u32,
}

/// Where the subjects' texts are found by id.
pub(super) trait Texts {
    fn text(&self, id: u32) -> &str;
}

impl Entry {
    pub(super) fn new(score: i64, text: &str, id: u32) -> Self {
        let bytes = text.as_bytes();
        let word = |from: usize| {
            let part = bytes.get(from..).unwrap_or_default();
            let mut word = [0; 8];
            let count = part.len().min(8);
            word[..count].copy_from_slice(&part[..count]);
            u64::from_be_bytes(word)
        };
        Self { score, prefix: [word(0), word(8)], id }
    }

    /// The same subject with another score.
    pub(super) fn with_score(self, score: i64) -> Self {
        Self { score, ..self }
    }

    fn cmp(&self, other: &Entry, texts: &impl Texts) -> Ordering {
        // Padding with zeros keeps the order: no subject contains one. Equal prefixes decide nothing.
        (self.score, self.prefix).cmp(&(other.score, other.prefix)).then_with(|| {
            if self.id == other.id {
                Ordering::Equal
            } else {
                texts.text(self.id).as_bytes().cmp(texts.text(other.id).as_bytes())
            }
        })
    }
}

/// A board's ranking, ascending by (score, subject bytes).
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// None is empty.
    chunks: Vec<Vec<Entry>>,
    /// Each chunk's first entry, side by side: finding a chunk would otherwise miss the cache at every look.
    firsts: Vec<Entry>,
    sizes: Fenwick,
    len: usize,
}

impl Ranking {
    /// Builds a ranking from entries in any order. O(n log n).
    pub(super) fn build(mut entries: Vec<Entry>, texts: &impl Texts) -> Self {
        entries.sort_unstable_by(|a, b| a.cmp(b, texts));
        let chunks: Vec<Vec<Entry>> = entries
            .chunks(FILL)
            .map(|part| {
                let mut chunk = Vec::with_capacity(MOST);
                chunk.extend_from_slice(part);
                chunk
            })
            .collect();
        let mut ranking = Self { sizes: Fenwick::default(), firsts: Vec::new(), len: entries.len(), chunks };
        ranking.recount();
        ranking
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry that is not there yet. O(log n).
    pub(super) fn insert(&mut self, entry: Entry, texts: &impl Texts) {
        self.len += 1;
        if self.chunks.is_empty() {
            let mut chunk = Vec::with_capacity(MOST);
            chunk.push(entry);
            self.chunks.push(chunk);
            return self.recount();
        }
        let at = self.chunk_for(&entry, texts);
        let chunk = &mut self.chunks[at];
        let place = chunk.partition_point(|e| e.cmp(&entry, texts).is_lt());
        chunk.insert(place, entry);
        self.firsts[at] = chunk[0];
        self.sizes.add(at, 1);
        if chunk.len() == MOST {
            let mut upper = Vec::with_capacity(MOST);
            upper.extend(chunk.drain(MOST / 2..));
            self.chunks.insert(at + 1, upper);
            self.recount();
        }
    }

    /// Takes an entry out; answers whether it was there. O(log n).
    pub(super) fn remove(&mut self, entry: Entry, texts: &impl Texts) -> bool {
        let Some((at, place)) = self.find(&entry, texts) else { return false };
        self.chunks[at].remove(place);
        self.sizes.add(at, -1);
        self.len -= 1;
        self.merge_around(at);
        true
    }

    /// Moves a subject from one score to another. O(log n); within a chunk nothing else is touched.
    /// Answers whether the old entry was there.
    pub(super) fn replace(&mut self, old: Entry, new: Entry, texts: &impl Texts) -> bool {
        let Some((at, from)) = self.find(&old, texts) else {
            self.insert(new, texts);
            return false;
        };
        let inside = (at == 0 || self.firsts[at].cmp(&new, texts).is_lt())
            && (at + 1 == self.chunks.len() || self.firsts[at + 1].cmp(&new, texts).is_gt());
        if inside {
            let chunk = &mut self.chunks[at];
            let to = chunk.partition_point(|e| e.cmp(&new, texts).is_lt());
            // `to` counts the old entry where it stands below; it leaves a gap that the ones between close.
            if to > from {
                chunk.copy_within(from + 1..to, from);
                chunk[to - 1] = new;
            } else {
                chunk.copy_within(to..from, to + 1);
                chunk[to] = new;
            }
            self.firsts[at] = chunk[0];
            return true;
        }
        self.remove(old, texts);
        self.insert(new, texts);
        true
    }

    /// Whether just this entry is in the ranking. O(log n).
    pub(super) fn contains(&self, entry: Entry, texts: &impl Texts) -> bool {
        self.find(&entry, texts).is_some()
    }

    /// The place of an entry from the low end, from 0. O(log n).
    pub(super) fn position(&self, entry: Entry, texts: &impl Texts) -> Option<usize> {
        self.find(&entry, texts).map(|(at, place)| self.sizes.before(at) + place)
    }

    /// The place of the first entry after this score and subject, which need not be ranked. O(log n).
    pub(super) fn place_after(&self, score: i64, text: &str, texts: &impl Texts) -> usize {
        self.count_while(|e| (e.score, texts.text(e.id).as_bytes()) <= (score, text.as_bytes()))
    }

    /// How many entries score less than `score`. O(log n).
    pub(super) fn below(&self, score: i64) -> usize {
        self.count_while(|e| e.score < score)
    }

    /// How many entries score `score` or less. O(log n).
    pub(super) fn through(&self, score: i64) -> usize {
        self.count_while(|e| e.score <= score)
    }

    /// The entries upward from place `from`. O(log n) to start, then O(1) each.
    pub(super) fn ascending(&self, from: usize) -> impl Iterator<Item = Entry> + '_ {
        let (at, place) = self.locate(from);
        let (first, rest) = match self.chunks.get(at) {
            Some(chunk) => (&chunk[place..], &self.chunks[at + 1..]),
            None => (&[][..], &[][..]),
        };
        first.iter().chain(rest.iter().flatten()).copied()
    }

    /// The entries downward, starting with the one at place `from` counted from the high end.
    pub(super) fn descending(&self, from: usize) -> impl Iterator<Item = Entry> + '_ {
        let (first, rest) = match self.len.checked_sub(from) {
            Some(left @ 1..) => {
                let index = left - 1;
                let (at, place) = self.locate(index);
                (&self.chunks[at][..=place], &self.chunks[..at])
            }
            _ => (&[][..], &[][..]),
        };
        first.iter().rev().chain(rest.iter().rev().flat_map(|chunk| chunk.iter().rev())).copied()
    }

    fn count_while(&self, holds: impl Fn(&Entry) -> bool) -> usize {
        let at = self.firsts.partition_point(&holds);
        match at.checked_sub(1) {
            Some(last) => self.sizes.before(last) + self.chunks[last].partition_point(holds),
            None => 0,
        }
    }

    /// The last chunk that starts at or before `entry`, or the first.
    fn chunk_for(&self, entry: &Entry, texts: &impl Texts) -> usize {
        self.firsts.partition_point(|first| first.cmp(entry, texts).is_le()).saturating_sub(1)
    }

    fn find(&self, entry: &Entry, texts: &impl Texts) -> Option<(usize, usize)> {
        if self.chunks.is_empty() {
            return None;
        }
        let at = self.chunk_for(entry, texts);
        self.chunks[at].binary_search_by(|e| e.cmp(entry, texts)).ok().map(|place| (at, place))
    }

    /// Chunk and place of index `from`; past the end, the number of chunks.
    fn locate(&self, from: usize) -> (usize, usize) {
        if from >= self.len { (self.chunks.len(), 0) } else { self.sizes.locate(from) }
    }

    /// Chunks that became small join a neighbour, so that none is empty and their number stays near n / MOST.
    fn merge_around(&mut self, at: usize) {
        let len = self.chunks[at].len();
        if len == 0 {
            self.chunks.remove(at);
            return self.recount();
        }
        self.firsts[at] = self.chunks[at][0];
        if len >= MOST / 4 {
            return;
        }
        let left = if at + 1 < self.chunks.len() && self.chunks[at + 1].len() + len <= FILL {
            at
        } else if at > 0 && self.chunks[at - 1].len() + len <= FILL {
            at - 1
        } else {
            return;
        };
        let upper = self.chunks.remove(left + 1);
        self.chunks[left].extend(upper);
        self.recount();
    }

    fn recount(&mut self) {
        self.firsts.clear();
        self.firsts.extend(self.chunks.iter().filter_map(|chunk| chunk.first().copied()));
        self.sizes.rebuild(self.chunks.iter().map(Vec::len));
    }
}

/// Prefix sums over the chunks' sizes.
#[derive(Debug, Default)]
struct Fenwick {
    /// `tree[i - 1]` sums the sizes of the chunks `i - lowbit(i) .. i`.
    tree: Vec<usize>,
}

impl Fenwick {
    /// O(chunks), and only when a chunk appears or goes: once in some hundred changes.
    fn rebuild(&mut self, sizes: impl Iterator<Item = usize>) {
        self.tree.clear();
        self.tree.extend(sizes);
        for i in 1..=self.tree.len() {
            let parent = i + (i & i.wrapping_neg());
            if parent <= self.tree.len() {
                self.tree[parent - 1] += self.tree[i - 1];
            }
        }
    }

    fn add(&mut self, at: usize, change: isize) {
        let mut i = at + 1;
        while i <= self.tree.len() {
            self.tree[i - 1] = self.tree[i - 1].wrapping_add_signed(change);
            i += i & i.wrapping_neg();
        }
    }

    /// The sum of the sizes of the chunks before `at`.
    fn before(&self, at: usize) -> usize {
        let (mut i, mut sum) = (at, 0);
        while i > 0 {
            sum += self.tree[i - 1];
            i -= i & i.wrapping_neg();
        }
        sum
    }

    /// The chunk that holds index `from`, and the place in it; `from` must be below the total.
    fn locate(&self, mut from: usize) -> (usize, usize) {
        let mut at = 0;
        let mut step = self.tree.len().checked_ilog2().map_or(0, |log| 1usize << log);
        while step > 0 {
            if at + step <= self.tree.len() && self.tree[at + step - 1] <= from {
                at += step;
                from -= self.tree[at - 1];
            }
            step /= 2;
        }
        (at, from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Texts for Vec<String> {
        fn text(&self, id: u32) -> &str {
            &self[id as usize]
        }
    }

    /// Names with long common prefixes, so that the text decides many ties.
    fn names(count: u32) -> Vec<String> {
        (0..count)
            .map(|i| match i % 3 {
                0 => format!("subject-with-a-long-prefix-{}", (i * 7_919) % count),
                1 => "x".repeat(1 + i as usize % 40) + &i.to_string(),
                _ => i.to_string(),
            })
            .collect()
    }

    fn check(ranking: &Ranking, model: &[Entry], texts: &Vec<String>) {
        assert_eq!(ranking.len(), model.len());
        assert!(ranking.chunks.iter().all(|c| !c.is_empty() && c.len() < MOST));
        assert!(ranking.firsts.iter().eq(ranking.chunks.iter().map(|chunk| &chunk[0])));
        assert!(ranking.ascending(0).eq(model.iter().copied()));
        assert!(ranking.descending(0).eq(model.iter().rev().copied()));
        for place in [0, 1, model.len() / 3, model.len() / 2, model.len().saturating_sub(1), model.len()] {
            assert!(ranking.ascending(place).take(700).eq(model.iter().copied().skip(place).take(700)));
            assert!(ranking.descending(place).take(700).eq(model.iter().rev().copied().skip(place).take(700)));
            if let Some(entry) = model.get(place) {
                assert_eq!(ranking.position(*entry, texts), Some(place));
                assert_eq!(ranking.place_after(entry.score, texts.text(entry.id), texts), place + 1);
                assert_eq!(ranking.below(entry.score), model.partition_point(|e| e.score < entry.score));
                assert_eq!(ranking.through(entry.score), model.partition_point(|e| e.score <= entry.score));
            }
        }
        for score in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(ranking.below(score), model.partition_point(|e| e.score < score));
            assert_eq!(ranking.through(score), model.partition_point(|e| e.score <= score));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn equals_a_sorted_vec(
            changes in prop::collection::vec((0u32..3_000, -40i64..40, 0u8..10), 1..6_000),
            shrink in any::<bool>(),
        ) {
            let texts = names(3_000);
            let mut ranking = Ranking::default();
            let mut scores = vec![None; 3_000];
            let shrinking = changes.iter().map(|(id, _, _)| (*id, 0, 0)).filter(|_| shrink);
            for (id, score, kind) in changes.iter().copied().chain(shrinking) {
                let entry = |score| Entry::new(score, &texts[id as usize], id);
                let slot: &mut Option<i64> = &mut scores[id as usize];
                match (*slot, kind) {
                    (None, 0..=1) => prop_assert!(!ranking.remove(entry(score), &texts)),
                    (None, _) => {
                        ranking.insert(entry(score), &texts);
                        *slot = Some(score);
                    }
                    (Some(old), 0..=1) => {
                        prop_assert!(ranking.contains(entry(old), &texts));
                        prop_assert!(ranking.remove(entry(old), &texts));
                        *slot = None;
                    }
                    (Some(old), _) => {
                        prop_assert!(ranking.replace(entry(old), entry(score), &texts));
                        *slot = Some(score);
                    }
                }
            }
            let mut model: Vec<Entry> = (0u32..)
                .zip(&scores)
                .filter_map(|(id, score)| score.map(|s| Entry::new(s, &texts[id as usize], id)))
                .collect();
            model.sort_by(|a, b| {
                (a.score, texts[a.id as usize].as_bytes()).cmp(&(b.score, texts[b.id as usize].as_bytes()))
            });
            check(&ranking, &model, &texts);
            check(&Ranking::build(model.iter().rev().copied().collect(), &texts), &model, &texts);
        }
    }

    #[test]
    fn chunks_split_and_merge_and_the_empty_ranking_is_sound() {
        let texts = names(20_000);
        let mut ranking = Ranking::default();
        check(&ranking, &[], &texts);
        let entries: Vec<Entry> = (0..20_000).map(|id| Entry::new(i64::from(id), &texts[id as usize], id)).collect();
        for entry in &entries {
            ranking.insert(*entry, &texts);
        }
        check(&ranking, &entries, &texts);
        let full = ranking.chunks.len();
        assert!(full >= 20_000 / MOST);
        // Taking out every entry but each hundredth must let chunks join.
        for entry in entries.iter().filter(|e| e.id % 100 != 0) {
            assert!(ranking.remove(*entry, &texts));
        }
        let rest: Vec<Entry> = entries.iter().copied().filter(|e| e.id % 100 == 0).collect();
        check(&ranking, &rest, &texts);
        assert!(ranking.chunks.len() * 10 < full, "{} of {full} chunks left", ranking.chunks.len());
        for entry in &rest {
            assert!(ranking.remove(*entry, &texts));
        }
        check(&ranking, &[], &texts);
    }
}
