//! The boards of a store, each with its tables behind a lock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::tables::Tables;
use crate::board::{Board, BoardName};

/// A board and what memory holds of it.
#[derive(Debug)]
pub(super) struct LiveBoard {
    pub board: Arc<Board>,
    /// Held for one call, one step or one piece of a fold; never across an await.
    pub tables: Mutex<Tables>,
}

/// All boards by name. Locked for a look-up, or to add or remove one.
pub(super) type Boards = RwLock<BTreeMap<BoardName, Arc<LiveBoard>>>;
