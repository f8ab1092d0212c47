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
    /// The estimated memory of a subject in the store in use, with data in every window, and in every slot that is kept
    /// over all time.
    pub bytes_per_subject: BytesPerSubject,
    /// The estimated memory of a subject in each [track](Board::tracks) of the board.
    pub bytes_per_track: Vec<BytesPerSubject>,
}

/// Returns the memory of a subject with data in all tracks.
fn sum(tracks: &[BytesPerSubject]) -> BytesPerSubject {
    let each = |number: fn(&BytesPerSubject) -> u64| tracks.iter().map(number).sum();
    let all = |number: fn(&BytesPerSubject) -> Option<u64>| tracks.iter().map(number).sum();
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
        // The store's estimate of a board includes its further boards, so the first one is of the main window alone.
        let main = Board::new(name.clone(), Generation(0), definition.of_window(definition.main_window()))?;
        let tracks = std::iter::once(&main).chain(board.further().iter().map(|further| &**further));
        let bytes_per_track: Vec<_> = tracks.map(|track| self.store.bytes_per_subject(track)).collect();
        Ok(DefinitionPreview {
            existing,
            differences: differences.unwrap_or_default(),
            bytes_per_subject: sum(&bytes_per_track),
            bytes_per_track,
            board,
        })
    }
}
