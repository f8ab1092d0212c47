//! The first lines of a part, read without a script, which takes the server a third of the time.
//!
//! The commands are `HMGET` of the meta key, the lines, their number, and again `HMGET` of the meta key (the
//! [look](super::look)), in this order. Each change of the ranking comes with a new version that the part never had
//! before. So if both `HMGET` found the same version, nothing changed the ranking in between, and lines and number are
//! of one instant. The look shows everything else that a script would check. If there was a write in between, or the
//! part has no version, a script reads instead.

use redis::{Value, cmd};

use super::look::{self, Look};
use super::pipeline::{Pipeline, Replies};
use super::share::{About, Share, Stamp};
use crate::board::{Frame, Order, Window};
use crate::store::Place;
use crate::store::redis::merge::{Lines, Near};
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::servers::ServerFailure;

/// The positions of the replies in a pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    before: usize,
    lines: usize,
    total: usize,
}

impl Asked {
    /// Adds the commands for the first lines of a part. A look must follow.
    pub fn send(part: &Part, near: &Near, pipeline: &mut Pipeline) -> Self {
        let before = pipeline.read(part, look::command(part));
        let mut lines = cmd(if part.board.order() == Order::Asc { "ZRANGE" } else { "ZREVRANGE" });
        lines.arg(&part.keys.ranking).arg(0).arg(near.after.saturating_sub(1)).arg("WITHSCORES");
        let lines = pipeline.read(part, lines);
        let mut total = cmd("ZCARD");
        total.arg(&part.keys.ranking);
        Self { before, lines, total: pipeline.read(part, total) }
    }

    pub fn places(self) -> [usize; 3] {
        [self.before, self.lines, self.total]
    }

    /// Reads the replies for this window, given the look that followed. Returns `None` if they are not all of one
    /// instant.
    pub fn read(
        self,
        part: &Part,
        window: Window,
        look: &Look,
        epoch: Option<u64>,
        replies: &mut Replies,
    ) -> Result<Option<Share<Lines<About>>>, ServerFailure> {
        let (before, lines, total) = (replies.take(self.before)?, replies.take(self.lines)?, replies.take(self.total)?);
        let before = look.before(part, before)?;
        let (Some(stamp), Some(retiring)) = (Stamp::new(&look.version, epoch), look.retiring) else { return Ok(None) };
        if (&before.version, before.head) != (&look.version, look.head) {
            return Ok(None);
        }
        let frame = Frame { window, as_of: look.now, retiring };
        let said = Lines { total: count(&total)?, first: 0, better: 0, lines: places(part, lines)?, subject: None };
        Ok(Some(Share { frame, version: Some(stamp), said }))
    }
}

fn places(part: &Part, lines: Value) -> Result<Vec<Place>, ServerFailure> {
    let mut reply = Reply::new(lines)?;
    let mut lines = Vec::with_capacity(reply.len() / 2);
    while !reply.is_empty() {
        let subject = reply.subject()?;
        lines.push(Place { score: reply.line_score(part.board.kind())?, subject });
    }
    Ok(lines)
}

fn count(value: &Value) -> Result<u64, ServerFailure> {
    let count = if let Value::Int(count) = value { u64::try_from(*count).ok() } else { None };
    count.ok_or_else(|| ServerFailure::Corrupt(format!("a number of lines is {value:?}")))
}

#[cfg(test)]
mod tests {
    use super::super::question::tests::part;
    use super::*;
    use crate::board::Timestamp;
    use crate::store::redis::reads::look::Belief;

    fn bulk(text: impl ToString) -> Value {
        Value::BulkString(text.to_string().into_bytes())
    }

    #[test]
    fn lines_are_used_only_if_the_version_did_not_change() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let at = Timestamp::parse("2026-01-01T09:30:00Z").unwrap();
        let window = part.board.window_at(at);
        let belief = Belief { estimate: at, latest: at };
        let meta = |version: &str, retiring: Value| {
            let generation = bulk(part.board.generation());
            Value::Array(vec![generation, bulk(window.head.millis()), bulk(version), retiring])
        };
        let read = |before: &str, after: &str, epoch, retiring: Value| {
            let mut pipeline = Pipeline::default();
            let near = Near::first(2);
            let asked = Asked::send(&part, &near, &mut pipeline);
            let lines = ["b", "2", "a", "1"].map(bulk).to_vec();
            let answers = [meta(before, retiring.clone()), Value::Array(lines), Value::Int(7)];
            let mut replies = Replies::of(answers.map(Ok).to_vec());
            let look = Look::read(&part, belief, at, meta(after, retiring)).unwrap();
            asked.read(&part, window, &look, epoch, &mut replies).unwrap()
        };
        let share = read("v1", "v1", Some(3), bulk(2)).unwrap();
        assert_eq!((share.said.total, share.said.first, share.said.better), (7, 0, 0));
        let lines: Vec<_> = share.said.lines.iter().map(|line| (line.subject.as_str(), line.score)).collect();
        assert_eq!(lines.iter().map(|(subject, _)| *subject).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!((share.frame.retiring, share.frame.as_of, share.frame.window.head), (2, at, window.head));
        assert_eq!(share.version, Stamp::new("v1", Some(3)));
        assert!(read("v1", "v2", Some(3), bulk(2)).is_none());
        assert!(read("", "", Some(3), bulk(2)).is_none());
        assert!(read("v1", "v1", None, bulk(2)).is_none());
        assert!(read("v1", "v1", Some(3), Value::Nil).is_none());
    }
}
