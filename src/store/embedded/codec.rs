//! The bytes on disk: keys, the checksum under every value, and the digest of all. What values say stands in
//! `operations` (the journal), `stored` (records) and `recovery` (the rest).
//!
//! One fjall keyspace holds everything, so that what recovery finds is always *one* prefix of what was written:
//! with several, one of them could be flushed further than another when the write-ahead log is damaged.
//!
//! ```text
//! m schema            clock mode and version of this layout
//! m clock             the simulated clock
//! m digest            the digest of all entries but the journal's: none may be missing
//! m folded            every journal entry up to this sequence is contained in the records
//! b <name>            generation and definition of a board
//! g <generation>      the time a board has reached: its head and floor
//! i <generation> <arrival> <fingerprint>  an id counted
//! j <sequence>        a group of operations, of which the value lists absolute results
//! ```
//!
//! Integers are big-endian in keys (so that keys sort as numbers do) and little-endian in values.

use rapidhash::v3::rapidhash_v3;

use crate::board::{Generation, Mark, REGISTERS};

pub(super) const SCHEMA: &[u8] = b"mschema";
pub(super) const CLOCK: &[u8] = b"mclock";
pub(super) const DIGEST: &[u8] = b"mdigest";
pub(super) const FOLDED: &[u8] = b"mfolded";
pub(super) const BOARDS: &[u8] = b"b";
pub(super) const REACHED: &[u8] = b"g";
pub(super) const IDS: &[u8] = b"i";
pub(super) const JOURNAL: &[u8] = b"j";

/// What was read is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an entry is shorter than it says or fails its checksum")]
pub(super) struct Damaged;

/// `kind`, then the parts: a key.
pub(super) fn key(kind: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut key = kind.to_vec();
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// The key under which all keys of one board's kind begin.
pub(super) fn of_board(kind: &[u8], generation: Generation) -> Vec<u8> {
    key(kind, &[&generation.0.to_be_bytes()])
}

/// Splits a key of kind, generation and the rest.
pub(super) fn split_board_key(key: &[u8]) -> Result<(Generation, &[u8]), Damaged> {
    let (generation, rest) = key.get(1..).and_then(|k| k.split_first_chunk::<8>()).ok_or(Damaged)?;
    Ok((Generation(u64::from_be_bytes(*generation)), rest))
}

/// Appends the checksum of a value.
pub(super) fn seal(mut value: Vec<u8>) -> Vec<u8> {
    value.extend_from_slice(&rapidhash_v3(&value).to_le_bytes());
    value
}

/// The value under a checksum that agrees.
pub(super) fn unseal(sealed: &[u8]) -> Result<&[u8], Damaged> {
    let (value, sum) = sealed.split_last_chunk::<8>().ok_or(Damaged)?;
    if rapidhash_v3(value) == u64::from_le_bytes(*sum) { Ok(value) } else { Err(Damaged) }
}

/// An entry's share in the digest, which is the exclusive or of all shares: entries may come and go in any order.
pub(super) fn share(key: &[u8], value: &[u8]) -> u64 {
    let mut both = [0; 16];
    both[..8].copy_from_slice(&rapidhash_v3(key).to_le_bytes());
    both[8..].copy_from_slice(&rapidhash_v3(value).to_le_bytes());
    rapidhash_v3(&both)
}

/// Whether an entry has a share in the digest. The journal's entries have not: their sequence shows a gap.
pub(super) fn has_share(key: &[u8]) -> bool {
    !key.starts_with(JOURNAL) && key != DIGEST
}

/// Reads little-endian fields off the front.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Damaged> {
        self.array().map(i64::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Damaged> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length of two bytes, and so many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Damaged> {
        let len = usize::from(u16::from_le_bytes(self.array()?));
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Damaged> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Damaged)
    }

    pub(super) fn mark(&mut self) -> Result<Mark, Damaged> {
        let mark = Mark { register: u16::from_le_bytes(self.array()?), rank: self.array::<1>()?[0] };
        // A sketch has no further registers, and none can be higher.
        let possible = usize::from(mark.register) < REGISTERS && (1..=54).contains(&mark.rank);
        if possible { Ok(mark) } else { Err(Damaged) }
    }
}
