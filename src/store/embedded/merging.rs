//! Imports: their beginning and end, and the merging of a piece into a track.
//!
//! A piece is applied in portions, like a batch. The operations of a portion end with the number of contents that are
//! done, so that a call which ended halfway, or a restart, continues exactly there.

use std::time::{Duration, Instant};

use super::board_state::BoardState;
use super::engine::Ticket;
use super::hashed_name::HashedName;
use super::holdings::{CellWrite, Holdings, OutOfRange, WriteTo};
use super::import_progress::Progress;
use super::imports::Imports;
use super::log_operations::LogOperations;
use super::memory::{Level, Room};
use super::track_data::TrackData;
use super::{Awaited, Embedded};
use crate::board::{Aggregate, Board, BoardTrack, Change, DayCount, Kind, Sketch, Timestamp, Track};
use crate::store::{Content, ImportId, Merged, Piece, Result, StoreError};

/// The largest number of contents in a portion.
const MAX_PORTION: usize = 128;
/// The duration that a portion aims for.
const TARGET_DURATION: Duration = Duration::from_micros(500);
/// The number of contents after which a portion reads the time.
const TIME_CHECK_EVERY: usize = 16;
/// The work spent on visits for each content while a round of visits is due: as much as for an item that is written.
const VISIT_WORK_PER_CONTENT: u64 = 4;
/// The largest number of bytes that a content adds to the log in addition to its texts.
const LOG_OVERHEAD: usize = 96;
/// The largest number of bytes that the beginning or the end of an import adds to the log.
const IMPORT_LOG_BYTES: usize = 64;

/// Returns the largest number of bytes that the operations of a piece can have.
fn max_log_bytes(piece: &Piece) -> usize {
    let of = |content: &Content| match content {
        Content::Cell { aggregate: Aggregate::Sketch(_), .. } => Sketch::MAX_BYTES,
        // A value may cause a different value to be dropped, which is written to the log as well.
        Content::Value { value, .. } => value.as_str().len() + 512,
        Content::Cell { .. } | Content::Dropped { .. } | Content::Counter { .. } => 0,
    };
    let contents = piece.contents.iter().map(|(subject, content)| subject.as_str().len() + of(content) + LOG_OVERHEAD);
    LOG_OVERHEAD + contents.sum::<usize>() + piece.events.len() * LOG_OVERHEAD
}

/// Returns the error for an import that is not open.
fn not_open(import: ImportId) -> StoreError {
    StoreError::NoImport { detail: format!("the import {import} into the board is not open; begin an import first") }
}

/// Returns whether there is memory for what a subject gets.
pub(super) fn has_room(holdings: &Holdings, name: HashedName, room: Room) -> bool {
    let is_crowded = holdings.traits.ranked && holdings.subjects.len() >= room.max_subjects;
    room.level == Level::Free && (!is_crowded || holdings.subjects.id(name).is_some())
}

/// A piece that is being merged.
struct PieceApplication<'a> {
    track: &'a BoardTrack,
    import: ImportId,
    piece: &'a Piece,
    names: Vec<HashedName<'a>>,
    /// The number of contents that this call has counted in `merged`.
    counted: usize,
    merged: Merged,
}

/// What became of one content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeOutcome {
    Merged,
    Expired,
    Refused,
}

/// What a content does to what there is, where that is not the same.
#[derive(Clone, Copy, Debug)]
pub(super) enum Merge<'a> {
    /// It is of another board, and is added to what this track has.
    Adds(&'a Track),
    /// It is of another edition, which has counted what there is too, and replaces it.
    Sets,
}

impl Merge<'_> {
    /// Returns whether a cap for each person can have this day.
    fn has_day(self, day: Timestamp) -> bool {
        match self {
            Self::Adds(track) => track.day_of(day) == Some(day),
            Self::Sets => true,
        }
    }
}

/// Merges a content into a track whose slots take numbers up to `bound`, and appends the operations that restore the
/// result.
pub(super) fn merge_content(
    data: &mut TrackData,
    (bound, how): (i64, Merge<'_>),
    (name, content): (HashedName, &Content),
    operations: &mut LogOperations,
) -> MergeOutcome {
    let (floors, newest_end) = (data.floors(), data.window.end.millis());
    let to =
        |slot: i64, at: i64, retract| WriteTo { name, slot, at, is_timed: true, day: slot, retract, bound, floors };
    let holdings = &mut data.holdings;
    // The time from which the content expires, its own, and how it is merged.
    let (floor, time, merged) = match content {
        Content::Cell { slot, aggregate } => {
            let slot = slot.millis();
            let numbering = &holdings.subjects.numbering;
            let is_live = slot >= holdings.oldest_kept && slot < newest_end;
            let merged = match is_live && numbering.start(numbering.number(slot)) == slot {
                true => {
                    let to = &to(slot, slot, false);
                    holdings.kind.merge(CellWrite { holdings, to, operations }, aggregate)
                }
                false => Err(OutOfRange),
            };
            (holdings.oldest_kept, slot, merged)
        }
        Content::Value { value, at, retracted } if let Kind::Capped { .. } = holdings.traits.kind => {
            let (counter, at) = (DayCount::read(value.as_str(), *at), at.millis());
            let is_live = at >= floors.seen && at < newest_end && !retracted;
            let merged = match counter.filter(|counter| is_live && how.has_day(counter.day)) {
                Some(counter) => {
                    holdings.merge_day_count(&to(at, at, false), counter, matches!(how, Merge::Sets), operations)
                }
                None => Err(OutOfRange),
            };
            (floors.seen, at, merged)
        }
        Content::Value { value, at, retracted } => {
            let (at, floor) = (at.millis(), floors.of(*retracted));
            let change = Change::Seen(value.clone());
            let is_live = at >= floor && at < newest_end && holdings.traits.kind.remembers_values();
            let merged = match is_live {
                true => {
                    let to = &to(at, at, *retracted);
                    holdings.kind.apply(CellWrite { holdings, to, operations }, &change)
                }
                false => Err(OutOfRange),
            };
            (floor, at, merged)
        }
        Content::Dropped { at } => {
            let at = at.millis();
            let is_live = at >= floors.seen && at < newest_end && holdings.traits.kind.remembers_values();
            let merged = if is_live { holdings.merge_dropped(name, at) } else { Err(OutOfRange) };
            if let Ok(Some(newest)) = merged {
                operations.capped(newest, name.text);
            }
            (floors.seen, at, merged.map(drop))
        }
        // Only a `from_first` board has counters, and none takes imports or is filled.
        Content::Counter { .. } => return MergeOutcome::Refused,
    };
    match merged {
        Ok(()) => MergeOutcome::Merged,
        Err(OutOfRange) if time < floor => MergeOutcome::Expired,
        Err(OutOfRange) => MergeOutcome::Refused,
    }
}

impl PieceApplication<'_> {
    /// Merges the next portion into a board that has been advanced. Returns whether the piece is done.
    ///
    /// Fails, without a change, if the import is not open, or if there is no memory left for new data.
    fn apply_portion(&mut self, state: &mut BoardState, room: Room, operations: &mut LogOperations) -> Result<bool> {
        let (number, len) = (self.track.number(), self.piece.contents.len());
        let mut progress = state.imports.progress(self.import, number).ok_or_else(|| not_open(self.import))?;
        let done = progress.done(self.piece.number, len as u64).ok_or_else(|| out_of_order(self.piece, progress))?;
        // What another call for the same piece did in the meantime is repeated by this one.
        let done = usize::try_from(done).unwrap_or(len).max(self.counted);
        self.merged.repeated += (done - self.counted) as u64;
        self.counted = done;
        if progress.through >= self.piece.number {
            return Ok(true);
        }
        let data = &mut state.tracks[number];
        let started = Instant::now();
        let end = len.min(done + MAX_PORTION);
        data.holdings.prefetch(&self.names[done..end]);
        let mut own = LogOperations::of(self.track.id());
        while self.counted < end {
            let at = self.counted;
            if !has_room(&data.holdings, self.names[at], room) {
                if at == done {
                    return Err(StoreError::MemoryFull);
                }
                break;
            }
            let bound = self.track.slot_bound().0;
            match merge_content(
                data,
                (bound, Merge::Adds(self.track)),
                (self.names[at], &self.piece.contents[at].1),
                &mut own,
            ) {
                MergeOutcome::Merged => self.merged.merged += 1,
                MergeOutcome::Expired => self.merged.expired += 1,
                MergeOutcome::Refused => self.merged.refused += 1,
            }
            self.counted += 1;
            if self.counted.is_multiple_of(TIME_CHECK_EVERY) && started.elapsed() >= TARGET_DURATION {
                break;
            }
        }
        let is_done = self.counted == len;
        if is_done {
            progress.finished(self.piece.number);
            self.count_events(data);
        } else {
            progress.did(self.piece.number, self.counted as u64);
        }
        data.events.log_changes(&mut own);
        data.visit_portion(VISIT_WORK_PER_CONTENT * (self.counted - done) as u64);
        own.merged(self.import, progress);
        operations.append(&own);
        state.imports.set_progress(self.import, number, progress);
        Ok(is_done)
    }

    /// Adds the numbers of counted items of the slots that are kept.
    fn count_events(&self, data: &mut TrackData) {
        let (oldest, end) = (data.holdings.oldest_kept, data.window.end.millis());
        for (slot, count) in &self.piece.events {
            let (slot, numbering) = (slot.millis(), &data.holdings.subjects.numbering);
            if (oldest..end).contains(&slot) && numbering.start(numbering.number(slot)) == slot && *count > 0 {
                data.events.add(slot, *count);
            }
        }
    }
}

/// Returns the error for a piece that must not be merged now.
fn out_of_order(piece: &Piece, progress: Progress) -> StoreError {
    let (number, partial) = (piece.number, progress.partial);
    StoreError::NoImport {
        detail: format!(
            "piece {number} cannot be merged now: piece {partial} of the same track is merged in part and must be sent \
             again first"
        ),
    }
}

impl Embedded {
    /// Merges a piece into a track: see [`Store::merge`](crate::store::Store::merge).
    pub(super) async fn merge_piece(&self, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged> {
        let permit = self.journal().admit(max_log_bytes(piece))?;
        let names = piece.contents.iter().map(|(subject, _)| HashedName::from(subject.as_str())).collect();
        let mut application = PieceApplication { track, import, piece, names, counted: 0, merged: Merged::default() };
        let ticket = self.change_in_portions(track.board(), |state, room, operations| {
            application.apply_portion(state, room, operations)
        });
        let ticket = ticket.await?;
        drop(permit);
        self.wait_for_all(ticket).await?;
        Ok(application.merged)
    }

    /// Changes a board in portions, until `portion` returns that it was the last one. Returns the ticket of the last
    /// one, which acknowledges the earlier ones too.
    pub(super) async fn change_in_portions(
        &self,
        board: &Board,
        mut portion: impl FnMut(&mut BoardState, Room, &mut LogOperations) -> Result<bool>,
    ) -> Result<Ticket> {
        loop {
            let (done, ticket) = self.change_state(board, |state, operations| {
                let done = portion(state, self.room(), operations);
                let awaited = if matches!(done, Ok(true)) { Awaited::Yes } else { Awaited::No };
                (done, awaited)
            })?;
            if done? {
                return Ok(ticket);
            }
            // Other calls run between portions.
            tokio::task::yield_now().await;
            if !self.journal().has_room().await {
                return Err(self.journal().unknown());
            }
        }
    }

    /// Waits until a change is stored. If it changed nothing, another call made it before, and it may still be on its
    /// way to the disk. The response confirms it, so this waits for that one.
    pub(super) async fn wait_for_all(&self, ticket: Ticket) -> Result<()> {
        let ticket = match ticket {
            Ticket::Done => self.journal().ticket_for_all_appended(),
            ticket => ticket,
        };
        self.journal().wait(ticket).await
    }

    /// Changes the imports of a board, and waits until the change, or the earlier one that left nothing to change, is
    /// stored.
    pub(super) async fn change_imports<T>(
        &self,
        board: &Board,
        change: impl FnOnce(&mut Imports, &mut LogOperations) -> T,
    ) -> Result<T> {
        let permit = self.journal().admit(IMPORT_LOG_BYTES)?;
        let (changed, _) =
            self.change_state(board, |state, operations| (change(&mut state.imports, operations), Awaited::No))?;
        drop(permit);
        self.journal().wait(self.journal().ticket_for_all_appended()).await?;
        Ok(changed)
    }
}
