//! Writing a flush: its items are divided into lanes, and each lane is written in its order, script by script.
//!
//! Items whose subjects share a hash form a lane. So everything that concerns one subject takes effect in order, while
//! lanes are written in parallel. A lane handles three cases itself: the window has moved; a script must name more
//! slots; a sum was refused. The items of a refused sum are tried one by one before any items that follow them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use tokio::time::Instant;

use super::call::Call;
use super::chunk::Chunk;
use super::flush::{EntryReply, Flush};
use super::operation::WriteOperation;
use super::plan::{Planned, Unplanned};
use super::retry::too_late;
use super::score;
use crate::board::{Frame, Kind, Timestamp};
use crate::store::redis::part::Part;
use crate::store::redis::reply::{Reply, Status};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{ATTEMPTS, Session};

/// The largest number of lanes of a flush.
const LANES: usize = 4;

/// Gives the scripts of one instance numbers, so that each is done once.
#[derive(Debug)]
pub(super) struct Writer {
    pub session: Arc<Session>,
    sequence: AtomicU64,
}

/// One lane of a flush.
pub(super) struct WriteLane<'a, 'f> {
    pub flush: &'a Flush<'f>,
    pub writer: &'a Writer,
    pub number: usize,
    /// Whether it is one of several.
    pub is_bulk: bool,
    /// The slots that earlier scripts were found to need, for each track of the board.
    pub needed: Vec<BTreeSet<Timestamp>>,
}

impl Writer {
    pub fn new(session: Arc<Session>) -> Self {
        Self { session, sequence: AtomicU64::new(0) }
    }

    pub fn next(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Writes portions of calls to a part. Calls that are done or have failed end. Must be called for one flush per part
    /// at a time.
    pub async fn write(&self, part: &Part, calls: &mut [Call]) {
        // Small calls are written first, so that their callers do not wait for large ones. Calls that were made
        // together have the same time of arrival, and stay in their order.
        let mut largest: HashMap<Instant, usize> = HashMap::new();
        for call in calls.iter() {
            let size = largest.entry(call.since).or_default();
            *size = call.portion.len().max(*size);
        }
        calls.sort_by_key(|call| largest.get(&call.since).copied());
        let flush = Flush::new(part, calls);
        self.write_lanes(&flush).await;
        flush.finish();
        let now = Instant::now();
        calls.iter_mut().for_each(|call| call.since = now);
    }

    async fn write_lanes(&self, flush: &Flush<'_>) {
        let all = Unplanned { items: (0..flush.len()).collect(), alone: false, read: None };
        let planned = match Planned::new(&self.session, flush, &all).await {
            Ok(planned) => planned,
            Err(failure) => return flush.fail(all.items, &failure),
        };
        let chunks = planned.divide(flush);
        let scripts = chunks.len();
        if scripts == 1 {
            return WriteLane::new(flush, self, 0, false).write_divided(&planned, &chunks).await;
        }
        drop(chunks);
        let lanes = planned.split(flush, scripts.min(LANES)).into_iter().enumerate().map(async |(number, planned)| {
            if !planned.is_empty() {
                WriteLane::new(flush, self, number, true).write(planned).await;
            }
        });
        join_all(lanes).await;
    }
}

impl<'a, 'f> WriteLane<'a, 'f> {
    fn new(flush: &'a Flush<'f>, writer: &'a Writer, number: usize, is_bulk: bool) -> Self {
        let needed = vec![BTreeSet::new(); flush.part.track.board().tracks().len()];
        Self { flush, writer, number, is_bulk, needed }
    }

    /// Writes until every item has an outcome or has failed.
    async fn write(&mut self, planned: Planned<'f>) {
        self.write_divided(&planned, &planned.divide(self.flush)).await;
    }

    /// Writes a plan that is already divided into scripts.
    async fn write_divided(&mut self, planned: &Planned<'f>, chunks: &[Chunk<'_, 'f>]) {
        let mut in_vain = 0;
        let mut next = self.write_chunks(planned, chunks).await;
        while let Some((mut left, is_in_vain)) = next {
            // Each script may be found to need further slots. So only scripts that give no item an outcome are counted.
            in_vain = if is_in_vain { in_vain + 1 } else { 0 };
            if in_vain >= ATTEMPTS {
                return self.flush.fail(left.items, &ServerFailure::KeptChanging);
            }
            if !left.alone {
                // Items that are tried one by one keep the order of the entries from which they come.
                left.items.sort_unstable();
            }
            let planned = match Planned::new(&self.writer.session, self.flush, &left).await {
                Ok(planned) => planned,
                Err(failure) => return self.flush.fail(left.items, &failure),
            };
            next = self.write_chunks(&planned, &planned.divide(self.flush)).await;
        }
    }

    /// Sends script after script as long as each does all of its work. Otherwise returns what is left to do, and whether
    /// no item got its outcome before.
    async fn write_chunks(&mut self, planned: &Planned<'f>, chunks: &[Chunk<'_, 'f>]) -> Option<(Unplanned, bool)> {
        let flush = self.flush;
        for (nth, chunk) in chunks.iter().enumerate() {
            let rest = |from: usize| chunks[from..].iter().flat_map(Chunk::items);
            let again =
                |now| (Unplanned { items: rest(nth).collect(), alone: planned.alone, read: Some(now) }, nth == 0);
            match self.send(planned, chunk).await {
                Ok((Status::Done(header), mut reply)) => {
                    let frame = header.frame(planned.validity.windows[0]);
                    let mut singly = match entry_replies(&mut reply, flush.part.track.kind()) {
                        Ok(entry_replies) => self.settle(chunk, frame, &entry_replies).await,
                        Err(failure) => {
                            flush.fail(chunk.items(), &failure);
                            continue;
                        }
                    };
                    if !singly.is_empty() {
                        // Items that follow a refused sum wait for the items of that sum.
                        let is_in_vain = singly.len() == chunk.items().count() && planned.alone;
                        singly.extend(rest(nth + 1));
                        return Some((Unplanned { items: singly, alone: true, read: None }, is_in_vain));
                    }
                }
                Ok((Status::Stale { now, .. }, _)) => return Some(again(now)),
                Ok((Status::StaleKeys { header, .. }, _)) => return Some(again(header.now)),
                Ok((Status::Missing { header, slots }, _)) => {
                    self.needed.iter_mut().zip(slots).for_each(|(needed, slots)| needed.extend(slots));
                    return Some(again(header.now));
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

    /// Sends the script for a chunk, and reads the status of its reply.
    async fn send(&self, planned: &Planned<'f>, chunk: &Chunk<'_, 'f>) -> Result<(Status, Reply), ServerFailure> {
        let operation = WriteOperation {
            flush: self.flush,
            session: &self.writer.session,
            lane: self.number,
            is_bulk: self.is_bulk,
            needed: &self.needed,
            planned,
            chunk,
            sequence: self.writer.next(),
        };
        let mut reply = Reply::new(operation.send().await?)?;
        Ok((self.writer.session.learn(self.flush.part, &mut reply)?, reply))
    }

    /// Records the result of a script. Reads the scores that the script could not return.
    async fn settle(&self, chunk: &Chunk<'_, 'f>, frame: Frame, entry_replies: &[EntryReply]) -> Vec<usize> {
        let flush = self.flush;
        if !flush.budget.reads_scores {
            return flush.settle(chunk, frame, entry_replies, None);
        }
        let scored: Vec<usize> = chunk.items().filter(|i| flush.is_scored(*i)).collect();
        let subjects = scored.iter().map(|i| &flush.item(*i).subject);
        let scores = match score::read(&self.writer.session, flush, frame.window.head, subjects).await {
            Ok(scores) => scores,
            Err(failure) => {
                flush.fail(scored.iter().copied(), &failure);
                Default::default()
            }
        };
        flush.settle(chunk, frame, entry_replies, Some(&scores))
    }
}

fn entry_replies(reply: &mut Reply, kind: Kind) -> Result<Vec<EntryReply>, ServerFailure> {
    let mut entry_replies = Vec::new();
    while !reply.is_empty() {
        let entry = usize::try_from(reply.count()?).unwrap_or(usize::MAX);
        let outcome = reply.text()?;
        let score = reply.score(kind)?.or(kind.absent());
        entry_replies.push(EntryReply { entry, outcome, score });
    }
    Ok(entry_replies)
}
