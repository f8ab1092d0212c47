//! Reads of the list version.
//!
//! Every request with events needs the list version. One read serves all requests that arrived before the read began;
//! requests that arrive during a read share the next one. So a single request does not have to wait, as with combined
//! writes.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, Value, cmd};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::servers::{Channel, ServerFailure};
use super::session::Session;
use crate::store::receive::receive;
use crate::store::{Result, StoreError};

/// The time for which a read is repeated while the server cannot be reached, if the caller also writes. It is as long
/// as that of writes.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first and the longest pause between two attempts. The pause doubles with each attempt.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// The requests that wait for the next read.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Locked to add or take requests, never across an await.
    state: Mutex<VersionState>,
    arrived: Notify,
    /// Notified when a request arrives that should not wait for the pause between two attempts.
    hurried: Notify,
}

/// A request that waits.
#[derive(Debug)]
struct Asker {
    /// The time until which a failed read is repeated. `None` if it is not repeated, as with other reads.
    deadline: Option<Instant>,
    answer: oneshot::Sender<Result<u64, ServerFailure>>,
}

#[derive(Debug, Default)]
struct VersionState {
    waiting: Vec<Asker>,
    closed: bool,
}

impl Versions {
    /// Returns the version as read at some time after this call.
    pub async fn read(&self, session: &Session) -> Result<u64> {
        self.answer(session, self.join(None)).await
    }

    /// Returns the version as [`read`](Self::read) does, for a caller that also writes: failed reads are repeated for
    /// as long as failed writes are.
    pub async fn read_beside_writes(&self, session: &Session) -> Result<u64> {
        self.answer(session, self.join(Some(Instant::now() + PATIENCE))).await
    }

    async fn answer(&self, session: &Session, answered: oneshot::Receiver<Result<u64, ServerFailure>>) -> Result<u64> {
        match receive(answered).await {
            Ok(version) => version.map_err(|failure| session.servers.error(failure)),
            Err(stopped) => Err(StoreError::Backend { source: Box::new(stopped) }),
        }
    }

    fn join(&self, deadline: Option<Instant>) -> oneshot::Receiver<Result<u64, ServerFailure>> {
        let (answer, answered) = oneshot::channel();
        self.state.lock().waiting.push(Asker { deadline, answer });
        self.arrived.notify_one();
        if deadline.is_none() {
            self.hurried.notify_one();
        }
        answered
    }

    /// Ends [`run`] once no request waits.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Returns the requests to answer with the next read, or `None` when closed.
    async fn take(&self) -> Option<Vec<Asker>> {
        loop {
            {
                let mut state = self.state.lock();
                if !state.waiting.is_empty() {
                    return Some(std::mem::take(&mut state.waiting));
                }
                if state.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Puts the requests back whose deadline is after the next attempt, and answers the others with the failure.
    /// Returns whether any request waits.
    fn put_back(&self, askers: Vec<Asker>, next: Instant, failure: &ServerFailure) -> bool {
        let has_time = |asker: &Asker| asker.deadline.is_some_and(|deadline| deadline > next);
        let (early, late): (Vec<Asker>, Vec<Asker>) = askers.into_iter().partition(has_time);
        for asker in late {
            drop(asker.answer.send(Err(failure.clone())));
        }
        let is_awaited = !early.is_empty();
        self.state.lock().waiting.extend(early);
        is_awaited
    }
}

/// Reads the version for the waiting requests, one read at a time, until closed.
pub(super) async fn run(session: Arc<Session>, versions: Arc<Versions>) {
    let command = command(&session);
    let mut pause = PAUSES.0;
    while let Some(waiting) = versions.take().await {
        // The connection of the writes is used because it is on the same thread, and because the request waits for its
        // write just as long anyway.
        let reading = session.servers.read(Channel::Writes, &command);
        let version = match waiting.iter().filter_map(|asker| asker.deadline).min() {
            None => reading.await,
            Some(until) => {
                let silent = || Err(ServerFailure::Unknown("no answer in time".to_owned()));
                timeout_at(until, reading).await.unwrap_or_else(|_| silent())
            }
        };
        let version = version.and_then(parse);
        let may_pass = |failure: &ServerFailure| failure.is_passing() || matches!(failure, ServerFailure::Unknown(_));
        match version {
            Err(failure) if may_pass(&failure) => {
                if versions.put_back(waiting, Instant::now() + pause, &failure) {
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = versions.hurried.notified() => {}
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
            version => {
                pause = PAUSES.0;
                for asker in waiting {
                    // The receiver may be dropped already. It then needs no answer.
                    drop(asker.answer.send(version.clone()));
                }
            }
        }
    }
}

/// Reads the version for a caller that is about to change it.
pub(super) async fn current(session: &Session) -> Result<u64, ServerFailure> {
    session.servers.read(Channel::Calls, &command(session)).await.and_then(parse)
}

/// Draws a version that was never used before. It is random instead of counted up: a server that lost its latest writes
/// could otherwise reach a number again that stood for a lost list.
pub(super) fn draw() -> u64 {
    rand::random_range(1..=u64::MAX)
}

fn command(session: &Session) -> Cmd {
    let mut command = cmd("GET");
    command.arg(session.keys.version());
    command
}

/// Parses the version. It is 0 before the first board.
fn parse(value: Value) -> Result<u64, ServerFailure> {
    let text = match value {
        Value::Nil => return Ok(0),
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    };
    let version = text.and_then(|text| text.parse().ok());
    version.ok_or_else(|| ServerFailure::Corrupt("the version of the list of boards is no number".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_round_trip() {
        for version in [1, u64::MAX, draw()] {
            assert_eq!(parse(Value::BulkString(version.to_string().into_bytes())).unwrap(), version);
        }
        assert_eq!(parse(Value::Nil).unwrap(), 0);
        for bad in [Value::Int(1), Value::BulkString(b"x".to_vec()), Value::BulkString(vec![0xff])] {
            assert!(matches!(parse(bad), Err(ServerFailure::Corrupt(_))));
        }
    }

    #[tokio::test]
    async fn callers_during_a_read_wait_for_the_next_read() {
        let versions = Versions::default();
        let join = || versions.join(Some(Instant::now() + PATIENCE));
        let _first = [join(), join()];
        assert_eq!(versions.take().await.unwrap().len(), 2);
        let _second = join();
        versions.close();
        assert_eq!(versions.take().await.unwrap().len(), 1);
        assert!(versions.take().await.is_none());
    }

    #[tokio::test]
    async fn a_failed_read_is_repeated_for_callers_with_time_left() {
        let versions = Versions::default();
        let now = Instant::now();
        let (late, hurried) = (versions.join(Some(now)), versions.join(None));
        let mut early = versions.join(Some(now + PATIENCE));
        let waiting = versions.take().await.unwrap();
        assert!(versions.put_back(waiting, now + PAUSES.0, &ServerFailure::Unknown(String::new())));
        assert!(late.await.unwrap().is_err() && hurried.await.unwrap().is_err() && early.try_recv().is_err());
        assert_eq!(versions.take().await.unwrap().len(), 1);
        assert!(!versions.put_back(Vec::new(), now, &ServerFailure::Unknown(String::new())));
    }
}
