//! Bounds on positions in the ranking of all partitions, computed from samples of the partitions.

use std::cmp::Ordering;

use super::region::{MAX_LINES, check_order};
use super::{Between, MergeError, Place, Sampled};
use crate::board::Order;

/// Returns the positions of `samples` evenly spaced lines among those from position `from` to `until` (exclusive). They
/// divide these lines into sections of equal size, so that no two neighboring samples are far apart.
#[cfg(test)]
pub(super) fn sample_positions(from: u64, until: u64, samples: u64) -> impl Iterator<Item = u64> {
    (1..=samples).map(move |i| from + (until - from) * i / (samples + 1))
}

/// A place, with bounds on the number of lines of all partitions before it.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub place: Place,
    pub at_least: u64,
    pub at_most: u64,
}

/// The places with known bounds, in the order of the ranking. Later rounds replace what earlier ones found in the same
/// region. The bounds that remain from earlier rounds may be wrong because of later writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<Sample>);

/// The places next to a page, and the largest possible number of lines between them.
#[derive(Clone, Debug)]
pub(super) struct Bracket {
    pub lo: Option<Place>,
    pub hi: Option<Place>,
    pub lines: u64,
}

impl Samples {
    /// Adds the answers of all partitions to one question.
    pub fn learn(&mut self, order: Order, question: &Between, answers: &[Sampled]) {
        let outside = |sample: &Sample| {
            let before = question.lo.as_ref().is_some_and(|lo| sample.place.compare(lo, order) == Ordering::Less);
            let after = question.hi.as_ref().is_some_and(|hi| sample.place.compare(hi, order) == Ordering::Greater);
            before || after
        };
        self.0.retain(outside);
        self.0.extend(merge(order, answers));
        let mut exact = |place: &Option<Place>, before: u64| {
            if let Some(place) = place {
                self.0.push(Sample { place: place.clone(), at_least: before, at_most: before });
            }
        };
        exact(&question.lo, answers.iter().map(|said| said.before_lo).sum());
        exact(&question.hi, answers.iter().map(|said| said.before_hi).sum());
        self.0.sort_by(|a, b| a.place.compare(&b.place, order));
    }

    /// Returns the narrowest bracket around the positions from `first` to `end` (exclusive), out of `total`.
    pub fn bracket(&self, first: u64, end: u64, total: u64) -> Bracket {
        let lo = self.0.iter().rposition(|sample| sample.at_most <= first);
        let after = lo.map_or(0, |lo| lo + 1);
        let hi = self.0[after..].iter().find(|sample| sample.at_least >= end);
        let lo = lo.map(|lo| &self.0[lo]);
        let (from, until) = (lo.map_or(0, |lo| lo.at_least), hi.map_or(total, |hi| hi.at_most));
        let place = |sample: &Sample| sample.place.clone();
        Bracket { lo: lo.map(place), hi: hi.map(place), lines: until.saturating_sub(from) }
    }
}

/// Checks that a partition's counts and lines are consistent.
pub(super) fn check<E>(order: Order, question: &Between, said: &Sampled) -> Result<(), MergeError<E>> {
    check_order(said.lines.iter().map(|(_, place)| place), order)?;
    let counts = [said.better_than_lo, said.before_lo, said.before_hi, said.total, MAX_LINES].is_sorted();
    let ends =
        (question.lo.is_some() || said.before_lo == 0) && (question.hi.is_some() || said.before_hi == said.total);
    let inside = said.lines.iter().all(|(position, _)| (said.before_lo..said.before_hi).contains(position));
    let rising = said.lines.windows(2).all(|pair| pair[0].0 < pair[1].0);
    match counts && ends && inside && rising {
        true => Ok(()),
        false => Err(MergeError::Impossible("samples that contradict its counts")),
    }
}

/// Returns bounds on the position of each sampled line. The position in its own partition is known. In any other
/// partition it is after the last sample that comes before it, and not after the next one.
fn merge(order: Order, answers: &[Sampled]) -> Vec<Sample> {
    let mut lines: Vec<(usize, u64, &Place)> = Vec::new();
    for (part, said) in answers.iter().enumerate() {
        lines.extend(said.lines.iter().map(|(position, place)| (part, *position, place)));
    }
    lines.sort_by(|a, b| a.2.compare(b.2, order));
    // For each partition, the smallest possible number of its lines before the current place.
    let mut at_least: Vec<u64> = answers.iter().map(|said| said.before_lo).collect();
    let mut next: Vec<usize> = vec![0; answers.len()];
    let upper = |part: usize, next: usize| {
        let said: &Sampled = &answers[part];
        said.lines.get(next).map_or(said.before_hi, |(position, _)| *position)
    };
    let mut least: u64 = at_least.iter().sum();
    let mut most: u64 = (0..answers.len()).map(|part| upper(part, 0)).sum();
    let mut samples = Vec::with_capacity(lines.len());
    for (part, position, place) in lines {
        least += position - at_least[part];
        samples.push(Sample { place: place.clone(), at_least: least, at_most: most });
        at_least[part] = position + 1;
        least += 1;
        next[part] += 1;
        most += upper(part, next[part]) - position;
    }
    samples
}
