//! Increments of one board: a single one, a batch or a stream.

mod ingest;
mod item;
mod number;
pub(super) mod ranking;
mod receipt;

use actix_web::HttpResponse;
use actix_web::web::{Data, Payload};

use self::item::IncrementItem;
use super::call::Call;
use super::events::sourced::{self, SourcedKind};
use super::metrics::IncrementMetrics;
use super::parameters::Returned;
use super::problem::Problem;

pub(super) use self::ingest::{ItemKind, add_items, parse_items, parse_line};
pub(super) use self::item::BoardItem;
pub(super) use self::number::{amount, numbered, refuse_others, required, used};
pub(super) use self::receipt::{Receipt, Rejected};

const INCREMENTS: ItemKind = ItemKind {
    parse_items: |body, board| parse_items::<IncrementItem<'_>>(body, board),
    parse_line: |line, board| parse_line::<IncrementItem<'_>>(line, board),
    in_order: false,
    check_board: |_| Ok(()),
    sourced: Some(&SourcedKind {
        parse_items: |body, board| sourced::parse_items::<IncrementItem<'_>>(body, board),
        parse_line: |line, number, board, positions| {
            sourced::parse_line::<IncrementItem<'_>>(line, number, board, positions)
        },
    }),
};

/// Add increments
///
/// Accepts a single increment, a batch `{"increments":[…]}`, or a stream of any length as `application/x-ndjson` with
/// one increment per line (blank lines are skipped). The response is sent after the store has the increments.
///
/// The fields depend on the metric of the board. `COUNT` and `SUM` use `amount` (default 1). `AVG`, `MIN`, `MAX` and
/// `LAST` use `value`, the measured number. `COUNT_DISTINCT` and `APPROX_COUNT_DISTINCT` use `value`, the value to
/// count; a number or boolean is counted as its JSON text. A board with a `cap` uses `value`, the person. The subject of a board with several subject fields is a
/// compact JSON array, such as `["203.0.113.9","d-1"]`. On a board whose metric has `BY`, each increment names the key of
/// its ranking with `by`; one without it is rejected with `missing_key`.
///
/// With `"retract": true` the increment reverses an earlier increment with the same content. `at` is the time of the
/// earlier increment, and required unless the board counts over all time, keeps no slots and has no cap. An `id` must differ from
/// that of the earlier increment, otherwise the retraction is a duplicate. If the earlier increment has left the
/// window, the retraction is accepted and changes nothing. `MIN`, `MAX`, `LAST` and `APPROX_COUNT_DISTINCT` do not
/// support retractions and reject them.
///
/// A rejected increment does not affect the others: `rejected` lists it with its reason and its `index` (JSON, from 0)
/// or `line` (NDJSON, from 1). The whole request fails only if the body is not valid JSON, or if it is a single
/// increment with a missing or unknown field or a field of the wrong type.
///
/// Each board and subject counts an `id` once within the board's horizon (`ids.horizon` of the board) from its arrival.
/// Requests with ids can be retried safely. If the store fails during a stream, the problem has the members `accepted`,
/// `duplicates` and `counted_through`, the last line up to which all outcomes are known. Later lines may or may not
/// have been counted; resume after that line, with ids.
///
/// With `source` and `after` the increments are a part of an ordered log, each has a `position`, and each counts once, as
/// events of a source do: see `POST /v1/events`. An increment that is wrong is rejected and passed, also if it is alone. The board must be one of the source's. What its other boards have reached
/// moves on with it, so a log in which increments of several boards alternate is sent as one request after the other.
#[utoipa::path(
    post, path = "/v1/boards/{board}/increments", operation_id = "addIncrements", tag = "increments",
    params(("return" = inline(Returned), Query,
        description = "`score` adds `scores` to the response: the score of each subject after its item was counted (JSON only). For a large batch and for sketches it may contain later writes."),
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Name of the period in which the items must be, on a board with a season: one that is not is rejected with `wrong_period`. Default: each item counts in the period of its time."),
        ("strict" = bool, Query, example = true, description = "Whether one invalid item refuses the whole request with 422 before anything is counted (JSON only). Default: false."),
        ("source" = String, Query, description = "The source of whose log the increments are a part. Not with `return`, `strict`, `period` and `Idempotency-Key`."),
        ("after" = String, Query, description = "With `source`, and required then: the position before the first increment, up to which the source was counted; `start` if the request begins with the first item of the log."),
        ("fill" = String, Query, description = "With `source`: the board of the path, if it is filled with what was in the log before it joined the source. Each increment needs `at`.")),
    request_body(description = "A single increment, a batch or a stream.", content(
        (item::IncrementsBody = "application/json", examples(
            ("amount" = (summary = "A single increment", value = json!({"subject": "post-1", "amount": 2}))),
            ("batch" = (summary = "A batch", value = json!({"increments": [
                {"subject": "post-1"}, {"subject": "post-2", "amount": -1, "id": "e-82"}]}))),
            ("measured" = (summary = "AVG, MIN, MAX, LAST", value = json!({"subject": "sensor-1", "value": 21.5}))),
            ("seen" = (summary = "COUNT_DISTINCT, APPROX_COUNT_DISTINCT",
                value = json!({"subject": "device-1", "value": "user-7"}))),
            ("retraction" = (summary = "A retraction", value = json!({"subject": "post-1", "retract": true,
                "at": "2026-01-01T10:07:00Z", "id": "e-81-retraction"}))),
            ("of a source" = (summary = "Increments of a source, with positions; the query has `source` and `after`", value = json!({"increments": [
                {"subject": "post-1", "amount": 2, "position": 42}, {"subject": "post-2", "position": 43}]}))),
        )),
        (String = "application/x-ndjson", example = "{\"subject\":\"post-1\",\"amount\":2}\n{\"subject\":\"post-2\",\"id\":\"e-83\"}\n"),
    )),
    responses((status = 200, description = "The outcome of each increment.", body = Receipt, examples(
        ("all counted" = (value = json!({"accepted": 2, "duplicates": 0, "rejected": []}))),
        ("some rejected" = (value = json!({"accepted": 1, "duplicates": 0,
            "rejected": [{"index": 1, "code": "too_late", "detail": "the slot has left the window"}],
            "rejected_counts": {"too_late": 1}}))),
        ("with scores" = (value = json!({"accepted": 1, "duplicates": 0, "rejected": [],
            "scores": [{"index": 0, "subject": "post-1", "score": 19}]}))),
        ("of a source" = (value = json!({"accepted": 2, "duplicates": 0, "rejected": [],
            "source": {"name": "likes-0", "reached": "43", "repeated": 0, "waiting": 0, "left_out": []}}))),
    ))),
)]
pub(super) async fn add(
    call: Call,
    payload: Payload,
    metrics: Data<IncrementMetrics>,
) -> Result<HttpResponse, Problem> {
    add_items(&INCREMENTS, call, payload, metrics).await
}
