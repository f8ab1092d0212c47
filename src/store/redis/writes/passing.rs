//! Steps of sources. Each is one script, which counts and moves what is reached; or nothing, if it cannot do all of it. So
//! unlike other writes a step is not combined with those of other callers, and its items are never in two scripts.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, oneshot};

use super::call::Call;
use super::chunk::PlanChunk;
use super::flush::Flush;
use super::lane::entry_replies;
use super::operation::{Fence, WriteLane, WriteOperation};
use super::plan::{Planned, Unplanned};
use crate::board::SourceNumber;
use crate::store::portion::{PortionWalk, SourceStep, stops_lane};
use crate::store::receive::receive;
use crate::store::redis::partition::Partition;
use crate::store::redis::reply::ScriptStatus;
use crate::store::redis::servers::{NotPassed, ServerFailure};
use crate::store::redis::session::{ATTEMPTS, Session};
use crate::store::{Added, Passed, Portion, Reached, Rejection, Result, StoreError};

/// The largest number of items of a step, whatever few entries these are.
const MOST_TOGETHER: usize = 2_000;
/// The number of the first lane of steps. Those before it are of combined writes.
const FIRST_LANE: usize = 16;
/// The largest number of portions that are passed at the same time. The others wait.
const MOST_AT_ONCE: usize = 64;

/// The way of portions to [`run`], which is on the thread of all writes.
#[derive(Debug)]
pub(in crate::store::redis) struct Passing(mpsc::UnboundedSender<WaitingPortion>);

/// A portion that is to be passed to a partition.
#[derive(Debug)]
pub(in crate::store::redis) struct WaitingPortion {
    partition: Arc<Partition>,
    portion: Portion,
    answer: oneshot::Sender<Result<Passed>>,
}

/// Passes portions, each in a lane of its own.
struct Passer {
    session: Arc<Session>,
    /// The latest sequence number of a step.
    sequence: AtomicU64,
}

/// What became of a step.
enum Stepped {
    /// It was done, and had this number of entries out of so many that a script may have.
    Done(Added, (usize, usize)),
    /// Nothing was done: the partition has reached something else.
    Elsewhere(Option<Reached>),
    /// Nothing was done: these items, by their places, cannot be counted now.
    Stopped(Vec<(usize, Rejection)>),
    /// Nothing was done: it has this number of entries, of which a script may have so many.
    TooLarge(usize, usize),
}

impl Passing {
    /// Returns the way, and its end for [`run`].
    pub fn new() -> (Self, mpsc::UnboundedReceiver<WaitingPortion>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Passes a portion, whose items all belong to the partition.
    pub async fn pass(&self, partition: Arc<Partition>, portion: Portion) -> Result<Passed> {
        let (answer, answered) = oneshot::channel();
        // If the thread has ended, there is no answer.
        let _ = self.0.send(WaitingPortion { partition, portion, answer });
        receive(answered).await.unwrap_or_else(|stopped| Err(StoreError::Backend { source: Box::new(stopped) }))
    }
}

/// Passes portions until the store is dropped. Each is passed to its end, also if nobody waits for the answer any more.
pub(in crate::store::redis) async fn run(session: Arc<Session>, mut portions: mpsc::UnboundedReceiver<WaitingPortion>) {
    let passer = Passer { session, sequence: AtomicU64::new(0) };
    // The lanes that are in use, by partition. A lane leaves a record in its partition for some minutes, so there should be
    // few.
    let mut lanes: HashMap<String, BTreeSet<usize>> = HashMap::new();
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            waiting = portions.recv(), if running.len() < MOST_AT_ONCE => {
                let Some(WaitingPortion { partition, portion, answer }) = waiting else { break };
                let key = partition.main().keys.reached();
                let used = lanes.entry(key.clone()).or_default();
                let Some(lane) = (FIRST_LANE..).find(|lane| !used.contains(lane)) else { break };
                used.insert(lane);
                let passer = &passer;
                // Boxed, because a future is moved several times before it runs.
                running.push(Box::pin(async move {
                    let _ = answer.send(passer.pass(&partition, lane, portion).await);
                    (key, lane)
                }));
            }
            Some((key, lane)) = running.next() => {
                if let Some(used) = lanes.get_mut(&key) {
                    used.remove(&lane);
                    if used.is_empty() {
                        lanes.remove(&key);
                    }
                }
            }
        }
    }
    while running.next().await.is_some() {}
}

impl Passer {
    async fn pass(&self, partition: &Arc<Partition>, lane: usize, portion: Portion) -> Result<Passed> {
        let source = portion.source();
        let mut walk = PortionWalk::new(portion);
        let (mut failure, mut most) = (None, MOST_TOGETHER);
        let mut in_vain = 0;
        while let Some(mut step) = walk.next(most) {
            let items = step.batch.increments.len();
            in_vain += 1;
            let stepped = match self.step(partition, lane, source, &mut step).await {
                Ok(Stepped::Done(added, (entries, limit))) => {
                    walk.did(step, added);
                    if 2 * entries < limit {
                        most = (2 * items.max(1)).clamp(most, MOST_TOGETHER);
                    }
                    in_vain = 0;
                    Ok(())
                }
                Ok(Stepped::TooLarge(entries, limit)) => {
                    most = (items * limit / entries).clamp(1, items - 1);
                    Ok(())
                }
                Ok(Stepped::Stopped(items)) => {
                    walk.hold(&step, items);
                    Ok(())
                }
                Ok(Stepped::Elsewhere(reached)) => walk.meet(reached),
                Err(failure) => Err(self.session.servers.error(failure)),
            };
            let stepped = stepped.and_then(|()| match in_vain {
                ..ATTEMPTS => Ok(()),
                _ => Err(self.session.servers.error(ServerFailure::KeptChanging)),
            });
            if let Err(error) = stepped {
                failure = Some(error);
                break;
            }
        }
        walk.finish(failure)
    }

    /// Does a step, whose items it takes, or nothing.
    async fn step(
        &self,
        partition: &Arc<Partition>,
        lane: usize,
        source: SourceNumber,
        step: &mut SourceStep,
    ) -> Result<Stepped, ServerFailure> {
        let session = &self.session;
        let at = session.servers.at();
        let (call, mut answer) = Call::alone(partition, std::mem::take(&mut step.batch.increments), at);
        let calls = [call];
        let Some(flush) = Flush::new(&calls) else { return Err(ServerFailure::KeptChanging) };
        let mut lane = WriteLane::new(&flush, session, &self.sequence, lane, true);
        let from = step.from.as_ref().map_or_else(String::new, Reached::text);
        let fence =
            Fence { key: partition.main().keys.reached(), argument: format!("{source} {from} {}", step.to.text()) };
        // An edition that writes at once cannot take back what it has written when the other one refuses a sum.
        let singly = partition.board().editions().iter().any(|edition| edition.kind().remembers_values());
        let mut left = Unplanned { items: (0..flush.len()).collect(), singly, now: None };
        for _ in 0..ATTEMPTS {
            let planned = Planned::plan_items(session, &flush, &left).await?;
            let latest = planned.validity.now.plus_millis(session.limits.max_skew);
            let (entries, limit) = (planned.plan.entries.len(), flush.budget.entries(planned.by_change));
            let stops = |(item, reason): &&(usize, Rejection)| stops_lane(flush.item(*item), *reason, latest);
            let stopping: Vec<_> = planned.plan.rejected.iter().filter(stops).copied().collect();
            if !stopping.is_empty() {
                return Ok(Stepped::Stopped(stopping));
            }
            if entries > limit && flush.len() > 1 {
                return Ok(Stepped::TooLarge(entries, limit));
            }
            let chunk = PlanChunk::whole(&planned.plan);
            let sequence = lane.next_sequence();
            let operation =
                WriteOperation { lane: &lane, planned: &planned, chunk: &chunk, sequence, fence: Some(&fence) };
            let moved_to = match operation.send().await {
                Ok((ScriptStatus::Done(header), mut reply)) => {
                    let frame = header.frame(planned.validity.windows[0]);
                    let replies = entry_replies(&mut reply, partition.board().kind())?;
                    flush.settle(&chunk, frame, &replies, None);
                    flush.finish();
                    return match answer.try_recv().map(|answer| answer.added) {
                        Ok(Ok(added)) => Ok(Stepped::Done(added, (entries, limit))),
                        Ok(Err(StoreError::Corrupt { detail })) => Err(ServerFailure::Corrupt(detail)),
                        _ => Err(ServerFailure::Unknown("a step has no outcome".to_owned())),
                    };
                }
                Ok((ScriptStatus::Stale { now, .. }, _)) => now,
                Ok((ScriptStatus::StaleKeys { header, .. }, _)) => header.now,
                Ok((ScriptStatus::Missing { header, slots }, _)) => {
                    lane.needed.iter_mut().zip(slots).for_each(|(needed, slots)| needed.extend(slots));
                    header.now
                }
                Err(ServerFailure::NotPassed(NotPassed::Singly)) if !left.singly => {
                    left.singly = true;
                    continue;
                }
                Err(ServerFailure::NotPassed(NotPassed::Importing(waiting))) => {
                    let waiting = waiting.iter().filter_map(|entry| planned.plan.entries.get(*entry));
                    let items = waiting.flat_map(|entry| &entry.items);
                    return Ok(Stepped::Stopped(items.map(|item| (*item, Rejection::ImportOpen)).collect()));
                }
                Err(ServerFailure::NotPassed(NotPassed::TooLarge)) if flush.len() > 1 => {
                    return Ok(Stepped::TooLarge(2, 1));
                }
                Err(ServerFailure::NotPassed(NotPassed::Elsewhere(reached))) => {
                    return Ok(Stepped::Elsewhere(reached));
                }
                Err(failure) => return Err(failure),
            };
            left.now = Some(moved_to);
        }
        Err(ServerFailure::KeptChanging)
    }
}
