//! Adding increments to one board.

use std::sync::Arc;

use super::{AboutBoard, Result, Service, ServiceError};
use crate::board::Board;
use crate::store::{Added, Batch, Increment, Outcome, StoreError};

/// The result of parsing a request for one board, for [`Service::add_parsed`].
pub struct Parsed<T> {
    /// The increments to add.
    pub increments: Vec<Increment>,
    /// Whether `rest`, which has the errors of items that became no increments, could differ under another definition.
    pub depends_on_board: bool,
    /// Passed through to the caller.
    pub rest: T,
}

impl Service {
    /// Adds increments. [`StoreError::BoardChanged`] means that nothing was added, and that amounts must be parsed
    /// again with the decimals of the board as [`board`](Self::board) now returns it.
    pub async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let added = self.store.add(board, batch).await;
        if matches!(added, Err(StoreError::BoardChanged)) {
            self.refreshed(board).await?;
        }
        Ok(added?)
    }

    /// Parses a request for a board and adds its increments. If the board was redefined meanwhile, the request is
    /// parsed and added once more for the new board, which is then the one that is returned.
    pub async fn add_parsed<T>(
        &self,
        board: &Arc<Board>,
        return_scores: bool,
        parse: impl Fn(&Board) -> Parsed<T>,
    ) -> Result<AboutBoard<(T, Vec<Outcome>)>> {
        let mut current = board.clone();
        let answer = match self.add_parsed_once(&current, return_scores, &parse).await? {
            Some(answer) => answer,
            None => {
                current = self.board(board.name()).await?;
                let again = self.add_parsed_once(&current, return_scores, &parse).await?;
                again.ok_or(StoreError::BoardChanged)?
            }
        };
        Ok(AboutBoard { of: current, answer })
    }

    /// Parses and adds once; `None` if the board was redefined, in which case nothing was added and the registry has
    /// the new board.
    async fn add_parsed_once<T>(
        &self,
        board: &Arc<Board>,
        return_scores: bool,
        parse: &impl Fn(&Board) -> Parsed<T>,
    ) -> Result<Option<(T, Vec<Outcome>)>> {
        let Parsed { increments, depends_on_board, rest } = parse(board);
        if increments.is_empty() {
            // With nothing to add the store cannot report a stale board, so check here.
            let is_stale = depends_on_board && !self.refreshed(board).await?.is_same_as(board);
            return Ok((!is_stale).then(|| (rest, Vec::new())));
        }
        match self.add(board, Batch { increments, return_scores }).await {
            Ok(added) => Ok(Some((rest, added.outcomes))),
            Err(ServiceError::Store(StoreError::BoardChanged)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
