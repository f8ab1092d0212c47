//! The recording of events. Each event goes to every board whose metric names its type.
//!
//! The effects of one call's events on a board are collected into one batch, and all batches are sent in one store
//! call. The events are spread over the boards that this instance knows. At the same time the store is asked whether
//! its list of boards is still the same, so the question adds no latency. If the list has changed, or if a board no
//! longer exists, the list is read again and the events are also sent to the boards that are new in it. The version of
//! the list changes with the editions of boards too: what was not sent to a board, because its filter or its fields
//! excluded it, is decided again by its present editions.

mod fan;
mod outcome;
mod portion;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join;

use self::fan::{Fan, increment};
pub use self::outcome::{EventOutcome, OnBoard, Recorded, Refusal, Taken};
pub use self::portion::{ItemPortion, PortionRecorded, SourceItem, SpreadPortion};
use super::registry::Listed;
use super::{Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::{Board, Event};
use crate::store::{Added, Batch, StoreError};

/// The number of attempts before a call fails because boards keep changing.
const ATTEMPTS: usize = 4;

/// The largest age of the list of boards by which streams of events are sent in order.
const MAX_AGE: Duration = Duration::from_secs(1);

impl Service {
    /// Returns whether the order of events matters to a board, so that a caller with many events must wait for the
    /// answer about one before it sends the next. If the boards are not known, it returns true. At most one store call
    /// a second.
    pub async fn order_of_events_matters(&self, caller: &Caller) -> bool {
        self.registry.listed_within(MAX_AGE).await.map_or(true, |listed| listed.event_index.depends_on_order(caller))
    }

    /// Passes each event that a board refuses whatever the store says to `each`, with its index and these refusals: a
    /// field that a metric needs is missing or invalid, or the board does not support the retraction. Counts nothing.
    /// Whether an event is too late, or makes an amount too large, is known only to the store. At least one store call.
    pub async fn refusals(
        &self,
        caller: &Caller,
        events: &[Arc<Event>],
        mut each: impl FnMut(usize, EventOutcome),
    ) -> Result<()> {
        caller.require(Scope::Write)?;
        let since = Instant::now();
        let version = self.store.boards_version().await?;
        let listed = self.registry.listed_at(version, since).await?;
        for (at, event) in events.iter().enumerate() {
            let refused = |board: &Arc<Board>| {
                let refusal = increment(board, event)?.err()?;
                let (board, taken) = (board.clone(), Taken::Refused(refusal));
                Some(OnBoard { board, subject: None, taken, is_beside: false })
            };
            let boards: Vec<_> = listed.event_index.of(caller, &event.kind).filter_map(refused).collect();
            if !boards.is_empty() {
                each(at, EventOutcome { is_known: true, boards });
            }
        }
        Ok(())
    }

    /// Counts events on every board that takes them, and returns the outcome of each event. Makes one store call (one
    /// for each 100,000 outcomes if there are more), and at least two more if boards were created or removed, or their
    /// editions changed, since the last call.
    ///
    /// An event counts on every board that was defined before this call, through any instance, and in every edition
    /// that the board had before it. After an error, some boards may have counted the events and others not. If the
    /// events have ids, the call can be repeated safely.
    pub async fn record(&self, caller: &Caller, events: Vec<Event>, return_scores: bool) -> Result<Recorded> {
        let mut recorded = Recorded { events: Vec::with_capacity(events.len()) };
        let events: Vec<_> = events.into_iter().map(Arc::new).collect();
        self.record_each(caller, &events, return_scores, |_, outcome| recorded.events.push(outcome)).await?;
        Ok(recorded)
    }

    /// Does the same as [`record`](Self::record), but passes each outcome to `each` as soon as it is final, with the
    /// index of the event and in order. So not all outcomes have to be in memory at once.
    pub async fn record_each(
        &self,
        caller: &Caller,
        events: &[Arc<Event>],
        return_scores: bool,
        mut each: impl FnMut(usize, EventOutcome),
    ) -> Result<()> {
        caller.require(Scope::Write)?;
        let (mut settled, mut is_counted) = (0, false);
        while settled < events.len() {
            let rest = &events[settled..];
            let listed = self.listed_for(caller).await.map_err(|error| unless_counted(error, is_counted))?;
            let mut fan = Fan::new(caller, return_scores);
            let end = rest.iter().position(|event| !fan.gather(&listed.event_index, event)).unwrap_or(rest.len());
            fan.reached().try_for_each(|board| self.check_token(caller, board))?;
            if caller.takes_back() {
                fan.refusing().try_for_each(|board| caller.require_distinct(board))?;
            }
            let sent = self.send(&mut fan, &rest[..end], listed).await;
            is_counted |= fan.is_counted;
            sent.map_err(|error| unless_counted(error, is_counted))?;
            for outcome in fan.outcomes() {
                each(settled, outcome);
                settled += 1;
            }
        }
        Ok(())
    }

    /// Returns the boards by which the events of a caller are spread. If its token allows taking back, no board may count
    /// otherwise than it is known to: then the store is asked first whether the list is still the same.
    async fn listed_for(&self, caller: &Caller) -> Result<Listed> {
        if !caller.takes_back() {
            return Ok(self.registry.listed().await?);
        }
        let since = Instant::now();
        let version = self.store.boards_version().await?;
        Ok(self.registry.listed_at(version, since).await?)
    }

    /// Sends the collected batches to the store and records the results. Then does the same for boards that were
    /// missing from the list by which the events were spread, or had other editions in it.
    async fn send(&self, fan: &mut Fan<'_>, events: &[Arc<Event>], listed: Listed) -> Result<()> {
        let begun = Instant::now();
        let (version, answers) =
            join(self.store.boards_version_beside_writes(), self.add_all(fan.take_batches())).await;
        let mut changed = self.settle(fan, answers)?;
        let version = version?;
        if changed.is_empty() && version == listed.version {
            return Ok(());
        }
        let mut known = listed.event_index.epochs();
        let mut fresh = match changed.is_empty() {
            true => self.registry.listed_at(version, begun).await?,
            false => self.registry.listed_after(Instant::now()).await?,
        };
        for _ in 1..ATTEMPTS {
            for board in &changed {
                fan.forget(board);
                known.remove(&board.generation());
            }
            fan.gather_again(&fresh.event_index, &known, events);
            known.extend(fresh.event_index.epochs());
            fan.reached().try_for_each(|board| self.check_token(fan.caller, board))?;
            let answers = self.add_all(fan.take_batches()).await;
            changed = self.settle(fan, answers)?;
            if changed.is_empty() {
                return Ok(());
            }
            fresh = self.registry.listed_after(Instant::now()).await?;
        }
        Err(StoreError::BoardChanged.into())
    }

    /// Records the results of batches, and the editions of boards that were found to have changed. Returns the boards
    /// that were removed or defined again.
    fn settle(&self, fan: &mut Fan<'_>, answers: Vec<Result<Added, StoreError>>) -> Result<Vec<Arc<Board>>> {
        let changed = fan.settle(answers);
        fan.newer.drain(..).for_each(|board| self.registry.put(board));
        changed
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added, StoreError>> {
        if batches.is_empty() { Vec::new() } else { self.store.add_all(batches).await }
    }
}

/// Returns an error that does not claim that nothing was done, if some board has already counted an event of the call.
fn unless_counted(error: ServiceError, is_counted: bool) -> ServiceError {
    match error {
        ServiceError::Store(StoreError::Unreachable { at, .. }) if is_counted => StoreError::TimedOut { at }.into(),
        ServiceError::Store(
            error @ (StoreError::Overloaded { .. } | StoreError::ReadOnly { .. } | StoreError::ClockDoubted { .. }),
        ) if is_counted => {
            tracing::warn!(%error, "some boards have counted events that others have not");
            StoreError::TimedOut { at: "its address".to_owned() }.into()
        }
        error => error,
    }
}
