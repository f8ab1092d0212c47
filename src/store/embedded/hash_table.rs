//! A hash table that never grows or shrinks as a whole.
//!
//! A directory of `2^depth` pointers, selected by the top bits of a hash, leads to *shards*. A shard is one array of up
//! to about [`MAX_SHARD_ENTRIES`] entries, sorted by hash, with vacant places in between. An entry is at its *ideal
//! place*, which its hash determines, or at a later one if that is occupied. A full shard is moved to an array 1.14 to
//! 1.25 times as large, and later split in two. A sparse shard is moved to a smaller array or merged with its sibling.
//! So a single operation moves the entries of at most two shards, whatever the size of the table.
//!
//! An entry stores 32 bits of its own hash, so that moving entries reads nothing outside the table, and a search rarely
//! reads anything but the entry it looks for. Arrays are 0.72 to 0.9 full while a table grows.

use std::fmt;

/// The number of entries of a shard at which it is split.
const MAX_SHARD_ENTRIES: usize = 4_096;
/// The number of entries up to which two sibling shards are merged.
const MAX_MERGED_ENTRIES: usize = MAX_SHARD_ENTRIES * 3 / 8;
/// The smallest size in bytes of a shard's array that is not empty.
const MIN_SHARD_BYTES: usize = 256;
/// The number of places after the last ideal place, for entries whose ideal place is occupied.
const SLACK: usize = 32;
/// The number of entries per pointer of the directory, at least. It limits the depth, however hashes collide.
const MIN_ENTRIES_PER_POINTER: usize = 64;

/// An entry of a table: small, and cheap to copy.
pub(super) trait TableEntry: Copy {
    /// The content of a vacant place.
    const VACANT: Self;

    fn is_vacant(&self) -> bool;

    /// Returns the 32 bits of its hash that determine its place, stored in the entry.
    fn hash(&self) -> u32;
}

/// A hash table of `E`. See the [module](self).
pub(super) struct ExtendibleTable<E> {
    /// Indexes of `shards`, by the top `depth` bits of a hash.
    directory: Vec<u32>,
    depth: u32,
    shards: Vec<Shard<E>>,
    /// Indexes of `shards` that are not in use.
    free: Vec<u32>,
    /// The number of shards of each depth.
    depths: [u32; 33],
    len: usize,
    /// The number of places in all shards.
    places: usize,
    /// The number of entries copied from one array to another so far.
    #[cfg(test)]
    moved: usize,
}

struct Shard<E> {
    places: Box<[E]>,
    /// The number of ideal places. The places after them are slack.
    range: u32,
    len: u32,
    /// The number of top bits of a hash that lead to this shard.
    depth: u32,
}

impl<E> fmt::Debug for ExtendibleTable<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extendible").field("len", &self.len).field("depth", &self.depth).finish_non_exhaustive()
    }
}

impl<E: TableEntry> Default for ExtendibleTable<E> {
    fn default() -> Self {
        let mut depths = [0; 33];
        depths[0] = 1;
        Self {
            directory: vec![0],
            depth: 0,
            shards: vec![Shard::empty(0)],
            free: Vec::new(),
            depths,
            len: 0,
            places: 0,
            #[cfg(test)]
            moved: 0,
        }
    }
}

impl<E: TableEntry> ExtendibleTable<E> {
    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the entry of this hash for which `is_it` returns `true`. O(1).
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(&E) -> bool) -> Option<&E> {
        let shard = &self.shards[self.shard_of(hash)];
        shard.find(hash, is_it).map(|place| &shard.places[place])
    }

    /// Returns the same entry as [`find`](Self::find), mutably. The caller must not change the hash of the entry or
    /// make it vacant.
    pub(super) fn find_mut(&mut self, hash: u32, is_it: impl Fn(&E) -> bool) -> Option<&mut E> {
        let at = self.shard_of(hash);
        let shard = &mut self.shards[at];
        shard.find(hash, is_it).map(|place| &mut shard.places[place])
    }

    /// Adds an entry that is not in the table yet. O(1), and occasionally O(entries of a shard).
    pub(super) fn insert(&mut self, entry: E) {
        debug_assert!(!entry.is_vacant());
        self.len += 1;
        loop {
            let at = self.shard_of(entry.hash());
            let shard = &mut self.shards[at];
            let roomy = (shard.len as usize + 1) * 10 <= shard.places.len() * 9;
            if roomy && shard.insert(entry) {
                return;
            }
            self.make_room(at, entry.hash());
        }
    }

    /// Removes and returns the entry of this hash for which `is_it` returns `true`. O(1), and occasionally O(entries of
    /// two shards).
    pub(super) fn remove(&mut self, hash: u32, is_it: impl Fn(&E) -> bool) -> Option<E> {
        let at = self.shard_of(hash);
        let shard = &mut self.shards[at];
        let place = shard.find(hash, is_it)?;
        let entry = shard.remove(place);
        self.len -= 1;
        self.shrink_if_sparse(at, hash);
        Some(entry)
    }

    /// Returns all entries, in the order of their hashes.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &E> {
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let (entries, after) = self.portion(next?);
            next = after;
            Some(entries)
        })
        .flatten()
    }

    /// Returns the entries of one shard, at most about 4,096, whose hashes are at least `from`, and the hash at which a
    /// walk continues: `None` at its end. A walk from 0 on returns every entry that is in the table during all of it
    /// exactly once, whatever is added and removed between its portions.
    pub(super) fn portion(&self, from: u32) -> (impl Iterator<Item = &E>, Option<u32>) {
        let shard = &self.shards[self.shard_of(from)];
        let entries = shard.places.iter().filter(move |entry| !entry.is_vacant() && entry.hash() >= from);
        let width = 1u64 << (32 - shard.depth);
        let next = (u64::from(from) / width + 1) * width;
        (entries, u32::try_from(next).ok())
    }

    /// Reads the ideal place of a hash, so that it is in the cache when it is needed. The result has no meaning, but
    /// must be used so that the read is not optimized away: see [`std::hint::black_box`].
    pub(super) fn prefetch(&self, hash: u32) -> u32 {
        let shard = &self.shards[self.shard_of(hash)];
        shard.places.get(shard.ideal_place(hash)).map_or(0, TableEntry::hash)
    }

    /// Returns the bytes that the table uses, without the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.places * size_of::<E>()
            + self.shards.capacity() * size_of::<Shard<E>>()
            + (self.directory.capacity() + self.free.capacity()) * size_of::<u32>()
    }

    fn shard_of(&self, hash: u32) -> usize {
        self.directory[directory_index(hash, self.depth)] as usize
    }

    /// Makes room for one more entry, with this hash, in a shard that is full or has no place for it.
    fn make_room(&mut self, at: usize, hash: u32) {
        let (len, depth) = (self.shards[at].len as usize, self.shards[at].depth);
        let may_split = depth < 30 && (2 << depth) <= 1 + self.len / MIN_ENTRIES_PER_POINTER;
        if len >= MAX_SHARD_ENTRIES && may_split {
            self.split(at, hash);
        } else {
            let capacity = next_capacity::<E>(self.shards[at].places.len());
            self.resize(at, capacity);
        }
    }

    /// Splits the shard of a hash in two.
    fn split(&mut self, at: usize, hash: u32) {
        let old = std::mem::replace(&mut self.shards[at], Shard::empty(0));
        if old.depth == self.depth {
            self.directory = self.directory.iter().flat_map(|shard| [*shard; 2]).collect();
            self.depth += 1;
        }
        self.count_moved(old.len as usize);
        let depth = old.depth + 1;
        let upper_bit = 1u32 << (32 - depth);
        let border = old.entries().filter(|entry| entry.hash() & upper_bit == 0).count();
        let rest = old.len as usize - border;
        let lower = Shard::filled(old.entries().take(border), border, depth, room_for::<E>(border));
        let upper = Shard::filled(old.entries().skip(border), rest, depth, room_for::<E>(rest));
        self.places += lower.places.len() + upper.places.len();
        self.places -= old.places.len();
        self.shards[at] = lower;
        let other = match self.free.pop() {
            Some(free) => {
                self.shards[free as usize] = upper;
                free
            }
            None => {
                self.shards.push(upper);
                self.shards.len() as u32 - 1
            }
        };
        let (first, count) = self.pointers(hash & !(u32::MAX >> old.depth) | upper_bit, depth);
        self.directory[first..first + count].fill(other);
        self.depths[old.depth as usize] -= 1;
        self.depths[depth as usize] += 2;
    }

    /// Moves the entries to a smaller array, or merges the shard with its sibling, if that is due after a removal.
    fn shrink_if_sparse(&mut self, at: usize, hash: u32) {
        let (len, depth) = (self.shards[at].len as usize, self.shards[at].depth);
        if depth > 0 && len <= MAX_MERGED_ENTRIES {
            let sibling = self.shard_of(hash ^ 1 << (32 - depth));
            if self.shards[sibling].depth == depth && len + self.shards[sibling].len as usize <= MAX_MERGED_ENTRIES {
                return self.merge(at, sibling, hash);
            }
        }
        let (capacity, fitting) = (self.shards[at].places.len(), capacity_for::<E>(len));
        if len * 20 < capacity * 7 && fitting < capacity {
            self.resize(at, fitting);
        }
    }

    /// Moves the entries of a shard to an array of this many places.
    fn resize(&mut self, at: usize, capacity: usize) {
        self.places -= self.shards[at].places.len();
        let moved = self.shards[at].resize(capacity);
        self.places += self.shards[at].places.len();
        self.count_moved(moved);
    }

    /// Merges two sibling shards.
    fn merge(&mut self, one: usize, other: usize, hash: u32) {
        let taken = |shard: &mut Shard<E>| std::mem::replace(shard, Shard::empty(0));
        let (one_shard, other_shard) = (taken(&mut self.shards[one]), taken(&mut self.shards[other]));
        let depth = one_shard.depth - 1;
        let is_upper = hash & 1 << (31 - depth) != 0;
        let (lower, upper) = if is_upper { (&other_shard, &one_shard) } else { (&one_shard, &other_shard) };
        let len = (lower.len + upper.len) as usize;
        self.count_moved(len);
        self.shards[one] = Shard::filled(lower.entries().chain(upper.entries()), len, depth, room_for::<E>(len));
        self.places += self.shards[one].places.len();
        self.places -= lower.places.len() + upper.places.len();
        self.free.push(other as u32);
        let (first, count) = self.pointers(hash, depth);
        self.directory[first..first + count].fill(one as u32);
        self.depths[depth as usize + 1] -= 2;
        self.depths[depth as usize] += 1;
        while self.depth > 0 && self.depths[self.depth as usize] == 0 {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.depth -= 1;
        }
        if self.depth == 0 {
            // One shard is left, at any index.
            let last = self.directory[0] as usize;
            self.shards.swap(0, last);
            self.shards.truncate(1);
            self.shards.shrink_to_fit();
            (self.directory, self.free) = (vec![0], Vec::new());
        }
    }

    /// Returns the pointers of all hashes that agree with this one in their top `depth` bits: the first pointer and
    /// their number.
    fn pointers(&self, hash: u32, depth: u32) -> (usize, usize) {
        let count = 1 << (self.depth - depth);
        (directory_index(hash, depth) * count, count)
    }

    /// Returns the number of entries copied from one array to another so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> usize {
        self.moved
    }

    /// Returns the number of places, counted shard by shard.
    #[cfg(test)]
    pub(super) fn counted_places(&self) -> (usize, usize) {
        (self.places, self.shards.iter().map(|shard| shard.places.len()).sum())
    }

    fn count_moved(&mut self, _entries: usize) {
        #[cfg(test)]
        {
            self.moved += _entries;
        }
    }
}

fn directory_index(hash: u32, depth: u32) -> usize {
    (u64::from(hash) >> (32 - depth)) as usize
}

impl<E: TableEntry> Shard<E> {
    fn empty(depth: u32) -> Self {
        Self { places: Box::default(), range: 0, len: 0, depth }
    }

    /// Creates a shard of `len` entries, in the order of their hashes, in an array of at least `len + 1` places.
    fn filled(entries: impl Iterator<Item = E> + Clone, len: usize, depth: u32, capacity: usize) -> Self {
        let mut range = capacity - SLACK.min(capacity / 8);
        if !fits(entries.clone(), depth, range, capacity) {
            // Many hashes are alike, so the normal slack is not enough. With a place of slack for each entry all
            // entries fit. More slack leaves room for further ones.
            range = capacity - len - (capacity - len) / 2;
        }
        let mut shard =
            Self { places: vec![E::VACANT; capacity].into_boxed_slice(), range: range as u32, len: len as u32, depth };
        let mut next = 0;
        for entry in entries {
            let place = shard.ideal_place(entry.hash()).max(next);
            shard.places[place] = entry;
            next = place + 1;
        }
        shard
    }

    fn entries(&self) -> impl Iterator<Item = E> + Clone + '_ {
        self.places.iter().filter(|entry| !entry.is_vacant()).copied()
    }

    /// Returns the ideal place of a hash: its bits below `depth`, scaled to the range, so that ideal places are in the
    /// order of hashes.
    fn ideal_place(&self, hash: u32) -> usize {
        ideal_place(hash, self.depth, self.range as usize)
    }

    fn find(&self, hash: u32, is_it: impl Fn(&E) -> bool) -> Option<usize> {
        let from = self.ideal_place(hash);
        for (place, entry) in self.places.iter().enumerate().skip(from) {
            if entry.is_vacant() || entry.hash() > hash {
                return None;
            }
            if entry.hash() == hash && is_it(entry) {
                return Some(place);
            }
        }
        None
    }

    /// Inserts an entry in its place, and moves the entries after it by one, up to the next vacant place. Returns
    /// `false`, and changes nothing, if there is no vacant place.
    fn insert(&mut self, entry: E) -> bool {
        let hash = entry.hash();
        let rest = &mut self.places[ideal_place(hash, self.depth, self.range as usize)..];
        let place = rest.iter().position(|held| held.is_vacant() || held.hash() > hash);
        let Some(place) = place else { return false };
        let Some(run) = rest[place..].iter().position(TableEntry::is_vacant) else { return false };
        rest.copy_within(place..place + run, place + 1);
        rest[place] = entry;
        self.len += 1;
        true
    }

    /// Removes an entry, and moves the entries after it back by one that are not at their ideal place.
    fn remove(&mut self, place: usize) -> E {
        let entry = self.places[place];
        let mut end = place + 1;
        while end < self.places.len()
            && !self.places[end].is_vacant()
            && self.ideal_place(self.places[end].hash()) < end
        {
            end += 1;
        }
        self.places.copy_within(place + 1..end, place);
        self.places[end - 1] = E::VACANT;
        self.len -= 1;
        entry
    }

    /// Moves the entries to an array of this many places. Returns the number of entries moved.
    fn resize(&mut self, capacity: usize) -> usize {
        let held = self.len as usize;
        *self = if capacity == 0 {
            Self::empty(self.depth)
        } else {
            Self::filled(self.entries(), held, self.depth, capacity)
        };
        held
    }
}

/// Returns the ideal place of a hash in a shard: its bits below `depth`, scaled to the range, so that ideal places are
/// in the order of hashes.
fn ideal_place(hash: u32, depth: u32, range: usize) -> usize {
    let rest = u64::from(hash) << (32 + depth) >> 32;
    ((rest * range as u64) >> 32) as usize
}

/// Returns whether every entry gets a place before `capacity`, in the order of their hashes.
fn fits<E: TableEntry>(entries: impl Iterator<Item = E>, depth: u32, range: usize, capacity: usize) -> bool {
    entries.fold(0, |next, entry| ideal_place(entry.hash(), depth, range).max(next) + 1) < capacity
}

/// Returns the size of the smallest array that this many entries fill up to 0.85 at most.
fn capacity_for<E>(len: usize) -> usize {
    let mut capacity = 0;
    while len * 20 > capacity * 17 {
        capacity = next_capacity::<E>(capacity);
    }
    capacity
}

/// Returns the same as [`capacity_for`], but at least the smallest array size.
fn room_for<E>(len: usize) -> usize {
    capacity_for::<E>(len.max(1))
}

/// Returns the next larger array size: 1.14 to 1.25 times this one. Sizes in bytes are 4, 5, 6 or 7 times a power of
/// two, which allocators provide without waste.
fn next_capacity<E>(capacity: usize) -> usize {
    let bytes = (capacity + 1) * size_of::<E>();
    if bytes <= MIN_SHARD_BYTES {
        return MIN_SHARD_BYTES / size_of::<E>();
    }
    // The unit is an eighth to a quarter of the size.
    let unit = ((bytes - 1).ilog2() - 2).max(1);
    (bytes.div_ceil(1 << unit) << unit) / size_of::<E>()
}

#[cfg(test)]
mod tests;
