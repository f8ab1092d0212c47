//! An index of all boards by the type of event that their metrics name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::board::{Board, Generation};

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
        self.by_event.values().flatten().map(|board| board.generation()).collect()
    }

    /// Returns an index of those boards whose generation is not in `known`.
    pub(super) fn beyond(&self, known: &HashSet<Generation>) -> Self {
        let boards = self.by_event.values().flatten();
        Self::new(boards.filter(|board| !known.contains(&board.generation())).cloned())
    }

    /// Returns whether a board's result depends on the order of events.
    pub(super) fn depends_on_order(&self) -> bool {
        self.by_event.values().flatten().any(|board| board.kind().depends_on_order())
    }

    /// Returns the boards whose metric names this type.
    pub(super) fn of(&self, event: &str) -> &[Arc<Board>] {
        self.by_event.get(event).map_or(&[], Vec::as_slice)
    }
}
