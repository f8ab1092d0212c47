//! Repeating what may succeed soon, up to a deadline: sending a script until it is known to be done, and the reads that
//! belong to a write.

use std::time::Duration;

use redis::RedisError;
use tokio::time::{Instant, sleep, timeout_at};

use crate::store::redis::servers::ServerFailure;

/// The longest time that a call may take from its arrival, and from one of its portions to the next. A script can be
/// repeated safely for five minutes (see `operation.lua`).
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The smallest time for a flush, however long its calls have waited, and for reading scores.
pub(super) const LEAST: Duration = Duration::from_secs(1);
/// The first and the longest pause between two attempts. The pause doubles with each attempt.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// The assumed longest time of one attempt (see `link`). If more time than this is left, the attempt gets no timeout of
/// its own.
const SENDING: Duration = Duration::from_secs(3);

/// Returns the failure of writes that are not sent because their deadline has passed.
pub(super) fn too_late() -> ServerFailure {
    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, "the writes before this one were not answered");
    ServerFailure::Unreachable(RedisError::from(error))
}

/// Makes attempts while their outcome is unknown or the server cannot be reached. Once an attempt may have been done,
/// the failure is [`ServerFailure::Unknown`]: a later refusal does not change that.
pub(super) async fn repeat<T>(
    deadline: Instant,
    mut attempt: impl AsyncFnMut() -> Result<T, ServerFailure>,
) -> Result<T, ServerFailure> {
    if Instant::now() >= deadline {
        return Err(too_late());
    }
    let (mut pause, mut doubt) = (PAUSES.0, None);
    loop {
        let attempt = attempt();
        let tried = if Instant::now() + SENDING < deadline {
            attempt.await
        } else {
            let silent = || ServerFailure::Unknown("no answer before the deadline".to_owned());
            timeout_at(deadline, attempt).await.unwrap_or_else(|_| Err(silent()))
        };
        let failure = match tried {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        if !failure.may_pass() || Instant::now() + pause >= deadline {
            return Err(doubt.unwrap_or(failure));
        }
        if failure.is_unknown() {
            doubt = Some(failure);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}
