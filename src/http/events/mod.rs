//! Events, which are counted by every board whose metric names their type: a single one, a batch or a stream.

mod item;
mod receipt;
pub(super) mod sourced;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use serde_json::value::RawValue;

use self::item::EventItem;
use self::receipt::ParsedEvents;
use super::admission::Validity;
use super::body::{self, Format};
use super::call::Call;
use super::codes::Code;
use super::counts::EventCounts;
use super::items::{self, ItemIds, NdjsonLine, ParsedItems, Position, stream};
use super::metrics::{EventMetrics, SourcedMetrics};
use super::parameters::{ItemParameters, Returned};
use super::problem::Problem;
use super::state::HttpState;
use super::{large, response};
use crate::access::Caller;
use crate::board::{Event, EventId, Fields};
use crate::service::{self, EventOutcome};

pub(super) use self::item::parse_type;
pub(super) use self::receipt::{EventRejected, EventsReceipt, SourceReceipt};

/// Maximum number of events in a request that asks for scores. An event has a score on every board that counts it.
const MAX_EVENTS_WITH_SCORES: usize = 10_000;

/// Add events
///
/// An event is sent once and counted by every board whose metric names its `type` and whose filter includes it. Each
/// metric reads its own fields: `COUNT_DISTINCT(30d, login, device_id, user_id)` reads `device_id` and `user_id`.
///
/// Accepts a single event, a batch `{"events":[…]}`, or a stream of any length as `application/x-ndjson` with one event
/// per line (blank lines are skipped). The response is sent after all boards have the events, which takes one call of
/// the store. A board counts every event that is sent after the request that defined the board was completed, on any
/// instance.
///
/// Fields are strings, numbers (parsed exactly) and booleans; null is treated as absent. Arrays and objects are allowed
/// and treated as absent, but a board whose metric needs such a field rejects the event with `invalid_field`.
///
/// A rejection by one board does not affect other boards or events: `rejected` lists it with the board, the field and
/// the reason. An event whose type no board counts is not an error; it is counted under `unknown_types`. An event that
/// all filters exclude is counted under `unmatched`. So check `rejected`, not the status: a batch is 200 even if
/// nothing was counted. The whole request fails if the body is not valid JSON, if it is a single event with a missing
/// or unknown member or a member of the wrong type, or if it is a single event that no board counted because it was
/// refused (`rejected`); an event that only the edition beside the current one of a board may have counted is no such one.
///
/// With `"retract": true` the event reverses an earlier event with the same fields (for example an unlike). `at` is
/// required and is the time of the earlier event. An `id` must differ from that of the earlier event, otherwise the
/// retraction is a duplicate. On boards whose window the earlier event has left, the retraction is accepted and changes
/// nothing. Boards with `MIN`, `MAX`, `LAST` and `APPROX_COUNT_DISTINCT` do not support retractions and reject them
/// with `retraction_unsupported`.
///
/// Each board and subject counts an `id` once within the board's horizon (`ids.horizon` of the board) from its arrival.
/// Requests with ids can be retried safely. If the store fails, some boards may have counted events that others have
/// not; retry the request. If it fails during a stream, the problem has the members `accepted`, `duplicates` and
/// `counted_through`, the last line up to which all outcomes are known; resume after that line, with ids.
///
/// With `source` and `after` the events are a part of an ordered log, and each has a `position`. Each board of the source
/// counts each event once by its position, without ids, however often and by whomever it is sent. `source.reached` of the
/// response is the `after` of the next request. A request that would leave a hole is refused with `source_behind`, whose
/// `reached` says where the source is. Events that are rejected are passed. One that may count later waits, and with it what
/// follows of the same subjects: then `source.waiting` is not 0, `reached` is before it, and what follows `reached` is to be sent again. A stream
/// ends with `source_waits` then. With `fill`, a board that joined later is filled with the part of the log before.
#[utoipa::path(
    post, path = "/v1/events", operation_id = "addEvents", tag = "events",
    params(("return" = inline(Returned), Query,
        description = "`score` adds `scores` to the response: the score of each subject on each board after the event was counted (JSON only, at most 10,000 events). For a large batch and for sketches it may contain later writes."),
        ("strict" = bool, Query, example = true, description = "Whether one invalid item refuses the whole request with 422 before anything is counted (JSON only). Default: false."),
        ("source" = String, Query, description = "The source of whose log the events are a part. Not with `return`, `strict` and `Idempotency-Key`."),
        ("after" = String, Query, description = "With `source`, and required then: the position before the first event, up to which the source was counted; `start` if the request begins with the first event of the log."),
        ("fill" = String, Query, description = "With `source`: a board of the source that is filled with what was in the log before it joined. The events count on this board only, up to where it has joined, and what else the source has counted stays. Each event needs `at`.")),
    request_body(description = "A single event, a batch or a stream.", content(
        (item::EventsBody = "application/json", examples(
            ("one" = (summary = "A single event", value = json!({"type": "login",
                "fields": {"device_id": "d-1", "user_id": "u-7", "amount": 166.6, "ok": true}}))),
            ("several" = (summary = "A batch", value = json!({"events": [
                {"type": "like", "fields": {"post_id": "post-1", "user_id": "u-7"}},
                {"type": "sale", "fields": {"seller_id": "s-1", "amount": 19.99}, "id": "e-82"}]}))),
            ("retraction" = (summary = "A retraction; `at` is the time of the event that it reverses", value = json!({"type": "like", "retract": true,
                "at": "2026-01-01T10:07:00Z", "id": "e-81-retraction",
                "fields": {"post_id": "post-1", "user_id": "u-7"}}))),
            ("of a source" = (summary = "Events of a source, with positions; the query has `source` and `after`", value = json!({"events": [
                {"type": "like", "fields": {"post_id": "post-1"}, "position": 42},
                {"type": "like", "fields": {"post_id": "post-2"}, "position": 43}]}))),
        )),
        (String = "application/x-ndjson",
            example = "{\"type\":\"like\",\"fields\":{\"post_id\":\"post-1\"}}\n{\"type\":\"login\",\"fields\":{\"device_id\":\"d-1\"},\"id\":\"e-83\"}\n"),
    )),
    responses((status = 200, description = "The outcome of each event on each board.", body = EventsReceipt, examples(
        ("counted" = (value = json!({"accepted": 2, "duplicates": 0, "rejected": [], "unmatched": 0, "unknown": 0,
            "unknown_types": {}, "boards": {"hot-posts": {"accepted": 1, "duplicates": 0, "rejected": 0},
            "top-sellers": {"accepted": 1, "duplicates": 0, "rejected": 0}}}))),
        ("partly" = (value = json!({"accepted": 1, "duplicates": 0, "rejected": [{"index": 0, "board": "top-sellers",
            "field": "amount", "code": "missing_field", "detail": "the field 'amount' is missing"}],
            "rejected_counts": {"missing_field": 1}, "unmatched": 0, "unknown": 3, "unknown_types": {"page_view": 3},
            "boards": {"sales-per-seller": {"accepted": 1, "duplicates": 0, "rejected": 0},
            "top-sellers": {"accepted": 0, "duplicates": 0, "rejected": 1}}}))),
        ("with scores" = (value = json!({"accepted": 1, "duplicates": 0, "rejected": [], "unmatched": 0, "unknown": 0,
            "unknown_types": {}, "boards": {"hot-posts": {"accepted": 1, "duplicates": 0, "rejected": 0}},
            "scores": [{"index": 0, "board": "hot-posts", "subject": "post-1", "score": 19}]}))),
        ("of a source" = (value = json!({"accepted": 2, "duplicates": 0, "rejected": [], "unmatched": 0, "unknown": 0,
            "unknown_types": {}, "boards": {"hot-posts": {"accepted": 2, "duplicates": 0, "rejected": 0}},
            "source": {"name": "likes-0", "reached": "43", "repeated": 0, "waiting": 0, "left_out": []}}))),
    ))),
)]
pub(super) async fn add(call: Call, payload: Payload, metrics: Data<EventMetrics>) -> Result<HttpResponse, Problem> {
    let format = items::pinned::format(&call)?;
    let ItemParameters { return_scores, strict, source, .. } =
        ItemParameters::of_boards(&call, format == Format::Ndjson)?;
    if let Some(part) = source {
        let metrics = SourcedMetrics::Events(metrics);
        let request = sourced::SourcedRequest { kind: &sourced::EVENTS, part, board: None, metrics };
        let receipt = sourced::count(call, payload, format, request).await?;
        return Ok(response::json_text(StatusCode::OK, response::to_json(&receipt)?));
    }
    let ids = ItemIds::from_request(&call.request, &call.caller)?;
    let incoming = call.incoming(payload, format)?;
    let validity = Validity::of(&call.caller, &call.state);
    let limits = call.item_limits();
    let Call { caller, state, .. } = call;
    let text = match format {
        Format::Ndjson => {
            let handler =
                EventLines { state: &state, caller: &caller, metrics: &metrics, ids, in_order: AtomicBool::new(true) };
            // Boxed, because every other request would move what only a stream needs.
            let receipt = Box::pin(stream::process(&handler, incoming, &state.options, limits, validity)).await?;
            response::to_json(&receipt)?
        }
        Format::Json => {
            let body = items::pinned::complete(&caller, body::read(incoming, &caller, &state.options).await?)?;
            let is_large = body.len() > large::BODY;
            let add = move || async move {
                let parse = if caller.takes_back() { EventItem::into_event_of_token } else { EventItem::into_event };
                let mut parsed = ParsedItems::of_body(&body, parse)?;
                limits.take(parsed.len())?;
                parsed.add_ids(ids.as_ref(), id);
                let is_single = parsed.is_single;
                if return_scores && parsed.valid.len() > MAX_EVENTS_WITH_SCORES {
                    let detail =
                        format!("a request with return=score may have at most {MAX_EVENTS_WITH_SCORES} events");
                    return Err(Problem::new(Code::TooLarge, detail).with("limit", MAX_EVENTS_WITH_SCORES));
                }
                let (receipt, is_refused) = match refused(&state, &caller, &mut parsed, strict).await? {
                    Some(receipt) => (receipt, true),
                    None => {
                        let receipt = record(&state, &caller, parsed, return_scores).await?;
                        let is_refused = is_single && receipt.has_rejections_only();
                        (receipt, is_refused)
                    }
                };
                metrics.record(&EventCounts::default(), &receipt.counts());
                if is_refused {
                    return Err(receipt.into_problem());
                }
                response::to_json(&receipt)
            };
            large::handle(is_large, add).await?
        }
    };
    Ok(response::json_text(StatusCode::OK, text))
}

/// Returns where an event has its id.
fn id(event: &mut Arc<Event>) -> &mut Option<EventId> {
    &mut Arc::make_mut(event).id
}

/// Returns the receipt of a strict request with an invalid event, or one that a board refuses, and no other outcome.
/// Returns `None` if the events are to be recorded.
async fn refused(
    state: &HttpState,
    caller: &Caller,
    parsed: &mut ParsedEvents,
    strict: bool,
) -> Result<Option<EventsReceipt>, Problem> {
    if !strict {
        return Ok(None);
    }
    let mut receipt = EventsReceipt::new(false);
    let events = std::mem::take(&mut parsed.valid);
    let mut is_refused = parsed.has_errors();
    let each = |at, outcome| {
        is_refused = true;
        receipt.record(parsed, at, "", outcome);
    };
    state.service.refusals(caller, &events, each).await?;
    if !is_refused {
        parsed.valid = events;
        return Ok(None);
    }
    receipt.record_errors(parsed, u64::MAX);
    Ok(Some(receipt))
}

async fn record(
    state: &HttpState,
    caller: &Caller,
    mut parsed: ParsedEvents,
    return_scores: bool,
) -> Result<EventsReceipt, Problem> {
    let mut receipt = EventsReceipt::new(return_scores);
    let events = std::mem::take(&mut parsed.valid);
    let each = |at: usize, outcome| {
        let kind = events.get(at).map_or("", |event| &event.kind);
        receipt.record(&mut parsed, at, kind, outcome);
    };
    state.service.record_each(caller, &events, return_scores, each).await?;
    receipt.record_errors(&mut parsed, u64::MAX);
    Ok(receipt)
}

/// Parses the `fields` of a request that evaluates metrics for an event without sending it.
pub(super) fn parse_fields(raw: Option<&RawValue>) -> Result<Fields, Problem> {
    let Some(raw) = raw else { return Ok(Fields::default()) };
    item::parse_fields(raw).map_err(|error| match error.is_structural || error.field == "fields" {
        true => Problem::field("fields", error.detail),
        false => Problem::field(&format!("fields.{}", error.field), error.detail),
    })
}

/// Returns the receipt of an event that was recorded by a request to another resource, and updates the metrics.
pub(super) fn receipt_of_one(event: Event, outcome: EventOutcome, metrics: &EventMetrics) -> EventsReceipt {
    let (mut receipt, mut parsed) = (EventsReceipt::new(false), <ParsedEvents>::new(Position::Index, 1));
    let kind = event.kind.clone();
    parsed.push(0, Ok((event.into(), Vec::new())));
    receipt.record(&mut parsed, 0, &kind, outcome);
    metrics.record(&EventCounts::default(), &receipt.counts());
    receipt
}

/// Handler of the lines of a stream.
struct EventLines<'a> {
    state: &'a HttpState,
    caller: &'a Caller,
    metrics: &'a EventMetrics,
    ids: Option<ItemIds>,
    /// Whether a board depends on the order of events, as of the last portion. Assumed before the first.
    in_order: AtomicBool,
}

impl stream::LineHandler for EventLines<'_> {
    type Portion = ParsedEvents;
    type Outcomes = Vec<EventOutcome>;
    type Receipt = EventsReceipt;

    fn max_in_flight(&self) -> usize {
        if self.in_order.load(Ordering::Relaxed) { 1 } else { stream::MAX_IN_FLIGHT }
    }

    fn new_portion(&self, lines: usize) -> ParsedEvents {
        ParsedEvents::new(Position::Line, lines)
    }

    fn parse_line(&self, portion: &mut ParsedEvents, number: u64, line: NdjsonLine<'_>) {
        portion.push(number, items::parse_line::<EventItem<'_>>(line).and_then(EventItem::into_event));
    }

    async fn send(&self, portion: &mut ParsedEvents) -> service::Result<Vec<EventOutcome>> {
        self.in_order.store(self.state.service.order_of_events_matters(self.caller).await, Ordering::Relaxed);
        portion.add_ids(self.ids.as_ref(), id);
        let mut outcomes = Vec::with_capacity(portion.valid.len());
        self.state.service.record_each(self.caller, &portion.valid, false, |_, outcome| outcomes.push(outcome)).await?;
        Ok(outcomes)
    }

    fn record(&self, receipt: &mut EventsReceipt, mut portion: ParsedEvents, outcomes: Vec<EventOutcome>) {
        let before = receipt.counts();
        let events = std::mem::take(&mut portion.valid);
        for (at, (event, outcome)) in events.iter().zip(outcomes).enumerate() {
            receipt.record(&mut portion, at, &event.kind, outcome);
        }
        receipt.record_errors(&mut portion, u64::MAX);
        self.metrics.record(&before, &receipt.counts());
    }

    fn accepted_and_duplicates(receipt: &EventsReceipt) -> (u64, u64) {
        (receipt.accepted, receipt.duplicates)
    }
}
