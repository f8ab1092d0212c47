//! The values that a COUNT_DISTINCT board has counted for a subject.

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::call::Call;
use super::frame::WindowBounds;
use super::problem::Problem;
use super::{cursor, response, schemas};
use crate::board::{BoardName, Counted, RankingKey, Subject, Timestamp};
use crate::service::About;

/// Maximum number of values on a page.
const MAX_VALUES: u64 = 1_000;

/// Maximum offset of a page, which exceeds the number of values of any subject.
const MAX_OFFSET: u64 = 1_000_000_000;

/// A page of values of one subject.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ValuePage {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    window: WindowBounds,
    /// The store's time of the response.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
    /// Number of values in the window, which is the score of the subject.
    total: u64,
    /// Whether values of this window were dropped because of the board's `max_values`.
    capped: bool,
    /// The values, last seen first; values last seen at the same time are in descending byte order.
    #[schema(max_items = 1000)]
    items: Vec<SeenValue>,
    /// Cursor of the next page, for `cursor`; null on the last page.
    #[schema(required = true)]
    next: Option<String>,
}

/// A value and the time at which it was last seen.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SeenValue {
    #[schema(schema_with = schemas::value)]
    value: Counted,
    /// Time of the newest event with this value.
    #[schema(schema_with = schemas::time)]
    last_seen: Timestamp,
}

/// List the values of a subject
///
/// Returns the distinct values that a COUNT_DISTINCT board has counted for the subject within its window, last seen
/// first, read atomically.
///
/// `next` is a cursor of the page after this one: a place in the order of the values, not a number of values. A value
/// that is not seen again, and does not expire, is on exactly one of the pages that are read one after the other. A
/// value that is seen again moves to the beginning of the list.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/values", operation_id = "listValues", tag = "subjects",
    params(
        ("offset" = u64, Query, minimum = 0, maximum = 1000000000, description = "Number of values to skip. Default: 0."),
        ("cursor" = String, Query, max_length = 712, description = "`next` of another page of this board. Not together \
            with `offset`."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: the main window, or the one that `cursor` belongs to."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000, example = 50, description = "Maximum number of values. Default: 50."),
    ),
    responses((status = 200, description = "A page of values.", body = ValuePage, example = json!({
        "board": "users-per-device", "subject": "device-1",
        "window": {"from": "2025-12-04T00:00:00Z", "to": "2026-01-03T00:00:00Z", "slots": 30},
        "as_of": "2026-01-02T10:07:00Z", "total": 3, "capped": false,
        "items": [{"value": "user-7", "last_seen": "2026-01-02T10:06:51.2Z"},
                  {"value": "user-1", "last_seen": "2025-12-24T18:00:00Z"}],
        "next": cursor::VALUES_EXAMPLE}))),
)]
pub(super) async fn values(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["offset", "cursor", "window", "of", "by", "limit"])?;
    let offset = parameters.number("offset", 0, 0..=MAX_OFFSET)?;
    let limit = parameters.number("limit", 50, 1..=MAX_VALUES)?;
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let cursor = cursor::requested(&parameters, cursor::parse_values)?;
    let (name, subject) = (call.board_name()?, call.subject()?);
    let of_cursor = cursor.as_ref().map(|cursor| cursor.track);
    let track = call.service().window(&call.caller, &name, parameters.window()?, of_cursor).await?;
    let About { of: track, answer: page } = match &cursor {
        Some(cursor) => call.service().values_at(&track, &subject, cursor, limit).await?,
        None => call.service().values(&track, &subject, offset, limit).await?,
    };
    let next = cursor::after_values(&track, &page);
    Ok(response::json(&ValuePage {
        window: WindowBounds::of(&track, &page.frame.window, track.slots()),
        as_of: page.frame.as_of,
        total: page.total,
        capped: page.capped,
        items: page.items.into_iter().map(|(value, last_seen)| SeenValue { value, last_seen }).collect(),
        next,
        board: name,
        by: track.key().cloned(),
        subject,
    }))
}
