//! A node: some tens of thousands of entries in leaves, whose first entries and sizes are stored in adjacent memory.

use super::entry::{Entry, TextSource, count_while};

/// The number of adjacent leaves among which the entries of a full leaf are shared.
const MAX_SHARED_LEAVES: usize = 3;
/// The largest number of adjacent leaves that are checked for whether one leaf fewer is enough.
const MAX_MERGED_LEAVES: usize = 4;

/// Adjacent entries, in order except while a ranking is being built.
pub(super) type Leaf = Vec<Entry>;

/// Sorted entries, in leaves of at most `LEAF`. No leaf is empty.
///
/// - A full leaf shares its entries evenly with adjacent leaves; if those are full as well, also with a new leaf.
/// - If the entries of up to [`MAX_MERGED_LEAVES`] adjacent leaves fit into one leaf fewer, one leaf is freed.
///
/// After either operation, leaves have room for some insertions, so the other operation does not follow at once.
#[derive(Debug)]
pub(super) struct Node<const LEAF: usize> {
    leaves: Vec<Leaf>,
    /// The first entry of each leaf. A search in the leaves themselves would have a cache miss for each.
    firsts: Vec<Entry>,
    /// The number of entries of each leaf.
    counts: Vec<u32>,
}

impl<const LEAF: usize> Node<LEAF> {
    /// The number of entries up to which leaves are filled, which leaves room to grow.
    pub(super) const DENSE: usize = LEAF * 7 / 8;

    /// Creates a node of these leaves, none of which may be empty.
    pub(super) fn new(leaves: Vec<Leaf>) -> Self {
        let firsts = leaves.iter().map(|leaf| leaf[0]).collect();
        let counts = leaves.iter().map(|leaf| leaf.len() as u32).collect();
        Self { leaves, firsts, counts }
    }

    /// Returns the number of entries. O(leaves).
    pub(super) fn count(&self) -> u32 {
        self.counts.iter().sum()
    }

    pub(super) fn first(&self) -> Entry {
        self.firsts[0]
    }

    pub(super) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Returns the bytes that the node uses, without the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        // Only the leaf of a small ranking is smaller than the others.
        let entries = match &*self.leaves {
            [only] => only.capacity(),
            leaves => leaves.len() * LEAF,
        };
        (entries + self.firsts.capacity()) * size_of::<Entry>()
            + self.leaves.capacity() * size_of::<Leaf>()
            + self.counts.capacity() * size_of::<u32>()
    }

    /// Returns the last leaf that starts at or before `entry`, or the first leaf.
    pub(super) fn leaf_for(&self, entry: &Entry, texts: &impl TextSource) -> usize {
        count_while(&self.firsts, |first| first.cmp(entry, texts).is_le()).saturating_sub(1)
    }

    /// Returns the leaf and the place in it of an entry.
    pub(super) fn find(&self, entry: &Entry, texts: &impl TextSource) -> Option<(usize, usize)> {
        let leaf = self.leaf_for(entry, texts);
        let entries = &self.leaves[leaf];
        let place = count_while(entries, |held| held.cmp(entry, texts).is_lt());
        entries.get(place).is_some_and(|held| held.cmp(entry, texts).is_eq()).then_some((leaf, place))
    }

    /// Returns the number of entries before this leaf.
    pub(super) fn before(&self, leaf: usize) -> usize {
        self.counts[..leaf].iter().sum::<u32>() as usize
    }

    /// Returns the leaf and the place in it of the entry at `place`, which must exist.
    pub(super) fn locate(&self, place: usize) -> (usize, usize) {
        locate(&self.counts, place)
    }

    /// Returns the number of leading entries that satisfy `holds`. No entry after one that does not satisfy it may
    /// satisfy it.
    pub(super) fn count_while(&self, holds: impl Fn(&Entry) -> bool) -> usize {
        match count_while(&self.firsts, &holds).checked_sub(1) {
            Some(last) => self.before(last) + count_while(&self.leaves[last], holds),
            None => 0,
        }
    }

    /// Adds an entry that is not in the node yet. Returns the number of entries and leaves moved.
    pub(super) fn insert(&mut self, entry: Entry, texts: &impl TextSource) -> usize {
        let place_in = |leaf: &[Entry]| count_while(leaf, |held| held.cmp(&entry, texts).is_lt());
        let mut moved = 0;
        let mut leaf = self.leaf_for(&entry, texts);
        let mut place = place_in(&self.leaves[leaf]);
        if self.leaves[leaf].len() == LEAF {
            if place == 0 || place == LEAF {
                // Where entries are added in order, full leaves stay full.
                return self.begin_leaf(leaf + usize::from(place > 0), entry);
            }
            moved += self.make_room(leaf);
            leaf = self.leaf_for(&entry, texts);
            place = place_in(&self.leaves[leaf]);
        }
        let entries = &mut self.leaves[leaf];
        if entries.len() == entries.capacity() {
            // This is the only leaf of a small ranking.
            entries.reserve_exact((entries.len() / 4).max(4).min(LEAF - entries.len()));
        }
        entries.insert(place, entry);
        self.update_leaf_summary(leaf);
        moved + self.leaves[leaf].len() - place
    }

    /// Removes the entry at a place of a leaf, which may leave the node empty. Returns the number of entries and leaves
    /// moved.
    pub(super) fn remove(&mut self, leaf: usize, place: usize) -> usize {
        let entries = &mut self.leaves[leaf];
        entries.remove(place);
        let moved = entries.len() - place;
        if entries.is_empty() {
            self.leaves.remove(leaf);
            self.firsts.remove(leaf);
            self.counts.remove(leaf);
            return moved + self.leaves.len() - leaf;
        }
        self.update_leaf_summary(leaf);
        moved + self.merge_leaves(leaf)
    }

    /// Replaces the entry at a place of a leaf by one that belongs into the same leaf. Returns the number of entries
    /// moved.
    pub(super) fn replace(&mut self, leaf: usize, from: usize, new: Entry, texts: &impl TextSource) -> usize {
        let entries = &mut self.leaves[leaf];
        let to = count_while(entries, |held| held.cmp(&new, texts).is_lt());
        // `to` includes the old entry if that is lower. The entries in between are moved to close its gap.
        let (to, moved) = if to > from {
            entries.copy_within(from + 1..to, from);
            (to - 1, to - from)
        } else {
            entries.copy_within(to..from, to + 1);
            (to, from - to + 1)
        };
        entries[to] = new;
        self.update_leaf_summary(leaf);
        moved
    }

    /// Moves the leaves from this one on to a new node.
    pub(super) fn split_off(&mut self, leaf: usize) -> Self {
        Self {
            leaves: self.leaves.split_off(leaf),
            firsts: self.firsts.split_off(leaf),
            counts: self.counts.split_off(leaf),
        }
    }

    /// Adds the leaves of the next node.
    pub(super) fn append(&mut self, mut next: Self) {
        self.leaves.append(&mut next.leaves);
        self.firsts.append(&mut next.firsts);
        self.counts.append(&mut next.counts);
    }

    /// Returns the first entry of the leaf after this one.
    pub(super) fn first_after(&self, leaf: usize) -> Option<&Entry> {
        self.firsts.get(leaf + 1)
    }

    pub(super) fn first_of(&self, leaf: usize) -> &Entry {
        &self.firsts[leaf]
    }

    /// Updates the stored first entry and size of a leaf that changed.
    fn update_leaf_summary(&mut self, leaf: usize) {
        self.firsts[leaf] = self.leaves[leaf][0];
        self.counts[leaf] = self.leaves[leaf].len() as u32;
    }

    fn begin_leaf(&mut self, leaf: usize, entry: Entry) -> usize {
        let mut entries = Vec::with_capacity(LEAF);
        entries.push(entry);
        self.leaves.insert(leaf, entries);
        self.firsts.insert(leaf, entry);
        self.counts.insert(leaf, 1);
        self.leaves.len() - leaf
    }

    /// Returns the window of `width` adjacent leaves, including this one, with the fewest entries: its first leaf and
    /// its number of entries.
    fn emptiest(&self, leaf: usize, width: usize) -> Option<(usize, usize)> {
        let last = self.leaves.len().checked_sub(width)?.min(leaf);
        let sum = |from: usize| self.counts[from..from + width].iter().sum::<u32>() as usize;
        (leaf.saturating_sub(width - 1)..=last).map(|from| (from, sum(from))).min_by_key(|(_, sum)| *sum)
    }

    /// Makes room in a full leaf and the leaves next to it.
    fn make_room(&mut self, leaf: usize) -> usize {
        let width = MAX_SHARED_LEAVES.min(self.leaves.len());
        let (from, sum) = self.emptiest(leaf, width).unwrap_or((leaf, LEAF));
        let more = usize::from(sum > width * Self::DENSE);
        self.distribute(from, width, width + more)
    }

    /// Frees a leaf if the entries of this leaf and adjacent ones fit into one leaf fewer.
    fn merge_leaves(&mut self, leaf: usize) -> usize {
        for width in 2..=MAX_MERGED_LEAVES {
            match self.emptiest(leaf, width) {
                Some((from, sum)) if sum <= (width - 1) * Self::DENSE => {
                    return self.distribute(from, width, width - 1);
                }
                Some(_) => {}
                None => break,
            }
        }
        0
    }

    /// Shares the entries of `width` leaves, starting at `from`, evenly among `into` leaves. `into` is `width`, or one
    /// more or one fewer.
    fn distribute(&mut self, from: usize, width: usize, into: usize) -> usize {
        let total: u32 = self.counts[from..from + width].iter().sum();
        let mut entries = Vec::with_capacity(total as usize);
        self.leaves[from..from + width].iter_mut().for_each(|leaf| entries.append(leaf));
        let spare = (into > width).then(|| Vec::with_capacity(LEAF));
        self.leaves.splice(from + into.min(width)..from + width, spare);
        let mut rest = entries.as_slice();
        for nth in 0..into {
            // The remaining entries are divided among the remaining leaves.
            let (part, after) = rest.split_at(rest.len() / (into - nth));
            self.leaves[from + nth].extend_from_slice(part);
            rest = after;
        }
        let leaves = &self.leaves[from..from + into];
        self.firsts.splice(from..from + width, leaves.iter().map(|leaf| leaf[0]));
        self.counts.splice(from..from + width, leaves.iter().map(|leaf| leaf.len() as u32));
        2 * entries.len() + self.leaves.len() - from
    }
}

/// Returns the index of the size that `index` falls into, and the place within it. `index` must be less than the sum of
/// the sizes.
pub(super) fn locate(counts: &[u32], mut index: usize) -> (usize, usize) {
    let mut at = 0;
    while let Some(&count) = counts.get(at)
        && index >= count as usize
    {
        index -= count as usize;
        at += 1;
    }
    (at, index)
}
