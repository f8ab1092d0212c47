//! Whether to believe a clock.

use std::time::Duration;

use crate::board::Timestamp;

/// How long a clock that ran ahead must agree with itself before it is believed.
const PROBATION: Duration = Duration::from_secs(60);
/// The least lead that is doubted, in milliseconds.
const LEAST_DOUBTED: i64 = 5_000;

/// Compares a store's clock with this process's monotonic one, for one wrong reading would expire everything.
#[derive(Clone, Debug)]
pub struct ClockTrust {
    believed: Timestamp,
    at: Duration,
    doubted_since: Option<Duration>,
}

impl ClockTrust {
    /// Starts with a reading that nothing can be compared with.
    pub fn new(reading: Timestamp, monotonic: Duration) -> Self {
        Self { believed: reading, at: monotonic, doubted_since: None }
    }

    /// The time to go by, given what the clock reads. A clock ahead by more than half a window (5 s at least) is
    /// not believed until it has agreed for a minute.
    pub fn believe(&mut self, reading: Timestamp, monotonic: Duration, half_window_millis: i64) -> Timestamp {
        let passed = i64::try_from(monotonic.saturating_sub(self.at).as_millis()).unwrap_or(i64::MAX);
        let expected = self.believed.plus_millis(passed);
        let lead = reading.millis().saturating_sub(expected.millis());
        if lead > half_window_millis.max(LEAST_DOUBTED) {
            let since = *self.doubted_since.get_or_insert(monotonic);
            if monotonic.saturating_sub(since) < PROBATION {
                return expected;
            }
        }
        *self = Self::new(reading, monotonic);
        reading
    }
}
