//! The data of a single subject that has much of it, in pieces; and the forms of values.

use serde::{Deserialize, Serialize};

use super::AIM;
use super::cells::cells;
use super::frames::is_live;
use crate::board::{Counted, Frame, Subject, Timestamp};
use crate::store::Content;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{READ_SLOTS, VALUES};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{ScriptAnswer, Session};

/// The position within the data of a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) enum LargePlace {
    /// The slot with which to continue.
    Slot(i64),
    /// The member of the values, or with `gone` of their companion, after which to continue. The newest come first.
    Value { gone: bool, after: Option<(i64, String)> },
    /// At the beginning.
    #[default]
    Begin,
}

/// A piece of the data of a subject.
pub(super) struct LargePage {
    pub frame: Frame,
    pub contents: Vec<Content>,
    pub next: Option<LargePlace>,
}

/// Reads the next piece of the data of a subject.
pub(super) async fn page(
    session: &Session,
    part: &Part,
    subject: &Subject,
    place: LargePlace,
) -> Result<LargePage, ServerFailure> {
    let by_values = part.track.kind().remembers_values();
    match place {
        LargePlace::Value { gone, after } => of_values(session, part, subject, gone, after).await,
        LargePlace::Begin if by_values => of_values(session, part, subject, false, None).await,
        LargePlace::Begin => of_slots(session, part, subject, Timestamp::EPOCH).await,
        LargePlace::Slot(start) => of_slots(session, part, subject, Timestamp::from_millis(start)).await,
    }
}

async fn of_values(
    session: &Session,
    part: &Part,
    subject: &Subject,
    gone: bool,
    after: Option<(i64, String)>,
) -> Result<LargePage, ServerFailure> {
    let key = || if gone { part.keys.gone(subject) } else { part.keys.seen(subject) };
    let answer = session.step(part, &VALUES, |_, call| {
        call.key(key()).key(part.keys.gone(subject)).arg("order", "desc").arg("offset", 0);
        let (time, member) =
            after.as_ref().map_or_else(Default::default, |(time, member)| (time.to_string(), member.as_str()));
        call.arg("last_seen", time).arg("value", member).arg("limit", AIM);
    });
    let ScriptAnswer { frame, mut reply, .. } = answer.await?;
    reply.maybe_time()?;
    let (total, first) = (reply.count()?, reply.count()?);
    let (mut contents, mut read, mut last) = (Vec::new(), 0, None);
    while !reply.is_empty() {
        let (member, at) = (reply.text()?, reply.time_of_score()?);
        contents.extend(content(gone, &member, at));
        read += 1;
        last = Some((at.millis(), member));
    }
    contents.retain(|content| is_live(part, &frame.window, frame.as_of, content));
    let next = match last.filter(|_| first + read < total) {
        Some(last) => Some(LargePlace::Value { gone, after: Some(last) }),
        None => (!gone).then_some(LargePlace::Value { gone: true, after: None }),
    };
    Ok(LargePage { frame, contents, next })
}

/// Reads the slots from a start on.
async fn of_slots(
    session: &Session,
    part: &Part,
    subject: &Subject,
    from: Timestamp,
) -> Result<LargePage, ServerFailure> {
    let (track, keys) = (&part.track, &part.keys);
    let weight = usize::try_from(kinds::of(track.kind()).read_weight()).unwrap_or(1);
    let most = AIM / weight;
    let answer = session.step(part, &READ_SLOTS, |moment, call| {
        let mut starts = Vec::with_capacity(most);
        let mut start = part.kept(&moment.window).oldest.max(from);
        while start <= moment.window.head && starts.len() < most {
            starts.push(start);
            start = track.calendar().next(start);
        }
        call.key(keys.subject(subject)).key(keys.gone(subject)).arg("stored", "subject");
        call.arg("from", starts.first().copied().unwrap_or(start).millis()).arg("till", start.millis());
        call.arg("capped", "").all(starts.iter().map(|start| start.millis()));
        (start <= moment.window.head).then_some(LargePlace::Slot(start.millis()))
    });
    let ScriptAnswer { frame, asked: next, mut reply, .. } = answer.await?;
    reply.maybe_time()?;
    let contents = cells(part, subject, &mut reply)?;
    Ok(LargePage { frame, contents, next })
}

/// Reads values and their companion from the reply of `contents_read.lua`.
pub(super) fn read(part: &Part, frame: &Frame, reply: &mut Reply) -> Result<Vec<Content>, ServerFailure> {
    let values = reply.count()?;
    let mut contents = Vec::with_capacity(reply.len() / 2);
    for _ in 0..values {
        let (value, at) = (reply.counted()?, reply.time_of_score()?);
        contents.push(Content::Value { value, at, retracted: false });
    }
    while !reply.is_empty() {
        let (member, at) = (reply.text()?, reply.time_of_score()?);
        contents.extend(content(true, &member, at));
    }
    contents.retain(|content| is_live(part, &frame.window, frame.as_of, content));
    Ok(contents)
}

/// Returns what a member of the values, or with `gone` of their companion, says.
fn content(gone: bool, member: &str, at: Timestamp) -> Option<Content> {
    if !gone {
        return Some(Content::Value { value: Counted::from_stored(member), at, retracted: false });
    }
    if member == "c" {
        return Some(Content::Dropped { at });
    }
    let value = Counted::from_stored(member.strip_prefix('t')?);
    Some(Content::Value { value, at, retracted: true })
}
