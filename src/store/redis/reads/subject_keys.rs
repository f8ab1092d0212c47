//! The keys of one subject of an unranked board: the commands and the script that read them, and removing a subject.

use super::question::reads_whole_key;
use super::share::Cells;
use super::slot_range::Range;
use crate::board::{Aggregate, Amount, Kind, Subject, Timestamp, Track};
use crate::store::Removal;
use crate::store::redis::expiry;
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{FORGET, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{Moment, ScriptAnswer, Session};

/// The largest number of slots that are requested by name. With more, all slots between the first and the last are
/// requested.
const NAMED: usize = 512;
/// The largest number of values of a subject that are read and counted here. With more, a script counts.
const VALUES: usize = 32;

/// Returns the command that reads these slots of a subject of an unranked board, or `None` if no single command does.
pub(super) fn command(part: &Part, subject: &Subject, range: &Range) -> Option<redis::Cmd> {
    let (track, keys) = (&part.track, &part.keys);
    let mut command;
    if track.is_from_first() {
        command = redis::cmd("HMGET");
        command.arg(keys.subject(subject)).arg("s").arg("a");
    } else if track.kind().remembers_values() {
        // With `max_values` a different key shows whether a value was dropped, and two keys need a script.
        if track.max_values().is_some() {
            return None;
        }
        let first = range.starts.first().copied().unwrap_or(range.end);
        command = redis::cmd("ZRANGEBYSCORE");
        command.arg(keys.seen(subject)).arg(first.millis()).arg(format!("({}", range.end.millis()));
        command.arg("WITHSCORES").arg("LIMIT").arg(0).arg(VALUES + 1);
    } else if reads_whole_key(track, range.starts.len()) || range.starts.len() > NAMED {
        command = redis::cmd("HGETALL");
        command.arg(keys.subject(subject));
    } else {
        command = redis::cmd("HMGET");
        command.arg(keys.subject(subject));
        for start in range.starts.iter() {
            command.arg(start.millis());
        }
        if range.starts.is_empty() {
            command.arg(""); // the server requires a field; its value is not used
        }
    }
    Some(command)
}

/// Reads the reply to [`command`]. Returns `None` if there is more data than the command may read.
pub(super) fn read(
    track: &Track,
    range: &Range,
    now: Timestamp,
    mut reply: Reply,
) -> Result<Option<Cells>, ServerFailure> {
    let mut held = Cells::new();
    if track.is_from_first() {
        let (start, cell) = (reply.maybe_time()?, reply.aggregate(track.kind())?);
        let life = track.length().approximate_millis();
        held.extend(start.zip(cell).filter(|(start, _)| now < start.plus_millis(life)));
    } else if track.kind().remembers_values() {
        if reply.len() > 2 * VALUES {
            return Ok(None);
        }
        let mut times = Vec::with_capacity(reply.len() / 2);
        while !reply.is_empty() {
            let _value = reply.bytes()?;
            times.push(reply.time_of_score()?);
        }
        held = counted_by_slot(range, &times);
    } else if reads_whole_key(track, range.starts.len()) || range.starts.len() > NAMED {
        while !reply.is_empty() {
            // A field whose name is not a time shows when the key was cleaned.
            match reply.field_time()? {
                Some(start) if range.holds(start) => {
                    held.extend(reply.aggregate(track.kind())?.map(|aggregate| (start, aggregate)));
                }
                _ => drop(reply.bytes()?),
            }
        }
        held.sort_unstable_by_key(|(start, _)| *start);
    } else {
        for start in range.starts.iter() {
            held.extend(reply.aggregate(track.kind())?.map(|aggregate| (*start, aggregate)));
        }
    }
    Ok(Some(held))
}

/// Returns how many of these times, oldest first, are in each slot.
fn counted_by_slot(range: &Range, times: &[Timestamp]) -> Cells {
    let mut held = Cells::new();
    let mut rest = times;
    while let Some(first) = rest.first() {
        let slot = range.starts.partition_point(|start| start <= first);
        let count = range.starts.get(slot).map_or(rest.len(), |next| rest.partition_point(|time| time < next));
        let start = range.starts[slot.saturating_sub(1)];
        held.push((start, Aggregate::Sum(Amount(count as i64))));
        rest = &rest[count.max(1)..];
    }
    held
}

/// Adds the arguments of `read_slots.lua`, or with `removes` of `forget.lua`.
pub(super) fn call(moment: &Moment<'_>, subject: &Subject, range: &Range, removes: bool, call: &mut ScriptCall) {
    let (track, keys) = (&moment.part.track, &moment.part.keys);
    let by_time = track.kind().remembers_values();
    let (how, first) = match range.starts.first() {
        _ if track.is_from_first() => ("counter", track.length().approximate_millis()),
        Some(start) => (if by_time { "seen" } else { "subject" }, start.millis()),
        None => (if by_time { "seen" } else { "subject" }, range.end.millis()),
    };
    call.key(if by_time { keys.seen(subject) } else { keys.subject(subject) }).key(keys.gone(subject));
    call.arg("stored", how).arg("from", first).arg("till", range.end.millis());
    call.arg("capped", if track.max_values().is_some() { "capped" } else { "" });
    if removes {
        // Where no period ever ends, nothing else would forget the subject's name.
        call.key(keys.written(expiry::period(track, moment.now))).arg("subject", subject);
    }
    if how == "seen" || how == "subject" && range.starts.len() <= NAMED {
        call.all(range.starts.iter().map(|start| start.millis()));
    }
}

/// Reads the reply of `subject_slots.lua`: the time of the latest dropped value, and the slots.
pub(super) fn scripted(reply: &mut Reply, kind: Kind) -> Result<(Option<Timestamp>, Cells), ServerFailure> {
    let capped = reply.maybe_time()?;
    let mut held = Cells::new();
    while !reply.is_empty() {
        let start = reply.time()?;
        held.extend(reply.aggregate(kind)?.map(|aggregate| (start, aggregate)));
    }
    held.sort_unstable_by_key(|(start, _)| *start);
    Ok((capped, held))
}

/// Removes a subject from an unranked board.
pub(in crate::store::redis) async fn remove(
    session: &Session,
    part: &Part,
    subject: &Subject,
) -> Result<Removal, ServerFailure> {
    let track = &part.track;
    let answer =
        session.ask(part, &FORGET, |moment, arguments| call(moment, subject, &Range::whole(moment), true, arguments));
    let ScriptAnswer { frame, mut reply, .. } = answer.await?;
    let (_, held) = scripted(&mut reply, track.kind())?;
    let score = track.value(held.iter().map(|(_, aggregate)| aggregate));
    Ok(Removal { frame, score, live_slots: held.len() as u64, retiring_slots: 0 })
}

#[cfg(test)]
mod tests {
    use super::super::question::tests::part;
    use super::*;

    #[test]
    fn times_are_grouped_by_slot() {
        let part = part("COUNT_DISTINCT(3h, e, s, c)", "1h", false);
        let moment = Moment::new(&part, Timestamp::parse("2026-01-01T09:30:00Z").unwrap());
        let range = Range::whole(&moment);
        let [first, second, third] = range.starts[..] else { panic!("{range:?}") };
        let times = [first, first.plus_millis(1), third.plus_millis(-1), third, third.plus_millis(3_599_999)];
        let held: Vec<(Timestamp, i64)> = counted_by_slot(&range, &times)
            .into_iter()
            .map(|(start, aggregate)| (start, matches!(aggregate, Aggregate::Sum(Amount(2))) as i64 + 1))
            .collect();
        assert_eq!(held, [(first, 2), (second, 1), (third, 2)]);
        assert_eq!(counted_by_slot(&range, &[]), []);
    }
}
