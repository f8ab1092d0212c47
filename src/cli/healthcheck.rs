//! `rolltop healthcheck`: asks a server whether it lives, for container images that have no curl.

use std::time::Duration;

use anyhow::{Context, bail};

/// Ask a server whether it is alive: exit code 0 if it is, 1 if not.
#[derive(Clone, Debug, clap::Args)]
pub struct HealthcheckArgs {
    /// Where the server listens.
    #[arg(long, default_value = "http://127.0.0.1:8080", env = "ROLLTOP_URL")]
    url: String,

    /// Ask whether it is ready to serve: its store reachable, no rollover overdue.
    #[arg(long)]
    ready: bool,
}

/// Asks once, for 2 seconds at most.
pub async fn run(args: HealthcheckArgs) -> anyhow::Result<()> {
    // An error means that one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("{}/{}", args.url.trim_end_matches('/'), if args.ready { "readyz" } else { "healthz" });
    let client = reqwest::Client::builder().timeout(Duration::from_secs(2)).build()?;
    let status = client.get(&url).send().await.with_context(|| format!("{url} does not answer"))?.status();
    if !status.is_success() {
        bail!("{url} answered {status}");
    }
    Ok(())
}
