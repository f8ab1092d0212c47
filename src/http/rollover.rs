//! Rollover on request, in addition to the scheduler.

use actix_web::HttpResponse;
use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use utoipa::ToSchema;

use super::call::Call;
use super::codes::Code;
use super::problem::Problem;
use super::{response, schemas};
use crate::board::{BoardName, Timestamp};

/// Maximum number of boards rolled over at a time. Their steps are executed in turn, so this only bounds what waits.
const MAX_CONCURRENT: usize = 16;

/// The result of a rollover, or of a dry run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rollover)]
pub(super) struct RolloverResult {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// Start of the newest slot after the rollover, over all time of the newest slot kept; null if the board has no
    /// slots.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    head: Option<Timestamp>,
    /// Start of the oldest slot that counts after the rollover, over all time of the oldest slot kept; null if the
    /// board has no slots.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    floor: Option<Timestamp>,
    /// Number of slots by which the heads of all windows advanced; 0 if a write or another instance advanced it before.
    slots_advanced: u64,
    /// Number of expired slots that were fully subtracted.
    slots_retired: u64,
    /// Number of subtractions: one for each subject and slot.
    subjects_touched: u64,
    /// Number of subjects that left the ranking; null in a dry run, which cannot determine it.
    #[schema(required = true)]
    subjects_removed: Option<u64>,
    /// Duration in milliseconds.
    took_ms: u64,
    /// True in a dry run, otherwise absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    dry_run: bool,
}

/// Roll over a board
///
/// Advances the head of the board to the current time and subtracts all expired slots in bounded steps. The response is
/// sent when no expired slots remain. On a board with several windows, every window is rolled over: `head` and `floor`
/// are those of the main window, and the numbers are sums over all windows. A board over all time that keeps slots
/// deletes those that are older than `keep`; the total does not change. The operation is idempotent and may be called
/// at any time. With `dry_run=true` the response is what remains to be subtracted (the head advances nevertheless, as
/// with every call).
#[utoipa::path(
    post, path = "/v1/boards/{board}/rollover", operation_id = "rollOverBoard", tag = "operations",
    params(("dry_run" = bool, Query, example = false, description = "Whether to return only what would be done. Default: false.")),
    responses((status = 200, description = "The result.", body = RolloverResult, example = json!({
        "board": "hot-posts", "head": "2026-01-02T10:00:00Z", "floor": "2026-01-01T11:00:00Z", "slots_advanced": 1,
        "slots_retired": 1, "subjects_touched": 412, "subjects_removed": 30, "took_ms": 6}))),
)]
pub(super) async fn one(call: Call) -> Result<HttpResponse, Problem> {
    let dry_run = call.parameters(&["dry_run"])?.flag("dry_run", false)?;
    let name = call.board_name()?;
    Ok(response::json(&roll_over(&call, name, dry_run).await?))
}

/// Roll over all boards
///
/// Rolls over each board and returns a list of results. A board that is removed during the request is left out.
#[utoipa::path(
    post, path = "/v1/rollover", operation_id = "rollOverAll", tag = "operations",
    params(("dry_run" = bool, Query, example = false, description = "Whether to return only what would be done. Default: false.")),
    responses((status = 200, description = "The result of each board.", body = Vec<RolloverResult>, example = json!([{
        "board": "hot-posts", "head": "2026-01-02T10:00:00Z", "floor": "2026-01-01T11:00:00Z", "slots_advanced": 1,
        "slots_retired": 1, "subjects_touched": 412, "subjects_removed": 30, "took_ms": 6}]))),
)]
pub(super) async fn all(call: Call) -> Result<HttpResponse, Problem> {
    let dry_run = call.parameters(&["dry_run"])?.flag("dry_run", false)?;
    let boards = call.service().boards(&call.caller).await?;
    let names: Vec<BoardName> = boards.iter().map(|board| board.name().clone()).collect();
    let mut running = stream::iter(names).map(|name| roll_over(&call, name, dry_run)).buffered(MAX_CONCURRENT);
    let mut done = Vec::with_capacity(boards.len());
    while let Some(outcome) = running.next().await {
        match outcome {
            Ok(rollover) => done.push(rollover),
            Err(problem) if problem.code() == Code::UnknownBoard => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(response::json(&done))
}

async fn roll_over(call: &Call, name: BoardName, dry_run: bool) -> Result<RolloverResult, Problem> {
    call.caller.require_current()?;
    let board = call.service().board(&call.caller, &name).await?;
    let report = match dry_run {
        true => call.service().rollover_preview(&board).await?.answer,
        false => call.service().rollover(&board).await?.answer,
    };
    let has_slots = board.edition().has_slots();
    Ok(RolloverResult {
        board: name,
        head: has_slots.then_some(report.frame.window.head),
        floor: has_slots.then_some(report.frame.window.floor),
        slots_advanced: report.slots_advanced,
        slots_retired: report.slots_retired,
        subjects_touched: report.subjects_touched,
        subjects_removed: report.subjects_removed,
        took_ms: response::millis(report.took),
        dry_run,
    })
}
