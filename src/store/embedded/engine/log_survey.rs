//! What the log says about each board as a whole, read before anything is restored.
//!
//! A checkpoint and a log contain more than the store had in memory: slots that have expired since, and boards that
//! were removed. With the time that a board reaches at the end of the log, this data is not restored at all. So a start
//! needs no more memory than the store had.

use std::collections::{BTreeMap, BTreeSet};

use super::super::log_operations::{LogOperation, operations};
use super::super::storage::damage::StorageError;
use super::super::storage::log::LogReader;
use crate::board::{Board, Generation, Timestamp, Track, TrackId};

/// The times that boards reach in the log, and the boards that it removes.
#[derive(Debug, Default)]
pub(super) struct LogSurvey {
    /// The latest time, in milliseconds, of each track.
    times: BTreeMap<TrackId, i64>,
    /// The tracks to which operations about the whole board belong at some time, of boards whose editions change.
    mains: BTreeMap<Generation, Vec<TrackId>>,
    removed: BTreeSet<Generation>,
}

impl LogSurvey {
    /// Reads the whole log. `progress` is told before each frame how many bytes are read, of how many.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read. Operations that are not valid are left to the reader that applies
    /// them.
    pub(super) fn read(mut log: LogReader, mut progress: impl FnMut((u64, u64))) -> Result<Self, StorageError> {
        let mut survey = Self::default();
        loop {
            progress(log.progress());
            let Some(frame) = log.next()? else { return Ok(survey) };
            survey.add(frame.payload);
        }
    }

    fn add(&mut self, payload: &[u8]) {
        let mut current = None;
        for operation in operations(payload).map_while(Result::ok) {
            match operation {
                LogOperation::Track(track) => current = Some(track),
                LogOperation::Advanced { now } => {
                    let Some(track) = current else { continue };
                    let time = self.times.entry(track).or_insert(now);
                    *time = now.max(*time);
                }
                LogOperation::Editions { generation, main, .. } => {
                    let mains = self.mains.entry(generation).or_default();
                    if !mains.contains(&main) {
                        mains.push(main);
                    }
                }
                LogOperation::Undefined { generation } => {
                    self.removed.insert(generation);
                }
                _ => {}
            }
        }
    }

    /// Returns whether the log removes a board. Its generation is never used again.
    pub(super) fn removes(&self, generation: Generation) -> bool {
        self.removed.contains(&generation)
    }

    /// Returns all tracks to which operations about the whole board belong at some time in the log.
    pub(super) fn mains_of(&self, board: &Board) -> impl Iterator<Item = TrackId> {
        let first = [TrackId::first_of(board.generation()), board.edition().id()];
        let later = self.mains.get(&board.generation());
        first.into_iter().chain(later.into_iter().flatten().copied())
    }

    /// Returns the time that a board reaches in the log.
    pub(super) fn time_of(&self, board: &Board) -> Option<Timestamp> {
        let tracks = board.tracks().iter().map(Track::id).chain(self.mains_of(board));
        tracks.filter_map(|track| self.times.get(&track)).max().map(|now| Timestamp::from_millis(*now))
    }
}
