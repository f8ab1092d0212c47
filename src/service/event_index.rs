//! An index of all boards by the types of events that their metrics name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::access::Caller;
use crate::board::{Board, Epoch, Generation};

/// A list of boards at one moment, indexed by the types of events that each board counts.
#[derive(Debug, Default)]
pub(super) struct EventIndex {
    boards: Vec<Arc<Board>>,
    by_event: HashMap<Box<str>, Vec<Arc<Board>>, rapidhash::fast::RandomState>,
}

impl EventIndex {
    /// Indexes the given boards. The boards of one type are ordered by name, which is also the order of results.
    pub(super) fn new(boards: impl IntoIterator<Item = Arc<Board>>) -> Self {
        let mut boards: Vec<_> = boards.into_iter().collect();
        boards.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        let mut by_event: HashMap<Box<str>, Vec<Arc<Board>>, _> = HashMap::default();
        for board in &boards {
            for event in board.definition().metric.terms.types() {
                by_event.entry(event.into()).or_default().push(board.clone());
            }
        }
        Self { boards, by_event }
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

    /// Returns all boards, each once, ordered by name.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Board>> {
        self.boards.iter()
    }

    /// Returns whether there is a board with this name. O(log boards).
    pub(super) fn has(&self, name: &str) -> bool {
        self.boards.binary_search_by(|board| board.name().as_str().cmp(name)).is_ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition};

    fn board(name: &str, generation: u64, metric: &str) -> Arc<Board> {
        let definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        Arc::new(Board::new(BoardName::parse(name).unwrap(), Generation(generation), definition).unwrap())
    }

    fn names<'a>(boards: impl IntoIterator<Item = &'a Arc<Board>>) -> Vec<&'a str> {
        boards.into_iter().map(|board| board.name().as_str()).collect()
    }

    #[test]
    fn a_board_of_several_types_is_found_under_each_and_listed_once() {
        let points = board("points", 2, "SUM(24h, like + comment*3 + order + order: amount, post)");
        let index = EventIndex::new([points, board("likes", 1, "COUNT(24h, like, post)")]);
        assert_eq!(names(index.of_type("like")), ["likes", "points"]);
        assert_eq!(names(index.of_type("comment")), ["points"]);
        assert_eq!(names(index.of_type("order")), ["points"]);
        assert_eq!(names(index.of_type("share")), [""; 0]);
        assert_eq!(names(index.all()), ["likes", "points"]);
        assert_eq!(["likes", "points", "shares"].map(|name| index.has(name)), [true, true, false]);
        let known = HashMap::from([(Generation(1), Epoch(0))]);
        let beyond = index.beyond(&known);
        assert_eq!((names(beyond.all()), names(beyond.of_type("comment"))), (vec!["points"], vec!["points"]));
    }
}
