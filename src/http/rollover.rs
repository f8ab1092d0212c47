//! Rolling over by hand: what the scheduler does by itself, now and with an answer.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use utoipa::ToSchema;

use super::codes::Code;
use super::openapi::{board_schema, time_schema};
use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, address, answer};
use crate::board::{BoardName, Timestamp};

/// Boards rolled over at the same time. Their steps take turns anyway; this only bounds what waits.
const AT_ONCE: usize = 16;

/// What a rollover did, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Rollover {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    /// Start of the newest slot afterwards.
    #[schema(schema_with = time_schema)]
    head: Timestamp,
    /// Start of the oldest slot that counts afterwards.
    #[schema(schema_with = time_schema)]
    floor: Timestamp,
    /// How many slots the head moved; 0 if a write or another instance had moved it before.
    slots_advanced: u64,
    /// Expired slots that were fully subtracted.
    slots_retired: u64,
    /// Subtractions made: one for each subject and slot.
    subjects_touched: u64,
    /// Subjects that left the ranking; null in a dry run, which cannot know without doing it.
    #[schema(required = true)]
    subjects_removed: Option<u64>,
    /// Milliseconds it took.
    took_ms: u64,
    /// Present and true where nothing was subtracted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    dry_run: bool,
}

/// Roll a board over
///
/// Advances the board to now and subtracts every expired slot, in bounded steps; answers when nothing expired
/// remains. Safe to call at any time, from anywhere, any number of times. With `dry_run=true` it answers what is
/// left to subtract (looking advances the board too, as every call does).
#[utoipa::path(
    post, path = "/v1/boards/{board}/rollover", operation_id = "rollOverBoard", tag = "operations",
    params(("dry_run" = bool, Query, example = false, description = "Only say what would be done; false if absent.")),
    responses((status = 200, description = "What it did.", body = Rollover, example = json!({
        "board": "hot-posts", "head": "2026-01-02T10:00:00Z", "floor": "2026-01-01T11:00:00Z", "slots_advanced": 1,
        "slots_retired": 1, "subjects_touched": 412, "subjects_removed": 30, "took_ms": 6}))),
)]
pub(super) async fn one(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let dry_run = Parameters::read(&request, &["dry_run"])?.flag("dry_run")?;
    let name = address::board_name(&request)?;
    Ok(answer::json(&roll_over(&state, name, dry_run).await?))
}

/// Roll every board over
///
/// As for one board, for all of them; answers a list. A board removed meanwhile is left out.
#[utoipa::path(
    post, path = "/v1/rollover", operation_id = "rollOverAll", tag = "operations",
    params(("dry_run" = bool, Query, example = false, description = "Only say what would be done; false if absent.")),
    responses((status = 200, description = "What it did, by board.", body = Vec<Rollover>, example = json!([{
        "board": "hot-posts", "head": "2026-01-02T10:00:00Z", "floor": "2026-01-01T11:00:00Z", "slots_advanced": 1,
        "slots_retired": 1, "subjects_touched": 412, "subjects_removed": 30, "took_ms": 6}]))),
)]
pub(super) async fn all(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let dry_run = Parameters::read(&request, &["dry_run"])?.flag("dry_run")?;
    let boards = state.service.boards().await?;
    let names: Vec<BoardName> = boards.iter().map(|board| board.name().clone()).collect();
    let mut running = stream::iter(names).map(|name| roll_over(&state, name, dry_run)).buffered(AT_ONCE);
    let mut done = Vec::with_capacity(boards.len());
    while let Some(outcome) = running.next().await {
        match outcome {
            Ok(rollover) => done.push(rollover),
            Err(problem) if problem.code() == Code::UnknownBoard => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(answer::json(&done))
}

async fn roll_over(state: &HttpState, name: BoardName, dry_run: bool) -> Result<Rollover, Problem> {
    let board = state.service.board(&name).await?;
    let report = match dry_run {
        true => state.service.rollover_preview(&board).await?.answer,
        false => state.service.rollover(&board).await?.answer,
    };
    Ok(Rollover {
        board: name,
        head: report.frame.window.head,
        floor: report.frame.window.floor,
        slots_advanced: report.slots_advanced,
        slots_retired: report.slots_retired,
        subjects_touched: report.subjects_touched,
        subjects_removed: report.subjects_removed,
        took_ms: answer::millis(report.took),
        dry_run,
    })
}
