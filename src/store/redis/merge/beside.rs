//! Pages next to a place: the lines of each part next to it, merged.

use super::further::{Side, further};
use super::region::{Region, Segment, Until};
use super::top::behind;
use super::{Answer, Center, MARGIN, MergeError, Merged, Near, Parts, ROUNDS, Read, of_one_head, take_apart};
use crate::board::Order;
use crate::store::place::backward;
use crate::store::{Direction, NextTo, Ranked};

/// Returns the `limit` lines next to a place, and the number of lines of all parts before the first of them.
///
/// Reads an even share plus [`MARGIN`] lines of each part on the requested side of the place, then more lines of the
/// parts whose farthest line is still on the page. Each part also returns the line on the other side of the place,
/// which proves that no line next to the place is missing.
pub(in crate::store::redis) async fn beside<P: Parts>(
    parts: &P,
    order: Order,
    next_to: &NextTo,
    limit: u64,
) -> Read<P, (u64, Vec<Ranked>)> {
    let count = parts.count();
    // One more, because the line at the place itself may not be on the page.
    let share = limit.div_ceil(count as u64).saturating_add(MARGIN + 1);
    let mut questions = vec![question(next_to, share); count];
    let mut answers: Vec<Option<Answer<(), P::Version>>> = (0..count).map(|_| None).collect();
    let mut segments: Vec<Option<Segment>> = vec![None; count];
    let mut due: Vec<usize> = (0..count).collect();
    for _ in 0..ROUNDS {
        let newest = answers.iter().flatten().map(Answer::head).max();
        let asked = of_one_head(&due, newest, |part, at_least| parts.lines(part, at_least, &questions[part])).await?;
        for (part, answer) in due.iter().zip(asked) {
            let Answer { frame, version, said } = answer;
            segments[*part] = Some(Segment::of_lines(said, order)?);
            answers[*part] = Some(Answer { frame, version, said: () });
        }
        due = behind(&answers);
        if !due.is_empty() {
            continue;
        }
        let region = Region::new(order, segments.into_iter().flatten().collect());
        let boundary = region.boundary(next_to).ok_or(MergeError::Impossible("lines that are not next to a place"))?;
        let (first, wanted) = next_to.span(boundary, limit);
        if let Some(found) = region.page(first, wanted) {
            let answers = answers.into_iter().flatten().collect();
            let (frame, versions, _) = take_apart(answers).ok_or(MergeError::Unsettled)?;
            return Ok(Merged { frame, versions, total: region.total(), found: (first, found) });
        }
        for (part, more) in more_lines(order, next_to, &region.segments, wanted) {
            questions[part] = question(next_to, more.saturating_add(MARGIN));
            due.push(part);
        }
        segments = region.segments.into_iter().map(Some).collect();
    }
    Err(MergeError::Unsettled)
}

/// Asks for this many lines on the requested side of a place, including the line at it, and one line on the other side.
fn question(next_to: &NextTo, lines: u64) -> Near {
    let (before, after) = match next_to.direction {
        Direction::Forward => (1, lines),
        Direction::Backward => (lines, 1),
    };
    Near { center: Center::Place(next_to.place.clone()), before, after }
}

/// Returns each part of which more lines are needed to know the `wanted` lines of all parts next to the place, with the
/// required number of its lines on that side.
fn more_lines(order: Order, next_to: &NextTo, segments: &[Segment], wanted: u64) -> Vec<(usize, u64)> {
    let side = |segment: &Segment| match next_to.direction {
        Direction::Forward => (segment.until != Until::End, segment.boundary(next_to, order)..segment.lines.len()),
        Direction::Backward => (segment.skipped > 0, 0..segment.boundary(next_to, order)),
    };
    let sides: Vec<Side<'_>> = (segments.iter())
        .map(|segment| {
            let (open, range) = side(segment);
            let mut lines: Vec<_> = segment.lines[range].iter().collect();
            if next_to.direction == Direction::Backward {
                lines.reverse();
            }
            Side { lines, open }
        })
        .collect();
    let order = if next_to.direction == Direction::Forward { order } else { backward(order) };
    let more = further(order, &sides, wanted).into_iter().enumerate();
    // One more, because the line at the place itself may not be on the page.
    let all = |(part, more): (usize, u64)| (part, sides[part].lines.len() as u64 + more + 1);
    more.filter(|(_, more)| *more > 0).map(all).collect()
}
