//! The bytes on disk: operations of the journal, subjects' records, keys, and the checksum under every value.
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
//! s <generation> <subject>              a subject's slices
//! i <generation> <arrival> <pair>       an id counted
//! j <sequence>        a group of operations, of which the value lists absolute results
//! ```
//!
//! Integers are big-endian in keys (so that keys sort as numbers do) and little-endian in values.

use rapidhash::v3::rapidhash_v3;

use super::record::Slice;
use crate::board::Generation;

pub(super) const SCHEMA: &[u8] = b"mschema";
pub(super) const CLOCK: &[u8] = b"mclock";
pub(super) const DIGEST: &[u8] = b"mdigest";
pub(super) const FOLDED: &[u8] = b"mfolded";
pub(super) const BOARDS: &[u8] = b"b";
pub(super) const REACHED: &[u8] = b"g";
pub(super) const RECORDS: &[u8] = b"s";
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

/// A subject's slices as a value.
pub(super) fn encode_slices(slices: &[Slice]) -> Vec<u8> {
    let mut value = Vec::with_capacity(slices.len() * 16 + 8);
    for slice in slices {
        value.extend_from_slice(&slice.slot.to_le_bytes());
        value.extend_from_slice(&slice.amount.to_le_bytes());
    }
    value
}

/// The (slot, amount) pairs of an unsealed record.
pub(super) fn decode_slices(value: &[u8]) -> Result<Vec<(i64, i64)>, Damaged> {
    let mut reader = Reader(value);
    let mut slices = Vec::with_capacity(value.len() / 16);
    while !reader.0.is_empty() {
        slices.push((reader.i64()?, reader.i64()?));
    }
    Ok(slices)
}

const AMOUNT: u8 = 1;
const ID: u8 = 2;
const REMOVED: u8 = 3;
const ADVANCED: u8 = 4;
const BOARD: u8 = 5;

/// Operations of one board, encoded one after another. Each says what *is* afterwards, not what changed, so that
/// doing them again from any earlier point ends in the same state.
#[derive(Debug)]
pub(super) struct Operations(Vec<u8>);

/// One operation, read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation<'a> {
    /// What follows is about this board.
    Board(Generation),
    /// A subject now has this amount in this slot.
    Amount { slot: i64, amount: i64, subject: &'a str },
    /// An id was counted.
    Id { arrival: i64, pair: &'a str },
    /// A subject has nothing any more.
    Removed { subject: &'a str },
    /// The board's time has reached this.
    Advanced { now: i64 },
}

impl Operations {
    pub(super) fn of(generation: Generation) -> Self {
        let mut bytes = vec![BOARD];
        bytes.extend_from_slice(&generation.0.to_le_bytes());
        Self(bytes)
    }

    /// Whether anything was said about the board.
    pub(super) fn is_empty(&self) -> bool {
        self.0.len() <= 9
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn amount(&mut self, slot: i64, amount: i64, subject: &str) {
        self.0.push(AMOUNT);
        self.0.extend_from_slice(&slot.to_le_bytes());
        self.0.extend_from_slice(&amount.to_le_bytes());
        self.text(subject);
    }

    pub(super) fn id(&mut self, arrival: i64, pair: &str) {
        self.0.push(ID);
        self.0.extend_from_slice(&arrival.to_le_bytes());
        self.text(pair);
    }

    pub(super) fn removed(&mut self, subject: &str) {
        self.0.push(REMOVED);
        self.text(subject);
    }

    pub(super) fn advanced(&mut self, now: i64) {
        self.0.push(ADVANCED);
        self.0.extend_from_slice(&now.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        // Subjects have at most 512 bytes, pairs 641.
        self.0.extend_from_slice(&(text.len() as u16).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Reads operations back; ends after the first error.
pub(super) fn operations(bytes: &[u8]) -> impl Iterator<Item = Result<Operation<'_>, Damaged>> {
    let mut reader = Reader(bytes);
    std::iter::from_fn(move || {
        if reader.0.is_empty() {
            return None;
        }
        let operation = reader.operation();
        if operation.is_err() {
            reader.0 = &[];
        }
        Some(operation)
    })
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

    fn text(&mut self) -> Result<&'a str, Damaged> {
        let len = usize::from(u16::from_le_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(len).ok_or(Damaged)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| Damaged)
    }

    fn operation(&mut self) -> Result<Operation<'a>, Damaged> {
        let [kind] = self.array()?;
        Ok(match kind {
            BOARD => Operation::Board(Generation(self.u64()?)),
            AMOUNT => Operation::Amount { slot: self.i64()?, amount: self.i64()?, subject: self.text()? },
            ID => Operation::Id { arrival: self.i64()?, pair: self.text()? },
            REMOVED => Operation::Removed { subject: self.text()? },
            ADVANCED => Operation::Advanced { now: self.i64()? },
            _ => return Err(Damaged),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Operations {
        let mut operations = Operations::of(Generation(7));
        operations.amount(-1, i64::MAX, "päth/😀");
        operations.id(5, "a\nb");
        operations.removed("x");
        operations.advanced(9);
        operations
    }

    #[test]
    fn operations_read_back() {
        let sample = sample();
        let read: Vec<_> = operations(sample.bytes()).collect::<Result<_, _>>().unwrap();
        assert_eq!(
            read,
            [
                Operation::Board(Generation(7)),
                Operation::Amount { slot: -1, amount: i64::MAX, subject: "päth/😀" },
                Operation::Id { arrival: 5, pair: "a\nb" },
                Operation::Removed { subject: "x" },
                Operation::Advanced { now: 9 },
            ]
        );
        assert!(Operations::of(Generation(7)).is_empty() && !sample.is_empty());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let sealed = seal(sample().bytes().to_vec());
        assert!(unseal(&sealed).is_ok());
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(&flipped), Err(Damaged), "bit {bit}");
        }
        for end in 0..sealed.len() {
            assert_eq!(unseal(&sealed[..end]), Err(Damaged), "cut at {end}");
        }
    }

    #[test]
    fn no_bytes_panic_the_reader() {
        let bytes = sample().0;
        for end in 0..bytes.len() {
            for value in 0..=255 {
                let mut mangled = bytes[..end].to_vec();
                mangled.push(value);
                let _ = operations(&mangled).count();
                let _ = decode_slices(&mangled);
            }
        }
    }
}
