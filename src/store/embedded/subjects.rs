//! The subjects of a track: their names, ids, records and cells, without the combined values of cells.
//!
//! - the *index*, by the hash of the name: 8 bytes per subject, with 0.72 to 0.9 of its places in use;
//! - the *slab*: a record of 32 bytes, including the newest cell;
//! - the *names*: 16 bytes for a name of 14;
//! - the *older cells*: 16 bytes for each further cell;
//! - the *aggregate state* of metrics that keep more than one number per slot;
//! - the *groups* of a board that has a ranking for each key.

use std::any::Any;

use super::aggregate_state::{AggregateState, Garbage};
use super::arena::Arena;
use super::groups::Groups;
use super::hash_table::{ExtendibleTable, TableEntry};
use super::hashed_name::{HashedName, SubjectHash};
use super::numbering::Numbering;
use super::pool::{NONE, Pool, resize_piece};
use super::ranking::{self, TextSource};
use super::record::{Cell, PackedCell, Record};
use super::slab::Slab;
use super::track_traits::TrackTraits;

/// Subjects by name and by id. Ids of released subjects are used again.
#[derive(Debug)]
pub(super) struct Subjects {
    traits: TrackTraits,
    index: ExtendibleTable<IndexEntry>,
    slab: Slab<Record>,
    names: Arena,
    older_cells: Pool<PackedCell>,
    aggregates: Box<dyn AggregateState>,
    /// The keys, if the board has any.
    groups: Option<Groups>,
    pub numbering: Numbering,
    /// Whether records are moved to lower ids when they are visited.
    compacting: bool,
}

/// The hash and the id of a subject.
#[derive(Clone, Copy, Debug)]
struct IndexEntry([u32; 2]);

impl TableEntry for IndexEntry {
    const VACANT: Self = Self([0, NONE]);

    fn is_vacant(&self) -> bool {
        self.0[1] == NONE
    }

    fn hash(&self) -> u32 {
        self.0[0]
    }
}

impl TextSource for Subjects {
    fn text(&self, id: u32) -> &str {
        text_in_group(&self.slab, &self.names, self.groups.is_some(), id)
    }
}

/// The names of subjects by id, in a form that can be shared between threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubjectTexts<'a> {
    slab: &'a Slab<Record>,
    texts: &'a Arena,
    has_keys: bool,
}

impl TextSource for SubjectTexts<'_> {
    fn text(&self, id: u32) -> &str {
        text_in_group(self.slab, self.texts, self.has_keys, id)
    }
}

fn text_in_group<'a>(slab: &Slab<Record>, texts: &'a Arena, has_keys: bool, id: u32) -> &'a str {
    let text = slab.get(id).map_or("", |record| texts.get(record.text));
    if has_keys { split(text).1 } else { text }
}

/// Returns the key and the name of a subject: see [`Subject::in_ranking`](crate::board::Subject::in_ranking).
fn split(text: &str) -> (&str, &str) {
    text.split_once('\0').unwrap_or(("", text))
}

impl Subjects {
    pub(super) fn new(traits: TrackTraits, aggregates: Box<dyn AggregateState>, numbering: Numbering) -> Self {
        Self {
            traits,
            index: ExtendibleTable::default(),
            slab: Slab::default(),
            names: Arena::default(),
            older_cells: Pool::default(),
            aggregates,
            groups: traits.most_keys.map(|_| Groups::default()),
            numbering,
            compacting: false,
        }
    }

    /// Returns the names of the subjects.
    pub(super) fn texts(&self) -> SubjectTexts<'_> {
        SubjectTexts { slab: &self.slab, texts: &self.names, has_keys: self.groups.is_some() }
    }

    /// Returns the whole text of a subject: with its key, if it has one.
    pub(super) fn whole_text(&self, id: u32) -> &str {
        self.slab.get(id).map_or("", |record| self.names.get(record.text))
    }

    /// Returns the entry of a subject with this score in the ranking.
    pub(super) fn entry(&self, id: u32, score: i64) -> ranking::Entry {
        let group = self.groups.as_ref().map_or(ranking::UNGROUPED, |groups| groups.of(id));
        ranking::Entry::new(score, self.text(id), id).in_group(group)
    }

    /// Returns the keys, if the board has any.
    pub(super) fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    pub(super) fn groups_mut(&mut self) -> Option<&mut Groups> {
        self.groups.as_mut()
    }

    /// Returns the number of index entries moved so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> usize {
        self.index.moved()
    }

    /// Returns the aggregate state, if it has this type. Each kind of metric has its own type.
    pub(super) fn state<S: AggregateState>(&self) -> Option<&S> {
        let state: &dyn Any = &*self.aggregates;
        state.downcast_ref()
    }

    pub(super) fn state_mut<S: AggregateState>(&mut self) -> Option<&mut S> {
        let state: &mut dyn Any = &mut *self.aggregates;
        state.downcast_mut()
    }

    /// Returns the number of subjects that have a record.
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns the id of a subject that has a record. O(1).
    pub(super) fn id(&self, name: HashedName) -> Option<u32> {
        let is_it = |entry: &IndexEntry| self.name_bytes(entry.0[1]) == name.text.as_bytes();
        self.index.find(name.hash.0, is_it).map(|entry| entry.0[1])
    }

    /// Returns whether references are left for everything that a subject may need. They suffice for 32 GB of names and
    /// 64 GB of cells.
    pub(super) fn has_room(&self) -> bool {
        self.names.has_room() && self.older_cells.has_room() && self.aggregates.has_room()
    }

    /// Adds a subject that has no record. Returns its id, or `None` if there is [no room](Self::has_room) or there are
    /// two billion subjects. O(1).
    pub(super) fn add(&mut self, name: HashedName) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let text = self.names.store(name.text)?;
        let Some(id) = self.slab.insert(Record::new(text, self.traits.absent_sort_key())) else {
            self.names.free(text);
            return None;
        };
        self.index.insert(IndexEntry([name.hash.0, id]));
        self.aggregates.subject_added(id);
        if let Some(groups) = &mut self.groups {
            groups.add(id, split(name.text).0);
        }
        Some(id)
    }

    pub(super) fn get(&self, id: u32) -> Option<&Record> {
        self.slab.get(id)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Record> {
        self.slab.get_mut(id)
    }

    fn name_bytes(&self, id: u32) -> &[u8] {
        self.slab.get(id).map_or(&[], |record| self.names.bytes(record.text))
    }

    /// Returns the first id in use from `from` on.
    pub(super) fn next_from(&self, from: u32) -> Option<u32> {
        self.slab.next_from(from)
    }

    /// Returns the last id in use before `end`.
    pub(super) fn last_before(&self, end: u32) -> Option<u32> {
        self.slab.last_before(end)
    }

    /// Returns whether the subject has no data: no cell, and no aggregate state.
    pub(super) fn is_empty(&self, id: u32) -> bool {
        self.slab.get(id).is_none_or(|record| record.len() == 0) && self.aggregates.is_empty(id)
    }

    /// Removes a subject, whose id will be used again. O(1).
    pub(super) fn remove(&mut self, id: u32) -> Option<Garbage> {
        let record = *self.slab.get(id)?;
        let hash = SubjectHash::of(self.names.get(record.text));
        self.index.remove(hash.0, |entry| entry.0[1] == id);
        self.names.free(record.text);
        if record.len() > 1 {
            self.older_cells.free(record.older, record.len() - 1);
        }
        let garbage = self.aggregates.remove_subject(id, record.len());
        if let Some(groups) = &mut self.groups {
            groups.remove(id);
        }
        self.free_id(id);
        garbage
    }

    /// Returns the number of cells of a subject.
    pub(super) fn cell_count(&self, id: u32) -> usize {
        self.slab.get(id).map_or(0, Record::len)
    }

    /// Returns the cells of a subject from this index on, oldest first.
    pub(super) fn cells_from(&self, id: u32, first: usize) -> impl Iterator<Item = Cell> + '_ {
        let record = self.slab.get(id).filter(|record| record.len() > 0);
        let older = record.map_or(&[][..], |record| self.older(record));
        let newest = record.filter(|record| first < record.len()).map(|record| &record.newest);
        older.get(first..).unwrap_or_default().iter().chain(newest).map(|cell| self.unpack(cell))
    }

    /// Returns the index of the cell of a slot among a subject's cells, oldest first, or as an error the index where
    /// it would be. O(log cells).
    pub(super) fn find_cell(&self, id: u32, slot: i64) -> Result<usize, usize> {
        let Some(record) = self.slab.get(id).filter(|record| record.len() > 0) else { return Err(0) };
        let last = record.len() - 1;
        // Nearly every write is about the newest slot.
        match self.numbering.number_of_ordinal(record.newest.ordinal).cmp(&slot) {
            std::cmp::Ordering::Equal => Ok(last),
            std::cmp::Ordering::Less => Err(last + 1),
            std::cmp::Ordering::Greater => {
                self.older(record).binary_search_by_key(&slot, |cell| self.numbering.number_of_ordinal(cell.ordinal))
            }
        }
    }

    /// Returns the index of a subject's first cell at or after a slot.
    pub(super) fn first_cell_from(&self, id: u32, slot: i64) -> usize {
        self.find_cell(id, slot).unwrap_or_else(|at| at)
    }

    /// Returns the number of the cell of a slot.
    pub(super) fn amount_in(&self, id: u32, slot: i64) -> Option<i64> {
        let at = self.find_cell(id, slot).ok()?;
        self.packed_cell(id, at).map(|cell| cell.amount)
    }

    /// Returns the cell at an index.
    pub(super) fn cell_at(&self, id: u32, at: usize) -> Option<Cell> {
        self.packed_cell(id, at).map(|cell| self.unpack(cell))
    }

    /// Sets the number of the cell at an index. Returns the previous number.
    pub(super) fn set_amount(&mut self, id: u32, at: usize, amount: i64) -> Option<i64> {
        self.packed_cell_mut(id, at).map(|cell| std::mem::replace(&mut cell.amount, amount))
    }

    /// Sets the slot-list place of the cell at an index.
    pub(super) fn set_place(&mut self, id: u32, at: usize, place: u32) {
        if let Some(cell) = self.packed_cell_mut(id, at) {
            cell.place = place;
        }
    }

    /// Inserts a cell at the index where [`find_cell`](Self::find_cell) returned that it would be. O(1) at the end,
    /// otherwise O(cells after it).
    pub(super) fn insert_cell(&mut self, id: u32, at: usize, new: Cell) {
        let Some(record) = self.slab.get_mut(id) else { return };
        let len = record.len();
        let mut packed = PackedCell { amount: new.amount, place: new.place, ordinal: new.slot as u16, count: 0 };
        if len == 0 {
            record.newest = packed;
        } else {
            let reference = match len {
                1 => self.older_cells.allocate(1),
                _ => Some(resize_piece(&mut self.older_cells, record.older, len - 1, len)),
            };
            // Callers check for room before they change anything, so this allocation succeeds.
            let Some(reference) = reference else { return };
            record.older = reference;
            if at == len {
                std::mem::swap(&mut record.newest, &mut packed);
            }
            let at = at.min(len - 1);
            let older = self.older_cells.get_mut(reference, len);
            older.copy_within(at..len - 1, at + 1);
            older[at] = packed;
        }
        record.newest.count = (len + 1) as u16;
        self.aggregates.cell_inserted(id, at, len + 1);
    }

    /// Removes and returns the cell at an index. O(1) at the end, otherwise O(cells after it).
    pub(super) fn remove_cell(&mut self, id: u32, at: usize) -> Option<Cell> {
        let cell = self.cell_at(id, at)?;
        let record = self.slab.get_mut(id)?;
        let left = record.len() - 1;
        if left > 0 {
            let older = self.older_cells.get_mut(record.older, left);
            if at == left {
                record.newest = *older.last()?;
            } else {
                older.copy_within(at + 1.., at);
            }
            if left == 1 {
                self.older_cells.free(record.older, left);
                record.older = NONE;
            } else {
                record.older = resize_piece(&mut self.older_cells, record.older, left, left - 1);
            }
        }
        record.newest.count = left as u16;
        self.aggregates.cell_removed(id, at, left, cell.amount);
        Some(cell)
    }

    /// Computes the cached total of all cells: see [`AggregateState::recompute_totals`].
    pub(super) fn recompute_totals(&mut self, id: u32) {
        // Of numbers that are not added up, the sum may exceed the range. It has no meaning then.
        let add = |(len, sum): (usize, i64), cell: Cell| (len + 1, sum.wrapping_add(cell.amount));
        let (len, sum) = self.cells_from(id, 0).fold((0, 0), add);
        self.aggregates.recompute_totals(id, len, sum);
    }

    /// Reads the index entry of a subject's hash: the first of three passes that bring the data of a portion of work
    /// into the cache, with overlapping misses. The result has no meaning, but must be used ([`std::hint::black_box`])
    /// so that the read is not optimized away.
    pub(super) fn prefetch_index(&self, hash: SubjectHash) -> u32 {
        self.index.prefetch(hash.0)
    }

    /// Reads the record that a hash most likely leads to: the second pass.
    pub(super) fn prefetch_record(&self, hash: SubjectHash) -> u32 {
        let record = self.index.find(hash.0, |_| true).and_then(|entry| self.slab.get(entry.0[1]));
        record.map_or(0, |record| record.text)
    }

    /// Reads the text of that record: the third pass.
    pub(super) fn prefetch_text(&self, hash: SubjectHash) -> u32 {
        let record = self.index.find(hash.0, |_| true).and_then(|entry| self.slab.get(entry.0[1]));
        record.and_then(|record| self.names.bytes(record.text).first()).map_or(0, |byte| u32::from(*byte))
    }

    /// Returns whether so little of the allocated memory is in use that a compaction is due.
    pub(super) fn is_sparse(&self) -> bool {
        self.slab.is_sparse() || self.names.is_sparse() || self.older_cells.is_sparse() || self.aggregates.is_sparse()
    }

    /// Begins a compaction of the parts that need one. After this call, the caller must pass every record to
    /// [`compact`](Self::compact) and [`move_to_lower_id`](Self::move_to_lower_id). O(chunks).
    pub(super) fn begin_compaction(&mut self) {
        self.compacting = self.slab.is_sparse();
        self.names.begin_compaction();
        self.older_cells.begin_compaction();
        self.aggregates.begin_compaction();
    }

    /// Moves the data that a record refers to, where its memory is to be freed. O(cells).
    pub(super) fn compact(&mut self, id: u32) {
        let Some(record) = self.slab.get_mut(id) else { return };
        if let Some(moved) = self.names.moved(record.text) {
            record.text = moved;
        }
        let len = record.len();
        if len > 1
            && let Some(moved) = self.older_cells.moved(record.older, len - 1)
        {
            record.older = moved;
        }
        self.aggregates.compact(id, len);
    }

    /// Returns whether a compaction is in progress that would give a record a lower id.
    pub(super) fn can_move_down(&self, id: u32) -> bool {
        self.compacting && self.slab.can_move_down(id)
    }

    /// Gives a record with a high id a lower one, during a compaction, so that the chunk of the high one can be freed.
    /// Returns the new id, if there is one. Both ids have the record until [`free_id`](Self::free_id), but only the new
    /// one has the name and the aggregate state.
    pub(super) fn move_to_lower_id(&mut self, id: u32) -> Option<u32> {
        let record = *self.slab.get(id)?;
        let lower = self.slab.insert(record)?;
        let hash = SubjectHash::of(self.names.get(record.text));
        if let Some(entry) = self.index.find_mut(hash.0, |entry| entry.0[1] == id) {
            entry.0[1] = lower;
        }
        self.aggregates.change_id(id, lower);
        if let Some(groups) = &mut self.groups {
            groups.change_id(id, lower);
        }
        Some(lower)
    }

    /// Frees an id, whose record was removed or has a lower id now.
    pub(super) fn free_id(&mut self, id: u32) {
        if self.slab.remove(id) {
            self.aggregates.free_chunk(id);
            if let Some(groups) = &mut self.groups {
                groups.free_chunk(id);
            }
        }
    }

    /// Returns the bytes that the aggregate states of single subjects own: see [`AggregateState::owned_bytes`].
    #[cfg(test)]
    pub(super) fn owned_bytes(&self) -> (usize, usize) {
        self.aggregates.owned_bytes()
    }

    /// Returns the bytes used. The allocator's overhead is included only for sketches and values. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.index.memory_bytes()
            + self.slab.memory_bytes()
            + self.names.memory_bytes()
            + self.older_cells.memory_bytes()
            + self.aggregates.memory_bytes()
            + self.groups.as_ref().map_or(0, Groups::memory_bytes)
    }

    fn unpack(&self, cell: &PackedCell) -> Cell {
        Cell { slot: self.numbering.number_of_ordinal(cell.ordinal), amount: cell.amount, place: cell.place }
    }

    fn older(&self, record: &Record) -> &[PackedCell] {
        if record.len() > 1 { self.older_cells.get(record.older, record.len() - 1) } else { &[] }
    }

    fn packed_cell(&self, id: u32, at: usize) -> Option<&PackedCell> {
        let record = self.slab.get(id)?;
        if at + 1 == record.len() { Some(&record.newest) } else { self.older(record).get(at) }
    }

    fn packed_cell_mut(&mut self, id: u32, at: usize) -> Option<&mut PackedCell> {
        let record = self.slab.get_mut(id)?;
        match record.len() {
            len if at + 1 == len => Some(&mut record.newest),
            len if at + 1 < len => self.older_cells.get_mut(record.older, len - 1).get_mut(at),
            _ => None,
        }
    }
}
