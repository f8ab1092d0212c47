//! The imports of a board: which one is open, how far it is, and which were ended; and whether the board may have
//! samples.
//!
//! They are as durable as the data. The operations that record how much of a piece is merged are in the same portion of
//! the log as what was merged, so after a crash either both are there or neither. The state is written again at the
//! start of each checkpoint, because the log before it is deleted.

use super::import_progress::Progress;
use super::log_operations::LogOperations;
use crate::board::{Board, Timestamp};
use crate::store::{ImportBegun, ImportId, MAX_IMPORTS, Result, StoreError};

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
        if board.season().is_some() {
            let detail = "a board with a season takes no imports".to_owned();
            return Err(StoreError::NoImport { detail });
        }
        if board.editions().len() > 1 {
            let detail = "a board with a second edition takes no imports; remove that edition first".to_owned();
            return Err(StoreError::NoImport { detail });
        }
        if self.ended.iter().any(|ended| ended.is_of_same_board(id)) {
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
                if board.editions().len() > 1 {
                    // What was appended before may belong to an edition that the board will not have for long.
                    operations.append(&LogOperations::of(board.edition().main().id()));
                }
                operations.sampled(true, defined_at.millis(), now);
            }
        }
    }

    /// Appends the times of the board to its definition, or to a checkpoint; and that it has no samples, where that is
    /// known.
    pub(super) fn write_times(&self, board: &Board, now: i64, operations: &mut LogOperations) {
        match board.defined_at().map(Timestamp::millis) {
            // A successor may take samples where the board does not.
            Some(defined_at) if self.samples == Samples::None => operations.sampled(false, defined_at, now),
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
