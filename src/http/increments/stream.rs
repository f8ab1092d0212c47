//! A stream of increments, in constant memory however long it is.
//!
//! Lines are put together in portions; a few portions are with the store at a time and are settled in order, so
//! that the receipt reads as the stream did. A portion leaves when it is full, or when nothing more has arrived
//! and the store is idle: a slow stream counts as it trickles in. Reading stops while the store is behind, which
//! the client feels as back-pressure.

use std::collections::VecDeque;
use std::sync::Arc;

use actix_web::web::Payload;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::FuturesOrdered;

use super::item::{Flaw, Item};
use super::lines::{Line, Lines};
use super::receipt::{Judged, Place, Receipt};
use crate::board::Board;
use crate::http::HttpState;
use crate::http::body;
use crate::http::codes::ItemCode;
use crate::http::meters::Tally;
use crate::http::problem::Problem;
use crate::service::{self, Service, ServiceError};
use crate::store::{Added, Batch, Increment};

/// Lines in a portion.
const PORTION: usize = 1_000;

/// Portions with the store at a time.
const IN_FLIGHT: usize = 4;

/// Some lines of the stream, parsed.
struct Portion {
    judged: Judged,
    /// The last line in it, good or bad.
    last: u64,
}

/// A portion that the store has answered.
struct Answered {
    portion: Portion,
    added: service::Result<Option<Added>>,
}

/// What is known of the stream so far.
struct Progress<'a> {
    board: Arc<Board>,
    receipt: Receipt,
    tally: &'a Tally,
    /// Every line up to this one is in the receipt.
    settled_through: u64,
    /// A portion has failed: what follows is no longer without gaps.
    broken: bool,
}

/// Adds every line of the stream.
pub(super) async fn add(
    state: &HttpState,
    board: Arc<Board>,
    mut payload: Payload,
    tally: &Tally,
) -> Result<Receipt, Problem> {
    // Half way through a stream it is too late to read amounts anew, so the cache must not be trusted here.
    let board = state.service.refreshed(&board).await?;
    let mut progress =
        Progress { board: board.clone(), receipt: Receipt::default(), tally, settled_through: 0, broken: false };
    let mut lines = Lines::new(state.options.max_line);
    let (mut open, mut full) = (Portion::new(), VecDeque::new());
    let mut in_flight = FuturesOrdered::new();
    let mut ended = false;
    loop {
        while in_flight.len() < IN_FLIGHT
            && let Some(portion) = full.pop_front()
        {
            in_flight.push_back(send(&state.service, &board, portion));
        }
        if ended && full.is_empty() && in_flight.is_empty() {
            return Ok(progress.receipt);
        }
        tokio::select! {
            biased;
            piece = payload.next(), if !ended && full.is_empty() => {
                let mut each = |number, line: Line<'_>| {
                    open.add(number, line, &board);
                    if open.is_full() {
                        full.push_back(open.take());
                    }
                };
                match piece {
                    Some(Ok(piece)) => lines.feed(&piece, each),
                    None => {
                        lines.finish(&mut each);
                        full.push_back(open.take());
                        ended = true;
                    }
                    Some(Err(error)) => {
                        // A line that was cut off is not one the client meant; whole ones before it count.
                        in_flight.push_back(send(&state.service, &board, open.take()));
                        return Err(progress.abandon(in_flight, body::unreadable(error)).await);
                    }
                }
            }
            Some(answered) = in_flight.next(), if !in_flight.is_empty() => {
                if let Err(error) = progress.settle(answered) {
                    return Err(progress.abandon(in_flight, error.into()).await);
                }
            }
            () = ready(()), if !open.is_empty() && in_flight.is_empty() => {
                full.push_back(open.take());
            }
        }
    }
}

async fn send(service: &Service, board: &Arc<Board>, mut portion: Portion) -> Answered {
    let increments = std::mem::take(&mut portion.judged.increments);
    let added = match increments.is_empty() {
        true => Ok(None),
        false => service.add(board, Batch { increments, return_scores: false }).await.map(Some),
    };
    Answered { portion, added }
}

impl Portion {
    fn new() -> Self {
        Self { judged: Judged::new(Place::Line), last: 0 }
    }

    /// Leaves an empty one behind.
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    fn add(&mut self, number: u64, line: Line<'_>, board: &Board) {
        if self.is_empty() {
            self.judged.reserve(PORTION);
        }
        self.judged.take(number, judge(line, board));
        self.last = number;
    }

    fn is_full(&self) -> bool {
        self.judged.len() >= PORTION
    }

    fn is_empty(&self) -> bool {
        self.judged.len() == 0
    }
}

fn judge(line: Line<'_>, board: &Board) -> Result<Increment, Flaw> {
    let flaw = |code, detail| Flaw { code, field: String::new(), detail, of_shape: true };
    let Line::Text(text) = line else {
        return Err(flaw(ItemCode::LineTooLong, "the line is longer than allowed".to_owned()));
    };
    let item: Item<'_> =
        serde_json::from_slice(text).map_err(|error| flaw(ItemCode::MalformedLine, error.to_string()))?;
    item.judge(board)
}

impl Progress<'_> {
    /// Takes a portion into the receipt, in the order of its lines.
    fn settle(&mut self, answered: Answered) -> Result<(), ServiceError> {
        let Portion { judged, last } = answered.portion;
        let outcomes = match answered.added {
            Ok(added) => added.map(|added| added.outcomes).unwrap_or_default(),
            Err(error) => {
                self.broken = true;
                return Err(error);
            }
        };
        let before = self.receipt.counts();
        self.receipt.settle(judged, outcomes, &self.board, |_, _| ());
        self.tally.record(before, self.receipt.counts());
        if !self.broken {
            self.settled_through = self.settled_through.max(last);
        }
        Ok(())
    }

    /// Waits for what is still with the store, then says how far the stream came.
    async fn abandon(
        mut self,
        mut in_flight: FuturesOrdered<impl Future<Output = Answered>>,
        problem: Problem,
    ) -> Problem {
        while let Some(answered) = in_flight.next().await {
            if let Err(error) = self.settle(answered) {
                tracing::debug!(%error, "a later portion of an abandoned stream failed too");
            }
        }
        problem
            .with("accepted", self.receipt.accepted)
            .with("duplicates", self.receipt.duplicates)
            .with("counted_through", self.settled_through)
    }
}
