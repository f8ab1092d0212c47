//! The options of an embedded store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::board::spellings::spellings;
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
    /// The bytes of data from which everything is refused that takes memory. From nine tenths of it on, new subjects,
    /// boards and values are refused. If `None`, four fifths of what the process may take: the least of the machine's
    /// memory and of the limits of its control groups and their parents.
    pub memory_limit: Option<usize>,
    /// The largest number of subjects of a ranked board. Beyond it, new subjects are refused.
    pub max_subjects: Option<usize>,
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
            memory_limit: None,
            max_subjects: None,
        }
    }
}

/// The conditions under which boards are checkpointed, and the size of the log's segments.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A board is checkpointed when its part of the log has more bytes than this and than its last checkpoint.
    pub log_bytes: u64,
    /// The bytes of a segment of the log; less on a small disk.
    pub segment_bytes: u64,
    /// A board is checkpointed when its part of the log is older than this, so that expired data is removed from the
    /// disk.
    pub age: Duration,
    /// The time after which a caller that waits for the disk gets the outcome "unknown".
    pub unknown_after: Duration,
    /// The interval at which the thread checks whether a board is due for a checkpoint.
    pub tick: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            log_bytes: 64 << 20,
            segment_bytes: 32 << 20,
            age: Duration::from_secs(3_600),
            unknown_after: Duration::from_secs(10),
            tick: Duration::from_millis(100),
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

spellings! {
    Durability { Always = "always", EverySecond = "everysec", Off = "off" }
    print as_str;
    parse of;
}

/// The error that a text names no [`Durability`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown durability '{0}'; expected always, everysec or off")]
pub struct DurabilityError(String);

impl FromStr for Durability {
    type Err = DurabilityError;

    fn from_str(text: &str) -> Result<Self, DurabilityError> {
        Durability::of(text).ok_or_else(|| DurabilityError(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
