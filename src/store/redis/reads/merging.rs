//! Pages of boards of several parts.
//!
//! They wait on a lane of their own, so that equal ones are merged once, just as equal questions are read once. What
//! leaves together asks the parts from there, on the thread that runs the lanes to the nodes: the parts of a page are
//! asked and answered many times, and waking another thread each time would cost more than merging.

use std::sync::Arc;

use futures_util::future::join_all;

use super::lane::{Lane, Waiting};
use super::question::{Answer, Question, What};
use super::spread::Spread;
use super::{Asks, mistaken};
use crate::store::redis::servers::Failure;
use crate::store::redis::session::Session;

/// The most flights that are under way.
const FLIGHTS: usize = 8;

/// Answers what waits until the lane is closed. Whoever asks the parts is done then, so their lanes close with it.
pub(super) async fn run(session: Arc<Session>, asks: Arc<Asks>, lane: Arc<Lane>) {
    let fly = |taken| {
        let (session, asks) = (session.clone(), asks.clone());
        async move { fly(&session, &asks, taken).await }
    };
    lane.run(FLIGHTS, fly).await;
    asks.close();
}

/// Reads all of these at the same time; each is answered as soon as it is known.
async fn fly(session: &Session, asks: &Asks, taken: Vec<(Question, Waiting)>) {
    let read = taken.into_iter().map(async |(question, waiting)| {
        let answer = page(session, asks, &question).await;
        for waiting in waiting {
            // Who has gone needs no answer.
            drop(waiting.send(answer.clone()));
        }
    });
    join_all(read).await;
}

async fn page(session: &Session, asks: &Asks, question: &Question) -> Result<Answer, Failure> {
    let What::Page { offset, limit } = &*question.what else { return Err(mistaken()) };
    let parts = session.parts_of(&question.part.board);
    let spread = Spread { asks, parts: &parts, with_slots: false, is_here: true };
    spread.page(*offset, *limit).await.map(Answer::Page)
}
