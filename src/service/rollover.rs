//! Rollover: advance a board to now, then retire everything below its floor, one bounded step after another.
//!
//! Nothing here needs to be the only one doing it: a step is atomic in the store and repeats harmlessly, so
//! the scheduler, a manual call and other instances may all roll over the same board at once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{counter, describe_counter, describe_gauge, gauge};
use parking_lot::Mutex;
use tokio::sync::Mutex as Turn;

use crate::board::{Board, BoardName, Frame, Timestamp};
use crate::store::{self, RetireStep, Store, StoreError};

/// How long to stand aside when another instance has just stepped the board.
const STAND_ASIDE: Duration = Duration::from_millis(5);

/// A board whose rollover has made no progress for so long is overdue.
const OVERDUE_AFTER: Duration = Duration::from_secs(60);

const RETIRING: &str = "rolltop_retiring_slots";
const SLOTS_RETIRED: &str = "rolltop_slots_retired_total";
const SUBJECTS_RETIRED: &str = "rolltop_subjects_retired_total";
const LAG: &str = "rolltop_rollover_lag_seconds";

/// What one rollover did.
#[derive(Clone, Debug)]
pub struct RolloverReport {
    /// The window afterwards.
    pub frame: Frame,
    /// Slots the head moved forward; 0 if somebody else had moved it.
    pub slots_advanced: u64,
    /// Slots whose last amount this rollover subtracted.
    pub slots_retired: u64,
    /// Subtractions made: one per subject and slot.
    pub subjects_touched: u64,
    /// Subjects that left the ranking; `None` in a preview, which cannot know without doing it.
    pub subjects_removed: Option<u64>,
    /// Wall time.
    pub took: Duration,
}

/// Where one board's rollover stands on this instance.
#[derive(Default)]
struct Progress {
    /// The clock's reading at which the head's slot ends; unknown before the first step.
    due_at: Option<Timestamp>,
    /// Since when it has been due without a step that succeeded.
    stalled_since: Option<Instant>,
    /// A scheduled rollover is under way.
    running: bool,
}

/// Drives the steps of all boards.
pub(super) struct Rollover {
    store: Arc<dyn Store>,
    /// Held for one step and as long a pause: at most one step in flight per instance and half of the store's
    /// time at the most. Tokio's mutex is fair, which is what gives the boards their turns.
    turn: Turn<()>,
    /// Never held across an await.
    progress: Mutex<HashMap<BoardName, Progress>>,
}

impl Rollover {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        describe_gauge!(RETIRING, "Expired slots not yet fully subtracted, by board, after the last step");
        describe_counter!(SLOTS_RETIRED, "Slots retired by this instance, by board");
        describe_counter!(
            SUBJECTS_RETIRED,
            "Subtractions made by this instance, one for each subject and slot, by board"
        );
        describe_gauge!(LAG, "How long ago the head's slot ended without this instance having rolled over, by board");
        Self { store, turn: Turn::new(()), progress: Mutex::default() }
    }

    /// Rolls a board over; returns when nothing below its floor remains.
    pub(super) async fn run(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let started = Instant::now();
        let (mut advanced, mut retired, mut touched, mut removed) = (0, 0, 0, 0);
        loop {
            let step = self.step(board).await?;
            advanced += step.slots_advanced;
            retired += step.slots_retired;
            touched += step.subjects_touched;
            removed += step.subjects_removed;
            if step.done {
                return Ok(RolloverReport {
                    frame: step.frame,
                    slots_advanced: advanced,
                    slots_retired: retired,
                    subjects_touched: touched,
                    subjects_removed: Some(removed),
                    took: started.elapsed(),
                });
            }
        }
    }

    async fn step(&self, board: &Arc<Board>) -> store::Result<RetireStep> {
        let _turn = self.turn.lock().await;
        let started = Instant::now();
        let step = self.store.retire_step(board).await?;
        self.record(board, &step);
        if step.skipped {
            tokio::time::sleep(STAND_ASIDE).await;
        } else if !step.done {
            tokio::time::sleep(started.elapsed()).await;
        }
        Ok(step)
    }

    fn record(&self, board: &Arc<Board>, step: &RetireStep) {
        let name = board.name();
        gauge!(RETIRING, "board" => name.as_str().to_owned()).set(step.frame.retiring as f64);
        counter!(SLOTS_RETIRED, "board" => name.as_str().to_owned()).increment(step.slots_retired);
        counter!(SUBJECTS_RETIRED, "board" => name.as_str().to_owned()).increment(step.subjects_touched);
        let mut progress = self.progress.lock();
        let entry = progress.entry(name.clone()).or_default();
        entry.due_at = Some(step.frame.window.end);
        entry.stalled_since = if step.done { None } else { Some(Instant::now()) };
    }

    /// What a rollover would do now. Looking advances the board too, as every call does, so only the retiring
    /// is left to preview. O(slots).
    pub(super) async fn preview(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let started = Instant::now();
        let status = self.store.status(board).await?;
        Ok(RolloverReport {
            frame: status.frame,
            slots_advanced: 0,
            slots_retired: status.retiring.len() as u64,
            subjects_touched: status.retiring.iter().map(|(_, subjects)| subjects).sum(),
            subjects_removed: None,
            took: started.elapsed(),
        })
    }

    /// Those of the boards that are due at `now`, marked as running: the caller rolls each over and then calls
    /// [`finished`](Self::finished).
    pub(super) fn claim_due(&self, boards: Vec<Arc<Board>>, now: Timestamp) -> Vec<Arc<Board>> {
        let mut progress = self.progress.lock();
        let known: HashSet<&BoardName> = boards.iter().map(|board| board.name()).collect();
        progress.retain(|name, _| known.contains(name));
        let mut due = Vec::new();
        for board in boards {
            let entry = progress.entry(board.name().clone()).or_default();
            let lag = entry.due_at.map_or(0, |at| now.millis() - at.millis()).max(0);
            gauge!(LAG, "board" => board.name().as_str().to_owned()).set(lag as f64 / 1_000.0);
            let is_due = entry.stalled_since.is_some() || entry.due_at.is_none_or(|at| at <= now);
            if is_due {
                entry.stalled_since.get_or_insert_with(Instant::now);
                if !entry.running {
                    entry.running = true;
                    due.push(board);
                }
            }
        }
        due
    }

    /// The other half of [`claim_due`](Self::claim_due).
    pub(super) fn finished(&self, name: &BoardName, outcome: &store::Result<RolloverReport>) {
        let mut progress = self.progress.lock();
        if let Some(entry) = progress.get_mut(name) {
            entry.running = false;
            if matches!(outcome, Err(StoreError::BoardChanged)) {
                *entry = Progress::default();
            }
        }
    }

    /// Boards whose rollover has been due for a minute without any progress.
    pub(super) fn overdue(&self) -> Vec<BoardName> {
        let progress = self.progress.lock();
        let stalled = |p: &Progress| p.stalled_since.is_some_and(|since| since.elapsed() > OVERDUE_AFTER);
        progress.iter().filter(|(_, p)| stalled(p)).map(|(name, _)| name.clone()).collect()
    }
}
