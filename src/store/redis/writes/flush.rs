//! A flush: portions of calls that are written together as one list of items. They are planned together, and each item
//! gets its own outcome.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;

use super::call::PartBatch;
use super::chunk::Chunk;
use super::progress::{CallProgress, Trouble};
use crate::board::{Board, Change, Frame, Mode, Subject, Timestamp, Value, Window};
use crate::store::redis::id_buckets;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Preamble;
use crate::store::{Entry, Increment, Outcome, Plan, Rejection};

/// All items of a flush. Items are identified by their index.
#[derive(Debug)]
pub(super) struct Flush<'a> {
    items: Vec<&'a Increment>,
    /// The call of each item.
    call_of: Vec<usize>,
    calls: Vec<Origin>,
    state: Mutex<State<'a>>,
}

/// The origin of the items of one call.
#[derive(Debug)]
struct Origin {
    /// The index within the call of the first item of its portion.
    taken: usize,
    /// The index of that item in the flush.
    first: usize,
    wants_score: bool,
}

#[derive(Debug)]
struct State<'a> {
    /// One for each call.
    progress: Vec<CallProgress>,
    /// The frame for calls without items, if any script was done.
    latest: Result<Frame, Trouble>,
    /// The subjects with items that are tried one by one.
    retried: HashMap<&'a str, Retried>,
}

/// The items of a subject whose scores change as its other items are tried one by one.
#[derive(Debug, Default)]
struct Retried {
    items: Vec<usize>,
    /// The score that these items were given last, if it was changed.
    score: Option<Option<Value>>,
}

/// The time for which a plan is valid, the windows and the dedupe bucket for which it was made.
#[derive(Clone, Debug)]
pub(super) struct Validity {
    /// The main window.
    pub preamble: Preamble,
    /// The further windows of the board.
    pub further: Box<[Window]>,
    pub bucket: i64,
}

/// The time and the rules for a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis<'a> {
    pub board: &'a Board,
    pub window: Window,
    pub now: Timestamp,
    pub max_skew: i64,
    /// Whether an item that is too early now must also be too early when the script runs.
    pub strict: bool,
    /// Whether to apply each item by itself, because its sum with others was refused.
    pub alone: bool,
}

/// The reply of a script about an entry of a chunk that was not simply counted, or whose score was wanted.
#[derive(Debug)]
pub(super) struct EntryReply {
    pub entry: usize,
    pub outcome: String,
    pub score: Option<Value>,
}

/// The scores that were read after the write, by subject.
pub(super) type Scores<'a> = HashMap<&'a str, Option<Value>>;

impl<'a> Flush<'a> {
    /// Creates a flush from one portion of each call and the progress of the calls.
    pub fn new(portions: impl IntoIterator<Item = (&'a PartBatch, Range<usize>)>, progress: Vec<CallProgress>) -> Self {
        let (mut items, mut call_of, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for (part_batch, range) in portions {
            call_of.extend(std::iter::repeat_n(calls.len(), range.len()));
            calls.push(Origin { taken: range.start, first: items.len(), wants_score: part_batch.batch.return_scores });
            items.extend(&part_batch.batch.increments[range]);
        }
        let latest = Err(Trouble::NotSent(ServerFailure::KeptChanging));
        Self { items, call_of, calls, state: Mutex::new(State { progress, latest, retried: HashMap::new() }) }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether any caller wants scores.
    pub fn has_scores(&self) -> bool {
        self.calls.iter().any(|call| call.wants_score)
    }

    /// Places the items in slots and adds up amounts where possible.
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
            plan.expired_retractions.extend(single.expired_retractions);
        }
        plan
    }

    /// Returns the time for which the plan of the items is valid.
    pub fn validity(&self, basis: &Basis<'_>, items: &[usize]) -> Validity {
        let Basis { board, window, now, max_skew, strict, .. } = *basis;
        let further: Box<[Window]> = board.further().iter().map(|board| board.window_at(now)).collect();
        let both = |(low, high): (Timestamp, Timestamp), window: &Window| (low.max(window.head), high.min(window.end));
        let (mut low, mut high) = further.iter().fold((window.head, window.end), both);
        let mut has_ids = false;
        for item in items.iter().map(|i| self.items[*i]) {
            has_ids |= item.id.is_some();
            let Some(at) = item.at else { continue };
            if board.definition().mode == Mode::FromFirst {
                // From this instant on the item is too late.
                let ends = at.plus_millis(board.definition().metric.window.approximate_millis());
                if ends > now {
                    high = high.min(ends);
                }
            }
            // Samples are placed by the window alone.
            if at < window.head || matches!(item.change, Change::Set { .. }) {
                continue;
            }
            // From this instant on the item is no longer too early.
            let acceptable = at.plus_millis(-max_skew);
            if acceptable <= now {
                low = low.max(acceptable);
            } else if strict {
                high = high.min(acceptable);
            }
        }
        let (width, bucket) = (id_buckets::width(board), id_buckets::number(board, now));
        if has_ids {
            low = low.max(Timestamp::from_millis(bucket * width));
            high = high.min(Timestamp::from_millis((bucket + 1) * width));
        }
        Validity { preamble: Preamble { window, low, high }, further, bucket }
    }

    pub fn item(&self, index: usize) -> &'a Increment {
        self.items[index]
    }

    /// Returns whether the item's caller wants scores.
    pub fn is_scored(&self, item: usize) -> bool {
        self.calls[self.call_of[item]].wants_score
    }

    /// Returns whether one of the callers of the entry wants its score.
    pub fn wants_score(&self, entry: &Entry<'_>) -> bool {
        entry.items.iter().any(|i| self.is_scored(*i))
    }

    /// Records the result of a script for a chunk, and the scores that were read after it. Returns the items to be
    /// tried one by one: those of refused sums, and those that the script did not try.
    pub fn settle(
        &self,
        chunk: &Chunk<'_, '_>,
        frame: Frame,
        entry_replies: &[EntryReply],
        scores: Option<&Scores<'_>>,
    ) -> Vec<usize> {
        let mut state = self.state.lock();
        let mut singly = Vec::new();
        state.latest = Ok(frame);
        for (i, rejection) in chunk.rejected {
            self.note(&mut state, *i, Outcome::Rejected(*rejection), frame);
        }
        let mut entry_replies = entry_replies.iter().peekable();
        let told = |entry_replies: Option<&EntryReply>, subject: &Subject| match scores {
            Some(scores) => scores.get(subject.as_str()).copied().flatten(),
            None => entry_replies.and_then(|entry_replies| entry_replies.score),
        };
        for (number, entry) in chunk.entries.iter().enumerate() {
            let entry_replies = entry_replies.next_if(|entry_replies| entry_replies.entry == number);
            let outcome = match entry_replies.map(|entry_replies| entry_replies.outcome.as_str()) {
                None | Some("counted") => Outcome::Counted { score: told(entry_replies, entry.subject) },
                Some("duplicate") => Outcome::Duplicate { score: told(entry_replies, entry.subject) },
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
                    let detail =
                        format!("the amount of '{}' in slot {} is {other}", entry.subject, entry.slots.first());
                    let trouble = Trouble::Refused(ServerFailure::Corrupt(detail));
                    entry.items.iter().for_each(|i| state.progress[self.call_of[*i]].fail(trouble.clone()));
                    continue;
                }
            };
            if let Outcome::Counted { score } | Outcome::Duplicate { score } = outcome
                && self.wants_score(entry)
            {
                self.rescore(&mut state, entry.subject.as_str(), score);
            }
            for i in &entry.items {
                self.note(&mut state, *i, outcome, frame);
            }
        }
        for (nth, i) in chunk.expired_retractions.iter().enumerate() {
            let looked = entry_replies.next_if(|entry_replies| entry_replies.entry == chunk.entries.len() + nth);
            let score = told(looked, &self.items[*i].subject);
            self.note(&mut state, *i, Outcome::Counted { score }, frame);
        }
        self.expect_scores(&mut state, chunk, &singly);
        singly
    }

    /// Notes which scored items of a chunk have a subject with items that are yet to be tried.
    fn expect_scores(&self, state: &mut State<'a>, chunk: &Chunk<'_, '_>, singly: &[usize]) {
        for i in singly.iter().filter(|i| self.is_scored(**i)) {
            state.retried.entry(self.items[*i].subject.as_str()).or_default();
        }
        if state.retried.is_empty() {
            return;
        }
        for i in chunk.items().filter(|i| self.is_scored(*i)) {
            if let Some(retried) = state.retried.get_mut(self.items[i].subject.as_str()) {
                retried.items.push(i);
            }
        }
    }

    /// Gives the items of a subject that have an outcome its new score. All entries of one script have the same score,
    /// so this does its work once for each script and subject.
    fn rescore(&self, state: &mut State<'a>, subject: &str, score: Option<Value>) {
        let State { progress, retried, .. } = state;
        let Some(retried) = retried.get_mut(subject) else { return };
        if retried.score.replace(score) == Some(score) {
            return;
        }
        for i in &retried.items {
            let call = self.call_of[*i];
            let Origin { taken, first, .. } = self.calls[call];
            progress[call].rescore(taken + i - first, score);
        }
    }

    fn note(&self, state: &mut State<'a>, item: usize, outcome: Outcome, frame: Frame) {
        let call = self.call_of[item];
        let Origin { taken, first, wants_score } = self.calls[call];
        let outcome = if wants_score { outcome } else { unscored(outcome) };
        state.progress[call].settle(taken + item - first, outcome, frame);
    }

    /// Marks the calls of these items as failed. Other items of the calls may have been counted.
    pub fn fail(&self, items: impl IntoIterator<Item = usize>, trouble: &Trouble) {
        let mut state = self.state.lock();
        if state.latest.is_err() {
            state.latest = Err(trouble.clone());
        }
        for i in items {
            state.progress[self.call_of[i]].fail(trouble.clone());
        }
    }

    /// Returns the progress of each call. Failed calls, and calls without items, are answered.
    pub fn finish(self) -> Vec<CallProgress> {
        let State { mut progress, latest, .. } = self.state.into_inner();
        for call in &mut progress {
            if call.is_in_trouble() {
                call.finish(None);
            } else if call.is_empty() {
                match &latest {
                    Ok(frame) => call.finish(Some(*frame)),
                    Err(trouble) => {
                        call.fail(trouble.clone());
                        call.finish(None);
                    }
                }
            }
        }
        progress
    }
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

    use tokio::sync::oneshot::{self, Receiver};

    use super::*;
    use crate::board::{Amount, BoardName, Change, Definition, EventId, Generation, Subject};
    use crate::store::redis::keys::StoreKeys;
    use crate::store::redis::part::Part;
    use crate::store::redis::store_clock::Start;
    use crate::store::redis::writes::chunk::Budget;
    use crate::store::{Added, Batch, Result, StoreError};

    const SKEW: i64 = 5_000;

    fn board() -> Arc<Board> {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        Arc::new(Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap())
    }

    fn t(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_plan_is_valid_while_every_window_of_the_board_stays() {
        let text = r#"{"metric":"COUNT(2h, like, post)","slot":"1h","windows":["3m/1m","all"]}"#;
        let definition: Definition = serde_json::from_str(text).unwrap();
        let board = Arc::new(Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap());
        let part_batches = [part_batch(&board, vec![item("a", 1)], false)];
        let now = t("2026-01-01T10:30:30Z");
        let validity = flush(&part_batches).0.validity(&basis(&board, now, true), &[0]);
        let Preamble { window, low, high } = validity.preamble;
        assert_eq!((window, low, high), (board.window_at(now), t("2026-01-01T10:30:00Z"), t("2026-01-01T10:31:00Z")));
        let further: Vec<Window> = board.further().iter().map(|board| board.window_at(now)).collect();
        assert_eq!(*validity.further, *further);
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

    fn part_batch(board: &Arc<Board>, increments: Vec<Increment>, return_scores: bool) -> PartBatch {
        let keys = StoreKeys::new("p").board(board.name(), board.generation());
        let part = Part::new(board.clone(), keys, false, Start::believed(Timestamp::EPOCH));
        PartBatch { part: Arc::new(part), batch: Batch { increments, return_scores } }
    }

    fn flush(part_batches: &[PartBatch]) -> (Flush<'_>, Vec<Receiver<Result<Added>>>) {
        let progress = |part_batch: &PartBatch| {
            let (answer, answered) = oneshot::channel();
            (CallProgress::new(part_batch.batch.increments.len(), answer, "host:1".into()), answered)
        };
        let (progress, answers) = part_batches.iter().map(progress).unzip();
        let all = part_batches.iter().map(|part_batch| (part_batch, 0..part_batch.batch.increments.len()));
        (Flush::new(all, progress), answers)
    }

    fn basis(board: &Board, now: Timestamp, strict: bool) -> Basis<'_> {
        Basis { board, window: board.window_at(now), now, max_skew: SKEW, strict, alone: false }
    }

    #[test]
    fn a_plan_is_valid_while_the_placement_of_every_item_is_unchanged() {
        let board = board();
        let now = t("2026-01-01T10:30:00Z");
        let at = |millis: i64| Increment { at: Some(now.plus_millis(millis)), ..item("a", 1) };
        let validity = |increments: Vec<Increment>, strict| {
            let part_batches = [part_batch(&board, increments, false)];
            let (flush, _) = flush(&part_batches);
            let items: Vec<usize> = (0..flush.len()).collect();
            let Preamble { low, high, .. } = flush.validity(&basis(&board, now, strict), &items).preamble;
            (low, high)
        };
        let window = board.window_at(now);
        assert_eq!(validity(vec![item("a", 1)], true), (window.head, window.end));
        // Past items are judged by the window alone.
        assert_eq!(validity(vec![at(-3_600_000), at(-7_200_000)], true), (window.head, window.end));
        // An item 3 s ahead is acceptable from 2 s ago on. An item 7 s ahead is too early until 2 s from now.
        let items = || vec![at(3_000), at(SKEW + 2_000), at(-1)];
        assert_eq!(validity(items(), true), (now.plus_millis(3_000 - SKEW), now.plus_millis(2_000)));
        assert_eq!(validity(items(), false), (now.plus_millis(3_000 - SKEW), window.end));
        // The dedupe buckets of a horizon of 2 h begin with the hours.
        let with_id = Increment { id: Some(EventId::parse("x").unwrap()), ..item("a", 1) };
        assert_eq!(validity(vec![with_id], true), (window.head, window.end));
    }

    #[test]
    fn each_caller_receives_the_outcomes_of_its_own_items() {
        let board = board();
        let now = t("2026-01-01T10:30:00Z");
        let part_batches = [
            part_batch(&board, vec![item("a", 1), item("b", 1)], false),
            part_batch(&board, vec![item("a", 1), item("c", i64::MAX), item("d", i64::MAX)], true),
            part_batch(&board, vec![item("c", i64::MAX), item("e", 1)], false),
            part_batch(&board, vec![], true),
        ];
        let (flush, answers) = flush(&part_batches);
        let basis = basis(&board, now, true);
        let plan = flush.plan(&basis, &(0..flush.len()).collect::<Vec<_>>());
        let budget = Budget::new(&board, true);
        let wants = |entry: &Entry<'_>| flush.wants_score(entry);
        let chunks = budget.divide(&plan, false, wants, |i| &flush.item(i).subject, false);
        assert_eq!((chunks.len(), chunks[0].entries.len()), (1, 5));
        let wanted: Vec<bool> = chunks[0].entries.iter().map(wants).collect();
        assert_eq!(wanted, [true, false, true, true, false]);

        let frame = Frame { window: basis.window, as_of: now, retiring: 0 };
        let entry_replies = |entry, outcome: &str, score: Option<i64>| EntryReply {
            entry,
            outcome: outcome.to_owned(),
            score: score.map(|units| Value::Exact(Amount(units))),
        };
        let all = [
            entry_replies(0, "counted", Some(2)),
            entry_replies(2, "refused", None),
            entry_replies(3, "refused", None),
            entry_replies(4, "damaged", None),
        ];
        let singly = flush.settle(&chunks[0], frame, &all, None);
        assert_eq!(singly, [3, 5], "the sum for c is tried singly");
        // Of the second call, the item for c is left.
        drop(chunks);
        let mut alone = flush.plan(&Basis { alone: true, ..basis }, &[3, 5]);
        alone.entries.truncate(1);
        let chunks = budget.divide(&alone, false, wants, |i| &flush.item(i).subject, false);
        flush.settle(&chunks[0], frame, &[entry_replies(0, "refused", None)], None);
        let progress = flush.finish();
        let told: Vec<Option<Result<Added>>> = answers.into_iter().map(|mut answer| answer.try_recv().ok()).collect();
        let counted = |score: Option<i64>| Outcome::Counted { score: score.map(|units| Value::Exact(Amount(units))) };
        let refused = Outcome::Rejected(Rejection::OutOfRange);
        assert_eq!(told[0].as_ref().unwrap().as_ref().unwrap().outcomes, [counted(None), counted(None)]);
        assert_eq!(told[1].as_ref().unwrap().as_ref().unwrap().outcomes, [counted(Some(2)), refused, refused]);
        assert!(matches!(told[2], Some(Err(StoreError::Corrupt { .. }))), "{told:?}");
        assert_eq!(told[3].as_ref().unwrap().as_ref().unwrap().outcomes, []);
        assert!(progress.iter().all(CallProgress::is_answered));
    }
}
