//! A section of a ranking in which every line is known.

use std::cmp::Ordering;

use super::{Between, Excerpt, MergeError, Sampled};
use crate::board::{Order, Value};
use crate::store::place::{Place, compare_scores};
use crate::store::{NextTo, Ranked};

/// A number larger than the lines of any partition. Counts up to this can be added without overflow.
pub(super) const MAX_LINES: u64 = 1 << 52;

/// Consecutive lines of one partition: all its lines from one place to a later one.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// The number of all lines of the partition.
    pub total: u64,
    /// The place where the segment begins (inclusive), or `None` for the partition's first line.
    pub from: Option<Place>,
    /// The number of lines of the partition before `from`.
    pub skipped: u64,
    /// The number of lines of the partition with a strictly better score than `from`.
    pub better: u64,
    pub lines: Vec<Place>,
    pub until: Until,
}

/// The end of the known lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Before this place.
    Before(Place),
    /// After this place.
    Through(Place),
    /// After the last line.
    End,
}

impl Until {
    fn includes(&self, place: &Place, order: Order) -> bool {
        match self {
            Until::Before(end) => place.compare(end, order) == Ordering::Less,
            Until::Through(end) => place.compare(end, order) != Ordering::Greater,
            Until::End => true,
        }
    }
}

impl Segment {
    /// Creates the segment of consecutive lines that a partition returned.
    pub fn of_lines<X, E>(said: Excerpt<X>, order: Order) -> Result<Self, MergeError<E>> {
        let Excerpt { total, first, items, .. } = said;
        let better = items.first().map_or(0, |line| line.rank.saturating_sub(1));
        let lines: Vec<Place> =
            items.into_iter().map(|Ranked { subject, score, .. }| Place { score, subject }).collect();
        check_order(lines.iter(), order)?;
        let after = first.saturating_add(lines.len() as u64);
        if total > MAX_LINES || after > total || better > first || (lines.is_empty() && total > 0) {
            return Err(MergeError::Impossible("lines that contradict its counts"));
        }
        let from = if first > 0 { lines.first().cloned() } else { None };
        let until = match lines.last() {
            Some(last) if after < total => Until::Through(last.clone()),
            _ => Until::End,
        };
        Ok(Self { total, from, skipped: first, better, lines, until })
    }

    /// Creates the segment between two places, if a partition has returned all lines between them.
    pub fn of_all_between(said: Sampled, question: &Between) -> Self {
        Self {
            total: said.total,
            from: question.lo.clone(),
            skipped: said.before_lo,
            better: said.better_than_lo,
            lines: said.lines.into_iter().map(|(_, place)| place).collect(),
            until: question.hi.clone().map_or(Until::End, Until::Before),
        }
    }

    /// Returns the number of lines of the segment before a place.
    pub fn lines_before(&self, place: &Place, order: Order) -> usize {
        self.lines.partition_point(|line| line.compare(place, order) == Ordering::Less)
    }

    /// Returns the number of lines of the segment before the boundary of the lines next to a place.
    pub fn boundary(&self, next_to: &NextTo, order: Order) -> usize {
        let place = &next_to.place;
        let before = self.lines_before(place, order);
        if next_to.is_boundary_after_line() && self.has_line(place, order) { before + 1 } else { before }
    }

    /// Returns whether there is a line at this place.
    fn has_line(&self, place: &Place, order: Order) -> bool {
        self.lines.get(self.lines_before(place, order)).is_some_and(|line| line.compare(place, order).is_eq())
    }

    /// Returns the number of lines of the partition with a strictly better score. Correct for the score of any place in
    /// the segment: if it is the score of `from`, all better lines are before the segment; otherwise the last of them
    /// is in the segment or directly before it.
    fn better_than(&self, score: Value, order: Order) -> u64 {
        match &self.from {
            Some(from) if from.score == score => self.better,
            _ => {
                let is_better = |line: &Place| compare_scores(line.score, score, order) == Ordering::Less;
                self.skipped + self.lines.partition_point(is_better) as u64
            }
        }
    }
}

/// Checks that lines are in the order of the ranking.
pub(super) fn check_order<'a, E>(
    lines: impl Iterator<Item = &'a Place> + Clone,
    order: Order,
) -> Result<(), MergeError<E>> {
    let mut pairs = lines.clone().zip(lines.skip(1));
    match pairs.all(|(a, b)| a.compare(b, order) == Ordering::Less) {
        true => Ok(()),
        false => Err(MergeError::Impossible("lines that are not in order")),
    }
}

/// The lines of all partitions from one place to a later one: those that are within the segments of all partitions.
#[derive(Clone, Debug)]
pub(super) struct Region {
    order: Order,
    pub segments: Vec<Segment>,
    from: Option<Place>,
    until: Until,
    /// The number of lines of all partitions before the region.
    start: u64,
    lines: Vec<Place>,
}

impl Region {
    pub fn new(order: Order, segments: Vec<Segment>) -> Self {
        let mut from: Option<&Place> = None;
        let mut until = &Until::End;
        for segment in &segments {
            let begins = segment.from.as_ref();
            if begins.is_some_and(|place| from.is_none_or(|from| place.compare(from, order) == Ordering::Greater)) {
                from = begins;
            }
            let ends_earlier = match &segment.until {
                Until::Before(end) => until.includes(end, order),
                Until::Through(end) => match until {
                    Until::Through(other) => end.compare(other, order) == Ordering::Less,
                    _ => until.includes(end, order),
                },
                Until::End => false,
            };
            if ends_earlier {
                until = &segment.until;
            }
        }
        let (mut start, mut lines) = (0, Vec::new());
        for segment in &segments {
            let before = from.map_or(0, |from| segment.lines_before(from, order));
            start += segment.skipped + before as u64;
            let inside = segment.lines[before..].iter().take_while(|line| until.includes(line, order));
            lines.extend(inside.cloned());
        }
        // The lines of each partition are in order already, which makes this sort fast.
        lines.sort_by(|a, b| a.compare(b, order));
        let (from, until) = (from.cloned(), until.clone());
        Self { order, segments, from, until, start, lines }
    }

    /// Returns the number of lines of all partitions.
    pub fn total(&self) -> u64 {
        self.segments.iter().map(|segment| segment.total).sum()
    }

    /// Returns the number of lines of all partitions before a place, or `None` if the place is not in the region.
    pub fn position(&self, place: &Place) -> Option<u64> {
        let after_start = self.from.as_ref().is_none_or(|from| place.compare(from, self.order) != Ordering::Less);
        let before = self.lines.partition_point(|line| line.compare(place, self.order) == Ordering::Less);
        (after_start && self.until.includes(place, self.order)).then(|| self.start + before as u64)
    }

    /// Returns the number of lines of all partitions before the boundary of the lines next to a place, or `None` if the
    /// place is not in the region.
    pub fn boundary(&self, next_to: &NextTo) -> Option<u64> {
        let before = self.position(&next_to.place)?;
        let has_line = || self.segments.iter().any(|segment| segment.has_line(&next_to.place, self.order));
        Some(before + u64::from(next_to.is_boundary_after_line() && has_line()))
    }

    /// Returns the number of lines of all partitions with a strictly better score than this one, which must be the
    /// score of a place in the region.
    pub fn better_than(&self, score: Value) -> u64 {
        self.segments.iter().map(|segment| segment.better_than(score, self.order)).sum()
    }

    /// Returns the lines from position `offset` on, at most `limit`, with their ranks. Returns `None` if some of them
    /// are not in the region.
    pub fn page(&self, offset: u64, limit: u64) -> Option<Vec<Ranked>> {
        let end = offset.saturating_add(limit).min(self.total());
        if end <= offset {
            return Some(Vec::new());
        }
        let first = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let last = usize::try_from(end - self.start).ok()?;
        let lines = self.lines.get(first..last)?;
        let mut page: Vec<Ranked> = Vec::with_capacity(lines.len());
        for (line, place) in lines.iter().zip(offset + 1..) {
            let rank = match page.last() {
                None => self.better_than(line.score) + 1,
                Some(before) if before.score == line.score => before.rank,
                Some(_) => place,
            };
            page.push(Ranked { rank, subject: line.subject.clone(), score: line.score });
        }
        Some(page)
    }
}
