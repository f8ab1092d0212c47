//! `rolltop bench`: what the numbers of `docs/performance.md` are measured with.
//!
//! Every scenario compares rolltop with a baseline on the same machine, in the same run, in turns (A B B A), and
//! reports medians and ratios: absolute rates say more about the machine than about the program. This process only
//! generates load; all servers are processes of their own (`process`), started for the scenario and stopped after
//! it.

mod baseline;
mod expire;
mod fanout;
mod feature;
mod growth;
mod ingest;
mod load;
mod page;
mod process;
mod report;
mod retire;
mod single;
mod subjects;
mod usage;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};

/// Measure this machine: rolltop and a baseline in turns, as medians and ratios.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Scenario {
    /// One increment a request, against a bare JSON echo; on Redis also against a handler that sends HINCRBY and
    /// ZINCRBY for each request. With `--against` also against another rolltop program, in nine rounds at least.
    Single {
        #[command(flatten)]
        setting: Setting,
        /// Another rolltop program to measure in turns with this one.
        #[arg(long, value_name = "PROGRAM")]
        against: Option<PathBuf>,
    },
    /// Increments in NDJSON; on Redis against raw pipelines of HINCRBY and ZINCRBY.
    Ingest(Setting),
    /// The top 50 of a large board, against a bare JSON echo.
    Page(Setting),
    /// Latency of other requests while ten boards and one ten times as large retire a slot at once.
    Retire(Setting),
    /// One event a request: one that feeds ten boards against one that feeds one.
    Fanout(Setting),
    /// One subject's count over a shorter window of an unranked board, against a bare JSON echo.
    Feature(Setting),
    /// How long a slot of 200,000 subjects takes to retire, by metric.
    Expire(Setting),
    /// A board that grows to millions of subjects on the embedded store: rates, waiting, memory, disk, a restart; with
    /// `--against` the same of another rolltop program.
    Growth(growth::GrowthSetting),
    /// All of them but `growth`.
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

/// What to measure with.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Setting {
    /// `embedded`; `redis` for a redis-server from the PATH, started on a free port without persistence; or the
    /// redis:// URL of an empty database, in which the keys of the benchmark stay.
    #[arg(long, default_value = "embedded")]
    store: String,

    /// Connections that each send a request when the last is answered.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,

    /// How long one side is measured at a time, in seconds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// How many times each side has its turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,

    /// How many subjects there are: on the board of `page`, on the large board of `retire`, and to choose from in
    /// `single` and `ingest`.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    subjects: u32,
}

impl Setting {
    fn turn(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Runs a scenario and prints its table.
pub async fn run(args: BenchArgs) -> anyhow::Result<()> {
    match args.scenario {
        Scenario::ServeEcho { listen } => return baseline::serve_echo(listen).await,
        Scenario::ServePlain { listen, redis } => return baseline::serve_plain(listen, &redis).await,
        _ if cfg!(debug_assertions) => eprintln!("note: this is a debug build; measure with `cargo run --release`"),
        _ => {}
    }
    // The causes become part of the message, because only the message is shown.
    measure(args.scenario).await.map_err(|error| anyhow!("{error:#}"))
}

async fn measure(scenario: Scenario) -> anyhow::Result<()> {
    match scenario {
        Scenario::Single { setting, against } => single::run(&setting, against.as_deref()).await,
        Scenario::Ingest(setting) => ingest::run(&setting).await,
        Scenario::Page(setting) => page::run(&setting).await,
        Scenario::Retire(setting) => retire::run(&setting).await,
        Scenario::Fanout(setting) => fanout::run(&setting).await,
        Scenario::Feature(setting) => feature::run(&setting).await,
        Scenario::Expire(setting) => expire::run(&setting).await,
        Scenario::Growth(setting) => growth::run(&setting).await,
        Scenario::All(setting) => {
            if setting.store.contains("://") {
                bail!("each scenario needs an empty store: with a URL run them one by one");
            }
            single::run(&setting, None).await?;
            ingest::run(&setting).await?;
            page::run(&setting).await?;
            retire::run(&setting).await?;
            fanout::run(&setting).await?;
            feature::run(&setting).await?;
            expire::run(&setting).await
        }
        Scenario::ServeEcho { .. } | Scenario::ServePlain { .. } => Ok(()),
    }
}
