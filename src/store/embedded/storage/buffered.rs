//! Sequential reading of a file in bounded memory.

use std::sync::Arc;

use super::damage::{Context, StorageError};
use super::files::File;

/// The bytes read from the file at a time, unless more are requested at once.
const CHUNK: usize = 1 << 20;

/// A file and the part of it that is in memory: `CHUNK` bytes, or the largest number requested at once.
#[derive(Debug)]
pub(crate) struct Buffered {
    file: Arc<dyn File>,
    name: String,
    len: u64,
    /// The position in the file of the first buffered byte.
    offset: u64,
    buffer: Vec<u8>,
    /// The number of bytes at the start of the buffer that are consumed.
    consumed: usize,
}

impl Buffered {
    /// Creates a reader that begins at an offset. `name` is for messages. The file's length is read here: bytes that
    /// are appended later are not seen.
    pub(crate) fn new(file: Arc<dyn File>, name: String, offset: u64) -> Result<Self, StorageError> {
        let len = file.len().context("read the length of", &name)?;
        Ok(Self { file, name, len, offset, buffer: Vec::new(), consumed: 0 })
    }

    /// Returns the name given.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the position of the next byte in the file.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.consumed as u64
    }

    /// Returns the number of bytes up to the end of the file.
    pub(crate) fn remaining(&self) -> u64 {
        self.len.saturating_sub(self.position())
    }

    /// Returns the next `count` bytes, or all that follow if there are fewer, without consuming them. `count` bytes are
    /// kept in memory, so the caller must limit it.
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8], StorageError> {
        let count = usize::try_from(self.remaining()).map_or(count, |rest| rest.min(count));
        if self.buffer.len() - self.consumed < count {
            self.fill(count)?;
        }
        let have = (self.buffer.len() - self.consumed).min(count);
        Ok(&self.buffer[self.consumed..self.consumed + have])
    }

    /// Consumes bytes returned by [`peek`](Self::peek).
    pub(crate) fn consume(&mut self, count: usize) {
        self.consumed = (self.consumed + count).min(self.buffer.len());
    }

    /// Reads until `count` bytes are buffered, or the file ends.
    fn fill(&mut self, count: usize) -> Result<(), StorageError> {
        self.buffer.drain(..self.consumed);
        self.offset += self.consumed as u64;
        self.consumed = 0;
        let mut have = self.buffer.len();
        let rest = usize::try_from(self.len.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let wanted = count.max(CHUNK).min(rest);
        self.buffer.resize(wanted.max(have), 0);
        while have < count {
            let read = self.file.read_at(&mut self.buffer[have..], self.offset + have as u64);
            match read.context("read", &self.name) {
                // The file became shorter while it was being read.
                Ok(0) => break,
                Ok(read) => have += read,
                Err(error) => {
                    self.buffer.truncate(have);
                    return Err(error);
                }
            }
        }
        self.buffer.truncate(have);
        Ok(())
    }
}
