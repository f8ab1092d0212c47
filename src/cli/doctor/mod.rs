//! `rolltop doctor`: looks at everything around a service that can keep it from serving, and says what to do.
//!
//! It reads and measures; it defines nothing and opens no store. So it can be run before the first start, and beside a
//! service that runs.

mod folders;
mod machine;
mod redis;
mod service;

use std::fmt;
use std::path::PathBuf;

use anyhow::anyhow;

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

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Good,
    /// The service runs, but not for long, not well, or not as one would think.
    Warning,
    /// The service does not start, or does not serve.
    Wrong,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Level::Good => "ok",
            Level::Warning => "warning",
            Level::Wrong => "WRONG",
        })
    }
}

/// One thing that was looked at.
#[derive(Debug)]
struct Finding {
    level: Level,
    /// What it is about, in one word.
    about: &'static str,
    /// What was found, and if that is not good what to do.
    text: String,
}

/// The findings about one thing.
#[derive(Debug)]
struct Findings {
    about: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    fn about(about: &'static str) -> Self {
        Self { about, found: Vec::new() }
    }

    fn add(&mut self, level: Level, text: impl Into<String>) {
        self.found.push(Finding { level, about: self.about, text: text.into() });
    }

    fn good(&mut self, text: impl Into<String>) {
        self.add(Level::Good, text);
    }

    fn warning(&mut self, text: impl Into<String>) {
        self.add(Level::Warning, text);
    }

    fn wrong(&mut self, text: impl Into<String>) {
        self.add(Level::Wrong, text);
    }
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

/// Writes a number of bytes as people do.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{} KiB", bytes / 1_024),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes: Vec<_> = [0, 1_536, 5 << 20, (3 << 30) / 2, 7 << 40].into_iter().map(size).collect();
        assert_eq!(sizes, ["0 KiB", "1 KiB", "5.0 MiB", "1.5 GiB", "7.0 TiB"]);
    }
}
