//! Portions of a source's log, and the steps in which a store counts one.
//!
//! A step is a compare-and-set: if the board has [reached](Reached) exactly this much of the source, count these items
//! and have it reach that much, all at once; otherwise do nothing, and say what it has reached. So of a portion that is
//! repeated, comes out of order or from two senders, or follows a crash at any point, each item is counted once. A
//! [`PortionWalk`] divides a portion into steps. It leaves no holes: what is counted of a lane is always a prefix.

use std::ops::Range;

use super::reached::{LANES, Reached, lane_of};
use super::{Added, Batch, Increment, Outcome, Rejection, Result, StoreError};
use crate::board::{Frame, Position, SourceNumber, Timestamp};

/// An item that is too early by more than this, in milliseconds, is refused for good. One that is early by less waits for
/// its time: the clocks of two machines differ, but not by this much.
const TOO_FAR_AHEAD: i64 = 3_600_000;

/// Consecutive items of a source's log, as far as they are for one board.
#[derive(Clone, Debug)]
pub struct Portion {
    source: SourceNumber,
    joins: bool,
    after: Position,
    through: Position,
    positions: Vec<Position>,
    /// For each item, the position up to which the log is counted if everything before the item is.
    before: Vec<Position>,
    batch: Batch,
}

impl Portion {
    /// Returns the portion of a source with the positions after one, and up to another one. `items` are those of the
    /// board, in their order. Returns `None` if their positions do not increase, or are not within the portion.
    pub fn new(
        source: SourceNumber,
        (after, through): (Position, Position),
        items: impl IntoIterator<Item = (Position, Increment)>,
    ) -> Option<Self> {
        let (positions, increments): (Vec<_>, Vec<_>) = items.into_iter().unzip();
        let is_within = positions.first().is_none_or(|first| after < *first)
            && positions.last().is_none_or(|last| *last <= through)
            && positions.is_sorted_by(|one, next| one < next);
        let before = std::iter::once(after).chain(positions.iter().copied()).take(positions.len()).collect();
        let batch = Batch { increments, return_scores: false };
        (is_within && after <= through).then_some(Self {
            source,
            joins: false,
            after,
            through,
            positions,
            before,
            batch,
        })
    }

    /// Returns the same portion for a board that begins with it, if the board has reached nothing of the source yet. A
    /// board begins at one position: a store that divides it may have begun in a part of it only.
    #[must_use]
    pub fn joining(self) -> Self {
        Self { joins: true, ..self }
    }

    /// Returns the portion by which a board begins after a position, or goes on there if it has not reached it: what it has
    /// not counted up to there, it never counts.
    pub fn beginning(source: SourceNumber, position: Position) -> Self {
        Self {
            source,
            joins: true,
            after: Position::START,
            through: position,
            positions: Vec::new(),
            before: Vec::new(),
            batch: Batch::default(),
        }
    }

    /// Returns the source.
    pub fn source(&self) -> SourceNumber {
        self.source
    }

    /// Returns the position after which the portion begins.
    pub fn after(&self) -> Position {
        self.after
    }

    /// Returns the position up to which the portion goes.
    pub fn through(&self) -> Position {
        self.through
    }

    /// Returns the items, in their order.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Divides the portion by the partition of each item. Returns a portion for each partition, with the indexes of its
    /// items.
    pub(super) fn divided(
        self,
        partitions: usize,
        partition_of: impl Fn(&Increment) -> usize,
    ) -> Vec<(Vec<usize>, Portion)> {
        let Portion { source, joins, after, through, positions, before, batch } = self;
        let none = || {
            let (positions, before) = (Vec::new(), Vec::new());
            Portion { source, joins, after, through, positions, before, batch: Batch::default() }
        };
        let mut divided: Vec<_> = (0..partitions).map(|_| (Vec::new(), none())).collect();
        for (index, increment) in batch.increments.into_iter().enumerate() {
            let (indexes, own) = &mut divided[partition_of(&increment)];
            indexes.push(index);
            own.positions.push(positions[index]);
            own.before.push(before[index]);
            own.batch.increments.push(increment);
        }
        divided
    }

    /// Returns the same portion with other items at the same positions.
    #[must_use]
    pub fn with_items(self, change: impl FnMut(Increment) -> Increment) -> Self {
        let increments = self.batch.increments.into_iter().map(change).collect();
        Self { batch: Batch { increments, return_scores: false }, ..self }
    }
}

/// What became of an item of a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was handled now, and is never handled again.
    Done(Outcome),
    /// It was handled before.
    Repeated,
    /// It was not handled, and neither is what follows in its lane: for this reason if it is the one that stopped the
    /// lane. The portion is to be sent again later.
    Waits(Option<Rejection>),
}

/// The result of a [`Portion`].
#[derive(Debug)]
pub struct Passed {
    /// The frame of the last step, if there was one.
    pub frame: Option<Frame>,
    /// What became of each item, in their order.
    pub fates: Vec<Fate>,
    /// What the board has reached of the source: if no item waits, at least the end of the portion.
    pub reached: Reached,
    /// The error that ended the portion after some of its steps. What was done until then counts.
    pub failure: Option<StoreError>,
}

/// Items to count at once.
#[derive(Clone, Debug)]
pub(super) struct SourceStep {
    /// The items, in their order. There may be none.
    pub batch: Batch,
    /// What the board must have reached. `None`: it must not have joined.
    pub from: Option<Reached>,
    /// What the board has reached then.
    pub to: Reached,
    /// The index of each item in the portion.
    items: Vec<usize>,
}

/// Returns whether an item that is refused stops its lane, because another attempt may count it. `latest` is the latest
/// time that an item may have now.
pub(super) fn stops_lane(item: &Increment, reason: Rejection, latest: Timestamp) -> bool {
    match reason {
        Rejection::MemoryFull | Rejection::TooManySubjects | Rejection::ImportOpen => true,
        Rejection::TooEarly => item.at.is_some_and(|at| at.millis().saturating_sub(latest.millis()) <= TOO_FAR_AHEAD),
        Rejection::TooLate
        | Rejection::OutOfRange
        | Rejection::TooManyKeys
        | Rejection::SubjectFrozen
        | Rejection::WrongPeriod => false,
    }
}

impl Passed {
    /// Returns the failure itself if there was no step before it.
    pub(super) fn unless_nothing_was_done(mut self) -> Result<Self> {
        match self.failure.take_if(|_| self.frame.is_none()) {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}

/// How far a portion is counted, and in which steps it goes on.
#[derive(Debug)]
pub(super) struct PortionWalk {
    portion: Portion,
    /// The indexes of the items, lane by lane.
    order: Vec<usize>,
    lanes: [LaneWalk; LANES],
    /// What the board is expected to have reached, if it has joined.
    reached: Reached,
    has_joined: bool,
    /// Whether the board was asked what it has reached.
    is_known: bool,
    /// The frame of the last step.
    frame: Option<Frame>,
    fates: Vec<Fate>,
}

/// The items of a lane.
#[derive(Clone, Debug)]
struct LaneWalk {
    /// Their places in `order`.
    places: Range<usize>,
    /// The place of the first one that the board has not reached.
    next: usize,
    /// The place of the item that is held, or the end.
    end: usize,
    /// The position that the lane has reached when all items before that are counted.
    to: Position,
}

impl PortionWalk {
    /// Begins with the expectation that the board has reached the position after which the portion begins, or that it
    /// joins.
    pub(super) fn new(portion: Portion) -> Self {
        let lane_of_item: Vec<_> = portion.batch.increments.iter().map(|item| lane_of(&item.subject)).collect();
        let mut order: Vec<_> = (0..lane_of_item.len()).collect();
        // A stable sort: a lane has its items in their order.
        order.sort_by_key(|item| lane_of_item[*item]);
        let mut start = 0;
        let lanes = std::array::from_fn(|lane| {
            let len = order[start..].iter().take_while(|item| lane_of_item[**item] == lane).count();
            let places = start..start + len;
            start = places.end;
            LaneWalk { next: places.start, end: places.end, places, to: portion.through }
        });
        let fates = vec![Fate::Waits(None); order.len()];
        let (reached, has_joined) = (Reached::evenly(portion.after), !portion.joins);
        Self { portion, order, lanes, reached, has_joined, is_known: false, frame: None, fates }
    }

    /// Goes on from what the board has reached, which is not what was expected. `None` stands for a board that has not
    /// joined the source.
    ///
    /// Returns [`StoreError::SourceBehind`] if there is a hole between that and the portion.
    pub(super) fn meet(&mut self, reached: Option<Reached>) -> Result<()> {
        let reached = match reached {
            Some(reached) => reached,
            // A board that joins was expected not to have joined. So this one had, and what it has counted is gone.
            None => return Err(StoreError::SourceBehind { at: None }),
        };
        if reached.least() < self.portion.after {
            return Err(StoreError::SourceBehind { at: Some(reached.least()) });
        }
        (self.reached, self.has_joined, self.is_known) = (reached, true, true);
        // It may be less than before: a server can lose its latest writes.
        self.lanes.iter_mut().for_each(|lane| lane.next = lane.places.start);
        for item in self.take_reached() {
            if matches!(self.fates[item], Fate::Waits(_)) {
                self.fates[item] = Fate::Repeated;
            }
        }
        for lane in &mut self.lanes {
            // Somebody else has counted what was held.
            if lane.end < lane.next {
                (lane.end, lane.to) = (lane.places.end, self.portion.through);
            }
            for item in &self.order[lane.next..lane.end] {
                self.fates[*item] = Fate::Waits(None);
            }
        }
        Ok(())
    }

    /// Removes the items from what is left that the board has reached, and returns them.
    fn take_reached(&mut self) -> Vec<usize> {
        let mut taken = Vec::new();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            let through = self.reached.in_lane(number);
            let left = &self.order[lane.next..lane.places.end];
            let reached = left.partition_point(|item| self.portion.positions[*item] <= through);
            taken.extend(&left[..reached]);
            lane.next += reached;
        }
        taken
    }

    /// Returns the next step, or `None` if there is nothing left to do. It has whole lanes, as many as have at most `most`
    /// items together, or else the first `most` items of one lane, and at least one. The first step may have no items and
    /// only ask what the board has reached.
    pub(super) fn next(&self, most: usize) -> Option<SourceStep> {
        let (mut items, mut raised) = (Vec::<usize>::new(), Vec::new());
        for (number, lane) in self.lanes.iter().enumerate() {
            let left = &self.order[lane.next..lane.end];
            let is_left = !left.is_empty() || self.reached.in_lane(number) < lane.to;
            if !is_left && self.has_joined {
                continue;
            }
            if items.len() + left.len() <= most {
                items.extend(left);
                raised.push((number, lane.to));
            } else if items.is_empty() {
                let (some, rest) = left.split_at(most.clamp(1, left.len()));
                items.extend(some);
                raised.push((number, rest.first().map_or(lane.to, |next| self.portion.before[*next])));
            }
        }
        if raised.is_empty() && self.is_known {
            return None;
        }
        items.sort_unstable();
        let increments = items.iter().map(|item| self.portion.batch.increments[*item].clone()).collect();
        Some(SourceStep {
            batch: Batch { increments, return_scores: false },
            from: self.has_joined.then(|| self.reached.clone()),
            to: self.reached.raised(raised),
            items,
        })
    }

    /// Records that a step was done, with the result of its items.
    pub(super) fn did(&mut self, step: SourceStep, added: Added) {
        for (item, outcome) in step.items.iter().zip(added.outcomes) {
            self.fates[*item] = Fate::Done(outcome);
        }
        self.frame = Some(added.frame);
        (self.reached, self.has_joined, self.is_known) = (step.to, true, true);
        self.take_reached();
    }

    /// Records that items of a step, by their places, cannot be counted now, so that the step was not done. Each of them
    /// waits, and so does what follows in its lane.
    pub(super) fn hold(&mut self, step: &SourceStep, items: impl IntoIterator<Item = (usize, Rejection)>) {
        for (item, reason) in items {
            let item = step.items[item];
            let to = self.portion.before[item];
            let lane = &mut self.lanes[lane_of(&self.portion.batch.increments[item].subject)];
            let at = lane.next + self.order[lane.next..lane.end].partition_point(|own| *own < item);
            if at < lane.end {
                // One that was held before may follow.
                self.order[at..lane.places.end].iter().for_each(|own| self.fates[*own] = Fate::Waits(None));
                self.fates[item] = Fate::Waits(Some(reason));
                (lane.end, lane.to) = (at, to);
            }
        }
    }

    /// Returns the result. `failure` is what ended the walk, if it did not come to its end. It is the result if no step was
    /// done before.
    pub(super) fn finish(self, failure: Option<StoreError>) -> Result<Passed> {
        let Self { frame, fates, reached, .. } = self;
        Passed { frame, fates, reached, failure }.unless_nothing_was_done()
    }
}

#[cfg(test)]
mod tests;
