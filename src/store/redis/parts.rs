//! The parts of one board, as an instance uses them: which there are, and which has a subject.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::keys::{BoardKeys, StoreKeys};
use super::part::Part;
use super::partition::Partition;
use crate::board::{Board, BoardName, Generation, Subject};

/// The parts of a board; one of a board without shards.
#[derive(Debug)]
pub(super) struct Parts {
    partition: Partition,
    all: Box<[Arc<Part>]>,
    /// The part that the next step of retiring begins with.
    turn: AtomicUsize,
}

/// How a board is divided, by what is stored of it. A board of which nothing is stored is not divided; what is stored
/// was seen to be readable when the board was read.
pub(super) fn partition(name: &BoardName, stored: Option<&str>) -> Partition {
    let read = stored.and_then(|stored| Partition::read(name, count(stored), stored).ok());
    read.unwrap_or_else(|| Partition::unsharded(name))
}

/// How many parts are stored here.
pub(super) fn count(stored: &str) -> u32 {
    u32::try_from(stored.split(',').count()).unwrap_or(u32::MAX)
}

/// The keys of each part. Those of the one part of a board without shards are the board's own.
pub(super) fn keys(
    store: &StoreKeys,
    name: &BoardName,
    generation: Generation,
    partition: &Partition,
) -> Vec<BoardKeys> {
    match partition.stored() {
        None => vec![store.board(name, generation)],
        Some(_) => partition.tags().map(|tag| store.part(tag, generation)).collect(),
    }
}

impl Parts {
    /// Makes each part of its keys.
    pub fn new(board: &Arc<Board>, store: &StoreKeys, part: impl Fn(BoardKeys) -> Part) -> Self {
        let partition = partition(board.name(), board.parts());
        let keys = keys(store, board.name(), board.generation(), &partition);
        let all = keys.into_iter().map(|keys| Arc::new(part(keys))).collect();
        Self { partition, all, turn: AtomicUsize::new(0) }
    }

    pub fn all(&self) -> &[Arc<Part>] {
        &self.all
    }

    pub fn count(&self) -> usize {
        self.partition.count()
    }

    /// The first part. There always is one.
    pub fn first(&self) -> &Arc<Part> {
        &self.all[0]
    }

    /// The only part, if there are no others.
    pub fn only(&self) -> Option<&Arc<Part>> {
        match &*self.all {
            [part] => Some(part),
            _ => None,
        }
    }

    /// The number of the part that has a subject.
    pub fn number_of(&self, subject: &Subject) -> usize {
        match self.all.len() {
            1 => 0,
            _ => self.partition.part_of(subject),
        }
    }

    /// The part that has a subject.
    pub fn of(&self, subject: &Subject) -> &Arc<Part> {
        &self.all[self.number_of(subject)]
    }

    /// All parts once, those first whose turn it is.
    pub fn in_turn(&self) -> impl Iterator<Item = &Arc<Part>> {
        let (count, turn) = (self.all.len(), self.turn.load(Ordering::Relaxed));
        (0..count).map(move |i| &self.all[(turn + i) % count])
    }

    /// Gives the turn to the part after this many of those in turn.
    pub fn pass_turn(&self, taken: usize) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store((turn + taken) % self.all.len(), Ordering::Relaxed);
    }
}
