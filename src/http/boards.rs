//! Definition, inspection, audit and removal of boards.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::call::Call;
use super::codes::Code;
use super::definition::{self, DefinitionShown};
use super::frame::{FrameShown, PeriodShown};
use super::parameters::Plain;
use super::preview::{self, DefinitionPreview};
use super::problem::Problem;
use super::state::HttpState;
use super::{response, schemas};
use crate::board::{
    BoardEdition, BoardName, Definition, EditionRole, RankingKey, Shown, Span, Subject, Tie, Timestamp, Track,
    WindowLength,
};
use crate::service::{About, Difference, Status};

/// The definition of a board with all defaults.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = example)]
pub(super) struct DefinedBoard {
    #[serde(flatten)]
    definition: DefinitionShown,
    /// Identifier that distinguishes the board from earlier boards with the same name.
    generation: String,
    /// The store's time when the board was defined. Absent if it was defined by a version that did not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    defined_at: Option<Timestamp>,
    /// The current period. Absent on a board without a season; `GET …/periods` lists all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    period: Option<PeriodShown>,
    /// The metric of the successor of the board. Absent if the board has none; `GET …/next` has more about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, example = "COUNT(7d, like, post_id)")]
    next: Option<String>,
    /// The metric of the edition that the board had before its successor took over, while it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, example = "COUNT(12h, like, post_id)")]
    previous: Option<String>,
}

/// An example of a board in a response.
pub(super) fn example() -> Value {
    let mut example = definition::example();
    example["generation"] = json!("5f1c2a9d04b7e386");
    example["defined_at"] = json!("2025-12-01T09:00:00Z");
    example
}

impl DefinedBoard {
    pub(super) fn of(edition: &BoardEdition, state: &HttpState) -> Self {
        let board = edition.board();
        Self {
            definition: DefinitionShown::of(edition, state.service.id_cost(board)),
            generation: board.generation().to_string(),
            defined_at: board.defined_at(),
            period: PeriodShown::of(&board.current()),
            next: board.edition_as(EditionRole::Next).map(|next| next.definition().metric.to_string()),
            previous: board.edition_as(EditionRole::Previous).map(|previous| previous.definition().metric.to_string()),
        }
    }
}

/// List of boards.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BoardList {
    /// The boards, ordered by name.
    items: Vec<DefinedBoard>,
    /// Always null: the list has one page.
    #[schema(value_type = Option<String>, required = true)]
    next: (),
}

/// List boards
///
/// Returns all boards with their definitions, ordered by name.
#[utoipa::path(
    get, path = "/v1/boards", operation_id = "listBoards", tag = "boards",
    responses((status = 200, description = "The boards.", body = BoardList,
        example = json!({"items": [example()], "next": null}))),
)]
pub(super) async fn list(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let boards = call.service().boards(&call.caller).await?;
    Ok(response::json(&BoardList {
        items: boards.iter().map(|board| DefinedBoard::of(&board.current(), &call.state)).collect(),
        next: (),
    }))
}

/// The current state of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BoardStatus {
    #[serde(flatten)]
    definition: DefinedBoard,
    #[serde(flatten)]
    frame: FrameShown,
    /// Start of the newest slot; null if the board has no slots.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    head: Option<Timestamp>,
    /// Start of the oldest slot that counts, over all time of the oldest slot kept; null if the board has no slots.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    floor: Option<Timestamp>,
    /// Number of ranked subjects, of all keys together on a board with `BY`. Null if it is not known: Redis was killed,
    /// lost a part of a write, and there are too many keys to count their subjects again.
    #[schema(required = true)]
    total: Option<u64>,
    /// Number of keys that have a ranked subject. Absent on boards without `BY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    keys: Option<u64>,
    /// Slots of the window that have subjects or events, oldest first; empty for `from_first`, where each subject has
    /// its own window. Over all time, the slots that are kept beside the totals; empty if none are.
    slots: Vec<SlotStatus>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(schema_with = schemas::slots_are_partial, required = false)]
    slots_are_partial: bool,
    /// The expired slots, oldest first, with the number of subjects still to be subtracted.
    retiring_slots: Vec<RetiringSlot>,
    /// The state of each window, the main one first. Absent on a board with one window; the other members are about the
    /// main window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    each_window: Vec<WindowStatus>,
}

/// The state of one window of a board that has several.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WindowStatus {
    /// Length of the window, for the parameter `window` of reads.
    #[schema(example = "7d")]
    length: String,
    /// Length of a slot; null over all time, where there are no slots.
    #[schema(value_type = Option<String>, required = true, example = "6h")]
    slot: Option<Span>,
    #[serde(flatten)]
    frame: FrameShown,
    /// Start of the newest slot; null if the window has no slots.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    head: Option<Timestamp>,
    /// Start of the oldest slot that counts; null if the window has no slots.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    floor: Option<Timestamp>,
    /// Number of ranked subjects, of all keys together on a board with `BY`. Null if it is not known: Redis was killed,
    /// lost a part of a write, and there are too many keys to count their subjects again.
    #[schema(required = true)]
    total: Option<u64>,
    /// Number of keys that have a ranked subject. Absent on boards without `BY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    keys: Option<u64>,
    /// Slots of the window that have subjects or events, oldest first; empty over all time.
    slots: Vec<SlotStatus>,
    /// The expired slots, oldest first, with the number of subjects still to be subtracted.
    retiring_slots: Vec<RetiringSlot>,
}

impl WindowStatus {
    fn of(window: &Track, status: &Status) -> Self {
        let has_slots = !window.is_all_time();
        let slots = if has_slots { live_slots(window, &status.slots, &status.events) } else { Vec::new() };
        Self {
            length: window.length().to_string(),
            slot: window.slot(),
            frame: FrameShown::of(window, &status.frame, window.slots()),
            head: has_slots.then_some(status.frame.window.head),
            floor: has_slots.then_some(status.frame.window.floor),
            total: status.total,
            keys: status.keys,
            slots,
            retiring_slots: retiring_slots(window, &status.retiring),
        }
    }
}

/// One slot of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SlotStatus {
    /// Start of the slot.
    #[schema(schema_with = schemas::time)]
    from: Timestamp,
    /// End of the slot (exclusive).
    #[schema(schema_with = schemas::time)]
    to: Timestamp,
    /// Number of subjects with data in the slot; null on an unranked board, which keeps no such number, and of slots
    /// kept over all time.
    #[schema(required = true)]
    subjects: Option<u64>,
    /// Number of items counted in the slot: increments, events, samples and retractions that were neither rejected nor
    /// duplicates. It never decreases, so a slot may have events and no subject.
    events: u64,
}

/// One expired slot of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RetiringSlot {
    /// Start of the slot.
    #[schema(schema_with = schemas::time)]
    from: Timestamp,
    /// End of the slot (exclusive).
    #[schema(schema_with = schemas::time)]
    to: Timestamp,
    /// Number of subjects that are not yet subtracted.
    subjects: u64,
}

/// Get a board
///
/// Returns the definition, head and floor of the board, its slots with their numbers of subjects and events, and those
/// still retiring. On a board with several windows these are about the main window, and `each_window` has the state of
/// every window. On a board over all time that keeps slots, head, floor and slots are those of the kept slots.
#[utoipa::path(
    get, path = "/v1/boards/{board}", operation_id = "getBoard", tag = "boards",
    params(("of" = String, Query, pattern = "^(next|previous)$", example = "next",
        description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself.")),
    responses((status = 200, description = "The current state of the board.", body = BoardStatus, example = json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)", "slot": "1h", "decimals": 0, "timezone": "UTC",
        "order": "desc", "cover": "current", "ranked": true, "mode": "sliding", "keep": null, "min_samples": 1,
        "max_values": null, "stamp": "start", "shards": null, "dedupe": null, "windows": [],
        "slots_in_window": 24, "slots_kept": 24,
        "ids": {"horizon": "24h", "stored_at_most": "36h", "bytes_per_id": 37}, "generation": "5f1c2a9d04b7e386",
        "defined_at": "2025-12-01T09:00:00Z",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "head": "2026-01-02T10:00:00Z", "floor": "2026-01-01T11:00:00Z", "as_of": "2026-01-02T10:07:00Z",
        "total": 1234, "slots": [{"from": "2026-01-02T10:00:00Z", "to": "2026-01-02T11:00:00Z", "subjects": 412, "events": 3107}],
        "retiring": 0, "retiring_slots": []}))),
)]
pub(super) async fn get(call: Call) -> Result<HttpResponse, Problem> {
    let of = call.parameters(&["of"])?.edition()?;
    let edition = call.service().edition(&call.caller, &call.board_name()?, of).await?;
    let About { of: edition, answer: statuses } = call.service().statuses(&edition).await?;
    let each_window = match edition.windows() {
        [_] => Vec::new(),
        several => several.iter().zip(&statuses).map(|(window, status)| WindowStatus::of(window, status)).collect(),
    };
    let mut statuses = statuses.into_iter();
    let status = statuses.next().ok_or_else(|| Problem::new(Code::Internal, "a board has no main window"))?;
    let kept = edition.kept_slots().zip(statuses.next());
    let window = kept.as_ref().map_or(status.frame.window, |(_, kept)| kept.frame.window);
    let (main, has_slots) = (edition.main(), edition.has_slots());
    Ok(response::json(&BoardStatus {
        definition: DefinedBoard::of(&edition, &call.state),
        frame: FrameShown::of(main, &status.frame, main.slots()),
        head: has_slots.then_some(window.head),
        floor: has_slots.then_some(window.floor),
        total: status.total,
        keys: status.keys,
        slots_are_partial: kept.is_some(),
        slots: match kept {
            Some((kept_slots, kept)) => live_slots(kept_slots, &kept.slots, &kept.events),
            None if has_slots => live_slots(main, &status.slots, &status.events),
            None => Vec::new(),
        },
        retiring_slots: retiring_slots(main, &status.retiring),
        each_window,
    }))
}

/// Returns the slots that have subjects or events, oldest first.
fn live_slots(track: &Track, subjects: &[(Timestamp, u64)], events: &[(Timestamp, u64)]) -> Vec<SlotStatus> {
    let slot = |from, subjects| SlotStatus { from, to: track.calendar().next(from), subjects, events: 0 };
    let mut slots: BTreeMap<Timestamp, SlotStatus> =
        subjects.iter().map(|&(from, number)| (from, slot(from, Some(number)))).collect();
    let no_subjects = track.is_ranked().then_some(0);
    for &(from, number) in events {
        slots.entry(from).or_insert_with(|| slot(from, no_subjects)).events = number;
    }
    slots.into_values().collect()
}

/// Returns the expired slots, oldest first, with the number of subjects still to be subtracted.
fn retiring_slots(track: &Track, retiring: &[(Timestamp, u64)]) -> Vec<RetiringSlot> {
    let to = |from| track.calendar().next(from);
    retiring.iter().map(|&(from, subjects)| RetiringSlot { from, to: to(from), subjects }).collect()
}

/// The answer to a definition.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum DefineAnswer {
    Defined(Box<DefinedBoard>),
    Preview(Box<DefinitionPreview>),
}

/// Define a board
///
/// When the response is sent, all instances of the store have the board. The same definition again changes nothing
/// (200); a different definition is refused (409). A definition cannot be changed in place, because stored data depends
/// on every key; `PUT /v1/boards/{board}/next` begins a dual run with another one.
///
/// With `dry_run=true` nothing is changed, and the store need not accept writes. The response is the definition in its
/// canonical form, the slots that it leads to, what ids cost, the estimated memory of a subject, and the conflict with
/// an existing board that would otherwise be the 409. An invalid definition is refused as without `dry_run`.
#[utoipa::path(
    put, path = "/v1/boards/{board}", operation_id = "defineBoard", tag = "boards",
    request_body(content = Definition, description = "The definition.", examples(
        ("likes in 24 h" = (value = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"}))),
        ("sales in 7 days" = (value = json!({"metric": "SUM(7d, sale, amount, seller_id)", "slot": "1h", "decimals": 2,
            "timezone": "Europe/Berlin"}))),
        ("mean rating, ranked from 10 ratings" = (value = json!({"metric": "AVG(30d, rating, stars, film_id)",
            "slot": "1d", "decimals": 1, "min_samples": 10}))),
        ("users per device" = (value = json!({
            "metric": "COUNT_DISTINCT(30d, login, device_id, user_id)", "slot": "1d", "ranked": false,
            "max_values": 1000}))),
        ("logins, with as_of" = (value = json!({"metric": "COUNT(30m, login, device_id)", "slot": "1m",
            "ranked": false, "keep": "24h"}))),
        ("likes: all time" = (value = json!({"metric": "COUNT(all, like, post_id)"}))),
        ("likes: hour, day, week and all time" = (value = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h",
            "windows": ["1h/1m", "7d/6h", "all"]}))),
        ("likes: all time, and any time of the last 30 days" = (value = json!({"metric": "COUNT(all, like, post_id)",
            "slot": "1h", "keep": "30d"}))),
        ("scores: best ever" = (value = json!({"metric": "MAX(all, game, score, player)", "dedupe": "30d"}))),
        ("transfers within an hour of the first" = (value = json!({"metric": "SUM(1h, transfer, amount, customer_id)",
            "decimals": 2, "ranked": false, "mode": "from_first"}))),
    )),
    params(("dry_run" = bool, Query, example = false, description = "Whether to return only what would be done. Default: false.")),
    responses(
        (status = 200, description = "The board already existed with the same definition. With `dry_run=true`, what the \
            definition would do.", body = DefineAnswer, examples(
            ("already defined" = (value = json!(example()))), ("dry run" = (value = json!(preview::example()))))),
        (status = 201, description = "The board was created.", body = DefinedBoard,
            headers(("location" = String, description = "Path of the board."))),
    ),
)]
pub(super) async fn put(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    let dry_run = call.parameters(&["dry_run"])?.flag("dry_run", false)?;
    let name = call.new_board_name()?;
    let body = call.json(payload).await?;
    let definition = definition::parse(&body)?;
    if dry_run {
        let preview = call.service().preview(&call.caller, &name, &definition).await?;
        let mut shown = DefinitionPreview::of(&preview);
        shown.definition.note(call.service().note_of_keeper(&preview.board).await?);
        return Ok(response::json(&DefineAnswer::Preview(Box::new(shown))));
    }
    let (board, created) = call.service().define(&call.caller, &name, &definition).await?;
    let mut shown = DefinedBoard::of(&board.current(), &call.state);
    shown.definition.note(call.service().note_of_keeper(&board).await?);
    let answer = DefineAnswer::Defined(Box::new(shown));
    Ok(response::defined(created, &format!("/v1/boards/{name}"), &answer))
}

/// Remove a board
///
/// Removes the board with all its data: slots, ranking, ids. Returns the definition of the removed board.
#[utoipa::path(
    delete, path = "/v1/boards/{board}", operation_id = "removeBoard", tag = "boards",
    responses((status = 200, description = "The removed board.", body = DefinedBoard)),
)]
pub(super) async fn delete(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let board = call.service().undefine(&call.caller, &call.board_name()?).await?;
    Ok(response::json(&DefinedBoard::of(&board.current(), &call.state)))
}

/// The result of an audit.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Audit {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// Number of compared subjects, of all windows together, and of the slots that are kept over all time.
    subjects_checked: u64,
    /// Number of subjects whose score differs from the sum of their slots.
    differences: u64,
    /// The largest difference.
    #[schema(schema_with = schemas::score, required = true)]
    worst: Option<Shown>,
    /// The first differences.
    examples: Vec<AuditDifference>,
    /// Number of repaired differences.
    repaired: u64,
    /// Number of slots that should exist but do not. Their data is lost, and the ranking may be its last copy.
    missing_slots: u64,
    /// The damaged sheets of packed periods, and what is wrong with each, at most 20. Each is one of the differences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    damaged_sheets: Vec<String>,
    /// Duration in milliseconds.
    took_ms: u64,
}

/// A subject whose score differs from the sum of its slots.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditDifference {
    /// Length of the window. Absent on a board with one window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, example = "7d")]
    window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// The score in the ranking.
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    tie: Option<Tie>,
    /// The sum of the slots.
    #[schema(schema_with = schemas::score, required = true)]
    slots: Option<Shown>,
    /// The second key, or the time, of the slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    slots_tie: Option<Tie>,
}

/// Audit a board
///
/// Compares the score of each subject with the sum of its slots. Each subject is compared atomically, in bounded steps
/// while writes and rollovers continue. With `repair=true` the score is corrected in the same step; this also releases
/// a board that `/readyz` reports as held after a restart of Redis. On a board with several windows, each window is
/// audited, and the numbers are sums. The slots that a board keeps over all time do not add up to its scores, so each
/// score is compared with the total stored beside them.
///
/// Of a packed period it checks that its sheets are there, can be read, are in order and name each other; the audit of a board
/// without `period` and `of` checks all packed periods. With `repair=true` those that follow from others are written again.
#[utoipa::path(
    post, path = "/v1/boards/{board}/audit", operation_id = "auditBoard", tag = "operations",
    params(
        ("repair" = bool, Query, example = false, description = "Whether to correct differences. Default: false."),
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Period to audit, on a board with a season: its name, `current` or `previous`. Default: the current one."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to audit: `next`, the successor, or `previous`. Default: the board itself."),
    ),
    responses((status = 200, description = "The result of the audit.", body = Audit, example = json!({
        "board": "hot-posts", "subjects_checked": 1234, "differences": 0, "worst": 0, "examples": [],
        "repaired": 0, "missing_slots": 0, "took_ms": 12}))),
)]
pub(super) async fn audit(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["repair", "of", "period"])?;
    let (repair, of) = (parameters.flag("repair", false)?, parameters.edition_choice()?);
    let name = call.board_name()?;
    let edition = call.service().edition(&call.caller, &name, of).await?;
    let About { of: edition, answer: report } = call.service().audit(&edition, repair).await?;
    let (has_several, scale) = (edition.windows().len() > 1, edition.scale());
    let example = |(window, difference): (WindowLength, Difference)| {
        let (by, subject) = difference.subject.split();
        AuditDifference {
            window: has_several.then(|| window.to_string()),
            by,
            subject,
            score: response::score(scale, difference.score),
            tie: response::tie(scale, difference.score),
            slots: response::score(scale, difference.slots),
            slots_tie: response::tie(scale, difference.slots),
        }
    };
    Ok(response::json(&Audit {
        subjects_checked: report.subjects_checked,
        differences: report.differences,
        worst: Some(report.worst.shown(scale.decimals)),
        examples: report.examples.into_iter().map(example).collect(),
        repaired: report.repaired,
        missing_slots: report.missing_slots,
        damaged_sheets: report.damaged_sheets,
        took_ms: response::millis(report.took),
        board: name,
    }))
}
