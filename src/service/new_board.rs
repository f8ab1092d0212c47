//! The board that a definition leads to.

use crate::board::{Board, BoardName, Definition, DefinitionError, Generation, MAX_FURTHER};

/// Returns a new board of a definition, which is validated here.
pub(super) fn new_board(name: &BoardName, definition: &Definition) -> Result<Board, DefinitionError> {
    // 0 stands for the store itself. The ids of tracks follow that of the board.
    let generation = Generation(rand::random_range(1..=u64::MAX - MAX_FURTHER as u64));
    Board::new(name.clone(), generation, definition.clone())
}
