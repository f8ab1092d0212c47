//! The boards of a store, each with its state behind its own lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::board_state::BoardState;
use super::memory::{Memory, MemoryShare};
use crate::board::{Board, BoardName, Generation};

/// A board and its data in memory.
#[derive(Debug)]
pub(super) struct LiveBoard {
    generation: Generation,
    /// The board as [`BoardState::board`] has it, for those who do not hold the lock of `state`. Replaced only while
    /// `state` is locked, after the log has the change.
    listed: RwLock<Arc<Board>>,
    /// The board's data. The lock is held for one call, one portion of a batch, one step or one portion of a
    /// checkpoint; never across an await.
    pub state: Mutex<BoardState>,
    /// The board's share of the log. Grows only while `state` is locked.
    pub logged: UncheckpointedLog,
    /// The bytes of `state`. Changed only while it is locked, and dropped after it.
    memory: MemoryShare,
}

/// The approximate number of bytes of a board beside its data: its definition, and the lists that contain it.
const BOARD_BYTES: usize = 2_048;

impl LiveBoard {
    pub(super) fn new(state: BoardState, logged: UncheckpointedLog, memory: &Arc<Memory>) -> Self {
        let memory = MemoryShare::new(memory, BOARD_BYTES + state.memory_bytes());
        let board = state.board.clone();
        let generation = board.generation();
        Self { generation, listed: RwLock::new(board), state: Mutex::new(state), logged, memory }
    }

    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the board. Its editions may change at any time.
    pub(super) fn board(&self) -> Arc<Board> {
        self.listed.read().clone()
    }

    /// Publishes the board of the state, which is locked.
    pub(super) fn list(&self, state: &BoardState) {
        *self.listed.write() = state.board.clone();
    }

    /// Publishes the bytes of the state, which is locked.
    pub(super) fn count_memory(&self, state: &BoardState) {
        self.memory.set(BOARD_BYTES + state.memory_bytes());
    }
}

/// The operations of a board that the log has received since the board's last checkpoint began.
#[derive(Debug, Default)]
pub(super) struct UncheckpointedLog {
    /// The sequence of the first frame, or 0 if there is none.
    first: AtomicU64,
    bytes: AtomicU64,
}

impl UncheckpointedLog {
    /// Records that this many bytes were appended to the frame with this sequence.
    pub(super) fn add(&self, sequence: u64, bytes: usize) {
        if self.first.load(Ordering::Relaxed) == 0 {
            self.first.store(sequence, Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the sequence of the first frame that has operations of the board.
    pub(super) fn first(&self) -> Option<u64> {
        Some(self.first.load(Ordering::Relaxed)).filter(|first| *first > 0)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Starts a checkpoint: resets the record and returns the previous values, to be [restored](Self::restore) if the
    /// checkpoint fails.
    pub(super) fn reset(&self) -> (u64, u64) {
        (self.first.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed))
    }

    /// Restores the values that [`reset`](Self::reset) returned, after a checkpoint failed.
    pub(super) fn restore(&self, (first, bytes): (u64, u64)) {
        if first > 0 {
            self.first.store(first, Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// All boards by name. Locked for a lookup, or to add or remove a board.
pub(super) type Boards = RwLock<BTreeMap<BoardName, Arc<LiveBoard>>>;
