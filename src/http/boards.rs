//! Boards: defined at run time, inspected, audited, removed.

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, LOCATION};
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::WindowBounds;
use super::openapi::{board_example, board_schema, score_schema, subject_schema, time_schema};
use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, address, answer, body, definition};
use crate::board::{Board, BoardName, Cover, Mode, Order, Shown, Span, Stamp, Subject, Timestamp};
use crate::service::About;

/// A board as it is defined, with every default filled in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = board_example)]
pub(super) struct DefinedBoard {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    /// The metric in its canonical form.
    metric: String,
    /// The length of a slot.
    slot: String,
    /// Digits after the point that scores keep.
    #[schema(maximum = 9)]
    decimals: u8,
    /// The zone whose midnights slots of an hour and more align to.
    timezone: String,
    /// Which end of the scores is the top: `desc` or `asc`.
    #[schema(schema_with = super::openapi::order_schema)]
    order: Order,
    /// `current` or `full`: whether the window has one slot more, so as never to be shorter than it says.
    #[schema(schema_with = super::openapi::cover_schema)]
    cover: Cover,
    /// Whether there is a ranking; without one, subjects are read one by one.
    ranked: bool,
    /// `sliding`, or `from_first`: each subject's window begins with its first event.
    #[schema(schema_with = super::openapi::mode_schema)]
    mode: Mode,
    /// How long an unranked board keeps slots for looking back with `as_of`; null for its window and one slot.
    #[schema(value_type = Option<String>, required = true, example = "48h")]
    keep: Option<Span>,
    /// AVG: how often a subject must have been measured to be ranked.
    #[schema(minimum = 1)]
    min_samples: u32,
    /// COUNT_DISTINCT: the most values remembered per subject; null for no limit.
    #[schema(required = true, minimum = 1)]
    max_values: Option<u32>,
    /// `start` or `end`: which end of its slot a sample is stamped with.
    #[schema(schema_with = super::openapi::stamp_schema)]
    stamp: Stamp,
    /// Redis: how many parts the board is spread over; null if it is not.
    #[schema(required = true, minimum = 1, maximum = 64)]
    shards: Option<u32>,
    /// How many slots the window has.
    slots_in_window: u32,
    /// How many slots are kept.
    slots_kept: u32,
    /// Sets the board apart from an earlier one of the same name.
    generation: String,
}

impl DefinedBoard {
    fn of(board: &Board) -> Self {
        let definition = board.definition();
        Self {
            board: board.name().clone(),
            metric: definition.metric.to_string(),
            slot: definition.slot.to_string(),
            decimals: definition.decimals.digits(),
            timezone: definition.timezone.name().to_owned(),
            order: definition.order,
            cover: definition.cover,
            ranked: definition.ranked,
            mode: definition.mode,
            keep: definition.keep,
            min_samples: definition.min_samples,
            max_values: definition.max_values,
            stamp: definition.stamp,
            shards: definition.shards,
            slots_in_window: board.slots(),
            slots_kept: board.kept(),
            generation: board.generation().to_string(),
        }
    }
}

/// All boards.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BoardList {
    /// By name.
    boards: Vec<DefinedBoard>,
}

/// List boards
///
/// Every board with its definition, by name.
#[utoipa::path(
    get, path = "/v1/boards", operation_id = "listBoards", tag = "boards",
    responses((status = 200, description = "The boards.", body = BoardList,
        example = json!({"boards": [board_example()]}))),
)]
pub(super) async fn list(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let boards = state.service.boards().await?;
    Ok(answer::json(&BoardList { boards: boards.iter().map(|board| DefinedBoard::of(board)).collect() }))
}

/// A board as it is now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BoardStatus {
    #[serde(flatten)]
    definition: DefinedBoard,
    window: WindowBounds,
    /// Start of the newest slot.
    #[schema(schema_with = time_schema)]
    head: Timestamp,
    /// Start of the oldest slot that counts.
    #[schema(schema_with = time_schema)]
    floor: Timestamp,
    /// The store's time when it answered.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
    /// How many subjects are ranked.
    total: u64,
    /// Slots of the window that somebody wrote to, oldest first; of a ranked board only.
    slots: Vec<SlotStatus>,
    /// Expired slots not yet fully subtracted.
    retiring: u64,
    /// Those slots, oldest first, each with the subjects still to be subtracted.
    retiring_slots: Vec<SlotStatus>,
}

/// One slot of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SlotStatus {
    /// Start of the slot.
    #[schema(schema_with = time_schema)]
    from: Timestamp,
    /// End of the slot, which is no part of it.
    #[schema(schema_with = time_schema)]
    to: Timestamp,
    /// How many subjects have an amount in it.
    subjects: u64,
}

/// Inspect a board
///
/// Its definition, head and floor, the slots that exist and those still retiring, each with its subjects.
#[utoipa::path(
    get, path = "/v1/boards/{board}", operation_id = "getBoard", tag = "boards",
    responses((status = 200, description = "The board as it is now.", body = BoardStatus, example = json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)", "slot": "1h", "decimals": 0, "timezone": "UTC",
        "order": "desc", "cover": "current", "ranked": true, "mode": "sliding", "keep": null, "min_samples": 1,
        "max_values": null, "stamp": "start", "shards": null, "slots_in_window": 24, "slots_kept": 24,
        "generation": "5f1c2a9d04b7e386",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "head": "2026-01-02T10:00:00Z", "floor": "2026-01-01T11:00:00Z", "as_of": "2026-01-02T10:07:00Z",
        "total": 1234, "slots": [{"from": "2026-01-02T10:00:00Z", "to": "2026-01-02T11:00:00Z", "subjects": 412}],
        "retiring": 0, "retiring_slots": []}))),
)]
pub(super) async fn get(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let name = address::board_name(&request)?;
    let board = state.service.board(&name).await?;
    let About { board, answer: status } = state.service.status(&board).await?;
    let slots = |slots: Vec<(Timestamp, u64)>| {
        let slot = |(from, subjects)| SlotStatus { from, to: board.calendar().next(from), subjects };
        slots.into_iter().map(slot).collect()
    };
    Ok(answer::json(&BoardStatus {
        definition: DefinedBoard::of(&board),
        window: WindowBounds::of(&board, &status.frame),
        head: status.frame.window.head,
        floor: status.frame.window.floor,
        as_of: status.frame.as_of,
        total: status.total,
        slots: slots(status.slots),
        retiring: status.frame.retiring,
        retiring_slots: slots(status.retiring),
    }))
}

/// Define a board
///
/// Every instance of the store has it when this answers. The same definition again is fine (200). Another one is
/// refused (409): stored data depends on every key, so none can change in place.
#[utoipa::path(
    put, path = "/v1/boards/{board}", operation_id = "defineBoard", tag = "boards",
    request_body(content = super::openapi::DefinitionBody, description = "The definition.", examples(
        ("likes in 24 h" = (value = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"}))),
        ("sales in 7 days" = (value = json!({"metric": "SUM(7d, sale, amount, seller_id)", "slot": "1h", "decimals": 2,
            "timezone": "Europe/Berlin"}))),
        ("mean rating, ranked from 10 on" = (value = json!({"metric": "AVG(30d, rating, stars, film_id)",
            "slot": "1d", "decimals": 1, "min_samples": 10}))),
        ("users seen on a device" = (value = json!({
            "metric": "COUNT_DISTINCT(30d, login, device_id, user_id)", "slot": "1d", "ranked": false,
            "max_values": 1000}))),
        ("logins, with a look back" = (value = json!({"metric": "COUNT(30m, login, device_id)", "slot": "1m",
            "ranked": false, "keep": "24h"}))),
        ("transfers within an hour of the first" = (value = json!({"metric": "SUM(1h, transfer, amount, customer_id)",
            "decimals": 2, "ranked": false, "mode": "from_first"}))),
    )),
    responses(
        (status = 200, description = "The board existed with just this definition.", body = DefinedBoard),
        (status = 201, description = "The board is new.", body = DefinedBoard,
            headers(("location" = String, description = "Path of the board."))),
    ),
)]
pub(super) async fn put(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let name = address::new_board_name(&request)?;
    let body = body::read_json(&request, payload, &state.options).await?;
    let (board, created) = state.service.define(&name, &definition::read(&body)?).await?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = answer::json_with(status, &DefinedBoard::of(&board));
    if created && let Ok(path) = HeaderValue::from_str(&format!("/v1/boards/{name}")) {
        response.headers_mut().insert(LOCATION, path);
    }
    Ok(response)
}

/// Remove a board
///
/// With everything it holds: slots, ranking, remembered ids. Answers the definition it had.
#[utoipa::path(
    delete, path = "/v1/boards/{board}", operation_id = "removeBoard", tag = "boards",
    responses((status = 200, description = "The board that went.", body = DefinedBoard)),
)]
pub(super) async fn delete(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let board = state.service.undefine(&address::board_name(&request)?).await?;
    Ok(answer::json(&DefinedBoard::of(&board)))
}

/// What an audit found.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Audit {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    /// Subjects compared.
    subjects_checked: u64,
    /// How many had a score other than the sum of their slots.
    differences: u64,
    /// The largest of these differences.
    #[schema(schema_with = score_schema, required = true)]
    worst: Option<Shown>,
    /// The first few.
    examples: Vec<AuditDifference>,
    /// How many were set right.
    repaired: u64,
    /// Slots that should exist and do not: a part of the data is lost, and the ranking may be the last copy of it.
    missing_slots: u64,
    /// Milliseconds it took.
    took_ms: u64,
}

/// A subject whose score is not the sum of its slots.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditDifference {
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    /// What the ranking says.
    #[schema(schema_with = score_schema, required = true)]
    score: Option<Shown>,
    /// What its slots add up to.
    #[schema(schema_with = score_schema, required = true)]
    slots: Option<Shown>,
}

/// Audit a board
///
/// Compares every subject's score with the sum of its slots, each subject atomically, in bounded steps while
/// writes and rollovers go on. With `repair=true` differences are set right in the same step; that is also how a person
/// decides about a board that `/readyz` says is held after a restart of Redis.
#[utoipa::path(
    post, path = "/v1/boards/{board}/audit", operation_id = "auditBoard", tag = "operations",
    params(("repair" = bool, Query, example = false, description = "Whether to set differences right; false if absent.")),
    responses((status = 200, description = "What it found.", body = Audit, example = json!({
        "board": "hot-posts", "subjects_checked": 1234, "differences": 0, "worst": 0, "examples": [],
        "repaired": 0, "missing_slots": 0, "took_ms": 12}))),
)]
pub(super) async fn audit(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let repair = Parameters::read(&request, &["repair"])?.flag("repair")?;
    let name = address::board_name(&request)?;
    let board = state.service.board(&name).await?;
    let About { board, answer: report } = state.service.audit(&board, repair).await?;
    let example = |difference: crate::store::Difference| AuditDifference {
        subject: difference.subject,
        score: answer::score(&board, difference.score),
        slots: answer::score(&board, difference.slots),
    };
    Ok(answer::json(&Audit {
        subjects_checked: report.subjects_checked,
        differences: report.differences,
        worst: answer::score(&board, report.worst),
        examples: report.examples.into_iter().map(example).collect(),
        repaired: report.repaired,
        missing_slots: report.missing_slots,
        took_ms: answer::millis(report.took),
        board: name,
    }))
}
