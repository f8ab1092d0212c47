//! `rolltop-bench`: the measurements behind the numbers of `docs/performance-figures.md`.
//!
//! Every scenario compares rolltop with a baseline on the same machine, in the same run, in turns (A B B A), and
//! reports medians and ratios, because absolute rates depend more on the machine than on the program. This process only
//! generates load. All servers are separate processes (`process`), started for the scenario and stopped after it. The
//! measured program is the `rolltop` beside this one.

#![forbid(unsafe_code)]

mod access;
mod api;
mod arrivals;
mod baseline;
mod busy;
mod cluster;
mod distance;
mod dual_run;
mod expire;
mod fanout;
mod feature;
mod growth;
mod ingest;
mod keys;
mod latencies;
mod load;
mod mixed;
mod moderation;
mod movement;
mod page;
mod parts;
mod process;
mod proxy;
mod report;
mod retire;
mod seasons;
mod single;
mod sources;
mod subjects;
mod target;
mod tiers;
mod usage;
mod variants;
mod wire;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use clap::Parser;

use api::Api;
use arrivals::Schedule;
use load::{Load, Pace, Refusals};
use wire::Protocol;

// The allocator of `rolltop`, so that the baselines have it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure rolltop and a baseline on this machine, in turns, and print medians and ratios.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "rolltop-bench")]
struct Cli {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Scenario {
    /// One increment a request, against a bare JSON echo; on Redis also against a handler that sends HINCRBY and
    /// ZINCRBY for each request. With `--against` also against another rolltop program, in at least nine rounds.
    Single {
        #[command(flatten)]
        setting: LoadSetting,
        /// Path of another rolltop program to measure in turns with this one.
        #[arg(long, value_name = "PROGRAM", conflicts_with = "target")]
        against: Option<PathBuf>,
    },
    /// Increments in NDJSON; on Redis against raw pipelines of HINCRBY and ZINCRBY.
    Ingest(Setting),
    /// Pages of 50 of a large board, against a bare JSON echo: the top page, 1,000 different pages, and the top page
    /// while the board receives writes. With `--against` also against another rolltop program, in at least nine rounds.
    Page {
        #[command(flatten)]
        setting: LoadSetting,
        /// Path of another rolltop program to measure in turns with this one.
        #[arg(long, value_name = "PROGRAM", conflicts_with = "target")]
        against: Option<PathBuf>,
        /// Increments a second while the top page is read; 0 skips this measurement.
        #[arg(long, default_value_t = page::WRITES, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
        writes: u32,
    },
    /// Increments, pages and standings in turn at a fixed rate, against a bare JSON echo.
    Mixed(LoadSetting),
    /// Latency of other requests while ten boards and one ten times as large retire a slot at once.
    Retire(Setting),
    /// Latency of other requests while the same boards retire, huge queries are answered and a huge batch is counted.
    Busy(busy::BusySetting),
    /// Rate at which a slot retires if Redis is far away, against a Redis nearby.
    Distance(distance::DistanceSetting),
    /// Boards of several parts on a cluster of six masters, started for it: each node's share of uniform increments,
    /// and the top page of a board of 16 parts against that of a board without parts.
    Parts(Setting),
    /// One increment a request, without a key, with a key, and with tokens.
    Access(Setting),
    /// One event a request: an event that feeds ten boards against an event that feeds one.
    Fanout(Setting),
    /// Events of a log in NDJSON that feed four boards: without ids, with ids, and with the positions of a source.
    Sources(Setting),
    /// Increments to a board with a successor, against a board without one and a board with a second window.
    DualRun(Setting),
    /// Increments to boards with a ranking for each key, against a board without keys.
    Keys(Setting),
    /// Increments to boards on which subjects are hidden, against a board on which none is.
    Moderation(Setting),
    /// Increments to boards with a season, in the middle of a period and in its grace with late items, against a board
    /// over all time without one.
    Seasons(Setting),
    /// Pages, standings and look-ups of a board with tiers, against those of a board without; distributions.
    Tiers(Setting),
    /// The first read after a boundary, pages and increments of a board with movement, against a board without.
    Movement(Setting),
    /// One subject's count over a shorter window of an unranked board, against a bare JSON echo.
    Feature(Setting),
    /// Time that a slot of 200,000 subjects takes to retire, by metric.
    Expire(Setting),
    /// A board that grows to millions of subjects on the embedded store: rates, waiting, memory, disk, a restart; with
    /// `--against` the same for another rolltop program.
    Growth(growth::GrowthSetting),
    /// All scenarios except `growth`; `distance` and `parts` on Redis only.
    All(Setting),
    /// The baseline that echoes JSON.
    #[command(hide = true)]
    ServeEcho {
        #[arg(long)]
        listen: std::net::SocketAddr,
    },
    /// The baseline that sends two commands to Redis for each request.
    #[command(hide = true)]
    ServePlain {
        #[arg(long)]
        listen: std::net::SocketAddr,
        #[arg(long)]
        redis: String,
    },
}

/// The smallest number of rounds for the comparison of two programs.
const LEAST_ROUNDS: u32 = 9;

/// The options of a measurement.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Setting {
    /// `embedded`; `redis` for a redis-server from the PATH, started on a free port without persistence; or the
    /// redis:// URL of an empty database, in which the keys of the benchmark remain.
    #[arg(long, default_value = "embedded")]
    store: String,

    /// Number of connections that send requests.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,

    /// Seconds for which one side is measured at a time.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Number of turns of each side.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,

    /// Number of subjects: on the board of `page` and `mixed`, on the large board of `retire` and `busy`, and to choose
    /// from in `single` and `ingest`.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    subjects: u32,
}

impl Setting {
    fn turn(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Returns a closed loop of these requests, over the requested number of connections.
    fn load(&self, address: &str, requests: impl Into<Arc<[Bytes]>>) -> Load {
        Load {
            address: address.to_owned(),
            protocol: Protocol::Http,
            requests: requests.into(),
            connections: self.connections,
            pace: Pace::SATURATING,
            refusals: Refusals::Fail,
        }
    }
}

/// The options of a measurement with a rate and a target.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LoadSetting {
    #[command(flatten)]
    setting: Setting,

    /// Sends this many requests a second, independent of the responses, and measures each from the time when it was
    /// due. Without this option, each connection sends a request after its last response (`mixed`: 1000 a second).
    #[arg(long, value_name = "REQUESTS")]
    rate: Option<NonZeroU32>,

    /// Measures a rolltop that already runs, on boards with unique names that are removed at the end. There is no
    /// baseline then.
    #[arg(long, value_name = "http://HOST:PORT", conflicts_with = "store")]
    target: Option<Api>,
}

impl LoadSetting {
    /// Creates the options without a fixed rate, for a rolltop started for the measurement.
    fn of(setting: Setting) -> Self {
        Self { setting, rate: None, target: None }
    }

    /// Returns these options with enough rounds to compare two programs, whose results are close to each other.
    fn for_comparison(&self, against: Option<&Path>) -> Self {
        let rounds = if against.is_some() { self.setting.rounds.max(LEAST_ROUNDS) } else { self.setting.rounds };
        Self { setting: Setting { rounds, ..self.setting.clone() }, ..self.clone() }
    }

    fn pace(&self) -> Pace {
        self.rate.map_or(Pace::SATURATING, |rate| Pace::Open(Schedule::new(rate)))
    }

    /// Returns the load of these requests, with the requested connections and rate.
    fn load(&self, address: &str, requests: impl Into<Arc<[Bytes]>>) -> Load {
        let refusals = if self.rate.is_some() { Refusals::Count } else { Refusals::Fail };
        Load { pace: self.pace(), refusals, ..self.setting.load(address, requests) }
    }

    /// Returns the connections and the rate, for titles.
    fn shown(&self) -> String {
        let connections = format!("{} connections", self.setting.connections);
        self.rate.map_or(connections.clone(), |rate| format!("{rate} requests/s over {connections}"))
    }

    /// Returns the measured store or address, for titles.
    fn place(&self) -> &str {
        self.target.as_ref().map_or(&self.setting.store, |target| &target.address)
    }
}

/// Runs a scenario and prints its table. Exits with 0 (success), 1 (failure) or 2 (wrong usage).
fn main() -> ExitCode {
    let Cli { scenario } = Cli::parse();
    let is_measurement = !matches!(scenario, Scenario::ServeEcho { .. } | Scenario::ServePlain { .. });
    if cfg!(debug_assertions) && is_measurement {
        eprintln!("note: this is a debug build; measure with `cargo build --profile dist --workspace`");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run(scenario))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rolltop-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(scenario: Scenario) -> anyhow::Result<()> {
    match scenario {
        Scenario::ServeEcho { listen } => baseline::serve_echo(listen).await,
        Scenario::ServePlain { listen, redis } => baseline::serve_plain(listen, &redis).await,
        Scenario::Single { setting, against } => single::run(&setting, against.as_deref()).await,
        Scenario::Ingest(setting) => ingest::run(&setting).await,
        Scenario::Page { setting, writes, against } => {
            page::run(&setting, NonZeroU32::new(writes), against.as_deref()).await
        }
        Scenario::Mixed(setting) => mixed::run(&setting).await,
        Scenario::Retire(setting) => retire::run(&setting).await,
        Scenario::Busy(setting) => busy::run(&setting).await,
        Scenario::Distance(setting) => distance::run(&setting).await,
        Scenario::Parts(setting) => parts::run(&setting).await,
        Scenario::Access(setting) => access::run(&setting).await,
        Scenario::Fanout(setting) => fanout::run(&setting).await,
        Scenario::Sources(setting) => sources::run(&setting).await,
        Scenario::DualRun(setting) => dual_run::run(&setting).await,
        Scenario::Keys(setting) => keys::run(&setting).await,
        Scenario::Moderation(setting) => moderation::run(&setting).await,
        Scenario::Seasons(setting) => seasons::run(&setting).await,
        Scenario::Tiers(setting) => tiers::run(&setting).await,
        Scenario::Movement(setting) => movement::run(&setting).await,
        Scenario::Feature(setting) => feature::run(&setting).await,
        Scenario::Expire(setting) => expire::run(&setting).await,
        Scenario::Growth(setting) => growth::run(&setting).await,
        Scenario::All(setting) => all(setting).await,
    }
}

async fn all(setting: Setting) -> anyhow::Result<()> {
    if setting.store.contains("://") {
        bail!("each scenario needs an empty store: with a URL run them one by one");
    }
    let requests = LoadSetting::of(setting.clone());
    single::run(&requests, None).await?;
    ingest::run(&setting).await?;
    page::run(&requests, NonZeroU32::new(page::WRITES), None).await?;
    mixed::run(&requests).await?;
    retire::run(&setting).await?;
    busy::run(&busy::BusySetting::of(setting.clone())).await?;
    if setting.store != "embedded" {
        distance::run(&distance::DistanceSetting::of(setting.clone())).await?;
        parts::run(&setting).await?;
    }
    access::run(&setting).await?;
    fanout::run(&setting).await?;
    sources::run(&setting).await?;
    dual_run::run(&setting).await?;
    keys::run(&setting).await?;
    moderation::run(&setting).await?;
    seasons::run(&setting).await?;
    tiers::run(&setting).await?;
    movement::run(&setting).await?;
    feature::run(&setting).await?;
    expire::run(&setting).await
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Scenario, String> {
        let words = std::iter::once("rolltop-bench").chain(line.split_whitespace());
        Cli::try_parse_from(words).map(|cli| cli.scenario).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_rate_makes_an_open_loop() {
        let Ok(Scenario::Single { setting, .. }) = parse("single --rate 2500") else { panic!("it is sound") };
        assert!(matches!(setting.pace(), Pace::Open(_)));
        assert_eq!(setting.shown(), "2500 requests/s over 64 connections");
        let Ok(Scenario::Single { setting, .. }) = parse("single") else { panic!("it is sound") };
        assert!(matches!(setting.pace(), Pace::Closed { .. }));
        assert_eq!(setting.shown(), "64 connections");
    }

    #[test]
    fn a_target_replaces_the_store() {
        let Ok(Scenario::Mixed(setting)) = parse("mixed --target http://10.0.0.7:8080") else { panic!("it is sound") };
        assert_eq!((setting.place(), &setting.target), ("10.0.0.7:8080", &Some(Api::at("10.0.0.7:8080"))));
        let Ok(Scenario::Mixed(setting)) = parse("mixed --store redis") else { panic!("it is sound") };
        assert_eq!((setting.place(), &setting.target), ("redis", &None));
    }

    #[test]
    fn invalid_settings_are_refused() {
        for line in [
            "single --rate 0",
            "single --rate -5",
            "single --target 10.0.0.7:8080",
            "single --target https://10.0.0.7",
            "mixed --target http://10.0.0.7:8080 --store redis",
            "single --target http://10.0.0.7:8080 --against ./rolltop-before",
            "ingest --rate 100",
            "retire --target http://10.0.0.7:8080",
            "distance --delay 0",
            "busy --slots 2001",
            "busy --questions 1001",
            "busy --items 100001",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
