//! How a source is stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SourceDefinition;
use crate::access::{BoardPatterns, KeyId};
use crate::board::{Board, Generation, Position, SourceNumber};
use crate::store::{StoreError, TableName, Unreadable};

/// The number of characters of a generation.
const GENERATION: usize = 16;

/// A source as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::service) struct Source {
    pub number: SourceNumber,
    pub definition: SourceDefinition,
    /// The position at which each board joined. Also of boards that have left since.
    pub joined: HashMap<Generation, Position>,
    /// The boards that have joined more than once, so that the last position does not say what they have counted.
    pub rejoined: HashSet<Generation>,
    /// Of boards that are filled with what was in the log before they joined: where the fill begins and ends.
    pub fills: HashMap<Generation, (Position, Position)>,
}

/// A part of the log that a board counts, and the number under which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) struct Course {
    pub number: SourceNumber,
    /// The position after which it begins.
    pub from: Position,
    /// The position up to which it goes.
    pub until: Position,
}

/// The text of a row.
#[derive(Serialize, Deserialize)]
struct SourceRow {
    number: u32,
    boards: BoardPatterns,
    keys: Vec<KeyId>,
    /// The generations of the boards that joined at a position, without anything between them: most join at the same one,
    /// and a row has room for some hundreds.
    joined: BTreeMap<Position, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    rejoined: String,
    /// Where fills begin and end, with the generations of their boards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fills: Vec<(Position, Position, String)>,
}

impl Source {
    pub(super) fn new(number: SourceNumber, definition: SourceDefinition) -> Self {
        Self { number, definition, joined: HashMap::new(), rejoined: HashSet::new(), fills: HashMap::new() }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let row: SourceRow = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let definition = SourceDefinition { boards: row.boards, keys: row.keys };
        let mut source = Self::new(SourceNumber(row.number), definition);
        for (position, boards) in row.joined {
            for board in generations(&boards) {
                source.joined.insert(board?, position);
            }
        }
        source.rejoined = generations(&row.rejoined).collect::<Result<_, _>>()?;
        for (from, until, boards) in row.fills {
            for board in generations(&boards) {
                source.fills.insert(board?, (from, until));
            }
        }
        Ok(source)
    }

    pub(super) fn text(&self) -> Result<String, StoreError> {
        let SourceDefinition { boards, keys } = self.definition.clone();
        let joined = by_value(&self.joined).into_iter().collect();
        let fills = by_value(&self.fills).into_iter().map(|((from, until), boards)| (from, until, boards)).collect();
        let mut rejoined: Vec<_> = self.rejoined.iter().map(Generation::to_string).collect();
        rejoined.sort_unstable();
        let row = SourceRow { number: self.number.0, boards, keys, joined, rejoined: rejoined.concat(), fills };
        serde_json::to_string(&row).map_err(|error| StoreError::Backend { source: Box::new(error) })
    }

    /// Returns what a board counts of the source: from where it has joined, or what it is filled with.
    pub fn course(&self, board: Generation, is_fill: bool) -> Option<Course> {
        match is_fill {
            true => {
                let (from, until) = *self.fills.get(&board)?;
                Some(Course { number: self.fill_number(), from, until })
            }
            false => {
                let from = *self.joined.get(&board)?;
                Some(Course { number: self.number, from, until: Position::MAX })
            }
        }
    }

    /// Returns the number under which boards are filled. It follows from that of the source, so that a fill of which the
    /// row knows nothing, because a failover has lost it, is found on the board.
    pub(super) fn fill_number(&self) -> SourceNumber {
        SourceNumber(self.number.0 | 1)
    }

    /// Returns whether the board is one of the source.
    pub fn has(&self, board: &Board) -> bool {
        self.definition.boards.includes(board.name())
    }

    /// Forgets boards that do not exist any more. The store has no others than these and those that this version cannot
    /// read.
    pub(super) fn keep(&mut self, boards: &[Arc<Board>], unreadable: &[Unreadable]) {
        let unreadable = unreadable.iter().filter_map(|board| Generation::parse(&board.generation));
        let there: HashSet<_> = boards.iter().map(|board| board.generation()).chain(unreadable).collect();
        self.joined.retain(|board, _| there.contains(board));
        self.rejoined.retain(|board| there.contains(board));
        self.fills.retain(|board, _| there.contains(board));
    }

    /// If the row is longer than it may be, forgets what can be found again on boards: of those that have left, where they
    /// joined, and of all, where their fills began.
    pub(super) fn make_room(&mut self, boards: &[Arc<Board>]) -> Result<(), StoreError> {
        if self.text()?.len() > TableName::MAX_TEXT_BYTES {
            let left: HashSet<_> =
                boards.iter().filter(|board| !self.has(board)).map(|board| board.generation()).collect();
            self.joined.retain(|board, _| !left.contains(board));
            self.rejoined.retain(|board| !left.contains(board));
            self.fills.clear();
        }
        Ok(())
    }

    /// Leaves out the last of the new boards, as many as there is no room for.
    pub(super) fn leave_out(&mut self, new: &[Generation]) -> Result<(), StoreError> {
        let mut kept = new.len();
        while kept > 0 && self.text()?.len() > TableName::MAX_TEXT_BYTES {
            let fewer = kept - kept.div_ceil(8);
            for board in &new[fewer..kept] {
                self.joined.remove(board);
                self.rejoined.remove(board);
            }
            kept = fewer;
        }
        Ok(())
    }
}

/// Returns the generations of a text that has them one after the other.
fn generations(text: &str) -> impl Iterator<Item = Result<Generation, String>> {
    text.as_bytes().chunks(GENERATION).map(|board| {
        let board = std::str::from_utf8(board).ok().and_then(Generation::parse);
        board.ok_or_else(|| "the generation of a board is not a number".to_owned())
    })
}

/// Returns the generations that have each value, one after the other in their order.
fn by_value<T: Ord + Copy>(values: &HashMap<Generation, T>) -> BTreeMap<T, String> {
    let mut sorted: Vec<_> = values.iter().collect();
    sorted.sort_unstable();
    let mut by_value = BTreeMap::<T, String>::new();
    for (board, value) in sorted {
        *by_value.entry(*value).or_default() += &board.to_string();
    }
    by_value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition};

    #[test]
    fn a_row_has_room_for_many_boards() {
        let boards = (0..850).map(|number| (Generation(number), Position(u128::MAX - u128::from(number % 3))));
        let definition = SourceDefinition { boards: BoardPatterns::all(), keys: vec![] };
        let mut source = Source::new(SourceNumber(u32::MAX), definition);
        source.joined = boards.collect();
        source.rejoined = [Generation(1), Generation(u64::MAX)].into();
        source.fills = (0..50).map(|number| (Generation(number), (Position::START, Position(7)))).collect();
        let text = source.text().unwrap();
        assert!(text.len() < TableName::MAX_TEXT_BYTES, "{}", text.len());
        assert_eq!(Source::parse(&text).unwrap(), source);
    }

    #[test]
    fn a_row_that_is_too_long_forgets_what_can_be_found_again() {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        let board = |number: u64| {
            let name = BoardName::parse(&format!("{}-{number}", if number < 400 { "in" } else { "out" })).unwrap();
            Arc::new(Board::new(name, Generation(number), definition.clone()).unwrap())
        };
        let boards: Vec<_> = (0..800).map(board).collect();
        let patterns = ["in-*".parse().unwrap()].into_iter().collect();
        let mut source = Source::new(SourceNumber(2), SourceDefinition { boards: patterns, keys: vec![] });
        source.joined = (0..800).map(|number| (Generation(number), Position(number.into()))).collect();
        source.fills = [(Generation(3), (Position::START, Position(3)))].into();
        source.make_room(&boards).unwrap();
        assert_eq!((source.joined.len(), source.fills.len()), (400, 0));
        assert!(source.joined.keys().all(|board| board.0 < 400));
        let before = source.clone();
        source.make_room(&boards).unwrap();
        assert_eq!(source, before, "a row that is short enough stays as it is");
    }
}
