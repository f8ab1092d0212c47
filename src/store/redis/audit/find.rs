//! Finding the subjects that an audit compares, each once.
//!
//! First all subjects with a total are found, then those in the ranking, and hidden ones with a score, without a total,
//! then those in slots that have neither. A subject of several slots is compared when its oldest slot is looked
//! through: a subject found in a later slot is looked for in the slots before it, from the newest on, until one of them
//! has it. So a subject costs as many checks as there are slots, or as it has cells, whichever is more, and its cells
//! are read once.

use std::collections::HashSet;

use super::progress::{AuditPlace, AuditProgress};
use crate::board::{Frame, Timestamp};
use crate::store::AuditStep;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{AUDIT_EARLIER, AUDIT_FIND};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{ScriptAnswer, Session};

/// The number of subjects of a slot or of the ranking that one script looks at.
const LOOKED_AT: usize = 1_000;
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
    let (place, cursor, key, from) = match &progress.place {
        AuditPlace::Totals { cursor } => ("totals", cursor, "", None),
        AuditPlace::Ranking { cursor, key } => ("ranking", cursor, &**key, None),
        AuditPlace::Hidden { cursor } => ("hidden", cursor, "", None),
        AuditPlace::Slots { from, cursor } => ("slots", cursor, "", from.map(Timestamp::from_millis)),
        AuditPlace::End => return Ok(None),
    };
    let looks_at_slots = place == "slots";
    let most = if looks_at_slots { SLOTS } else { 0 };
    let answer = session.step(part, &AUDIT_FIND, |moment, call| {
        let slots = slots_from(&moment.existing.slots, from, most);
        // If the slot in which to continue no longer exists, the next one is begun.
        let is_there = from.is_none() || slots.first().copied() == from;
        call.arg("place", place).arg("cursor", if is_there { cursor } else { "0" }).arg("key", key);
        call.arg("subjects", looked_at(part, looks_at_slots));
        call.arg("version", if repair { session.token() } else { String::new() });
        call.arg("from", start_text(from)).arg("slots", most);
        for start in slots {
            call.key(part.keys.slot(*start)).more(start.millis());
        }
        slots.to_vec()
    });
    let ScriptAnswer { frame, asked: slots, mut reply, .. } = answer.await?;
    let (cursor, whole, missing_slots) = (reply.text()?, reply.count()? as usize, reply.count()?);
    let key = reply.text()?;
    let mut seen = HashSet::new();
    while !reply.is_empty() {
        let subject = reply.text()?;
        if seen.insert(subject.clone()) {
            progress.pending.push(subject);
        }
    }
    progress.since = slots.first().filter(|_| looks_at_slots).map(|start| start.millis());
    progress.below = progress.since.filter(|_| !progress.pending.is_empty());
    let beginning = || "0".to_owned();
    progress.place = match (&progress.place, cursor == "0") {
        (AuditPlace::Totals { .. }, false) => AuditPlace::Totals { cursor },
        (AuditPlace::Totals { .. }, true) => AuditPlace::Ranking { cursor: beginning(), key: String::new() },
        (AuditPlace::Ranking { .. }, is_at_start) if !is_at_start || !key.is_empty() => {
            AuditPlace::Ranking { cursor, key }
        }
        (AuditPlace::Ranking { .. }, _) => AuditPlace::Hidden { cursor: beginning() },
        (AuditPlace::Hidden { .. }, false) => AuditPlace::Hidden { cursor },
        (AuditPlace::Hidden { .. }, true) => AuditPlace::Slots { from: None, cursor: beginning() },
        (AuditPlace::Slots { .. }, is_at_start) => match slots.get(whole) {
            Some(start) => {
                AuditPlace::Slots { from: Some(start.millis()), cursor: if is_at_start { beginning() } else { cursor } }
            }
            // There may be more slots than this call named.
            None if slots.len() == most => {
                AuditPlace::Slots { from: slots.last().map(|last| last.millis() + 1), cursor: beginning() }
            }
            None => AuditPlace::End,
        },
        (AuditPlace::End, _) => AuditPlace::End,
    };
    Ok(Some(AuditStep { missing_slots, ..super::step_of(frame) }))
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

/// Returns the number of subjects that a script may look at, given the size of the totals or cells of the board.
fn looked_at(part: &Part, looks_at_slots: bool) -> usize {
    let kind = kinds::of(part.track.kind());
    let bytes = if looks_at_slots { kind.largest_cell() } else { kind.largest_total(&part.track) };
    (BYTES / bytes).clamp(10, LOOKED_AT)
}

pub(super) fn start_text(from: Option<Timestamp>) -> String {
    from.map_or_else(|| "-inf".to_owned(), |start| start.millis().to_string())
}

/// Returns the oldest slots from a start on, oldest first, at most `most`.
pub(super) fn slots_from(slots: &[Timestamp], from: Option<Timestamp>, most: usize) -> &[Timestamp] {
    let first = slots.partition_point(|start| from.is_some_and(|from| *start < from));
    let rest = &slots[first..];
    &rest[..rest.len().min(most)]
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
        assert_eq!(slots_from(&slots, None, 3), &slots[..3]);
        assert_eq!(slots_from(&slots, Some(at(101)), 3), &slots[2..5]);
        assert_eq!(slots_from(&slots, Some(at(800)), 3), &slots[8..]);
        assert_eq!(slots_from(&slots, Some(at(901)), 3), &[] as &[Timestamp]);
        assert_eq!(slots_below(&slots, at(300), 2), [at(200), at(100)]);
        assert_eq!(slots_below(&slots, at(101), 5), [at(100), at(0)]);
        assert_eq!(slots_below(&slots, at(0), 5), []);
    }
}
