//! A file that is read line by line while it grows.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rolltop::cli::replay::{self, MAX_LINE_BYTES};

use super::position;
use super::rotation::LogFile;
use crate::log::{MAX_BYTES, MAX_MESSAGES, Message};

/// An open file. It stays the same one when it is renamed or removed.
pub struct OpenFile {
    pub number: u64,
    head: Vec<u8>,
    /// `None` if the file is packed, and does not change any more.
    file: Option<File>,
    reader: Box<dyn BufRead + Send>,
    /// The offset after what was read, with a part of a line.
    offset: u64,
    /// The offset at which the lines begin that were read last.
    began: u64,
    /// The part of a line that was read.
    part: Vec<u8>,
    /// Whether the rest of a line that is too long is passed.
    is_too_long: bool,
    /// When it had more to read last.
    pub grown: Instant,
}

impl OpenFile {
    /// Opens a file at an offset of its text.
    pub fn open(file: &LogFile, offset: u64) -> io::Result<Self> {
        let mut source = file.open()?;
        let (reader, file_of) = if file.is_packed {
            let (mut reader, _) = replay::text(source)?;
            io::copy(&mut reader.by_ref().take(offset), &mut io::sink())?;
            (reader, None)
        } else {
            source.seek(SeekFrom::Start(offset))?;
            let reader: Box<dyn BufRead + Send> = Box::new(io::BufReader::with_capacity(1 << 16, source.try_clone()?));
            (reader, Some(source))
        };
        let (part, is_too_long, grown) = (Vec::new(), false, Instant::now());
        let (number, head) = (file.number, file.head.clone());
        Ok(Self { number, head, file: file_of, reader, offset, began: offset, part, is_too_long, grown })
    }

    /// Reads the whole lines that are there, up to a portion, and returns them with whether there are no more. `None` if the
    /// file was cut and is another one now; then nothing that was read counts.
    pub fn lines(&mut self) -> io::Result<Option<(Vec<Message>, bool)>> {
        self.began = self.offset - self.part.len() as u64;
        let (mut messages, mut bytes, mut is_at_end) = (Vec::new(), 0, false);
        while messages.len() < MAX_MESSAGES && bytes < MAX_BYTES {
            let left = (MAX_LINE_BYTES + 1).saturating_sub(self.part.len()) as u64;
            let read = self.reader.by_ref().take(left).read_until(b'\n', &mut self.part)?;
            if read == 0 {
                is_at_end = true;
                break;
            }
            self.grown = Instant::now();
            self.offset += read as u64;
            bytes += read;
            if self.part.last() == Some(&b'\n') {
                messages.push(self.message());
            } else if self.part.len() > MAX_LINE_BYTES {
                self.is_too_long = true;
                self.part.clear();
            }
        }
        Ok(self.is_same()?.then_some((messages, is_at_end)))
    }

    /// Returns what is after the last line end, when nothing more will come.
    pub fn rest(&mut self) -> Option<Message> {
        (!self.part.is_empty() || self.is_too_long).then(|| self.message())
    }

    fn message(&mut self) -> Message {
        let line = std::mem::take(&mut self.part);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        Message {
            position: position(self.number, self.offset),
            value: (!is_too_long).then(|| Bytes::from(line)),
            fault: is_too_long.then_some("its line has more than 1 MiB".into()),
            ..Message::default()
        }
    }

    /// Returns whether the file still begins as it did.
    fn is_same(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        let mut head = vec![0; self.head.len()];
        match file.read_exact_at(&mut head, 0) {
            Ok(()) => Ok(head == self.head),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the position before the lines that were read last.
    pub fn began(&self) -> u128 {
        position(self.number, self.began)
    }

    /// Returns how many bytes of the file are not read.
    pub fn left(&self) -> u64 {
        let size = self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |metadata| metadata.len());
        size.saturating_sub(self.offset)
    }

    /// Returns whether there is a part of a line without an end.
    pub fn has_part(&self) -> bool {
        !self.part.is_empty() || self.is_too_long
    }

    /// Returns whether the file has not grown for this long, or cannot.
    pub fn has_settled(&self, time: Duration) -> bool {
        let Some(file) = &self.file else { return true };
        let modified = file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
        self.grown.elapsed() >= time || modified.is_some_and(|elapsed| elapsed >= time)
    }
}
