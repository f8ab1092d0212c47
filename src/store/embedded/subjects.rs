//! A board's subjects: their names, ids, records and slices, without the combined values of slices.
//!
//! - the *index*, by the hash of the name: 8 bytes per subject, with 0.72 to 0.9 of its places in use;
//! - the *slab*: a record of 32 bytes, including the newest slice;
//! - the *texts*: 16 bytes for a name of 14;
//! - the *cells*: 16 bytes for each further slice;
//! - the *extras* of metrics that keep more than one number per slot.

use super::arena::Arena;
use super::extra::{Extras, Garbage, resized};
use super::names::{Name, SubjectHash};
use super::numbering::Numbering;
use super::pool::{NONE, Pool};
use super::ranking::Texts;
use super::record::{Cell, Record, Slice};
use super::rule::Rule;
use super::slab::Slab;
use super::table::{Entry, Extendible};

/// Subjects by name and by id. Ids of released subjects are used again.
#[derive(Debug)]
pub(super) struct Subjects {
    rule: Rule,
    index: Extendible<Indexed>,
    slab: Slab<Record>,
    texts: Arena,
    cells: Pool<Cell>,
    pub extras: Extras,
    pub numbering: Numbering,
    /// Whether records are moved to lower ids when they are visited.
    compacting: bool,
}

/// The hash and the id of a subject.
#[derive(Clone, Copy, Debug)]
struct Indexed([u32; 2]);

impl Entry for Indexed {
    const VACANT: Self = Self([0, NONE]);

    fn is_vacant(&self) -> bool {
        self.0[1] == NONE
    }

    fn hash(&self) -> u32 {
        self.0[0]
    }
}

impl Texts for Subjects {
    fn text(&self, id: u32) -> &str {
        self.slab.get(id).map_or("", |record| self.texts.get(record.text))
    }
}

/// The names of subjects by id, in a form that can be shared between threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubjectTexts<'a> {
    slab: &'a Slab<Record>,
    texts: &'a Arena,
}

impl Texts for SubjectTexts<'_> {
    fn text(&self, id: u32) -> &str {
        self.slab.get(id).map_or("", |record| self.texts.get(record.text))
    }
}

impl Subjects {
    pub(super) fn new(rule: Rule, numbering: Numbering) -> Self {
        Self {
            rule,
            index: Extendible::default(),
            slab: Slab::default(),
            texts: Arena::default(),
            cells: Pool::default(),
            extras: Extras::new(rule),
            numbering,
            compacting: false,
        }
    }

    /// Returns the names of the subjects.
    pub(super) fn texts(&self) -> SubjectTexts<'_> {
        SubjectTexts { slab: &self.slab, texts: &self.texts }
    }

    /// Returns the number of index entries moved so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> usize {
        self.index.moved()
    }

    /// Returns the number of subjects that have a record.
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns the id of a subject that has a record. O(1).
    pub(super) fn id(&self, name: Name) -> Option<u32> {
        let is_it = |entry: &Indexed| self.bytes(entry.0[1]) == name.text.as_bytes();
        self.index.find(name.hash.0, is_it).map(|entry| entry.0[1])
    }

    /// Returns whether references are left for everything that a subject may need. They suffice for 32 GB of names and
    /// 64 GB of slices.
    pub(super) fn has_room(&self) -> bool {
        self.texts.has_room() && self.cells.has_room() && self.extras.has_room()
    }

    /// Adds a subject that has no record. Returns its id, or `None` if there is [no room](Self::has_room) or there are
    /// two billion subjects. O(1).
    pub(super) fn add(&mut self, name: Name) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let text = self.texts.store(name.text)?;
        let Some(id) = self.slab.insert(Record::new(text, self.rule.absent())) else {
            self.texts.free(text);
            return None;
        };
        self.index.insert(Indexed([name.hash.0, id]));
        self.extras.began(id);
        Some(id)
    }

    pub(super) fn get(&self, id: u32) -> Option<&Record> {
        self.slab.get(id)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Record> {
        self.slab.get_mut(id)
    }

    fn bytes(&self, id: u32) -> &[u8] {
        self.slab.get(id).map_or(&[], |record| self.texts.bytes(record.text))
    }

    /// Returns the first id in use from `from` on.
    pub(super) fn next_from(&self, from: u32) -> Option<u32> {
        self.slab.next_from(from)
    }

    /// Returns whether the subject has no data: no slice, and nothing in the extras.
    pub(super) fn is_empty(&self, id: u32) -> bool {
        self.slab.get(id).is_none_or(|record| record.len() == 0) && self.extras.is_empty(id)
    }

    /// Removes a subject, whose id will be used again. O(1).
    pub(super) fn release(&mut self, id: u32) -> Option<Garbage> {
        let record = *self.slab.get(id)?;
        let hash = SubjectHash::of(self.texts.get(record.text));
        self.index.remove(hash.0, |entry| entry.0[1] == id);
        self.texts.free(record.text);
        if record.len() > 1 {
            self.cells.free(record.more, record.len() - 1);
        }
        let garbage = self.extras.release(id, record.len());
        if self.slab.remove(id) {
            self.extras.free_chunk(id);
        }
        garbage
    }

    /// Returns the number of slices of a subject.
    pub(super) fn slices(&self, id: u32) -> usize {
        self.slab.get(id).map_or(0, Record::len)
    }

    /// Returns the slices of a subject from this index on, oldest first.
    pub(super) fn slices_from(&self, id: u32, first: usize) -> impl Iterator<Item = Slice> + '_ {
        let record = self.slab.get(id).filter(|record| record.len() > 0);
        let older = record.map_or(&[][..], |record| self.older(record));
        let newest = record.filter(|record| first < record.len()).map(|record| &record.newest);
        older.get(first..).unwrap_or_default().iter().chain(newest).map(|cell| self.slice(cell))
    }

    /// Returns the index of the slice of a slot among a subject's slices, oldest first, or as an error the index where
    /// it would be. O(log slices).
    pub(super) fn find(&self, id: u32, slot: i64) -> Result<usize, usize> {
        let Some(record) = self.slab.get(id).filter(|record| record.len() > 0) else { return Err(0) };
        let last = record.len() - 1;
        // Nearly every write is about the newest slot.
        match self.numbering.of_ordinal(record.newest.ordinal).cmp(&slot) {
            std::cmp::Ordering::Equal => Ok(last),
            std::cmp::Ordering::Less => Err(last + 1),
            std::cmp::Ordering::Greater => {
                self.older(record).binary_search_by_key(&slot, |cell| self.numbering.of_ordinal(cell.ordinal))
            }
        }
    }

    /// Returns the index of a subject's first slice at or after a slot.
    pub(super) fn first_from(&self, id: u32, slot: i64) -> usize {
        self.find(id, slot).unwrap_or_else(|at| at)
    }

    /// Returns the number of the slice of a slot.
    pub(super) fn amount(&self, id: u32, slot: i64) -> Option<i64> {
        let at = self.find(id, slot).ok()?;
        self.cell(id, at).map(|cell| cell.amount)
    }

    /// Returns the slice at an index.
    pub(super) fn slice_at(&self, id: u32, at: usize) -> Option<Slice> {
        self.cell(id, at).map(|cell| self.slice(cell))
    }

    /// Sets the number of the slice at an index. Returns the previous number.
    pub(super) fn set_amount(&mut self, id: u32, at: usize, amount: i64) -> Option<i64> {
        self.cell_mut(id, at).map(|cell| std::mem::replace(&mut cell.amount, amount))
    }

    /// Sets the slot-list place of the slice at an index.
    pub(super) fn set_place(&mut self, id: u32, at: usize, place: u32) {
        if let Some(cell) = self.cell_mut(id, at) {
            cell.place = place;
        }
    }

    /// Inserts a slice at the index where [`find`](Self::find) returned that it would be. O(1) at the end, otherwise
    /// O(slices after it).
    pub(super) fn open(&mut self, id: u32, at: usize, slice: Slice) {
        let Some(record) = self.slab.get_mut(id) else { return };
        let len = record.len();
        let mut cell = Cell { amount: slice.amount, place: slice.place, ordinal: slice.slot as u16, count: 0 };
        if len == 0 {
            record.newest = cell;
        } else {
            let more = match len {
                1 => self.cells.allocate(1),
                _ => Some(resized(&mut self.cells, record.more, len - 1, len)),
            };
            // Callers check for room before they change anything, so this allocation succeeds.
            let Some(more) = more else { return };
            record.more = more;
            if at == len {
                std::mem::swap(&mut record.newest, &mut cell);
            }
            let at = at.min(len - 1);
            let older = self.cells.get_mut(more, len);
            older.copy_within(at..len - 1, at + 1);
            older[at] = cell;
        }
        record.newest.count = (len + 1) as u16;
        self.extras.opened(id, at, len + 1);
    }

    /// Removes and returns the slice at an index. O(1) at the end, otherwise O(slices after it).
    pub(super) fn close(&mut self, id: u32, at: usize) -> Option<Slice> {
        let slice = self.slice_at(id, at)?;
        let record = self.slab.get_mut(id)?;
        let left = record.len() - 1;
        if left > 0 {
            let older = self.cells.get_mut(record.more, left);
            if at == left {
                record.newest = *older.last()?;
            } else {
                older.copy_within(at + 1.., at);
            }
            if left == 1 {
                self.cells.free(record.more, left);
                record.more = NONE;
            } else {
                record.more = resized(&mut self.cells, record.more, left, left - 1);
            }
        }
        record.newest.count = left as u16;
        self.extras.closed(id, at, left, slice.amount);
        Some(slice)
    }

    /// Computes the cached total of all slices: see [`Extras::settle`].
    pub(super) fn settle(&mut self, id: u32) {
        let (len, sum) = self.slices_from(id, 0).fold((0, 0), |(len, sum), slice| (len + 1, sum + slice.amount));
        self.extras.settle(id, len, sum);
    }

    /// Reads the index entry of a subject's hash: the first of three passes that bring the data of a portion of work
    /// into the cache, with overlapping misses. The result has no meaning, but must be used ([`std::hint::black_box`])
    /// so that the read is not optimized away.
    pub(super) fn touch_index(&self, hash: SubjectHash) -> u32 {
        self.index.touch(hash.0)
    }

    /// Reads the record that a hash most likely leads to: the second pass.
    pub(super) fn touch_record(&self, hash: SubjectHash) -> u32 {
        let record = self.index.find(hash.0, |_| true).and_then(|entry| self.slab.get(entry.0[1]));
        record.map_or(0, |record| record.text)
    }

    /// Reads the text of that record: the third pass.
    pub(super) fn touch_text(&self, hash: SubjectHash) -> u32 {
        let record = self.index.find(hash.0, |_| true).and_then(|entry| self.slab.get(entry.0[1]));
        record.and_then(|record| self.texts.bytes(record.text).first()).map_or(0, |byte| u32::from(*byte))
    }

    /// Returns whether so little of the allocated memory is in use that a compaction is due.
    pub(super) fn is_sparse(&self) -> bool {
        self.slab.is_sparse() || self.texts.is_sparse() || self.cells.is_sparse() || self.extras.is_sparse()
    }

    /// Begins a compaction of the parts that need one. After this call, the caller must pass every record to
    /// [`compact`](Self::compact) and [`lower_id`](Self::lower_id). O(chunks).
    pub(super) fn begin_compaction(&mut self) {
        self.compacting = self.slab.is_sparse();
        self.texts.begin_compaction();
        self.cells.begin_compaction();
        self.extras.begin_compaction();
    }

    /// Moves the data that a record refers to, where its memory is to be freed. O(slices).
    pub(super) fn compact(&mut self, id: u32) {
        let Some(record) = self.slab.get_mut(id) else { return };
        if let Some(moved) = self.texts.moved(record.text) {
            record.text = moved;
        }
        let len = record.len();
        if len > 1
            && let Some(moved) = self.cells.moved(record.more, len - 1)
        {
            record.more = moved;
        }
        self.extras.compact(id, len);
    }

    /// Returns whether a compaction is in progress that would give a record a lower id.
    pub(super) fn can_move_down(&self, id: u32) -> bool {
        self.compacting && self.slab.can_move_down(id)
    }

    /// Gives a record with a high id a lower one, during a compaction, so that the chunk of the high one can be freed.
    /// Returns the new id, if there is one. Both ids have the record until [`vacate`](Self::vacate), but only the new
    /// one has the name and the extras.
    pub(super) fn lower_id(&mut self, id: u32) -> Option<u32> {
        let record = *self.slab.get(id)?;
        let lower = self.slab.insert(record)?;
        let hash = SubjectHash::of(self.texts.get(record.text));
        if let Some(entry) = self.index.find_mut(hash.0, |entry| entry.0[1] == id) {
            entry.0[1] = lower;
        }
        self.extras.rename(id, lower);
        Some(lower)
    }

    /// Frees an id whose record has a lower id now.
    pub(super) fn vacate(&mut self, id: u32) {
        if self.slab.remove(id) {
            self.extras.free_chunk(id);
        }
    }

    /// Returns the bytes used, without the memory that sketches and values own, and without the allocator's overhead.
    pub(super) fn memory_bytes(&self) -> usize {
        self.index.memory_bytes()
            + self.slab.memory_bytes()
            + self.texts.memory_bytes()
            + self.cells.memory_bytes()
            + self.extras.memory_bytes()
    }

    fn slice(&self, cell: &Cell) -> Slice {
        Slice { slot: self.numbering.of_ordinal(cell.ordinal), amount: cell.amount, place: cell.place }
    }

    fn older(&self, record: &Record) -> &[Cell] {
        if record.len() > 1 { self.cells.get(record.more, record.len() - 1) } else { &[] }
    }

    fn cell(&self, id: u32, at: usize) -> Option<&Cell> {
        let record = self.slab.get(id)?;
        if at + 1 == record.len() { Some(&record.newest) } else { self.older(record).get(at) }
    }

    fn cell_mut(&mut self, id: u32, at: usize) -> Option<&mut Cell> {
        let record = self.slab.get_mut(id)?;
        match record.len() {
            len if at + 1 == len => Some(&mut record.newest),
            len if at + 1 < len => self.cells.get_mut(record.more, len - 1).get_mut(at),
            _ => None,
        }
    }
}
