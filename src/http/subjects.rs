//! One subject: where it stands, who is around it, and taking it out.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::WindowBounds;
use super::openapi::{board_schema, score_schema, standard_error_schema, subject_schema, time_schema};
use super::parameters::Parameters;
use super::problem::Problem;
use super::rankings::{Line, WrittenLines};
use super::{HttpState, address, answer};
use crate::board::{Amount, Board, BoardName, Decimals, Kind, Mode, Shown, Subject, Tally, Timestamp, Value, Window};
use crate::service::About;

/// Where a subject stands.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Standing {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    #[schema(schema_with = score_schema, required = true)]
    score: Option<Shown>,
    /// Competition rank; null for a subject that is not ranked.
    #[schema(required = true, minimum = 1)]
    rank: Option<u64>,
    /// 100 x the share of ranked subjects whose score is no better; null for a subject that is not ranked.
    #[schema(required = true, minimum = 0, maximum = 100)]
    percentile: Option<f64>,
    /// How many subjects are ranked in all.
    total: u64,
    window: WindowBounds,
    /// The store's time when it answered.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
    /// Expired slots not yet fully subtracted; while there are any, the score may include part of them.
    retiring: u64,
    /// COUNT_DISTINCT only: values of this window were dropped because there were more than the board remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    capped: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = standard_error_schema, required = false)]
    standard_error: Option<f64>,
    /// The slots of the window in which it has anything, oldest first; slots without are left out.
    slots: Vec<SlotTally>,
}

/// What a subject has in one slot: `count` of COUNT, SUM and COUNT_DISTINCT (the values *last* seen in the slot, so that
/// slots add up); `sum`, `count` (of measurements) and `value` (their mean) of AVG; `value` of MIN, MAX (the slot's
/// own extreme) and APPROX_COUNT_DISTINCT (the slot's own estimate, which do not add up).
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SlotTally {
    /// Start of the slot.
    #[schema(schema_with = time_schema)]
    from: Timestamp,
    /// End of the slot, which is no part of it.
    #[schema(schema_with = time_schema)]
    to: Timestamp,
    /// All but MIN, MAX and APPROX_COUNT_DISTINCT.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    count: Option<Shown>,
    /// AVG only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    sum: Option<Shown>,
    /// All but COUNT, SUM and COUNT_DISTINCT.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    value: Option<Shown>,
}

impl SlotTally {
    /// On a `from_first` board the one slot is the subject's own window.
    fn of(board: &Board, window: &Window, (from, tally): (Timestamp, Tally)) -> Self {
        let to = match board.definition().mode {
            Mode::Sliding => board.calendar().next(from),
            Mode::FromFirst => window.end,
        };
        let shown = |value: Value| value.shown(board.decimals());
        let (mut count, mut sum) = (None, None);
        // A slot shows its own mean, however few measurements it is of.
        let mut value = board.kind().value([&tally], 1);
        match &tally {
            Tally::Sum(_) => count = value.take().map(shown),
            Tally::Mean { sum: units, count: times } => {
                sum = Some(shown(Value::Exact(*units)));
                count = Some(Value::Exact(Amount(*times)).shown(Decimals::default()));
            }
            Tally::Extreme(_) | Tally::Sketch(_) => {}
        }
        Self { from, to, count, sum, value: value.map(shown) }
    }
}

/// Get a subject's standing
///
/// Score, rank, percentile and what each slot holds, all of one instant. A subject that nobody has counted answers
/// score 0 (null of AVG, MIN and MAX) and rank null. On an unranked board the score is the value of its window, and
/// there is no rank.
///
/// Percent-encode the subject as one part of the path: `a/b` is `a%2Fb`. (Browsers and many clients resolve a part
/// that is just `.` or `..`, encoded or not, before sending; look such a subject up with
/// `POST …/rankings/lookup`.)
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}", operation_id = "getSubject", tag = "subjects",
    responses((status = 200, description = "Where it stands.", body = Standing, examples(
        ("ranked" = (value = json!({"board": "hot-posts", "subject": "post-1", "score": 17, "rank": 1,
            "percentile": 100.0, "total": 1234,
            "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0,
            "slots": [{"from": "2026-01-02T10:00:00Z", "to": "2026-01-02T11:00:00Z", "count": 17}]}))),
        ("not ranked" = (value = json!({"board": "hot-posts", "subject": "post-9", "score": 0, "rank": null,
            "percentile": null, "total": 1234,
            "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "slots": []}))),
        ("AVG" = (value = json!({"board": "film-ratings", "subject": "film-1", "score": 4.25, "rank": 3,
            "percentile": 98.2, "total": 110,
            "window": {"from": "2025-12-04T00:00:00Z", "to": "2026-01-03T00:00:00Z", "slots": 30},
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0,
            "slots": [{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "count": 4, "sum": 17,
                "value": 4.25}]}))),
        ("COUNT_DISTINCT, not ranked" = (value = json!({"board": "users-per-device", "subject": "device-1",
            "score": 2, "rank": null, "percentile": null, "total": 0,
            "window": {"from": "2025-12-04T00:00:00Z", "to": "2026-01-03T00:00:00Z", "slots": 30},
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "capped": false,
            "slots": [{"from": "2026-01-02T00:00:00Z", "to": "2026-01-03T00:00:00Z", "count": 2}]}))),
    ))),
)]
pub(super) async fn standing(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let (name, subject) = (address::board_name(&request)?, address::subject(&request)?);
    let board = state.service.board(&name).await?;
    let About { board, answer: standing } = state.service.standing(&board, &subject).await?;
    Ok(answer::json(&Standing {
        score: answer::score(&board, standing.score),
        rank: standing.rank,
        percentile: standing.rank.map(|_| percentile(standing.total, standing.better)),
        total: standing.total,
        window: WindowBounds::of(&board, &standing.frame),
        as_of: standing.frame.as_of,
        retiring: standing.frame.retiring,
        capped: (board.kind() == Kind::Distinct).then_some(standing.capped),
        standard_error: board.kind().standard_error(),
        slots: standing.slots.into_iter().map(|slot| SlotTally::of(&board, &standing.frame.window, slot)).collect(),
        board: name,
        subject,
    }))
}

/// 100 x (total − better) / total, to four decimals and never rounded up to 100.
fn percentile(total: u64, better: u64) -> f64 {
    let share = u128::from(total.saturating_sub(better)) * 1_000_000 / u128::from(total.max(1));
    share as f64 / 10_000.0
}

/// The ranking around a subject.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Neighbors {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    window: WindowBounds,
    /// The store's time when it answered.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
    /// Expired slots not yet fully subtracted.
    retiring: u64,
    /// How many subjects are ranked in all.
    total: u64,
    /// The lines around it, itself among them; none if it is not ranked.
    #[schema(value_type = Vec<Line>, max_items = 201)]
    items: WrittenLines,
}

/// Get a subject's neighbours
///
/// Up to `radius` lines on each side of the subject, itself in the middle, all of one instant.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/neighbors", operation_id = "getNeighbors", tag = "subjects",
    params(("radius" = u64, Query, minimum = 1, maximum = 100, example = 5,
        description = "Lines on each side at most; 5 if absent.")),
    responses((status = 200, description = "The ranking around it.", body = Neighbors, example = json!({
        "board": "hot-posts", "subject": "post-1",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 1234,
        "items": [{"rank": 1, "subject": "post-1", "score": 17}, {"rank": 2, "subject": "post-7", "score": 12}]}))),
)]
pub(super) async fn neighbors(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let radius = Parameters::read(&request, &["radius"])?.number("radius", 5, 1..=100)?;
    let (name, subject) = (address::board_name(&request)?, address::subject(&request)?);
    let board = state.service.board(&name).await?;
    let About { board, answer: page } =
        state.service.neighbors(&board, &subject, u32::try_from(radius).unwrap_or(u32::MAX)).await?;
    Ok(answer::json(&Neighbors {
        window: WindowBounds::of(&board, &page.frame),
        as_of: page.frame.as_of,
        retiring: page.frame.retiring,
        total: page.total,
        items: WrittenLines::new(&board, page.items),
        board: name,
        subject,
    }))
}

/// What went when a subject was removed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovalReceipt {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    /// The score it had.
    #[schema(schema_with = score_schema, required = true)]
    score: Option<Shown>,
    /// Slots of the window in which it had an amount.
    live_slots: u64,
    /// Retiring slots in which it still had an amount.
    retiring_slots: u64,
    /// The store's time when it was removed.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
}

/// Remove a subject
///
/// Takes it out of the ranking and of every slot, in one atomic step, and answers what went. Removing one that is
/// not there is fine. It may be counted again afterwards.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/subjects/{subject}", operation_id = "removeSubject", tag = "subjects",
    responses((status = 200, description = "What went.", body = RemovalReceipt, example = json!({
        "board": "hot-posts", "subject": "post-1", "score": 17, "live_slots": 3, "retiring_slots": 0,
        "as_of": "2026-01-02T10:07:00Z"}))),
)]
pub(super) async fn remove(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let (name, subject) = (address::board_name(&request)?, address::subject(&request)?);
    let board = state.service.board(&name).await?;
    let About { board, answer: removal } = state.service.remove(&board, &subject).await?;
    Ok(answer::json(&RemovalReceipt {
        score: answer::score(&board, removal.score),
        live_slots: removal.live_slots,
        retiring_slots: removal.retiring_slots,
        as_of: removal.frame.as_of,
        board: name,
        subject,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        assert_eq!(percentile(1, 0), 100.0);
        assert_eq!(percentile(4, 3), 25.0);
        assert_eq!(percentile(3, 1), 66.6666);
        assert_eq!(percentile(10_000_000, 1), 99.9999);
    }
}
