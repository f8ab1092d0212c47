//! Lines of a text that arrives in pieces.

use std::time::Duration;

use memchr::memchr;
use reqwest::Response;
use tokio::time::timeout;

use crate::{Error, Result};

/// The longest line, in bytes. A page of 100 lines with the longest names has fewer.
const MAX_LINE: usize = 16 << 20;

/// The lines of an answer as they arrive, such as those of a board's contents.
#[derive(Debug)]
pub struct Lines {
    response: Response,
    /// What has arrived and was not returned.
    text: Vec<u8>,
    /// The bytes of `text` that were returned, and those in which no end of a line was found.
    returned: usize,
    searched: usize,
    /// The time after which silence is an error.
    silence: Duration,
}

impl Lines {
    pub(crate) fn new(response: Response, silence: Duration) -> Self {
        Self { response, text: Vec::new(), returned: 0, searched: 0, silence }
    }

    /// Returns the next line without its end, or `None` after the last one. What is not ended by a line break is no line:
    /// the answer was cut.
    ///
    /// # Errors
    ///
    /// `interrupted` or `timed_out`, if the connection breaks or nothing comes, and `unexpected_answer` for a line that is
    /// not UTF-8 or longer than 16 MiB.
    pub async fn next(&mut self) -> Result<Option<&str>> {
        loop {
            let from = self.returned + self.searched;
            if let Some(at) = memchr(b'\n', &self.text[from..]) {
                let line = self.returned..from + at;
                self.returned = from + at + 1;
                self.searched = 0;
                let line = std::str::from_utf8(&self.text[line]);
                let line = line.map_err(|_| Error::unexpected(200, "a line that is not UTF-8".to_owned()))?;
                return Ok(Some(line.strip_suffix('\r').unwrap_or(line)));
            }
            self.text.drain(..self.returned);
            self.returned = 0;
            self.searched = self.text.len();
            if self.text.len() > MAX_LINE {
                return Err(Error::unexpected(200, format!("a line of more than {MAX_LINE} bytes")));
            }
            let piece = timeout(self.silence, self.response.chunk());
            match piece.await.map_err(|_| Error::timed_out(self.silence))?? {
                Some(piece) => self.text.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    }
}
