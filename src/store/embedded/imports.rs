//! The imports of a board: which one is open, how far it is, and which were ended; and whether the board may have
//! samples.
//!
//! They are as durable as the data. The operations that record how much of a piece is merged are in the same portion of
//! the log as what was merged, so after a crash either both are there or neither. The state is written again at the
//! start of each checkpoint, because the log before it is deleted.

use super::log_operations::LogOperations;
use super::{Awaited, Embedded};
use crate::board::{Board, Timestamp};
use crate::store::{ImportBegun, ImportId, MAX_IMPORTS, Result, StoreError};

/// The largest number of bytes that the beginning or the end of an import adds to the log.
const LOG_BYTES: usize = 64;

/// The imports of a board.
#[derive(Debug, Default)]
pub(super) struct Imports {
    open: Option<OpenImport>,
    /// At most [`MAX_IMPORTS`].
    ended: Vec<ImportId>,
    samples: Samples,
}

#[derive(Debug)]
struct OpenImport {
    id: ImportId,
    /// What is merged into each track, for as many tracks as there was progress in.
    tracks: Vec<Progress>,
}

/// What is merged of an open import into one track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The number of the last piece that is merged, or 0.
    pub through: u64,
    /// The number of the piece of which a part is merged, or 0, and the number of its contents that are done.
    pub partial: u64,
    pub done: u64,
}

/// Whether a board has samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Samples {
    /// It has counted none since it was defined.
    None,
    /// It has counted one, and the log does not say so yet.
    Unlogged,
    /// It has, or it is not known: an earlier version, which does not record samples, defined the board.
    #[default]
    Possible,
}

impl Progress {
    /// Returns how many contents of a piece are done, of `len`, or `None` if this piece is not the next one: an earlier
    /// one is merged in part, or this one was left out.
    pub(super) fn done(&self, piece: u64, len: u64) -> Option<u64> {
        match self.partial {
            _ if piece <= self.through => Some(len),
            0 => Some(0),
            partial if partial == piece => Some(self.done.min(len)),
            _ => None,
        }
    }

    /// Records that a part of a piece is done.
    pub(super) fn did(&mut self, piece: u64, done: u64) {
        (self.partial, self.done) = (piece, done);
    }

    /// Records that a piece is merged.
    pub(super) fn finished(&mut self, piece: u64) {
        *self = Self { through: piece, partial: 0, done: 0 };
    }
}

impl Imports {
    /// Returns the imports of a board that is being defined. Unlike a board that is loaded, it is known to have no
    /// samples.
    pub(super) fn of_new_board() -> Self {
        Self { samples: Samples::None, ..Self::default() }
    }

    /// Returns whether an import is open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Begins or continues an import. Appends to the log what changes.
    pub(super) fn begin(&mut self, board: &Board, id: ImportId, operations: &mut LogOperations) -> Result<ImportBegun> {
        if board.edition().main().is_from_first() {
            let detail = "a board with the mode from_first takes no imports".to_owned();
            return Err(StoreError::NoImport { detail });
        }
        if self.ended.contains(&id) {
            return Ok(ImportBegun::Ended);
        }
        match &self.open {
            Some(open) if open.id != id => return Ok(ImportBegun::OtherOpen(open.id)),
            Some(_) => {}
            None if board.edition().refuses_samples().is_none() && self.samples != Samples::None => {
                return Ok(ImportBegun::MayHaveSamples);
            }
            None if self.ended.len() >= MAX_IMPORTS => return Ok(ImportBegun::TooMany),
            None => {
                self.open = Some(OpenImport { id, tracks: Vec::new() });
                operations.import_begun(id);
            }
        }
        let through = |number| self.progress(id, number).map_or(0, |progress| progress.through);
        Ok(ImportBegun::Open { through: (0..board.tracks().len()).map(through).collect() })
    }

    /// Ends an import. Returns whether it was open. Appends to the log what changes.
    pub(super) fn end(&mut self, id: ImportId, operations: &mut LogOperations) -> bool {
        let was_open = self.open.take_if(|open| open.id == id).is_some();
        if was_open {
            self.ended.push(id);
            operations.import_ended(id);
        }
        was_open
    }

    /// Returns what is merged of an import into the track with this number, or `None` if the import is not open.
    pub(super) fn progress(&self, id: ImportId, track: usize) -> Option<Progress> {
        let open = self.open.as_ref().filter(|open| open.id == id)?;
        Some(open.tracks.get(track).copied().unwrap_or_default())
    }

    /// Sets what is merged of an open import into the track with this number.
    pub(super) fn set_progress(&mut self, id: ImportId, track: usize, progress: Progress) {
        let Some(open) = self.open.as_mut().filter(|open| open.id == id) else { return };
        if open.tracks.len() <= track {
            open.tracks.resize(track + 1, Progress::default());
        }
        open.tracks[track] = progress;
    }

    /// Records that a sample was counted.
    pub(super) fn counted_sample(&mut self) {
        if self.samples == Samples::None {
            self.samples = Samples::Unlogged;
        }
    }

    /// Appends to the log that the first sample was counted, if it has been.
    pub(super) fn log_first_sample(&mut self, board: &Board, now: i64, operations: &mut LogOperations) {
        if self.samples == Samples::Unlogged {
            self.samples = Samples::Possible;
            // The time is known, because it was recorded together with the fact that there were no samples.
            if let Some(defined_at) = board.defined_at() {
                operations.sampled(true, defined_at.millis(), now);
            }
        }
    }

    /// Appends the times of the board to its definition, or to a checkpoint; and whether it has samples, where that is
    /// known and matters.
    pub(super) fn write_times(&self, board: &Board, now: i64, operations: &mut LogOperations) {
        let takes_samples = board.edition().refuses_samples().is_none();
        match board.defined_at().map(Timestamp::millis) {
            Some(defined_at) if takes_samples && self.samples == Samples::None => {
                operations.sampled(false, defined_at, now);
            }
            Some(defined_at) => operations.defined_at(defined_at, now),
            None => operations.advanced(now),
        }
    }

    /// Appends the imports to a checkpoint.
    pub(super) fn write(&self, operations: &mut LogOperations) {
        self.ended.iter().for_each(|id| operations.import_ended(*id));
        if let Some(open) = &self.open {
            operations.import_begun(open.id);
        }
    }

    /// Appends what is merged into a track to a checkpoint.
    pub(super) fn write_progress(&self, track: usize, operations: &mut LogOperations) {
        if let Some(open) = &self.open
            && let Some(progress) = open.tracks.get(track)
        {
            operations.merged(open.id, *progress);
        }
    }

    /// Restores that an import is open. The log may also contain how an import began that was ended since.
    pub(super) fn restore_begun(&mut self, id: ImportId) {
        if !self.ended.contains(&id) && self.open.as_ref().is_none_or(|open| open.id != id) {
            self.open = Some(OpenImport { id, tracks: Vec::new() });
        }
    }

    /// Restores that an import was ended.
    pub(super) fn restore_ended(&mut self, id: ImportId) {
        self.open.take_if(|open| open.id == id);
        if !self.ended.contains(&id) {
            self.ended.push(id);
        }
    }

    /// Restores whether the board has samples.
    pub(super) fn restore_sampled(&mut self, any: bool) {
        self.samples = if any { Samples::Possible } else { Samples::None };
    }
}

impl Embedded {
    /// Changes the imports of a board, and waits until the change, or the earlier one that left nothing to change, is
    /// stored.
    pub(super) async fn change_imports<T>(
        &self,
        board: &Board,
        change: impl FnOnce(&mut Imports, &mut LogOperations) -> T,
    ) -> Result<T> {
        let permit = self.journal().admit(LOG_BYTES)?;
        let (changed, _) =
            self.change_state(board, |state, operations| (change(&mut state.imports, operations), Awaited::No))?;
        drop(permit);
        self.journal().wait(self.journal().ticket_for_all_appended()).await?;
        Ok(changed)
    }
}
