//! One subject: where it stands, what it has in a shorter window, who is around it, and taking it out.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::WindowBounds;
use super::codes::Code;
use super::openapi::{board_schema, score_schema, subject_schema, time_schema};
use super::parameters::Parameters;
use super::problem::Problem;
use super::rankings::{self, Line};
use super::{HttpState, address, answer};
use crate::board::{Board, BoardName, Shown, Span, Subject, Tally, Timestamp};
use crate::service::About;
use crate::store::Reach;

/// Where a subject stands.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Standing {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    #[schema(schema_with = score_schema)]
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
    /// The slots of the window in which it has an amount, oldest first; slots without one are left out.
    slots: Vec<SlotCount>,
}

/// What a subject has in one slot.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SlotCount {
    /// Start of the slot.
    #[schema(schema_with = time_schema)]
    from: Timestamp,
    /// End of the slot, which is no part of it.
    #[schema(schema_with = time_schema)]
    to: Timestamp,
    #[schema(schema_with = score_schema)]
    count: Option<Shown>,
}

/// Get a subject's standing
///
/// Score, rank, percentile and the count in each slot, all of one instant. A subject that nobody has counted
/// answers score 0 and rank null.
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
    ))),
)]
pub(super) async fn standing(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let (name, subject) = (address::board_name(&request)?, address::subject(&request)?);
    let board = state.service.board(&name).await?;
    let About { board, answer: standing } = state.service.standing(&board, &subject).await?;
    let slot = |(from, tally): (Timestamp, Tally)| SlotCount {
        from,
        to: board.calendar().next(from),
        count: answer::score(&board, board.value([&tally])),
    };
    Ok(answer::json(&Standing {
        score: answer::score(&board, standing.score),
        rank: standing.rank,
        percentile: standing.rank.map(|_| percentile(standing.total, standing.better)),
        total: standing.total,
        window: WindowBounds::of(&board, &standing.frame),
        as_of: standing.frame.as_of,
        retiring: standing.frame.retiring,
        slots: standing.slots.into_iter().map(slot).collect(),
        board: name,
        subject,
    }))
}

/// 100 x (total − better) / total, to four decimals and never rounded up to 100.
fn percentile(total: u64, better: u64) -> f64 {
    let share = u128::from(total.saturating_sub(better)) * 1_000_000 / u128::from(total.max(1));
    share as f64 / 10_000.0
}

/// What a subject has in a shorter window.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WindowCount {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    /// The duration asked for, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false, example = "6h")]
    last: Option<Span>,
    /// The time asked for, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = time_schema, required = false)]
    from: Option<Timestamp>,
    window: WindowBounds,
    /// Its amount in these slots.
    #[schema(schema_with = score_schema)]
    count: Option<Shown>,
    /// The store's time when it answered.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
    /// Expired slots of the board not yet fully subtracted. They are never part of this count.
    retiring: u64,
}

/// Count a subject over a shorter window
///
/// The amount over the newest slots: `last` is rounded up to whole slots, the one containing now included; `from`
/// starts at the slot that contains it. Give exactly one of them. `window` says what was counted.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/window", operation_id = "countSubject", tag = "subjects",
    params(
        ("last" = String, Query, example = "6h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$",
            description = "A duration such as 90s, 15m, 6h or 7d, at most the board's window."),
        ("from" = String, Query, format = DateTime,
            description = "An instant within the board's window, such as 2026-01-02T05:00:00Z. Instead of `last`."),
    ),
    responses((status = 200, description = "The count and the slots it is over.", body = WindowCount, example = json!({
        "board": "hot-posts", "subject": "post-1", "last": "6h",
        "window": {"from": "2026-01-02T05:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 6},
        "count": 9, "as_of": "2026-01-02T10:07:00Z", "retiring": 0}))),
)]
pub(super) async fn window(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let parameters = Parameters::read(&request, &["last", "from"])?;
    let (last, from) = match (parameters.text("last"), parameters.text("from")) {
        (Some(last), None) => {
            let last: Span = last.parse().map_err(|error| Problem::field("last", format!("'last': {error}")))?;
            (Some(last), None)
        }
        (None, Some(from)) => {
            let from = Timestamp::parse(from).map_err(|error| Problem::field("from", format!("'from': {error}")))?;
            (None, Some(from))
        }
        _ => return Err(Problem::field("last", "give exactly one of 'last' and 'from'")),
    };
    let (name, subject) = (address::board_name(&request)?, address::subject(&request)?);
    let mut asked = state.service.board(&name).await?;
    let (board, counted) = loop {
        let reach = match (last, from) {
            (_, Some(from)) => Reach::From(from),
            (Some(last), None) => Reach::Slots(slots_covering(&asked, last)?),
            (None, None) => Reach::Slots(asked.slots()),
        };
        let About { board, answer: counted } = state.service.count(&asked, &subject, reach).await?;
        if board.generation() == asked.generation() {
            break (board, counted);
        }
        // Defined anew meanwhile: the same duration may be another number of its slots.
        asked = board;
    };
    if let Some(from) = from.filter(|from| *from > counted.frame.as_of) {
        let detail = format!("'from' is {from}, but the store's clock reads {}", counted.frame.as_of);
        return Err(Problem::field("from", detail));
    }
    let bounds = counted.frame.window;
    Ok(answer::json(&WindowCount {
        last,
        from,
        window: WindowBounds { from: bounds.floor, to: bounds.end, slots: counted.slots },
        count: answer::score(&board, counted.value(&board)),
        as_of: counted.frame.as_of,
        retiring: counted.frame.retiring,
        board: name,
        subject,
    }))
}

fn slots_covering(board: &Board, last: Span) -> Result<u32, Problem> {
    let slot = board.definition().slot;
    let Some(slots) = board.calendar().slots_covering(last) else {
        let detail = format!("'last' is {last} and the board's slots are {slot}: months and shorter units do not mix");
        return Err(Problem::field("last", detail));
    };
    u32::try_from(slots).ok().filter(|slots| *slots <= board.slots()).ok_or_else(|| {
        let (has, window) = (board.slots(), board.definition().metric.window);
        let detail = format!("{last} is {slots} slots of {slot}; the board keeps {has} ({window})");
        Problem::new(Code::BeyondWindow, detail).with("field", "last").with("maximum", window.to_string())
    })
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
    #[schema(max_items = 201)]
    items: Vec<Line>,
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
        items: rankings::lines(&board, page),
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
    #[schema(schema_with = score_schema)]
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
