//! Sending one script until it is known to be done, as far as patience goes.

use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use tokio::time::{Instant, sleep, timeout_at};

use super::progress::Trouble;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::Script;
use crate::store::redis::servers::{Failure, Line};
use crate::store::redis::session::Session;

/// How long a call may take from its arrival, and from one of its portions to the next. Repeating a script is safe for
/// five minutes (`operation.lua`).
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// What a flush has at least, however long its calls have waited.
const LEAST: Duration = Duration::from_secs(1);
/// Between two sendings of the same script: doubles from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// One sending takes no longer than this (`connection`), so it needs no limit of its own before.
const SENDING: Duration = Duration::from_secs(3);

/// When a flush that begins now must be over, whose oldest call has waited since then.
pub(super) fn deadline(oldest: Instant) -> Instant {
    (oldest + PATIENCE).max(Instant::now() + LEAST)
}

/// What is never sent because its time is over.
pub(super) fn too_late() -> Failure {
    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, "the writes before this one were not answered");
    Failure::Unreachable(RedisError::from(error))
}

/// Waits between attempts, longer each time.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
    deadline: Instant,
}

impl Pauses {
    pub fn until(deadline: Instant) -> Self {
        Self { next: PAUSES.0, deadline }
    }

    /// Waits; `false` at once if the deadline comes before the next attempt.
    pub async fn wait(&mut self) -> bool {
        if Instant::now() + self.next >= self.deadline {
            return false;
        }
        sleep(self.next).await;
        self.next = (self.next * 2).min(PAUSES.1);
        true
    }
}

/// Sends a numbered write again while its outcome is unknown or the server is away. It is encoded again each time,
/// for what the clock may read moves on; all else is the same.
pub(super) async fn deliver(
    session: &Session,
    part: &Part,
    script: &Script,
    deadline: Instant,
    encode: impl Fn() -> Cmd,
) -> Result<Value, Trouble> {
    if Instant::now() >= deadline {
        return Err(Trouble::NotSent(too_late()));
    }
    let mut pauses = Pauses::until(deadline);
    let mut doubt: Option<Failure> = None;
    loop {
        let command = encode();
        let sending = session.servers.call(part.slot(), Line::Writes, script, &command);
        let sent = if Instant::now() + SENDING < deadline {
            sending.await
        } else {
            let silent = || Failure::Unknown("no answer before the deadline".to_owned());
            timeout_at(deadline, sending).await.unwrap_or_else(|_| Err(silent()))
        };
        let failure = match sent {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        let is_unknown = matches!(failure, Failure::Unknown(_));
        let is_passing = failure.is_passing();
        if is_unknown {
            doubt = Some(failure.clone());
        }
        if !(is_unknown || is_passing) || !pauses.wait().await {
            // Once a sending may have been done, no later refusal makes it undone.
            return Err(match doubt {
                Some(doubt) => Trouble::Unknown(doubt),
                None if is_passing => Trouble::NotSent(failure),
                None => Trouble::Refused(failure),
            });
        }
    }
}
