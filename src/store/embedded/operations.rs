//! Operations of the journal: what a write led to, as bytes.
//!
//! Each says what *is* afterwards, not what changed, so that doing them again from any earlier point ends in the same
//! state. Codes keep their meaning for good; new ones come with a new layout: see `recovery`.

use super::codec::{Damaged, Reader};
use super::fingerprint::Fingerprint;
use super::sightings::Sighting;
use crate::board::{Generation, Mark};

const AMOUNT: u8 = 1;
const ID: u8 = 2;
const REMOVED: u8 = 3;
const ADVANCED: u8 = 4;
const BOARD: u8 = 5;
const SAMPLES: u8 = 6;
const MARKED: u8 = 7;
const SEEN: u8 = 8;
const GONE: u8 = 9;
const DROPPED: u8 = 10;
const CAPPED: u8 = 11;
const SKETCH: u8 = 12;

/// Operations of one board, encoded one after another.
#[derive(Debug)]
pub(super) struct Operations(Vec<u8>);

/// One operation, read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation<'a> {
    /// What follows is about this board.
    Board(Generation),
    /// A subject now has this amount, or extreme, in this slot; of a `from_first` board, its counter that began then.
    Amount { slot: i64, amount: i64, subject: &'a str },
    /// A subject now has this sum and count in this slot.
    Samples { slot: i64, sum: i64, count: i64, subject: &'a str },
    /// A register of a subject's sketch in this slot is now this high, at least.
    Marked { slot: i64, mark: Mark, subject: &'a str },
    /// A subject now has this sketch, in its stored form, in this slot.
    Sketch { slot: i64, sketch: &'a [u8], subject: &'a str },
    /// What is now known of a subject's value; `None`: nothing, as it was dropped.
    Sighted { sighting: Option<Sighting>, subject: &'a str, value: &'a str },
    /// The newest value of a subject that was dropped had this time.
    Capped { at: i64, subject: &'a str },
    /// An id was counted.
    Id { arrival: i64, fingerprint: Fingerprint },
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

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn amount(&mut self, slot: i64, amount: i64, subject: &str) {
        self.begin(AMOUNT, &[slot, amount]);
        self.text(subject);
    }

    pub(super) fn samples(&mut self, slot: i64, (sum, count): (i64, i64), subject: &str) {
        self.begin(SAMPLES, &[slot, sum, count]);
        self.text(subject);
    }

    pub(super) fn marked(&mut self, slot: i64, mark: Mark, subject: &str) {
        self.begin(MARKED, &[slot]);
        self.0.extend_from_slice(&mark.register.to_le_bytes());
        self.0.push(mark.rank);
        self.text(subject);
    }

    pub(super) fn sketch(&mut self, slot: i64, sketch: &[u8], subject: &str) {
        self.begin(SKETCH, &[slot]);
        // A sketch has 2,048 bytes at most.
        self.0.extend_from_slice(&(sketch.len() as u16).to_le_bytes());
        self.0.extend_from_slice(sketch);
        self.text(subject);
    }

    pub(super) fn sighted(&mut self, sighting: Option<Sighting>, subject: &str, value: &str) {
        match sighting {
            Some(Sighting { at, gone }) => self.begin(if gone { GONE } else { SEEN }, &[at]),
            None => self.begin(DROPPED, &[]),
        }
        self.text(subject);
        self.text(value);
    }

    pub(super) fn capped(&mut self, at: i64, subject: &str) {
        self.begin(CAPPED, &[at]);
        self.text(subject);
    }

    pub(super) fn id(&mut self, arrival: i64, fingerprint: Fingerprint) {
        self.begin(ID, &[arrival]);
        self.0.extend_from_slice(&fingerprint.0.to_le_bytes());
    }

    pub(super) fn removed(&mut self, subject: &str) {
        self.begin(REMOVED, &[]);
        self.text(subject);
    }

    pub(super) fn advanced(&mut self, now: i64) {
        self.begin(ADVANCED, &[now]);
    }

    fn begin(&mut self, code: u8, numbers: &[i64]) {
        self.0.push(code);
        for number in numbers {
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn text(&mut self, text: &str) {
        // Subjects and values have at most 512 bytes.
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
        let operation = read(&mut reader);
        if operation.is_err() {
            reader.0 = &[];
        }
        Some(operation)
    })
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<Operation<'a>, Damaged> {
    let [code] = reader.array()?;
    Ok(match code {
        BOARD => Operation::Board(Generation(reader.u64()?)),
        AMOUNT => Operation::Amount { slot: reader.i64()?, amount: reader.i64()?, subject: reader.text()? },
        SAMPLES => Operation::Samples {
            slot: reader.i64()?,
            sum: reader.i64()?,
            count: reader.i64()?,
            subject: reader.text()?,
        },
        MARKED => Operation::Marked { slot: reader.i64()?, mark: reader.mark()?, subject: reader.text()? },
        SKETCH => Operation::Sketch { slot: reader.i64()?, sketch: reader.bytes()?, subject: reader.text()? },
        SEEN | GONE => {
            let sighting = Some(Sighting { at: reader.i64()?, gone: code == GONE });
            Operation::Sighted { sighting, subject: reader.text()?, value: reader.text()? }
        }
        DROPPED => Operation::Sighted { sighting: None, subject: reader.text()?, value: reader.text()? },
        CAPPED => Operation::Capped { at: reader.i64()?, subject: reader.text()? },
        ID => Operation::Id { arrival: reader.i64()?, fingerprint: Fingerprint(u128::from_le_bytes(reader.array()?)) },
        REMOVED => Operation::Removed { subject: reader.text()? },
        ADVANCED => Operation::Advanced { now: reader.i64()? },
        _ => return Err(Damaged),
    })
}

#[cfg(test)]
mod tests {
    use super::super::codec::{seal, unseal};
    use super::*;

    const MARK: Mark = Mark { register: 2_047, rank: 54 };

    fn sample() -> Operations {
        let mut operations = Operations::of(Generation(7));
        operations.amount(-1, i64::MAX, "päth/😀");
        operations.id(5, Fingerprint(8));
        operations.removed("x");
        operations.advanced(9);
        operations.samples(1, (-5, 2), "a");
        operations.marked(2, MARK, "b");
        operations.sighted(Some(Sighting { at: 3, gone: false }), "c", "v");
        operations.sighted(Some(Sighting { at: 4, gone: true }), "d", "w");
        operations.sighted(None, "e", "x");
        operations.capped(6, "f");
        operations.sketch(7, &[1, 2, 3], "g");
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
                Operation::Id { arrival: 5, fingerprint: Fingerprint(8) },
                Operation::Removed { subject: "x" },
                Operation::Advanced { now: 9 },
                Operation::Samples { slot: 1, sum: -5, count: 2, subject: "a" },
                Operation::Marked { slot: 2, mark: MARK, subject: "b" },
                Operation::Sighted { sighting: Some(Sighting { at: 3, gone: false }), subject: "c", value: "v" },
                Operation::Sighted { sighting: Some(Sighting { at: 4, gone: true }), subject: "d", value: "w" },
                Operation::Sighted { sighting: None, subject: "e", value: "x" },
                Operation::Capped { at: 6, subject: "f" },
                Operation::Sketch { slot: 7, sketch: &[1, 2, 3], subject: "g" },
            ]
        );
        assert!(Operations::of(Generation(7)).is_empty() && !sample.is_empty());
    }

    /// Journals written before there was more than COUNT and SUM have just these bytes.
    #[test]
    fn the_first_codes_keep_their_bytes() {
        let mut operations = Operations::of(Generation(1));
        operations.amount(2, 3, "s");
        operations.id(4, Fingerprint(6));
        operations.removed("s");
        operations.advanced(5);
        let number = |n: u8| [n, 0, 0, 0, 0, 0, 0, 0];
        let parts: [&[u8]; 11] = [
            &[5],
            &number(1),
            &[1],
            &number(2),
            &number(3),
            &[1, 0, b's', 2],
            &number(4),
            &[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[3, 1, 0, b's'],
            &[4],
            &number(5),
        ];
        assert_eq!(operations.bytes(), parts.concat());
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
            }
        }
    }
}
