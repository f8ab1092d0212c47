//! Samples of one board: pre-aggregated values that replace the content of slots.

mod item;

use actix_web::HttpResponse;
use actix_web::web::{Data, Payload};

use self::item::SampleItem;
use super::call::Call;
use super::codes::Code;
use super::increments::{ItemKind, Receipt, add_items, parse_items, parse_line};
use super::metrics::IncrementMetrics;
use super::parameters::Returned;
use super::problem::Problem;
use crate::board::{Board, NoSamples};

const SAMPLES: ItemKind = ItemKind {
    parse_items: |body, board| parse_items::<SampleItem<'_>>(body, board),
    parse_line: |line, board| parse_line::<SampleItem<'_>>(line, board),
    in_order: true,
    check_board,
    // What a sample replaces may be what another one has set, so the order of several sources would matter.
    sourced: None,
};

fn check_board(board: &Board) -> Result<(), Problem> {
    let Some(reason) = board.edition().refuses_samples() else { return Ok(()) };
    let (name, metric) = (board.name(), &board.definition().metric);
    let detail = match reason {
        NoSamples::CountsValues => {
            format!("board '{name}' does not accept samples, because {metric} counts distinct values; send increments")
        }
        NoSamples::Capped => {
            format!(
                "board '{name}' does not accept samples, because the sum of a slot does not tell what each person adds, which its 'cap' \
                limits; send increments"
            )
        }
        NoSamples::Times => {
            format!(
                "board '{name}' does not accept samples, because its 'ties' need the time of each item; send increments, or set the \
                value of a subject with PUT /v1/boards/{name}/subjects/{{subject}}"
            )
        }
        NoSamples::FromFirst => {
            format!("board '{name}' does not accept samples, because its mode is from_first; send increments")
        }
        NoSamples::ExtremeOfAllTime => {
            format!(
                "board '{name}' does not accept samples, because the value that a sample replaces may be that of all time, \
                and {metric} stores no other; send increments, define a board without 'keep' for samples, or set the value of a subject with PUT \
                /v1/boards/{name}/subjects/{{subject}}"
            )
        }
        NoSamples::FurtherWindows => {
            format!(
                "board '{name}' does not accept samples, because it has further windows, in which a slot has other bounds; \
                send increments, or set the value of a subject in all windows with PUT \
                /v1/boards/{name}/subjects/{{subject}}"
            )
        }
    };
    Err(Problem::new(Code::SamplesUnsupported, detail).with("board", name.as_str()))
}

/// Set samples
///
/// For systems that aggregate before they send. A sample *replaces* what a subject has in one slot, and the ranking
/// changes by the difference. Sending a sample again changes nothing; sending a corrected one corrects the score.
///
/// Accepts a single sample, a batch `{"samples":[…]}`, or a stream of any length as `application/x-ndjson` with one
/// sample per line. The fields depend on the metric of the board: `COUNT` and `SUM` use `amount`; `AVG` uses the `sum`
/// of the measurements and their `count`; `MIN` and `MAX` use the smallest or largest number as `value`; `LAST` uses
/// the newest number as `value`, and `at` as its time. An amount of 0, or a sum and a count of 0, empties the slot.
///
/// `at` is required and selects the slot: the slot that contains it or, on boards with `stamp = "end"`, the slot that
/// ends at it or contains it, so that 06:02 belongs to 06:01–06:02. The slot must be in the window. On boards over all
/// time a sample replaces the total, and `at` may be left out. If they keep slots (`keep`), a sample replaces one of
/// these, and the total changes by the difference. Boards with `COUNT_DISTINCT` or `APPROX_COUNT_DISTINCT`, those with
/// `mode = "from_first"` or with further `windows`, and those with `MIN` or `MAX` over all time that keep slots do not
/// accept samples.
///
/// The response is the same as for increments. An accepted sample is the current content of its slot.
#[utoipa::path(
    put, path = "/v1/boards/{board}/samples", operation_id = "setSamples", tag = "increments",
    params(("return" = inline(Returned), Query,
        description = "`score` adds `scores` to the response: the score of each subject after its item was counted (JSON only). For a large batch and for sketches it may contain later writes."),
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Name of the period in which the items must be, on a board with a season: one that is not is rejected with `wrong_period`. Default: each item counts in the period of its time."),
        ("strict" = bool, Query, example = true, description = "Whether one invalid item refuses the whole request with 422 before anything is counted (JSON only). Default: false.")),
    request_body(description = "A single sample, a batch or a stream.", content(
        (item::SamplesBody = "application/json", examples(
            ("amount" = (summary = "COUNT, SUM; set `at` to a time within the window", value = json!({
                "subject": "post-1", "at": "2026-01-01T10:00:00Z", "amount": 412}))),
            ("batch" = (summary = "AVG, a batch", value = json!({"samples": [
                {"subject": "sensor-1", "at": "2026-01-01T10:00:00Z", "sum": 1290.5, "count": 60},
                {"subject": "sensor-2", "at": "2026-01-01T10:00:00Z", "sum": 1201, "count": 58}]}))),
            ("extreme" = (summary = "MIN, MAX, LAST", value = json!({
                "subject": "sensor-1", "at": "2026-01-01T10:00:00Z", "value": 23.75}))),
        )),
        (String = "application/x-ndjson",
            example = "{\"subject\":\"post-1\",\"at\":\"2026-01-01T10:00:00Z\",\"amount\":412}\n"),
    )),
    responses((status = 200, description = "The outcome of each sample.", body = Receipt, examples(
        ("all set" = (value = json!({"accepted": 2, "duplicates": 0, "rejected": []}))),
        ("some rejected" = (value = json!({"accepted": 1, "duplicates": 0,
            "rejected": [{"index": 1, "code": "too_late", "detail": "the slot has left the window"}],
            "rejected_counts": {"too_late": 1}}))),
    ))),
)]
pub(super) async fn put(
    call: Call,
    payload: Payload,
    metrics: Data<IncrementMetrics>,
) -> Result<HttpResponse, Problem> {
    add_items(&SAMPLES, call, payload, metrics).await
}
