//! A multiplexed connection that is replaced when it breaks or no longer answers.
//!
//! `redis::aio::ConnectionManager` is not used: after an outage it made a command wait for its whole series of attempts
//! (4.3 s), and it keeps a connection that no longer answers. The library's cluster client is not used either: it sends
//! writes again whose outcome is unknown, and on a shared connection it does not send ASKING together with its command.

use std::future::Future;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult, cmd};
use tokio::sync::Mutex;

use super::failure::{Refusal, ServerFailure};

/// The time for which a failed attempt to connect is returned to later callers without a new attempt.
const PAUSE: Duration = Duration::from_millis(50);
/// A connection that was not used for this time is tested before the next command is sent on it. This is shorter than a
/// restart of a server. To a distant one it is two round trips, because commands that follow each other on several
/// connections would each wait for a test otherwise.
pub(super) const IDLE: Duration = Duration::from_millis(50);
/// The longest such time.
pub(super) const LONGEST_IDLE: Duration = Duration::from_millis(500);

/// The connections of a node, by use. Large commands on one of them do not delay small ones on a different one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::redis) enum Channel {
    /// Writes. Used only by the combiner, so that the connection's task runs on the combiner's thread.
    Writes,
    /// Writes of large flushes, and reads of scores for which many slots are combined. Used only by the combiner.
    BulkWrites,
    /// Small commands for whose reply a caller waits.
    Calls,
    /// Reads. Many are sent at once. Used only by the thread that sends them.
    Reads,
    /// Reads and steps that take long or have large replies.
    Bulk,
}

impl Channel {
    pub const COUNT: usize = 5;

    /// Returns whether the commands on it are write operations.
    pub(super) fn is_of_writes(self) -> bool {
        matches!(self, Channel::Writes | Channel::BulkWrites)
    }

    /// Returns whether its commands are large, so that each waits for its turn.
    pub(super) fn is_large(self) -> bool {
        matches!(self, Channel::Bulk | Channel::BulkWrites)
    }

    /// Returns whether large commands wait for its commands.
    pub(super) fn is_small(self) -> bool {
        matches!(self, Channel::Writes | Channel::Reads)
    }
}

/// The effect on the caller if a command is sent on a dead connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// The caller sends the command again. The connection is only checked for being known as closed, without waiting
    /// for a reply, so that a command that was certainly not sent is not reported as unknown.
    Repeats,
    /// The outcome of the command would be unknown. So the connection must reply to a test first.
    Doubts,
}

/// One connection to one node, shared by all callers.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Locked across the await of connecting, so that all callers that need a connection wait for the same attempt.
    state: Mutex<LinkState>,
    /// The time when the last command was sent or the last answer came.
    used: parking_lot::Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct LinkState {
    open: Option<OpenConnection>,
    /// The number of connections made so far. With it, a failure closes only the connection on which it happened, not a
    /// later one.
    count: u64,
    failed: Option<(Instant, RedisError)>,
}

#[derive(Debug)]
struct OpenConnection {
    count: u64,
    connection: MultiplexedConnection,
}

/// The server to which a link connects.
pub(super) trait Server {
    /// Returns host and port, for messages.
    fn at(&self) -> &str;

    /// Returns the longest time to wait for a reply, including the wait in the connection's queue.
    fn patience(&self) -> Duration;

    /// Returns the time without use after which a connection is tested.
    fn idle(&self) -> Duration {
        IDLE
    }

    /// Makes a connection and identifies the server.
    fn connect(&self) -> impl Future<Output = RedisResult<MultiplexedConnection>> + Send;

    /// Records that a connection was replaced, so that earlier reads may be outdated.
    fn renew(&self);

    /// Records that the server has refused a write because it is a replica.
    fn note_refusal(&self, reason: &str);
}

impl Link {
    /// Runs `exchange` on the connection, and connects first if there is none. A connection that broke, that did not
    /// answer, or whose server turned out to be a replica, is replaced at the next command.
    pub async fn exchange<T, F>(
        &self,
        server: &impl Server,
        care: Care,
        exchange: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (count, connection) = self.connection(server, care).await?;
        let refusal = match tokio::time::timeout(server.patience(), exchange(connection)).await {
            Ok(Ok(answer)) => {
                self.note_use();
                return Ok(answer);
            }
            Ok(Err(error)) => Refusal::read(error),
            Err(_) => Refusal::Failed(ServerFailure::Unknown(silence(server))),
        };
        match &refusal {
            Refusal::Failed(ServerFailure::Unknown(reason)) => self.give_up(count, server, Some(reason)).await,
            Refusal::Demoted(reason) => {
                self.give_up(count, server, None).await;
                server.note_refusal(reason);
            }
            _ => {}
        }
        Err(refusal)
    }

    /// Closes the connection. A later command makes a new one.
    pub async fn close(&self) {
        self.state.lock().await.open = None;
    }

    fn note_use(&self) {
        *self.used.lock() = Some(Instant::now());
    }

    /// Closes a connection, unless it was already replaced. A reason is logged.
    async fn give_up(&self, count: u64, server: &impl Server, reason: Option<&str>) {
        let was_open = self.state.lock().await.open.take_if(|open| open.count == count).is_some();
        if let (true, Some(reason)) = (was_open, reason) {
            tracing::warn!(at = server.at(), reason, "a connection to Redis is abandoned");
        }
    }

    async fn connection(
        &self,
        server: &impl Server,
        care: Care,
    ) -> Result<(u64, MultiplexedConnection), ServerFailure> {
        let mut state = self.state.lock().await;
        if let Some(open) = &state.open {
            let is_idle = self.used.lock().is_none_or(|used| used.elapsed() >= server.idle());
            match if is_idle { probe(server, open.connection.clone(), care).await } else { Ok(()) } {
                Ok(()) => {
                    self.note_use();
                    return Ok((open.count, open.connection.clone()));
                }
                Err(reason) => {
                    tracing::warn!(at = server.at(), reason, "a connection to Redis is abandoned");
                    state.open = None;
                }
            }
        }
        if let Some((when, error)) = &state.failed
            && when.elapsed() < PAUSE
        {
            return Err(ServerFailure::Unreachable(error.clone()));
        }
        match server.connect().await {
            Ok(connection) => {
                if state.count > 0 {
                    server.renew();
                }
                state.count += 1;
                state.failed = None;
                let count = state.count;
                state.open = Some(OpenConnection { count, connection: connection.clone() });
                self.note_use();
                Ok((count, connection))
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(ServerFailure::Unreachable(error))
            }
        }
    }
}

/// Checks that a connection is still open. Returns the reason if it is not. Any reply of the server is sufficient.
async fn probe(server: &impl Server, mut connection: MultiplexedConnection, care: Care) -> Result<(), String> {
    let mut ping = cmd("PING");
    // With `Care::Repeats` the reply is not waited for. It arrives before that of the next command, and is dropped.
    ping.set_no_response(care == Care::Repeats);
    match tokio::time::timeout(server.patience(), connection.send_packed_command(&ping)).await {
        Ok(Err(error)) if matches!(Refusal::read(error.clone()), Refusal::Failed(ServerFailure::Unknown(_))) => {
            Err(error.to_string())
        }
        Ok(_) => Ok(()),
        Err(_) => Err(silence(server)),
    }
}

fn silence(server: &impl Server) -> String {
    format!("no answer in {} s", server.patience().as_secs())
}
