//! The decision whether to believe a reading of a wall clock.

use std::time::Duration;

use crate::board::Timestamp;

/// The largest jump forward, in milliseconds, that is trusted, whatever the window.
const ALWAYS_BELIEVED: i64 = 5_000;
/// The time for which further readings must confirm a larger jump.
const CONFIRMATION: Duration = Duration::from_secs(60);

/// Judges readings of a wall clock.
///
/// One wrong reading far in the future would expire everything that a board holds, at once and permanently. So a
/// reading that is too far ahead of the expected time is not believed until the readings have agreed with it for a
/// minute.
///
/// - While the process runs, a monotonic clock gives the expected time. A reading ahead of it by more than half a
///   window (and 5 s) is doubted, and time continues by the monotonic clock.
/// - After a start, the expected time is the last recorded reading plus the time since, if that is known (because the
///   machine was not restarted in the meantime). Then the rule is the same as while the process runs.
/// - If the time since is not known, a reading beyond the recorded one by more than a window (and 5 s) is doubted. Time
///   then stands still at the recorded reading, [`is_standing`](Self::is_standing) returns `Some`, and nothing may be
///   written.
///
/// If the clock is set back, the returned time does not move back: it stands still until the clock has caught up.
#[derive(Clone, Debug)]
pub struct ClockTrust {
    expectation: Expectation,
    /// The latest time returned.
    answered: Timestamp,
    doubt: Option<Doubt>,
}

/// The time that a reading is compared with.
#[derive(Clone, Copy, Debug)]
enum Expectation {
    /// The last believed reading, and the monotonic time when it was taken.
    Since(Timestamp, Duration),
    /// A reading taken an unknown time ago.
    After(Timestamp),
}

/// A reading that is not yet believed.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    first: Timestamp,
    since: Duration,
}

impl ClockTrust {
    /// Creates an instance with a believed reading, taken when the monotonic clock showed `monotonic`.
    pub fn new(reading: Timestamp, monotonic: Duration) -> Self {
        Self { expectation: Expectation::Since(reading, monotonic), answered: reading, doubt: None }
    }

    /// Creates an instance with a reading that was recorded an unknown time ago.
    pub fn resumed(recorded: Timestamp) -> Self {
        Self { expectation: Expectation::After(recorded), answered: recorded, doubt: None }
    }

    /// Returns the time to use, given a reading of the wall clock. It never runs backward.
    pub fn believe(&mut self, reading: Timestamp, monotonic: Duration, window_millis: i64) -> Timestamp {
        let (expected, tolerance) = match self.expectation {
            Expectation::Since(time, at) => (after(time, monotonic.saturating_sub(at)), window_millis / 2),
            Expectation::After(time) => (time, window_millis),
        };
        let believed =
            if reading <= expected.plus_millis(tolerance.max(ALWAYS_BELIEVED)) || self.confirmed(reading, monotonic) {
                self.expectation = Expectation::Since(reading, monotonic);
                self.doubt = None;
                reading
            } else {
                expected
            };
        self.answered = self.answered.max(believed);
        self.answered
    }

    /// Returns the first of the doubted readings, for a warning.
    pub fn doubted(&self) -> Option<Timestamp> {
        self.doubt.map(|doubt| doubt.first)
    }

    /// Returns for how much longer time stands still at most, or `None` if it does not. It stands still while no
    /// reading has been believed since the start.
    pub fn is_standing(&self, monotonic: Duration) -> Option<Duration> {
        match (self.expectation, self.doubt) {
            (Expectation::After(_), Some(doubt)) => {
                Some(CONFIRMATION.saturating_sub(monotonic.saturating_sub(doubt.since)))
            }
            _ => None,
        }
    }

    /// Returns whether the readings have agreed with the doubted one for long enough.
    fn confirmed(&mut self, reading: Timestamp, monotonic: Duration) -> bool {
        let doubt = *self.doubt.get_or_insert(Doubt { first: reading, since: monotonic });
        let elapsed = monotonic.saturating_sub(doubt.since);
        let agreed = after(doubt.first, elapsed).millis().abs_diff(reading.millis());
        if agreed > ALWAYS_BELIEVED.unsigned_abs() {
            self.doubt = Some(Doubt { first: reading, since: monotonic });
            return false;
        }
        elapsed >= CONFIRMATION
    }
}

fn after(time: Timestamp, elapsed: Duration) -> Timestamp {
    time.plus_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
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
    fn normal_time_is_accepted_at_any_reading_interval() {
        let mut trust = ClockTrust::new(t(0), s(100));
        assert_eq!(trust.believe(t(10_000), s(110), 2 * HOUR), t(10_000));
        assert_eq!(trust.believe(t(400 * HOUR), s(100 + 400 * 3_600), 2 * HOUR), t(400 * HOUR));
        assert_eq!(trust.doubted(), None);
    }

    #[test]
    fn jumps_up_to_half_a_window_or_five_seconds_are_accepted() {
        assert_eq!(ClockTrust::new(t(0), s(0)).believe(t(HOUR), s(0), 2 * HOUR), t(HOUR));
        assert_eq!(ClockTrust::new(t(0), s(0)).believe(t(HOUR + 1), s(0), 2 * HOUR), t(0));
        assert_eq!(ClockTrust::new(t(0), s(0)).believe(t(5_000), s(0), 1_000), t(5_000));
        assert_eq!(ClockTrust::new(t(0), s(0)).believe(t(5_001), s(0), 1_000), t(0));
    }

    #[test]
    fn a_far_jump_is_accepted_after_a_minute_of_consistent_readings() {
        let mut trust = ClockTrust::new(t(0), s(0));
        let year = 8_760 * HOUR;
        assert_eq!(trust.believe(t(year), s(1), 2 * HOUR), t(1_000));
        assert_eq!(trust.doubted(), Some(t(year)));
        assert_eq!(trust.believe(t(year + 59_000), s(60), 2 * HOUR), t(60_000));
        assert_eq!(trust.believe(t(year + 60_000), s(61), 2 * HOUR), t(year + 60_000));
        assert_eq!(trust.doubted(), None);
    }

    #[test]
    fn inconsistent_jumps_are_never_accepted() {
        let mut trust = ClockTrust::new(t(0), s(0));
        assert_eq!(trust.believe(t(1_000 * HOUR), s(1), 2 * HOUR), t(1_000));
        assert_eq!(trust.believe(t(2_000), s(2), 2 * HOUR), t(2_000));
        assert_eq!(trust.doubted(), None);
        for second in 3..200 {
            let wild = t(second * 1_000 * HOUR);
            let seconds = second.unsigned_abs();
            assert_eq!(trust.believe(wild, s(seconds), 2 * HOUR), t(second * 1_000));
        }
    }

    #[test]
    fn a_clock_set_back_is_held_until_it_catches_up() {
        let mut trust = ClockTrust::new(t(10 * HOUR), s(0));
        assert_eq!(trust.believe(t(0), s(1), 2 * HOUR), t(10 * HOUR));
        assert_eq!(trust.believe(t(9 * HOUR), s(1 + 9 * 3_600), 2 * HOUR), t(10 * HOUR));
        assert_eq!(trust.believe(t(11 * HOUR), s(1 + 11 * 3_600), 2 * HOUR), t(11 * HOUR));
    }

    #[test]
    fn after_a_resume_jumps_beyond_a_window_are_held_for_a_minute() {
        assert_eq!(ClockTrust::resumed(t(0)).believe(t(2 * HOUR), s(0), 2 * HOUR), t(2 * HOUR));
        let mut trust = ClockTrust::resumed(t(0));
        let year = 8_760 * HOUR;
        assert_eq!(trust.believe(t(year), s(10), 2 * HOUR), t(0));
        assert_eq!(trust.is_standing(s(10)), Some(s(60)));
        assert_eq!(trust.believe(t(year + 59_000), s(69), 2 * HOUR), t(0));
        assert_eq!(trust.is_standing(s(69)), Some(s(1)));
        assert_eq!(trust.believe(t(year + 60_000), s(70), 2 * HOUR), t(year + 60_000));
        assert_eq!(trust.is_standing(s(70)), None);
    }

    #[test]
    fn after_a_resume_a_short_glitch_has_no_effect() {
        let mut trust = ClockTrust::resumed(t(0));
        assert_eq!(trust.believe(t(8_760 * HOUR), s(1), 2 * HOUR), t(0));
        assert_eq!(trust.believe(t(HOUR), s(3), 2 * HOUR), t(HOUR));
        assert_eq!((trust.is_standing(s(3)), trust.doubted()), (None, None));
    }
}
