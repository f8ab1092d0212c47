//! The encoding of frames.
//!
//! ```text
//! 0   CRC-32C u32 of the following 24 bytes, and of the frame's position
//! 4   CRC-32C u32 of the payload
//! 8   len u32           bytes of the payload
//! 12  seq u64           1 more than the sequence of the previous frame
//! 20  synced_seq u64    all frames up to this sequence were synced when this was written
//! 28  payload, then zeros until the next frame, at a multiple of 8
//! ```
//! Integers are little-endian. The header has a separate checksum, so that a search for frames costs the same for any
//! bytes, and `len` can be trusted before the payload is read. The checksum includes the store, the segment and the
//! offset, so the bytes of a frame are not valid at any other position.

use crc32c::{crc32c, crc32c_append};

/// The bytes before the payload.
pub(super) const HEADER: usize = 28;
/// The alignment of frames.
pub(super) const ALIGNMENT: usize = 8;
/// The largest size of a payload: 1 GiB.
pub(crate) const MAX_PAYLOAD: usize = 1 << 30;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// The bytes of the payload, at most [`MAX_PAYLOAD`].
    pub len: usize,
    pub seq: u64,
    pub synced_seq: u64,
    payload_crc: u32,
}

/// The seed of a segment's checksums, which makes them differ from those of other segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u32);

impl Seed {
    pub(super) fn new(store: u128, segment: u64) -> Self {
        Self(crc32c_append(crc32c(&store.to_le_bytes()), &segment.to_le_bytes()))
    }

    fn checksum(self, offset: u64, header: &[u8]) -> u32 {
        crc32c_append(crc32c_append(self.0, &offset.to_le_bytes()), header)
    }
}

/// Returns the bytes that a frame with a payload of this size takes.
pub(super) fn frame_len(payload: usize) -> u64 {
    (HEADER as u64 + payload as u64).next_multiple_of(ALIGNMENT as u64)
}

/// Appends a frame for the position `offset` of the segment to a buffer.
///
/// `payload` must have at most [`MAX_PAYLOAD`] bytes.
pub(super) fn encode(buffer: &mut Vec<u8>, seed: Seed, offset: u64, seq: u64, synced_seq: u64, payload: &[u8]) {
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&crc32c(payload).to_le_bytes());
    header[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[12..20].copy_from_slice(&seq.to_le_bytes());
    header[20..28].copy_from_slice(&synced_seq.to_le_bytes());
    let crc = seed.checksum(offset, &header[4..]);
    header[..4].copy_from_slice(&crc.to_le_bytes());
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(payload);
    let padding = frame_len(payload.len()) as usize - HEADER - payload.len();
    buffer.extend_from_slice(&[0; ALIGNMENT][..padding]);
}

impl FrameHeader {
    /// Decodes the bytes at `offset` of the segment. Returns `None` if they are not the header of a frame.
    pub(super) fn decode(bytes: &[u8], seed: Seed, offset: u64) -> Option<Self> {
        let (bytes, _) = bytes.split_first_chunk::<HEADER>()?;
        let header = Self {
            len: usize::try_from(u32_at(bytes, 8)).ok()?,
            seq: u64_at(bytes, 12),
            synced_seq: u64_at(bytes, 20),
            payload_crc: u32_at(bytes, 4),
        };
        let plausible = header.len <= MAX_PAYLOAD && header.synced_seq < header.seq;
        (plausible && u32_at(bytes, 0) == seed.checksum(offset, &bytes[4..])).then_some(header)
    }

    /// Returns whether this is the payload that was written.
    pub(super) fn matches(&self, payload: &[u8]) -> bool {
        self.len == payload.len() && self.payload_crc == crc32c(payload)
    }
}

/// Returns the `synced_seq` of the bytes if they are the header of a frame. Checks nothing.
pub(super) fn claimed_synced_seq(bytes: &[u8; HEADER]) -> u64 {
    u64_at(bytes, 20)
}

fn u32_at(bytes: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; HEADER], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Vec<u8>, Seed) {
        let seed = Seed::new(5, 3);
        let mut bytes = Vec::new();
        encode(&mut bytes, seed, 72, 9, 8, b"payload");
        (bytes, seed)
    }

    #[test]
    fn frames_round_trip() {
        let (bytes, seed) = sample();
        assert_eq!(bytes.len() as u64, frame_len(7));
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        let header = FrameHeader::decode(&bytes, seed, 72).unwrap();
        assert_eq!((header.len, header.seq, header.synced_seq), (7, 9, 8));
        assert!(header.matches(b"payload") && !header.matches(b"paylaod") && !header.matches(b"payloa"));
        assert_eq!(claimed_synced_seq(bytes.first_chunk().unwrap()), 8);
    }

    #[test]
    fn a_frame_is_valid_only_at_its_own_place() {
        let (bytes, seed) = sample();
        assert_eq!(FrameHeader::decode(&bytes, seed, 80), None);
        assert_eq!(FrameHeader::decode(&bytes, Seed::new(5, 4), 72), None);
        assert_eq!(FrameHeader::decode(&bytes, Seed::new(4, 3), 72), None);
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let (bytes, seed) = sample();
        for bit in 0..(HEADER + 7) * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = FrameHeader::decode(&flipped, seed, 72);
            assert!(!read.is_some_and(|header| header.matches(&flipped[HEADER..HEADER + 7])), "bit {bit}");
        }
    }
}
