//! Reading the version of the list of boards.
//!
//! Every request with events asks for it, and one reading serves all who asked before it began: those who come while
//! one is under way share the next. Like combined writes, that makes nobody wait who is alone.

use std::sync::Arc;

use parking_lot::Mutex;
use redis::{Cmd, Value, cmd};
use tokio::sync::{Notify, oneshot};

use super::connection::Failure;
use super::session::Session;
use crate::store::receive::receive;
use crate::store::{Result, StoreError};

/// Those who wait for the next reading.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Held to join or take, never across an await.
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<oneshot::Sender<Result<u64, Failure>>>,
    closed: bool,
}

impl Versions {
    /// The version as it is read at some time after this call.
    pub async fn read(&self, session: &Session) -> Result<u64> {
        let (answer, answered) = oneshot::channel();
        self.state.lock().waiting.push(answer);
        self.arrived.notify_one();
        match receive(answered).await {
            Ok(version) => version.map_err(|failure| session.links.error(failure)),
            Err(stopped) => Err(StoreError::Backend { source: Box::new(stopped) }),
        }
    }

    /// Ends [`run`] once nobody waits any more.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Those to answer with the next reading; `None` when closed.
    async fn take(&self) -> Option<Vec<oneshot::Sender<Result<u64, Failure>>>> {
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
}

/// Reads for those who wait, one reading at a time, until it is closed.
pub(super) async fn run(session: Arc<Session>, versions: Arc<Versions>) {
    let command = command(&session);
    while let Some(waiting) = versions.take().await {
        // The connection of the writes, because it lives on the same thread as this, and because what is asked for
        // goes with a write that is just as long on its way.
        let version = session.links.writes.send(&command).await.and_then(parse);
        for each in waiting {
            // Whoever has gone needs no answer.
            drop(each.send(version.clone()));
        }
    }
}

/// The version now, for whoever is about to change it.
pub(super) async fn current(session: &Session) -> Result<u64, Failure> {
    session.links.calls.send(&command(session)).await.and_then(parse)
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
        let join = || {
            let (answer, answered) = oneshot::channel();
            versions.state.lock().waiting.push(answer);
            answered
        };
        let _first = [join(), join()];
        assert_eq!(versions.take().await.unwrap().len(), 2);
        let _second = join();
        versions.close();
        assert_eq!(versions.take().await.unwrap().len(), 1);
        assert!(versions.take().await.is_none());
    }
}
