//! Reading: one script each, so that all of an answer is of one instant.

use super::connection::Failure;
use super::reply::Reply;
use super::scripts::{LOOKUP, NEIGHBORS, PAGE, STANDING, STATUS};
use super::session::{Answer, Session};
use super::slices::may_be_capped;
use crate::board::{Board, Kind, Order, Subject};
use crate::store::{Lookup, Page, Ranked, Standing, Status};

/// Beyond any sorted set, and exact in Lua.
const FARTHEST: u64 = 1 << 52;

fn order(board: &Board) -> &'static str {
    match board.order() {
        Order::Desc => "desc",
        Order::Asc => "asc",
    }
}

/// Reads lines that begin at place `first` (from 0), of which `better` subjects are strictly better than the first.
fn lines(reply: &mut Reply, kind: Kind, first: u64, better: u64) -> Result<Vec<Ranked>, Failure> {
    let mut items: Vec<Ranked> = Vec::new();
    let mut place = first;
    while !reply.is_empty() {
        let (subject, score) = (reply.subject()?, reply.line_score(kind)?);
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
    Ok(Page { frame, total, items: lines(&mut reply, board.kind(), first, better)? })
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
    Ok(Page { frame, total, items: lines(&mut reply, board.kind(), first, better)? })
}

pub(super) async fn lookup(session: &Session, board: &Board, subjects: &[Subject]) -> Result<Lookup, Failure> {
    let answer = session.ask(board, &LOOKUP, |_, call| {
        call.args(subjects);
    });
    let Answer { frame, mut reply, .. } = answer.await?;
    let total = reply.count()?;
    let scores = subjects.iter().map(|_| reply.score(board.kind())).collect::<Result<_, _>>()?;
    Ok(Lookup { frame, total, scores })
}

/// Where a subject of a ranked board stands.
pub(super) async fn standing(session: &Session, board: &Board, subject: &Subject) -> Result<Standing, Failure> {
    let answer = session.ask(board, &STANDING, |moment, call| {
        call.key(moment.view.keys.gone(subject)).arg(order(board)).arg(subject).arg(moment.starts.len());
        call.arg(if may_be_capped(board) { "capped" } else { "" });
        for start in moment.starts.iter() {
            call.key(moment.view.keys.slot(*start));
        }
        moment.starts.clone()
    });
    let Answer { frame, asked: starts, mut reply, .. } = answer.await?;
    let kind = board.kind();
    let (total, score, better) = (reply.count()?, reply.score(kind)?, reply.count()?);
    let capped = reply.maybe_time()?.is_some_and(|time| time >= frame.window.floor);
    let mut slots = Vec::new();
    for start in starts.iter() {
        slots.extend(reply.tally(kind)?.map(|tally| (*start, tally)));
    }
    let rank = score.map(|_| better + 1);
    Ok(Standing { frame, total, score: score.or(kind.absent()), rank, better, slots, capped })
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
