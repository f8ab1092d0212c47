//! What can go wrong in a store, and whether trying again may help.

use std::time::Duration;

use crate::board::Timestamp;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// A failure of a store. The message names the thing and the way out.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The board of that generation is gone: look it up again.
    #[error("the board was removed or defined anew meanwhile")]
    BoardChanged,
    /// A shorter window was asked for that reaches back before the board's.
    #[error("the board's window starts at {floor}")]
    BeyondWindow { floor: Timestamp },
    /// A simulated clock moves forward only.
    #[error("the clock reads {now}; it moves forward only")]
    ClockBackward { now: Timestamp },
    /// The store runs on the system clock.
    #[error("the store runs on the system clock, which cannot be set")]
    ClockNotSimulated,
    /// The store was made with the other clock mode.
    #[error(
        "the store was made with a {stored} clock and cannot be opened with a {wanted} one; use another store (--data-dir, --redis-prefix), or the same --clock"
    )]
    ClockModeMismatch { stored: &'static str, wanted: &'static str },
    /// Too much is waiting already; nothing of this call was done.
    #[error("too many writes are waiting for the store; try again shortly")]
    Overloaded { retry_after: Duration },
    /// No connection; nothing of this call was done.
    #[error("cannot reach the store at {at}: {source}")]
    Unreachable { at: String, source: Source },
    /// The store did not answer in time. A write may or may not have been done.
    #[error(
        "the store at {at} did not answer in time; whether a write was done is unknown: repeat it with the same id to be safe"
    )]
    TimedOut { at: String },
    /// The store refuses writes: memory or disk full, or read-only after a failed write.
    #[error("the store takes no writes: {reason}")]
    ReadOnly { reason: String },
    /// The system clock, read after a start, is further ahead of the last recorded time than a window; nothing of this
    /// call was done.
    #[error(
        "the system clock reads {reading}, but {recorded} was the last time recorded; writes are accepted once the clock has advanced consistently for a minute"
    )]
    ClockDoubted { reading: Timestamp, recorded: Timestamp, retry_after: Duration },
    /// The store cannot do this at all; another tool can.
    #[error("{detail}")]
    Unsupported { detail: String },
    /// A backup was not made; the store goes on as before.
    #[error("the backup was not made: {detail}")]
    BackupFailed { detail: String },
    /// The definition of this one board cannot be read; nothing of this call was done.
    #[error(
        "the definition of board '{name}' cannot be read: {reason}; if a newer version of the service wrote it, upgrade this instance; if it is damaged, restore the definition in the store or remove the board's keys"
    )]
    Unreadable { name: String, reason: String },
    /// The store was emptied behind the service's back.
    #[error("the store at {at} was emptied: the boards of the configuration are being defined again")]
    Emptied { at: String },
    /// What the store holds is not what this version wrote.
    #[error("the store's data is damaged: {detail}")]
    Corrupt { detail: String },
    /// Wrong set-up, found when opening.
    #[error("{detail}")]
    Setup { detail: String },
    /// Anything else the backend said.
    #[error("the store failed: {source}")]
    Backend { source: Source },
}

impl StoreError {
    /// Whether the same call may succeed later without anything else changing.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            StoreError::Overloaded { .. }
                | StoreError::Unreachable { .. }
                | StoreError::TimedOut { .. }
                | StoreError::ReadOnly { .. }
                | StoreError::ClockDoubted { .. }
                | StoreError::Emptied { .. }
        )
    }

    /// When a client should try again, for a transient failure.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            StoreError::Overloaded { retry_after } | StoreError::ClockDoubted { retry_after, .. } => Some(*retry_after),
            _ if self.is_transient() => Some(Duration::from_secs(1)),
            _ => None,
        }
    }
}
