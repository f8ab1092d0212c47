//! A flush: portions of calls that are written together as one list of items. They are planned together, and each item
//! gets its own outcome.

use std::cell::RefCell;
use std::collections::HashMap;

use tokio::time::Instant;

use super::call::Call;
use super::chunk::{Budget, PlanChunk};
use super::retry::{LEAST, PATIENCE};
use crate::board::{Frame, Subject, Value};
use crate::store::redis::partition::Partition;
use crate::store::redis::servers::ServerFailure;
use crate::store::{Entry, Increment, Outcome, Rejection};

/// The items of a flush, which are identified by their index, and what all its scripts share.
#[derive(Debug)]
pub(super) struct Flush<'a> {
    pub partition: &'a Partition,
    pub budget: Budget,
    pub deadline: Instant,
    calls: &'a [Call],
    /// The items, each with its call and its index within the call.
    items: Vec<(&'a Increment, &'a Call, usize)>,
    /// The frame for calls without items: that of the latest script, or the failure if none was done.
    latest: RefCell<Result<Frame, ServerFailure>>,
    /// The subjects with items that are tried one by one.
    retried: RefCell<HashMap<&'a str, Retried>>,
}

/// The items of a subject whose scores change as its other items are tried one by one.
#[derive(Debug, Default)]
struct Retried {
    items: Vec<usize>,
    /// The score that these items were given last, if it was changed.
    score: Option<Option<Value>>,
}

/// The reply of a script about an entry of a chunk that was not simply counted, or whose score was wanted.
#[derive(Debug)]
pub(super) struct EntryReply {
    pub entry: usize,
    pub outcome: String,
    pub score: Option<Value>,
}

/// The scores that were read after the write, by subject.
pub(super) type ReadScores<'a> = HashMap<&'a str, Option<Value>>;

impl<'a> Flush<'a> {
    /// Creates a flush of the portions of some calls to one partition, or returns `None` if there are none.
    pub fn new(calls: &'a [Call]) -> Option<Self> {
        let partition = &*calls.first()?.partition;
        let portion = |call: &'a Call| call.portion.clone().map(move |index| (&call.increments[index], call, index));
        let oldest = calls.iter().map(|call| call.since).min()?;
        Some(Self {
            partition,
            budget: Budget::new(partition.board(), calls.iter().any(|call| call.return_scores)),
            deadline: (oldest + PATIENCE).max(Instant::now() + LEAST),
            calls,
            items: calls.iter().flat_map(portion).collect(),
            latest: RefCell::new(Err(ServerFailure::KeptChanging)),
            retried: RefCell::default(),
        })
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn item(&self, index: usize) -> &'a Increment {
        self.items[index].0
    }

    /// Returns whether any caller wants scores.
    pub fn has_scores(&self) -> bool {
        self.calls.iter().any(|call| call.return_scores)
    }

    /// Returns whether the item's caller wants scores.
    pub fn is_scored(&self, item: usize) -> bool {
        self.items[item].1.return_scores
    }

    /// Returns whether one of the callers of the entry wants its score.
    pub fn wants_score(&self, entry: &Entry<'_>) -> bool {
        entry.items.iter().any(|i| self.is_scored(*i))
    }

    /// Records the result of a script for a chunk, and the scores that were read after it. Returns the items to be
    /// tried one by one: those of refused sums, and those that the script did not try.
    pub fn settle(
        &self,
        chunk: &PlanChunk<'_, '_>,
        frame: Frame,
        replies: &[EntryReply],
        scores: Option<&ReadScores<'_>>,
    ) -> Vec<usize> {
        let mut singly = Vec::new();
        *self.latest.borrow_mut() = Ok(frame);
        let settle = |item: usize, outcome: Outcome| {
            let (_, call, index) = self.items[item];
            call.settle(index, outcome, frame);
        };
        for (i, rejection) in chunk.rejected {
            settle(*i, Outcome::Rejected(*rejection));
        }
        let mut replies = replies.iter().peekable();
        let score_of = |reply: Option<&EntryReply>, subject: &Subject| match scores {
            Some(scores) => scores.get(subject.as_str()).copied().flatten(),
            None => reply.and_then(|reply| reply.score),
        };
        for (number, entry) in chunk.entries.iter().enumerate() {
            let reply = replies.next_if(|reply| reply.entry == number);
            let outcome = match reply.map(|reply| reply.outcome.as_str()) {
                None | Some("counted") => match entry.outcome() {
                    Outcome::Counted { .. } => Outcome::Counted { score: score_of(reply, entry.subject) },
                    other => other,
                },
                Some("duplicate") => Outcome::Duplicate { score: score_of(reply, entry.subject) },
                Some("behind") => {
                    singly.extend(&entry.items);
                    continue;
                }
                Some("refused") if entry.items.len() > 1 => {
                    singly.extend(&entry.items);
                    continue;
                }
                Some("refused") => Outcome::Rejected(Rejection::OutOfRange),
                Some("frozen") => Outcome::Rejected(Rejection::SubjectFrozen),
                Some("too_many_keys") => Outcome::Rejected(Rejection::TooManyKeys),
                Some("importing") => Outcome::Rejected(Rejection::ImportOpen),
                Some(other) => {
                    let detail =
                        format!("the amount of '{}' in slot {} is {other}", entry.subject, entry.slots.first());
                    let failure = ServerFailure::Corrupt(detail);
                    entry.items.iter().for_each(|i| self.items[*i].1.fail(failure.clone()));
                    continue;
                }
            };
            if let Outcome::Counted { score } | Outcome::Duplicate { score } = outcome
                && self.wants_score(entry)
            {
                self.rescore(entry.subject.as_str(), score);
            }
            for i in &entry.items {
                settle(*i, outcome);
            }
        }
        for (nth, i) in chunk.without_effect.iter().enumerate() {
            let looked = replies.next_if(|reply| reply.entry == chunk.entries.len() + nth);
            let score = score_of(looked, &self.item(*i).subject);
            settle(*i, Outcome::Counted { score });
        }
        self.expect_scores(chunk, &singly);
        singly
    }

    /// Notes which scored items of a chunk have a subject with items that are yet to be tried.
    fn expect_scores(&self, chunk: &PlanChunk<'_, '_>, singly: &[usize]) {
        let mut retried = self.retried.borrow_mut();
        for i in singly.iter().filter(|i| self.is_scored(**i)) {
            retried.entry(self.item(*i).subject.as_str()).or_default();
        }
        if retried.is_empty() {
            return;
        }
        for i in chunk.items().filter(|i| self.is_scored(*i)) {
            if let Some(retried) = retried.get_mut(self.item(i).subject.as_str()) {
                retried.items.push(i);
            }
        }
    }

    /// Gives the items of a subject that have an outcome its new score. All entries of one script have the same score,
    /// so this does its work once for each script and subject.
    fn rescore(&self, subject: &str, score: Option<Value>) {
        let mut retried = self.retried.borrow_mut();
        let Some(retried) = retried.get_mut(subject) else { return };
        if retried.score.replace(score) == Some(score) {
            return;
        }
        for i in &retried.items {
            let (_, call, index) = self.items[*i];
            call.rescore(index, score);
        }
    }

    /// Marks the calls of these items as failed. Other items of the calls may have been counted.
    pub fn fail(&self, items: impl IntoIterator<Item = usize>, failure: &ServerFailure) {
        let mut latest = self.latest.borrow_mut();
        if latest.is_err() {
            *latest = Err(failure.clone());
        }
        for i in items {
            self.items[i].1.fail(failure.clone());
        }
    }

    /// Marks the calls of these items as outdated: the board has other editions, so they were not counted.
    pub fn outdate(&self, items: impl IntoIterator<Item = usize>) {
        let mut latest = self.latest.borrow_mut();
        if latest.is_err() {
            *latest = Err(ServerFailure::StaleEpoch);
        }
        for i in items {
            self.items[i].1.outdate();
        }
    }

    /// Ends the calls that have failed or are outdated, and those without items.
    pub fn finish(self) {
        let latest = self.latest.into_inner();
        self.calls.iter().for_each(|call| call.finish(&latest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Amount, Change};
    use crate::store::redis::writes::call::tests::whole;
    use crate::store::redis::writes::queue;
    use crate::store::{Added, Plan, Result, StoreError};

    fn item(subject: &str, amount: i64) -> Increment {
        let subject = Subject::parse(subject).unwrap();
        Increment { subject, change: Change::Amount(Amount(amount)), ..queue::tests::increment(None) }
    }

    #[test]
    fn each_caller_receives_the_outcomes_of_its_own_items() {
        let partition = queue::tests::partition("b", 1);
        let board = partition.board();
        let now = crate::board::Timestamp::parse("2026-01-01T10:30:00Z").unwrap();
        let (calls, answers): (Vec<Call>, Vec<_>) = [
            (vec![item("a", 1), item("b", 1)], false),
            (vec![item("a", 1), item("c", i64::MAX), item("d", i64::MAX)], true),
            (vec![item("c", i64::MAX), item("e", 1)], false),
            (vec![], true),
        ]
        .map(|(items, scores)| whole(&partition, items, scores))
        .into_iter()
        .unzip();
        let flush = Flush::new(&calls).unwrap();
        let windows = partition.windows(now);
        let place = |items: &[usize], singly| {
            let items = items.iter().map(|i| (*i, flush.item(*i)));
            Plan::new(board, &windows, now, 5_000, singly, items)
        };
        let all = place(&(0..flush.len()).collect::<Vec<_>>(), false);
        let budget = Budget::new(board, true);
        let wants = |entry: &Entry<'_>| flush.wants_score(entry);
        let chunks = budget.divide(&all, false, wants, |i| &flush.item(i).subject, false);
        assert_eq!((chunks.len(), chunks[0].entries.len()), (1, 5));
        let wanted: Vec<bool> = chunks[0].entries.iter().map(wants).collect();
        assert_eq!(wanted, [true, false, true, true, false]);

        let frame = Frame { window: partition.main().track.window_at(now), as_of: now, retiring: 0 };
        let reply = |entry, outcome: &str, score: Option<i64>| EntryReply {
            entry,
            outcome: outcome.to_owned(),
            score: score.map(|units| Value::Exact(Amount(units))),
        };
        let replies = [
            reply(0, "counted", Some(2)),
            reply(2, "refused", None),
            reply(3, "refused", None),
            reply(4, "damaged", None),
        ];
        let singly = flush.settle(&chunks[0], frame, &replies, None);
        assert_eq!(singly, [3, 5], "the sum for c is tried singly");
        // Of the second call, the item for c is left.
        let mut alone = place(&[3, 5], true);
        alone.entries.truncate(1);
        let chunks = budget.divide(&alone, false, wants, |i| &flush.item(i).subject, false);
        flush.settle(&chunks[0], frame, &[reply(0, "refused", None)], None);
        flush.finish();
        let added: Vec<Option<Result<Added>>> =
            answers.into_iter().map(|mut answer| answer.try_recv().ok().map(|answer| answer.added)).collect();
        let counted = |score: Option<i64>| Outcome::Counted { score: score.map(|units| Value::Exact(Amount(units))) };
        let refused = Outcome::Rejected(Rejection::OutOfRange);
        assert_eq!(added[0].as_ref().unwrap().as_ref().unwrap().outcomes, [counted(None), counted(None)]);
        assert_eq!(added[1].as_ref().unwrap().as_ref().unwrap().outcomes, [counted(Some(2)), refused, refused]);
        assert!(matches!(added[2], Some(Err(StoreError::Corrupt { .. }))), "{added:?}");
        assert_eq!(added[3].as_ref().unwrap().as_ref().unwrap().outcomes, []);
        assert!(calls.iter().all(Call::has_ended));
    }
}
