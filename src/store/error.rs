//! The errors of a store, and whether a retry may help.

use std::time::Duration;

use super::TableName;
use crate::board::{Moderation, Position, Timestamp};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// An error of a store. The message names the cause. The names of settings and paths of the API that change the
/// outcome are added where they are known: by `http` and `app`.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The board of that generation no longer exists. The caller must look it up again.
    #[error("the board was removed or defined again in the meantime")]
    BoardChanged,
    /// The editions of the board have changed. Nothing of this call was done, and nothing that was counted is gone. The
    /// caller must look the board up again. Writes never return it, because the store does that for them.
    #[error("the board's editions have changed in the meantime")]
    StaleEpoch,
    /// The editions of the board cannot be exchanged now. Nothing of this call was done.
    #[error("{detail}")]
    EditionsBusy { detail: String },
    /// The data of the board is being copied to another number of shards. Nothing of this call was done.
    #[error(
        "the board is frozen while its data is copied to {shards} shards; nothing of it is lost, and writes are accepted again when that has ended"
    )]
    Frozen { shards: u32, retry_after: Duration },
    /// The requested window reaches back before the board's window.
    #[error("the board's window starts at {floor}")]
    BeyondWindow { floor: Timestamp },
    /// The requested time is earlier than the simulated clock, which only moves forward.
    #[error("the clock reads {now}; it moves forward only")]
    ClockBackward { now: Timestamp },
    /// The clock cannot be set because the store runs on the system clock.
    #[error("the store runs on the system clock, which cannot be set")]
    ClockNotSimulated,
    /// The store was created with the other clock mode.
    #[error("the store was made with a {stored} clock and cannot be opened with a {wanted} one")]
    ClockModeMismatch { stored: &'static str, wanted: &'static str },
    /// Too many writes are waiting already. Nothing of this call was done.
    #[error("too many writes are waiting for the store; try again shortly")]
    Overloaded { retry_after: Duration },
    /// There is no connection. Nothing of this call was done.
    #[error("cannot reach the store at {at}: {source}")]
    Unreachable { at: String, source: Source },
    /// The store did not respond in time. It is unknown whether a write was done.
    #[error(
        "the store at {at} did not answer in time; whether a write was done is unknown: repeat it with the same id to be safe"
    )]
    TimedOut { at: String },
    /// The store refuses writes: memory or disk is full, or the store is read-only after a failed write.
    #[error("the store takes no writes: {reason}")]
    ReadOnly { reason: String },
    /// The data has nearly reached the limit of the memory. Nothing of this call was done.
    #[error(
        "the data has nearly reached memory_limit: new subjects, boards, values and attributes are refused until data expires, boards or subjects are removed, or the limit is raised"
    )]
    MemoryFull,
    /// The first readings of the system clock after a start are ahead of the last recorded time by more than a window.
    /// Nothing of this call was done.
    #[error(
        "the system clock reads {reading}, but {recorded} was the last time recorded; writes are accepted once the clock has advanced consistently for a minute"
    )]
    ClockDoubted { reading: Timestamp, recorded: Timestamp, retry_after: Duration },
    /// This store does not support the operation. The message names a tool that does.
    #[error("{detail}")]
    Unsupported { detail: String },
    /// No directory for backups is configured.
    #[error("no directory for backups is configured")]
    NoBackupDirectory,
    /// The backup failed. The store continues as before.
    #[error("the backup was not made: {detail}")]
    BackupFailed { detail: String },
    /// The walk over the contents of a track cannot continue.
    #[error("the walk over the board's contents cannot continue where it was; begin it again")]
    WalkLost,
    /// An import into the board is open. Nothing of this call was done.
    #[error("contents are being imported into the board: until that has ended, samples and removals are refused")]
    ImportOpen,
    /// The import is not open, or the board takes none. Nothing of this call was done.
    #[error("{detail}")]
    NoImport { detail: String },
    /// The board has not reached the position after which a portion of a source begins, or, without a position, has not
    /// joined the source.
    #[error("{}", behind(*.at))]
    SourceBehind { at: Option<Position> },
    /// The id or a text of a row is too long, or the id is empty. Nothing of this call was done.
    #[error("{detail}")]
    InvalidRow { detail: String },
    /// The table has as many rows, or bytes, as a table can have. Nothing of this call was done.
    #[error(
        "the table '{table}' is full: it can have {} rows, and {} bytes of ids and texts together; remove rows first",
        TableName::MAX_ROWS,
        TableName::MAX_BYTES
    )]
    TableFull { table: TableName },
    /// Something is set for as many subjects of the board as may be. Some of the changes of the call may be done.
    #[error("at most {} subjects of a board can be hidden or frozen; show or unfreeze some first", Moderation::MOST)]
    TooManyModerated,
    /// The definition of this board cannot be read. Nothing of this call was done.
    #[error(
        "the definition of board '{name}' cannot be read: {reason}; if a newer version of the service wrote it, upgrade this instance; if it is damaged, restore the definition in the store or remove the board's keys"
    )]
    Unreadable { name: String, reason: String },
    /// The sheets of a packed period are not what this version wrote.
    #[error(
        "period {period} of board '{name}' cannot be read: {detail}; everything else of the board can; an audit of the period names each damaged sheet, with repair=true it writes those again that follow from others, and the rest is restored from a backup of the store"
    )]
    DamagedPeriod { name: String, period: String, detail: String },
    /// The store's data was deleted from outside the service.
    #[error("the store at {at} was emptied: the boards of the configuration are being defined again")]
    Emptied { at: String },
    /// The store's data is not what this version wrote.
    #[error("the store's data is damaged: {detail}")]
    Corrupt { detail: String },
    /// The data directory is in use, or was written by a version that this one cannot read. Found when the store is
    /// opened.
    #[error("{detail}")]
    DataDirectory { detail: String },
    /// The configuration is wrong. Found when the store is opened.
    #[error("{detail}")]
    Setup { detail: String },
    /// Any other error of the backend.
    #[error("the store failed: {source}")]
    Backend { source: Source },
}

fn behind(at: Option<Position>) -> String {
    match at {
        Some(at) => format!("the board has reached position {at} of the source only; go on from there"),
        None => "the board has reached nothing of the source".to_owned(),
    }
}

impl StoreError {
    /// Returns whether the same call may succeed later without any other change.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            StoreError::Overloaded { .. }
                | StoreError::Frozen { .. }
                | StoreError::Unreachable { .. }
                | StoreError::TimedOut { .. }
                | StoreError::ReadOnly { .. }
                | StoreError::MemoryFull
                | StoreError::ClockDoubted { .. }
                | StoreError::Emptied { .. }
        )
    }

    /// Returns how long a client should wait before it retries, for a transient error.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            StoreError::Overloaded { retry_after }
            | StoreError::Frozen { retry_after, .. }
            | StoreError::ClockDoubted { retry_after, .. } => Some(*retry_after),
            StoreError::MemoryFull => Some(Duration::from_secs(10)),
            _ if self.is_transient() => Some(Duration::from_secs(1)),
            _ => None,
        }
    }
}
