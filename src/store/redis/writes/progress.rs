//! The outcomes of a call, item by item, and its answer.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::board::{Frame, Value};
use crate::store::redis::servers::ServerFailure;
use crate::store::{Added, Outcome, Result, StoreError};

/// The reason why items are not known to be counted.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The server refused the script: nothing of it was done.
    Refused(ServerFailure),
    /// No script with the items was sent, or it certainly did not reach the server.
    NotSent(ServerFailure),
    /// A script with the items was sent, and its reply was lost.
    Unknown(ServerFailure),
}

/// The outcomes of one call so far.
#[derive(Debug)]
pub(super) struct CallProgress {
    outcomes: Vec<Option<Outcome>>,
    /// The number of items that have no outcome yet.
    open: usize,
    /// The latest frame of its items.
    frame: Option<Frame>,
    trouble: Option<Trouble>,
    /// The sender of the answer, or `None` once the call was answered.
    answer: Option<oneshot::Sender<Result<Added>>>,
    /// The address of the server, for messages.
    at: Arc<str>,
}

impl Trouble {
    /// Returns the more serious of two reasons. An unknown outcome stays unknown, even if other items are known not to
    /// be counted.
    fn or(self, other: Trouble) -> Trouble {
        match (&self, &other) {
            (Trouble::Unknown(_), _) => self,
            (_, Trouble::Unknown(_)) => other,
            (Trouble::Refused(_), Trouble::NotSent(_)) | (Trouble::Refused(_), Trouble::Refused(_)) => self,
            (Trouble::NotSent(_), Trouble::Refused(_)) => other,
            (Trouble::NotSent(_), Trouble::NotSent(_)) => self,
        }
    }

    /// Returns the failure for the caller. Most failures say that nothing was counted, which must not be said if
    /// something was.
    fn failure(self, is_counted: bool) -> ServerFailure {
        match self {
            Trouble::Unknown(failure)
            | Trouble::Refused(failure @ (ServerFailure::BoardChanged | ServerFailure::Corrupt(_))) => failure,
            Trouble::Refused(failure) | Trouble::NotSent(failure) if is_counted => {
                ServerFailure::Unknown(format!("a part of the call was counted, the rest was not: {failure:?}"))
            }
            Trouble::Refused(failure) | Trouble::NotSent(failure) => failure,
        }
    }
}

impl CallProgress {
    pub fn new(items: usize, answer: oneshot::Sender<Result<Added>>, at: Arc<str>) -> Self {
        let outcomes = vec![None; items];
        Self { outcomes, open: items, frame: None, trouble: None, answer: Some(answer), at }
    }

    /// Records the outcome of an item. Answers the call if that was its last item.
    pub fn settle(&mut self, item: usize, outcome: Outcome, frame: Frame) {
        let before = self.outcomes[item].replace(outcome);
        self.open -= usize::from(before.is_none());
        if self.frame.is_none_or(|earlier| earlier.as_of <= frame.as_of) {
            self.frame = Some(frame);
        }
        if self.open == 0 && self.trouble.is_none() {
            self.finish(None);
        }
    }

    /// Changes the score that goes with the outcome of an item, unless the call was answered.
    pub fn rescore(&mut self, item: usize, latest: Option<Value>) {
        if let Some(Some(Outcome::Counted { score } | Outcome::Duplicate { score })) = self.outcomes.get_mut(item) {
            *score = latest;
        }
    }

    /// Records that some item is not known to be counted. Other items of the call may have been counted.
    pub fn fail(&mut self, trouble: Trouble) {
        self.trouble = Some(match self.trouble.take() {
            Some(earlier) => earlier.or(trouble),
            None => trouble,
        });
    }

    pub fn is_answered(&self) -> bool {
        self.answer.is_none()
    }

    /// Returns whether the call has no items and is not answered.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && !self.is_answered()
    }

    /// Returns whether some item is not known to be counted.
    pub fn is_in_trouble(&self) -> bool {
        self.trouble.is_some()
    }

    /// Answers the call, unless it was answered. `frame` is for calls without items.
    pub fn finish(&mut self, frame: Option<Frame>) {
        let Some(answer) = self.answer.take() else { return };
        let told = match (self.trouble.take(), self.frame.or(frame)) {
            (None, Some(frame)) => match std::mem::take(&mut self.outcomes).into_iter().collect() {
                Some(outcomes) => Ok(Added { frame, outcomes }),
                None => Err(StoreError::Corrupt { detail: "a script left out an item".to_owned() }),
            },
            (None, None) => Err(self.error(ServerFailure::KeptChanging)),
            (Some(trouble), _) => {
                let is_counted = self.outcomes.iter().any(|outcome| matches!(outcome, Some(Outcome::Counted { .. })));
                Err(self.error(trouble.failure(is_counted)))
            }
        };
        // The receiver may be dropped. The items count all the same.
        let _ = answer.send(told);
    }

    fn error(&self, failure: ServerFailure) -> StoreError {
        failure.at(&self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Timestamp, Window};
    use crate::store::Rejection;

    const COUNTED: Outcome = Outcome::Counted { score: None };

    fn frame(second: i64) -> Frame {
        let at = Timestamp::from_millis(second * 1_000);
        Frame { window: Window { floor: at, head: at, end: at }, as_of: at, retiring: 0 }
    }

    fn told(settled: &[Outcome], troubles: Vec<Trouble>) -> Result<Added> {
        let (answer, mut answered) = oneshot::channel();
        let mut progress = CallProgress::new(3, answer, "host:1".into());
        for (i, outcome) in settled.iter().enumerate() {
            progress.settle(i, *outcome, frame(3 - i as i64));
        }
        for trouble in troubles {
            progress.fail(trouble);
        }
        progress.finish(None);
        answered.try_recv().unwrap()
    }

    fn unsent() -> Trouble {
        Trouble::NotSent(super::super::deliver::too_late())
    }

    #[test]
    fn definite_errors_are_returned_only_if_nothing_was_counted() {
        let lost = || Trouble::Unknown(ServerFailure::Unknown("no answer".to_owned()));
        let full = || Trouble::Refused(ServerFailure::ReadOnly("OOM".to_owned()));
        let gone = || Trouble::Refused(ServerFailure::BoardChanged);
        let rejected = Outcome::Rejected(Rejection::TooLate);
        let unreachable = |told: Result<Added>| matches!(told, Err(StoreError::Unreachable { .. }));
        let unknown = |told: Result<Added>| matches!(told, Err(StoreError::TimedOut { .. }));
        assert!(unreachable(told(&[], vec![unsent()])));
        assert!(unreachable(told(&[rejected, Outcome::Duplicate { score: None }], vec![unsent()])));
        assert!(unknown(told(&[COUNTED], vec![unsent()])));
        assert!(unknown(told(&[], vec![unsent(), lost()])));
        assert!(unknown(told(&[], vec![lost(), full()])));
        assert!(matches!(told(&[], vec![unsent(), full()]), Err(StoreError::ReadOnly { .. })));
        assert!(unknown(told(&[COUNTED], vec![full()])));
        assert!(matches!(told(&[COUNTED], vec![gone()]), Err(StoreError::BoardChanged)));
        assert!(unknown(told(&[COUNTED], vec![gone(), lost()])));
    }

    #[test]
    fn a_call_completes_with_its_last_item_and_the_latest_frame() {
        let added = told(&[COUNTED, COUNTED, COUNTED], vec![unsent()]).unwrap();
        assert_eq!((added.outcomes.len(), added.frame.as_of), (3, frame(3).as_of));
        assert!(matches!(told(&[], vec![]), Err(StoreError::Overloaded { .. })));
    }
}
