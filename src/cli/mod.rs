//! The commands.

pub mod healthcheck;
pub mod replay;

use clap::Parser;

#[derive(Parser)]
#[command(version, about)]
enum Command {
    Healthcheck(healthcheck::HealthcheckArgs),
    Replay(replay::ReplayArgs),
}

/// Parses the command line and runs the command.
pub async fn run() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Healthcheck(args) => healthcheck::run(args).await,
        Command::Replay(args) => replay::run(args).await,
    }
}
