//! Asking Sentinels for the master.

use std::future::Future;
use std::time::Duration;

use redis::{AsyncConnectionConfig, ErrorKind, RedisError, RedisResult, cmd};

use super::Servers;
use super::address::{Host, Login};
use super::failure::ServerFailure;
use super::link::Channel;
use super::map::Map;

/// The longest time for connecting to one Sentinel, and again for its answer.
const PATIENCE: Duration = Duration::from_millis(500);

impl Servers {
    /// Asks the Sentinels in turn until one names a server that reports to be the master itself. A Sentinel that was
    /// disconnected may name an old master.
    pub(super) async fn ask_sentinels(&self, master: &str, login: &Login) -> Result<Map, ServerFailure> {
        let mut worst: Option<ServerFailure> = None;
        let mut tried: Vec<Host> = Vec::new();
        for sentinel in &self.access.address.hosts {
            let failure = match self.ask_sentinel(sentinel, master, login).await {
                // This server was found not to be the master.
                Ok(host) if tried.contains(&host) => continue,
                Ok(host) => {
                    tried.push(host.clone());
                    let node = self.node(&host)?;
                    // A new connection checks that the server is a master. An existing one may have been made before
                    // the server became a replica.
                    match node.send(Channel::Calls, &cmd("ROLE")).await {
                        Ok(role) if super::node::is_master(&role) => return Ok(Map::of_one(0, node)),
                        Ok(_) => ServerFailure::busy(format!("{host} is not a master yet")),
                        Err(failure) => failure,
                    }
                }
                Err(failure) => failure,
            };
            if worst.is_none() || matches!(failure, ServerFailure::Other(_)) {
                worst = Some(failure);
            }
        }
        Err(worst.unwrap_or_else(|| ServerFailure::busy("no Sentinel to ask".to_owned())))
    }

    async fn ask_sentinel(&self, sentinel: &Host, master: &str, login: &Login) -> Result<Host, ServerFailure> {
        let client = self.access.sentinel(sentinel, login).map_err(ServerFailure::Other)?;
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(PATIENCE)).set_response_timeout(None);
        let connected = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = connected.map_err(ServerFailure::Unreachable)?;
        let mut question = cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(master);
        let answer: Option<(String, u16)> =
            within(question.query_async(&mut connection)).await.map_err(|error| match error.is_io_error() {
                true => ServerFailure::Unreachable(error),
                false => ServerFailure::Other(error),
            })?;
        let unknown = || {
            let detail = format!("{sentinel} knows no master '{master}'");
            ServerFailure::Other(RedisError::from((ErrorKind::InvalidClientConfig, "unknown master", detail)))
        };
        let (name, port) = answer.ok_or_else(unknown)?;
        Ok(Host { name, port })
    }
}

async fn within<T>(answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let timed_out = |_| Err(RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut)));
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(timed_out)
}
