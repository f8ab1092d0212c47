//! Rollover: advances a board to now, then retires everything below its floor in bounded steps.
//!
//! Each window of a board is rolled over on its own, at the boundaries of its own slots. So are the slots that a board
//! over all time keeps, which like those of an unranked board expire without being subtracted from anything.
//!
//! A step is atomic in the store and can be repeated without harm. So the scheduler, a manual call and other instances
//! may roll over the same board at the same time.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use metrics::{Label, counter, describe_counter, describe_gauge, gauge};
use parking_lot::Mutex;
use tokio::sync::Mutex as Turn;

use crate::board::{Board, BoardName, Frame, Generation, Timestamp};
use crate::store::{self, RetireStep, Store, StoreError};

/// The time to wait after another instance has just made a step for the board.
const STAND_ASIDE: Duration = Duration::from_millis(5);

/// The largest number of steps of one board in progress at once. More than one is used if the store is far away.
const MAX_UNDER_WAY: usize = 8;

/// The shortest step that is used to choose the number of steps in progress. A shorter one does not predict the next.
const WORTH_A_PAUSE: Duration = Duration::from_micros(200);

/// The shortest time that a timer waits. Shorter pauses add up until they reach it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// Each board is visited after this many to twice as many milliseconds of the store's clock, even if no slot has ended,
/// because ids and the data of single subjects expire in between. The spread prevents many boards from being due at
/// once.
const BETWEEN_VISITS: u64 = 30_000;

/// The time without progress after which the rollover of a board is overdue.
const OVERDUE_AFTER: Duration = Duration::from_secs(60);

const RETIRING: &str = "rolltop_retiring_slots";
const SLOTS_RETIRED: &str = "rolltop_slots_retired_total";
const SUBJECTS_RETIRED: &str = "rolltop_subjects_retired_total";
const LAG: &str = "rolltop_rollover_lag_seconds";

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
    /// Adds the numbers of another window of the board. The frame remains that of the first one, unless the other one is
    /// of the slots that a board over all time keeps: its own window has no bounds.
    pub(super) fn add(&mut self, board: &Board, other: &RolloverReport) {
        if board.kept_slots().is_some() {
            self.frame = other.frame;
        }
        self.slots_advanced += other.slots_advanced;
        self.slots_retired += other.slots_retired;
        self.subjects_touched += other.subjects_touched;
        self.subjects_removed = self.subjects_removed.zip(other.subjects_removed).map(|(ours, theirs)| ours + theirs);
        self.took += other.took;
    }
}

/// A window of a board, in one generation.
type Key = (BoardName, Generation);

fn key_of(board: &Board) -> Key {
    (board.name().clone(), board.generation())
}

/// Returns the labels of the metrics of a board: its name, and the length of a further window, or the time for which a
/// board over all time keeps slots.
fn labels_of(board: &Board) -> Vec<Label> {
    let mut labels = vec![Label::new("board", board.name().as_str().to_owned())];
    if board.is_further() {
        labels.push(Label::new("window", board.length().to_string()));
    }
    labels
}

/// The state of one board's rollover on this instance.
#[derive(Default)]
struct RolloverState {
    /// The time on the store's clock at which the head's slot ends. Unknown before the first step.
    due_at: Option<Timestamp>,
    /// The time since which the rollover is due without a successful step.
    stalled_since: Option<Instant>,
    /// The time on the store's clock of the last scheduled rollover.
    visited_at: Option<Timestamp>,
    /// Whether a scheduled rollover is in progress.
    running: bool,
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

/// Returns the longest time between two visits of a window, in milliseconds of the store's clock. It is always the same
/// for the same window.
fn visit_after((name, generation): &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name.as_str(), generation.0).hash(&mut hasher);
    BETWEEN_VISITS + hasher.finish() % BETWEEN_VISITS
}

/// The rollover of all boards.
pub(super) struct RolloverRunner {
    store: Arc<dyn Store>,
    /// Held by the step that begins next. The mutex of Tokio is fair, so the boards take turns.
    turn: Turn<()>,
    /// The time at which the next step may begin. After each step there is a pause as long as the store worked on it,
    /// so the store spends at most half of its time on retiring, independent of the number of steps in progress.
    free_at: Mutex<Instant>,
    /// Never held across an await.
    states: Mutex<HashMap<Key, RolloverState>>,
}

impl RolloverRunner {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        describe_gauge!(RETIRING, "Expired slots not yet fully subtracted, by board, after the last step");
        describe_counter!(SLOTS_RETIRED, "Slots retired by this instance, by board");
        describe_counter!(
            SUBJECTS_RETIRED,
            "Subtractions made by this instance, one for each subject and slot, by board"
        );
        describe_gauge!(LAG, "How long ago the head's slot ended without this instance having rolled over, by board");
        Self { store, turn: Turn::new(()), free_at: Mutex::new(Instant::now()), states: Mutex::default() }
    }

    /// Rolls a board over. Returns when nothing is left below its floor, nor any other data that is no longer needed.
    ///
    /// If the round trip to the store takes longer than a step, several steps are in progress at once. The store
    /// processes them one after another, and each continues where the previous one ended.
    pub(super) async fn run(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let started = Instant::now();
        let (mut advanced, mut retired, mut touched, mut removed) = (0, 0, 0, 0);
        let mut under_way = FuturesUnordered::new();
        let (mut expected, mut most, mut is_done) = (Duration::ZERO, 1, false);
        loop {
            while !is_done && under_way.len() < most {
                under_way.push(self.step(board, expected));
            }
            // There is always at least one: the last step to return after the work is done returns below.
            let Some(step) = under_way.next().await else { return Err(StoreError::BoardChanged) };
            let Step { step, took } = step?;
            advanced += step.slots_advanced;
            retired += step.slots_retired;
            touched += step.subjects_touched;
            removed += step.subjects_removed;
            is_done |= step.done;
            (expected, most) = (step.worked, most_under_way(step.worked, took));
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

    /// Waits for its turn and makes one step. `expected` is the time that the store is expected to work on it.
    async fn step(&self, board: &Arc<Board>, expected: Duration) -> store::Result<Step> {
        let started = {
            let _turn = self.turn.lock().await;
            loop {
                let now = Instant::now();
                let pause = self.free_at.lock().saturating_duration_since(now);
                if pause < SHORTEST_PAUSE {
                    break;
                }
                tokio::time::sleep(pause).await;
            }
            let now = Instant::now();
            let mut free_at = self.free_at.lock();
            *free_at = (*free_at).max(now) + 2 * expected;
            now
        };
        let step = self.store.retire_step(board).await?;
        let took = started.elapsed();
        {
            let mut free_at = self.free_at.lock();
            let more = *free_at + 2 * step.worked.saturating_sub(expected);
            *free_at = more.checked_sub(2 * expected.saturating_sub(step.worked)).unwrap_or(more);
        }
        self.record(board, &step);
        Ok(Step { step, took })
    }

    fn record(&self, board: &Arc<Board>, step: &RetireStep) {
        let labels = labels_of(board);
        gauge!(RETIRING, labels.clone()).set(step.frame.retiring as f64);
        counter!(SLOTS_RETIRED, labels.clone()).increment(step.slots_retired);
        counter!(SUBJECTS_RETIRED, labels).increment(step.subjects_touched);
        let mut states = self.states.lock();
        let entry = states.entry(key_of(board)).or_default();
        entry.due_at = Some(step.frame.window.end);
        entry.stalled_since = if step.done { None } else { Some(Instant::now()) };
    }

    /// Returns the work that a rollover would do now. The call advances the board like every call, so only the retiring
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

    /// Returns those of the boards that are due at `now`, marked as running. Each [track](Board::tracks) of a board is one
    /// of them. The caller rolls each of them over and then calls [`finished`](Self::finished).
    pub(super) fn claim_due(&self, boards: Vec<Arc<Board>>, now: Timestamp) -> Vec<Arc<Board>> {
        let mut states = self.states.lock();
        let known: HashSet<Key> = boards.iter().map(|board| key_of(board)).collect();
        states.retain(|key, _| known.contains(key));
        let mut due = Vec::new();
        for board in boards {
            let key = key_of(&board);
            let visit_after = visit_after(&key);
            let entry = states.entry(key).or_default();
            let lag = entry.due_at.map_or(0, |at| now.millis() - at.millis()).max(0);
            gauge!(LAG, labels_of(&board)).set(lag as f64 / 1_000.0);
            // A clock before the last visit also counts: the clock was wrong at that visit.
            let away = |at: Timestamp| now.millis().abs_diff(at.millis()) >= visit_after;
            let is_due = entry.stalled_since.is_some()
                || entry.due_at.is_none_or(|at| at <= now)
                || entry.visited_at.is_none_or(away);
            if is_due {
                entry.stalled_since.get_or_insert_with(Instant::now);
                if !entry.running {
                    entry.running = true;
                    entry.visited_at = Some(now);
                    due.push(board);
                }
            }
        }
        due
    }

    /// Marks the rollover of a board claimed with [`claim_due`](Self::claim_due) as finished.
    pub(super) fn finished(&self, board: &Board, outcome: &store::Result<RolloverReport>) {
        let mut states = self.states.lock();
        if let Some(entry) = states.get_mut(&key_of(board)) {
            entry.running = false;
            if matches!(outcome, Err(StoreError::BoardChanged)) {
                *entry = RolloverState::default();
            }
        }
    }

    /// Returns the boards whose rollover has been due for a minute without progress.
    pub(super) fn overdue(&self) -> Vec<BoardName> {
        let states = self.states.lock();
        let stalled = |p: &RolloverState| p.stalled_since.is_some_and(|since| since.elapsed() > OVERDUE_AFTER);
        let names: BTreeSet<BoardName> =
            states.iter().filter(|(_, p)| stalled(p)).map(|((name, _), _)| name.clone()).collect();
        names.into_iter().collect()
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
    fn only_further_windows_have_a_label_of_their_own() {
        let labels = |windows: &str| -> Vec<String> {
            let text = format!(r#"{{"metric":"COUNT(24h, like, post)","slot":"1h","windows":[{windows}]}}"#);
            let definition = serde_json::from_str(&text).unwrap();
            let board = Arc::new(Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap());
            let label = |label: &Label| format!("{}={}", label.key(), label.value());
            board.tracks().map(|board| labels_of(board).iter().map(label).collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(labels(""), ["board=b"]);
        assert_eq!(labels(r#""7d/6h","all""#), ["board=b", "board=b window=7d", "board=b window=all"]);
    }

    #[test]
    fn visits_are_spread_and_have_bounded_intervals() {
        let key = |i: u64| (BoardName::parse(&format!("b{}", i / 2)).unwrap(), Generation(i));
        let after: HashSet<u64> = (0..100).map(|i| visit_after(&key(i))).collect();
        assert!(after.len() > 90);
        assert!(after.iter().all(|millis| (BETWEEN_VISITS..2 * BETWEEN_VISITS).contains(millis)));
    }
}
