//! Backups: a copy of the data directory as it is at one instant, made while reads and writes continue.
//!
//! The log is continued in a new segment, and the segments before it are synced. From then on the files that the
//! manifest needs do not change, so they are hard-linked into the backup. Nothing is deleted in the meantime, because
//! the same thread deletes files. The backup's manifest is installed last: without it an unfinished backup is not a
//! valid data directory.

use std::path::Path;
use std::thread;
use std::time::Duration;

use chrono::Utc;

use super::super::storage::checkpoint::{CHECKPOINTS, IDS};
use super::super::storage::damage::{Context, StorageError};
use super::super::storage::files::{Files, link_or_copy};
use super::super::storage::log::{DIRECTORY, LogStart, segment_name};
use super::super::storage::manifest::{MANIFEST, MANIFEST_NEW, Manifest};
use super::checkpointer::Checkpointer;
use super::log_progress::Segment;
use crate::store::{BackedUp, Result, StoreError};

/// The time to wait for the log.
const LOG_TIMEOUT: Duration = Duration::from_secs(30);

impl Checkpointer {
    /// Makes a backup in a new directory below the configured one.
    pub(super) fn back_up(&mut self) -> Result<BackedUp> {
        let Some(directory) = self.backup_dir.clone() else {
            return Err(StoreError::NoBackupDirectory);
        };
        if let Some(reason) = self.journal.refusal() {
            return Err(StoreError::ReadOnly { reason });
        }
        let manifest = self.seal_log()?;
        // The path is returned to clients, for which a relative path would mean a different directory.
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        self.copy(&directory, &manifest).map_err(|error| {
            tracing::error!(directory = %directory.display(), %error, "a backup failed");
            StoreError::BackupFailed { detail: format!("in {}: {error}", directory.display()) }
        })
    }

    /// Continues the log in a new segment. Returns the manifest of the state before that.
    fn seal_log(&self) -> Result<Manifest> {
        let no_answer = || {
            let detail = format!("the disk has not confirmed the log within {} s", LOG_TIMEOUT.as_secs());
            StoreError::BackupFailed { detail }
        };
        // Everything appended before the request, acknowledged or not, is part of the backup.
        let appended = self.journal.last_sequence();
        self.journal.wake();
        if !self.progress.wait_for(appended, LOG_TIMEOUT) {
            return Err(no_answer());
        }
        let after = self.next_segment().ok_or_else(no_answer)?;
        let last = after.first - 1;
        if !self.progress.wait_for(last, LOG_TIMEOUT) {
            return Err(no_answer());
        }
        // The log of the backup is complete. With this `synced_seq`, the loss of one of its segments will be detected.
        let log_start = LogStart { synced_seq: last, ..self.manifest.log_start };
        Ok(Manifest { log_start, clock: self.recorded(), ..self.manifest.clone() })
    }

    /// Returns a segment that begins after all frames written so far: the current one if it has no frames yet,
    /// otherwise a new one. Returns `None` if there is none in time.
    fn next_segment(&self) -> Option<Segment> {
        let written = self.progress.written();
        let current = self.progress.segments().pop();
        if let Some(empty) = current.filter(|segment| segment.first > written) {
            return Some(empty);
        }
        let before = self.progress.request_rotation();
        self.journal.wake();
        self.progress.wait_for_segment_after(before, LOG_TIMEOUT)
    }

    /// Copies the files that a manifest names, and the manifest, into a new directory. If that fails, the copies are
    /// removed again.
    fn copy(&self, directory: &Path, manifest: &Manifest) -> Result<BackedUp, StorageError> {
        let parent = self.files.rooted(directory);
        let name = create_named_by_time(&*parent)?;
        let target = self.files.rooted(&directory.join(&name));
        let named = self.needed_files(manifest);
        match self.copy_files(&*target, manifest, &named) {
            Ok(bytes) => {
                let files = named.len() as u64 + 1;
                tracing::info!(backup = name, files, bytes, "backup completed");
                Ok(BackedUp { path: directory.join(name), files, bytes })
            }
            Err(error) => {
                // The manifest is removed first: if other files cannot be removed after that, the directory is not a
                // data directory.
                for file in [MANIFEST, MANIFEST_NEW].into_iter().chain(named.iter().map(String::as_str)) {
                    target.remove(file).ok();
                }
                Err(error)
            }
        }
    }

    /// Returns the files that a data directory with this manifest has, without the manifest itself.
    fn needed_files(&self, manifest: &Manifest) -> Vec<String> {
        let LogStart { segment: first, synced_seq: last, .. } = manifest.log_start;
        let segments = self.progress.segments();
        let needed = segments.iter().filter(|segment| segment.number >= first && segment.first <= last);
        let mut named: Vec<String> = needed.map(|segment| segment_name(segment.number)).collect();
        for board in &manifest.boards {
            named.extend(board.files().map(|(name, _, _)| name.to_owned()));
        }
        named
    }

    /// Copies the files, then the manifest, and syncs all of them. Returns the number of bytes.
    fn copy_files(&self, target: &dyn Files, manifest: &Manifest, named: &[String]) -> Result<u64, StorageError> {
        for directory in [DIRECTORY, CHECKPOINTS, IDS] {
            target.create_dir(directory).context("create", directory)?;
        }
        let mut bytes = 0;
        let mut add_len = |name: &str| {
            bytes += target.open(name).and_then(|file| file.len()).context("read the length of", name)?;
            Ok(())
        };
        for file in named {
            if self.journal.is_stopping() {
                return Err(std::io::Error::other("the store is being closed")).context("copy", file);
            }
            link_or_copy(&*self.files, file, target, file).context("copy", file)?;
            add_len(file)?;
        }
        for directory in [DIRECTORY, CHECKPOINTS, IDS] {
            target.sync_dir(directory).context("sync", directory)?;
        }
        manifest.install(target)?;
        add_len(MANIFEST)?;
        Ok(bytes)
    }
}

/// Creates a directory with the current time as its name. Returns the name.
fn create_named_by_time(parent: &dyn Files) -> Result<String, StorageError> {
    loop {
        let name = Utc::now().format("%Y%m%dT%H%M%S%3fZ").to_string();
        if !parent.exists(&name).context("look for", &name)? {
            parent.create_dir(&name).context("create", &name)?;
            return Ok(name);
        }
        // The name was taken in this millisecond, perhaps by another store.
        thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests;
