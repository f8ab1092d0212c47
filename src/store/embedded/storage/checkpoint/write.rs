//! Writing a file of blocks.

use std::io;
use std::sync::Arc;

use super::super::damage::{Context, StorageError};
use super::super::files::{File, Files};
use super::{FileIdentity, MAX_BLOCK, Summary, block_checksum, u32_at};

/// The bytes written at a time, at least.
const WRITE: usize = 1 << 20;
/// The bytes after which the file is synced. Syncs must not be rare, because a sync of the log has to wait for large
/// amounts of unsynced data.
const SYNC: u64 = 16 << 20;

/// A writer of a file of blocks. If it is dropped before it is finished, it removes the file.
#[derive(Debug)]
pub(crate) struct CheckpointWriter {
    files: Arc<dyn Files>,
    file: Arc<dyn File>,
    name: String,
    buffer: Vec<u8>,
    /// The bytes written before those in the buffer.
    written: u64,
    synced: u64,
    crc: u32,
    summary: Summary,
    /// Whether an error occurred, after which a part may be missing. Nothing more is written then.
    failed: bool,
    finished: bool,
}

impl CheckpointWriter {
    /// Creates the file. An existing file of that name, left by a crash, is removed first.
    pub(crate) fn create(files: Arc<dyn Files>, name: &str, subject: FileIdentity) -> Result<Self, StorageError> {
        match files.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("remove", name)?,
            _ => {}
        }
        let file = files.create_new(name).context("create", name)?;
        let header = subject.header();
        Ok(Self {
            files,
            file,
            name: name.to_owned(),
            buffer: header.to_vec(),
            written: 0,
            synced: 0,
            crc: u32_at(&header, 12),
            summary: Summary::default(),
            failed: false,
            finished: false,
        })
    }

    /// Adds a block. It may stay in memory, because 1 MB is written at a time.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the block is empty or has more than [`MAX_BLOCK`] bytes, and any error of the disk.
    /// After an error the file cannot be used.
    pub(crate) fn block(&mut self, payload: &[u8]) -> Result<(), StorageError> {
        if payload.is_empty() || payload.len() > MAX_BLOCK {
            let what = format!("a block of {} bytes, not of 1 to {MAX_BLOCK}", payload.len());
            self.failed = true;
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what)).context("write", &self.name);
        }
        self.crc = block_checksum(self.crc, payload);
        self.buffer.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(&self.crc.to_le_bytes());
        self.buffer.extend_from_slice(payload);
        self.summary.blocks += 1;
        self.summary.bytes += payload.len() as u64;
        if self.buffer.len() >= WRITE {
            self.write()?;
        }
        if self.written - self.synced >= SYNC {
            self.sync()?;
        }
        Ok(())
    }

    /// Writes the footer, and syncs the file and its name. `records` is the number of records in the blocks, for the
    /// reader. Returns the bytes of the file.
    pub(crate) fn finish(mut self, records: u64) -> Result<u64, StorageError> {
        self.summary.records = records;
        let footer = self.summary.footer(self.crc);
        self.buffer.extend_from_slice(&footer);
        self.write()?;
        self.sync()?;
        let directory = self.name.rsplit_once('/').map_or("", |(directory, _)| directory);
        self.files.sync_dir(directory).context("sync the directory of", &self.name)?;
        self.finished = true;
        Ok(self.written)
    }

    fn write(&mut self) -> Result<(), StorageError> {
        self.check()?;
        let result = self.file.write_all_at(&self.buffer, self.written);
        self.failed = result.is_err();
        result.context("write", &self.name)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        self.check()?;
        let result = self.file.sync_data();
        self.failed = result.is_err();
        self.synced = self.written;
        result.context("sync", &self.name)
    }

    fn check(&self) -> Result<(), StorageError> {
        if self.failed {
            return Err(io::Error::other("an earlier part was not written")).context("write", &self.name);
        }
        Ok(())
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        if !self.finished {
            // If this fails, the file is garbage, which the next start removes.
            let _ = self.files.remove(&self.name);
        }
    }
}
