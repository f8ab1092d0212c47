//! Trust in the server's clock: the time that was recorded before this instance started, and the time that the store as
//! a whole believes now. Each partition of a board judges readings itself (see `partition_clock`), because the window
//! determines how large a jump may be.

use std::time::Duration;

use parking_lot::Mutex;

use crate::board::Timestamp;
use crate::store::{ClockTrust, StoreError};

/// The smallest distance, in milliseconds, by which a first reading may be ahead of the recorded time. It is longer
/// than the interval between two records of the time, and longer than a restart takes.
pub(super) const RESTART: i64 = 60_000;
/// The largest such distance, in milliseconds, with which a board may be defined. A board that is defined in the future
/// accepts nothing until that time.
const DEFINING: i64 = 86_400_000;

/// The belief of the store as a whole in a system clock.
#[derive(Debug)]
pub(super) struct StoreClock {
    /// The last time recorded before this instance started. `None` if there was none, or if the clock is to be trusted.
    recorded: Option<Timestamp>,
    first: Timestamp,
    state: Mutex<StoreClockState>,
}

#[derive(Clone, Debug)]
struct StoreClockState {
    trust: ClockTrust,
    believed: Timestamp,
    at: Duration,
}

/// The state of a clock with which a partition starts.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub trust: ClockTrust,
    pub believed: Timestamp,
    pub at: Duration,
}

impl Start {
    /// Creates a start from a reading that is believed, taken when this instance started.
    pub fn believed(reading: Timestamp) -> Self {
        Start { trust: ClockTrust::new(reading, Duration::ZERO), believed: reading, at: Duration::ZERO }
    }
}

impl StoreClock {
    /// Creates the clock from the first reading and the time recorded before.
    pub fn new(recorded: Option<Timestamp>, first: Timestamp) -> Self {
        let start = Self::start(recorded, first, 0);
        let state = StoreClockState { trust: start.trust, believed: start.believed, at: Duration::ZERO };
        Self { recorded, first, state: Mutex::new(state) }
    }

    fn start(recorded: Option<Timestamp>, first: Timestamp, window: i64) -> Start {
        let Some(recorded) = recorded else { return Start::believed(first) };
        let mut trust = ClockTrust::resumed(recorded);
        let believed = trust.believe(first, Duration::ZERO, window.max(RESTART));
        Start { trust, believed, at: Duration::ZERO }
    }

    /// Returns the start for a partition of a board with this window. If the store believes its clock by now, so does
    /// the partition.
    pub fn for_partition(&self, window: i64, monotonic: Duration) -> Start {
        let state = self.state.lock();
        match state.trust.is_standing(monotonic) {
            Some(_) => Self::start(self.recorded, self.first, window),
            None => Start { trust: state.trust.clone(), believed: state.believed, at: state.at },
        }
    }

    /// Records a reading and returns the time to use.
    pub fn learn(&self, reading: Timestamp, monotonic: Duration) -> Timestamp {
        let mut state = self.state.lock();
        let window = if state.trust.is_standing(monotonic).is_some() { RESTART } else { 0 };
        state.believed = state.trust.believe(reading, monotonic, window);
        state.at = monotonic;
        state.believed
    }

    /// Returns the believed time to record, or `None` while a reading is doubted.
    pub fn to_record(&self) -> Option<Timestamp> {
        let state = self.state.lock();
        state.trust.doubted().is_none().then_some(state.believed)
    }

    /// Returns the error that refuses to define a board now, if there is one.
    pub fn refusal_to_define(&self, monotonic: Duration) -> Option<StoreError> {
        let state = self.state.lock();
        let retry_after = state.trust.is_standing(monotonic)?;
        let (recorded, reading) = (self.recorded?, state.trust.doubted()?);
        (reading > recorded.plus_millis(DEFINING)).then_some(StoreError::ClockDoubted {
            reading,
            recorded,
            retry_after,
        })
    }

    pub fn is_doubted(&self) -> bool {
        self.state.lock().trust.doubted().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn t(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis)
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_part_takes_its_initial_clock_from_the_store() {
        let clock = StoreClock::new(None, t(0));
        assert_eq!(clock.for_partition(HOUR, s(1)).believed, t(0));
        let clock = StoreClock::new(Some(t(0)), t(2 * HOUR));
        assert_eq!(clock.for_partition(HOUR, s(1)).believed, t(0));
        assert_eq!(clock.for_partition(3 * HOUR, s(1)).believed, t(2 * HOUR));
        assert_eq!(clock.to_record(), None);
        assert!(clock.refusal_to_define(s(1)).is_none(), "two hours do no harm to a new board");
        assert_eq!(clock.learn(t(2 * HOUR + 61_000), s(61)), t(2 * HOUR + 61_000));
        assert_eq!(clock.for_partition(HOUR, s(62)).believed, t(2 * HOUR + 61_000));
        assert_eq!(clock.to_record(), Some(t(2 * HOUR + 61_000)));
    }

    #[test]
    fn defining_a_board_at_a_doubted_time_is_refused() {
        let clock = StoreClock::new(Some(t(0)), t(9_000 * HOUR));
        assert!(matches!(
            clock.refusal_to_define(s(10)),
            Some(StoreError::ClockDoubted { retry_after, .. }) if retry_after == s(50)
        ));
        assert_eq!(clock.learn(t(12_000), s(12)), t(12_000));
        assert!(clock.refusal_to_define(s(12)).is_none());
        assert_eq!(clock.for_partition(HOUR, s(13)).believed, t(12_000));
    }
}
