//! The thread that syncs the log to the disk, and creates its next segment.
//!
//! `fdatasync` may take long, or never return on a disk that hangs. The thread that writes the log calls it only when
//! it begins a segment that was not prepared. So a write that needs no confirmation from the disk hardly ever waits for
//! a sync.

use std::sync::Arc;
use std::time::Duration;

use super::super::options::Durability;
use super::super::storage::damage::{Context, StorageError};
use super::super::storage::files::Files;
use super::super::storage::log::{DIRECTORY, SpareFile, segment_name};
use super::journal::Journal;
use super::log_progress::{LogProgress, SyncTask, Work};

/// The longest time for which written frames stay unsynced if no caller waits for them.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Syncer {
    pub files: Arc<dyn Files>,
    pub journal: Arc<Journal>,
    pub progress: Arc<LogProgress>,
    pub durability: Durability,
}

impl Syncer {
    /// Runs until the log is stopped and everything in it is synced.
    pub(super) fn run(self) {
        let every = (self.durability != Durability::Always).then_some(SYNC_EVERY);
        while let Some(work) = self.progress.next_work(every) {
            match work {
                Work::Sync(due) => self.sync(&due),
                Work::CreateSpare { number, bytes } => {
                    let made = SpareFile::create(&*self.files, number, bytes);
                    self.progress.spare_created(made.context("create", &segment_name(number)));
                }
            }
        }
    }

    fn sync(&self, due: &SyncTask) {
        match self.sync_files(due) {
            Ok(()) => {
                if self.progress.synced(due) {
                    self.journal.confirmed(|| self.progress.oldest_unconfirmed());
                    self.journal.acknowledge(due.through);
                }
            }
            Err(error) => {
                tracing::error!(%error, "a sync failed; unconfirmed frames are written again");
                self.progress.sync_failed(due, error.to_string());
                self.journal.wake();
            }
        }
    }

    /// Syncs all segments of `due`, oldest first, then their directory.
    fn sync_files(&self, due: &SyncTask) -> Result<(), StorageError> {
        for file in &due.files {
            file.sync_data().context("sync", "a segment of the log")?;
        }
        if due.directory {
            self.files.sync_dir(DIRECTORY).context("sync", DIRECTORY)?;
        }
        Ok(())
    }
}
