//! Successors of boards: the dual run of two editions, and their exchange.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::boards::{self, DefinedBoard};
use super::call::Call;
use super::comparison::{ComparisonShown, MirroredDifferenceShown};
use super::definition::{self, DefinitionShown};
use super::edition_changes::{self, EditionChanges};
use super::parameters::Plain;
use super::problem::Problem;
use super::state::HttpState;
use super::{response, schemas};
use crate::board::{Definition, EditionRole, NotCounted, Span, Timestamp};
use crate::service::{DualRunState, FillState};

/// The time for which a previous edition is kept, unless the request says otherwise.
const KEEP_PREVIOUS: &str = "1d";
/// The longest time for which it can be kept, in milliseconds: a year.
const MAX_KEEP: i64 = 366 * 86_400_000;

/// The state of the edition beside the board's own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Edition, example = example)]
pub(super) struct EditionShown {
    #[serde(flatten)]
    definition: DefinitionShown,
    /// The store's time since which both editions have received every item.
    #[schema(schema_with = schemas::time)]
    since: Timestamp,
    /// The store's time from which the windows of both editions are complete, so that they differ in their definitions
    /// only. Null if that is never so: over all time without a fill, and for `from_first`.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    full_at: Option<Timestamp>,
    /// Whether each item since then is known to have been written to both editions. Null if that is not known: after a
    /// restart of Redis, whose log may have cut a write.
    #[schema(required = true)]
    exact: Option<bool>,
    fill: FillShown,
    #[serde(flatten)]
    changes: EditionChanges,
    /// Number of items that the board counted and this edition did not, by reason.
    #[schema(value_type = BTreeMap<String, u64>)]
    not_counted: BTreeMap<&'static str, u64>,
    /// Number of items that this edition counted and the board did not, by reason.
    #[schema(value_type = BTreeMap<String, u64>)]
    only_counted: BTreeMap<&'static str, u64>,
    /// The store's time from which a previous edition is removed. Absent for a successor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    until: Option<Timestamp>,
    /// The latest comparison that this instance has made or is making. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    comparison: Option<ComparisonShown>,
    /// The latest reads of the board, at most 100, which this instance had the successor answer too and which it
    /// answered differently, the newest last. Absent if there are none; see the setting `mirror_reads`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 100)]
    mirrored_differences: Vec<MirroredDifferenceShown>,
}

/// The state of the fill with which a successor gets what its board has.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fill)]
pub(super) struct FillShown {
    /// `running`; `done`; or `none`, if the successor counts other items, or its slots are not unions of the board's.
    #[schema(pattern = "^(none|running|done)$")]
    state: &'static str,
    /// Number of cells, a subject in a slot each, that this instance has given to the successor. Absent unless it is
    /// running.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    cells: Option<u64>,
}

/// A board after a promotion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PromotedBoard, example = promoted_example)]
pub(super) struct Promoted {
    #[serde(flatten)]
    board: DefinedBoard,
    /// What has changed for its readers.
    #[serde(flatten)]
    changes: EditionChanges,
}

fn promoted_example() -> Value {
    let mut example = boards::example();
    [example["changes"], example["stops"]] = edition_changes::example();
    example
}

/// The begin of a comparison.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BegunComparison)]
pub(super) struct Begun {
    #[serde(flatten)]
    comparison: ComparisonShown,
    /// What will change for readers of the board.
    #[serde(flatten)]
    changes: EditionChanges,
}

/// An example of a successor.
fn example() -> Value {
    let mut example = definition::example();
    example["metric"] = json!("COUNT(7d, like, post_id)");
    example["slots_in_window"] = json!(168);
    example["slots_kept"] = json!(168);
    example["since"] = json!("2026-01-02T10:07:00Z");
    example["full_at"] = json!("2026-01-08T11:00:00Z");
    example["exact"] = json!(true);
    example["fill"] = json!({"state": "done"});
    [example["changes"], example["stops"]] = edition_changes::example();
    example["not_counted"] = json!({});
    example["only_counted"] = json!({"too_late": 12});
    example
}

impl EditionShown {
    fn of(state: &DualRunState, http: &HttpState) -> Self {
        let by_code = |counts: &[(NotCounted, u64)]| -> BTreeMap<&'static str, u64> {
            counts.iter().filter(|(_, items)| *items > 0).map(|(reason, items)| (reason.code(), *items)).collect()
        };
        let [of_board, of_other] = &state.run.not_counted;
        let fill = match state.fill {
            FillState::Impossible => FillShown { state: "none", cells: None },
            FillState::Running(progress) => FillShown { state: "running", cells: Some(progress.cells) },
            FillState::Done => FillShown { state: "done", cells: None },
        };
        Self {
            definition: DefinitionShown::of(&state.edition, http.service.id_cost(state.edition.board())),
            since: state.run.since,
            full_at: state.full_at,
            exact: state.run.is_exact,
            fill,
            changes: EditionChanges::of(state, http),
            not_counted: by_code(of_other),
            only_counted: by_code(of_board),
            until: state.until,
            comparison: state.comparison.clone().map(ComparisonShown::of),
            mirrored_differences: state.mirrored.iter().map(MirroredDifferenceShown::of).collect(),
        }
    }
}

/// Begin a dual run
///
/// Gives the board a successor: another definition, which counts beside the board from now on. Every item is written to
/// both in one atomic step, with one set of ids; each of them counts it or not by itself. Reads with `of=next` read the
/// successor. `POST …/next/promote` makes it the board.
///
/// The successor has the event type, the subject, the shards and the dedupe time of its board; everything else may
/// differ. Except for `metric` and `slot`, what the definition does not name is that of the board, where it is allowed
/// together with the rest: its further windows, `movement`, `order`, `decimals` and so on. An empty list, or null, means
/// none, or the default. `changes` and `stops` say what will not be the same. It begins empty, unless it counts the same
/// items (function, value and filter) in slots that are unions of the board's: then it is filled with what the board
/// has, while writes continue. A fill creates no history: if the window of the successor is longer, `full_at` says from
/// when it is complete. Until then a retraction of an event that the successor does not have may leave a negative score there.
///
/// Increments and samples of the board count in the successor if they say what it counts: the same number or value, or
/// an event for COUNT. Filters apply to events only.
///
/// During a dual run a write costs about twice as much. The same successor again changes nothing (200). Update all
/// instances first: one of an earlier version refuses a board that has had a successor.
#[utoipa::path(
    put, path = "/v1/boards/{board}/next", operation_id = "beginDualRun", tag = "boards",
    request_body(content = Definition, description = "The definition of the successor.", examples(
        ("likes in 7 days" = (value = json!({"metric": "COUNT(7d, like, post_id)", "slot": "1h"}))))),
    responses(
        (status = 200, description = "The board already had this successor.", body = EditionShown),
        (status = 201, description = "The dual run has begun.", body = EditionShown),
    ),
)]
pub(super) async fn begin(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let name = call.board_name()?;
    let body = call.json(payload).await?;
    let definition = definition::parse(&body)?;
    let named = definition::names(&body);
    let is_named = |key: &str| named.contains(key);
    let (_, is_new) = call.service().begin_dual_run(&call.caller, &name, &definition, is_named).await?;
    let run = call.service().dual_run(&call.caller, &name, EditionRole::Next).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(response::json_with(status, &EditionShown::of(&run, &call.state)))
}

async fn get(call: &Call, role: EditionRole) -> Result<HttpResponse, Problem> {
    let run = call.service().dual_run(&call.caller, &call.board_name()?, role).await?;
    Ok(response::json(&EditionShown::of(&run, &call.state)))
}

async fn delete(call: &Call, role: EditionRole) -> Result<HttpResponse, Problem> {
    let board = call.service().remove_edition(&call.caller, &call.board_name()?, role).await?;
    Ok(response::json(&DefinedBoard::of(&board.current(), &call.state)))
}

async fn promote(call: &Call, role: EditionRole) -> Result<HttpResponse, Problem> {
    let known: &[&str] = match role {
        EditionRole::Next => &["keep_previous", "early"],
        EditionRole::Previous => &["keep_previous"],
    };
    let parameters = call.parameters(known)?;
    let keep = parse_keep(parameters.text("keep_previous").unwrap_or(KEEP_PREVIOUS))?;
    let early = parameters.flag("early", false)?;
    let name = call.board_name()?;
    let changes = EditionChanges::of(&call.service().dual_run(&call.caller, &name, role).await?, &call.state);
    let board = call.service().promote(&call.caller, &name, role, keep, early).await?;
    Ok(response::json(&Promoted { board: DefinedBoard::of(&board.current(), &call.state), changes }))
}

fn parse_keep(text: &str) -> Result<Span, Problem> {
    let wrong = |detail: String| Problem::field("keep_previous", detail);
    let keep: Span = text.parse().map_err(|error| wrong(format!("'keep_previous': {error}")))?;
    match keep.approximate_millis() <= MAX_KEEP {
        true => Ok(keep),
        false => {
            Err(wrong("'keep_previous' must be at most a year: the edition doubles the cost of writes".to_owned()))
        }
    }
}

/// Get the successor of a board
///
/// Returns its definition, since when it has counted, from when it is complete, and how many items only one of the two
/// counted.
#[utoipa::path(
    get, path = "/v1/boards/{board}/next", operation_id = "getNext", tag = "boards",
    responses((status = 200, description = "The successor.", body = EditionShown)),
)]
pub(super) async fn get_next(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    get(&call, EditionRole::Next).await
}

/// End a dual run
///
/// Removes the successor with its data. Returns the definition of the board.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/next", operation_id = "removeNext", tag = "boards",
    responses((status = 200, description = "The board without a successor.", body = DefinedBoard,
        example = json!(boards::example()))),
)]
pub(super) async fn delete_next(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    delete(&call, EditionRole::Next).await
}

/// Let the successor take over
///
/// Makes the successor the board: when the response is sent, every instance reads and answers with it. What was the
/// board stays as its previous edition, which is written to as well, so that `POST …/previous/promote` can go back
/// without a gap. It is removed after `keep_previous`.
///
/// Cursors of pages from before get `stale_cursor`, and live streams send a `page`. `changes` and `stops` say what has
/// changed for readers. Refused while a fill is not complete, and, unless `early` is true, before `full_at`. A board of
/// the configuration may have the definition of either edition; change it there before the previous one is removed.
#[utoipa::path(
    post, path = "/v1/boards/{board}/next/promote", operation_id = "promoteNext", tag = "boards",
    params(("keep_previous" = String, Query, example = "1d", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo|y)$",
        description = "Time for which the previous edition is kept, at most a year. Default: `1d`."),
        ("early" = bool, Query, example = false,
        description = "Whether the successor takes over before it is complete. Default: `false`.")),
    responses((status = 200, description = "The board, with the definition of the successor.", body = Promoted,
        example = json!(promoted_example()))),
)]
pub(super) async fn promote_next(call: Call) -> Result<HttpResponse, Problem> {
    promote(&call, EditionRole::Next).await
}

/// Compare a board with its successor
///
/// Begins a comparison of all subjects, which this instance makes in steps while writes continue; 202 with its state.
/// Read it with `GET …/next`. `changes` and `stops` say in what the definitions differ. If one is running, nothing is
/// begun, and its state is returned.
#[utoipa::path(
    post, path = "/v1/boards/{board}/next/compare", operation_id = "compareNext", tag = "boards",
    params(("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
        description = "Length of the window to compare, which both have. Default: the main window of each.")),
    responses((status = 202, description = "The comparison, so far.", body = Begun)),
)]
pub(super) async fn compare(call: Call) -> Result<HttpResponse, Problem> {
    let choice = call.parameters(&["window"])?.window()?;
    let name = call.board_name()?;
    let comparison = ComparisonShown::of(call.service().compare(&call.caller, &name, choice.length).await?);
    let changes =
        EditionChanges::of(&call.service().dual_run(&call.caller, &name, EditionRole::Next).await?, &call.state);
    Ok(response::json_with(StatusCode::ACCEPTED, &Begun { comparison, changes }))
}

/// Get the previous edition of a board
///
/// Returns the edition that the board had before its successor took over, while it is kept.
#[utoipa::path(
    get, path = "/v1/boards/{board}/previous", operation_id = "getPrevious", tag = "boards",
    responses((status = 200, description = "The previous edition.", body = EditionShown)),
)]
pub(super) async fn get_previous(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    get(&call, EditionRole::Previous).await
}

/// Remove the previous edition
///
/// Removes the previous edition with its data, before its time. From then on a write costs what it did before the dual
/// run.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/previous", operation_id = "removePrevious", tag = "boards",
    responses((status = 200, description = "The board without a previous edition.", body = DefinedBoard,
        example = json!(boards::example()))),
)]
pub(super) async fn delete_previous(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    delete(&call, EditionRole::Previous).await
}

/// Go back to the previous edition
///
/// Makes the previous edition the board again. It has been written to all the time, so nothing is missing. The edition
/// that it replaces becomes the previous one. So a second call exchanges them again: if the answer to the first one is
/// lost, look at the board before you repeat it.
#[utoipa::path(
    post, path = "/v1/boards/{board}/previous/promote", operation_id = "promotePrevious", tag = "boards",
    params(("keep_previous" = String, Query, example = "1d", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo|y)$",
        description = "Time for which the edition that is replaced is kept, at most a year. Default: `1d`.")),
    responses((status = 200, description = "The board, with its earlier definition.", body = Promoted,
        example = json!(promoted_example()))),
)]
pub(super) async fn promote_previous(call: Call) -> Result<HttpResponse, Problem> {
    promote(&call, EditionRole::Previous).await
}
