//! Mirrored reads: a share of the reads of boards with a successor is also answered by the successor, and the answers
//! are compared. The caller does not wait for it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::Future;
use std::sync::Arc;

use metrics::{counter, describe_counter};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::compare::is_same;
use crate::board::{BoardTrack, EditionRole, RankingKey, Scale, Subject, Timestamp, TrackId, Value};
use crate::store::{self, Store};

/// The number of mirrored reads that may be under way. Further ones are dropped.
const AT_ONCE: usize = 16;
/// The number of differences of a successor that are kept.
const KEPT: usize = 100;

const READS: &str = "rolltop_mirrored_reads_total";

/// The kinds of reads that are mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirroredRead {
    Page,
    Lookup,
    Standing,
    Neighbors,
}

impl MirroredRead {
    pub fn name(self) -> &'static str {
        match self {
            MirroredRead::Page => "page",
            MirroredRead::Lookup => "lookup",
            MirroredRead::Standing => "standing",
            MirroredRead::Neighbors => "neighbors",
        }
    }
}

/// The scores in an answer, in its order.
pub(super) type Answered = Vec<(Subject, Option<Value>)>;

/// An answer of a board that its successor did not give.
#[derive(Clone, Debug)]
pub struct MirroredDifference {
    /// The units of the board and of the successor.
    pub scales: [Scale; 2],
    pub read: MirroredRead,
    /// The key of the ranking, if the board has keys.
    pub key: Option<RankingKey>,
    /// The store's time of the answer of the board.
    pub at: Timestamp,
    /// The first line in which the answers differ: the position from 0, and what each answer has there.
    pub position: usize,
    pub lines: [Option<(Subject, Option<Value>)>; 2],
}

/// The reads that are mirrored.
pub(super) struct Mirror {
    /// The share of reads, from 0 to 1.
    share: f64,
    slots: Arc<Semaphore>,
    /// The latest differences of each successor, by its identity.
    differences: Arc<Mutex<HashMap<TrackId, VecDeque<MirroredDifference>>>>,
}

impl Mirror {
    pub(super) fn new(share: f64) -> Self {
        describe_counter!(READS, "Reads that were also answered by a successor, by kind of read and result");
        Self { share, slots: Arc::new(Semaphore::new(AT_ONCE)), differences: Arc::default() }
    }

    /// Returns the latest differences of a successor, the newest last.
    pub(super) fn differences(&self, successor: TrackId) -> Vec<MirroredDifference> {
        self.differences.lock().get(&successor).into_iter().flatten().cloned().collect()
    }

    /// Forgets the differences of all successors but those among these editions.
    pub(super) fn keep(&self, editions: &HashSet<TrackId>) {
        self.differences.lock().retain(|successor, _| editions.contains(successor));
    }

    /// Reads the window of the successor that corresponds to `track`, perhaps, and compares the answers.
    pub(super) fn read<F>(
        &self,
        store: &Arc<dyn Store>,
        track: &BoardTrack,
        read: MirroredRead,
        (at, answered): (Timestamp, impl FnOnce() -> Answered),
        ask: impl FnOnce(Arc<dyn Store>, BoardTrack) -> F,
    ) where
        F: Future<Output = store::Result<Answered>> + Send + 'static,
    {
        let Some(successor) = self.successor(track) else { return };
        let count = move |result: &'static str| counter!(READS, "read" => read.name(), "result" => result).increment(1);
        let Ok(slot) = self.slots.clone().try_acquire_owned() else { return count("dropped") };
        let (answered, scales) = (answered(), [track.scale(), successor.scale()]);
        let (id, key, differences) = (successor.edition().id(), track.key().cloned(), self.differences.clone());
        let asked = ask(store.clone(), successor);
        tokio::spawn(async move {
            let _slot = slot;
            let Ok(mirrored) = asked.await else { return count("failed") };
            let is_equal = |a: &(Subject, Option<Value>), b: &(Subject, Option<Value>)| {
                let are_scores = match (a.1, b.1) {
                    (Some(a), Some(b)) => is_same((a, scales[0]), (b, scales[1])),
                    (a, b) => a.is_none() && b.is_none(),
                };
                a.0 == b.0 && are_scores
            };
            let longest = answered.len().max(mirrored.len());
            let differs = |at: &usize| match (answered.get(*at), mirrored.get(*at)) {
                (Some(a), Some(b)) => !is_equal(a, b),
                _ => true,
            };
            let Some(position) = (0..longest).find(differs) else { return count("equal") };
            count("different");
            let lines = [answered.get(position).cloned(), mirrored.get(position).cloned()];
            let mut differences = differences.lock();
            let own = differences.entry(id).or_default();
            if own.len() == KEPT {
                own.pop_front();
            }
            own.push_back(MirroredDifference { scales, read, key, at, position, lines });
        });
    }

    /// Returns the window of the successor that a read of `track` is mirrored to, if it is: the main one for the main
    /// one, and otherwise the one of the same length.
    fn successor(&self, track: &BoardTrack) -> Option<BoardTrack> {
        let next = track.board().edition_as(EditionRole::Next)?;
        if self.share <= 0.0 || track.edition().number() != 0 || rand::random::<f64>() >= self.share {
            return None;
        }
        let window = match track.is_main() {
            true => next.main_track(),
            false => next.window_of(track.length())?,
        };
        (window.is_ranked() == track.is_ranked()).then(|| window.of_key(track.key().cloned()))
    }
}
