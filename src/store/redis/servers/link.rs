//! A multiplexed connection that is replaced when it breaks or falls silent.
//!
//! `redis::aio::ConnectionManager` is not used: after an outage it let a command wait for its whole series of
//! attempts (4.3 s), and it keeps a connection that no longer answers. Nor is the library's cluster client: it sends
//! writes again whose outcome is unknown, and sends ASKING apart from its command on a shared connection.

use std::future::Future;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult};
use tokio::sync::Mutex;

use super::failure::{Failure, Refusal};
use super::node::Node;

/// How long an answer may take, waiting for a place in the connection's queue included.
const RESPONSE: Duration = Duration::from_secs(2);
/// For how long a failed attempt to connect answers for those who come after it.
const PAUSE: Duration = Duration::from_millis(50);

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
}

/// One connection to one node, shared by everyone.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Held across the await of connecting, so that all who need a connection wait for the same attempt.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Option<(u64, MultiplexedConnection)>,
    /// How many connections there have been: a failure discards the one it happened on and no later one.
    count: u64,
    failed: Option<(Instant, RedisError)>,
}

impl Link {
    /// Runs `exchange` on the connection, connecting where there is none. A connection that broke or fell silent, or
    /// whose server turned out to be a replica, is replaced at the next command.
    pub async fn exchange<T, F>(
        &self,
        node: &Node,
        exchange: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (count, connection) = self.connection(node).await?;
        let refusal = match tokio::time::timeout(RESPONSE, exchange(connection)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => Refusal::read(error),
            Err(_) => Refusal::Failed(Failure::Unknown(format!("no answer in {} s", RESPONSE.as_secs()))),
        };
        if let Refusal::Failed(Failure::Unknown(reason)) | Refusal::Demoted(reason) = &refusal {
            self.give_up(count, node, reason).await;
        }
        Err(refusal)
    }

    async fn give_up(&self, count: u64, node: &Node, reason: &str) {
        let mut state = self.state.lock().await;
        if state.open.take_if(|(open, _)| *open == count).is_some() {
            tracing::warn!(at = node.at(), reason, "a connection to Redis is given up");
        }
    }

    async fn connection(&self, node: &Node) -> Result<(u64, MultiplexedConnection), Failure> {
        let mut state = self.state.lock().await;
        if let Some((count, connection)) = &state.open {
            return Ok((*count, connection.clone()));
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
                state.open = Some((count, connection.clone()));
                Ok((count, connection))
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(Failure::Unreachable(error))
            }
        }
    }
}
