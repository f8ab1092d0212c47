//! Retiring of slots and removal of subjects, in bounded steps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::expiry;
use super::id_buckets;
use super::kinds;
use super::part::Part;
use super::partitions::Parts;
use super::scripts::REMOVE;
use super::servers::ServerFailure;
use super::session::{ScriptAnswer, Session};
use crate::board::{Frame, RankingKey, Subject, Timestamp};
use crate::store::{Removal, Removing, RetireStep};

/// The shortest interval, in milliseconds, between steps of two instances for one board. So together they use no more
/// of the server's time than one instance.
const PAUSE: i64 = 5;

/// The largest number of subjects of a ranking that is completed when it is read, and the largest number of calls for
/// it.
pub(super) const SMALL: u64 = 200;
const CALLS: usize = 8;
/// The largest number of cells that it may have in expired slots. Sketches are large, so fewer of them are read.
const CELLS: u64 = 2_000;
const CELLS_OF_SKETCHES: u64 = 400;

/// Removes a subject from a ranked track. Also returns whether anything is set for it: whether it is hidden or frozen.
pub(super) async fn remove(
    session: &Session,
    part: &Part,
    subject: &Subject,
    removing: Removing,
) -> Result<(Removal, bool), ServerFailure> {
    let track = &part.track;
    let answer = session.ask(part, &REMOVE, |moment, call| {
        let forget = if removing == Removing::Subject { "1" } else { "" };
        call.arg("subject", subject).arg("version", session.token()).arg("forget", forget);
        for start in moment.existing.slots.iter() {
            call.key(moment.part.keys.slot(*start)).more(start.millis());
        }
        if track.kind().remembers_values() {
            call.key(moment.part.keys.seen(subject)).key(moment.part.keys.gone(subject));
        }
    });
    let ScriptAnswer { frame, mut reply, .. } = answer.await?;
    let score = reply.score(track.kind())?.or(track.kind().absent());
    let removal = Removal { frame, score, live_slots: reply.count()?, retiring_slots: reply.count()? };
    Ok((removal, reply.count()? == 1))
}

/// Subtracts all expired slots from the ranking of a key, if it has [`SMALL`] subjects at most. Returns the floor of
/// the window below which it has nothing any more. Returns `None` if it has too much to be subtracted in some calls, or
/// if subjects that are not ranked, which cannot be found, may get a rank.
pub(super) async fn complete(
    session: &Session,
    part: &Part,
    key: &RankingKey,
) -> Result<Option<Timestamp>, ServerFailure> {
    let track = &part.track;
    if track.averaging().min_samples > 1 {
        // The next sample of such a subject may rank it, with those that have expired.
        return Ok(None);
    }
    let kind = kinds::of(track.kind());
    let needs_all = kind.withdraws_with_other_cells();
    let cells = if needs_all { CELLS_OF_SKETCHES } else { CELLS };
    let script = kinds::retiring_script(track, "retire_key");
    for _ in 0..CALLS {
        let answer = session.ask(part, script, |moment, call| {
            call.arg("key", key.as_str()).arg("most", SMALL).arg("cells", cells);
            call.arg("all", if needs_all { "1" } else { "" }).arg("version", session.token());
            let needed = moment.existing.slots.iter().filter(|start| needs_all || **start < moment.window.floor);
            for start in needed {
                call.key(part.keys.slot(*start)).more(start.millis());
            }
            call.more(kinds::option(track));
        });
        let ScriptAnswer { frame, mut reply, .. } = answer.await?;
        match reply.text()?.as_str() {
            "done" => return Ok(Some(frame.window.floor)),
            "more" => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// The data on which a step of retiring works.
struct Target {
    slot: Option<Timestamp>,
    bucket: Option<i64>,
    pace: u32,
    sent: Instant,
}

/// Makes one step for a track: in the first of its parts that has anything to do, beginning with the part whose turn it
/// is. The step is done if no part has anything to do. A part that cannot be reached does not prevent work in the
/// others.
pub(super) async fn step_in_turn(session: &Session, parts: &Parts) -> Result<RetireStep, ServerFailure> {
    if let Some(part) = parts.only() {
        return retire_step(session, part).await;
    }
    let (mut whole, mut failed): (Option<RetireStep>, Option<ServerFailure>) = (None, None);
    for (i, part) in parts.in_turn().enumerate() {
        let mut step = match retire_step(session, part).await {
            Ok(step) => step,
            Err(failure) if failure.is_outdated() => return Err(failure),
            Err(failure) => {
                failed = Some(failure);
                continue;
            }
        };
        if !Arc::ptr_eq(part, parts.first()) {
            // A slot ends once for all parts, so it is counted for the first part only.
            step.slots_advanced = 0;
        }
        let has_worked = step.slots_retired > 0 || step.subjects_touched > 0 || !(step.done || step.skipped);
        step = match whole {
            Some(before) => together(before, step),
            None => step,
        };
        if has_worked {
            parts.pass_turn(i + 1);
            return Ok(RetireStep { done: false, skipped: false, ..step });
        }
        whole = Some(step);
    }
    match (failed, whole) {
        (None, Some(step)) => Ok(step),
        (failed, _) => Err(failed.unwrap_or(ServerFailure::KeptChanging)),
    }
}

/// Returns the combined result of two steps.
fn together(a: RetireStep, b: RetireStep) -> RetireStep {
    let window = if a.frame.window.head < b.frame.window.head { b.frame.window } else { a.frame.window };
    let (as_of, retiring) = (a.frame.as_of.max(b.frame.as_of), a.frame.retiring.max(b.frame.retiring));
    RetireStep {
        frame: Frame { window, as_of, retiring },
        slots_advanced: a.slots_advanced + b.slots_advanced,
        slots_retired: a.slots_retired + b.slots_retired,
        subjects_touched: a.subjects_touched + b.subjects_touched,
        subjects_removed: a.subjects_removed + b.subjects_removed,
        done: a.done && b.done,
        skipped: a.skipped || b.skipped,
        worked: a.worked + b.worked,
    }
}

/// Makes one step of retiring, and one of expiry if an expiry period is due.
async fn retire_step(session: &Session, part: &Part) -> Result<RetireStep, ServerFailure> {
    let (mut step, due) = retire(session, part).await?;
    if let Some(due) = due {
        let started = Instant::now();
        let swept = expiry::sweep(session, part, due).await?;
        step.worked += part.work(swept, started.elapsed());
        step.done = false;
    }
    Ok(step)
}

/// Returns the result of a step before which other steps had always retired the slot that it was about to retire, as
/// many steps at a time do where slots are small: the work was done, by others.
async fn overtaken(session: &Session, part: &Part) -> Result<RetireStep, ServerFailure> {
    let moment = session.moment(part, session.time_for(&part.clock, None).await?, None);
    let retiring = moment.existing.slots.iter().filter(|start| **start < moment.window.floor).count() as u64;
    Ok(RetireStep {
        frame: Frame { window: moment.window, as_of: moment.now, retiring },
        slots_advanced: 0,
        slots_retired: 0,
        subjects_touched: 0,
        subjects_removed: 0,
        done: false,
        skipped: true,
        worked: Duration::ZERO,
    })
}

/// Retires a bounded part of a slot. Also returns an expiry period that is due, if there is one.
async fn retire(session: &Session, part: &Part) -> Result<(RetireStep, Option<i64>), ServerFailure> {
    let track = &part.track;
    let kind = kinds::of(track.kind());
    let answer = session.step(part, kinds::retiring_script(track, "retire"), |moment, call| {
        let needed = id_buckets::oldest_kept(track.board(), moment.now);
        let slot = moment.existing.slots.first().copied().filter(|start| *start < moment.window.floor);
        let bucket = moment.existing.buckets.first().copied().filter(|number| *number < needed);
        let target = Target { slot, bucket, pace: part.pace(), sent: Instant::now() };
        call.key(part.keys.slot(slot.unwrap_or_default())).key(part.keys.dedupe(bucket.unwrap_or_default()));
        call.key(&part.keys.periods);
        call.arg("slot", slot.map_or_else(String::new, |start| start.millis().to_string()));
        call.arg("bucket", bucket.map_or_else(String::new, |number| number.to_string()));
        call.arg("oldest_bucket", needed).arg("subjects", target.pace);
        call.arg("instance", &session.instance).arg("pause", PAUSE);
        call.arg("oldest_period", expiry::oldest_needed(part, &moment.window, moment.now));
        call.arg("kept", part.kept(&moment.window).oldest.millis()).arg("version", session.token());
        if kind.withdraws_with_other_cells() {
            for start in moment.existing.slots.iter() {
                call.key(part.keys.slot(*start)).more(start.millis());
            }
        }
        call.more(kinds::option(track));
        target
    });
    let answer = match answer.await {
        Err(ServerFailure::KeptChanging) => return Ok((overtaken(session, part).await?, None)),
        answer => answer?,
    };
    let ScriptAnswer { frame, asked: target, mut reply, head_before } = answer;
    let round_trip = target.sent.elapsed();
    let last_head = reply.time()?;
    let head_before = head_before.unwrap_or(last_head);
    let mut step = RetireStep {
        frame,
        slots_advanced: track.calendar().slots_between(head_before, frame.window.head),
        slots_retired: reply.count()?,
        subjects_touched: reply.count()?,
        subjects_removed: reply.count()?,
        done: reply.count()? == 1,
        skipped: reply.count()? == 1,
        worked: Duration::ZERO,
    };
    let due = reply.text()?.parse().ok();
    step.worked = part.work(u64::try_from(reply.integer()?).ok(), round_trip);
    part.forget(target.slot.filter(|_| step.slots_retired > 0), target.bucket);
    if step.subjects_touched > 0 {
        part.learn_pace(target.pace, step.subjects_touched, step.worked);
    }
    Ok((step, due))
}
