//! Rankings out: a page of the top, and the order among chosen subjects.

use std::collections::HashSet;
use std::sync::Arc;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Serialize, Serializer};
use serde_json::value::to_raw_value;
use utoipa::ToSchema;

use super::answer::WindowBounds;
use super::body::Object;
use super::openapi::{board_schema, score_schema, subject_schema, time_schema};
use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, address, answer, body};
use crate::board::{Board, BoardName, Order, Shown, Subject, Timestamp};
use crate::service::About;
use crate::store::{Lines, Lookup, Ranked};

/// The most lines of a page, and the most subjects of a look-up.
const MOST_LINES: u64 = 1_000;

/// The furthest place that a page may start at: more than any store ranks.
const MOST_OFFSET: u64 = 1_000_000_000;

/// A part of a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ranking {
    #[schema(schema_with = board_schema)]
    pub(super) board: BoardName,
    /// The board's metric in its canonical form.
    #[schema(example = "COUNT(24h, like, post_id)")]
    pub(super) metric: String,
    pub(super) window: WindowBounds,
    /// The store's time when it answered.
    #[schema(schema_with = time_schema)]
    pub(super) as_of: Timestamp,
    /// Expired slots not yet fully subtracted; while there are any, scores may include part of them.
    pub(super) retiring: u64,
    /// How many subjects are ranked in all.
    pub(super) total: u64,
    /// The lines, best first.
    #[schema(value_type = Vec<Line>, max_items = 1000)]
    pub(super) items: WrittenLines,
    /// Where the next page is; null on the last one.
    #[schema(required = true)]
    pub(super) next: Option<String>,
}

/// One line of a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Line {
    /// Competition rank (1, 2, 2, 4).
    #[schema(minimum = 1)]
    pub(super) rank: u64,
    #[schema(schema_with = subject_schema)]
    pub(super) subject: Subject,
    #[schema(schema_with = score_schema, required = true)]
    pub(super) score: Option<Shown>,
}

/// The lines of a page, which many answers may share: they are written as JSON once for all of them.
#[derive(Debug)]
pub(super) struct WrittenLines {
    board: Arc<Board>,
    lines: Lines,
}

impl WrittenLines {
    pub(super) fn new(board: &Arc<Board>, lines: Lines) -> Self {
        Self { board: board.clone(), lines }
    }

    fn lines(&self, ranked: &[Ranked]) -> Vec<Line> {
        let line = |item: &Ranked| Line {
            rank: item.rank,
            subject: item.subject.clone(),
            score: answer::score(&self.board, item.score),
        };
        ranked.iter().map(line).collect()
    }
}

impl Serialize for WrittenLines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Lines belong to one generation of a board, so whoever shares them writes them with the same decimals.
        if self.lines.is_shared()
            && let Some(Some(text)) = self.lines.made(|ranked| to_raw_value(&self.lines(ranked)).ok())
        {
            return text.serialize(serializer);
        }
        self.lines(&self.lines).serialize(serializer)
    }
}

/// Get a page of the top
///
/// The ranking from place `offset`, at most `limit` lines, all of one instant. Ties are ordered by subject and
/// share a rank. An offset beyond the end answers no lines.
#[utoipa::path(
    get, path = "/v1/boards/{board}/rankings", operation_id = "getRanking", tag = "rankings",
    params(
        ("offset" = u64, Query, minimum = 0, maximum = 1000000000, example = 0, description = "Lines to skip; 0 if absent."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000, example = 50, description = "Lines at most; 50 if absent."),
    ),
    responses((status = 200, description = "The page.", body = Ranking, example = json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 1234,
        "items": [{"rank": 1, "subject": "post-1", "score": 17}],
        "next": "/v1/boards/hot-posts/rankings?offset=50&limit=50"}))),
)]
pub(super) async fn page(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let parameters = Parameters::read(&request, &["offset", "limit"])?;
    let offset = parameters.number("offset", 0, 0..=MOST_OFFSET)?;
    let limit = parameters.number("limit", 50, 1..=MOST_LINES)?;
    let name = address::board_name(&request)?;
    let board = state.service.board(&name).await?;
    let limit_lines = u32::try_from(limit).unwrap_or(u32::MAX);
    let About { board, answer: page } = state.service.page(&board, offset, limit_lines).await?;
    let after = offset + page.items.len() as u64;
    let more = !page.items.is_empty() && after < page.total;
    let next = more.then(|| format!("/v1/boards/{name}/rankings?offset={after}&limit={limit}"));
    Ok(answer::json(&Ranking {
        metric: board.definition().metric.to_string(),
        window: WindowBounds::of(&board, &page.frame),
        as_of: page.frame.as_of,
        retiring: page.frame.retiring,
        total: page.total,
        items: WrittenLines::new(&board, page.items),
        next,
        board: name,
    }))
}

/// The ranking among chosen subjects.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Among {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    /// The board's metric in its canonical form.
    #[schema(example = "COUNT(24h, like, post_id)")]
    metric: String,
    window: WindowBounds,
    /// The store's time when it answered.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
    /// Expired slots not yet fully subtracted.
    retiring: u64,
    /// How many subjects are ranked on the board in all.
    total: u64,
    /// Those asked for, each once: in the board's order, then the ones that are not ranked.
    items: Vec<AmongLine>,
}

/// One line of a ranking among chosen subjects.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct AmongLine {
    /// Rank among the subjects asked for; null for one that is not ranked.
    #[schema(required = true, minimum = 1)]
    rank: Option<u64>,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    #[schema(schema_with = score_schema, required = true)]
    score: Option<Shown>,
}

/// Rank chosen subjects
///
/// The ranking among the given subjects only, such as somebody's friends, all of one instant. A subject given
/// twice counts once.
#[utoipa::path(
    post, path = "/v1/boards/{board}/rankings/lookup", operation_id = "lookUpSubjects", tag = "rankings",
    request_body(content = super::openapi::LookupBody, description = "1 to 1,000 subjects.",
        example = json!({"subjects": ["post-1", "post-2", "post-9"]})),
    responses((status = 200, description = "The ranking among them.", body = Among, example = json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 1234,
        "items": [{"rank": 1, "subject": "post-1", "score": 17}, {"rank": 2, "subject": "post-2", "score": 4},
                  {"rank": null, "subject": "post-9", "score": 0}]}))),
)]
pub(super) async fn lookup(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let name = address::board_name(&request)?;
    let board = state.service.board(&name).await?;
    let body = body::read_json(&request, payload, &state.options).await?;
    let subjects = subjects(&body)?;
    let About { board, answer: found } = state.service.lookup(&board, &subjects).await?;
    Ok(answer::json(&Among {
        metric: board.definition().metric.to_string(),
        window: WindowBounds::of(&board, &found.frame),
        as_of: found.frame.as_of,
        retiring: found.frame.retiring,
        total: found.total,
        items: among(&board, subjects, found),
        board: name,
    }))
}

/// The subjects of the body, each once, in the order of their first mention.
fn subjects(body: &[u8]) -> Result<Vec<Subject>, Problem> {
    let given: Vec<serde_json::Value> = Object::parse(body, &["subjects"])?.required("subjects")?;
    if given.is_empty() || given.len() as u64 > MOST_LINES {
        let detail = format!("'subjects' must list 1 to {MOST_LINES} subjects; here are {}", given.len());
        return Err(Problem::field("subjects", detail).with("minimum", 1).with("maximum", MOST_LINES));
    }
    let mut seen = HashSet::with_capacity(given.len());
    let mut subjects = Vec::with_capacity(given.len());
    for (index, value) in given.iter().enumerate() {
        let field = format!("subjects[{index}]");
        let text = value.as_str().ok_or_else(|| Problem::field(&field, format!("'{field}' must be a string")))?;
        let subject = Subject::parse(text).map_err(|error| Problem::field(&field, format!("'{field}': {error}")))?;
        if seen.insert(subject.clone()) {
            subjects.push(subject);
        }
    }
    Ok(subjects)
}

/// Orders by the board's order with competition ranks; what is not ranked comes last, as it was asked for.
fn among(board: &Arc<Board>, subjects: Vec<Subject>, found: Lookup) -> Vec<AmongLine> {
    let (mut ranked, mut absent) = (Vec::new(), Vec::new());
    for (subject, score) in subjects.into_iter().zip(found.scores) {
        match score {
            Some(score) => ranked.push((score, subject)),
            None => absent.push(subject),
        }
    }
    ranked.sort_unstable();
    if board.order() == Order::Desc {
        ranked.reverse();
    }
    let mut items = Vec::with_capacity(ranked.len() + absent.len());
    let mut last = None;
    for (place, (units, subject)) in (1..).zip(ranked) {
        let rank = match last {
            Some((rank, same)) if same == units => rank,
            _ => place,
        };
        last = Some((rank, units));
        items.push(AmongLine { rank: Some(rank), subject, score: answer::score(board, units) });
    }
    let score = answer::score(board, board.kind().absent());
    items.extend(absent.into_iter().map(|subject| AmongLine { rank: None, subject, score }));
    items
}
