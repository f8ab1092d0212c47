//! A multiplexed connection that is made anew when it breaks, and what can go wrong on it.
//!
//! `redis::aio::ConnectionManager` is not used: after an outage it let a command wait for its whole series of
//! attempts (4.3 s), and it keeps a connection that no longer answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::counter;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::sync::Mutex;

use super::scripts::Script;
use crate::store::StoreError;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(1);
/// How long an answer may take, waiting for a place in the connection's queue included.
const RESPONSE: Duration = Duration::from_secs(2);
/// For how long a failed attempt to connect answers for those who come after it.
const PAUSE: Duration = Duration::from_millis(50);
/// Commands that may wait to be written. Each of ours is already a batch.
const QUEUE: usize = 256;

/// Why a command was not done, or is not known to be.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// No connection: the command was never sent.
    Unreachable(RedisError),
    /// Sent, and the connection broke or no answer came: it may or may not have been done.
    Unknown(String),
    /// The server is not ready yet and did nothing.
    Busy(RedisError),
    /// The server takes no writes and did nothing.
    ReadOnly(String),
    /// What the server holds is not what we wrote.
    Corrupt(String),
    /// The board is gone; nothing was done.
    BoardChanged,
    /// Times moved again and again while we asked; nothing was done.
    Restless,
    /// Anything else the server said.
    Other(RedisError),
}

/// One connection to one server, shared by everyone.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
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
    pub fn new(client: Client) -> Self {
        Self { client, state: Mutex::default() }
    }

    /// Where the server is, without user or password.
    pub fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// Sends one command. A connection that broke or fell silent is replaced at the next command.
    pub async fn send(&self, command: &Cmd) -> Result<Value, Failure> {
        let (count, mut connection) = self.connection().await?;
        let answer = tokio::time::timeout(RESPONSE, command.query_async::<Value>(&mut connection)).await;
        let failure = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => Failure::from_reply(error),
            Err(_) => Failure::Unknown(format!("no answer in {} s", RESPONSE.as_secs())),
        };
        let discard = match &failure {
            Failure::Unknown(reason) => Some(reason),
            // After a failover the old server stays connected: look for the new one.
            Failure::ReadOnly(reason) if reason.contains("READONLY") => Some(reason),
            _ => None,
        };
        if let Some(reason) = discard {
            let mut state = self.state.lock().await;
            if state.open.take_if(|(open, _)| *open == count).is_some() {
                tracing::warn!(at = self.address(), reason, "a connection to Redis is given up");
            }
        }
        Err(failure)
    }

    /// Sends a call of a script, loading the script where the server does not know it, and reading once more where
    /// the connection turned out to be broken.
    pub async fn call(&self, script: &Script, command: &Cmd) -> Result<Value, Failure> {
        let mut answer = self.send(command).await;
        if matches!(answer, Err(Failure::Unknown(_))) && script.only_reads() {
            answer = self.send(command).await;
        }
        if let Err(Failure::Other(error)) = &answer
            && error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
        {
            self.send(&script.load()).await?;
            answer = self.send(command).await;
        }
        let outcome = if answer.is_ok() { "ok" } else { "failed" };
        counter!("rolltop_store_calls_total", "call" => script.name(), "outcome" => outcome).increment(1);
        answer
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection), Failure> {
        let mut state = self.state.lock().await;
        if let Some((count, connection)) = &state.open {
            return Ok((*count, connection.clone()));
        }
        if let Some((when, error)) = &state.failed
            && when.elapsed() < PAUSE
        {
            return Err(Failure::Unreachable(error.clone()));
        }
        // The client's own time-out of answers would start later than ours and leave the connection in place.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        match self.client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(connection) => {
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

impl Failure {
    /// What an error that came in answer to a command means. The one place where the server's words are read.
    fn from_reply(error: RedisError) -> Self {
        // Redis 6 wraps the code of a script's error in a sentence of its own.
        let text = error.to_string();
        let says = |code: &str| error.code() == Some(code) || text.contains(code);
        match error.kind() {
            ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => Failure::Unknown(text),
            ErrorKind::Server(
                ServerErrorKind::BusyLoading | ServerErrorKind::TryAgain | ServerErrorKind::MasterDown,
            ) => Failure::Busy(error),
            _ if error.code() == Some("BUSY") => Failure::Busy(error),
            ErrorKind::Server(ServerErrorKind::ReadOnly) => Failure::ReadOnly(format!("READONLY: {text}")),
            _ if ["OOM", "READONLY", "MISCONF", "NOREPLICAS"].iter().any(|code| says(code)) => Failure::ReadOnly(text),
            _ if says("WRONGTYPE") => Failure::Corrupt(text),
            _ => Failure::Other(error),
        }
    }

    /// Whether the command was certainly not done and may be sent again shortly.
    pub fn is_passing(&self) -> bool {
        matches!(self, Failure::Unreachable(_) | Failure::Busy(_))
    }

    /// The same in the words of the store, whose server is at `at`.
    pub fn at(self, at: &str) -> StoreError {
        match self {
            Failure::Unreachable(error) | Failure::Busy(error) => {
                StoreError::Unreachable { at: at.to_owned(), source: Box::new(error) }
            }
            Failure::Unknown(_) => StoreError::TimedOut { at: at.to_owned() },
            Failure::ReadOnly(reason) => StoreError::ReadOnly { reason },
            Failure::Corrupt(detail) => StoreError::Corrupt { detail },
            Failure::BoardChanged => StoreError::BoardChanged,
            Failure::Restless => StoreError::Overloaded { retry_after: Duration::from_secs(1) },
            Failure::Other(error) => StoreError::Backend { source: Box::new(error) },
        }
    }
}

/// Two connections: large writes on one do not hold up what is sent on the other.
#[derive(Debug)]
pub(super) struct Links {
    pub writes: Link,
    pub calls: Link,
    /// For messages.
    pub at: Arc<str>,
}

impl Links {
    pub fn open(client: Client) -> Self {
        let writes = Link::new(client.clone());
        let at = writes.address().into();
        Self { writes, calls: Link::new(client), at }
    }

    pub fn error(&self, failure: Failure) -> StoreError {
        failure.at(&self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, detail: &str) -> Failure {
        Failure::from_reply(redis::make_extension_error(code.to_owned(), Some(detail.to_owned())))
    }

    #[test]
    fn the_servers_words_are_understood() {
        for (code, detail) in [
            ("OOM", "command not allowed when used memory > 'maxmemory'."),
            ("MISCONF", "Redis is configured to save RDB snapshots, but it is unable to persist to disk."),
            ("NOREPLICAS", "Not enough good replicas to write."),
            ("ERR", "Error running script: @user_script:9: -READONLY You can't write against a read only replica."),
        ] {
            assert!(matches!(said(code, detail), Failure::ReadOnly(text) if text.contains(detail)), "{code} {detail}");
        }
        let read_only = RedisError::from((ErrorKind::Server(ServerErrorKind::ReadOnly), "no", "detail".to_owned()));
        assert!(matches!(Failure::from_reply(read_only), Failure::ReadOnly(text) if text.contains("READONLY")));
        for (code, detail) in [
            ("WRONGTYPE", "Operation against a key holding the wrong kind of value"),
            ("ERR", "Error running script (call to f_1): @user_script:5: WRONGTYPE Operation against a key"),
        ] {
            assert!(matches!(said(code, detail), Failure::Corrupt(_)), "{code} {detail}");
        }
        assert!(matches!(said("BUSY", "Redis is busy running a script."), Failure::Busy(_)));
        assert!(matches!(said("NOPERM", "this user has no permissions"), Failure::Other(_)));
        let reset = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(matches!(Failure::from_reply(reset), Failure::Unknown(_)));
    }

    #[test]
    fn only_what_was_certainly_not_done_is_passing() {
        let refused = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        assert!(Failure::Unreachable(refused.clone()).is_passing() && Failure::Busy(refused).is_passing());
        assert!(!Failure::Unknown("no answer".to_owned()).is_passing());
        assert!(matches!(Failure::Unknown(String::new()).at("host:1"), StoreError::TimedOut { at } if at == "host:1"));
    }
}
