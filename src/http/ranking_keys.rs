//! The keys of a board whose metric has `BY`: their list, the rankings of several, and the removal of one.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::Call;
use super::frame::FrameShown;
use super::parameters::{Plain, parse_key};
use super::problem::Problem;
use super::ranking_lines::{RankingLine, RankingLines};
use super::{cursor, large, object, response, schemas};
use crate::board::{BoardName, RankingKey, Timestamp};
use crate::service::{About, Page, RemovedAll, TextRange};

/// Maximum number of keys on a page of the list.
const MAX_KEYS: u64 = 1_000;
/// Maximum number of keys whose rankings a request may read, and of lines of each.
const MAX_RANKINGS: u64 = 100;
const MAX_LINES: u32 = 100;
/// Number of lines above which a request is large.
const LARGE: usize = 1_000;

/// A page of the keys of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyPage {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(flatten)]
    frame: FrameShown,
    /// Number of keys that have a ranked subject.
    keys: u64,
    /// The keys that have a ranked subject, ordered by bytes.
    #[schema(max_items = 1000)]
    items: Vec<KeyOfRanking>,
    /// Cursor of the next page; null on the last page.
    #[schema(value_type = Option<String>, required = true, max_length = 512)]
    next: Option<RankingKey>,
}

/// A key of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyOfRanking {
    #[schema(schema_with = schemas::by)]
    by: RankingKey,
}

/// List the keys of a board
///
/// Returns the keys of a board whose metric has `BY`, such as the communities of `COUNT(24h, like, post_id BY
/// community)`: those that have a ranked subject, ordered by bytes. `keys` is their exact number.
///
/// A cursor is the last key of a page, and the next page has the keys after it.
#[utoipa::path(
    get, path = "/v1/boards/{board}/keys", operation_id = "listRankingKeys", tag = "rankings",
    params(
        ("prefix" = String, Query, max_length = 512, example = "mus", description = "Beginning of the keys. Upper and lower case differ."),
        ("cursor" = String, Query, max_length = 512, description = "`next` of another page, or a key after which the list begins."),
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Period to read, on a board with a season: its name, `current` or `previous`. Default: the current one."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: the main window."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000, example = 50, description = "Maximum number of keys. Default: 50."),
    ),
    responses((status = 200, description = "A page of keys.", body = KeyPage, example = json!({
        "board": "posts-by-community",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "keys": 3,
        "items": [{"by": "music"}, {"by": "rust"}], "next": "rust"}))),
)]
pub(super) async fn list(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["prefix", "cursor", "of", "period", "window", "limit"])?;
    let limit = u32::try_from(parameters.number("limit", 50, 1..=MAX_KEYS)?).unwrap_or(u32::MAX);
    let after = parameters.text("cursor").map(|text| parse_key("cursor", text)).transpose()?;
    let prefix = parameters.text("prefix").unwrap_or_default();
    let name = call.board_name()?;
    let track = call.service().window_of_all_keys(&call.caller, &name, parameters.window()?).await?;
    // One more, which says whether there is a next page.
    let About { of: track, answer: mut found } = call
        .service()
        .ranking_keys(
            &track,
            TextRange { prefix, after: after.as_ref().map(|after| after.as_str()) },
            limit.saturating_add(1),
        )
        .await?;
    let has_next = found.keys.len() > limit as usize;
    found.keys.truncate(limit as usize);
    Ok(response::json(&KeyPage {
        board: name,
        frame: FrameShown::of(&track, &found.frame, track.slots()),
        keys: found.total,
        next: found.keys.last().filter(|_| has_next).cloned(),
        items: found.keys.into_iter().map(|by| KeyOfRanking { by }).collect(),
    }))
}

/// A body with keys whose rankings are read.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RankingsByKey)]
pub(super) struct RankingsBody {
    // Each element is checked on its own, so that an error names its index.
    #[schema(schema_with = schemas::keys)]
    keys: Vec<serde_json::Value>,
    /// Maximum number of lines of each ranking. Default: 10.
    #[serde(default = "default_lines")]
    #[schema(value_type = u32, minimum = 1, maximum = 100, required = false)]
    limit: u32,
}

fn default_lines() -> u32 {
    10
}

/// The first lines of the rankings of several keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Rankings {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// The board's metric in its canonical form.
    #[schema(value_type = String, example = "COUNT(24h, like, post_id BY community)")]
    metric: Arc<str>,
    /// The rankings, in the order of the given keys.
    #[schema(max_items = 100)]
    rankings: Vec<RankingOfKey>,
}

/// The first lines of the ranking of a key, read atomically.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RankingOfKey {
    #[schema(schema_with = schemas::by)]
    by: RankingKey,
    #[serde(flatten)]
    frame: FrameShown,
    /// Number of ranked subjects of the key; null if it is not known.
    #[schema(value_type = Option<u64>, required = true)]
    total: u64,
    /// The lines, best first; empty for a key without ranked subjects.
    #[schema(value_type = Vec<RankingLine>, max_items = 100)]
    items: RankingLines,
    /// Cursor of the next page of this ranking, for `GET …/rankings` with this `by`; null on the last page.
    #[schema(required = true, max_length = 712)]
    next: Option<String>,
}

/// Get the first lines of the rankings of several keys
///
/// Returns the first `limit` lines of the ranking of each given key, for a board whose metric has `BY`: the page *best
/// of each category*. Each ranking is read atomically, and different ones may be of different instants. A key without
/// ranked subjects has an empty ranking. Duplicates are ignored.
#[utoipa::path(
    post, path = "/v1/boards/{board}/rankings/by", operation_id = "getRankingsByKey", tag = "rankings",
    params(
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Period to read, on a board with a season: its name, `current` or `previous`. Default: the current one."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("attributes" = String, Query, max_length = 2080, example = "name,picture",
            description = "Names of the attributes that each line shows, with commas between them, or `*` for all, for at most 1,000 lines. Default: none."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: the main window."),
    ),
    request_body(content = RankingsBody, description = "1 to 100 keys.",
        example = json!({"keys": ["music", "rust"], "limit": 3})),
    responses((status = 200, description = "The rankings.", body = Rankings, example = json!({
        "board": "posts-by-community", "metric": "COUNT(24h, like, post_id BY community)",
        "rankings": [
            {"by": "music", "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
                "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 1,
                "items": [{"rank": 1, "subject": "post-1", "score": 17}], "next": null},
            {"by": "rust", "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
                "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 0, "items": [], "next": null}]}))),
)]
pub(super) async fn rankings(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    let window = call.parameters(&["of", "period", "window", "attributes"])?.window()?;
    let name = call.board_name()?;
    let track = call.service().window_of_all_keys(&call.caller, &name, window).await?;
    let body = call.json(payload).await?;
    let (keys, limit) = parse(&body)?;
    let is_large = keys.len().saturating_mul(limit as usize) > LARGE;
    if is_large && track.shown_attributes().is_some() {
        let detail = format!("with 'attributes', keys times limit may be at most {LARGE} lines");
        return Err(Problem::field("limit", detail));
    }
    let state = call.state;
    let answer = move || async move {
        let pages = state.service.pages_of_keys(&track, keys, limit).await?;
        let metric = pages.first().map_or(&track, |page| &page.of).canonical_metric().clone();
        let rankings = pages.into_iter().filter_map(RankingOfKey::of).collect();
        response::to_json(&Rankings { board: name, metric, rankings })
    };
    Ok(response::json_text(StatusCode::OK, large::handle(is_large, answer).await?))
}

impl RankingOfKey {
    fn of(read: About<Page>) -> Option<Self> {
        let About { of: track, answer: page } = read;
        Some(Self {
            by: track.key()?.clone(),
            frame: FrameShown::of(&track, &page.frame, track.slots()),
            total: page.total,
            next: cursor::beside(&track, &page, None).1,
            items: RankingLines::new(&track, page),
        })
    }
}

/// Parses a body. Returns each key once, in the order of first occurrence, and the number of lines.
fn parse(body: &[u8]) -> Result<(Vec<RankingKey>, u32), Problem> {
    let RankingsBody { keys: given, limit } = object::parse(body)?;
    if !(1..=MAX_LINES).contains(&limit) {
        let detail = format!("'limit' must be a whole number from 1 to {MAX_LINES}");
        return Err(Problem::field("limit", detail).with("minimum", 1).with("maximum", MAX_LINES));
    }
    Ok((object::distinct("keys", &given, MAX_RANKINGS, RankingKey::parse)?, limit))
}

/// The removal of a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyRemovalReceipt {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[schema(schema_with = schemas::by)]
    by: RankingKey,
    /// Number of removed subjects.
    subjects: u64,
    /// The store's time at the end of the removal.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
}

/// Remove a key
///
/// Removes all subjects of a key of a board whose metric has `BY`, from the ranking and all slots. A key without data is
/// not an error. The key can be counted again afterwards.
///
/// The removal passes over everything that the board holds, in steps while other requests are answered: it takes as long
/// as an audit. Each subject is removed as by `DELETE …/subjects/{subject}`. What is counted for the key in the meantime
/// may stay. After an error, send the request again.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/keys/{key}", operation_id = "removeRankingKey", tag = "rankings",
    responses((status = 200, description = "The key was removed.", body = KeyRemovalReceipt, example = json!({
        "board": "posts-by-community", "by": "music", "subjects": 12, "as_of": "2026-01-02T10:07:00Z"}))),
)]
pub(super) async fn remove(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let (name, by) = (call.board_name()?, call.ranking_key()?);
    let RemovedAll { subjects, as_of } = call.service().remove_key(&call.caller, &name, &by).await?;
    Ok(response::json(&KeyRemovalReceipt { board: name, by, subjects, as_of }))
}
