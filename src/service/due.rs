//! The tracks of all boards, ordered by the time at which they are due. A tick touches only those that are due, so
//! boards between two of their slots cost nothing.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Label, counter, describe_counter, describe_gauge, gauge};

use crate::board::{Board, BoardName, BoardTrack, Timestamp, TrackId};
use crate::store::RetireStep;

/// Each track is visited after this many to twice as many milliseconds of the store's clock, even if no slot has ended,
/// because ids and the data of single subjects expire in between. The spread prevents many tracks from being due at
/// once.
const BETWEEN_VISITS: i64 = 30_000;

/// The time without progress after which the rollover of a board is overdue.
const OVERDUE_AFTER: Duration = Duration::from_secs(60);

/// The lag, in milliseconds, from which it is measured while a track waits. One that is due at this tick has none.
const MEASURED_LAG: i64 = 2_000;

const RETIRING: &str = "rolltop_retiring_slots";
const SLOTS_RETIRED: &str = "rolltop_slots_retired_total";
const SUBJECTS_RETIRED: &str = "rolltop_subjects_retired_total";
const LAG: &str = "rolltop_rollover_lag_seconds";

/// Registers the descriptions of the metrics with the recorder.
pub(super) fn describe() {
    describe_gauge!(RETIRING, "Expired slots not yet fully subtracted, by board, after the last step");
    describe_counter!(SLOTS_RETIRED, "Slots retired by this instance, by board");
    describe_counter!(SUBJECTS_RETIRED, "Subtractions made by this instance, one for each subject and slot, by board");
    describe_gauge!(LAG, "How long ago the head's slot ended without this instance having rolled over, by board");
}

/// The tracks of all boards that this instance knows.
#[derive(Default)]
pub(super) struct DueTracks {
    tracks: HashMap<TrackId, DueTrack>,
    /// The tracks that wait, by the time on the store's clock at which they are due.
    waiting: BTreeSet<(Timestamp, TrackId)>,
    running: HashSet<TrackId>,
    /// The tracks whose last rollover failed. The next tick tries again.
    failed: Vec<TrackId>,
    /// The store's time at the last tick, and the latest one of all.
    now: Timestamp,
    latest: Timestamp,
}

struct DueTrack {
    track: BoardTrack,
    /// The time at which the track is due, while it is in [`DueTracks::waiting`].
    waits_until: Option<Timestamp>,
    /// The time at which the head's slot ends. Unknown before the first step.
    due_at: Option<Timestamp>,
    /// The time since which the rollover is due without a successful step.
    stalled_since: Option<Instant>,
    retiring: Gauge,
    slots_retired: Counter,
    subjects_retired: Counter,
    lag: Gauge,
}

impl DueTrack {
    fn new(track: BoardTrack) -> Self {
        let labels = labels_of(&track);
        Self {
            track,
            waits_until: None,
            due_at: None,
            stalled_since: None,
            retiring: gauge!(RETIRING, labels.clone()),
            slots_retired: counter!(SLOTS_RETIRED, labels.clone()),
            subjects_retired: counter!(SUBJECTS_RETIRED, labels.clone()),
            lag: gauge!(LAG, labels),
        }
    }

    fn measure_lag(&self, now: Timestamp) {
        let lag = self.due_at.map_or(0, |at| now.millis() - at.millis()).max(0);
        self.lag.set(lag as f64 / 1_000.0);
    }
}

/// Returns the labels of the metrics of a track: the board's name, the length of its window unless it is the main track
/// of its edition, and the role of its edition unless that is the current one: `closing` of a period that has ended.
fn labels_of(track: &BoardTrack) -> Vec<Label> {
    let mut labels = vec![Label::new("board", track.board().name().as_str().to_owned())];
    let edition = track.edition();
    if let Some(role) = edition.role() {
        labels.push(Label::new("edition", role.name()));
    } else if edition.number() > 0 {
        labels.push(Label::new("edition", "closing"));
    }
    if !track.is_main_of_edition() {
        labels.push(Label::new("window", track.length().to_string()));
    }
    labels
}

/// Returns the longest time between two visits of a track, in milliseconds of the store's clock. It is always the same
/// for the same track.
fn visit_after(track: &BoardTrack) -> i64 {
    let mut hasher = DefaultHasher::new();
    (track.board().name().as_str(), track.id().0).hash(&mut hasher);
    BETWEEN_VISITS + (hasher.finish() % BETWEEN_VISITS as u64) as i64
}

impl DueTracks {
    /// Makes the tracks of these boards the known ones. New ones are due at once. O(tracks), so it is called when the
    /// list has changed.
    pub(super) fn set(&mut self, boards: &[Arc<Board>]) {
        let known: HashMap<TrackId, BoardTrack> =
            boards.iter().flat_map(Board::each_written_track).map(|track| (track.id(), track)).collect();
        let gone: Vec<TrackId> = self.tracks.keys().filter(|track| !known.contains_key(track)).copied().collect();
        gone.into_iter().for_each(|track| self.remove(track));
        for (id, track) in known {
            let is_same = |known: &DueTrack| known.track.board().is_same_as(track.board());
            if self.tracks.get(&id).is_some_and(|known| !is_same(known)) {
                // The editions of its board have changed. A rollover that is running ends by itself.
                self.remove(id);
            }
            if let Entry::Vacant(place) = self.tracks.entry(id) {
                place.insert(DueTrack::new(track));
                self.wait_until(id, Timestamp::EPOCH);
            }
        }
    }

    /// Records the store's time. Returns whether anything is due. O(due), except after the clock was set back.
    pub(super) fn tick(&mut self, now: Timestamp) -> bool {
        self.now = now;
        self.latest = self.latest.max(now);
        for track in std::mem::take(&mut self.failed) {
            self.wait_until(track, Timestamp::EPOCH);
        }
        if self.latest.millis() - now.millis() >= BETWEEN_VISITS {
            // The clock was wrong when these were visited, and so is the time at which they are due.
            self.latest = now;
            let waiting: Vec<TrackId> = self.waiting.iter().map(|(_, track)| *track).collect();
            waiting.into_iter().for_each(|track| self.wait_until(track, Timestamp::EPOCH));
        }
        let late = self.waiting.range(..=(now.plus_millis(-MEASURED_LAG), TrackId(u64::MAX)));
        let late = late.map(|(_, track)| track).chain(&self.running);
        late.filter_map(|track| self.tracks.get(track)).for_each(|track| track.measure_lag(now));
        self.waiting.first().is_some_and(|(at, _)| *at <= now)
    }

    /// Returns the track that has been due for the longest time, marked as running. The caller rolls it over and then
    /// calls [`finished`](Self::finished).
    pub(super) fn take(&mut self) -> Option<BoardTrack> {
        let (_, id) = *self.waiting.first().filter(|(at, _)| *at <= self.now)?;
        self.waiting.pop_first();
        let track = self.tracks.get_mut(&id)?;
        track.waits_until = None;
        track.stalled_since.get_or_insert_with(Instant::now);
        self.running.insert(id);
        Some(track.track.clone())
    }

    /// Records a step of a rollover, independent of the caller that requested it.
    pub(super) fn stepped(&mut self, track: &BoardTrack, step: &RetireStep) {
        let id = track.id();
        // The list of boards may not have it yet, or no longer.
        let track = self.tracks.entry(id).or_insert_with(|| DueTrack::new(track.clone()));
        track.retiring.set(step.frame.retiring as f64);
        track.slots_retired.increment(step.slots_retired);
        track.subjects_retired.increment(step.subjects_touched);
        track.due_at = Some(step.frame.window.end);
        track.stalled_since = if step.done { None } else { Some(Instant::now()) };
        track.measure_lag(self.now);
        if !self.running.contains(&id) {
            // The caller that requested the step may not request the next one.
            if step.done { self.wait_for_next(id) } else { self.wait_until(id, Timestamp::EPOCH) }
        }
    }

    /// Records the end of the rollover of a track that [`take`](Self::take) returned. One that has failed is due again
    /// at the next tick.
    pub(super) fn finished(&mut self, id: TrackId, has_succeeded: bool) {
        if !self.running.remove(&id) {
            return;
        }
        if has_succeeded { self.wait_for_next(id) } else { self.failed.push(id) }
    }

    /// Forgets a track that the store does not have.
    pub(super) fn remove(&mut self, id: TrackId) {
        let Some(track) = self.tracks.remove(&id) else { return };
        if let Some(at) = track.waits_until {
            self.waiting.remove(&(at, id));
        }
        self.running.remove(&id);
        self.failed.retain(|failed| *failed != id);
    }

    /// Returns the boards whose rollover has been due for a minute without progress. O(tracks that are rolled over).
    pub(super) fn overdue(&self) -> Vec<BoardName> {
        let begun = self.running.iter().chain(&self.failed).filter_map(|track| self.tracks.get(track));
        let stalled = begun.filter(|track| track.stalled_since.is_some_and(|since| since.elapsed() > OVERDUE_AFTER));
        let names: BTreeSet<BoardName> = stalled.map(|track| track.track.board().name().clone()).collect();
        names.into_iter().collect()
    }

    /// Lets a track wait for the end of its head's slot, or for its next visit.
    fn wait_for_next(&mut self, id: TrackId) {
        let Some(track) = self.tracks.get(&id) else { return };
        let visit = self.now.plus_millis(visit_after(&track.track));
        self.wait_until(id, track.due_at.map_or(visit, |at| at.min(visit)));
    }

    fn wait_until(&mut self, id: TrackId, at: Timestamp) {
        let Some(track) = self.tracks.get_mut(&id) else { return };
        if let Some(before) = track.waits_until.replace(at) {
            self.waiting.remove(&(before, id));
        }
        self.waiting.insert((at, id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Definition, Generation, Window};
    use crate::store::RetireStep;

    fn board(number: u64, windows: &str) -> Arc<Board> {
        let text = format!(r#"{{"metric":"COUNT(24h, like, post)","slot":"1h","windows":[{windows}]}}"#);
        let definition: Definition = serde_json::from_str(&text).unwrap();
        let name = BoardName::parse(&format!("b{number}")).unwrap();
        Arc::new(Board::new(name, Generation(number * 100), definition).unwrap())
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + millis)
    }

    /// Rolls over everything that is due. Returns the numbers of the boards.
    fn roll_over(due: &mut DueTracks, now: Timestamp) -> Vec<u64> {
        due.tick(now);
        let mut rolled = Vec::new();
        while let Some(track) = due.take() {
            step(due, &track, now, true);
            due.finished(track.id(), true);
            rolled.push(track.id().0 / 100);
        }
        rolled
    }

    fn step(due: &mut DueTracks, track: &BoardTrack, now: Timestamp, done: bool) {
        let window: Window = track.window_at(now);
        let step = RetireStep {
            frame: crate::board::Frame { window, as_of: now, retiring: 0 },
            slots_advanced: 0,
            slots_retired: 0,
            subjects_touched: 0,
            subjects_removed: 0,
            done,
            skipped: false,
            worked: Duration::ZERO,
        };
        due.stepped(track, &step);
    }

    #[test]
    fn tracks_are_due_when_they_are_new_when_a_slot_ends_and_for_visits() {
        let mut due = DueTracks::default();
        let boards: Vec<_> = (1..=3).map(|number| board(number, "")).collect();
        due.set(&boards[..2]);
        assert_eq!(roll_over(&mut due, at(0)), [1, 2]);
        assert!(!due.tick(at(1_000)) && due.take().is_none());
        due.set(&boards);
        assert_eq!(roll_over(&mut due, at(1_000)), [3]);
        // Each is visited within a minute, and not all at the same time.
        let mut visited: Vec<u64> = (2..61).flat_map(|second| roll_over(&mut due, at(second * 1_000))).collect();
        visited.sort_unstable();
        assert_eq!(visited, [1, 2, 3]);
        let end = boards[0].edition().main().window_at(at(0)).end;
        let just_before = end.plus_millis(-1);
        roll_over(&mut due, just_before);
        assert!(roll_over(&mut due, just_before).is_empty());
        assert_eq!(roll_over(&mut due, end).len(), 3, "a slot has ended");
        due.set(&boards[..1]);
        assert_eq!(roll_over(&mut due, end.plus_millis(3_600_000)), [1]);
    }

    #[test]
    fn a_failed_rollover_is_due_again_at_the_next_tick() {
        let mut due = DueTracks::default();
        due.set(&[board(1, "")]);
        due.tick(at(0));
        let taken = due.take().unwrap();
        due.finished(taken.id(), false);
        assert!(due.take().is_none(), "not before");
        assert!(due.tick(at(0)));
        let since = due.tracks[&taken.id()].stalled_since;
        let taken = due.take().unwrap();
        assert_eq!((since.is_some(), due.tracks[&taken.id()].stalled_since), (true, since), "still stalled");
        // A removed board is forgotten, wherever it is.
        due.remove(taken.id());
        due.finished(taken.id(), true);
        assert!(due.tracks.is_empty() && due.waiting.is_empty() && due.running.is_empty() && !due.tick(at(0)));
    }

    #[test]
    fn everything_is_due_after_the_clock_was_set_back() {
        let mut due = DueTracks::default();
        due.set(&[board(1, ""), board(2, "")]);
        roll_over(&mut due, at(86_400_000));
        assert!(roll_over(&mut due, at(86_400_000 - 20_000)).is_empty());
        assert_eq!(roll_over(&mut due, at(86_400_000 - 40_000)), [1, 2]);
        assert!(roll_over(&mut due, at(86_400_000 - 50_000)).is_empty());
    }

    #[test]
    fn a_manual_rollover_of_a_waiting_track_moves_its_time() {
        let mut due = DueTracks::default();
        let one = board(1, "");
        due.set(std::slice::from_ref(&one));
        step(&mut due, &one.main(), at(0), false);
        assert!(due.tick(at(0)), "the rest is left to the scheduler");
        step(&mut due, &one.main(), at(0), true);
        assert_eq!((due.waiting.len(), due.tick(at(0))), (1, false));
    }

    #[test]
    fn only_further_windows_have_a_label_of_their_own() {
        let labels = |windows: &str| -> Vec<String> {
            let label = |label: &Label| format!("{}={}", label.key(), label.value());
            let board = board(1, windows);
            board.each_track().map(|track| labels_of(&track).iter().map(label).collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(labels(""), ["board=b1"]);
        assert_eq!(labels(r#""7d/6h","all""#), ["board=b1", "board=b1 window=7d", "board=b1 window=all"]);
    }

    #[test]
    fn visits_are_spread_and_have_bounded_intervals() {
        let after: HashSet<i64> = (0..100).map(|number| visit_after(&board(number, "").main())).collect();
        assert!(after.len() > 90);
        assert!(after.iter().all(|millis| (BETWEEN_VISITS..2 * BETWEEN_VISITS).contains(millis)));
    }
}
