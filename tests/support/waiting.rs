//! How long tests wait for a server to start or for a state to be reached, and what a failure says.

use std::fmt::{Debug, Display};
use std::time::{Duration, Instant};

/// The longest time that a test waits. A machine that is busy with other work may take minutes for what otherwise takes
/// milliseconds, and a test that succeeds never waits longer than necessary.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The time between two looks at a state.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A wait that has begun.
pub struct Wait<What> {
    what: What,
    since: Instant,
}

impl<What: Display> Wait<What> {
    /// Begins to wait for this.
    pub fn begin(what: What) -> Self {
        Self { what, since: Instant::now() }
    }

    /// Returns an error that says what was waited for and what was seen last, if the wait has taken too long.
    pub fn has_time(&self, seen: impl Debug) -> Result<(), String> {
        let Self { what, since } = self;
        if since.elapsed() < PATIENCE { Ok(()) } else { Err(format!("waited {PATIENCE:?} for {what}; last: {seen:?}")) }
    }

    /// Pauses before the next look. Panics if the wait has taken too long. Blocks.
    #[allow(dead_code, reason = "not every test program blocks")]
    pub fn pause(&self, seen: impl Debug) {
        self.has_time(seen).unwrap_or_else(|why| panic!("{why}"));
        std::thread::sleep(BETWEEN_LOOKS);
    }

    /// Pauses before the next look. Panics if the wait has taken too long.
    #[allow(dead_code, reason = "not every test program waits in tasks")]
    pub async fn rest(&self, seen: impl Debug) {
        self.has_time(seen).unwrap_or_else(|why| panic!("{why}"));
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
