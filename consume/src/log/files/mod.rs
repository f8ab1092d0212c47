//! A file that lines are appended to, with those that it was before it was rotated.
//!
//! A line's position is the number of its file × 2^40 + the offset at which the line ends. The number of a file is the time of
//! its first line that has one, in milliseconds: that does not change when the file is renamed, copied or packed, so nothing
//! has to be remembered.

mod reading;
mod rotation;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Deserialize;

use super::{Arrival, Log, LogError, LogPlace, Message, TimeOf};
use crate::choices::Begin;
use crate::path::MemberPath;
use reading::OpenFile;
use rotation::LogFile;

/// The bits of a position that are the offset.
const OFFSET_BITS: u32 = 40;
const POLL: Duration = Duration::from_millis(250);
/// How often it is looked for the next file.
const LOOK: Duration = Duration::from_secs(1);
/// While a file is renamed or packed, it may be missing for a moment.
const MISSING: Duration = Duration::from_secs(2);

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
    pub clock: Option<MemberPath>,
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
    /// Where to go when there is a file; what is read is after that.
    place: LogPlace,
    reading: Option<OpenFile>,
    /// When it was looked for the next file last, and the size of those that follow.
    looked: Option<Instant>,
    later: u64,
    /// Where a file is missing, and since when.
    missing: Option<(LogPlace, Instant)>,
    /// Whether no file was there: then all of it is new.
    was_absent: bool,
}

impl FileLog {
    pub fn new(config: FileConfig, time_of: TimeOf) -> Self {
        let place = LogPlace::Begin(Begin::Earliest);
        Self { config, time_of, place, reading: None, looked: None, later: 0, missing: None, was_absent: false }
    }

    fn files(&self) -> Result<Vec<LogFile>, LogError> {
        rotation::list(&self.config, &self.time_of)
    }

    /// Opens the file in which a place is. Opens nothing if no file is there yet.
    fn find(&mut self, place: LogPlace) -> Result<Arrival, LogError> {
        (self.place, self.reading, self.looked) = (place, None, None);
        let files = self.files()?;
        if files.is_empty() && place.counted().is_none() {
            self.was_absent = true;
            let shown = self.config.path.display();
            return Err(LogError::Later(anyhow::anyhow!("{shown} is not there, or has no line with a time yet")));
        }
        let (number, offset) = match place {
            LogPlace::After(position) | LogPlace::Again(position) => {
                ((position >> OFFSET_BITS) as u64, (position & ((1 << OFFSET_BITS) - 1)) as u64)
            }
            // What was not there is all new.
            LogPlace::Begin(Begin::Latest) if self.was_absent => (0, 0),
            LogPlace::Begin(Begin::Earliest) => (0, 0),
            LogPlace::Begin(Begin::At(time)) => {
                // The last file that begins before it, as a whole.
                let time = u64::try_from(time.timestamp_millis()).unwrap_or(0);
                (files.iter().rev().map(|file| file.number).find(|number| *number <= time).unwrap_or(0), 0)
            }
            LogPlace::Begin(Begin::Latest) => {
                let Some(file) = files.last() else { return Ok(Arrival::default()) };
                let end = file.end_of_last_line().map_err(|error| unreadable(file, error))?;
                self.open(file, end)?;
                return Ok(Arrival { after: Some(position(file.number, end)), gap: None });
            }
        };
        let next = files.iter().find(|file| file.number >= number);
        let is_there = next.is_some_and(|file| file.number == number);
        let is_counted = place.counted().is_some();
        if is_counted && !is_there {
            self.is_missing_for_long(place, number)?;
        } else {
            self.missing = None;
        }
        let Some(file) = next else {
            let newest = files.iter().find(|file| file.is_current);
            return match newest.filter(|_| is_counted) {
                None => Ok(Arrival::default()),
                Some(newest) => Err(LogError::stop(format!(
                    "what is counted goes to a file that begins at {number} ms, but {} begins at {} ms",
                    newest.path.display(),
                    newest.number
                ))),
            };
        };
        if is_there && file.is_current && !file.is_packed && file.size < offset {
            let (shown, size) = (file.path.display(), file.size);
            return Err(LogError::stop(format!(
                "{shown} has {size} bytes, but {offset} are counted: its end was lost"
            )));
        }
        let gap = (is_counted && !is_there)
            .then(|| format!("the file that begins at {number} ms is gone; the next one is {}", file.path.display()));
        let offset = match place {
            _ if !is_there => 0,
            LogPlace::Again(_) => file.begin_of_line(offset).map_err(|error| unreadable(file, error))?,
            _ => offset,
        };
        self.open(file, offset)?;
        Ok(Arrival { after: None, gap })
    }

    /// Fails until a file has been missing for a moment.
    fn is_missing_for_long(&mut self, place: LogPlace, number: u64) -> Result<(), LogError> {
        match self.missing {
            Some((missing, since)) if missing == place && since.elapsed() >= MISSING => Ok(()),
            Some((missing, _)) if missing == place => Err(is_missing(number)),
            _ => {
                self.missing = Some((place, Instant::now()));
                Err(is_missing(number))
            }
        }
    }

    fn open(&mut self, file: &LogFile, offset: u64) -> Result<(), LogError> {
        self.reading = Some(OpenFile::open(file, offset).map_err(|error| unreadable(file, error))?);
        self.looked = None;
        Ok(())
    }

    /// Reads the lines that are there.
    fn lines(&mut self) -> Result<Vec<Message>, LogError> {
        if self.reading.is_none()
            && let Some(gap) = self.find(self.place)?.gap
        {
            return Err(LogError::later("the log goes on elsewhere", anyhow::anyhow!(gap)));
        }
        let Some(reading) = &mut self.reading else { return Ok(Vec::new()) };
        let lines = reading.lines().map_err(|error| LogError::later("cannot read on", error))?;
        let Some((lines, is_at_end)) = lines else { return self.follow_copy() };
        if lines.is_empty() && is_at_end { self.look_further() } else { Ok(lines) }
    }

    /// Goes on where the file that was read, which was copied and cut, is a file of its own now.
    fn follow_copy(&mut self) -> Result<Vec<Message>, LogError> {
        let Some(reading) = &self.reading else { return Ok(Vec::new()) };
        let place = LogPlace::After(reading.began());
        match self.find(place)?.gap {
            None => Ok(Vec::new()),
            Some(gap) => Err(LogError::later("the log goes on elsewhere", anyhow::anyhow!(gap))),
        }
    }

    /// At the end of what is there: goes on to the next file, if there is one and this one does not grow any more. Returns
    /// what is left of this one.
    fn look_further(&mut self) -> Result<Vec<Message>, LogError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Ok(Vec::new());
        }
        let files = self.files()?;
        self.looked = Some(Instant::now());
        let Some(reading) = &mut self.reading else { return Ok(Vec::new()) };
        let mut later = files.iter().filter(|file| file.number > reading.number);
        self.later = later.clone().map(|file| file.size).sum();
        let settled = reading.has_settled(Duration::from_secs(self.config.settle));
        let Some(next) = later.next().filter(|_| settled) else { return Ok(Vec::new()) };
        // What was written while it was looked comes first.
        let last = reading.lines().map_err(|error| LogError::later("cannot read on", error))?;
        match last {
            None => return self.follow_copy(),
            Some((lines, is_at_end)) if !lines.is_empty() || !is_at_end => return Ok(lines),
            Some(_) => {}
        }
        let rest = reading.rest();
        self.open(next, 0)?;
        Ok(rest.into_iter().collect())
    }
}

fn is_missing(number: u64) -> LogError {
    LogError::Later(anyhow::anyhow!("the file that begins at {number} ms is not there; it is looked for again"))
}

fn unreadable(file: &LogFile, error: io::Error) -> LogError {
    LogError::later(format!("cannot read {}", file.path.display()), error)
}

fn position(number: u64, offset: u64) -> u128 {
    (u128::from(number) << OFFSET_BITS) | u128::from(offset)
}

#[async_trait]
impl Log for FileLog {
    async fn go_to(&mut self, place: LogPlace) -> Result<Arrival, LogError> {
        tokio::task::block_in_place(|| self.find(place))
    }

    async fn read(&mut self) -> Result<Vec<Message>, LogError> {
        let messages = tokio::task::block_in_place(|| self.lines())?;
        if messages.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        Ok(messages)
    }

    fn left(&self) -> Option<u64> {
        Some(self.later + self.reading.as_ref().map_or(0, OpenFile::left))
    }

    fn size(&self, messages: &[Message]) -> u64 {
        messages.iter().filter_map(|message| message.value.as_ref()).map(|value| value.len() as u64).sum()
    }

    async fn is_at_end(&mut self) -> Result<bool, LogError> {
        // Of what is counted there is nothing more.
        let Some(reading) = &self.reading else { return Ok(true) };
        // Without a look nobody knows whether there is another file.
        if self.looked.is_none() || self.left() != Some(0) {
            return Ok(false);
        }
        if reading.has_part() {
            tracing::warn!("the last line of {} has no end: it is not read", self.config.path.display());
        }
        Ok(true)
    }

    fn is_there(&self) -> bool {
        self.reading.is_some()
    }
}
