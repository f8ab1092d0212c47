//! A Rolltop in this process, so that one command runs the whole example.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use rolltop::app::Application;
use rolltop::config::{Config, LogFormat, Settings};
use rolltop::telemetry;

/// Starts a Rolltop with the configuration rolltop.toml, for the site on this port. Returns its address.
pub async fn start(listen: SocketAddr, data: &Path, port: u16, secret: &str) -> Result<String> {
    telemetry::start_logging(LogFormat::Text);
    let text = include_str!("rolltop.toml").replace("{port}", &port.to_string()).replace("{secret}", secret);
    let settings = Settings { listen: Some(listen), data_dir: Some(data.to_owned()), ..Settings::default() };
    let config = Config::from_text("examples/site/rolltop.toml", &text, settings)?;
    let application = Application::build(&config).await.with_context(
        || "Rolltop did not start; its address is --rolltop-listen here, and --rolltop uses one that runs already",
    )?;
    let url = format!("http://{}", application.address());
    tokio::spawn(application.run_until_stopped(async || drop(tokio::signal::ctrl_c().await)));
    Ok(url)
}
