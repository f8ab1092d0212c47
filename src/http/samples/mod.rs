//! Samples in: what a slot of a subject holds, set by whoever has added it up already.

mod item;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use self::item::SampleItem;
use super::HttpState;
use super::codes::Code;
use super::increments::{Receipt, Returned, Sort, add_items, judge_body, judge_line};
use super::meters::Tally;
use super::problem::Problem;
use crate::board::{Board, Kind, Mode};

const SAMPLES: Sort = Sort {
    judge_body: |body, board| judge_body::<SampleItem<'_>>(body, board),
    judge_line: |line, board| judge_line::<SampleItem<'_>>(line, board),
    in_order: true,
    admit,
};

fn admit(board: &Board) -> Result<(), Problem> {
    let metric = &board.definition().metric;
    let detail = match (board.kind(), board.definition().mode) {
        (Kind::Distinct | Kind::Sketch, _) => {
            format!("board '{}' counts the values of {metric}, which no number can set; send increments", board.name())
        }
        (_, Mode::FromFirst) => {
            format!(
                "the windows of board '{}' begin with events and have no slots to set; send increments",
                board.name()
            )
        }
        _ => return Ok(()),
    };
    Err(Problem::new(Code::SamplesUnsupported, detail).with("board", board.name().as_str()))
}

/// Set samples
///
/// For systems that add up before they send. A sample *sets* what a subject has in one slot, whatever it had, and
/// the ranking moves by the difference: sending a sample again changes nothing, and sending a corrected one corrects.
///
/// Send one sample, `{"samples":[…]}`, or a stream of any length as `application/x-ndjson` with one sample a line.
/// What a sample says depends on the board's metric: for `COUNT` and `SUM` an `amount`; for `AVG` the `sum` of the
/// measurements and their `count`; for `MIN` and `MAX` the extreme as `value`. An amount of 0, or a sum and a count of
/// 0, empties the slot.
///
/// `at` is required and says which slot: the one that contains it or, on boards with `stamp = "end"`, the one that
/// ends with it or contains it, so that 06:02 belongs to 06:01–06:02. The slot has to be in the window. Boards of
/// `COUNT_DISTINCT` and `APPROX_COUNT_DISTINCT`, and those with `mode = "from_first"`, take no samples.
///
/// The answer is as for increments; an accepted sample is one that now holds.
#[utoipa::path(
    put, path = "/v1/boards/{board}/samples", operation_id = "setSamples", tag = "increments",
    params(("return" = inline(Returned), Query,
        description = "`score` answers, under `scores`, each subject's new score from the same atomic step (JSON only).")),
    request_body(description = "One sample, a batch, or a stream.", content(
        (super::openapi::SamplesBody = "application/json", examples(
            ("amount" = (summary = "COUNT, SUM", value = json!({
                "subject": "post-1", "at": "2026-01-01T10:00:00Z", "amount": 412}))),
            ("batch" = (summary = "AVG, a batch", value = json!({"samples": [
                {"subject": "sensor-1", "at": "2026-01-01T10:00:00Z", "sum": 1290.5, "count": 60},
                {"subject": "sensor-2", "at": "2026-01-01T10:00:00Z", "sum": 1201, "count": 58}]}))),
            ("extreme" = (summary = "MIN, MAX", value = json!({
                "subject": "sensor-1", "at": "2026-01-01T10:00:00Z", "value": 23.75}))),
        )),
        (String = "application/x-ndjson",
            example = "{\"subject\":\"post-1\",\"at\":\"2026-01-01T10:00:00Z\",\"amount\":412}\n"),
    )),
    responses((status = 200, description = "What became of each sample.", body = Receipt, examples(
        ("all set" = (value = json!({"accepted": 2, "duplicates": 0, "rejected": []}))),
        ("some rejected" = (value = json!({"accepted": 1, "duplicates": 0,
            "rejected": [{"index": 1, "code": "too_late", "detail": "its slot has left the window"}],
            "rejected_counts": {"too_late": 1}}))),
    ))),
)]
pub(super) async fn put(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
    tally: Data<Tally>,
) -> Result<HttpResponse, Problem> {
    add_items(&SAMPLES, request, payload, state, tally).await
}
