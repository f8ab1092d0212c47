//! The sketches of a subject, one per slot, and their merge, which is kept up to date without merging all of them for
//! every expired slot.
//!
//! If there are more than [`MAX_WITHOUT_RUNS`] sketches, the merges of *runs* of adjacent sketches are kept too. So a
//! change of one sketch costs merging one run and then the runs: at 2,000 slots some 100 sketches instead of 2,000.

use crate::board::{Mark, Sketch};
use crate::store::sizing::{allocated, sketch_bytes};

/// The largest number of sketches that are merged without runs.
const MAX_WITHOUT_RUNS: usize = 64;
/// The largest number of sketches in a run. A run that exceeds it is split in half.
const MAX_RUN: usize = 64;

/// For APPROX_COUNT_DISTINCT: a sketch for each cell. The cell's own number is not used.
#[derive(Debug, Default)]
pub(super) struct Sketches {
    by_cell: Vec<Sketch>,
    /// The number of sketches in each run, and their merge. Empty on an unranked board.
    runs: Vec<(usize, Sketch)>,
    /// All sketches merged, on a ranked board. With it, a single register shows whether a mark changes the score.
    merged: Sketch,
    /// The bytes that the sketches use, with the allocator's overhead.
    bytes: usize,
}

impl Sketches {
    /// Returns the sketches of the cells, oldest first.
    pub(super) fn by_cell(&self) -> &[Sketch] {
        &self.by_cell
    }

    /// Returns all sketches merged, on a ranked board.
    pub(super) fn merged(&self) -> &Sketch {
        &self.merged
    }

    /// Inserts an empty sketch at this index. O(cells).
    pub(super) fn insert(&mut self, at: usize, ranked: bool) {
        self.insert_uncounted(at, ranked);
        self.count_bytes();
    }

    fn insert_uncounted(&mut self, at: usize, ranked: bool) {
        if self.by_cell.capacity() == 0 {
            // Most subjects have one cell, so the default capacity of four would be mostly unused.
            self.by_cell.reserve_exact(1);
        }
        self.by_cell.insert(at, Sketch::default());
        if self.runs.is_empty() {
            if ranked && self.by_cell.len() > MAX_WITHOUT_RUNS {
                self.make_runs();
            }
            return;
        }
        let (nth, from) = self.run_of(at);
        let len = self.runs[nth].0 + 1;
        self.runs[nth].0 = len;
        if len > MAX_RUN {
            let half = len / 2;
            let of = |range: std::ops::Range<usize>| (range.len(), merged(&self.by_cell[range]));
            let halves = [of(from..from + half), of(from + half..from + len)];
            self.runs.splice(nth..=nth, halves);
        }
    }

    /// Removes the sketch at this index. `merged` is not updated until [`recompute_merged`](Self::recompute_merged).
    /// O(cells).
    pub(super) fn remove(&mut self, at: usize) {
        self.remove_uncounted(at);
        self.count_bytes();
    }

    fn remove_uncounted(&mut self, at: usize) {
        self.by_cell.remove(at);
        if self.runs.is_empty() {
            return;
        }
        if self.by_cell.len() <= MAX_WITHOUT_RUNS / 2 {
            self.runs = Vec::new();
            return;
        }
        let (nth, from) = self.run_of(at);
        let len = self.runs[nth].0 - 1;
        if len == 0 {
            self.runs.remove(nth);
        } else {
            self.runs[nth] = (len, merged(&self.by_cell[from..from + len]));
        }
    }

    /// Raises a register of the sketch at this index. Returns whether the register was lower.
    pub(super) fn mark(&mut self, at: usize, mark: Mark) -> bool {
        let bytes = &mut self.bytes;
        let raised = self.by_cell.get_mut(at).is_some_and(|sketch| mark_counted(sketch, mark, bytes));
        if raised && !self.runs.is_empty() {
            let nth = self.run_of(at).0;
            mark_counted(&mut self.runs[nth].1, mark, &mut self.bytes);
        }
        raised
    }

    /// Merges another sketch into the one at this index, and on a ranked board into the merge of all. Returns whether
    /// that changed the one at this index. O(cells + registers).
    pub(super) fn unite(&mut self, at: usize, other: &Sketch, ranked: bool) -> bool {
        let Some(sketch) = self.by_cell.get_mut(at) else { return false };
        let mut united = sketch.clone();
        united.merge(other);
        if united == *sketch {
            return false;
        }
        *sketch = united;
        if !self.runs.is_empty() {
            let nth = self.run_of(at).0;
            self.runs[nth].1.merge(other);
        }
        if ranked {
            self.merged.merge(other);
        }
        self.count_bytes();
        true
    }

    /// Raises a register of the merge of all sketches. Returns whether the register was lower.
    pub(super) fn mark_merged(&mut self, mark: Mark) -> bool {
        mark_counted(&mut self.merged, mark, &mut self.bytes)
    }

    /// Returns whether a mark at this index would take no more memory.
    pub(super) fn has_register(&self, at: usize, mark: Mark) -> bool {
        // The register is set in the merges too.
        self.by_cell.get(at).is_some_and(|sketch| sketch.has_register(mark))
    }

    /// Sets the sketch at this index. The merges are not updated until [`recompute_merges`](Self::recompute_merges).
    pub(super) fn set(&mut self, at: usize, sketch: Sketch) {
        if let Some(held) = self.by_cell.get_mut(at) {
            self.bytes += allocated(sketch.capacity());
            self.bytes -= allocated(held.capacity());
            *held = sketch;
        }
    }

    /// Computes `merged` again. O((cells / MAX_RUN + MAX_WITHOUT_RUNS) x registers).
    pub(super) fn recompute_merged(&mut self) {
        self.merged = if self.runs.is_empty() {
            merged(&self.by_cell)
        } else {
            merge_all(self.runs.iter().map(|(_, sketch)| sketch))
        };
        self.count_bytes();
    }

    /// Computes all merges again. O(cells x registers).
    pub(super) fn recompute_merges(&mut self) {
        if !self.runs.is_empty() {
            self.make_runs();
        }
        self.recompute_merged();
    }

    /// Returns whether dropping the sketches takes long.
    pub(super) fn is_large(&self) -> bool {
        self.by_cell.len() > MAX_WITHOUT_RUNS
    }

    /// Returns the bytes that the sketches use, with the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        allocated(size_of::<Self>()) + self.bytes
    }

    /// Counts the bytes of all sketches. O(cells).
    fn count_bytes(&mut self) {
        self.bytes = self.counted_bytes();
    }

    fn counted_bytes(&self) -> usize {
        let sketches = self.by_cell.iter().chain(self.runs.iter().map(|(_, sketch)| sketch)).chain([&self.merged]);
        allocated(self.by_cell.capacity() * size_of::<Sketch>())
            + allocated(self.runs.capacity() * size_of::<(usize, Sketch)>())
            + sketches.map(|sketch| allocated(sketch.capacity())).sum::<usize>()
    }

    fn make_runs(&mut self) {
        self.runs = self.by_cell.chunks(MAX_RUN / 2).map(|run| (run.len(), merged(run))).collect();
    }

    /// Returns the run that contains the sketch at this index, and the index of the run's first sketch. Past the end,
    /// returns the last run.
    fn run_of(&self, at: usize) -> (usize, usize) {
        let mut from = 0;
        for (nth, (len, _)) in self.runs.iter().enumerate() {
            if at < from + len || nth + 1 == self.runs.len() {
                return (nth, from);
            }
            from += len;
        }
        (0, 0)
    }
}

/// Raises a register of a sketch, and adds the memory that this takes to `bytes`. Returns whether it was lower.
fn mark_counted(sketch: &mut Sketch, mark: Mark, bytes: &mut usize) -> bool {
    let before = sketch.capacity();
    let raised = sketch.mark(mark);
    if sketch.capacity() != before {
        *bytes += allocated(sketch.capacity());
        *bytes -= allocated(before);
    }
    raised
}

/// Returns the estimated bytes of the sketches of a subject with this number of distinct values in all slots, each of
/// them in one slot.
pub(super) fn estimated_bytes(slots: usize, values: usize, ranked: bool) -> usize {
    // A sketch grows by doubling from 8 bytes on.
    let sketch = |values: usize| allocated(sketch_bytes(values).next_power_of_two().max(8));
    let list = if slots > 1 { slots.next_power_of_two().max(4) } else { 1 };
    let of_slot = values.div_ceil(slots);
    let mut bytes = allocated(size_of::<Sketch>() * list) + slots * sketch(of_slot);
    if ranked {
        bytes += sketch(values);
        if slots > MAX_WITHOUT_RUNS {
            let run = MAX_RUN / 2;
            bytes += slots.div_ceil(run) * (size_of::<(usize, Sketch)>() + sketch(run * of_slot));
        }
    }
    bytes
}

/// Returns the merge of all these sketches.
pub(super) fn merged(sketches: &[Sketch]) -> Sketch {
    merge_all(sketches.iter())
}

fn merge_all<'a>(mut sketches: impl Iterator<Item = &'a Sketch>) -> Sketch {
    let Some(mut merged) = sketches.next().cloned() else { return Sketch::default() };
    sketches.for_each(|sketch| merged.merge(sketch));
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn merged_runs_equal_the_merge_of_all_sketches(
            steps in prop::collection::vec((0u8..8, 0usize..10_000, 0u16..2_048, 1u8..54), 1..400),
            ranked in any::<bool>(),
        ) {
            let mut sketches = Sketches::default();
            for (what, which, register, rank) in steps {
                let len = sketches.by_cell.len();
                match what {
                    0..=2 => (0..4).for_each(|_| sketches.insert(sketches.by_cell.len(), ranked)),
                    3 => sketches.insert(which % (len + 1), ranked),
                    4 if len > 0 => (0..(which % 8).min(len)).for_each(|_| sketches.remove(0)),
                    5 if len > 0 => sketches.remove(which % len),
                    6 if len > 0 => {
                        let mut other = Sketch::default();
                        (0..which as u16).for_each(|more| {
                            other.mark(Mark { register: (register + more) % 2_048, rank });
                        });
                        let mut united = sketches.by_cell[which % len].clone();
                        united.merge(&other);
                        let changes = united != sketches.by_cell[which % len];
                        prop_assert_eq!(sketches.unite(which % len, &other, ranked), changes);
                        prop_assert_eq!(&sketches.by_cell[which % len], &united);
                    }
                    _ if len > 0 => {
                        let mark = Mark { register, rank };
                        let (before, fits) = (sketches.memory_bytes(), sketches.has_register(which % len, mark));
                        sketches.mark(which % len, mark);
                        sketches.mark_merged(mark);
                        prop_assert!(!fits || sketches.memory_bytes() == before);
                    }
                    _ => {}
                }
                prop_assert_eq!(sketches.bytes, sketches.counted_bytes());
                sketches.recompute_merged();
                prop_assert_eq!(sketches.merged.estimate(), merged(&sketches.by_cell).estimate());
                prop_assert!(sketches.runs.iter().all(|(len, _)| (1..=MAX_RUN).contains(len)));
                if !sketches.runs.is_empty() {
                    prop_assert_eq!(sketches.runs.iter().map(|(len, _)| len).sum::<usize>(), sketches.by_cell.len());
                }
            }
            sketches.recompute_merges();
            prop_assert_eq!(sketches.merged.estimate(), merged(&sketches.by_cell).estimate());
        }
    }
}
