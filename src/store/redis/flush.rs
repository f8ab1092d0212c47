//! One board's part of a flush: the batches of several callers as one list of items, planned together, and what
//! has become of each.

use super::combine::Waiting;
use super::connection::Failure;
use super::session::Preamble;
use crate::board::{Board, Change, Frame, Mode, Timestamp, Value, Window};
use crate::store::{Entry, Increment, Outcome, Plan, Rejection};

/// The most entries of one call of `write.lua`: about 2 ms of the server's time.
pub(super) const LANE: usize = 500;

/// All items of one board's part of a flush, by their index.
#[derive(Debug)]
pub(super) struct Flush<'a> {
    items: Vec<&'a Increment>,
    /// Which call each item came with.
    call_of: Vec<usize>,
    /// Per call.
    wants_score: Vec<bool>,
    outcomes: Vec<Option<Outcome>>,
    /// Per call: the latest frame of its items, or why one of them is not known to be counted.
    results: Vec<Option<Result<Frame, Failure>>>,
    /// For calls without items: a frame if there was one at all.
    latest: Result<Frame, Failure>,
}

/// From when until when a plan holds, and the dedupe bucket it was made for.
#[derive(Debug)]
pub(super) struct Hold {
    pub preamble: Preamble,
    pub bucket: i64,
}

/// When and by which rules a plan is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis<'a> {
    pub board: &'a Board,
    pub window: Window,
    pub now: Timestamp,
    pub max_skew: i64,
    /// Whether a `TooEarly` must still be one at the instant the script runs.
    pub strict: bool,
    /// Whether to apply each item by itself, because its sum with others was refused.
    pub alone: bool,
}

/// Entries that go with one script.
#[derive(Debug)]
pub(super) struct Lane<'p, 'a> {
    pub number: usize,
    pub entries: &'p [Entry<'a>],
    /// Items that no slot takes: judged by the window and the instant which this lane's script confirms.
    pub rejected: &'p [(usize, Rejection)],
    /// Items with nothing left to do, likewise; after its entries the script is asked for the scores of those that
    /// `looks` are.
    pub moot: &'p [usize],
    pub looks: &'p [usize],
}

/// An entry of a lane that was not simply counted, or whose score was wanted.
#[derive(Debug)]
pub(super) struct Unusual {
    pub entry: usize,
    pub outcome: String,
    pub score: Option<Value>,
}

impl Lane<'_, '_> {
    pub fn items(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries
            .iter()
            .flat_map(|entry| entry.items.iter().copied())
            .chain(self.rejected.iter().map(|(i, _)| *i))
            .chain(self.moot.iter().copied())
    }
}

/// Divides a plan into lanes of so many entries. There is one at least, whose script confirms the window. What is
/// moot comes after all entries, for its score is the one they leave; it takes a part in a script only to `look`.
pub(super) fn lanes<'p, 'a>(plan: &'p Plan<'a>, most: usize, look: bool) -> Vec<Lane<'p, 'a>> {
    let entries = plan.entries.chunks(most).map(|entries| (entries, &[][..]));
    let moot = plan.moot.chunks(if look { most } else { usize::MAX }).map(|moot| (&[][..], moot));
    let mut parts: Vec<(&[Entry<'a>], &[usize])> = entries.chain(moot).collect();
    if parts.is_empty() {
        parts.push((&[], &[]));
    }
    let lane = |(number, (entries, moot))| Lane {
        number,
        entries,
        rejected: if number == 0 { &plan.rejected } else { &[] },
        moot,
        looks: if look { moot } else { &[] },
    };
    parts.into_iter().enumerate().map(lane).collect()
}

impl<'a> Flush<'a> {
    pub fn new(calls: &'a [Waiting]) -> Self {
        let items: Vec<&Increment> = calls.iter().flat_map(|call| &call.batch.increments).collect();
        let call_of = calls
            .iter()
            .enumerate()
            .flat_map(|(i, call)| std::iter::repeat_n(i, call.batch.increments.len()))
            .collect();
        Self {
            outcomes: vec![None; items.len()],
            items,
            call_of,
            wants_score: calls.iter().map(|call| call.batch.return_scores).collect(),
            results: vec![None; calls.len()],
            latest: Err(Failure::Restless),
        }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Places the items in slots and adds up what may be added.
    pub fn plan(&self, basis: &Basis<'_>, items: &[usize]) -> Plan<'a> {
        let Basis { board, window, now, max_skew, alone, .. } = *basis;
        let indexed = |i: &usize| (*i, self.items[*i]);
        if !alone {
            return Plan::new(board, &window, now, max_skew, items.iter().map(indexed));
        }
        let mut plan = Plan::default();
        for single in items.iter().map(indexed).map(|item| Plan::new(board, &window, now, max_skew, [item])) {
            plan.entries.extend(single.entries);
            plan.rejected.extend(single.rejected);
            plan.moot.extend(single.moot);
        }
        plan
    }

    /// From when until when the items' plan stays as it is.
    pub fn hold(&self, basis: &Basis<'_>, items: &[usize]) -> Hold {
        let Basis { board, window, now, max_skew, strict, .. } = *basis;
        let (mut low, mut high) = (window.head, window.end);
        let mut has_ids = false;
        for item in items.iter().map(|i| self.items[*i]) {
            has_ids |= item.id.is_some();
            let Some(at) = item.at else { continue };
            if board.definition().mode == Mode::FromFirst {
                // From this instant on it is too late.
                let ends = at.plus_millis(board.definition().metric.window.approximate_millis());
                if ends > now {
                    high = high.min(ends);
                }
            }
            // Samples are placed by the window alone.
            if at < window.head || matches!(item.change, Change::Set { .. }) {
                continue;
            }
            // From this instant on it is no longer too early.
            let acceptable = at.plus_millis(-max_skew);
            if acceptable <= now {
                low = low.max(acceptable);
            } else if strict {
                high = high.min(acceptable);
            }
        }
        let width = bucket_width(board);
        let bucket = now.millis() / width;
        if has_ids {
            low = low.max(Timestamp::from_millis(bucket * width));
            high = high.min(Timestamp::from_millis((bucket + 1) * width));
        }
        Hold { preamble: Preamble { window, low, high }, bucket }
    }

    pub fn item(&self, index: usize) -> &'a Increment {
        self.items[index]
    }

    /// Whether the item's caller wants scores.
    pub fn is_scored(&self, item: usize) -> bool {
        self.wants_score[self.call_of[item]]
    }

    /// Whether one of the callers behind the entry wants its score.
    pub fn wants_score(&self, entry: &Entry<'_>) -> bool {
        entry.items.iter().any(|i| self.is_scored(*i))
    }

    /// Takes in what a script did with a lane. Items of refused sums are added to `singly`.
    pub fn settle(&mut self, lane: &Lane<'_, '_>, frame: Frame, unusual: &[Unusual], singly: &mut Vec<usize>) {
        self.latest = Ok(frame);
        for (i, rejection) in lane.rejected {
            self.outcomes[*i] = Some(Outcome::Rejected(*rejection));
            self.seen(*i, frame);
        }
        let mut unusual = unusual.iter().peekable();
        let settled = |flush: &mut Self, i: usize, outcome: Outcome| {
            flush.outcomes[i] = Some(if flush.is_scored(i) { outcome } else { unscored(outcome) });
            flush.seen(i, frame);
        };
        for (number, entry) in lane.entries.iter().enumerate() {
            let unusual = unusual.next_if(|unusual| unusual.entry == number);
            let score = unusual.and_then(|unusual| unusual.score);
            let outcome = match unusual.map(|unusual| unusual.outcome.as_str()) {
                None | Some("counted") => Outcome::Counted { score },
                Some("duplicate") => Outcome::Duplicate { score },
                Some("behind") => {
                    singly.extend(&entry.items);
                    continue;
                }
                Some("refused") if entry.items.len() > 1 => {
                    singly.extend(&entry.items);
                    continue;
                }
                Some("refused") => Outcome::Rejected(Rejection::OutOfRange),
                Some(other) => {
                    let detail = format!("the amount of '{}' in slot {} is {other}", entry.subject, entry.slot);
                    self.fail(entry.items.iter().copied(), &Failure::Corrupt(detail));
                    continue;
                }
            };
            for i in &entry.items {
                settled(self, *i, outcome);
            }
        }
        for (nth, i) in lane.moot.iter().enumerate() {
            let looked = unusual.next_if(|unusual| unusual.entry == lane.entries.len() + nth);
            settled(self, *i, Outcome::Counted { score: looked.and_then(|looked| looked.score) });
        }
    }

    fn seen(&mut self, item: usize, frame: Frame) {
        let result = &mut self.results[self.call_of[item]];
        match result {
            Some(Err(_)) => {}
            Some(Ok(earlier)) if earlier.as_of > frame.as_of => {}
            _ => *result = Some(Ok(frame)),
        }
    }

    /// The calls of these items fail, whatever else of them was done.
    pub fn fail(&mut self, items: impl Iterator<Item = usize>, failure: &Failure) {
        if self.latest.is_err() {
            self.latest = Err(failure.clone());
        }
        for i in items {
            self.results[self.call_of[i]] = Some(Err(failure.clone()));
        }
    }

    /// What became of each call, and of each item in order; `None` only where its call failed.
    pub fn finish(self) -> (Vec<Result<Frame, Failure>>, Vec<Option<Outcome>>) {
        let latest = self.latest;
        (self.results.into_iter().map(|result| result.unwrap_or_else(|| latest.clone())).collect(), self.outcomes)
    }
}

/// How long one dedupe bucket takes ids in, in milliseconds: half a horizon, so that three buckets hold all ids
/// that may still repeat.
pub(super) fn bucket_width(board: &Board) -> i64 {
    (board.dedupe_horizon() / 2).max(1)
}

fn unscored(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Counted { .. } => Outcome::Counted { score: None },
        Outcome::Duplicate { .. } => Outcome::Duplicate { score: None },
        rejected => rejected,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::*;
    use crate::board::{Amount, BoardName, Change, Definition, EventId, Generation, Subject};
    use crate::store::Batch;

    const SKEW: i64 = 5_000;

    fn board() -> Arc<Board> {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        Arc::new(Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap())
    }

    fn t(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn item(subject: &str, amount: i64) -> Increment {
        Increment {
            subject: Subject::parse(subject).unwrap(),
            change: Change::Amount(Amount(amount)),
            retract: false,
            at: None,
            id: None,
        }
    }

    fn call(board: &Arc<Board>, increments: Vec<Increment>, return_scores: bool) -> Waiting {
        Waiting {
            board: board.clone(),
            batch: Batch { increments, return_scores },
            joined: false,
            answer: oneshot::channel().0,
        }
    }

    fn basis(board: &Board, now: Timestamp, strict: bool) -> Basis<'_> {
        Basis { board, window: board.window_at(now), now, max_skew: SKEW, strict, alone: false }
    }

    #[test]
    fn a_plan_holds_as_long_as_every_item_is_judged_the_same() {
        let board = board();
        let now = t("2026-01-01T10:30:00Z");
        let at = |millis: i64| Increment { at: Some(now.plus_millis(millis)), ..item("a", 1) };
        let hold = |increments: Vec<Increment>, strict| {
            let calls = [call(&board, increments, false)];
            let flush = Flush::new(&calls);
            let items: Vec<usize> = (0..flush.len()).collect();
            let Preamble { low, high, .. } = flush.hold(&basis(&board, now, strict), &items).preamble;
            (low, high)
        };
        let window = board.window_at(now);
        assert_eq!(hold(vec![item("a", 1)], true), (window.head, window.end));
        // Past items are judged by the window alone.
        assert_eq!(hold(vec![at(-3_600_000), at(-7_200_000)], true), (window.head, window.end));
        // 3 s ahead counts from 2 s ago on; 7 s ahead is too early until 2 s from now.
        let items = || vec![at(3_000), at(SKEW + 2_000), at(-1)];
        assert_eq!(hold(items(), true), (now.plus_millis(3_000 - SKEW), now.plus_millis(2_000)));
        assert_eq!(hold(items(), false), (now.plus_millis(3_000 - SKEW), window.end));
        // Dedupe buckets of a horizon of 2 h begin with the hours.
        let with_id = Increment { id: Some(EventId::parse("x").unwrap()), ..item("a", 1) };
        assert_eq!(hold(vec![with_id], true), (window.head, window.end));
    }

    #[test]
    fn each_caller_is_answered_about_its_own_items() {
        let board = board();
        let now = t("2026-01-01T10:30:00Z");
        let calls = [
            call(&board, vec![item("a", 1), item("b", 1)], false),
            call(&board, vec![item("a", 1), item("c", i64::MAX), item("d", i64::MAX)], true),
            call(&board, vec![item("c", i64::MAX), item("e", 1)], false),
            call(&board, vec![], true),
        ];
        let mut flush = Flush::new(&calls);
        let basis = basis(&board, now, true);
        let plan = flush.plan(&basis, &(0..flush.len()).collect::<Vec<_>>());
        let lanes = lanes(&plan, LANE, false);
        assert_eq!((lanes.len(), lanes[0].entries.len()), (1, 5));
        let wanted: Vec<bool> = lanes[0].entries.iter().map(|entry| flush.wants_score(entry)).collect();
        assert_eq!(wanted, [true, false, true, true, false]);

        let frame = Frame { window: basis.window, as_of: now, retiring: 0 };
        let unusual = |entry, outcome: &str, score: Option<i64>| Unusual {
            entry,
            outcome: outcome.to_owned(),
            score: score.map(|units| Value::Exact(Amount(units))),
        };
        let all = [
            unusual(0, "counted", Some(2)),
            unusual(2, "refused", None),
            unusual(3, "refused", None),
            unusual(4, "damaged", None),
        ];
        let mut singly = Vec::new();
        flush.settle(&lanes[0], frame, &all, &mut singly);
        assert_eq!(singly, [3, 5], "the sum for c is tried singly");
        flush.outcomes[3] = Some(Outcome::Rejected(Rejection::OutOfRange));
        let (results, outcomes) = flush.finish();
        let counted =
            |score: Option<i64>| Some(Outcome::Counted { score: score.map(|units| Value::Exact(Amount(units))) });
        let refused = Some(Outcome::Rejected(Rejection::OutOfRange));
        assert_eq!(outcomes[..5], [counted(None), counted(None), counted(Some(2)), refused, refused]);
        assert!(matches!(results[..], [Ok(_), Ok(_), Err(Failure::Corrupt(_)), Ok(_)]), "{results:?}");
    }
}
