//! A node: some tens of thousands of entries in leaves, whose first entries and sizes stand side by side.

use super::entry::{Entry, Texts, count_while};

/// How many neighbouring leaves share what is too much for one of them.
const SPREAD: usize = 3;
/// How many neighbouring leaves are looked at together, whether one fewer would do.
const GATHER: usize = 4;

/// Entries side by side, in order but for those of a ranking that is being built.
pub(super) type Leaf = Vec<Entry>;

/// Sorted entries, in leaves of at most `LEAF`. No leaf is empty.
///
/// - A full leaf shares its entries evenly with its neighbours; if those are full as well, with a new leaf.
/// - Of up to [`GATHER`] neighbours whose entries fit into one fewer, one is freed.
///
/// After either, leaves have room for some insertions, so neither follows the other at once.
#[derive(Debug)]
pub(super) struct Node<const LEAF: usize> {
    leaves: Vec<Leaf>,
    /// Each leaf's first entry. Looking for a leaf in the leaves themselves would miss the cache at each.
    firsts: Vec<Entry>,
    /// Each leaf's size.
    counts: Vec<u32>,
}

impl<const LEAF: usize> Node<LEAF> {
    /// How full leaves are made: up to here, there is room to grow.
    pub(super) const DENSE: usize = LEAF * 7 / 8;

    /// A node of these leaves, which must not be empty.
    pub(super) fn new(leaves: Vec<Leaf>) -> Self {
        let firsts = leaves.iter().map(|leaf| leaf[0]).collect();
        let counts = leaves.iter().map(|leaf| leaf.len() as u32).collect();
        Self { leaves, firsts, counts }
    }

    /// How many entries there are. O(leaves).
    pub(super) fn count(&self) -> u32 {
        self.counts.iter().sum()
    }

    pub(super) fn first(&self) -> Entry {
        self.firsts[0]
    }

    pub(super) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The last leaf that starts at or before `entry`, or the first.
    pub(super) fn leaf_for(&self, entry: &Entry, texts: &impl Texts) -> usize {
        count_while(&self.firsts, |first| first.cmp(entry, texts).is_le()).saturating_sub(1)
    }

    /// Leaf and place of an entry.
    pub(super) fn find(&self, entry: &Entry, texts: &impl Texts) -> Option<(usize, usize)> {
        let leaf = self.leaf_for(entry, texts);
        let entries = &self.leaves[leaf];
        let place = count_while(entries, |held| held.cmp(entry, texts).is_lt());
        entries.get(place).is_some_and(|held| held.cmp(entry, texts).is_eq()).then_some((leaf, place))
    }

    /// How many entries stand before this leaf.
    pub(super) fn before(&self, leaf: usize) -> usize {
        self.counts[..leaf].iter().sum::<u32>() as usize
    }

    /// Leaf and place of the entry at `place`, which must be there.
    pub(super) fn locate(&self, place: usize) -> (usize, usize) {
        locate(&self.counts, place)
    }

    /// How many entries from the first on satisfy a condition that none satisfies after one that does not.
    pub(super) fn count_while(&self, holds: impl Fn(&Entry) -> bool) -> usize {
        match count_while(&self.firsts, &holds).checked_sub(1) {
            Some(last) => self.before(last) + count_while(&self.leaves[last], holds),
            None => 0,
        }
    }

    /// Adds an entry that is not there yet. Answers how many entries and leaves it moved.
    pub(super) fn insert(&mut self, entry: Entry, texts: &impl Texts) -> usize {
        let place_in = |leaf: &[Entry]| count_while(leaf, |held| held.cmp(&entry, texts).is_lt());
        let mut moved = 0;
        let mut leaf = self.leaf_for(&entry, texts);
        let mut place = place_in(&self.leaves[leaf]);
        if self.leaves[leaf].len() == LEAF {
            if place == 0 || place == LEAF {
                // Entries that come in order leave full leaves behind.
                return self.begin_leaf(leaf + usize::from(place > 0), entry);
            }
            moved += self.make_room(leaf);
            leaf = self.leaf_for(&entry, texts);
            place = place_in(&self.leaves[leaf]);
        }
        let entries = &mut self.leaves[leaf];
        if entries.len() == entries.capacity() {
            // The only leaf of a small ranking.
            entries.reserve_exact((entries.len() / 4).max(4).min(LEAF - entries.len()));
        }
        entries.insert(place, entry);
        self.touched(leaf);
        moved + self.leaves[leaf].len() - place
    }

    /// Takes out the entry at a place of a leaf, which may leave the node empty. Answers how many entries and leaves
    /// it moved.
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
        self.touched(leaf);
        moved + self.gather(leaf)
    }

    /// Replaces the entry at a place of a leaf by one that belongs into the same leaf. Answers how many entries it
    /// moved.
    pub(super) fn replace(&mut self, leaf: usize, from: usize, new: Entry, texts: &impl Texts) -> usize {
        let entries = &mut self.leaves[leaf];
        let to = count_while(entries, |held| held.cmp(&new, texts).is_lt());
        // `to` counts the old entry where it stands below; it leaves a gap that the ones between close.
        let (to, moved) = if to > from {
            entries.copy_within(from + 1..to, from);
            (to - 1, to - from)
        } else {
            entries.copy_within(to..from, to + 1);
            (to, from - to + 1)
        };
        entries[to] = new;
        self.touched(leaf);
        moved
    }

    /// Moves the leaves from this one on to another node.
    pub(super) fn split_off(&mut self, leaf: usize) -> Self {
        Self {
            leaves: self.leaves.split_off(leaf),
            firsts: self.firsts.split_off(leaf),
            counts: self.counts.split_off(leaf),
        }
    }

    /// Adds the leaves of the node that follows.
    pub(super) fn append(&mut self, mut next: Self) {
        self.leaves.append(&mut next.leaves);
        self.firsts.append(&mut next.firsts);
        self.counts.append(&mut next.counts);
    }

    /// The first entry of the leaf after this one.
    pub(super) fn first_after(&self, leaf: usize) -> Option<&Entry> {
        self.firsts.get(leaf + 1)
    }

    pub(super) fn first_of(&self, leaf: usize) -> &Entry {
        &self.firsts[leaf]
    }

    /// Keeps first entry and size of a leaf that changed.
    fn touched(&mut self, leaf: usize) {
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

    /// The window of `width` neighbours with this leaf in it that has the fewest entries: where it begins, and how
    /// many it has.
    fn emptiest(&self, leaf: usize, width: usize) -> Option<(usize, usize)> {
        let last = self.leaves.len().checked_sub(width)?.min(leaf);
        let sum = |from: usize| self.counts[from..from + width].iter().sum::<u32>() as usize;
        (leaf.saturating_sub(width - 1)..=last).map(|from| (from, sum(from))).min_by_key(|(_, sum)| *sum)
    }

    /// Makes room in a full leaf and its neighbours.
    fn make_room(&mut self, leaf: usize) -> usize {
        let width = SPREAD.min(self.leaves.len());
        let (from, sum) = self.emptiest(leaf, width).unwrap_or((leaf, LEAF));
        let more = usize::from(sum > width * Self::DENSE);
        self.share(from, width, width + more)
    }

    /// Frees a leaf if this one and its neighbours do without.
    fn gather(&mut self, leaf: usize) -> usize {
        for width in 2..=GATHER {
            match self.emptiest(leaf, width) {
                Some((from, sum)) if sum <= (width - 1) * Self::DENSE => return self.share(from, width, width - 1),
                Some(_) => {}
                None => break,
            }
        }
        0
    }

    /// Shares the entries of the `width` leaves from `from` on evenly among `into` leaves, one more or fewer at most.
    fn share(&mut self, from: usize, width: usize, into: usize) -> usize {
        let total: u32 = self.counts[from..from + width].iter().sum();
        let mut entries = Vec::with_capacity(total as usize);
        self.leaves[from..from + width].iter_mut().for_each(|leaf| entries.append(leaf));
        let spare = (into > width).then(|| Vec::with_capacity(LEAF));
        self.leaves.splice(from + into.min(width)..from + width, spare);
        let mut rest = entries.as_slice();
        for nth in 0..into {
            // What remains is divided by the leaves that remain.
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

/// Which of these sizes the index falls into, and the place within; it must be less than their sum.
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
