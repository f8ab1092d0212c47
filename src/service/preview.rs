//! What the definition of a board would do.

use std::sync::Arc;

use super::archive::LINE_BYTES;
use super::{Result, Service};
use crate::access::{Caller, Scope};
use crate::board::{Board, BoardName, Definition, Generation};
use crate::store::{BytesPerSubject, IdCost};

/// What the definition of a board would do.
#[derive(Debug)]
pub struct DefinitionPreview {
    /// The board as it would be, with the generation 0.
    pub board: Arc<Board>,
    /// The board with this name, if there is one.
    pub existing: Option<Arc<Board>>,
    /// The keys of the definition in which an existing board differs. If there are any, the definition would be
    /// refused.
    pub differences: Vec<&'static str>,
    /// The estimated memory of a subject in the store in use, with data in every track of the current edition.
    pub bytes_per_subject: BytesPerSubject,
    /// The estimated memory of a line of an ended period, if the rankings of ended periods are packed.
    pub bytes_per_archived_line: Option<u64>,
    /// The estimated memory of a subject in each [track](crate::board::Edition::tracks) of the current edition.
    pub bytes_per_track: Vec<BytesPerSubject>,
    /// What the ids of the board cost.
    pub id_cost: IdCost,
}

impl Service {
    /// Returns what [`define`](Self::define) would do, and changes nothing. One store call, a read.
    pub async fn preview(
        &self,
        caller: &Caller,
        name: &BoardName,
        definition: &Definition,
    ) -> Result<DefinitionPreview> {
        caller.require(Scope::Manage)?;
        caller.require_board(name)?;
        self.require_keeper(caller, name, definition).await?;
        let board = Arc::new(Board::new(
            name.clone(),
            Generation(0),
            definition.with_default_shards(self.store.default_shards()),
        )?);
        // Reads the store, not the cache, which may have an earlier board of this name.
        let existing = self.store.board(name).await?;
        let differences = existing.as_ref().map(|existing| existing.definition().differences(definition));
        let board = existing.clone().filter(|_| differences.as_ref().is_some_and(Vec::is_empty)).unwrap_or(board);
        let bytes_per_track: Vec<_> =
            board.current().each_track().map(|track| self.store.bytes_per_subject(&track)).collect();
        let (of_main, of_others) = (bytes_per_track[0], &bytes_per_track[1..]);
        Ok(DefinitionPreview {
            existing,
            differences: differences.unwrap_or_default(),
            bytes_per_subject: of_others.iter().fold(of_main, |all, track| all + *track),
            bytes_per_archived_line: board.definition().packs_periods().then_some(LINE_BYTES),
            bytes_per_track,
            id_cost: self.store.id_cost(&board),
            board,
        })
    }

    /// Returns what the ids of a board cost. No store call.
    pub fn id_cost(&self, board: &Board) -> IdCost {
        self.store.id_cost(board)
    }
}
