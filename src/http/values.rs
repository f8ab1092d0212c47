//! The values that a COUNT_DISTINCT board remembers of a subject.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::WindowBounds;
use super::openapi::{board_schema, subject_schema, time_schema, value_schema};
use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, address, answer};
use crate::board::{BoardName, Counted, Subject, Timestamp};
use crate::service::About;

/// The most values of a page.
const MOST_VALUES: u64 = 1_000;

/// The furthest place that a page may start at: more than any subject has.
const MOST_OFFSET: u64 = 1_000_000_000;

/// A page of the values of one subject.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ValuePage {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    window: WindowBounds,
    /// The store's time when it answered.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
    /// How many values the window has in all: the subject's score.
    total: u64,
    /// Values of this window were dropped because there were more than the board remembers.
    capped: bool,
    /// The last seen first; of several last seen at the same time the greatest bytes first.
    #[schema(max_items = 1000)]
    items: Vec<SeenValue>,
    /// Where the next page is; null on the last one.
    #[schema(required = true)]
    next: Option<String>,
}

/// A value, and when it was last seen.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SeenValue {
    #[schema(schema_with = value_schema)]
    value: Counted,
    /// The time of the newest event that had it.
    #[schema(schema_with = time_schema)]
    last_seen: Timestamp,
}

/// List a subject's values
///
/// The different values that a COUNT_DISTINCT board has seen of the subject within its window, the last seen first,
/// all of one instant.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/values", operation_id = "listValues", tag = "subjects",
    params(
        ("offset" = u64, Query, minimum = 0, maximum = 1000000000, example = 0, description = "Values to skip; 0 if absent."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000, example = 50, description = "Values at most; 50 if absent."),
    ),
    responses((status = 200, description = "The page.", body = ValuePage, example = json!({
        "board": "users-per-device", "subject": "device-1",
        "window": {"from": "2025-12-04T00:00:00Z", "to": "2026-01-03T00:00:00Z", "slots": 30},
        "as_of": "2026-01-02T10:07:00Z", "total": 2, "capped": false,
        "items": [{"value": "user-7", "last_seen": "2026-01-02T10:06:51.2Z"},
                  {"value": "user-1", "last_seen": "2025-12-24T18:00:00Z"}],
        "next": null}))),
)]
pub(super) async fn values(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let parameters = Parameters::read(&request, &["offset", "limit"])?;
    let offset = parameters.number("offset", 0, 0..=MOST_OFFSET)?;
    let limit = parameters.number("limit", 50, 1..=MOST_VALUES)?;
    let (name, subject) = (address::board_name(&request)?, address::subject(&request)?);
    let board = state.service.board(&name).await?;
    let lines = u32::try_from(limit).unwrap_or(u32::MAX);
    let About { board, answer: page } = state.service.values(&board, &subject, offset, lines).await?;
    let after = offset + page.items.len() as u64;
    let more = !page.items.is_empty() && after < page.total;
    // The path as it was sent: it names the subject already.
    let next = more.then(|| format!("{}?offset={after}&limit={limit}", request.uri().path()));
    Ok(answer::json(&ValuePage {
        window: WindowBounds::of(&board, &page.frame),
        as_of: page.frame.as_of,
        total: page.total,
        capped: page.capped,
        items: page.items.into_iter().map(|(value, last_seen)| SeenValue { value, last_seen }).collect(),
        next,
        board: name,
        subject,
    }))
}
