//! Writing a flush: its items by lanes, each in its order, script by script.
//!
//! Items whose subjects share a hash are a lane, so that whatever concerns one subject takes effect in order while lanes
//! go in parallel. A lane handles by itself that the window moved, that a script must name more slots, and that a sum
//! was refused, whose items are then tried singly before anything that comes after them.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use redis::Value as Sent;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::amounts::Amounts;
use super::change::Encoder;
use super::chunk::{Budget, Chunk};
use super::deliver::{Pauses, deadline, deliver, too_late};
use super::flush::{Basis, Flush, Hold, Unusual};
use super::progress::{Progress, Trouble};
use super::queue::{Call, Request};
use super::score;
use crate::board::{Board, Frame, Kind, Subject, Timestamp};
use crate::store::Plan;
use crate::store::redis::part::Part;
use crate::store::redis::reply::{Reply, Status};
use crate::store::redis::scripts::{ADD, WRITE};
use crate::store::redis::servers::Failure;
use crate::store::redis::session::{ATTEMPTS, Session};

/// The most lanes of a flush.
const LANES: usize = 4;
/// The most scripts of flushes larger than one script that are under way at a time: what a small flush of another part
/// may have to wait for.
const BULK: usize = 2;

/// Some items of a call.
#[derive(Debug)]
pub(super) struct Portion {
    pub call: Call,
    pub items: Range<usize>,
}

/// Numbers the scripts of one instance so that each is done once, and lets few large ones go at a time.
#[derive(Debug)]
pub(super) struct Writer {
    name: Arc<str>,
    sequence: AtomicU64,
    bulk: Semaphore,
}

/// What tells a repeated script from the next one of its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'a> {
    writer: &'a str,
    lane: usize,
    pub sequence: u64,
}

/// What all lanes of a flush share.
struct Context<'a, 'f> {
    session: &'a Session,
    part: &'a Part,
    board: &'a Board,
    writer: &'a Writer,
    flush: &'a Flush<'f>,
    budget: Budget,
    deadline: Instant,
}

/// One lane, and whether it is one of several.
struct Lane<'a, 'f> {
    context: &'a Context<'a, 'f>,
    number: usize,
    is_bulk: bool,
}

/// Items as they are to be sent.
struct Planned<'f> {
    plan: Plan<'f>,
    hold: Hold,
    /// Whether entries are applied one after the other, by `change.lua`.
    in_order: bool,
    /// Whether scripts are asked for the scores of items with nothing left to do.
    looks: bool,
    /// Whether items are tried singly.
    alone: bool,
}

/// What a lane has still to do after a script that did not do all it should.
struct Left {
    /// In their order, if they are tried singly.
    items: Vec<usize>,
    alone: bool,
    /// The time by which the window has moved.
    read: Option<Timestamp>,
    /// Whether nothing was settled before.
    in_vain: bool,
}

/// How a script ended.
enum Landed {
    Done {
        frame: Frame,
        unusual: Vec<Unusual>,
    },
    Stale(Timestamp),
    /// At this time, it turned out to need these slots as well.
    Missing(Timestamp, Vec<Timestamp>),
}

impl Portion {
    /// The call, its portion taken.
    pub fn into_taken(self) -> (Range<usize>, Call) {
        let taken = self.items.end;
        (self.items, Call { taken, ..self.call })
    }
}

impl Operation<'_> {
    /// What a lane is called in the meta key.
    pub fn lane(&self) -> String {
        format!("{}:{}", self.writer, self.lane)
    }
}

impl Writer {
    pub fn new(instance: &str) -> Self {
        Self { name: instance.into(), sequence: AtomicU64::new(0), bulk: Semaphore::new(BULK) }
    }

    /// Writes portions of calls to a part and answers the calls that are done or in trouble. One at a time per part.
    pub async fn write(&self, session: &Session, part: &Part, mut portions: Vec<Portion>) -> Vec<Call> {
        let oldest = portions.iter().map(|portion| portion.call.since).min().unwrap_or_else(Instant::now);
        // What is small is done first: its caller waits for no more than it asked for. What was asked for together arrived
        // at the same instant, and stays in its order.
        let mut largest: HashMap<Instant, usize> = HashMap::new();
        for portion in &portions {
            let size = largest.entry(portion.call.since).or_default();
            *size = portion.items.len().max(*size);
        }
        portions.sort_by_key(|portion| largest.get(&portion.call.since).copied());
        let (mut requests, mut progress): (Vec<(Request, Range<usize>)>, Vec<Progress>) = Default::default();
        for portion in portions {
            let (items, call) = portion.into_taken();
            requests.push((call.request, items));
            progress.push(call.progress);
        }
        let flush = Flush::new(requests.iter().map(|(request, items)| (request, items.clone())), progress);
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
        let call = |((request, items), progress): ((Request, Range<usize>), Progress)| Call {
            request,
            taken: items.end,
            since,
            progress,
        };
        requests.into_iter().zip(progress).map(call).collect()
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
        let Planned { plan, hold, in_order, looks, alone } = planned;
        let lanes = self.split(plan, scripts.min(LANES)).into_iter().enumerate().map(async |(number, plan)| {
            if !(plan.entries.is_empty() && plan.rejected.is_empty() && plan.moot.is_empty()) {
                let lane = Lane { context: self, number, is_bulk: true };
                lane.write(Planned { plan, hold, in_order, looks, alone }).await;
            }
        });
        join_all(lanes).await;
    }

    /// Places items in slots, by the clock or by a reading of it.
    async fn plan(&self, items: &[usize], read: Option<Timestamp>, alone: bool) -> Result<Planned<'f>, Trouble> {
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
            // A reading taken after the items arrived is an instant by which they may rightly be judged. Only
            // a simulated clock, which stands still, is held to the instant at which the script runs.
            strict: session.simulated || read.is_none(),
            alone,
        };
        let mut plan = flush.plan(&basis, items);
        if flush.has_scores() {
            group_by_subject(&mut plan);
        }
        let looks = !self.budget.reads_scores && plan.moot.iter().any(|i| flush.is_scored(*i));
        let in_order = looks || !is_sum_of_amounts(board, &plan);
        Ok(Planned { plan, hold: flush.hold(&basis, items), in_order, looks, alone })
    }

    /// Reads a simulated clock with as much patience as is left.
    async fn read_simulated(&self) -> Result<Option<Timestamp>, Trouble> {
        let mut pauses = Pauses::until(self.deadline);
        loop {
            let failure = match self.session.read_simulated(self.part).await {
                Ok(now) => return Ok(now),
                Err(failure) => failure,
            };
            match failure {
                Failure::Unknown(_) if !pauses.wait().await => return Err(Trouble::NotSent(too_late())),
                failure if failure.is_passing() && !pauses.wait().await => return Err(Trouble::NotSent(failure)),
                failure if failure.is_passing() => {}
                Failure::Unknown(_) => {}
                failure => return Err(Trouble::Refused(failure)),
            }
        }
    }

    fn divide<'p>(&self, planned: &'p Planned<'f>) -> Vec<Chunk<'p, 'f>> {
        let Planned { plan, in_order, looks, .. } = planned;
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
        for i in plan.moot {
            plans[lane(&self.flush.item(i).subject)].moot.push(i);
        }
        plans
    }
}

/// Puts entries of one subject next to each other, in their order: then they are in one script if they fit, and all are
/// told the score after the last.
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

/// Whether `write.lua` can do it, which adds amounts in whatever order.
fn is_sum_of_amounts(board: &Board, plan: &Plan<'_>) -> bool {
    board.is_ranked() && board.kind() == Kind::Sum && plan.entries.iter().all(|entry| entry.sent.is_none())
}

impl<'f> Lane<'_, 'f> {
    /// Writes until every item is settled or in trouble.
    async fn write(&self, planned: Planned<'f>) {
        self.write_divided(&planned, &self.context.divide(&planned)).await;
    }

    /// The same of a plan that is divided into scripts.
    async fn write_divided(&self, planned: &Planned<'f>, chunks: &[Chunk<'_, 'f>]) {
        let Context { flush, .. } = self.context;
        let mut needed = BTreeSet::new();
        let mut in_vain = 0;
        let mut next = self.write_chunks(planned, chunks, &mut needed).await;
        while let Some(mut left) = next {
            // Each script may turn out to need slots of its own, so only those that settle nothing are counted.
            in_vain = if left.in_vain { in_vain + 1 } else { 0 };
            if in_vain >= ATTEMPTS {
                return flush.fail(left.items, &Trouble::NotSent(Failure::Restless));
            }
            if !left.alone {
                // Items tried singly keep the order of the entries they come from.
                left.items.sort_unstable();
            }
            let planned = match self.context.plan(&left.items, left.read, left.alone).await {
                Ok(planned) => planned,
                Err(trouble) => return flush.fail(left.items, &trouble),
            };
            next = self.write_chunks(&planned, &self.context.divide(&planned), &mut needed).await;
        }
    }

    /// Sends script after script as long as each does all it should. Answers what is left to do otherwise.
    async fn write_chunks(
        &self,
        planned: &Planned<'f>,
        chunks: &[Chunk<'_, 'f>],
        needed: &mut BTreeSet<Timestamp>,
    ) -> Option<Left> {
        let Context { flush, .. } = self.context;
        for (nth, chunk) in chunks.iter().enumerate() {
            let rest = |from: usize| chunks[from..].iter().flat_map(Chunk::items);
            let again =
                |now| Left { items: rest(nth).collect(), alone: planned.alone, read: Some(now), in_vain: nth == 0 };
            match self.send(planned, chunk, needed).await {
                Ok(Landed::Done { frame, unusual }) => {
                    let mut singly = self.settle(planned, chunk, frame, &unusual).await;
                    if !singly.is_empty() {
                        // What comes after a refused sum waits for the sum's items.
                        let in_vain = singly.len() == chunk.items().count() && planned.alone;
                        singly.extend(rest(nth + 1));
                        return Some(Left { items: singly, alone: true, read: None, in_vain });
                    }
                }
                Ok(Landed::Stale(now)) => return Some(again(now)),
                Ok(Landed::Missing(now, slots)) => {
                    needed.extend(slots);
                    return Some(again(now));
                }
                // The next ones may be of other callers.
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

    /// Notes what a script did, with the scores that it could not tell.
    async fn settle(
        &self,
        planned: &Planned<'f>,
        chunk: &Chunk<'_, 'f>,
        frame: Frame,
        unusual: &[Unusual],
    ) -> Vec<usize> {
        let Context { session, part, flush, budget, deadline, .. } = *self.context;
        if !budget.reads_scores {
            return flush.settle(chunk, frame, unusual, None);
        }
        let scored = chunk.items().filter(|i| flush.is_scored(*i));
        let subjects = scored.map(|i| &flush.item(i).subject);
        let scores = match score::read(session, part, planned.hold.preamble.window.head, subjects, deadline).await {
            Ok(scores) => scores,
            Err(trouble) => {
                flush.fail(chunk.items().filter(|i| flush.is_scored(*i)), &trouble);
                Default::default()
            }
        };
        flush.settle(chunk, frame, unusual, Some(&scores))
    }

    /// Sends one script until it is known to be done or not done, as far as patience goes.
    async fn send(
        &self,
        planned: &Planned<'f>,
        chunk: &Chunk<'_, 'f>,
        needed: &BTreeSet<Timestamp>,
    ) -> Result<Landed, Trouble> {
        let Context { session, part, board, writer, .. } = *self.context;
        // Held until the answer is there. The semaphore is never closed.
        let _permit = if self.is_bulk { writer.bulk.acquire().await.ok() } else { None };
        let sent = self.send_numbered(planned, chunk, needed).await?;
        let mut reply = Reply::new(sent).map_err(Trouble::Unknown)?;
        let status = session.learn(part, &mut reply).map_err(|failure| match failure {
            failure @ Failure::Unknown(_) => Trouble::Unknown(failure),
            failure => Trouble::Refused(failure),
        })?;
        match status {
            Status::Done(header) => {
                let frame = header.frame(planned.hold.preamble.window);
                let unusual = unusual(&mut reply, board.kind()).map_err(Trouble::Unknown)?;
                Ok(Landed::Done { frame, unusual })
            }
            Status::Stale { now, .. } => Ok(Landed::Stale(now)),
            Status::StaleKeys { header, .. } => Ok(Landed::Stale(header.now)),
            Status::Missing { header, slots } => Ok(Landed::Missing(header.now, slots)),
        }
    }

    async fn send_numbered(
        &self,
        planned: &Planned<'f>,
        chunk: &Chunk<'_, 'f>,
        needed: &BTreeSet<Timestamp>,
    ) -> Result<Sent, Trouble> {
        let Context { session, part, board, writer, flush, budget, deadline } = *self.context;
        let operation = Operation { writer: &writer.name, lane: self.number, sequence: writer.next() };
        let hold = &planned.hold;
        if planned.in_order {
            let gives_scores = !budget.reads_scores;
            let encoder = Encoder { session, board, part, hold, flush, operation, gives_scores, needed };
            return deliver(session, part, encoder.script(), deadline, || encoder.encode(chunk)).await;
        }
        let amounts = Amounts { session, board, part, hold, flush, chunk, operation, alone: planned.alone };
        if let Some(slot) = amounts.only_slot() {
            let sent = deliver(session, part, &ADD, deadline, || amounts.add(slot)).await?;
            if !is_unusual(&sent) {
                return Ok(sent);
            }
        }
        // Under the same number: should the simple script arrive once more, this one's record stops it.
        deliver(session, part, &WRITE, deadline, || amounts.write()).await
    }
}

/// Whether `add.lua` left it to `write.lua`.
fn is_unusual(sent: &Sent) -> bool {
    matches!(sent, Sent::Array(values) if matches!(&values[..], [Sent::BulkString(word)] if word == b"unusual"))
}

fn unusual(reply: &mut Reply, kind: Kind) -> Result<Vec<Unusual>, Failure> {
    let mut unusual = Vec::new();
    while !reply.is_empty() {
        let entry = usize::try_from(reply.count()?).unwrap_or(usize::MAX);
        let outcome = reply.text()?;
        let score = reply.score(kind)?.or(kind.absent());
        unusual.push(Unusual { entry, outcome, score });
    }
    Ok(unusual)
}
