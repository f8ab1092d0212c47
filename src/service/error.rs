//! What a call of the service can answer instead of a result.

use std::sync::Arc;

use crate::board::{Board, BoardName, Definition, DefinitionError, FieldFault, Metric, Span, Timestamp};
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
    /// The board has no ranking to be asked about.
    #[error("board '{0}' is not ranked: it has no rankings, look-ups or neighbours, only its subjects one by one")]
    NotRanked(BoardName),
    /// The board does not remember values.
    #[error("board '{0}' does not remember which values it counted: only COUNT_DISTINCT does")]
    NoValues(BoardName),
    /// The board cannot be read as of a past time.
    #[error("board '{board}' cannot be read as of a past time: {why}")]
    AsOfUnsupported { board: BoardName, why: &'static str },
    /// The board's oldest slot cannot be weighted.
    #[error("the oldest slot of board '{board}' cannot be weighted: {why}")]
    EdgeUnsupported { board: BoardName, why: &'static str },
    /// A longer window than the board's was asked for.
    #[error("{last} is {slots} slots of {slot}; the board keeps {most} ({window})")]
    TooLong {
        /// What was asked for.
        last: Span,
        /// How many slots that would be.
        slots: u64,
        slot: Span,
        /// How many there are to ask for.
        most: u64,
        /// The board's window.
        window: Span,
    },
    /// The window that ended then is not held, or not whole.
    #[error("'as_of': the window that ends with the slot of {as_of} is not held; the board keeps {floor} until now")]
    NotKept {
        as_of: Timestamp,
        /// Start of the oldest slot that is kept.
        floor: Timestamp,
    },
    /// A part of a question does not go with the board.
    #[error("'{field}': {detail}")]
    Misasked {
        /// The part: `last`, `from`.
        field: &'static str,
        detail: String,
    },
    /// No board serves a metric.
    #[error("no board serves {metric}{}", suggested(suggestion.as_ref()))]
    NoBoard {
        metric: Box<Metric>,
        /// The name and definition of one that would.
        suggestion: Option<(String, Box<Definition>)>,
    },
    /// No rule of that name is configured.
    #[error("there is no rule '{0}' in the configuration; GET /v1/rules lists those there are")]
    UnknownRule(String),
    /// A field that a metric or rule needs is missing or wrong.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How to define the board that is missing, for the configuration file.
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
