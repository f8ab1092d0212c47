//! Errors of the service.

use std::sync::Arc;

use crate::access::{Denied, KeyError, KeyId};
use crate::board::{
    Board, BoardEdition, BoardName, CloseError, Definition, DefinitionError, Edition, EditionRole, FieldFault,
    KeyFormError, Metric, PeriodName, Position, SourceName, Span, SuccessorError, TiersError, Timestamp, WindowLength,
};
use crate::store::{ImportId, StoreError, TableName};

/// Returns how a board gets an edition of this role.
fn way_to(role: EditionRole, board: &BoardName) -> String {
    match role {
        EditionRole::Next => format!("; PUT /v1/boards/{board}/next gives it one"),
        EditionRole::Previous => "; a board has one for some time after a promotion".to_owned(),
    }
}

/// Returns since when a successor is complete.
fn incomplete(full_at: Option<Timestamp>) -> String {
    match full_at {
        Some(full_at) => format!("is complete from {full_at} only: until then its scores lack what the board has"),
        None => "never has all that the board has, because nothing leaves its window".to_owned(),
    }
}

/// Returns what names the key of a ranking: the field after `BY`.
fn key_of(board: &Board) -> String {
    board.definition().metric.by.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Returns the windows that a read of the edition may choose.
fn windows_of(edition: &Edition) -> String {
    let lengths: Vec<String> = edition.windows().iter().map(|window| window.length().to_string()).collect();
    match (edition.kept_slots(), lengths.as_slice()) {
        (Some(kept_slots), [only]) => format!(
            "its only window is {only}; its kept slots, of {}, serve shorter windows of single subjects",
            kept_slots.length()
        ),
        (None, [only]) => format!("its only window is {only}"),
        (_, several) => format!("the board has the windows {}", several.join(", ")),
    }
}

/// Returns what is counted: a source, or the fill of a board with it.
fn of_source(source: &SourceName, fill: Option<&BoardName>) -> String {
    match fill {
        Some(board) => format!("the fill of board '{board}' with source '{source}'"),
        None => format!("source '{source}'"),
    }
}

/// Returns the names of boards.
fn named(boards: &[BoardName]) -> String {
    let names: Vec<String> = boards.iter().map(|name| format!("'{name}'")).collect();
    format!("the given {} {}", if names.len() == 1 { "board" } else { "boards" }, names.join(", "))
}

/// Returns the end of an error message about an unknown period.
fn periods(known: &[PeriodName]) -> String {
    match known {
        [] => String::new(),
        [newest] => format!("; it has {newest}"),
        [newest, .., oldest] => format!("; it has {} from {oldest} to {newest}", known.len()),
    }
}

/// An error of the service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No board with this name exists.
    #[error("unknown board '{0}'")]
    UnknownBoard(BoardName),
    /// The board has no edition of this role.
    #[error("board '{board}' has no {} edition{}", role.name(), way_to(*role, board))]
    UnknownEdition { board: BoardName, role: EditionRole },
    /// A board with a season does not support the operation.
    #[error("board '{board}': {detail}")]
    SeasonUnsupported { board: BoardName, detail: String },
    /// The current period of the board cannot be closed.
    #[error("the period of board '{board}' cannot be closed: {reason}")]
    NotClosed { board: BoardName, reason: CloseError },
    /// The board has no season, so it has no periods.
    #[error("board '{0}' has no season, so it has no periods")]
    NoSeason(BoardName),
    /// The board has no period of this name. `known` are those that it has, the newest first.
    #[error("board '{board}' has no period '{period}'{}", periods(known))]
    UnknownPeriod { board: BoardName, period: PeriodName, known: Vec<PeriodName> },
    /// The board has another edition already, or its editions cannot be changed now.
    #[error("{detail}")]
    EditionsRefused { board: BoardName, detail: String },
    /// The successor of the board lacks what the board counted before it. It is complete from `full_at`, if ever.
    #[error("the successor of board '{board}' {}; early=true lets it take over as it is", incomplete(*full_at))]
    NotFull { board: BoardName, full_at: Option<Timestamp> },
    /// There is no room for the tiers of more boards.
    #[error(
        "the tiers of all boards take {} rows, or {} bytes, and can take no more; remove those of another board with an empty \
         list",
        TableName::MAX_ROWS,
        TableName::MAX_BYTES
    )]
    TooManyTiers,
    /// The tiers are not possible on the board.
    #[error(transparent)]
    Tiers(#[from] TiersError),
    /// The definition cannot be that of a successor.
    #[error(transparent)]
    Successor(#[from] SuccessorError),
    /// The board exists with a different definition.
    #[error(
        "board '{}' exists with a different definition (different: {}), which cannot be changed in place: {}choose another name, or remove the board with its data first",
        existing.name(),
        keys.join(", "),
        if existing.season().is_none() { "begin a dual run with the new definition (PUT …/next), " } else { "" }
    )]
    Conflict {
        /// The existing board.
        existing: Arc<Board>,
        /// The keys of the definition that differ.
        keys: Vec<&'static str>,
    },
    /// There are as many boards as there may be.
    #[error("there are as many boards as max_boards allows, {limit}")]
    TooManyBoards { limit: usize },
    /// The definition is invalid.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The board is unranked.
    #[error("board '{0}' is not ranked; rankings, lookups and neighbors need a ranked board")]
    NotRanked(BoardName),
    /// The board that is to keep the attributes of the board's subjects cannot do so.
    #[error("board '{board}' names board '{keeper}' for its attributes, which {why}")]
    NoKeeper { board: BoardName, keeper: BoardName, why: &'static str },
    /// The board has a ranking for each key, and the request names none.
    #[error(
        "board '{}' has a ranking for each {}, and the request names none; give it as 'by'",
        board.name(),
        key_of(board)
    )]
    MissingKey { board: Arc<Board> },
    /// The request names a key, and the board has one ranking.
    #[error(
        "board '{}' has one ranking and no keys, because its metric {} has no BY",
        board.name(),
        board.definition().metric
    )]
    UnexpectedKey { board: Arc<Board> },
    /// No event gives the key.
    #[error("'by': {error}")]
    KeyForm { board: Arc<Board>, error: KeyFormError },
    /// The board has no window of the requested length.
    #[error("board '{}' has no window '{requested}'; {}", edition.board().name(), windows_of(edition))]
    UnknownWindow {
        edition: BoardEdition,
        /// The requested length.
        requested: WindowLength,
    },
    /// The cursor belongs to one window of the board, and the read names a different one.
    #[error(
        "the cursor belongs to the window {of}, not to {requested}; leave out 'window', or begin with the first page"
    )]
    CursorOfOtherWindow { of: WindowLength, requested: WindowLength },
    /// The place at which a page was to continue belongs to an earlier ranking.
    #[error(
        "board '{0}' was defined again, or has dropped the period, since the page with this cursor; begin with the first page"
    )]
    StaleCursor(BoardName),
    /// Contents cannot be imported into the board.
    #[error("{detail}")]
    ImportRefused {
        /// The import that is open.
        open: Option<ImportId>,
        detail: String,
    },
    /// Contents are not in the form that the board needs.
    #[error("{}{detail}", line.map_or_else(String::new, |line| format!("line {line}: ")))]
    InvalidContents {
        /// The number of the line, if it is known.
        line: Option<u64>,
        detail: String,
    },
    /// The board does not store the values that it counts.
    #[error("board '{0}' does not store the values it counts; only COUNT_DISTINCT boards do")]
    NoValues(BoardName),
    /// The board cannot be read as of a past time.
    #[error("board '{board}' cannot be read as of a past time: {why}")]
    AsOfUnsupported { board: BoardName, why: &'static str },
    /// The oldest slot of the board cannot be weighted.
    #[error("the oldest slot of board '{board}' cannot be weighted: {why}")]
    EdgeUnsupported { board: BoardName, why: &'static str },
    /// The requested window is longer than that of the board.
    #[error("{last} is {slots} slots of {slot}; the board keeps {most} ({window})")]
    TooLong {
        /// The requested duration.
        last: Span,
        /// The number of slots that it covers.
        slots: u64,
        slot: Span,
        /// The number of slots in the window of the board.
        most: u64,
        /// The length of the window of the board.
        window: WindowLength,
    },
    /// Slots of the requested past window are no longer kept.
    #[error(
        "'as_of': the window that ends with the slot of {as_of} is not kept; the board keeps slots from {floor} until now"
    )]
    NotKept {
        as_of: Timestamp,
        /// Start of the oldest slot that is kept.
        floor: Timestamp,
    },
    /// A parameter of a query does not fit the board.
    #[error("'{field}': {detail}")]
    InvalidQuery {
        /// The parameter: `last`, `from` or `cursor`.
        field: &'static str,
        detail: String,
    },
    /// The item of a token counts once, and a board that it would reach forgets ids before the token expires.
    #[error(
        "the token is for an item that counts once, and board '{board}' remembers ids for {horizon}, but has to until a \
         minute after the token's 'exp'"
    )]
    TokenOutlivesIds { board: BoardName, horizon: Span },
    /// No board serves a metric.
    #[error("no board serves {metric}")]
    NoBoard {
        metric: Box<Metric>,
        /// Name and definition of a board that would serve it.
        suggestion: Option<(String, Box<Definition>)>,
    },
    /// None of the boards that a query or a rule names serves a metric.
    #[error("{metric} is not served by {}", named(boards))]
    NotServed {
        metric: Box<Metric>,
        /// The boards that were named.
        boards: Box<[BoardName]>,
    },
    /// No rule with this name is configured.
    #[error("unknown rule '{0}'")]
    UnknownRule(String),
    /// A field that a metric or rule needs is missing or invalid.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// No source with this name exists.
    #[error("unknown source '{0}'")]
    UnknownSource(SourceName),
    /// The boards of the source have not all reached the position after which a portion begins, but only this one.
    #[error("{} is counted up to {reached} only; send what follows that first", of_source(source_name, fill.as_ref()))]
    SourceBehind {
        source_name: SourceName,
        /// The board that was to be filled.
        fill: Option<BoardName>,
        reached: Position,
    },
    /// An event before a portion waits to be counted.
    #[error("source '{source_name}' waits for what follows {reached}; send that again later")]
    SourceWaits { source_name: SourceName, reached: Position },
    /// The board cannot be filled with what was in the log before it joined the source.
    #[error("board '{board}' cannot be filled: {why}")]
    FillRefused { board: BoardName, why: String },
    /// No board counts the events of the source.
    #[error("source '{0}' has no boards; define one of those that it names, or name others")]
    SourceWithoutBoards(SourceName),
    /// There is no room for the boards of the source.
    #[error("source '{0}' has no room for more boards; let several sources have the log, each with some of the boards")]
    TooManyBoardsOfSource(SourceName),
    /// The caller may not do this.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// No key with this id exists.
    #[error("unknown key {0}")]
    UnknownKey(KeyId),
    /// The key is in the configuration, which only an operator of the machine can change.
    #[error("the key {0} is in the configuration; change or remove it there")]
    ConfiguredKey(KeyId),
    /// Somebody else changed the key at the same time.
    #[error("the key {0} was changed or revoked at the same time")]
    KeyChanged(KeyId),
    /// A key cannot be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
