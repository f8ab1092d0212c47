//! The files of a checkpoint: a board's state in memory, and its ids.

use parking_lot::MutexGuard;

use super::super::board_state::BoardState;
use super::super::boards::LiveBoard;
use super::super::log_operations::{LogOperations, Portion};
use super::super::storage::checkpoint::{CHECKPOINTS, CheckpointWriter, FileIdentity, FileKind, IDS};
use super::super::storage::damage::StorageError;
use super::super::storage::manifest::{BoardEntry, CheckpointEntry, IdsEntry};
use super::checkpointer::{CheckpointError, Checkpointer, entry_of};
use crate::board::{Board, Generation, TrackId};

/// Sealed buckets with fewer ids than this are written to the board's file and not to files of their own.
const SMALL_BUCKET: usize = 4_096;
/// The bytes of a board written at a time. A portion holds the board's lock for a fraction of a millisecond.
const PORTION: usize = 32 << 10;
/// The number of ids written at a time.
const IDS_PORTION: usize = 1_024;

/// A checkpoint that is written, but not yet named by a manifest.
pub(super) struct WrittenCheckpoint {
    pub entry: BoardEntry,
    /// The sequence up to which the log has to be confirmed before the checkpoint may be used.
    pub through: u64,
}

/// The blocks of a track in a board's file. Each has a portion of what the board has in memory.
struct Blocks<'a> {
    checkpointer: &'a Checkpointer,
    live: &'a LiveBoard,
    board: &'a Board,
    /// The operations of the current portion.
    operations: LogOperations,
    file: &'a mut CheckpointWriter,
    /// The number of blocks that are written.
    written: u64,
}

impl Blocks<'_> {
    /// Takes a portion under the board's lock, and writes it as a block.
    fn add<T>(&mut self, portion: impl FnOnce(&mut BoardState, &mut LogOperations) -> T) -> Result<T, CheckpointError> {
        let taken = self.take(portion)?;
        self.write()?;
        Ok(taken)
    }

    /// Takes a portion under the board's lock.
    fn take<T>(
        &mut self,
        portion: impl FnOnce(&mut BoardState, &mut LogOperations) -> T,
    ) -> Result<T, CheckpointError> {
        self.operations.clear();
        let mut state = self.checkpointer.lock(self.live, self.board)?;
        let taken = portion(&mut state, &mut self.operations);
        // Threads that wait for the lock get it before the next portion.
        MutexGuard::unlock_fair(state);
        Ok(taken)
    }

    /// Adds portions until there is nothing more. An empty one takes no block.
    fn add_all<K>(
        &mut self,
        mut write: impl FnMut(&BoardState, Portion<K>, &mut LogOperations) -> Option<K>,
    ) -> Result<(), CheckpointError> {
        let mut after = None;
        loop {
            let portion = Portion { after, bytes: PORTION };
            after = self.take(|state, operations| write(state, portion, operations))?;
            if !self.operations.is_empty() {
                self.write()?;
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Writes the current portion as a block.
    fn write(&mut self) -> Result<(), CheckpointError> {
        self.file.block(self.operations.bytes())?;
        self.written += 1;
        Ok(())
    }
}

impl Checkpointer {
    /// Writes a board's files. `board` is the board with the editions that it had when the checkpoint began.
    pub(super) fn write(
        &mut self,
        live: &LiveBoard,
        board: &Board,
        from_seq: u64,
    ) -> Result<WrittenCheckpoint, CheckpointError> {
        let generation = live.generation();
        let before = self.entry(generation).map(|entry| entry.ids.clone()).unwrap_or_default();
        let (name, mut file) = self.create(CHECKPOINTS, "ckpt", generation, FileKind::Board)?;
        let mut records = 0;
        for (number, track) in board.tracks().iter().enumerate() {
            records += self.write_track(live, board, (number, track.id()), &mut file)?;
        }
        let ids = self.write_ids(live, board, &before, &mut file, &mut records)?;
        // The log contains, up to this sequence, every change that the walk has seen.
        let through = self.journal.last_sequence();
        let bytes = file.finish(records)?;
        let checkpoint = Some(CheckpointEntry { file: name, bytes });
        let entry = BoardEntry { from_seq, checkpoint, ids, ..entry_of(board)? };
        Ok(WrittenCheckpoint { entry, through })
    }

    /// Writes the state of one track. Returns the number of blocks.
    fn write_track(
        &self,
        live: &LiveBoard,
        board: &Board,
        (number, track): (usize, TrackId),
        file: &mut CheckpointWriter,
    ) -> Result<u64, CheckpointError> {
        let mut blocks =
            Blocks { checkpointer: self, live, board, operations: LogOperations::of(track), file, written: 0 };
        let mut walk = blocks.add(|state, operations| {
            let now = state.now().millis();
            if number == 0 {
                state.imports.write_times(board, now, operations);
                state.imports.write(operations);
                if let Some(dual) = &state.dual {
                    dual.write(operations);
                }
            } else {
                operations.advanced(now);
            }
            state.imports.write_progress(number, operations);
            let data = &mut state.tracks[number];
            data.events.write(operations);
            data.noted.write(operations);
            data.holdings.begin_walk()
        })?;
        if number == 0 {
            blocks.add_all(|state, portion, operations| state.moderated.write_portion(portion, operations))?;
            blocks.add_all(|state, portion, operations| state.described.write_portion(portion, operations))?;
            blocks.add_all(|state, portion, operations| state.write_reached(portion, operations))?;
        }
        blocks.add_all(|state, portion, operations| state.tracks[number].sheets.write_portion(portion, operations))?;
        while blocks.add(|state, operations| {
            // The board's time is written first, so that the board has reached it when the other operations are read.
            operations.advanced(state.now().millis());
            state.tracks[number].holdings.checkpoint_portion(&mut walk, PORTION, operations)
        })? {}
        Ok(blocks.written)
    }

    /// Writes the ids. Large sealed buckets without a file go into files of their own, all others into the board's
    /// file.
    fn write_ids(
        &mut self,
        live: &LiveBoard,
        board: &Board,
        before: &[IdsEntry],
        file: &mut CheckpointWriter,
        records: &mut u64,
    ) -> Result<Vec<IdsEntry>, CheckpointError> {
        let buckets = {
            let state = self.lock(live, board)?;
            state.ids.buckets(state.now().millis()).collect::<Vec<_>>()
        };
        let mut named = Vec::new();
        for bucket in buckets {
            if let Some(written) = before.iter().find(|written| written.bucket == bucket.number) {
                named.push(written.clone());
            } else if bucket.sealed && bucket.len >= SMALL_BUCKET {
                let (file, mut writer) = self.create(IDS, "ids", live.generation(), FileKind::Ids)?;
                let count = self.write_bucket(live, board, bucket.number, &mut writer)?;
                let bytes = writer.finish(count)?;
                named.push(IdsEntry { file, bucket: bucket.number, newest: bucket.newest, bytes });
            } else {
                *records += self.write_bucket(live, board, bucket.number, file)?;
            }
        }
        Ok(named)
    }

    /// Writes the ids of one bucket. Returns the number of blocks.
    fn write_bucket(
        &self,
        live: &LiveBoard,
        board: &Board,
        bucket: i64,
        file: &mut CheckpointWriter,
    ) -> Result<u64, CheckpointError> {
        // A file of ids may outlive every edition, so it belongs to a track that stands for the board for ever.
        let mut operations = LogOperations::of(TrackId::first_of(board.generation()));
        let mut cursor = 0;
        let mut ids = Vec::with_capacity(IDS_PORTION);
        let mut blocks = 0;
        loop {
            ids.clear();
            let more = self.lock(live, board)?.ids.portion(bucket, &mut cursor, IDS_PORTION, &mut ids);
            if !ids.is_empty() {
                operations.clear();
                for (fingerprint, arrival) in &ids {
                    operations.id(*arrival, *fingerprint);
                }
                file.block(operations.bytes())?;
                blocks += 1;
            }
            if !more {
                return Ok(blocks);
            }
        }
    }

    /// Locks a board for the next portion of a walk. Fails if the store is being closed, or if the board was removed or
    /// got other editions.
    fn lock<'a>(&self, live: &'a LiveBoard, board: &Board) -> Result<MutexGuard<'a, BoardState>, CheckpointError> {
        if self.journal.is_stopping() {
            return Err(CheckpointError::Abandoned);
        }
        let state = live.state.lock();
        if state.check_is_of(board).is_err() { Err(CheckpointError::Abandoned) } else { Ok(state) }
    }

    fn create(
        &mut self,
        directory: &str,
        ending: &str,
        generation: Generation,
        kind: FileKind,
    ) -> Result<(String, CheckpointWriter), StorageError> {
        let name = format!("{directory}/{:016x}-{}.{ending}", generation.0, self.next_file);
        self.next_file += 1;
        let subject = FileIdentity { kind, store: self.manifest.store, generation: generation.0 };
        let writer = CheckpointWriter::create(self.files.clone(), &name, subject)?;
        Ok((name, writer))
    }
}
