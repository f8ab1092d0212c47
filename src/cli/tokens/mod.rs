//! `rolltop token`: signs tokens, and shows what is in one. For sites in any language a JWT library does the same.

mod inspect;
mod key;
mod sign;
mod signer;

use clap::Subcommand;

/// Sign tokens, with which end users may do one thing, and look into them. Without a server.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum TokenCommand {
    Sign(sign::SignArgs),
    Inspect(inspect::InspectArgs),
    Key(key::KeyArgs),
}

pub(super) fn run(command: TokenCommand) -> anyhow::Result<()> {
    match command {
        TokenCommand::Sign(args) => sign::run(args),
        TokenCommand::Inspect(args) => inspect::run(&args),
        TokenCommand::Key(args) => key::run(&args),
    }
}
