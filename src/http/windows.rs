//! The value of a subject over a window: whole or shorter, current or past.

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::call::Call;
use super::frame::FrameShown;
use super::problem::Problem;
use super::{response, schemas};
use crate::board::{
    Amount, BoardName, Decimals, Edge, Kind, Metric, RankingKey, Shown, Span, Subject, Timestamp, Value,
};
use crate::service::{Over, Query, QueryAnswer, WindowChoice, WindowQuery};

/// The value of a subject over a window. On a `from_first` board the window is the subject's own, or the one that an
/// event at the current time would begin.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WindowValue {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// The requested metric, if the query was by metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false, example = "COUNT(6h, like, post_id)")]
    metric: Option<String>,
    /// The requested duration, if the query was by `last`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false, example = "6h")]
    last: Option<Span>,
    /// The requested start, if the query was by `from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    from: Option<Timestamp>,
    #[serde(flatten)]
    frame: FrameShown,
    /// For COUNT, SUM, COUNT_DISTINCT and APPROX_COUNT_DISTINCT the same as `value`. For AVG the number of measurements
    /// in these slots, which `edge` does not weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, format = "decimal", required = false)]
    count: Option<Shown>,
    /// Sum of the measurements in these slots, which `edge` does not weight. For AVG only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, format = "decimal", required = false)]
    sum: Option<Shown>,
    /// Value of the metric over these slots.
    #[schema(schema_with = schemas::score, required = true)]
    value: Option<Shown>,
    /// Time of the value. For LAST only, if there is a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    at: Option<Timestamp>,
    #[schema(schema_with = schemas::edge)]
    edge: Edge,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::covers_since, required = false)]
    covers_since: Option<Timestamp>,
    /// Whether values of these slots were dropped because of the board's `max_values`. For COUNT_DISTINCT, and with a
    /// cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    capped: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::standard_error, required = false)]
    standard_error: Option<f64>,
}

impl WindowValue {
    /// Returns the response for a window that was requested with `over` and `as_of`.
    pub(super) fn of(answer: &QueryAnswer, over: Over, as_of: Option<Timestamp>) -> Self {
        let QueryAnswer { track, subject, contents, edge, covers_since, value, .. } = answer;
        let shown = |value: Value| value.shown(track.scale());
        let value = value.map(shown);
        let measured = answer.measured();
        let count = match track.kind() {
            Kind::Mean => measured.map(|(_, count)| Value::Exact(Amount(count)).shown(Decimals::default())),
            Kind::Min | Kind::Max | Kind::Last => None,
            Kind::Sum | Kind::TimedSum(_) | Kind::Distinct | Kind::Capped { .. } | Kind::Sketch => value,
        };
        Self {
            board: track.board().name().clone(),
            by: track.key().cloned(),
            subject: subject.clone(),
            metric: None,
            last: if let Over::Last(last) = over { Some(last) } else { None },
            from: if let Over::From(from) = over { Some(from) } else { None },
            frame: FrameShown::as_of(track, as_of, &contents.frame, contents.slots),
            count,
            sum: measured.map(|(sum, _)| shown(Value::Exact(sum))),
            value,
            at: answer.last_at(),
            edge: *edge,
            covers_since: *covers_since,
            capped: track.kind().remembers_values().then_some(contents.capped),
            standard_error: track.kind().standard_error(),
        }
    }

    /// Adds the metric of a query by metric.
    pub(super) fn with_metric(mut self, metric: &Metric) -> Self {
        self.metric = Some(metric.to_string());
        self
    }
}

/// Parses the part of the window to read: `last`, `from`, or the whole window without either.
pub(super) fn parse_over(last: Option<&str>, from: Option<&str>) -> Result<Over, Problem> {
    match (last, from) {
        (Some("all"), None) => {
            Err(Problem::field("last", "'last' must be a duration; leave it out, or give window=all, to read all time"))
        }
        (Some(last), None) => {
            last.parse().map(Over::Last).map_err(|error| Problem::field("last", format!("'last': {error}")))
        }
        (None, Some(from)) => parse_time("from", from).map(Over::From),
        (None, None) => Ok(Over::Whole),
        (Some(_), Some(_)) => Err(Problem::field("last", "give 'last' or 'from', not both")),
    }
}

/// Parses a time.
pub(super) fn parse_time(field: &str, text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).map_err(|error| Problem::field(field, format!("'{field}': {error}")))
}

/// Parses the weight of the oldest slot. Default: [`Edge::Slots`].
pub(super) fn parse_edge(text: Option<&str>) -> Result<Edge, Problem> {
    match text {
        None | Some("slots") => Ok(Edge::Slots),
        Some("weighted") => Ok(Edge::Weighted),
        Some(_) => Err(Problem::field("edge", "'edge' must be 'slots' or 'weighted'")),
    }
}

/// Get the value of a subject over a window
///
/// Returns the value of the board's metric over its newest slots. `last` is rounded up to whole slots, including the
/// current one, with one more on boards with `cover` `full`; `from` starts at the slot that contains it; without either the whole window is read, which is all that
/// a window over all time can answer. A board over all time that keeps slots answers `last` and `from` from these, up
/// to the time for which it keeps them (`keep`). On a board with several windows, `last` is read from the one with the
/// shortest slots of those that are as long, unless `window` names one. `window` in the response contains the exact
/// bounds. On boards that keep older slots (`keep`), `as_of` reads the window that ended with the slot containing that
/// time.
///
/// `edge=weighted` is available on boards with `cover` `full` for COUNT, SUM, AVG and COUNT_DISTINCT. It weights the oldest
/// slot by the share of it that is still within the window: when half of the newest slot has passed, the oldest slot
/// counts half, as in sliding-window rate limiters.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/window", operation_id = "readWindow", tag = "subjects",
    params(
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: with `last`, \
                the one with the shortest slots of those that are as long; otherwise the main window."),
        ("last" = String, Query, pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo|y)$",
            description = "A duration such as 90s, 15m, 6h or 7d, at most the longest window of the board, or over all time its `keep`."),
        ("from" = String, Query, format = DateTime,
            description = "A time within the window to read, such as 2026-01-02T05:00:00Z. An alternative to `last`."),
        ("as_of" = String, Query, format = DateTime,
            description = "A time within the slots that the board keeps, such as 2026-01-02T05:00:00Z, to read the \
                window that ended then. Unranked boards only, except COUNT_DISTINCT and `from_first` ones; over all time with \
                `last` or `from`, for boards that keep slots."),
        ("edge" = String, Query, example = "slots", pattern = "^(slots|weighted)$",
            description = "Weight of the oldest slot. Default: `slots`."),
    ),
    responses((status = 200, description = "The value and the bounds of the window.", body = WindowValue, examples(
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
pub(super) async fn window(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["window", "of", "by", "last", "from", "as_of", "edge"])?;
    let over = parse_over(parameters.text("last"), parameters.text("from"))?;
    let as_of = parameters.text("as_of").map(|text| parse_time("as_of", text)).transpose()?;
    let edge = parse_edge(parameters.text("edge"))?;
    let (board, subject) = (call.board_name()?, call.subject()?);
    let (of, WindowChoice { length: window, by, .. }) = (parameters.edition()?, parameters.window()?);
    let query = Query::Window(WindowQuery { board, subject, window, of, by, over, as_of, edge });
    let answer = call.service().query(&call.caller, query).await?;
    Ok(response::json(&WindowValue::of(&answer, over, as_of)))
}
