//! A map that takes little memory as long as it is small.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::store::sizing::allocated;

/// The largest number of entries that are kept in one allocation, without spare capacity.
const MOST_FEW: usize = 16;
/// The number of entries of a node of a tree, and the bytes beside them in a leaf.
const NODE: usize = 11;
const LEAF_HEAD: usize = 16;

/// A map in the order of its keys.
#[derive(Debug)]
pub(super) enum FewOrMany<K, V> {
    Few(Vec<(K, V)>),
    Many(BTreeMap<K, V>),
}

impl<K, V> Default for FewOrMany<K, V> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<K: Ord, V> FewOrMany<K, V> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.len(),
            Self::Many(many) => many.len(),
        }
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match self {
            Self::Few(few) => few.get(place(few, key).ok()?).map(|(_, value)| value),
            Self::Many(many) => many.get(key),
        }
    }

    pub(super) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match self {
            Self::Few(few) => place(few, key).ok().and_then(|at| few.get_mut(at)).map(|(_, value)| value),
            Self::Many(many) => many.get_mut(key),
        }
    }

    /// Inserts the value of a new key, or replaces that of a key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self {
            Self::Few(few) => match place(few, &key) {
                Ok(at) => few[at].1 = value,
                Err(_) if few.len() == MOST_FEW => {
                    *self = Self::Many(few.drain(..).chain([(key, value)]).collect());
                }
                Err(at) => {
                    few.reserve_exact(1);
                    few.insert(at, (key, value));
                }
            },
            Self::Many(many) => {
                many.insert(key, value);
            }
        }
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let removed = match self {
            Self::Few(few) => place(few, key).ok().map(|at| few.remove(at).1),
            Self::Many(many) => many.remove(key),
        }?;
        self.shrink();
        Some(removed)
    }

    pub(super) fn pop_first(&mut self) -> Option<(K, V)> {
        let first = match self {
            Self::Few(few) => (!few.is_empty()).then(|| few.remove(0)),
            Self::Many(many) => many.pop_first(),
        }?;
        self.shrink();
        Some(first)
    }

    /// Frees the memory of entries that were removed.
    fn shrink(&mut self) {
        match self {
            Self::Few(few) => few.shrink_to_fit(),
            Self::Many(many) if many.len() <= MOST_FEW / 2 => {
                *self = Self::Few(std::mem::take(many).into_iter().collect());
                self.shrink();
            }
            Self::Many(_) => {}
        }
    }

    /// Returns the entries from this key on. O(log n) to start.
    pub(super) fn from<'s, Q: Ord + ?Sized>(
        &'s self,
        start: &Q,
    ) -> impl Iterator<Item = (&'s K, &'s V)> + use<'s, K, V, Q>
    where
        K: Borrow<Q>,
    {
        let (few, many) = match self {
            Self::Few(few) => (few.get(place(few, start).unwrap_or_else(|at| at)..), None),
            Self::Many(many) => (None, Some(many.range::<Q, _>((Bound::Included(start), Bound::Unbounded)))),
        };
        few.into_iter().flatten().map(|(key, value)| (key, value)).chain(many.into_iter().flatten())
    }

    /// Returns all entries.
    pub(super) fn all(&self) -> impl Iterator<Item = (&K, &V)> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().map(|(key, value)| (key, value)).chain(many.into_iter().flatten())
    }

    /// Returns the bytes of this number of entries, without what they own.
    pub(super) fn estimated_bytes(len: usize) -> usize {
        match len {
            ..=MOST_FEW => allocated(len * size_of::<(K, V)>()),
            _ => tree_bytes(len, size_of::<(K, V)>()),
        }
    }

    /// Returns the bytes of the entries, without what they own.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Few(few) => allocated(few.capacity() * size_of::<(K, V)>()),
            Self::Many(many) => tree_bytes(many.len(), size_of::<(K, V)>()),
        }
    }
}

/// Returns the bytes of a tree with more than some entries of this size: its nodes are two thirds full.
pub(super) fn tree_bytes(len: usize, entry: usize) -> usize {
    match len {
        0 => 0,
        1..=NODE => allocated(NODE * entry + LEAF_HEAD),
        _ => len * (entry * 7 / 4 + 4),
    }
}

/// Returns the place of a key, or that where it would be.
fn place<K: Borrow<Q>, Q: Ord + ?Sized, V>(few: &[(K, V)], key: &Q) -> Result<usize, usize> {
    few.binary_search_by(|(held, _)| held.borrow().cmp(key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(changes in prop::collection::vec((0_i64..40, prop::option::weighted(0.6, 0_i64..9)), 0..400)) {
            let (mut map, mut expected) = (FewOrMany::default(), BTreeMap::new());
            for (key, value) in changes {
                match value {
                    Some(0) => prop_assert_eq!(map.pop_first(), expected.pop_first()),
                    Some(value) => {
                        map.insert(key, value);
                        expected.insert(key, value);
                    }
                    None => prop_assert_eq!(map.remove(&key), expected.remove(&key)),
                }
                prop_assert_eq!(map.len(), expected.len());
                prop_assert_eq!(map.get(&key), expected.get(&key));
                prop_assert_eq!(map.get_mut(&key), expected.get_mut(&key));
                prop_assert!(map.all().eq(&expected));
                prop_assert!(map.from(&key).eq(expected.range(key..)));
                prop_assert_eq!(map.memory_bytes() == 0, expected.is_empty());
            }
        }
    }
}
