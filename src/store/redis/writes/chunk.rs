//! Division of a plan into scripts. The cost of each keeps the server busy for at most about 2 ms, as measured on a
//! server where an increment with two commands of its own takes 10 µs.
//!
//! The cost depends on what a script looks at: entries, cells that are combined into scores, and bytes. Those of the
//! limits that depend on the kind are in `kinds`. A single entry is within every limit; if it would not be, its score
//! is read after the write (see `score`).

use std::collections::HashSet;

use crate::board::{Board, Change, Edition, Subject};
use crate::store::redis::kinds::{self, CHANGES};
use crate::store::{Entry, Increment, MAX_EDITIONS, Plan, Rejection};

/// The largest number of entries in one call of `write.lua`.
const AMOUNTS: usize = 250;
/// The approximate number of items of a call that are sent together if each score is expensive.
const READ: usize = 8;
/// The largest number of bytes of subjects, values and ids in one script, unless its first entry alone has more.
const BYTES: usize = 128 << 10;

/// The limits for one script on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// The number of amounts that are added, in any order if the kind allows it.
    amounts: usize,
    /// The number of other changes, which are applied one after the other.
    changes: usize,
    /// The number of cells, and the number of them that the score of one subject needs.
    cells: usize,
    per_score: usize,
    /// Whether scores are read after the write.
    pub reads_scores: bool,
}

/// The part of a plan that one script handles.
#[derive(Debug)]
pub(super) struct PlanChunk<'p, 'a> {
    pub entries: &'p [Entry<'a>],
    /// Items that belong to no slot. They were judged by a window and a time that this script confirms.
    pub rejected: &'p [(usize, Rejection)],
    /// Items for which nothing is left to do, judged in the same way. After its entries, the script returns the scores
    /// of the items in `looks`.
    pub without_effect: &'p [usize],
    pub looks: &'p [usize],
}

impl Budget {
    /// Returns the limits for calls of which some want scores, or none does.
    pub fn new(board: &Board, is_scored: bool) -> Self {
        let main = board.edition().main();
        let kept = main.kept() as usize;
        let looks = is_scored && !main.is_ranked() && !main.is_from_first();
        let kind = kinds::of(board.kind());
        let limits = kind.limits();
        let cells = limits.combined_cells;
        // Values are counted by the server.
        let per_score = if looks && !board.kind().remembers_values() { kept } else { 0 };
        let reads_scores = per_score > cells;
        // An entry costs as much in each track.
        let tracks = board.written_tracks().len();
        let most = |edition: &Edition| match edition.main().is_ranked() {
            true => kinds::of(edition.kind()).limits().ranked_changes,
            false => CHANGES,
        };
        let changes = board.editions().iter().map(most).min().unwrap_or(CHANGES);
        let changes = (changes / tracks).max(1);
        Self {
            amounts: if kinds::adds_amounts(board) { AMOUNTS / tracks } else { changes },
            changes,
            cells,
            per_score: if reads_scores { 0 } else { per_score },
            reads_scores,
        }
    }

    /// Returns the largest number of entries of one script, if they are applied in their order or not.
    pub fn entries(&self, in_order: bool) -> usize {
        if in_order { self.changes } else { self.amounts }
    }

    /// Returns the approximate number of such items that one script takes.
    pub fn items(&self, increments: &[Increment]) -> usize {
        if self.reads_scores {
            return READ;
        }
        if let Some(scores) = self.cells.checked_div(self.per_score) {
            // A small batch stays together, so that all items of a subject get the same score.
            return scores.clamp(READ.min(self.changes), self.changes);
        }
        match increments.first() {
            // Most of them are added up before they are sent.
            Some(Increment { id: None, change: Change::Amount(_), .. }) => 2 * self.amounts,
            Some(Increment { change: Change::Amount(_), .. }) => self.amounts,
            _ => self.changes,
        }
    }

    /// Divides a plan. There is at least one chunk, whose script confirms the window. Items for which nothing is left
    /// to do come after all entries, because their score is the one after these. They are sent to a script only to
    /// `look`.
    pub fn divide<'p, 'a>(
        &self,
        plan: &'p Plan<'a>,
        in_order: bool,
        wants_score: impl Fn(&Entry<'a>) -> bool,
        subject: impl Fn(usize) -> &'a Subject,
        looks: bool,
    ) -> Vec<PlanChunk<'p, 'a>> {
        let most = self.entries(in_order);
        let chunk = |entries, without_effect, looks| PlanChunk { entries, rejected: &[], without_effect, looks };
        let mut chunks = Vec::new();
        let mut rest = &plan.entries[..];
        while !rest.is_empty() {
            let scored = |entry: &Entry<'a>| wants_score(entry).then_some(entry.subject);
            let fitting = self.fitting(rest.iter().map(|e| (scored(e), bytes(e))), most);
            let (entries, after) = rest.split_at(between_subjects(rest, fitting, &wants_score));
            chunks.push(chunk(entries, &[][..], &[][..]));
            rest = after;
        }
        let mut rest = &plan.without_effect[..];
        while !rest.is_empty() {
            let size = match looks {
                true => self.fitting(rest.iter().map(|item| (Some(subject(*item)), 0)), most),
                false => rest.len(),
            };
            let (without_effect, after) = rest.split_at(size);
            chunks.push(chunk(&[][..], without_effect, if looks { without_effect } else { &[] }));
            rest = after;
        }
        if chunks.is_empty() {
            chunks.push(chunk(&[][..], &[][..], &[][..]));
        }
        chunks[0].rejected = &plan.rejected;
        chunks
    }

    /// Returns how many of the next elements fit into one script, at least one. Each element consists of the subject
    /// whose score is wanted, if any, and its size in bytes.
    fn fitting<'a>(&self, next: impl Iterator<Item = (Option<&'a Subject>, usize)>, most: usize) -> usize {
        let mut scored: HashSet<&str> = HashSet::new();
        let mut bytes = 0;
        let mut count = 0;
        for (subject, size) in next.take(most) {
            bytes += size;
            if let (Some(subject), true) = (subject, self.per_score > 0) {
                scored.insert(subject.as_str());
            }
            if count > 0 && (bytes > BYTES || scored.len() * self.per_score > self.cells) {
                break;
            }
            count += 1;
        }
        count
    }
}

impl<'p, 'a> PlanChunk<'p, 'a> {
    /// Returns all of a plan, of whose items no scores are wanted.
    pub fn whole(plan: &'p Plan<'a>) -> Self {
        Self { entries: &plan.entries, rejected: &plan.rejected, without_effect: &plan.without_effect, looks: &[] }
    }
}

impl PlanChunk<'_, '_> {
    pub fn items(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries
            .iter()
            .flat_map(|entry| entry.items.iter().copied())
            .chain(self.rejected.iter().map(|(i, _)| *i))
            .chain(self.without_effect.iter().copied())
    }
}

/// Returns the number of entries to cut off, at most `most`. If that would separate two entries of a subject whose
/// score is wanted, the cut is before the first entry of that subject, unless no entry would be left.
fn between_subjects<'a>(entries: &[Entry<'a>], most: usize, wants_score: impl Fn(&Entry<'a>) -> bool) -> usize {
    let Some(next) = entries.get(most).filter(|next| wants_score(next)) else { return most };
    let run = entries[..most].iter().rev().take_while(|entry| entry.subject == next.subject).count();
    if run < most { most - run } else { most }
}

fn bytes(entry: &Entry<'_>) -> usize {
    let value = |edition| match entry.change(edition).as_ref().map(|(change, _)| &**change) {
        Some(Change::Seen(value) | Change::Forget(value)) => value.as_str().len(),
        Some(Change::Amount(_) | Change::Set { .. } | Change::Not(_)) | None => 0,
    };
    let value: usize = if entry.sent.is_some() { (0..MAX_EDITIONS).map(value).sum() } else { 0 };
    entry.subject.as_str().len() + entry.id.map_or(0, |id| id.as_str().len()) + value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Amount, BoardName, Definition, Generation, Timestamp};
    use crate::store::{Slots, Sum};

    fn board(metric: &str, ranked: bool) -> Board {
        let definition = Definition { ranked, ..Definition::new(metric.parse().unwrap(), "1m".parse().unwrap()) };
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
    }

    /// Returns the number of scripts for 1,000 amounts of this number of subjects, and the number of entries in the
    /// first script.
    fn sizes(metric: &str, ranked: bool, scored: bool, subjects: usize, bytes: usize) -> (usize, usize) {
        let board = board(metric, ranked);
        let names: Vec<Subject> = (0..subjects).map(|i| Subject::parse(&format!("{i:0bytes$}")).unwrap()).collect();
        let entry = |i: usize| Entry {
            slots: Slots::First(Timestamp::EPOCH),
            at: Timestamp::EPOCH,
            subject: &names[i % subjects],
            sums: [Some(Sum { amount: Amount(1), range: (Amount(0), Amount(1)) }), None],
            missed: [None; 2],
            sent: None,
            id: None,
            items: vec![i],
        };
        let plan = Plan { entries: (0..1_000).map(entry).collect(), ..Plan::default() };
        let in_order = !(ranked && metric.starts_with("SUM"));
        let budget = Budget::new(&board, scored);
        let chunks = budget.divide(&plan, in_order, |_| scored, |i| &names[i % subjects], false);
        assert_eq!(chunks.iter().map(|chunk| chunk.entries.len()).sum::<usize>(), 1_000);
        (chunks.len(), chunks[0].entries.len())
    }

    #[test]
    fn the_cost_of_a_script_is_bounded() {
        assert_eq!(sizes("SUM(2000m, e, v, s)", true, true, 1_000, 8), (4, 250));
        assert_eq!(sizes("SUM(2000m, e, v, s)", true, true, 1_000, 512), (4, 250));
        assert_eq!(sizes("SUM(2000m, e, v, s)", false, false, 1_000, 8), (10, 100));
        assert_eq!(sizes("SUM(3m, e, v, s)", false, true, 1_000, 8), (10, 100));
        assert_eq!(sizes("SUM(199m, e, v, s)", false, true, 1_000, 8), (50, 20));
        assert_eq!(sizes("SUM(1999m, e, v, s)", false, true, 1_000, 8), (500, 2));
        assert_eq!(sizes("SUM(2000m, e, v, s)", false, true, 1, 8), (10, 100));
        assert_eq!(sizes("AVG(60m, e, v, s)", true, true, 1_000, 8), (10, 100));
        assert_eq!(sizes("APPROX_COUNT_DISTINCT(2000m, e, s, c)", true, false, 1_000, 8), (50, 20));
        assert_eq!(sizes("APPROX_COUNT_DISTINCT(11m, e, s, c)", false, true, 1_000, 8), (500, 2));
        assert_eq!(sizes("COUNT_DISTINCT(2000m, e, s, c)", false, true, 1_000, 8), (10, 100));
    }

    #[test]
    fn chunks_do_not_split_the_entries_of_a_subject_if_they_fit() {
        let names = ["a", "a", "b", "b", "b", "c"].map(|name| Subject::parse(name).unwrap());
        let entry = |subject| Entry {
            slots: Slots::First(Timestamp::EPOCH),
            at: Timestamp::EPOCH,
            subject,
            sums: [Some(Sum { amount: Amount(1), range: (Amount(0), Amount(1)) }), None],
            missed: [None; 2],
            sent: None,
            id: None,
            items: Vec::new(),
        };
        let entries: Vec<Entry<'_>> = names.iter().map(entry).collect();
        let cut = |most, scored| between_subjects(&entries, most, |_| scored);
        assert_eq!([1, 2, 3, 4, 5, 6].map(|most| cut(most, true)), [1, 2, 2, 2, 5, 6]);
        assert_eq!(cut(4, false), 4);
    }

    #[test]
    fn expensive_sketch_scores_are_read_after_the_write() {
        let reads = |metric, ranked, scored| Budget::new(&board(metric, ranked), scored).reads_scores;
        assert!(reads("APPROX_COUNT_DISTINCT(2000m, e, s, c)", false, true));
        assert!(!reads("APPROX_COUNT_DISTINCT(2000m, e, s, c)", false, false));
        assert!(!reads("APPROX_COUNT_DISTINCT(2000m, e, s, c)", true, true));
        assert!(!reads("APPROX_COUNT_DISTINCT(12m, e, s, c)", false, true));
        assert!(!reads("SUM(2000m, e, v, s)", false, true));
        // Then the script itself looks at no cells for scores.
        assert_eq!(sizes("APPROX_COUNT_DISTINCT(2000m, e, s, c)", false, true, 1_000, 8), (10, 100));
    }
}
