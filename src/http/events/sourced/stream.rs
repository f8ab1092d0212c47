//! Streams of a source's items. A portion is spread over boards while the one before is counted.

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::log::Log;
use crate::board::Position;
use crate::http::events::receipt::{EventsReceipt, ParsedEvents};
use crate::http::items::{self, NdjsonLine, ParsedItems, Positions, stream};
use crate::service::{self, EventOutcome, PortionRecorded, ServiceError, SourceItem};

/// The number of lines in a full portion, and the bytes from which on one with fewer lines is full. One portion is counted
/// at a time, so it should be large: each board does a portion in a few steps, one after the other.
const PORTION: usize = 5_000;
const PORTION_BYTES: usize = stream::MAX_IN_FLIGHT * stream::PORTION_BYTES;

/// Handler of the lines of a stream.
pub(super) struct SourceLines<'a> {
    log: Log<'a>,
    last: Mutex<Last>,
}

/// The last item that was parsed, and the end of its portion.
struct Last {
    position: Position,
    ended: oneshot::Receiver<Ended>,
}

/// How a portion ended, unless it failed.
enum Ended {
    Through,
    /// An item waits; what is up to this position is counted.
    Waits(Position),
}

/// A portion of a stream, which follows another one.
pub(super) struct StreamPortion {
    /// The position after which it begins.
    after: Position,
    items: ParsedEvents<(Position, SourceItem)>,
    positions: Positions,
    before: Option<oneshot::Receiver<Ended>>,
    ended: Option<oneshot::Sender<Ended>>,
}

/// What became of a portion of a stream.
pub(super) struct Counted {
    /// The outcomes of the first items: of all, unless one waits.
    outcomes: Vec<EventOutcome>,
    recorded: PortionRecorded,
}

impl<'a> SourceLines<'a> {
    pub(super) fn new(log: Log<'a>) -> Self {
        let (ended, before) = oneshot::channel();
        // Nothing is before the first portion.
        let _ = ended.send(Ended::Through);
        let last = Last { position: log.request.part.after, ended: before };
        Self { log, last: last.into() }
    }

    /// Sends a portion without items, which is all that a stream without lines has.
    pub(super) async fn send_nothing(&self, receipt: &mut EventsReceipt) -> service::Result<()> {
        let mut nothing = stream::LineHandler::new_portion(self, 0);
        let counted = stream::LineHandler::send(self, &mut nothing).await?;
        stream::LineHandler::record(self, receipt, nothing, counted);
        Ok(())
    }
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
        let (items, positions) = (ParsedItems::new(items::Position::Line, lines), Positions::default());
        StreamPortion { after: last.position, items, positions, before: Some(before), ended: Some(ended) }
    }

    fn parse_line(&self, portion: &mut StreamPortion, number: u64, line: NdjsonLine<'_>) {
        let Log { request, board, .. } = &self.log;
        let item = (request.kind.parse_line)(line, number, board.as_deref(), &mut portion.positions);
        if let Some(position) = portion.positions.last {
            self.last.lock().position = position;
        }
        portion.items.push(number, item);
    }

    async fn send(&self, portion: &mut StreamPortion) -> service::Result<Counted> {
        let StreamPortion { after, items, positions, before, ended } = portion;
        let source = &self.log.request.part.source;
        let waits = |reached| ServiceError::SourceWaits { source_name: source.clone(), reached };
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
        let mut outcomes = Vec::with_capacity(items.valid.len());
        let each = |_, outcome| outcomes.push(outcome);
        let recorded = self.log.count((*after, positions, &items.valid), before, each).await?;
        if let Some(ended) = ended.take() {
            // Nobody waits for the last one.
            let waits = recorded.reached.filter(|_| recorded.waits);
            let _ = ended.send(waits.map_or(Ended::Through, Ended::Waits));
        }
        Ok(Counted { outcomes, recorded })
    }

    fn record(&self, receipt: &mut EventsReceipt, portion: StreamPortion, counted: Counted) {
        let before = receipt.counts();
        let StreamPortion { mut items, .. } = portion;
        let Counted { outcomes, recorded } = counted;
        let valid = std::mem::take(&mut items.valid);
        let waiting = valid.len() - outcomes.len();
        for (at, ((_, item), outcome)) in valid.iter().zip(outcomes).enumerate() {
            receipt.record_item(&mut items, at, item, outcome);
        }
        receipt.record_errors(&mut items, u64::MAX);
        receipt.record_source(&self.log.request.part.source, recorded, waiting as u64);
        self.log.note(&before, receipt);
    }

    fn accepted_and_duplicates(receipt: &EventsReceipt) -> (u64, u64) {
        (receipt.accepted, receipt.duplicates)
    }
}
