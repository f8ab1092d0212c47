//! Reads the log at a start.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::buffered::Buffered;
use super::super::damage::{Context, StorageError};
use super::super::files::Files;
use super::LogStart;
use super::chain::Segments;
use super::evidence::{self, Evidence};
use super::frame::{FrameHeader, HEADER, Seed, frame_len};
use super::segment::{self, SegmentHeader, segment_name};

/// The distance in bytes of the recorded positions from which the log may have to be written again.
const RECORD_POSITION_EVERY: u64 = 256 << 10;

/// A reader of the frames of a log, in order and one at a time. It needs memory for the largest frame, at least 1 MB.
#[derive(Debug)]
pub(crate) struct LogReader {
    files: Arc<dyn Files>,
    store: u128,
    segments: Segments,
    /// The segment that is being read.
    number: u64,
    /// Its bytes, or `None` if it has no valid header.
    bytes: Option<Buffered>,
    /// The position of the next frame in it; 0 without a header.
    offset: u64,
    /// The segment that follows it.
    next: Option<SegmentHeader>,
    /// The bytes of the frame that was returned last.
    returned: usize,
    last_seq: u64,
    /// The sequence up to which all frames are proven to be synced.
    synced_seq: u64,
    passed: Vec<SegmentRange>,
    /// The bytes of the segments in `passed`.
    passed_bytes: u64,
    recorded_positions: VecDeque<RecordedPosition>,
    ended: bool,
}

/// A frame of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogFrame<'a> {
    pub seq: u64,
    pub payload: &'a [u8],
    /// The segment that contains the frame. `offset` is the frame's position in it.
    pub segment: u64,
    pub offset: u64,
}

/// A segment and the part of it that belongs to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentRange {
    pub number: u64,
    pub first_seq: u64,
    /// The last sequence; one less than `first_seq` if there are no frames.
    pub last_seq: u64,
    /// The position at which the log ends in it.
    pub end: u64,
}

/// A position in the log.
#[derive(Clone, Copy, Debug)]
struct RecordedPosition {
    /// The sequence before it.
    seq: u64,
    segment: u64,
    offset: u64,
}

/// The end of the log, and the work to do before it is continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// The last segment.
    pub segment: u64,
    /// The position at which the log ends in it; 0 if there is no such segment.
    pub offset: u64,
    /// The sequence of the last frame; one less than [`LogStart::seq`] if there is none.
    pub last_seq: u64,
    /// The sequence up to which all frames are proven to be synced.
    pub synced_seq: u64,
    /// The segments that were read, in order.
    pub segments: Vec<SegmentRange>,
    /// The number of the next segment. No file has this number or a higher one.
    pub next_segment: u64,
    /// The files of the log's directory that are not part of the log, relative to the data directory. They may be
    /// deleted at any time and in any order.
    pub files_to_delete: Vec<String>,
    pub(super) store: u128,
    /// The parts to write again: segment, first byte, end.
    pub(super) unproven: Vec<(u64, u64, u64)>,
}

/// The reason why there is no further frame in a segment.
enum FrameEnd {
    /// The header of the next segment says that the log ends here in this one.
    Reached,
    Invalid(String),
}

impl LogReader {
    /// Finds the segments and reads their headers.
    pub(crate) fn open(files: Arc<dyn Files>, store: u128, start: LogStart) -> Result<Self, StorageError> {
        let segments = Segments::find(&*files, store, start.segment)?;
        let mut reader = Self {
            files,
            store,
            segments,
            number: start.segment,
            bytes: None,
            offset: 0,
            next: None,
            returned: 0,
            last_seq: start.seq.saturating_sub(1),
            synced_seq: start.synced_seq,
            passed: Vec::new(),
            passed_bytes: 0,
            recorded_positions: VecDeque::new(),
            ended: false,
        };
        reader.next = reader.segments.successor(start.segment).copied();
        if let Some(header) = reader.segments.header(start.segment) {
            if header.first_seq > start.seq {
                let what = format!("it begins with sequence {}, not {}", header.first_seq, start.seq);
                return Err(StorageError::damaged(segment_name(start.segment), 0, what));
            }
            reader.last_seq = header.first_seq.saturating_sub(1);
            reader.enter_segment(start.segment)?;
        }
        Ok(reader)
    }

    /// Returns the next frame, or `None` at the end of the log.
    ///
    /// # Errors
    /// Returns `Damaged` if the next frame is missing although it was synced.
    pub(crate) fn next(&mut self) -> Result<Option<LogFrame<'_>>, StorageError> {
        self.pass_returned();
        let header = loop {
            if self.ended {
                return Ok(None);
            }
            match self.read_frame()? {
                Ok(header) => break header,
                Err(stop) => self.leave_segment(stop)?,
            }
        };
        self.synced_seq = self.synced_seq.max(header.synced_seq);
        self.record_position(header.seq - 1);
        self.last_seq = header.seq;
        let (segment, offset) = (self.number, self.offset);
        let Some(bytes) = &mut self.bytes else { return Ok(None) };
        let frame = bytes.peek(frame_len(header.len) as usize)?;
        self.returned = frame.len();
        self.offset += frame_len(header.len);
        Ok(Some(LogFrame { seq: header.seq, payload: &frame[HEADER..HEADER + header.len], segment, offset }))
    }

    /// Returns how many bytes were read, and how many all segments have, which is an upper bound of the log's size.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.passed_bytes + self.offset, self.segments.bytes())
    }

    /// Reads the remaining frames and returns the end of the log.
    pub(crate) fn finish(mut self) -> Result<LogEnd, StorageError> {
        while self.next()?.is_some() {}
        let is_part = |number| self.passed.iter().any(|segment| segment.number == number);
        let files_to_delete = self.segments.numbers().filter(|&number| !is_part(number)).map(segment_name).collect();
        let highest = self.segments.numbers().next_back().unwrap_or(0);
        let begin = self.recorded_positions.front().copied();
        let unproven = self.passed.iter().filter_map(|segment| {
            let begin = begin.filter(|begin| begin.segment <= segment.number)?;
            let from = if begin.segment == segment.number { begin.offset } else { 0 };
            (from < segment.end).then_some((segment.number, from, segment.end))
        });
        Ok(LogEnd {
            segment: self.number,
            offset: self.offset,
            last_seq: self.last_seq,
            synced_seq: self.synced_seq.min(self.last_seq),
            store: self.store,
            unproven: unproven.collect(),
            next_segment: highest.max(self.number) + 1,
            files_to_delete,
            segments: self.passed,
        })
    }

    /// Begins to read a segment that has a header.
    fn enter_segment(&mut self, number: u64) -> Result<(), StorageError> {
        let name = segment_name(number);
        let file = self.files.open(&name).context("open", &name)?;
        self.bytes = Some(Buffered::new(file, name, segment::HEADER as u64)?);
        self.next = self.segments.successor(number).copied();
        self.number = number;
        self.offset = 0;
        self.record_position(self.last_seq);
        self.offset = segment::HEADER as u64;
        if let Some(header) = self.segments.header(number) {
            self.synced_seq = self.synced_seq.max(header.synced_seq.min(header.first_seq.saturating_sub(1)));
        }
        Ok(())
    }

    fn pass_returned(&mut self) {
        if let Some(bytes) = &mut self.bytes {
            bytes.consume(std::mem::take(&mut self.returned));
        }
    }

    /// Reads the header of the next frame, and checks its payload.
    fn read_frame(&mut self) -> Result<Result<FrameHeader, FrameEnd>, StorageError> {
        let invalid = |what: &str| Ok(Err(FrameEnd::Invalid(what.to_owned())));
        let end = self.next.map(|next| next.previous_end);
        if end.is_some_and(|end| end == self.offset || end == 0) {
            return Ok(Err(FrameEnd::Reached));
        }
        let Some(bytes) = &mut self.bytes else {
            let there = self.segments.contains(self.number);
            return invalid(if there { "the header of the segment is not valid" } else { "the file is missing" });
        };
        let seed = Seed::new(self.store, self.number);
        let Some(header) = FrameHeader::decode(bytes.peek(HEADER)?, seed, self.offset) else {
            return invalid("the header of the frame is not valid");
        };
        if header.seq.checked_sub(1) != Some(self.last_seq) {
            return invalid(&format!("the frame has sequence {}", header.seq));
        }
        let len = frame_len(header.len);
        if bytes.remaining() < len || end.is_some_and(|end| self.offset.saturating_add(len) > end) {
            return invalid("the frame is cut off");
        }
        let frame = bytes.peek(len as usize)?;
        if !frame.get(HEADER..HEADER + header.len).is_some_and(|payload| header.matches(payload)) {
            return invalid("the payload of the frame is not valid");
        }
        Ok(Ok(header))
    }

    /// Continues in the next segment, or ends the log.
    fn leave_segment(&mut self, stop: FrameEnd) -> Result<(), StorageError> {
        let what = match (stop, self.next.map(|next| (next.number, next.first_seq))) {
            (FrameEnd::Reached, Some((number, first_seq))) if first_seq.checked_sub(1) == Some(self.last_seq) => {
                self.pass_segment();
                return self.enter_segment(number);
            }
            (FrameEnd::Reached, Some((_, first_seq))) => format!("the next segment begins with sequence {first_seq}"),
            (FrameEnd::Reached, None) => String::new(),
            (FrameEnd::Invalid(what), _) => what,
        };
        self.check_end(&what)?;
        self.pass_segment();
        self.ended = true;
        Ok(())
    }

    /// Records the part of the current segment that belongs to the log.
    fn pass_segment(&mut self) {
        self.passed_bytes += self.offset;
        if let Some(header) = self.segments.header(self.number) {
            let (number, first_seq) = (header.number, header.first_seq);
            self.passed.push(SegmentRange { number, first_seq, last_seq: self.last_seq, end: self.offset });
        }
        self.bytes = None;
    }

    /// Checks that the log may end here, because nothing proves that the missing frame was synced.
    fn check_end(&self, what: &str) -> Result<(), StorageError> {
        let missing = self.last_seq.saturating_add(1);
        let place = (self.number, self.offset);
        let proof = if self.synced_seq >= missing {
            format!("an earlier frame or the manifest states that all frames up to {} were synced", self.synced_seq)
        } else {
            match evidence::find(&*self.files, &self.segments, self.store, place, missing)? {
                None => return Ok(()),
                Some(Evidence { file, offset, synced_seq }) => {
                    format!("{file} states at byte {offset} that all frames up to {synced_seq} were synced")
                }
            }
        };
        let file = if self.next.is_none() { ", or the segment that begins with it," } else { "" };
        let what = format!("{what}; the frame with sequence {missing}{file} is missing, but {proof}");
        Err(StorageError::damaged(segment_name(self.number), self.offset, what))
    }

    /// Records the current position, which follows the frame `seq`, unless a recorded position is near.
    fn record_position(&mut self, seq: u64) {
        let here = RecordedPosition { seq, segment: self.number, offset: self.offset };
        let near =
            |last: &RecordedPosition| last.segment == here.segment && here.offset - last.offset < RECORD_POSITION_EVERY;
        if !self.recorded_positions.back().is_some_and(near) {
            self.recorded_positions.push_back(here);
        }
        // Of the positions before which everything is proven, only the last one is needed.
        while self.recorded_positions.get(1).is_some_and(|second| second.seq <= self.synced_seq) {
            self.recorded_positions.pop_front();
        }
    }
}
