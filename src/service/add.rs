//! Adding increments to one board.

use std::sync::Arc;

use super::{Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::{Board, Span};
use crate::store::{Added, Batch, Outcome, Rejection, StoreError};

impl Service {
    /// Adds increments. [`StoreError::BoardChanged`] means that nothing was added, and that amounts must be parsed
    /// again with the decimals of the board as [`refreshed`](Self::refreshed) returns it. [`StoreError::MemoryFull`]
    /// means that every item was refused for lack of memory.
    pub async fn add(&self, caller: &Caller, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        caller.require(Scope::Write)?;
        self.check_once(caller, board)?;
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

    /// Checks that the item of a token that counts once does so on a board: the board remembers the id until the token
    /// has expired, from its first use on. Otherwise the token could be used again.
    pub(super) fn check_once(&self, caller: &Caller, board: &Arc<Board>) -> Result<()> {
        let (Some(_), Some(until)) = (caller.once(), caller.token_until()) else { return Ok(()) };
        let left = until.millis().saturating_sub(self.keys.now().millis());
        let horizon = board.dedupe_horizon();
        if left <= horizon {
            return Ok(());
        }
        Err(ServiceError::TokenOutlivesIds { board: board.name().clone(), horizon: Span::of_millis(horizon) })
    }
}
