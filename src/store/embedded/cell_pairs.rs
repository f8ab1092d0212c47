//! A second number for each cell, for kinds of metrics that need one: the number of measurements (AVG), the time of the
//! value (LAST).

use super::aggregate_state::{AggregateState, Garbage, rename};
use super::holdings::Holdings;
use super::pool::{NONE, Pool, resize_piece, rounded_units};
use super::slab::Column;

/// Returns the estimated bytes of a subject with this number of cells.
pub(super) fn estimated_bytes(cells: usize) -> usize {
    let seconds = if cells > 1 { size_of::<i64>() * rounded_units(cells) } else { 0 };
    size_of::<Option<PairTotal>>() + seconds
}

/// A second number for each cell, and the sums of both numbers. Takes 24 bytes per subject, and 8 bytes for each cell
/// if there are several.
#[derive(Debug, Default)]
pub(super) struct CellPairs {
    totals: Column<PairTotal>,
    /// The second numbers of subjects with several cells, in the order of the cells.
    seconds: Pool<i64>,
}

/// The sums of both numbers of all cells of a subject, kept so that no write has to add them up. A sum is exact if the
/// kind and the window bound it; otherwise it wraps, and nobody reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairTotal {
    /// The sum of the cells' own numbers.
    pub first: i64,
    /// The sum of the second numbers. For a subject with one cell, it is also that cell's second number.
    pub second: i64,
    /// The reference of the second numbers, if there are several cells.
    seconds_at: u32,
}

impl CellPairs {
    /// Returns the sums, as of the last `recompute_totals` and the changes since.
    pub(super) fn total(&self, id: u32) -> Option<&PairTotal> {
        self.totals.get(id)
    }

    /// Returns the second number of the cell at index `at`, of `len` cells.
    pub(super) fn second(&self, id: u32, at: usize, len: usize) -> i64 {
        match self.totals.get(id) {
            Some(pair) if len > 1 => self.seconds.get(pair.seconds_at, len).get(at).copied().unwrap_or_default(),
            Some(pair) => pair.second,
            None => 0,
        }
    }

    /// Sets the second number of the cell at index `at`, of `len` cells, and adds `first_change` to the sum of the
    /// first numbers.
    pub(super) fn set(&mut self, id: u32, at: usize, len: usize, second: i64, first_change: i64) {
        let Some(pair) = self.totals.get_mut(id) else { return };
        pair.first = pair.first.wrapping_add(first_change);
        if len > 1 {
            if let Some(held) = self.seconds.get_mut(pair.seconds_at, len).get_mut(at) {
                let change = second.wrapping_sub(std::mem::replace(held, second));
                pair.second = pair.second.wrapping_add(change);
            }
        } else {
            pair.second = second;
        }
    }
}

impl Holdings {
    /// Returns the second number of the cell at index `at`.
    pub(super) fn second(&self, id: u32, at: usize) -> i64 {
        self.subjects.state::<CellPairs>().map_or(0, |pairs| pairs.second(id, at, self.subjects.cell_count(id)))
    }

    /// Sets the second number of an existing cell, and adds `first_change` to the sum of the first numbers.
    pub(super) fn set_second(&mut self, id: u32, slot: i64, second: i64, first_change: i64) {
        let (at, len) = (self.subjects.find_cell(id, slot), self.subjects.cell_count(id));
        if let (Ok(at), Some(pairs)) = (at, self.subjects.state_mut::<CellPairs>()) {
            pairs.set(id, at, len, second, first_change);
        }
    }
}

impl AggregateState for CellPairs {
    fn has_room(&self) -> bool {
        self.seconds.has_room()
    }

    fn cell_inserted(&mut self, id: u32, at: usize, len: usize) {
        if len == 1 {
            return self.totals.set(id, PairTotal { first: 0, second: 0, seconds_at: NONE });
        }
        let Some(pair) = self.totals.get_mut(id) else { return };
        let more = if len == 2 {
            let Some(more) = self.seconds.allocate(len) else { return };
            self.seconds.get_mut(more, len)[0] = pair.second;
            more
        } else {
            resize_piece(&mut self.seconds, pair.seconds_at, len - 1, len)
        };
        pair.seconds_at = more;
        let seconds = self.seconds.get_mut(more, len);
        seconds.copy_within(at..len - 1, at + 1);
        seconds[at] = 0;
    }

    fn cell_removed(&mut self, id: u32, at: usize, len: usize, amount: i64) {
        if len == 0 {
            self.totals.take(id);
            return;
        }
        let Some(pair) = self.totals.get_mut(id) else { return };
        let seconds = self.seconds.get_mut(pair.seconds_at, len + 1);
        pair.first = pair.first.wrapping_sub(amount);
        pair.second = pair.second.wrapping_sub(seconds[at]);
        seconds.copy_within(at + 1.., at);
        if len == 1 {
            pair.second = seconds[0];
            self.seconds.free(pair.seconds_at, len + 1);
            pair.seconds_at = NONE;
        } else {
            pair.seconds_at = resize_piece(&mut self.seconds, pair.seconds_at, len + 1, len);
        }
    }

    fn recompute_totals(&mut self, id: u32, len: usize, sum: i64) {
        let Some(pair) = self.totals.get_mut(id) else { return };
        pair.first = sum;
        if len > 1 {
            let seconds = self.seconds.get(pair.seconds_at, len);
            pair.second = seconds.iter().fold(0, |sum: i64, second| sum.wrapping_add(*second));
        }
    }

    fn remove_subject(&mut self, id: u32, len: usize) -> Option<Garbage> {
        if let Some(pair) = self.totals.take(id).filter(|_| len > 1) {
            self.seconds.free(pair.seconds_at, len);
        }
        None
    }

    fn free_chunk(&mut self, id: u32) {
        self.totals.free_chunk(id);
    }

    fn change_id(&mut self, from: u32, to: u32) {
        rename(&mut self.totals, from, to);
    }

    fn is_sparse(&self) -> bool {
        self.seconds.is_sparse()
    }

    fn begin_compaction(&mut self) {
        self.seconds.begin_compaction();
    }

    fn compact(&mut self, id: u32, len: usize) {
        if let Some(pair) = self.totals.get_mut(id).filter(|_| len > 1)
            && let Some(moved) = self.seconds.moved(pair.seconds_at, len)
        {
            pair.seconds_at = moved;
        }
    }

    fn memory_bytes(&self) -> usize {
        self.totals.memory_bytes() + self.seconds.memory_bytes()
    }
}
