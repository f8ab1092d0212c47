//! Consecutive lines of a part: pages, neighbors, and what several parts contribute to them.
//!
//! Lines from a position on are cached. The first lines are read without a script, which takes the server a third of
//! the time. The commands are `HMGET` of the meta key, the lines, their number, and again `HMGET` of the meta key (the
//! [look](super::look)), in this order. Each change of the ranking comes with a new version that the part never
//! had before. So if both `HMGET` found the same version, nothing changed the ranking in between, and lines and number
//! are of one instant. The look shows everything else that a script would check. If there was a write in between, or
//! the part has no version, a script reads instead.

use std::sync::Arc;

use redis::cmd;

use super::look::{self, Look};
use super::pages::{CachedPage, Extent, Pages};
use super::question::{FARTHEST, Peek, Read, Seen, add_ranking, cells};
use super::share::{About, Excerpt, Stamp, StampedShare};
use super::slot_range::Range;
use super::subject::positioned;
use crate::board::{Frame, Order, RankingKey, Ranks, Subject, Track};
use crate::store::redis::merge::{Center, Located, Near};
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::score_text::score_text;
use crate::store::redis::scripts::{LINES, Script, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Moment;
use crate::store::{Lines, Page, Ranked};

impl Read for Near {
    type Reply = StampedShare<Excerpt>;

    fn cells(&self, track: &Track) -> u64 {
        let slots = if self.with_slots { cells(track, track.slots()) } else { 0 };
        self.before.saturating_add(self.after).saturating_add(slots)
    }

    fn call(&self, moment: &Moment<'_>, key: Option<&RankingKey>, call: &mut ScriptCall) -> &'static Script {
        let part = moment.part;
        let (center, at, subject) = match &self.center {
            Center::Position(position) => ("position", (*position).min(FARTHEST).to_string(), ""),
            Center::Place { place, after_line } => {
                let center = if *after_line { "after_line" } else { "place" };
                (center, score_text(Some(place.score)), place.subject.as_str())
            }
            Center::Subject { subject, absent } => ("subject", score_text(*absent), subject.as_str()),
        };
        call.key(&part.keys.ranking);
        let mut capped = "";
        if let Some(subject) = self.subject_with_slots() {
            if part.track.max_values().is_some() {
                capped = "capped";
                call.key(part.keys.gone(subject));
            }
            for start in moment.starts.iter() {
                call.key(part.keys.slot(*start));
            }
        }
        add_ranking(part, key, call);
        call.arg("center", center).arg("at", at).arg("subject", subject);
        call.arg("before", self.before.min(FARTHEST)).arg("after", self.after.min(FARTHEST)).arg("capped", capped);
        call.arg("ties", if self.ties { "ties" } else { "" });
        &LINES
    }

    fn read(&self, moment: &Moment<'_>, seen: Seen, reply: &mut Reply) -> Result<Self::Reply, ServerFailure> {
        let kind = moment.part.track.kind();
        let (total, first, better, version) = (reply.count()?, reply.count()?, reply.count()?, reply.text()?);
        let not_worse = reply.maybe_count()?;
        let subject = match &self.center {
            Center::Subject { .. } => {
                let mut located = reply.part()?;
                let (score, visibility) = (located.score(kind)?, located.moderation()?.visibility);
                let capped = located.maybe_time()?;
                let slots = positioned(&mut located, &Range::whole(moment), kind)?;
                Some(Located { score, visibility, extra: About { slots, capped } })
            }
            Center::Position(_) | Center::Place { .. } => None,
        };
        let said =
            Excerpt { total, first, items: read_lines(reply, &moment.part.track, first, better)?, not_worse, subject };
        Ok(StampedShare { frame: seen.frame, version: Stamp::new(&version, seen.incarnation), said })
    }

    fn peek(
        &self,
        part: &Arc<Part>,
        key: Option<&RankingKey>,
        _: &Moment<'_>,
        pages: Option<&Pages>,
    ) -> Option<Peek<Self>> {
        // Only scripts know the name of the ranking of a key, and count ties.
        let is_first = self.is_first() && key.is_none() && !self.ties;
        let held = pages.filter(|_| self.is_kept()).and_then(|pages| pages.get(part, &Extent::of(key), self));
        match held.filter(|held| !is_first || held.is_worth_a_look()) {
            Some(held) => Some(Peek {
                commands: Vec::new(),
                is_cached: true,
                read: Box::new(move |_, _, look, _| Ok(look_at_cached(&held, look))),
            }),
            None if is_first => Some(self.peek_at_first(part)),
            None => None,
        }
    }

    fn keep(&self, part: &Arc<Part>, key: Option<&RankingKey>, reply: Self::Reply, pages: &Pages) -> Self::Reply {
        if !self.is_kept() || reply.version.is_none() {
            return reply;
        }
        let StampedShare { frame, version, said: Excerpt { total, first, items, not_worse, subject } } = reply;
        let held = CachedPage::new(Page { frame, total, first, items, not_worse }, vec![version.clone()]);
        let items = pages.put(part, Extent::of(key), self, held).items;
        StampedShare { frame, version, said: Excerpt { total, first, items, not_worse, subject } }
    }
}

impl Near {
    /// Returns whether replies are cached.
    fn is_kept(&self) -> bool {
        matches!(self.center, Center::Position(_)) && self.before == 0
    }

    fn subject_with_slots(&self) -> Option<&Subject> {
        match &self.center {
            Center::Subject { subject, .. } if self.with_slots => Some(subject),
            _ => None,
        }
    }

    /// Returns the commands for the first lines.
    fn peek_at_first(&self, part: &Part) -> Peek<Self> {
        let mut lines = cmd(if part.track.order() == Order::Asc { "ZRANGE" } else { "ZREVRANGE" });
        // Position 0 to -1 would be all lines, so without lines the first one is read and dropped.
        lines.arg(&part.keys.ranking).arg(0).arg(self.after.max(1) - 1).arg("WITHSCORES");
        let mut total = cmd("ZCARD");
        total.arg(&part.keys.ranking);
        Peek { commands: vec![look::command(part), lines, total], is_cached: false, read: Box::new(read_first) }
    }
}

/// Returns cached lines at the time of a look, if the part is as it was when they were read.
fn look_at_cached(held: &CachedPage, look: &Look) -> Option<StampedShare<Excerpt>> {
    if !held.is_right(look.incarnation, &look.version, look.head) {
        return None;
    }
    let Page { mut frame, total, first, items, not_worse } = held.page.clone();
    frame.as_of = look.now;
    let version = held.stamps.first().cloned().flatten();
    Some(StampedShare { frame, version, said: Excerpt { total, first, items, not_worse, subject: None } })
}

/// Reads the replies to the commands for the first lines. Returns `None` if they are not all of one instant.
fn read_first(
    near: &Near,
    moment: &Moment<'_>,
    look: &Look,
    values: Vec<redis::Value>,
) -> Result<Option<StampedShare<Excerpt>>, ServerFailure> {
    let Ok([before, items, total]) = <[redis::Value; 3]>::try_from(values) else { return Ok(None) };
    let (Some(stamp), Some(retiring)) = (Stamp::new(&look.version, look.incarnation), look.retiring) else {
        return Ok(None);
    };
    if !look.is_same(moment.part, before)? {
        return Ok(None);
    }
    let frame = Frame { window: moment.window, as_of: look.now, retiring };
    let total = Reply::new(redis::Value::Array(vec![total]))?.count()?;
    let items = match near.after {
        0 => Lines::default(),
        _ => read_lines(&mut Reply::new(items)?, &moment.part.track, 0, 0)?,
    };
    Ok(Some(StampedShare {
        frame,
        version: Some(stamp),
        said: Excerpt { total, first: 0, items, not_worse: None, subject: None },
    }))
}

/// Reads lines that begin at position `first` (from 0). `better` subjects are strictly better than the first line.
fn read_lines(reply: &mut Reply, track: &Track, first: u64, better: u64) -> Result<Lines, ServerFailure> {
    let mut items: Vec<Ranked> = Vec::with_capacity(reply.len() / 2);
    let mut place = first;
    while !reply.is_empty() {
        let (subject, score) = (reply.subject()?, reply.line_score(track.kind())?);
        let rank = match items.last() {
            _ if track.ranks() == Ranks::Ordinal => place + 1,
            None => better + 1,
            Some(before) if before.score == score => before.rank,
            Some(_) => place + 1,
        };
        items.push(Ranked { rank, subject, score });
        place += 1;
    }
    Ok(items.into())
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::super::question::tests::part;
    use super::*;
    use crate::board::{Timestamp, Value as Score};
    use crate::store::Place;
    use crate::store::redis::partition_clock::Belief;

    fn bulk(text: impl ToString) -> Value {
        Value::BulkString(text.to_string().into_bytes())
    }

    #[test]
    fn lines_are_used_only_if_the_version_did_not_change() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let at = Timestamp::parse("2026-01-01T09:30:00Z").unwrap();
        let moment = Moment::new(&part, at);
        let window = moment.window;
        let belief = Belief { expected: at, latest: at };
        let meta = |version: &str, retiring: Value| {
            let generation = bulk(part.generation());
            Value::Array(vec![generation, bulk(window.head.millis()), bulk(version), retiring, Value::Nil])
        };
        let read = |before: &str, after: &str, incarnation, retiring: Value, lines: u64| {
            let near = Near::first(lines);
            let look = Look::read(&part, belief, at, meta(after, retiring.clone())).unwrap();
            let look = look.in_incarnation(incarnation);
            let lines = Value::Array(["b", "2", "a", "1"].map(bulk).to_vec());
            let values = vec![meta(before, retiring), lines, Value::Int(7)];
            read_first(&near, &moment, &look, values).unwrap()
        };
        let share = read("v1", "v1", Some(3), bulk(2), 2).unwrap();
        assert_eq!((share.said.total, share.said.first), (7, 0));
        let lines: Vec<_> = share.said.items.iter().map(|line| (line.rank, line.subject.as_str())).collect();
        assert_eq!(lines, [(1, "b"), (2, "a")]);
        assert_eq!((share.frame.retiring, share.frame.as_of, share.frame.window.head), (2, at, window.head));
        assert_eq!(share.version, Stamp::new("v1", Some(3)));
        assert!(read("v1", "v1", Some(3), bulk(2), 0).unwrap().said.items.is_empty());
        assert!(read("v1", "v2", Some(3), bulk(2), 2).is_none());
        assert!(read("", "", Some(3), bulk(2), 2).is_none());
        assert!(read("v1", "v1", None, bulk(2), 2).is_none());
        assert!(read("v1", "v1", Some(3), Value::Nil, 2).is_none());
    }

    #[test]
    fn only_lines_from_a_position_on_are_cached() {
        let near = |center, before| Near::around(center, before, 9);
        assert!(near(Center::Position(3), 0).is_kept() && !near(Center::Position(3), 1).is_kept());
        let subject = Subject::parse("a").unwrap();
        let place = Place { score: Score::ZERO, subject: subject.clone() };
        assert!(!near(Center::Place { place, after_line: false }, 0).is_kept());
        assert!(!near(Center::Subject { subject, absent: None }, 0).is_kept());
    }
}
