//! The data of the subjects of one track, and its changes: cells, scores, positions and lists are updated together.
//!
//! - the *subjects*: a record for each with all its cells, and its score;
//! - the *lists*: for each slot, the subjects that have a cell in it, so that retiring knows which to visit;
//! - the *ranking*: the scores in order.
//!
//! Invariants between calls: a record's sort key is that of the combined value of its cells. The ranking contains a
//! subject if and only if its sort key is not that of absence and it is not hidden. A slot's list names each subject
//! with a cell in the slot exactly once, at the place that the cell stores. A subject without data has no record. An
//! unranked track has neither lists nor a ranking, and its records have no sort key.
//!
//! What differs between kinds of metrics is behind [`StoredKind`], which [`kinds`](super::kinds) implements for each.
//!
//! Callers name slots by their start in milliseconds. Internally slots are named by their number ([`Numbering`]).

pub(super) mod contents;
mod counters;
mod demand;
mod expiry;
mod hiding;
mod restoring;
pub(super) mod walking;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::aggregate_state::{AggregateState, Garbage, NoState};
use super::contents_walks::ContentsWalks;
use super::hashed_name::HashedName;
use super::last_seen::{Floors, LastSeen};
use super::log_operations::LogOperations;
use super::memory::Demand;
use super::numbering::Numbering;
use super::ranking::{Entry, Ranking, TextSource as _};
use super::record::{Cell, Record};
use super::slot_list::SlotLists;
use super::subjects::Subjects;
use super::track_traits::TrackTraits;
use crate::board::{Aggregate, Calendar, Change, EarlierRanks, Order, Subject, Timestamp, Track, Value, Visibility};
use crate::store::sizing::Content;

/// All data of the subjects of one track. Replaced as a whole when every slot has expired.
#[derive(Debug)]
pub(super) struct Holdings {
    pub traits: TrackTraits,
    pub kind: &'static dyn StoredKind,
    pub subjects: Subjects,
    pub ranking: Ranking,
    pub lists: SlotLists,
    /// The subjects that the ranking leaves out: see [`set_visibility`](Self::set_visibility). Empty on unranked tracks.
    hidden: BTreeMap<Arc<str>, Visibility>,
    /// For unranked tracks: slots that start before this time, in milliseconds, are dropped by later writes.
    pub oldest_kept: i64,
    /// Data to drop without the board's lock: see [`take_garbage`](Self::take_garbage).
    garbage: Vec<Garbage>,
    /// A number that tells these holdings from those that replace them.
    epoch: u64,
    /// The position of a walk: see [`Walk`](walking::Walk).
    walk_position: Option<u32>,
    contents_walks: ContentsWalks,
    /// While restoring: the number of the first slot that has not expired, or the first start of a counter that has not
    /// ended.
    first_restored: i64,
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

/// The place and the circumstances of a change of one subject.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteTo<'a> {
    pub name: HashedName<'a>,
    /// The start of the slot, in milliseconds.
    pub slot: i64,
    /// The time when the event happened, in milliseconds, and whether it was given: otherwise it is the time of
    /// arrival.
    pub at: i64,
    pub is_timed: bool,
    /// The start of the day in which the event counts for its person, if there is a cap; otherwise that of the slot.
    pub day: i64,
    /// Whether the change reverses an earlier one.
    pub retract: bool,
    /// The largest magnitude of a number in a slot.
    pub bound: i64,
    /// The times before which values have expired.
    pub floors: Floors,
}

/// A change of one subject that is being made: the holdings that it changes, its place, and the buffer for the operations
/// that restore its result.
#[derive(Debug)]
pub(super) struct CellWrite<'a> {
    pub holdings: &'a mut Holdings,
    pub to: &'a WriteTo<'a>,
    pub operations: &'a mut LogOperations,
}

/// The number that a subject has in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellAt<'a> {
    pub subject: &'a str,
    /// The start of the slot, in milliseconds.
    pub start: i64,
    pub amount: i64,
}

/// The data that is left to write for the subject at which a portion ended.
#[derive(Debug, Default)]
pub(super) enum Remainder {
    /// All data.
    #[default]
    All,
    /// The cells from the slot of this number on.
    Slot(i64),
    /// The values from this time and value on: first the seen ones, then the retracted ones. Or the counters of a cap from
    /// this day and person on.
    Value { retracted: bool, at: i64, value: Box<str> },
}

/// A kind of metric in this store: what a subject has in a slot, how a change is applied, and what cells come to. A
/// cell has one number; [`AggregateState`] holds what a kind stores besides.
pub(super) trait StoredKind: Debug + Sync {
    /// Creates the state of a track without subjects.
    fn new_state(&self, _ranked: bool) -> Box<dyn AggregateState> {
        Box::new(NoState)
    }

    /// Returns an error if [`apply`](Self::apply) would. Called before a change is applied to several tracks.
    fn check(&self, holdings: &Holdings, _to: &WriteTo<'_>, _change: &Change) -> Result<(), OutOfRange> {
        if holdings.subjects.has_room() { Ok(()) } else { Err(OutOfRange) }
    }

    /// Returns what a change of a known subject takes beyond the memory that it has.
    fn demand(&self, holdings: &Holdings, id: u32, to: &WriteTo<'_>, _change: &Change) -> Demand {
        holdings.demand_in_slot(id, to.slot)
    }

    /// Applies a change and appends the operations that restore its result, or changes nothing.
    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange>;

    /// Merges the content of a slot of another board into the slot, and appends the operations that restore the result,
    /// or changes nothing. Fails if the content is of another kind too.
    fn merge(&self, write: CellWrite<'_>, aggregate: &Aggregate) -> Result<(), OutOfRange>;

    /// Returns the content of the cell at index `at`.
    fn aggregate(&self, holdings: &Holdings, id: u32, cell: Cell, at: usize) -> Aggregate;

    /// Returns the combined value of a subject's cells from index `first` on. Computes the same as
    /// [`Kind::value`](crate::board::Kind::value), without copying cells.
    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value>;

    /// Returns the sort key of a subject that had `sort_key`, after its oldest cell was removed, which had the number
    /// `amount`.
    fn sort_key_without(&self, holdings: &mut Holdings, id: u32, sort_key: i64, amount: i64) -> i64;

    /// Appends the operation that restores the cell at index `at`.
    fn write_cell(&self, holdings: &Holdings, id: u32, at: usize, cell: CellAt<'_>, operations: &mut LogOperations);

    /// Appends the operations that restore a subject until they reach `end` bytes. Returns what is left.
    fn write_subject(
        &self,
        holdings: &Holdings,
        id: u32,
        within: Remainder,
        end: usize,
        operations: &mut LogOperations,
    ) -> Option<Remainder> {
        holdings.write_cells(id, within, end, operations)
    }

    /// Sets what is stored about a value of a subject. `None`, or a time before its floor, removes the value.
    fn restore_value(&self, _: &mut Holdings, _: HashedName, _value: &str, _: Option<LastSeen>, _: Floors) {}

    /// Returns the newest time of a value that was dropped because a subject had too many.
    fn dropped(&self, _holdings: &Holdings, _id: u32) -> Option<i64> {
        None
    }

    /// Sets that time.
    fn set_dropped(&self, _holdings: &mut Holdings, _id: u32, _at: i64) {}

    /// Completes the cells of a subject after all its operations were applied.
    fn restored(&self, _holdings: &mut Holdings, _id: u32, _floors: Floors) {}

    /// Returns the sort key of a restored subject whose totals were just computed.
    fn restored_sort_key(&self, holdings: &Holdings, id: u32) -> i64 {
        holdings.computed_sort_key(id)
    }

    /// Returns whether data expires that retiring does not remove.
    fn expires(&self) -> bool {
        false
    }

    /// Removes some of that data of a subject. Returns how much, in values.
    fn remove_expired(&self, _holdings: &mut Holdings, _id: u32, _floors: Floors) -> u64 {
        0
    }

    /// Returns whether there is more to remove.
    fn has_expired(&self, _holdings: &Holdings, _id: u32, _floors: Floors) -> bool {
        false
    }

    /// Returns the work of [`sort_key_without`](Self::sort_key_without) for a subject with this number of cells, in subjects.
    fn retire_work(&self, _cells: u64) -> u64 {
        0
    }

    /// Returns the work of comparing a subject with this number of cells, in subjects.
    fn audit_work(&self, cells: usize) -> usize {
        cells / 16
    }

    /// Estimates the bytes of a subject's [state](Self::new_state).
    fn bytes(&self, _content: Content, _ranked: bool) -> usize {
        0
    }
}

impl Holdings {
    /// Creates the holdings of a track without subjects. `head` is the start of its newest slot, in milliseconds.
    pub(super) fn new(traits: TrackTraits, kind: &'static dyn StoredKind, calendar: &Calendar, head: i64) -> Self {
        Self {
            traits,
            kind,
            subjects: Subjects::new(traits, kind.new_state(traits.ranked), Numbering::new(calendar, head)),
            ranking: Ranking::default(),
            lists: SlotLists::default(),
            hidden: BTreeMap::new(),
            oldest_kept: i64::MIN,
            garbage: Vec::new(),
            epoch: new_epoch(),
            walk_position: None,
            contents_walks: ContentsWalks::random(),
            first_restored: i64::MIN,
        }
    }

    /// Returns the record of a subject with its id.
    pub(super) fn record(&self, name: HashedName) -> Option<(u32, &Record)> {
        let id = self.subjects.id(name)?;
        Some((id, self.subjects.get(id)?))
    }

    /// Returns the sort key of a subject's score, or the sort key of absence if the subject is unknown.
    pub(super) fn sort_key_of(&self, name: HashedName) -> i64 {
        match self.record(name) {
            Some((_, record)) if self.traits.ranked => record.sort_key,
            _ => self.traits.absent_sort_key(),
        }
    }

    /// Returns the ranking's entry of a subject, if it has a score. If it is hidden, the ranking does not contain it.
    pub(super) fn entry_of(&self, name: HashedName) -> Option<Entry> {
        let (id, record) = self.record(name).filter(|_| self.traits.ranked)?;
        (record.sort_key != self.traits.absent_sort_key()).then(|| self.subjects.entry(id, record.sort_key))
    }

    /// Returns the content of the slots from `from` through `through`, oldest first. O(slots found).
    pub(super) fn aggregates(&self, name: HashedName, from: i64, through: i64) -> Vec<(Timestamp, Aggregate)> {
        let Some(id) = self.subjects.id(name) else { return Vec::new() };
        let (from, through) = (self.number(from), self.number(through));
        let first = self.subjects.first_cell_from(id, from);
        let cells = self.subjects.cells_from(id, first).zip(first..).take_while(|(cell, _)| cell.slot <= through);
        let aggregate = |(cell, at): (Cell, usize)| {
            let start = Timestamp::from_millis(self.subjects.numbering.start(cell.slot));
            (start, self.kind.aggregate(self, id, cell, at))
        };
        cells.map(aggregate).collect()
    }

    /// Returns the combined value of a subject's cells from `from` on. Computes the same as [`Kind::value`], without
    /// copying cells. O(slots).
    pub(super) fn combined_value(&self, name: HashedName, from: i64) -> Option<Value> {
        let Some(id) = self.subjects.id(name) else { return self.traits.kind.absent() };
        self.kind.value(self, id, self.subjects.first_cell_from(id, self.number(from)))
    }

    /// Computes the sort key of a record from all its cells. Audits compare the stored sort key with it.
    pub(super) fn computed_sort_key(&self, id: u32) -> i64 {
        if self.traits.ranked && self.subjects.get(id).is_some() {
            self.traits.sort_key_of_score(self.kind.value(self, id, 0))
        } else {
            self.traits.absent_sort_key()
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
        self.set_sort_key(id, self.traits.absent_sort_key());
        self.remove_subject(id);
        self.contents_walks.count_upheaval();
        Removed { live: live as u64, expired: (len - live) as u64, any: anything }
    }

    /// Subtracts an expired cell from the score. Returns whether that removed the subject from the ranking.
    pub(super) fn retire_cell(&mut self, id: u32, slot: i64) -> bool {
        let sort_key = self.subjects.get(id).map_or(self.traits.absent_sort_key(), |record| record.sort_key);
        let Some(amount) = self.remove_cell(id, slot) else { return false };
        let now = self.kind.sort_key_without(self, id, sort_key, amount);
        self.set_sort_key(id, now);
        sort_key != self.traits.absent_sort_key() && now == self.traits.absent_sort_key()
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

    /// Returns the bytes that subjects, lists and ranking use. The allocator's overhead is included for what subjects
    /// own one by one, sketches and values. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.subjects.memory_bytes() + self.lists.memory_bytes() + self.ranking.memory_bytes() + self.bytes_of_hidden()
    }

    /// Returns the number of the slot that starts at this time.
    pub(super) fn number(&self, slot: i64) -> i64 {
        self.subjects.numbering.number(slot)
    }

    /// Returns the id `known`, or adds the subject and returns its new id. Fails if there are too many subjects or
    /// cells, which no memory is large enough to hold.
    pub(super) fn id_or_add(&mut self, known: Option<u32>, name: HashedName) -> Result<u32, OutOfRange> {
        match known {
            Some(id) if self.subjects.has_room() => Ok(id),
            Some(_) => Err(OutOfRange),
            None => self.subjects.add(name).ok_or(OutOfRange),
        }
    }

    /// Sets the number of a cell, which is created if it does not exist. Returns the previous number. The caller must
    /// update the score.
    pub(super) fn set_cell(&mut self, id: u32, slot: i64, amount: i64) -> Option<i64> {
        match self.subjects.find_cell(id, slot) {
            Ok(at) => self.subjects.set_amount(id, at, amount),
            Err(at) => {
                let place = if self.traits.ranked { self.list(slot, id) } else { 0 };
                self.subjects.insert_cell(id, at, Cell { slot, amount, place });
                if !self.traits.ranked {
                    self.remove_cells_before(id, self.number(self.oldest_kept));
                }
                None
            }
        }
    }

    /// Adds a subject to the list of a slot. Returns its place.
    fn list(&mut self, slot: i64, id: u32) -> u32 {
        let numbering = &self.subjects.numbering;
        self.lists.push(slot, id, || numbering.start(slot))
    }

    /// Removes a cell. Returns its number. The caller must update the score.
    pub(super) fn remove_cell(&mut self, id: u32, slot: i64) -> Option<i64> {
        let at = self.subjects.find_cell(id, slot).ok()?;
        let cell = self.subjects.remove_cell(id, at)?;
        self.lists.remove_at(cell.slot, cell.place);
        Some(cell.amount)
    }

    /// Releases a subject that has no data left.
    pub(super) fn remove_subject_if_empty(&mut self, id: u32) {
        if self.subjects.get(id).is_some() && self.subjects.is_empty(id) {
            self.remove_subject(id);
        }
    }

    /// Removes a subject that is not ranked. O(slots).
    fn remove_subject(&mut self, id: u32) {
        if self.traits.ranked {
            for at in 0..self.subjects.cell_count(id) {
                if let Some(cell) = self.subjects.cell_at(id, at) {
                    self.lists.remove_at(cell.slot, cell.place);
                }
            }
        }
        let garbage = self.subjects.remove(id);
        self.garbage.extend(garbage);
    }

    /// Sets a subject's sort key and updates the ranking. O(log n).
    pub(super) fn set_sort_key(&mut self, id: u32, sort_key: i64) {
        let absent = self.traits.absent_sort_key();
        let Some(record) = self.subjects.get_mut(id).filter(|_| self.traits.ranked) else { return };
        let old = std::mem::replace(&mut record.sort_key, sort_key);
        if old == sort_key || self.is_hidden(id) {
            return;
        }
        let old = self.subjects.entry(id, old);
        let new = old.with_score(sort_key);
        if old.score() == absent {
            self.rank(new);
        } else if sort_key == absent {
            self.unrank(old);
        } else {
            self.ranking.replace(old, new, &self.subjects);
        }
    }

    /// Returns the ranks of the first lines of the ranking, as they are at this time.
    pub(super) fn first_ranks(&self, track: &Track, at: Timestamp) -> EarlierRanks {
        let line = |entry: Entry| (entry.score(), Some(Subject::from_stored(self.subjects.text(entry.id))));
        match track.order() {
            Order::Desc => EarlierRanks::of_lines(at, track.ranks(), self.ranking.descending(0).map(line)),
            Order::Asc => EarlierRanks::of_lines(at, track.ranks(), self.ranking.ascending(0).map(line)),
        }
    }

    /// Adds an entry to the ranking. O(log n).
    pub(super) fn rank(&mut self, entry: Entry) {
        self.ranking.insert(entry, &self.subjects);
        if let Some(groups) = self.subjects.groups_mut() {
            groups.ranked(entry.group());
        }
    }

    /// Removes an entry from the ranking. Returns whether it was there. O(log n).
    pub(super) fn unrank(&mut self, entry: Entry) -> bool {
        let was_ranked = self.ranking.remove(entry, &self.subjects);
        if was_ranked && let Some(groups) = self.subjects.groups_mut() {
            groups.unranked(entry.group());
        }
        was_ranked
    }
}

/// Returns a number that no other holdings of this process have.
fn new_epoch() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
