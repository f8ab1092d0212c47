//! The scores of given subjects, and their ranks among the lines of all partitions.

use std::collections::HashSet;
use std::sync::Arc;

use super::{
    MergeError, Merged, MergedRead, PartitionReads, ROUNDS, Round, Scored, Scores, Share, Stretch, of_one_head,
    take_apart,
};
use crate::board::{Amount, EXACT_MAX, Order, Subject, Value};
use crate::store::place::compare_scores;

/// The number of scores up to which scores that are only expected are counted too. It bounds the cost of a call.
const COUNTED: usize = 256;

/// The number of lines that are read on each side of each score, in each round that counts. It is small, because they
/// are read for every score.
const NEAR: [u64; ROUNDS - 1] = [0, 4, 8, 8];

/// Where a changing score is expected in the next round, in multiples of its last change, the most useful one first.
const STEPS: [i64; 4] = [2, 1, 4, -1];

/// The score of a subject, the number of lines of all partitions with a strictly better one, and the number of those that
/// are not worse. All are `None` if the subject is not ranked, and the numbers if they were not requested. Only a lone
/// partition counts the last one; [`ties`](super::ties) asks several partitions for it.
pub(in crate::store::redis) type FoundScore = (Option<Value>, Option<u64>, Option<u64>);

/// Reads the scores of the subjects of each partition, and, with `ranks`, counts the better lines of all partitions.
///
/// The first round asks the subjects' partitions for the scores. The second round asks all partitions for the number of
/// lines that are better than each of these scores, and for the scores again. If a score is a different one by then,
/// its count is known only if no other line is between it and the scores next to it that were counted. Otherwise a
/// further round counts the new score, and also reads the lines next to each score and counts the scores that the
/// subject may have by then. So it is enough if the score changes by little, or as it did before.
pub(in crate::store::redis) async fn scores<P: PartitionReads>(
    partitions: &P,
    order: Order,
    mut subjects: Vec<Vec<Subject>>,
    ranks: bool,
) -> MergedRead<P, Vec<Vec<FoundScore>>> {
    let all: Vec<usize> = (0..partitions.count()).collect();
    let own: Vec<usize> = all.iter().copied().filter(|part| !subjects[*part].is_empty()).collect();
    let question = |subjects: Vec<Subject>, ranks| Scores::of(subjects.into(), ranks);
    if let [only] = &mut *subjects {
        let question = question(std::mem::take(only), ranks);
        let round = Round { at_least: None, questions: vec![(0, question)] };
        let share = partitions.scores(round).await.map_err(MergeError::Partition)?.pop();
        let Share { frame, version, said } = share.ok_or(MergeError::Impossible("nothing"))?;
        let mut better = said.better_than_subjects.into_iter();
        let mut not_worse = said.not_worse_than_subjects.into_iter();
        let of = |score: Option<Value>| {
            let (better, not_worse) = (better.next(), not_worse.next());
            (score, better.filter(|_| score.is_some()), not_worse.filter(|_| score.is_some()))
        };
        let found = said.scores.into_iter().map(of);
        return Ok(Merged { frame, versions: vec![version], total: said.total, found: vec![found.collect()] });
    }
    let mut questions: Vec<Scores> = subjects.into_iter().map(|subjects| question(subjects, false)).collect();
    let (mut newest, mut latest) = (None, Vec::new());
    if ranks {
        let found = of_one_head(&own, None, |i| questions[i].clone(), |round| partitions.scores(round)).await?;
        newest = found.first().map(Share::head);
        latest = found.into_iter().flat_map(|share| share.said.scores).collect();
        count_in(&mut questions, order, &latest, &latest);
    }
    for near in NEAR {
        questions.iter_mut().for_each(|question| question.near = near);
        let shares = of_one_head(&all, newest, |i| questions[i].clone(), |round| partitions.scores(round)).await?;
        newest = shares.first().map(Share::head);
        let (frame, versions, said) = take_apart(shares).ok_or(MergeError::Unsettled)?;
        let total = said.iter().map(|said| said.total).sum();
        let counts: Vec<Counts> = questions
            .iter()
            .zip(&said)
            .map(|(asked, said)| Counts::new(order, asked, said))
            .collect::<Result<_, _>>()?;
        let found = |score: &Option<Value>| match score.filter(|_| ranks) {
            Some(score) => {
                Some((Some(score), Some(counts.iter().map(|part| part.better_than(score)).sum::<Option<_>>()?), None))
            }
            None => Some((*score, None, None)),
        };
        let found = |said: &Scored| said.scores.iter().map(found).collect();
        if let Some(found) = said.iter().map(found).collect() {
            return Ok(Merged { frame, versions, total, found });
        }
        let before = latest;
        latest = said.iter().flat_map(|said| said.scores.iter().copied()).collect();
        count_in(&mut questions, order, &latest, &before);
    }
    Err(MergeError::Unsettled)
}

/// Sets the scores to count: the latest ones, and those that subjects may have next whose score was a different one
/// before. The best score is the first.
fn count_in(questions: &mut [Scores], order: Order, latest: &[Option<Value>], before: &[Option<Value>]) {
    let mut scores: Vec<Value> = latest.iter().flatten().copied().collect();
    let changes = || latest.iter().zip(before).filter_map(|(now, before)| Some(((*now)?, (*before)?)));
    let changes = || changes().filter(|(now, before)| now != before);
    let expected = STEPS.iter().flat_map(|step| changes().filter_map(|(now, before)| moved(now, before, *step)));
    scores.extend(expected.take(COUNTED.saturating_sub(scores.len())).collect::<Vec<_>>());
    scores.sort_unstable_by(|a, b| compare_scores(*a, *b, order));
    scores.dedup();
    let scores: Arc<[Value]> = scores.into();
    for question in questions {
        question.better_than = scores.clone();
    }
}

/// Returns the score after `steps` further changes like that from `before` to `now`.
fn moved(now: Value, before: Value, steps: i64) -> Option<Value> {
    if let (Value::Exact(now), Value::Exact(before)) = (now, before) {
        let change = now.0.saturating_sub(before.0).saturating_mul(steps);
        return Some(Value::Exact(Amount(now.0.saturating_add(change).clamp(-EXACT_MAX, EXACT_MAX))));
    }
    // Adding 0.0 turns −0 into 0.
    let next = (now.as_f64() - before.as_f64()) * steps as f64 + now.as_f64() + 0.0;
    next.is_finite().then_some(Value::Real(next))
}

/// The number of lines of a partition before a point of its order. The point is just before all lines with a score or,
/// with `after`, just after them.
#[derive(Clone, Copy, Debug)]
struct Mark {
    score: Value,
    after: bool,
    lines: u64,
}

/// What is known of the lines of one partition, all of one instant.
pub(super) struct Counts {
    order: Order,
    /// The number of all lines.
    total: u64,
    /// In the order of the ranking, without the start and the end.
    marks: Vec<Mark>,
    /// The scores of the requested subjects, of each one once, the best first.
    requested: Vec<Value>,
}

impl Counts {
    pub(super) fn new<E>(order: Order, asked: &Scores, said: &Scored) -> Result<Self, MergeError<E>> {
        let contradiction = || MergeError::Impossible("counts that contradict each other");
        if said.scores.len() != asked.subjects.len() || said.better.len() != asked.better_than.len() {
            return Err(contradiction());
        }
        let counted = asked.better_than.iter().zip(&said.better);
        let mut marks: Vec<Mark> =
            counted.map(|(score, lines)| Mark { score: *score, after: false, lines: *lines }).collect();
        said.near.iter().for_each(|stretch| mark(stretch, said.total, &mut marks));
        marks.sort_by(|a, b| compare_scores(a.score, b.score, order).then(a.after.cmp(&b.after)));
        if !marks.is_sorted_by_key(|mark| mark.lines) || marks.last().is_some_and(|last| last.lines > said.total) {
            return Err(contradiction());
        }
        let mut seen = HashSet::with_capacity(asked.subjects.len());
        let once = asked.subjects.iter().zip(&said.scores).filter(|(subject, _)| seen.insert(*subject));
        let mut requested: Vec<Value> = once.filter_map(|(_, score)| *score).collect();
        requested.sort_unstable_by(|a, b| compare_scores(*a, *b, order));
        Ok(Self { order, total: said.total, marks, requested })
    }

    /// Returns the number of lines with a strictly better score, or `None` if it is not known.
    ///
    /// It is known at each mark. Between two marks it is known if all lines between them are those of requested
    /// subjects.
    fn better_than(&self, score: Value) -> Option<u64> {
        let next = self.marks.partition_point(|mark| compare_scores(mark.score, score, self.order).is_lt());
        let (before, after) = self.marks.split_at(next);
        // Before the first mark is the start of the ranking, and after the last one is its end.
        let (from, skipped) = before.last().map_or((0, 0), |mark| (mark.lines, self.requested_before(mark)));
        let (till, known) = match after.first() {
            Some(mark) if mark.score == score && !mark.after => return Some(mark.lines),
            Some(mark) => (mark.lines, self.requested_before(mark)),
            None => (self.total, self.requested.len() as u64),
        };
        let here = self.requested_before(&Mark { score, after: false, lines: 0 });
        (till.checked_sub(from)? == known.checked_sub(skipped)?).then(|| from + here.saturating_sub(skipped))
    }

    fn requested_before(&self, mark: &Mark) -> u64 {
        let is_before = |score: &Value| {
            let comparison = compare_scores(*score, mark.score, self.order);
            comparison.is_lt() || mark.after && comparison.is_eq()
        };
        self.requested.partition_point(is_before) as u64
    }
}

/// Adds the marks between lines with different scores.
fn mark(stretch: &Stretch, total: u64, marks: &mut Vec<Mark>) {
    let Stretch { first, better, scores } = stretch;
    let end = first.saturating_add(scores.len() as u64);
    if let (Some(best), Some(last)) = (scores.first(), scores.last()) {
        marks.push(Mark { score: *best, after: false, lines: *better });
        if end == total {
            marks.push(Mark { score: *last, after: true, lines: total });
        }
    }
    for (lines, pair) in (first.saturating_add(1)..).zip(scores.windows(2)) {
        if let [score, next] = pair
            && score != next
        {
            marks.extend([Mark { score: *score, after: true, lines }, Mark { score: *next, after: false, lines }]);
        }
    }
}
