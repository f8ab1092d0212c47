//! Pages of boards of several parts.
//!
//! These questions wait on a lane of their own, so that equal ones are merged once, as equal questions are read once.
//! The parts are asked from there, on the thread that runs the lanes to the nodes. The reason is that the parts of a
//! page are asked and answered many times, and waking a different thread each time would cost more than merging.

use std::sync::Arc;

use futures_util::future::join_all;

use super::lane::{Lane, Waiting};
use super::lanes_by_weight::LanesByWeight;
use super::pending::Pending;
use super::question::{Answer, Question, What, mistaken};
use super::spread::Spread;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;

/// The largest number of flights that are under way at the same time.
const FLIGHTS: usize = 8;

/// Answers waiting questions until the lane is closed. Then no question to a part can follow, so the lanes to the nodes
/// are closed too.
pub(super) async fn run(session: Arc<Session>, lanes: Arc<LanesByWeight>, lane: Arc<Lane>) {
    let fly = |taken| {
        let (session, lanes) = (session.clone(), lanes.clone());
        async move { fly(&session, &lanes, taken).await }
    };
    lane.run(FLIGHTS, fly).await;
    lanes.close();
}

/// Reads all of these pages at the same time. Each is answered as soon as it is complete.
async fn fly(session: &Session, lanes: &LanesByWeight, taken: Vec<(Question, Waiting)>) {
    let read = taken.into_iter().map(async |(question, waiting)| {
        let answer = page(session, lanes, &question).await;
        Pending::new((question, waiting)).answer(answer);
    });
    join_all(read).await;
}

async fn page(session: &Session, lanes: &LanesByWeight, question: &Question) -> Result<Answer, ServerFailure> {
    let What::Page { offset, limit } = &*question.what else { return Err(mistaken()) };
    let parts = session.parts_of(&question.part.board);
    let spread = Spread { lanes, parts: &parts, with_slots: false, is_here: true };
    spread.page(*offset, *limit).await.map(Answer::Page)
}
