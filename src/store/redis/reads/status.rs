//! The state of a part as a whole, and the keys that have a ranking in it.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::board::{RankingKey, Timestamp};
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{RANKING_KEYS, STATUS};
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ScriptAnswer, Session};
use crate::store::{Keys, Status, TextRange};

/// Returns the state of a part as a whole.
pub(super) async fn status_of(
    session: &Session,
    part: &Part,
    at_least: Option<Timestamp>,
) -> Result<Status, ServerFailure> {
    let answer = session.ask_at_least(part, Channel::Calls, at_least, &STATUS, |moment, call| {
        call.arg("slots", moment.existing.slots.len());
        for start in moment.existing.slots.iter() {
            call.key(moment.part.keys.slot(*start)).more(start.millis());
        }
        moment.existing.slots.clone()
    });
    let ScriptAnswer { frame, asked: starts, mut reply, .. } = answer.await?;
    let (total, keys) = (reply.maybe_count()?, reply.maybe_count()?);
    let (dropped, upheavals) = (reply.time()?, reply.count()?);
    let (mut slots, mut retiring) = (Vec::new(), Vec::new());
    for start in starts.iter() {
        let subjects = reply.count()?;
        if *start >= frame.window.floor {
            slots.push((*start, subjects));
        } else if *start >= dropped {
            retiring.push((*start, subjects));
        }
    }
    let mut events = BTreeMap::new();
    while !reply.is_empty() {
        let (start, items) = (reply.time()?, reply.count()?);
        if start >= frame.window.floor {
            events.insert(start, items);
        }
    }
    Ok(Status { frame, total, keys, slots, retiring, events: events.into_iter().collect(), upheavals })
}

/// Returns the first keys of a range that have a ranking in a part.
pub(super) async fn keys_of(
    session: &Session,
    part: &Part,
    at_least: Option<Timestamp>,
    range: TextRange<'_>,
    limit: u32,
) -> Result<Keys, ServerFailure> {
    let answer = session.ask_at_least(part, Channel::Calls, at_least, &RANKING_KEYS, |_, call| {
        call.arg("from", range_start(range)).arg("prefix", range.prefix).arg("limit", limit);
    });
    let ScriptAnswer { frame, mut reply, .. } = answer.await?;
    let total = reply.count()?;
    let mut keys = Vec::with_capacity(reply.len());
    while !reply.is_empty() {
        keys.push(RankingKey::from_stored(reply.text()?));
    }
    Ok(Keys { frame, total, keys })
}

/// Returns where a range begins, as ZRANGEBYLEX takes it.
pub(in crate::store::redis) fn range_start(range: TextRange<'_>) -> String {
    match range.start() {
        Bound::Unbounded => "-".to_owned(),
        Bound::Included(text) => format!("[{text}"),
        Bound::Excluded(text) => format!("({text}"),
    }
}
