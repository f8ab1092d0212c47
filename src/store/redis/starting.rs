//! The waiting of a start for servers that are not ready.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::servers::Unready;
use crate::store::{Result, StoreError};

/// The time for which a start waits for a master that Sentinels are replacing, or for a server that is there but busy.
const SWITCH: Duration = Duration::from_secs(5);
/// The time for which it waits for a server that does not answer. One that refuses the connection is not waited for.
const SILENCE: Duration = Duration::from_secs(30);
/// The interval at which it says that it waits.
const SAY: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// A start that waits.
#[derive(Debug)]
pub(super) struct Starting {
    /// The time since which no server has said that it is loading.
    since: Instant,
    /// The time when the wait was last logged.
    said: Option<Instant>,
}

impl Starting {
    pub fn now() -> Self {
        Self { since: Instant::now(), said: None }
    }

    /// Waits before the next attempt. Returns the error of the last one if there is to be none.
    pub async fn wait(&mut self, error: StoreError, has_sentinels: bool) -> Result<()> {
        let (longest, why) = match Unready::of(&error) {
            Some(Unready::Loading) => {
                self.since = Instant::now();
                (Duration::MAX, "the start waits until Redis has loaded its data")
            }
            Some(Unready::Silent) => (SILENCE, "the start waits for an answer of Redis"),
            Some(Unready::Busy) => (SWITCH, "the start waits until Redis is ready"),
            None if has_sentinels && error.is_transient() => (SWITCH, "the start waits for a master"),
            None => return Err(error),
        };
        if self.since.elapsed() >= longest {
            return Err(error);
        }
        if self.said.is_none_or(|said| said.elapsed() >= SAY) {
            self.said = Some(Instant::now());
            tracing::warn!(reason = %error, "{why}");
        }
        sleep(PAUSE).await;
        Ok(())
    }
}
