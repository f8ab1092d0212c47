//! Writes of batches. While a batch is applied in portions, the board may get other editions. What was not applied yet
//! is then carried over to these.

use std::sync::Arc;

use super::engine::Ticket;
use super::memory::Room;
use super::writing::{self, BatchApplication, Undone};
use super::{Awaited, Embedded};
use crate::board::{Board, Edition, Timestamp, Window};
use crate::store::{Added, Batch, Outcome, Result, StoreError};

/// The result of applying what was left of a batch.
enum Applied {
    /// Everything is done. The ticket acknowledges it.
    Done(Added, Ticket),
    /// The board has other editions by now. The batch has no further effect on the ones that were named.
    Stale(Undone),
}

impl Embedded {
    /// Returns what the next portion of a write may take.
    pub(super) fn room(&self) -> Room {
        Room { level: self.memory.level(), max_subjects: self.max_subjects }
    }

    /// Applies a batch to memory and appends it to the journal. `room` returns what each portion may take. Returns a
    /// ticket that acknowledges the batch.
    pub(super) async fn apply(
        &self,
        board: &Arc<Board>,
        batch: &Batch,
        room: impl Fn() -> Room,
    ) -> Result<(Added, Ticket)> {
        let permit = self.journal().admit(writing::max_log_bytes(board, batch))?;
        let applied = self.apply_to((board, 0), batch, Undone::all(batch.increments.len()), &room).await?;
        let (added, ticket) = match applied {
            Applied::Done(added, ticket) => (added, ticket),
            // Boxed, because every batch would have room for what only one needs that is carried over.
            Applied::Stale(undone) => Box::pin(self.apply_carried(board, batch, undone, &room)).await?,
        };
        drop(permit);
        let ticket = self.confirmation_ticket(&added, ticket);
        Ok((added, ticket))
    }

    /// Applies what is left of a batch for a board that has got other editions.
    async fn apply_carried(
        &self,
        board: &Arc<Board>,
        batch: &Batch,
        mut undone: Undone,
        room: &impl Fn() -> Room,
    ) -> Result<(Added, Ticket)> {
        loop {
            let newer = self.live_board(board)?.board();
            // Outcomes are those of the edition that the caller knows as the current one, if it is still there.
            let is_known = |edition: &Edition| edition.id() == board.edition().id();
            // Of periods, the current one.
            let is_known = |edition: &Edition| newer.season().is_none() && is_known(edition);
            let answered = newer.editions().iter().position(is_known).unwrap_or(0);
            let increments = batch.increments.iter().map(|increment| increment.carried(board, &newer)).collect();
            let carried = Batch { increments, return_scores: batch.return_scores };
            if newer.editions().len() == 1 {
                undone.leave_out_missed(&carried.increments);
            }
            // Once a part is counted, the rest is not refused: nothing could say which part that is.
            let permit = match self.journal().admit(writing::max_log_bytes(&newer, &carried)) {
                Err(error) if !undone.has_begun() => return Err(error),
                permit => permit.ok(),
            };
            match self.apply_to((&newer, answered), &carried, undone, room).await? {
                Applied::Done(added, ticket) => return Ok((Added { newer: Some(newer), ..added }, ticket)),
                Applied::Stale(left) => undone = left,
            }
            drop(permit);
        }
    }

    /// Applies what is left of a batch, whose items are for the present editions of the board.
    async fn apply_to(
        &self,
        (board, answered): (&Arc<Board>, usize),
        batch: &Batch,
        undone: Undone,
        room: &impl Fn() -> Room,
    ) -> Result<Applied> {
        let mut undone = Some(undone);
        let mut application = None;
        if batch.increments.len() > writing::MAX_PLANNED_UNDER_LOCK {
            // Planning a large batch takes long, so it is done without the lock.
            match self.with_state(board, |state, _| (state.windows(), state.now())) {
                Ok((windows, now)) => {
                    application = undone.take().map(|left| self.plan((board, answered), batch, left, (&windows, now)));
                }
                Err(StoreError::StaleEpoch) => {}
                Err(error) => return Err(error),
            }
        }
        loop {
            let portion = self.change_state(board, |state, operations| {
                if let Some(left) = undone.take() {
                    let windows = state.windows();
                    application = Some(self.plan((board, answered), batch, left, (&windows, state.now())));
                }
                let Some(application) = &mut application else { return (None, Awaited::No) };
                let done = application.apply_portion(state, room(), operations);
                // The last portion's ticket acknowledges the earlier ones too.
                (done.then(|| application.frame(state)), if done { Awaited::Yes } else { Awaited::No })
            });
            match portion {
                Ok((Some(frame), ticket)) if let Some(application) = application => {
                    return Ok(Applied::Done(application.finish(frame), ticket));
                }
                Ok(_) => {}
                Err(StoreError::StaleEpoch) => {
                    let left = application.map(BatchApplication::undone).or(undone);
                    return left.map(Applied::Stale).ok_or(StoreError::StaleEpoch);
                }
                Err(error) => return Err(error),
            }
            // Other calls run between portions. The wait has a limit, because the portions counted already must be
            // acknowledged or reported as unknown.
            tokio::task::yield_now().await;
            if !self.journal().has_room().await {
                return Err(self.journal().unknown());
            }
        }
    }

    /// Plans what is left of a batch.
    pub(super) fn plan<'a>(
        &self,
        editions: (&'a Board, usize),
        batch: &'a Batch,
        undone: Undone,
        at: (&[Window], Timestamp),
    ) -> BatchApplication<'a> {
        BatchApplication::new(editions, batch, undone, at, self.limits.max_skew, self.key)
    }

    /// Returns a ticket that acknowledges everything that the result reports as counted, by this call or before.
    fn confirmation_ticket(&self, added: &Added, ticket: Ticket) -> Ticket {
        let has_counted = || added.outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Rejected(_)));
        match ticket {
            // This write changed nothing: it is a duplicate, or a measurement that is not a new extreme. The earlier
            // write that it depends on may still be on its way to the disk.
            Ticket::Done if has_counted() => self.journal().ticket_for_all_appended(),
            ticket => ticket,
        }
    }
}
