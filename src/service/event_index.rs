//! An index of all boards by the type of event that their metrics name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::access::Caller;
use crate::board::{Board, Epoch, Generation};

/// A list of boards at one moment, indexed by the type of event that each board counts.
#[derive(Debug, Default)]
pub(super) struct EventIndex {
    by_event: HashMap<Box<str>, Vec<Arc<Board>>, rapidhash::fast::RandomState>,
}

impl EventIndex {
    /// Indexes the given boards. The boards of one type are ordered by name, which is also the order of results.
    pub(super) fn new(boards: impl IntoIterator<Item = Arc<Board>>) -> Self {
        let mut index = Self::default();
        for board in boards {
            index.by_event.entry(board.definition().metric.event.clone()).or_default().push(board);
        }
        for boards in index.by_event.values_mut() {
            boards.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        }
        index
    }

    /// Returns the generations of all boards in the index.
    pub(super) fn generations(&self) -> HashSet<Generation> {
        self.all().map(|board| board.generation()).collect()
    }

    /// Returns the epoch of each board in the index.
    pub(super) fn epochs(&self) -> HashMap<Generation, Epoch> {
        self.all().map(|board| (board.generation(), board.epoch())).collect()
    }

    /// Returns an index of those boards that are not in `known`, or only in an earlier epoch.
    pub(super) fn beyond(&self, known: &HashMap<Generation, Epoch>) -> Self {
        let is_new = |board: &&Arc<Board>| known.get(&board.generation()).is_none_or(|epoch| *epoch < board.epoch());
        Self::new(self.all().filter(is_new).cloned())
    }

    /// Returns whether the result of a board that the caller may use depends on the order of events.
    pub(super) fn depends_on_order(&self, caller: &Caller) -> bool {
        self.all().filter(|board| board.kind().depends_on_order()).any(|board| caller.sees(board.name()))
    }

    /// Returns all boards.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Board>> {
        self.by_event.values().flatten()
    }

    /// Returns the boards whose metric names this type.
    pub(super) fn of_type(&self, event: &str) -> &[Arc<Board>] {
        self.by_event.get(event).map_or(&[], Vec::as_slice)
    }

    /// Returns the boards whose metric names this type, of those that the caller may use.
    pub(super) fn of<'a>(&'a self, caller: &'a Caller, event: &str) -> impl Iterator<Item = &'a Arc<Board>> {
        self.of_type(event).iter().filter(|board| caller.sees(board.name()))
    }
}
