//! A file and those that it was before it was rotated, in their order.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chrono::Utc;
use rolltop::cli::replay;

use super::FileConfig;
use crate::log::{LogError, TimeOf};

/// How much of a file is searched for a line with a time, in bytes and in lines.
const HEAD: usize = 1 << 20;
const HEAD_LINES: usize = 1_000;
/// How much of two files is compared that begin at the same time.
const COMPARED: u64 = 1 << 20;
/// How often it is looked again while files are renamed.
const ATTEMPTS: usize = 10;
/// How far the time of a first line may be ahead of the clock, in milliseconds.
const A_DAY: i64 = 86_400_000;

/// A file whose number is known: the time of its first line that has one, in Unix milliseconds.
#[derive(Clone, Debug)]
pub struct LogFile {
    pub path: PathBuf,
    pub number: u64,
    /// The text up to the end of the line whose time is the number.
    pub head: Vec<u8>,
    pub is_packed: bool,
    /// The size as it is stored.
    pub size: u64,
    pub inode: u64,
    /// Whether it is the file that is written.
    pub is_current: bool,
}

/// Returns the files that have a line with a time, the oldest first. Of several that are the same, as while one is copied or
/// packed, it is one: the one that is written, else the longest that is not packed.
pub fn list(config: &FileConfig, time_of: &TimeOf) -> Result<Vec<LogFile>, LogError> {
    let mut names = names(config)?;
    for _ in 0..ATTEMPTS {
        let mut files = Vec::new();
        for Name { path, is_current, .. } in &names {
            // A file may go between any two steps.
            match LogFile::at(path.clone(), *is_current, time_of) {
                Ok(file) => files.extend(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(LogError::later(format!("cannot read {}", path.display()), error)),
            }
        }
        let now = self::names(config)?;
        // While names are shifted, a file may be under none of them when it is looked.
        if now == names {
            return in_order(files);
        }
        names = now;
    }
    Err(LogError::Later(anyhow::anyhow!("the files of {} are renamed all the time", config.path.display())))
}

/// A name in the folder, and which file it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    path: PathBuf,
    inode: u64,
    is_current: bool,
}

/// Returns the names of the file and of those that it was.
fn names(config: &FileConfig) -> Result<Vec<Name>, LogError> {
    let path = &config.path;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let wrong = |error: io::Error| LogError::later(format!("cannot read {}", folder.display()), error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let Ok(other) = entry.file_name().into_string() else { continue };
        let is_current = other == name;
        if is_current || is_rotated(config, name, &other) {
            let inode = match fs::metadata(entry.path()) {
                Ok(metadata) => metadata.ino(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(LogError::later(format!("cannot read {}", entry.path().display()), error)),
            };
            names.push(Name { path: entry.path(), inode, is_current });
        }
    }
    names.sort();
    Ok(names)
}

fn is_rotated(config: &FileConfig, name: &str, other: &str) -> bool {
    match config.rotated.as_deref() {
        None => other.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '-']) && rest.len() > 1),
        Some(pattern) => {
            let (begin, end) = pattern.split_once('*').unwrap_or((pattern, ""));
            other.len() >= begin.len() + end.len() && other.starts_with(begin) && other.ends_with(end)
        }
    }
}

fn in_order(mut files: Vec<LogFile>) -> Result<Vec<LogFile>, LogError> {
    files.sort_by_key(|file| (file.number, !file.is_current, file.is_packed, u64::MAX - file.size));
    let ahead = Utc::now().timestamp_millis() + A_DAY;
    let mut kept: Vec<LogFile> = Vec::with_capacity(files.len());
    for file in files {
        let shown = file.path.display();
        if i64::try_from(file.number).is_ok_and(|number| number > ahead) {
            return Err(LogError::stop(format!(
                "the first line of {shown} is dated in the future: is its time that of the writer? See 'clock' of [source.file]"
            )));
        }
        let last = kept.last().filter(|last| last.number == file.number);
        // One of them may be gone, which is seen when the names are read again.
        let is_same = last.map_or(Ok(true), |last| last.is_same(&file)).unwrap_or(true);
        match last {
            Some(last) if !is_same => {
                return Err(LogError::stop(format!(
                    "{} and {shown} begin at the same time, {} ms, with other lines: which is first is not known",
                    last.path.display(),
                    file.number
                )));
            }
            Some(_) => {}
            None => kept.push(file),
        }
    }
    if let Some(at) = kept.iter().position(|file| file.is_current)
        && let Some(later) = kept.get(at + 1)
    {
        return Err(LogError::stop(format!(
            "the first line of {} is older than that of {}, which was written before it: is its time that of the writer? See \
             'clock' of [source.file]",
            kept[at].path.display(),
            later.path.display()
        )));
    }
    Ok(kept)
}

impl LogFile {
    /// Returns what is known of a file. `None` if it has no line with a time yet.
    fn at(path: PathBuf, is_current: bool, time_of: &TimeOf) -> io::Result<Option<Self>> {
        // To open what is no file may block.
        if !fs::metadata(&path)?.is_file() {
            return Ok(None);
        }
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        let (mut reader, is_packed) = replay::text(file)?;
        let (mut head, mut lines) = (Vec::new(), 0);
        while head.len() < HEAD && lines < HEAD_LINES {
            let begin = head.len();
            let left = (HEAD - begin) as u64;
            match reader.by_ref().take(left).read_until(b'\n', &mut head) {
                Ok(0) => return Ok(None),
                Ok(_) if head.last() == Some(&b'\n') => {}
                Ok(_) if head.len() < HEAD => return Ok(None),
                Ok(_) => break,
                // It is being packed.
                Err(error) if is_packed && error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
            lines += 1;
            if let Some(number) = time_of(&head[begin..]).and_then(|time| u64::try_from(time).ok()) {
                let (size, inode) = (metadata.len(), metadata.ino());
                return Ok(Some(Self { path, number, head, is_packed, size, inode, is_current }));
            }
        }
        match is_current {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, "none of its first lines has a time")),
            // It may be something else whose name is similar.
            false => {
                tracing::warn!("{} is not read: none of its first lines has a time", path.display());
                Ok(None)
            }
        }
    }

    /// Returns whether another file is the same one, of which either may be a part.
    fn is_same(&self, other: &Self) -> io::Result<bool> {
        let begin = |file: &Self| {
            let mut read = Vec::new();
            match replay::text(file.open()?)?.0.take(COMPARED).read_to_end(&mut read) {
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
                _ => Ok(read),
            }
        };
        Ok(begin(self)?.iter().zip(&begin(other)?).all(|(one, other)| one == other))
    }

    /// Returns the offset at which the line begins that ends at an offset.
    pub fn begin_of_line(&self, end: u64) -> io::Result<u64> {
        let mut file = self.open()?;
        if self.is_packed {
            return last_line_end(&mut replay::text(file)?.0, 0, end.saturating_sub(1));
        }
        let offset = end.saturating_sub(replay::MAX_LINE_BYTES as u64 + 1);
        file.seek(SeekFrom::Start(offset))?;
        last_line_end(&mut BufReader::new(file), offset, end.saturating_sub(1))
    }

    /// Opens the file. Fails if there is another one at its path by now.
    pub fn open(&self) -> io::Result<File> {
        let file = File::open(&self.path)?;
        if file.metadata()?.ino() != self.inode {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it was renamed"));
        }
        Ok(file)
    }

    /// Returns the offset at which its last whole line ends.
    pub fn end_of_last_line(&self) -> io::Result<u64> {
        last_line_end(&mut replay::text(self.open()?)?.0, 0, u64::MAX)
    }
}

/// Returns the offset after the last line end of a text that begins at an offset, of those before another one; or where the
/// text begins, if there is none.
fn last_line_end(text: &mut dyn BufRead, begin: u64, before: u64) -> io::Result<u64> {
    let (mut offset, mut end) = (begin, begin);
    loop {
        let buffer = text.fill_buf()?;
        let left = usize::try_from(before.saturating_sub(offset)).unwrap_or(usize::MAX);
        let read = buffer.len().min(left);
        if read == 0 {
            return Ok(end);
        }
        if let Some(at) = buffer[..read].iter().rposition(|byte| *byte == b'\n') {
            end = offset + at as u64 + 1;
        }
        offset += read as u64;
        text.consume(read);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Lines whose time is what they say.
    fn time_of() -> TimeOf {
        Arc::new(|line| std::str::from_utf8(line).ok()?.trim().parse().ok())
    }

    fn listed(files: &[(&str, &str)], rotated: Option<&str>) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let rotated = rotated.map(str::to_owned);
        let config = FileConfig { path: folder.path().join("app.log"), rotated, clock: None, settle: 1 };
        let name = |file: LogFile| format!("{} {}", file.path.file_name().unwrap().display(), file.number);
        match list(&config, &time_of()) {
            Ok(files) => Ok(files.into_iter().map(name).collect()),
            Err(error) => Err(format!("{:#}", anyhow::Error::from(error))),
        }
    }

    #[test]
    fn files_are_in_the_order_of_their_first_times() {
        let files = [
            ("app.log", "x\n30\n1\n"),
            ("app.log.2", "10\n"),
            ("app.log-1", "20\n"),
            ("other.log", "1\n"),
            ("app.log2", "1\n"),
        ];
        assert_eq!(listed(&files, None).unwrap(), ["app.log.2 10", "app.log-1 20", "app.log 30"]);
        let files = [("app.log", "30\n"), ("app-1.log", "10\n"), ("app-1.old", "20\n")];
        assert_eq!(listed(&files, Some("app-*.log")).unwrap(), ["app-1.log 10", "app.log 30"]);
        // Without a whole line that has a time a file is not there yet.
        assert_eq!(listed(&[("app.log", "header\n20")], None).unwrap(), [""; 0]);
    }

    #[test]
    fn copies_are_one_file() {
        let files =
            [("app.log", "10\nx\ny\n"), ("app.log.1", "10\nx\n"), ("app.log.2", "5\nx\n"), ("app.log.2.new", "5\n")];
        assert_eq!(listed(&files, None).unwrap(), ["app.log.2 5", "app.log 10"]);
    }

    #[test]
    fn lines_begin_after_the_end_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        fs::write(&path, "10\nab\n\nc").unwrap();
        let file = LogFile::at(path, true, &time_of()).unwrap().unwrap();
        for (end, begin) in [(3, 0), (6, 3), (7, 6), (8, 7)] {
            assert_eq!(file.begin_of_line(end).unwrap(), begin, "{end}");
        }
    }

    #[test]
    fn an_order_that_cannot_be_right_is_refused() {
        let future = format!("{}\n", Utc::now().timestamp_millis() + 2 * A_DAY);
        let untimed = "x\n".repeat(HEAD_LINES);
        for (files, needle) in [
            ([("app.log", "10\n"), ("app.log.1", "20\n")], "is older than that of"),
            ([("app.log", "x\n10\n"), ("app.log.1", "10\n")], "begin at the same time"),
            ([("app.log", "10\n11\n"), ("app.log.1", "10\n12\n")], "begin at the same time"),
            ([("app.log", future.as_str()), ("app.log.1", "20\n")], "in the future"),
            ([("app.log", untimed.as_str()), ("app.log.1", "20\n")], "none of its first lines has a time"),
        ] {
            let error = listed(&files, None).unwrap_err();
            assert!(error.contains(needle), "{error}");
        }
        assert_eq!(listed(&[("app.log", "10\n"), ("app.log.1", &untimed)], None).unwrap(), ["app.log 10"]);
    }
}
