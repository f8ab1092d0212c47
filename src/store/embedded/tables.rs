//! What memory holds of one board, and the rules by which it changes: pure, without disk or clock.
//!
//! - the *slab*: a record for each subject with all its slices, and its score;
//! - the *slots*: for each slot, the subjects that have a slice in it, so that retiring knows whom to visit;
//! - the *ranking*: the scores in order;
//! - the *ids* counted lately;
//! - the *queue*: records that changed since they were last folded into the database.
//!
//! Kept between calls: a record's score is the sum of its slices; it stands in the ranking just if that is not 0;
//! a slot's list names each subject with a slice in it once, at the place the slice says.

use std::collections::{BTreeMap, VecDeque};

use super::ids::{Bucket, Ids};
use super::ranking::{Entry, Ranking};
use super::record::{Slab, Slice};
use crate::board::{Board, Frame, Timestamp, Window};
use crate::store::ClockTrust;

/// What memory holds of one board.
#[derive(Debug)]
pub(super) struct Tables {
    pub window: Window,
    /// The board's time: never runs backward.
    pub now: Timestamp,
    pub holdings: Holdings,
    pub ids: Ids,
    /// Judges the system clock for this board; starts with the first reading.
    pub trust: Option<ClockTrust>,
    /// The board was removed; a call that still has it must change nothing.
    pub gone: bool,
}

/// All amounts of a board. Taken away as a whole when every slot has expired.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    pub slab: Slab,
    pub ranking: Ranking,
    /// By the slot's start in milliseconds: whoever has a slice in it.
    pub slots: BTreeMap<i64, Vec<u32>>,
    /// Changed since last folded. Each id once: see [`Record::queued`](super::record::Record::queued).
    pub queue: VecDeque<u32>,
}

/// What moving a board's clock did.
#[derive(Debug, Default)]
pub(super) struct Advance {
    /// Slots by which the head moved.
    pub slots: u64,
    /// Every slot had expired: what the board held, to be freed outside the lock, and in how many slots.
    pub expired: Option<(Holdings, u64)>,
    /// Ids past their horizon, to be freed outside the lock.
    pub forgotten: Option<Bucket>,
}

/// The (slot, subject) would pass the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange;

/// What retiring or removing took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retired {
    pub slots: u64,
    pub touched: u64,
    pub removed: u64,
}

impl Tables {
    pub(super) fn new(board: &Board, now: Timestamp) -> Self {
        Self {
            window: board.window_at(now),
            now,
            holdings: Holdings::default(),
            ids: Ids::new(board.dedupe_horizon()),
            trust: None,
            gone: false,
        }
    }

    /// Moves the board's time, head and floor forward to `now`; a time before the board's changes nothing. O(1)
    /// but for the arithmetic of a new window: what expired is only let go of, or left for retiring.
    pub(super) fn advance(&mut self, board: &Board, now: Timestamp) -> Advance {
        let mut advance = Advance::default();
        if now <= self.now {
            return advance;
        }
        self.now = now;
        advance.forgotten = self.ids.forget(now.millis());
        if now < self.window.end {
            return advance;
        }
        let window = board.window_at(now);
        advance.slots = board.calendar().slots_between(self.window.head, window.head);
        if window.floor > self.window.head {
            let slots = self.holdings.slots.len() as u64;
            advance.expired = Some((std::mem::take(&mut self.holdings), slots));
        }
        self.window = window;
        advance
    }

    /// While a store opens: as [`advance`](Self::advance), but what expired stays for
    /// [`rebuild`](Holdings::rebuild) to drop and the database to forget.
    pub(super) fn move_clock(&mut self, board: &Board, now: Timestamp) {
        self.now = self.now.max(now);
        self.window = board.window_at(self.now);
    }

    pub(super) fn frame(&self) -> Frame {
        let retiring = self.holdings.slots.range(..self.window.floor.millis()).count() as u64;
        Frame { window: self.window, as_of: self.now, retiring }
    }

    /// Subtracts from the oldest expired slots while `go_on` (asked before each subject) allows. Answers what it
    /// did and whether nothing below the floor remains.
    pub(super) fn retire(&mut self, mut go_on: impl FnMut(u64) -> bool) -> (Retired, bool) {
        let mut retired = Retired::default();
        let floor = self.window.floor.millis();
        let holdings = &mut self.holdings;
        while let Some((&slot, subjects)) = holdings.slots.first_key_value()
            && slot < floor
        {
            let Some(&id) = subjects.last() else {
                holdings.slots.remove(&slot);
                continue;
            };
            if !go_on(retired.touched) {
                return (retired, false);
            }
            let ranked = holdings.score(id) != 0;
            holdings.set(id, slot, 0);
            retired.touched += 1;
            retired.removed += u64::from(ranked && holdings.score(id) == 0);
            if holdings.slab.get(id).is_some_and(|record| record.slices.is_empty()) {
                // The database must forget it. Others keep their expired slice there, which opening drops.
                holdings.enqueue(id);
            }
            retired.slots += u64::from(!holdings.slots.contains_key(&slot));
        }
        (retired, true)
    }
}

impl Holdings {
    /// Adds to what a subject has in a slot, unless that would pass `bound`; answers the new amount. O(log n).
    pub(super) fn add(&mut self, subject: &str, slot: i64, amount: i64, bound: i64) -> Result<i64, OutOfRange> {
        let known = self.slab.id(subject);
        let old = known.and_then(|id| self.slab.get(id)).map_or(0, |record| record.amount(slot));
        let new = old.checked_add(amount).filter(|new| new.unsigned_abs() <= bound.unsigned_abs()).ok_or(OutOfRange)?;
        if new == old {
            return Ok(new);
        }
        // No memory holds the four billion subjects at which ids run out.
        let id = known.or_else(|| self.slab.intern(subject)).ok_or(OutOfRange)?;
        self.set(id, slot, new);
        self.enqueue(id);
        Ok(new)
    }

    /// Takes a subject out of every slot and the ranking; answers its slots, oldest first.
    pub(super) fn remove(&mut self, subject: &str) -> Vec<Slice> {
        let Some(id) = self.slab.id(subject) else { return Vec::new() };
        let slices = self.slab.get(id).map(|record| record.slices.clone()).unwrap_or_default();
        for slice in &slices {
            self.set(id, slice.slot, 0);
        }
        if !slices.is_empty() {
            self.enqueue(id);
        }
        slices
    }

    /// The score of a subject; 0 if it is unknown.
    pub(super) fn score_of(&self, subject: &str) -> i64 {
        self.slab.id(subject).map_or(0, |id| self.score(id))
    }

    /// The ranking's entry of a subject, if it is ranked.
    pub(super) fn entry_of(&self, subject: &str) -> Option<Entry> {
        let id = self.slab.id(subject)?;
        let record = self.slab.get(id)?;
        (record.score != 0).then(|| Entry::new(record.score, &record.text, id))
    }

    fn score(&self, id: u32) -> i64 {
        self.slab.get(id).map_or(0, |record| record.score)
    }

    fn enqueue(&mut self, id: u32) {
        if let Some(record) = self.slab.get_mut(id)
            && !record.queued
        {
            record.queued = true;
            self.queue.push_back(id);
        }
    }

    /// Sets what a subject has in a slot, and its score, place and the slot's list with it.
    fn set(&mut self, id: u32, slot: i64, amount: i64) {
        let Some(record) = self.slab.get_mut(id) else { return };
        let change;
        match record.find(slot) {
            Ok(at) if amount == 0 => {
                let slice = record.slices.remove(at);
                change = -slice.amount;
                self.unlist(slice);
            }
            Ok(at) => {
                change = amount - record.slices[at].amount;
                record.slices[at].amount = amount;
            }
            Err(_) if amount == 0 => return,
            Err(at) => {
                change = amount;
                let list = self.slots.entry(slot).or_default();
                // Ids are u32 and stand in a list once, so places fit.
                let place = list.len() as u32;
                list.push(id);
                if record.slices.capacity() == 0 {
                    // Most subjects of most boards have one slice; the usual four would be mostly air.
                    record.slices.reserve_exact(1);
                }
                record.slices.insert(at, Slice { slot, amount, place });
            }
        }
        self.rescore(id, change);
    }

    /// Takes a slice's subject off its slot's list; the last of the list moves into its place.
    fn unlist(&mut self, slice: Slice) {
        let Some(list) = self.slots.get_mut(&slice.slot) else { return };
        let place = slice.place as usize;
        list.swap_remove(place);
        match list.get(place) {
            Some(&moved) => {
                if let Some(record) = self.slab.get_mut(moved)
                    && let Ok(at) = record.find(slice.slot)
                {
                    record.slices[at].place = slice.place;
                }
            }
            None if list.is_empty() => {
                self.slots.remove(&slice.slot);
            }
            None => {}
        }
    }

    fn rescore(&mut self, id: u32, change: i64) {
        let Some(record) = self.slab.get_mut(id) else { return };
        let old = record.score;
        let new = old + change;
        record.score = new;
        let old = Entry::new(old, &record.text, id);
        let new = old.with_score(new);
        match (old.score, new.score) {
            (0, 0) => {}
            (0, _) => self.ranking.insert(new, &self.slab),
            (_, 0) => {
                self.ranking.remove(old, &self.slab);
            }
            _ => {
                self.ranking.replace(old, new, &self.slab);
            }
        }
    }

    /// While a store opens: sets a slice without score, place or list. `changed` says that the database does not
    /// have it yet. [`rebuild`](Self::rebuild) sets the rest.
    pub(super) fn restore(&mut self, subject: &str, slot: i64, amount: i64, changed: bool) {
        let Some(id) = self.slab.intern(subject) else { return };
        if changed {
            self.enqueue(id);
        }
        let Some(record) = self.slab.get_mut(id) else { return };
        match record.find(slot) {
            Ok(at) if amount == 0 => {
                record.slices.remove(at);
            }
            Ok(at) => record.slices[at].amount = amount,
            Err(_) if amount == 0 => {}
            Err(at) => record.slices.insert(at, Slice { slot, amount, place: 0 }),
        }
    }

    /// While a store opens: takes all slices of a subject away.
    pub(super) fn restore_removed(&mut self, subject: &str) {
        let Some(id) = self.slab.intern(subject) else { return };
        self.enqueue(id);
        if let Some(record) = self.slab.get_mut(id) {
            record.slices.clear();
        }
    }

    /// After restoring: drops slices below the floor (which finishes whatever was retiring), and computes scores,
    /// lists and the ranking. O(n log n).
    pub(super) fn rebuild(&mut self, floor: i64) {
        let mut entries = Vec::new();
        for id in 0..self.slab.end() {
            let Some(record) = self.slab.get_mut(id) else { continue };
            record.slices.retain(|slice| slice.slot >= floor);
            for slice in &mut record.slices {
                let list = self.slots.entry(slice.slot).or_default();
                slice.place = list.len() as u32;
                list.push(id);
            }
            record.score = record.sum();
            if record.score != 0 {
                entries.push(Entry::new(record.score, &record.text, id));
            }
            if record.slices.is_empty() {
                self.enqueue(id);
            }
        }
        self.ranking = Ranking::build(entries, &self.slab);
    }
}
