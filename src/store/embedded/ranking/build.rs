//! Building a ranking of millions of entries at once: a few passes over memory instead of millions of searches.
//!
//! Entries are collected in leaves, unsorted. Splitters from a sample divide them into parts that fit into a
//! processor's cache. Each part is sorted separately, by two threads, and written back into the leaves that it came
//! from. So building takes hardly more memory than the ranking.

use super::Sorted;
use super::entry::{Entry, PREFIX, TextSource, WORDS, words};
use super::node::{Leaf, Node};

/// The approximate number of entries in a part, which are sorted together: 900 KB.
const PART: usize = 32_768;
/// The largest number of parts. It is limited because the part of each entry is found by a search among the splitters.
const PARTS: usize = 1_024;
/// The number of entries sampled for each part. With enough of them, parts differ little in size.
const SAMPLED: usize = 16;
/// The number of threads that divide and sort, including the calling one.
const THREADS: usize = 2;

/// Unsorted entries, from which a [`Sorted`] is built.
#[derive(Debug, Default)]
pub(in super::super) struct Unsorted<const LEAF: usize = 292> {
    /// The leaves. All except the last are full.
    leaves: Vec<Leaf>,
}

impl<const LEAF: usize> Unsorted<LEAF> {
    /// Adds an entry. Each subject must be added at most once. O(1).
    pub(in super::super) fn push(&mut self, entry: Entry) {
        push::<LEAF>(&mut self.leaves, entry, || Vec::with_capacity(LEAF));
    }
}

/// Adds an entry to leaves of which all except the last are full.
fn push<const LEAF: usize>(leaves: &mut Vec<Leaf>, entry: Entry, leaf: impl FnOnce() -> Leaf) {
    match leaves.last_mut() {
        Some(last) if last.len() < LEAF => last.push(entry),
        _ => {
            let mut leaf = leaf();
            leaf.push(entry);
            leaves.push(leaf);
        }
    }
}

impl<const LEAF: usize> FromIterator<Entry> for Unsorted<LEAF> {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let mut unsorted = Self { leaves: Vec::new() };
        entries.into_iter().for_each(|entry| unsorted.push(entry));
        unsorted
    }
}

impl<const LEAF: usize, const NODE: usize> Sorted<LEAF, NODE> {
    /// Builds a ranking from unsorted entries. O(n log n), on two threads if there are many entries.
    pub(in super::super) fn build(entries: Unsorted<LEAF>, texts: &(impl TextSource + Sync)) -> Self {
        let mut leaves = entries.leaves;
        let splitters = splitters(&leaves, texts);
        if splitters.is_empty() {
            leaves = sort_part::<LEAF>(vec![leaves], texts);
            return Self::of_leaves(leaves);
        }
        // Each thread divides its share of the leaves. So the leaves of a part come from all threads.
        let share = leaves.len().div_ceil(THREADS);
        let shares: Vec<Vec<Leaf>> =
            (0..THREADS).map(|_| leaves.split_off(leaves.len().saturating_sub(share))).collect();
        let divided = on_threads(shares, |share| divide::<LEAF>(share, &splitters, texts));
        let mut parts: Vec<Vec<Vec<Leaf>>> = (0..=splitters.len()).map(|_| Vec::new()).collect();
        for (part, leaves) in divided.into_iter().flat_map(|share| share.into_iter().enumerate()) {
            parts[part].push(leaves);
        }
        // Each thread sorts every other part, because the sizes of parts may grow or shrink from one end to the other.
        let mut turns: Vec<Vec<_>> = (0..THREADS).map(|_| Vec::new()).collect();
        for (nth, part) in parts.into_iter().enumerate() {
            turns[nth % THREADS].push((nth, part));
        }
        let sorted = on_threads(turns, |turn| {
            turn.into_iter().map(|(nth, part)| (nth, sort_part::<LEAF>(part, texts))).collect::<Vec<_>>()
        });
        let mut parts: Vec<(usize, Vec<Leaf>)> = sorted.into_iter().flatten().collect();
        parts.sort_unstable_by_key(|(nth, _)| *nth);
        Self::of_leaves(parts.into_iter().flat_map(|(_, leaves)| leaves).collect())
    }

    /// Creates a ranking from sorted leaves, none of them empty.
    fn of_leaves(leaves: Vec<Leaf>) -> Self {
        let mut nodes = Vec::with_capacity(leaves.len().div_ceil(Self::JOIN));
        let mut leaves = leaves.into_iter();
        loop {
            let part: Vec<Leaf> = leaves.by_ref().take(Self::JOIN).collect();
            if part.is_empty() {
                return Self::of_nodes(nodes);
            }
            nodes.push(Node::new(part));
        }
    }
}

/// Runs each item of work on its own thread; the last one on the calling thread.
fn on_threads<T: Send, R: Send>(mut work: Vec<T>, run: impl Fn(T) -> R + Sync) -> Vec<R> {
    let own = work.pop();
    std::thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = work.into_iter().map(|work| scope.spawn(move || run(work))).collect();
        let own = own.map(run);
        // A thread ends without a result only if it panics. The panic is passed on.
        let join = |other: std::thread::ScopedJoinHandle<'_, R>| {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        others.into_iter().map(join).chain(own).collect()
    })
}

/// Returns entries that divide all entries into parts of about the same size, or none if one part is enough.
fn splitters(leaves: &[Leaf], texts: &impl TextSource) -> Vec<Entry> {
    let count: usize = leaves.iter().map(Vec::len).sum();
    let parts = (count / PART).min(PARTS);
    if parts < 2 {
        return Vec::new();
    }
    let step = count / (parts * SAMPLED);
    let mut sample: Vec<Entry> = leaves.iter().flatten().step_by(step).copied().collect();
    sort(&mut sample, texts);
    (1..parts).map(|nth| sample[nth * sample.len() / parts]).collect()
}

/// Divides leaves into one list for each part: the entries before the first splitter, and those from each splitter on.
fn divide<const LEAF: usize>(leaves: Vec<Leaf>, splitters: &[Entry], texts: &impl TextSource) -> Vec<Vec<Leaf>> {
    let mut parts: Vec<Vec<Leaf>> = (0..=splitters.len()).map(|_| Vec::new()).collect();
    let mut spare: Vec<Leaf> = Vec::new();
    for mut leaf in leaves {
        for entry in leaf.drain(..) {
            let part = splitters.partition_point(|splitter| entry.cmp(splitter, texts).is_ge());
            push::<LEAF>(&mut parts[part], entry, || spare.pop().unwrap_or_else(|| Vec::with_capacity(LEAF)));
        }
        spare.push(leaf);
    }
    parts
}

/// Sorts the entries of one part, and writes them back into its leaves, each filled to the usual level.
fn sort_part<const LEAF: usize>(part: Vec<Vec<Leaf>>, texts: &impl TextSource) -> Vec<Leaf> {
    let mut leaves: Vec<Leaf> = part.into_iter().flatten().collect();
    let mut all = leaves.concat();
    sort(&mut all, texts);
    let count = all.len().div_ceil(Node::<LEAF>::DENSE);
    leaves.resize_with(count, || Vec::with_capacity(LEAF));
    for (nth, leaf) in leaves.iter_mut().enumerate() {
        leaf.clear();
        leaf.extend_from_slice(&all[nth * all.len() / count..(nth + 1) * all.len() / count]);
    }
    leaves
}

/// Sorts entries in the order of [`Entry::cmp`].
fn sort(entries: &mut [Entry], texts: &impl TextSource) {
    entries.sort_unstable_by(Entry::cmp_key);
    for run in entries.chunk_by_mut(|a, b| a.cmp_key(b).is_eq()) {
        sort_run(run, PREFIX, texts);
    }
}

/// Sorts entries whose texts agree in their first `from` bytes. Each text is read once for every sixteen bytes in which
/// it agrees with another, instead of once for every comparison.
fn sort_run(run: &mut [Entry], from: usize, texts: &impl TextSource) {
    if run.len() < 2 {
        return;
    }
    let mut ended = true;
    let mut keyed: Vec<([u64; 2], Entry)> = Vec::with_capacity(run.len());
    for entry in run.iter() {
        let text = texts.text(entry.id);
        ended &= text.len() <= from;
        keyed.push((words(text, from), *entry));
    }
    keyed.sort_unstable_by_key(|(words, _)| *words);
    for (entry, (_, sorted)) in run.iter_mut().zip(&keyed) {
        *entry = *sorted;
    }
    if ended {
        // The same text occurs more than once, which callers must avoid. The order does not matter.
        return;
    }
    let mut start = 0;
    for same in keyed.chunk_by(|(a, _), (b, _)| a == b) {
        sort_run(&mut run[start..start + same.len()], from + WORDS, texts);
        start += same.len();
    }
}
