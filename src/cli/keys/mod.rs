//! `rolltop keys`: the keys of a service. All but the first one are made through the API of a running server, with the
//! key in `ROLLTOP_KEY`.

mod hash;
mod remote;

use clap::Subcommand;

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    Create(remote::CreateArgs),
    List(remote::ListArgs),
    Rotate(remote::RotateArgs),
    Revoke(remote::RevokeArgs),
    Hash(hash::HashArgs),
}

pub(super) async fn run(command: KeysCommand) -> anyhow::Result<()> {
    match command {
        KeysCommand::Create(args) => remote::create(args).await,
        KeysCommand::List(args) => remote::list(args).await,
        KeysCommand::Rotate(args) => remote::rotate(args).await,
        KeysCommand::Revoke(args) => remote::revoke(args).await,
        KeysCommand::Hash(args) => hash::run(&args),
    }
}
