//! The boards of the configuration. They are defined again if the store was emptied from outside the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::{counter, describe_counter};
use parking_lot::Mutex;

use super::new_board::new_board;
use crate::board::{BoardName, Definition};
use crate::store::{self, Store, StoreError};

/// The number of times the store was found emptied.
const EMPTIED: &str = "rolltop_store_emptied_total";

/// The boards of the configuration.
pub(super) struct Configured {
    store: Arc<dyn Store>,
    boards: Mutex<Vec<(BoardName, Definition)>>,
    /// Held while the boards are defined again, so that only one task does this at a time.
    turn: tokio::sync::Mutex<()>,
    /// Whether the store was found emptied and not all boards are known to be defined again.
    is_restoring: AtomicBool,
}

impl Configured {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        describe_counter!(EMPTIED, "How often this instance has found the store emptied and defined its boards again");
        // What Prometheus has not seen at 0 has not increased.
        counter!(EMPTIED).increment(0);
        let (boards, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { store, boards, turn, is_restoring: AtomicBool::new(false) }
    }

    /// Sets the boards to be defined again.
    pub(super) fn set(&self, boards: Vec<(BoardName, Definition)>) {
        *self.boards.lock() = boards;
    }

    /// Returns whether this board is in the configuration.
    pub(super) fn contains(&self, name: &BoardName) -> bool {
        self.boards.lock().iter().any(|(configured, _)| configured == name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.boards.lock().is_empty()
    }

    /// Checks the store. If it was emptied, opens it again and defines the boards. Returns the error that prevented
    /// this, or otherwise the state of the store after it.
    pub(super) async fn check(&self) -> store::Result<()> {
        let found = self.store.check().await;
        match found {
            Err(StoreError::Emptied { .. }) => {
                self.restore().await?;
                self.store.check().await
            }
            Ok(()) if self.is_restoring.load(Ordering::Acquire) => self.restore().await.map(drop),
            found => found,
        }
    }

    /// Defines the boards again if the store was emptied. Returns `false` if there was nothing to do.
    pub(super) async fn restore(&self) -> store::Result<bool> {
        let _turn = self.turn.lock().await;
        match self.store.check().await {
            Err(error @ StoreError::Emptied { .. }) => {
                tracing::error!(%error, "all counted data is lost");
                if !self.is_restoring.swap(true, Ordering::AcqRel) {
                    counter!(EMPTIED).increment(1);
                }
                self.store.reopen().await?;
            }
            found => found?,
        }
        if !self.is_restoring.load(Ordering::Acquire) {
            return Ok(false);
        }
        let boards = self.boards.lock().clone();
        for (name, definition) in &boards {
            let invalid = |error| StoreError::Setup { detail: format!("board '{name}': {error}") };
            match self.store.define(new_board(name, definition).map_err(invalid)?).await {
                Ok(store::Defined::Conflict(_)) | Err(StoreError::Unreadable { .. }) => {
                    tracing::error!(
                        board = name.as_str(),
                        "a board of the configuration has since been defined differently"
                    );
                }
                defined => drop(defined?),
            }
        }
        self.is_restoring.store(false, Ordering::Release);
        tracing::info!(boards = boards.len(), "the boards of the configuration have been defined again");
        Ok(true)
    }
}
