//! One partition of a board, with a part for each track.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::hash_slot::HashSlot;
use super::keys::BoardKeys;
use super::kinds;
use super::part::Part;
use super::partition_clock::PartitionClock;
use super::scripts::Script;
use crate::board::{Board, Timestamp, Window};

/// One partition of a board, as this instance knows it: what a write is about.
#[derive(Debug)]
pub(super) struct Partition {
    pub clock: Arc<PartitionClock>,
    /// The main track's comes first.
    parts: Box<[Arc<Part>]>,
    /// The position among the partitions of the board.
    number: usize,
    announced: AtomicBool,
    change_script: OnceLock<&'static Script>,
}

impl Partition {
    /// Creates the partition at this position from its keys in each track of the board, the main one first.
    pub fn new(board: &Arc<Board>, number: usize, keys: Vec<BoardKeys>, clock: PartitionClock) -> Self {
        let clock = Arc::new(clock);
        let part = |(track, keys)| Arc::new(Part::new(track, keys, clock.clone()));
        let parts = board.each_track().zip(keys).map(part).collect();
        Self { clock, parts, number, announced: AtomicBool::new(false), change_script: OnceLock::new() }
    }

    /// Returns the part of each track, the main one first.
    pub fn parts(&self) -> &[Arc<Part>] {
        &self.parts
    }

    /// Returns the position among the partitions of the board.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the part of the main track.
    pub fn main(&self) -> &Arc<Part> {
        &self.parts[0]
    }

    pub fn board(&self) -> &Arc<Board> {
        self.main().track.board()
    }

    /// Returns the script that applies changes in all editions of the board.
    pub fn change_script(&self) -> &'static Script {
        self.change_script.get_or_init(|| kinds::change_script(self.board()))
    }

    /// Returns the hash slot of all keys of the partition.
    pub fn slot(&self) -> HashSlot {
        self.main().slot()
    }

    /// Returns the window at `now` of each track that a write may change, the main one first. O(tracks) while their heads
    /// stay the same.
    pub fn windows(&self, now: Timestamp) -> Box<[Window]> {
        let written = self.board().written_tracks().len();
        self.parts[..written].iter().map(|part| part.with_window(now, |slots| slots.window)).collect()
    }

    /// Returns whether this instance has announced the board in the list of boards. Only the first partition knows.
    pub fn is_announced(&self) -> bool {
        self.announced.load(Ordering::Acquire)
    }

    pub fn note_announced(&self) {
        self.announced.store(true, Ordering::Release);
    }

    /// Resets what is known about existing keys and about the server's speed. The expected time is kept: if a server
    /// has come back on a different machine, its clock may be wrong.
    pub fn drop_beliefs(&self) {
        self.parts.iter().for_each(|part| part.drop_beliefs());
        self.announced.store(false, Ordering::Release);
    }
}
