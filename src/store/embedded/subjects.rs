//! A board's subjects: their names, ids, records and slices, without regard to what slices say together.
//!
//! - the *index*, by the hash of the name: 8 bytes a subject at 0.72 to 0.9 of its places;
//! - the *slab*: a record of 32 bytes, the newest slice included;
//! - the *texts*: 16 bytes for a name of 14;
//! - the *cells*: 16 bytes for each further slice;
//! - the *extras* of metrics that keep more than a number of each slot.

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

/// Subjects by name and by id; ids of subjects that were released are used again.
#[derive(Debug)]
pub(super) struct Subjects {
    rule: Rule,
    index: Extendible<Indexed>,
    slab: Slab<Record>,
    texts: Arena,
    cells: Pool<Cell>,
    pub extras: Extras,
    pub numbering: Numbering,
    /// Records are being moved to lower ids as they are visited.
    compacting: bool,
}

/// Hash and id of a subject.
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

/// The names of subjects by id, which threads may share.
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

    /// The names alone.
    pub(super) fn texts(&self) -> SubjectTexts<'_> {
        SubjectTexts { slab: &self.slab, texts: &self.texts }
    }

    /// How many entries of the index were moved so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> usize {
        self.index.moved()
    }

    /// How many subjects have a record.
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// The id of a subject that has a record. O(1).
    pub(super) fn id(&self, name: Name) -> Option<u32> {
        let is_it = |entry: &Indexed| self.bytes(entry.0[1]) == name.text.as_bytes();
        self.index.find(name.hash.0, is_it).map(|entry| entry.0[1])
    }

    /// Whether references are left for anything a subject may need. They end at 32 GB of names or 64 GB of slices.
    pub(super) fn has_room(&self) -> bool {
        self.texts.has_room() && self.cells.has_room() && self.extras.has_room()
    }

    /// Adds a subject that has no record; answers its id, or `None` when there is [no room](Self::has_room) or two
    /// billion are there. O(1).
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

    /// The first id from `from` on that is in use.
    pub(super) fn next_from(&self, from: u32) -> Option<u32> {
        self.slab.next_from(from)
    }

    /// Whether nothing is held of the subject: no slice, nor anything beside.
    pub(super) fn is_empty(&self, id: u32) -> bool {
        self.slab.get(id).is_none_or(|record| record.len() == 0) && self.extras.is_empty(id)
    }

    /// Forgets a subject; its id will be used again. O(1).
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

    /// How many slices a subject has.
    pub(super) fn slices(&self, id: u32) -> usize {
        self.slab.get(id).map_or(0, Record::len)
    }

    /// The slices of a subject from this index on, oldest first.
    pub(super) fn slices_from(&self, id: u32, first: usize) -> impl Iterator<Item = Slice> + '_ {
        let record = self.slab.get(id).filter(|record| record.len() > 0);
        let older = record.map_or(&[][..], |record| self.older(record));
        let newest = record.filter(|record| first < record.len()).map(|record| &record.newest);
        older.get(first..).unwrap_or_default().iter().chain(newest).map(|cell| self.slice(cell))
    }

    /// Where the slice of a slot is among a subject's, oldest first, or would be. O(log slices).
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

    /// Where the first slice at or after a slot is, among a subject's.
    pub(super) fn first_from(&self, id: u32, slot: i64) -> usize {
        self.find(id, slot).unwrap_or_else(|at| at)
    }

    /// The number of the slice of a slot.
    pub(super) fn amount(&self, id: u32, slot: i64) -> Option<i64> {
        let at = self.find(id, slot).ok()?;
        self.cell(id, at).map(|cell| cell.amount)
    }

    /// The slice at an index.
    pub(super) fn slice_at(&self, id: u32, at: usize) -> Option<Slice> {
        self.cell(id, at).map(|cell| self.slice(cell))
    }

    /// Sets the number of the slice at an index; answers what it was.
    pub(super) fn set_amount(&mut self, id: u32, at: usize, amount: i64) -> Option<i64> {
        self.cell_mut(id, at).map(|cell| std::mem::replace(&mut cell.amount, amount))
    }

    /// Sets the place in its slot's list of the slice at an index.
    pub(super) fn set_place(&mut self, id: u32, at: usize, place: u32) {
        if let Some(cell) = self.cell_mut(id, at) {
            cell.place = place;
        }
    }

    /// Makes a slice at the index where [`find`](Self::find) says it would be. O(1) at the end, else O(slices after it).
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
            // Room was made sure of before anything changed.
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

    /// Takes the slice at an index away; answers it. O(1) at the end, else O(slices after it).
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

    /// Computes what is cached of all slices; see [`Extras::settle`].
    pub(super) fn settle(&mut self, id: u32) {
        let (len, sum) = self.slices_from(id, 0).fold((0, 0), |(len, sum), slice| (len + 1, sum + slice.amount));
        self.extras.settle(id, len, sum);
    }

    /// Reads what a subject's hash leads to in the index: the first of three passes that bring what a portion of work
    /// needs into the cache, overlapping the misses. What they answer is only to be used: [`std::hint::black_box`].
    pub(super) fn touch_index(&self, hash: SubjectHash) -> u32 {
        self.index.touch(hash.0)
    }

    /// The second pass: the record that a hash leads to, most likely.
    pub(super) fn touch_record(&self, hash: SubjectHash) -> u32 {
        let record = self.index.find(hash.0, |_| true).and_then(|entry| self.slab.get(entry.0[1]));
        record.map_or(0, |record| record.text)
    }

    /// The third pass: the text of that record.
    pub(super) fn touch_text(&self, hash: SubjectHash) -> u32 {
        let record = self.index.find(hash.0, |_| true).and_then(|entry| self.slab.get(entry.0[1]));
        record.and_then(|record| self.texts.bytes(record.text).first()).map_or(0, |byte| u32::from(*byte))
    }

    /// Whether so little is held, compared with the memory taken, that a compaction is due.
    pub(super) fn is_sparse(&self) -> bool {
        self.slab.is_sparse() || self.texts.is_sparse() || self.cells.is_sparse() || self.extras.is_sparse()
    }

    /// Begins a compaction, if one is due: every record is then to be offered to [`compact`](Self::compact) and
    /// [`lower_id`](Self::lower_id). O(chunks).
    pub(super) fn begin_compaction(&mut self) {
        self.compacting = self.slab.is_sparse();
        self.texts.begin_compaction();
        self.cells.begin_compaction();
        self.extras.begin_compaction();
    }

    /// Moves what a record refers to, where the memory of it is to be given back. O(slices).
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

    /// Whether a compaction is under way that would give a record a lower id.
    pub(super) fn can_move_down(&self, id: u32) -> bool {
        self.compacting && self.slab.can_move_down(id)
    }

    /// During a compaction: gives a record of a high id a lower one, so that the chunk of the high one can be freed.
    /// Answers the new id, if there is one; both have the record until [`vacate`](Self::vacate), but only the new one
    /// has the name and the extras.
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

    /// Gives up an id whose record has a lower one.
    pub(super) fn vacate(&mut self, id: u32) {
        if self.slab.remove(id) {
            self.extras.free_chunk(id);
        }
    }

    /// The bytes that all of it takes, without what sketches and values own and the allocator adds.
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
