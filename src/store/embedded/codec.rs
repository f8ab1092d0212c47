//! Decoding of the fields of operations.

use crate::board::{Mark, REGISTERS};

/// The error that bytes are not a valid encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an operation cannot be decoded")]
pub(super) struct Damaged;

/// A cursor that takes fields from the front of a byte slice.
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

    /// Reads a varint: seven bits per byte, the lowest first.
    pub(super) fn unsigned(&mut self) -> Result<u64, Damaged> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Damaged);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    /// Reads a signed varint (zigzag encoding).
    pub(super) fn signed(&mut self) -> Result<i64, Damaged> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a length as a varint, and this many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Damaged> {
        let len = usize::try_from(self.unsigned()?).map_err(|_| Damaged)?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Damaged> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Damaged)
    }

    /// Reads 1 and a value, or 0 if there is none.
    pub(super) fn optional<T>(&mut self, read: fn(&mut Self) -> Result<T, Damaged>) -> Result<Option<T>, Damaged> {
        match self.array()? {
            [0] => Ok(None),
            [1] => read(self).map(Some),
            _ => Err(Damaged),
        }
    }

    pub(super) fn mark(&mut self) -> Result<Mark, Damaged> {
        let mark = Mark { register: u16::from_le_bytes(self.array()?), rank: self.array::<1>()?[0] };
        // A sketch has no further registers, and a rank cannot be greater.
        let possible = usize::from(mark.register) < REGISTERS && (1..=54).contains(&mark.rank);
        if possible { Ok(mark) } else { Err(Damaged) }
    }
}
