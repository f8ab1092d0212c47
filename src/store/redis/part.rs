//! One track of one partition of a board: its keys, and which of them exist as far as this instance knows. That may be
//! out of date at any moment. Every script checks the values that it receives and returns better ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::hash_slot::HashSlot;
use super::keys::BoardKeys;
use super::partition_clock::PartitionClock;
use crate::board::{BoardTrack, Timestamp, Track, TrackId, Window, WindowSlots};

/// The smallest and the largest number of subjects that one step of retiring subtracts, and the number for the first
/// step.
const LEAST: u32 = 32;
const MAX_PACE: u32 = 2_000;
const START: u32 = 50;
/// The target duration of a step of retiring: as long as the way to the server and back, within these bounds. Other
/// requests wait for a step, so it is short. But each step is a round trip, so to a distant server longer ones are sent.
const SHORTEST_STEP: Duration = Duration::from_micros(500);
const LONGEST_STEP: Duration = Duration::from_millis(2);

/// One track of one partition of a board, as this instance knows it: what reading, retiring and auditing are about.
#[derive(Debug)]
pub(super) struct Part {
    pub track: BoardTrack,
    pub keys: BoardKeys,
    /// The clock of the partition.
    pub clock: Arc<PartitionClock>,
    slot: HashSlot,
    existing: Mutex<Existing>,
    /// The number of subjects that the next step of retiring should subtract.
    pace: AtomicU32,
    kept: Mutex<Option<Kept>>,
    /// The latest window.
    window: Mutex<Option<WindowSlots>>,
    /// The shortest round trip of a step of retiring, in microseconds.
    distance: AtomicU64,
}

/// The slots that a track keeps while its window has this head.
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

/// Returns how many of a board's keys each of its partitions may have. With several partitions, this is its share,
/// five standard deviations of the number of keys that it gets by their hash, and a few: so none refuses keys before
/// the board has as many as it may have.
fn share_of_keys(most: u32, partitions: usize) -> u64 {
    if partitions == 1 {
        return most.into();
    }
    let share = f64::from(most) / partitions as f64;
    (share + 5.0 * share.sqrt() + 5.0).ceil() as u64
}

impl Part {
    pub fn new(track: BoardTrack, keys: BoardKeys, clock: Arc<PartitionClock>) -> Self {
        let keys = if track.most_keys().is_some() { keys.with_rankings_by_key() } else { keys };
        Self {
            slot: HashSlot::of_key(keys.meta.as_bytes()),
            keys,
            track,
            clock,
            existing: Mutex::new(Existing { slots: Arc::new([]), buckets: Arc::new([]) }),
            pace: AtomicU32::new(START),
            kept: Mutex::default(),
            window: Mutex::default(),
            distance: AtomicU64::new(u64::MAX),
        }
    }

    /// Returns the hash slot of all keys of the partition.
    pub fn slot(&self) -> HashSlot {
        self.slot
    }

    /// Returns what the field `generation` of its meta key has: in that of the partition the generation of the board,
    /// in any other the id of the track.
    pub fn generation(&self) -> TrackId {
        match self.track.is_main() {
            true => TrackId::first_of(self.track.board().generation()),
            false => self.track.id(),
        }
    }

    /// Returns the largest number of keys in this partition, if the track has keys and belongs to the current edition,
    /// which limits them, or is a period, each of which does.
    pub fn most_keys(&self) -> Option<u64> {
        let partitions = self.track.board().partitions().map_or(1, |numbers| numbers.len());
        let limits = self.track.edition().number() == 0 || self.track.board().season().is_some();
        self.track.most_keys().filter(|_| limits).map(|most| share_of_keys(most, partitions))
    }

    /// Resets what is known about existing keys and about the server's speed.
    pub fn drop_beliefs(&self) {
        self.learn_existing(Vec::new(), Vec::new());
        self.pace.store(START, Ordering::Relaxed);
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

    /// Returns the window at `now`, and the starts of its slots. O(1) while the head stays the same.
    pub fn window_slots(&self, now: Timestamp) -> WindowSlots {
        self.with_window(now, Clone::clone)
    }

    /// Returns what `read` returns for the window at `now`, which is locked meanwhile.
    pub fn with_window<T>(&self, now: Timestamp, read: impl FnOnce(&WindowSlots) -> T) -> T {
        let mut latest = self.window.lock();
        let latest = latest.get_or_insert_with(|| WindowSlots::at(&self.track, now));
        latest.move_to(&self.track, now);
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
        let distance = Duration::from_micros(self.distance.load(Ordering::Relaxed));
        let target = distance.clamp(SHORTEST_STEP, LONGEST_STEP);
        self.pace.store(next_pace(asked, touched, took, target), Ordering::Relaxed);
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

/// Returns the pace of the next step, which aims at a duration. A short last step of a slot does not change the pace,
/// unless it took too long.
fn next_pace(asked: u32, touched: u64, took: Duration, target: Duration) -> u32 {
    if touched < u64::from(asked / 2) && took <= target {
        return asked;
    }
    let fitting = u64::from(asked) * target.as_micros() as u64 / (took.as_micros() as u64).max(1);
    let fitting = u32::try_from(fitting).unwrap_or(MAX_PACE);
    fitting.clamp(asked / 2, asked.saturating_mul(2)).clamp(LEAST, MAX_PACE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation};
    use crate::store::redis::keys::StoreKeys;
    use crate::store::redis::store_clock::Start;

    fn part(metric: &str, slot: &str) -> Part {
        let definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
        let board = Arc::new(Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap());
        let keys = StoreKeys::new("p").board(board.name(), board.generation(), TrackId(1));
        let clock = PartitionClock::new(&board, true, |_| Start::believed(at(0)));
        Part::new(board.main(), keys, Arc::new(clock))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + seconds * 1_000)
    }

    /// February and March together are shorter than March and April, the months for which a value of March 1 is kept.
    #[test]
    fn a_monthly_slot_is_kept_as_long_as_the_months_after_it() {
        let part = part("COUNT_DISTINCT(2mo, e, s, c)", "1mo");
        let t = |text: &str| Timestamp::parse(text).unwrap();
        let kept = part.kept(&part.track.window_at(t("2026-03-01T00:00:00Z")));
        assert_eq!(kept.oldest, t("2026-02-01T00:00:00Z"));
        assert_eq!(kept.life, t("2026-05-01T00:00:00Z").millis() - t("2026-03-01T00:00:00Z").millis());
    }

    #[test]
    fn partitions_may_have_more_keys_than_their_share() {
        assert_eq!([share_of_keys(7, 1), share_of_keys(1_000_000, 1)], [7, 1_000_000]);
        assert_eq!([share_of_keys(1, 16), share_of_keys(1_000, 16), share_of_keys(1_000_000, 64)], [7, 108, 16_255]);
    }

    #[test]
    fn deleted_slots_and_buckets_are_forgotten() {
        let part = part("COUNT(2h, like, post)", "1h");
        part.learn_existing(vec![at(0), at(1)], vec![7, 8]);
        part.forget(Some(at(0)), Some(8));
        let Existing { slots, buckets } = part.existing();
        assert_eq!((&slots[..], &buckets[..]), (&[at(1)][..], &[7][..]));
    }

    #[test]
    fn the_pace_adapts_within_bounds() {
        let ms = Duration::from_millis;
        let next = |asked, touched, took| next_pace(asked, touched, took, ms(2));
        assert_eq!(next(200, 200, ms(2)), 200);
        assert_eq!(next(200, 200, ms(1)), 400);
        assert_eq!(next(200, 200, ms(4)), 100);
        assert_eq!(next(200, 200, ms(1_000)), 100);
        assert_eq!(next(200, 200, Duration::ZERO), 400);
        assert_eq!(next(200, 3, ms(1)), 200);
        assert_eq!(next(200, 3, ms(9)), 100);
        assert_eq!(next(LEAST, 32, ms(1_000)), LEAST);
        assert_eq!(next(MAX_PACE, 2_000, ms(1)), MAX_PACE);
    }

    #[test]
    fn steps_are_longer_where_the_way_is() {
        let part = part("COUNT(2h, like, post)", "1h");
        let pace_after = |round_trip| {
            part.pace.store(200, Ordering::Relaxed);
            part.distance.store(u64::MAX, Ordering::Relaxed);
            let took = part.work(Some(500), round_trip);
            part.learn_pace(200, 200, took);
            part.pace()
        };
        let ms = Duration::from_millis;
        assert_eq!([pace_after(Duration::from_micros(600)), pace_after(ms(1)), pace_after(ms(30))], [240, 400, 400]);
        assert_eq!(pace_after(Duration::from_micros(80)), 200);
    }
}
