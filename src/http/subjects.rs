//! Single subjects: score and rank, neighbors.

use std::sync::Arc;

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::call::Call;
use super::frame::RankingFrame;
use super::problem::Problem;
use super::ranking_lines::{RankingLine, RankingLines};
use super::{response, schemas};
use crate::board::{
    Aggregate, Amount, Attributes, Averaging, Decimals, RankingTiers, Shown, Subject, Tie, Timestamp, Track, Value,
    Visibility, Window,
};
use crate::service::About;

/// Score, rank and slots of a subject.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Standing {
    #[serde(flatten)]
    frame: RankingFrame,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    tie: Option<Tie>,
    /// Rank; null if the subject is not ranked.
    #[schema(required = true, minimum = 1)]
    rank: Option<u64>,
    /// Whether the subject is hidden: it is in no ranking, and has no rank. Absent if it is not, or if it is shadowed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    hidden: bool,
    /// Percentage of ranked subjects whose score is not better; null if the subject is not ranked.
    #[schema(required = true, minimum = 0, maximum = 100)]
    percentile: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tier, required = false)]
    tier: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::rank_before, required = false)]
    from: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::attributes, required = false)]
    attributes: Option<Attributes>,
    /// Whether values of this window were dropped because of the board's `max_values`. For COUNT_DISTINCT, and with a
    /// cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    capped: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::standard_error, required = false)]
    standard_error: Option<f64>,
    /// The slots of the window in which the subject has data, oldest first. Over all time, the slots that are kept
    /// beside the total; empty if none are.
    slots: Vec<SubjectSlot>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(schema_with = schemas::slots_are_partial, required = false)]
    slots_are_partial: bool,
    /// Time of the score. For LAST only, if there is a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    at: Option<Timestamp>,
}

/// The content of one slot for a subject. COUNT and SUM have `count`. COUNT_DISTINCT has `count`, the number of values
/// *last* seen in the slot, so that the counts of all slots add up. AVG has `sum`, `count` (number of measurements) and
/// `value` (their mean). MIN and MAX have `value`, the smallest or largest number of the slot. LAST
/// has `value`, the newest number of the slot, and `at`, its time. APPROX_COUNT_DISTINCT has
/// `value`, the estimate for the slot; the estimates of several slots do not add up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SlotValue)]
pub(super) struct SubjectSlot {
    /// Start of the slot.
    #[schema(schema_with = schemas::time)]
    from: Timestamp,
    /// End of the slot (exclusive).
    #[schema(schema_with = schemas::time)]
    to: Timestamp,
    /// Absent for MIN, MAX, LAST and APPROX_COUNT_DISTINCT.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, format = "decimal", required = false)]
    count: Option<Shown>,
    /// For AVG only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, format = "decimal", required = false)]
    sum: Option<Shown>,
    /// Absent for COUNT, SUM and COUNT_DISTINCT.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, format = "decimal", required = false)]
    value: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    tie: Option<Tie>,
    /// Time of the value. For LAST only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    at: Option<Timestamp>,
}

impl SubjectSlot {
    /// Formats one slot. On a `from_first` board the single slot is the window of the subject.
    fn of(track: &Track, window: &Window, (from, aggregate): (Timestamp, Aggregate)) -> Self {
        let to = if track.is_from_first() { window.end } else { track.calendar().next(from) };
        let shown = |value: Value| value.shown(track.scale());
        let (mut count, mut sum) = (None, None);
        // The mean of a slot is shown whatever its number of measurements.
        let mut value = track.kind().value([&aggregate], Averaging::PLAIN);
        let tie = response::tie(track.scale(), value);
        match &aggregate {
            Aggregate::Sum(_) => count = value.take().map(shown),
            Aggregate::Mean { sum: units, count: times } => {
                sum = Some(shown(Value::Exact(*units)));
                count = Some(Value::Exact(Amount(*times)).shown(Decimals::default()));
            }
            Aggregate::Extreme(_) | Aggregate::Last { .. } | Aggregate::Sketch(_) => {}
        }
        Self { from, to, count, sum, value: value.map(shown), tie, at: aggregate.time() }
    }
}

/// Get a subject's standing
///
/// Returns score, rank, percentile and the content of each slot, read atomically. A subject without data has score 0
/// (null for AVG, MIN, MAX and LAST) and rank null. On an unranked board the score is the value over the window, and
/// the rank is null. A subject that is hidden has its score, no rank, and `"hidden": true`; one that is shadowed has the
/// rank that it would have.
///
/// On a board over all time that keeps its newest slots, these are listed with `slots_are_partial`, because the score
/// also counts what is older. They are read at the same time as the score, but not in the same atomic step.
///
/// Percent-encode the subject as one segment of the path: `a/b` is `a%2Fb`. Browsers and many clients resolve the
/// segments `.` and `..` before sending, even when encoded; use `POST …/rankings/lookup` for such subjects.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}", operation_id = "getSubject", tag = "subjects",
    params(
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Period to read, on a board with a season: its name, `current` or `previous`. Default: the current one."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("attributes" = String, Query, max_length = 2080, example = "name,picture",
            description = "Names of the attributes that each line shows, with commas between them, or `*` for all. Default: none."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
        description = "Length of the window to read, one of the board's. Default: the main window.")),
    responses((status = 200, description = "Score, rank and slots.", body = Standing, examples(
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
        ("all time, with kept slots" = (value = json!({"board": "likes", "subject": "post-1", "score": 5021, "rank": 3,
            "percentile": 99.8, "total": 1234, "window": {"from": null, "to": null, "slots": 0},
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0,
            "slots": [{"from": "2026-01-02T10:00:00Z", "to": "2026-01-02T11:00:00Z", "count": 17}],
            "slots_are_partial": true}))),
    ))),
)]
pub(super) async fn standing(call: Call) -> Result<HttpResponse, Problem> {
    let window = call.parameters(&["window", "of", "period", "by", "attributes"])?.window()?;
    let (name, subject) = (call.board_name()?, call.subject()?);
    let track = call.service().window(&call.caller, &name, window, None).await?;
    let About { of: track, answer: (standing, kept) } = call.service().standing_and_kept(&track, &subject).await?;
    // What it is to see is the ranking as if it were shown.
    let is_shadowed = standing.visibility == Visibility::Shadowed && standing.rank.is_some();
    let total = standing.total + u64::from(is_shadowed);
    let not_worse = standing.not_worse.map(|not_worse| not_worse + u64::from(is_shadowed));
    let tier = RankingTiers::of(&track, total).and_then(|tiers| {
        let (rank, score) = standing.rank.zip(standing.score)?;
        tiers.tier(rank, not_worse, score).cloned()
    });
    let (from, attributes) = (track.rank_before(&subject), track.attributes_of(&subject));
    let at = standing.slots.last().and_then(|(_, newest)| newest.time());
    let kept = track.edition().kept_slots().cloned().zip(kept);
    let slots_are_partial = kept.is_some();
    let slots_of = |track: &Track, window: &Window, slots: Vec<(Timestamp, Aggregate)>| -> Vec<SubjectSlot> {
        slots.into_iter().map(|slot| SubjectSlot::of(track, window, slot)).collect()
    };
    let slots = match kept {
        Some((kept_slots, kept)) => slots_of(&kept_slots, &kept.frame.window, kept.slots),
        None if track.is_all_time() => Vec::new(),
        None => slots_of(&track, &standing.frame.window, standing.slots),
    };
    Ok(response::json(&Standing {
        frame: RankingFrame::of(&track, &standing.frame, total),
        subject,
        score: response::score(track.scale(), standing.score),
        tie: response::tie(track.scale(), standing.score),
        rank: standing.rank,
        hidden: standing.visibility == Visibility::Hidden,
        percentile: standing.rank.map(|_| response::percentile(total, standing.better)),
        tier,
        from,
        attributes,
        capped: track.kind().remembers_values().then_some(standing.capped),
        standard_error: track.kind().standard_error(),
        slots,
        slots_are_partial,
        at,
    }))
}

/// The ranking around a subject.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Neighbors {
    #[serde(flatten)]
    frame: RankingFrame,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// The subject and its neighbors, best first; empty if the subject is not ranked.
    #[schema(value_type = Vec<RankingLine>, max_items = 201)]
    items: RankingLines,
}

/// Get the neighbors of a subject
///
/// Returns the subject and up to `radius` subjects on each side of it, read atomically.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/neighbors", operation_id = "getNeighbors", tag = "subjects",
    params(
        ("radius" = u64, Query, minimum = 1, maximum = 100, example = 5,
            description = "Maximum number of subjects on each side. Default: 5."),
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Period to read, on a board with a season: its name, `current` or `previous`. Default: the current one."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("attributes" = String, Query, max_length = 2080, example = "name,picture",
            description = "Names of the attributes that each line shows, with commas between them, or `*` for all. Default: none."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: the main window."),
    ),
    responses((status = 200, description = "The ranking around the subject.", body = Neighbors, example = json!({
        "board": "hot-posts", "subject": "post-1",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 1234,
        "items": [{"rank": 1, "subject": "post-1", "score": 17}, {"rank": 2, "subject": "post-7", "score": 12}]}))),
)]
pub(super) async fn neighbors(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["radius", "window", "of", "period", "by", "attributes"])?;
    let radius = parameters.number("radius", 5, 1..=100)?;
    let (name, subject) = (call.board_name()?, call.subject()?);
    let track = call.service().window(&call.caller, &name, parameters.window()?, None).await?;
    let About { of: track, answer: page } =
        call.service().neighbors(&track, &subject, u32::try_from(radius).unwrap_or(u32::MAX)).await?;
    Ok(response::json(&Neighbors {
        frame: RankingFrame::of(&track, &page.frame, page.total),
        subject,
        items: RankingLines::new(&track, page),
    }))
}
