//! How the items of a request about one board reach the store: increments and samples alike.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use utoipa::ToSchema;

use super::item::BoardItem;
use super::receipt::{Counts, Judged, NewScore, Receipt};
use crate::board::Board;
use crate::http::body::{self, Format};
use crate::http::intake::{self, Flaw, Line, OneOrMany, Place, stream, unsound};
use crate::http::meters::Tally;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::{HttpState, address, answer, large};
use crate::service::{self, ServiceError};
use crate::store::{Batch, Increment, Outcome, StoreError};

/// What sets increments and samples apart: how a body is judged, how a line is, and which boards take them.
pub(in crate::http) struct Sort {
    pub(in crate::http) judge_body: fn(&[u8], &Board) -> Result<Judged, Unjudged>,
    pub(in crate::http) judge_line: fn(Line<'_>, &Board) -> Result<Increment, Flaw>,
    /// The later of two holds, so that a stream has to be taken in order.
    pub(in crate::http) in_order: bool,
    /// Refuses a board that takes none of them.
    pub(in crate::http) admit: fn(&Board) -> Result<(), Problem>,
}

/// Takes a request: reads it, adds it, and answers the receipt.
pub(in crate::http) async fn add(
    sort: &'static Sort,
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
    tally: Data<Tally>,
) -> Result<HttpResponse, Problem> {
    let return_scores = returned(&request)? == Some(Returned::Score);
    let name = address::board_name(&request)?;
    let format = body::format(&request)?;
    let board = state.service.board(&name).await?;
    let text = match format {
        Format::Ndjson if return_scores => return Err(no_scores_of_streams()),
        Format::Ndjson => {
            // Half way through a stream it is too late to read amounts anew, so the cache must not be trusted here.
            let board = state.service.refreshed(&board).await?;
            (sort.admit)(&board)?;
            let lines = Lines { sort, state: &state, board, tally: &tally };
            answer::text(&stream::take(&lines, payload, state.options.max_line).await?)?
        }
        Format::Json => {
            let body = body::read(payload, &state.options).await?;
            let is_large = body.len() > large::BODY;
            let add = move || async move {
                let receipt = match add_json(sort, &state, &board, &body, return_scores).await {
                    Err(Failure::BoardChanged) => {
                        // Nothing was added; the items must be read again as the board has them now.
                        let board = state.service.board(&name).await?;
                        add_json(sort, &state, &board, &body, return_scores).await?
                    }
                    other => other?,
                };
                tally.record(Counts::default(), receipt.counts());
                answer::text(&receipt)
            };
            large::handle(is_large, add).await?
        }
    };
    Ok(answer::written(StatusCode::OK, text))
}

/// What a request may ask to be answered besides what became of its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in crate::http) enum Returned {
    /// Each subject's new score.
    Score,
}

/// What the query asks for.
pub(in crate::http) fn returned(request: &HttpRequest) -> Result<Option<Returned>, Problem> {
    match Parameters::read(request, &["return"])?.text("return") {
        None => Ok(None),
        Some("score") => Ok(Some(Returned::Score)),
        Some(_) => Err(Problem::field("return", "'return' must be score")),
    }
}

/// A stream that asks for scores.
pub(in crate::http) fn no_scores_of_streams() -> Problem {
    let detail = "return=score answers JSON requests only: a stream has no end to hold its scores for";
    Problem::field("return", detail)
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

/// Why a body has no items.
pub(in crate::http) enum Unjudged {
    /// The request itself is not sound.
    Unsound(Problem),
    /// It is not, as far as the definition known here goes.
    UnsoundHere(Problem),
}

/// Reads the items of a body as the board has them.
pub(in crate::http) fn judge_body<'a, I: BoardItem<'a>>(body: &'a [u8], board: &Board) -> Result<Judged, Unjudged> {
    let mut judged = Judged::new(Place::Index);
    match intake::read::<I>(body).map_err(Unjudged::Unsound)? {
        OneOrMany::One(item) => match item.judge(board) {
            Err(flaw) if flaw.of_shape && flaw.of_board => return Err(Unjudged::UnsoundHere(unsound(flaw))),
            Err(flaw) if flaw.of_shape => return Err(Unjudged::Unsound(unsound(flaw))),
            item => judged.take(0, item),
        },
        OneOrMany::Many(items) => {
            judged.reserve(items.len());
            for (index, raw) in (0..).zip(items) {
                judged.take(index, intake::from_raw::<I>(raw).and_then(|item| item.judge(board)));
            }
        }
    }
    Ok(judged)
}

/// Reads a line of a stream as the board has it.
pub(in crate::http) fn judge_line<'a, I: BoardItem<'a>>(line: Line<'a>, board: &Board) -> Result<Increment, Flaw> {
    intake::from_line::<I>(line)?.judge(board)
}

async fn add_json(
    sort: &Sort,
    state: &HttpState,
    board: &Arc<Board>,
    body: &[u8],
    return_scores: bool,
) -> Result<Receipt, Failure> {
    if let Err(problem) = (sort.admit)(board) {
        return Err(stale_or(state, board, problem).await);
    }
    let mut judged = match (sort.judge_body)(body, board) {
        Ok(judged) => judged,
        Err(Unjudged::Unsound(problem)) => return Err(problem.into()),
        Err(Unjudged::UnsoundHere(problem)) => return Err(stale_or(state, board, problem).await),
    };
    let increments = std::mem::take(&mut judged.increments);
    let mut asked: Vec<_> = match return_scores {
        true => (0..).zip(&increments).map(|(at, i)| Some((judged.number(at), i.subject.clone()))).collect(),
        false => Vec::new(),
    };
    let outcomes = if !increments.is_empty() {
        add_to_store(state, board, Batch { increments, return_scores }).await?
    } else if judged.depends_on_board() && !is_current(state, board).await? {
        // The store has no say where nothing is left to add, and alone knows that items were misread.
        return Err(Failure::BoardChanged);
    } else {
        Vec::new()
    };
    let mut receipt = Receipt::default();
    let mut scores = Vec::with_capacity(asked.len());
    receipt.settle(judged, outcomes, board, |at, score| {
        if let Some((index, subject)) = asked.get_mut(at).and_then(Option::take) {
            scores.push(NewScore { index, subject, score: answer::score(board, score) });
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

/// The problem, unless the board is another one by now.
async fn stale_or(state: &HttpState, board: &Arc<Board>, problem: Problem) -> Failure {
    match is_current(state, board).await {
        Ok(true) => Failure::Refused(problem),
        Ok(false) => Failure::BoardChanged,
        Err(problem) => Failure::Refused(problem),
    }
}

async fn is_current(state: &HttpState, board: &Arc<Board>) -> Result<bool, Problem> {
    Ok(state.service.refreshed(board).await?.generation() == board.generation())
}

/// The lines of a stream about one board.
struct Lines<'a> {
    sort: &'a Sort,
    state: &'a HttpState,
    board: Arc<Board>,
    tally: &'a Tally,
}

impl stream::Intake for Lines<'_> {
    type Portion = Judged;
    type Answer = Vec<Outcome>;
    type Receipt = Receipt;

    fn in_flight(&self) -> usize {
        if self.sort.in_order { 1 } else { stream::IN_FLIGHT }
    }

    fn portion(&self, lines: usize) -> Judged {
        let mut judged = Judged::new(Place::Line);
        judged.reserve(lines);
        judged
    }

    fn read(&self, portion: &mut Judged, number: u64, line: Line<'_>) {
        portion.take(number, (self.sort.judge_line)(line, &self.board));
    }

    async fn send(&self, portion: &mut Judged) -> service::Result<Vec<Outcome>> {
        let increments = std::mem::take(&mut portion.increments);
        if increments.is_empty() {
            return Ok(Vec::new());
        }
        let added = self.state.service.add(&self.board, Batch { increments, return_scores: false }).await?;
        Ok(added.outcomes)
    }

    fn settle(&self, receipt: &mut Receipt, portion: Judged, outcomes: Vec<Outcome>) {
        let before = receipt.counts();
        receipt.settle(portion, outcomes, &self.board, |_, _| ());
        self.tally.record(before, receipt.counts());
    }

    fn progress(receipt: &Receipt) -> (u64, u64) {
        (receipt.accepted, receipt.duplicates)
    }
}
