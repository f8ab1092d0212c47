//! Portions of sources. Each step of a portion is done under one hold of the board's lock, and is one append to the
//! journal, so that a crash leaves all of it or nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::log_operations::LogOperations;
use super::writing::{self, MAX_PLANNED_UNDER_LOCK, Undone};
use super::{Awaited, Embedded};
use crate::board::{Board, SourceNumber, Window};
use crate::store::portion::{PortionWalk, SourceStep, stops_lane};
use crate::store::{Added, LANES, Passed, Portion, Reached, Rejection, Result};

/// The largest number of items of a step, and that of the first one. A step that is done quickly is followed by one that
/// may have twice as many, and a slow one by one that may have half as many.
const MOST_TOGETHER: usize = 256;
const FIRST_TOGETHER: usize = 128;
/// The duration that a step aims for. Other calls wait this long for the board's lock.
const TARGET_DURATION: Duration = Duration::from_micros(500);
/// The largest number of bytes that the log has for what is reached.
const REACHED_LOG_BYTES: usize = 32 + 33 * LANES;

/// What became of a step.
enum Stepped {
    /// It was done.
    Done(Added),
    /// Nothing was done: the board has reached something else.
    Elsewhere(Option<Reached>),
    /// Nothing was done: these items, by their places, cannot be counted now.
    Stopped(Vec<(usize, Rejection)>),
    /// Nothing was done: whether all items can be counted now depends on the first ones.
    Doubtful,
}

impl Embedded {
    /// See [`Store::pass`](crate::store::Store::pass).
    pub(super) async fn pass_portions(&self, portions: Vec<(Arc<Board>, Portion)>) -> Vec<Result<Passed>> {
        let mut passed = Vec::with_capacity(portions.len());
        for (board, portion) in portions {
            passed.push(self.pass_portion(&board, portion).await);
        }
        // What was done before may still be on its way to the disk, and an item that is repeated is acknowledged too.
        let tickets = passed.iter().map(|_| self.journal().ticket_for_all_appended()).collect();
        let waited = self.journal().wait_all(tickets).await;
        passed.into_iter().zip(waited).map(|(passed, waited)| waited.and(passed)).collect()
    }

    /// Applies a portion to memory and appends it to the journal.
    async fn pass_portion(&self, board: &Arc<Board>, portion: Portion) -> Result<Passed> {
        let source = portion.source();
        let mut walk = PortionWalk::new(portion);
        let (mut failure, mut most) = (None, FIRST_TOGETHER);
        while let Some(step) = walk.next(most) {
            let started = Instant::now();
            let stepped = match self.step(board, source, &step) {
                Ok(Stepped::Done(added)) => {
                    walk.did(step, added);
                    let is_quick = started.elapsed() < TARGET_DURATION;
                    most = if is_quick { (2 * most).min(MOST_TOGETHER) } else { (most / 2).max(1) };
                    Ok(())
                }
                Ok(Stepped::Elsewhere(reached)) => walk.meet(reached),
                Ok(Stepped::Stopped(items)) => {
                    walk.hold(&step, items);
                    Ok(())
                }
                Ok(Stepped::Doubtful) => {
                    most = 1;
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = stepped {
                failure = Some(error);
                break;
            }
            // Other calls run between steps. The wait has a limit, because what is counted already must be acknowledged
            // or reported as unknown.
            tokio::task::yield_now().await;
            if !self.journal().has_room().await {
                return Err(self.journal().unknown());
            }
        }
        walk.finish(failure)
    }

    /// Does a step, or nothing.
    fn step(&self, board: &Board, source: SourceNumber, step: &SourceStep) -> Result<Stepped> {
        // A portion may end after any step, so each is admitted by itself.
        let _permit = self.journal().admit(writing::max_log_bytes(board, &step.batch) + REACHED_LOG_BYTES)?;
        let items = step.batch.increments.len();
        let plan = |windows: &[Window], now| self.plan((board, 0), &step.batch, Undone::all(items), (windows, now));
        let mut planned = None;
        if items > MAX_PLANNED_UNDER_LOCK {
            // Planning takes long, so it is done without the lock.
            let (windows, now) = self.with_state(board, |state, _| (state.windows(), state.now()))?;
            planned = Some(plan(&windows, now));
        }
        let (stepped, _) = self.change_state(board, |state, operations| {
            let reached = state.reached.get(&source);
            if reached != step.from.as_ref() {
                return (Stepped::Elsewhere(reached.cloned()), Awaited::No);
            }
            let mut application = planned.unwrap_or_else(|| plan(&state.windows(), state.now()));
            let (room, latest) = (self.room(), state.now().plus_millis(self.limits.max_skew));
            match application
                .stopping_items(state, room, |item, reason| stops_lane(&step.batch.increments[item], reason, latest))
            {
                None => return (Stepped::Doubtful, Awaited::No),
                Some(items) if !items.is_empty() => return (Stepped::Stopped(items), Awaited::No),
                Some(_) => {}
            }
            let mut is_done = false;
            while !is_done {
                // Those of the main track have to come first in a buffer.
                let mut own = LogOperations::of(board.edition().main().id());
                is_done = application.apply_portion(state, room, &mut own);
                operations.append_changes(&mut own);
            }
            state.reached.insert(source, step.to.clone());
            state.log_reached(source, operations);
            let frame = application.frame(state);
            (Stepped::Done(application.finish(frame)), Awaited::No)
        })?;
        Ok(stepped)
    }
}
