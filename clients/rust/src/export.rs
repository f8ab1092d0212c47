//! A whole ranking, as a stream of its lines.

use std::collections::VecDeque;

use futures_util::Stream;
use futures_util::stream::try_unfold;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answers::{Line, Ranking};
use crate::request::Plan;
use crate::{Error, Request, Result};

/// The number of lines that are read at once.
const PIECE: u32 = 10_000;

/// The last line of a piece.
#[derive(Deserialize)]
struct End {
    /// Whether all lines were sent. Only the last line has it.
    #[allow(dead_code)]
    complete: bool,
    next: Option<String>,
    problem: Option<Map<String, Value>>,
}

/// What is left of a ranking.
struct Left {
    plan: Plan,
    lines: VecDeque<Line>,
    is_over: bool,
}

impl Request<Ranking> {
    /// Reads the whole ranking, however long, as a stream of its lines; from the offset or the cursor of the request
    /// on.
    ///
    /// It is read in pieces of 10,000 lines, or of the limit of the request. Each is read again after an error that may
    /// pass. Scores that change meanwhile may move a subject over the end of a piece: it is read twice then, or not at
    /// all.
    pub fn lines(self) -> impl Stream<Item = Result<Line>> + Send {
        let plan = self.plan.map(|mut plan| {
            plan.set_default("limit", PIECE);
            Left { plan, lines: VecDeque::new(), is_over: false }
        });
        try_unfold(plan, |left| async {
            let mut left = left?;
            loop {
                if let Some(line) = left.lines.pop_front() {
                    return Ok(Some((line, Ok(left))));
                }
                if left.is_over {
                    return Ok(None);
                }
                left.read().await?;
            }
        })
    }
}

impl Left {
    /// Reads the next piece.
    async fn read(&mut self) -> Result<()> {
        let (lines, end) = piece(&self.plan.send("application/x-ndjson").await?)?;
        self.lines = lines;
        match end.next {
            Some(cursor) => self.plan.go_on(cursor),
            None => self.is_over = true,
        }
        Ok(())
    }
}

/// Returns the lines of a piece, and its end.
fn piece(text: &[u8]) -> Result<(VecDeque<Line>, End)> {
    let cut = || Error::interrupted("an export ended before its last line");
    let mut lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let mut end: End = lines.next_back().and_then(|line| serde_json::from_slice(line).ok()).ok_or_else(cut)?;
    if let Some(problem) = end.problem.take() {
        return Err(Error::of_problem(problem));
    }
    let lines: std::result::Result<_, _> = lines.map(serde_json::from_slice).collect();
    let lines = lines.map_err(|error| Error::unexpected(200, format!("a line of an export is wrong: {error}")))?;
    Ok((lines, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pieces_are_taken() {
        let line = "{\"rank\":1,\"subject\":\"a\",\"score\":2.50}\n";
        let whole = format!("{line}{{\"complete\":true,\"next\":null,\"problem\":null}}\n");
        let (lines, end) = piece(whole.as_bytes()).unwrap();
        assert_eq!(lines[0].score.as_ref().unwrap().as_str(), "2.50");
        assert!(end.next.is_none());
        let nameless = whole.replace("\"a\"", "null");
        assert_eq!(piece(nameless.as_bytes()).unwrap().0[0].subject, None);
        for cut in ["", line, &whole[..whole.len() - 10]] {
            assert_eq!(piece(cut.as_bytes()).err().unwrap().code(), "interrupted", "{cut}");
        }
        let failed = r#"{"complete":false,"next":null,"problem":{"code":"store_unreachable","status":503}}"#;
        assert!(piece(failed.as_bytes()).err().unwrap().is_transient());
    }
}
