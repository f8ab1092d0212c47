//! The values that a COUNT_DISTINCT board has counted for a subject.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::frame::WindowBounds;
use super::parameters::Parameters;
use super::problem::Problem;
use super::state::HttpState;
use super::{path, response, schemas};
use crate::board::{BoardName, Counted, Subject, Timestamp};
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
    /// Path of the next page; null on the last page.
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
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/values", operation_id = "listValues", tag = "subjects",
    params(
        ("offset" = u64, Query, minimum = 0, maximum = 1000000000, example = 0, description = "Number of values to skip. Default: 0."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000, example = 50, description = "Maximum number of values. Default: 50."),
    ),
    responses((status = 200, description = "A page of values.", body = ValuePage, example = json!({
        "board": "users-per-device", "subject": "device-1",
        "window": {"from": "2025-12-04T00:00:00Z", "to": "2026-01-03T00:00:00Z", "slots": 30},
        "as_of": "2026-01-02T10:07:00Z", "total": 2, "capped": false,
        "items": [{"value": "user-7", "last_seen": "2026-01-02T10:06:51.2Z"},
                  {"value": "user-1", "last_seen": "2025-12-24T18:00:00Z"}],
        "next": null}))),
)]
pub(super) async fn values(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let parameters = Parameters::from_request(&request, &["offset", "limit"])?;
    let offset = parameters.number("offset", 0, 0..=MAX_OFFSET)?;
    let limit = parameters.number("limit", 50, 1..=MAX_VALUES)?;
    let (name, subject) = (path::board_name(&request)?, path::subject(&request)?);
    let board = state.service.board(&name).await?;
    let lines = u32::try_from(limit).unwrap_or(u32::MAX);
    let About { board, answer: page } = state.service.values(&board, &subject, offset, lines).await?;
    let after = offset + page.items.len() as u64;
    let more = !page.items.is_empty() && after < page.total;
    // The path as it was sent contains the encoded subject.
    let next = more.then(|| format!("{}?offset={after}&limit={limit}", request.uri().path()));
    Ok(response::json(&ValuePage {
        window: WindowBounds::of(&page.frame.window, board.slots()),
        as_of: page.frame.as_of,
        total: page.total,
        capped: page.capped,
        items: page.items.into_iter().map(|(value, last_seen)| SeenValue { value, last_seen }).collect(),
        next,
        board: name,
        subject,
    }))
}
