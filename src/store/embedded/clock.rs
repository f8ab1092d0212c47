//! The store's clock: the system clock of this process, or a simulated one that is set from outside.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::storage::manifest::ClockRecord as StoredRecord;
use crate::board::Timestamp;
use crate::store::ClockTrust;

/// A believed reading of the system clock, with the data from which a later start computes the time passed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockRecord {
    /// The reading of the system clock, in milliseconds.
    pub wall: i64,
    /// The time since the machine was booted, in milliseconds, including time in suspend.
    pub uptime: i64,
    /// The id of the boot of the machine; 0 if it is not known.
    pub boot: u128,
}

impl ClockRecord {
    /// Returns the time that has passed since this record, if the machine was not restarted in the meantime.
    fn elapsed(self, now: Machine) -> Option<Duration> {
        let since = now.uptime.checked_sub(self.uptime).and_then(|millis| u64::try_from(millis).ok())?;
        (self.boot == now.boot && now.boot != 0).then(|| Duration::from_millis(since))
    }
}

impl From<ClockRecord> for StoredRecord {
    fn from(record: ClockRecord) -> Self {
        let uptime_millis = u64::try_from(record.uptime).unwrap_or(0);
        Self { wall_millis: record.wall, boot_id: format!("{:032x}", record.boot), uptime_millis }
    }
}

impl From<&StoredRecord> for ClockRecord {
    fn from(record: &StoredRecord) -> Self {
        let uptime = i64::try_from(record.uptime_millis).unwrap_or(i64::MAX);
        Self { wall: record.wall_millis, uptime, boot: u128::from_str_radix(&record.boot_id, 16).unwrap_or(0) }
    }
}

/// The current boot of the machine, and the time since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    boot: u128,
    uptime: i64,
}

impl Machine {
    /// Reads the boot id and the uptime from the system. Only Linux has a boot id; without one the time passed since a
    /// record is never known.
    pub(super) fn read() -> Self {
        Self { boot: boot_id(), uptime: uptime() }
    }
}

fn boot_id() -> u128 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u128::from_str_radix(&text.trim().replace('-', ""), 16).unwrap_or(0)
}

fn uptime() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}

/// The longest time, in milliseconds, for which a machine may have been off without the store itself doubting its
/// clock.
const MAX_OFF_TIME: i64 = 7 * 86_400_000;
/// The time after a restart of the machine during which no reading is recorded.
const RECORD_DELAY_AFTER_BOOT: Duration = Duration::from_secs(60);

/// The store's clock.
#[derive(Debug)]
pub(super) enum Clock {
    System(SystemClock),
    /// A simulated clock. The lock is held for a copy or a comparison, and while a change is passed to the journal;
    /// never across an await.
    Simulated(Mutex<Timestamp>),
}

/// The system clock, with the data to judge its readings.
#[derive(Debug)]
pub(super) struct SystemClock {
    opened: Instant,
    machine: Machine,
    start: Start,
    /// Judges readings for the store itself: for the time that is recorded and for the start of new boards.
    trust: Mutex<ClockTrust>,
}

/// What is known about the time when a store is opened.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// There is no earlier record, or the configuration says that the clock is to be believed.
    Believed,
    /// The machine has been running since the last record. The field is the expected time at opening.
    Expected(Timestamp),
    /// The machine may have been restarted: the field is the time of the last record, whose age is unknown.
    Recorded(Timestamp),
}

/// A reading of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClockReading {
    /// The system clock and, to judge it, the time since the store was opened.
    System { wall: Timestamp, monotonic: Duration },
    /// A simulated clock, which is always believed.
    Simulated(Timestamp),
}

impl Clock {
    /// Creates the system clock of a store whose last record is `record`. With `trusted`, its first reading is
    /// believed.
    pub(super) fn system(record: Option<ClockRecord>, trusted: bool, machine: Machine) -> Self {
        let start = match record.filter(|_| !trusted) {
            None => Start::Believed,
            Some(record) => match record.elapsed(machine) {
                Some(elapsed) => {
                    let elapsed = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
                    Start::Expected(Timestamp::from_millis(record.wall).plus_millis(elapsed))
                }
                None => Start::Recorded(Timestamp::from_millis(record.wall)),
            },
        };
        let trust = match start {
            Start::Believed => ClockTrust::new(wall_clock(), Duration::ZERO),
            Start::Expected(time) => ClockTrust::new(time, Duration::ZERO),
            // The store's own time expires nothing, so it is judged less strictly than the time of boards.
            Start::Recorded(time) if wall_clock() <= time.plus_millis(MAX_OFF_TIME) => {
                ClockTrust::new(wall_clock(), Duration::ZERO)
            }
            Start::Recorded(time) => ClockTrust::resumed(time),
        };
        Clock::System(SystemClock { opened: Instant::now(), machine, start, trust: Mutex::new(trust) })
    }

    /// Returns whether boards may still be doubting the clock since the start.
    pub(super) fn may_be_doubted(&self) -> bool {
        // The doubt of a board ends after a minute of agreement, or when readings are as expected.
        matches!(self, Clock::System(clock) if matches!(clock.start, Start::Recorded(_)))
    }

    /// Returns whether the store itself doubts the system clock now.
    pub(super) fn is_doubted(&self) -> bool {
        let Clock::System(clock) = self else { return false };
        let mut trust = clock.trust.lock();
        trust.believe(wall_clock(), clock.opened.elapsed(), 0);
        trust.doubted().is_some()
    }

    pub(super) fn read(&self) -> ClockReading {
        match self {
            Clock::System(clock) => ClockReading::System { wall: wall_clock(), monotonic: clock.opened.elapsed() },
            Clock::Simulated(now) => ClockReading::Simulated(*now.lock()),
        }
    }

    /// Returns the store's time: the reading, or the believed time if the reading is doubted.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Clock::System(clock) => clock.trust.lock().believe(wall_clock(), clock.opened.elapsed(), 0),
            Clock::Simulated(now) => *now.lock(),
        }
    }

    /// Returns the clock trust of a board that is defined now.
    pub(super) fn trust_of_new_board(&self) -> Option<ClockTrust> {
        let Clock::System(clock) = self else { return None };
        Some(clock.trust.lock().clone())
    }

    /// Returns the clock trust of a board that was read from disk and has reached the time `reached`. `None` means that
    /// its first reading is believed.
    pub(super) fn trust_of_board(&self, reached: Timestamp) -> Option<ClockTrust> {
        let Clock::System(clock) = self else { return None };
        match clock.start {
            Start::Believed => None,
            Start::Expected(time) => Some(ClockTrust::new(time.max(reached), Duration::ZERO)),
            Start::Recorded(time) => Some(ClockTrust::resumed(time.max(reached))),
        }
    }

    /// Returns the time of a simulated clock.
    pub(super) fn simulated(&self) -> Option<Timestamp> {
        match self {
            Clock::System(_) => None,
            Clock::Simulated(now) => Some(*now.lock()),
        }
    }

    /// Returns a record of the store's time, unless its readings are doubted at present. Returns `None` on a simulated
    /// clock.
    pub(super) fn record(&self) -> Option<ClockRecord> {
        let Clock::System(clock) = self else { return None };
        let now = self.now();
        let doubted = clock.trust.lock().doubted().is_some();
        // After a restart of the machine nothing confirms the first readings.
        let settling = matches!(clock.start, Start::Recorded(_)) && clock.opened.elapsed() < RECORD_DELAY_AFTER_BOOT;
        let uptime = uptime();
        (!doubted && !settling).then(|| ClockRecord { wall: now.millis(), uptime, boot: clock.machine.boot })
    }
}

fn wall_clock() -> Timestamp {
    // Only a broken clock returns a time before 1970. The epoch then stands for a time long ago.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod starting;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_time_is_known_only_within_one_boot() {
        let record = ClockRecord { wall: 5_000, uptime: 1_000, boot: 7 };
        assert_eq!(record.elapsed(Machine { boot: 7, uptime: 3_500 }), Some(Duration::from_millis(2_500)));
        assert_eq!(record.elapsed(Machine { boot: 8, uptime: 3_500 }), None);
        assert_eq!(record.elapsed(Machine { boot: 7, uptime: 500 }), None);
        assert_eq!(ClockRecord { boot: 0, ..record }.elapsed(Machine { boot: 0, uptime: 3_500 }), None);
    }

    #[test]
    fn the_first_reading_is_checked_against_the_last_record() {
        let now = wall_clock();
        let ahead = |hours: i64| now.plus_millis(-hours * 3_600_000);
        let judged = |wall: Timestamp, boot, uptime, trusted| {
            let record = ClockRecord { wall: wall.millis(), uptime: 0, boot };
            let clock = Clock::system(Some(record), trusted, Machine { boot: 7, uptime });
            let mut trust = clock.trust_of_board(Timestamp::EPOCH)?;
            let believed = trust.believe(now, Duration::ZERO, 3_600_000);
            Some((believed == now, trust.is_standing(Duration::ZERO).is_some()))
        };
        // Two hours are known to have passed, so a reading two hours later is as expected.
        assert_eq!(judged(ahead(2), 7, 7_200_000, false), Some((true, false)));
        // No time has passed, so the reading is doubted, and time continues from the record.
        assert_eq!(judged(ahead(2), 7, 0, false), Some((false, false)));
        // After a restart of the machine, two hours are more than the window of one hour.
        assert_eq!(judged(ahead(2), 8, 0, false), Some((false, true)));
        assert_eq!(judged(ahead(1), 8, 0, false), Some((true, false)));
        assert_eq!(judged(ahead(2), 8, 0, true), None);
    }
}
