//! `rolltop check`: validates a configuration and prints it.

use std::path::PathBuf;

use crate::config::{Config, Settings};

use super::CommandError;

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
    println!("{} is valid: {:?} store, listening on {}", config.source, config.store, config.listen);
    for (name, definition) in &config.boards {
        match definition.slot {
            Some(slot) => println!("  {name}: {}, slot {slot}, {}", definition.metric, definition.timezone),
            None => println!("  {name}: {}", definition.metric),
        }
    }
    for (name, rule) in &config.rules {
        println!("  {name}: {}", rule.rule);
    }
    Ok(())
}
