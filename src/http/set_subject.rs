//! Setting what a subject has on a board to one value.

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::call::Call;
use super::codes::Code;
use super::counts::RejectedCounts;
use super::increments::{amount, numbered, required, used};
use super::items::{TextField, code_of_rejection, detail_of_rejection, rejection_problem};
use super::problem::Problem;
use super::{object, response, schemas};
use crate::board::{Amount, Board, BoardName, RankingKey, Shown, Subject, Tie, Timestamp};
use crate::service::{Outcome, Rejection, ServiceError, StoreError};

/// The value that a subject gets: `amount` for COUNT and SUM, `value` for AVG, MIN, MAX and LAST.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SubjectValue)]
pub(super) struct SubjectValueBody<'a> {
    /// The total of the subject, for COUNT and SUM.
    #[serde(default, borrow)]
    #[schema(value_type = f64, format = "decimal", required = false, example = 17)]
    amount: Option<&'a RawValue>,
    /// The smallest, largest or newest number of the subject, for MIN, MAX and LAST; its only measurement, for AVG.
    #[serde(default, borrow)]
    #[schema(value_type = f64, format = "decimal", required = false)]
    value: Option<&'a RawValue>,
    #[serde(default, borrow)]
    #[schema(schema_with = schemas::tie_break_of_item, required = false)]
    tie_break: Option<&'a RawValue>,
    /// The time of the value, in the past. Windows that began later have nothing. Default: the store's current time.
    #[serde(default, borrow)]
    #[schema(value_type = String, format = DateTime, required = false, example = "2026-01-02T09:30:00Z")]
    at: TextField<'a>,
}

/// What the subject has now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubjectSet {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// The new score in the main window.
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    tie: Option<Tie>,
    /// The store's time of the change.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
}

/// Set the value of a subject
///
/// Replaces everything that the subject has on the board, in every window and in a total over all time, by one value at
/// one time, for example to correct a wrong best score. A window that does not reach back to `at` has nothing of the
/// subject afterwards. `COUNT` and `SUM` use `amount`; `AVG`, `MIN`, `MAX` and `LAST` use `value`. Boards of distinct
/// values refuse it. Every error in the body is found before anything changes. A subject that has nothing on the board yet
/// is counted like an increment, within `max_subjects`, `max_keys` and `memory_limit`.
///
/// The subject is removed from one window after the other, and then the value is counted in all of them in one atomic
/// step. In between the subject may be missing in reads, and what is counted for it in the meantime may stay in some
/// windows and be missing in others: set the value while nothing is counted for the subject, or set it again. After an
/// error the subject may be missing: send the request again, which has the same result. Requests to one instance wait
/// for each other; values that different instances set at the same time may be added up.
#[utoipa::path(
    put, path = "/v1/boards/{board}/subjects/{subject}", operation_id = "setSubject", tag = "subjects",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`.")),
    request_body(content = SubjectValueBody, description = "The value.", examples(
        ("best score" = (value = json!({"value": 880, "at": "2026-01-02T09:30:00Z"}))),
        ("a total" = (value = json!({"amount": 17}))))),
    responses((status = 200, description = "The value was set.", body = SubjectSet, example = json!({
        "board": "best-scores", "subject": "player-1", "score": 880, "as_of": "2026-01-02T10:07:00Z"}))),
)]
pub(super) async fn set(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    let by = call.parameters(&["by"])?.key()?;
    let (name, subject) = (call.board_name()?, call.subject()?);
    let body = call.json(payload).await?;
    let board = call.service().board(&call.caller, &name).await?;
    // It is rare, and what the subject has is removed first: the value is parsed for the board as it is.
    let (mut board, mut is_repeated) = (call.service().refreshed(&board).await?, false);
    let (outcome, as_of) = loop {
        let (amount, at) = parse(&body, &board)?;
        match call.service().set_subject(&board, &subject, by.as_ref(), amount, at).await {
            // Nothing was changed: the value is parsed again for the board as it is now.
            Err(ServiceError::Store(StoreError::BoardChanged)) if !is_repeated => {
                (board, is_repeated) = (call.service().board(&call.caller, &name).await?, true);
            }
            set => break set?,
        }
    };
    match outcome {
        Outcome::Counted { score } | Outcome::Duplicate { score } => Ok(response::json(&SubjectSet {
            score: response::score(board.scale(), score),
            tie: response::tie(board.scale(), score),
            board: name,
            by,
            subject,
            as_of,
        })),
        Outcome::Rejected(Rejection::SubjectFrozen) => Err(Problem::new(
            Code::SubjectFrozen,
            format!("subject '{subject}' of board '{name}' is frozen, so nothing was changed"),
        )
        .with("board", name.as_str())
        .with("subject", subject.as_str())),
        Outcome::Rejected(rejection) if rejection != Rejection::TooLate => {
            let code = code_of_rejection(rejection);
            let mut counts = RejectedCounts::default();
            counts.add(code);
            let rejected = json!({"code": code, "detail": detail_of_rejection(rejection, &board)});
            Err(rejection_problem(&[rejected], &counts).with("board", name.as_str()))
        }
        Outcome::Rejected(_) => {
            let detail = "every window of the board has left this time, so the subject has nothing on the board now";
            Err(Problem::field("at", detail))
        }
    }
}

/// Parses the value for the board.
fn parse(body: &[u8], board: &Board) -> Result<(Amount, Option<Timestamp>), Problem> {
    let metric = &board.definition().metric;
    if board.kind().counts_values() {
        let why = match board.definition().cap {
            Some(_) => "it does not tell what each person adds, which its 'cap' limits".to_owned(),
            None => format!("{metric} counts distinct values"),
        };
        let detail = format!("board '{}' takes no value of a subject, because {why}", board.name());
        return Err(Problem::new(Code::SamplesUnsupported, detail).with("board", board.name().as_str()));
    }
    let SubjectValueBody { amount: total, value, tie_break, at } = object::parse(body)?;
    let (field, given) = used(&[("amount", total), ("value", value)], board)?;
    let amount = amount(required(given, field, board)?, field, board)?;
    Ok((numbered(amount, tie_break, field, board)?, at.at()?))
}
