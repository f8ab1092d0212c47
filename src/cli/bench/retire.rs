//! Latency of other requests while large slots are retired.
//!
//! Ten boards and one ten times as large hold their subjects in one slot. The simulated clock moves past it, so all
//! of them retire at once; a newer slot stays alive, so that rankings cannot simply be dropped. Meanwhile connections
//! read and write, on a board that retires nothing and on the large one that does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::api::Api;
use super::load::{Load, Measured, Pace, Refusals, Running};
use super::process::{Redis, Server};
use super::wire::{self, Protocol, Refused};
use super::{Setting, ingest, mixed, report};

const SMALL_BOARDS: u32 = 10;
/// Other requests come at a pace that leaves the machine room: it is waiting that is measured, not load.
const CONNECTIONS: u16 = 8;
const PACE: Pace = Pace::Closed { pause: Duration::from_millis(2) };
/// How long a retirement may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(600);

/// When the boards begin: their only full slot is that of this hour.
pub const BEGIN: &str = "2026-01-01T00:00:00Z";

/// Boards whose subjects are all in a slot that retires an hour after it was followed by another.
pub struct Boards {
    api: Api,
    /// Names, and how many subjects each has.
    boards: Vec<(String, u32)>,
    small: u32,
    large: u32,
}

impl Boards {
    /// Fills ten boards and one ten times as large, called `large`, and a board `calm` that retires nothing, on a
    /// rolltop whose simulated clock is at [`BEGIN`].
    pub async fn fill(api: Api, large: u32) -> anyhow::Result<Self> {
        let small = large / SMALL_BOARDS;
        let boards: Vec<_> = (0..SMALL_BOARDS)
            .map(|number| (format!("small-{number}"), small))
            .chain([("large".to_owned(), large)])
            .collect();
        for (board, subjects) in &boards {
            api.define(board, "COUNT(2h, hit, post)", "1h").await?;
            ingest::seed(&api, board, *subjects).await?;
        }
        api.define("calm", "COUNT(24h, hit, post)", "1h").await?;
        ingest::seed(&api, "calm", small).await?;
        api.set_clock("2026-01-01T01:00:00Z").await?;
        for (board, _) in &boards {
            api.count(board, "stays").await?;
        }
        Ok(Self { api, boards, small, large })
    }

    /// Reads and writes that have nothing to do with the retiring slots, half of them on the largest retiring board.
    pub fn others(&self, connections: u16, pace: Pace) -> Load {
        let subjects: Vec<u32> = (0..self.small.min(10_000)).collect();
        let requests = mixed::requests(&["calm", "large"], &subjects);
        let (address, refusals) = (self.api.address.clone(), Refusals::Count);
        Load { address, protocol: Protocol::Http, requests, connections, pace, refusals }
    }

    /// Moves the clock past the full slots and waits until all of them have retired.
    pub async fn retire(&self) -> anyhow::Result<Retired> {
        let begun = Instant::now();
        self.api.set_clock("2026-01-01T02:00:00Z").await?;
        for (board, _) in &self.boards {
            loop {
                match self.api.retiring(board).await {
                    Ok(0) => break,
                    Ok(_) => {}
                    // Whether others are refused meanwhile is what is measured.
                    Err(error) if error.is::<Refused>() => {}
                    Err(error) => return Err(error),
                }
                ensure!(begun.elapsed() < PATIENCE, "{board} is still retiring after {} s", PATIENCE.as_secs());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(Retired { took: begun.elapsed(), subjects: self.boards.iter().map(|(_, subjects)| subjects).sum() })
    }

    /// How many there are of which size, for titles.
    pub fn shown(&self) -> String {
        format!("{SMALL_BOARDS} boards of {} and one of {} subjects", self.small, self.large)
    }
}

/// How long all boards took to retire.
pub struct Retired {
    took: Duration,
    subjects: u32,
}

impl std::fmt::Display for Retired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.took.as_secs_f64();
        write!(f, "{seconds:.2} s, {:.0} subjects/s", f64::from(self.subjects) / seconds)
    }
}

/// Measures the same requests before and while the boards retire.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), Some(BEGIN)).await?;
    let boards = Boards::fill(rolltop.api(), setting.subjects).await?;
    let others = boards.others(CONNECTIONS, PACE);
    let pings = redis.as_ref().map(pings);

    let (running, pinging) = (others.start(), pings.as_ref().map(Load::start));
    tokio::time::sleep(setting.turn()).await;
    let (before, pings_before) = (running.stop().await?, stop(pinging).await?);

    let (running, pinging) = (others.start(), pings.as_ref().map(Load::start));
    let retired = boards.retire().await?;
    let (during, pings_during) = (running.stop().await?, stop(pinging).await?);

    let rows = [
        ("other requests, before", Some(before)),
        ("other requests, meanwhile", Some(during)),
        ("PING, before", pings_before),
        ("PING, meanwhile", pings_during),
    ];
    let title = format!("\n{} retire at once, {}: {retired}\n", boards.shown(), setting.store);
    report::show(title + &report::latencies(&rows))
}

/// One `PING` of Redis after the other, with pauses.
pub fn pings(redis: &Redis) -> Load {
    Load {
        address: redis.address.clone(),
        protocol: Protocol::Redis { lines: 1 },
        requests: Arc::from([wire::command(&["PING"]).into()]),
        connections: 1,
        pace: PACE,
        refusals: Refusals::Fail,
    }
}

/// Stops what was started.
pub async fn stop(running: Option<Running>) -> anyhow::Result<Option<Measured>> {
    match running {
        Some(running) => running.stop().await.map(Some),
        None => Ok(None),
    }
}
