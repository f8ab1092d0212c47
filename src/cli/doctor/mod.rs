//! `rolltop doctor`: looks at everything around a service that can keep it from serving, and says what to do.
//!
//! It reads and measures; it defines nothing and opens no store. So it can be run before the first start, and beside a
//! service that runs.

mod finding;
mod folders;
mod machine;
mod redis;
mod service;

use std::path::PathBuf;

use anyhow::anyhow;

use self::finding::{Finding, Findings, Level};
use crate::config::{Config, Settings, StoreChoice};

use super::CommandError;
use super::output::say;

/// Check the machine, the disk, Redis, keys and a running service, each with what to do: exit code 0 if nothing is
/// wrong, 1 if something is. Takes the same configuration as `serve`, so run it as the user of the service.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// The configuration file [default: config/rolltop.toml if it exists, otherwise the built-in copy]
    #[arg(long, env = "ROLLTOP_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(args: DoctorArgs) -> Result<(), CommandError> {
    let config =
        Config::load(args.config.as_deref(), args.settings).map_err(|error| CommandError::WrongConfig(error.into()))?;
    let mut settings = Findings::about("settings");
    settings.good(format!("{} is valid, with {} boards", config.source, config.boards.len()));
    let mut found = settings.found;
    found.extend(machine::look(&config));
    match &config.store {
        StoreChoice::Embedded => found.extend(folders::look(&config)),
        StoreChoice::Redis(url) => found.extend(redis::look(&config, url).await),
    }
    found.extend(service::look(&config).await);

    for Finding { level, about, text } in &found {
        say!("{level:<8} {about:<9} {text}")?;
    }
    let count = |level| found.iter().filter(|finding| finding.level == level).count();
    let warnings = match count(Level::Warning) {
        0 => String::new(),
        1 => ", and there is 1 warning".to_owned(),
        warnings => format!(", and there are {warnings} warnings"),
    };
    match count(Level::Wrong) {
        0 => Ok(say!("Nothing is wrong{warnings}.")?),
        1 => Err(CommandError::Failed(anyhow!("1 thing is wrong{warnings}"))),
        wrong => Err(CommandError::Failed(anyhow!("{wrong} things are wrong{warnings}"))),
    }
}
