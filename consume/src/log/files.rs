//! A file that lines are appended to, with those that it was before it was rotated.
//!
//! A line's position is the number of its file × 2^40 + the offset at which the line ends. The number of a file is the time of
//! its first line that has one, in milliseconds: that does not change when the file is renamed, copied or packed, so nothing
//! has to be remembered.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use super::{Behind, Found, Log, LogError, MAX_BYTES, MAX_MESSAGES, Message, Place, TimeOf};
use crate::config::Begin;
use crate::events;

/// The bits of a position that are the offset.
const OFFSET_BITS: u32 = 40;
/// How much of a file is searched for a line with a time, in bytes.
const HEAD: usize = 1 << 20;
/// The longest line, in bytes. A longer one is a message that is too long.
const MAX_LINE: usize = 1 << 20;
/// How long a file may be that is newer than its own first line, in milliseconds.
const A_DAY: i64 = 86_400_000;
const POLL: Duration = Duration::from_millis(250);

/// Where the files are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// The file that is written.
    pub path: PathBuf,
    /// The names of those that it was before, with one `*`, such as `app-*.log`. By default the name of the file with `.` or
    /// `-` and anything after it.
    pub rotated: Option<String>,
    /// Where the time of a line is by the clock of the writer. By default that of the event.
    pub clock: Option<events::Path>,
    /// How long a file must not have grown before the next one is read, in seconds.
    #[serde(default = "ten")]
    pub settle: u64,
}

fn ten() -> u64 {
    10
}

/// A file and those that it was before.
pub struct FileLog {
    config: FileConfig,
    time_of: TimeOf,
    /// Where to go when there is a file; `None` if one is read.
    place: Place,
    reading: Option<Reading>,
    /// The size of the file that is read, and of those after it, when it was asked last.
    size: u64,
    later: u64,
}

/// What is read.
struct Reading {
    file: Known,
    reader: Box<dyn BufRead + Send>,
    /// The offset after what was read, with a part of a line.
    offset: u64,
    /// The offset at which the lines begin that were read last.
    began: u64,
    /// The part of a line that was read.
    part: Vec<u8>,
    /// Whether the rest of a line that is too long is to be passed.
    is_too_long: bool,
    grown: Instant,
    /// When it was last looked for other files.
    looked: Instant,
}

/// A file whose number is known.
#[derive(Clone, Debug)]
struct Known {
    path: PathBuf,
    number: u64,
    /// The file up to the end of the line whose time is the number.
    head: Vec<u8>,
    is_packed: bool,
    /// Its size as it is stored.
    size: u64,
    inode: u64,
    is_current: bool,
}

impl FileLog {
    pub fn new(config: FileConfig, time_of: TimeOf) -> Self {
        Self { config, time_of, place: Place::Begin(Begin::Earliest), reading: None, size: 0, later: 0 }
    }

    /// Returns the files that have a line with a time, the oldest first. Of those that are the same, it is one: the one that
    /// is written, else the longest that is not packed.
    fn files(&self) -> Result<Vec<Known>, LogError> {
        let path = &self.config.path;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let wrong = |error: io::Error| LogError::later(format!("cannot read {}", folder.display()), error);
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let Ok(other) = entry.file_name().into_string() else { continue };
            let is_current = other == name;
            if !is_current && !self.is_rotated(name, &other) {
                continue;
            }
            // A file may go between any two steps.
            match self.known(entry.path(), is_current) {
                Ok(known) => files.extend(known),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(LogError::later(format!("cannot read {}", entry.path().display()), error));
                }
            }
        }
        files.sort_by(|a, b| {
            a.number
                .cmp(&b.number)
                .then(b.is_current.cmp(&a.is_current))
                .then(a.is_packed.cmp(&b.is_packed))
                .then(b.size.cmp(&a.size))
        });
        let mut kept: Vec<Known> = Vec::with_capacity(files.len());
        for file in files {
            match kept.last() {
                Some(last) if last.number == file.number && !same(last, &file) => {
                    let (one, other) = (last.path.display(), file.path.display());
                    return Err(LogError::stop(format!(
                        "{one} and {other} begin at the same time, {} ms, with other lines: which is first is not known",
                        file.number
                    )));
                }
                Some(last) if last.number == file.number => {}
                _ => kept.push(file),
            }
        }
        if let Some(at) = kept.iter().position(|file| file.is_current)
            && at + 1 < kept.len()
        {
            let (current, other) = (kept[at].path.display(), kept[at + 1].path.display());
            return Err(LogError::stop(format!(
                "the first line of {current} is older than that of {other}, which was written before it: is the time that \
                 of the writer? See 'clock' of [source.file]"
            )));
        }
        Ok(kept)
    }

    fn is_rotated(&self, name: &str, other: &str) -> bool {
        match self.config.rotated.as_deref() {
            None => other.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '-']) && rest.len() > 1),
            Some(pattern) => {
                let (begin, end) = pattern.split_once('*').unwrap_or((pattern, ""));
                other.len() >= begin.len() + end.len() && other.starts_with(begin) && other.ends_with(end)
            }
        }
    }

    /// Returns what is known of a file. `None` if it has no whole line with a time yet.
    fn known(&self, path: PathBuf, is_current: bool) -> io::Result<Option<Known>> {
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let (mut reader, is_packed) = opened(file)?;
        let mut head = Vec::new();
        loop {
            let begin = head.len();
            let left = (HEAD - begin.min(HEAD)) as u64;
            if left == 0 && is_current {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "no line of its first MiB has a time"));
            }
            match reader.by_ref().take(left).read_until(b'\n', &mut head) {
                Ok(0) => return Ok(None),
                Ok(_) if head.last() != Some(&b'\n') => return Ok(None),
                Ok(_) => {}
                // It is being packed.
                Err(error) if is_packed && error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
            let Some(time) = (self.time_of)(&head[begin..]) else { continue };
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let modified = modified.map_or(i64::MAX, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
            if time > modified.saturating_add(A_DAY) {
                continue;
            }
            let Ok(number) = u64::try_from(time) else { continue };
            let (size, inode) = (metadata.len(), metadata.ino());
            return Ok(Some(Known { path, number, head, is_packed, size, inode, is_current }));
        }
    }

    /// Opens a file at an offset of its text.
    fn open(&mut self, file: Known, offset: u64) -> io::Result<()> {
        let mut source = File::open(&file.path)?;
        let reader: Box<dyn BufRead + Send> = if file.is_packed {
            let (mut reader, _) = opened(source)?;
            io::copy(&mut reader.by_ref().take(offset), &mut io::sink())?;
            reader
        } else {
            source.seek(SeekFrom::Start(offset))?;
            Box::new(BufReader::with_capacity(1 << 16, source))
        };
        let now = Instant::now();
        let (part, is_too_long) = (Vec::new(), false);
        let reading = Reading { file, reader, offset, began: offset, part, is_too_long, grown: now, looked: now };
        self.reading = Some(reading);
        Ok(())
    }

    fn goes_to(&mut self, place: Place) -> Result<Found, LogError> {
        (self.place, self.reading) = (place, None);
        let files = self.files()?;
        let wrong =
            |file: &Known, error: io::Error| LogError::later(format!("cannot read {}", file.path.display()), error);
        let (number, offset) = match place {
            Place::After(position) => ((position >> OFFSET_BITS) as u64, (position & ((1 << OFFSET_BITS) - 1)) as u64),
            Place::Begin(Begin::Earliest) => (0, 0),
            Place::Begin(Begin::At(time)) => {
                // The last file that begins before it; lines that are older are passed with it.
                let time = u64::try_from(time.timestamp_millis()).unwrap_or(0);
                (files.iter().rev().map(|file| file.number).find(|number| *number <= time).unwrap_or(0), 0)
            }
            Place::Begin(Begin::Latest) => {
                // What is written later is all new.
                self.place = Place::Begin(Begin::Earliest);
                let Some(file) = files.last().cloned() else { return Ok(Found::default()) };
                let end = end_of_last_line(&file).map_err(|error| wrong(&file, error))?;
                let after = position(file.number, end);
                self.open(file.clone(), end).map_err(|error| wrong(&file, error))?;
                return Ok(Found { after: Some(after), gap: None });
            }
        };
        let newest = files.last().map_or(0, |file| file.number);
        if number > newest && files.iter().any(|file| file.is_current) {
            return Err(LogError::stop(format!(
                "what is counted goes to a file that begins at {number} ms, but the newest begins at {newest} ms"
            )));
        }
        let next = files.iter().find(|file| file.number >= number).cloned();
        let Some(file) = next else { return Ok(Found::default()) };
        let is_there = file.number == number;
        let (from, after) = if is_there { (offset, Some(position(number, offset))) } else { (0, None) };
        if is_there && !file.is_packed && file.size < offset {
            return Err(LogError::stop(format!(
                "{} has {} bytes, but {offset} are counted: it was cut and begins with the same line",
                file.path.display(),
                file.size
            )));
        }
        let gap = (matches!(place, Place::After(_)) && !is_there)
            .then(|| format!("the file that begins at {number} ms is gone; the next one is {}", file.path.display()));
        self.open(file.clone(), from).map_err(|error| wrong(&file, error))?;
        Ok(Found { after, gap })
    }

    /// Reads lines that are there.
    fn lines(&mut self) -> Result<Vec<Message>, LogError> {
        if self.reading.is_none()
            && let Some(gap) = self.goes_to(self.place)?.gap
        {
            return Err(LogError::later("the log goes on elsewhere", anyhow::anyhow!(gap)));
        }
        let Some(reading) = &mut self.reading else { return Ok(Vec::new()) };
        let shown = reading.file.path.display().to_string();
        let messages = reading.lines().map_err(|error| LogError::later(format!("cannot read {shown}"), error))?;
        if !messages.is_empty() {
            reading.grown = Instant::now();
        }
        // A file that was cut and filled again has another head: what was read is not of the file that it seemed to be.
        if !reading.file.is_packed && !has_head(&reading.file).unwrap_or(false) {
            return self.follow_renamed(messages);
        }
        if messages.is_empty() {
            self.look_further()?;
        }
        Ok(messages)
    }

    /// Goes on if a file no longer begins as it did at its path: it was renamed, or cut.
    fn follow_renamed(&mut self, messages: Vec<Message>) -> Result<Vec<Message>, LogError> {
        let Some(reading) = &mut self.reading else { return Ok(messages) };
        // A file that was renamed is still the same one.
        let is_same =
            fs::read_dir(self.config.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))
                .into_iter()
                .flatten()
                .flatten()
                .find(|entry| entry.metadata().is_ok_and(|metadata| metadata.ino() == reading.file.inode))
                .map(|entry| Known { path: entry.path(), ..reading.file.clone() })
                .filter(|file| has_head(file).unwrap_or(false));
        if let Some(file) = is_same {
            reading.file = Known { is_current: file.path == self.config.path, ..file };
            if messages.is_empty() {
                self.look_further()?;
            }
            return Ok(messages);
        }
        let place = Place::After(position(reading.file.number, reading.began));
        // It was cut, and is a copy now, or gone.
        let found = self.goes_to(place)?;
        match found.gap {
            None => Ok(Vec::new()),
            Some(gap) => Err(LogError::later("the log goes on elsewhere", anyhow::anyhow!(gap))),
        }
    }

    /// At the end of what is there: goes on to the next file, if there is one and this one does not grow any more.
    fn look_further(&mut self) -> Result<(), LogError> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        if reading.looked.elapsed() < Duration::from_secs(1) {
            return Ok(());
        }
        reading.looked = Instant::now();
        let (number, offset) = (reading.file.number, reading.offset);
        let settled = reading.file.is_packed || reading.grown.elapsed() >= Duration::from_secs(self.config.settle);
        let files = self.files()?;
        let next = files.into_iter().find(|file| file.number > number).filter(|_| settled);
        let (Some(next), Some(reading)) = (next, &self.reading) else { return Ok(()) };
        if !reading.part.is_empty() {
            tracing::warn!(file = %reading.file.path.display(), offset, "the last line of a file has no end; it is passed");
        }
        let shown = next.path.display().to_string();
        self.open(next, 0).map_err(|error| LogError::later(format!("cannot read {shown}"), error))
    }
}

impl Reading {
    /// Reads the whole lines that are there, up to a portion.
    fn lines(&mut self) -> io::Result<Vec<Message>> {
        let (mut messages, mut bytes) = (Vec::new(), 0);
        self.began = self.offset - self.part.len() as u64;
        while messages.len() < MAX_MESSAGES && bytes < MAX_BYTES {
            let left = (MAX_LINE + 1).saturating_sub(self.part.len()) as u64;
            let read = self.reader.by_ref().take(left).read_until(b'\n', &mut self.part)?;
            let is_whole = self.part.last() == Some(&b'\n');
            self.offset += read as u64;
            if !is_whole {
                if self.part.len() > MAX_LINE {
                    self.is_too_long = true;
                    self.part.clear();
                    continue;
                }
                if read == 0 {
                    break;
                }
                continue;
            }
            let too_long = std::mem::take(&mut self.is_too_long);
            let line = std::mem::take(&mut self.part);
            // What is too long is no text that anybody can read.
            let value = if too_long { Bytes::from_static(b"\xff") } else { Bytes::from(line) };
            bytes += value.len();
            let position = position(self.file.number, self.offset);
            messages.push(Message { position, value: Some(value), ..Message::default() });
        }
        Ok(messages)
    }
}

#[async_trait]
impl Log for FileLog {
    async fn go_to(&mut self, place: Place) -> Result<Found, LogError> {
        tokio::task::block_in_place(|| self.goes_to(place))
    }

    async fn read(&mut self) -> Result<Vec<Message>, LogError> {
        let messages = tokio::task::block_in_place(|| self.lines())?;
        if messages.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        Ok(messages)
    }

    async fn refresh(&mut self) -> Result<(), LogError> {
        let files = tokio::task::block_in_place(|| self.files())?;
        let Some(reading) = &self.reading else { return Ok(()) };
        let number = reading.file.number;
        self.later = files.iter().filter(|file| file.number > number).map(|file| file.size).sum();
        self.size = files.iter().find(|file| file.number == number && !file.is_packed).map_or(0, |file| file.size);
        Ok(())
    }

    fn behind(&self) -> Behind {
        let left = self.reading.as_ref().map_or(0, |reading| self.size.saturating_sub(reading.offset));
        Behind { items: Some(self.later + left), newest: None }
    }
}

fn position(number: u64, offset: u64) -> u128 {
    (u128::from(number) << OFFSET_BITS) | u128::from(offset)
}

/// Returns whether two files with the same number are the same, one perhaps a shorter copy.
fn same(one: &Known, other: &Known) -> bool {
    one.head == other.head
}

/// Returns the text of a file, and whether it is packed, which its first bytes say.
fn opened(mut file: File) -> io::Result<(Box<dyn BufRead + Send>, bool)> {
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    let reader = BufReader::with_capacity(1 << 16, file);
    let is_packed = magic == [0x1f, 0x8b];
    Ok(if is_packed {
        (Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(reader))), true)
    } else {
        (Box::new(reader), false)
    })
}

/// Returns whether the file at a path still begins with the head.
fn has_head(file: &Known) -> io::Result<bool> {
    let mut source = File::open(&file.path)?;
    if source.metadata()?.ino() != file.inode {
        return Ok(false);
    }
    let mut head = vec![0; file.head.len()];
    match source.read_exact(&mut head) {
        Ok(()) => Ok(head == file.head),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the offset at which the last whole line ends.
fn end_of_last_line(file: &Known) -> io::Result<u64> {
    let (mut reader, _) = opened(File::open(&file.path)?)?;
    let (mut offset, mut end) = (0, 0);
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(end);
        }
        if let Some(at) = buffer.iter().rposition(|byte| *byte == b'\n') {
            end = offset + at as u64 + 1;
        }
        let read = buffer.len();
        offset += read as u64;
        reader.consume(read);
    }
}
