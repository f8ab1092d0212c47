//! The options of an embedded store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::store::{ClockMode, Limits};

/// The options for opening an [`Embedded`](super::Embedded) store.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The data directory, created if it does not exist. Only one process at a time can have it open.
    pub path: PathBuf,
    pub clock: ClockMode,
    pub durability: Durability,
    pub limits: Limits,
    /// The directory of backups. If `None`, backups cannot be made.
    pub backup_dir: Option<PathBuf>,
    /// Whether to believe the system clock at the start, however far it is ahead of the last recorded time.
    pub trust_clock: bool,
}

impl EmbeddedOptions {
    /// Creates options for a data directory, with defaults for everything else.
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

/// The failures that an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Power loss: each write is synced to the disk before it is acknowledged, many writes together.
    Always,
    /// A crash of the process at any time. After a power loss, the writes of the last second and of the duration of a
    /// sync may be lost.
    #[default]
    #[serde(rename = "everysec")]
    EverySecond,
    /// Nothing for certain: a write is acknowledged before it leaves the process. For data that can be sent again.
    Off,
}

/// The error that a text names no [`Durability`].
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
