//! Reading: one script each, so that all of an answer is of one instant.

use super::connection::Failure;
use super::reply::Reply;
use super::scripts::{LOOKUP, NEIGHBORS, PAGE, STANDING, STATUS};
use super::session::{Answer, Session};
use crate::board::{Board, Order, Subject, Tally, Timestamp, Value};
use crate::store::{Lookup, Page, Ranked, Reach, Reading, Standing, Status, StoreError};

/// Beyond any sorted set, and exact in Lua.
const FARTHEST: u64 = 1 << 52;

fn order(board: &Board) -> &'static str {
    match board.order() {
        Order::Desc => "desc",
        Order::Asc => "asc",
    }
}

/// Reads lines that begin at place `first` (from 0), of which `better` subjects are strictly better than the first.
fn lines(reply: &mut Reply, first: u64, better: u64) -> Result<Vec<Ranked>, Failure> {
    let mut items: Vec<Ranked> = Vec::new();
    let mut place = first;
    while !reply.is_empty() {
        let (subject, score) = (reply.subject()?, Value::Exact(reply.score()?));
        let rank = match items.last() {
            None => better + 1,
            Some(before) if before.score == score => before.rank,
            Some(_) => place + 1,
        };
        items.push(Ranked { rank, subject, score });
        place += 1;
    }
    Ok(items)
}

pub(super) async fn page(session: &Session, board: &Board, offset: u64, limit: u32) -> Result<Page, Failure> {
    let first = offset.min(FARTHEST);
    // A range that ends before it begins is empty; -1 would be the last line.
    let (first, last) = if limit == 0 { (1, 0) } else { (first, first + u64::from(limit) - 1) };
    let answer = session.ask(board, &PAGE, |_, call| {
        call.arg(order(board)).arg(first).arg(last);
    });
    let Answer { frame, mut reply, .. } = answer.await?;
    let (total, better) = (reply.count()?, reply.count()?);
    Ok(Page { frame, total, items: lines(&mut reply, first, better)? })
}

pub(super) async fn neighbors(
    session: &Session,
    board: &Board,
    subject: &Subject,
    radius: u32,
) -> Result<Page, Failure> {
    let answer = session.ask(board, &NEIGHBORS, |_, call| {
        call.arg(order(board)).arg(subject).arg(radius);
    });
    let Answer { frame, mut reply, .. } = answer.await?;
    let (total, first, better) = (reply.count()?, reply.count()?, reply.count()?);
    Ok(Page { frame, total, items: lines(&mut reply, first, better)? })
}

pub(super) async fn lookup(session: &Session, board: &Board, subjects: &[Subject]) -> Result<Lookup, Failure> {
    let answer = session.ask(board, &LOOKUP, |_, call| {
        call.args(subjects);
    });
    let Answer { frame, mut reply, .. } = answer.await?;
    let total = reply.count()?;
    let scores =
        subjects.iter().map(|_| reply.amount().map(|amount| amount.map(Value::Exact))).collect::<Result<_, _>>()?;
    Ok(Lookup { frame, total, scores })
}

pub(super) async fn standing(session: &Session, board: &Board, subject: &Subject) -> Result<Standing, Failure> {
    let answer = session.ask(board, &STANDING, |moment, call| {
        call.arg(order(board)).arg(subject).arg(moment.starts.len());
        for start in moment.starts.iter() {
            call.key(moment.view.keys.slot(*start));
        }
        moment.starts.clone()
    });
    let Answer { frame, asked: starts, mut reply, .. } = answer.await?;
    let (total, score, better) = (reply.count()?, reply.amount()?, reply.count()?);
    let slots = amounts(&mut reply, &starts)?;
    Ok(Standing {
        frame,
        total,
        score: Some(Value::Exact(score.unwrap_or_default())),
        rank: score.map(|_| better + 1),
        better,
        slots,
        capped: false,
    })
}

/// The slots that hold an amount.
fn amounts(reply: &mut Reply, starts: &[Timestamp]) -> Result<Vec<(Timestamp, Tally)>, Failure> {
    let mut slots = Vec::new();
    for start in starts {
        slots.extend(reply.amount()?.map(|amount| (*start, Tally::Sum(amount))));
    }
    Ok(slots)
}

/// The outer error is the server's, the inner one a reach beyond the window.
pub(super) async fn count(
    session: &Session,
    board: &Board,
    subject: &Subject,
    reach: Reach,
) -> Result<Result<Reading, StoreError>, Failure> {
    let answer = session.ask(board, &STANDING, |moment, call| {
        let starts: &[Timestamp] = &moment.starts;
        let from = match reach {
            Reach::Slots(slots) => starts.len().saturating_sub(slots.max(1) as usize),
            // What is ahead of the clock counts as now, and so does a reach that starts there.
            Reach::From(time) => starts.partition_point(|start| *start < board.calendar().slot_of(time)),
        };
        let counted = starts[from.min(starts.len().saturating_sub(1))..].to_vec();
        call.arg(order(board)).arg(subject).arg(counted.len());
        for start in &counted {
            call.key(moment.view.keys.slot(*start));
        }
        counted
    });
    let Answer { mut frame, asked: starts, mut reply, .. } = answer.await?;
    let floor = frame.window.floor;
    let beyond = match reach {
        Reach::Slots(slots) => slots > board.slots(),
        Reach::From(time) => time < floor,
    };
    if beyond {
        return Ok(Err(StoreError::BeyondWindow { floor }));
    }
    let (_total, _score, _better) = (reply.count()?, reply.amount()?, reply.count()?);
    let tallies = amounts(&mut reply, &starts)?;
    frame.window.floor = starts.first().copied().unwrap_or(frame.window.head);
    let slots = u32::try_from(starts.len()).unwrap_or(u32::MAX);
    Ok(Ok(Reading { frame, slots, tallies, capped: false }))
}

pub(super) async fn status(session: &Session, board: &Board) -> Result<Status, Failure> {
    let answer = session.ask(board, &STATUS, |moment, call| {
        for start in moment.existing.slots.iter() {
            call.key(moment.view.keys.slot(*start)).arg(start.millis());
        }
        moment.existing.slots.clone()
    });
    let Answer { frame, asked: starts, mut reply, .. } = answer.await?;
    let (total, dropped) = (reply.count()?, reply.time()?);
    let (mut slots, mut retiring) = (Vec::new(), Vec::new());
    for start in starts.iter() {
        let subjects = reply.count()?;
        if *start >= frame.window.floor {
            slots.push((*start, subjects));
        } else if *start >= dropped {
            retiring.push((*start, subjects));
        }
    }
    Ok(Status { frame, total, slots, retiring })
}
