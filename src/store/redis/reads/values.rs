//! A page of the values that a subject was seen with.

use super::question::{Read, Seen};
use crate::board::{RankingKey, Subject, Track};
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{Script, ScriptCall, VALUES};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Moment;
use crate::store::{Values, ValuesStart};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValuesRead {
    pub subject: Subject,
    pub start: ValuesStart,
    pub limit: u32,
}

impl Read for ValuesRead {
    type Reply = Values;

    fn cells(&self, _: &Track) -> u64 {
        self.limit.into()
    }

    fn call(&self, moment: &Moment<'_>, _: Option<&RankingKey>, call: &mut ScriptCall) -> &'static Script {
        let keys = &moment.part.keys;
        let (offset, last_seen, value) = match &self.start {
            ValuesStart::Offset(offset) => ((*offset).min(u32::MAX.into()), String::new(), ""),
            ValuesStart::After(place) => (0, place.last_seen.millis().to_string(), place.value.as_str()),
        };
        call.key(keys.seen(&self.subject)).key(keys.gone(&self.subject));
        // Values are ordered as the lines of a `desc` board are, with the time as their score.
        call.arg("order", "desc").arg("offset", offset).arg("last_seen", last_seen).arg("value", value);
        call.arg("limit", self.limit);
        &VALUES
    }

    fn read(&self, _: &Moment<'_>, seen: Seen, reply: &mut Reply) -> Result<Values, ServerFailure> {
        let frame = seen.frame;
        let capped = reply.maybe_time()?.is_some_and(|time| time >= frame.window.floor);
        let (total, first) = (reply.count()?, reply.count()?);
        let mut items = Vec::new();
        while !reply.is_empty() {
            let value = reply.counted()?;
            items.extend(reply.maybe_time()?.map(|time| (value, time)));
        }
        Ok(Values { frame, total, first, items, capped })
    }
}
