//! Several queries in one request, each with its own answer or error.

mod body;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use serde::Serialize;
use utoipa::ToSchema;

use self::body::{HopBody, HopQueryBody, QueriesBody, QueryBatchBody, QueryBody};
use super::call::Call;
use super::codes::Code;
use super::evaluate::invalid_rule;
use super::parameters::{Plain, parse_edition, parse_key, parse_window};
use super::problem::Problem;
use super::request_id::RequestId;
use super::windows::{self, WindowValue};
use super::{events, large, response, schemas};
use crate::access::Caller;
use crate::board::{BoardName, Metric, RankingKey, Subject, Timestamp};
use crate::service::{Hop, HopAnswer, Over, Query, QueryAnswer, Service, ServiceError, WindowQuery};

/// Maximum number of queries of one request.
const MAX_QUERIES: usize = 1_000;
/// Number of queries above which a request is large: each may combine 2,000 slots.
const LARGE: usize = 100;
/// Maximum number of two-hop counts of one request: each takes many reads.
const MAX_HOPS: usize = 10;
/// Maximum and default of `most`, the number of values that a two-hop count follows.
const MAX_FOLLOWED: u32 = 1_000;
const DEFAULT_FOLLOWED: u32 = 100;

/// The answers to the queries of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Answers {
    /// The answer to each query, in the order of the request.
    answers: Vec<AnswerOrError>,
}

/// The answer to a query.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Answer)]
pub(super) enum AnswerOrError {
    Window(Box<WindowValue>),
    Hop(HopValue),
    Refused(Refused),
}

/// The error of a query. It does not affect the answers to other queries.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueryError)]
pub(super) struct Refused {
    error: Problem,
}

/// The result of a two-hop count.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HopValue {
    hop: HopShown,
    /// Number of distinct values of the followed subjects on the second board.
    value: u64,
    /// Number of values of the first board that were followed.
    followed: u64,
    /// Whether a limit of the query or of a board left out values, so that `value` is a lower bound.
    capped: bool,
    /// The store's time of the read of the first board.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
}

/// The hops of the query.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HopEcho)]
pub(super) struct HopShown {
    from: HopFrom,
    to: HopTo,
    #[schema(minimum = 1, maximum = 1000)]
    most: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HopFrom {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HopTo {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
}

impl HopValue {
    fn of(hop: Hop, answer: &HopAnswer) -> Self {
        Self {
            hop: HopShown {
                from: HopFrom { board: hop.from, by: hop.from_key, subject: hop.subject },
                to: HopTo { board: hop.to, by: hop.to_key },
                most: hop.most,
            },
            value: answer.count,
            followed: answer.followed,
            capped: answer.capped,
            as_of: answer.as_of,
        }
    }
}

impl AnswerOrError {
    fn of(query: &Query, answer: &QueryAnswer) -> Self {
        AnswerOrError::Window(Box::new(match query {
            Query::Window(window) => WindowValue::of(answer, window.over, window.as_of),
            Query::Metric { metric, .. } => WindowValue::of(answer, Over::Whole, None).with_metric(metric),
        }))
    }
}

impl From<Problem> for AnswerOrError {
    fn from(problem: Problem) -> Self {
        AnswerOrError::Refused(Refused { error: problem.redacted(&RequestId::current()).into_owned() })
    }
}

impl From<ServiceError> for AnswerOrError {
    fn from(error: ServiceError) -> Self {
        Problem::from(error).into()
    }
}

/// A parsed query.
enum ParsedQuery {
    /// A query by window or by metric.
    Single(Query),
    /// A two-hop count.
    Hop(Hop),
}

/// Run queries
///
/// Answers up to 1,000 queries in order, from one read of the store. There are three kinds of queries: the value of a
/// subject over a window of a board (`board` and `subject`, with `by`, `window`, `last`, `from`, `as_of` and `edge` as for
/// `…/window`); the value of a `metric` for given `fields`, from a board that serves it; the two-hop count. A query
/// that fails has an `error`, which is a problem as for a whole request, and does not affect other queries. The body
/// may also be a single query.
///
/// A metric is served by a board that has the same metric with the same or a longer window; each window of a board
/// counts, and so do the slots that a board keeps over all time. The newest slots that cover the window of the metric
/// are read, and one more if the board has `cover` `full`. Of several the one with the shortest slots is chosen, then
/// an unranked one, then the first by name. A board that was defined after the start of these slots is chosen only if
/// there is no older one; if none is older than that, the oldest is chosen, and the answer has `covers_since`. A
/// `from_first` board serves only exactly its own window, and only if no other board does. With `board`, only that
/// board is read.
///
/// The two-hop count starts with the values of the subject on the first board and returns the number of distinct values
/// that these have on the second board. With `users-per-device` and `devices-per-user` it is the number of distinct
/// devices of the users seen on a device, including the device itself. Both boards must be COUNT_DISTINCT, and their
/// main windows are read. `most` (default 100, at most 1,000) limits the number of values to follow and the number to
/// read for each; `capped` is true if values were left out. A request may have at most 10 two-hop counts.
#[utoipa::path(
    post, path = "/v1/query", operation_id = "query", tag = "features",
    request_body(content = QueriesBody, description = "The queries.", examples(
        ("many" = (value = json!({"queries": [
            {"board": "device-logins", "subject": "device-1", "last": "5m"},
            {"metric": "COUNT(30m, login, device_id)", "fields": {"device_id": "device-1"}},
            {"board": "nothing", "subject": "device-1"}]}))),
        ("two hops" = (value = json!({"queries": [{"hop": {
            "from": {"board": "users-per-device", "subject": "device-1"}, "to": {"board": "devices-per-user"},
            "most": 1000}}]}))),
        ("one" = (value = json!({"metric": "COUNT(30m, login, device_id)", "fields": {"device_id": "device-1"}}))),
    )),
    responses((status = 200, description = "The answers, in the order of the request.", body = Answers, examples(
        ("many" = (value = json!({"answers": [
            {"board": "device-logins", "subject": "device-1", "last": "5m",
                "window": {"from": "2026-01-02T10:03:00Z", "to": "2026-01-02T10:08:00Z", "slots": 5},
                "count": 2, "value": 2, "edge": "slots", "as_of": "2026-01-02T10:07:00Z", "retiring": 0},
            {"board": "device-logins", "subject": "device-1", "metric": "COUNT(30m, login, device_id)",
                "window": {"from": "2026-01-02T09:38:00Z", "to": "2026-01-02T10:08:00Z", "slots": 30},
                "count": 4, "value": 4, "edge": "slots", "as_of": "2026-01-02T10:07:00Z", "retiring": 0},
            {"error": {"type": "/problems/unknown_board", "title": "Unknown board", "status": 404,
                "detail": "unknown board 'nothing'; define it with PUT /v1/boards/nothing",
                "code": "unknown_board", "board": "nothing"}}]}))),
        ("two hops" = (value = json!({"answers": [{"hop": {
            "from": {"board": "users-per-device", "subject": "device-1"}, "to": {"board": "devices-per-user"},
            "most": 1000}, "count": 7, "value": 7, "followed": 3, "capped": false,
            "as_of": "2026-01-02T10:07:00Z"}]}))),
    ))),
)]
pub(super) async fn query(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let body = call.json(payload).await?;
    let queries: Vec<Result<ParsedQuery, Problem>> = parse_queries(&body)?;
    let hops = queries.iter().filter(|query| matches!(query, Ok(ParsedQuery::Hop(_)))).count();
    if hops > MAX_HOPS {
        let detail = format!("a request may have at most {MAX_HOPS} two-hop counts, not {hops}");
        return Err(Problem::new(Code::TooLarge, detail).with("limit", MAX_HOPS));
    }
    let is_large = queries.len() > LARGE;
    let Call { caller, state, .. } = call;
    let answer =
        move || async move { response::to_json(&Answers { answers: run(&state.service, &caller, queries).await }) };
    Ok(response::json_text(StatusCode::OK, large::handle(is_large, answer).await?))
}

/// Runs all queries: those by window and metric in one call of the store, then the two-hop counts one by one.
async fn run(service: &Service, caller: &Caller, queries: Vec<Result<ParsedQuery, Problem>>) -> Vec<AnswerOrError> {
    let single = queries.iter().filter_map(|query| match query {
        Ok(ParsedQuery::Single(query)) => Some(query.clone()),
        _ => None,
    });
    let mut single = service.queries(caller, single.collect()).await.into_iter();
    let mut answers = Vec::with_capacity(queries.len());
    for query in queries {
        answers.push(match query {
            Err(problem) => problem.into(),
            Ok(ParsedQuery::Hop(hop)) => match service.hop(caller, &hop).await {
                Ok(answer) => AnswerOrError::Hop(HopValue::of(hop, &answer)),
                Err(error) => error.into(),
            },
            Ok(ParsedQuery::Single(query)) => match single.next() {
                Some(Ok(answer)) => AnswerOrError::of(&query, &answer),
                Some(Err(error)) => error.into(),
                None => Problem::new(Code::Internal, "a query has no answer").into(),
            },
        });
    }
    answers
}

/// Parses the queries of a body, each with its own error.
fn parse_queries(body: &[u8]) -> Result<Vec<Result<ParsedQuery, Problem>>, Problem> {
    let given = match QueriesBody::parse(body)? {
        QueriesBody::One(query) => return Ok(vec![Ok(parse_query(query)?)]),
        QueriesBody::Many(QueryBatchBody { queries }) => queries,
    };
    if given.len() > MAX_QUERIES {
        let detail = format!("'queries' may have at most {MAX_QUERIES} elements, not {}", given.len());
        return Err(Problem::new(Code::TooLarge, detail).with("limit", MAX_QUERIES));
    }
    let each = |(index, raw)| parse_query(QueryBody::of_list(index, raw)?);
    Ok(given.into_iter().enumerate().map(each).collect())
}

fn parse_query(body: QueryBody<'_>) -> Result<ParsedQuery, Problem> {
    match body {
        QueryBody::Window(body) => Ok(ParsedQuery::Single(Query::Window(WindowQuery {
            board: parse_board(&body.board)?,
            subject: parse_subject(&body.subject)?,
            window: body.window.as_deref().map(parse_window).transpose()?,
            of: body.of.as_deref().map(parse_edition).transpose()?,
            by: parse_by(body.by.as_deref())?,
            over: windows::parse_over(body.last.as_deref(), body.from.as_deref())?,
            as_of: body.as_of.map(|text| windows::parse_time("as_of", &text)).transpose()?,
            edge: windows::parse_edge(body.edge.as_deref())?,
        }))),
        QueryBody::Metric(body) => {
            let metric: Metric = body.metric.parse().map_err(|error| invalid_rule("metric", &error))?;
            let fields = events::parse_fields(body.fields)?;
            let subject = metric.subject_of(&fields).map_err(ServiceError::from)?;
            let boards = body.board.as_deref().map(parse_board).transpose()?.into_iter().collect();
            Ok(ParsedQuery::Single(Query::Metric { metric, subject, boards }))
        }
        QueryBody::Hop(HopQueryBody { hop }) => parse_hop(hop).map(ParsedQuery::Hop),
    }
}

fn parse_hop(HopBody { from, to, most }: HopBody) -> Result<Hop, Problem> {
    let most = most.unwrap_or(DEFAULT_FOLLOWED);
    if !(1..=MAX_FOLLOWED).contains(&most) {
        let detail = format!("'most' must be a whole number from 1 to {MAX_FOLLOWED}");
        return Err(Problem::field("most", detail).with("minimum", 1).with("maximum", MAX_FOLLOWED));
    }
    Ok(Hop {
        from: parse_board(&from.board)?,
        from_key: parse_by(from.by.as_deref())?,
        subject: parse_subject(&from.subject)?,
        to: parse_board(&to.board)?,
        to_key: parse_by(to.by.as_deref())?,
        most,
    })
}

/// Parses the name of a board. An invalid name is an unknown board.
fn parse_board(text: &str) -> Result<BoardName, Problem> {
    BoardName::parse(text).map_err(|error| {
        let name: String = text.chars().take(64).collect();
        Problem::new(Code::UnknownBoard, format!("unknown board '{name}': {error}")).with("board", name)
    })
}

fn parse_by(text: Option<&str>) -> Result<Option<RankingKey>, Problem> {
    text.map(|text| parse_key("by", text)).transpose()
}

fn parse_subject(text: &str) -> Result<Subject, Problem> {
    Subject::parse(text).map_err(|error| Problem::field("subject", format!("'subject': {error}")))
}
