//! The ranks of an earlier time that lines show beside the present ones.
//!
//! Within a boundary they do not change, so each instance reads them once for each boundary, with the first answer after
//! it. Those of a period before are the ranks that its page shows at the time of the answer: late items, and subjects that
//! are hidden, shown or removed, change them as they change that page. So what is kept of them is used only while the page
//! is the same, whoever read it when.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Service;
use super::archive::Version;
use crate::board::{BoardEdition, BoardTrack, EarlierRank, EarlierRanks, Generation, Movement, Timestamp, TrackId};
use crate::store::Ranked;

/// The largest number of tracks whose ranks an instance keeps: a few megabytes.
const MOST: usize = 64;

/// The ranks that this instance has read, by the track that they are of.
#[derive(Default)]
pub(super) struct KnownRanks(Mutex<HashMap<(Generation, TrackId), Known>>);

#[derive(Clone)]
struct Known {
    ranks: Arc<EarlierRanks>,
    /// What they were made of, if they are those of a period.
    version: Option<Version>,
}

impl KnownRanks {
    fn get(&self, track: &BoardTrack) -> Option<Known> {
        self.0.lock().get(&key_of(track)).cloned()
    }

    fn put(&self, track: &BoardTrack, known: Known) {
        let mut all = self.0.lock();
        if all.len() >= MOST && !all.contains_key(&key_of(track)) {
            // Those in use are read again.
            all.clear();
        }
        all.insert(key_of(track), known);
    }

    /// Drops the ranks of a board, of which a subject is removed.
    pub(super) fn forget(&self, board: Generation) {
        self.0.lock().retain(|(generation, _), _| *generation != board);
    }
}

fn key_of(track: &BoardTrack) -> (Generation, TrackId) {
    (track.board().generation(), track.id())
}

impl Service {
    /// Gives the track the ranks of the earlier time that the lines of an answer as of `as_of` show, if its board has
    /// movement and they are known. One store call the first time after a boundary. If it fails, the answer shows none.
    pub(super) async fn add_earlier_ranks(&self, track: &mut BoardTrack, as_of: Timestamp) {
        if let Some(movement) = track.edition().definition().movement {
            // Boxed, because every read would have room for what only boards with movement need.
            let ranks = Box::pin(self.earlier_ranks(track, movement, as_of)).await;
            *track = track.clone().with_earlier(ranks.filter(|ranks| ranks.lines().is_some()));
        }
    }

    async fn earlier_ranks(
        &self,
        track: &BoardTrack,
        movement: Movement,
        as_of: Timestamp,
    ) -> Option<Arc<EarlierRanks>> {
        match movement {
            Movement::Period => self.ranks_of_period_before(track).await,
            Movement::Hour | Movement::Day => self.ranks_at_boundary(track, as_of).await,
        }
    }

    async fn ranks_at_boundary(&self, track: &BoardTrack, as_of: Timestamp) -> Option<Arc<EarlierRanks>> {
        let (boundary, _) = track.noted_at(as_of)?;
        // Those of a period that has ended are not at its end.
        if track.board().season().is_some() && track.edition().number() > 0 {
            return None;
        }
        if let Some(known) = self.known_ranks.get(track).filter(|known| known.ranks.at() == boundary) {
            return Some(known.ranks);
        }
        let ranks = match self.store.earlier_ranks(track).await {
            // A boundary has passed, one way or the other, since the answer.
            Ok(ranks) => ranks.filter(|ranks| ranks.at() == boundary)?,
            Err(error) => {
                tracing::debug!(board = %track.board().name(), %error, "lines are shown without their earlier ranks");
                return None;
            }
        };
        self.known_ranks.put(track, Known { ranks: ranks.clone(), version: None });
        Some(ranks)
    }

    async fn ranks_of_period_before(&self, track: &BoardTrack) -> Option<Arc<EarlierRanks>> {
        let before = period_before(&track.edition())?;
        let (end, of) = (before.period()?.end, before.main_track());
        let known = self.known_ranks.get(&of);
        let version = known.as_ref().and_then(|known| known.version.as_ref());
        let (lines, version) = match self.rankings.first_lines(&of, EarlierRanks::MOST as u32, version).await {
            Ok(Some(first)) => first,
            Ok(None) => return known.map(|known| known.ranks),
            Err(error) => {
                tracing::debug!(board = %of.board().name(), %error, "lines are shown without their earlier ranks");
                return None;
            }
        };
        let subject = |line: &Ranked| Some(line.subject.clone()).filter(|subject| subject.removed_line().is_none());
        let line = |line: &Ranked| EarlierRank { rank: line.rank, subject: subject(line) };
        let ranks = Arc::new(EarlierRanks::new(end, lines.iter().map(line).collect()));
        self.known_ranks.put(&of, Known { ranks: ranks.clone(), version: Some(version) });
        Some(ranks)
    }
}

/// Returns the period before this one, if the board still has it.
fn period_before(period: &BoardEdition) -> Option<BoardEdition> {
    let start = period.period()?.start;
    let starts = |edition: &BoardEdition| edition.period().map(|period| period.start);
    period.board().each_period().filter(|other| starts(other) < Some(start)).max_by_key(starts)
}
