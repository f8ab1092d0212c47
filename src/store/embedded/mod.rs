//! The embedded store: keeps the whole state in memory and makes it durable with a log and checkpoints. It runs in one
//! process and needs no set-up.
//!
//! # Structure
//! - **Memory** (`board_state`) holds every live record; all boards must fit into it (`memory` counts the bytes and
//!   decides what is refused near the limit). For each board, behind one lock,
//!   it holds the ids counted recently and, for each track (`track_data`), the subjects with their slots, each slot's
//!   subjects and the ranking (`holdings`).
//!   The rows of all tables (`rows`) are in memory too, behind a lock of their own, and in every manifest.
//! - **The log** (`engine::log_writer`) holds the result of each write as absolute values (`log_operations`), one frame
//!   for each group of writes that arrived together.
//! - **Checkpoints** (`engine::checkpointer`) hold the state of memory, board by board, so that the log before them can
//!   be deleted. Log and checkpoints are read from the disk only at a start (`engine::recovery`).
//! - **Storage** (`storage`) handles the bytes and files of log, checkpoints and manifest, on a real or a simulated
//!   disk.
//!
//! # The steps of a write
//! 1. Check whether the disk accepts writes (`engine::admission`).
//! 2. Lock the board, read the clock, move head and floor.
//! 3. Apply the batch, or a portion of it, to memory.
//! 4. Append its operations to the journal and unlock.
//! 5. Wait for the acknowledgement.
//!
//! A write that is refused is refused before memory changes. Once memory has changed, the outcome is done or unknown.
//!
//! # Threads
//! One thread writes the log, one syncs it, and one makes checkpoints and handles all other files. One ends waits that
//! take too long and frees expired memory, and never accesses a file. One drops data that takes long to drop.

mod aggregate_state;
mod arena;
mod audit;
mod batches;
mod board_state;
mod boards;
mod cell_pairs;
mod clock;
mod codec;
mod contents;
mod contents_walks;
mod day_counts;
mod described;
mod dual_counts;
mod earlier;
mod edition_counts;
mod editions;
mod engine;
mod entries;
mod event_counts;
mod few_or_many;
mod filling;
mod fingerprint;
mod groups;
mod hash_table;
mod hashed_name;
mod holdings;
mod ids;
mod import_progress;
mod imports;
mod kinds;
mod last_seen;
mod lifecycle;
mod log_operation;
mod log_operations;
mod memory;
mod merging;
mod metrics;
mod moderated;
mod numbering;
mod options;
mod owned_state;
mod passing;
mod pool;
mod ranking;
mod ranking_reads;
mod record;
mod replaying;
mod rows;
mod sheets;
mod sizing;
mod slab;
mod slot_list;
mod slot_reads;
mod storage;
mod store;
mod subject_sketches;
mod subjects;

#[cfg(test)]
mod tests;
mod track_data;
mod track_traits;
mod writing;

use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};
use std::time::Duration;

pub use engine::{DataReport, check_data};
pub use options::{Durability, DurabilityError, EmbeddedOptions, Pace};
use parking_lot::MutexGuard;

use self::board_state::{BoardAdvance, BoardState};
use self::boards::{Boards, LiveBoard};
use self::clock::{Clock, ClockReading};
use self::engine::{Engine, Journal, Ticket};
use self::fingerprint::FingerprintKey;
use self::log_operations::LogOperations;
pub use self::memory::available_memory;
use self::memory::{Memory, MemoryShare};
use self::rows::StoredRows;
use self::storage::files::Files;
use self::storage::files::system::SystemFiles;
use self::track_data::{Advance, TrackData};
use super::{Limits, Result, StoreError, require_key};
use crate::board::{Board, BoardTrack, Frame, Track};

/// The embedded store. See the [module](self).
#[derive(Debug)]
pub struct Embedded {
    boards: Arc<Boards>,
    /// The number of boards created and removed since the store was opened. Grows only while [`boards`](Self::boards)
    /// is locked.
    boards_version: AtomicU64,
    rows: Arc<StoredRows>,
    clock: Arc<Clock>,
    engine: Engine,
    memory: Arc<Memory>,
    limits: Limits,
    /// The largest number of subjects of a ranked board.
    max_subjects: usize,
    key: FingerprintKey,
    /// The channel to the thread that drops data which takes long to drop: whole boards, whole slots.
    discarded: mpsc::Sender<Box<dyn Any + Send>>,
}

/// Whether a caller waits for the acknowledgement of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Yes,
    No,
}

impl Embedded {
    /// Opens the data directory, creating it if it does not exist, and reads it into memory. This takes some seconds
    /// for 10 million subjects.
    ///
    /// Returns [`StoreError::DataDirectory`] if the directory is in use, [`StoreError::Setup`] if it cannot be created,
    /// [`StoreError::ClockModeMismatch`] if it was created with the other clock mode, and [`StoreError::Corrupt`] if
    /// something is damaged or missing.
    pub async fn open(options: EmbeddedOptions) -> Result<Arc<Embedded>> {
        Self::open_at_pace(options, Pace::default()).await
    }

    /// Opens as [`open`](Self::open) does, with a different pace of checkpoints.
    pub async fn open_at_pace(options: EmbeddedOptions, pace: Pace) -> Result<Arc<Embedded>> {
        let open = move || {
            let files: Arc<dyn Files> = Arc::new(SystemFiles::new(&options.path));
            Self::open_on(files, options, pace)
        };
        tokio::task::spawn_blocking(open).await.map_err(|error| StoreError::Backend { source: Box::new(error) })?
    }

    /// Opens a store on any kind of files.
    fn open_on(files: Arc<dyn Files>, options: EmbeddedOptions, pace: Pace) -> Result<Arc<Embedded>> {
        let (limits, max_subjects) = (options.limits, options.max_subjects.unwrap_or(usize::MAX));
        let opened = engine::open(files, options, pace)?;
        let (discarded, receiver) = mpsc::channel();
        // The thread ends with the store, which holds the only sender.
        engine::spawn("rolltop-discard", move || receiver.into_iter().for_each(drop::<Box<dyn Any + Send>>))?;
        Ok(Arc::new(Embedded {
            boards: opened.boards,
            boards_version: AtomicU64::new(0),
            rows: opened.rows,
            clock: opened.clock,
            engine: opened.engine,
            memory: opened.memory,
            limits,
            max_subjects,
            key: opened.key,
            discarded,
        }))
    }

    fn journal(&self) -> &Journal {
        self.engine.journal()
    }

    /// Returns the live board with the generation of this board.
    fn live_board(&self, board: &Board) -> Result<Arc<LiveBoard>> {
        let boards = self.boards.read();
        let live = boards.get(board.name()).filter(|live| live.generation() == board.generation());
        live.cloned().ok_or(StoreError::BoardChanged)
    }

    /// Does `work` on the state of a board, advanced to now, and appends its operations to the journal before the lock
    /// is released. So the order of the log is the order in which the lock was held. The operations begin as those of
    /// the main track of the current edition.
    ///
    /// Returns [`StoreError::StaleEpoch`] if the board has other editions, and [`StoreError::ClockDoubted`] if nothing
    /// may be written at present.
    fn change_state<T>(
        &self,
        board: &Board,
        work: impl FnOnce(&mut BoardState, &mut LogOperations) -> (T, Awaited),
    ) -> Result<(T, Ticket)> {
        let live = self.live_board(board)?;
        let mut operations = LogOperations::of(board.edition().main().id());
        let mut state = live.state.lock();
        state.check_is_of(board)?;
        self.advance(&mut state);
        if let Some(doubted) = self.doubted_clock_of(&state) {
            return Err(doubted);
        }
        self.log_noted_ranks(&live, &mut state);
        if self.turn_season(&live, &mut state)? {
            self.unlock(&live, state);
            return Err(StoreError::StaleEpoch);
        }
        // A restart must not set the board's time back to before what it has counted.
        operations.advanced(state.now().millis());
        let nothing = operations.len();
        let (answer, awaited) = work(&mut state, &mut operations);
        let now = state.now().millis();
        state.imports.log_first_sample(board, now, &mut operations);
        if operations.len() == nothing {
            self.unlock(&live, state);
            return Ok((answer, Ticket::Done));
        }
        let (sequence, ticket) = match awaited {
            Awaited::Yes => self.journal().append_with_ticket(&operations),
            Awaited::No => (self.journal().append(&operations), Ticket::Done),
        };
        live.logged.add(sequence, operations.len());
        self.unlock(&live, state);
        Ok((answer, ticket))
    }

    /// Appends the ranks of earlier times that the log does not have yet, before anything that is written after them.
    /// They are written at once, though nobody waits: after a crash the ranks of a boundary may not be known any more.
    fn log_noted_ranks(&self, live: &LiveBoard, state: &mut BoardState) {
        if let Some(operations) = state.unlogged_ranks() {
            live.logged.add(self.journal().append_at_once(&operations), operations.len());
        }
    }

    /// Does `work` on the state of a board, advanced to now, without a change that the log would have to contain.
    fn with_state<T>(&self, board: &Board, work: impl FnOnce(&mut BoardState, BoardAdvance) -> T) -> Result<T> {
        let live = self.live_board(board)?;
        let mut state = live.state.lock();
        state.check_is_of(board)?;
        let advance = self.advance(&mut state);
        self.log_noted_ranks(&live, &mut state);
        if self.turn_season(&live, &mut state)? {
            self.unlock(&live, state);
            return Err(StoreError::StaleEpoch);
        }
        let answer = work(&mut state, advance);
        self.unlock(&live, state);
        Ok(answer)
    }

    /// Does `work` on the data of a track, advanced to now, without a change that the log would have to contain.
    fn read_data<T>(&self, track: &BoardTrack, work: impl FnOnce(&Track, &mut TrackData, Advance) -> T) -> Result<T> {
        self.with_state(track.board(), |state, mut advance| {
            let number = track.number();
            let advanced = advance.tracks.iter_mut().find(|(advanced, _)| *advanced == number);
            let advance = advanced.map(|(_, advance)| std::mem::take(advance)).unwrap_or_default();
            work(track, &mut state.tracks[number], advance)
        })
    }

    /// Does `work` on the data of a track for a read of what one subject has, which names a key if there are keys.
    fn read_subject<T>(&self, track: &BoardTrack, work: impl FnOnce(&TrackData) -> T) -> Result<T> {
        require_key(track)?;
        self.read_data(track, |_, data, _| work(data))
    }

    /// Does `work` on the data of a track for a read of a ranking, which names a key if there are keys. The frame is
    /// that of this ranking.
    fn read_ranking<T>(&self, track: &BoardTrack, work: impl FnOnce(&TrackData, Frame) -> T) -> Result<T> {
        require_key(track)?;
        self.read_data(track, |_, data, _| {
            let frame = ranking_reads::settle(track, data);
            work(data, frame)
        })
    }

    /// Unlocks a board, counts its memory, and passes on the data to drop.
    fn unlock(&self, live: &LiveBoard, mut state: MutexGuard<BoardState>) {
        let garbage = state.take_garbage();
        live.count_memory(&state);
        // Threads that wait for the lock get it before this thread can take it again.
        MutexGuard::unlock_fair(state);
        if !garbage.is_empty() {
            self.discard(garbage);
        }
    }

    /// Advances a board to the clock's now, and passes on the data to drop.
    fn advance(&self, state: &mut BoardState) -> BoardAdvance {
        let now = state.believed_time(self.clock.read());
        let mut advance = state.advance(now);
        for expired in advance.tracks.iter_mut().filter_map(|(_, advance)| advance.expired.as_mut()) {
            let bytes = expired.holdings.as_ref().map_or(0, |holdings| holdings.memory_bytes());
            // The bytes count until the data is dropped, which is the order of the two.
            self.discard((expired.holdings.take(), MemoryShare::new(&self.memory, bytes)));
        }
        if let Some(expired_ids) = advance.expired_ids.take() {
            let bytes = expired_ids.memory_bytes();
            self.discard((expired_ids, MemoryShare::new(&self.memory, bytes)));
        }
        advance
    }

    /// Returns the reason why a board must not be written to, if the clock is doubted since the start.
    fn doubted_clock_of(&self, state: &BoardState) -> Option<StoreError> {
        let trust = state.trust.as_ref()?;
        let reading = trust.doubted()?;
        let ClockReading::System { monotonic, .. } = self.clock.read() else { return None };
        let retry_after = trust.is_standing(monotonic)?.max(Duration::from_secs(1));
        Some(StoreError::ClockDoubted { reading, recorded: state.now(), retry_after })
    }

    /// Returns the reason why some board must not be written to, if there is one.
    fn doubted_clock(&self) -> Option<StoreError> {
        if !self.clock.may_be_doubted() {
            return None;
        }
        let boards: Vec<_> = self.boards.read().values().cloned().collect();
        boards.iter().find_map(|live| {
            let mut state = live.state.lock();
            if state.removed {
                return None;
            }
            self.advance(&mut state);
            self.doubted_clock_of(&state)
        })
    }

    /// Passes data to the thread that drops it. If that thread has ended, the data is dropped here.
    fn discard(&self, what: impl Any + Send) {
        drop(self.discarded.send(Box::new(what)));
    }
}
