//! How an embedded store is opened.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::store::{ClockMode, Limits};

/// How an [`Embedded`](super::Embedded) store is opened.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The data directory; made if it does not exist. One process at a time may have it.
    pub path: PathBuf,
    pub clock: ClockMode,
    pub durability: Durability,
    pub limits: Limits,
    /// Where backups go; `None`: there are none.
    pub backup_dir: Option<PathBuf>,
    /// Whether to believe the system clock at the start, however far it is ahead of the last recorded time.
    pub trust_clock: bool,
}

impl EmbeddedOptions {
    /// Options for a data directory, with defaults for everything else.
    pub fn new(path: impl Into<PathBuf>, clock: ClockMode) -> Self {
        Self {
            path: path.into(),
            clock,
            durability: Durability::default(),
            limits: Limits::default(),
            backup_dir: None,
            trust_clock: false,
        }
    }
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// A power loss: each write is synced to the disk before it is acknowledged, many together.
    Always,
    /// A crash of the process at any time; a power loss except for the last second and the duration of a sync.
    #[default]
    #[serde(rename = "everysec")]
    EverySecond,
    /// Nothing for sure: a write is acknowledged before it leaves the process. For data that can be replayed.
    Off,
}

/// A text that names no [`Durability`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a durability: write always, everysec or off")]
pub struct DurabilityError(String);

impl FromStr for Durability {
    type Err = DurabilityError;

    fn from_str(text: &str) -> Result<Self, DurabilityError> {
        match text {
            "always" => Ok(Durability::Always),
            "everysec" => Ok(Durability::EverySecond),
            "off" => Ok(Durability::Off),
            _ => Err(DurabilityError(text.chars().take(64).collect())),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Always => "always",
            Durability::EverySecond => "everysec",
            Durability::Off => "off",
        })
    }
}
