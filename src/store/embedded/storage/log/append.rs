//! Appending to the log.

use std::io;
use std::sync::Arc;

use super::super::files::{File, Files};
use super::frame::{self, HEADER as FRAME_HEADER, MAX_PAYLOAD, Seed, frame_len};
use super::read::LogEnd;
use super::segment::{self, DIRECTORY, SegmentHeader, segment_name};

/// A buffer that became larger than this for a large frame is given back.
const KEPT_BUFFER: usize = 4 << 20;

/// The most bytes of the first segment after a start: many starts with little traffic must not take much of the disk.
const FIRST_SEGMENT: u64 = 1 << 20;

/// Appends frames; for one thread.
///
/// Frames are written, not synced: another thread syncs the [`current_file`](Self::current_file), after everything
/// that [`take_sealed`](Self::take_sealed) returned.
#[derive(Debug)]
pub(crate) struct LogAppender {
    files: Arc<dyn Files>,
    store: u128,
    segment_len: u64,
    next_seq: u64,
    /// The number of the next file that is made. Every file gets one of its own.
    next_number: u64,
    current: Current,
    sealed: Vec<Sealed>,
    spare: Option<Spare>,
    buffer: Vec<u8>,
}

/// The segment that is appended to.
#[derive(Debug)]
struct Current {
    number: u64,
    file: Arc<dyn File>,
    /// Bytes it has room for without growing.
    len: u64,
    /// Where the next frame begins.
    offset: u64,
    first_seq: u64,
    seed: Seed,
    /// The segment before and where the log ends in it, until a header that says so was written.
    unwritten: Option<(u64, u64)>,
}

/// A segment that is full and has to be synced.
#[derive(Clone, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests compare it with what is read"))]
pub(crate) struct Sealed {
    pub number: u64,
    pub file: Arc<dyn File>,
    pub first_seq: u64,
    pub last_seq: u64,
    /// The byte at which the log ends in it.
    pub end: u64,
}

/// A file that is ready to become a segment: its space is taken, and its name is durable. Readers ignore it, as its
/// header is zeros.
#[derive(Debug)]
pub(crate) struct Spare {
    number: u64,
    file: Arc<dyn File>,
    len: u64,
}

impl Spare {
    /// Creates a file of `len` bytes with a number from [`LogAppender::take_number`]. It takes two syncs, and is made
    /// to be called by another thread than the one that appends.
    ///
    /// # Errors
    /// Whatever the disk says; what was made by then is removed if that is possible, and ignored by readers if not.
    pub(crate) fn create(files: &dyn Files, number: u64, len: u64) -> io::Result<Spare> {
        let name = segment_name(number);
        let file = files.create_new(&name)?;
        // The file is synced for speed only: what a first sync has to write is not left to those that writes wait for.
        let made = file.allocate(len).and_then(|()| file.sync_data()).and_then(|()| files.sync_dir(DIRECTORY));
        match made {
            Ok(()) => Ok(Spare { number, file, len }),
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

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

impl LogAppender {
    /// Continues the log after a start, in a new segment of 1 MB at most, then in segments of `segment_len` bytes. The
    /// end must be [secured](LogEnd::secure).
    ///
    /// # Errors
    /// Whatever the disk says, for lack of space for example. It can be repeated: each time takes a new number.
    pub(crate) fn open(files: Arc<dyn Files>, store: u128, end: &mut LogEnd, segment_len: u64) -> io::Result<Self> {
        end.next_segment += 1;
        let spare = Spare::create(&*files, end.next_segment - 1, segment_len.min(FIRST_SEGMENT))?;
        let next_seq = end.last_seq + 1;
        let current = Current::new(spare, store, next_seq, (end.segment, end.offset));
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

    /// Appends a frame. If it does not fit into the current segment, a new one is begun: the spare, or, without one,
    /// a file that is made at that moment. A frame larger than a segment gets a segment that is large enough.
    ///
    /// `synced_seq` is the highest sequence of which it is certain that it and all before it need not be written
    /// again: synced, or contained in checkpoints that a manifest names.
    ///
    /// # Errors
    /// `InvalidInput` if `seq` does not follow the one before, `synced_seq` is not less, or the payload has more than
    /// [`MAX_PAYLOAD`] bytes; nothing was written then. After other errors a part of the frame may be in the file: it
    /// can be appended again, with the same sequence and payload, which overwrites that part. The outcome is unknown
    /// until this was done.
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

    /// Ends the current segment and begins a new one, unless nothing was appended to the current one. From then on
    /// nothing in the segments before changes.
    pub(crate) fn rotate(&mut self) -> io::Result<()> {
        if self.current.unwritten.is_some() {
            return Ok(());
        }
        self.begin_segment(0)
    }

    /// After a sync or an append that failed: goes on in a new segment, which begins with `frames` again, each a
    /// sequence and a payload. `end` is the segment and the byte right after the last frame before them.
    ///
    /// The frames are synced before the header that makes readers go on there is written, and that is synced as well:
    /// a crash in between leaves the log as it was. Takes four syncs.
    ///
    /// # Errors
    /// Whatever the disk says; the current segment is still the one before, and this can be called again.
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
        let spare = Spare::create(&*self.files, number, self.segment_len.max(segment::HEADER as u64 + len))?;
        let mut current = Current::new(spare, self.store, first_seq, end);
        if let Err(error) = self.repeat(&mut current, frames, synced_seq) {
            // What cannot be removed has no header, and is ignored by readers.
            let _ = self.files.remove(&segment_name(number));
            return Err(error);
        }
        // Segments are in the order of their numbers: a spare from before cannot follow this one.
        if let Some(spare) = self.spare.take() {
            let _ = spare.discard(&*self.files);
        }
        self.next_seq = frames.last().map_or(self.next_seq, |(seq, _)| seq + 1);
        self.sealed.clear();
        self.current = current;
        Ok(())
    }

    /// Writes frames into a segment, then its header.
    fn repeat(&mut self, current: &mut Current, frames: &[(u64, &[u8])], synced_seq: u64) -> io::Result<()> {
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

    /// Returns where the log ends: a segment, and the byte after its last frame. It is not the current segment as long
    /// as that has no frame.
    pub(crate) fn end(&self) -> (u64, u64) {
        self.current.unwritten.unwrap_or((self.current.number, self.current.offset))
    }

    /// Returns the bytes of the current segment.
    pub(crate) fn segment_len(&self) -> u64 {
        self.current.len
    }

    /// Returns how many bytes of payload the next frame may have so that it fits into the current segment.
    pub(crate) fn room(&self) -> u64 {
        let rest = self.current.len.saturating_sub(self.current.offset);
        (rest - rest % frame::ALIGNMENT as u64).saturating_sub(FRAME_HEADER as u64)
    }

    /// Returns the bytes of the spare segment; 0 without one.
    pub(crate) fn spare_len(&self) -> u64 {
        self.spare.as_ref().map_or(0, Spare::len)
    }

    /// Returns a number for a file that is to become the spare segment.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Takes a file as the spare segment. Returns the one that is not needed, to be [discarded](Spare::discard):
    /// this one if the log has gone past its number meanwhile, otherwise the spare so far, if there was one.
    pub(crate) fn set_spare(&mut self, spare: Spare) -> Option<Spare> {
        if spare.number < self.current.number { Some(spare) } else { self.spare.replace(spare) }
    }

    /// Returns the segments that became full since the last call, oldest first. They are to be synced in this order,
    /// before the current one.
    pub(crate) fn take_sealed(&mut self) -> Vec<Sealed> {
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

    /// Returns the byte of the current segment at which the next frame begins.
    #[cfg(test)]
    pub(crate) fn offset(&self) -> u64 {
        self.current.offset
    }

    /// Returns the sequence that the next frame must have.
    #[cfg(test)]
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Makes the current segment one with `len` bytes left.
    fn make_room(&mut self, len: u64) -> io::Result<()> {
        if self.current.unwritten.is_some() {
            // Still without a frame: a file of its own for this one would leave the other empty.
            self.current.file.allocate(self.current.offset + len)?;
            self.current.len = self.current.offset + len;
            return Ok(());
        }
        self.begin_segment(len)
    }

    /// Makes a new segment with at least `len` bytes for frames the current one. From then on nothing is written to
    /// the one before: the header of the new one says where the log ends in it.
    fn begin_segment(&mut self, len: u64) -> io::Result<()> {
        let needed = segment::HEADER as u64 + len;
        let mut spare = match self.spare.take() {
            Some(spare) => spare,
            None => {
                let number = self.take_number();
                Spare::create(&*self.files, number, self.segment_len.max(needed))?
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
        self.sealed.push(Sealed {
            number: before.number,
            file: Arc::clone(&before.file),
            first_seq: before.first_seq,
            last_seq: self.next_seq - 1,
            end: before.offset,
        });
        self.current = Current::new(spare, self.store, self.next_seq, previous);
        Ok(())
    }
}

impl Current {
    fn new(spare: Spare, store: u128, first_seq: u64, previous: (u64, u64)) -> Self {
        let Spare { number, file, len } = spare;
        let offset = segment::HEADER as u64;
        Self { number, file, len, offset, first_seq, seed: Seed::new(store, number), unwritten: Some(previous) }
    }
}
