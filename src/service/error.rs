//! What a call of the service can answer instead of a result.

use std::sync::Arc;

use crate::board::{Board, BoardName, DefinitionError};
use crate::store::StoreError;

/// Why the service did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No board of that name is defined.
    #[error("there is no board '{0}'; define it with PUT /v1/boards/{0}")]
    UnknownBoard(BoardName),
    /// The board holds data of another definition.
    #[error(
        "board '{}' exists with another {}; a board's definition cannot be changed in place: delete it first, or choose another name",
        existing.name(),
        keys.join(", ")
    )]
    Conflict {
        /// The board as it is.
        existing: Arc<Board>,
        /// The keys in which the definitions differ.
        keys: Vec<&'static str>,
    },
    /// The definition itself is unsound.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
