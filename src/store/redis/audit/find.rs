//! Finding the subjects that an audit compares, each once.
//!
//! First all subjects with a total are found, then those in the ranking, and hidden ones with a score, without a total,
//! then those in slots that have neither. A subject of several slots is compared when its oldest slot is looked
//! through: a subject found in a later slot is looked for in the slots before it, from the newest on, until one of them
//! has it. So a subject costs as many checks as there are slots, or as it has cells, whichever is more, and its cells
//! are read once.

use std::collections::HashSet;

use futures_util::future::{BoxFuture, try_join_all};

use super::progress::{AuditPlace, AuditProgress, Found};
use crate::board::{Frame, Timestamp};
use crate::store::AuditStep;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{AUDIT_EARLIER, AUDIT_FIND, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{ScriptAnswer, Session};
use crate::store::redis::stretches::{Given, Stretch, start_text, together};

/// The number of subjects of a slot or of the ranking that one script looks at, and how many times as many on a distant
/// server, where scripts that follow each other take long: about 1 ms and 4 ms.
const LOOKED_AT: usize = 1_000;
const FURTHEST: usize = 4;
/// The number of bytes of totals or cells that one script looks at, if they are large.
const BYTES: usize = 250_000;
/// The number of slots that one script looks through for subjects.
const SLOTS: usize = 200;
/// The number of checks for subjects in earlier slots that one script makes, unless it has more subjects than that:
/// about 2 ms.
const LOOKS: usize = 3_000;

/// Looks for subjects to compare, at the place where the audit is, and moves that place on. Returns `None` at the end.
pub(super) async fn find(
    session: &Session,
    part: &Part,
    progress: &mut AuditProgress,
    repair: bool,
) -> Result<Option<AuditStep>, ServerFailure> {
    let (place, cursor, key) = match &progress.place {
        AuditPlace::Totals { cursor } => ("totals", &**cursor, ""),
        AuditPlace::Ranking { cursor, key } => ("ranking", &**cursor, &**key),
        AuditPlace::Hidden { cursor } => ("hidden", &**cursor, ""),
        AuditPlace::Slots { left } => {
            let left = left.clone();
            return find_in_slots(session, part, progress, left, repair).await.map(Some);
        }
        AuditPlace::End => return Ok(None),
    };
    let answer = session.step(part, &AUDIT_FIND, |_, call| {
        look_for(session, part, (place, key), repair, call);
        call.arg("from", start_text(None)).arg("slots", 0).arg("cursor", cursor).arg("read", 0);
    });
    let LookedThrough { frame, cursor, key, subjects, missing_slots, .. } = LookedThrough::of(answer.await?)?;
    progress.since = None;
    progress.pending = subjects;
    let beginning = || "0".to_owned();
    progress.place = match (&progress.place, cursor == "0") {
        (AuditPlace::Totals { .. }, false) => AuditPlace::Totals { cursor },
        (AuditPlace::Totals { .. }, true) => AuditPlace::Ranking { cursor: beginning(), key: String::new() },
        (AuditPlace::Ranking { .. }, is_at_start) if !is_at_start || !key.is_empty() => {
            AuditPlace::Ranking { cursor, key }
        }
        (AuditPlace::Ranking { .. }, _) => AuditPlace::Hidden { cursor: beginning() },
        (AuditPlace::Hidden { .. }, false) => AuditPlace::Hidden { cursor },
        (AuditPlace::Hidden { .. }, true) => AuditPlace::Slots { left: vec![Stretch::default()] },
        (AuditPlace::Slots { .. } | AuditPlace::End, _) => AuditPlace::End,
    };
    Ok(Some(AuditStep { missing_slots, ..super::step_of(frame) }))
}

/// Looks for subjects in slots: in those of one stretch, or of several if the server is distant.
async fn find_in_slots(
    session: &Session,
    part: &Part,
    progress: &mut AuditProgress,
    left: Vec<Stretch>,
    repair: bool,
) -> Result<AuditStep, ServerFailure> {
    let [now, later] = together(session, part, left);
    // Boxed, because the compiler would have to look deep into callers otherwise.
    let look = |stretch: Stretch| -> BoxFuture<'_, _> { Box::pin(look_through(session, part, stretch, repair)) };
    let mut step: Option<AuditStep> = None;
    let mut still_left = Vec::new();
    for (looked, left) in try_join_all(now.into_iter().map(look)).await? {
        let LookedThrough { frame, asked, subjects, missing_slots, .. } = looked;
        let step = step.get_or_insert_with(|| super::step_of(frame));
        step.missing_slots += missing_slots;
        still_left.extend(left);
        if let Some(first) = asked.slots.first().filter(|_| !subjects.is_empty()) {
            progress.add_found(Found { subjects, since: first.millis() });
        }
    }
    still_left.extend(later);
    progress.place = if still_left.is_empty() { AuditPlace::End } else { AuditPlace::Slots { left: still_left } };
    step.ok_or(ServerFailure::KeptChanging)
}

/// Looks for subjects in some slots of a stretch. Also returns what is left of it.
async fn look_through(
    session: &Session,
    part: &Part,
    stretch: Stretch,
    repair: bool,
) -> Result<(LookedThrough<Given>, Option<Stretch>), ServerFailure> {
    let answer = session.step(part, &AUDIT_FIND, |moment, call| {
        look_for(session, part, ("slots", ""), repair, call);
        stretch.give(moment, None, SLOTS, call)
    });
    let looked = LookedThrough::of(answer.await?)?;
    let left = stretch.after(&looked.asked, looked.whole, &looked.cursor);
    Ok((looked, left))
}

/// Adds the arguments that do not depend on the slots.
fn look_for(session: &Session, part: &Part, (place, key): (&str, &str), repair: bool, call: &mut ScriptCall) {
    call.arg("place", place).arg("key", key).arg("subjects", looked_at(session, part, place == "slots"));
    call.arg("version", if repair { session.token() } else { String::new() });
}

/// The result of one script.
struct LookedThrough<T> {
    frame: Frame,
    asked: T,
    /// Where it continues, and in rankings of several keys, in that of which key.
    cursor: String,
    key: String,
    /// The number of slots that were looked through completely.
    whole: usize,
    missing_slots: u64,
    /// Each once.
    subjects: Vec<String>,
}

impl<T> LookedThrough<T> {
    fn of(answer: ScriptAnswer<T>) -> Result<Self, ServerFailure> {
        let ScriptAnswer { frame, asked, mut reply, .. } = answer;
        let (cursor, whole, missing_slots) = (reply.text()?, reply.count()? as usize, reply.count()?);
        let key = reply.text()?;
        let (mut seen, mut subjects) = (HashSet::new(), Vec::new());
        while !reply.is_empty() {
            let subject = reply.text()?;
            if seen.insert(subject.clone()) {
                subjects.push(subject);
            }
        }
        Ok(Self { frame, asked, cursor, key, whole, missing_slots, subjects })
    }
}

/// Looks for the pending subjects in some of the slots before those in which they were found, and drops those that are
/// found there. They were compared already.
pub(super) async fn leave_out(
    session: &Session,
    part: &Part,
    progress: &mut AuditProgress,
    below: Timestamp,
) -> Result<Frame, ServerFailure> {
    let names = std::mem::take(&mut progress.pending);
    let most = (LOOKS / names.len().max(1)).max(1);
    let answer = session.step(part, &AUDIT_EARLIER, |moment, call| {
        let slots = slots_below(&moment.existing.slots, below, most);
        call.arg("below", below.millis()).arg("slots", most).arg("subjects", names.len()).all(&names);
        for start in &slots {
            call.key(part.keys.slot(*start)).more(start.millis());
        }
        slots
    });
    let answer = match answer.await {
        Ok(answer) => answer,
        Err(failure) => {
            progress.pending = names;
            return Err(failure);
        }
    };
    let ScriptAnswer { frame, asked: slots, mut reply, .. } = answer;
    let mut places = HashSet::new();
    while !reply.is_empty() {
        places.insert(reply.count()?);
    }
    let left = (1..).zip(names).filter(|(place, _)| places.contains(place));
    progress.pending = left.map(|(_, name)| name).collect();
    let are_more = slots.len() == most && !progress.pending.is_empty();
    progress.below = slots.last().filter(|_| are_more).map(|start| start.millis());
    Ok(frame)
}

/// Returns the number of subjects that a script may look at, given the size of the totals or cells of the board and how
/// far away the server is.
fn looked_at(session: &Session, part: &Part, looks_at_slots: bool) -> usize {
    let kind = kinds::of(part.track.kind());
    let bytes = if looks_at_slots { kind.largest_cell() } else { kind.largest_total(&part.track) };
    (BYTES / bytes).clamp(10, LOOKED_AT) * session.servers.at_once(part.slot()).min(FURTHEST)
}

/// Returns the newest slots before a start, newest first, at most `most`.
fn slots_below(slots: &[Timestamp], below: Timestamp, most: usize) -> Vec<Timestamp> {
    let end = slots.partition_point(|start| *start < below);
    slots[..end].iter().rev().take(most).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_slots_passed_to_a_script_is_bounded() {
        let at = Timestamp::from_millis;
        let slots: Vec<_> = (0..10).map(|i| at(i * 100)).collect();
        assert_eq!(slots_below(&slots, at(300), 2), [at(200), at(100)]);
        assert_eq!(slots_below(&slots, at(101), 5), [at(100), at(0)]);
        assert_eq!(slots_below(&slots, at(0), 5), []);
    }
}
