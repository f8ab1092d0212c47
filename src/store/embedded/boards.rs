//! The boards of a store, each with its tables behind a lock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::tables::Tables;
use crate::board::{Board, BoardName};

/// A board and what memory holds of it.
#[derive(Debug)]
pub(super) struct LiveBoard {
    pub board: Arc<Board>,
    /// Held for one call, one portion of a batch, one step or one portion of a checkpoint; never across an await.
    pub tables: Mutex<Tables>,
    /// Grows only while `tables` is locked.
    pub logged: Logged,
}

impl LiveBoard {
    pub(super) fn new(board: Arc<Board>, tables: Tables, logged: Logged) -> Self {
        Self { board, tables: Mutex::new(tables), logged }
    }
}

/// What the log holds of a board since its last checkpoint began.
#[derive(Debug, Default)]
pub(super) struct Logged {
    /// The sequence of the first frame; 0 if there is none.
    first: AtomicU64,
    bytes: AtomicU64,
}

impl Logged {
    /// Some bytes were appended, which got this sequence.
    pub(super) fn add(&self, sequence: u64, bytes: usize) {
        if self.first.load(Ordering::Relaxed) == 0 {
            self.first.store(sequence, Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The sequence of the first frame that holds anything of the board.
    pub(super) fn first(&self) -> Option<u64> {
        Some(self.first.load(Ordering::Relaxed)).filter(|first| *first > 0)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A checkpoint begins; returns what there was, to be [put back](Self::put_back) if it fails.
    pub(super) fn take(&self) -> (u64, u64) {
        (self.first.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed))
    }

    /// A checkpoint failed.
    pub(super) fn put_back(&self, (first, bytes): (u64, u64)) {
        if first > 0 {
            self.first.store(first, Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// All boards by name. Locked for a look-up, or to add or remove one.
pub(super) type Boards = RwLock<BTreeMap<BoardName, Arc<LiveBoard>>>;
