//! The keys of a track whose board has a ranking for each key: their numbers, by which the ranking groups its entries.
//!
//! A key takes about 100 bytes: its text, an entry in each of two trees, and two counters. None of it is moved when the
//! number of keys grows. A subject takes 4 bytes more: the number of its key.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::ops::Bound;
use std::sync::Arc;

use super::slab::Column;

/// The keys of a track's subjects. The numbers of keys without subjects are used again.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The number of each key that has a subject.
    numbers: BTreeMap<Arc<str>, NonZeroU32>,
    /// The keys that have a ranked subject.
    ranked: BTreeSet<Arc<str>>,
    /// By number, from 1.
    groups: Column<Group>,
    /// The largest number that a key ever had.
    last: u32,
    /// The numbers that no key has.
    unused: Vec<NonZeroU32>,
    /// The number of the key of each subject, by the id of the subject.
    of_subjects: Column<NonZeroU32>,
    /// The bytes of the texts.
    bytes_of_texts: usize,
}

#[derive(Debug)]
struct Group {
    key: Arc<str>,
    /// The number of subjects.
    subjects: u32,
    /// The number of them that are ranked.
    ranked: u32,
}

/// The bytes of a key in addition to its text: in an `Arc`, and in a tree of numbers and a set, whose nodes are about
/// two thirds full.
const KEY_BYTES: usize = 16 + (16 + 4) * 3 / 2 + 16 * 3 / 2;

impl Groups {
    /// Adds a subject without a rank. O(log keys).
    pub(super) fn add(&mut self, id: u32, key: &str) {
        let number = match self.numbers.get(key) {
            Some(number) => *number,
            None => self.add_key(key),
        };
        self.of_subjects.set(id, number);
        if let Some(group) = self.group_mut(number) {
            group.subjects += 1;
        }
    }

    fn add_key(&mut self, key: &str) -> NonZeroU32 {
        let number = self.unused.pop().unwrap_or_else(|| {
            // Subjects have ids below 2^31, and there is no key without a subject.
            self.last = self.last.saturating_add(1);
            NonZeroU32::new(self.last).unwrap_or(NonZeroU32::MAX)
        });
        let key: Arc<str> = key.into();
        self.bytes_of_texts += key.len();
        self.groups.set(number.get(), Group { key: key.clone(), subjects: 0, ranked: 0 });
        self.numbers.insert(key, number);
        number
    }

    /// Removes a subject that is not ranked. O(1), and O(log keys) if it was the last one of its key.
    pub(super) fn remove(&mut self, id: u32) {
        let Some(number) = self.of_subjects.take(id) else { return };
        let Some(group) = self.group_mut(number) else { return };
        group.subjects -= 1;
        if group.subjects == 0 {
            self.unused.push(number);
            if let Some(Group { key, .. }) = self.groups.take(number.get()) {
                self.bytes_of_texts -= key.len();
                self.numbers.remove(&key);
            }
        }
    }

    /// Moves what is known of one id to another.
    pub(super) fn change_id(&mut self, from: u32, to: u32) {
        if let Some(number) = self.of_subjects.take(from) {
            self.of_subjects.set(to, number);
        }
    }

    /// Frees the chunk of this id, which no longer holds a subject.
    pub(super) fn free_chunk(&mut self, id: u32) {
        self.of_subjects.free_chunk(id);
    }

    /// Notes that a subject of a group was added to the ranking. O(1), and O(log keys) for the first one.
    pub(super) fn ranked(&mut self, number: u32) {
        let Some(group) = NonZeroU32::new(number).and_then(|number| self.group_mut(number)) else { return };
        group.ranked += 1;
        if group.ranked == 1 {
            let key = group.key.clone();
            self.ranked.insert(key);
        }
    }

    /// Notes that a subject of a group was removed from the ranking. O(1), and O(log keys) for the last one.
    pub(super) fn unranked(&mut self, number: u32) {
        let Some(group) = NonZeroU32::new(number).and_then(|number| self.group_mut(number)) else { return };
        group.ranked = group.ranked.saturating_sub(1);
        if group.ranked == 0 {
            let key = group.key.clone();
            self.ranked.remove(&key);
        }
    }

    /// Returns the number of the key of a subject.
    pub(super) fn of(&self, id: u32) -> u32 {
        self.of_subjects.get(id).map_or(0, |number| number.get())
    }

    /// Returns the number of a key that has a subject. O(log keys).
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        self.numbers.get(key).map(|number| number.get())
    }

    /// Returns whether a key has a ranked subject. O(log keys).
    pub(super) fn is_ranked(&self, key: &str) -> bool {
        self.ranked.contains(key)
    }

    /// Returns the number of subjects of a group.
    pub(super) fn subjects_of(&self, number: u32) -> usize {
        self.groups.get(number).map_or(0, |group| group.subjects as usize)
    }

    /// Returns the number of keys that have a ranked subject.
    pub(super) fn len(&self) -> usize {
        self.ranked.len()
    }

    /// Returns the keys that have a ranked subject, by bytes, from a start on. O(log keys), then O(1) each.
    pub(super) fn keys_from(&self, start: Bound<&str>) -> impl Iterator<Item = &Arc<str>> {
        self.ranked.range::<str, _>((start, Bound::Unbounded))
    }

    /// Returns the bytes of the key of a subject, if ten subjects have a key of this length.
    pub(super) fn bytes_per_subject(length: usize) -> usize {
        size_of::<NonZeroU32>() + (size_of::<Group>() + KEY_BYTES + length) / 10
    }

    /// Returns the bytes that the keys use. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        let columns = self.of_subjects.memory_bytes() + self.groups.memory_bytes();
        let unused = self.unused.capacity() * size_of::<NonZeroU32>();
        columns + unused + self.numbers.len() * KEY_BYTES + self.bytes_of_texts
    }

    fn group_mut(&mut self, number: NonZeroU32) -> Option<&mut Group> {
        self.groups.get_mut(number.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_numbers_while_they_have_subjects_and_are_listed_while_they_are_ranked() {
        let mut groups = Groups::default();
        groups.add(7, "b");
        groups.add(8, "a");
        groups.add(9, "b");
        let (a, b) = (groups.number("a").unwrap(), groups.number("b").unwrap());
        assert_eq!((groups.of(7), groups.of(8), groups.of(9), groups.of(10)), (b, a, b, 0));
        let listed = |groups: &Groups, start| groups.keys_from(start).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!((groups.len(), listed(&groups, Bound::Unbounded)), (0, vec![]));
        groups.ranked(b);
        groups.ranked(a);
        groups.ranked(b);
        assert_eq!(
            (listed(&groups, Bound::Unbounded), listed(&groups, Bound::Excluded("a"))),
            (vec!["a".into(), "b".into()], vec!["b".into()])
        );
        groups.unranked(b);
        assert!(groups.is_ranked("b"));
        groups.unranked(b);
        assert!(!groups.is_ranked("b") && groups.number("b") == Some(b));
        groups.change_id(9, 3);
        groups.remove(7);
        assert_eq!((groups.of(9), groups.of(3)), (0, b));
        groups.remove(3);
        assert_eq!(groups.number("b"), None);
        groups.add(4, "c");
        assert_eq!((groups.number("c"), groups.len()), (Some(b), 1));
        groups.unranked(a);
        groups.remove(8);
        groups.remove(4);
        assert_eq!((groups.len(), groups.bytes_of_texts, groups.numbers.len(), groups.unused.len()), (0, 0, 0, 2));
    }
}
