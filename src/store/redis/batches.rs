//! Writing batches. A batch is divided into one call for each partition that it reaches, and answered once all of them
//! have ended.
//!
//! The editions of the board may change in the meantime. A part of a batch that was not counted, because the board has
//! other editions than the caller knows, is carried over to these and written again. What was counted is never sent
//! again, nor is anything of which it is unknown whether it was counted.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::servers::ServerFailure;
use super::writes::{BatchAnswer, Call, Outdated, QueueFull, divide};
use super::{RedisStore, boards, redivision, timekeeping};
use crate::board::{Board, Frame};
use crate::store::receive::receive;
use crate::store::{Added, Batch, Increment, Outcome, Result, StoreError};

/// The largest number of epochs through which a batch is carried.
const EPOCHS: usize = 8;

/// A batch that is divided into calls, and whose answer is not known yet.
pub(super) struct Begun {
    /// The board with the editions that judge the batch.
    board: Arc<Board>,
    /// Whether it is another one than the caller named.
    is_newer: bool,
    return_scores: bool,
    answer: oneshot::Receiver<BatchAnswer>,
}

/// What has become of a batch so far, of which a part is carried over.
struct Carried {
    outcomes: Vec<Option<Outcome>>,
    frame: Option<Frame>,
    /// The place of each item that is being written, in the batch.
    places: Vec<usize>,
    /// The editions of the items that are being written.
    board: Arc<Board>,
}

impl RedisStore {
    /// Divides a batch, and adds its calls to others, which the caller pushes together. A batch that is refused adds
    /// none.
    pub(super) async fn begin(&self, known: &Arc<Board>, batch: Batch, calls: &mut Vec<Call>) -> Result<Begun> {
        let return_scores = batch.return_scores;
        let (board, batch) = self.writable(known, batch).await?;
        let (own, answer) = divide(&self.session.partitions_of(&board), batch, self.session.servers.at());
        for call in &own {
            timekeeping::admit(&self.session, &call.partition.clock).await?;
        }
        calls.extend(own);
        Ok(Begun { is_newer: !Arc::ptr_eq(known, &board), board, return_scores, answer })
    }

    /// Waits for the answer of a batch, and carries over what was not counted.
    pub(super) async fn end(&self, begun: Begun) -> Result<Added> {
        let Begun { board, is_newer, return_scores, answer } = begun;
        let added = match self.receive_added(&board, answer).await {
            (added, None) => added,
            // Boxed, because every batch would move what only one that is carried over needs.
            (_, Some(outdated)) => Box::pin(self.carry(&board, return_scores, outdated)).await,
        };
        if let Err(StoreError::Corrupt { detail }) = &added {
            self.session.health.note_refused(board.name(), detail, self.session.monotonic());
        }
        let added = added?;
        Ok(Added { newer: added.newer.or(is_newer.then_some(board)), ..added })
    }

    /// Carries over what was not counted of a batch, until everything is counted or refused.
    async fn carry(&self, board: &Arc<Board>, return_scores: bool, mut outdated: Box<Outdated>) -> Result<Added> {
        let mut carried: Option<Carried> = None;
        for _ in 0..EPOCHS {
            let Outdated { outcomes, frame, left } = *outdated;
            let before = carried.take();
            let from = before.as_ref().map_or(board, |before| &before.board).clone();
            let (places, increments): (Vec<usize>, Vec<Increment>) = left.into_iter().unzip();
            let mut so_far = match before {
                None => Carried { outcomes, frame, places, board: from.clone() },
                Some(before) => before.with(outcomes, frame, &places),
            };
            match self.write_again(&from, increments, return_scores).await {
                Err(error) => return Err(self.unless_counted(&so_far, error)),
                Ok(begun) => {
                    so_far.board = begun.board.clone();
                    let (added, still) = self.receive_added(&begun.board, begun.answer).await;
                    match (added, still) {
                        (Ok(added), _) => return Ok(so_far.joined(added)),
                        (Err(_), Some(still)) => (outdated, carried) = (still, Some(so_far)),
                        (Err(error), None) => return Err(self.unless_counted(&so_far, error)),
                    }
                }
            }
        }
        let error = self.error(ServerFailure::KeptChanging);
        Err(match carried {
            None => error,
            Some(carried) => self.unless_counted(&carried, error),
        })
    }

    /// Waits for the answer of a batch. Also returns what is left to do, if the board has other editions.
    async fn receive_added(
        &self,
        board: &Board,
        answer: oneshot::Receiver<BatchAnswer>,
    ) -> (Result<Added>, Option<Box<Outdated>>) {
        let BatchAnswer { added, is_disputed, outdated } = match receive(answer).await {
            Ok(answer) => answer,
            Err(stopped) => return (Err(StoreError::Backend { source: Box::new(stopped) }), None),
        };
        // When a board is removed, its own meta key is deleted before those of its parts. If the board still exists, it
        // has lost a part.
        // Boxed, because every batch would move what few need.
        match is_disputed && Box::pin(boards::is_gone(&self.session, board)).await {
            true => (Err(StoreError::BoardChanged), None),
            false => (added, outdated),
        }
    }

    /// Looks a board up again, and begins to write these items in its present editions.
    async fn write_again(&self, from: &Arc<Board>, increments: Vec<Increment>, return_scores: bool) -> Result<Begun> {
        let newer = self.newer(from).await?;
        let increments = increments.iter().map(|increment| increment.carried(from, &newer)).collect();
        let mut calls = Vec::new();
        let begun = self.begin(&newer, Batch { increments, return_scores }, &mut calls).await?;
        self.queue.push(calls)?;
        Ok(begun)
    }

    /// Returns a board as it can be written to, and the batch for its editions.
    async fn writable(&self, board: &Arc<Board>, batch: Batch) -> Result<(Arc<Board>, Batch)> {
        let found = redivision::writable(&self.session, board).await.map_err(|failure| self.error(failure))?;
        if found.is_same_as(board) {
            return Ok((found, batch));
        }
        let increments = batch.increments.iter().map(|increment| increment.carried(board, &found)).collect();
        Ok((found, Batch { increments, ..batch }))
    }

    /// Returns a board as it is stored, in another epoch than this one.
    pub(super) async fn newer(&self, known: &Board) -> Result<Arc<Board>> {
        let found = boards::board(&self.session, known.name()).await.map_err(|failure| self.error(failure))?;
        match found.filter(|found| found.generation() == known.generation()) {
            Some(found) if found.epoch() != known.epoch() => Ok(found),
            Some(_) => Err(self.error(ServerFailure::KeptChanging)),
            None => Err(StoreError::BoardChanged),
        }
    }

    /// Returns an error that does not say that nothing was counted, if something was. If the board is gone, so is what
    /// it counted.
    fn unless_counted(&self, so_far: &Carried, error: StoreError) -> StoreError {
        let is_counted = so_far.outcomes.iter().any(|outcome| matches!(outcome, Some(Outcome::Counted { .. })));
        match error {
            StoreError::Corrupt { .. } | StoreError::BoardChanged => error,
            _ if is_counted => {
                self.error(ServerFailure::Unknown("a part of the batch was counted, the rest was not".to_owned()))
            }
            _ => error,
        }
    }
}

impl Carried {
    /// Adds the outcomes of the items that were being written, of which those at `left` have none and are carried on.
    fn with(mut self, outcomes: Vec<Option<Outcome>>, frame: Option<Frame>, left: &[usize]) -> Self {
        for (place, outcome) in self.places.iter().zip(outcomes) {
            self.outcomes[*place] = outcome;
        }
        let places = left.iter().map(|within| self.places[*within]).collect();
        Self { frame: frame.or(self.frame), places, ..self }
    }

    /// Returns the result of the whole batch, given that of the items that were written last.
    fn joined(mut self, added: Added) -> Added {
        let outcomes: Vec<Option<Outcome>> = added.outcomes.into_iter().map(Some).collect();
        for (place, outcome) in self.places.iter().zip(outcomes) {
            self.outcomes[*place] = outcome;
        }
        let outcomes = self.outcomes.into_iter().flatten().collect();
        Added { frame: added.frame, outcomes, newer: Some(self.board) }
    }
}

impl From<QueueFull> for StoreError {
    fn from(QueueFull { retry_after }: QueueFull) -> Self {
        Self::Overloaded { retry_after }
    }
}
