//! The errors of the service.

use std::sync::Arc;

use crate::board::{Board, BoardName, Definition, DefinitionError, FieldFault, Metric, Span, Timestamp};
use crate::store::StoreError;

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No board with this name is defined.
    #[error("there is no board '{0}'; define it with PUT /v1/boards/{0}")]
    UnknownBoard(BoardName),
    /// The board exists with a different definition.
    #[error(
        "board '{}' exists with another {}; a board's definition cannot be changed in place: delete it first, or choose another name",
        existing.name(),
        keys.join(", ")
    )]
    Conflict {
        /// The existing board.
        existing: Arc<Board>,
        /// The keys in which the definitions differ.
        keys: Vec<&'static str>,
    },
    /// The definition is invalid.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The board is unranked, and the call needs a ranking.
    #[error("board '{0}' is not ranked: it has no rankings, look-ups or neighbours, only its subjects one by one")]
    NotRanked(BoardName),
    /// The board does not store values.
    #[error("board '{0}' does not remember which values it counted: only COUNT_DISTINCT does")]
    NoValues(BoardName),
    /// The board cannot be read as of a past time.
    #[error("board '{board}' cannot be read as of a past time: {why}")]
    AsOfUnsupported { board: BoardName, why: &'static str },
    /// The oldest slot of the board cannot be weighted.
    #[error("the oldest slot of board '{board}' cannot be weighted: {why}")]
    EdgeUnsupported { board: BoardName, why: &'static str },
    /// The requested window is longer than the board's.
    #[error("{last} is {slots} slots of {slot}; the board keeps {most} ({window})")]
    TooLong {
        /// The requested window.
        last: Span,
        /// The number of slots that it has.
        slots: u64,
        slot: Span,
        /// The largest number of slots that can be requested.
        most: u64,
        /// The board's window.
        window: Span,
    },
    /// The requested past window is not stored, or not completely.
    #[error("'as_of': the window that ends with the slot of {as_of} is not held; the board keeps {floor} until now")]
    NotKept {
        as_of: Timestamp,
        /// The start of the oldest stored slot.
        floor: Timestamp,
    },
    /// A part of a question does not fit the board.
    #[error("'{field}': {detail}")]
    Misasked {
        /// The name of the part: `last`, `from`.
        field: &'static str,
        detail: String,
    },
    /// No board serves the metric.
    #[error("no board serves {metric}{}", suggested(suggestion.as_ref()))]
    NoBoard {
        metric: Box<Metric>,
        /// The name and definition of a board that would serve it.
        suggestion: Option<(String, Box<Definition>)>,
    },
    /// No rule with this name is configured.
    #[error("there is no rule '{0}' in the configuration; GET /v1/rules lists those there are")]
    UnknownRule(String),
    /// A field that a metric or rule needs is missing or invalid.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the text that suggests the missing board, in the form of the configuration file.
fn suggested(suggestion: Option<&(String, Box<Definition>)>) -> String {
    match suggestion {
        Some((name, definition)) => format!(
            "; this would: [boards.\"{name}\"] metric = {}, slot = \"{}\", ranked = false",
            toml::Value::from(definition.metric.to_string()),
            definition.slot
        ),
        None => ", and none could: no usual slot divides its window into 2,000 slots at most".to_owned(),
    }
}
