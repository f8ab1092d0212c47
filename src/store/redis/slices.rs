//! Reading what one subject has in some of its slots, however its board keeps it.

use futures_util::future::join_all;

use super::connection::Failure;
use super::reply::Reply;
use super::scripts::{Call, FORGET, READ, Script, VALUES};
use super::session::{Answer, Moment, Session};
use crate::board::{Board, Frame, Kind, Mode, Subject, Tally, Timestamp, Window};
use crate::store::{Ask, Reach, Reading, Removal, Standing, StoreError, Values};

/// The most slots that are asked for by name; of more, all between the first and the last are asked for.
const NAMED: usize = 512;

/// The slots to read, oldest first, and the end of the newest. None of a `from_first` board.
struct Range {
    starts: Vec<Timestamp>,
    end: Timestamp,
}

/// Whether a board may have dropped values.
pub(super) fn may_be_capped(board: &Board) -> bool {
    board.definition().max_values.is_some()
}

/// The slots that a question is about when the window is this one; the oldest slot there is to ask for, if they are
/// not all there.
fn range(moment: &Moment<'_>, ask: &Ask) -> Result<Range, Timestamp> {
    let (board, window) = (&ask.board, &moment.window);
    let calendar = board.calendar();
    let Some(until) = ask.as_of else {
        let starts = &moment.starts;
        let from = match ask.reach {
            Reach::Slots(slots) if slots > board.slots() => return Err(window.floor),
            Reach::Slots(slots) => starts.len().saturating_sub(slots.max(1) as usize),
            Reach::From(time) if time < window.floor => return Err(window.floor),
            // What is ahead of the clock counts as now, and so does a reach that starts there.
            Reach::From(time) => starts.partition_point(|start| *start < calendar.slot_of(time)),
        };
        let starts = starts[from.min(starts.len().saturating_sub(1))..].to_vec();
        return Ok(Range { starts, end: window.end });
    };
    let oldest = moment.view.kept(board, window).oldest;
    let newest = calendar.slot_of(until);
    let first = match ask.reach {
        Reach::Slots(slots) if slots > board.slots() => return Err(oldest),
        Reach::Slots(_) => None,
        Reach::From(time) => Some(calendar.slot_of(time.min(until))),
    };
    if newest < oldest || newest > window.head || first.is_some_and(|first| first < oldest) {
        return Err(oldest);
    }
    let most = match ask.reach {
        Reach::Slots(slots) => slots.max(1) as usize,
        Reach::From(_) => board.slots() as usize,
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
    Ok(Range { starts, end: calendar.next(newest) })
}

/// Adds the keys and arguments of `slices.lua`.
fn ask_for(moment: &Moment<'_>, board: &Board, subject: &Subject, range: &Range, call: &mut Call) {
    let keys = &moment.view.keys;
    let by_time = board.kind() == Kind::Distinct && !board.is_ranked();
    let counter = board.definition().mode == Mode::FromFirst;
    call.key(if by_time { keys.seen(subject) } else { keys.subject(subject) }).key(keys.gone(subject));
    let how = match board.is_ranked() {
        _ if counter => "counter",
        true => "slots",
        false if by_time => "seen",
        false => "subject",
    };
    let first = match range.starts.first() {
        _ if counter => board.definition().metric.window.approximate_millis(),
        Some(start) => start.millis(),
        None => range.end.millis(),
    };
    call.arg(how).arg(subject).arg(first).arg(range.end.millis());
    call.arg(if may_be_capped(board) { "capped" } else { "" });
    if counter || (how == "subject" && range.starts.len() > NAMED) {
        return;
    }
    for start in &range.starts {
        if board.is_ranked() {
            call.key(keys.slot(*start));
        }
        call.arg(start.millis());
    }
}

/// What `add_slices` answered.
struct Slices {
    /// When a value was dropped last.
    capped: Option<Timestamp>,
    /// The slots that hold anything, oldest first.
    tallies: Vec<(Timestamp, Tally)>,
}

fn slices(reply: &mut Reply, board: &Board) -> Result<Slices, Failure> {
    let capped = reply.maybe_time()?;
    let mut tallies = Vec::new();
    while !reply.is_empty() {
        let start = reply.time()?;
        if let Some(tally) = reply.tally(board.kind())? {
            tallies.push((start, tally));
        }
    }
    tallies.sort_unstable_by_key(|(start, _)| *start);
    Ok(Slices { capped, tallies })
}

/// The window that a counter's answer is about.
fn life(board: &Board, frame: &Frame, tallies: &[(Timestamp, Tally)]) -> Window {
    let start = tallies.first().map_or(frame.as_of, |(start, _)| *start);
    let end = start.plus_millis(board.definition().metric.window.approximate_millis());
    Window { floor: start, head: start, end }
}

/// All questions at once, each a script of its own. The outer error of each is the server's, the inner one a reach
/// beyond what there is.
pub(super) async fn read(session: &Session, asks: &[Ask]) -> Vec<Result<Result<Reading, StoreError>, Failure>> {
    join_all(asks.iter().map(|ask| read_one(session, ask))).await
}

async fn read_one(session: &Session, ask: &Ask) -> Result<Result<Reading, StoreError>, Failure> {
    let board = &*ask.board;
    let answer = session.ask(board, &READ, |moment, call| {
        let is_counter = board.definition().mode == Mode::FromFirst;
        let whole = || Range { starts: moment.starts.to_vec(), end: moment.window.end };
        let range = if is_counter { Ok(whole()) } else { range(moment, ask) };
        // Even where there is nothing to read the script says what time it is.
        let nothing = Range { starts: Vec::new(), end: moment.window.floor };
        ask_for(moment, board, &ask.subject, range.as_ref().unwrap_or(&nothing), call);
        (range, moment.view.kept(board, &moment.window).oldest)
    });
    let Answer { mut frame, asked: (range, oldest), mut reply, .. } = answer.await?;
    if ask.as_of.is_some_and(|time| time > frame.as_of) {
        return Ok(Err(StoreError::BeyondWindow { floor: oldest }));
    }
    let range = match range {
        Ok(range) => range,
        Err(floor) => return Ok(Err(StoreError::BeyondWindow { floor })),
    };
    let Slices { capped, tallies } = slices(&mut reply, board)?;
    if board.definition().mode == Mode::FromFirst {
        frame.window = life(board, &frame, &tallies);
        return Ok(Ok(Reading { frame, slots: 1, tallies, capped: false }));
    }
    let floor = range.starts.first().copied().unwrap_or(frame.window.floor);
    let head = range.starts.last().copied().unwrap_or(frame.window.head);
    frame.window = Window { floor, head, end: range.end };
    let slots = u32::try_from(range.starts.len()).unwrap_or(u32::MAX);
    Ok(Ok(Reading { frame, slots, tallies, capped: capped.is_some_and(|time| time >= floor) }))
}

/// The whole window of a subject on an unranked board.
async fn window(
    session: &Session,
    board: &Board,
    subject: &Subject,
    script: &Script,
) -> Result<(Frame, Slices), Failure> {
    let answer = session.ask(board, script, |moment, call| {
        let range = Range { starts: moment.starts.to_vec(), end: moment.window.end };
        ask_for(moment, board, subject, &range, call);
    });
    let Answer { frame, mut reply, .. } = answer.await?;
    Ok((frame, slices(&mut reply, board)?))
}

/// What the window of an unranked board says of a subject.
pub(super) async fn standing(session: &Session, board: &Board, subject: &Subject) -> Result<Standing, Failure> {
    let (frame, Slices { capped, tallies: slots }) = window(session, board, subject, &READ).await?;
    let score = board.value(slots.iter().map(|(_, tally)| tally));
    let capped = capped.is_some_and(|time| time >= frame.window.floor);
    Ok(Standing { frame, total: 0, score, rank: None, better: 0, slots, capped })
}

/// Takes a subject off an unranked board.
pub(super) async fn remove(session: &Session, board: &Board, subject: &Subject) -> Result<Removal, Failure> {
    let (frame, Slices { tallies, .. }) = window(session, board, subject, &FORGET).await?;
    let score = board.value(tallies.iter().map(|(_, tally)| tally));
    Ok(Removal { frame, score, live_slots: tallies.len() as u64, retiring_slots: 0 })
}

pub(super) async fn values(
    session: &Session,
    board: &Board,
    subject: &Subject,
    offset: u64,
    limit: u32,
) -> Result<Values, Failure> {
    let answer = session.ask(board, &VALUES, |moment, call| {
        call.key(moment.view.keys.seen(subject)).key(moment.view.keys.gone(subject));
        call.arg(offset.min(u32::MAX.into())).arg(limit);
    });
    let Answer { frame, mut reply, .. } = answer.await?;
    let capped = reply.maybe_time()?.is_some_and(|time| time >= frame.window.floor);
    let total = reply.count()?;
    let mut items = Vec::new();
    while !reply.is_empty() {
        let value = reply.counted()?;
        items.extend(reply.maybe_time()?.map(|time| (value, time)));
    }
    Ok(Values { frame, total, items, capped })
}
