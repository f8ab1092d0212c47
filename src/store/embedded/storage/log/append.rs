//! Appending to the log.

use std::io;
use std::sync::Arc;

use super::super::files::{File, Files};
use super::frame::{self, HEADER as FRAME_HEADER, MAX_PAYLOAD, Seed, frame_len};
use super::read::LogEnd;
use super::segment::{self, DIRECTORY, SegmentHeader, segment_name};

/// The largest buffer that is kept. A buffer that grew beyond it for a large frame is freed.
const KEPT_BUFFER: usize = 4 << 20;

/// The largest size of the first segment after a start. It is small, so that many starts with little traffic do not
/// take much of the disk.
const FIRST_SEGMENT: u64 = 1 << 20;

/// An appender of frames, for one thread.
///
/// Frames are written, not synced: a different thread syncs the [`current_file`](Self::current_file), after everything
/// that [`take_sealed`](Self::take_sealed) returned.
#[derive(Debug)]
pub(crate) struct LogAppender {
    files: Arc<dyn Files>,
    store: u128,
    segment_len: u64,
    next_seq: u64,
    /// The number of the next file. Every file gets its own number.
    next_number: u64,
    current: CurrentSegment,
    sealed: Vec<SealedSegment>,
    spare: Option<SpareFile>,
    buffer: Vec<u8>,
}

/// The segment that is appended to.
#[derive(Debug)]
struct CurrentSegment {
    number: u64,
    file: Arc<dyn File>,
    /// The bytes for which it has room without growing.
    len: u64,
    /// The position of the next frame.
    offset: u64,
    first_seq: u64,
    seed: Seed,
    /// The previous segment and the position at which the log ends in it, until a header with both is written.
    unwritten: Option<(u64, u64)>,
}

/// A segment that is full and has to be synced.
#[derive(Clone, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests compare it with what is read"))]
pub(crate) struct SealedSegment {
    pub number: u64,
    pub file: Arc<dyn File>,
    pub first_seq: u64,
    pub last_seq: u64,
    /// The position at which the log ends in it.
    pub end: u64,
}

/// A file that is ready to become a segment: its space is reserved, and its name is durable. Readers ignore it, because
/// its header is zeros.
#[derive(Debug)]
pub(crate) struct SpareFile {
    number: u64,
    file: Arc<dyn File>,
    len: u64,
}

impl SpareFile {
    /// Creates a file of `len` bytes with a number from [`LogAppender::take_number`]. This takes two syncs, so a thread
    /// other than the appending one should call it.
    ///
    /// # Errors
    /// Returns any error of the disk. The file is removed then, if possible; if not, readers ignore it.
    pub(crate) fn create(files: &dyn Files, number: u64, len: u64) -> io::Result<SpareFile> {
        let name = segment_name(number);
        let file = files.create_new(&name)?;
        // The file is synced only for speed: without it, the first sync after a write would have to write this too,
        // while callers wait.
        let made = file.allocate(len).and_then(|()| file.sync_data()).and_then(|()| files.sync_dir(DIRECTORY));
        match made {
            Ok(()) => Ok(SpareFile { number, file, len }),
            Err(error) => {
                let _ = files.remove(&name);
                Err(error)
            }
        }
    }

    /// Removes the file.
    pub(crate) fn discard(self, files: &dyn Files) -> io::Result<()> {
        files.remove(&segment_name(self.number))
    }

    /// Returns the bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

impl LogAppender {
    /// Continues the log after a start, in a new segment of at most 1 MB, then in segments of `segment_len` bytes. The
    /// end must be [made durable](LogEnd::make_durable) before.
    ///
    /// # Errors
    /// Returns any error of the disk, for example for lack of space. The call can be repeated: each time takes a new
    /// number.
    pub(crate) fn open(files: Arc<dyn Files>, store: u128, end: &mut LogEnd, segment_len: u64) -> io::Result<Self> {
        end.next_segment += 1;
        let spare = SpareFile::create(&*files, end.next_segment - 1, segment_len.min(FIRST_SEGMENT))?;
        let next_seq = end.last_seq + 1;
        let current = CurrentSegment::new(spare, store, next_seq, (end.segment, end.offset));
        Ok(Self {
            files,
            store,
            segment_len,
            next_seq,
            next_number: end.next_segment,
            current,
            sealed: Vec::new(),
            spare: None,
            buffer: Vec::new(),
        })
    }

    /// Appends a frame. If it does not fit into the current segment, a new one is begun: the spare or, without one, a
    /// file that is created now. A frame larger than a segment gets a segment that is large enough.
    ///
    /// `synced_seq` is the highest sequence such that this frame and all before it certainly need not be written again:
    /// they are synced, or contained in checkpoints that a manifest names.
    ///
    /// # Errors
    /// Returns `InvalidInput` if `seq` does not follow the previous one, `synced_seq` is not less, or the payload has
    /// more than [`MAX_PAYLOAD`] bytes. Nothing was written then. After other errors a part of the frame may be in the
    /// file. The frame can be appended again with the same sequence and payload, which overwrites that part. Until then
    /// the outcome is unknown.
    pub(crate) fn append(&mut self, seq: u64, synced_seq: u64, payload: &[u8]) -> io::Result<()> {
        if seq != self.next_seq || synced_seq >= seq || payload.len() > MAX_PAYLOAD {
            let what = format!(
                "a frame with seq {seq}, synced_seq {synced_seq} and {} bytes where seq {} is next",
                payload.len(),
                self.next_seq
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let len = frame_len(payload.len());
        if self.current.offset + len > self.current.len {
            self.make_room(len)?;
        }
        let current = &mut self.current;
        self.buffer.clear();
        let mut place = current.offset;
        if let Some((previous, previous_end)) = current.unwritten {
            let (number, store) = (current.number, self.store);
            let header = SegmentHeader { store, number, first_seq: seq, previous, previous_end, synced_seq };
            self.buffer.extend_from_slice(&header.encode());
            place = 0;
        }
        frame::encode(&mut self.buffer, current.seed, current.offset, seq, synced_seq, payload);
        current.file.write_all_at(&self.buffer, place)?;
        current.unwritten = None;
        current.offset += len;
        self.next_seq += 1;
        if self.buffer.capacity() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Ends the current segment and begins a new one, unless nothing was appended to the current one. After that,
    /// nothing in the earlier segments changes.
    pub(crate) fn rotate(&mut self) -> io::Result<()> {
        if self.current.unwritten.is_some() {
            return Ok(());
        }
        self.begin_segment(0)
    }

    /// Continues in a new segment after a sync or an append failed. The new segment begins with `frames`, each a
    /// sequence and a payload, which are written again. `end` is the segment and the position directly after the last
    /// frame before them.
    ///
    /// The frames are synced before the header is written that makes readers continue in the new segment, and the
    /// header is synced as well. So a crash in between leaves the log as it was. Takes four syncs.
    ///
    /// # Errors
    /// Returns any error of the disk. The current segment is not changed then, and the call can be repeated.
    pub(crate) fn continue_after(
        &mut self,
        end: (u64, u64),
        frames: &[(u64, &[u8])],
        synced_seq: u64,
    ) -> io::Result<()> {
        let first_seq = frames.first().map_or(self.next_seq, |(seq, _)| *seq);
        if synced_seq >= first_seq {
            let what = format!("frames from seq {first_seq} on are repeated, but {synced_seq} is synced");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let len: u64 = frames.iter().map(|(_, payload)| frame_len(payload.len())).sum();
        let number = self.take_number();
        let spare = SpareFile::create(&*self.files, number, self.segment_len.max(segment::HEADER as u64 + len))?;
        let mut current = CurrentSegment::new(spare, self.store, first_seq, end);
        if let Err(error) = self.write_again(&mut current, frames, synced_seq) {
            // If it cannot be removed, readers ignore it, because it has no header.
            let _ = self.files.remove(&segment_name(number));
            return Err(error);
        }
        // Segments are in the order of their numbers, so a spare that was created before cannot follow this one.
        if let Some(spare) = self.spare.take() {
            let _ = spare.discard(&*self.files);
        }
        self.next_seq = frames.last().map_or(self.next_seq, |(seq, _)| seq + 1);
        self.sealed.clear();
        self.current = current;
        Ok(())
    }

    /// Writes frames into a segment, then its header.
    fn write_again(
        &mut self,
        current: &mut CurrentSegment,
        frames: &[(u64, &[u8])],
        synced_seq: u64,
    ) -> io::Result<()> {
        let (Some((previous, previous_end)), Some((first_seq, _))) = (current.unwritten, frames.first()) else {
            return Ok(());
        };
        for (seq, payload) in frames {
            self.buffer.clear();
            frame::encode(&mut self.buffer, current.seed, current.offset, *seq, synced_seq, payload);
            current.file.write_all_at(&self.buffer, current.offset)?;
            current.offset += frame_len(payload.len());
        }
        current.file.sync_data()?;
        let (number, store) = (current.number, self.store);
        let header = SegmentHeader { store, number, first_seq: *first_seq, previous, previous_end, synced_seq };
        current.file.write_all_at(&header.encode(), 0)?;
        current.file.sync_data()?;
        current.unwritten = None;
        Ok(())
    }

    /// Returns the end of the log: a segment, and the position after its last frame. As long as the current segment has
    /// no frame, it is in the previous one.
    pub(crate) fn end(&self) -> (u64, u64) {
        self.current.unwritten.unwrap_or((self.current.number, self.current.offset))
    }

    /// Returns the bytes of the current segment.
    pub(crate) fn segment_len(&self) -> u64 {
        self.current.len
    }

    /// Returns the largest payload of a next frame that fits into the current segment, in bytes.
    pub(crate) fn room(&self) -> u64 {
        let rest = self.current.len.saturating_sub(self.current.offset);
        (rest - rest % frame::ALIGNMENT as u64).saturating_sub(FRAME_HEADER as u64)
    }

    /// Returns the bytes of the spare segment, or 0 without one.
    pub(crate) fn spare_len(&self) -> u64 {
        self.spare.as_ref().map_or(0, SpareFile::len)
    }

    /// Returns a number for the file of the spare segment.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Sets the spare segment. Returns the spare that is not needed, to be [discarded](SpareFile::discard): this one if
    /// the log has passed its number in the meantime, otherwise the previous one, if there was one.
    pub(crate) fn set_spare(&mut self, spare: SpareFile) -> Option<SpareFile> {
        if spare.number < self.current.number { Some(spare) } else { self.spare.replace(spare) }
    }

    /// Returns the segments that became full since the last call, oldest first. They must be synced in this order,
    /// before the current one.
    pub(crate) fn take_sealed(&mut self) -> Vec<SealedSegment> {
        std::mem::take(&mut self.sealed)
    }

    /// Returns the file of the current segment.
    pub(crate) fn current_file(&self) -> Arc<dyn File> {
        Arc::clone(&self.current.file)
    }

    /// Returns the number of the current segment.
    pub(crate) fn current_number(&self) -> u64 {
        self.current.number
    }

    /// Returns the sequence with which the current segment begins.
    pub(crate) fn first_seq(&self) -> u64 {
        self.current.first_seq
    }

    /// Returns the position of the next frame in the current segment.
    #[cfg(test)]
    pub(crate) fn offset(&self) -> u64 {
        self.current.offset
    }

    /// Returns the sequence of the next frame.
    #[cfg(test)]
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Makes `len` bytes of room in the current segment, or begins a new segment with that much room.
    fn make_room(&mut self, len: u64) -> io::Result<()> {
        if self.current.unwritten.is_some() {
            // The segment has no frame yet, so it is extended. A new file for this frame would leave the current one
            // empty.
            self.current.file.allocate(self.current.offset + len)?;
            self.current.len = self.current.offset + len;
            return Ok(());
        }
        self.begin_segment(len)
    }

    /// Begins a new segment with at least `len` bytes for frames. After that, nothing is written to the previous one:
    /// the header of the new segment contains the position at which the log ends in the previous one.
    fn begin_segment(&mut self, len: u64) -> io::Result<()> {
        let needed = segment::HEADER as u64 + len;
        let mut spare = match self.spare.take() {
            Some(spare) => spare,
            None => {
                let number = self.take_number();
                SpareFile::create(&*self.files, number, self.segment_len.max(needed))?
            }
        };
        if spare.len < needed {
            if let Err(error) = spare.file.allocate(needed) {
                self.spare = Some(spare);
                return Err(error);
            }
            spare.len = needed;
        }
        let before = &self.current;
        let previous = (before.number, before.offset);
        self.sealed.push(SealedSegment {
            number: before.number,
            file: Arc::clone(&before.file),
            first_seq: before.first_seq,
            last_seq: self.next_seq - 1,
            end: before.offset,
        });
        self.current = CurrentSegment::new(spare, self.store, self.next_seq, previous);
        Ok(())
    }
}

impl CurrentSegment {
    fn new(spare: SpareFile, store: u128, first_seq: u64, previous: (u64, u64)) -> Self {
        let SpareFile { number, file, len } = spare;
        let offset = segment::HEADER as u64;
        Self { number, file, len, offset, first_seq, seed: Seed::new(store, number), unwritten: Some(previous) }
    }
}
