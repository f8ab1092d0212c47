//! Sending one script until it is known to be done, up to a deadline.

use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use tokio::time::{Instant, sleep, timeout_at};

use super::progress::Trouble;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::Script;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::Session;

/// The longest time that a call may take from its arrival, and from one of its portions to the next. A script can be
/// repeated safely for five minutes (see `operation.lua`).
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The smallest time for a flush, however long its calls have waited.
const LEAST: Duration = Duration::from_secs(1);
/// The first and the longest pause between two attempts for the same script. The pause doubles with each attempt.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// The assumed longest time of one attempt (see `link`). If more time than this is left, the attempt gets no timeout of
/// its own.
const SENDING: Duration = Duration::from_secs(3);

/// Returns the deadline of a flush that begins now, whose oldest call has waited since `oldest`.
pub(super) fn deadline(oldest: Instant) -> Instant {
    (oldest + PATIENCE).max(Instant::now() + LEAST)
}

/// Returns the failure of writes that are not sent because their deadline has passed.
pub(super) fn too_late() -> ServerFailure {
    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, "the writes before this one were not answered");
    ServerFailure::Unreachable(RedisError::from(error))
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

    /// Waits. Returns `false` at once if the deadline is before the next attempt.
    pub async fn wait(&mut self) -> bool {
        if Instant::now() + self.next >= self.deadline {
            return false;
        }
        sleep(self.next).await;
        self.next = (self.next * 2).min(PAUSES.1);
        true
    }
}

/// Sends a write operation, again and again while its outcome is unknown or the server cannot be reached. It is encoded
/// again for each attempt, because the latest reading to believe moves on; everything else stays the same.
pub(super) async fn deliver(
    session: &Session,
    part: &Part,
    channel: Channel,
    script: &Script,
    deadline: Instant,
    encode: impl Fn() -> Cmd,
) -> Result<Value, Trouble> {
    if Instant::now() >= deadline {
        return Err(Trouble::NotSent(too_late()));
    }
    let mut pauses = Pauses::until(deadline);
    let mut doubt: Option<ServerFailure> = None;
    loop {
        let command = encode();
        let sending = session.servers.call(part.slot(), channel, script, &command);
        let sent = if Instant::now() + SENDING < deadline {
            sending.await
        } else {
            let silent = || ServerFailure::Unknown("no answer before the deadline".to_owned());
            timeout_at(deadline, sending).await.unwrap_or_else(|_| Err(silent()))
        };
        let failure = match sent {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        let is_unknown = matches!(failure, ServerFailure::Unknown(_));
        let is_passing = failure.is_passing();
        if is_unknown {
            doubt = Some(failure.clone());
        }
        if !(is_unknown || is_passing) || !pauses.wait().await {
            // Once an attempt may have been done, a later refusal does not change that.
            return Err(match doubt {
                Some(doubt) => Trouble::Unknown(doubt),
                None if is_passing => Trouble::NotSent(failure),
                None => Trouble::Refused(failure),
            });
        }
    }
}
