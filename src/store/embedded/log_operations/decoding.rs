//! The decoding of operations.

use crate::board::{Epoch, Generation, Moderation, SourceNumber, TrackId};
use crate::store::embedded::clock::ClockRecord;
use crate::store::embedded::codec::{Damaged, Reader};
use crate::store::embedded::edition_counts::EditionCounts;
use crate::store::embedded::fingerprint::Fingerprint;
use crate::store::embedded::import_progress::Progress;
use crate::store::embedded::last_seen::LastSeen;
use crate::store::embedded::log_operation::*;
use crate::store::embedded::storage::damage::StorageError;
use crate::store::{ImportId, SheetId};

/// The length of an operation of the kind [`ADVANCED`].
const ADVANCED_BYTES: usize = 9;

/// The reason why an operation cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum OperationError {
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// A later version wrote it: what is decoded was written and has the right checksum.
    #[error("an operation of kind {0} is not known")]
    Unknown(u8),
}

impl OperationError {
    /// Returns the error for a file, in which the operations begin at this byte.
    pub(in super::super) fn in_file(self, file: &str, offset: u64) -> StorageError {
        match self {
            OperationError::Damaged(damaged) => StorageError::damaged(file, offset, damaged.to_string()),
            OperationError::Unknown(code) => StorageError::UnknownOperation { file: file.to_owned(), offset, code },
        }
    }
}

/// Decodes operations. Ends after the first error.
pub(in super::super) fn operations(bytes: &[u8]) -> impl Iterator<Item = Result<LogOperation<'_>, OperationError>> {
    let mut decoder = Decoder { reader: Reader(bytes), slot: None, subject: None };
    std::iter::from_fn(move || {
        let operation = decoder.next().transpose()?;
        if operation.is_err() {
            decoder.reader.0 = &[];
        }
        Some(operation)
    })
}

struct Decoder<'a> {
    reader: Reader<'a>,
    slot: Option<i64>,
    subject: Option<&'a str>,
}

impl<'a> Decoder<'a> {
    fn next(&mut self) -> Result<Option<LogOperation<'a>>, OperationError> {
        while !self.reader.0.is_empty() {
            let [code] = self.reader.array()?;
            match code {
                TRACK => {
                    (self.slot, self.subject) = (None, None);
                    return Ok(Some(LogOperation::Track(TrackId(self.reader.u64()?))));
                }
                SLOT => self.slot = Some(self.reader.i64()?),
                code => return self.operation(code).map(Some),
            }
        }
        Ok(None)
    }

    fn operation(&mut self, code: u8) -> Result<LogOperation<'a>, OperationError> {
        let slot = self.slot.ok_or(Damaged);
        Ok(match code {
            AMOUNT => LogOperation::Amount { slot: slot?, amount: self.reader.signed()?, subject: self.subject()? },
            SAMPLES => LogOperation::Samples {
                slot: slot?,
                sum: self.reader.signed()?,
                count: self.reader.signed()?,
                subject: self.subject()?,
            },
            LAST => LogOperation::Last {
                slot: slot?,
                at: self.reader.i64()?,
                value: self.reader.signed()?,
                subject: self.subject()?,
            },
            MARKED => LogOperation::Marked { slot: slot?, mark: self.reader.mark()?, subject: self.subject()? },
            SKETCH => LogOperation::Sketch { slot: slot?, sketch: self.reader.bytes()?, subject: self.subject()? },
            SEEN | RETRACTED => {
                let last_seen = Some(LastSeen { at: self.reader.i64()?, retracted: code == RETRACTED });
                LogOperation::Value { last_seen, subject: self.subject()?, value: self.reader.text()? }
            }
            DROPPED => LogOperation::Value { last_seen: None, subject: self.subject()?, value: self.reader.text()? },
            CAPPED => LogOperation::Capped { at: self.reader.i64()?, subject: self.subject()? },
            ID => LogOperation::Id {
                arrival: self.reader.i64()?,
                fingerprint: Fingerprint(u128::from_le_bytes(self.reader.array()?)),
            },
            REMOVED => LogOperation::Removed { subject: self.subject()? },
            ADVANCED => {
                let time = self.reader.i64()?;
                match self.advanced_that_follow() {
                    1 => LogOperation::DefinedAt { at: time },
                    2 => LogOperation::Sampled { any: time != 0 },
                    _ => LogOperation::Advanced { now: time },
                }
            }
            EVENTS => LogOperation::Events { slot: slot?, count: self.reader.unsigned()? },
            DEFINED => LogOperation::Defined {
                generation: Generation(self.reader.u64()?),
                name: self.reader.text()?,
                definition: self.reader.text()?,
            },
            UNDEFINED => LogOperation::Undefined { generation: Generation(self.reader.u64()?) },
            SHEET => LogOperation::Sheet {
                id: SheetId::parse(self.reader.text()?).ok_or(Damaged)?,
                text: self.reader.text()?,
            },
            CLOCK => LogOperation::Clock(ClockRecord {
                wall: self.reader.i64()?,
                uptime: self.reader.i64()?,
                boot: u128::from_le_bytes(self.reader.array()?),
            }),
            SIMULATED => LogOperation::Simulated { now: self.reader.i64()? },
            ROW => LogOperation::Row {
                table: self.reader.text()?,
                id: self.reader.text()?,
                text: self.reader.optional(Reader::text)?,
            },
            IMPORT_BEGUN => LogOperation::ImportBegun { import: self.import()? },
            IMPORT_ENDED => LogOperation::ImportEnded { import: self.import()? },
            MERGED => LogOperation::Merged {
                import: self.import()?,
                progress: Progress {
                    through: self.reader.unsigned()?,
                    partial: self.reader.unsigned()?,
                    done: self.reader.unsigned()?,
                },
            },
            EDITIONS => LogOperation::Editions {
                generation: Generation(self.reader.u64()?),
                epoch: Epoch(self.reader.u64()?),
                main: TrackId(self.reader.u64()?),
                definition: self.reader.text()?,
                form: self.reader.text()?,
            },
            COUNTS => self.counts()?,
            MODERATED => {
                let (subject, letters) = (self.subject()?, self.reader.text()?);
                LogOperation::Moderated { subject, moderation: Moderation::of_letters(letters).ok_or(Damaged)? }
            }
            ATTRIBUTES => LogOperation::Attributes { subject: self.subject()?, text: self.reader.text()? },
            EARLIER => LogOperation::Earlier { at: self.reader.i64()?, lines: self.reader.optional(Reader::bytes)? },
            REACHED => LogOperation::Reached {
                source: u32::try_from(self.reader.unsigned()?).map(SourceNumber).map_err(|_| Damaged)?,
                text: self.reader.text()?,
            },
            code => return Err(OperationError::Unknown(code)),
        })
    }

    fn counts(&mut self) -> Result<LogOperation<'a>, Damaged> {
        let (since, filled) = (self.reader.i64()?, self.reader.optional(Reader::i64)?);
        let (mut editions, mut missed) = ([TrackId(0); _], [[0; _]; _]);
        for (edition, missed) in editions.iter_mut().zip(&mut missed) {
            *edition = TrackId(self.reader.u64()?);
            for items in missed {
                *items = self.reader.unsigned()?;
            }
        }
        Ok(LogOperation::Counts { editions, counts: EditionCounts { since, filled, missed } })
    }

    /// Returns how many operations of the kind [`ADVANCED`] follow one after the other, up to three.
    fn advanced_that_follow(&self) -> usize {
        let codes = self.reader.0.iter().step_by(ADVANCED_BYTES);
        codes.take(3).take_while(|code| **code == ADVANCED).count()
    }

    fn import(&mut self) -> Result<ImportId, Damaged> {
        self.reader.u64().map(ImportId)
    }

    fn subject(&mut self) -> Result<&'a str, Damaged> {
        let text = self.reader.text()?;
        if !text.is_empty() {
            self.subject = Some(text);
        }
        self.subject.ok_or(Damaged)
    }
}
