//! The fill of a successor: what a board has is given to the successor that counts the same items.
//!
//! The contents of the board are walked only to learn which subjects have something in which slots. What these are
//! given is read in the step that gives it: see [`Store::fill`](crate::store::Store::fill). So it does not matter that
//! writes continue, and a fill that was interrupted begins again without harm.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::import_tracks::source_of;
use super::{Result, Service};
use crate::board::{Board, BoardEdition, BoardTrack, EditionRole, Mode, Subject, Timestamp, Track, TrackId};
use crate::store::{self, Content, ContentsCursor, MAX_FILLED, StoreError};

/// The time after which an instance begins a fill that another one has begun and may not end, or again one that failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of calls at the same time that give cells. A step of a walk has as many pieces only if the store is distant.
const AT_ONCE: usize = 8;
/// The number of walks after which a fill is given up until the next tick, because subjects are removed all the time.
const WALKS: usize = 8;

/// How far this instance is with a fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillProgress {
    /// The number of cells that it has given to the successor. 0 if another instance does it.
    pub cells: u64,
}

/// The fills of this instance, by the identity of the successor.
#[derive(Default)]
pub(super) struct Fills {
    known: Mutex<HashMap<TrackId, KnownFill>>,
}

struct KnownFill {
    due: Instant,
    progress: FillProgress,
    is_done: bool,
}

impl Fills {
    /// Notes that this instance has begun a dual run, so that it fills the successor at once.
    pub(super) fn begin(&self, successor: Option<TrackId>) {
        let fill = KnownFill { due: Instant::now(), progress: FillProgress::default(), is_done: false };
        self.known.lock().extend(successor.map(|id| (id, fill)));
    }

    /// Forgets the fills of all successors but those among these editions.
    pub(super) fn keep(&self, editions: &HashSet<TrackId>) {
        self.known.lock().retain(|successor, _| editions.contains(successor));
    }

    pub(super) fn progress(&self, successor: TrackId) -> FillProgress {
        self.known.lock().get(&successor).map_or_else(FillProgress::default, |fill| fill.progress)
    }

    /// Returns whether a fill is due on this instance.
    fn is_due(&self, successor: TrackId) -> bool {
        let mut known = self.known.lock();
        let fill = known.entry(successor).or_insert_with(|| KnownFill {
            due: Instant::now() + PATIENCE,
            progress: FillProgress::default(),
            is_done: false,
        });
        !fill.is_done && fill.due <= Instant::now()
    }

    /// Notes that this instance begins at the first cell.
    fn start(&self, successor: TrackId) {
        self.change(successor, |fill| fill.progress = FillProgress::default());
    }

    fn end(&self, successor: TrackId) {
        self.change(successor, |fill| fill.is_done = true);
    }

    /// Has the fill begin again after a while.
    fn put_off(&self, successor: TrackId) {
        self.change(successor, |fill| fill.due = Instant::now() + PATIENCE);
    }

    fn add(&self, successor: TrackId, cells: usize) {
        self.change(successor, |fill| fill.progress.cells += cells as u64);
    }

    fn change(&self, successor: TrackId, change: impl FnOnce(&mut KnownFill)) {
        if let Some(fill) = self.known.lock().get_mut(&successor) {
            change(fill);
        }
    }
}

/// Returns the editions between which a fill goes, or went: from the older one to its successor.
pub(super) fn direction(board: &Arc<Board>) -> Option<[BoardEdition; 2]> {
    let other = board.edition_as(board.other()?.role)?;
    Some(match board.other()?.role {
        EditionRole::Next => [board.current(), other],
        EditionRole::Previous => [other, board.current()],
    })
}

/// Returns the tracks of a board with two editions of which the first can fill the second: none unless both editions
/// count the same items.
pub(super) fn pairs(board: &Arc<Board>, as_of: Timestamp) -> Vec<(BoardTrack, BoardTrack)> {
    let Some([from, to]) = direction(board) else { return Vec::new() };
    let has_slots = |edition: &BoardEdition| edition.definition().mode == Mode::Sliding;
    if !to.counts_same_items_as(&from) || !has_slots(&from) || !has_slots(&to) {
        return Vec::new();
    }
    let sources: Vec<BoardTrack> = from.each_track().collect();
    let pair = |track: BoardTrack| Some((sources.get(source_of(&from, &track, as_of)?)?.clone(), track));
    to.each_track().filter_map(pair).filter(|(source, track)| has_room(track, source, as_of)).collect()
}

/// Returns whether what all slots of the source have that are one slot of the track is within its bounds, whatever it is: a
/// subject that is beyond them would be left out. Where equal scores have no order, bounds are too large to matter.
fn has_room(track: &Track, source: &Track, as_of: Timestamp) -> bool {
    let most = |track: &Track| match track.key_bound() {
        Some(keys) => Some(keys.most),
        None if track.scale().has_times() && track.kind().is_sum() => {
            Some(track.scale().largest_within(track.slot_bound()).0)
        }
        None => None,
    };
    let (Some(ours), Some(theirs)) = (most(track), most(source)) else { return true };
    theirs.saturating_mul(most_parts(track, source, as_of)) <= ours
}

/// Returns the largest number of slots that the source has at this time, or in the one that comes next, that are one slot of
/// the track. O(slots of the source).
fn most_parts(track: &Track, source: &Track, as_of: Timestamp) -> i64 {
    if track.is_all_time() {
        return 1;
    }
    let window = source.window_at(as_of);
    let newest = track.calendar().next(track.calendar().slot_of(window.head));
    let (mut most, mut parts, mut last) = (0, 0, None);
    let mut start = source.oldest_kept(window.floor);
    while start < newest {
        let slot = track.calendar().slot_of(start);
        parts = if last == Some(slot) { parts + 1 } else { 1 };
        (most, last) = (most.max(parts), Some(slot));
        start = source.calendar().next(start);
    }
    most
}

impl Service {
    /// Fills the successor of a board, if it can be filled, is not, and if it is for this instance to do.
    pub(super) async fn fill_if_due(&self, board: &Arc<Board>, now: Timestamp) -> Result<()> {
        let pairs = pairs(board, now);
        let Some(successor) = board.editions().get(1).map(|edition| edition.id()) else { return Ok(()) };
        if pairs.is_empty() || !self.fills.is_due(successor) {
            return Ok(());
        }
        let filled = match self.store.dual_run(board).await {
            Ok(run) if run.filled.is_some() => Ok(true),
            Ok(run) => self.fill(board, &pairs, successor, run.server_runs).await,
            Err(error) => Err(error),
        };
        match filled {
            Ok(true) => {
                self.fills.end(successor);
                Ok(())
            }
            // The next tick begins again.
            Ok(false) => Ok(()),
            Err(StoreError::StaleEpoch | StoreError::BoardChanged) => {
                self.registry.refresh(board.name()).await?;
                Ok(())
            }
            Err(error) => {
                self.fills.put_off(successor);
                Err(error.into())
            }
        }
    }

    /// Fills all tracks of a successor. Returns whether it has what the board has: not if subjects were removed during
    /// every walk, or if a server was restarted since `server_runs` was read.
    async fn fill(
        &self,
        board: &Arc<Board>,
        pairs: &[(BoardTrack, BoardTrack)],
        successor: TrackId,
        server_runs: u64,
    ) -> store::Result<bool> {
        self.fills.start(successor);
        let mut of_source: BTreeMap<usize, Vec<&BoardTrack>> = BTreeMap::new();
        for (from, to) in pairs {
            of_source.entry(from.number()).or_default().push(to);
        }
        for (number, targets) in of_source {
            let Some((from, _)) = pairs.iter().find(|(from, _)| from.number() == number) else { continue };
            let mut is_settled = false;
            for _ in 0..WALKS {
                let before = self.store.status(from).await?.upheavals;
                self.walk(from, from, &targets, successor).await?;
                if from.kind().cancels() {
                    // A cell that amounts below 0 have removed before the walk came to it was not given. What the
                    // successor has of these amounts is replaced by what the board has now: nothing.
                    for to in &targets {
                        self.walk(to, from, &[to], successor).await?;
                    }
                }
                // What was moved during the walk may be missing in it.
                is_settled = self.store.status(from).await?.upheavals == before;
                if is_settled {
                    break;
                }
            }
            if !is_settled {
                return Ok(false);
            }
        }
        if self.store.dual_run(board).await?.server_runs != server_runs {
            return Ok(false);
        }
        let numbers: Vec<_> = pairs.iter().map(|(from, to)| (from.number(), to.number())).collect();
        self.store.end_fill(board, &numbers).await?;
        Ok(true)
    }

    /// Gives what a track has in the cells of `walked` to the tracks that it fills.
    async fn walk(
        &self,
        walked: &BoardTrack,
        from: &BoardTrack,
        targets: &[&BoardTrack],
        successor: TrackId,
    ) -> store::Result<()> {
        let mut next = Some(ContentsCursor::default());
        let (mut cells, mut last) = (HashSet::new(), None);
        while next.is_some() || !cells.is_empty() {
            // The next cells are looked for while some are given.
            let look = self.next_cells(walked, next, &mut last);
            ((), (cells, next)) = try_join(self.give(from, targets, &cells, successor), look).await?;
        }
        Ok(())
    }

    /// Returns the cells of the next step of a walk, and where it continues. None at its end. `last` is the last subject of
    /// the walk, so that one whose values take many steps is given once.
    async fn next_cells(
        &self,
        walked: &BoardTrack,
        cursor: Option<ContentsCursor>,
        last: &mut Option<Subject>,
    ) -> store::Result<(HashSet<(Subject, Timestamp)>, Option<ContentsCursor>)> {
        let Some(cursor) = cursor else { return Ok(Default::default()) };
        let step = self.store.contents_step(walked, cursor).await?;
        let head = step.frame.window.head;
        let cell = |(subject, content): (Subject, Content)| match content {
            Content::Cell { slot, .. } => (subject, slot),
            // All values of a subject are given at once.
            Content::Value { .. } | Content::Dropped { .. } | Content::Counter { .. } => (subject, head),
        };
        let before = step.contents.last().map(|(subject, _)| subject.clone()).and_then(|newest| last.replace(newest));
        let before = before.filter(|_| walked.kind().remembers_values());
        let is_new = |(subject, _): &(Subject, Content)| before.as_ref() != Some(subject);
        Ok((step.contents.into_iter().filter(is_new).map(cell).collect(), step.next))
    }

    /// Gives what a track has in these cells to other tracks.
    async fn give(
        &self,
        from: &BoardTrack,
        targets: &[&BoardTrack],
        cells: &HashSet<(Subject, Timestamp)>,
        successor: TrackId,
    ) -> store::Result<()> {
        let wanted: Vec<_> = targets.iter().map(|to| (*to, wanted(from, to, cells))).collect();
        let mut calls = Vec::new();
        for (to, cells) in &wanted {
            for cells in cells.chunks(MAX_FILLED) {
                calls.push(async move {
                    self.store.fill(from, to, cells).await?;
                    self.fills.add(successor, cells.len());
                    store::Result::Ok(())
                });
            }
        }
        stream::iter(calls).buffer_unordered(AT_ONCE).try_collect().await
    }
}

/// Returns the cells that a step of a walk names, one for each slot of the target.
fn wanted(from: &BoardTrack, to: &BoardTrack, cells: &HashSet<(Subject, Timestamp)>) -> Vec<(Subject, Timestamp)> {
    let is_by_slot = !from.is_all_time() && !from.kind().remembers_values();
    let mut seen = HashSet::new();
    let place = |slot: Timestamp| if is_by_slot { to.calendar().slot_of(slot) } else { Timestamp::EPOCH };
    cells.iter().filter(|(subject, slot)| seen.insert((subject, place(*slot)))).cloned().collect()
}
