//! Pages of boards of several parts.
//!
//! These questions wait on a lane of their own, so that equal ones are merged once, as equal questions are read once.
//! The parts are asked from there, on the thread that runs the lanes to the nodes. The reason is that the parts of a
//! page are asked and answered many times, and waking a different thread each time would cost more than merging.

use std::sync::Arc;

use futures_util::future::join_all;

use super::asks::Asks;
use super::lane::{Lane, Waiting};
use super::pending::Pending;
use super::question::{Answer, Question, What, mistaken};
use super::spread::Spread;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;

/// The largest number of flights that are under way at the same time.
const FLIGHTS: usize = 8;

/// Answers waiting questions until the lane is closed. Then no question to a part can follow, so the lanes to the nodes
/// are closed too.
pub(super) async fn run(session: Arc<Session>, asks: Arc<Asks>, lane: Arc<Lane>) {
    let fly = |taken| {
        let (session, asks) = (session.clone(), asks.clone());
        async move { fly(&session, &asks, taken).await }
    };
    lane.run(FLIGHTS, fly).await;
    asks.close();
}

/// Reads all of these pages at the same time. Each is answered as soon as it is complete.
async fn fly(session: &Session, asks: &Asks, taken: Vec<(Question, Waiting)>) {
    let read = taken.into_iter().map(async |(question, waiting)| {
        let answer = page(session, asks, &question).await;
        Pending::new((question, waiting)).answer(answer);
    });
    join_all(read).await;
}

async fn page(session: &Session, asks: &Asks, question: &Question) -> Result<Answer, ServerFailure> {
    let What::Page { offset, limit } = &*question.what else { return Err(mistaken()) };
    let parts = session.parts_of(&question.part.board);
    let spread = Spread { asks, parts: &parts, with_slots: false, is_here: true };
    spread.page(*offset, *limit).await.map(Answer::Page)
}
