//! The store's clock: this process's, or one set from outside.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::board::Timestamp;

/// The store's clock.
#[derive(Debug)]
pub(super) enum Clock {
    System {
        started: Instant,
    },
    /// Held for a copy or a comparison, and while the change is handed to the journal; never across an await.
    Simulated(Mutex<Timestamp>),
}

/// One look at the clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// The wall clock and, to judge it by, the time since the store was opened.
    System { wall: Timestamp, monotonic: Duration },
    /// Always believed.
    Simulated(Timestamp),
}

impl Clock {
    pub(super) fn system() -> Self {
        Clock::System { started: Instant::now() }
    }

    pub(super) fn read(&self) -> Reading {
        match self {
            Clock::System { started } => Reading::System { wall: wall_clock(), monotonic: started.elapsed() },
            Clock::Simulated(now) => Reading::Simulated(*now.lock()),
        }
    }
}

impl Reading {
    /// What the clock shows, believed or not.
    pub(super) fn shown(self) -> Timestamp {
        match self {
            Reading::System { wall, .. } => wall,
            Reading::Simulated(now) => now,
        }
    }
}

fn wall_clock() -> Timestamp {
    // Before 1970 only a broken clock is; the epoch then stands for "long ago".
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
