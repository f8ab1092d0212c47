//! A stream of items, in constant memory however long it is.
//!
//! Lines are put together in portions; a few portions are with the store at a time and are settled in order, so
//! that the receipt reads as the stream did. A portion leaves when it is full, or when nothing more has arrived
//! and the store is idle: a slow stream counts as it trickles in. Reading stops while the store is behind, which
//! the client feels as back-pressure.

use std::collections::VecDeque;

use actix_web::web::Payload;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::FuturesOrdered;

use super::lines::{Line, Lines};
use crate::http::body;
use crate::http::problem::Problem;
use crate::service::{self, ServiceError};

/// Lines in a portion.
const PORTION: usize = 1_000;

/// Portions with the store at a time, where it does not matter which it takes first.
pub(in crate::http) const IN_FLIGHT: usize = 4;

/// What the lines of a stream are, and what is done with them.
pub(in crate::http) trait Intake {
    /// Some lines, parsed.
    type Portion;
    /// What the store said of them.
    type Answer;
    /// What became of the stream so far.
    type Receipt: Default;

    /// How many portions the store may be given at a time: 1 where the later of two lines has to hold.
    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }

    /// A portion with room for so many lines.
    fn portion(&self, lines: usize) -> Self::Portion;

    /// Takes a line in.
    fn read(&self, portion: &mut Self::Portion, number: u64, line: Line<'_>);

    /// Hands a portion to the store; what is to be settled later stays in it.
    async fn send(&self, portion: &mut Self::Portion) -> service::Result<Self::Answer>;

    /// Takes a portion into the receipt. Called in the order of the lines.
    fn settle(&self, receipt: &mut Self::Receipt, portion: Self::Portion, answer: Self::Answer);

    /// How many items have been accepted so far, and how many were duplicates.
    fn progress(receipt: &Self::Receipt) -> (u64, u64);
}

/// Lines that have been read but not yet sent.
struct Open<P> {
    portion: Option<P>,
    lines: usize,
    /// The last line in it, good or bad.
    last: u64,
}

/// A portion that the store has answered.
struct Answered<I: Intake> {
    portion: I::Portion,
    last: u64,
    answer: service::Result<I::Answer>,
}

/// What is known of the stream so far.
struct Progress<'a, I: Intake> {
    intake: &'a I,
    receipt: I::Receipt,
    /// Every line up to this one is in the receipt.
    settled_through: u64,
    /// A portion has failed: what follows is no longer without gaps.
    broken: bool,
}

/// Takes in every line of the stream, none longer than so many bytes.
pub(in crate::http) async fn take<I: Intake>(
    intake: &I,
    mut payload: Payload,
    longest_line: usize,
) -> Result<I::Receipt, Problem> {
    let mut progress = Progress { intake, receipt: I::Receipt::default(), settled_through: 0, broken: false };
    let mut lines = Lines::new(longest_line);
    let (mut open, mut full) = (Open::new(), VecDeque::new());
    let mut in_flight = FuturesOrdered::new();
    let mut ended = false;
    loop {
        while in_flight.len() < intake.in_flight()
            && let Some(open) = full.pop_front()
        {
            in_flight.extend(send(intake, open));
        }
        if ended && full.is_empty() && in_flight.is_empty() {
            return Ok(progress.receipt);
        }
        tokio::select! {
            biased;
            piece = payload.next(), if !ended && full.is_empty() => {
                let mut each = |number, line: Line<'_>| {
                    open.add(intake, number, line);
                    if open.lines >= PORTION {
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
                        in_flight.extend(send(intake, open.take()));
                        return Err(progress.abandon(in_flight, body::unreadable(error)).await);
                    }
                }
            }
            Some(answered) = in_flight.next(), if !in_flight.is_empty() => {
                if let Err(error) = progress.settle(answered) {
                    return Err(progress.abandon(in_flight, error.into()).await);
                }
            }
            () = ready(()), if open.lines > 0 && in_flight.is_empty() => {
                full.push_back(open.take());
            }
        }
    }
}

/// Hands what is open to the store; nothing if no line is.
fn send<I: Intake>(intake: &I, open: Open<I::Portion>) -> Option<impl Future<Output = Answered<I>>> {
    let Open { portion, last, .. } = open;
    let mut portion = portion?;
    Some(async move {
        let answer = intake.send(&mut portion).await;
        Answered { portion, last, answer }
    })
}

impl<P> Open<P> {
    fn new() -> Self {
        Self { portion: None, lines: 0, last: 0 }
    }

    /// Leaves nothing behind.
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    fn add<I: Intake<Portion = P>>(&mut self, intake: &I, number: u64, line: Line<'_>) {
        let portion = self.portion.get_or_insert_with(|| intake.portion(PORTION));
        intake.read(portion, number, line);
        self.lines += 1;
        self.last = number;
    }
}

impl<I: Intake> Progress<'_, I> {
    /// Takes a portion into the receipt, in the order of its lines.
    fn settle(&mut self, answered: Answered<I>) -> Result<(), ServiceError> {
        let Answered { portion, last, answer } = answered;
        let answer = answer.inspect_err(|_| self.broken = true)?;
        self.intake.settle(&mut self.receipt, portion, answer);
        if !self.broken {
            self.settled_through = self.settled_through.max(last);
        }
        Ok(())
    }

    /// Waits for what is still with the store, then says how far the stream came.
    async fn abandon(
        mut self,
        mut in_flight: FuturesOrdered<impl Future<Output = Answered<I>>>,
        problem: Problem,
    ) -> Problem {
        while let Some(answered) = in_flight.next().await {
            if let Err(error) = self.settle(answered) {
                tracing::debug!(%error, "a later portion of an abandoned stream failed too");
            }
        }
        let (accepted, duplicates) = I::progress(&self.receipt);
        problem.with("accepted", accepted).with("duplicates", duplicates).with("counted_through", self.settled_through)
    }
}
