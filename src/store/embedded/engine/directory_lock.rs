//! The lock of a data directory, which keeps other processes out of it.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::super::storage::files::Files;
use crate::store::{Result, StoreError};

/// The time to wait for a lock whose holder is about to end: a process that is being restarted, or a child between its
/// fork and its exec, which holds every open file of its parent.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_RETRY_EVERY: Duration = Duration::from_millis(20);

/// Locks the directory of a store for this process. Blocks for up to [`LOCK_TIMEOUT`].
pub(super) fn lock(files: &dyn Files, place: &Path) -> Result<Option<Arc<File>>> {
    if files.is_simulated() { Ok(None) } else { lock_existing(place).map(|lock| Some(Arc::new(lock))) }
}

/// Locks an existing directory for this process. Blocks for up to [`LOCK_TIMEOUT`].
pub(super) fn lock_existing(place: &Path) -> Result<File> {
    let cannot = |error| setup_error(place, "cannot lock the data directory", error);
    let file = File::options().create(true).truncate(false).write(true).open(place.join("lock")).map_err(cannot)?;
    let started = Instant::now();
    let mut locked = file.try_lock();
    while matches!(locked, Err(TryLockError::WouldBlock)) && started.elapsed() < LOCK_TIMEOUT {
        thread::sleep(LOCK_RETRY_EVERY);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
        Err(TryLockError::WouldBlock) => Err(StoreError::DataDirectory {
            detail: format!("{}: another process has this data directory open", place.display()),
        }),
    }
}

/// Returns the error that a directory cannot be opened.
pub(super) fn setup_error(place: &Path, what: &str, error: std::io::Error) -> StoreError {
    StoreError::Setup { detail: format!("{}: {what}: {error}", place.display()) }
}
