//! Pages of boards of several partitions.
//!
//! These questions wait on a lane of their own, so that equal ones are merged once, as equal questions are read once.
//! The partitions are asked from there, on the thread that runs the lanes to the nodes. The reason is that the
//! partitions of a page are asked and answered many times, and waking a different thread each time would cost more than
//! merging.

use std::hash::BuildHasher;
use std::sync::Arc;

use futures_util::future::join_all;
use rapidhash::fast::RandomState;

use super::asked::{Answered, Callers};
use super::lane::{Queued, ReadLane};
use super::lanes::LanesByWeight;
use super::spread::Spread;
use crate::store::Page;
use crate::store::redis::merge::Wanted;
use crate::store::redis::partitions::Parts;

/// The largest number of flights that are under way at the same time.
const FLIGHTS: usize = 8;

/// A page of a board, with the callers that wait for it.
#[derive(Debug)]
pub(super) struct AskedPage {
    parts: Arc<Parts>,
    wanted: Wanted,
    ties: bool,
    callers: Callers<Page>,
}

impl AskedPage {
    pub fn new(parts: Arc<Parts>, wanted: Wanted, ties: bool) -> (Self, Answered<Page>) {
        let (callers, answered) = Callers::one();
        (Self { parts, wanted, ties, callers }, answered)
    }
}

impl Queued for AskedPage {
    fn weight(&self) -> u64 {
        1
    }

    fn hash(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one((Arc::as_ptr(&self.parts), &self.wanted, self.ties))
    }

    fn is_abandoned(&self) -> bool {
        self.callers.are_gone()
    }

    fn join(&mut self, other: Self) -> Option<Self> {
        if !Arc::ptr_eq(&self.parts, &other.parts) || (&self.wanted, self.ties) != (&other.wanted, other.ties) {
            return Some(other);
        }
        self.callers.join(other.callers);
        None
    }
}

/// Answers waiting questions until the lane is closed. Then no question to a partition can follow, so the lanes to the
/// nodes are closed too.
pub(super) async fn run(lanes: Arc<LanesByWeight>, lane: Arc<ReadLane<AskedPage>>) {
    let fly = |taken| {
        let lanes = lanes.clone();
        async move { fly(&lanes, taken).await }
    };
    lane.run(FLIGHTS, fly).await;
    lanes.close();
}

/// Reads all of these pages at the same time. Each is answered as soon as it is complete.
async fn fly(lanes: &LanesByWeight, taken: Vec<AskedPage>) {
    let read = taken.into_iter().map(async |asked| {
        let AskedPage { parts, wanted, ties, callers } = asked;
        let spread = Spread { lanes, parts: &parts, key: None, ties, is_here: true };
        callers.answer(spread.lines(&wanted).await);
    });
    join_all(read).await;
}
