//! Questions about one subject's slots: the slots that they are about, the commands for unranked boards, and the
//! answers computed from the cells.

use std::sync::Arc;

use super::question::{Answer, Question, What, reads_whole_key};
use super::share::Cells;
use crate::board::{Aggregate, Amount, Board, Frame, Kind, Mode, Subject, Timestamp, Window};
use crate::store::redis::expiry;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{FORGET, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{Answer as Answered, Moment, Session};
use crate::store::{Removal, SlotContents, SlotRange, Standing};

/// The largest number of slots that are requested by name. With more, all slots between the first and the last are
/// requested.
const NAMED: usize = 512;
/// The largest number of values of a subject that are read and counted here. With more, a script counts.
const VALUES: usize = 32;

/// The slots to read, oldest first, and the end of the newest.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub starts: Arc<[Timestamp]>,
    pub end: Timestamp,
}

impl Range {
    /// Returns the range of the window itself.
    fn whole(moment: &Moment<'_>) -> Self {
        Self { starts: moment.starts.clone(), end: moment.window.end }
    }

    fn nothing(moment: &Moment<'_>) -> Self {
        Self { starts: Arc::new([]), end: moment.window.floor }
    }

    fn holds(&self, start: Timestamp) -> bool {
        self.starts.first().is_some_and(|first| *first <= start) && start < self.end
    }
}

/// Returns whether a board may have dropped values.
pub(super) fn may_be_capped(board: &Board) -> bool {
    board.definition().max_values.is_some()
}

fn is_counter(board: &Board) -> bool {
    board.definition().mode == Mode::FromFirst
}

/// Returns the slots that a question is about in this window. Returns none if not all of them exist.
pub(super) fn range(question: &Question, moment: &Moment<'_>) -> Range {
    match &*question.what {
        What::Window { range, as_of, .. } if !is_counter(&question.part.board) => {
            // Even if there is nothing to read, the time must be read.
            slots(moment, *range, *as_of).unwrap_or_else(|_| Range::nothing(moment))
        }
        _ => Range::whole(moment),
    }
}

/// Returns the slots of a range. If not all of them exist, returns the oldest slot that can be requested as the error.
fn slots(moment: &Moment<'_>, range: SlotRange, as_of: Option<Timestamp>) -> Result<Range, Timestamp> {
    let (board, window) = (&*moment.part.board, &moment.window);
    let calendar = board.calendar();
    let Some(until) = as_of else {
        let starts = &moment.starts;
        let from = match range {
            SlotRange::Slots(slots) if slots > board.slots() => return Err(window.floor),
            SlotRange::Slots(slots) => starts.len().saturating_sub(slots.max(1) as usize),
            SlotRange::From(time) if time < window.floor => return Err(window.floor),
            // A time ahead of the clock counts as now, and so does a range that starts there.
            SlotRange::From(time) => starts.partition_point(|start| *start < calendar.slot_of(time)),
        };
        if from == 0 {
            return Ok(Range::whole(moment));
        }
        let starts = starts[from.min(starts.len().saturating_sub(1))..].into();
        return Ok(Range { starts, end: window.end });
    };
    let oldest = moment.part.kept(window).oldest;
    let newest = calendar.slot_of(until);
    let first = match range {
        SlotRange::Slots(slots) if slots > board.slots() => return Err(oldest),
        SlotRange::Slots(_) => None,
        SlotRange::From(time) => Some(calendar.slot_of(time.min(until))),
    };
    if newest < oldest || newest > window.head || first.is_some_and(|first| first < oldest) {
        return Err(oldest);
    }
    let most = match range {
        SlotRange::Slots(slots) => slots.max(1) as usize,
        SlotRange::From(_) => board.slots() as usize,
    };
    let mut starts = vec![newest];
    let mut start = newest;
    while starts.len() < most && first != Some(start) {
        let before = calendar.previous(start);
        if before == start {
            break; // the epoch: there is nothing before it
        }
        if before < oldest {
            return Err(oldest);
        }
        starts.push(before);
        start = before;
    }
    if first.is_some_and(|first| first < start) {
        return Err(oldest);
    }
    starts.reverse();
    Ok(Range { starts: starts.into(), end: calendar.next(newest) })
}

/// Returns the command that reads these slots of a subject of an unranked board, or `None` if no single command does.
pub(super) fn command(question: &Question, subject: &Subject, range: &Range) -> Option<redis::Cmd> {
    let (board, keys) = (&*question.part.board, &question.part.keys);
    let mut command;
    if is_counter(board) {
        command = redis::cmd("HMGET");
        command.arg(keys.subject(subject)).arg("s").arg("a");
    } else if kinds::of(board.kind()).keeps_values() {
        // With `max_values` a different key shows whether a value was dropped, and two keys need a script.
        if may_be_capped(board) {
            return None;
        }
        let first = range.starts.first().copied().unwrap_or(range.end);
        command = redis::cmd("ZRANGEBYSCORE");
        command.arg(keys.seen(subject)).arg(first.millis()).arg(format!("({}", range.end.millis()));
        command.arg("WITHSCORES").arg("LIMIT").arg(0).arg(VALUES + 1);
    } else if reads_whole_key(board, range.starts.len()) || range.starts.len() > NAMED {
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
    question: &Question,
    range: &Range,
    now: Timestamp,
    reply: Reply,
) -> Result<Option<Cells>, ServerFailure> {
    let (board, mut reply) = (&*question.part.board, reply);
    let mut held = Cells::new();
    if is_counter(board) {
        let (start, cell) = (reply.maybe_time()?, reply.aggregate(board.kind())?);
        let life = board.definition().metric.window.approximate_millis();
        held.extend(start.zip(cell).filter(|(start, _)| now < start.plus_millis(life)));
    } else if kinds::of(board.kind()).keeps_values() {
        if reply.len() > 2 * VALUES {
            return Ok(None);
        }
        let mut times = Vec::with_capacity(reply.len() / 2);
        while !reply.is_empty() {
            let _value = reply.bytes()?;
            times.push(reply.time_of_score()?);
        }
        held = counted_by_slot(range, &times);
    } else if reads_whole_key(board, range.starts.len()) || range.starts.len() > NAMED {
        while !reply.is_empty() {
            // A field whose name is not a time shows when the key was cleaned.
            match reply.field_time()? {
                Some(start) if range.holds(start) => {
                    held.extend(reply.aggregate(board.kind())?.map(|aggregate| (start, aggregate)));
                }
                _ => drop(reply.bytes()?),
            }
        }
        held.sort_unstable_by_key(|(start, _)| *start);
    } else {
        for start in range.starts.iter() {
            held.extend(reply.aggregate(board.kind())?.map(|aggregate| (*start, aggregate)));
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

/// Adds the arguments of `subject_slots.lua`, to read slots.
pub(super) fn ask_by_script(question: &Question, moment: &Moment<'_>, subject: &Subject, call: &mut ScriptCall) {
    ask_for(moment, subject, &range(question, moment), false, call);
}

fn ask_for(moment: &Moment<'_>, subject: &Subject, range: &Range, removes: bool, call: &mut ScriptCall) {
    let (board, keys) = (&*moment.part.board, &moment.part.keys);
    let by_time = kinds::of(board.kind()).keeps_values();
    let (how, first) = match range.starts.first() {
        _ if is_counter(board) => ("counter", board.definition().metric.window.approximate_millis()),
        Some(start) => (if by_time { "seen" } else { "subject" }, start.millis()),
        None => (if by_time { "seen" } else { "subject" }, range.end.millis()),
    };
    call.key(if by_time { keys.seen(subject) } else { keys.subject(subject) }).key(keys.gone(subject));
    call.arg("stored", how).arg("from", first).arg("till", range.end.millis());
    call.arg("capped", if may_be_capped(board) { "capped" } else { "" });
    if removes {
        // Where no period ever ends, nothing else would forget the subject's name.
        call.key(keys.written(expiry::period(board, moment.now)));
    }
    call.arg("action", if removes { "remove" } else { "read" });
    call.arg("subject", if removes { subject.as_str() } else { "" });
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

/// Returns the answer to a question about a subject's window, or about its standing on an unranked board.
pub(super) fn answer(
    question: &Question,
    moment: &Moment<'_>,
    mut frame: Frame,
    capped: Option<Timestamp>,
    held: Cells,
) -> Answer {
    let board = &*question.part.board;
    let since = |floor: Timestamp| capped.is_some_and(|time| time >= floor);
    let What::Window { range, as_of, .. } = &*question.what else {
        let score = board.value(held.iter().map(|(_, aggregate)| aggregate));
        let capped = since(frame.window.floor);
        return Answer::Standing(Standing { frame, total: 0, score, rank: None, better: 0, slots: held, capped });
    };
    if is_counter(board) {
        frame.window = life(board, &frame, &held);
        return Answer::Window(Ok(SlotContents { frame, slots: 1, aggregates: held, capped: false }));
    }
    if as_of.is_some_and(|time| time > frame.as_of) {
        return Answer::Window(Err(moment.part.kept(&moment.window).oldest));
    }
    let range = match slots(moment, *range, *as_of) {
        Ok(range) => range,
        Err(oldest) => return Answer::Window(Err(oldest)),
    };
    let floor = range.starts.first().copied().unwrap_or(frame.window.floor);
    let head = range.starts.last().copied().unwrap_or(frame.window.head);
    frame.window = Window { floor, head, end: range.end };
    let slots = u32::try_from(range.starts.len()).unwrap_or(u32::MAX);
    Answer::Window(Ok(SlotContents { frame, slots, aggregates: held, capped: since(floor) }))
}

/// Returns the window that a counter's answer is about.
fn life(board: &Board, frame: &Frame, held: &[(Timestamp, Aggregate)]) -> Window {
    let start = held.first().map_or(frame.as_of, |(start, _)| *start);
    let end = start.plus_millis(board.definition().metric.window.approximate_millis());
    Window { floor: start, head: start, end }
}

/// Removes a subject from an unranked board.
pub(in crate::store::redis) async fn remove(
    session: &Session,
    part: &Part,
    subject: &Subject,
) -> Result<Removal, ServerFailure> {
    let board = &*part.board;
    let answer = session.ask(part, &FORGET, |moment, call| ask_for(moment, subject, &Range::whole(moment), true, call));
    let Answered { frame, mut reply, .. } = answer.await?;
    let (_, held) = scripted(&mut reply, board.kind())?;
    let score = board.value(held.iter().map(|(_, aggregate)| aggregate));
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
