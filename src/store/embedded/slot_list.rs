//! The subjects that have a cell in one slot. Retiring the slot visits them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The number of places in a chunk of 16 KiB.
const CHUNK: usize = 4_096;
/// The bit that marks a place without a subject. The other bits are the next such place.
const VACANT: u32 = 1 << 31;
/// The value for no further vacant place.
const END: u32 = VACANT - 1;

/// The ids of subjects, each at its own place. Adding and removing a subject moves no others.
#[derive(Debug)]
pub(super) struct SlotList {
    /// The start of the slot, in milliseconds.
    pub start: i64,
    /// The chunks. All except the last are full.
    chunks: Vec<Vec<u32>>,
    /// The first vacant place.
    vacant: u32,
    len: u32,
}

impl SlotList {
    pub(super) fn new(start: i64) -> Self {
        Self { start, chunks: Vec::new(), vacant: END, len: 0 }
    }

    /// Returns the number of subjects.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Adds a subject and returns its place. Ids are below 2^31. O(1), and O(CHUNK) while a chunk grows.
    pub(super) fn push(&mut self, id: u32) -> u32 {
        self.len += 1;
        if self.vacant != END {
            let place = self.vacant;
            if let Some(held) = self.place_mut(place) {
                let next = std::mem::replace(held, id);
                self.vacant = next & !VACANT;
                return place;
            }
        }
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(id),
            _ => self.chunks.push(vec![id]),
        }
        self.places() - 1
    }

    /// Removes the subject at a place. O(1).
    pub(super) fn remove_at(&mut self, place: u32) {
        let vacant = VACANT | self.vacant;
        let Some(held) = self.place_mut(place).filter(|held| **held & VACANT == 0) else { return };
        *held = vacant;
        self.vacant = place;
        self.len -= 1;
    }

    /// Replaces the id at a place.
    pub(super) fn set_id(&mut self, place: u32, id: u32) {
        if let Some(held) = self.place_mut(place) {
            *held = id;
        }
    }

    /// Returns one of the subjects, and drops vacant places from the end. A list is emptied with this function and
    /// [`remove_at`](Self::remove_at). Amortized O(1).
    pub(super) fn last(&mut self) -> Option<u32> {
        // The dropped places may be in the list of vacant places, so no place of that list may be used again.
        self.vacant = END;
        while let Some(last) = self.chunks.last_mut() {
            match last.last() {
                Some(id) if id & VACANT == 0 => return Some(*id),
                Some(_) => {
                    last.pop();
                }
                None => {
                    self.chunks.pop();
                }
            }
        }
        None
    }

    /// Returns the bytes that the list uses, without the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        // All chunks but the last are full.
        let last = self.chunks.last().map_or(0, Vec::capacity);
        let places = self.chunks.len().saturating_sub(1) * CHUNK + last;
        places * size_of::<u32>() + self.chunks.capacity() * size_of::<Vec<u32>>() + size_of::<Self>()
    }

    /// Returns the subject at a place.
    #[cfg(test)]
    pub(super) fn at(&self, place: u32) -> Option<u32> {
        let id = *self.chunks.get(place as usize / CHUNK)?.get(place as usize % CHUNK)?;
        (id & VACANT == 0).then_some(id)
    }

    fn place_mut(&mut self, place: u32) -> Option<&mut u32> {
        self.chunks.get_mut(place as usize / CHUNK)?.get_mut(place as usize % CHUNK)
    }

    fn places(&self) -> u32 {
        let last = self.chunks.last().map_or(0, Vec::len);
        (self.chunks.len().saturating_sub(1) * CHUNK + last) as u32
    }
}

/// The list of each slot of a track, by the slot's number. No list is empty.
#[derive(Debug, Default)]
pub(super) struct SlotLists {
    lists: BTreeMap<i64, SlotList>,
    /// The bytes that the lists use.
    bytes: usize,
}

impl SlotLists {
    /// Returns the number of slots.
    pub(super) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns the lists, that of the oldest slot first.
    pub(super) fn values(&self) -> impl Iterator<Item = &SlotList> + Clone {
        self.lists.values()
    }

    /// Returns the oldest slot with its list.
    pub(super) fn oldest(&self) -> Option<(i64, &SlotList)> {
        self.lists.first_key_value().map(|(slot, list)| (*slot, list))
    }

    pub(super) fn contains(&self, slot: i64) -> bool {
        self.lists.contains_key(&slot)
    }

    /// Adds a subject to the list of a slot, which is created if it does not exist. `start` returns the start of the
    /// slot. Returns the subject's place.
    pub(super) fn push(&mut self, slot: i64, id: u32, start: impl FnOnce() -> i64) -> u32 {
        let mut before = 0;
        let list = match self.lists.entry(slot) {
            Entry::Occupied(known) => {
                let list = known.into_mut();
                before = list.memory_bytes();
                list
            }
            Entry::Vacant(place) => place.insert(SlotList::new(start())),
        };
        let place = list.push(id);
        self.bytes += list.memory_bytes();
        self.bytes -= before;
        place
    }

    /// Removes the subject at a place of a slot's list.
    pub(super) fn remove_at(&mut self, slot: i64, place: u32) {
        let Some(list) = self.lists.get_mut(&slot) else { return };
        list.remove_at(place);
        if list.len() == 0 {
            self.remove(slot);
        }
    }

    /// Replaces the id at a place of a slot's list.
    pub(super) fn set_id(&mut self, slot: i64, place: u32, id: u32) {
        if let Some(list) = self.lists.get_mut(&slot) {
            list.set_id(place, id);
        }
    }

    /// Returns one of a slot's subjects: see [`SlotList::last`].
    pub(super) fn last(&mut self, slot: i64) -> Option<u32> {
        let list = self.lists.get_mut(&slot)?;
        let before = list.memory_bytes();
        let last = list.last();
        self.bytes += list.memory_bytes();
        self.bytes -= before;
        last
    }

    pub(super) fn remove(&mut self, slot: i64) {
        if let Some(list) = self.lists.remove(&slot) {
            self.bytes -= list.memory_bytes();
        }
    }

    /// Returns the bytes that the lists use, without the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the list of a slot.
    #[cfg(test)]
    pub(super) fn get(&self, slot: i64) -> Option<&SlotList> {
        self.lists.get(&slot)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((0u8..4, 0usize..10_000), 1..3_000)) {
            let (mut list, mut model) = (SlotList::new(0), BTreeMap::new());
            for (id, (what, which)) in steps.into_iter().enumerate() {
                if what < 2 {
                    for id in [id as u32, id as u32 + 100_000] {
                        prop_assert!(model.insert(list.push(id), id).is_none());
                    }
                } else if !model.is_empty() {
                    let place = *model.keys().nth(which % model.len().min(50)).unwrap();
                    if what == 2 {
                        model.remove(&place);
                        list.remove_at(place);
                        list.remove_at(place);
                    } else {
                        model.insert(place, 7);
                        list.set_id(place, 7);
                    }
                }
                prop_assert_eq!(list.len(), model.len());
            }
            for (place, id) in &model {
                prop_assert_eq!(list.at(*place), Some(*id));
            }
            let chunks: usize = list.chunks.iter().map(|chunk| chunk.capacity() * 4).sum();
            let vectors = list.chunks.capacity() * size_of::<Vec<u32>>();
            prop_assert_eq!(list.memory_bytes(), chunks + vectors + size_of::<SlotList>());
            while let Some(id) = list.last() {
                let (place, last) = model.pop_last().unwrap();
                prop_assert_eq!(id, last);
                list.remove_at(place);
            }
            prop_assert!(model.is_empty() && list.len() == 0);
        }
    }

    #[test]
    fn removed_places_are_reused() {
        let mut list = SlotList::new(0);
        let places: Vec<u32> = (0..10_000).map(|id| list.push(id)).collect();
        assert_eq!(places, (0..10_000).collect::<Vec<u32>>());
        for round in 0..10 {
            list.remove_at(round * 7);
            assert_eq!(list.push(1), round * 7);
        }
        assert_eq!(list.len(), 10_000);
        assert!(list.memory_bytes() < 10_000 * 4 + 16_500);
    }
}
