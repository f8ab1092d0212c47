//! The scores of given subjects, and their ranks among the lines of all parts.

use std::collections::HashSet;
use std::sync::Arc;

use super::place::compare_scores;
use super::{Answer, MergeError, Merged, Parts, ROUNDS, Read, Scored, Scores, of_one_head, take_apart};
use crate::board::{Amount, EXACT_MAX, Order, Subject, Value};

/// The number of scores up to which scores that are only expected are counted too. It bounds the cost of a call.
const COUNTED: usize = 512;

/// Where a changing score is expected in the next round, in multiples of its last change, the most useful one first.
const STEPS: [i64; 4] = [2, 1, 4, -1];

/// The score of a subject, and the number of lines of all parts with a strictly better one. Both are `None` if the
/// subject is not ranked, and the number is `None` if ranks were not requested.
pub(in crate::store::redis) type Found = (Option<Value>, Option<u64>);

/// Reads the scores of the subjects of each part, and, with `ranks`, counts the better lines of all parts.
///
/// The first round asks the subjects' parts for the scores. The second round asks all parts for the number of lines
/// that are better than each of these scores, and for the scores again. If a score is a different one by then, its
/// count is known only if no other line is between it and the scores next to it that were counted. Otherwise a further
/// round counts the new score, and the scores that the subject may have by then.
pub(in crate::store::redis) async fn scores<P: Parts>(
    parts: &P,
    order: Order,
    subjects: Vec<Vec<Subject>>,
    ranks: bool,
) -> Read<P, Vec<Vec<Found>>> {
    let all: Vec<usize> = (0..parts.count()).collect();
    let own: Vec<usize> = all.iter().copied().filter(|part| !subjects[*part].is_empty()).collect();
    let question = |subjects: Vec<Subject>| Scores { subjects: subjects.into(), better_than: Arc::default() };
    let mut questions: Vec<Scores> = subjects.into_iter().map(question).collect();
    let (mut newest, mut latest) = (None, Vec::new());
    if ranks {
        let found = of_one_head(&own, None, |part, at_least| parts.scores(part, at_least, &questions[part])).await?;
        newest = found.first().map(Answer::head);
        latest = found.into_iter().flat_map(|answer| answer.said.scores).collect();
        count_in(&mut questions, order, &latest, &latest);
    }
    for _ in 1..ROUNDS {
        let answers =
            of_one_head(&all, newest, |part, at_least| parts.scores(part, at_least, &questions[part])).await?;
        newest = answers.first().map(Answer::head);
        let (frame, versions, said) = take_apart(answers).ok_or(MergeError::Unsettled)?;
        let total = said.iter().map(|said| said.total).sum();
        let counts: Vec<Counts<'_>> = questions
            .iter()
            .zip(&said)
            .map(|(asked, said)| Counts::new(order, asked, said))
            .collect::<Result<_, _>>()?;
        let found = |score: &Option<Value>| match score.filter(|_| ranks) {
            Some(score) => {
                Some((Some(score), Some(counts.iter().map(|part| part.better_than(score)).sum::<Option<_>>()?)))
            }
            None => Some((*score, None)),
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

/// What is known of the lines of one part, all of one instant.
pub(super) struct Counts<'a> {
    order: Order,
    asked: &'a [Value],
    said: &'a Scored,
    /// The scores of the requested subjects, of each one once, the best first.
    lines: Vec<Value>,
}

impl<'a> Counts<'a> {
    pub(super) fn new<E>(order: Order, asked: &'a Scores, said: &'a Scored) -> Result<Self, MergeError<E>> {
        let is_complete = said.scores.len() == asked.subjects.len() && said.better.len() == asked.better_than.len();
        if !is_complete || !said.better.is_sorted() || said.better.last().is_some_and(|last| *last > said.total) {
            return Err(MergeError::Impossible("counts that contradict each other"));
        }
        let mut seen = HashSet::with_capacity(asked.subjects.len());
        let once = asked.subjects.iter().zip(&said.scores).filter(|(subject, _)| seen.insert(*subject));
        let mut lines: Vec<Value> = once.filter_map(|(_, score)| *score).collect();
        lines.sort_unstable_by(|a, b| compare_scores(*a, *b, order));
        Ok(Self { order, asked: &asked.better_than, said, lines })
    }

    /// Returns the number of lines with a strictly better score, or `None` if it is not known.
    ///
    /// If the score was not counted, the number is known if all lines between the scores on either side of it that were
    /// counted are those of requested subjects.
    fn better_than(&self, score: Value) -> Option<u64> {
        let next = position(self.asked, score, self.order);
        if self.asked.get(next) == Some(&score) {
            return self.said.better.get(next).copied();
        }
        let requested = |score: Value| position(&self.lines, score, self.order) as u64;
        // Before the first score is the start of the ranking, and after the last one is its end.
        let (from, skipped) = match next.checked_sub(1) {
            Some(last) => (self.said.better[last], requested(self.asked[last])),
            None => (0, 0),
        };
        let (till, known) = match self.asked.get(next) {
            Some(score) => (self.said.better[next], requested(*score)),
            None => (self.said.total, self.lines.len() as u64),
        };
        (till.checked_sub(from)? == known.checked_sub(skipped)?)
            .then(|| from + requested(score).saturating_sub(skipped))
    }
}

/// Returns the number of scores that are strictly better, of scores of which the best is the first.
fn position(scores: &[Value], score: Value, order: Order) -> usize {
    scores.partition_point(|other| compare_scores(*other, score, order).is_lt())
}
