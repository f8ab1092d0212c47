//! The part of the log of a source that a request has, and the counting of its items.

use std::sync::Arc;

use crate::access::Caller;
use crate::board::{Board, Position};
use crate::http::counts::EventCounts;
use crate::http::events::receipt::{EventsReceipt, ParsedEvents};
use crate::http::items::{ItemError, NdjsonLine, Positions, ValidItem};
use crate::http::metrics::SourcedMetrics;
use crate::http::parameters::LogPart;
use crate::http::problem::Problem;
use crate::http::state::HttpState;
use crate::service::{self, EventOutcome, ItemPortion, PortionRecorded, ServiceError, SourceItem};

/// A kind of item that a source may have.
pub(in crate::http) struct SourcedKind {
    pub(in crate::http) parse_items: fn(&[u8], Option<&Board>) -> Result<ParsedPortion, Problem>,
    pub(in crate::http) parse_line:
        fn(NdjsonLine<'_>, u64, Option<&Board>, &mut Positions) -> Result<ValidItem, ItemError>,
}

/// Items that were parsed, and their positions.
pub(super) type ParsedPortion = (ParsedEvents<(Position, SourceItem)>, Positions);

/// A request with a part of the log of a source.
pub(in crate::http) struct SourcedRequest {
    pub(in crate::http) kind: &'static SourcedKind,
    pub(in crate::http) part: Box<LogPart>,
    /// The board of which the items are increments.
    pub(in crate::http) board: Option<Arc<Board>>,
    pub(in crate::http) metrics: SourcedMetrics,
}

/// The part of the log of a source that a request has.
pub(super) struct Log<'a> {
    pub(super) state: &'a HttpState,
    pub(super) caller: &'a Caller,
    pub(super) request: &'a SourcedRequest,
    /// The board of which the items are increments, with the definition by which they are parsed.
    pub(super) board: Option<Arc<Board>>,
}

impl Log<'_> {
    /// Adds to the metrics what a receipt has more than before.
    pub(super) fn note(&self, before: &EventCounts, receipt: &EventsReceipt) {
        let now = receipt.counts();
        self.request.metrics.record(before, &now);
        self.state.sent_items.record(&self.request.part.source, before, &now);
    }

    /// Counts items that begin after a position on the boards of the source, when what comes before them is counted. Calls
    /// `each` with what became of each.
    pub(super) async fn count(
        &self,
        (after, positions, items): (Position, &Positions, &[(Position, SourceItem)]),
        before: impl Future<Output = service::Result<()>>,
        each: impl FnMut(usize, EventOutcome),
    ) -> service::Result<PortionRecorded> {
        let invalid = |detail| ServiceError::InvalidQuery { field: "position", detail };
        let through = positions.through(after).map_err(invalid)?;
        let LogPart { source, fill, .. } = &*self.request.part;
        let has_no_time = |(_, item): &&(Position, SourceItem)| item.at().is_none();
        if let (Some(_), Some((position, _))) = (fill, items.iter().find(has_no_time)) {
            let detail =
                format!("the item at {position} has no 'at', which each item needs with which a board is filled");
            return Err(ServiceError::InvalidQuery { field: "at", detail });
        }
        let board = self.board.as_ref();
        let portion = ItemPortion { source, board, fill: fill.as_ref(), after, through, items };
        let spread = self.state.service.spread_portion(self.caller, portion).await?;
        before.await?;
        self.state.service.record_portion(self.caller, spread, each).await
    }
}
