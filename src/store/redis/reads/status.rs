//! The state of a part as a whole.

use std::collections::BTreeMap;

use crate::board::Timestamp;
use crate::store::Status;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::STATUS;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ScriptAnswer, Session};

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
    let (total, dropped, upheavals) = (reply.count()?, reply.time()?, reply.count()?);
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
    Ok(Status { frame, total, keys: None, slots, retiring, events: events.into_iter().collect(), upheavals })
}
