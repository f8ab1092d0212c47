//! The clock of a partition, as this instance knows it. All tracks share it, because one script reads one clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::store_clock::{RESTART, Start};
use crate::board::{Board, Timestamp};
use crate::store::{ClockTrust, StoreError};

/// What this instance believes about the clock of a partition. It may be out of date at any moment: every script
/// receives it and returns a better time.
#[derive(Debug)]
pub(super) struct PartitionClock {
    simulated: bool,
    /// The largest jump that is believed at the start, in milliseconds. While the clock runs, it is half of it.
    tolerance: i64,
    state: Mutex<ClockState>,
    /// Whether no reading of the clock has been believed since this instance started.
    standing: AtomicBool,
}

#[derive(Debug)]
struct ClockState {
    trust: ClockTrust,
    believed: Timestamp,
    at: Duration,
}

/// The values with which a reading of the clock is judged, here and in the scripts (`clock.lua`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Belief {
    /// The expected time.
    pub expected: Timestamp,
    /// The latest reading to believe.
    pub latest: Timestamp,
}

impl Belief {
    /// Returns the time to use for a reading of the clock.
    pub fn now(&self, reading: Timestamp) -> Timestamp {
        if reading > self.latest { self.expected } else { reading }
    }
}

impl PartitionClock {
    /// Creates the clock of a partition of a board. `start` returns the store's knowledge of its clock, given the
    /// largest jump that is believed.
    pub fn new(board: &Board, simulated: bool, start: impl FnOnce(i64) -> Start) -> Self {
        let tolerance = (board.clock_tolerance() / 2).max(5_000).saturating_mul(2);
        let Start { trust, believed, at } = start(tolerance);
        let standing = AtomicBool::new(!simulated && trust.is_standing(at).is_some());
        Self { simulated, tolerance, state: Mutex::new(ClockState { trust, believed, at }), standing }
    }

    /// Returns what is believed now.
    pub fn belief(&self, monotonic: Duration) -> Belief {
        let state = self.state.lock();
        if self.simulated {
            return Belief { expected: state.believed, latest: Timestamp::MAX };
        }
        if self.is_standing() {
            let latest = state.believed.plus_millis(self.tolerance.max(RESTART));
            return Belief { expected: state.believed, latest };
        }
        let passed = i64::try_from(monotonic.saturating_sub(state.at).as_millis()).unwrap_or(i64::MAX);
        let expected = state.believed.plus_millis(passed);
        Belief { expected, latest: expected.plus_millis(self.tolerance / 2) }
    }

    /// Records a reading.
    pub fn learn(&self, reading: Timestamp, monotonic: Duration) {
        let mut state = self.state.lock();
        state.at = monotonic;
        if self.simulated {
            state.believed = reading;
            return;
        }
        let tolerance = if self.is_standing() { self.tolerance.max(RESTART) } else { self.tolerance };
        state.believed = state.trust.believe(reading, monotonic, tolerance);
        if self.is_standing() {
            self.standing.store(state.trust.is_standing(monotonic).is_some(), Ordering::Release);
        }
    }

    /// Returns whether time stands still: the clock was too far ahead when this instance started, and no reading has
    /// been believed since.
    pub fn is_standing(&self) -> bool {
        self.standing.load(Ordering::Acquire)
    }

    /// Returns the error that refuses writes to this partition while time stands still.
    pub fn doubt(&self, monotonic: Duration) -> Option<StoreError> {
        if !self.is_standing() {
            return None;
        }
        let state = self.state.lock();
        let retry_after = state.trust.is_standing(monotonic)?;
        let reading = state.trust.doubted()?;
        Some(StoreError::ClockDoubted { reading, recorded: state.believed, retry_after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};

    fn clock(simulated: bool) -> PartitionClock {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        PartitionClock::new(&board, simulated, |_| Start::believed(at(0)))
    }

    /// Returns the time this many seconds after the first reading.
    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + seconds * 1_000)
    }

    #[test]
    fn the_expected_time_advances_between_readings_and_doubts_jumps() {
        let clock = clock(false);
        let seconds = Duration::from_secs;
        assert_eq!(clock.belief(seconds(10)), Belief { expected: at(10), latest: at(10 + 3_600) });
        clock.learn(at(20), seconds(10));
        assert_eq!(clock.belief(seconds(11)).expected, at(21));
        // 2 hours ahead of the expected time, which is more than half of the 2-hour window.
        clock.learn(at(7_221), seconds(11));
        assert_eq!(clock.belief(seconds(12)), Belief { expected: at(22), latest: at(22 + 3_600) });
        // The readings have agreed for more than a minute.
        clock.learn(at(7_300), seconds(90));
        assert_eq!(clock.belief(seconds(91)).expected, at(7_301));
    }

    #[test]
    fn a_simulated_clock_does_not_advance_and_is_always_trusted() {
        let clock = clock(true);
        assert_eq!(clock.belief(Duration::from_secs(10)), Belief { expected: at(0), latest: Timestamp::MAX });
        clock.learn(at(1_000_000), Duration::from_secs(10));
        assert_eq!(clock.belief(Duration::from_secs(99)).expected, at(1_000_000));
    }
}
