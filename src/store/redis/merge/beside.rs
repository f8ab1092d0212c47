//! Pages at a small offset and pages next to a place: the lines of each partition there, merged.

use super::further::{Side, further};
use super::known::{KnownPage, as_known};
use super::region::{Region, Segment, Until};
use super::{
    Center, Found, MARGIN, MergeError, Merged, MergedRead, Near, PartitionReads, ROUNDS, Share, of_one_head, take_apart,
};
use crate::board::Order;
use crate::store::place::backward;
use crate::store::{Direction, NextTo, PageStart};

/// Returns the page, or `None` if it is the `known` one.
///
/// Reads an even share plus [`MARGIN`] lines of each partition from the start, then more lines of the partitions whose
/// farthest line is still on the page. Next to a place, each partition also returns the line on the other side of the
/// place, which proves that no line next to it is missing.
pub(super) async fn page<P: PartitionReads>(
    partitions: &P,
    order: Order,
    start: &PageStart,
    limit: u64,
    known: Option<KnownPage<'_, P::Version>>,
) -> MergedRead<P, Option<Found>> {
    let count = partitions.count();
    let share = match start {
        PageStart::Offset(offset) => offset.saturating_add(limit).div_ceil(count as u64),
        // One more, because the line at the place itself may not be on the page.
        PageStart::Place(_) => limit.div_ceil(count as u64).saturating_add(1),
    };
    let mut questions = vec![question(start, share.saturating_add(MARGIN)); count];
    let mut totals: Vec<Option<Share<u64, P::Version>>> = (0..count).map(|_| None).collect();
    let mut segments: Vec<Option<Segment>> = vec![None; count];
    let (mut unread, mut due) = (Vec::new(), (0..count).collect::<Vec<usize>>());
    for _ in 0..ROUNDS {
        let newest = totals.iter().flatten().map(Share::head).max();
        let shares = of_one_head(&due, newest, |i| questions[i].clone(), |round| partitions.near(round)).await?;
        for (i, share) in due.iter().zip(shares) {
            let (total, said) = share.split(|said| said.total);
            totals[*i] = Some(total);
            unread.push((*i, said));
        }
        due = behind(&totals);
        if !due.is_empty() {
            continue;
        }
        if known.as_ref().is_some_and(|known| known.is_of(&totals.iter().flatten().collect::<Vec<_>>())) {
            return as_known::<P>(totals.into_iter().flatten().collect());
        }
        for (i, said) in unread.drain(..) {
            segments[i] = Some(Segment::of_lines(said, order)?);
        }
        let region = Region::new(order, segments.into_iter().flatten().collect());
        let (first, wanted) = match start {
            PageStart::Offset(offset) => (*offset, limit),
            PageStart::Place(next_to) => {
                let contradiction = MergeError::Impossible("lines that are not next to a place");
                next_to.span(region.boundary(next_to).ok_or(contradiction)?, limit)
            }
        };
        if let Some(found) = region.page(first, wanted) {
            let (frame, versions, _) =
                take_apart(totals.into_iter().flatten().collect()).ok_or(MergeError::Unsettled)?;
            let total = region.total();
            return Ok(Merged { frame, versions, total, found: Some(Found::new(first.min(total), found)) });
        }
        for (i, more) in more_lines(order, start, &region.segments, wanted) {
            questions[i] = question(start, more.saturating_add(MARGIN));
            due.push(i);
        }
        segments = region.segments.into_iter().map(Some).collect();
    }
    Err(MergeError::Unsettled)
}

/// Returns the partitions that have answered with an older head than others.
fn behind<T, V>(shares: &[Option<Share<T, V>>]) -> Vec<usize> {
    let newest = shares.iter().flatten().map(Share::head).max();
    (0..shares.len()).filter(|i| shares[*i].as_ref().map(Share::head) < newest).collect()
}

/// Asks for this many lines from the start on, including a line at the place, and for one line on the other side of it.
fn question(start: &PageStart, lines: u64) -> Near {
    let PageStart::Place(NextTo { place, direction, .. }) = start else { return Near::first(lines) };
    let (before, after) = match direction {
        Direction::Forward => (1, lines),
        Direction::Backward => (lines, 1),
    };
    let center = Center::Place { place: place.clone(), after_line: false };
    Near::around(center, before, after)
}

/// Returns the partitions that must return more lines, so that the `wanted` lines of the page are known. Each has the
/// required number of its lines from the start on.
fn more_lines(order: Order, start: &PageStart, segments: &[Segment], wanted: u64) -> Vec<(usize, u64)> {
    let (is_backward, wanted, at_place) = match start {
        PageStart::Offset(offset) => (false, offset.saturating_add(wanted), 0),
        // One more, because the line at the place itself may not be on the page.
        PageStart::Place(next_to) => (next_to.direction == Direction::Backward, wanted, 1),
    };
    let boundary = |segment: &Segment| match start {
        PageStart::Offset(_) => 0,
        PageStart::Place(next_to) => segment.boundary(next_to, order),
    };
    let side = |segment| side(segment, boundary(segment), is_backward);
    let sides: Vec<Side<'_>> = segments.iter().map(side).collect();
    let more = further(if is_backward { backward(order) } else { order }, &sides, wanted).into_iter().enumerate();
    let all = |(i, more): (usize, u64)| (i, sides[i].lines.len() as u64 + more + at_place);
    more.filter(|(_, more)| *more > 0).map(all).collect()
}

/// Returns the lines of a segment from a boundary on, in one direction.
fn side(segment: &Segment, boundary: usize, is_backward: bool) -> Side<'_> {
    let (left, right) = segment.lines.split_at(boundary);
    match is_backward {
        true => Side { lines: left.iter().rev().collect(), open: segment.skipped > 0 },
        false => Side { lines: right.iter().collect(), open: segment.until != Until::End },
    }
}
