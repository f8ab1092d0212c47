//! The segments of a log and their order.

use std::collections::BTreeMap;
use std::io;

use super::super::damage::{Context, StorageError};
use super::super::files::Files;
use super::segment::{self, DIRECTORY, Decoded, SegmentHeader, VERSION, decode, segment_name, segment_number};

/// The segments found in the log's directory.
#[derive(Debug)]
pub(super) struct Segments {
    /// The headers by number. `None` for files whose header was never written, or only in part.
    found: BTreeMap<u64, Option<SegmentHeader>>,
    /// The bytes of all files from the log's start on.
    bytes: u64,
}

impl Segments {
    /// Reads the headers of all segments from `start` on.
    ///
    /// # Errors
    /// Returns `Damaged` if a header is complete, but belongs to a different store or a different file, which no crash
    /// can cause.
    pub(super) fn find(files: &dyn Files, store: u128, start: u64) -> Result<Self, StorageError> {
        let names = match files.list(DIRECTORY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.context("list", DIRECTORY)?,
        };
        let mut segments = Self { found: BTreeMap::new(), bytes: 0 };
        for number in names.iter().filter_map(|name| segment_number(name)) {
            let header = if number < start { None } else { segments.read_header(files, store, number)? };
            segments.found.insert(number, header);
        }
        Ok(segments)
    }

    fn read_header(
        &mut self,
        files: &dyn Files,
        store: u128,
        number: u64,
    ) -> Result<Option<SegmentHeader>, StorageError> {
        let name = segment_name(number);
        let file = files.open(&name).context("open", &name)?;
        self.bytes += file.len().context("read the length of", &name)?;
        let mut bytes = [0; segment::HEADER];
        match file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read.context("read", &name)?,
        }
        match decode(&bytes) {
            Decoded::Invalid => Ok(None),
            Decoded::Newer(found) => Err(StorageError::Newer { file: name, found, known: VERSION }),
            Decoded::Header(header) if header.store != store => {
                Err(StorageError::damaged(name, 0, "the segment belongs to another store"))
            }
            Decoded::Header(header) if header.number != number => {
                Err(StorageError::damaged(name, 0, format!("the file is segment {}", header.number)))
            }
            Decoded::Header(header) => Ok(Some(header)),
        }
    }

    /// Returns the segment's header, if it has one.
    pub(super) fn header(&self, number: u64) -> Option<&SegmentHeader> {
        self.found.get(&number)?.as_ref()
    }

    /// Returns whether the file exists.
    pub(super) fn contains(&self, number: u64) -> bool {
        self.found.contains_key(&number)
    }

    /// Returns the next segment: the one with the highest number among those that name `number` as their previous
    /// segment. The others were abandoned by a start that decided that the log ends earlier, and whose own segment got
    /// a higher number.
    pub(super) fn successor(&self, number: u64) -> Option<&SegmentHeader> {
        let later = self.found.range(number.saturating_add(1)..);
        later.rev().filter_map(|(_, header)| header.as_ref()).find(|header| header.previous == number)
    }

    /// Returns the numbers of all files, in order.
    pub(super) fn numbers(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.found.keys().copied()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
