//! Increments in: one, a batch, or a stream without end.

mod item;
mod lines;
mod receipt;
mod stream;

use std::sync::Arc;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use self::item::{Flaw, Item, Items, MOST_ITEMS, Sent};
use self::receipt::{Judged, NewScore, Place};
use super::body::{self, Format};
use super::codes::{Code, ItemCode};
use super::meters::Tally;
use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, address, answer};
use crate::board::Board;
use crate::service::ServiceError;
use crate::store::{Batch, Increment, Outcome, StoreError};

pub(super) use self::receipt::{Counts, Receipt};

/// Count increments
///
/// Send one increment, `{"increments":[…]}`, or a stream of any length as `application/x-ndjson` with one
/// increment a line (blank lines are skipped). The answer comes after the store has them.
///
/// Each increment stands for itself: one that cannot be counted is named under `rejected` with its reason, by its
/// `index` (JSON, from 0) or `line` (NDJSON, from 1), and the rest counts. The request as a whole fails only where
/// it is unsound as such: not JSON, or a single increment with a missing, unknown or wrongly typed field.
///
/// An `id` counts once per board and subject, for as long as the window, at most a day, after it arrived: with
/// ids a request can be repeated safely. If the store fails in the middle of a stream, the answer is the problem
/// with `accepted`, `duplicates` and `counted_through`, the last line up to which everything has been settled;
/// lines after it may or may not have been counted, so resume from there with ids.
#[utoipa::path(
    post, path = "/v1/boards/{board}/increments", operation_id = "addIncrements", tag = "increments",
    params(("return" = inline(Returned), Query,
        description = "`score` answers, under `scores`, each subject's new score from the same atomic step (JSON only).")),
    request_body(description = "One increment, a batch, or a stream.", content(
        (super::openapi::IncrementsBody = "application/json", examples(
            ("one" = (summary = "One increment", value = json!({"subject": "post-1", "amount": 2}))),
            ("several" = (summary = "A batch", value = json!({"increments": [
                {"subject": "post-1"}, {"subject": "post-2", "amount": -1, "id": "e-82"}]}))),
        )),
        (String = "application/x-ndjson", example = "{\"subject\":\"post-1\",\"amount\":2}\n{\"subject\":\"post-2\",\"id\":\"e-83\"}\n"),
    )),
    responses((status = 200, description = "What became of each increment.", body = Receipt, examples(
        ("all counted" = (value = json!({"accepted": 2, "duplicates": 0, "rejected": []}))),
        ("some rejected" = (value = json!({"accepted": 1, "duplicates": 0,
            "rejected": [{"index": 1, "code": "too_late", "detail": "its slot has left the window"}],
            "rejected_counts": {"too_late": 1}}))),
        ("with scores" = (value = json!({"accepted": 1, "duplicates": 0, "rejected": [],
            "scores": [{"index": 0, "subject": "post-1", "score": 19}]}))),
    ))),
)]
pub(super) async fn add(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
    tally: Data<Tally>,
) -> Result<HttpResponse, Problem> {
    let return_scores = returned(&request)? == Some(Returned::Score);
    let name = address::board_name(&request)?;
    let format = body::format(&request)?;
    let board = state.service.board(&name).await?;
    let receipt = match format {
        Format::Ndjson if return_scores => {
            let detail = "return=score answers JSON requests only: a stream has no end to hold its scores for";
            return Err(Problem::field("return", detail));
        }
        Format::Ndjson => stream::add(&state, board, payload, &tally).await?,
        Format::Json => {
            let body = body::read(payload, &state.options).await?;
            let receipt = match add_json(&state, &board, &body, return_scores).await {
                Err(Failure::BoardChanged) => {
                    // Nothing was added; the amounts must be read again with the decimals it has now.
                    let board = state.service.board(&name).await?;
                    add_json(&state, &board, &body, return_scores).await?
                }
                other => other?,
            };
            tally.record(Counts::default(), receipt.counts());
            receipt
        }
    };
    Ok(answer::json(&receipt))
}

/// What a request may ask to be answered besides what became of its increments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
enum Returned {
    /// Each subject's new score.
    Score,
}

fn returned(request: &HttpRequest) -> Result<Option<Returned>, Problem> {
    match Parameters::read(request, &["return"])?.text("return") {
        None => Ok(None),
        Some("score") => Ok(Some(Returned::Score)),
        Some(_) => Err(Problem::field("return", "'return' must be score")),
    }
}

/// Why a JSON request was not added.
enum Failure {
    /// Nothing was added: look the board up and read the body again.
    BoardChanged,
    Refused(Problem),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Refused(problem)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::BoardChanged => StoreError::BoardChanged.into(),
            Failure::Refused(problem) => problem,
        }
    }
}

async fn add_json(state: &HttpState, board: &Arc<Board>, body: &[u8], return_scores: bool) -> Result<Receipt, Failure> {
    let mut judged = Judged::new(Place::Index);
    match read_items(body)? {
        OneOrMany::One(item) => match item.judge(board) {
            Err(flaw) if flaw.of_shape => return Err(unsound(flaw).into()),
            item => judged.take(0, item),
        },
        OneOrMany::Many(items) => {
            judged.reserve(items.len());
            for (index, raw) in (0..).zip(items) {
                judged.take(index, judge_raw(raw, board));
            }
        }
    }
    let increments = std::mem::take(&mut judged.increments);
    let mut asked: Vec<_> = match return_scores {
        true => (0..).zip(&increments).map(|(at, i)| Some((judged.number(at), i.subject.clone()))).collect(),
        false => Vec::new(),
    };
    let outcomes = if !increments.is_empty() {
        add_to_store(state, board, Batch { increments, return_scores }).await?
    } else if judged.depends_on_board() && !is_current(state, board).await? {
        // The store has no say where nothing is left to add, and alone knows that amounts were misread.
        return Err(Failure::BoardChanged);
    } else {
        Vec::new()
    };
    let mut receipt = Receipt::default();
    let mut scores = Vec::with_capacity(asked.len());
    receipt.settle(judged, outcomes, board, |at, units| {
        if let Some((index, subject)) = asked.get_mut(at).and_then(Option::take) {
            scores.push(NewScore { index, subject, score: answer::score(board, units) });
        }
    });
    receipt.scores = return_scores.then_some(scores);
    Ok(receipt)
}

async fn add_to_store(state: &HttpState, board: &Arc<Board>, batch: Batch) -> Result<Vec<Outcome>, Failure> {
    match state.service.add(board, batch).await {
        Ok(added) => Ok(added.outcomes),
        Err(ServiceError::Store(StoreError::BoardChanged)) => Err(Failure::BoardChanged),
        Err(error) => Err(Failure::Refused(error.into())),
    }
}

async fn is_current(state: &HttpState, board: &Arc<Board>) -> Result<bool, Problem> {
    Ok(state.service.refreshed(board).await?.generation() == board.generation())
}

enum OneOrMany<'a> {
    One(Item<'a>),
    Many(Vec<&'a RawValue>),
}

fn read_items(body: &[u8]) -> Result<OneOrMany<'_>, Problem> {
    let sent: Sent<'_> = serde_json::from_slice(body).map_err(|error| {
        if error.is_data() { Problem::field("body", body::without_position(&error)) } else { body::malformed(&error) }
    })?;
    match sent.increments {
        None => Ok(OneOrMany::One(sent.single)),
        Some(Items::NoList) => Err(Problem::field("increments", "'increments' must be a list of increments")),
        Some(Items::TooMany) => {
            let detail = format!("a batch may have {MOST_ITEMS} increments; send more as application/x-ndjson");
            Err(Problem::new(Code::TooLarge, detail).with("limit", MOST_ITEMS))
        }
        Some(Items::List(_)) if !sent.single.is_empty() => {
            Err(Problem::new(Code::UnknownField, "beside 'increments' there must be no other field"))
        }
        Some(Items::List(items)) => Ok(OneOrMany::Many(items)),
    }
}

/// An element of a batch: what is wrong with it is its own affair.
fn judge_raw(raw: &RawValue, board: &Board) -> Result<Increment, Flaw> {
    let item: Item<'_> = serde_json::from_str(raw.get()).map_err(|error| Flaw {
        code: ItemCode::InvalidIncrement,
        field: String::new(),
        detail: body::without_position(&error),
        of_shape: true,
    })?;
    item.judge(board)
}

/// A single increment of the wrong shape: the request itself was not sound.
fn unsound(flaw: Flaw) -> Problem {
    let code = if flaw.code == ItemCode::UnknownField { Code::UnknownField } else { Code::InvalidField };
    Problem::new(code, flaw.detail).with("field", flaw.field)
}
