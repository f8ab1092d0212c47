//! The lines of standard input.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// The longest line, in bytes. The service takes none that is longer.
const MAX_LINE: usize = 1 << 20;

/// The lines of an input.
pub(super) struct InputLines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// The number of the last line, from 1.
    pub(super) number: u64,
}

impl<R: AsyncRead + Unpin> InputLines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), number: 0 }
    }

    /// Returns the next line that is not empty, or what is wrong with it, with its number. `None` after the last one.
    pub(super) async fn next(&mut self) -> io::Result<Option<(u64, Result<&str, String>)>> {
        loop {
            self.line.clear();
            let most = MAX_LINE as u64 + 1;
            if (&mut self.input).take(most).read_until(b'\n', &mut self.line).await? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.line.len() > MAX_LINE && !self.line.ends_with(b"\n") {
                self.skip().await?;
                return Ok(Some((self.number, Err(format!("the line is longer than {MAX_LINE} bytes")))));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let line = match std::str::from_utf8(&self.line) {
            // Some programs begin files with a mark of the byte order.
            Ok(line) if self.number == 1 => Ok(line.trim_start_matches('\u{feff}')),
            Ok(line) => Ok(line),
            Err(_) => Err("the line is not UTF-8".to_owned()),
        };
        Ok(Some((self.number, line)))
    }

    /// Skips the rest of a line.
    async fn skip(&mut self) -> io::Result<()> {
        loop {
            let piece = self.input.fill_buf().await?;
            let end = memchr::memchr(b'\n', piece);
            let (taken, is_over) = (end.map_or(piece.len(), |end| end + 1), end.is_some() || piece.is_empty());
            self.input.consume(taken);
            if is_over {
                return Ok(());
            }
        }
    }
}
