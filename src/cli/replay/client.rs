//! A client of the server's API for replays. It retries requests whose repetition cannot count twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use reqwest::{Method, StatusCode, header};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::batch::Batch;
use crate::board::{BoardName, Calendar, Kind, Metric, Span, Timestamp};
use crate::cli::server::ServerArgs;

/// The time for which one batch is tried before the replay fails.
const RETRY_FOR: Duration = Duration::from_secs(60);
/// The shortest wait between two attempts, whatever `Retry-After` says. [`MAX_PAUSE`] is the longest.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest response that is read, in bytes.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// A server and one of its boards.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    board: BoardName,
    /// Whether every increment has an id, so that a batch may be posted twice.
    has_ids: bool,
}

/// The definition of a board, as far as a replay needs it.
#[derive(Clone, Debug, Serialize)]
pub struct NewBoard {
    #[serde(serialize_with = "as_text")]
    pub metric: Metric,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimals: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<chrono_tz::Tz>,
}

fn parsed<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn as_text<S: serde::Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(metric)
}

/// The part of a board's description that a replay needs.
#[derive(Deserialize)]
struct BoardShown {
    #[serde(deserialize_with = "parsed")]
    metric: Metric,
    /// Absent over all time.
    slot: Option<Span>,
    #[serde(default)]
    timezone: chrono_tz::Tz,
}

/// The server's response to a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct BatchResponse {
    pub accepted: u64,
    pub duplicates: u64,
    /// The first rejected increments.
    pub rejected: Vec<Rejected>,
    /// The number of all rejected increments, by code.
    #[serde(default)]
    pub rejected_counts: BTreeMap<String, u64>,
}

/// An increment that was not counted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Rejected {
    /// The line in the request, from 1.
    pub line: u64,
    pub code: String,
    pub detail: String,
}

#[derive(Serialize, Deserialize)]
struct Clock {
    now: Timestamp,
}

/// The part of a rollover's report that the summary uses.
#[derive(Deserialize)]
struct RolloverTotals {
    slots_retired: u64,
}

/// The members of an RFC 9457 problem that are used here.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Problem {
    code: String,
    title: String,
    detail: String,
    /// The number of lines counted before the request failed.
    accepted: u64,
    duplicates: u64,
}

/// The content of a request.
#[derive(Clone)]
struct RequestBody {
    body: bytes::Bytes,
    media_type: &'static str,
}

impl RequestBody {
    fn json(value: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self { body: serde_json::to_vec(value)?.into(), media_type: "application/json" })
    }
}

/// A complete response.
struct Response {
    status: StatusCode,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

impl Client {
    /// Creates a client of a board of this server.
    pub fn new(server: &ServerArgs, board: BoardName, has_ids: bool) -> anyhow::Result<Self> {
        let url = &server.url;
        let parsed = reqwest::Url::parse(url).context("the server's URL is not valid")?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            bail!("the URL must not contain a user or password");
        }
        if !matches!(parsed.scheme(), "http" | "https") || parsed.query().is_some() || parsed.fragment().is_some() {
            bail!("'{url}' is not a server's URL, such as http://127.0.0.1:8080");
        }
        let http = server
            .client()?
            .connect_timeout(Duration::from_secs(5))
            .timeout(REQUEST_TIMEOUT)
            .user_agent(concat!("rolltop-replay/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { http, base: server.at(""), board, has_ids })
    }

    /// Returns the calendar of the board, and how its slots combine.
    pub async fn board(&self) -> anyhow::Result<(Calendar, Kind)> {
        let url = self.board_url("");
        let reply = self.send(Method::GET, &url, None).await.with_context(|| self.unreachable())?;
        if reply.status == StatusCode::NOT_FOUND {
            bail!(
                "board '{board}' does not exist at {base}. Define it with --define 'COUNT(24h, hit, path)' --slot 1h, or:\n  \
                 curl -X PUT {url} -H 'content-type: application/json' -d '{{\"metric\":\"COUNT(24h, hit, path)\",\"slot\":\"1h\"}}'",
                board = self.board,
                base = self.base,
            );
        }
        let shown: BoardShown = reply.json(&url)?;
        let calendar = match shown.slot {
            Some(slot) => Calendar::new(slot, shown.timezone)?,
            None => Calendar::eternal(),
        };
        Ok((calendar, shown.metric.function.kind()))
    }

    /// Defines the board. Succeeds if it exists with the same definition.
    pub async fn define(&self, board: &NewBoard) -> anyhow::Result<()> {
        let url = self.board_url("");
        let reply =
            self.send(Method::PUT, &url, Some(RequestBody::json(board)?)).await.with_context(|| self.unreachable())?;
        reply.success(&url).map(drop)
    }

    /// Returns the time of the server's simulated clock.
    pub async fn clock(&self) -> anyhow::Result<Timestamp> {
        let url = format!("{}/v1/clock", self.base);
        let reply = self.send(Method::GET, &url, None).await.with_context(|| self.unreachable())?;
        if reply.status == StatusCode::NOT_FOUND {
            bail!(
                "--clock log requires a server with a simulated clock; start it with \
                 `rolltop serve --clock simulated=<a time before the log's first>` on a new store"
            );
        }
        reply.json::<Clock>(&url).map(|clock| clock.now)
    }

    /// Sets the clock and rolls the board over, if the batch requires it, and posts the batch.
    ///
    /// Time passes faster in a replay than the server's schedule expects. Without the rollover here, expired slots
    /// would accumulate in the ranking.
    pub async fn deliver(&self, batch: Batch) -> anyhow::Result<Posted> {
        let Batch { body, lines, clock } = batch;
        let span = || format!("lines {} to {}", lines.first().unwrap_or(&0), lines.last().unwrap_or(&0));
        let (mut clock_ahead_of, mut slots_retired) = (None, None);
        if let Some(now) = clock {
            let did_move = self.set_clock(now).await.with_context(|| format!("setting the clock to {now}"))?;
            clock_ahead_of = (!did_move).then_some(now);
            slots_retired = Some(self.roll_over().await.with_context(|| format!("rolling over at {now}"))?);
        }
        let response = self.post(body).await.with_context(|| format!("posting {}", span()))?;
        Ok(Posted { lines, response, slots_retired, clock_ahead_of })
    }

    /// Moves the simulated clock forward. Returns `false` if it is later already.
    async fn set_clock(&self, now: Timestamp) -> anyhow::Result<bool> {
        let url = format!("{}/v1/clock", self.base);
        // Setting the same time again is allowed, so this may always be repeated.
        let reply = self.send_with_retries(Method::PUT, &url, RequestBody::json(&Clock { now })?, true).await?;
        if reply.status == StatusCode::CONFLICT {
            return Ok(false);
        }
        reply.success(&url).map(|_| true)
    }

    /// Retires everything that has expired. Returns the number of slots retired.
    async fn roll_over(&self) -> anyhow::Result<u64> {
        let url = self.board_url("/rollover");
        // A second rollover does nothing.
        let reply =
            self.send_with_retries(Method::POST, &url, RequestBody::json(&serde_json::json!({}))?, true).await?;
        reply.json::<RolloverTotals>(&url).map(|rollover| rollover.slots_retired)
    }

    /// Posts a batch.
    async fn post(&self, body: Vec<u8>) -> anyhow::Result<BatchResponse> {
        let url = self.board_url("/increments");
        let content = RequestBody { body: body.into(), media_type: "application/x-ndjson" };
        let reply = self.send_with_retries(Method::POST, &url, content, self.has_ids).await?;
        reply.json(&url)
    }

    /// Sends a request until the response is not "try again", for up to [`RETRY_FOR`].
    ///
    /// Unless the request may be repeated, only failures are retried after which it certainly had no effect: there was
    /// no connection, or the server reports that it was too busy or had lost its store before it counted a line.
    async fn send_with_retries(
        &self,
        method: Method,
        url: &str,
        content: RequestBody,
        repeatable: bool,
    ) -> anyhow::Result<Response> {
        let begun = Instant::now();
        let mut pause = MIN_PAUSE;
        loop {
            let (error, may_repeat, wanted_pause) = match self.send(method.clone(), url, Some(content.clone())).await {
                Ok(reply) if reply.status == StatusCode::SERVICE_UNAVAILABLE => {
                    let untouched = reply.problem().is_some_and(|problem| problem.counted_nothing());
                    (reply.failure(url), repeatable || untouched, reply.retry_after)
                }
                Ok(reply) => return Ok(reply),
                Err(SendError::Connect(error)) => (error, true, None),
                Err(SendError::MaybeSent(error)) => (error, repeatable, None),
            };
            if !may_repeat {
                return Err(error.context(
                    "some lines may have been counted; with ids (--id or --resume-safe) a replay can be repeated safely",
                ));
            }
            let next = wanted_pause.unwrap_or(pause).clamp(MIN_PAUSE, MAX_PAUSE);
            if begun.elapsed() + next > RETRY_FOR {
                return Err(error.context(format!("gave up after {} s", begun.elapsed().as_secs())));
            }
            tokio::time::sleep(next).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn send(&self, method: Method, url: &str, content: Option<RequestBody>) -> Result<Response, SendError> {
        let mut request = self.http.request(method, url);
        if let Some(RequestBody { body, media_type }) = content {
            request = request.header(header::CONTENT_TYPE, media_type).body(body);
        }
        let mut response = request.send().await.map_err(SendError::from)?;
        let retry_after = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(SendError::from)? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(SendError::MaybeSent(anyhow!(
                    "the response of {url} has more than {MAX_RESPONSE_BYTES} bytes"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response { status: response.status(), retry_after, body })
    }

    fn board_url(&self, rest: &str) -> String {
        format!("{}/v1/boards/{}{rest}", self.base, self.board)
    }

    fn unreachable(&self) -> String {
        format!("cannot reach {}; is `rolltop serve` running there?", self.base)
    }
}

impl Problem {
    /// Returns whether the server reports that nothing of the request was counted. A stream is counted in portions, and
    /// the code is only about the portion that failed, so the counts must be 0 as well.
    fn counted_nothing(&self) -> bool {
        matches!(&*self.code, "overloaded" | "store_unreachable") && self.accepted == 0 && self.duplicates == 0
    }
}

/// A request without a response.
#[derive(Debug, thiserror::Error)]
enum SendError {
    /// The request was never sent.
    #[error("{0:#}")]
    Connect(anyhow::Error),
    /// The request may have been sent.
    #[error("{0:#}")]
    MaybeSent(anyhow::Error),
}

impl From<reqwest::Error> for SendError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_connect() { SendError::Connect(error.into()) } else { SendError::MaybeSent(error.into()) }
    }
}

impl Response {
    fn success(&self, url: &str) -> anyhow::Result<&[u8]> {
        if self.status.is_success() { Ok(&self.body) } else { Err(self.failure(url)) }
    }

    fn json<T: DeserializeOwned>(&self, url: &str) -> anyhow::Result<T> {
        serde_json::from_slice(self.success(url)?)
            .with_context(|| format!("the response of {url} is not that of a rolltop server"))
    }

    fn problem(&self) -> Option<Problem> {
        serde_json::from_slice(&self.body).ok()
    }

    fn failure(&self, url: &str) -> anyhow::Error {
        match self.problem() {
            Some(Problem { code, title, detail, accepted, .. }) => {
                let message = if detail.is_empty() { title } else { detail };
                let part = if accepted > 0 { format!(", after counting {accepted} lines") } else { String::new() };
                anyhow!("{url} returned {}: {message} [{code}]{part}", self.status)
            }
            None => anyhow!("{url} returned {}", self.status),
        }
    }
}

impl BatchResponse {
    /// Returns the number of rejected increments, by code.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        if !self.rejected_counts.is_empty() {
            return self.rejected_counts.clone();
        }
        let mut counts = BTreeMap::new();
        for rejected in &self.rejected {
            *counts.entry(rejected.code.clone()).or_default() += 1;
        }
        counts
    }
}

/// The result of a batch, with the lines that it contained.
pub struct Posted {
    pub lines: Vec<u64>,
    pub response: BatchResponse,
    /// The number of slots retired by the rollover before it, if the log drives the clock.
    pub slots_retired: Option<u64>,
    /// The time to which the clock should have been set, if the server's clock was later already.
    pub clock_ahead_of: Option<Timestamp>,
}
