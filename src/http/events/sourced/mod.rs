//! Items of a source: each has a position, and counts once. They are events, or increments of one board.

mod log;
mod stream;

use std::cell::{Cell, RefCell};

use actix_web::web::Payload;
use futures_util::future::LocalBoxFuture;

use self::log::{Log, ParsedPortion};
use self::stream::SourceLines;
use super::item::EventItem;
use super::receipt::{EventsReceipt, ParsedEvents};
use crate::access::Caller;
use crate::board::{Board, Position};
use crate::http::admission::Validity;
use crate::http::body::{self, Format};
use crate::http::call::Call;
use crate::http::counts::EventCounts;
use crate::http::items::{
    self, IDEMPOTENCY_KEY, NdjsonLine, ParsedItems, Positioned, Positions, SourcedItem, ValidItem,
};
use crate::http::large;
use crate::http::limits::ItemLimits;
use crate::http::parameters::LogPart;
use crate::http::problem::Problem;
use crate::http::state::HttpState;
use crate::service::{self, ServiceError, SourceItem, StoreError};

pub(in crate::http) use self::log::{SourcedKind, SourcedRequest};

pub(super) const EVENTS: SourcedKind = SourcedKind {
    parse_items: |body, board| parse_items::<EventItem<'_>>(body, board),
    parse_line: |line, number, board, positions| parse_line::<EventItem<'_>>(line, number, board, positions),
};

/// Parses the items of a body.
pub(in crate::http) fn parse_items<'a, I: SourcedItem<'a>>(
    body: &'a [u8],
    board: Option<&Board>,
) -> Result<ParsedPortion, Problem> {
    let (positions, parsed) = (RefCell::new(Positions::default()), Cell::new(0));
    let each = |item: Positioned<I>| {
        let index = parsed.replace(parsed.get() + 1);
        item.validate(board, &mut positions.borrow_mut(), format_args!("{} {index}", I::NAME))
    };
    let items = ParsedItems::of_body(body, each)?;
    let mut positions = positions.into_inner();
    if parsed.get() < items.len() {
        positions.note_fault(format_args!("an element of '{}'", I::LIST), "it is not an object, so it has no position");
    }
    Ok((items, positions))
}

/// Parses a line of a stream.
pub(in crate::http) fn parse_line<'a, I: SourcedItem<'a>>(
    line: NdjsonLine<'a>,
    number: u64,
    board: Option<&Board>,
    positions: &mut Positions,
) -> Result<ValidItem, items::ItemError> {
    let what = format_args!("line {number}");
    match items::parse_line::<Positioned<I>>(line) {
        Ok(item) => item.validate(board, positions, what),
        Err(error) => {
            positions.note_fault(what, &error.detail);
            Err(error)
        }
    }
}

/// Counts the items of a request, which are a part of the log of a source.
///
/// Boxed, because every other request would move what only these need.
pub(in crate::http) fn count(
    call: Call,
    payload: Payload,
    format: Format,
    request: SourcedRequest,
) -> LocalBoxFuture<'static, Result<EventsReceipt, Problem>> {
    Box::pin(async move {
        if call.request.headers().contains_key(IDEMPOTENCY_KEY) {
            let detail = "a request with 'source' has no Idempotency-Key: the positions of its items are enough";
            return Err(Problem::field("Idempotency-Key", detail));
        }
        let incoming = call.incoming(payload, format)?;
        let validity = Validity::of(&call.caller, &call.state);
        let limits = call.item_limits();
        let Call { caller, state, .. } = call;
        match format {
            Format::Ndjson => {
                let board = request.board.clone();
                let log = Log { state: &state, caller: &caller, request: &request, board };
                let lines = SourceLines::new(log);
                let mut receipt = items::stream::process(&lines, incoming, &state.options, limits, validity).await?;
                if receipt.has_no_source() {
                    lines.send_nothing(&mut receipt).await?;
                }
                Ok(receipt)
            }
            Format::Json => {
                let body = body::read(incoming, &caller, &state.options).await?;
                let is_large = body.len() > large::BODY;
                let add = move || async move { request.count_body(&state, &caller, &body, &limits).await };
                large::handle(is_large, add).await
            }
        }
    })
}

impl SourcedRequest {
    /// Counts the items of a body. If the board that they are for has another definition by now, parses and counts them once
    /// more.
    async fn count_body(
        &self,
        state: &HttpState,
        caller: &Caller,
        body: &[u8],
        limits: &ItemLimits,
    ) -> Result<EventsReceipt, Problem> {
        let mut log = Log { state, caller, request: self, board: self.board.clone() };
        let (items, positions) = (self.kind.parse_items)(body, log.board.as_deref())?;
        limits.take(items.len())?;
        let counted = log.count_whole(items, positions).await;
        let (Err(ServiceError::Store(StoreError::BoardChanged)), Some(board)) = (&counted, &self.board) else {
            return Ok(counted?);
        };
        log.board = Some(state.service.refreshed(board).await?);
        let (items, positions) = (self.kind.parse_items)(body, log.board.as_deref())?;
        Ok(log.count_whole(items, positions).await?)
    }
}

impl Log<'_> {
    /// Counts all items of a request.
    async fn count_whole(
        &self,
        mut items: ParsedEvents<(Position, SourceItem)>,
        positions: Positions,
    ) -> service::Result<EventsReceipt> {
        let LogPart { source, after, .. } = &*self.request.part;
        let (valid, mut receipt, mut settled) = (std::mem::take(&mut items.valid), EventsReceipt::new(false), 0);
        let each = |at: usize, outcome| {
            if let Some((_, item)) = valid.get(at) {
                receipt.record_item(&mut items, at, item, outcome);
            }
            settled += 1;
        };
        let recorded = self.count((*after, &positions, &valid), async { Ok(()) }, each).await?;
        receipt.record_errors(&mut items, u64::MAX);
        receipt.record_source(source, recorded, valid.len() as u64 - settled);
        self.note(&EventCounts::default(), &receipt);
        Ok(receipt)
    }
}
