//! The commands.

pub mod bench;
pub mod healthcheck;
pub mod replay;

use clap::Parser;

#[derive(Parser)]
#[command(version, about)]
enum Command {
    Bench(bench::BenchArgs),
    Healthcheck(healthcheck::HealthcheckArgs),
    Replay(replay::ReplayArgs),
}

/// Parses the command line and runs the command.
pub async fn run() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Bench(args) => bench::run(args).await,
        Command::Healthcheck(args) => healthcheck::run(args).await,
        Command::Replay(args) => replay::run(args).await,
    }
}
