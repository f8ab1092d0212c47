//! The application of a batch to a board's state, and the operations that it writes to the log.
//!
//! A batch is planned as a whole and applied in portions, each short enough that other calls do not wait long for the
//! board's lock. Between two portions other calls may read and write, and a read may see a part of a batch.

use std::time::{Duration, Instant};

use super::board_state::BoardState;
use super::entries::{EntryApplication, outcome_outside_windows};
use super::fingerprint::{Fingerprint, FingerprintKey};
use super::hashed_name::HashedName;
use super::log_operations::LogOperations;
use super::memory::{Level, Room};
use super::ranking_reads;
use super::track_data::TrackData;
use crate::board::{Board, Change, Frame, Timestamp, Window};
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
    let of_value = |change: &Change| match change {
        // A value may cause a different value to be dropped, which is written to the log as well.
        Change::Seen(value) | Change::Forget(value) => value.as_str().len() + 512,
        Change::Amount(_) | Change::Set { .. } | Change::Not(_) => 0,
    };
    let of = |increment: &Increment| {
        let other = increment.other.as_deref().map_or(0, of_value);
        LOG_OVERHEAD + increment.subject.as_str().len() + of_value(&increment.change).max(other)
    };
    let each = LOG_OVERHEAD + batch.increments.iter().map(of).sum::<usize>();
    each * board.written_tracks().len()
}

/// What is left to do of a batch.
#[derive(Debug)]
pub(super) struct Undone {
    /// The indexes of the items that are not decided yet, in their order. `None` stands for all items.
    items: Option<Vec<usize>>,
    outcomes: Vec<Outcome>,
    /// The next item whose score is to be read.
    scored: usize,
    has_begun: bool,
}

impl Undone {
    /// Returns that everything is left of a batch with this number of items.
    pub(super) fn all(items: usize) -> Self {
        Self { items: None, outcomes: vec![Outcome::Counted { score: None }; items], scored: 0, has_begun: false }
    }

    /// Returns whether a part of the batch was done.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Leaves out the items that are only for an edition which the board no longer has. They count as accepted.
    pub(super) fn leave_out_missed(&mut self, increments: &[Increment]) {
        let items = self.items.take().unwrap_or_else(|| (0..increments.len()).collect());
        let is_for_board =
            |item: &usize| increments.get(*item).is_some_and(|item| !matches!(item.change, Change::Not(_)));
        self.items = Some(items.into_iter().filter(is_for_board).collect());
    }
}

/// A batch that is being applied.
#[derive(Debug)]
pub(super) struct BatchApplication<'a> {
    board: &'a Board,
    batch: &'a Batch,
    /// The number of the edition whose outcomes, scores and frame are returned.
    answered: usize,
    plan: Plan<'a>,
    /// The hashed names of the entries' subjects.
    names: Vec<HashedName<'a>>,
    /// The fingerprints of the entries with an id, in their order.
    fingerprints: Vec<Fingerprint>,
    undone: Undone,
    /// The operations of each track but the main one in the current portion.
    others: Vec<LogOperations>,
    /// The next entry, and the next of `fingerprints`.
    next: (usize, usize),
}

impl<'a> BatchApplication<'a> {
    /// Plans what is left of a batch for the windows of the tracks. `answered` is the number of the edition whose
    /// outcomes are returned. O(items). Needs no lock.
    pub(super) fn new(
        (board, answered): (&'a Board, usize),
        batch: &'a Batch,
        mut undone: Undone,
        (windows, now): (&[Window], Timestamp),
        max_skew: i64,
        key: FingerprintKey,
    ) -> Self {
        let increments = &batch.increments;
        let plan = match &undone.items {
            None => Plan::new(board, windows, now, max_skew, false, increments.iter().enumerate()),
            Some(items) => {
                let left = items.iter().filter_map(|item| Some((*item, increments.get(*item)?)));
                Plan::new(board, windows, now, max_skew, false, left)
            }
        };
        for (item, rejection) in &plan.rejected {
            undone.outcomes[*item] = match rejection {
                Rejection::TooLate => outcome_outside_windows(&increments[*item], answered),
                rejection => Outcome::Rejected(*rejection),
            };
        }
        for item in &plan.without_effect {
            undone.outcomes[*item] = outcome_outside_windows(&increments[*item], answered);
        }
        let names = plan.entries.iter().map(|entry| HashedName::from(entry.subject.as_str())).collect();
        let fingerprint = |entry: &Entry| entry.id.map(|id| key.of(entry.subject, id));
        let fingerprints = plan.entries.iter().filter_map(fingerprint).collect();
        let others = board.written_tracks()[1..].iter().map(|track| LogOperations::of(track.id())).collect();
        Self { board, batch, answered, plan, names, fingerprints, undone, others, next: (0, 0) }
    }

    /// Returns which items would be refused if everything was applied now, so that their lanes have to stop there:
    /// `stops` says which refusals that are. Returns `None` if it depends on the items before. Nothing else is refused
    /// for such a reason then.
    pub(super) fn stopping_items(
        &mut self,
        state: &mut BoardState,
        room: Room,
        stops: impl Fn(usize, Rejection) -> bool,
    ) -> Option<Vec<(usize, Rejection)>> {
        let mut stopping = self.plan.rejected.clone();
        let ranked =
            state.tracks[..self.board.written_tracks().len()].iter().filter(|data| data.holdings.traits.ranked);
        let subjects = ranked.map(|data| data.holdings.subjects.len()).max().unwrap_or(0);
        let is_crowded = subjects >= room.max_subjects;
        if !is_crowded && subjects + self.plan.entries.len() > room.max_subjects {
            return None;
        }
        if is_crowded || room.level != Level::Free || state.imports.is_open() {
            let mut fingerprints = self.fingerprints.iter();
            let mut nothing = LogOperations::of_store();
            for (entry, name) in self.plan.entries.iter().zip(&self.names) {
                let application = EntryApplication {
                    entry,
                    name: *name,
                    fingerprint: entry.id.and_then(|_| fingerprints.next()).copied(),
                    board: self.board,
                    state,
                    room,
                    operations: &mut nothing,
                    others: &mut [],
                    increments: &self.batch.increments,
                    answered: self.answered,
                };
                if let Some(refusal) = application.refused_now() {
                    stopping.extend(entry.items.iter().map(|item| (*item, refusal)));
                }
            }
        }
        stopping.retain(|(item, reason)| stops(*item, *reason));
        stopping.sort_unstable_by_key(|(item, _)| *item);
        Some(stopping)
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
        let written = self.board.written_tracks().len();
        if end - from > 1 {
            for data in &state.tracks[..written] {
                data.holdings.prefetch(&self.names[from..end]);
            }
        }
        let mut at = from;
        while at < end {
            let entry = &self.plan.entries[at];
            let fingerprint = entry.id.and_then(|_| self.fingerprints.get(next_fingerprint)).copied();
            next_fingerprint += usize::from(fingerprint.is_some());
            let mut application = EntryApplication {
                entry,
                name: self.names[at],
                fingerprint,
                board: self.board,
                state,
                room,
                operations,
                others: &mut self.others,
                increments: &self.batch.increments,
                answered: self.answered,
            };
            application.apply(&mut self.undone.outcomes);
            at += 1;
            if at.is_multiple_of(TIME_CHECK_EVERY) && started.elapsed() >= TARGET_DURATION {
                break;
            }
        }
        self.next = (at, next_fingerprint);
        for (number, data) in state.tracks[..written].iter_mut().enumerate() {
            match number.checked_sub(1).and_then(|other| self.others.get_mut(other)) {
                None => data.events.log_changes(operations),
                Some(own) => {
                    data.events.log_changes(own);
                    operations.append_changes(own);
                }
            }
            data.visit_portion(VISIT_WORK_PER_ENTRY * (at - from) as u64);
        }
        if let Some(dual) = &mut state.dual {
            dual.log_changes(operations);
        }
        at == self.plan.entries.len() && self.read_scores(self.answered_data(state), started)
    }

    /// Returns the data of the main track of the edition whose outcomes are returned.
    fn answered_data<'t>(&self, state: &'t BoardState) -> &'t TrackData {
        match self.answered {
            0 => state.main(),
            number => &state.tracks[self.board.editions()[number].numbers().start],
        }
    }

    /// Returns the frame of the state to which a portion was just applied.
    pub(super) fn frame(&self, state: &BoardState) -> Frame {
        self.answered_data(state).frame()
    }

    /// Reads the scores that were asked for. Returns whether all are read.
    fn read_scores(&mut self, data: &TrackData, started: Instant) -> bool {
        if !self.batch.return_scores {
            return true;
        }
        let Undone { outcomes, scored, .. } = &mut self.undone;
        while let Some(increment) = self.batch.increments.get(*scored) {
            if let Outcome::Counted { score } | Outcome::Duplicate { score } = &mut outcomes[*scored] {
                *score = ranking_reads::score(data, &increment.subject);
            }
            *scored += 1;
            // One score may need the merge of 2,000 sketches.
            if started.elapsed() >= TARGET_DURATION {
                break;
            }
        }
        *scored == self.batch.increments.len()
    }

    /// Returns what is left to do.
    pub(super) fn undone(mut self) -> Undone {
        match self.next {
            // Nothing was done, so items that the plan has decided are planned again too.
            (0, _) => {
                let rejected = self.plan.rejected.iter().map(|(item, _)| item);
                for item in rejected.chain(&self.plan.without_effect) {
                    self.undone.outcomes[*item] = Outcome::Counted { score: None };
                }
            }
            (next, _) => {
                let left = self.plan.entries[next..].iter().flat_map(|entry| &entry.items);
                let mut items: Vec<usize> = left.copied().collect();
                items.sort_unstable();
                self.undone.items = Some(items);
                self.undone.has_begun = true;
            }
        }
        self.undone
    }

    /// Returns the result of the batch, once it is done. `frame` is that of the last portion.
    pub(super) fn finish(self, frame: Frame) -> Added {
        Added { frame, outcomes: self.undone.outcomes, newer: None }
    }
}
