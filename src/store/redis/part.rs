//! The state that this instance keeps about one part of a board: the expected time, and which keys exist. It may be out
//! of date at any moment. Every script checks the values that it receives and returns better ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::hash_slot::HashSlot;
use super::keys::BoardKeys;
use super::store_clock::{RESTART, Start};
use crate::board::{Board, BoardTrack, Timestamp, Track, Window, WindowSlots};
use crate::store::{ClockTrust, StoreError};

/// The smallest and the largest number of subjects that one step of retiring subtracts, and the number for the first
/// step.
const LEAST: u32 = 32;
const MAX_PACE: u32 = 2_000;
const START: u32 = 200;
/// The target duration of a step of retiring.
const STEP: Duration = Duration::from_millis(2);

/// The state that one instance keeps about one part of a board.
#[derive(Debug)]
pub(super) struct Part {
    pub track: BoardTrack,
    pub keys: BoardKeys,
    /// For a part of the main track, the keys of the same part in each other track of the board.
    pub further: Box<[BoardKeys]>,
    slot: HashSlot,
    simulated: bool,
    half_window: i64,
    time: Mutex<Time>,
    existing: Mutex<Existing>,
    pace: AtomicU32,
    kept: Mutex<Option<Kept>>,
    /// The latest window of each track of the board.
    windows: Box<[Mutex<Option<WindowSlots>>]>,
    announced: AtomicBool,
    /// Whether no reading of the clock has been believed since this instance started.
    standing: AtomicBool,
    /// The shortest round trip of a step of retiring, in microseconds.
    distance: AtomicU64,
}

#[derive(Debug)]
struct Time {
    trust: ClockTrust,
    believed: Timestamp,
    at: Duration,
}

/// The slots that a board keeps while its window has this head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    head: Timestamp,
    /// The start of the oldest kept slot.
    pub oldest: Timestamp,
    /// The time for which the head's slot is kept, from its start on, in milliseconds. This is computed from the slots
    /// after it, not from those before it, because months, and days on which clocks change, differ in length.
    pub life: i64,
}

/// The slots and dedupe buckets that exist, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Existing {
    pub slots: Arc<[Timestamp]>,
    pub buckets: Arc<[i64]>,
}

impl Part {
    /// Creates the state from the store's knowledge of its clock.
    pub fn new(track: BoardTrack, keys: BoardKeys, simulated: bool, start: Start) -> Self {
        let Start { trust, believed, at } = start;
        let standing = AtomicBool::new(!simulated && trust.is_standing(at).is_some());
        let time = Time { trust, believed, at };
        Self {
            slot: HashSlot::of_key(keys.meta.as_bytes()),
            keys,
            further: Box::default(),
            simulated,
            half_window: half_window(track.board()),
            windows: track.board().tracks().iter().map(|_| Mutex::default()).collect(),
            track,
            time: Mutex::new(time),
            existing: Mutex::new(Existing { slots: Arc::new([]), buckets: Arc::new([]) }),
            pace: AtomicU32::new(START),
            kept: Mutex::default(),
            announced: AtomicBool::new(false),
            standing,
            distance: AtomicU64::new(u64::MAX),
        }
    }

    /// Adds the keys of the part in each other track.
    pub fn with_further(self, further: Box<[BoardKeys]>) -> Self {
        Self { further, ..self }
    }

    /// Returns the hash slot of all keys of the part, in every track.
    pub fn slot(&self) -> HashSlot {
        self.slot
    }

    /// Returns the largest jump of the clock that is believed for a board with this window, in milliseconds.
    pub fn tolerance(board: &Board) -> i64 {
        half_window(board).saturating_mul(2)
    }

    /// Returns the expected time and the latest reading to believe.
    pub fn estimate(&self, monotonic: Duration) -> (Timestamp, Timestamp) {
        let time = self.time.lock();
        if self.simulated {
            return (time.believed, Timestamp::MAX);
        }
        if self.is_standing() {
            return (time.believed, time.believed.plus_millis(Self::tolerance(self.track.board()).max(RESTART)));
        }
        let passed = i64::try_from(monotonic.saturating_sub(time.at).as_millis()).unwrap_or(i64::MAX);
        let now = time.believed.plus_millis(passed);
        (now, now.plus_millis(self.half_window))
    }

    /// Records a reading of the store's clock.
    pub fn learn_time(&self, reading: Timestamp, monotonic: Duration) {
        let mut time = self.time.lock();
        time.at = monotonic;
        if self.simulated {
            time.believed = reading;
            return;
        }
        let tolerance = Self::tolerance(self.track.board());
        let tolerance = if self.is_standing() { tolerance.max(RESTART) } else { tolerance };
        time.believed = time.trust.believe(reading, monotonic, tolerance);
        if self.is_standing() {
            self.standing.store(time.trust.is_standing(monotonic).is_some(), Ordering::Release);
        }
    }

    /// Returns whether time stands still: the clock was too far ahead when this instance started, and no reading has
    /// been believed since.
    pub fn is_standing(&self) -> bool {
        self.standing.load(Ordering::Acquire)
    }

    /// Returns the error that refuses writes to this part while time stands still.
    pub fn doubt(&self, monotonic: Duration) -> Option<StoreError> {
        if !self.is_standing() {
            return None;
        }
        let time = self.time.lock();
        let retry_after = time.trust.is_standing(monotonic)?;
        let reading = time.trust.doubted()?;
        Some(StoreError::ClockDoubted { reading, recorded: time.believed, retry_after })
    }

    /// Resets what is known about existing keys and about the server's speed. The expected time is kept: if a server
    /// has come back on a different machine, its clock may be wrong.
    pub fn drop_beliefs(&self) {
        self.learn_existing(Vec::new(), Vec::new());
        self.pace.store(START, Ordering::Relaxed);
        self.announced.store(false, Ordering::Release);
    }

    /// Returns whether this instance has announced the board in the list of boards.
    pub fn is_announced(&self) -> bool {
        self.announced.load(Ordering::Acquire)
    }

    pub fn note_announced(&self) {
        self.announced.store(true, Ordering::Release);
    }

    pub fn existing(&self) -> Existing {
        self.existing.lock().clone()
    }

    pub fn learn_existing(&self, slots: Vec<Timestamp>, buckets: Vec<i64>) {
        *self.existing.lock() = Existing { slots: slots.into(), buckets: buckets.into() };
    }

    /// Removes a slot or a bucket that a step of this instance deleted.
    pub fn forget(&self, slot: Option<Timestamp>, bucket: Option<i64>) {
        let mut existing = self.existing.lock();
        if let Some(slot) = slot {
            existing.slots = existing.slots.iter().copied().filter(|start| *start != slot).collect();
        }
        if let Some(bucket) = bucket {
            existing.buckets = existing.buckets.iter().copied().filter(|number| *number != bucket).collect();
        }
    }

    /// Returns the window of the part's track at `now`, and the starts of its slots. O(1) while the head stays the same.
    pub fn window_slots(&self, now: Timestamp) -> WindowSlots {
        self.with_window(self.track.number(), now, Clone::clone)
    }

    /// Returns the window of each track of the board at `now`, the main one first. O(tracks) while their heads stay the
    /// same.
    pub fn windows(&self, now: Timestamp) -> Box<[Window]> {
        (0..self.windows.len()).map(|number| self.with_window(number, now, |slots| slots.window)).collect()
    }

    /// Returns what `read` returns for the window of the track with this number. The window is locked meanwhile.
    pub fn with_window<T>(&self, number: usize, now: Timestamp, read: impl FnOnce(&WindowSlots) -> T) -> T {
        let track = &self.track.board().tracks()[number];
        let mut latest = self.windows[number].lock();
        let latest = latest.get_or_insert_with(|| WindowSlots::at(track, now));
        latest.move_to(track, now);
        read(latest)
    }

    /// Returns the slots that the track keeps with this window. O(1) while the head stays the same, otherwise O(kept
    /// slots).
    pub fn kept(&self, window: &Window) -> Kept {
        let mut kept = self.kept.lock();
        match *kept {
            Some(known) if known.head == window.head => known,
            _ => *kept.insert(Kept::new(&self.track, window)),
        }
    }

    /// Returns how many subjects the next step of retiring should subtract.
    pub fn pace(&self) -> u32 {
        self.pace.load(Ordering::Relaxed)
    }

    /// Adapts the pace to the time that a step took on the server.
    pub fn learn_pace(&self, asked: u32, touched: u64, took: Duration) {
        self.pace.store(next_pace(asked, touched, took), Ordering::Relaxed);
    }

    /// Returns the time that a step took on the server: the time that the server measured, or, if it cannot measure,
    /// the round trip minus the shortest one.
    pub fn work(&self, measured: Option<u64>, round_trip: Duration) -> Duration {
        let micros = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
        let shortest = self.distance.fetch_min(micros, Ordering::Relaxed).min(micros);
        Duration::from_micros(measured.unwrap_or(micros - shortest))
    }
}

impl Kept {
    fn new(track: &Track, window: &Window) -> Self {
        let until = (1..track.kept()).fold(window.end, |until, _| track.calendar().next(until));
        let oldest = track.oldest_kept(window.floor);
        Self { head: window.head, oldest, life: until.millis().saturating_sub(window.head.millis()) }
    }
}

/// Returns half a window in milliseconds, at least 5 s. A clock that is ahead by more than this is doubted.
fn half_window(board: &Board) -> i64 {
    (board.clock_tolerance() / 2).max(5_000)
}

/// Returns the pace of the next step. A short last step of a slot does not change the pace, unless it took too long.
fn next_pace(asked: u32, touched: u64, took: Duration) -> u32 {
    if touched < u64::from(asked / 2) && took <= STEP {
        return asked;
    }
    let fitting = u64::from(asked) * STEP.as_micros() as u64 / (took.as_micros() as u64).max(1);
    let fitting = u32::try_from(fitting).unwrap_or(MAX_PACE);
    fitting.clamp(asked / 2, asked.saturating_mul(2)).clamp(LEAST, MAX_PACE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation, TrackId};
    use crate::store::redis::keys::StoreKeys;

    fn part(simulated: bool) -> Part {
        of(Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap()), simulated)
    }

    fn of(definition: Definition, simulated: bool) -> Part {
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let keys = StoreKeys::new("p").board(board.name(), TrackId(1));
        Part::new(Arc::new(board).main(), keys, simulated, Start::believed(at(0)))
    }

    /// Returns the time this many seconds after the first reading of a part.
    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + seconds * 1_000)
    }

    #[test]
    fn the_estimate_advances_between_readings_and_doubts_jumps() {
        let part = part(false);
        let seconds = Duration::from_secs;
        assert_eq!(part.estimate(seconds(10)), (at(10), at(10 + 3_600)));
        part.learn_time(at(20), seconds(10));
        assert_eq!(part.estimate(seconds(11)).0, at(21));
        // 2 hours ahead of the expected time, which is more than half of the 2-hour window.
        part.learn_time(at(7_221), seconds(11));
        assert_eq!(part.estimate(seconds(12)), (at(22), at(22 + 3_600)));
        // The readings have agreed for more than a minute.
        part.learn_time(at(7_300), seconds(90));
        assert_eq!(part.estimate(seconds(91)).0, at(7_301));
    }

    #[test]
    fn a_simulated_clock_does_not_advance_and_is_always_trusted() {
        let part = part(true);
        assert_eq!(part.estimate(Duration::from_secs(10)), (at(0), Timestamp::MAX));
        part.learn_time(at(1_000_000), Duration::from_secs(10));
        assert_eq!(part.estimate(Duration::from_secs(99)).0, at(1_000_000));
    }

    /// February and March together are shorter than March and April, the months for which a value of March 1 is kept.
    #[test]
    fn a_monthly_slot_is_kept_as_long_as_the_months_after_it() {
        let definition = Definition::new("COUNT_DISTINCT(2mo, e, s, c)".parse().unwrap(), "1mo".parse().unwrap());
        let part = of(definition, false);
        let t = |text: &str| Timestamp::parse(text).unwrap();
        let kept = part.kept(&part.track.window_at(t("2026-03-01T00:00:00Z")));
        assert_eq!(kept.oldest, t("2026-02-01T00:00:00Z"));
        assert_eq!(kept.life, t("2026-05-01T00:00:00Z").millis() - t("2026-03-01T00:00:00Z").millis());
    }

    #[test]
    fn deleted_slots_and_buckets_are_forgotten() {
        let part = part(true);
        part.learn_existing(vec![at(0), at(1)], vec![7, 8]);
        part.forget(Some(at(0)), Some(8));
        let Existing { slots, buckets } = part.existing();
        assert_eq!((&slots[..], &buckets[..]), (&[at(1)][..], &[7][..]));
    }

    #[test]
    fn the_pace_adapts_within_bounds() {
        let ms = Duration::from_millis;
        assert_eq!(next_pace(200, 200, ms(2)), 200);
        assert_eq!(next_pace(200, 200, ms(1)), 400);
        assert_eq!(next_pace(200, 200, ms(4)), 100);
        assert_eq!(next_pace(200, 200, ms(1_000)), 100);
        assert_eq!(next_pace(200, 200, Duration::ZERO), 400);
        assert_eq!(next_pace(200, 3, ms(1)), 200);
        assert_eq!(next_pace(200, 3, ms(9)), 100);
        assert_eq!(next_pace(LEAST, 32, ms(1_000)), LEAST);
        assert_eq!(next_pace(MAX_PACE, 2_000, ms(1)), MAX_PACE);
    }
}
