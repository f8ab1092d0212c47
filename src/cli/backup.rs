//! `rolltop backup`: requests a backup from a running server.

use rolltop_client::Method;
use serde::Deserialize;

use super::output::say;
use super::server::ServerArgs;

/// Request a backup from a running server and print its directory: exit code 0 if it was made, 1 if not.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct BackupArgs {
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Deserialize)]
struct Backup {
    path: String,
}

/// Sends one request, and waits until the backup is made, as files may have to be copied. Prints the directory, which is
/// on the server.
pub(super) async fn run(args: BackupArgs) -> anyhow::Result<()> {
    let request = args.server.service()?.request::<Backup>(Method::POST, "/v1/backup");
    say!("{}", request.timeout(super::LONG).await?.path)?;
    Ok(())
}
