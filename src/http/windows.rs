//! What a subject has over a window: whole or shorter, now or then.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::WindowBounds;
use super::openapi::{board_schema, edge_schema, score_schema, standard_error_schema, subject_schema, time_schema};
use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, address, answer};
use crate::board::{Amount, BoardName, Decimals, Edge, Kind, Metric, Shown, Span, Subject, Timestamp, Value};
use crate::service::{Feature, Over, Question, WindowQuestion};

/// What a subject has over a window.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WindowValue {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    /// The metric asked for, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false, example = "COUNT(6h, like, post_id)")]
    metric: Option<String>,
    /// The duration asked for, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false, example = "6h")]
    last: Option<Span>,
    /// The time asked for, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = time_schema, required = false)]
    from: Option<Timestamp>,
    /// The time at which the window ended, if one was asked for as `as_of`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = time_schema, required = false)]
    looking_back_to: Option<Timestamp>,
    /// The slots that were read. On a `from_first` board the subject's own window, or the one that an event now would
    /// begin.
    window: WindowBounds,
    /// COUNT, SUM, COUNT_DISTINCT and APPROX_COUNT_DISTINCT: the same as `value`. AVG: how many were measured in these
    /// slots, each counted whole whatever the `edge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    count: Option<Shown>,
    /// AVG only: what was measured in these slots, added up; each counts whole whatever the `edge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    sum: Option<Shown>,
    /// What the metric says of these slots.
    #[schema(schema_with = score_schema, required = true)]
    value: Option<Shown>,
    #[schema(schema_with = edge_schema)]
    edge: Edge,
    /// COUNT_DISTINCT only: values of these slots were dropped because there were more than the board remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    capped: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = standard_error_schema, required = false)]
    standard_error: Option<f64>,
    /// The store's time when it answered.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
    /// Expired slots of the board not yet fully subtracted. They are never part of this value.
    retiring: u64,
}

impl WindowValue {
    /// The answer to a question that was put so.
    pub(super) fn of(feature: &Feature, over: Over, as_of: Option<Timestamp>) -> Self {
        let Feature { board, subject, reading, edge, value, .. } = feature;
        let shown = |value: Value| value.shown(board.decimals());
        let value = value.map(shown);
        let measured = feature.measured();
        let count = match board.kind() {
            Kind::Mean => measured.map(|(_, count)| Value::Exact(Amount(count)).shown(Decimals::default())),
            Kind::Min | Kind::Max => None,
            Kind::Sum | Kind::Distinct | Kind::Sketch => value,
        };
        let frame = reading.frame;
        Self {
            board: board.name().clone(),
            subject: subject.clone(),
            metric: None,
            last: if let Over::Last(last) = over { Some(last) } else { None },
            from: if let Over::From(from) = over { Some(from) } else { None },
            looking_back_to: as_of,
            window: WindowBounds { from: frame.window.floor, to: frame.window.end, slots: reading.slots },
            count,
            sum: measured.map(|(sum, _)| shown(Value::Exact(sum))),
            value,
            edge: *edge,
            capped: (board.kind() == Kind::Distinct).then_some(reading.capped),
            standard_error: board.kind().standard_error(),
            as_of: frame.as_of,
            retiring: frame.retiring,
        }
    }

    /// The same, to a question by metric.
    pub(super) fn with_metric(mut self, metric: &Metric) -> Self {
        self.metric = Some(metric.to_string());
        self
    }
}

/// The part of a board's window that a question names: `last`, `from`, or neither.
pub(super) fn over(last: Option<&str>, from: Option<&str>) -> Result<Over, Problem> {
    match (last, from) {
        (Some(last), None) => {
            last.parse().map(Over::Last).map_err(|error| Problem::field("last", format!("'last': {error}")))
        }
        (None, Some(from)) => time("from", from).map(Over::From),
        (None, None) => Ok(Over::Whole),
        (Some(_), Some(_)) => Err(Problem::field("last", "give 'last' or 'from', not both; neither for all of it")),
    }
}

/// An instant that a question names.
pub(super) fn time(field: &str, text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).map_err(|error| Problem::field(field, format!("'{field}': {error}")))
}

/// How the oldest slot is to count; whole if a question does not say.
pub(super) fn edge(text: Option<&str>) -> Result<Edge, Problem> {
    match text {
        None | Some("slots") => Ok(Edge::Slots),
        Some("weighted") => Ok(Edge::Weighted),
        Some(_) => Err(Problem::field("edge", "'edge' must be 'slots' or 'weighted'")),
    }
}

/// Read a subject over a window
///
/// What the board's metric says of its newest slots. `last` is rounded up to whole slots, the one containing now
/// included; `from` starts at the slot that contains it; with neither it is the whole window. `window` says what was
/// read. Where the board keeps slots for looking back (`keep`), `as_of` reads the window that ended with the slot
/// containing that time.
///
/// With `edge=weighted`, on boards with `cover` `full` of COUNT, SUM, AVG or COUNT_DISTINCT, one slot more is read at
/// the old end and counts by the share of it that the window still reaches: with half of the newest slot gone by, the
/// oldest counts half, as sliding-window rate limiters do. `edge` says which it was.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/window", operation_id = "readWindow", tag = "subjects",
    params(
        ("last" = String, Query, example = "6h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$",
            description = "A duration such as 90s, 15m, 6h or 7d, at most the board's window."),
        ("from" = String, Query, format = DateTime,
            description = "An instant within the board's window, such as 2026-01-02T05:00:00Z. Instead of `last`."),
        ("as_of" = String, Query, format = DateTime,
            description = "An instant within what the board keeps, such as 2026-01-02T05:00:00Z: the window that ended \
                then. On unranked boards, but COUNT_DISTINCT and `from_first` ones."),
        ("edge" = String, Query, example = "slots", pattern = "^(slots|weighted)$",
            description = "How the oldest slot counts; `slots` if absent."),
    ),
    responses((status = 200, description = "The value and the slots it is of.", body = WindowValue, examples(
        ("COUNT" = (value = json!({"board": "hot-posts", "subject": "post-1", "last": "6h",
            "window": {"from": "2026-01-02T05:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 6},
            "count": 9, "value": 9, "edge": "slots", "as_of": "2026-01-02T10:07:00Z", "retiring": 0}))),
        ("COUNT, weighted" = (value = json!({"board": "requests", "subject": "client-1", "last": "1h",
            "window": {"from": "2026-01-02T09:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 2},
            "count": 14.5, "value": 14.5, "edge": "weighted", "as_of": "2026-01-02T10:15:00Z", "retiring": 0}))),
        ("AVG" = (value = json!({"board": "film-ratings", "subject": "film-1", "last": "7d",
            "window": {"from": "2025-12-27T00:00:00Z", "to": "2026-01-03T00:00:00Z", "slots": 7},
            "count": 4, "sum": 17, "value": 4.25, "edge": "slots", "as_of": "2026-01-02T10:07:00Z",
            "retiring": 0}))),
        ("APPROX_COUNT_DISTINCT" = (value = json!({"board": "visitors", "subject": "page-1", "last": "1d",
            "window": {"from": "2026-01-02T00:00:00Z", "to": "2026-01-03T00:00:00Z", "slots": 1},
            "count": 10230, "value": 10230, "edge": "slots", "standard_error": 0.023,
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0}))),
    ))),
)]
pub(super) async fn window(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let parameters = Parameters::read(&request, &["last", "from", "as_of", "edge"])?;
    let over = over(parameters.text("last"), parameters.text("from"))?;
    let as_of = parameters.text("as_of").map(|text| time("as_of", text)).transpose()?;
    let edge = edge(parameters.text("edge"))?;
    let (board, subject) = (address::board_name(&request)?, address::subject(&request)?);
    let question = Question::Window(WindowQuestion { board, subject, over, as_of, edge });
    let feature = state.service.feature(question).await?;
    Ok(answer::json(&WindowValue::of(&feature, over, as_of)))
}
