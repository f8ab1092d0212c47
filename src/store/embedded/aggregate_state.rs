//! The state that some metrics keep of a subject in addition to one number per slot.
//!
//! Sums and extremes need only one number per slot, which cells hold. Boards of these metrics have no additional
//! state.

use super::board_traits::BoardTraits;
use super::last_seen::LastSeenValues;
use super::pool::{NONE, Pool, Unit, class_of};
use super::slab::Column;
use super::subject_sketches::Sketches;
use crate::board::Kind;

/// The additional state of a board's subjects, by subject id.
#[derive(Debug)]
pub(super) enum AggregateState {
    /// For COUNT, SUM, MIN and MAX.
    Nothing,
    Means(Means),
    Sketches {
        column: Column<Box<Sketches>>,
        ranked: bool,
    },
    LastSeen(Column<Box<LastSeenValues>>),
}

/// The state of a subject that was released or emptied, kept so that it can be dropped without the board's lock:
/// dropping it may take long.
#[derive(Debug)]
pub(super) enum Garbage {
    Sketches(Box<Sketches>),
    LastSeen(Box<LastSeenValues>),
}

/// For AVG: the number of measurements, per cell and in total. Takes 24 bytes per subject, and 8 bytes for each cell
/// if there are several.
#[derive(Debug, Default)]
pub(super) struct Means {
    totals: Column<MeanTotal>,
    /// The counts of subjects with several cells, in the order of the cells.
    counts: Pool<i64>,
}

/// The total of all cells of a subject, kept so that no write has to add them up.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeanTotal {
    pub sum: i64,
    /// The total count. For a subject with one cell, it is also that cell's count.
    pub count: i64,
    /// The reference of the counts, if there are several cells.
    counts_at: u32,
}

impl Means {
    /// Returns the total of all cells, as of the last [`recompute_total`](Self::recompute_total) and the changes since.
    pub(super) fn total(&self, id: u32) -> Option<&MeanTotal> {
        self.totals.get(id)
    }

    /// Returns the count of the cell at index `at`, of `len` cells.
    pub(super) fn count(&self, id: u32, at: usize, len: usize) -> i64 {
        match self.totals.get(id) {
            Some(mean) if len > 1 => self.counts.get(mean.counts_at, len).get(at).copied().unwrap_or_default(),
            Some(mean) => mean.count,
            None => 0,
        }
    }

    /// Sets the count of the cell at index `at`, of `len` cells, and adds `sum_change` to the total sum.
    pub(super) fn set(&mut self, id: u32, at: usize, len: usize, count: i64, sum_change: i64) {
        let Some(mean) = self.totals.get_mut(id) else { return };
        mean.sum += sum_change;
        if len > 1 {
            if let Some(held) = self.counts.get_mut(mean.counts_at, len).get_mut(at) {
                mean.count += count - std::mem::replace(held, count);
            }
        } else {
            mean.count = count;
        }
    }

    /// Adds a cell at this index. There are now `len` cells.
    fn cell_inserted(&mut self, id: u32, at: usize, len: usize) {
        if len == 1 {
            return self.totals.set(id, MeanTotal { sum: 0, count: 0, counts_at: NONE });
        }
        let Some(mean) = self.totals.get_mut(id) else { return };
        let more = if len == 2 {
            let Some(more) = self.counts.allocate(len) else { return };
            self.counts.get_mut(more, len)[0] = mean.count;
            more
        } else {
            resize_piece(&mut self.counts, mean.counts_at, len - 1, len)
        };
        mean.counts_at = more;
        let counts = self.counts.get_mut(more, len);
        counts.copy_within(at..len - 1, at + 1);
        counts[at] = 0;
    }

    /// Removes the cell at this index, which had the sum `amount`. There are `len` cells left.
    fn cell_removed(&mut self, id: u32, at: usize, len: usize, amount: i64) {
        if len == 0 {
            self.totals.take(id);
            return;
        }
        let Some(mean) = self.totals.get_mut(id) else { return };
        let counts = self.counts.get_mut(mean.counts_at, len + 1);
        mean.sum -= amount;
        mean.count -= counts[at];
        counts.copy_within(at + 1.., at);
        if len == 1 {
            mean.count = counts[0];
            self.counts.free(mean.counts_at, len + 1);
            mean.counts_at = NONE;
        } else {
            mean.counts_at = resize_piece(&mut self.counts, mean.counts_at, len + 1, len);
        }
    }

    /// Computes the total: the sum of all `len` cells' counts, and the given sum. O(cells).
    fn recompute_total(&mut self, id: u32, len: usize, sum: i64) {
        let Some(mean) = self.totals.get_mut(id) else { return };
        mean.sum = sum;
        if len > 1 {
            mean.count = self.counts.get(mean.counts_at, len).iter().sum();
        }
    }

    fn remove_subject(&mut self, id: u32, len: usize) {
        if let Some(mean) = self.totals.take(id).filter(|_| len > 1) {
            self.counts.free(mean.counts_at, len);
        }
    }

    fn compact(&mut self, id: u32, len: usize) {
        if let Some(mean) = self.totals.get_mut(id).filter(|_| len > 1)
            && let Some(moved) = self.counts.moved(mean.counts_at, len)
        {
            mean.counts_at = moved;
        }
    }
}

/// Changes the number of units of a piece, and moves the piece if the new number belongs to a different size class.
/// Returns the reference.
pub(super) fn resize_piece<U: Unit>(pool: &mut Pool<U>, piece: u32, old: usize, new: usize) -> u32 {
    if class_of(old) == class_of(new) {
        return piece;
    }
    // Callers check for room before they change anything, so this allocation succeeds.
    pool.replace(piece, old, new).unwrap_or(piece)
}

impl Garbage {
    /// Returns whether dropping it takes so long that a different thread should do it.
    pub(super) fn is_large(&self) -> bool {
        match self {
            Garbage::Sketches(sketches) => sketches.is_large(),
            Garbage::LastSeen(values) => values.len() > 256,
        }
    }
}

impl AggregateState {
    pub(super) fn new(traits: BoardTraits) -> Self {
        match traits.kind {
            Kind::Sum | Kind::Min | Kind::Max => AggregateState::Nothing,
            Kind::Mean => AggregateState::Means(Means::default()),
            Kind::Sketch => AggregateState::Sketches { column: Column::default(), ranked: traits.ranked },
            Kind::Distinct => AggregateState::LastSeen(Column::default()),
        }
    }

    /// Returns whether there is room for a piece of any size. Always `true` where no pieces are used.
    pub(super) fn has_room(&self) -> bool {
        match self {
            AggregateState::Means(means) => means.counts.has_room(),
            _ => true,
        }
    }

    /// Adds a subject without cells.
    pub(super) fn subject_added(&mut self, id: u32) {
        match self {
            AggregateState::Nothing | AggregateState::Means(_) => {}
            AggregateState::Sketches { column, .. } => column.set(id, Box::default()),
            AggregateState::LastSeen(column) => column.set(id, Box::default()),
        }
    }

    pub(super) fn means(&self) -> Option<&Means> {
        if let AggregateState::Means(means) = self { Some(means) } else { None }
    }

    pub(super) fn means_mut(&mut self) -> Option<&mut Means> {
        if let AggregateState::Means(means) = self { Some(means) } else { None }
    }

    pub(super) fn sketches(&self, id: u32) -> Option<&Sketches> {
        if let AggregateState::Sketches { column, .. } = self {
            column.get(id).map(|sketches| &**sketches)
        } else {
            None
        }
    }

    pub(super) fn sketches_mut(&mut self, id: u32) -> Option<&mut Sketches> {
        if let AggregateState::Sketches { column, .. } = self {
            column.get_mut(id).map(|sketches| &mut **sketches)
        } else {
            None
        }
    }

    pub(super) fn last_seen(&self, id: u32) -> Option<&LastSeenValues> {
        if let AggregateState::LastSeen(column) = self { column.get(id).map(|values| &**values) } else { None }
    }

    pub(super) fn last_seen_mut(&mut self, id: u32) -> Option<&mut LastSeenValues> {
        if let AggregateState::LastSeen(column) = self { column.get_mut(id).map(|values| &mut **values) } else { None }
    }

    /// Adds a cell at this index. There are now `len` cells.
    pub(super) fn cell_inserted(&mut self, id: u32, at: usize, len: usize) {
        match self {
            AggregateState::Means(means) => means.cell_inserted(id, at, len),
            AggregateState::Sketches { column, ranked } => {
                if let Some(sketches) = column.get_mut(id) {
                    sketches.insert(at, *ranked);
                }
            }
            AggregateState::Nothing | AggregateState::LastSeen(_) => {}
        }
    }

    /// Removes the cell at this index, which had the number `amount`. There are `len` cells left. The cached merge of
    /// all sketches is not updated until [`recompute_totals`](Self::recompute_totals).
    pub(super) fn cell_removed(&mut self, id: u32, at: usize, len: usize, amount: i64) {
        match self {
            AggregateState::Means(means) => means.cell_removed(id, at, len, amount),
            AggregateState::Sketches { column, .. } => {
                if let Some(sketches) = column.get_mut(id) {
                    sketches.remove(at);
                }
            }
            AggregateState::Nothing | AggregateState::LastSeen(_) => {}
        }
    }

    /// Computes the cached total of all cells, of which there are `len` with this sum. O(cells), and for sketches
    /// O(cells x registers).
    pub(super) fn recompute_totals(&mut self, id: u32, len: usize, sum: i64) {
        match self {
            AggregateState::Means(means) => means.recompute_total(id, len, sum),
            AggregateState::Sketches { column, .. } => {
                if let Some(sketches) = column.get_mut(id) {
                    sketches.recompute_merges();
                }
            }
            AggregateState::Nothing | AggregateState::LastSeen(_) => {}
        }
    }

    /// Returns whether a subject has no state besides cells.
    pub(super) fn is_empty(&self, id: u32) -> bool {
        self.last_seen(id).is_none_or(LastSeenValues::is_empty)
    }

    /// Removes all state of a subject, which had `len` cells.
    pub(super) fn remove_subject(&mut self, id: u32, len: usize) -> Option<Garbage> {
        match self {
            AggregateState::Nothing => None,
            AggregateState::Means(means) => {
                means.remove_subject(id, len);
                None
            }
            AggregateState::Sketches { column, .. } => column.take(id).map(Garbage::Sketches),
            AggregateState::LastSeen(column) => column.take(id).map(Garbage::LastSeen),
        }
    }

    /// Frees the chunk of this id, which holds no subject any more.
    pub(super) fn free_chunk(&mut self, id: u32) {
        match self {
            AggregateState::Nothing => {}
            AggregateState::Means(means) => means.totals.free_chunk(id),
            AggregateState::Sketches { column, .. } => column.free_chunk(id),
            AggregateState::LastSeen(column) => column.free_chunk(id),
        }
    }

    /// Moves the state of one id to another.
    pub(super) fn change_id(&mut self, from: u32, to: u32) {
        fn rename<T>(column: &mut Column<T>, from: u32, to: u32) {
            if let Some(held) = column.take(from) {
                column.set(to, held);
            }
        }
        match self {
            AggregateState::Nothing => {}
            AggregateState::Means(means) => rename(&mut means.totals, from, to),
            AggregateState::Sketches { column, .. } => rename(column, from, to),
            AggregateState::LastSeen(column) => rename(column, from, to),
        }
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.means().is_some_and(|means| means.counts.is_sparse())
    }

    pub(super) fn begin_compaction(&mut self) {
        if let AggregateState::Means(means) = self {
            means.counts.begin_compaction();
        }
    }

    /// Moves the state of a subject with `len` cells if its memory is to be freed by the compaction.
    pub(super) fn compact(&mut self, id: u32, len: usize) {
        if let AggregateState::Means(means) = self {
            means.compact(id, len);
        }
    }

    /// Returns the bytes that sketches and last-seen values own, with the allocator's overhead.
    #[cfg(test)]
    pub(super) fn owned_bytes(&self) -> usize {
        match self {
            AggregateState::Nothing | AggregateState::Means(_) => 0,
            AggregateState::Sketches { column, .. } => column.iter().map(|sketches| sketches.memory_bytes()).sum(),
            AggregateState::LastSeen(column) => column.iter().map(|values| values.memory_bytes()).sum(),
        }
    }

    /// Returns the bytes used, without the memory that sketches and last-seen values own.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            AggregateState::Nothing => 0,
            AggregateState::Means(means) => means.totals.memory_bytes() + means.counts.memory_bytes(),
            AggregateState::Sketches { column, .. } => column.memory_bytes(),
            AggregateState::LastSeen(column) => column.memory_bytes(),
        }
    }
}
