//! Calls: the items of a batch that one partition has, how many of them were taken, and what became of them.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::{BatchAnswer, BatchProgress, Ended, gravest};
use crate::board::{Frame, Value};
use crate::store::redis::partition::Partition;
use crate::store::redis::partitions::Partitions;
use crate::store::redis::servers::ServerFailure;
use crate::store::{Batch, Increment, Outcome};

/// The largest number of items of one call that count toward the size of the queue: a larger call is written in
/// portions.
const LARGE: usize = 8_192;

/// The items of a batch that one partition has.
#[derive(Debug)]
pub(in crate::store::redis) struct Call {
    pub partition: Arc<Partition>,
    pub increments: Vec<Increment>,
    pub return_scores: bool,
    /// The time when it arrived, or when its latest portion was done.
    pub since: Instant,
    /// The portion that the latest flush took. All items before its end have been taken.
    pub portion: Range<usize>,
    /// The place of each item in the batch, or `None` if the batch has no other items.
    places: Option<Vec<usize>>,
    /// Locked by one flush at a time, never across an await.
    progress: Mutex<CallProgress>,
}

#[derive(Debug)]
struct CallProgress {
    /// What became of the items so far.
    ended: Ended,
    /// The number of items that have no outcome yet.
    open: usize,
    /// Whether the board was found to have other editions. Then no further item is sent.
    is_outdated: bool,
    /// The batch, or `None` once the call has ended.
    batch: Option<Arc<BatchProgress>>,
}

/// Divides a batch by partition. The items keep their order within each. All items of one subject go to the same
/// partition.
pub(in crate::store::redis) fn divide(
    partitions: &Partitions,
    batch: Batch,
    at: &Arc<str>,
) -> (Vec<Call>, oneshot::Receiver<BatchAnswer>) {
    let Batch { increments, return_scores } = batch;
    let (all, parts, items) = (partitions.all(), partitions.of_track(0), increments.len());
    let whole = match (all, &*increments) {
        // A batch without items only asks for the frame, which any partition can return.
        ([_], _) | (_, []) => Some(partitions.first()),
        (_, [one]) => Some(&all[parts.number_of(&one.subject)]),
        _ => None,
    };
    if let Some(partition) = whole {
        let (batch, answer) = BatchProgress::new(items, 1, at.clone());
        return (vec![Call::new(partition.clone(), increments, return_scores, None, batch)], answer);
    }
    let mut shares: Vec<(Vec<usize>, Vec<Increment>)> = Vec::new();
    shares.resize_with(all.len(), Default::default);
    for (place, increment) in increments.into_iter().enumerate() {
        let (places, own) = &mut shares[parts.number_of(&increment.subject)];
        places.push(place);
        own.push(increment);
    }
    let shares: Vec<_> = all.iter().zip(shares).filter(|(_, (places, _))| !places.is_empty()).collect();
    let (batch, answer) = BatchProgress::new(items, shares.len(), at.clone());
    let call = |(partition, (places, own)): (&Arc<Partition>, (Vec<usize>, Vec<Increment>))| {
        Call::new(partition.clone(), own, return_scores, Some(places), batch.clone())
    };
    (shares.into_iter().map(call).collect(), answer)
}

impl Call {
    /// Creates a call with all items of a batch, which is written at once.
    pub fn alone(
        partition: &Arc<Partition>,
        increments: Vec<Increment>,
        at: &Arc<str>,
    ) -> (Self, oneshot::Receiver<BatchAnswer>) {
        let items = increments.len();
        let (batch, answer) = BatchProgress::new(items, 1, at.clone());
        (Self { portion: 0..items, ..Self::new(partition.clone(), increments, false, None, batch) }, answer)
    }

    fn new(
        partition: Arc<Partition>,
        increments: Vec<Increment>,
        return_scores: bool,
        places: Option<Vec<usize>>,
        batch: Arc<BatchProgress>,
    ) -> Self {
        let open = increments.len();
        let ended = Ended { outcomes: vec![None; open], ..Ended::default() };
        let progress = Mutex::new(CallProgress { ended, open, is_outdated: false, batch: Some(batch) });
        Self { partition, increments, return_scores, since: Instant::now(), portion: 0..0, places, progress }
    }

    /// Returns the number of items as which the call counts toward the size of the queue.
    pub fn weight(&self) -> usize {
        self.increments.len().min(LARGE)
    }

    /// Records the outcome of an item, with its score if the caller wants scores. Ends the call if that was its last
    /// item.
    pub fn settle(&self, item: usize, outcome: Outcome, frame: Frame) {
        let outcome = match outcome {
            Outcome::Counted { .. } if !self.return_scores => Outcome::Counted { score: None },
            Outcome::Duplicate { .. } if !self.return_scores => Outcome::Duplicate { score: None },
            outcome => outcome,
        };
        let mut progress = self.progress.lock();
        let before = progress.ended.outcomes[item].replace(outcome);
        progress.open -= usize::from(before.is_none());
        if progress.ended.frame.is_none_or(|earlier| earlier.as_of <= frame.as_of) {
            progress.ended.frame = Some(frame);
        }
        let is_done = progress.open == 0 && progress.ended.failure.is_none();
        drop(progress);
        if is_done {
            self.end();
        }
    }

    /// Changes the score that goes with the outcome of an item, unless the call has ended.
    pub fn rescore(&self, item: usize, latest: Option<Value>) {
        let outcomes = &mut self.progress.lock().ended.outcomes;
        if let Some(Some(Outcome::Counted { score } | Outcome::Duplicate { score })) = outcomes.get_mut(item) {
            *score = latest;
        }
    }

    /// Records that some item has no outcome. Other items of the call may have been counted.
    pub fn fail(&self, failure: ServerFailure) {
        let ended = &mut self.progress.lock().ended;
        ended.failure = gravest(ended.failure.take(), Some(failure));
    }

    /// Records that the board has other editions, so that some items of the call were not counted. Without a failure,
    /// these are all items without an outcome.
    pub fn outdate(&self) {
        self.progress.lock().is_outdated = true;
    }

    /// Ends the call after a flush if it has failed or is outdated, or if it has no items: then it gets the frame of
    /// the flush, or its failure.
    pub fn finish(&self, latest: &Result<Frame, ServerFailure>) {
        let mut progress = self.progress.lock();
        if progress.batch.is_none() {
            return;
        }
        if progress.ended.outcomes.is_empty() {
            match latest {
                Ok(frame) => progress.ended.frame = Some(*frame),
                Err(ServerFailure::StaleEpoch) => progress.is_outdated = true,
                Err(failure) => progress.ended.failure = Some(failure.clone()),
            }
        } else if progress.ended.failure.is_none() && !progress.is_outdated {
            return;
        }
        drop(progress);
        self.end();
    }

    pub fn has_ended(&self) -> bool {
        self.progress.lock().batch.is_none()
    }

    fn end(&self) {
        let mut progress = self.progress.lock();
        if let Some(batch) = progress.batch.take() {
            let mut ended = std::mem::take(&mut progress.ended);
            if progress.is_outdated {
                let is_left =
                    |(i, increment): (usize, &Increment)| ended.outcomes[i].is_none().then(|| (i, increment.clone()));
                ended.left = Some(self.increments.iter().enumerate().filter_map(is_left).collect());
            }
            batch.end(ended, self.places.as_deref());
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::board::{Timestamp, Window};
    use crate::store::redis::writes::retry::too_late;

    /// Returns a call with all items of a batch.
    pub fn whole(
        partition: &Arc<Partition>,
        increments: Vec<Increment>,
        scores: bool,
    ) -> (Call, oneshot::Receiver<BatchAnswer>) {
        let (batch, answer) = BatchProgress::new(0, 1, "host:1".into());
        let mut call = Call::new(partition.clone(), increments, scores, None, batch);
        call.portion = 0..call.increments.len();
        (call, answer)
    }

    #[test]
    fn a_call_ends_with_its_last_item_and_the_latest_frame() {
        let frame = |second: i64| {
            let at = Timestamp::from_millis(second * 1_000);
            Frame { window: Window { floor: at, head: at, end: at }, as_of: at, retiring: 0 }
        };
        let item = super::super::queue::tests::increment(None);
        let (call, mut answer) = whole(&super::super::queue::tests::partition("a", 1), vec![item; 3], false);
        for i in 0..3 {
            assert!(!call.has_ended());
            call.settle(i, Outcome::Counted { score: None }, frame(3 - i as i64));
        }
        assert!(call.has_ended());
        // Later failures change nothing.
        call.fail(too_late());
        call.finish(&Err(too_late()));
        let added = answer.try_recv().unwrap().added.unwrap();
        assert_eq!((added.outcomes.len(), added.frame.as_of), (3, frame(3).as_of));
    }
}
