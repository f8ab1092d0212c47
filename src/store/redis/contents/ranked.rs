//! The walk over the slots of a ranked part.

use std::collections::HashSet;

use futures_util::future::{BoxFuture, try_join_all};
use serde::{Deserialize, Serialize};

use super::cells::damaged;
use super::frames::retain_live;
use super::{AIM, NoStep, PartStep, run_of};
use crate::board::{Frame, Subject};
use crate::store::Content;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::CONTENTS;
use crate::store::redis::session::{ScriptAnswer, Session};
use crate::store::redis::stretches::{Stretch, together};

/// The largest number of slots that one script reads.
const SLOTS: usize = 200;
/// The approximate number of bytes of cells that one script returns, if they are large.
const BYTES: usize = 500_000;

/// The position of a walk: the stretches that are left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlotPlace {
    left: Vec<Stretch>,
    /// The process of the server whose cursors these have.
    run: String,
}

impl Default for SlotPlace {
    fn default() -> Self {
        Self { left: vec![Stretch::default()], run: String::new() }
    }
}

/// What a script has read of a stretch.
struct StretchRead {
    frame: Frame,
    contents: Vec<(Subject, Content)>,
    left: Option<Stretch>,
}

/// Reads some cells: of one stretch, or of several if the server is distant.
pub(super) async fn step(session: &Session, part: &Part, place: SlotPlace) -> Result<PartStep<SlotPlace>, NoStep> {
    let before = run_of(session, part);
    let is_continued = place.left.iter().any(Stretch::is_within_slot);
    if is_continued && (place.run != before || !place.left.iter().all(Stretch::is_sound)) {
        return Err(NoStep::Lost);
    }
    let [now, later] = together(session, part, place.left);
    // Boxed, because the compiler would have to look deep into callers otherwise.
    let read = |stretch| -> BoxFuture<'_, _> { Box::pin(read(session, part, stretch)) };
    let reads = try_join_all(now.iter().map(read)).await?;
    let Some(frame) = reads.iter().map(|read| read.frame).max_by_key(|frame| (frame.window.head, frame.as_of)) else {
        return Err(NoStep::Lost);
    };
    let (mut contents, mut left) = (Vec::new(), Vec::new());
    for read in reads {
        contents.extend(read.contents);
        left.extend(read.left);
    }
    retain_live(part, &frame, &mut contents);
    left.extend(later);
    let run = run_of(session, part);
    if run != before && (is_continued || left.iter().any(Stretch::is_within_slot)) {
        return Err(NoStep::Lost);
    }
    Ok(PartStep { frame, contents, next: (!left.is_empty()).then_some(SlotPlace { left, run }) })
}

/// Reads some cells of a stretch.
async fn read(session: &Session, part: &Part, stretch: &Stretch) -> Result<StretchRead, NoStep> {
    let kind = kinds::of(part.track.kind());
    let cells = (BYTES / kind.largest_cell()).clamp(10, AIM);
    let answer = session.step(part, &CONTENTS, |moment, call| {
        call.arg("cells", cells);
        stretch.give(moment, Some(moment.window.floor), SLOTS, call)
    });
    let ScriptAnswer { frame, asked: given, mut reply, .. } = answer.await?;
    let (cursor, whole) = (reply.text()?, reply.count()? as usize);
    let mut contents = Vec::new();
    for slot in &given.slots {
        if reply.is_empty() {
            break;
        }
        let mut cells = reply.part()?;
        // The server may return a subject twice in one reply.
        let mut seen = HashSet::new();
        while !cells.is_empty() {
            let subject = cells.subject()?;
            let aggregate = cells.aggregate(part.track.kind())?.filter(|cell| kind.is_sound(cell));
            let Some(aggregate) = aggregate else { return Err(damaged(&subject, *slot).into()) };
            if seen.insert(subject.clone()) {
                contents.push((subject, Content::Cell { slot: *slot, aggregate }));
            }
        }
    }
    Ok(StretchRead { frame, contents, left: stretch.after(&given, whole, &cursor) })
}
