//! Which readings of a wall clock to believe.

use std::time::Duration;

use crate::board::Timestamp;

/// A leap up to this is believed whatever the window: in milliseconds.
const ALWAYS_BELIEVED: i64 = 5_000;
/// How long a leap must be confirmed by further readings.
const CONFIRMATION: Duration = Duration::from_secs(60);

/// Judges readings of a wall clock by a monotonic one.
///
/// One wrong reading far in the future would expire everything a board holds, at once and for good. So a reading
/// that runs ahead of the monotonic clock by more than half a window (and 5 s) is not believed until the readings
/// have agreed with it for a minute; until then time goes on as the monotonic clock says. Small leaps are
/// believed at once, and so is the first reading, as there is nothing to compare it with. A clock set back is
/// followed without moving what is answered back: time stands still until it has caught up.
#[derive(Clone, Debug)]
pub struct ClockTrust {
    /// The last believed reading, and when it was taken.
    anchor: (Timestamp, Duration),
    /// The latest time answered.
    answered: Timestamp,
    doubt: Option<Doubt>,
}

/// A leap not believed yet.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    first: Timestamp,
    since: Duration,
}

impl ClockTrust {
    /// Starts with a reading that is believed, taken when the monotonic clock showed `monotonic`.
    pub fn new(reading: Timestamp, monotonic: Duration) -> Self {
        Self { anchor: (reading, monotonic), answered: reading, doubt: None }
    }

    /// The time to go by, given a reading of the wall clock. It never runs backward.
    pub fn believe(&mut self, reading: Timestamp, monotonic: Duration, half_window_millis: i64) -> Timestamp {
        let tolerance = half_window_millis.max(ALWAYS_BELIEVED);
        let expected = after(self.anchor.0, monotonic.saturating_sub(self.anchor.1));
        let believed = if reading <= expected.plus_millis(tolerance) || self.confirmed(reading, monotonic) {
            self.anchor = (reading, monotonic);
            self.doubt = None;
            reading
        } else {
            expected
        };
        self.answered = self.answered.max(believed);
        self.answered
    }

    /// The first reading of the leap that is being doubted, for a warning to name.
    pub fn doubted(&self) -> Option<Timestamp> {
        self.doubt.map(|doubt| doubt.first)
    }

    /// Whether the readings have agreed with the leap for long enough.
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
    fn ordinary_time_is_believed_however_rarely_it_is_read() {
        let mut trust = ClockTrust::new(t(0), s(100));
        assert_eq!(trust.believe(t(10_000), s(110), HOUR), t(10_000));
        assert_eq!(trust.believe(t(400 * HOUR), s(100 + 400 * 3_600), HOUR), t(400 * HOUR));
        assert_eq!(trust.doubted(), None);
    }

    #[test]
    fn a_leap_up_to_half_a_window_is_believed_and_never_less_than_five_seconds() {
        assert_eq!(ClockTrust::new(t(0), s(0)).believe(t(HOUR), s(0), HOUR), t(HOUR));
        assert_eq!(ClockTrust::new(t(0), s(0)).believe(t(HOUR + 1), s(0), HOUR), t(0));
        assert_eq!(ClockTrust::new(t(0), s(0)).believe(t(5_000), s(0), 500), t(5_000));
        assert_eq!(ClockTrust::new(t(0), s(0)).believe(t(5_001), s(0), 500), t(0));
    }

    #[test]
    fn a_far_leap_is_believed_after_a_minute_of_agreement() {
        let mut trust = ClockTrust::new(t(0), s(0));
        let year = 8_760 * HOUR;
        assert_eq!(trust.believe(t(year), s(1), HOUR), t(1_000));
        assert_eq!(trust.doubted(), Some(t(year)));
        assert_eq!(trust.believe(t(year + 59_000), s(60), HOUR), t(60_000));
        assert_eq!(trust.believe(t(year + 60_000), s(61), HOUR), t(year + 60_000));
        assert_eq!(trust.doubted(), None);
    }

    #[test]
    fn a_leap_that_goes_away_or_wanders_is_never_believed() {
        let mut trust = ClockTrust::new(t(0), s(0));
        assert_eq!(trust.believe(t(1_000 * HOUR), s(1), HOUR), t(1_000));
        assert_eq!(trust.believe(t(2_000), s(2), HOUR), t(2_000));
        assert_eq!(trust.doubted(), None);
        for second in 3..200 {
            let wild = t(second * 1_000 * HOUR);
            let seconds = second.unsigned_abs();
            assert_eq!(trust.believe(wild, s(seconds), HOUR), t(second * 1_000));
        }
    }

    #[test]
    fn a_clock_set_back_stands_still_and_is_followed_from_there() {
        let mut trust = ClockTrust::new(t(10 * HOUR), s(0));
        assert_eq!(trust.believe(t(0), s(1), HOUR), t(10 * HOUR));
        assert_eq!(trust.believe(t(9 * HOUR), s(1 + 9 * 3_600), HOUR), t(10 * HOUR));
        assert_eq!(trust.believe(t(11 * HOUR), s(1 + 11 * 3_600), HOUR), t(11 * HOUR));
    }
}
