//! Writing a flush: its items are divided into lanes, and each lane is written in its order, script by script.
//!
//! Items whose subjects share a hash form a lane. So everything that concerns one subject takes effect in order, while
//! lanes are written in parallel. A lane handles three cases itself: the window has moved; a script must name more
//! slots; a sum was refused. The items of a refused sum are tried one by one before any items that follow them.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use redis::Value as Sent;
use tokio::time::Instant;

use super::amounts::Amounts;
use super::call::{Call, PartBatch, Portion};
use super::change::{Encoder, Needed};
use super::chunk::{Budget, Chunk};
use super::deliver::{Pauses, deadline, deliver, too_late};
use super::flush::{Basis, EntryReply, Flush, Validity};
use super::operation::Operation;
use super::progress::{CallProgress, Trouble};
use super::score;
use crate::board::{Board, Frame, Kind, Subject, Timestamp};
use crate::store::Plan;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::reply::{Reply, Status};
use crate::store::redis::scripts::{ADD, WRITE};
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ATTEMPTS, Session};

/// The largest number of lanes of a flush.
const LANES: usize = 4;

/// Gives the scripts of one instance numbers, so that each is done once.
#[derive(Debug)]
pub(super) struct Writer {
    name: Arc<str>,
    sequence: AtomicU64,
}

/// The state that all lanes of a flush share.
struct Context<'a, 'f> {
    session: &'a Session,
    part: &'a Part,
    board: &'a Board,
    writer: &'a Writer,
    flush: &'a Flush<'f>,
    budget: Budget,
    deadline: Instant,
}

/// One lane. `is_bulk` is true if it is one of several.
struct Lane<'a, 'f> {
    context: &'a Context<'a, 'f>,
    number: usize,
    is_bulk: bool,
}

/// Items that are ready to be sent.
struct PlannedItems<'f> {
    plan: Plan<'f>,
    validity: Validity,
    /// Whether entries are applied one after the other, by `change.lua`.
    in_order: bool,
    /// Whether scripts return the scores of items for which nothing is left to do.
    looks: bool,
    /// Whether items are tried one by one.
    alone: bool,
}

/// The items that a lane must still write, after a script that did not do all of its work.
struct Left {
    /// The indexes of the items, in their order if they are tried one by one.
    items: Vec<usize>,
    alone: bool,
    /// The time that a reply returned. By this time the window has moved.
    read: Option<Timestamp>,
    /// Whether no item got its outcome before.
    in_vain: bool,
}

/// The result of a script.
enum ScriptResult {
    Done {
        frame: Frame,
        entry_replies: Vec<EntryReply>,
    },
    Stale(Timestamp),
    /// At this time, the script was found to need these slots of each window too.
    Missing(Timestamp, Vec<Vec<Timestamp>>),
}

impl Writer {
    pub fn new(instance: &str) -> Self {
        Self { name: instance.into(), sequence: AtomicU64::new(0) }
    }

    /// Writes portions of calls to a part. Answers the calls that are done or have failed, and returns all calls. Must
    /// be called for one flush per part at a time.
    pub async fn write(&self, session: &Session, part: &Part, mut portions: Vec<Portion>) -> Vec<Call> {
        let oldest = portions.iter().map(|portion| portion.call.since).min().unwrap_or_else(Instant::now);
        // Small calls are written first, so that their callers do not wait for large ones. Calls that were made
        // together have the same time of arrival, and stay in their order.
        let mut largest: HashMap<Instant, usize> = HashMap::new();
        for portion in &portions {
            let size = largest.entry(portion.call.since).or_default();
            *size = portion.items.len().max(*size);
        }
        portions.sort_by_key(|portion| largest.get(&portion.call.since).copied());
        let (mut part_batches, mut progress): (Vec<(PartBatch, Range<usize>)>, Vec<CallProgress>) = Default::default();
        for portion in portions {
            let (items, call) = portion.into_taken();
            part_batches.push((call.part_batch, items));
            progress.push(call.progress);
        }
        let flush = Flush::new(part_batches.iter().map(|(part_batch, items)| (part_batch, items.clone())), progress);
        let context = Context {
            session,
            part,
            board: &part.board,
            writer: self,
            budget: Budget::new(&part.board, flush.has_scores()),
            flush: &flush,
            deadline: deadline(oldest),
        };
        context.write().await;
        let progress = flush.finish();
        let since = Instant::now();
        let call = |((part_batch, items), progress): ((PartBatch, Range<usize>), CallProgress)| Call {
            part_batch,
            taken: items.end,
            since,
            progress,
        };
        part_batches.into_iter().zip(progress).map(call).collect()
    }

    fn next(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl<'f> Context<'_, 'f> {
    async fn write(&self) {
        let all: Vec<usize> = (0..self.flush.len()).collect();
        let planned = match self.plan(&all, None, false).await {
            Ok(planned) => planned,
            Err(trouble) => return self.flush.fail(all, &trouble),
        };
        let chunks = self.divide(&planned);
        let scripts = chunks.len();
        if scripts == 1 {
            return Lane { context: self, number: 0, is_bulk: false }.write_divided(&planned, &chunks).await;
        }
        let PlannedItems { plan, validity, in_order, looks, alone } = planned;
        let lanes = self.split(plan, scripts.min(LANES)).into_iter().enumerate().map(async |(number, plan)| {
            if !(plan.entries.is_empty() && plan.rejected.is_empty() && plan.expired_retractions.is_empty()) {
                let lane = Lane { context: self, number, is_bulk: true };
                lane.write(PlannedItems { plan, validity: validity.clone(), in_order, looks, alone }).await;
            }
        });
        join_all(lanes).await;
    }

    /// Places items in slots, by the expected time or by a time that a reply returned.
    async fn plan(&self, items: &[usize], read: Option<Timestamp>, alone: bool) -> Result<PlannedItems<'f>, Trouble> {
        let Context { session, part, board, flush, .. } = self;
        let now = match self.read_simulated().await? {
            Some(now) => read.map_or(now, |read| now.max(read)),
            None => read.unwrap_or_else(|| part.estimate(session.monotonic()).0),
        };
        let basis = Basis {
            board,
            window: board.window_at(now),
            now,
            max_skew: session.limits.max_skew,
            // A reading taken after the items arrived is an instant by which they may be judged. Only on a simulated
            // clock, which stands still, they must be judged by the instant at which the script runs.
            strict: session.simulated || read.is_none(),
            alone,
        };
        let mut plan = flush.plan(&basis, items);
        if flush.has_scores() {
            group_by_subject(&mut plan);
        }
        let looks = !self.budget.reads_scores && plan.expired_retractions.iter().any(|i| flush.is_scored(*i));
        let in_order = looks || !is_sum_of_amounts(board, &plan);
        Ok(PlannedItems { plan, validity: flush.validity(&basis, items), in_order, looks, alone })
    }

    /// Reads a simulated clock. Repeats the read until the deadline.
    async fn read_simulated(&self) -> Result<Option<Timestamp>, Trouble> {
        let mut pauses = Pauses::until(self.deadline);
        loop {
            let failure = match self.session.read_simulated(self.part).await {
                Ok(now) => return Ok(now),
                Err(failure) => failure,
            };
            match failure {
                ServerFailure::Unknown(_) if !pauses.wait().await => return Err(Trouble::NotSent(too_late())),
                failure if failure.is_passing() && !pauses.wait().await => return Err(Trouble::NotSent(failure)),
                failure if failure.is_passing() => {}
                ServerFailure::Unknown(_) => {}
                failure => return Err(Trouble::Refused(failure)),
            }
        }
    }

    fn divide<'p>(&self, planned: &'p PlannedItems<'f>) -> Vec<Chunk<'p, 'f>> {
        let PlannedItems { plan, in_order, looks, .. } = planned;
        let flush = self.flush;
        self.budget.divide(plan, *in_order, |entry| flush.wants_score(entry), |i| &flush.item(i).subject, *looks)
    }

    /// Divides a plan by the hash of subjects.
    fn split(&self, plan: Plan<'f>, lanes: usize) -> Vec<Plan<'f>> {
        let hasher = rapidhash::fast::RandomState::default();
        let lane = |subject: &Subject| hasher.hash_one(subject.as_str()) as usize % lanes;
        let mut plans: Vec<Plan<'f>> = (0..lanes).map(|_| Plan::default()).collect();
        for entry in plan.entries {
            plans[lane(entry.subject)].entries.push(entry);
        }
        for (i, rejection) in plan.rejected {
            plans[lane(&self.flush.item(i).subject)].rejected.push((i, rejection));
        }
        for i in plan.expired_retractions {
            plans[lane(&self.flush.item(i).subject)].expired_retractions.push(i);
        }
        plans
    }
}

/// Puts entries of one subject next to each other, in their order. Then they are in one script if they fit, and all get
/// the score after the last of them.
fn group_by_subject(plan: &mut Plan<'_>) {
    let mut places: HashMap<&str, usize, rapidhash::fast::RandomState> = HashMap::default();
    for entry in &plan.entries {
        let next = places.len();
        places.entry(entry.subject.as_str()).or_insert(next);
    }
    if places.len() < plan.entries.len() {
        plan.entries.sort_by_key(|entry| places.get(entry.subject.as_str()).copied());
    }
}

/// Returns whether the plan only adds amounts to ranked sums, which `write.lua` does in all tracks at once.
fn is_sum_of_amounts(board: &Board, plan: &Plan<'_>) -> bool {
    board.is_ranked()
        && board.kept_slots().is_none()
        && kinds::of(board.kind()).adds_in_any_order()
        && plan.entries.iter().all(|entry| entry.sent.is_none())
}

impl<'f> Lane<'_, 'f> {
    /// Writes until every item has an outcome or has failed.
    async fn write(&self, planned: PlannedItems<'f>) {
        self.write_divided(&planned, &self.context.divide(&planned)).await;
    }

    /// Writes a plan that is already divided into scripts.
    async fn write_divided(&self, planned: &PlannedItems<'f>, chunks: &[Chunk<'_, 'f>]) {
        let Context { flush, .. } = self.context;
        let mut needed = vec![BTreeSet::new(); 1 + self.context.board.further().len()];
        let mut in_vain = 0;
        let mut next = self.write_chunks(planned, chunks, &mut needed).await;
        while let Some(mut left) = next {
            // Each script may be found to need further slots. So only scripts that give no item an outcome are counted.
            in_vain = if left.in_vain { in_vain + 1 } else { 0 };
            if in_vain >= ATTEMPTS {
                return flush.fail(left.items, &Trouble::NotSent(ServerFailure::KeptChanging));
            }
            if !left.alone {
                // Items that are tried one by one keep the order of the entries from which they come.
                left.items.sort_unstable();
            }
            let planned = match self.context.plan(&left.items, left.read, left.alone).await {
                Ok(planned) => planned,
                Err(trouble) => return flush.fail(left.items, &trouble),
            };
            next = self.write_chunks(&planned, &self.context.divide(&planned), &mut needed).await;
        }
    }

    /// Sends script after script as long as each does all of its work. Otherwise returns what is left to do.
    async fn write_chunks(
        &self,
        planned: &PlannedItems<'f>,
        chunks: &[Chunk<'_, 'f>],
        needed: &mut Needed,
    ) -> Option<Left> {
        let Context { flush, .. } = self.context;
        for (nth, chunk) in chunks.iter().enumerate() {
            let rest = |from: usize| chunks[from..].iter().flat_map(Chunk::items);
            let again =
                |now| Left { items: rest(nth).collect(), alone: planned.alone, read: Some(now), in_vain: nth == 0 };
            match self.send(planned, chunk, needed).await {
                Ok(ScriptResult::Done { frame, entry_replies }) => {
                    let mut singly = self.settle(planned, chunk, frame, &entry_replies).await;
                    if !singly.is_empty() {
                        // Items that follow a refused sum wait for the items of that sum.
                        let in_vain = singly.len() == chunk.items().count() && planned.alone;
                        singly.extend(rest(nth + 1));
                        return Some(Left { items: singly, alone: true, read: None, in_vain });
                    }
                }
                Ok(ScriptResult::Stale(now)) => return Some(again(now)),
                Ok(ScriptResult::Missing(now, slots)) => {
                    needed.iter_mut().zip(slots).for_each(|(needed, slots)| needed.extend(slots));
                    return Some(again(now));
                }
                // The next scripts may have items of other callers.
                Err(trouble @ Trouble::Refused(_)) => flush.fail(chunk.items(), &trouble),
                Err(trouble) => {
                    flush.fail(chunk.items(), &trouble);
                    flush.fail(rest(nth + 1), &Trouble::NotSent(too_late()));
                    return None;
                }
            }
        }
        None
    }

    /// Records the result of a script. Reads the scores that the script could not return.
    async fn settle(
        &self,
        planned: &PlannedItems<'f>,
        chunk: &Chunk<'_, 'f>,
        frame: Frame,
        entry_replies: &[EntryReply],
    ) -> Vec<usize> {
        let Context { session, part, flush, budget, deadline, .. } = *self.context;
        if !budget.reads_scores {
            return flush.settle(chunk, frame, entry_replies, None);
        }
        let scored = chunk.items().filter(|i| flush.is_scored(*i));
        let subjects = scored.map(|i| &flush.item(i).subject);
        let scores = match score::read(session, part, planned.validity.preamble.window.head, subjects, deadline).await {
            Ok(scores) => scores,
            Err(trouble) => {
                flush.fail(chunk.items().filter(|i| flush.is_scored(*i)), &trouble);
                Default::default()
            }
        };
        flush.settle(chunk, frame, entry_replies, Some(&scores))
    }

    /// Sends one script until it is known to be done or not done, up to the deadline.
    async fn send(
        &self,
        planned: &PlannedItems<'f>,
        chunk: &Chunk<'_, 'f>,
        needed: &Needed,
    ) -> Result<ScriptResult, Trouble> {
        let Context { session, part, board, .. } = *self.context;
        let sent = self.send_numbered(planned, chunk, needed).await?;
        let mut reply = Reply::new(sent).map_err(Trouble::Unknown)?;
        let status = session.learn(part, &mut reply).map_err(|failure| match failure {
            failure @ ServerFailure::Unknown(_) => Trouble::Unknown(failure),
            failure => Trouble::Refused(failure),
        })?;
        match status {
            Status::Done(header) => {
                let frame = header.frame(planned.validity.preamble.window);
                let entry_replies = entry_replies(&mut reply, board.kind()).map_err(Trouble::Unknown)?;
                Ok(ScriptResult::Done { frame, entry_replies })
            }
            Status::Stale { now, .. } => Ok(ScriptResult::Stale(now)),
            Status::StaleKeys { header, .. } => Ok(ScriptResult::Stale(header.now)),
            Status::Missing { header, slots } => Ok(ScriptResult::Missing(header.now, slots)),
        }
    }

    async fn send_numbered(
        &self,
        planned: &PlannedItems<'f>,
        chunk: &Chunk<'_, 'f>,
        needed: &Needed,
    ) -> Result<Sent, Trouble> {
        let Context { session, part, board, writer, flush, budget, deadline } = *self.context;
        let operation = Operation { writer: &writer.name, lane: self.number, sequence: writer.next() };
        let validity = &planned.validity;
        let channel = if self.is_bulk { Channel::BulkWrites } else { Channel::Writes };
        let gives_scores = !budget.reads_scores;
        let encoder = Encoder { session, board, part, validity, flush, operation, gives_scores, needed };
        if planned.in_order {
            return deliver(session, part, channel, encoder.script(), deadline, || encoder.encode(chunk)).await;
        }
        let amounts = Amounts { session, board, part, validity, flush, chunk, operation, alone: planned.alone };
        if let Some(slots) = amounts.only_slots() {
            let sent = deliver(session, part, channel, &ADD, deadline, || amounts.add(slots)).await?;
            if !is_unusual(&sent) {
                return Ok(sent);
            }
        }
        // This has the same sequence number. So if the call of `add.lua` arrives once more, the record of this call
        // stops it.
        deliver(session, part, channel, &WRITE, deadline, || amounts.write()).await
    }
}

/// Returns whether `add.lua` left the work to `write.lua`.
fn is_unusual(sent: &Sent) -> bool {
    matches!(sent, Sent::Array(values) if matches!(&values[..], [Sent::BulkString(word)] if word == b"unusual"))
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
