//! Files of blocks that are written once and read from front to back: checkpoints and sealed buckets of ids.
//!
//! ```text
//! header  magic 8 bytes | version u32 | CRC-32C u32 of the rest | kind 4 bytes | zeros 4 bytes | store u128
//!         | generation u64
//! block   len u32 | CRC-32C u32 | payload
//! footer  u32::MAX | CRC-32C u32 | blocks u64 | records u64 | bytes of the payloads u64
//! ```
//! Integers are little-endian. Each checksum continues the previous one, starting with the header's, so a block that is
//! missing, repeated or moved does not match. Every later version keeps the header as it is.

mod read;
#[cfg(test)]
mod tests;
mod write;

use crc32c::{crc32c, crc32c_append};

pub(crate) use self::read::CheckpointReader;
pub(crate) use self::write::CheckpointWriter;

/// The directory of checkpoints.
pub(crate) const CHECKPOINTS: &str = "checkpoints";
/// The directory of sealed buckets of ids.
pub(crate) const IDS: &str = "ids";

/// The largest size of a block: 64 MiB.
pub(crate) const MAX_BLOCK: usize = 64 << 20;

const MAGIC: [u8; 8] = *b"RTOPCKP\n";
/// The version that is written. No other version is read.
const VERSION: u32 = 1;
const HEADER: usize = 48;
const BLOCK_HEADER: usize = 8;
const FOOTER: usize = 32;
/// The value in place of a block's length that marks the footer.
const FOOTER_TAG: u32 = u32::MAX;

/// The subject of a file, stored in its header. A file with a different subject is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub kind: FileKind,
    pub store: u128,
    pub generation: u64,
}

/// The kind of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// The records of a board.
    Board,
    /// A sealed bucket of ids.
    Ids,
}

impl FileKind {
    fn tag(self) -> [u8; 4] {
        match self {
            FileKind::Board => *b"brd\n",
            FileKind::Ids => *b"ids\n",
        }
    }
}

/// A summary of a file's content, from its footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub blocks: u64,
    /// The number of records that the writer counted, for which the reader makes room.
    pub records: u64,
    /// The bytes of all payloads.
    pub bytes: u64,
}

impl FileIdentity {
    fn header(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.kind.tag());
        bytes[24..40].copy_from_slice(&self.store.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.generation.to_le_bytes());
        let crc = header_checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

fn header_checksum(header: &[u8; HEADER]) -> u32 {
    crc32c_append(crc32c(&header[..12]), &header[16..])
}

/// Returns the checksum that continues the previous one with a block.
fn block_checksum(before: u32, payload: &[u8]) -> u32 {
    crc32c_append(crc32c_append(before, &(payload.len() as u32).to_le_bytes()), payload)
}

impl Summary {
    fn footer(self, before: u32) -> [u8; FOOTER] {
        let mut bytes = [0; FOOTER];
        bytes[..4].copy_from_slice(&FOOTER_TAG.to_le_bytes());
        for (place, number) in bytes[8..].chunks_exact_mut(8).zip([self.blocks, self.records, self.bytes]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let crc = footer_checksum(before, &bytes);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

fn footer_checksum(before: u32, footer: &[u8; FOOTER]) -> u32 {
    crc32c_append(crc32c_append(before, &footer[..4]), &footer[8..])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
