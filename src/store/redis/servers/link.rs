//! A multiplexed connection that is replaced when it breaks or falls silent.
//!
//! `redis::aio::ConnectionManager` is not used: after an outage it let a command wait for its whole series of
//! attempts (4.3 s), and it keeps a connection that no longer answers. Nor is the library's cluster client: it sends
//! writes again whose outcome is unknown, and sends ASKING apart from its command on a shared connection.

use std::future::Future;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult, cmd};
use tokio::sync::Mutex;

use super::failure::{Failure, Refusal};
use super::node::Node;

/// How long an answer may take, waiting for a place in the connection's queue included.
const RESPONSE: Duration = Duration::from_secs(2);
/// For how long a failed attempt to connect answers for those who come after it.
const PAUSE: Duration = Duration::from_millis(50);
/// A connection that was not used for so long is tried before the next command goes out on it: shorter than a server
/// takes to be started again.
const IDLE: Duration = Duration::from_millis(50);

/// Which of a node's connections a command takes: what is large on one does not hold up what is small on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::redis) enum Line {
    /// Small writes. Used by the combiner only, so that the connection's task lives on the combiner's thread.
    Writes,
    /// Large writes. Used by the combiner only.
    BulkWrites,
    /// Whatever is small and waited for.
    Calls,
    /// Reads that leave many at once. Used by the thread that sends them only.
    Reads,
    /// Reads and steps that take long or answer much.
    Bulk,
}

impl Line {
    pub const COUNT: usize = 5;

    /// Whether what goes out on it are numbered writes.
    pub(super) fn is_of_writes(self) -> bool {
        matches!(self, Line::Writes | Line::BulkWrites)
    }
}

/// What a command that was sent on a dead connection means to those who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// It is sent again. That a connection is known to be closed is found out without asking, so that what was certainly
    /// not sent is not taken for unknown.
    Repeats,
    /// Nobody knows what became of it: the connection must answer first.
    Doubts,
}

/// One connection to one node, shared by everyone.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Held across the await of connecting, so that all who need a connection wait for the same attempt.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Option<Open>,
    /// How many connections there have been: a failure discards the one it happened on and no later one.
    count: u64,
    failed: Option<(Instant, RedisError)>,
}

#[derive(Debug)]
struct Open {
    count: u64,
    connection: MultiplexedConnection,
    /// When the last command went out on it.
    used: Instant,
}

impl Link {
    /// Runs `exchange` on the connection, connecting where there is none. A connection that broke or fell silent, or
    /// whose server turned out to be a replica, is replaced at the next command.
    pub async fn exchange<T, F>(
        &self,
        node: &Node,
        care: Care,
        exchange: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (count, connection) = self.connection(node, care).await?;
        let refusal = match tokio::time::timeout(RESPONSE, exchange(connection)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => Refusal::read(error),
            Err(_) => Refusal::Failed(Failure::Unknown(format!("no answer in {} s", RESPONSE.as_secs()))),
        };
        match &refusal {
            Refusal::Failed(Failure::Unknown(reason)) => self.give_up(count, node, Some(reason)).await,
            Refusal::Demoted(reason) => {
                self.give_up(count, node, None).await;
                node.note_refusal(reason);
            }
            _ => {}
        }
        Err(refusal)
    }

    /// Replaces a connection, unless that was done; a reason is logged.
    async fn give_up(&self, count: u64, node: &Node, reason: Option<&str>) {
        let was_open = self.state.lock().await.open.take_if(|open| open.count == count).is_some();
        if let (true, Some(reason)) = (was_open, reason) {
            tracing::warn!(at = node.at(), reason, "a connection to Redis is given up");
        }
    }

    async fn connection(&self, node: &Node, care: Care) -> Result<(u64, MultiplexedConnection), Failure> {
        let mut state = self.state.lock().await;
        if let Some(open) = &mut state.open {
            let is_idle = open.used.elapsed() >= IDLE;
            open.used = Instant::now();
            match if is_idle { probe(open.connection.clone(), care).await } else { Ok(()) } {
                Ok(()) => return Ok((open.count, open.connection.clone())),
                Err(reason) => {
                    tracing::warn!(at = node.at(), reason, "a connection to Redis is given up");
                    state.open = None;
                }
            }
        }
        if let Some((when, error)) = &state.failed
            && when.elapsed() < PAUSE
        {
            return Err(Failure::Unreachable(error.clone()));
        }
        match node.connect().await {
            Ok(connection) => {
                if state.count > 0 {
                    node.renew();
                }
                state.count += 1;
                state.failed = None;
                let count = state.count;
                state.open = Some(Open { count, connection: connection.clone(), used: Instant::now() });
                Ok((count, connection))
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(Failure::Unreachable(error))
            }
        }
    }
}

/// Whether a connection is open still; why not. A server that answers anything at all is there.
async fn probe(mut connection: MultiplexedConnection, care: Care) -> Result<(), String> {
    let mut ping = cmd("PING");
    // The answer of one that is not waited for comes before that of the next command, and is dropped.
    ping.set_no_response(care == Care::Repeats);
    match tokio::time::timeout(RESPONSE, connection.send_packed_command(&ping)).await {
        Ok(Err(error)) if matches!(Refusal::read(error.clone()), Refusal::Failed(Failure::Unknown(_))) => {
            Err(error.to_string())
        }
        Ok(_) => Ok(()),
        Err(_) => Err(format!("no answer in {} s", RESPONSE.as_secs())),
    }
}
