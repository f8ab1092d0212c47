//! Values by small ids, in chunks that are never reallocated. The lowest free ids are assigned first, so values gather
//! at the low end, and empty chunks are freed.

use std::collections::BTreeSet;

/// The number of values in a chunk.
pub(super) const CHUNK: usize = 1_024;
/// The largest number of chunks. Ids stay below 2^31.
const MAX_CHUNKS: usize = (1 << 31) / CHUNK;
/// The value for no further vacant place in a chunk.
const NO_PLACE: u32 = u32::MAX;

/// A type with values that stand for a vacant place.
pub(super) trait SlabValue: Copy {
    /// Returns the value of a vacant place that is followed by the vacant place `next` of its chunk.
    fn vacant(next: u32) -> Self;

    fn is_vacant(&self) -> bool;

    /// Returns, for a vacant place, the next one.
    fn next(&self) -> u32;
}

/// Values by id.
#[derive(Debug)]
pub(super) struct Slab<T> {
    chunks: Vec<Chunk<T>>,
    /// The chunks with vacant places.
    open: BTreeSet<u32>,
    len: usize,
    /// The number of values for which the chunks have memory.
    capacity: usize,
}

#[derive(Debug)]
struct Chunk<T> {
    /// The values. Grows up to [`CHUNK`]; empty if the chunk holds no value.
    values: Vec<T>,
    live: u32,
    /// The first vacant place.
    vacant: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), open: BTreeSet::new(), len: 0, capacity: 0 }
    }
}

impl<T: SlabValue> Slab<T> {
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a value and returns its id, in the lowest chunk with a vacant place. Returns `None` if there are two
    /// billion values. O(log chunks).
    pub(super) fn insert(&mut self, value: T) -> Option<u32> {
        let at = match self.open.first() {
            Some(at) => *at,
            None => {
                let at = u32::try_from(self.chunks.len()).ok().filter(|at| (*at as usize) < MAX_CHUNKS)?;
                self.chunks.push(Chunk { values: Vec::new(), live: 0, vacant: NO_PLACE });
                self.open.insert(at);
                at
            }
        };
        let chunk = &mut self.chunks[at as usize];
        let place = if chunk.vacant == NO_PLACE {
            let before = chunk.values.capacity();
            chunk.values.push(value);
            self.capacity += chunk.values.capacity() - before;
            chunk.values.len() as u32 - 1
        } else {
            let held = &mut chunk.values[chunk.vacant as usize];
            let place = std::mem::replace(&mut chunk.vacant, held.next());
            *held = value;
            place
        };
        chunk.live += 1;
        self.len += 1;
        if chunk.live as usize == CHUNK {
            self.open.remove(&at);
        }
        Some(at * CHUNK as u32 + place)
    }

    pub(super) fn get(&self, id: u32) -> Option<&T> {
        let (at, place) = split(id);
        self.chunks.get(at)?.values.get(place).filter(|value| !value.is_vacant())
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        let (at, place) = split(id);
        self.chunks.get_mut(at)?.values.get_mut(place).filter(|value| !value.is_vacant())
    }

    /// Removes a value. Returns whether that left its chunk empty.
    pub(super) fn remove(&mut self, id: u32) -> bool {
        let (at, place) = split(id);
        let Some(chunk) = self.chunks.get_mut(at) else { return false };
        let Some(held) = chunk.values.get_mut(place).filter(|value| !value.is_vacant()) else { return false };
        *held = T::vacant(std::mem::replace(&mut chunk.vacant, place as u32));
        chunk.live -= 1;
        self.len -= 1;
        self.open.insert(at as u32);
        if chunk.live > 0 {
            return false;
        }
        self.capacity -= chunk.values.capacity();
        *chunk = Chunk { values: Vec::new(), live: 0, vacant: NO_PLACE };
        while self.chunks.last().is_some_and(|chunk| chunk.live == 0) {
            self.chunks.pop();
            self.open.remove(&(self.chunks.len() as u32));
        }
        true
    }

    /// Returns the first id in use from `from` on. O(CHUNK + empty chunks).
    pub(super) fn next_from(&self, from: u32) -> Option<u32> {
        let (mut at, mut place) = split(from);
        while let Some(chunk) = self.chunks.get(at) {
            let values = chunk.values.get(place..).unwrap_or_default();
            if let Some(further) = values.iter().position(|value| !value.is_vacant()) {
                return Some((at * CHUNK + place + further) as u32);
            }
            (at, place) = (at + 1, 0);
        }
        None
    }

    /// Returns the last id in use before `end`. O(CHUNK + empty chunks).
    pub(super) fn last_before(&self, end: u32) -> Option<u32> {
        let (at, place) = split(end);
        let in_chunk = |at: usize, end: usize| {
            let values = &self.chunks.get(at)?.values;
            let last = values[..end.min(values.len())].iter().rposition(|value| !value.is_vacant())?;
            Some((at * CHUNK + last) as u32)
        };
        in_chunk(at, place).or_else(|| (0..at.min(self.chunks.len())).rev().find_map(|at| in_chunk(at, CHUNK)))
    }

    /// Returns whether less than half of the places are in use.
    pub(super) fn is_sparse(&self) -> bool {
        self.chunks.len() > 2 && self.len * 2 < self.chunks.len() * CHUNK
    }

    /// Returns whether the value of this id should get a lower id: its chunk is beyond those that all values need, and
    /// a lower chunk has a vacant place.
    pub(super) fn can_move_down(&self, id: u32) -> bool {
        let at = split(id).0;
        at > self.len / CHUNK && self.open.first().is_some_and(|open| (*open as usize) < at)
    }

    /// Returns the bytes that the slab uses, without the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.capacity * size_of::<T>() + self.chunks.capacity() * size_of::<Chunk<T>>()
    }
}

/// Additional data that some metrics store for the values of a [`Slab`], by the same ids.
#[derive(Debug)]
pub(super) struct Column<T> {
    chunks: Vec<Vec<Option<T>>>,
    /// The number of values for which the chunks have memory.
    capacity: usize,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), capacity: 0 }
    }
}

impl<T> Column<T> {
    pub(super) fn get(&self, id: u32) -> Option<&T> {
        let (at, place) = split(id);
        self.chunks.get(at)?.get(place)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        let (at, place) = split(id);
        self.chunks.get_mut(at)?.get_mut(place)?.as_mut()
    }

    /// Sets the data of an id. O(1), and O(CHUNK) while a chunk grows.
    pub(super) fn set(&mut self, id: u32, value: T) {
        let (at, place) = split(id);
        if self.chunks.len() <= at {
            self.chunks.resize_with(at + 1, Vec::new);
        }
        let chunk = &mut self.chunks[at];
        if chunk.len() <= place {
            let before = chunk.capacity();
            chunk.resize_with(place + 1, || None);
            self.capacity += chunk.capacity() - before;
        }
        chunk[place] = Some(value);
    }

    pub(super) fn take(&mut self, id: u32) -> Option<T> {
        let (at, place) = split(id);
        self.chunks.get_mut(at)?.get_mut(place)?.take()
    }

    /// Frees the chunk of this id, which must be empty.
    pub(super) fn free_chunk(&mut self, id: u32) {
        if let Some(chunk) = self.chunks.get_mut(split(id).0) {
            self.capacity -= chunk.capacity();
            *chunk = Vec::new();
        }
        while self.chunks.last().is_some_and(Vec::is_empty) {
            self.chunks.pop();
        }
    }

    /// Returns all data.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().flatten()
    }

    /// Returns the bytes that the column uses, without the memory that its values own. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.capacity * size_of::<Option<T>>() + self.chunks.capacity() * size_of::<Vec<Option<T>>>()
    }
}

fn split(id: u32) -> (usize, usize) {
    (id as usize / CHUNK, id as usize % CHUNK)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl SlabValue for u64 {
        fn vacant(next: u32) -> Self {
            1 << 40 | u64::from(next)
        }

        fn is_vacant(&self) -> bool {
            *self >= 1 << 40
        }

        fn next(&self) -> u32 {
            *self as u32
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn behaves_like_a_map(phases in prop::collection::vec((0usize..6_000, 0usize..6_000), 1..6)) {
            let (mut slab, mut column) = (Slab::<u64>::default(), Column::<u64>::default());
            let mut model = BTreeMap::new();
            for (nth, (adds, removes)) in phases.into_iter().enumerate() {
                for value in 0..adds as u64 {
                    let id = slab.insert(value).unwrap();
                    column.set(id, value * 2);
                    prop_assert!(model.insert(id, value).is_none());
                }
                for turn in 0..removes.min(model.len()) {
                    let id = *model.keys().nth((turn * 7_919 + nth) % model.len().min(64)).unwrap();
                    prop_assert_eq!(slab.get(id).copied(), model.remove(&id));
                    column.take(id);
                    if slab.remove(id) {
                        column.free_chunk(id);
                    }
                    prop_assert!(slab.get(id).is_none() && column.get(id).is_none() && !slab.remove(id));
                }
                let (mut next, mut found) = (0, Vec::new());
                while let Some(id) = slab.next_from(next) {
                    found.push((id, *slab.get(id).unwrap()));
                    prop_assert_eq!(column.get(id).copied(), slab.get(id).map(|value| value * 2));
                    next = id + 1;
                }
                prop_assert_eq!(found, model.iter().map(|(id, value)| (*id, *value)).collect::<Vec<_>>());
                prop_assert_eq!(slab.len(), model.len());
                let places: usize = slab.chunks.iter().map(|chunk| chunk.values.capacity()).sum();
                let of_column: usize = column.chunks.iter().map(Vec::capacity).sum();
                prop_assert_eq!((slab.capacity, column.capacity), (places, of_column));
            }
        }
    }
}
