//! The questions of a flight that are not answered yet.

use std::sync::Arc;

use super::lane::Waiting;
use super::question::{Answer, Question};
use crate::board::{Board, Timestamp};
use crate::store::redis::part::Part;
use crate::store::redis::servers::ServerFailure;

/// A question that is not answered yet.
pub(super) struct Pending {
    pub question: Question,
    pub waiting: Waiting,
    /// The time according to the last attempt.
    pub told: Option<Timestamp>,
    /// Whether only a script can answer.
    pub by_script: bool,
    /// Whether the cached answer was found to be outdated.
    pub outdated: bool,
}

impl Pending {
    pub fn new((question, waiting): (Question, Waiting)) -> Self {
        Self { question, waiting, told: None, by_script: false, outdated: false }
    }

    pub fn board(&self) -> &Board {
        &self.question.part.board
    }

    /// Sends the answer to all callers. Receivers may be dropped already.
    pub fn answer(mut self, answer: Result<Answer, ServerFailure>) {
        let last = self.waiting.pop();
        for waiting in self.waiting {
            drop(waiting.send(answer.clone()));
        }
        if let Some(last) = last {
            drop(last.send(answer));
        }
    }
}

/// Answers all questions with a failure. Returns an empty list, because no question is left.
pub(super) fn fail_all(all: impl IntoIterator<Item = Pending>, failure: &ServerFailure) -> Vec<Pending> {
    for pending in all {
        pending.answer(Err(failure.clone()));
    }
    Vec::new()
}

/// Groups questions by part. The questions of each part keep their order.
pub(super) fn by_part(all: Vec<Pending>) -> Vec<(Arc<Part>, Vec<Pending>)> {
    let mut groups: Vec<(Arc<Part>, Vec<Pending>)> = Vec::new();
    for pending in all {
        match groups.iter_mut().find(|(part, _)| Arc::ptr_eq(part, &pending.question.part)) {
            Some((_, group)) => group.push(pending),
            None => groups.push((pending.question.part.clone(), vec![pending])),
        }
    }
    groups
}
