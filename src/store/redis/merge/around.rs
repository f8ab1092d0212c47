//! The rank of a subject among those of all partitions, and its neighbors.

use super::further::{Side, further};
use super::region::{Region, Segment, Until};
use super::{
    Center, Excerpt, Located, MARGIN, MergeError, Merged, MergedRead, Near, PartitionReads, ROUNDS, Share, of_one_head,
    take_apart,
};
use crate::board::{Order, Subject, Value, Visibility};
use crate::store::Ranked;
use crate::store::place::{Place, backward};

/// The number of lines that are read on each side if only the rank is requested. If the subject's score changes between
/// the two rounds, they are usually enough to find its new rank without a third round.
const LEAST: u64 = 2;

/// The rank and the neighbors of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store::redis) struct Around<X> {
    /// The score, or `None` if the subject has none.
    pub score: Option<Value>,
    pub visibility: Visibility,
    /// The number of lines of all partitions with a strictly better score than the subject's, or than `absent` if it
    /// has none.
    pub better: u64,
    /// The number of lines of all partitions before the subject's place.
    pub before: u64,
    /// The number of lines of all partitions before the first one here, or 0 if there is none.
    pub first: u64,
    /// The lines around the subject, including its own. Empty if the subject is not ranked.
    pub lines: Vec<Ranked>,
    /// The additional data that its partition returns.
    pub extra: X,
}

/// The subject to find, and its score if it is not ranked.
#[derive(Clone, Debug)]
struct Sought<'a> {
    subject: &'a Subject,
    absent: Value,
}

impl Sought<'_> {
    fn center(&self) -> Center {
        Center::Subject { subject: self.subject.clone(), absent: Some(self.absent) }
    }

    /// Returns the subject's place with this score.
    fn place(&self, score: Option<Value>) -> Place {
        Place { score: score.unwrap_or(self.absent), subject: self.subject.clone() }
    }
}

/// Finds a subject, which partition `own` has, and up to `radius` lines on each side of it. If the subject is not
/// ranked, counts the lines that are better than the score `absent`.
///
/// The first round asks the subject's partition for its score. The second round asks all partitions for the lines
/// around that place, and the subject's own partition for those around the subject, wherever it is by then. A third
/// round is needed if the subject has moved beyond these lines, or if some partition has more than its share of the
/// lines next to it.
pub(in crate::store::redis) async fn around<P: PartitionReads>(
    partitions: &P,
    order: Order,
    own: usize,
    subject: &Subject,
    absent: Value,
    radius: u64,
    with_slots: bool,
) -> MergedRead<P, Around<P::Extra>> {
    let sought = Sought { subject, absent };
    let all: Vec<usize> = (0..partitions.count()).collect();
    let share = if radius == 0 { LEAST } else { radius.div_ceil(all.len() as u64) + MARGIN };
    let mut sizes = vec![(share, share + 1); all.len()];

    let question = |_| Near::around(sought.center(), 1, 1);
    let found = of_one_head(&[own], None, question, |round| partitions.near(round)).await?;
    let mut newest = found.first().map(Share::head);
    let located = found.into_iter().next().and_then(|share| share.said.subject);
    let mut target = sought.place(located.ok_or(MergeError::Impossible(NO_SUBJECT))?.score);
    for _ in 1..ROUNDS {
        let question = |i: usize| {
            let (before, after) = sizes[i];
            match i == own {
                true => Near { with_slots, ..Near::around(sought.center(), before, after) },
                false => {
                    let center = Center::Place { place: target.clone(), after_line: false };
                    Near::around(center, before, after)
                }
            }
        };
        let shares = of_one_head(&all, newest, question, |round| partitions.near(round)).await?;
        newest = shares.first().map(Share::head);
        let (frame, versions, mut said) = take_apart(shares).ok_or(MergeError::Unsettled)?;
        let located =
            said.get_mut(own).and_then(|lines| lines.subject.take()).ok_or(MergeError::Impossible(NO_SUBJECT))?;
        target = sought.place(located.score);
        let region = region(order, said)?;
        let Some(position) = region.position(&target) else { continue };
        let first = position.saturating_sub(radius);
        let lines = match located.score {
            Some(_) if !located.visibility.is_hidden() => {
                region.page(first, (position - first).saturating_add(radius).saturating_add(1))
            }
            _ => Some(Vec::new()),
        };
        if let Some(lines) = lines {
            let better = region.better_than(target.score);
            let first = if lines.is_empty() { 0 } else { first };
            let Located { score, visibility, extra } = located;
            let found = Around { score, visibility, better, before: position, first, lines, extra };
            return Ok(Merged { frame, versions, total: region.total(), found });
        }
        grow(order, &region.segments, &target, radius, &mut sizes);
    }
    Err(MergeError::Unsettled)
}

const NO_SUBJECT: &str = "nothing about its subject";

fn region<X, E>(order: Order, said: Vec<Excerpt<X>>) -> Result<Region, MergeError<E>> {
    let segments = said.into_iter().map(|lines| Segment::of_lines(lines, order)).collect::<Result<_, _>>()?;
    Ok(Region::new(order, segments))
}

/// Increases the number of lines to ask for in the partitions that may have more of those next to the target.
fn grow(order: Order, segments: &[Segment], target: &Place, radius: u64, sizes: &mut [(u64, u64)]) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for segment in segments {
        let (left, right) = segment.lines.split_at(segment.lines_before(target, order));
        before.push(Side { lines: left.iter().rev().collect(), open: segment.skipped > 0 });
        after.push(Side { lines: right.iter().collect(), open: segment.until != Until::End });
    }
    let more = |sides: &[Side<'_>], order, wanted| -> Vec<u64> {
        let known = sides.iter().map(|side| side.lines.len() as u64);
        let further = further(order, sides, wanted);
        known.zip(further).map(|(known, more)| if more > 0 { known + more + MARGIN } else { 0 }).collect()
    };
    let before = more(&before, backward(order), radius);
    let after = more(&after, order, radius.saturating_add(1));
    for ((size, before), after) in sizes.iter_mut().zip(before).zip(after) {
        *size = (size.0.max(before), size.1.max(after));
    }
}
