//! Processing of a stream of items in constant memory.
//!
//! Lines are collected into portions. A few portions are sent to the store at a time, and their outcomes are recorded
//! in order, so that the receipt follows the order of the stream. A portion is sent when it is full, or when no more
//! lines have arrived and the store is idle, so that a slow stream is counted as it arrives. While the store is behind,
//! the stream is not read, which slows down the client. The same
//! happens while the client is at the rate of items that its address or its key may send.

use std::collections::VecDeque;
use std::time::Duration;

use actix_web::web::Bytes;
use futures_util::StreamExt;
use futures_util::future::{pending, ready};
use futures_util::stream::FuturesOrdered;
use tokio::time::Instant;

use super::lines::{NdjsonLine, NdjsonLines};
use crate::http::admission::Validity;
use crate::http::codes::Code;
use crate::http::incoming::Incoming;
use crate::http::limits::ItemLimits;
use crate::http::problem::Problem;
use crate::http::state::HttpOptions;
use crate::service::{self, ServiceError};

/// Number of lines in a full portion.
const PORTION: usize = 1_000;

/// Number of bytes from which on a portion with fewer lines is full.
pub(in crate::http) const PORTION_BYTES: usize = 512 << 10;

/// The memory of a parsed line apart from its text.
const PARSED_LINE: usize = 256;

/// The most bytes that are parsed at a time: short lines take many times their size, and a piece of the body is as
/// large as what has arrived since the worker last looked.
const PARSED_AT_ONCE: usize = 16 << 10;

/// Maximum number of portions in flight if the store may process them in any order.
pub(in crate::http) const MAX_IN_FLIGHT: usize = 4;

/// Parses the lines of a stream and sends the items to the store.
pub(in crate::http) trait LineHandler {
    /// Some parsed lines.
    type Portion;
    /// The outcomes of a portion from the store.
    type Outcomes;
    /// The outcomes of all portions so far.
    type Receipt: Default;

    /// Returns the maximum number of portions in flight: 1 if the last of several lines must take effect last.
    fn max_in_flight(&self) -> usize {
        MAX_IN_FLIGHT
    }

    /// Returns the number of lines in a full portion.
    fn max_lines(&self) -> usize {
        PORTION
    }

    /// Returns the memory in bytes from which on a portion with fewer lines is full.
    fn max_bytes(&self) -> usize {
        PORTION_BYTES
    }

    /// Creates a portion with capacity for the given number of lines.
    fn new_portion(&self, lines: usize) -> Self::Portion;

    /// Parses a line and adds it to the portion.
    fn parse_line(&self, portion: &mut Self::Portion, number: u64, line: NdjsonLine<'_>);

    /// Sends the items of a portion to the store. The portion keeps what [`record`](Self::record) needs.
    async fn send(&self, portion: &mut Self::Portion) -> service::Result<Self::Outcomes>;

    /// Adds the outcomes of a portion to the receipt. Called in the order of the lines.
    fn record(&self, receipt: &mut Self::Receipt, portion: Self::Portion, outcomes: Self::Outcomes);

    /// Returns the numbers of accepted and duplicate items so far.
    fn accepted_and_duplicates(receipt: &Self::Receipt) -> (u64, u64);
}

/// Lines that have been parsed but not sent.
struct PendingLines<P> {
    portion: Option<P>,
    lines: usize,
    /// The memory that the lines take.
    bytes: usize,
    /// Number of the last line, valid or not.
    last: u64,
}

/// A portion with the response of the store.
struct Sent<H: LineHandler> {
    portion: H::Portion,
    last: u64,
    bytes: usize,
    outcomes: service::Result<H::Outcomes>,
}

/// The receipt of the stream so far.
struct Recorder<'a, H: LineHandler> {
    handler: &'a H,
    receipt: H::Receipt,
    /// All lines up to this number are in the receipt.
    counted_through: u64,
    /// Whether a portion has failed, so that later ones no longer follow without a gap.
    has_failed: bool,
}

/// Processes all lines of a stream, within the limits of the options and for as long as its caller is valid.
pub(in crate::http) async fn process<H: LineHandler>(
    handler: &H,
    mut body: Incoming,
    options: &HttpOptions,
    limits: ItemLimits,
    mut validity: Validity,
) -> Result<H::Receipt, Problem> {
    let mut recorder = Recorder { handler, receipt: H::Receipt::default(), counted_through: 0, has_failed: false };
    let mut lines = NdjsonLines::new(options.max_line);
    let (mut pending, mut full) = (PendingLines::new(), VecDeque::<PendingLines<H::Portion>>::new());
    let mut in_flight = FuturesOrdered::new();
    // The memory of the portions in flight.
    let mut sent_bytes = 0;
    // What has arrived and is not parsed yet.
    let mut arrived = Bytes::new();
    let mut ended = false;
    // Whether what has arrived waits for the memory of what was parsed before.
    let mut lacks_memory = false;
    // What is counted at once must not be more than what is allowed at once.
    let most_lines = limits.burst().map_or(usize::MAX, |burst| burst as usize).min(handler.max_lines());
    // The time until which the stream is paused, because the next portion exceeds a rate.
    let mut paused_until: Option<Instant> = None;
    let mut while_paused = validity.clone();
    loop {
        // Pieces without lines to send, and a client that is fast, must not keep the other requests of the worker
        // waiting.
        tokio::task::yield_now().await;
        while in_flight.len() < handler.max_in_flight()
            && let Some(lines) = full.front().map(|portion| portion.lines)
        {
            paused_until = limits.take_or_wait(lines).err().map(|time| Instant::now() + time);
            if paused_until.is_some() {
                break;
            }
            let Some(portion) = full.pop_front() else { break };
            sent_bytes += portion.bytes;
            in_flight.extend(send(handler, portion));
        }
        if ended && full.is_empty() && in_flight.is_empty() {
            return Ok(recorder.receipt);
        }
        tokio::select! {
            biased;
            // First, because the store waits for what follows.
            Some(sent) = in_flight.next(), if !in_flight.is_empty() => {
                sent_bytes -= sent.bytes;
                lacks_memory = false;
                // Less than before, which does not fail.
                let _ = body.hold(sent_bytes + pending.bytes + lines.held() + arrived.len());
                if let Err(error) = recorder.record(sent) {
                    return Err(recorder.abort(in_flight, error.into()).await);
                }
            }
            arrival = wait_for_bytes(&mut arrived, &mut body, options.stream_idle_timeout, &mut validity),
                if !ended && full.is_empty() && !lacks_memory =>
            {
                let held = sent_bytes + pending.bytes + lines.held() + arrived.len();
                let next = arrived.len().min(PARSED_AT_ONCE);
                let room = arrival.map(|arrival| arrival.map(|()| body.hold(held + parsed(&arrived[..next]))));
                // What was parsed before returns its memory when it is counted. The stream is not read until then.
                let returns_memory = pending.lines > 0 || !in_flight.is_empty();
                lacks_memory = returns_memory && matches!(room, Some(Ok(Err(_))));
                if lacks_memory {
                    continue;
                }
                let piece = room.map(|room| room.flatten().map(|()| arrived.split_to(next)));
                let mut each = |number, line: NdjsonLine<'_>| {
                    pending.add(handler, number, line);
                    if pending.lines >= most_lines || pending.bytes >= handler.max_bytes() {
                        full.push_back(pending.take());
                    }
                };
                match piece {
                    Some(Ok(piece)) => lines.feed(&piece, each),
                    None => {
                        lines.finish(&mut each);
                        full.push_back(pending.take());
                        ended = true;
                    }
                    Some(Err(problem)) => {
                        // The incomplete last line is dropped; the complete lines before it count.
                        while in_flight.len() >= handler.max_in_flight()
                            && let Some(sent) = in_flight.next().await
                        {
                            if let Err(error) = recorder.record(sent) {
                                return Err(recorder.abort(in_flight, error.into()).await);
                            }
                        }
                        if limits.take_or_wait(pending.lines).is_ok() {
                            in_flight.extend(send(handler, pending.take()));
                        }
                        return Err(recorder.abort(in_flight, problem).await);
                    }
                }
            }
            problem = while_paused.end(), if paused_until.is_some() => {
                return Err(recorder.abort(in_flight, problem).await);
            }
            () = sleep_until(paused_until), if paused_until.is_some() => {}
            () = ready(()), if pending.lines > 0 && in_flight.is_empty() => {
                full.push_back(pending.take());
            }
        }
    }
}

/// Waits until this time, or forever.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => pending().await,
    }
}

/// Returns the memory of a piece and of the lines that it is parsed into.
fn parsed(piece: &[u8]) -> usize {
    piece.len() + PARSED_LINE * memchr::memchr_iter(b'\n', piece).count()
}

/// Waits until there are bytes that have `arrived` and are not parsed. Returns `None` at the end of the body, and the
/// problem of a client that sends nothing for the duration `idle`. Without this limit a client that is gone without
/// closing its connection would keep the request forever.
async fn wait_for_bytes(
    arrived: &mut Bytes,
    body: &mut Incoming,
    idle: Duration,
    validity: &mut Validity,
) -> Option<Result<(), Problem>> {
    while arrived.is_empty() {
        match arriving(body, idle, validity).await? {
            Ok(piece) => *arrived = piece,
            Err(problem) => return Some(Err(problem)),
        }
    }
    Some(Ok(()))
}

/// Returns the next piece of the body, however large.
async fn arriving(body: &mut Incoming, idle: Duration, validity: &mut Validity) -> Option<Result<Bytes, Problem>> {
    loop {
        let received = body.received();
        let next = async {
            tokio::select! {
                biased;
                problem = validity.end() => Some(Err(problem)),
                piece = body.next() => piece,
            }
        };
        match tokio::time::timeout(idle, next).await {
            Ok(piece) => return piece,
            // Compressed bytes that arrived may not be enough for any output.
            Err(_) if body.received() != received => {}
            Err(_) => {
                let detail = format!("the stream sent nothing for {} s", idle.as_secs_f64());
                return Some(Err(Problem::new(Code::BodyTimeout, detail)));
            }
        }
    }
}

/// Sends pending lines to the store, if there are any.
fn send<H: LineHandler>(handler: &H, pending: PendingLines<H::Portion>) -> Option<impl Future<Output = Sent<H>>> {
    let PendingLines { portion, last, bytes, .. } = pending;
    let mut portion = portion?;
    Some(async move {
        let outcomes = handler.send(&mut portion).await;
        Sent { portion, last, bytes, outcomes }
    })
}

impl<P> PendingLines<P> {
    fn new() -> Self {
        Self { portion: None, lines: 0, bytes: 0, last: 0 }
    }

    /// Takes all pending lines.
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    fn add<H: LineHandler<Portion = P>>(&mut self, handler: &H, number: u64, line: NdjsonLine<'_>) {
        let portion = self.portion.get_or_insert_with(|| handler.new_portion(PORTION));
        handler.parse_line(portion, number, line);
        self.lines += 1;
        self.bytes += PARSED_LINE + if let NdjsonLine::Text(text) = line { text.len() } else { 0 };
        self.last = number;
    }
}

impl<H: LineHandler> Recorder<'_, H> {
    /// Adds the outcomes of a portion to the receipt.
    fn record(&mut self, sent: Sent<H>) -> Result<(), ServiceError> {
        let Sent { portion, last, outcomes, .. } = sent;
        let outcomes = outcomes.inspect_err(|_| self.has_failed = true)?;
        self.handler.record(&mut self.receipt, portion, outcomes);
        if !self.has_failed {
            self.counted_through = self.counted_through.max(last);
        }
        Ok(())
    }

    /// Waits for the portions in flight and adds the extent of the receipt to the problem.
    async fn abort(
        mut self,
        mut in_flight: FuturesOrdered<impl Future<Output = Sent<H>>>,
        problem: Problem,
    ) -> Problem {
        while let Some(sent) = in_flight.next().await {
            if let Err(error) = self.record(sent) {
                tracing::debug!(%error, "another portion of an aborted stream failed");
            }
        }
        let (accepted, duplicates) = H::accepted_and_duplicates(&self.receipt);
        problem.with("accepted", accepted).with("duplicates", duplicates).with("counted_through", self.counted_through)
    }
}
