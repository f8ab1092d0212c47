//! Rollover: advances a board to now, then retires everything below its floor in bounded steps.
//!
//! Each window of a board is rolled over on its own, at the boundaries of its own slots. So are the slots that a board
//! over all time keeps, which like those of an unranked board expire without being subtracted from anything.
//!
//! A step is atomic in the store and can be repeated without harm. So the scheduler, a manual call and other instances
//! may roll over the same board at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::{Mutex as Turn, Notify, Semaphore};

use super::due::{self, DueTracks};
use crate::board::{Board, BoardName, BoardTrack, Frame, Timestamp, Track, TrackId, TrackRole};
use crate::store::{self, RetireStep, Store, StoreError};

/// The time to wait after another instance has just made a step for the board.
const STAND_ASIDE: Duration = Duration::from_millis(5);

/// The largest number of steps of one board in progress at once. More than one is used if the store is far away.
const MAX_UNDER_WAY: usize = 8;

/// The shortest step that is used to choose the number of steps in progress. A shorter one does not predict the next.
const WORTH_A_PAUSE: Duration = Duration::from_micros(200);

/// The shortest time that a timer waits. Shorter pauses add up until they reach it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// The time that a step is taken to cost at least, beside what the store says: to send it, and to record its result.
const LEAST_COST: Duration = Duration::from_micros(50);

/// The largest number of steps in progress at once, of all boards together.
const MAX_STEPS: usize = 32;

/// The result of one rollover.
#[derive(Clone, Debug)]
pub struct RolloverReport {
    /// The window after the rollover.
    pub frame: Frame,
    /// The number of slots by which the head moved forward. 0 if another caller had moved it.
    pub slots_advanced: u64,
    /// The number of slots whose last amount this rollover subtracted.
    pub slots_retired: u64,
    /// The number of subtractions: one for each subject and slot.
    pub subjects_touched: u64,
    /// The number of subjects that left the ranking. `None` in a preview, because only a rollover can determine it.
    pub subjects_removed: Option<u64>,
    /// The elapsed wall-clock time.
    pub took: Duration,
}

impl RolloverReport {
    /// Adds the numbers of another track of the board. The frame remains that of the first one, unless the other one is
    /// that of kept slots: a total over all time has no bounds.
    pub(super) fn add(&mut self, track: &Track, other: &RolloverReport) {
        if track.role() == TrackRole::KeptSlots {
            self.frame = other.frame;
        }
        self.slots_advanced += other.slots_advanced;
        self.slots_retired += other.slots_retired;
        self.subjects_touched += other.subjects_touched;
        self.subjects_removed = self.subjects_removed.zip(other.subjects_removed).map(|(ours, theirs)| ours + theirs);
        self.took += other.took;
    }
}

/// A step, and the time that it took, including the round trip to the store.
struct Step {
    step: RetireStep,
    took: Duration,
}

/// Returns the number of steps that must be in progress so that the next one can begin whenever the pause after the
/// previous one is over.
fn most_under_way(worked: Duration, took: Duration) -> usize {
    if worked < WORTH_A_PAUSE {
        return 1;
    }
    let turns = took.as_micros().div_ceil(2 * worked.as_micros());
    usize::try_from(turns).unwrap_or(MAX_UNDER_WAY).clamp(1, MAX_UNDER_WAY)
}

/// The times at which steps may begin.
///
/// After each step there is a pause as long as the step cost, so the store spends at most half of its time on retiring,
/// independent of the number of boards and of steps in progress.
struct Pace {
    /// The time at which the next step may begin.
    free_at: Instant,
    /// The mean cost of the last steps, which is expected of the first step of a board.
    usual: Duration,
}

impl Pace {
    /// Makes room for a step that is expected to cost this much, or as much as others did.
    fn begin(&mut self, now: Instant, expected: Option<Duration>) -> Duration {
        let expected = expected.unwrap_or(self.usual);
        self.free_at = self.free_at.max(now) + 2 * expected;
        expected
    }

    /// Corrects the pause after a step by what it has cost.
    fn end(&mut self, expected: Duration, cost: Duration) {
        let more = self.free_at + 2 * cost.saturating_sub(expected);
        self.free_at = more.checked_sub(2 * expected.saturating_sub(cost)).unwrap_or(more);
        self.usual = (3 * self.usual + cost) / 4;
    }
}

/// What several rollovers have done, for one line in the log.
#[derive(Default)]
struct Tally {
    tracks: u64,
    slots: u64,
    subjects: u64,
}

/// The rollover of all boards.
pub(super) struct RolloverRunner {
    store: Arc<dyn Store>,
    /// Held by a step from before its turn until it is done. Semaphore and mutex of Tokio are fair, so the boards take
    /// turns.
    under_way: Semaphore,
    /// Held by the step that begins next.
    turn: Turn<()>,
    /// Never held across an await, nor is the next one.
    pace: Mutex<Pace>,
    due: Mutex<DueTracks>,
    /// What was rolled over since the last tick.
    tally: Mutex<Tally>,
    /// Notified when a tick has found tracks that are due.
    found: Notify,
}

impl RolloverRunner {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        due::describe();
        Self {
            store,
            under_way: Semaphore::new(MAX_STEPS),
            turn: Turn::new(()),
            pace: Mutex::new(Pace { free_at: Instant::now(), usual: LEAST_COST }),
            due: Mutex::default(),
            tally: Mutex::default(),
            found: Notify::new(),
        }
    }

    /// Rolls a track over. Returns when nothing is left below its floor, nor any other data that is no longer needed.
    ///
    /// If the round trip to the store takes longer than a step, several steps are in progress at once. The store
    /// processes them one after another, and each continues where the previous one ended.
    pub(super) async fn run(&self, track: &BoardTrack) -> store::Result<RolloverReport> {
        let started = Instant::now();
        let (mut advanced, mut retired, mut touched, mut removed) = (0, 0, 0, 0);
        let mut under_way = FuturesUnordered::new();
        let (mut expected, mut most, mut is_done) = (None, 1, false);
        loop {
            while !is_done && under_way.len() < most {
                under_way.push(self.step(track, expected));
            }
            // There is always at least one: the last step to return after the work is done returns below.
            let Some(step) = under_way.next().await else { return Err(StoreError::BoardChanged) };
            let Step { step, took } = step?;
            advanced += step.slots_advanced;
            retired += step.slots_retired;
            touched += step.subjects_touched;
            removed += step.subjects_removed;
            is_done |= step.done;
            (expected, most) = (Some(step.worked), most_under_way(step.worked, took));
            if is_done && under_way.is_empty() {
                return Ok(RolloverReport {
                    frame: step.frame,
                    slots_advanced: advanced,
                    slots_retired: retired,
                    subjects_touched: touched,
                    subjects_removed: Some(removed),
                    took: started.elapsed(),
                });
            }
            if step.skipped {
                tokio::time::sleep(STAND_ASIDE).await;
            }
        }
    }

    /// Waits for its turn and makes one step. `expected` is the time that the store is expected to work on it, if that
    /// is known.
    async fn step(&self, track: &BoardTrack, expected: Option<Duration>) -> store::Result<Step> {
        // The semaphore is never closed.
        let _under_way = self.under_way.acquire().await;
        let (started, expected) = {
            let _turn = self.turn.lock().await;
            loop {
                let pause = self.pace.lock().free_at.saturating_duration_since(Instant::now());
                if pause < SHORTEST_PAUSE {
                    break;
                }
                tokio::time::sleep(pause).await;
            }
            let now = Instant::now();
            (now, self.pace.lock().begin(now, expected))
        };
        let step = self.store.retire_step(track).await?;
        let took = started.elapsed();
        self.pace.lock().end(expected, step.worked.max(LEAST_COST));
        self.due.lock().stepped(track, &step);
        Ok(Step { step, took })
    }

    /// Returns the work that a rollover would do now. The call advances the board like every call, so only the retiring
    /// is left to preview. O(slots).
    pub(super) async fn preview(&self, track: &BoardTrack) -> store::Result<RolloverReport> {
        let started = Instant::now();
        let status = self.store.status(track).await?;
        Ok(RolloverReport {
            frame: status.frame,
            slots_advanced: 0,
            slots_retired: status.retiring.len() as u64,
            subjects_touched: status.retiring.iter().map(|(_, subjects)| subjects).sum(),
            subjects_removed: None,
            took: started.elapsed(),
        })
    }

    /// Makes the tracks of these boards those that are rolled over when they are due.
    pub(super) fn set_boards(&self, boards: &[Arc<Board>]) {
        self.due.lock().set(boards);
    }

    /// Lets everything that is due at `now` be rolled over. Logs what was rolled over since the last tick.
    pub(super) fn tick(&self, now: Timestamp) {
        let Tally { tracks, slots, subjects } = std::mem::take(&mut *self.tally.lock());
        if tracks > 0 {
            tracing::info!(boards = tracks, slots, subjects, "rolled over");
        }
        if self.due.lock().tick(now) {
            self.found.notify_one();
        }
    }

    /// Returns the track that has been due for the longest time as of the last tick, if any is. The caller rolls it
    /// over and then calls [`finished`](Self::finished).
    pub(super) fn take_due(&self) -> Option<BoardTrack> {
        self.due.lock().take()
    }

    /// Waits until a track is due, and returns it as [`take_due`](Self::take_due) does. For one caller.
    pub(super) async fn next_due(&self) -> BoardTrack {
        loop {
            if let Some(track) = self.take_due() {
                return track;
            }
            self.found.notified().await;
        }
    }

    /// Marks the rollover of a track that was taken as finished.
    pub(super) fn finished(&self, id: TrackId, outcome: &store::Result<RolloverReport>) {
        if let Ok(report) = outcome
            && report.slots_retired > 0
        {
            let mut tally = self.tally.lock();
            tally.tracks += 1;
            tally.slots += report.slots_retired;
            tally.subjects += report.subjects_touched;
        }
        let mut due = self.due.lock();
        match outcome {
            Err(StoreError::BoardChanged | StoreError::StaleEpoch) => due.remove(id),
            outcome => due.finished(id, outcome.is_ok()),
        }
    }

    /// Marks the rollover of a track that was taken as ended without an outcome.
    pub(super) fn failed(&self, id: TrackId) {
        self.due.lock().finished(id, false);
    }

    /// Returns the boards whose rollover has been due for a minute without progress.
    pub(super) fn overdue(&self) -> Vec<BoardName> {
        self.due.lock().overdue()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_round_trip_has_more_steps_in_progress() {
        let us = Duration::from_micros;
        assert_eq!(most_under_way(us(2_000), us(2_100)), 1);
        assert_eq!(most_under_way(us(2_000), us(4_000)), 1);
        assert_eq!(most_under_way(us(2_000), us(6_000)), 2);
        assert_eq!(most_under_way(us(2_000), us(22_000)), 6);
        assert_eq!(most_under_way(us(2_000), us(900_000)), MAX_UNDER_WAY);
        assert_eq!(most_under_way(us(50), us(20_000)), 1, "little work is not worth it");
        assert_eq!(most_under_way(us(0), us(20_000)), 1);
    }

    #[test]
    fn the_first_step_of_a_board_is_paced_like_those_of_others() {
        let (us, now) = (Duration::from_micros, Instant::now());
        let mut pace = Pace { free_at: now, usual: us(100) };
        for n in 1..=3 {
            assert_eq!(pace.begin(now, None), us(100));
            assert_eq!(pace.free_at, now + n * us(200), "steps in progress also count");
        }
        pace.end(us(100), us(500));
        assert_eq!((pace.free_at, pace.usual), (now + us(1_400), us(200)));
        pace.end(us(100), us(50));
        assert_eq!(pace.free_at, now + us(1_300));
    }
}
