//! Adding increments to one board.

use std::sync::Arc;

use super::{Result, Service};
use crate::board::Board;
use crate::store::{Added, Batch, Outcome, Rejection, StoreError};

impl Service {
    /// Adds increments. [`StoreError::BoardChanged`] means that nothing was added, and that amounts must be parsed
    /// again with the decimals of the board as [`refreshed`](Self::refreshed) returns it. [`StoreError::MemoryFull`]
    /// means that every item was refused for lack of memory.
    pub async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let added = self.store.add(board, batch).await;
        if matches!(added, Err(StoreError::BoardChanged)) {
            self.refreshed(board).await?;
        }
        let added = added?;
        let is_refused = |outcome: &Outcome| matches!(outcome, Outcome::Rejected(Rejection::MemoryFull));
        if !added.outcomes.is_empty() && added.outcomes.iter().all(is_refused) {
            return Err(StoreError::MemoryFull.into());
        }
        Ok(added)
    }
}
