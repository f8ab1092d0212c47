//! Events in: each for every board that counts its type.

mod item;
mod receipt;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::value::RawValue;

use self::item::{EventItem, SentEvent};
use self::receipt::JudgedEvents;
use super::body::{self, Format};
use super::codes::Code;
use super::increments::{Returned, no_scores_of_streams, returned};
use super::intake::{self, Line, OneOrMany, Place, stream, unsound};
use super::meters::EventTally;
use super::problem::Problem;
use super::{HttpState, answer, large};
use crate::board::{Event, Fields};
use crate::service::{self, EventOutcome};

pub(super) use self::item::kind;
pub(super) use self::receipt::{EventCounts, EventsReceipt};

/// The most events of one request that asks for scores: each has one on every board that counts it.
const MOST_WITH_SCORES: usize = 10_000;

/// Count events
///
/// An event is sent once and counts on every board whose metric names its `type` (and whose filter lets it
/// through), with the fields that the metric reads: `COUNT_DISTINCT(30d, login, device_id, user_id)` reads `device_id`
/// and `user_id`. Send one event, `{"events":[…]}`, or a stream of any length as `application/x-ndjson` with one event
/// a line (blank lines are skipped). All boards together are one call of the store, and the answer comes after it
/// has them. A board counts every event that is sent after the call that defined it was answered, through whichever
/// instance.
///
/// Fields are texts, numbers (read exactly) and truth values; null is the same as absent. Lists and objects may be
/// sent and are as good as absent, except that a board whose metric needs such a field says `invalid_field`.
///
/// Each event stands for itself, and so does each board: what a board cannot count is named under `rejected` with the
/// board, the field at fault and the reason, while other boards count it. An event of a type that no board counts is no
/// error: it is counted under `unknown_types`. One that every filter leaves out is `unmatched`. The request as a whole
/// fails only where it is unsound as such: not JSON, or a single event with a missing, unknown or wrongly typed member.
///
/// With `"retract": true` an event undoes its twin (an un-like): the fields are the twin's, `at` is the twin's and
/// required, and an `id` must be another than the twin's, of which it would be a duplicate. A twin that has left a
/// board's window needs no undoing there. Boards of `MIN`, `MAX` and `APPROX_COUNT_DISTINCT` cannot undo and reject it
/// with `retraction_unsupported`.
///
/// An `id` counts once per board and subject, for as long as the board's window, at most a day, after it arrived:
/// with ids a request can be repeated safely. If the store fails, some boards may have counted events and others not;
/// repeat the request. Of a stream the problem tells `accepted`, `duplicates` and `counted_through`, the last line up
/// to which everything has been settled; resume from there with ids.
#[utoipa::path(
    post, path = "/v1/events", operation_id = "addEvents", tag = "events",
    params(("return" = inline(Returned), Query,
        description = "`score` answers, under `scores`, each subject's new score on each board, from the step that counted it (JSON only, 10,000 events at most).")),
    request_body(description = "One event, a batch, or a stream.", content(
        (super::openapi::EventsBody = "application/json", examples(
            ("one" = (summary = "One event", value = json!({"type": "login", "id": "e-81",
                "at": "2026-01-01T10:07:00Z", "fields": {"device_id": "d-1", "user_id": "u-7", "amount": 166.6, "ok": true}}))),
            ("several" = (summary = "A batch", value = json!({"events": [
                {"type": "like", "fields": {"post_id": "post-1", "user_id": "u-7"}},
                {"type": "sale", "fields": {"seller_id": "s-1", "amount": 19.99}, "id": "e-82"}]}))),
            ("retraction" = (summary = "A retraction", value = json!({"type": "like", "retract": true,
                "at": "2026-01-01T10:07:00Z", "id": "e-81-undone",
                "fields": {"post_id": "post-1", "user_id": "u-7"}}))),
        )),
        (String = "application/x-ndjson",
            example = "{\"type\":\"like\",\"fields\":{\"post_id\":\"post-1\"}}\n{\"type\":\"login\",\"fields\":{\"device_id\":\"d-1\"},\"id\":\"e-83\"}\n"),
    )),
    responses((status = 200, description = "What became of each event, and on which boards.", body = EventsReceipt, examples(
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
    ))),
)]
pub(super) async fn add(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
    tally: Data<EventTally>,
) -> Result<HttpResponse, Problem> {
    let return_scores = returned(&request)? == Some(Returned::Score);
    let text = match body::format(&request)? {
        Format::Ndjson if return_scores => return Err(no_scores_of_streams()),
        Format::Ndjson => {
            let lines = Lines { state: &state, tally: &tally };
            answer::text(&stream::take(&lines, payload, state.options.max_line).await?)?
        }
        Format::Json => {
            let body = body::read(payload, &state.options).await?;
            let is_large = body.len() > large::BODY;
            let add = move || async move {
                let judged = judge(&body)?;
                if return_scores && judged.events.len() > MOST_WITH_SCORES {
                    let detail = format!("a request that asks for scores may have {MOST_WITH_SCORES} events");
                    return Err(Problem::new(Code::TooLarge, detail).with("limit", MOST_WITH_SCORES));
                }
                let receipt = count(&state, judged, return_scores).await?;
                tally.record(EventCounts::default(), receipt.counts());
                answer::text(&receipt)
            };
            large::handle(is_large, add).await?
        }
    };
    Ok(answer::written(StatusCode::OK, text))
}

/// Reads the events of a body.
fn judge(body: &[u8]) -> Result<JudgedEvents, Problem> {
    let mut judged;
    match intake::read::<EventItem<'_>>(body)? {
        OneOrMany::One(item) => match item.judge() {
            Err(flaw) if flaw.of_shape => return Err(unsound(flaw)),
            item => {
                judged = JudgedEvents::new(Place::Index, 1);
                judged.take(0, item);
            }
        },
        OneOrMany::Many(items) => {
            judged = JudgedEvents::new(Place::Index, items.len());
            for (index, raw) in (0..).zip(items) {
                judged.take(index, intake::from_raw::<EventItem<'_>>(raw).and_then(EventItem::judge));
            }
        }
    }
    Ok(judged)
}

async fn count(state: &HttpState, mut judged: JudgedEvents, return_scores: bool) -> Result<EventsReceipt, Problem> {
    let mut receipt = EventsReceipt::new(return_scores);
    let events = std::mem::take(&mut judged.events);
    let each = |at: usize, outcome| {
        let kind = events.get(at).map_or("", |event| &event.kind);
        receipt.settle(&mut judged, at, kind, outcome);
    };
    state.service.record_each(&events, return_scores, each).await?;
    receipt.settle_rest(judged);
    Ok(receipt)
}

/// The fields of an event that a body is about, without sending it.
pub(super) fn fields(raw: Option<&RawValue>) -> Result<Fields, Problem> {
    let Some(raw) = raw else { return Ok(Fields::default()) };
    item::fields(raw).map_err(|flaw| match flaw.of_shape || flaw.field == "fields" {
        true => Problem::field("fields", flaw.detail),
        false => Problem::field(&format!("fields.{}", flaw.field), flaw.detail),
    })
}

/// What became of an event that was counted on the way of another request.
pub(super) fn receipt_of_one(event: Event, outcome: EventOutcome, tally: &EventTally) -> EventsReceipt {
    let (mut receipt, mut judged) = (EventsReceipt::new(false), JudgedEvents::new(Place::Index, 1));
    let kind = event.kind.clone();
    judged.take(0, Ok(SentEvent { event, nested: Vec::new() }));
    receipt.settle(&mut judged, 0, &kind, outcome);
    tally.record(EventCounts::default(), receipt.counts());
    receipt
}

/// The lines of a stream.
struct Lines<'a> {
    state: &'a HttpState,
    tally: &'a EventTally,
}

impl stream::Intake for Lines<'_> {
    type Portion = JudgedEvents;
    type Answer = Vec<EventOutcome>;
    type Receipt = EventsReceipt;

    fn portion(&self, lines: usize) -> JudgedEvents {
        JudgedEvents::new(Place::Line, lines)
    }

    fn read(&self, portion: &mut JudgedEvents, number: u64, line: Line<'_>) {
        portion.take(number, intake::from_line::<EventItem<'_>>(line).and_then(EventItem::judge));
    }

    async fn send(&self, portion: &mut JudgedEvents) -> service::Result<Vec<EventOutcome>> {
        let mut outcomes = Vec::with_capacity(portion.events.len());
        self.state.service.record_each(&portion.events, false, |_, outcome| outcomes.push(outcome)).await?;
        Ok(outcomes)
    }

    fn settle(&self, receipt: &mut EventsReceipt, mut portion: JudgedEvents, outcomes: Vec<EventOutcome>) {
        let before = receipt.counts();
        let events = std::mem::take(&mut portion.events);
        for (at, (event, outcome)) in events.iter().zip(outcomes).enumerate() {
            receipt.settle(&mut portion, at, &event.kind, outcome);
        }
        receipt.settle_rest(portion);
        self.tally.record(before, receipt.counts());
    }

    fn progress(receipt: &EventsReceipt) -> (u64, u64) {
        (receipt.accepted, receipt.duplicates)
    }
}
