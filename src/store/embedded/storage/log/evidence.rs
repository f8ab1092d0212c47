//! The search for proof that a frame which cannot be read was synced.

use super::super::buffered::Buffered;
use super::super::damage::{Context, StorageError};
use super::super::files::Files;
use super::chain::Segments;
use super::frame::{ALIGNMENT, FrameHeader, HEADER, Seed, claimed_synced_seq};
use super::segment::segment_name;

/// The bytes searched at a time.
const CHUNK: usize = 1 << 20;
/// A run of zeros that is skipped at once: most of a segment was never written.
const ZEROS: [u8; 4_096] = [0; 4_096];

/// A header that proves that frames were synced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    pub file: String,
    pub offset: u64,
    pub synced_seq: u64,
}

/// Searches segment `number` from `offset` on, and all later ones, for a header that proves that the frame `missing`
/// was synced. Headers in abandoned segments count as well, because they are about earlier frames.
///
/// Every multiple of 8 is tested, because the lengths that lead from one frame to the next may be lost. This reads each
/// byte once, and computes a checksum only where a header would be proof.
pub(super) fn find(
    files: &dyn Files,
    segments: &Segments,
    store: u128,
    (number, offset): (u64, u64),
    missing: u64,
) -> Result<Option<Evidence>, StorageError> {
    for later in segments.numbers().filter(|&later| later >= number) {
        let header = segments.header(later).filter(|header| header.synced_seq >= missing);
        if let Some(header) = header {
            let file = segment_name(later);
            return Ok(Some(Evidence { file, offset: 0, synced_seq: header.synced_seq }));
        }
        let from = if later == number { offset } else { 0 };
        let found = search(files, Seed::new(store, later), later, from, missing)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn search(
    files: &dyn Files,
    seed: Seed,
    number: u64,
    from: u64,
    missing: u64,
) -> Result<Option<Evidence>, StorageError> {
    let name = segment_name(number);
    let file = files.open(&name).context("open", &name)?;
    let mut bytes = Buffered::new(file, name, from.next_multiple_of(ALIGNMENT as u64))?;
    loop {
        let position = bytes.position();
        let chunk = bytes.peek(CHUNK)?;
        let mut at = 0;
        while let Some(header) = chunk.get(at..).and_then(|rest| rest.first_chunk::<HEADER>()) {
            if at.is_multiple_of(ZEROS.len()) && chunk.get(at..at + ZEROS.len()).is_some_and(|bytes| *bytes == ZEROS) {
                // A header that ends within the zeros has a `synced_seq` of 0, which proves nothing.
                at += (ZEROS.len() - HEADER).next_multiple_of(ALIGNMENT);
                continue;
            }
            if claimed_synced_seq(header) >= missing
                && let Some(header) = FrameHeader::decode(header, seed, position + at as u64)
            {
                let offset = position + at as u64;
                return Ok(Some(Evidence { file: bytes.name().to_owned(), offset, synced_seq: header.synced_seq }));
            }
            at += ALIGNMENT;
        }
        if at == 0 {
            return Ok(None);
        }
        bytes.consume(at);
    }
}
