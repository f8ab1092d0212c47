//! Tests of the parts of the store together: `disk` on disks that crash and fail, `memory` for the contents of a
//! board's data.

mod disk;
mod memory;

use crate::board::{Board, BoardName, Definition, Generation};

/// Returns a board to define.
pub(super) fn new_board(name: &BoardName, definition: &Definition) -> Board {
    let generation = Generation(rand::random_range(1..=u64::MAX - 100));
    Board::new(name.clone(), generation, definition.clone()).unwrap()
}
