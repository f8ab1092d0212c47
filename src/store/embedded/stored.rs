//! Subjects' records as the database holds them. What a record looks like follows from its board's metric:
//!
//! ```text
//! COUNT, SUM, MIN, MAX     (slot, number) …           on a from_first board one: (start of the counter, amount)
//! AVG                      (slot, sum, count) …
//! APPROX_COUNT_DISTINCT    (slot, length, sketch) …
//! COUNT_DISTINCT           the time of the newest value that was dropped, if one was
//! ```
//!
//! The values of COUNT_DISTINCT are entries of their own, each with its time and whether it is gone; its slices
//! follow from them.

use super::codec::{Damaged, Reader};
use super::extra::Extra;
use super::record::Record;
use super::sightings::Sighting;
use crate::board::{Kind, Sketch};

/// A part of a record, read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Amount { slot: i64, amount: i64 },
    Samples { slot: i64, sum: i64, count: i64 },
    Sketch { slot: i64, sketch: Sketch },
    Capped { at: i64 },
}

impl Part {
    /// Its slot or time: what lies before the floor is of no use any more.
    pub(super) fn at(&self) -> i64 {
        match self {
            Part::Amount { slot, .. } | Part::Samples { slot, .. } | Part::Sketch { slot, .. } => *slot,
            Part::Capped { at } => *at,
        }
    }
}

/// A record as a value; `None` if the database need not have one.
pub(super) fn encode(record: &Record, extra: Option<&Extra>) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(record.slices.len() * 16 + 8);
    let mut number = |number: i64| value.extend_from_slice(&number.to_le_bytes());
    match extra {
        None => {
            for slice in &record.slices {
                number(slice.slot);
                number(slice.amount);
            }
        }
        Some(Extra::Means(means)) => {
            for (slice, count) in record.slices.iter().zip(&means.counts) {
                number(slice.slot);
                number(slice.amount);
                number(*count);
            }
        }
        Some(Extra::Sketches(sketches)) => {
            for (slice, sketch) in record.slices.iter().zip(&sketches.by_slice) {
                value.extend_from_slice(&slice.slot.to_le_bytes());
                // A sketch has 2,048 bytes at most.
                value.extend_from_slice(&(sketch.as_bytes().len() as u16).to_le_bytes());
                value.extend_from_slice(sketch.as_bytes());
            }
        }
        Some(Extra::Sightings(sightings)) => sightings.capped.into_iter().for_each(number),
    }
    (!value.is_empty()).then_some(value)
}

/// The parts of an unsealed record of such a board.
pub(super) fn decode(kind: Kind, value: &[u8]) -> Result<Vec<Part>, Damaged> {
    let mut reader = Reader(value);
    let mut parts = Vec::with_capacity(value.len() / 16);
    while !reader.0.is_empty() {
        let at = reader.i64()?;
        parts.push(match kind {
            Kind::Sum | Kind::Min | Kind::Max => Part::Amount { slot: at, amount: reader.i64()? },
            Kind::Mean => Part::Samples { slot: at, sum: reader.i64()?, count: reader.i64()? },
            Kind::Sketch => {
                let sketch = Sketch::from_bytes(reader.bytes()?).ok_or(Damaged)?;
                Part::Sketch { slot: at, sketch }
            }
            Kind::Distinct => Part::Capped { at },
        });
    }
    Ok(parts)
}

/// What is known of a value, as a value.
pub(super) fn encode_sighting(sighting: Sighting) -> Vec<u8> {
    let mut value = Vec::with_capacity(17);
    value.extend_from_slice(&sighting.at.to_le_bytes());
    value.push(u8::from(sighting.gone));
    value
}

pub(super) fn decode_sighting(value: &[u8]) -> Result<Sighting, Damaged> {
    let mut reader = Reader(value);
    let at = reader.i64()?;
    match reader.array()? {
        [gone @ 0..=1] if reader.0.is_empty() => Ok(Sighting { at, gone: gone == 1 }),
        _ => Err(Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sightings_read_back_and_nothing_else_does() {
        for sighting in [Sighting { at: 5, gone: false }, Sighting { at: i64::MAX, gone: true }] {
            let value = encode_sighting(sighting);
            assert_eq!(decode_sighting(&value), Ok(sighting));
            assert_eq!(decode_sighting(&value[..8]), Err(Damaged));
            assert_eq!(decode_sighting(&[&value[..], &[0]].concat()), Err(Damaged));
        }
        assert_eq!(decode_sighting(&[0, 0, 0, 0, 0, 0, 0, 0, 2]), Err(Damaged));
    }

    #[test]
    fn no_bytes_panic_the_reader() {
        let kinds = [Kind::Sum, Kind::Distinct, Kind::Mean, Kind::Min, Kind::Max, Kind::Sketch];
        for kind in kinds {
            for length in 0..60 {
                for byte in [0, 1, 3, 255] {
                    // Whole parts only.
                    let whole = match kind {
                        Kind::Mean => length % 24 == 0,
                        Kind::Distinct => length % 8 == 0,
                        Kind::Sum | Kind::Min | Kind::Max => length % 16 == 0,
                        Kind::Sketch => byte == 0 && length % 10 == 0 || length == 0,
                    };
                    assert_eq!(decode(kind, &vec![byte; length]).is_ok(), whole, "{kind:?} {length} x {byte}");
                }
            }
        }
    }
}
