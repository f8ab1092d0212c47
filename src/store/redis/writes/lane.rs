//! Writing a flush: its items are divided into lanes, and each lane is written in its order, script by script.
//!
//! Items whose subjects share a hash form a lane. So everything that concerns one subject takes effect in order, while
//! lanes are written in parallel. A lane handles three cases itself: the window has moved; a script must name more
//! slots; a sum was refused. The items of a refused sum are tried one by one before any items that follow them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::call::Call;
use super::chunk::PlanChunk;
use super::flush::{EntryReply, Flush, ReadScores};
use super::operation::{WriteLane, WriteOperation};
use super::plan::{Planned, Unplanned};
use super::retry::too_late;
use super::score;
use crate::board::{Frame, Kind};
use crate::store::redis::reply::{Reply, ScriptStatus};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{ATTEMPTS, Session};

/// The largest number of lanes of a flush.
const LANES: usize = 4;

/// Writes the flushes of one instance, and numbers its scripts, so that each is done once.
#[derive(Debug)]
pub(super) struct Writer {
    session: Arc<Session>,
    sequence: AtomicU64,
}

impl Writer {
    pub fn new(session: Arc<Session>) -> Self {
        Self { session, sequence: AtomicU64::new(0) }
    }

    /// Writes portions of calls to one partition. Afterwards calls with items that were not taken yet go on, and all
    /// others have ended. Must be called for one flush per partition at a time.
    pub async fn write(&self, calls: &mut [Call]) {
        // Small calls are written first, so that their callers do not wait for large ones. Calls that were made
        // together have the same time of arrival, and stay in their order.
        let mut largest: HashMap<Instant, usize> = HashMap::new();
        for call in calls.iter() {
            let size = largest.entry(call.since).or_default();
            *size = call.portion.len().max(*size);
        }
        calls.sort_by_key(|call| largest.get(&call.since).copied());
        let Some(flush) = Flush::new(calls) else { return };
        let all = Unplanned { items: (0..flush.len()).collect(), singly: false, now: None };
        match Planned::plan_items(&self.session, &flush, &all).await {
            Ok(planned) => self.write_lanes(&flush, planned).await,
            Err(ServerFailure::StaleEpoch) => flush.outdate(all.items),
            Err(failure) => flush.fail(all.items, &failure),
        }
        flush.finish();
    }

    fn lane<'a, 'f>(&'a self, flush: &'a Flush<'f>, number: usize, is_bulk: bool) -> WriteLane<'a, 'f> {
        WriteLane::new(flush, &self.session, &self.sequence, number, is_bulk)
    }

    async fn write_lanes<'f>(&self, flush: &Flush<'f>, planned: Planned<'f>) {
        let chunks = planned.divide(flush);
        let scripts = chunks.len();
        if scripts == 1 {
            return self.lane(flush, 0, false).write(&planned, &chunks).await;
        }
        drop(chunks);
        let lanes = planned.split(flush, scripts.min(LANES)).into_iter().enumerate().map(async |(number, planned)| {
            if !planned.is_empty() {
                self.lane(flush, number, true).write(&planned, &planned.divide(flush)).await;
            }
        });
        join_all(lanes).await;
    }
}

impl<'a, 'f> WriteLane<'a, 'f> {
    /// Creates a lane with this number. `sequence` is the latest sequence number of all lanes with such numbers.
    pub fn new(
        flush: &'a Flush<'f>,
        session: &'a Session,
        sequence: &'a AtomicU64,
        number: usize,
        is_bulk: bool,
    ) -> Self {
        let needed = vec![BTreeSet::new(); flush.partition.board().written_tracks().len()];
        Self { flush, session, sequence, number, is_bulk, needed }
    }

    /// Writes a plan, divided into scripts, until every item has an outcome or has failed.
    async fn write(&mut self, planned: &Planned<'f>, chunks: &[PlanChunk<'_, 'f>]) {
        let mut in_vain = 0;
        let mut next = self.write_chunks(planned, chunks).await;
        while let Some((mut left, is_in_vain)) = next {
            // Each script may be found to need further slots. So only scripts that give no item an outcome are counted.
            in_vain = if is_in_vain { in_vain + 1 } else { 0 };
            if in_vain >= ATTEMPTS {
                return self.flush.fail(left.items, &ServerFailure::KeptChanging);
            }
            if !left.singly {
                // Items that are tried one by one keep the order of the entries from which they come.
                left.items.sort_unstable();
            }
            let planned = match Planned::plan_items(self.session, self.flush, &left).await {
                Ok(planned) => planned,
                Err(ServerFailure::StaleEpoch) => return self.flush.outdate(left.items),
                Err(failure) => return self.flush.fail(left.items, &failure),
            };
            next = self.write_chunks(&planned, &planned.divide(self.flush)).await;
        }
    }

    /// Sends script after script as long as each does all of its work. Otherwise returns what is left to do, and
    /// whether no item got its outcome before.
    async fn write_chunks(&mut self, planned: &Planned<'f>, chunks: &[PlanChunk<'_, 'f>]) -> Option<(Unplanned, bool)> {
        let flush = self.flush;
        for (nth, chunk) in chunks.iter().enumerate() {
            let rest = |from: usize| chunks[from..].iter().flat_map(PlanChunk::items);
            let again =
                |now| (Unplanned { items: rest(nth).collect(), singly: planned.singly, now: Some(now) }, nth == 0);
            let operation = WriteOperation { lane: self, planned, chunk, sequence: self.next_sequence(), fence: None };
            match operation.send().await {
                Ok((ScriptStatus::Done(header), mut reply)) => {
                    let frame = header.frame(planned.validity.windows[0]);
                    let mut singly = match entry_replies(&mut reply, flush.partition.board().kind()) {
                        Ok(replies) => {
                            flush.settle(chunk, frame, &replies, self.read_scores(chunk, frame).await.as_ref())
                        }
                        Err(failure) => {
                            flush.fail(chunk.items(), &failure);
                            continue;
                        }
                    };
                    if !singly.is_empty() {
                        // Items that follow a refused sum wait for the items of that sum.
                        let is_in_vain = singly.len() == chunk.items().count() && planned.singly;
                        singly.extend(rest(nth + 1));
                        return Some((Unplanned { items: singly, singly: true, now: None }, is_in_vain));
                    }
                }
                Ok((ScriptStatus::Stale { now, .. }, _)) => return Some(again(now)),
                Ok((ScriptStatus::StaleKeys { header, .. }, _)) => return Some(again(header.now)),
                Ok((ScriptStatus::Missing { header, slots }, _)) => {
                    self.needed.iter_mut().zip(slots).for_each(|(needed, slots)| needed.extend(slots));
                    return Some(again(header.now));
                }
                Err(ServerFailure::StaleEpoch) => {
                    flush.outdate(rest(nth));
                    return None;
                }
                Err(failure) => {
                    flush.fail(chunk.items(), &failure);
                    if failure.may_pass() {
                        flush.fail(rest(nth + 1), &too_late());
                        return None;
                    }
                    // The next scripts may have items of other callers.
                }
            }
        }
        None
    }

    /// Reads the scores for a chunk that was written, if scripts do not return them.
    async fn read_scores(&self, chunk: &PlanChunk<'_, 'f>, frame: Frame) -> Option<ReadScores<'f>> {
        let flush = self.flush;
        if !flush.budget.reads_scores {
            return None;
        }
        let scored: Vec<usize> = chunk.items().filter(|i| flush.is_scored(*i)).collect();
        let subjects = scored.iter().map(|i| &flush.item(*i).subject);
        let scores = score::read(self.session, flush, frame.window.head, subjects).await;
        Some(scores.unwrap_or_else(|failure| {
            flush.fail(scored.iter().copied(), &failure);
            ReadScores::default()
        }))
    }
}

/// Reads what a script says about single entries: nothing if each was simply counted.
pub(super) fn entry_replies(reply: &mut Reply, kind: Kind) -> Result<Vec<EntryReply>, ServerFailure> {
    let mut replies = Vec::new();
    while !reply.is_empty() {
        let entry = usize::try_from(reply.count()?).unwrap_or(usize::MAX);
        let outcome = reply.text()?;
        let score = reply.score(kind)?.or(kind.absent());
        replies.push(EntryReply { entry, outcome, score });
    }
    Ok(replies)
}
