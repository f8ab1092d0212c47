//! The commands.

pub mod replay;

use clap::Parser;

#[derive(Parser)]
#[command(version, about)]
enum Command {
    Replay(replay::ReplayArgs),
}

/// Parses the command line and runs the command.
pub async fn run() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Replay(args) => replay::run(args).await,
    }
}
