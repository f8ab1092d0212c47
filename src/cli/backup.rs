//! `rolltop backup`: requests a backup from a running server.

use std::time::Duration;

use anyhow::bail;
use serde_json::Value;

use super::output::say;
use super::server::{ServerArgs, no_response, refused};

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
    let body: Value = response.json().await.unwrap_or_default();
    match (status.is_success(), body["path"].as_str(), body["detail"].as_str()) {
        (true, Some(path), _) => Ok(path.to_owned()),
        (false, _, Some(detail)) => Err(refused(body["code"].as_str().unwrap_or_default(), detail)),
        _ => bail!("{url} returned {status}, and the body is not a response of rolltop"),
    }
}
