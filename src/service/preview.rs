//! What the definition of a board would do.

use std::sync::Arc;

use super::{Result, Service};
use crate::board::{Board, BoardName, Definition, Generation};
use crate::store::BytesPerSubject;

/// What the definition of a board would do.
#[derive(Debug)]
pub struct DefinitionPreview {
    /// The board as it would be, with the generation 0.
    pub board: Board,
    /// The board with this name, if there is one.
    pub existing: Option<Arc<Board>>,
    /// The keys of the definition in which an existing board differs. If there are any, the definition would be refused.
    pub differences: Vec<&'static str>,
    /// The estimated memory of a subject in the store in use, with data in every window.
    pub bytes_per_subject: BytesPerSubject,
    /// The estimated memory of a subject in each window, the main one first.
    pub bytes_per_window: Vec<BytesPerSubject>,
}

/// Returns the memory of a subject with data in all windows.
fn sum(windows: &[BytesPerSubject]) -> BytesPerSubject {
    let each = |number: fn(&BytesPerSubject) -> u64| windows.iter().map(number).sum();
    let all = |number: fn(&BytesPerSubject) -> Option<u64>| windows.iter().map(number).sum();
    BytesPerSubject {
        one_slot: each(|bytes| bytes.one_slot),
        all_slots: each(|bytes| bytes.all_slots),
        each_value: all(|bytes| bytes.each_value),
        at_most: all(|bytes| bytes.at_most),
    }
}

impl Service {
    /// Returns what [`define`](Self::define) would do, and changes nothing. One store call, a read.
    pub async fn preview(&self, name: &BoardName, definition: &Definition) -> Result<DefinitionPreview> {
        let board = Board::new(name.clone(), Generation(0), definition.clone())?;
        // Reads the store, not the cache, which may have an earlier board of this name.
        let existing = self.store.board(name).await?;
        let differences = existing.as_ref().map(|existing| existing.definition().differences(definition));
        let main = Board::new(name.clone(), Generation(0), definition.of_window(definition.main_window()))?;
        let windows = std::iter::once(&main).chain(board.further().iter().map(|window| &**window));
        let bytes_per_window: Vec<_> = windows.map(|window| self.store.bytes_per_subject(window)).collect();
        Ok(DefinitionPreview {
            existing,
            differences: differences.unwrap_or_default(),
            bytes_per_subject: sum(&bytes_per_window),
            bytes_per_window,
            board,
        })
    }
}
