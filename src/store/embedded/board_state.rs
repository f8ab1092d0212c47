//! The state of one board in memory: that of each of its tracks, and what holds for all of them. It reads neither disk
//! nor clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::aggregate_state::Garbage;
use super::clock::ClockReading;
use super::described::DescribedSubjects;
use super::dual_counts::DualCounts;
use super::earlier::NotedRanks;
use super::ids::{Bucket, Ids};
use super::imports::Imports;
use super::log_operations::{LogOperations, Portion};
use super::moderated::ModeratedSubjects;
use super::track_data::{Advance, TrackData};
use crate::board::{
    AttributesChange, AttributesError, Board, Moderation, ModerationChange, SourceNumber, Timestamp, Track, Window,
};
use crate::store::{ClockTrust, Reached, Result, StoreError};

/// The approximate number of bytes that a board takes for a source, while all its lanes have reached the same position.
const REACHED_BYTES: usize = 64;

/// The state of one board in memory. One lock guards all tracks, so that a write changes all of them in one step.
#[derive(Debug)]
pub(super) struct BoardState {
    /// The board with its present editions: see [`change_editions`](Self::change_editions).
    pub board: Arc<Board>,
    /// One for each of the board's [tracks](Board::tracks), the main one of the current edition first.
    pub tracks: Box<[TrackData]>,
    /// What is counted about two editions, if the board has two.
    pub dual: Option<Box<DualCounts>>,
    /// The ids counted recently, on all tracks together.
    pub ids: Ids,
    pub imports: Imports,
    pub moderated: ModeratedSubjects,
    pub described: DescribedSubjects,
    /// What the board has reached of each source that it has joined.
    pub reached: BTreeMap<SourceNumber, Reached>,
    /// Judges the system clock for this board. Created with the first reading.
    pub trust: Option<ClockTrust>,
    /// Whether the board was removed. A call that still has a reference must change nothing.
    pub removed: bool,
}

/// The effects of moving a board's clock.
#[derive(Debug, Default)]
pub(super) struct BoardAdvance {
    /// The effects on the tracks whose heads moved, each with the number of its track.
    pub tracks: Vec<(usize, Advance)>,
    /// Ids past their horizon, which must be freed without the lock.
    pub expired_ids: Option<Bucket>,
}

impl BoardState {
    pub(super) fn new(board: Arc<Board>, now: Timestamp) -> Self {
        Self {
            tracks: board.tracks().iter().map(|track| TrackData::new(track, now)).collect(),
            dual: DualCounts::of(&board, now).map(Box::new),
            ids: Ids::new(board.dedupe_horizon(), board.dedupe_bucket()),
            board,
            imports: Imports::default(),
            moderated: ModeratedSubjects::default(),
            described: DescribedSubjects::default(),
            reached: BTreeMap::new(),
            trust: None,
            removed: false,
        }
    }

    /// Returns an error if the board was removed, or if its editions are not those of `board`, which is the same board
    /// at some time.
    pub(super) fn check_is_of(&self, board: &Board) -> Result<()> {
        if self.removed {
            Err(StoreError::BoardChanged)
        } else if self.board.epoch() != board.epoch() {
            Err(StoreError::StaleEpoch)
        } else {
            Ok(())
        }
    }

    /// Replaces the editions. A track that the board had before keeps its data, a new one is empty, and of one that is
    /// packed now the sheets are left. Returns the data that the board no longer has, which must be dropped without the
    /// lock. O(tracks).
    pub(super) fn change_editions(&mut self, board: Arc<Board>) -> Vec<TrackData> {
        let now = self.now();
        let before = std::mem::take(&mut self.tracks).into_vec();
        let mut before: Vec<_> = self.board.tracks().iter().map(|track| track.id()).zip(before).collect();
        let data_of = |track: &Track| match before.iter().position(|(id, _)| *id == track.id()) {
            Some(at) => before.swap_remove(at).1,
            None => {
                let mut data = TrackData::new(track, now);
                data.holdings.hide_all(self.moderated.hidden());
                data
            }
        };
        self.tracks = board.tracks().iter().map(data_of).collect();
        let dual = self.dual.take().and_then(|dual| dual.of_same_editions(&board));
        self.dual = dual.or_else(|| DualCounts::of(&board, now)).map(Box::new);
        self.set_board(board);
        let mut left: Vec<TrackData> = before.into_iter().map(|(_, data)| data).collect();
        for (track, data) in self.board.tracks().iter().zip(&mut self.tracks) {
            if track.packed().is_some() && data.holdings.subjects.len() > 0 {
                let mut of_sheets = TrackData::new(track, now);
                std::mem::swap(&mut of_sheets.sheets, &mut data.sheets);
                left.push(std::mem::replace(data, of_sheets));
            }
        }
        left
    }

    /// Sets the board, which has the tracks of the one before. Its season may have got another current period.
    pub(super) fn set_board(&mut self, board: Arc<Board>) {
        if board.season().is_some() {
            for (data, track) in self.tracks.iter_mut().zip(board.tracks()) {
                data.set_window(track);
            }
        }
        let written = board.written_tracks().len();
        self.tracks.iter_mut().skip(written).for_each(|data| data.noted = NotedRanks::none());
        self.board = board;
    }

    /// Replaces the editions while a store is opened.
    pub(super) fn restore_editions(&mut self, board: Arc<Board>) {
        self.change_editions(board);
        // New tracks leave out what has expired, as the others do.
        let now = self.now();
        for (data, track) in self.tracks.iter_mut().zip(self.board.tracks()) {
            data.move_clock(track, now);
        }
    }

    /// Returns the data of the main track.
    pub(super) fn main(&self) -> &TrackData {
        &self.tracks[0]
    }

    /// Returns the board's time, which never runs backward. It is that of every track.
    pub(super) fn now(&self) -> Timestamp {
        self.main().now
    }

    /// Returns the window of each track.
    pub(super) fn windows(&self) -> Box<[Window]> {
        self.tracks.iter().map(|data| data.window).collect()
    }

    /// Moves the time of the board, and head and floor of each track, forward to `now`. See [`TrackData::advance`].
    pub(super) fn advance(&mut self, now: Timestamp) -> BoardAdvance {
        if now <= self.now() {
            return BoardAdvance::default();
        }
        self.note_ranks(now);
        let tracks = self.tracks.iter_mut().zip(self.board.tracks()).enumerate();
        let advanced = tracks.map(|(number, (data, track))| (number, data.advance(track, now)));
        // Between two slots, which is nearly always, this allocates nothing.
        let tracks = advanced.filter(|(_, advance)| advance.slots > 0).collect();
        BoardAdvance { tracks, expired_ids: self.ids.remove_expired(now.millis()) }
    }

    /// Notes the ranks of the tracks that are written to, if a boundary has passed.
    fn note_ranks(&mut self, now: Timestamp) {
        let written = self.board.written_tracks();
        self.tracks.iter_mut().zip(written).for_each(|(data, track)| data.note_ranks(track, now));
    }

    /// Returns the ranks of earlier times that the log does not have, as operations for it.
    pub(super) fn unlogged_ranks(&mut self) -> Option<LogOperations> {
        if !self.tracks.iter().any(|data| data.noted.is_unlogged()) {
            return None;
        }
        let mut operations = LogOperations::of(self.board.edition().main().id());
        operations.advanced(self.now().millis());
        for (data, track) in self.tracks.iter_mut().zip(self.board.tracks()) {
            let mut own = LogOperations::of(track.id());
            data.noted.log_changes(&mut own);
            operations.append_changes(&mut own);
        }
        Some(operations)
    }

    /// Moves the clock while a store is opened. See [`TrackData::move_clock`].
    pub(super) fn move_clock(&mut self, now: Timestamp) {
        if now <= self.now() {
            return;
        }
        while self.ids.remove_expired(now.millis()).is_some() {}
        for (data, track) in self.tracks.iter_mut().zip(self.board.tracks()) {
            data.move_clock(track, now);
        }
    }

    /// Completes the state after everything was restored. See [`TrackData::rebuild`].
    pub(super) fn rebuild(&mut self) {
        for data in &mut self.tracks {
            data.holdings.hide_all(self.moderated.hidden());
            data.rebuild();
        }
        // A boundary may have passed since the last call.
        self.note_ranks(self.now());
    }

    /// Changes what is set for a subject. Returns what is set now, if that is something else. O(tracks x log n).
    pub(super) fn moderate(&mut self, subject: &str, change: ModerationChange) -> Option<Moderation> {
        let (subject, moderation) = self.moderated.change(subject, change)?;
        let written = self.board.written_tracks().len();
        for (number, data) in self.tracks.iter_mut().enumerate() {
            data.holdings.set_visibility(&subject, moderation.visibility);
            if number >= written {
                data.holdings.count_upheaval();
            }
        }
        Some(moderation)
    }

    /// Changes the attributes of a subject, and appends that. Does nothing if they stay as they are. O(log n).
    ///
    /// Returns [`StoreError::MemoryFull`] if they take more memory and `has_room` is not set.
    pub(super) fn describe(
        &mut self,
        subject: &str,
        change: &AttributesChange,
        has_room: bool,
        operations: &mut LogOperations,
    ) -> Result<Result<(), AttributesError>> {
        match self.described.after(subject, change) {
            Ok(Some(after)) if !has_room && self.described.grows_with(subject, &after) => Err(StoreError::MemoryFull),
            Ok(Some(after)) => {
                operations.attributes(subject, &after);
                self.described.set(subject, after);
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Appends to the log what the board has reached of a source.
    pub(super) fn log_reached(&self, source: SourceNumber, operations: &mut LogOperations) {
        if let Some(reached) = self.reached.get(&source) {
            // The operations before may belong to a track that the board no longer has when the log is read.
            let mut own = LogOperations::of(self.board.edition().main().id());
            own.reached(source, reached);
            operations.append(&own);
        }
    }

    /// Appends what the board has reached of a portion of the sources: see [`LogOperations::portion`].
    pub(super) fn write_reached(
        &self,
        portion: Portion<SourceNumber>,
        operations: &mut LogOperations,
    ) -> Option<SourceNumber> {
        operations.portion(&self.reached, portion, |operations, source, reached| operations.reached(*source, reached))
    }

    /// Returns the bytes that the board's data uses. O(tracks).
    pub(super) fn memory_bytes(&self) -> usize {
        self.tracks.iter().map(TrackData::memory_bytes).sum::<usize>()
            + self.ids.memory_bytes()
            + self.moderated.memory_bytes()
            + self.described.memory_bytes()
            + self.reached.len() * REACHED_BYTES
    }

    /// Returns the data of all tracks that must be dropped without the lock.
    pub(super) fn take_garbage(&mut self) -> Vec<Garbage> {
        let mut garbage = Vec::new();
        for data in &mut self.tracks {
            garbage.append(&mut data.holdings.take_garbage());
        }
        garbage
    }
}

impl BoardState {
    /// Returns the believed time for this board.
    pub(super) fn believed_time(&mut self, reading: ClockReading) -> Timestamp {
        let (wall, monotonic) = match reading {
            ClockReading::Simulated(now) => return now,
            ClockReading::System { wall, monotonic } => (wall, monotonic),
        };
        let tolerance = match &*self.tracks {
            // What the window covers now: months differ in length.
            [only] if !self.board.edition().main().is_all_time() => {
                let slots = only.window.end.millis() - only.window.floor.millis();
                only.holdings.traits.counter_duration.unwrap_or(slots)
            }
            _ => self.board.clock_tolerance(),
        };
        let trust = self.trust.get_or_insert_with(|| ClockTrust::new(wall, monotonic));
        let doubted = trust.doubted();
        let believed = trust.believe(wall, monotonic, tolerance);
        if doubted.is_none()
            && let Some(leap) = trust.doubted()
        {
            tracing::warn!(board = %self.board.name(), reading = %leap, going_by = %believed,
                "the system clock is further ahead than expected; not trusted until it is consistent for a minute");
        }
        believed
    }
}
