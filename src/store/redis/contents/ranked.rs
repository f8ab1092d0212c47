//! The walk over the slots of a ranked part.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::cells::damaged;
use super::{AIM, NoStep, PartStep, is_cursor, run_of};
use crate::board::Timestamp;
use crate::store::Content;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::CONTENTS;
use crate::store::redis::session::{ScriptAnswer, Session};

/// The largest number of slots that one script reads.
const SLOTS: usize = 200;
/// The approximate number of bytes of cells that one script returns, if they are large.
const BYTES: usize = 500_000;

/// The position of a walk: a slot, and the server's cursor within it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlotPlace {
    from: i64,
    /// Empty at the beginning of the slot, as is `run`.
    cursor: String,
    run: String,
}

/// Reads some cells.
pub(super) async fn step(session: &Session, part: &Part, place: SlotPlace) -> Result<PartStep<SlotPlace>, NoStep> {
    let kind = kinds::of(part.track.kind());
    let cells = (BYTES / kind.largest_cell()).clamp(10, AIM);
    let before = run_of(session, part);
    if !place.cursor.is_empty() && (place.run != before || !is_cursor(&place.cursor)) {
        return Err(NoStep::Lost);
    }
    let answer = session.step(part, &CONTENTS, |moment, call| {
        let begun = Timestamp::from_millis(place.from);
        let from = begun.max(moment.window.floor);
        let slots: Vec<Timestamp> =
            moment.existing.slots.iter().copied().filter(|start| *start >= from).take(SLOTS).collect();
        // If the slot in which to continue no longer exists, the next one is begun.
        let is_there = !place.cursor.is_empty() && slots.first() == Some(&begun);
        call.arg("from", from.millis()).arg("slots", SLOTS);
        call.arg("cursor", if is_there { &place.cursor } else { "0" }).arg("cells", cells);
        for start in &slots {
            call.key(part.keys.slot(*start)).more(start.millis());
        }
        (slots, is_there)
    });
    let ScriptAnswer { frame, asked: (slots, is_continued), mut reply, .. } = answer.await?;
    let after = run_of(session, part);
    if is_continued && after != before {
        return Err(NoStep::Lost);
    }
    let (cursor, whole) = (reply.text()?, reply.count()? as usize);
    let mut contents = Vec::new();
    for slot in &slots {
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
    let next = match slots.get(whole) {
        Some(start) if cursor == "0" => Some(SlotPlace { from: start.millis(), ..SlotPlace::default() }),
        Some(start) => Some(SlotPlace { from: start.millis(), cursor, run: after }),
        // There may be more slots than this call named.
        None if slots.len() == SLOTS => {
            slots.last().map(|last| SlotPlace { from: last.millis() + 1, ..SlotPlace::default() })
        }
        None => None,
    };
    Ok(PartStep { frame, contents, next })
}
