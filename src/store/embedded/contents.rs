//! Steps of a walk over the contents of a track.
//!
//! A portion is copied under the board's lock in the form of the operations that would restore it, as for a checkpoint,
//! and taken apart without the lock.

use super::Embedded;
use super::codec::Damaged;
use super::holdings::contents::ContentsWalk;
use super::last_seen::Floors;
use super::log_operations::{LogOperation, LogOperations, OperationError, operations};
use super::track_data::TrackData;
use crate::board::{Aggregate, Amount, BoardTrack, Counted, Kind, Sketch, Subject, Timestamp};
use crate::store::{Content, ContentsCursor, ContentsStep, Result, StoreError};

/// The bytes of operations of a portion. It takes 0.1 ms or less.
const PORTION: usize = 12 << 10;
/// The number of contents from which a step has enough.
const ENOUGH: usize = 1_000;
/// The largest number of portions of a step: sketches are large, and of a sparse track a portion may be empty.
const MAX_PORTIONS: usize = 16;

/// What decides whether a content of a track is live.
#[derive(Clone, Copy, Debug)]
struct Liveness {
    kind: Kind,
    /// The start of the oldest slot that is kept, which on a ranked track is the floor.
    oldest_kept: i64,
    floors: Floors,
    now: i64,
    counter_duration: Option<i64>,
}

impl Liveness {
    fn of(data: &TrackData) -> Self {
        let traits = data.holdings.traits;
        Self {
            kind: traits.kind,
            oldest_kept: data.holdings.oldest_kept,
            floors: data.floors(),
            now: data.now.millis(),
            counter_duration: traits.counter_duration,
        }
    }

    /// Returns the subject and the content that an operation of a walk restores, or `None` if it has expired.
    fn content(&self, operation: LogOperation) -> Result<Option<(Subject, Content)>, OperationError> {
        let time = Timestamp::from_millis;
        let (subject, content) = match operation {
            LogOperation::Amount { slot, amount, subject } => (subject, self.amount(slot, Amount(amount))),
            LogOperation::Samples { slot, sum, count, subject } => {
                (subject, self.cell(slot, Aggregate::Mean { sum: Amount(sum), count }))
            }
            LogOperation::Last { slot, at, value, subject } => {
                (subject, self.cell(slot, Aggregate::Last { at: time(at), value: Amount(value) }))
            }
            LogOperation::Sketch { slot, sketch, subject } => {
                let sketch = Sketch::from_bytes(sketch).ok_or(Damaged)?;
                (subject, self.cell(slot, Aggregate::Sketch(sketch)))
            }
            LogOperation::Value { last_seen: Some(last_seen), subject, value } => {
                let retracted = last_seen.retracted;
                let is_live = last_seen.at >= self.floors.of(retracted);
                let content =
                    || Content::Value { value: Counted::from_stored(value), at: time(last_seen.at), retracted };
                (subject, is_live.then(content))
            }
            LogOperation::Capped { at, subject } => {
                (subject, (at >= self.floors.seen).then(|| Content::Dropped { at: time(at) }))
            }
            _ => return Ok(None),
        };
        Ok(content.map(|content| (Subject::from_stored(subject), content)))
    }

    fn amount(&self, slot: i64, amount: Amount) -> Option<Content> {
        match self.counter_duration {
            Some(duration) if slot + duration <= self.now => None,
            Some(_) => Some(Content::Counter { start: Timestamp::from_millis(slot), amount }),
            None if matches!(self.kind, Kind::Min | Kind::Max) => self.cell(slot, Aggregate::Extreme(amount)),
            None => self.cell(slot, Aggregate::Sum(amount)),
        }
    }

    fn cell(&self, slot: i64, aggregate: Aggregate) -> Option<Content> {
        let is_live = slot >= self.oldest_kept && !aggregate.is_empty();
        is_live.then(|| Content::Cell { slot: Timestamp::from_millis(slot), aggregate })
    }
}

impl Embedded {
    /// Returns the next contents of a walk, in a few short holds of the board's lock.
    pub(super) fn walk_contents(&self, track: &BoardTrack, cursor: &ContentsCursor) -> Result<ContentsStep> {
        let mut walk = match cursor.0.as_str() {
            "" => None,
            text => Some(ContentsWalk::parse(text).ok_or(StoreError::WalkLost)?),
        };
        let mut contents = Vec::new();
        let mut portion = LogOperations::of(track.id());
        let mut portions = 0;
        loop {
            portion.clear();
            let (frame, liveness, more) = self.read_data(track, |_, data, _| {
                let holdings = &data.holdings;
                let walk = walk.get_or_insert_with(|| holdings.begin_contents());
                if !holdings.knows(walk) {
                    return Err(StoreError::WalkLost);
                }
                let more = holdings.contents_portion(walk, PORTION, &mut portion);
                Ok((data.frame(), Liveness::of(data), more))
            })??;
            for operation in operations(portion.bytes()) {
                let content = operation.and_then(|operation| liveness.content(operation));
                contents.extend(content.map_err(|error| StoreError::Corrupt { detail: error.to_string() })?);
            }
            portions += 1;
            if !more || contents.len() >= ENOUGH || portions == MAX_PORTIONS {
                let next = walk.filter(|_| more).map(|walk| ContentsCursor(walk.to_string()));
                return Ok(ContentsStep { frame, contents, next });
            }
        }
    }
}
