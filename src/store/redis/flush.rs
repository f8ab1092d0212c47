//! One board's part of a flush: the batches of several callers as one list of items, planned together, and what
//! has become of each.

use super::combine::Waiting;
use super::connection::Failure;
use super::session::Preamble;
use crate::board::{Amount, Board, Frame, Timestamp, Window};
use crate::store::{Entry, Increment, Outcome, Plan, Rejection};

/// The most entries of one script: about 2 ms of the server's time.
const LANE: usize = 500;

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
    /// For calls without items.
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
}

/// An entry of a lane that was not simply counted, or whose score was wanted.
#[derive(Debug)]
pub(super) struct Unusual {
    pub entry: usize,
    pub outcome: String,
    pub score: Option<Amount>,
}

impl Lane<'_, '_> {
    pub fn items(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries.iter().flat_map(|entry| entry.items.iter().copied()).chain(self.rejected.iter().map(|(i, _)| *i))
    }
}

/// Divides a plan into lanes. A plan without entries is one lane still, whose script confirms the window.
pub(super) fn lanes<'p, 'a>(plan: &'p Plan<'a>) -> Vec<Lane<'p, 'a>> {
    if plan.entries.is_empty() {
        return vec![Lane { number: 0, entries: &[], rejected: &plan.rejected }];
    }
    let lane = |(number, entries)| Lane { number, entries, rejected: if number == 0 { &plan.rejected } else { &[] } };
    plan.entries.chunks(LANE).enumerate().map(lane).collect()
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
            let Some(at) = item.at.filter(|at| *at >= window.head) else { continue };
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

    /// Whether one of the callers behind the entry wants its score.
    pub fn wants_score(&self, entry: &Entry<'_>) -> bool {
        entry.items.iter().any(|i| self.wants_score[self.call_of[*i]])
    }

    /// Takes in what a script did with a lane. Items of refused sums are added to `singly`.
    pub fn settle(&mut self, lane: &Lane<'_, '_>, frame: Frame, unusual: &[Unusual], singly: &mut Vec<usize>) {
        self.latest = Ok(frame);
        for (i, rejection) in lane.rejected {
            self.outcomes[*i] = Some(Outcome::Rejected(*rejection));
            self.seen(*i, frame);
        }
        let mut unusual = unusual.iter().peekable();
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
                self.outcomes[*i] = Some(if self.wants_score[self.call_of[*i]] { outcome } else { unscored(outcome) });
                self.seen(*i, frame);
            }
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
        self.latest = Err(failure.clone());
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
