//! The boards this instance knows, so that a request needs no look-up in the store.
//!
//! The cache may be stale: every store call carries the board's generation, and one that is gone answers
//! [`StoreError::BoardChanged`](crate::store::StoreError::BoardChanged), upon which the board is looked up again.
//! That is how a board defined, removed or defined anew through one instance holds on all of them at once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::board::{Board, BoardName};
use crate::store::{self, Store};

/// Boards by name, filled from the store as they are asked for.
pub(super) struct Registry {
    store: Arc<dyn Store>,
    /// Read on every request, written when a board comes or goes; never held across an await.
    known: RwLock<HashMap<BoardName, Arc<Board>>>,
}

impl Registry {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: RwLock::default() }
    }

    /// The board, from the cache if it is there. A store call only for a name not known here.
    pub(super) async fn get(&self, name: &BoardName) -> store::Result<Option<Arc<Board>>> {
        let known = self.known.read().get(name).cloned();
        match known {
            Some(board) => Ok(Some(board)),
            None => self.refresh(name).await,
        }
    }

    /// The board as the store has it now. One store call.
    pub(super) async fn refresh(&self, name: &BoardName) -> store::Result<Option<Arc<Board>>> {
        let found = self.store.board(name).await?;
        match &found {
            Some(board) => self.put(board.clone()),
            None => self.forget(name),
        }
        Ok(found)
    }

    /// All boards as the store has them now.
    pub(super) async fn refresh_all(&self) -> store::Result<Vec<Arc<Board>>> {
        let boards = self.store.boards().await?;
        let mut known = self.known.write();
        known.clear();
        known.extend(boards.iter().map(|board| (board.name().clone(), board.clone())));
        Ok(boards)
    }

    pub(super) fn put(&self, board: Arc<Board>) {
        self.known.write().insert(board.name().clone(), board);
    }

    pub(super) fn forget(&self, name: &BoardName) {
        self.known.write().remove(name);
    }

    /// The boards known here, without asking the store.
    pub(super) fn known(&self) -> Vec<Arc<Board>> {
        self.known.read().values().cloned().collect()
    }
}
