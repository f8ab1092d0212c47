//! Retiring, removing and auditing: what touches many keys of a board, in bounded steps.

use std::time::Instant;

use super::connection::Failure;
use super::flush::bucket_width;
use super::scripts::{self, REMOVE};
use super::session::{Answer, Session};
use crate::board::{Board, Kind, Subject, Timestamp};
use crate::store::{AuditCursor, AuditStep, Difference, Removal, RetireStep, StoreError};

/// Two instances do not step one board more often than this, in milliseconds, so that together they leave the
/// server as much room as one.
const PAUSE: i64 = 5;
/// An audit step reads about so many amounts.
const AUDITED: usize = 2_000;
/// Or so many sketches, which take much longer to merge.
const AUDITED_SKETCHES: usize = 40;

/// Takes a subject off a ranked board.
pub(super) async fn remove(session: &Session, board: &Board, subject: &Subject) -> Result<Removal, Failure> {
    let answer = session.ask(board, &REMOVE, |moment, call| {
        call.arg(subject);
        for start in moment.existing.slots.iter() {
            call.key(moment.view.keys.slot(*start)).arg(start.millis());
        }
        if board.kind() == Kind::Distinct {
            call.key(moment.view.keys.seen(subject)).key(moment.view.keys.gone(subject));
        }
    });
    let Answer { frame, mut reply, .. } = answer.await?;
    let score = reply.score(board.kind())?.or(board.kind().absent());
    Ok(Removal { frame, score, live_slots: reply.count()?, retiring_slots: reply.count()? })
}

/// What a step of retiring was asked to work on.
struct Target {
    slot: Option<Timestamp>,
    bucket: Option<i64>,
    pace: u32,
    sent: Instant,
}

pub(super) async fn retire_step(session: &Session, board: &Board) -> Result<RetireStep, Failure> {
    let width = bucket_width(board);
    let answer = session.ask(board, scripts::retire(board.kind()), |moment, call| {
        let view = moment.view;
        // Two buckets back from now may still be needed; one more allows for a clock that is not quite ours.
        let needed = moment.now.millis() / width - 3;
        let slot = moment.existing.slots.first().copied().filter(|start| *start < moment.window.floor);
        let bucket = moment.existing.buckets.first().copied().filter(|number| *number < needed);
        let target = Target { slot, bucket, pace: view.pace(), sent: Instant::now() };
        call.key(view.keys.slot(slot.unwrap_or_default())).key(view.keys.dedupe(bucket.unwrap_or_default()));
        call.arg(slot.map_or_else(String::new, |start| start.millis().to_string()));
        call.arg(bucket.map_or_else(String::new, |number| number.to_string()));
        call.arg(needed).arg(target.pace).arg(&session.instance).arg(PAUSE);
        if board.kind() == Kind::Sketch {
            for start in moment.existing.slots.iter() {
                call.key(view.keys.slot(*start)).arg(start.millis());
            }
        }
        call.arg(scripts::option(board));
        target
    });
    let Answer { frame, asked: target, mut reply, head_before } = answer.await?;
    let took = target.sent.elapsed();
    let last_head = reply.time()?;
    let head_before = head_before.unwrap_or(last_head);
    let step = RetireStep {
        frame,
        slots_advanced: board.calendar().slots_between(head_before, frame.window.head),
        slots_retired: reply.count()?,
        subjects_touched: reply.count()?,
        subjects_removed: reply.count()?,
        done: reply.count()? == 1,
        skipped: reply.count()? == 1,
    };
    let view = session.view(board);
    view.forget(target.slot.filter(|_| step.slots_retired > 0), target.bucket);
    if step.subjects_touched > 0 {
        view.learn_pace(target.pace, step.subjects_touched, took);
    }
    Ok(step)
}

/// Where an audit goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Every ranked subject against its slots.
    Ranking,
    /// Totals of subjects that neither the ranking nor a slot knows, on boards that keep totals.
    Totals,
    /// The subjects of the slot that starts here, or of the next one that exists.
    Slot(Timestamp),
}

/// `r:<cursor>`, `t:<cursor>` or `s:<start>:<cursor>`.
fn parse_cursor(text: &str) -> Option<(Phase, String)> {
    if text.is_empty() {
        return Some((Phase::Ranking, "0".to_owned()));
    }
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty();
    let (phase, cursor) = match text.split_once(':')? {
        ("r", cursor) => (Phase::Ranking, cursor),
        ("t", cursor) => (Phase::Totals, cursor),
        ("s", rest) => {
            let (start, cursor) = rest.split_once(':')?;
            (Phase::Slot(Timestamp::from_millis(start.parse().ok()?)), cursor)
        }
        _ => return None,
    };
    number(cursor).then(|| (phase, cursor.to_owned()))
}

fn print_cursor(phase: &Phase, cursor: &str) -> AuditCursor {
    AuditCursor(match phase {
        Phase::Ranking => format!("r:{cursor}"),
        Phase::Totals => format!("t:{cursor}"),
        Phase::Slot(start) => format!("s:{}:{cursor}", start.millis()),
    })
}

/// Whether scores follow from totals that are kept beside the ranking.
fn has_totals(kind: Kind) -> bool {
    !matches!(kind, Kind::Sum | Kind::Distinct)
}

pub(super) async fn audit_step(
    session: &Session,
    board: &Board,
    cursor: AuditCursor,
    repair: bool,
) -> Result<AuditStep, StoreError> {
    let (phase, within) = parse_cursor(&cursor.0)
        .ok_or_else(|| StoreError::Setup { detail: format!("'{}' is not where an audit continues", cursor.0) })?;
    audit(session, board, &phase, &within, repair).await.map_err(|failure| session.links.error(failure))
}

async fn audit(
    session: &Session,
    board: &Board,
    phase: &Phase,
    within: &str,
    repair: bool,
) -> Result<AuditStep, Failure> {
    let answer = session.ask(board, scripts::audit(board.kind()), |moment, call| {
        let slots = moment.existing.slots.clone();
        let cells = if board.kind() == Kind::Sketch { AUDITED_SKETCHES } else { AUDITED };
        let count = (cells / slots.len().max(1)).max(1);
        let first_slot = slots.first().copied();
        let (place, cursor, next) = match phase {
            Phase::Ranking => ("ranking".to_owned(), within, first_slot),
            Phase::Totals => ("totals".to_owned(), within, first_slot),
            Phase::Slot(start) => {
                let place = slots.partition_point(|slot| slot < start);
                // A slot that has gone meanwhile has no place to go on from.
                let cursor = if slots.get(place) == Some(start) { within } else { "0" };
                (place.to_string(), cursor, slots.get(place + 1).copied())
            }
        };
        let here = match phase {
            Phase::Ranking | Phase::Totals => Some(phase.clone()),
            Phase::Slot(start) => slots.iter().find(|slot| *slot >= start).copied().map(Phase::Slot),
        };
        call.arg(place).arg(cursor).arg(count).arg(if repair { "repair" } else { "" });
        for start in slots.iter() {
            call.key(moment.view.keys.slot(*start)).arg(start.millis());
        }
        call.arg(scripts::option(board));
        (here, next)
    });
    let Answer { frame, asked: (here, next), mut reply, .. } = answer.await?;
    let (cursor, checked, repaired) = (reply.text()?, reply.count()?, reply.count()?);
    let kind = board.kind();
    let mut differences = Vec::new();
    while !reply.is_empty() {
        differences.push(Difference {
            subject: reply.subject()?,
            score: reply.score(kind)?.or(kind.absent()),
            slots: reply.score(kind)?.or(kind.absent()),
        });
    }
    let next = match here {
        Some(here) if cursor != "0" => Some(print_cursor(&here, &cursor)),
        Some(Phase::Ranking) if has_totals(kind) => Some(print_cursor(&Phase::Totals, "0")),
        _ => next.map(|start| print_cursor(&Phase::Slot(start), "0")),
    };
    Ok(AuditStep { frame, checked, differences, repaired, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_back_and_others_are_refused() {
        assert_eq!(parse_cursor(""), Some((Phase::Ranking, "0".to_owned())));
        for phase in [Phase::Ranking, Phase::Totals, Phase::Slot(Timestamp::from_millis(3_600_000))] {
            let printed = print_cursor(&phase, "184467");
            assert_eq!(parse_cursor(&printed.0), Some((phase, "184467".to_owned())));
        }
        for bad in ["x", "r", "r:", "r:x", "s:1", "s::1", "s:x:1", "s:1:", "q:1"] {
            assert_eq!(parse_cursor(bad), None, "{bad}");
        }
    }
}
