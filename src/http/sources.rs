//! Sources: logs whose events count once, because each has a position.

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::parameters::Plain;
use super::problem::Problem;
use super::sent_items::{SentItems, SentShown};
use super::{object, response, schemas};
use crate::access::{BoardPatterns, KeyId};
use crate::board::{BoardName, Position, SourceName};
use crate::service::{BoardOfSource, FillOfSource, SourceDefinition, SourceState};

/// The largest number of keys of a source.
const MAX_KEYS: usize = 64;

/// A source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Source)]
struct SourceShown {
    #[schema(schema_with = schemas::source)]
    source: SourceName,
    /// The boards that count its events: names, and beginnings of names with `*` after them.
    #[schema(value_type = Vec<String>)]
    boards: BoardPatterns,
    /// The ids of the keys that may send its events, beside those with the scope `manage`.
    #[schema(value_type = Vec<String>)]
    keys: Vec<KeyId>,
    /// What was sent of its log to the instance that answers; absent if nothing was since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sent: Option<SentShown>,
}

/// A source and how far it is counted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SourceState, example = example)]
struct SourceStateShown {
    #[serde(flatten)]
    source: SourceShown,
    /// The position up to which all boards have counted the source, those with damaged data excepted: go on after it. Null
    /// if no board has joined, as before the first request: begin where you want the boards to.
    #[schema(schema_with = schemas::position_or_null, required = true)]
    reached: Option<Position>,
    /// The boards that have joined the source, by name. A new board joins with the next request, where the source is then.
    joined: Vec<JoinedBoard>,
}

/// A board of a source.
#[derive(Debug, Serialize, ToSchema)]
struct JoinedBoard {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// The position at which the board joined: its events are those after it.
    #[schema(schema_with = schemas::position)]
    from: Position,
    /// The position up to which the board has counted the source. Null if the data of the board is damaged.
    #[schema(schema_with = schemas::position_or_null, required = true)]
    reached: Option<Position>,
    /// How far the board is filled with what was in the log before it joined; absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fill: Option<BoardFill>,
}

/// A board that is filled with what was in the log before it joined.
#[derive(Debug, Serialize, ToSchema)]
struct BoardFill {
    /// The position after which the fill begins.
    #[schema(schema_with = schemas::position)]
    from: Position,
    /// The position up to which the fill goes, at which the board has joined.
    #[schema(schema_with = schemas::position)]
    until: Position,
    /// The position up to which the board has counted: go on after it. Null if the data of the board is damaged.
    #[schema(schema_with = schemas::position_or_null, required = true)]
    reached: Option<Position>,
}

/// The sources.
#[derive(Debug, Serialize, ToSchema)]
struct SourceList {
    /// The sources whose boards the caller may all use, by name.
    items: Vec<SourceShown>,
    /// Always null: the list has one page.
    #[schema(value_type = Option<String>, required = true)]
    next: (),
}

/// What a source is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewSource {
    /// The boards that count its events: names, and beginnings of names with `*` after them. Boards that are defined later
    /// are among them. Default: all.
    #[serde(default = "BoardPatterns::all")]
    #[schema(value_type = Vec<String>, required = false, min_items = 1, max_items = 64)]
    boards: BoardPatterns,
    /// The ids of the keys that may send its events, beside those with the scope `manage`. A key must be for all boards of
    /// the source. Default: none.
    #[serde(default)]
    #[schema(value_type = Vec<String>, required = false, max_items = 64)]
    keys: Vec<KeyId>,
}

impl SourceShown {
    fn of(source: SourceName, definition: SourceDefinition, sent: &SentItems) -> Self {
        let SourceDefinition { boards, keys } = definition;
        let sent = sent.of(&source);
        Self { source, boards, keys, sent }
    }
}

impl SourceStateShown {
    fn of(state: SourceState, sent: &SentItems) -> Self {
        let SourceState { name, definition, reached, boards } = state;
        let fill = |FillOfSource { from, until, reached }| BoardFill { from, until, reached };
        let joined = |BoardOfSource { board, joined, reached, fill: own }| JoinedBoard {
            board,
            from: joined,
            reached,
            fill: own.map(fill),
        };
        let joined = boards.into_iter().map(joined).collect();
        Self { source: SourceShown::of(name, definition, sent), reached, joined }
    }
}

/// An example of a source in a response.
fn example() -> Value {
    json!({"source": "likes-0", "boards": ["hot-*"], "keys": ["5f1c2a9d04b7e386"], "reached": "41",
        "joined": [{"board": "hot-posts", "from": "start", "reached": "41"}], "sent": {"accepted": 40, "repeated": 0,
        "rejected": {"too_late": 1}, "newest": "2026-01-01T10:07:00Z", "per_second": 0.7}})
}

/// List sources
///
/// Returns the sources whose boards the caller may all use, ordered by name, with what was sent of them to this instance.
/// `GET /v1/sources/{source}` says how far one is counted.
#[utoipa::path(
    get, path = "/v1/sources", operation_id = "listSources", tag = "sources",
    responses((status = 200, description = "The sources.", body = SourceList, example = json!({
        "items": [{"source": "likes-0", "boards": ["hot-*"], "keys": ["5f1c2a9d04b7e386"]}], "next": null}))),
)]
pub(super) async fn list(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let sources = call.service().sources(&call.caller).await?;
    let sent = &call.state.sent_items;
    let items = sources.into_iter().map(|(name, definition)| SourceShown::of(name, definition, sent)).collect();
    Ok(response::json(&SourceList { items, next: () }))
}

/// Get a source
///
/// Returns the source with the position up to which it is counted. Whoever sends its log goes on after `reached`, and
/// needs to remember nothing.
#[utoipa::path(
    get, path = "/v1/sources/{source}", operation_id = "getSource", tag = "sources",
    responses((status = 200, description = "The source.", body = SourceStateShown, example = json!(example()))),
)]
pub(super) async fn get(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let state = call.service().source(&call.caller, &call.source_name()?).await?;
    Ok(response::json(&SourceStateShown::of(state, &call.state.sent_items)))
}

/// Define a source
///
/// A source is one ordered log: the partition of a topic, a stream, a file. Each of its events has a position, and each of
/// its boards counts each event once, however often, by whomever and after whatever crash events are sent: see `source` of
/// `POST /v1/events`.
///
/// Can be sent again with other boards or keys; what is counted stays. A board that is not among the boards any more leaves
/// the source. If it is added again, it goes on where the source is then.
#[utoipa::path(
    put, path = "/v1/sources/{source}", operation_id = "defineSource", tag = "sources",
    request_body(content = NewSource, description = "The source.", examples(
        ("all boards" = (value = json!({}))),
        ("some boards" = (value = json!({"boards": ["hot-*", "top-sellers"], "keys": ["5f1c2a9d04b7e386"]}))))),
    responses(
        (status = 200, description = "The source exists and has this definition now.", body = SourceStateShown,
            example = json!(example())),
        (status = 201, description = "The source is new.", body = SourceStateShown,
            headers(("location" = String, description = "Path of the source."))),
    ),
)]
pub(super) async fn put(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let name = call.new_source_name()?;
    let body = call.json(payload).await?;
    let NewSource { boards, keys } = object::parse(&body)?;
    if boards.is_empty() {
        return Err(Problem::field("boards", "'boards' must name at least one board or pattern, such as \"hot-*\""));
    }
    if keys.len() > MAX_KEYS {
        return Err(Problem::field("keys", format!("'keys' may name at most {MAX_KEYS} keys")));
    }
    let definition = SourceDefinition { boards, keys };
    let (state, is_new) = call.service().define_source(&call.caller, &name, &definition).await?;
    if is_new {
        call.state.sent_items.forget(&name);
    }
    Ok(response::defined(is_new, &format!("/v1/sources/{name}"), &SourceStateShown::of(state, &call.state.sent_items)))
}

/// Remove a source
///
/// Returns its definition. What its boards have counted stays. If a source of this name is defined again, it is another one: its boards count all
/// events that are sent for it.
#[utoipa::path(
    delete, path = "/v1/sources/{source}", operation_id = "removeSource", tag = "sources",
    responses((status = 200, description = "The removed source.", body = SourceShown, example = json!(
        {"source": "likes-0", "boards": ["hot-*"], "keys": ["5f1c2a9d04b7e386"]}))),
)]
pub(super) async fn delete(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let name = call.source_name()?;
    let definition = call.service().remove_source(&call.caller, &name).await?;
    let removed = SourceShown::of(name, definition, &call.state.sent_items);
    call.state.sent_items.forget(&removed.source);
    Ok(response::json(&removed))
}
