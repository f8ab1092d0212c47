//! Reads a file of blocks.

use std::io;

use super::super::buffered::Buffered;
use super::super::damage::{Context, StorageError};
use super::super::files::Files;
use super::{
    BLOCK_HEADER, FOOTER, FOOTER_TAG, FileIdentity, HEADER, MAGIC, MAX_BLOCK, Summary, VERSION, block_checksum,
    footer_checksum, header_checksum, u32_at, u64_at,
};

/// A reader of a file of blocks. It needs memory for the largest block, at least 1 MB.
#[derive(Debug)]
pub(crate) struct CheckpointReader {
    bytes: Buffered,
    /// The position of the footer.
    end: u64,
    crc: u32,
    /// The summary from the footer. It is verified after the last block.
    summary: Summary,
    read: Summary,
    footer: [u8; FOOTER],
    /// The bytes of the block that was returned last.
    returned: usize,
}

impl CheckpointReader {
    /// Opens a file and checks its header. `bytes` is its length according to the manifest.
    ///
    /// # Errors
    /// Returns `Damaged` if the file is missing, or its length or header is not as expected, and `Newer` if a later
    /// version of the program wrote it.
    pub(crate) fn open(
        files: &dyn Files,
        name: &str,
        subject: FileIdentity,
        bytes: Option<u64>,
    ) -> Result<Self, StorageError> {
        let file = match files.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StorageError::damaged(name, 0, "the file is missing"));
            }
            file => file.context("open", name)?,
        };
        let len = file.len().context("read the length of", name)?;
        if let Some(expected) = bytes.filter(|bytes| *bytes != len) {
            return Err(StorageError::damaged(name, len.min(expected), format!("it has {len} bytes, not {expected}")));
        }
        let end = len.checked_sub(FOOTER as u64).filter(|end| *end >= HEADER as u64);
        let end = end.ok_or_else(|| StorageError::damaged(name, len, "it is too short"))?;
        let mut footer = [0; FOOTER];
        file.read_exact_at(&mut footer, end).context("read", name)?;
        let mut bytes = Buffered::new(file, name.to_owned(), 0)?;
        let crc = check_header(bytes.peek(HEADER)?, name, subject)?;
        bytes.consume(HEADER);
        if u32_at(&footer, 0) != FOOTER_TAG {
            return Err(StorageError::damaged(name, end, "its footer is missing"));
        }
        let summary = Summary { blocks: u64_at(&footer, 8), records: u64_at(&footer, 16), bytes: u64_at(&footer, 24) };
        Ok(Self { bytes, end, crc, summary, read: Summary::default(), footer, returned: 0 })
    }

    /// Returns the file's own summary of its content. It is unverified until [`next`](Self::next) has returned `None`,
    /// and only the file's length limits its values.
    #[cfg(test)]
    pub(crate) fn summary(&self) -> Summary {
        self.summary
    }

    /// Returns how many bytes of the file were read, and how many it has.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.bytes.position(), self.end + FOOTER as u64)
    }

    /// Returns the next block, or `None` if all were read and the footer matches.
    ///
    /// # Errors
    /// Returns `Damaged` if the block is not what was written, or if a block is missing.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, StorageError> {
        self.bytes.consume(std::mem::take(&mut self.returned));
        let at = self.bytes.position();
        let damaged = |bytes: &Buffered, what: &str| Err(StorageError::damaged(bytes.name(), at, what));
        if at == self.end {
            let whole = self.read.blocks == self.summary.blocks && self.read.bytes == self.summary.bytes;
            if !whole || u32_at(&self.footer, 4) != footer_checksum(self.crc, &self.footer) {
                return damaged(&self.bytes, "the footer does not match the blocks");
            }
            return Ok(None);
        }
        let header = self.bytes.peek(BLOCK_HEADER)?;
        let (len, crc) = (u32_at(header, 0) as usize, u32_at(header, 4));
        let rest = self.end.saturating_sub(at);
        if len == 0 || len > MAX_BLOCK || (BLOCK_HEADER + len) as u64 > rest {
            return damaged(&self.bytes, "the length of the block is not valid");
        }
        let block = self.bytes.peek(BLOCK_HEADER + len)?;
        let matches = block.get(BLOCK_HEADER..).is_some_and(|payload| block_checksum(self.crc, payload) == crc);
        if !matches {
            return damaged(&self.bytes, "the checksum of the block does not match");
        }
        self.crc = crc;
        self.read.blocks += 1;
        self.read.bytes += len as u64;
        self.returned = BLOCK_HEADER + len;
        // The borrow above ended with the check. The bytes are in memory.
        Ok(self.bytes.peek(BLOCK_HEADER + len)?.get(BLOCK_HEADER..))
    }
}

/// Checks that a header is valid and has the given subject. Returns its checksum.
fn check_header(bytes: &[u8], name: &str, subject: FileIdentity) -> Result<u32, StorageError> {
    let damaged = |what: &str| Err(StorageError::damaged(name, 0, what));
    let Some((header, _)) = bytes.split_first_chunk::<HEADER>() else {
        return damaged("it ends within its header");
    };
    let crc = u32_at(header, 12);
    if header[..8] != MAGIC || crc != header_checksum(header) {
        return damaged("its header is not valid");
    }
    let found = u32_at(header, 8);
    if found != VERSION {
        return Err(StorageError::Newer { file: name.to_owned(), found, known: VERSION });
    }
    if *header != subject.header() {
        return damaged("it belongs to a different store or board, or is a different kind of file");
    }
    Ok(crc)
}
