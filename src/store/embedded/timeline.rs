//! Values in the order of time: what was seen when, for subjects with one value and with a million.
//!
//! Moments are kept sorted by (time, value bytes) in chunks of at most [`MOST`]. Most are seen now, so they come at
//! the end: a full last chunk stays full and another begins.

use std::sync::Arc;

/// The most moments of one chunk: 3 KB, moved by one `memmove`.
const MOST: usize = 128;
/// Neighbours that together have so few become one.
const JOIN: usize = MOST / 8 * 7;

/// A value and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Milliseconds since the epoch.
    pub at: i64,
    pub value: Arc<str>,
}

impl Moment {
    fn key(&self) -> (i64, &[u8]) {
        (self.at, self.value.as_bytes())
    }
}

/// Moments, oldest first; of the same time the smallest bytes first.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// None is empty.
    chunks: Vec<Vec<Moment>>,
    len: usize,
}

impl Timeline {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a moment that is not there yet. O(log values).
    pub(super) fn insert(&mut self, at: i64, value: Arc<str>) {
        self.len += 1;
        let moment = Moment { at, value };
        let Some(mut which) = self.chunk_for(moment.key()) else {
            self.chunks.reserve_exact(1);
            return self.chunks.push(vec![moment]);
        };
        let last = which + 1 == self.chunks.len();
        let mut place = self.chunks[which].partition_point(|held| held.key() < moment.key());
        if self.chunks[which].len() == MOST {
            if last && place == MOST {
                return self.chunks.push(vec![moment]);
            }
            let upper = self.chunks[which].split_off(MOST / 2);
            self.chunks.insert(which + 1, upper);
            if place > MOST / 2 {
                (which, place) = (which + 1, place - MOST / 2);
            }
        }
        self.chunks[which].insert(place, moment);
    }

    /// Takes a moment out; answers its value if it was there. O(log values).
    pub(super) fn remove(&mut self, at: i64, value: &str) -> Option<Arc<str>> {
        let key = (at, value.as_bytes());
        let which = self.chunk_for(key)?;
        let place = self.chunks[which].binary_search_by(|held| held.key().cmp(&key)).ok()?;
        let moment = self.chunks[which].remove(place);
        self.len -= 1;
        self.join_around(which);
        Some(moment.value)
    }

    /// The oldest.
    pub(super) fn first(&self) -> Option<&Moment> {
        self.chunks.first()?.first()
    }

    /// Takes out up to `most` of the oldest that lie before `floor`.
    pub(super) fn take_before(&mut self, floor: i64, most: usize) -> Vec<Moment> {
        let mut taken = Vec::new();
        while let Some(chunk) = self.chunks.first_mut() {
            let count = chunk.partition_point(|held| held.at < floor).min(most - taken.len());
            taken.extend(chunk.drain(..count));
            if !chunk.is_empty() {
                break;
            }
            self.chunks.remove(0);
        }
        self.len -= taken.len();
        taken
    }

    /// How many lie at `floor` or later. O(values / 128) where some lie before, else O(1).
    pub(super) fn count_from(&self, floor: i64) -> usize {
        if self.first().is_none_or(|oldest| oldest.at >= floor) {
            return self.len;
        }
        let reached = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| last.at < floor));
        let before: usize = self.chunks[..reached].iter().map(Vec::len).sum();
        let within = self.chunks.get(reached).map_or(0, |chunk| chunk.partition_point(|held| held.at < floor));
        self.len - before - within
    }

    /// Those from this time and value on, oldest first. O(log values) to start, then O(1) each.
    pub(super) fn from(&self, at: i64, value: &str) -> impl Iterator<Item = &Moment> {
        let key = (at, value.as_bytes());
        let which = self.chunk_for(key).unwrap_or(0);
        let first = self.chunks.get(which).map_or(0, |chunk| chunk.partition_point(|held| held.key() < key));
        self.chunks.get(which..).unwrap_or_default().iter().flatten().skip(first)
    }

    /// All, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Moment> {
        self.chunks.iter().flatten()
    }

    /// All but the newest `skipped`, newest first. O(values / 128) to start, then O(1) each.
    pub(super) fn descending(&self, skipped: usize) -> impl Iterator<Item = &Moment> {
        let (mut whole, mut skipped) = (self.chunks.len(), skipped);
        while whole > 0 && self.chunks[whole - 1].len() <= skipped {
            skipped -= self.chunks[whole - 1].len();
            whole -= 1;
        }
        self.chunks[..whole].iter().rev().flat_map(|chunk| chunk.iter().rev()).skip(skipped)
    }

    /// The last chunk that starts at or before `key`, or the first.
    fn chunk_for(&self, key: (i64, &[u8])) -> Option<usize> {
        if self.chunks.is_empty() {
            return None;
        }
        // Nearly all of what is added belongs at the end.
        let starts_by = |chunk: &Vec<Moment>| chunk[0].key() <= key;
        if self.chunks.last().is_some_and(starts_by) {
            return Some(self.chunks.len() - 1);
        }
        Some(self.chunks.partition_point(starts_by).saturating_sub(1))
    }

    /// Chunks that became small join a neighbour, so that memory follows what there is.
    fn join_around(&mut self, which: usize) {
        let len = self.chunks[which].len();
        if len == 0 {
            self.chunks.remove(which);
            return;
        }
        let fits = |other: usize| self.chunks.get(other).is_some_and(|chunk| chunk.len() + len <= JOIN);
        let left = if which > 0 && fits(which - 1) {
            which - 1
        } else if fits(which + 1) {
            which
        } else {
            return;
        };
        let upper = self.chunks.remove(left + 1);
        self.chunks[left].extend(upper);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn equals_a_sorted_set(
            changes in prop::collection::vec((0i64..400, 0u16..40, 0u8..10), 1..3_000),
            floors in prop::collection::vec(0i64..420, 4),
        ) {
            let (mut timeline, mut model) = (Timeline::default(), BTreeSet::new());
            for (at, value, what) in changes {
                let value = format!("v{value}");
                if what < 7 {
                    if model.insert((at, value.clone())) {
                        timeline.insert(at, value.as_str().into());
                    }
                } else {
                    let was = model.remove(&(at, value.clone()));
                    let removed = timeline.remove(at, &value);
                    prop_assert_eq!(removed.as_deref(), was.then_some(value.as_str()));
                }
            }
            let pairs = |moments: Vec<&Moment>| -> Vec<(i64, String)> {
                moments.into_iter().map(|moment| (moment.at, moment.value.to_string())).collect()
            };
            prop_assert!(timeline.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= MOST));
            prop_assert_eq!(pairs(timeline.iter().collect()), model.iter().cloned().collect::<Vec<_>>());
            for skipped in [0, 1, 127, 128, 500, model.len(), model.len() + 1] {
                let expected: Vec<_> = model.iter().rev().skip(skipped).cloned().collect();
                prop_assert_eq!(pairs(timeline.descending(skipped).collect()), expected);
            }
            for floor in floors {
                let before = model.iter().filter(|(at, _)| *at < floor).count();
                prop_assert_eq!(timeline.count_from(floor), model.len() - before);
                let taken = timeline.take_before(floor, 50);
                prop_assert_eq!(taken.len(), before.min(50));
                for moment in taken {
                    prop_assert_eq!(model.pop_first(), Some((moment.at, moment.value.to_string())));
                }
                prop_assert_eq!(timeline.len(), model.len());
            }
        }
    }

    #[test]
    fn chunks_stay_full_when_time_goes_on_and_join_when_values_come_again() {
        let mut timeline = Timeline::default();
        let name = |i: i64| -> Arc<str> { format!("value-{i}").into() };
        for i in 0..10_000 {
            timeline.insert(i, name(i));
        }
        assert_eq!(timeline.chunks.len(), 10_000usize.div_ceil(MOST));
        for i in (0..10_000).filter(|i| i % 10 != 0) {
            assert!(timeline.remove(i, &name(i)).is_some());
        }
        assert_eq!(timeline.len(), 1_000);
        assert!(timeline.chunks.len() <= 1_000 * 2 / JOIN + 2, "{} chunks", timeline.chunks.len());
    }
}
