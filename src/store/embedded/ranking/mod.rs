//! Order statistics: finds the position of a subject among millions, or the subject at a position, with few memory
//! reads.
//!
//! Entries are kept sorted by (group, score, subject bytes) in three levels: leaves of at most 292 entries, nodes of at most
//! 128 leaves, and the list of nodes. At each level the first entries and the sizes of the level below are stored in
//! adjacent memory. So finding a position, or the entry at a position, takes two short sums and a search in one leaf.
//!
//! No operation moves more than the entries of some leaves and a node's 128 leaves (their pointers), at any size. The
//! list of nodes, about 450 at 10 million entries, changes once in some ten thousand operations.
//!
//! An entry takes 28 bytes. Leaves are 0.79 full on average after random updates, 0.84 after random insertions, 7/8
//! when built, and full where entries were added in order. The process grew by 37.5 bytes per entry (10 million, random
//! updates).

mod build;
mod entry;
mod node;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub(super) use self::build::Unsorted;
use self::entry::GroupScore;
pub(super) use self::entry::{Entry, TextSource, UNGROUPED};
use self::node::{Node, locate};

/// The ranking of a track. A leaf takes 8,176 bytes, because allocators divide 64 KB into eight such blocks without
/// waste. With leaves of 14,336 bytes (512 entries) they waste an eighth, and the process grew by 43 bytes per entry.
pub(super) type Ranking = Sorted<292, 128>;

/// Entries ascending by (group, score, subject bytes), in leaves of at most `LEAF` entries, in nodes of at most `NODE` leaves.
#[derive(Debug)]
pub(super) struct Sorted<const LEAF: usize, const NODE: usize> {
    /// The nodes. None is empty.
    nodes: Vec<Node<LEAF>>,
    /// The first entry of each node.
    firsts: Vec<Entry>,
    /// The number of entries of each node.
    counts: Vec<u32>,
    len: usize,
    /// The bytes that the nodes use.
    bytes_of_nodes: usize,
    /// The number of entries, leaves and nodes moved so far.
    #[cfg(test)]
    moved: usize,
}

impl<const LEAF: usize, const NODE: usize> Default for Sorted<LEAF, NODE> {
    fn default() -> Self {
        Self::of_nodes(Vec::new())
    }
}

impl<const LEAF: usize, const NODE: usize> Sorted<LEAF, NODE> {
    /// The largest number of leaves for which two adjacent nodes are joined.
    const JOIN: usize = NODE / 4 * 3;

    /// Creates a ranking of these nodes, none of which may be empty.
    fn of_nodes(nodes: Vec<Node<LEAF>>) -> Self {
        let counts: Vec<u32> = nodes.iter().map(Node::count).collect();
        Self {
            firsts: nodes.iter().map(Node::first).collect(),
            len: counts.iter().map(|count| *count as usize).sum(),
            bytes_of_nodes: nodes.iter().map(Node::memory_bytes).sum(),
            counts,
            nodes,
            #[cfg(test)]
            moved: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry that is not in the ranking yet. O(log n).
    pub(super) fn insert(&mut self, entry: Entry, texts: &impl TextSource) {
        self.len += 1;
        if self.nodes.is_empty() {
            // A small ranking should use little memory: this leaf grows only as entries are added.
            (self.nodes, self.firsts, self.counts) = (vec![Node::new(vec![vec![entry]])], vec![entry], vec![1]);
            self.bytes_of_nodes = self.nodes[0].memory_bytes();
            return;
        }
        let at = self.node_for(&entry, texts);
        let node = &mut self.nodes[at];
        let before = node.memory_bytes();
        let moved = node.insert(entry, texts);
        self.bytes_of_nodes += node.memory_bytes();
        self.bytes_of_nodes -= before;
        self.firsts[at] = node.first();
        self.counts[at] += 1;
        self.count_moved(moved);
        if self.nodes[at].leaves().len() > NODE {
            self.split(at);
        }
    }

    /// Removes an entry. Returns whether it was in the ranking. O(log n).
    pub(super) fn remove(&mut self, entry: Entry, texts: &impl TextSource) -> bool {
        let Some((at, leaf, place)) = self.find(&entry, texts) else { return false };
        self.remove_at(at, leaf, place);
        true
    }

    /// Moves a subject from one score to another. Returns whether the old entry was in the ranking. O(log n). A move
    /// within a leaf changes nothing else.
    pub(super) fn replace(&mut self, old: Entry, new: Entry, texts: &impl TextSource) -> bool {
        let Some((at, leaf, place)) = self.find(&old, texts) else {
            self.insert(new, texts);
            return false;
        };
        let node = &self.nodes[at];
        let is_first = at == 0 && leaf == 0;
        let inside = (is_first || node.first_of(leaf).cmp(&new, texts).is_lt())
            && (node.first_after(leaf).or(self.firsts.get(at + 1))).is_none_or(|next| next.cmp(&new, texts).is_gt());
        if inside {
            let moved = self.nodes[at].replace(leaf, place, new, texts);
            self.firsts[at] = self.nodes[at].first();
            self.count_moved(moved);
        } else {
            self.remove_at(at, leaf, place);
            self.insert(new, texts);
        }
        true
    }

    /// Returns whether exactly this entry is in the ranking. O(log n).
    pub(super) fn contains(&self, entry: Entry, texts: &impl TextSource) -> bool {
        self.find(&entry, texts).is_some()
    }

    /// Returns the position of an entry from the low end, from 0. O(log n).
    pub(super) fn position(&self, entry: Entry, texts: &impl TextSource) -> Option<usize> {
        self.find(&entry, texts).map(|(at, leaf, place)| self.before(at) + self.nodes[at].before(leaf) + place)
    }

    /// Returns the positions of the entries of a group. O(log n).
    pub(super) fn positions_of(&self, group: u32) -> Range<usize> {
        self.count_while(|held| held.group() < group)..self.count_while(|held| held.group() <= group)
    }

    /// Returns the position of the first entry after this score and subject of a group, which need not be ranked.
    /// O(log n).
    pub(super) fn position_after(&self, group: u32, score: i64, text: &str, texts: &impl TextSource) -> usize {
        let subject = Entry::new(score, text, 0).in_group(group);
        let by_text = |id| texts.text(id).as_bytes().cmp(text.as_bytes());
        self.count_while(|held| held.cmp_key(&subject).then_with(|| by_text(held.id)).is_le())
    }

    /// Returns the position of the first entry at or after this score and subject of a group, which need not be ranked.
    /// O(log n).
    pub(super) fn position_from(&self, group: u32, score: i64, text: &str, texts: &impl TextSource) -> usize {
        let subject = Entry::new(score, text, 0).in_group(group);
        let by_text = |id| texts.text(id).as_bytes().cmp(text.as_bytes());
        self.count_while(|held| held.cmp_key(&subject).then_with(|| by_text(held.id)).is_lt())
    }

    /// Returns the position of the first entry of a group with a score of `score` or more. O(log n).
    pub(super) fn position_of_score(&self, group: u32, score: i64) -> usize {
        let first = GroupScore::new(group, score);
        self.count_while(|held| held.group_score() < first)
    }

    /// Returns the position of the first entry of a group with a score of more than `score`. O(log n).
    pub(super) fn position_after_score(&self, group: u32, score: i64) -> usize {
        let last = GroupScore::new(group, score);
        self.count_while(|held| held.group_score() <= last)
    }

    /// Returns the entries upward from position `from`. O(log n) to start, then O(1) each.
    pub(super) fn ascending(&self, from: usize) -> impl Iterator<Item = Entry> + '_ {
        let (first, leaves, nodes) = match self.locate(from) {
            Some((at, leaf, place)) => {
                let leaves = self.nodes[at].leaves();
                (&leaves[leaf][place..], &leaves[leaf + 1..], &self.nodes[at + 1..])
            }
            None => (&[][..], &[][..], &[][..]),
        };
        let rest = nodes.iter().flat_map(|node| node.leaves());
        first.iter().chain(leaves.iter().chain(rest).flatten()).copied()
    }

    /// Returns the entries downward from position `from`, counted from the high end. O(log n) to start, then O(1) each.
    pub(super) fn descending(&self, from: usize) -> impl Iterator<Item = Entry> + '_ {
        let place = self.len.checked_sub(from).and_then(|left| left.checked_sub(1));
        let (first, leaves, nodes) = match place.and_then(|place| self.locate(place)) {
            Some((at, leaf, place)) => {
                let leaves = self.nodes[at].leaves();
                (&leaves[leaf][..=place], &leaves[..leaf], &self.nodes[..at])
            }
            None => (&[][..], &[][..], &[][..]),
        };
        let rest = nodes.iter().rev().flat_map(|node| node.leaves().iter().rev());
        let rest = leaves.iter().rev().chain(rest).flat_map(|leaf| leaf.iter().rev());
        first.iter().rev().chain(rest).copied()
    }

    fn count_while(&self, holds: impl Fn(&Entry) -> bool) -> usize {
        match self.firsts.partition_point(&holds).checked_sub(1) {
            Some(last) => self.before(last) + self.nodes[last].count_while(holds),
            None => 0,
        }
    }

    /// Returns the number of entries before this node.
    fn before(&self, at: usize) -> usize {
        self.counts[..at].iter().map(|count| *count as usize).sum()
    }

    /// Returns the last node that starts at or before `entry`, or the first node.
    fn node_for(&self, entry: &Entry, texts: &impl TextSource) -> usize {
        self.firsts.partition_point(|first| first.cmp(entry, texts).is_le()).saturating_sub(1)
    }

    /// Returns the node, the leaf and the place in the leaf of an entry.
    fn find(&self, entry: &Entry, texts: &impl TextSource) -> Option<(usize, usize, usize)> {
        let at = self.node_for(entry, texts);
        let (leaf, place) = self.nodes.get(at)?.find(entry, texts)?;
        Some((at, leaf, place))
    }

    /// Returns the node, the leaf and the place in the leaf of the entry at `index`, if there are that many entries.
    fn locate(&self, index: usize) -> Option<(usize, usize, usize)> {
        if index >= self.len {
            return None;
        }
        let (at, rest) = locate(&self.counts, index);
        let (leaf, place) = self.nodes[at].locate(rest);
        Some((at, leaf, place))
    }

    fn remove_at(&mut self, at: usize, leaf: usize, place: usize) {
        let node = &mut self.nodes[at];
        let (leaves, before) = (node.leaves().len(), node.memory_bytes());
        let moved = node.remove(leaf, place);
        let left = node.leaves().len();
        self.bytes_of_nodes += node.memory_bytes();
        self.bytes_of_nodes -= before;
        self.len -= 1;
        self.counts[at] -= 1;
        if left > 0 {
            self.firsts[at] = node.first();
        }
        self.count_moved(moved);
        if left < leaves {
            self.join_around(at);
        }
    }

    /// Splits a node that has too many leaves. Where entries are added in order, all leaves except the newest stay
    /// together.
    fn split(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let leaves = node.leaves();
        let from = match (leaves[0].len(), leaves[NODE].len()) {
            (_, 1) => NODE,
            (1, _) => 1,
            _ => leaves.len() / 2,
        };
        let before = node.memory_bytes();
        let upper = node.split_off(from);
        self.bytes_of_nodes += node.memory_bytes() + upper.memory_bytes();
        self.bytes_of_nodes -= before;
        self.counts[at] = node.count();
        self.counts.insert(at + 1, upper.count());
        self.firsts.insert(at + 1, upper.first());
        self.nodes.insert(at + 1, upper);
        self.count_moved(NODE + 1 - from + self.nodes.len() - at);
    }

    /// Joins a node that has become small with an adjacent one, or removes it if it is empty.
    fn join_around(&mut self, at: usize) {
        let leaves = |at: usize| self.nodes.get(at).map(|node| node.leaves().len());
        let Some(own) = leaves(at) else { return };
        let fits = |other: usize| leaves(other).is_some_and(|other| own + other <= Self::JOIN);
        let left = if own == 0 {
            self.take_node(at);
            return;
        } else if fits(at + 1) {
            at
        } else if at > 0 && fits(at - 1) {
            at - 1
        } else {
            return;
        };
        let upper = self.take_node(left + 1);
        self.count_moved(upper.leaves().len());
        self.counts[left] += upper.count();
        let node = &mut self.nodes[left];
        self.bytes_of_nodes -= node.memory_bytes();
        node.append(upper);
        self.bytes_of_nodes += node.memory_bytes();
    }

    fn take_node(&mut self, at: usize) -> Node<LEAF> {
        self.firsts.remove(at);
        self.counts.remove(at);
        self.count_moved(self.nodes.len() - at);
        let node = self.nodes.remove(at);
        self.bytes_of_nodes -= node.memory_bytes();
        node
    }

    /// Returns the bytes that the ranking uses, without the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes_of_nodes
            + self.nodes.capacity() * size_of::<Node<LEAF>>()
            + self.firsts.capacity() * size_of::<Entry>()
            + self.counts.capacity() * size_of::<u32>()
    }

    /// Returns the number of entries, leaves and nodes moved so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> usize {
        self.moved
    }

    /// Adds to the number of moves, for tests.
    #[cfg_attr(not(test), expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, unused_variables))]
    fn count_moved(&mut self, moved: usize) {
        #[cfg(test)]
        {
            self.moved += moved;
        }
    }
}
