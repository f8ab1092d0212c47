//! Asking a question: choosing its lane, and waiting for the answer.

use std::sync::Arc;

use super::lane::answer_of;
use super::lanes::Lanes;
use super::pages::Pages;
use super::question::{Answer, Question};
use crate::store::redis::servers::ServerFailure;

/// The largest weight of a call, in cells, that does not use the bulk lane.
pub(super) const LIGHT: u64 = 2_048;

/// Where questions to parts are asked: the lanes for light and for large calls, and the cached pages.
#[derive(Debug)]
pub(super) struct LanesByWeight {
    pub light: Lanes,
    pub bulk: Lanes,
    pub pages: Arc<Pages>,
}

impl LanesByWeight {
    /// Ends the threads once no question waits.
    pub fn close(&self) {
        self.light.close();
        self.bulk.close();
    }

    pub async fn ask(&self, question: Question) -> Result<Answer, ServerFailure> {
        answer_of(self.lanes_for(&question).ask(question)).await
    }

    /// Asks one of several questions of a round, each from a future of its own, which are polled one after the other.
    /// All of them are on the lane before the first one is sent, so they are sent together.
    pub async fn ask_in_round(&self, question: Question) -> Result<Answer, ServerFailure> {
        let lane = self.lanes_for(&question).lane(&question);
        let answered = lane.ask_with_others(question);
        tokio::task::yield_now().await;
        lane.go();
        answer_of(answered).await
    }

    /// Asks a question from the thread of the lanes.
    pub async fn ask_here(&self, question: Question) -> Result<Answer, ServerFailure> {
        let stopped = |_| Err(ServerFailure::Unknown("the read thread has stopped".to_owned()));
        self.lanes_for(&question).ask(question).await.unwrap_or_else(stopped)
    }

    pub fn lanes_for(&self, question: &Question) -> &Lanes {
        if question.weight() <= LIGHT { &self.light } else { &self.bulk }
    }
}
