//! The latency of other requests while large slots retire.
//!
//! Ten boards and one that is ten times as large have their subjects in one slot. The simulated clock moves past it, so
//! all of them retire at once. A newer slot stays live, so that rankings cannot simply be deleted. At the same time
//! connections read and write, on a board that retires nothing and on the large one, which does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::api::Api;
use super::load::{Load, Measured, Pace, Refusals, Running};
use super::process::{Redis, Server};
use super::wire::{self, Protocol, Refused};
use super::{Setting, ingest, mixed, report};

const SMALL_BOARDS: u32 = 10;
/// The number of connections of the other requests. Their rate leaves the machine spare capacity, so that waiting is
/// measured and not load.
const CONNECTIONS: u16 = 8;
const PACE: Pace = Pace::Closed { pause: Duration::from_millis(2) };
/// The longest time of a retirement before the benchmark fails.
const PATIENCE: Duration = Duration::from_secs(600);

/// The start of the boards. Their only full slot is that of this hour.
pub const BEGIN: &str = "2026-01-01T00:00:00Z";

/// Boards whose subjects are all in a slot that retires an hour after it was followed by another.
pub struct Boards {
    api: Api,
    /// The names of the boards, and the number of subjects of each.
    boards: Vec<(String, u32)>,
    small: u32,
    large: u32,
}

impl Boards {
    /// Fills ten boards, one that is ten times as large, named `large`, and a board `calm` that retires nothing. The
    /// simulated clock of the rolltop server must be at [`BEGIN`].
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

    /// Returns the load of reads and writes that do not concern the retiring slots. Half of them use the largest
    /// retiring board.
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
                    // The measurement shows whether other requests are refused in this time.
                    Err(error) if error.is::<Refused>() => {}
                    Err(error) => return Err(error),
                }
                ensure!(begun.elapsed() < PATIENCE, "{board} is still retiring after {} s", PATIENCE.as_secs());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(Retired { took: begun.elapsed(), subjects: self.boards.iter().map(|(_, subjects)| subjects).sum() })
    }

    /// Returns the number and sizes of the boards, for titles.
    pub fn shown(&self) -> String {
        format!("{SMALL_BOARDS} boards of {} and one of {} subjects", self.small, self.large)
    }
}

/// The time that all boards took to retire.
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
    let pings = redis.as_ref().map(|redis| pings(redis, 1, PACE));

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

/// Returns a load of `PING`s to Redis: the wait for Redis alone, at the pace of the requests that are compared with it.
pub fn pings(redis: &Redis, connections: u16, pace: Pace) -> Load {
    Load {
        address: redis.address.clone(),
        protocol: Protocol::Redis { lines: 1 },
        requests: Arc::from([wire::command(&["PING"]).into()]),
        connections,
        pace,
        refusals: Refusals::Fail,
    }
}

/// Stops a load that was started.
pub async fn stop(running: Option<Running>) -> anyhow::Result<Option<Measured>> {
    match running {
        Some(running) => running.stop().await.map(Some),
        None => Ok(None),
    }
}
