//! Writing frames again that are not certain to be on the disk.

use super::super::buffered::Buffered;
use super::super::damage::{Context, StorageError};
use super::super::files::Files;
use super::frame::{FrameHeader, HEADER, Seed, frame_len};
use super::read::LogEnd;
use super::segment::{self, DIRECTORY, Decoded, decode, segment_name};

/// The bytes written at a time, at least.
const WRITE: usize = 1 << 20;

impl LogEnd {
    /// Writes the frames again that are not proven to be synced, each in its place, and syncs them. This is necessary
    /// because what is read after a crash may be only in the system's memory, and if an earlier sync failed, no later
    /// sync brings it to the disk.
    ///
    /// Afterwards all frames up to `last_seq` are on the disk. Costs reading and writing what was appended since the
    /// last sync before the crash, and needs no further space.
    ///
    /// # Errors
    /// The call can be repeated, except after `Damaged`: then the frames can no longer be read, and the log must be
    /// read again.
    pub(crate) fn make_durable(&mut self, files: &dyn Files) -> Result<(), StorageError> {
        for &(number, from, end) in &self.unproven {
            write_again(files, self.store, number, from, end)?;
        }
        if !self.unproven.is_empty() {
            files.sync_dir(DIRECTORY).context("sync", DIRECTORY)?;
        }
        self.unproven.clear();
        self.synced_seq = self.last_seq;
        Ok(())
    }
}

/// Writes the bytes of a segment from `from`, which is 0 or the start of a frame, to `end` again in their place, and
/// syncs them. After a failed sync this makes them durable, which a further sync alone would not.
///
/// The frames are checked, because a page that a failed sync left in memory may be dropped at any time, and then the
/// old content of the disk is read.
///
/// # Errors
/// Returns `Damaged` if the frames can no longer be read.
pub(crate) fn write_again(
    files: &dyn Files,
    store: u128,
    number: u64,
    from: u64,
    end: u64,
) -> Result<(), StorageError> {
    let name = segment_name(number);
    let file = files.open_for_writing(&name).context("open", &name)?;
    let mut bytes = Buffered::new(file.clone(), name.clone(), from)?;
    let seed = Seed::new(store, number);
    let mut buffer = Vec::new();
    let mut buffer_at = from;
    while bytes.position() < end {
        let at = bytes.position();
        let len = if at == 0 { segment::HEADER } else { next_frame_len(&mut bytes, seed)? };
        let next = bytes.peek(len)?;
        if !is_valid(next, seed, at) || at + len as u64 > end {
            return Err(StorageError::damaged(name, at, "data that was read before cannot be read again"));
        }
        buffer.extend_from_slice(next);
        bytes.consume(len);
        if buffer.len() >= WRITE || bytes.position() >= end {
            file.write_all_at(&buffer, buffer_at).context("write", &name)?;
            buffer_at += buffer.len() as u64;
            buffer.clear();
        }
    }
    file.sync_data().context("sync", &name)
}

/// Returns the bytes of the next frame, or of its header if the frame is not valid.
fn next_frame_len(bytes: &mut Buffered, seed: Seed) -> Result<usize, StorageError> {
    let (at, remaining) = (bytes.position(), bytes.remaining());
    let header = FrameHeader::decode(bytes.peek(HEADER)?, seed, at);
    let len = header.map(|header| frame_len(header.len)).filter(|len| *len <= remaining);
    Ok(len.map_or(HEADER, |len| len as usize))
}

/// Returns whether the bytes are a valid segment header, at 0, or a valid frame.
fn is_valid(bytes: &[u8], seed: Seed, at: u64) -> bool {
    if at == 0 {
        return matches!(decode(bytes), Decoded::Header(_));
    }
    FrameHeader::decode(bytes, seed, at)
        .is_some_and(|header| bytes.get(HEADER..HEADER + header.len).is_some_and(|payload| header.matches(payload)))
}
