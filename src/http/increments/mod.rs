//! Increments in: one, a batch, or a stream without end.

mod adding;
mod item;
mod number;
mod receipt;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use self::item::IncrementItem;
use super::HttpState;
use super::meters::Tally;
use super::problem::Problem;

pub(super) use self::adding::{
    Returned, Sort, add as add_items, judge_body, judge_line, no_scores_of_streams, returned,
};
pub(super) use self::item::BoardItem;
pub(super) use self::number::{amount, code_of as code_of_amount, misplaced, required};
pub(super) use self::receipt::{Counts, Receipt};

const INCREMENTS: Sort = Sort {
    judge_body: |body, board| judge_body::<IncrementItem<'_>>(body, board),
    judge_line: |line, board| judge_line::<IncrementItem<'_>>(line, board),
    in_order: false,
    admit: |_| Ok(()),
};

/// Count increments
///
/// Send one increment, `{"increments":[…]}`, or a stream of any length as `application/x-ndjson` with one
/// increment a line (blank lines are skipped). The answer comes after the store has them.
///
/// What an increment says depends on the board's metric: for `COUNT` and `SUM` an `amount` (1 if absent); for
/// `AVG`, `MIN` and `MAX` a `value`, the number that was measured; for `COUNT_DISTINCT` and
/// `APPROX_COUNT_DISTINCT` a `value`, the text that was seen (of a number or a truth value its own text). The subject
/// of a board with several subject fields is a compact JSON array, such as `["203.0.113.9","d-1"]`.
///
/// With `"retract": true` it undoes its twin: `at` is the twin's and required, and an `id` is another than the twin's,
/// of which it would be a duplicate. A twin that has left the window needs no undoing: its retraction is accepted
/// and changes nothing. `MIN`, `MAX` and `APPROX_COUNT_DISTINCT` cannot undo and reject it.
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
            ("amount" = (summary = "One increment", value = json!({"subject": "post-1", "amount": 2}))),
            ("batch" = (summary = "A batch", value = json!({"increments": [
                {"subject": "post-1"}, {"subject": "post-2", "amount": -1, "id": "e-82"}]}))),
            ("measured" = (summary = "AVG, MIN, MAX", value = json!({"subject": "sensor-1", "value": 21.5}))),
            ("seen" = (summary = "COUNT_DISTINCT, APPROX_COUNT_DISTINCT",
                value = json!({"subject": "device-1", "value": "user-7"}))),
            ("retraction" = (summary = "A retraction", value = json!({"subject": "post-1", "retract": true,
                "at": "2026-01-01T10:07:00Z", "id": "e-81-undone"}))),
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
    add_items(&INCREMENTS, request, payload, state, tally).await
}
