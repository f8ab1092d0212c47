//! The header of a segment, and the names of segments.
//!
//! ```text
//! 0   magic 8 bytes
//! 8   version u32
//! 12  CRC-32C u32 of all other bytes of the header
//! 16  store u128
//! 32  number u64
//! 40  first_seq u64       the sequence of its first frame
//! 48  previous u64        the previous segment
//! 56  previous_end u64    the position at which the log ends in the previous segment
//! 64  synced_seq u64      all frames up to this sequence were synced when this was written
//! ```
//! Integers are little-endian. Every later version keeps the first 72 bytes as they are, so that this version can tell
//! a later version from damage.

use crc32c::{crc32c, crc32c_append};

/// The directory of the segments.
pub(crate) const DIRECTORY: &str = "log";

/// The bytes of a header. The first frame follows it.
pub(super) const HEADER: usize = 72;
/// The highest number that a segment may have. The limit makes sure that there is always a next number.
const LAST_NUMBER: u64 = 1 << 62;
const MAGIC: [u8; 8] = *b"RTOPLOG\n";
/// The version that is written. No other version is read.
pub(super) const VERSION: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub store: u128,
    pub number: u64,
    pub first_seq: u64,
    pub previous: u64,
    pub previous_end: u64,
    pub synced_seq: u64,
}

/// The result of decoding the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    Header(SegmentHeader),
    /// The bytes are not a header: it was never written, or only in part.
    Invalid,
    /// The header has a version that this program cannot read.
    Newer(u32),
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store.to_le_bytes());
        let numbers = [self.number, self.first_seq, self.previous, self.previous_end, self.synced_seq];
        for (place, number) in bytes[32..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// Decodes the first bytes of a file.
pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER>() else { return Decoded::Invalid };
    let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if header[..8] != MAGIC || u32_at(12) != checksum(header) {
        return Decoded::Invalid;
    }
    if u32_at(8) != VERSION {
        return Decoded::Newer(u32_at(8));
    }
    let mut store = [0; 16];
    store.copy_from_slice(&header[16..32]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    Decoded::Header(SegmentHeader {
        store: u128::from_le_bytes(store),
        number: u64_at(32),
        first_seq: u64_at(40),
        previous: u64_at(48),
        previous_end: u64_at(56),
        synced_seq: u64_at(64),
    })
}

fn checksum(header: &[u8; HEADER]) -> u32 {
    crc32c_append(crc32c(&header[..12]), &header[16..])
}

/// Returns the file name of a segment, relative to the data directory.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{DIRECTORY}/{number:010}.log")
}

/// Returns the number of the segment with this name in the log's directory.
pub(super) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    // Accepts only names that `segment_name` returns, so that each number has one name.
    let number = digits.parse().ok()?;
    (digits == format!("{number:010}") && number <= LAST_NUMBER).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: SegmentHeader = SegmentHeader {
        store: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
        number: 3,
        first_seq: u64::MAX,
        previous: 2,
        previous_end: 1 << 40,
        synced_seq: 99,
    };

    #[test]
    fn segment_headers_round_trip() {
        assert_eq!(decode(&SAMPLE.encode()), Decoded::Header(SAMPLE));
        assert_eq!(decode(&[0; HEADER]), Decoded::Invalid);
    }

    #[test]
    fn every_flipped_bit_and_truncation_is_detected() {
        let bytes = SAMPLE.encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), Decoded::Invalid, "bit {bit}");
        }
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), Decoded::Invalid, "cut at {end}");
        }
    }

    #[test]
    fn later_versions_are_distinguished_from_damage() {
        let mut bytes = SAMPLE.encode();
        bytes[8] = 7;
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(decode(&bytes), Decoded::Newer(7));
    }

    #[test]
    fn segment_names_and_numbers_round_trip() {
        for number in [0, 1, 9_999_999_999, 10_000_000_000, LAST_NUMBER] {
            let name = segment_name(number);
            assert_eq!(segment_number(name.strip_prefix("log/").unwrap()), Some(number));
        }
        let too_high = format!("{}.log", LAST_NUMBER + 1);
        for name in
            [&too_high, "1.log", "00000000001.log", "+000000001.log", "0000000001", "0000000001.log.new", "", ".log"]
        {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }
}
