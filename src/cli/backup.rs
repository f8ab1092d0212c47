//! `rolltop backup`: requests a backup from a running server.

use std::time::Duration;

use super::output::say;
use super::server::{ServerArgs, body_of, no_answer, no_response};

/// The time to wait for a connection. The backup itself has no time limit, because files may have to be copied.
const CONNECT: Duration = Duration::from_secs(5);

/// Request a backup from a running server and print its directory: exit code 0 if it was made, 1 if not.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct BackupArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// Sends one request, and waits until the backup is made. Prints the directory, which is on the server.
pub(super) async fn run(args: BackupArgs) -> anyhow::Result<()> {
    say!("{}", request_backup(&args.server).await?)?;
    Ok(())
}

/// Returns the backup's directory.
async fn request_backup(server: &ServerArgs) -> anyhow::Result<String> {
    let url = server.at("/v1/backup");
    let client = server.client()?.connect_timeout(CONNECT).build()?;
    let response = client.post(&url).send().await.map_err(|error| no_response(&url, error))?;
    let status = response.status();
    let body = body_of(&url, response).await?;
    body["path"].as_str().map(str::to_owned).ok_or_else(|| no_answer(&url, status))
}
