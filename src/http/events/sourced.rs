//! Events of a source: each has a position, and counts once.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use futures_util::future::LocalBoxFuture;
use parking_lot::Mutex;
use serde::de::MapAccess;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::item::EventItem;
use super::receipt::{EventsReceipt, ParsedEvents};
use crate::access::Caller;
use crate::board::{Event, Position};
use crate::http::admission::Validity;
use crate::http::body::{self, Format};
use crate::http::call::Call;
use crate::http::codes::ItemCode;
use crate::http::counts::EventCounts;
use crate::http::items::item_error::UnexpectedField;
use crate::http::items::{self, Item, ItemError, ItemIds, NdjsonLine, ParsedItems, stream};
use crate::http::metrics::EventMetrics;
use crate::http::parameters::LogPart;
use crate::http::problem::Problem;
use crate::http::state::HttpState;
use crate::http::{large, response};
use crate::service::{self, EventOutcome, EventPortion, PortionRecorded, ServiceError};

/// The number of lines in a full portion, and the bytes from which on one with fewer lines is full. One portion is counted
/// at a time, so it should be large: each board does a portion in a few steps, one after the other.
const PORTION: usize = 5_000;
const PORTION_BYTES: usize = stream::MAX_IN_FLIGHT * stream::PORTION_BYTES;

/// Counts the events of a request, which are a part of the log of a source.
///
/// Boxed, because every other request would move what only these need.
pub(super) fn respond(
    call: Call,
    payload: Payload,
    metrics: Data<EventMetrics>,
    format: Format,
    part: Box<LogPart>,
) -> LocalBoxFuture<'static, Result<HttpResponse, Problem>> {
    Box::pin(async move {
        let text = add(call, payload, metrics, format, part).await?;
        Ok(response::json_text(StatusCode::OK, text))
    })
}

/// Does that, and returns the receipt as JSON.
async fn add(
    call: Call,
    payload: Payload,
    metrics: Data<EventMetrics>,
    format: Format,
    part: Box<LogPart>,
) -> Result<Vec<u8>, Problem> {
    if ItemIds::from_request(&call.request, &call.caller)?.is_some() {
        let detail = "a request with 'source' has no Idempotency-Key: the positions of its events are enough";
        return Err(Problem::field("Idempotency-Key", detail));
    }
    let incoming = call.incoming(payload, format)?;
    let validity = Validity::of(&call.caller, &call.state);
    let limits = call.item_limits();
    let Call { caller, state, .. } = call;
    match format {
        Format::Ndjson => {
            let (ended, before) = oneshot::channel();
            // Nothing is before the first portion.
            let _ = ended.send(Ended::Through);
            let last = Last { position: part.after, ended: before };
            let log = Log { state: &state, caller: &caller, part: &part };
            let lines = SourceLines { log, metrics: &metrics, last: last.into() };
            let mut receipt = stream::process(&lines, incoming, &state.options, limits, validity).await?;
            if receipt.has_no_source() {
                // A stream without lines.
                let mut nothing = stream::LineHandler::new_portion(&lines, 0);
                let counted = stream::LineHandler::send(&lines, &mut nothing).await?;
                stream::LineHandler::record(&lines, &mut receipt, nothing, counted);
            }
            response::to_json(&receipt)
        }
        Format::Json => {
            let body = body::read(incoming, &caller, &state.options).await?;
            let is_large = body.len() > large::BODY;
            let add = move || async move {
                let mut portion = SourcePortion::of_body(&body, part.after)?;
                limits.take(portion.events.len())?;
                let events = std::mem::take(&mut portion.events.valid);
                let (mut receipt, mut settled) = (EventsReceipt::new(false), 0);
                let each = |at: usize, outcome| {
                    let kind = events.get(at).map_or("", |(_, event)| &event.kind);
                    receipt.record(&mut portion.events, at, kind, outcome);
                    settled += 1;
                };
                let log = Log { state: &state, caller: &caller, part: &part };
                let recorded = log.count((part.after, &portion.positions, &events), async { Ok(()) }, each).await?;
                receipt.record_errors(&mut portion.events, u64::MAX);
                receipt.record_source(&part.source, recorded, events.len() as u64 - settled);
                metrics.record(&EventCounts::default(), &receipt.counts());
                response::to_json(&receipt)
            };
            large::handle(is_large, add).await
        }
    }
}

/// The part of the log of a source that a request has.
#[derive(Clone, Copy)]
struct Log<'a> {
    state: &'a HttpState,
    caller: &'a Caller,
    part: &'a LogPart,
}

/// Consecutive events of a source, as they were parsed.
struct SourcePortion {
    /// The position after which they begin.
    after: Position,
    events: ParsedEvents<(Position, Arc<Event>)>,
    positions: Positions,
}

/// An event with its position, which is known also if the event has a field that it must not have.
#[derive(Default)]
struct PositionedEvent<'a> {
    event: EventItem<'a>,
    unexpected: Option<UnexpectedField>,
}

/// A valid event, with the names of its fields that metrics cannot use.
type ValidEvent = ((Position, Arc<Event>), Vec<Box<str>>);

/// The positions of events, as they are parsed one after the other.
#[derive(Default)]
struct Positions {
    first: Option<(Position, String)>,
    last: Option<Position>,
    /// Why they are not those of events that follow each other.
    fault: Option<String>,
}

/// What became of a portion of a stream.
struct Counted {
    /// The outcomes of the first events: of all, unless one waits.
    outcomes: Vec<EventOutcome>,
    recorded: PortionRecorded,
}

impl<'a> Item<'a> for PositionedEvent<'a> {
    const LIST: &'static str = EventItem::LIST;
    const FIELDS: &'static [&'static str] = EventItem::FIELDS;
    const INVALID: ItemCode = EventItem::INVALID;

    fn read_value<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<UnexpectedField>, A::Error> {
        if let Some(field) = self.event.read_value(name, map)? {
            self.unexpected.get_or_insert(field);
        }
        Ok(None)
    }

    fn is_empty(&self) -> bool {
        self.event.is_empty() && self.unexpected.is_none()
    }
}

impl PositionedEvent<'_> {
    /// Validates the event, which is `what` of the request. Its faults are those of an event in a batch, also if it is alone:
    /// it is rejected and passed.
    fn validate(mut self, positions: &mut Positions, what: impl fmt::Display) -> Result<ValidEvent, ItemError> {
        let position = positions.next(what, self.event.take_position())?;
        let event = match self.unexpected {
            None => self.event.into_event_of_source(),
            Some(field) => Err(ItemError::unexpected(field, Self::FIELDS, Self::INVALID)),
        };
        match event {
            Ok((event, nested)) => Ok(((position, event), nested)),
            Err(error) => Err(ItemError { is_structural: false, ..error }),
        }
    }
}

impl Positions {
    /// Validates the position of the next event, which is `what` of the request. An event with another fault is rejected by
    /// itself and passed. Without its position it is not known what would be passed, so the whole request is refused.
    fn next(&mut self, what: impl fmt::Display, raw: Option<&RawValue>) -> Result<Position, ItemError> {
        let parsed = match raw.map(RawValue::get) {
            None => Err("'position' is missing".to_owned()),
            Some(text) => {
                let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
                let whole = || format!("'position' must be a whole number from 0 to {}", Position::MAX);
                Position::parse_of_item(text).ok_or_else(whole)
            }
        };
        let parsed = parsed.and_then(|position| match self.last {
            Some(last) if position <= last => Err(format!("'position' is {position}, and that before it is {last}")),
            _ => Ok(position),
        });
        match parsed {
            Ok(position) => {
                self.first.get_or_insert_with(|| (position, what.to_string()));
                self.last = Some(position);
                Ok(position)
            }
            Err(fault) => {
                self.note_fault(what, &fault);
                Err(ItemError::structural(ItemCode::InvalidEvent, "position", fault))
            }
        }
    }

    /// Notes that the position of an event is not known.
    fn note_fault(&mut self, what: impl fmt::Display, fault: &str) {
        self.fault.get_or_insert_with(|| format!("{what}: {fault}"));
    }

    /// Returns the position up to which a portion goes that begins after one.
    fn through(&self, after: Position) -> Result<Position, String> {
        match (&self.fault, &self.first) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Some((first, what))) if *first <= after => {
                Err(format!("{what}: 'position' is {first}, which is not after {after}"))
            }
            _ => Ok(self.last.unwrap_or(after)),
        }
    }
}

impl SourcePortion {
    fn of_body(body: &[u8], after: Position) -> Result<Self, Problem> {
        let (positions, parsed) = (RefCell::new(Positions::default()), Cell::new(0));
        let each = |item: PositionedEvent<'_>| {
            let index = parsed.replace(parsed.get() + 1);
            item.validate(&mut positions.borrow_mut(), format_args!("event {index}"))
        };
        let events = ParsedItems::of_body(body, each)?;
        let mut positions = positions.into_inner();
        if parsed.get() < events.len() {
            positions.note_fault("an element of 'events'", "it is not an object, so it has no position");
        }
        Ok(Self { after, events, positions })
    }
}

impl Log<'_> {
    /// Counts events that begin after a position on the boards of the source, when what comes before them is counted. Calls
    /// `each` with what became of each.
    async fn count(
        &self,
        (after, positions, events): (Position, &Positions, &[(Position, Arc<Event>)]),
        before: impl Future<Output = service::Result<()>>,
        each: impl FnMut(usize, EventOutcome),
    ) -> service::Result<PortionRecorded> {
        let invalid = |detail| ServiceError::InvalidQuery { field: "position", detail };
        let through = positions.through(after).map_err(invalid)?;
        let LogPart { source, fill, .. } = self.part;
        let has_no_time = |(_, event): &&(Position, Arc<Event>)| event.at.is_none();
        if let (Some(_), Some((position, _))) = (fill, events.iter().find(has_no_time)) {
            let detail =
                format!("the event at {position} has no 'at', which each event needs with which a board is filled");
            return Err(ServiceError::InvalidQuery { field: "at", detail });
        }
        let portion = EventPortion { source, fill: fill.as_ref(), after, through, events };
        let spread = self.state.service.spread_portion(self.caller, portion).await?;
        before.await?;
        self.state.service.record_portion(self.caller, spread, each).await
    }
}

/// Handler of the lines of a stream. A portion is spread over boards while the one before is counted.
struct SourceLines<'a> {
    log: Log<'a>,
    metrics: &'a EventMetrics,
    last: Mutex<Last>,
}

/// The last event that was parsed, and the end of its portion.
struct Last {
    position: Position,
    ended: oneshot::Receiver<Ended>,
}

/// How a portion ended, unless it failed.
enum Ended {
    Through,
    /// An event waits; what is up to this position is counted.
    Waits(Position),
}

/// A portion of a stream, which follows another one.
struct StreamPortion {
    own: SourcePortion,
    before: Option<oneshot::Receiver<Ended>>,
    ended: Option<oneshot::Sender<Ended>>,
}

impl stream::LineHandler for SourceLines<'_> {
    type Portion = StreamPortion;
    type Outcomes = Counted;
    type Receipt = EventsReceipt;

    fn max_in_flight(&self) -> usize {
        2
    }

    fn max_lines(&self) -> usize {
        PORTION
    }

    fn max_bytes(&self) -> usize {
        PORTION_BYTES
    }

    fn new_portion(&self, lines: usize) -> StreamPortion {
        let (ended, of_this) = oneshot::channel();
        let mut last = self.last.lock();
        let before = std::mem::replace(&mut last.ended, of_this);
        let (events, positions) = (ParsedItems::new(items::Position::Line, lines), Positions::default());
        let own = SourcePortion { after: last.position, events, positions };
        StreamPortion { own, before: Some(before), ended: Some(ended) }
    }

    fn parse_line(&self, portion: &mut StreamPortion, number: u64, line: NdjsonLine<'_>) {
        let SourcePortion { events, positions, .. } = &mut portion.own;
        let what = format_args!("line {number}");
        let item = match items::parse_line::<PositionedEvent<'_>>(line) {
            Ok(item) => item.validate(positions, what),
            Err(error) => {
                positions.note_fault(what, &error.detail);
                Err(error)
            }
        };
        if let Some(position) = positions.last {
            self.last.lock().position = position;
        }
        events.push(number, item);
    }

    async fn send(&self, portion: &mut StreamPortion) -> service::Result<Counted> {
        let StreamPortion { own: SourcePortion { after, events, positions }, before, ended } = portion;
        let waits = |reached| ServiceError::SourceWaits { source_name: self.log.part.source.clone(), reached };
        let before = before.take();
        let before = async {
            match before {
                Some(before) => match before.await {
                    Ok(Ended::Through) => Ok(()),
                    Ok(Ended::Waits(reached)) => Err(waits(reached)),
                    // It has failed, and its error is the answer.
                    Err(_) => Err(waits(*after)),
                },
                None => Ok(()),
            }
        };
        let mut outcomes = Vec::with_capacity(events.valid.len());
        let each = |_, outcome| outcomes.push(outcome);
        let recorded = self.log.count((*after, positions, &events.valid), before, each).await?;
        if let Some(ended) = ended.take() {
            // Nobody waits for the last one.
            let waits = recorded.reached.filter(|_| recorded.waits);
            let _ = ended.send(waits.map_or(Ended::Through, Ended::Waits));
        }
        Ok(Counted { outcomes, recorded })
    }

    fn record(&self, receipt: &mut EventsReceipt, portion: StreamPortion, counted: Counted) {
        let before = receipt.counts();
        let SourcePortion { mut events, .. } = portion.own;
        let Counted { outcomes, recorded } = counted;
        let valid = std::mem::take(&mut events.valid);
        let waiting = valid.len() - outcomes.len();
        for (at, ((_, event), outcome)) in valid.iter().zip(outcomes).enumerate() {
            receipt.record(&mut events, at, &event.kind, outcome);
        }
        receipt.record_errors(&mut events, u64::MAX);
        receipt.record_source(&self.log.part.source, recorded, waiting as u64);
        self.metrics.record(&before, &receipt.counts());
    }

    fn accepted_and_duplicates(receipt: &EventsReceipt) -> (u64, u64) {
        (receipt.accepted, receipt.duplicates)
    }
}
