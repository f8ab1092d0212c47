//! Changes of the editions of a board, and calls about its two editions and about those of the archive.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::board_state::BoardState;
use super::boards::LiveBoard;
use super::engine::Ticket;
use super::log_operations::LogOperations;
use super::memory::MemoryShare;
use super::ranking_reads;
use super::track_data::TrackData;
use super::{Awaited, Embedded};
use crate::board::{Board, BoardTrack, EditionsChange, Subject, Value};
use crate::store::{Compared, DualRun, Result, SheetId, Sheets, StoreError, sheets};

/// The bytes that a change of editions adds to the log beside the texts.
const LOG_OVERHEAD: usize = 512;
/// The longest time for which a comparison holds the board's lock, unless what one subject has takes longer.
const LONGEST_HOLD: Duration = Duration::from_millis(2);

impl Embedded {
    /// Replaces the editions of a board: see [`Store::change_editions`](crate::store::Store::change_editions).
    pub(super) async fn replace_editions(&self, from: &Arc<Board>, to: Board) -> Result<Arc<Board>> {
        let definition = serde_json::to_string(to.definition()).map_err(encoding)?;
        let form = to.stored_editions().unwrap_or_default();
        let permit = self.journal().admit(definition.len() + form.len() + LOG_OVERHEAD)?;
        let live = self.live_board(from)?;
        let (board, detached, ticket) = self.replace_editions_of(&live, from, to, (&definition, &form))?;
        drop(permit);
        if board.season().is_none() {
            self.boards_version.fetch_add(1, Ordering::AcqRel);
        }
        self.drop_later(detached);
        self.journal().wait(ticket).await?;
        Ok(board)
    }

    /// Replaces the editions in memory and appends that to the journal. Returns the board that is stored then, and the
    /// data of tracks that it no longer has.
    fn replace_editions_of(
        &self,
        live: &LiveBoard,
        from: &Board,
        to: Board,
        (definition, form): (&str, &str),
    ) -> Result<(Arc<Board>, Vec<TrackData>, Ticket)> {
        let mut state = live.state.lock();
        if state.check_is_of(&to).is_ok() && state.board.stored_editions().as_deref() == Some(form) {
            // The change was made before, and may still be on its way to the disk.
            return Ok((state.board.clone(), Vec::new(), self.journal().ticket_for_all_appended()));
        }
        state.check_is_of(from)?;
        let change = EditionsChange::between(from, &to).ok_or_else(not_one_change)?;
        if change == EditionsChange::Attach {
            self.memory.check_room_for_new()?;
        }
        self.advance(&mut state);
        if let Some(doubted) = self.doubted_clock_of(&state) {
            return Err(doubted);
        }
        if state.imports.is_open() {
            return Err(StoreError::ImportOpen);
        }
        let to = Arc::new(to.with_defined_at(state.board.defined_at()).closed_at(change, state.now()));
        let (detached, operations) = self.install(&mut state, &to, (definition, form));
        let (sequence, ticket) = self.journal().append_with_ticket(&operations);
        live.logged.add(sequence, operations.len());
        live.list(&state);
        self.unlock(live, state);
        Ok((to, detached, ticket))
    }

    /// Makes the steps of the board's season that are due. Returns whether there were any: then the board has other
    /// editions than the caller knows.
    ///
    /// Nobody waits for the disk here, and everything that is written after a step is after it in the log. But a step is
    /// written at once: a start that does not find it makes the one that is due then, which leaves periods out.
    pub(super) fn turn_season(&self, live: &LiveBoard, state: &mut BoardState) -> Result<bool> {
        let mut has_turned = false;
        while let Some(to) = state.board.season_step(state.now()) {
            let definition = serde_json::to_string(to.definition()).map_err(encoding)?;
            let form = to.stored_editions().unwrap_or_default();
            let (left, operations) = self.install(state, &Arc::new(to), (&definition, &form));
            live.logged.add(self.journal().append_at_once(&operations), operations.len());
            live.list(state);
            self.drop_later(left);
            has_turned = true;
        }
        Ok(has_turned)
    }

    /// Passes the data of tracks that a board no longer has to the thread that drops it.
    fn drop_later(&self, left: Vec<TrackData>) {
        if !left.is_empty() {
            let bytes = left.iter().map(TrackData::memory_bytes).sum();
            // The bytes count until the data is dropped.
            self.discard((left, MemoryShare::new(&self.memory, bytes)));
        }
    }

    /// Replaces the editions in memory. Returns the data of tracks that the board no longer has, and the operations
    /// that the log must have.
    fn install(
        &self,
        state: &mut BoardState,
        to: &Arc<Board>,
        (definition, form): (&str, &str),
    ) -> (Vec<TrackData>, LogOperations) {
        let detached = state.change_editions(to.clone());
        // The operations of the board belong to the main track of its current edition from here on.
        let main = to.edition().main().id();
        let mut operations = LogOperations::of_store();
        operations.editions((to.generation(), to.epoch()), main, definition, form);
        let mut header = LogOperations::of(main);
        header.advanced(state.now().millis());
        if let Some(dual) = &mut state.dual {
            dual.log_changes(&mut header);
        }
        operations.append(&header);
        if let Some(unknown) = state.unlogged_ranks() {
            operations.append(&unknown);
        }
        (detached, operations)
    }

    /// Returns the state of the two editions of a board: see [`Store::dual_run`](crate::store::Store::dual_run).
    pub(super) fn read_dual_run(&self, board: &Board) -> Result<DualRun> {
        self.with_state(board, |state, _| state.dual.as_ref().map(|dual| dual.dual_run()))?.ok_or_else(no_second)
    }
}

impl Embedded {
    /// Returns what subjects have in two tracks of a board: see [`Store::compare`](crate::store::Store::compare).
    ///
    /// Everything is of one instant, except on unranked tracks with thousands of slots or with sketches, where a hold
    /// of the lock would become long: then both values of each subject are.
    pub(super) fn compare_tracks(&self, tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Result<Compared> {
        let [one, other] = tracks;
        if !one.board().is_same_as(other.board()) {
            return Err(StoreError::StaleEpoch);
        }
        let subjects = &subjects[..subjects.len().min(Compared::MAX_SUBJECTS)];
        let numbers = tracks.map(BoardTrack::number);
        let (mut windows, mut values) = (None, Vec::with_capacity(subjects.len()));
        loop {
            let frames = self.with_state(one.board(), |state, _| {
                let frames = numbers.map(|number| state.tracks[number].frame());
                // Values of different windows are not compared.
                if windows.replace(frames.map(|frame| frame.window)).is_some_and(|before| Some(before) != windows) {
                    values.clear();
                }
                let started = Instant::now();
                for subject in &subjects[values.len()..] {
                    values.push(numbers.map(|number| compared(&state.tracks[number], subject)));
                    if started.elapsed() >= LONGEST_HOLD {
                        break;
                    }
                }
                frames
            })?;
            if values.len() == subjects.len() {
                return Ok(Compared { frames, values });
            }
        }
    }
}

impl Embedded {
    pub(super) fn read_sheets(&self, track: &BoardTrack, ids: &[SheetId]) -> Result<Sheets> {
        self.read_data(track, |_, data, _| {
            let texts = ids.iter().map(|id| data.sheets.get(*id).cloned()).collect();
            Sheets { frame: data.frame(), texts }
        })
    }

    pub(super) async fn replace_sheet(
        &self,
        track: &BoardTrack,
        id: SheetId,
        (from, to): (Option<&str>, &str),
    ) -> Result<bool> {
        sheets::check(to)?;
        let permit = self.journal().admit(to.len() + LOG_OVERHEAD)?;
        let (is_from, ticket) = self.change_state(track.board(), |state, operations| {
            let sheets = &mut state.tracks[track.number()].sheets;
            let is_from = sheets.get(id).map(|text| &**text) == from;
            if is_from && from != Some(to) {
                sheets.set(id, to.into());
                let mut own = LogOperations::of(track.id());
                own.sheet(id, to);
                operations.append(&own);
            }
            (is_from, Awaited::Yes)
        })?;
        drop(permit);
        // A change that was made before may still be on its way to the disk.
        let ticket = if from == Some(to) { self.journal().ticket_for_all_appended() } else { ticket };
        self.journal().wait(ticket).await?;
        Ok(is_from)
    }
}

/// Returns the score of a subject that is ranked, or on an unranked track the value of its window.
fn compared(data: &TrackData, subject: &Subject) -> Option<Value> {
    let score = ranking_reads::score(data, subject);
    let traits = data.holdings.traits;
    score.filter(|_| !traits.ranked || traits.kind.ranks(score))
}

/// Returns the error of a call about two editions of a board that has one.
fn no_second() -> StoreError {
    StoreError::Unsupported { detail: "the board has no second edition".to_owned() }
}

/// Returns the error of a change of editions that is not one of those that a board can make.
fn not_one_change() -> StoreError {
    StoreError::Unsupported { detail: "the editions of a board change by one step at a time".to_owned() }
}

fn encoding(error: serde_json::Error) -> StoreError {
    StoreError::Backend { source: Box::new(error) }
}
