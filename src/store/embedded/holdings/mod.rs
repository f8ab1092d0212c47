//! The data of a board's subjects, and its changes: cells, scores, positions and lists are updated together.
//!
//! - the *subjects*: a record for each with all its cells, and its score;
//! - the *lists*: for each slot, the subjects that have a cell in it, so that retiring knows which to visit;
//! - the *ranking*: the scores in order.
//!
//! Invariants between calls: a record's key is the key of the combined value of its cells. The ranking contains a
//! subject if and only if its key is not that of absence. A slot's list names each subject with a cell in the slot
//! exactly once, at the place that the cell stores. A subject without data has no record. An unranked board has
//! neither lists nor a ranking, and its records have no key.
//!
//! Callers name slots by their start in milliseconds. Internally slots are named by their number ([`Numbering`]).

mod additive;
mod counters;
mod distinct;
mod expiry;
mod extremes;
mod means;
mod restoring;
mod sketches;
pub(super) mod walking;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::aggregate_state::Garbage;
use super::board_traits::BoardTraits;
use super::hashed_name::HashedName;
use super::numbering::Numbering;
use super::ranking::{Entry, Ranking, TextSource};
use super::record::{Cell, Record};
use super::slot_list::SlotList;
use super::subject_sketches::merged;
use super::subjects::Subjects;
use crate::board::{Aggregate, Amount, Calendar, Kind, Timestamp, Value};

/// All data of a board's subjects. Replaced as a whole when every slot has expired.
#[derive(Debug)]
pub(super) struct Holdings {
    pub traits: BoardTraits,
    pub subjects: Subjects,
    pub ranking: Ranking,
    /// The list of each slot, by the slot's number. No list is empty.
    pub lists: BTreeMap<i64, SlotList>,
    /// For unranked boards: slots that start before this time, in milliseconds, are dropped by later writes.
    pub oldest_kept: i64,
    /// Data to drop without the board's lock: see [`take_garbage`](Self::take_garbage).
    garbage: Vec<Garbage>,
    /// A number that tells these holdings from those that replace them.
    epoch: u64,
    /// The position of a walk: see [`Walk`](walking::Walk).
    walk_position: Option<u32>,
    /// While restoring: the number of the first slot that is kept. No cell is in a slot before it.
    first_kept: i64,
}

/// The error that a subject's amount in a slot would exceed the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange;

/// The data that the removal of a subject deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Removed {
    /// The number of cells of the window. `expired` counts those before it.
    pub live: u64,
    pub expired: u64,
    /// Whether there was any data.
    pub any: bool,
}

impl Holdings {
    /// Creates the holdings of a board without subjects. `head` is the start of its newest slot, in milliseconds.
    pub(super) fn new(traits: BoardTraits, calendar: &Calendar, head: i64) -> Self {
        Self {
            traits,
            subjects: Subjects::new(traits, Numbering::new(calendar, head)),
            ranking: Ranking::default(),
            lists: BTreeMap::new(),
            oldest_kept: i64::MIN,
            garbage: Vec::new(),
            epoch: new_epoch(),
            walk_position: None,
            first_kept: i64::MIN,
        }
    }

    /// Returns the record of a subject with its id.
    pub(super) fn record(&self, name: HashedName) -> Option<(u32, &Record)> {
        let id = self.subjects.id(name)?;
        Some((id, self.subjects.get(id)?))
    }

    /// Returns the key of a subject's score, or the key of absence if the subject is unknown.
    pub(super) fn key_of(&self, name: HashedName) -> i64 {
        match self.record(name) {
            Some((_, record)) if self.traits.ranked => record.key,
            _ => self.traits.absent_key(),
        }
    }

    /// Returns the ranking's entry of a subject, if it is ranked.
    pub(super) fn entry_of(&self, name: HashedName) -> Option<Entry> {
        let (id, record) = self.record(name).filter(|_| self.traits.ranked)?;
        (record.key != self.traits.absent_key()).then(|| Entry::new(record.key, name.text, id))
    }

    /// Returns the content of the slots from `from` through `through`, oldest first. O(slots found).
    pub(super) fn aggregates(&self, name: HashedName, from: i64, through: i64) -> Vec<(Timestamp, Aggregate)> {
        let Some(id) = self.subjects.id(name) else { return Vec::new() };
        let (from, through) = (self.number(from), self.number(through));
        let first = self.subjects.first_cell_from(id, from);
        let cells = self.subjects.cells_from(id, first).zip(first..).take_while(|(cell, _)| cell.slot <= through);
        let aggregate = |(cell, at): (Cell, usize)| {
            (Timestamp::from_millis(self.subjects.numbering.start(cell.slot)), self.aggregate(id, cell, at))
        };
        cells.map(aggregate).collect()
    }

    /// Returns the content of the cell at index `at`.
    fn aggregate(&self, id: u32, cell: Cell, at: usize) -> Aggregate {
        let aggregates = &self.subjects.aggregates;
        match self.traits.kind {
            Kind::Sum | Kind::Distinct => Aggregate::Sum(Amount(cell.amount)),
            Kind::Min | Kind::Max => Aggregate::Extreme(Amount(cell.amount)),
            Kind::Mean => {
                let count = aggregates.means().map_or(0, |means| means.count(id, at, self.subjects.cell_count(id)));
                Aggregate::Mean { sum: Amount(cell.amount), count }
            }
            Kind::Sketch => {
                let sketch = aggregates.sketches(id).and_then(|sketches| sketches.by_cell().get(at));
                Aggregate::Sketch(sketch.cloned().unwrap_or_default())
            }
        }
    }

    /// Returns the combined value of a subject's cells from `from` on. Computes the same as [`Kind::value`], without
    /// copying cells. O(slots).
    pub(super) fn combined_value(&self, name: HashedName, from: i64) -> Option<Value> {
        let Some(id) = self.subjects.id(name) else { return self.traits.kind.absent() };
        self.combined_value_from(id, self.subjects.first_cell_from(id, self.number(from)))
    }

    /// Returns the combined value of the cells from this index on.
    fn combined_value_from(&self, id: u32, first: usize) -> Option<Value> {
        let amounts = self.subjects.cells_from(id, first).map(|cell| cell.amount);
        let exact = |units| Some(Value::Exact(Amount(units)));
        let aggregates = &self.subjects.aggregates;
        match self.traits.kind {
            Kind::Sum | Kind::Distinct => exact(amounts.sum()),
            Kind::Min | Kind::Max => amounts.reduce(|a, b| self.traits.kind.better(a, b)).and_then(exact),
            Kind::Mean => {
                let len = self.subjects.cell_count(id);
                let count = |at| aggregates.means().map_or(0, |means| means.count(id, at, len));
                let count: i64 = (first..len).map(count).sum();
                Value::mean(amounts.sum(), count).filter(|_| count >= self.traits.min_samples)
            }
            Kind::Sketch => {
                let sketches = aggregates.sketches(id).and_then(|sketches| sketches.by_cell().get(first..));
                exact(merged(sketches.unwrap_or_default()).estimate())
            }
        }
    }

    /// Computes the key of a record from all its cells. Audits compare the stored key with it.
    pub(super) fn computed_key(&self, id: u32) -> i64 {
        if self.traits.ranked && self.subjects.get(id).is_some() {
            self.traits.key_of_score(self.combined_value_from(id, 0))
        } else {
            self.traits.absent_key()
        }
    }

    /// Removes a subject from every slot and from the ranking. `floor` is the start of the window. O(slots + log n).
    /// The subject's data is dropped later, without the lock.
    pub(super) fn remove(&mut self, name: HashedName, floor: i64) -> Removed {
        let Some(id) = self.subjects.id(name) else { return Removed::default() };
        let anything = !self.subjects.is_empty(id);
        let len = self.subjects.cell_count(id);
        let live = match self.traits.counter_duration {
            None => len - self.subjects.first_cell_from(id, self.number(floor)),
            Some(_) => 0,
        };
        self.set_key(id, self.traits.absent_key());
        self.remove_subject(id);
        Removed { live: live as u64, expired: (len - live) as u64, any: anything }
    }

    /// Subtracts an expired cell from the score. Returns whether that removed the subject from the ranking.
    pub(super) fn retire_cell(&mut self, id: u32, slot: i64) -> bool {
        let key = self.subjects.get(id).map_or(self.traits.absent_key(), |record| record.key);
        let Some(amount) = self.remove_cell(id, slot) else { return false };
        let now = match self.traits.kind {
            Kind::Sum | Kind::Distinct => key - amount,
            // The best extreme is in a different slot, so it is still the best.
            Kind::Min | Kind::Max if amount != key => key,
            // 2,000 adjacent numbers take a microsecond to scan.
            Kind::Min | Kind::Max => self.computed_key(id),
            Kind::Mean => self.mean_key(id),
            Kind::Sketch => self.merged_key(id),
        };
        self.set_key(id, now);
        key != self.traits.absent_key() && now == self.traits.absent_key()
    }

    /// Returns the data that calls have left to be dropped. Dropping takes long, so the caller must do it without the
    /// board's lock.
    pub(super) fn take_garbage(&mut self) -> Vec<Garbage> {
        std::mem::take(&mut self.garbage)
    }

    /// Reads the memory that a portion of work is about to use, so that the cache misses overlap. Call it with a
    /// portion's subjects before the portion is applied.
    pub(super) fn prefetch(&self, names: &[HashedName]) {
        let hashes = names.iter().map(|name| name.hash);
        let index = hashes.clone().fold(0, |all, hash| all ^ self.subjects.prefetch_index(hash));
        let records = hashes.clone().fold(0, |all, hash| all ^ self.subjects.prefetch_record(hash));
        let texts = hashes.fold(0, |all, hash| all ^ self.subjects.prefetch_text(hash));
        std::hint::black_box((index, records, texts));
    }

    /// Returns the bytes that subjects and lists use, without the ranking, the memory that sketches and values own, and
    /// the allocator's overhead.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests ask for the memory taken so far"))]
    pub(super) fn memory_bytes(&self) -> usize {
        self.subjects.memory_bytes() + self.lists.values().map(SlotList::memory_bytes).sum::<usize>()
    }

    /// Returns the number of the slot that starts at this time.
    pub(super) fn number(&self, slot: i64) -> i64 {
        self.subjects.numbering.number(slot)
    }

    /// Returns the id `known`, or adds the subject and returns its new id. Fails if there are too many subjects or
    /// cells, which no memory is large enough to hold.
    fn id_or_add(&mut self, known: Option<u32>, name: HashedName) -> Result<u32, OutOfRange> {
        match known {
            Some(id) if self.subjects.has_room() => Ok(id),
            Some(_) => Err(OutOfRange),
            None => self.subjects.add(name).ok_or(OutOfRange),
        }
    }

    /// Sets the number of a cell, which is created if it does not exist. Returns the previous number. The caller must
    /// update the score.
    fn set_cell(&mut self, id: u32, slot: i64, amount: i64) -> Option<i64> {
        match self.subjects.find_cell(id, slot) {
            Ok(at) => self.subjects.set_amount(id, at, amount),
            Err(at) => {
                let place = if self.traits.ranked { self.slot_list(slot).push(id) } else { 0 };
                self.subjects.insert_cell(id, at, Cell { slot, amount, place });
                if !self.traits.ranked {
                    self.remove_cells_before(id, self.number(self.oldest_kept));
                }
                None
            }
        }
    }

    /// Returns the list of a slot, which is created if it does not exist.
    fn slot_list(&mut self, slot: i64) -> &mut SlotList {
        let numbering = &self.subjects.numbering;
        self.lists.entry(slot).or_insert_with(|| SlotList::new(numbering.start(slot)))
    }

    /// Removes a cell. Returns its number. The caller must update the score.
    fn remove_cell(&mut self, id: u32, slot: i64) -> Option<i64> {
        let at = self.subjects.find_cell(id, slot).ok()?;
        let cell = self.subjects.remove_cell(id, at)?;
        self.remove_from_slot_list(cell);
        Some(cell.amount)
    }

    /// Removes a cell's subject from its slot's list.
    fn remove_from_slot_list(&mut self, cell: Cell) {
        let Some(list) = self.lists.get_mut(&cell.slot) else { return };
        list.remove_at(cell.place);
        if list.len() == 0 {
            self.lists.remove(&cell.slot);
        }
    }

    /// Releases a subject that has no data left.
    fn remove_subject_if_empty(&mut self, id: u32) {
        if self.subjects.get(id).is_some() && self.subjects.is_empty(id) {
            self.remove_subject(id);
        }
    }

    /// Removes a subject that is not ranked. O(slots).
    fn remove_subject(&mut self, id: u32) {
        if self.traits.ranked {
            for at in 0..self.subjects.cell_count(id) {
                if let Some(cell) = self.subjects.cell_at(id, at) {
                    self.remove_from_slot_list(cell);
                }
            }
        }
        let garbage = self.subjects.remove(id);
        self.garbage.extend(garbage.filter(Garbage::is_large));
    }

    /// Sets a subject's key and updates the ranking. O(log n).
    fn set_key(&mut self, id: u32, key: i64) {
        let absent = self.traits.absent_key();
        let Some(record) = self.subjects.get_mut(id).filter(|_| self.traits.ranked) else { return };
        let old = std::mem::replace(&mut record.key, key);
        if old == key {
            return;
        }
        let old = Entry::new(old, self.subjects.text(id), id);
        let new = old.with_score(key);
        if old.score == absent {
            self.ranking.insert(new, &self.subjects);
        } else if key == absent {
            self.ranking.remove(old, &self.subjects);
        } else {
            self.ranking.replace(old, new, &self.subjects);
        }
    }
}

/// Returns a number that no other holdings of this process have.
fn new_epoch() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
