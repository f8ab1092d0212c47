//! The lines of a response, as they arrive.

use bytes::Bytes;
use reqwest::Response;

/// The lines of a response.
pub(super) struct ResponseLines {
    response: Response,
    /// What has arrived after the current line.
    arrived: Bytes,
    line: Vec<u8>,
}

impl ResponseLines {
    pub(super) fn new(response: Response) -> Self {
        Self { response, arrived: Bytes::new(), line: Vec::new() }
    }

    /// Returns the next line with its line break, or `None` after the last one. What is not ended by a line break is no
    /// line.
    pub(super) async fn next(&mut self) -> reqwest::Result<Option<&[u8]>> {
        self.line.clear();
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.arrived) {
                self.line.extend_from_slice(&self.arrived.split_to(end + 1));
                return Ok(Some(&self.line));
            }
            self.line.extend_from_slice(&self.arrived);
            self.arrived = Bytes::new();
            match self.response.chunk().await? {
                Some(piece) => self.arrived = piece,
                None => return Ok(None),
            }
        }
    }
}
