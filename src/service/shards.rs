//! Changes of the number of shards of a board, which continue after the call that began them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Result, Service, ServiceError, StoreError};
use crate::access::{Caller, Scope};
use crate::board::{Board, BoardName, SourceNumber};
use crate::store::CopyProgress;

/// The time for which a call waits for the end of the change that it began. Small boards are done by then, and what is
/// refused is known.
const AT_ONCE: Duration = Duration::from_secs(1);
/// The number of attempts before a call fails because the board keeps changing.
const ATTEMPTS: usize = 4;

/// The state of the shards of a board.
#[derive(Debug)]
pub struct ShardsState {
    pub board: Arc<Board>,
    /// How far the data is copied, by whichever instance, if it is. The board says to how many shards.
    pub progress: Option<CopyProgress>,
    /// Why the last change that this instance has begun has failed.
    pub failed: Option<String>,
}

/// The failures of the latest change of each board that this instance has begun.
#[derive(Default)]
pub(super) struct ShardFailures {
    known: Mutex<HashMap<BoardName, String>>,
}

impl Service {
    /// Begins to copy the data of a board to another number of shards. Until it has ended, writes to the board are
    /// refused. If it fails, the board goes on as before.
    pub async fn change_shards(
        self: &Arc<Self>,
        caller: &Caller,
        name: &BoardName,
        shards: u32,
    ) -> Result<ShardsState> {
        caller.require(Scope::Manage)?;
        let board = self.board_for_shards(caller, name).await?;
        self.shard_failures.known.lock().remove(name);
        let service = self.clone();
        // What the board has reached of removed sources is no longer needed.
        let sources = self.source_table().await?.numbers();
        let change = tokio::spawn(async move { service.redivide(board, shards, sources).await });
        // If the time is over, the change goes on.
        match tokio::time::timeout(AT_ONCE, change).await {
            Ok(Ok(Err(error))) => {
                // The caller is told, so there is nothing to remember.
                self.shard_failures.known.lock().remove(name);
                return Err(refused(name, error));
            }
            Ok(Err(stopped)) => return Err(StoreError::Backend { source: Box::new(stopped) }.into()),
            Ok(Ok(Ok(()))) | Err(_) => {}
        }
        self.shards_now(caller, name).await
    }

    async fn redivide(
        &self,
        board: Arc<Board>,
        shards: u32,
        sources: Vec<SourceNumber>,
    ) -> std::result::Result<(), StoreError> {
        let name = board.name();
        match self.store.redivide(&board, shards, &sources).await {
            Ok(divided) => {
                tracing::info!(board = %name, shards, "the board has another number of shards");
                self.shard_failures.known.lock().remove(name);
                self.registry.put(divided);
                Ok(())
            }
            Err(error) => {
                tracing::warn!(board = %name, shards, %error, "the number of shards was not changed; the board goes on as before");
                self.shard_failures.known.lock().insert(name.clone(), error.to_string());
                // If this fails, the next call finds the board changed.
                let _ = self.registry.refresh(name).await;
                Err(error)
            }
        }
    }

    /// Returns the state of the shards of a board.
    pub async fn shards(&self, caller: &Caller, name: &BoardName) -> Result<ShardsState> {
        caller.require(Scope::Read)?;
        self.shards_now(caller, name).await
    }

    async fn shards_now(&self, caller: &Caller, name: &BoardName) -> Result<ShardsState> {
        for _ in 0..ATTEMPTS {
            let board = self.board_for_shards(caller, name).await?;
            match self.store.redivision(&board).await {
                Err(StoreError::BoardChanged | StoreError::StaleEpoch) => {}
                progress => {
                    let failed = self.shard_failures.known.lock().get(name).cloned();
                    return Ok(ShardsState { board, progress: progress?, failed });
                }
            }
        }
        Err(StoreError::BoardChanged.into())
    }

    /// Ends the copying of a board's data, by whichever instance it is done. The board goes on as before.
    pub async fn end_change_of_shards(&self, caller: &Caller, name: &BoardName) -> Result<ShardsState> {
        caller.require(Scope::Manage)?;
        let board = self.board_for_shards(caller, name).await?;
        self.store.end_redivision(&board).await?;
        self.shards_now(caller, name).await
    }

    /// Returns the board as it is stored now.
    async fn board_for_shards(&self, caller: &Caller, name: &BoardName) -> Result<Arc<Board>> {
        caller.require_board(name)?;
        self.stored(name).await
    }
}

fn refused(name: &BoardName, error: StoreError) -> ServiceError {
    match error {
        StoreError::EditionsBusy { detail } => ServiceError::EditionsRefused { board: name.clone(), detail },
        error => error.into(),
    }
}
