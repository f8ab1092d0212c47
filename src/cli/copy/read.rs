//! Reading contents into a file. A connection that broke is continued after the last line that has a cursor.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use super::file::{END, HEADER};
use super::service::{Refused, Service};

/// The number of attempts in a row that may end without another line.
const ATTEMPTS: u32 = 10;
/// The pause before the second of them. It doubles with each attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// A file that contents are written to.
struct Partial {
    file: File,
    /// The bytes up to the last line with a cursor, and that cursor.
    after: Option<(u64, String)>,
    has_header: bool,
}

/// How a response ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Complete,
    /// More may be read later.
    Early,
    /// The position is not valid any more.
    Stale,
}

/// Reads the contents of a board into a file. One that is there is from an earlier run, and the board may have changed
/// since.
pub(super) async fn contents(from: &Service, board: &str, path: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut partial = Partial::create(path).with_context(failed)?;
    let (mut attempts, mut pause) = (0, PAUSE);
    loop {
        let before = partial.after.clone();
        match read(from, board, &mut partial).await? {
            Ended::Complete => return partial.file.sync_all().with_context(failed),
            Ended::Stale => partial.clear().with_context(failed)?,
            Ended::Early if partial.after != before => (attempts, pause) = (0, PAUSE),
            Ended::Early => {}
        }
        attempts += 1;
        if attempts == ATTEMPTS {
            bail!("the contents end early again and again: run the command again to continue");
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

async fn read(from: &Service, board: &str, partial: &mut Partial) -> anyhow::Result<Ended> {
    let after = partial.rewind()?;
    let mut lines = match from.contents(board, after.as_deref()).await {
        Ok(lines) => lines,
        Err(error) if after.is_some() && error.downcast_ref().is_some_and(|Refused { status, .. }| *status == 409) => {
            return Ok(Ended::Stale);
        }
        Err(error) => return Err(error),
    };
    while let Ok(Some(line)) = lines.next().await {
        if let Some(ended) = partial.write(line)? {
            return Ok(ended);
        }
    }
    Ok(Ended::Early)
}

impl Partial {
    fn create(path: &Path) -> std::io::Result<Self> {
        Ok(Self { file: File::create(path)?, after: None, has_header: false })
    }

    /// Drops what comes after the last line with a cursor, and returns that cursor.
    fn rewind(&mut self) -> std::io::Result<Option<String>> {
        match self.after.clone() {
            Some((at, cursor)) => {
                self.file.set_len(at)?;
                self.file.seek(SeekFrom::Start(at))?;
                Ok(Some(cursor))
            }
            None => self.clear().map(|()| None),
        }
    }

    fn clear(&mut self) -> std::io::Result<()> {
        (self.after, self.has_header) = (None, false);
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0)).map(drop)
    }

    /// Writes a line. Returns how the contents end, if it is the last one.
    fn write(&mut self, line: &str) -> anyhow::Result<Option<Ended>> {
        let is_header = line.starts_with(HEADER);
        if is_header && self.has_header {
            return Ok(None);
        }
        self.has_header |= is_header;
        if line.starts_with(END) {
            let end: Value = serde_json::from_str(line).context("the last line of the contents is not valid")?;
            if end["complete"] != true {
                let problem = &end["problem"];
                return match problem["status"].as_u64() {
                    Some(status) if status < 500 && problem["code"] != "stale_cursor" => {
                        bail!("{}", problem["detail"].as_str().unwrap_or("the contents ended early"))
                    }
                    Some(status) if status < 500 => Ok(Some(Ended::Stale)),
                    _ => Ok(Some(Ended::Early)),
                };
            }
            writeln!(self.file, "{line}")?;
            return Ok(Some(Ended::Complete));
        }
        writeln!(self.file, "{line}")?;
        if let Some(cursor) = cursor_of(line) {
            let at = self.file.stream_position()?;
            self.after = Some((at, cursor));
        }
        Ok(None)
    }
}

/// Returns the cursor of a line, its last member. In the texts of a line quotation marks are escaped.
fn cursor_of(line: &str) -> Option<String> {
    let (_, cursor) = line.strip_suffix("\"}")?.rsplit_once(",\"cursor\":\"")?;
    cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_').then(|| cursor.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_the_last_member_of_a_line() {
        assert_eq!(cursor_of("{\"n\":1,\"sums\":[[\"a\",1]],\"cursor\":\"aB-_9\"}").as_deref(), Some("aB-_9"));
        for line in [
            "{\"n\":1,\"sums\":[[\"a\",1]]}",
            "{\"n\":1,\"sums\":[[\",\\\"cursor\\\":\\\"x\",1]]}",
            "{\"n\":1,\"values\":[[\"a\",\",\\\"cursor\\\":\\\"x\"}",
            "",
        ] {
            assert_eq!(cursor_of(line), None, "{line}");
        }
    }

    #[test]
    fn a_response_continues_after_the_last_line_with_a_cursor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.contents");
        let mut partial = Partial::create(&path).unwrap();
        let write = |partial: &mut Partial, lines: &[&str]| {
            for line in lines {
                assert_eq!(partial.write(line).unwrap(), None);
            }
        };
        let header = "{\"contents\":1,\"export\":\"x\"}";
        write(&mut partial, &[header, "{\"n\":1}", "{\"n\":2,\"cursor\":\"two\"}", "{\"n\":3}"]);
        assert_eq!(partial.rewind().unwrap().as_deref(), Some("two"));
        // Another response begins with the first line again.
        write(&mut partial, &[header, "{\"n\":3}"]);
        assert_eq!(partial.write("{\"complete\":true}").unwrap(), Some(Ended::Complete));
        let all = std::fs::read_to_string(&path).unwrap();
        let lines = [header, "{\"n\":1}", "{\"n\":2,\"cursor\":\"two\"}", "{\"n\":3}", "{\"complete\":true}"];
        assert_eq!(all, lines.map(|line| format!("{line}\n")).concat());
        // Without a cursor, everything is read again.
        let mut partial = Partial::create(&path).unwrap();
        write(&mut partial, &[header, "{\"n\":1}"]);
        assert_eq!(partial.rewind().unwrap(), None);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }
}
