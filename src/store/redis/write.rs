//! Sending one board's part of a flush as calls of `write.lua` or `change.lua`, and answering each caller.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, Value as Sent};
use tokio::time::Instant;

use super::change::{self, Encoder};
use super::combine::Waiting;
use super::connection::Failure;
use super::flush::{Basis, Flush, Hold, LANE, Lane, Unusual, lanes};
use super::reply::{Reply, Status};
use super::scripts::{Script, WRITE};
use super::session::{ATTEMPTS, Session};
use super::view::View;
use crate::board::{Board, EXACT_MAX, Frame, Kind, Timestamp};
use crate::store::{Added, Entry, Outcome, Plan, StoreError};

/// How long a write whose answer did not come is repeated. Repeating is safe for five minutes (`write.lua`).
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two sendings of the same script: doubles from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Sends the writes of one combiner, numbered so that each is done once.
#[derive(Debug)]
pub(super) struct Writer {
    name: String,
    sequence: AtomicU64,
}

/// Lanes sent together.
struct Round<'a, 'f> {
    session: &'a Session,
    board: &'a Board,
    view: &'a View,
    hold: Hold,
    /// Tells a repeated script from the next one.
    sequence: u64,
    operator: &'a str,
    /// Whether items are tried singly.
    alone: bool,
    flush: &'a Flush<'f>,
    /// Whether entries are applied one after the other, by `change.lua`.
    in_order: bool,
    /// Slots that an earlier round turned out to need.
    needed: &'a BTreeSet<Timestamp>,
}

/// How a lane ended.
enum Landed {
    Done {
        frame: Frame,
        unusual: Vec<Unusual>,
    },
    Stale(Timestamp),
    /// At this time, it turned out to need these slots as well.
    Missing(Timestamp, Vec<Timestamp>),
}

impl Writer {
    pub fn new(instance: &str) -> Self {
        Self { name: instance.to_owned(), sequence: AtomicU64::new(0) }
    }

    /// Writes the calls' batches to the board and answers each caller. One write at a time per board.
    pub async fn write(&self, session: &Session, board: Arc<Board>, calls: Vec<Waiting>) {
        let mut flush = Flush::new(&calls);
        self.land(session, &board, &mut flush).await;
        let (results, outcomes) = flush.finish();
        let mut outcomes = outcomes.into_iter();
        for (call, result) in calls.into_iter().zip(results) {
            let own: Vec<Option<Outcome>> = outcomes.by_ref().take(call.batch.increments.len()).collect();
            let answer = match (result, own.into_iter().collect::<Option<Vec<Outcome>>>()) {
                (Ok(frame), Some(outcomes)) => Ok(Added { frame, outcomes }),
                (Ok(_), None) => Err(StoreError::Corrupt { detail: "a script left out an item".to_owned() }),
                (Err(failure), _) => Err(session.links.error(failure)),
            };
            // A caller that went away has no use for the answer; what it sent counts all the same.
            let _ = call.answer.send(answer);
        }
    }

    /// Rounds of lanes until every item is settled: first all together, again those whose window had moved, and at
    /// last, one by one, the items whose sum was refused.
    async fn land(&self, session: &Session, board: &Board, flush: &mut Flush<'_>) {
        let view = session.view(board);
        let (mut pending, mut singly): (Vec<usize>, Vec<usize>) = ((0..flush.len()).collect(), Vec::new());
        let (mut alone, mut read) = (false, None);
        let mut needed = BTreeSet::new();
        let mut in_vain = 0;
        while in_vain < ATTEMPTS {
            let before = pending.len() + singly.len();
            let now = read.unwrap_or_else(|| view.estimate(session.monotonic()).0);
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
            let plan = flush.plan(&basis, &pending);
            let looks = plan.moot.iter().any(|i| flush.is_scored(*i));
            let in_order = looks || !is_sum_of_amounts(board, &plan);
            let scored = looks || plan.entries.iter().any(|entry| flush.wants_score(entry));
            let lanes = lanes(&plan, if in_order { change::lane(board, scored) } else { LANE }, looks);
            let round = Round {
                session,
                board,
                view: &view,
                hold: flush.hold(&basis, &pending),
                sequence: self.sequence.fetch_add(1, Ordering::Relaxed) + 1,
                operator: &self.name,
                alone,
                flush,
                in_order,
                needed: &needed,
            };
            let landed = round.send_all(&lanes).await;
            pending.clear();
            read = None;
            let unsent: Vec<usize> = lanes[landed.len()..].iter().flat_map(Lane::items).collect();
            for (lane, landed) in lanes.iter().zip(landed) {
                match landed {
                    Ok(Landed::Done { frame, unusual }) => flush.settle(lane, frame, &unusual, &mut singly),
                    Ok(Landed::Stale(now)) => {
                        pending.extend(lane.items());
                        read = Some(now);
                    }
                    Ok(Landed::Missing(now, slots)) => {
                        pending.extend(lane.items());
                        read = Some(now);
                        needed.extend(slots);
                    }
                    Err(failure) => flush.fail(lane.items(), &failure),
                }
            }
            // What comes after a refused sum waits for the sum's items.
            if read.is_none() { &mut singly } else { &mut pending }.extend(unsent);
            // A round may be without items and yet stale, for a batch may be empty.
            if read.is_none() {
                if singly.is_empty() {
                    return;
                }
                pending = std::mem::take(&mut singly);
                alone = true;
            }
            // Each lane may turn out to need slots of its own, so only rounds that settle nothing are counted.
            in_vain = if pending.len() + singly.len() < before { 0 } else { in_vain + 1 };
            if !alone {
                // Items tried singly keep the order of the entries they come from.
                pending.sort_unstable();
            }
        }
        flush.fail(pending.into_iter().chain(singly), &Failure::Restless);
    }
}

/// Whether `write.lua` can do it, which adds amounts in whatever order.
fn is_sum_of_amounts(board: &Board, plan: &Plan<'_>) -> bool {
    board.is_ranked() && board.kind() == Kind::Sum && plan.entries.iter().all(|entry| entry.sent.is_none())
}

impl Round<'_, '_> {
    /// Sends all lanes at once, or where order matters one after the other: then no further than to the first that
    /// was not done, or to a refused sum, whose items come first.
    async fn send_all(&self, lanes: &[Lane<'_, '_>]) -> Vec<Result<Landed, Failure>> {
        if !self.in_order {
            return join_all(lanes.iter().map(|lane| self.send(lane))).await;
        }
        let mut all = Vec::new();
        for lane in lanes {
            let landed = self.send(lane).await;
            let refused = |unusual: &Unusual| {
                unusual.outcome == "refused" && lane.entries.get(unusual.entry).is_some_and(|e| e.items.len() > 1)
            };
            let is_done = match &landed {
                Ok(Landed::Done { unusual, .. }) => !unusual.iter().any(refused),
                Ok(Landed::Stale(_) | Landed::Missing(..)) => false,
                Err(_) => true,
            };
            all.push(landed);
            if !is_done {
                break;
            }
        }
        all
    }

    /// Sends one lane until it is known to be done or not done, as far as patience goes.
    async fn send(&self, lane: &Lane<'_, '_>) -> Result<Landed, Failure> {
        let sent = if self.in_order {
            let encoder = self.encoder();
            repeat(self.session, encoder.script(), || encoder.encode(lane)).await?
        } else {
            repeat(self.session, &WRITE, || self.encode(lane)).await?
        };
        let mut reply = Reply::new(sent)?;
        let kind = self.board.kind();
        match self.session.learn(self.board, self.view, &mut reply)? {
            Status::Done(header) => {
                let mut unusual = Vec::new();
                while !reply.is_empty() {
                    let entry = usize::try_from(reply.count()?).unwrap_or(usize::MAX);
                    let outcome = reply.text()?;
                    let score = reply.score(kind)?.or(kind.absent());
                    unusual.push(Unusual { entry, outcome, score });
                }
                let frame = Frame { window: self.hold.preamble.window, as_of: header.now, retiring: header.retiring };
                Ok(Landed::Done { frame, unusual })
            }
            Status::Stale { now, .. } => Ok(Landed::Stale(now)),
            Status::StaleKeys { header, .. } => Ok(Landed::Stale(header.now)),
            Status::Missing { header, slots } => Ok(Landed::Missing(header.now, slots)),
        }
    }

    fn encoder(&self) -> Encoder<'_, '_> {
        Encoder {
            session: self.session,
            board: self.board,
            view: self.view,
            hold: &self.hold,
            flush: self.flush,
            sequence: self.sequence,
            operator: self.operator,
            needed: self.needed,
        }
    }

    /// The command, built in place: a lane may have thousands of arguments.
    fn encode(&self, lane: &Lane<'_, '_>) -> Cmd {
        let Round { session, board, view, hold, .. } = self;
        let mut slots: Vec<Timestamp> = Vec::new();
        let mut places: HashMap<Timestamp, usize> = HashMap::new();
        let (mut bytes, mut has_ids) = (0, false);
        for entry in lane.entries {
            bytes += entry.subject.as_str().len() + entry.id.map_or(0, |id| id.as_str().len()) + 16;
            has_ids |= entry.id.is_some();
            places.entry(entry.slot).or_insert_with(|| {
                slots.push(entry.slot);
                slots.len() - 1
            });
        }
        let code = |entry: &Entry<'_>| {
            // Only an item with an id may have to wait for those of a sum.
            let (is_sum, wanted) = (has_ids && entry.items.len() > 1, self.flush.wants_score(entry));
            4 * places.get(&entry.slot).copied().unwrap_or_default() + 2 * usize::from(is_sum) + usize::from(wanted)
        };
        // Codes also say that a subject may come twice, as items with ids or tried singly do.
        let coded = has_ids || self.alone || slots.len() != 1 || lane.entries.iter().any(|entry| code(entry) != 0);
        let buckets = if has_ids { 3 } else { 0 };
        let arguments = 40 + 2 * slots.len() + 4 * lane.entries.len();
        let mut command = Cmd::with_capacity(arguments, bytes + 128 * (slots.len() + 16));

        let keys = &view.keys;
        let count = WRITE.fixed_keys() + slots.len() + buckets + usize::from(session.simulated);
        command.arg("EVALSHA").arg(WRITE.hash()).arg(count);
        command.arg(&keys.meta).arg(&keys.index).arg(&keys.ranking).arg(&keys.buckets).arg(&keys.totals);
        command.arg(keys.operation(self.operator, lane.number));
        for slot in &slots {
            command.arg(keys.slot(*slot));
        }
        for back in 0..buckets as i64 {
            command.arg(keys.dedupe(hold.bucket - back));
        }
        if session.simulated {
            command.arg(session.keys.clock());
        }
        for argument in session.preamble(board, view, &hold.preamble) {
            command.arg(argument);
        }
        command.arg(self.sequence).arg(board.slot_bound().0).arg(slots.len()).arg(lane.entries.len());
        command.arg(if coded { "coded" } else { "" });
        command.arg(if has_ids { hold.bucket.to_string() } else { String::new() }).arg(board.dedupe_horizon());
        for slot in &slots {
            command.arg(slot.millis());
        }
        for entry in lane.entries {
            command.arg(entry.subject.as_str());
        }
        for entry in lane.entries {
            // Beyond 2^53 − 1 it is out of range of any slot, and stays so when held within what Lua counts exactly.
            command.arg(entry.amount.0.clamp(-EXACT_MAX, EXACT_MAX));
        }
        if coded {
            for entry in lane.entries {
                command.arg(code(entry));
            }
        }
        if has_ids {
            for entry in lane.entries {
                command.arg(entry.id.map_or("", |id| id.as_str()));
            }
        }
        command
    }
}

/// Sends a numbered write again while its outcome is unknown or the server is away. It is encoded anew each time,
/// for what the clock may read moves on; all else is the same.
async fn repeat(session: &Session, script: &Script, encode: impl Fn() -> Cmd) -> Result<Sent, Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = PAUSES.0;
    let mut doubt: Option<Failure> = None;
    loop {
        let failure = match session.links.writes.call(script, &encode()).await {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        let unknown = matches!(failure, Failure::Unknown(_));
        if !(unknown || failure.is_passing()) || Instant::now() + pause >= deadline {
            // Once a sending may have been done, no later refusal makes it undone.
            return Err(doubt.unwrap_or(failure));
        }
        if unknown {
            doubt = Some(failure);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}
