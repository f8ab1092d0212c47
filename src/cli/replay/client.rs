//! A client of the server's API for replays. It retries requests whose repetition cannot count twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rolltop_client::{Board, Error, Method, Request, Service};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::batch::Batch;
use crate::board::{BoardName, Calendar, Kind, Metric, Span, Starts, Timestamp};
use crate::cli::server::ServerArgs;

/// The time for which one batch is tried before the replay fails.
const RETRY_FOR: Duration = Duration::from_secs(60);
/// The shortest wait between two attempts, whatever `Retry-After` says. [`MAX_PAUSE`] is the longest.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const CLOCK: &str = "/v1/clock";
/// The code of a line that is ahead of the clock.
const TOO_EARLY: &str = "too_early";

/// A server and one of its boards.
pub struct Client {
    service: Service,
    board: Board,
    /// Whether every increment has an id, so that a batch may be posted twice.
    has_ids: bool,
    /// Whether the board is known to take lines like those of the log.
    takes_lines: AtomicBool,
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
    starts: Option<Starts>,
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
struct ServiceClock {
    now: Timestamp,
}

impl Client {
    /// Creates a client of a board of this server.
    pub fn new(server: &ServerArgs, board: BoardName, has_ids: bool) -> anyhow::Result<Self> {
        let service = server.builder()?.timeout(REQUEST_TIMEOUT).build()?;
        Ok(Self { board: service.board(board.as_str()), service, has_ids, takes_lines: AtomicBool::new(false) })
    }

    /// Returns the calendar of the board, and how its slots combine.
    pub async fn board(&self) -> anyhow::Result<(Calendar, Kind)> {
        let shown = match self.board.other::<BoardShown>(Method::GET, &[]).await {
            Err(error) if error.code() == "unknown_board" => bail!(
                "board '{board}' does not exist at {base}. Define it with --define 'COUNT(24h, hit, path)' --slot 1h, or:\n  \
                 rolltop define {board} 'COUNT(24h, hit, path)' --slot 1h",
                board = self.board.name(),
                base = self.service.url(),
            ),
            shown => shown?,
        };
        let calendar = match shown.slot {
            Some(slot) => Calendar::with_start(slot, shown.timezone, shown.starts)?,
            None => Calendar::eternal(),
        };
        Ok((calendar, shown.metric.function.kind()))
    }

    /// Defines the board. Succeeds if it exists with the same definition.
    pub async fn define(&self, board: &NewBoard) -> anyhow::Result<()> {
        self.board.define(board).await?;
        Ok(())
    }

    /// Returns the time of the server's simulated clock.
    pub async fn clock(&self) -> anyhow::Result<Timestamp> {
        match self.service.request::<ServiceClock>(Method::GET, CLOCK).await {
            Err(error) if error.status() == Some(404) => bail!(
                "--clock log requires a server with a simulated clock; start it with \
                 `rolltop serve --clock simulated=<a time before the log's first>` on a new store"
            ),
            clock => Ok(clock?.now),
        }
    }

    /// Sets the clock and rolls the board over, if the batch requires it, and posts the batch.
    ///
    /// Time passes faster in a replay than the server's schedule expects. Without the rollover here, expired slots
    /// would accumulate in the ranking.
    pub async fn deliver(&self, batch: Batch) -> anyhow::Result<Posted> {
        let Batch { body, lines, clock } = batch;
        let span = || format!("lines {} to {}", lines.first().unwrap_or(&0), lines.last().unwrap_or(&0));
        let (mut clock_ahead_of, mut slots_retired) = (None, None);
        if clock.is_some() && !self.takes_lines.load(Ordering::Relaxed) {
            let tried = self.post(&far_ahead(&body)?).await.with_context(|| format!("trying {}", span()))?;
            if tried.counts().keys().all(|code| code != TOO_EARLY) {
                // The clock cannot be set back, so it is not moved for lines that do not count at any time.
                return Ok(Posted { lines, response: tried, slots_retired, clock_ahead_of });
            }
            self.takes_lines.store(true, Ordering::Relaxed);
        }
        if let Some(now) = clock {
            let did_move = self.set_clock(now).await.with_context(|| format!("setting the clock to {now}"))?;
            clock_ahead_of = (!did_move).then_some(now);
            slots_retired = Some(self.roll_over().await.with_context(|| format!("rolling over at {now}"))?);
        }
        let response = self.post(&body).await.with_context(|| format!("posting {}", span()))?;
        Ok(Posted { lines, response, slots_retired, clock_ahead_of })
    }

    /// Moves the simulated clock forward. Returns `false` if it is later already.
    async fn set_clock(&self, now: Timestamp) -> anyhow::Result<bool> {
        // Setting the same time again is allowed, so this may always be repeated.
        let request = || self.service.request::<IgnoredAny>(Method::PUT, CLOCK).json(&ServiceClock { now });
        match send_with_retries(request, true).await {
            Ok(_) => Ok(true),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Retires everything that has expired. Returns the number of slots retired.
    async fn roll_over(&self) -> anyhow::Result<u64> {
        // A second rollover does nothing.
        Ok(send_with_retries(|| self.board.rollover().timeout(REQUEST_TIMEOUT), true).await?.slots_retired)
    }

    /// Posts a batch.
    async fn post(&self, body: &[u8]) -> anyhow::Result<BatchResponse> {
        let request = || self.board.other(Method::POST, &["increments"]).bytes("application/x-ndjson", body.to_vec());
        send_with_retries(request, self.has_ids).await
    }
}

/// Returns a batch with the latest of all times in each line, at which nothing counts: what is right but for the time
/// is then `too_early`, and the rest is rejected as it would be at any time.
fn far_ahead(body: &[u8]) -> anyhow::Result<Vec<u8>> {
    let at = serde_json::value::to_raw_value(&Timestamp::MAX)?;
    let mut ahead = Vec::with_capacity(body.len());
    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut line: BTreeMap<&str, &RawValue> = serde_json::from_slice(line)?;
        line.insert("at", &at);
        serde_json::to_writer(&mut ahead, &line)?;
        ahead.push(b'\n');
    }
    Ok(ahead)
}

fn is_conflict(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|error| error.status() == Some(409))
}

/// Sends a request until the response is not "try again", for up to [`RETRY_FOR`].
///
/// Unless the request may be repeated, only failures are retried after which it certainly had no effect: there was
/// no connection, or the server reports that it was too busy or had lost its store before it counted a line.
async fn send_with_retries<T: DeserializeOwned + 'static>(
    request: impl Fn() -> Request<T>,
    is_repeatable: bool,
) -> anyhow::Result<T> {
    let begun = Instant::now();
    let mut pause = MIN_PAUSE;
    loop {
        let error = match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if !matches!(error.status(), None | Some(503)) || !error.is_transient() {
            return Err(failure(error));
        }
        let next = error.retry_after().unwrap_or(pause).clamp(MIN_PAUSE, MAX_PAUSE);
        if !is_repeatable && !counted_nothing(&error) {
            return Err(failure(error).context(
                "some lines may have been counted; with ids (--id or --resume-safe) a replay can be repeated safely",
            ));
        }
        if begun.elapsed() + next > RETRY_FOR {
            return Err(failure(error).context(format!("gave up after {} s", begun.elapsed().as_secs())));
        }
        tokio::time::sleep(next).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Returns whether nothing of the request was counted. A stream is counted in portions, and the code is only about the
/// portion that failed, so the counts must be 0 as well.
fn counted_nothing(error: &Error) -> bool {
    let is_zero = |member: &str| error.problem().get(member).is_none_or(|counted| counted == 0);
    let is_untouched = matches!(error.code(), "unreachable" | "overloaded" | "store_unreachable");
    is_untouched && is_zero("accepted") && is_zero("duplicates")
}

fn failure(error: Error) -> anyhow::Error {
    let accepted = error.problem().get("accepted").and_then(Value::as_u64).unwrap_or(0);
    let error = anyhow::Error::new(error);
    match accepted {
        0 => error,
        accepted => error.context(format!("after counting {accepted} lines")),
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
