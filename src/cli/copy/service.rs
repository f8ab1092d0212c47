//! A server to copy from or to.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use super::lines::ResponseLines;
use crate::board::{Definition, Timestamp};
use crate::cli::server::{self, ServerArgs, body_of, no_response};

/// The time to wait for a connection, and for a response or its next bytes.
const CONNECT: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(60);
/// The time to wait for an audit, which reads everything that a board has.
const AUDIT: Duration = Duration::from_secs(6 * 3_600);
/// The time for which requests are repeated while the server does not take them.
const PATIENCE: Duration = Duration::from_secs(300);
/// The largest difference between the clocks of two servers that is waited for.
const CLOCKS: Duration = Duration::from_secs(60);
/// The first and the longest pause between two attempts. The pause doubles with each attempt.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// The error of a request that a server has refused, and would refuse again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

/// A running server.
#[derive(Debug)]
pub(super) struct Service {
    args: ServerArgs,
    client: Client,
    /// For requests that the server works on for long before it answers.
    patient: Client,
}

impl Service {
    /// Creates a client. The key is taken from this environment variable, or else from the usual one.
    pub(super) fn new(url: String, ca: Option<PathBuf>, variable: &str) -> anyhow::Result<Self> {
        let args = ServerArgs::with_url(&url, ca);
        let has_own = std::env::var_os(variable).is_some_and(|key| !key.is_empty());
        let client = || args.client_with(if has_own { variable } else { server::KEY });
        let patient = client()?.connect_timeout(CONNECT).timeout(AUDIT).build()?;
        Ok(Self { client: client()?.connect_timeout(CONNECT).read_timeout(SILENCE).build()?, patient, args })
    }

    pub(super) fn url(&self) -> &str {
        &self.args.url
    }

    /// Returns an error if the server does not respond now.
    pub(super) async fn reach(&self) -> anyhow::Result<()> {
        let request = self.client.get(self.args.at("/healthz")).send().await;
        request.map(drop).map_err(|error| no_response(&self.args.url, error))
    }

    /// Returns the names of all boards.
    pub(super) async fn boards(&self) -> anyhow::Result<Vec<String>> {
        let list = self.json(|client, at| client.get(at("/v1/boards"))).await?;
        let items = list["items"].as_array().context("the list of boards has no 'items'")?;
        let name =
            |board: &Value| board["board"].as_str().map(str::to_owned).context("a board of the list has no name");
        items.iter().map(name).collect()
    }

    /// Returns the generation of a board and its definition.
    pub(super) async fn board(&self, board: &str) -> anyhow::Result<(String, Value)> {
        let answer = self.json(|client, at| client.get(at(&format!("/v1/boards/{board}")))).await?;
        let generation = answer["generation"].as_str().context("the board has no 'generation'")?.to_owned();
        let Value::Object(members) = answer else { return Err(anyhow!("the board is not an object")) };
        let known = |key: &str| Definition::KEYS.contains(&key);
        let definition = members.into_iter().filter(|(key, value)| known(key) && !value.is_null()).collect();
        Ok((generation, Value::Object(definition)))
    }

    /// Defines a board, unless there is one of this name. Returns whether it is new.
    pub(super) async fn define(&self, name: &str, definition: &Value) -> anyhow::Result<bool> {
        let path = format!("/v1/boards/{name}");
        let response = self.ask(|client, at| client.put(at(&path)).json(definition)).await?;
        match response.status() {
            StatusCode::CONFLICT => Ok(false),
            status => body_of(&self.args.at(&path), response).await.map(|_| status == StatusCode::CREATED),
        }
    }

    /// Returns the body of a response, as JSON.
    pub(super) async fn json(
        &self,
        request: impl Fn(&Client, &dyn Fn(&str) -> String) -> RequestBuilder,
    ) -> anyhow::Result<Value> {
        let response = self.ask(request).await?;
        let is_refused = response.status().is_client_error();
        let body = body_of(&self.args.url, response).await;
        body.map_err(|error| match is_refused {
            true => Refused(format!("{}: {error:#}", self.args.url)).into(),
            false => error.context(self.args.url.clone()),
        })
    }

    /// Returns the contents of a board, from the first line on.
    pub(super) async fn contents(&self, board: &str) -> anyhow::Result<ResponseLines> {
        let response = self.ask(|client, at| client.get(at(&format!("/v1/boards/{board}/contents")))).await?;
        self.lines_of(response).await
    }

    /// Returns the lines of a response, if it is not an error.
    pub(super) async fn lines_of(&self, response: Response) -> anyhow::Result<ResponseLines> {
        if !response.status().is_success() {
            body_of(&self.args.url, response).await?;
            bail!("{} did not return contents", self.args.url);
        }
        Ok(ResponseLines::new(response))
    }

    /// Sends a request until the server takes it, whatever it answers, and returns the response. Such a request may be
    /// repeated.
    pub(super) async fn ask(
        &self,
        request: impl Fn(&Client, &dyn Fn(&str) -> String) -> RequestBuilder,
    ) -> anyhow::Result<Response> {
        let (mut pause, started) = (PAUSES.0, std::time::Instant::now());
        loop {
            let sent = request(&self.client, &|path| self.args.at(path)).send().await;
            let has_time = started.elapsed() + pause < PATIENCE;
            match sent {
                Ok(response) if !is_passing(response.status()) || !has_time => return Ok(response),
                Err(error) if !has_time || error.is_builder() => return Err(no_response(&self.args.url, error)),
                Ok(_) | Err(_) => {}
            }
            if pause == PAUSES.0 {
                let seconds = PATIENCE.as_secs();
                // If standard error cannot be written, the copy goes on all the same.
                drop(writeln!(
                    std::io::stderr(),
                    "{} does not take requests; trying again for {seconds} s",
                    self.args.url
                ));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Returns the board's time.
    pub(super) async fn time(&self, name: &str) -> anyhow::Result<Timestamp> {
        let board = self.json(|client, at| client.get(at(&format!("/v1/boards/{name}")))).await?;
        let now = board["as_of"].as_str().and_then(|text| Timestamp::parse(text).ok());
        now.context("the board has no 'as_of'")
    }

    /// Returns an error if the clocks of two servers differ by more than a minute.
    pub(super) async fn check_clock(&self, name: &str, other: &Self, board: &str) -> anyhow::Result<()> {
        let difference = self.time(name).await?.millis() - other.time(board).await?.millis();
        if difference.unsigned_abs() > CLOCKS.as_millis() as u64 {
            bail!(
                "the clocks of {} and {} differ by {} s; correct them, and run the command again",
                self.args.url,
                other.args.url,
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
                        self.args.url,
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
        let request = self.patient.post(self.args.at(&format!("/v1/boards/{name}/audit")));
        let response = request.send().await.map_err(|error| no_response(&self.args.url, error))?;
        let report = body_of(&self.args.url, response).await?;
        report["differences"].as_u64().context("the audit has no 'differences'")
    }
}

/// Returns whether the same request may succeed shortly.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}
