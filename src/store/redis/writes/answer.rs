//! The answer of a batch. What the caller learns is decided here, once all calls of the batch have ended: what became
//! of each item, or an error. An error that says that nothing was counted is given only if that is certain.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::board::Frame;
use crate::store::redis::servers::ServerFailure;
use crate::store::{Added, Increment, Outcome, Result};

/// What became of one batch, which has a call for each partition that has items of it.
#[derive(Debug)]
pub(super) struct BatchProgress {
    /// Locked when a call ends, never across an await.
    open: Mutex<OpenBatch>,
    /// The address of the server, for messages.
    at: Arc<str>,
}

/// What is known about a batch.
#[derive(Debug)]
struct OpenBatch {
    calls: usize,
    /// The number of calls that have not ended.
    waiting: usize,
    /// The number of calls that found the board gone.
    gone: usize,
    outcomes: Vec<Option<Outcome>>,
    frame: Option<Frame>,
    failure: Option<ServerFailure>,
    /// The items that were not counted because the board has other editions, with their places. `None` if no call found
    /// that.
    left: Option<Vec<(usize, Increment)>>,
    sender: Option<oneshot::Sender<BatchAnswer>>,
}

/// What the caller of a batch learns.
#[derive(Debug)]
pub(in crate::store::redis) struct BatchAnswer {
    pub added: Result<Added>,
    /// Whether a partition reports that the board does not exist, and a different one does not. If the board itself
    /// does not exist, everything that its partitions have counted is gone with it.
    pub is_disputed: bool,
    /// What is left to do, if the board was found to have other editions, and nothing else has failed.
    pub outdated: Option<Box<Outdated>>,
}

/// A batch of which a part was not counted, because the board has other editions.
#[derive(Debug)]
pub(in crate::store::redis) struct Outdated {
    /// The outcomes of the items that have one.
    pub outcomes: Vec<Option<Outcome>>,
    pub frame: Option<Frame>,
    /// All other items, each with its place. None of them was counted.
    pub left: Vec<(usize, Increment)>,
}

/// What became of a call.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub outcomes: Vec<Option<Outcome>>,
    /// The latest frame of its items.
    pub frame: Option<Frame>,
    /// The gravest failure of those items that have no outcome.
    pub failure: Option<ServerFailure>,
    /// If the board was found to have other editions: the items without an outcome. Without a failure, none of them was
    /// counted.
    pub left: Option<Vec<(usize, Increment)>>,
}

impl BatchProgress {
    /// Creates the progress of a batch of this many items and calls.
    pub fn new(items: usize, calls: usize, at: Arc<str>) -> (Arc<Self>, oneshot::Receiver<BatchAnswer>) {
        let (sender, receiver) = oneshot::channel();
        let (outcomes, frame, failure) = (vec![None; items], None, None);
        let open =
            OpenBatch { calls, waiting: calls, gone: 0, outcomes, frame, failure, left: None, sender: Some(sender) };
        (Arc::new(Self { open: Mutex::new(open), at }), receiver)
    }

    /// Records the end of a call, whose items have these places in the batch, or all places. Answers the batch with its
    /// last call.
    pub fn end(&self, call: Ended, places: Option<&[usize]>) {
        let mut open = self.open.lock();
        if let Some(left) = call.left {
            let placed = left.into_iter().map(|(i, item)| (places.map_or(i, |places| places[i]), item));
            open.left.get_or_insert_default().extend(placed);
        }
        match places {
            None => open.outcomes = call.outcomes,
            Some(places) => {
                for (place, outcome) in places.iter().zip(call.outcomes) {
                    open.outcomes[*place] = outcome;
                }
            }
        }
        open.frame = match (open.frame, call.frame) {
            (Some(before), Some(frame)) => Some(latest(before, frame)),
            (before, frame) => before.or(frame),
        };
        open.gone += usize::from(matches!(call.failure, Some(ServerFailure::BoardChanged)));
        open.failure = gravest(open.failure.take(), call.failure);
        open.waiting -= 1;
        if open.waiting > 0 {
            return;
        }
        let outdated = open.outdated();
        let added = match &outdated {
            Some(_) => Err(ServerFailure::StaleEpoch),
            None => open.decide(),
        };
        let added = added.map_err(|failure| failure.at(&self.at));
        let answer = BatchAnswer { added, is_disputed: open.gone > 0 && open.gone < open.calls, outdated };
        // The receiver may be dropped. The items count all the same.
        let _ = open.sender.take().map(|sender| sender.send(answer));
    }
}

impl OpenBatch {
    /// Returns what is left to do if the board has other editions and nothing has failed.
    fn outdated(&mut self) -> Option<Box<Outdated>> {
        let mut left = self.left.take().filter(|_| self.failure.is_none())?;
        left.sort_by_key(|(place, _)| *place);
        Some(Box::new(Outdated { outcomes: std::mem::take(&mut self.outcomes), frame: self.frame, left }))
    }

    /// Decides what is certain: all items have outcomes, nothing was counted, or it is unknown what was.
    fn decide(&mut self) -> Result<Added, ServerFailure> {
        let outcomes = std::mem::take(&mut self.outcomes);
        let is_counted = outcomes.iter().any(|outcome| matches!(outcome, Some(Outcome::Counted { .. })));
        match (self.failure.take(), self.frame) {
            (None, None) => Err(ServerFailure::KeptChanging),
            (None, Some(frame)) => match outcomes.into_iter().collect() {
                Some(outcomes) => Ok(Added { frame, outcomes, newer: None }),
                None => Err(ServerFailure::Corrupt("a script left out an item".to_owned())),
            },
            // These say nothing about what was counted. If the board is gone, so is what it counted.
            (Some(failure @ (ServerFailure::Corrupt(_) | ServerFailure::Unknown(_))), _) => Err(failure),
            (Some(ServerFailure::BoardChanged), _) if self.gone == self.calls => Err(ServerFailure::BoardChanged),
            (Some(failure), _) if is_counted => {
                Err(ServerFailure::Unknown(format!("a part of the batch was counted, the rest was not: {failure:?}")))
            }
            (Some(failure), _) => Err(failure),
        }
    }
}

/// Returns the graver of two failures. One after which the outcome is unknown comes before those that say that nothing
/// was done. Of these, the one that best says what to do comes first.
pub(super) fn gravest(a: Option<ServerFailure>, b: Option<ServerFailure>) -> Option<ServerFailure> {
    let gravity = |failure: &Option<ServerFailure>| match failure {
        Some(ServerFailure::Unknown(_)) => 7,
        Some(ServerFailure::Corrupt(_)) => 6,
        Some(ServerFailure::BoardChanged) => 5,
        Some(ServerFailure::ReadOnly(_)) => 4,
        Some(ServerFailure::Unreachable(_) | ServerFailure::Busy(_)) => 2,
        Some(ServerFailure::KeptChanging) => 1,
        Some(_) => 3,
        None => 0,
    };
    if gravity(&b) > gravity(&a) { b } else { a }
}

/// Returns the later of two frames, with the larger number of retiring slots.
fn latest(a: Frame, b: Frame) -> Frame {
    let later = if (a.window.head, a.as_of) <= (b.window.head, b.as_of) { b } else { a };
    Frame { retiring: a.retiring.max(b.retiring), ..later }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Timestamp, Window};
    use crate::store::redis::writes::retry::too_late;
    use crate::store::{Rejection, StoreError};

    const COUNTED: Option<Outcome> = Some(Outcome::Counted { score: None });
    const REFUSED: Option<Outcome> = Some(Outcome::Rejected(Rejection::TooLate));
    const DUPLICATE: Option<Outcome> = Some(Outcome::Duplicate { score: None });

    fn frame(second: i64) -> Frame {
        let at = Timestamp::from_millis(second * 1_000);
        Frame { window: Window { floor: at, head: at, end: at }, as_of: at, retiring: 0 }
    }

    fn ended(outcomes: &[Option<Outcome>], second: i64, failure: Option<ServerFailure>) -> Ended {
        Ended { outcomes: outcomes.to_vec(), frame: Some(frame(second)), failure, left: None }
    }

    /// Returns the answer of a batch with a single call.
    fn added_after(outcomes: &[Option<Outcome>], failures: Vec<ServerFailure>) -> Result<Added> {
        let (batch, mut receiver) = BatchProgress::new(outcomes.len(), 1, "host:1".into());
        let failure = failures.into_iter().fold(None, |before, failure| gravest(before, Some(failure)));
        batch.end(ended(outcomes, 1, failure), None);
        let answer = receiver.try_recv().unwrap();
        assert!(!answer.is_disputed);
        answer.added
    }

    /// Returns the answer of a batch of three items, two of which are in the first of two calls.
    fn joined(first: Ended, second: Ended) -> BatchAnswer {
        let (batch, mut receiver) = BatchProgress::new(3, 2, "host:1".into());
        batch.end(first, Some(&[0, 2]));
        assert!(receiver.try_recv().is_err());
        batch.end(second, Some(&[1]));
        receiver.try_recv().unwrap()
    }

    fn lost() -> ServerFailure {
        ServerFailure::Unknown("no answer".to_owned())
    }

    fn is_unknown(added: Result<Added>) -> bool {
        matches!(added, Err(StoreError::TimedOut { .. }))
    }

    #[test]
    fn definite_errors_are_returned_only_if_nothing_was_counted() {
        let full = || ServerFailure::ReadOnly("OOM".to_owned());
        let gone = || ServerFailure::BoardChanged;
        let unreachable = |added: Result<Added>| matches!(added, Err(StoreError::Unreachable { .. }));
        assert!(unreachable(added_after(&[None, None], vec![too_late()])));
        assert!(unreachable(added_after(&[REFUSED, DUPLICATE, None], vec![too_late()])));
        assert!(is_unknown(added_after(&[COUNTED, None], vec![too_late()])));
        assert!(is_unknown(added_after(&[None], vec![too_late(), lost()])));
        assert!(is_unknown(added_after(&[None], vec![lost(), full()])));
        assert!(matches!(added_after(&[None], vec![too_late(), full()]), Err(StoreError::ReadOnly { .. })));
        assert!(is_unknown(added_after(&[COUNTED, None], vec![full()])));
        assert!(matches!(added_after(&[COUNTED, None], vec![gone()]), Err(StoreError::BoardChanged)));
        assert!(is_unknown(added_after(&[COUNTED, None], vec![gone(), lost()])));
        assert!(matches!(added_after(&[COUNTED, None], vec![]), Err(StoreError::Corrupt { .. })));
    }

    #[test]
    fn a_batch_without_outcome_and_failure_may_be_sent_again() {
        let (batch, mut receiver) = BatchProgress::new(0, 1, "host:1".into());
        batch.end(Ended::default(), None);
        assert!(matches!(receiver.try_recv().unwrap().added, Err(StoreError::Overloaded { .. })));
    }

    #[test]
    fn joined_outcomes_keep_their_order_and_the_latest_frame() {
        let answer = joined(ended(&[COUNTED, REFUSED], 9, None), ended(&[COUNTED], 8, None));
        let added = answer.added.unwrap();
        assert_eq!(added.outcomes.into_iter().map(Some).collect::<Vec<_>>(), [COUNTED, COUNTED, REFUSED]);
        assert_eq!(added.frame.as_of, Timestamp::from_millis(9_000));
    }

    #[test]
    fn joined_errors_are_definite_only_if_no_part_may_have_counted() {
        let failed = |failure| ended(&[None], 1, Some(failure));
        let both = |failure| ended(&[None, None], 1, Some(failure));
        let counted = || ended(&[COUNTED, REFUSED], 1, None);
        assert!(is_unknown(joined(counted(), failed(too_late())).added));
        let disputed = joined(counted(), failed(ServerFailure::BoardChanged));
        assert!(disputed.is_disputed && is_unknown(disputed.added));
        // What one part counted before it was lost is not gone with the others.
        let disputed =
            joined(ended(&[COUNTED, None], 1, Some(ServerFailure::BoardChanged)), ended(&[REFUSED], 1, None));
        assert!(disputed.is_disputed && is_unknown(disputed.added));
        assert!(is_unknown(joined(both(lost()), failed(ServerFailure::BoardChanged)).added));
        assert!(is_unknown(joined(both(too_late()), failed(lost())).added));
        let unreachable = |added| matches!(added, Err(StoreError::Unreachable { .. }));
        assert!(unreachable(joined(both(too_late()), failed(too_late())).added));
        assert!(unreachable(joined(ended(&[REFUSED, REFUSED], 1, None), failed(too_late())).added));
        let changed = joined(both(too_late()), failed(ServerFailure::BoardChanged));
        assert!(changed.is_disputed && matches!(changed.added, Err(StoreError::BoardChanged)));
        let gone = joined(both(ServerFailure::BoardChanged), failed(ServerFailure::BoardChanged));
        assert!(!gone.is_disputed && matches!(gone.added, Err(StoreError::BoardChanged)));
    }
    #[test]
    fn what_was_not_counted_in_other_editions_is_left_unless_something_else_failed() {
        let item = || crate::store::redis::writes::queue::tests::increment(None);
        let outdated = |second| Ended { left: Some(vec![(1, item())]), ..ended(&[COUNTED, None], second, None) };
        let answer = joined(outdated(7), ended(&[REFUSED], 8, None));
        let left = answer.outdated.unwrap();
        assert_eq!(left.outcomes, [COUNTED, REFUSED, None]);
        assert_eq!(left.left.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [2]);
        assert_eq!(left.frame.unwrap().as_of, Timestamp::from_millis(8_000));
        let answer = joined(outdated(7), ended(&[None], 8, Some(lost())));
        assert!(answer.outdated.is_none() && is_unknown(answer.added));
        let answer = joined(ended(&[REFUSED, REFUSED], 7, None), ended(&[None], 8, Some(too_late())));
        assert!(answer.outdated.is_none());
    }
}
