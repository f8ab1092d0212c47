//! A server to copy from or to.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use rolltop_client::answers::Tier;
use rolltop_client::{Error, Lines, Method, Request};
use serde_json::Value;

use crate::board::{Definition, Timestamp};
use crate::cli::server::{self, ServerArgs};

/// The time to wait for a response or its next bytes.
const SILENCE: Duration = Duration::from_secs(60);
/// The time for which requests are repeated while the server does not take them.
const PATIENCE: Duration = Duration::from_secs(300);
/// The largest difference between the clocks of two servers that is waited for.
const CLOCKS: Duration = Duration::from_secs(60);
/// The first and the longest pause between two attempts. The pause doubles with each attempt.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// The error of a request that a server has refused, and would refuse again.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct Refused {
    text: String,
    pub(super) status: u16,
}

/// A running server.
#[derive(Debug)]
pub(super) struct Service {
    service: rolltop_client::Service,
}

impl Service {
    /// Creates a client. The key is taken from this environment variable, or else from the usual one.
    pub(super) fn new(url: &str, ca: Option<PathBuf>, variable: &str) -> anyhow::Result<Self> {
        let has_own = std::env::var_os(variable).is_some_and(|key| !key.is_empty());
        let variable = if has_own { variable } else { server::KEY };
        let builder = ServerArgs::with_url(url, ca).builder_with(variable)?;
        Ok(Self { service: builder.timeout(SILENCE).build()? })
    }

    pub(super) fn url(&self) -> &str {
        self.service.url()
    }

    /// Returns an error if the server does not respond now.
    pub(super) async fn reach(&self) -> anyhow::Result<()> {
        match self.service.request::<Value>(Method::GET, "/healthz").await {
            Err(error) if error.status().is_none() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Returns the names of all boards.
    pub(super) async fn boards(&self) -> anyhow::Result<Vec<String>> {
        let boards = self.ask(|| self.service.boards()).await?;
        Ok(boards.items.into_iter().map(|board| board.board).collect())
    }

    /// Returns the generation of a board and its definition.
    pub(super) async fn board(&self, board: &str) -> anyhow::Result<(String, Value)> {
        let answer = self.ask(|| self.get(board)).await?;
        let generation = answer["generation"].as_str().context("the board has no 'generation'")?.to_owned();
        let Value::Object(members) = answer else { return Err(anyhow!("the board is not an object")) };
        let known = |key: &str| Definition::KEYS.contains(&key);
        let definition = members.into_iter().filter(|(key, value)| known(key) && !value.is_null()).collect();
        Ok((generation, Value::Object(definition)))
    }

    fn get(&self, board: &str) -> Request<Value> {
        self.service.board(board).other(Method::GET, &[])
    }

    /// Defines a board, unless there is one of this name. Returns whether it is new.
    pub(super) async fn define(&self, name: &str, definition: &Value) -> anyhow::Result<bool> {
        let board = self.service.board(name);
        if self.ask(|| board.preview(definition)).await?.exists {
            return Ok(false);
        }
        self.ask(|| board.define(definition)).await?;
        Ok(true)
    }

    /// Returns the tiers of a board: none if the server does not know of tiers, as earlier versions do not.
    pub(super) async fn tiers(&self, board: &str) -> anyhow::Result<Vec<Tier>> {
        match self.ask(|| self.service.board(board).tiers()).await {
            Err(error) if error.downcast_ref().is_some_and(|Refused { status, .. }| matches!(status, 404 | 405)) => {
                Ok(Vec::new())
            }
            answer => Ok(answer?.tiers),
        }
    }

    /// Sets the tiers of a board.
    pub(super) async fn set_tiers(&self, board: &str, tiers: &[Tier]) -> anyhow::Result<()> {
        self.ask(|| self.service.board(board).set_tiers(tiers)).await.map(drop)
    }

    /// Sends lines of contents, and returns the answer.
    pub(super) async fn send_contents(&self, board: &str, lines: &str) -> anyhow::Result<Value> {
        let request = || self.service.board(board).other(Method::POST, &["contents"]);
        self.ask(|| request().bytes("application/x-ndjson", lines.as_bytes().to_vec())).await
    }

    /// Returns the contents of a board, from the first line or from a cursor on.
    pub(super) async fn contents(&self, board: &str, after: Option<&str>) -> anyhow::Result<Lines> {
        let request = || self.service.board(board).other::<()>(Method::GET, &["contents"]).optional("after", after);
        self.repeat(|| request().text_lines("application/x-ndjson")).await.map_err(|error| self.refused(error))
    }

    /// Sends a request until the server takes it. Such a request may be repeated.
    async fn ask<T: serde::de::DeserializeOwned + 'static>(
        &self,
        request: impl Fn() -> Request<T>,
    ) -> anyhow::Result<T> {
        self.repeat(|| request().into_future()).await.map_err(|error| self.refused(error))
    }

    fn refused(&self, error: Error) -> anyhow::Error {
        match error.status() {
            Some(status @ 400..500) => Refused { text: format!("{}: {}", self.url(), error.detail()), status }.into(),
            _ => anyhow::Error::new(error).context(self.url().to_owned()),
        }
    }

    async fn repeat<T, F: Future<Output = rolltop_client::Result<T>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> rolltop_client::Result<T> {
        let (mut pause, started) = (PAUSES.0, Instant::now());
        loop {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !is_passing(&error) || started.elapsed() + pause >= PATIENCE {
                return Err(error);
            }
            if pause == PAUSES.0 {
                let seconds = PATIENCE.as_secs();
                // If standard error cannot be written, the copy goes on all the same.
                drop(writeln!(
                    std::io::stderr(),
                    "{} does not take requests; trying again for {seconds} s",
                    self.url()
                ));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Returns the board's time.
    pub(super) async fn time(&self, name: &str) -> anyhow::Result<Timestamp> {
        let board = self.ask(|| self.get(name)).await?;
        let now = board["as_of"].as_str().and_then(|text| Timestamp::parse(text).ok());
        now.context("the board has no 'as_of'")
    }

    /// Returns an error if the clocks of two servers differ by more than a minute.
    pub(super) async fn check_clock(&self, name: &str, other: &Self, board: &str) -> anyhow::Result<()> {
        let difference = self.time(name).await?.millis() - other.time(board).await?.millis();
        if difference.unsigned_abs() > CLOCKS.as_millis() as u64 {
            bail!(
                "the clocks of {} and {} differ by {} s; correct them, and run the command again",
                self.url(),
                other.url(),
                difference.unsigned_abs() / 1_000
            );
        }
        Ok(())
    }

    /// Waits until the board's time has reached this one: what is newer than its newest slot cannot be merged.
    pub(super) async fn wait_until(&self, name: &str, time: Timestamp) -> anyhow::Result<()> {
        loop {
            let behind = time.millis() - self.time(name).await?.millis();
            match u64::try_from(behind) {
                Ok(behind @ 1..) if behind > CLOCKS.as_millis() as u64 => {
                    bail!(
                        "the clock of {} is {} s behind that of the server to copy from; correct it, and run the command again",
                        self.url(),
                        behind / 1_000
                    )
                }
                Ok(behind @ 1..) => tokio::time::sleep(Duration::from_millis(behind)).await,
                _ => return Ok(()),
            }
        }
    }

    /// Returns the number of differences that an audit of a board finds.
    pub(super) async fn audit(&self, name: &str) -> anyhow::Result<u64> {
        Ok(self.service.board(name).audit().await?.differences)
    }
}

/// Returns whether the same request may succeed shortly.
fn is_passing(error: &Error) -> bool {
    error.is_transient() && error.status().is_none_or(|status| matches!(status, 429 | 502 | 503 | 504))
}
