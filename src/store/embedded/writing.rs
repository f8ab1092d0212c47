//! The application of a batch to a board's state, and the operations that it writes to the log.
//!
//! A batch is planned as a whole and applied in portions, each short enough that other calls do not wait long for the
//! board's lock. Between two portions other calls may read and write, and a read may see a part of a batch.

use std::time::{Duration, Instant};

use super::board_state::BoardState;
use super::fingerprint::{Fingerprint, FingerprintKey};
use super::hashed_name::HashedName;
use super::holdings::{OutOfRange, WriteTo};
use super::log_operations::LogOperations;
use super::memory::{Demand, Level, Room};
use super::ranking_reads;
use super::tables::Tables;
use crate::board::{Amount, Board, Change, EXACT_MAX, Frame, SlotSample, Timestamp, Track, Window};
use crate::store::{Added, Batch, Entry, Increment, Outcome, Plan, Rejection};

/// The number of items that are planned and applied under one lock.
pub(super) const MAX_PLANNED_UNDER_LOCK: usize = 128;
/// The largest number of entries in a portion.
const MAX_PORTION: usize = 128;
/// The duration that a portion aims for.
const TARGET_DURATION: Duration = Duration::from_micros(500);
/// The number of entries after which a portion reads the time.
const TIME_CHECK_EVERY: usize = 16;
/// The work spent on visits for each entry while a round of visits is due. With it, the data that waits to be freed is
/// at most a third of the live data, however fast writes arrive.
const VISIT_WORK_PER_ENTRY: u64 = 4;
/// The largest number of bytes that an item adds to the log in addition to its texts.
const LOG_OVERHEAD: usize = 96;

/// Returns the largest number of bytes that the operations of a batch can have, in all tracks of the board.
pub(super) fn max_log_bytes(board: &Board, batch: &Batch) -> usize {
    let of = |increment: &Increment| {
        let value = match &increment.change {
            // A value may cause a different value to be dropped, which is written to the log as well.
            Change::Seen(value) => value.as_str().len() + 512,
            Change::Amount(_) | Change::Set { .. } | Change::Not(_) => 0,
        };
        LOG_OVERHEAD + increment.subject.as_str().len() + value
    };
    let each = LOG_OVERHEAD + batch.increments.iter().map(of).sum::<usize>();
    each * board.tracks().len()
}

/// A batch that is being applied.
#[derive(Debug)]
pub(super) struct BatchApplication<'a> {
    board: &'a Board,
    batch: &'a Batch,
    plan: Plan<'a>,
    /// The hashed names of the entries' subjects.
    names: Vec<HashedName<'a>>,
    /// The fingerprints of the entries with an id, in their order.
    fingerprints: Vec<Fingerprint>,
    outcomes: Vec<Outcome>,
    /// The operations of each track but the main one in the current portion.
    others: Vec<LogOperations>,
    /// The next entry, and the next of `fingerprints`.
    next: (usize, usize),
    /// The next item whose score is to be read.
    scored: usize,
}

impl<'a> BatchApplication<'a> {
    /// Plans a batch for the windows of the tracks. O(items). Needs no lock.
    pub(super) fn new(
        board: &'a Board,
        batch: &'a Batch,
        (windows, now): (&[Window], Timestamp),
        max_skew: i64,
        key: FingerprintKey,
    ) -> Self {
        let mut outcomes = vec![Outcome::Counted { score: None }; batch.increments.len()];
        let plan = Plan::new(board, windows, now, max_skew, false, batch.increments.iter().enumerate());
        for (item, rejection) in &plan.rejected {
            outcomes[*item] = Outcome::Rejected(*rejection);
        }
        let names = plan.entries.iter().map(|entry| HashedName::from(entry.subject.as_str())).collect();
        let fingerprint = |entry: &Entry| entry.id.map(|id| key.of(entry.subject, id));
        let fingerprints = plan.entries.iter().filter_map(fingerprint).collect();
        let others = board.tracks()[1..].iter().map(|track| LogOperations::of(track.id())).collect();
        Self { board, batch, plan, names, fingerprints, outcomes, others, next: (0, 0), scored: 0 }
    }

    /// Applies the next portion to a board that has been advanced. Returns whether the batch is done.
    ///
    /// An entry that needs more memory than `room` gives is refused, with all its items.
    ///
    /// O(entries x log n), for about half a millisecond.
    pub(super) fn apply_portion(&mut self, state: &mut BoardState, room: Room, operations: &mut LogOperations) -> bool {
        let started = Instant::now();
        let (from, mut next_fingerprint) = self.next;
        let end = self.plan.entries.len().min(from + MAX_PORTION);
        if end - from > 1 {
            for tables in &state.tracks {
                tables.holdings.prefetch(&self.names[from..end]);
            }
        }
        let mut at = from;
        while at < end {
            let entry = &self.plan.entries[at];
            let fingerprint = entry.id.and_then(|_| self.fingerprints.get(next_fingerprint)).copied();
            next_fingerprint += usize::from(fingerprint.is_some());
            let mut writing = EntryApplication {
                board: self.board,
                state,
                room,
                operations,
                others: &mut self.others,
                increments: &self.batch.increments,
            };
            writing.apply(entry, self.names[at], fingerprint, &mut self.outcomes);
            at += 1;
            if at.is_multiple_of(TIME_CHECK_EVERY) && started.elapsed() >= TARGET_DURATION {
                break;
            }
        }
        self.next = (at, next_fingerprint);
        for (number, tables) in state.tracks.iter_mut().enumerate() {
            match number.checked_sub(1).and_then(|other| self.others.get_mut(other)) {
                None => tables.events.log_changes(operations),
                Some(own) => {
                    tables.events.log_changes(own);
                    operations.append_changes(own);
                }
            }
            tables.visit_portion(VISIT_WORK_PER_ENTRY * (at - from) as u64);
        }
        at == self.plan.entries.len() && self.read_scores(state.main(), started)
    }

    /// Reads the scores that were asked for. Returns whether all are read.
    fn read_scores(&mut self, tables: &Tables, started: Instant) -> bool {
        if !self.batch.return_scores {
            return true;
        }
        while let Some(increment) = self.batch.increments.get(self.scored) {
            if let Outcome::Counted { score } | Outcome::Duplicate { score } = &mut self.outcomes[self.scored] {
                *score = ranking_reads::score(tables, &increment.subject);
            }
            self.scored += 1;
            // One score may need the merge of 2,000 sketches.
            if started.elapsed() >= TARGET_DURATION {
                break;
            }
        }
        self.scored == self.batch.increments.len()
    }

    /// Returns the result of the batch, once it is done. `frame` is that of the last portion.
    pub(super) fn finish(self, frame: Frame) -> Added {
        Added { frame, outcomes: self.outcomes, newer: None }
    }
}

/// The context in which an entry is applied.
struct EntryApplication<'a> {
    board: &'a Board,
    state: &'a mut BoardState,
    room: Room,
    /// The operations of the main track.
    operations: &'a mut LogOperations,
    /// The operations of each other track.
    others: &'a mut [LogOperations],
    increments: &'a [Increment],
}

/// One track in which an entry is applied, and the slot there.
struct InTrack<'a> {
    tables: &'a mut Tables,
    operations: &'a mut LogOperations,
    slot: i64,
    bound: i64,
}

/// Returns where and how an entry changes a track.
fn write_to<'a>(entry: &Entry, name: HashedName<'a>, margin: i64, track: &InTrack<'_>) -> WriteTo<'a> {
    WriteTo {
        name,
        slot: track.slot,
        at: entry.at.millis(),
        is_timed: entry.sent.is_some_and(|increment| increment.at.is_some()),
        retract: entry.sent.is_some_and(|increment| increment.retract),
        bound: track.bound - margin,
        floors: track.tables.floors(),
    }
}

impl EntryApplication<'_> {
    fn apply(&mut self, entry: &Entry, name: HashedName, fingerprint: Option<Fingerprint>, outcomes: &mut [Outcome]) {
        let now = self.state.now().millis();
        let is_known = fingerprint.is_some_and(|fingerprint| self.state.ids.is_recent(fingerprint, now));
        let replaces = entry.sent.is_some_and(|increment| matches!(increment.change, Change::Set { .. }));
        let tracks = self.state.tracks.len();
        let left = (0..tracks).filter(|number| self.slot(entry, *number).is_some()).count();
        if left == 0 || replaces && left < tracks {
            // The slots have left the windows. A retraction counts as accepted, with nothing left to take, unless its
            // id was counted before.
            for &item in &entry.items {
                match self.increments[item].retract {
                    false => outcomes[item] = Outcome::Rejected(Rejection::TooLate),
                    true if is_known => outcomes[item] = Outcome::Duplicate { score: None },
                    true => {}
                }
            }
            return;
        }
        let mut counted = entry.items.len();
        let mut set = |outcome| {
            entry.items.iter().for_each(|item| outcomes[*item] = outcome);
            counted = 0;
        };
        if is_known {
            set(Outcome::Duplicate { score: None });
        } else if replaces && self.state.imports.is_open() {
            set(Outcome::Rejected(Rejection::ImportOpen));
        } else if let Some(refused) = self.refusal(entry, name, fingerprint.is_some()) {
            set(Outcome::Rejected(refused));
        } else if let Some(fingerprint) = fingerprint {
            if self.apply_change(entry, name).is_ok() {
                self.operations.id(now, fingerprint);
                self.state.ids.insert(fingerprint, now);
            } else {
                set(Outcome::Rejected(Rejection::OutOfRange));
            }
        } else if entry.sent.is_some() {
            if self.apply_change(entry, name).is_err() {
                set(Outcome::Rejected(Rejection::OutOfRange));
            }
        } else if entry.is_beyond_exact() || self.apply_change(entry, name).is_err() {
            // The sum is refused, so the items are tried one by one, in order.
            for &item in &entry.items {
                let Change::Amount(amount) = self.increments[item].change else { continue };
                let amount = self.increments[item].signed(amount);
                if self.add_amount(entry, name, (item, amount), 0).is_err() {
                    outcomes[item] = Outcome::Rejected(Rejection::OutOfRange);
                    counted -= 1;
                }
            }
        }
        if counted > 0 {
            self.count_events(entry, counted as u64);
            if replaces {
                self.state.imports.counted_sample();
            }
        }
    }

    /// Returns the slot of the entry in a track, unless the slot has left the window.
    fn slot(&self, entry: &Entry, number: usize) -> Option<i64> {
        let tables = &self.state.tracks[number];
        let has_slots = tables.holdings.traits.counter_duration.is_none();
        let slot = entry.slots.of(number).filter(|slot| !has_slots || *slot >= tables.window.floor);
        slot.map(Timestamp::millis)
    }

    /// Returns a track and the slot of the entry there, unless the slot has left the window.
    fn track(&mut self, entry: &Entry, number: usize) -> Option<InTrack<'_>> {
        Some(InTrack {
            slot: self.slot(entry, number)?,
            bound: self.board.tracks()[number].slot_bound().0,
            tables: &mut self.state.tracks[number],
            operations: match number.checked_sub(1) {
                None => &mut *self.operations,
                Some(other) => &mut self.others[other],
            },
        })
    }

    /// Returns why an entry is refused before anything changes, if it needs more memory or subjects than there is room
    /// for.
    fn refusal(&mut self, entry: &Entry, name: HashedName, has_id: bool) -> Option<Rejection> {
        let room = self.room;
        let is_crowded =
            |tables: &Tables| tables.holdings.traits.ranked && tables.holdings.subjects.len() >= room.max_subjects;
        if room.level == Level::Free && !self.state.tracks.iter().any(is_crowded) {
            return None;
        }
        let summed = Change::Amount(entry.amount(0));
        let change = entry.sent.map_or(&summed, |increment| &increment.change);
        let mut demand = if has_id { Demand::More } else { Demand::Nothing };
        let mut is_new = true;
        for number in 0..self.state.tracks.len() {
            let Some(track) = self.track(entry, number) else { continue };
            let of_track = track.tables.holdings.demand(&write_to(entry, name, 0, &track), change);
            is_new &= of_track == Demand::Subject;
            // A subject that has expired in a short window may still be known in a longer one.
            demand = demand.max(if of_track == Demand::Subject { Demand::More } else { of_track });
        }
        if is_new && self.state.tracks.iter().any(is_crowded) {
            return Some(Rejection::TooManySubjects);
        }
        if is_new {
            demand = Demand::Subject;
        }
        (!room.is_enough_for(demand)).then_some(Rejection::MemoryFull)
    }

    /// Applies a change to each track that still has the slot of the entry. If there are several, each is checked
    /// before: so either all tracks change or none. `change` returns that of the track with a number, or `None` if it
    /// stays as it is. What a slot holds must stay away from the bound by the margin.
    fn change_tracks<'c>(
        &mut self,
        entry: &Entry,
        name: HashedName,
        margin: i64,
        change: impl Fn(usize) -> Option<&'c Change>,
    ) -> Result<(), OutOfRange> {
        let to = |track: &InTrack<'_>| write_to(entry, name, margin, track);
        let tracks = self.state.tracks.len();
        if tracks > 1 {
            for number in 0..tracks {
                let (Some(track), Some(change)) = (self.track(entry, number), change(number)) else { continue };
                let holdings = &track.tables.holdings;
                holdings.kind.check(holdings, &to(&track), change)?;
            }
        }
        for number in 0..tracks {
            let (Some(track), Some(change)) = (self.track(entry, number), change(number)) else { continue };
            let to = to(&track);
            let holdings = &mut track.tables.holdings;
            holdings.kind.apply(holdings, &to, change, track.operations)?;
        }
        Ok(())
    }

    fn count_events(&mut self, entry: &Entry, items: u64) {
        for number in 0..self.state.tracks.len() {
            if let Some(InTrack { tables, slot, .. }) = self.track(entry, number)
                && tables.holdings.traits.counter_duration.is_none()
            {
                tables.events.add(slot, items);
            }
        }
    }

    /// Applies an entry's update as a whole, or changes nothing.
    fn apply_change(&mut self, entry: &Entry, name: HashedName) -> Result<(), OutOfRange> {
        let Some(increment) = entry.sent else {
            return self.add_amount(entry, name, (entry.items[0], entry.amount(0)), entry.margin(0));
        };
        // What the total gets instead of a sample of a slot beside it.
        let total = match (&increment.change, self.board.edition().kept_slots()) {
            (Change::Set { sum, count }, Some(kept_slots)) => {
                Some(self.total_after(entry, name, (*sum, *count), kept_slots))
            }
            _ => None,
        };
        self.change_tracks(entry, name, 0, |number| match &total {
            Some(total) if number == 0 => total.as_ref(),
            _ => Some(&increment.change),
        })
    }

    /// Returns the change of a total when a sample replaces a slot beside it: see [`SlotSample::change_of_total`].
    fn total_after(
        &self,
        entry: &Entry,
        name: HashedName,
        (sum, count): (Amount, i64),
        kept_slots: &Track,
    ) -> Option<Change> {
        let cell = |tables: &Tables, slot: Timestamp| {
            let mut found = tables.holdings.aggregates(name, slot.millis(), slot.millis()).into_iter();
            found.next().map(|(_, aggregate)| aggregate)
        };
        let (slot, calendar) = (entry.slots.of(1)?, kept_slots.calendar());
        let total = cell(self.state.main(), entry.slots.of(0)?);
        let kept = |slot| self.state.tracks.get(1).and_then(|tables| cell(tables, slot));
        let (before, next) = (kept(slot), || kept(calendar.next(slot)));
        let sample = SlotSample { slot, sum, count };
        sample.change_of_total(self.board.kind(), calendar, total.as_ref(), before.as_ref(), next)
    }

    /// Adds an amount for COUNT and SUM: that of the entry or of one of its items. The sum must stay away from the
    /// bound by the margin.
    fn add_amount(
        &mut self,
        entry: &Entry,
        name: HashedName,
        (item, amount): (usize, Amount),
        margin: i64,
    ) -> Result<(), OutOfRange> {
        if amount.0.unsigned_abs() > EXACT_MAX.unsigned_abs() {
            return Err(OutOfRange);
        }
        if self.state.main().holdings.traits.counter_duration.is_some() {
            return self.add_to_counter(entry, name, item, amount);
        }
        let change = Change::Amount(amount);
        self.change_tracks(entry, name, margin, |_| Some(&change))
    }

    /// Adds an amount to the counter of a `from_first` board, which has one track.
    fn add_to_counter(
        &mut self,
        entry: &Entry,
        name: HashedName,
        item: usize,
        amount: Amount,
    ) -> Result<(), OutOfRange> {
        let (retracts, times) = (self.increments[item].retract, (entry.at.millis(), self.state.now().millis()));
        let bound = self.board.edition().main().slot_bound().0;
        if let Some(counter) = self.state.tracks[0].holdings.count_from_first(name, amount.0, retracts, times, bound)? {
            self.operations.amount(counter.start, counter.amount, entry.subject.as_str());
        }
        Ok(())
    }
}
