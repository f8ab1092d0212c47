//! `rolltop check`: validates a configuration and prints it.

use std::path::PathBuf;

use crate::config::{Config, Settings};

use super::CommandError;
use super::output::say;

/// The configuration to check.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The configuration file [default: config/rolltop.toml if it exists, otherwise the built-in copy]
    #[arg(long, env = "ROLLTOP_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

pub(super) fn run(args: CheckArgs) -> Result<(), CommandError> {
    let config =
        Config::load(args.config.as_deref(), args.settings).map_err(|error| CommandError::WrongConfig(error.into()))?;
    say!("{} is valid: {:?} store, listening on {}", config.source, config.store, config.listen)?;
    for (name, definition) in &config.boards {
        match definition.slot {
            Some(slot) => say!("  {name}: {}, slot {slot}, {}", definition.metric, definition.timezone)?,
            None => say!("  {name}: {}", definition.metric)?,
        }
    }
    for (name, rule) in &config.rules {
        say!("  {name}: {}", rule.rule)?;
    }
    Ok(())
}
