//! The API calls with which a benchmark sets up boards and observes them. The load itself is sent by `load`.

use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use super::wire::{self, Connection, Protocol};

/// A rolltop server that listens at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// The address, such as `127.0.0.1:8080`.
    pub address: String,
}

impl Api {
    /// Creates a client for the rolltop server at this address.
    pub fn at(address: &str) -> Self {
        Self { address: address.to_owned() }
    }

    /// Makes one call. `Value::Null` stands for no body.
    pub async fn call<T: DeserializeOwned>(&self, method: &str, path: &str, body: Value) -> anyhow::Result<T> {
        let request = match &body {
            Value::Null => wire::bare(method, path),
            body => wire::request(method, path, "application/json", body.to_string().as_bytes()),
        };
        let mut connection = Connection::open(&self.address, Protocol::Http).await?;
        let answer = connection.exchange(&request).await.with_context(|| format!("{method} {path}"))?;
        serde_json::from_slice(answer).with_context(|| format!("the answer to {method} {path}"))
    }

    /// Moves a simulated clock.
    pub async fn set_clock(&self, now: &str) -> anyhow::Result<()> {
        self.call::<Value>("PUT", "/v1/clock", json!({"now": now})).await.map(drop)
    }

    /// Defines a ranked board.
    pub async fn define(&self, board: &str, metric: &str, slot: &str) -> anyhow::Result<()> {
        self.define_as(board, metric, slot, true).await
    }

    /// Defines a board.
    pub async fn define_as(&self, board: &str, metric: &str, slot: &str, ranked: bool) -> anyhow::Result<()> {
        self.define_with(board, json!({"metric": metric, "slot": slot, "ranked": ranked})).await
    }

    /// Defines a ranked board of this many parts.
    pub async fn define_parts(&self, board: &str, metric: &str, slot: &str, shards: u32) -> anyhow::Result<()> {
        self.define_with(board, json!({"metric": metric, "slot": slot, "shards": shards})).await
    }

    /// Defines a board with any definition.
    pub async fn define_with(&self, board: &str, definition: Value) -> anyhow::Result<()> {
        self.call::<Value>("PUT", &format!("/v1/boards/{board}"), definition).await.map(drop)
    }

    /// Removes a board with all its data.
    pub async fn remove(&self, board: &str) -> anyhow::Result<()> {
        self.call::<Value>("DELETE", &format!("/v1/boards/{board}"), Value::Null).await.map(drop)
    }

    /// Adds 1 to one subject of a board.
    pub async fn count(&self, board: &str, subject: &str) -> anyhow::Result<()> {
        let path = format!("/v1/boards/{board}/increments");
        self.call::<Value>("POST", &path, json!({"subject": subject, "amount": 1})).await.map(drop)
    }

    /// Returns the number of slots of a board that have expired and are not yet subtracted.
    pub async fn retiring(&self, board: &str) -> anyhow::Result<u64> {
        let page: Value = self.call("GET", &format!("/v1/boards/{board}/rankings?limit=1"), Value::Null).await?;
        page["retiring"].as_u64().with_context(|| format!("no 'retiring' in {page}"))
    }

    /// Returns an error unless the board ranks this many subjects.
    pub async fn ensure_total(&self, board: &str, subjects: u32) -> anyhow::Result<()> {
        let page: Value = self.call("GET", &format!("/v1/boards/{board}/rankings?limit=1"), Value::Null).await?;
        ensure!(page["total"] == subjects, "{board} should hold {subjects} subjects: {}", page["total"]);
        Ok(())
    }
}

/// Parses `http://host:port`.
impl FromStr for Api {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let url = Url::parse(text).context("it must be a URL such as http://127.0.0.1:8080")?;
        ensure!(url.scheme() == "http", "the load generator speaks plain HTTP only: it must begin with http://");
        ensure!(matches!(url.path(), "" | "/") && url.query().is_none(), "it must end after the port");
        ensure!(url.username().is_empty() && url.password().is_none(), "it may have no user and no password");
        match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) => Ok(Self { address: format!("{host}:{port}") }),
            _ => bail!("it has no host"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_from_a_url() {
        for (url, address) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://rolltop.internal:9000/", "rolltop.internal:9000"),
            ("http://rolltop.internal", "rolltop.internal:80"),
            ("http://[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(url.parse::<Api>().unwrap(), Api::at(address), "{url}");
        }
    }

    #[test]
    fn unsupported_urls_are_refused() {
        for url in [
            "127.0.0.1:8080",
            "localhost:8080",
            "https://rolltop.internal",
            "redis://127.0.0.1:6379",
            "http://a:b@host:80",
            "http://host:80/v1",
            "http://host:80?x=y",
            "http://host:99999",
            "",
        ] {
            assert!(url.parse::<Api>().is_err(), "{url}");
        }
    }
}
