//! Reading the version of the list of boards.
//!
//! Every request with events asks for it, and one reading serves all who asked before it began: those who come while
//! one is under way share the next. Like combined writes, that makes nobody wait who is alone.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, Value, cmd};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::servers::{Failure, Line};
use super::session::Session;
use crate::store::receive::receive;
use crate::store::{Result, StoreError};

/// How long a reading is asked for again while the server is away, for those who write: as long as the writes that it
/// goes along with.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts: doubles from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Those who wait for the next reading.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Held to join or take, never across an await.
    state: Mutex<State>,
    arrived: Notify,
    /// Somebody came who does not wait for the pause between two attempts.
    hurried: Notify,
}

/// One who waits.
#[derive(Debug)]
struct Asker {
    /// Until when a reading that fails is made again; `None` not to have it made again, as with other reads.
    deadline: Option<Instant>,
    answer: oneshot::Sender<Result<u64, Failure>>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Asker>,
    closed: bool,
}

impl Versions {
    /// The version as it is read at some time after this call.
    pub async fn read(&self, session: &Session) -> Result<u64> {
        self.answer(session, self.join(None)).await
    }

    /// The same for those who write meanwhile, with the patience of a write.
    pub async fn read_beside_writes(&self, session: &Session) -> Result<u64> {
        self.answer(session, self.join(Some(Instant::now() + PATIENCE))).await
    }

    async fn answer(&self, session: &Session, answered: oneshot::Receiver<Result<u64, Failure>>) -> Result<u64> {
        match receive(answered).await {
            Ok(version) => version.map_err(|failure| session.servers.error(failure)),
            Err(stopped) => Err(StoreError::Backend { source: Box::new(stopped) }),
        }
    }

    fn join(&self, deadline: Option<Instant>) -> oneshot::Receiver<Result<u64, Failure>> {
        let (answer, answered) = oneshot::channel();
        self.state.lock().waiting.push(Asker { deadline, answer });
        self.arrived.notify_one();
        if deadline.is_none() {
            self.hurried.notify_one();
        }
        answered
    }

    /// Ends [`run`] once nobody waits any more.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Those to answer with the next reading; `None` when closed.
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

    /// Lets those wait for another attempt whose time is not over before it, and answers the others. Whether any wait.
    fn put_back(&self, askers: Vec<Asker>, next: Instant, failure: &Failure) -> bool {
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

/// Reads for those who wait, one reading at a time, until it is closed.
pub(super) async fn run(session: Arc<Session>, versions: Arc<Versions>) {
    let command = command(&session);
    let mut pause = PAUSES.0;
    while let Some(waiting) = versions.take().await {
        // The connection of the writes, because it lives on the same thread as this, and because what is asked for
        // goes with a write that is just as long on its way.
        let reading = session.servers.read(session.keys.names_slot(), Line::Writes, &command);
        let version = match waiting.iter().filter_map(|asker| asker.deadline).min() {
            None => reading.await,
            Some(until) => {
                let silent = || Err(Failure::Unknown("no answer in time".to_owned()));
                timeout_at(until, reading).await.unwrap_or_else(|_| silent())
            }
        };
        let version = version.and_then(parse);
        let may_pass = |failure: &Failure| failure.is_passing() || matches!(failure, Failure::Unknown(_));
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
                    // Whoever has gone needs no answer.
                    drop(asker.answer.send(version.clone()));
                }
            }
        }
    }
}

/// The version now, for whoever is about to change it.
pub(super) async fn current(session: &Session) -> Result<u64, Failure> {
    session.servers.read(session.keys.names_slot(), Line::Calls, &command(session)).await.and_then(parse)
}

/// A version unlike any before. At random and not counted up, so that a server which lost its latest writes and is
/// then told of other boards does not come upon a number that stood for those lost.
pub(super) fn draw() -> u64 {
    rand::random_range(1..=u64::MAX)
}

fn command(session: &Session) -> Cmd {
    let mut command = cmd("GET");
    command.arg(session.keys.version());
    command
}

/// 0 before the first board.
fn parse(value: Value) -> Result<u64, Failure> {
    let text = match value {
        Value::Nil => return Ok(0),
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    };
    let version = text.and_then(|text| text.parse().ok());
    version.ok_or_else(|| Failure::Corrupt("the version of the list of boards is no number".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_back() {
        for version in [1, u64::MAX, draw()] {
            assert_eq!(parse(Value::BulkString(version.to_string().into_bytes())).unwrap(), version);
        }
        assert_eq!(parse(Value::Nil).unwrap(), 0);
        for bad in [Value::Int(1), Value::BulkString(b"x".to_vec()), Value::BulkString(vec![0xff])] {
            assert!(matches!(parse(bad), Err(Failure::Corrupt(_))));
        }
    }

    #[tokio::test]
    async fn who_comes_while_a_reading_is_under_way_waits_for_the_next() {
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
    async fn a_failed_reading_is_repeated_for_those_who_have_time() {
        let versions = Versions::default();
        let now = Instant::now();
        let (late, hurried) = (versions.join(Some(now)), versions.join(None));
        let mut early = versions.join(Some(now + PATIENCE));
        let waiting = versions.take().await.unwrap();
        assert!(versions.put_back(waiting, now + PAUSES.0, &Failure::Unknown(String::new())));
        assert!(late.await.unwrap().is_err() && hurried.await.unwrap().is_err() && early.try_recv().is_err());
        assert_eq!(versions.take().await.unwrap().len(), 1);
        assert!(!versions.put_back(Vec::new(), now, &Failure::Unknown(String::new())));
    }
}
