//! Expiry of what single subjects hold: their keys, which cannot be listed, are found through the periods in which they
//! were written to.
//!
//! Nothing has a time to live, for then the server's clock would decide, right or wrong. A write notes its subjects in
//! the set of the expiry period of now; once nothing that was written in a period can still be kept, its subjects are
//! looked at, a bounded number with each step. What a key holds decides whether it goes, never when it was written:
//! a subject that was written to since is only moved to the period of now.

use redis::cmd;

use super::hash_slot::HashSlot;
use super::part::Part;
use super::reply::Reply;
use super::scripts::SWEEP;
use super::servers::{Failure, Line};
use super::session::{Answer, Session};
use crate::board::{Board, Kind, Mode, Subject, Timestamp, Window};

/// The shortest period, in milliseconds.
const SHORTEST: i64 = 60_000;
/// The most subjects of one step, and about the most cells that it looks at: 1 to 2 ms of the server's time.
const SUBJECTS: usize = 200;
const CELLS: usize = 4_000;

/// Whether the board keeps keys of single subjects.
pub(super) fn has_subject_keys(board: &Board) -> bool {
    !board.is_ranked() || board.kind() == Kind::Distinct || board.definition().mode == Mode::FromFirst
}

/// How long a period takes writes in, in milliseconds: a quarter of what a value lives through, so that what is idle is
/// kept a quarter longer than it must be. Of a board always the same, though months differ.
fn width(board: &Board) -> i64 {
    let window = board.definition().metric.window.approximate_millis();
    let life = match board.definition().mode {
        Mode::FromFirst => window,
        Mode::Sliding => window / i64::from(board.slots().max(1)) * i64::from(board.kept()),
    };
    (life / 4).max(SHORTEST)
}

/// The number of the period that contains this time.
pub(super) fn period(board: &Board, now: Timestamp) -> i64 {
    now.millis().div_euclid(width(board))
}

/// The number of the oldest period of which something may still be kept.
pub(super) fn oldest_needed(part: &Part, window: &Window, now: Timestamp) -> i64 {
    let board = &*part.board;
    let life = match board.definition().mode {
        Mode::FromFirst => board.definition().metric.window.approximate_millis(),
        Mode::Sliding => part.kept(window).life,
    };
    now.millis().saturating_sub(life).div_euclid(width(board))
}

/// One bounded step of a period that is due; answers how long the server worked on it, if it can tell.
pub(super) async fn sweep(session: &Session, part: &Part, due: i64) -> Result<Option<u64>, Failure> {
    let board = &*part.board;
    let subjects = members(session, part.slot(), &part.keys.written(due)).await?;
    let by_values = board.kind() == Kind::Distinct;
    let is_counter = board.definition().mode == Mode::FromFirst;
    let answer = session.ask(part, &SWEEP, |moment, call| {
        let keys = &part.keys;
        let now = period(board, moment.now).max(due + 1);
        call.key(keys.written(due)).key(&keys.periods).key(keys.written(now));
        call.arg(if is_counter {
            "counter"
        } else if by_values {
            "seen"
        } else {
            "subject"
        });
        call.arg(due).arg(now);
        call.arg(match is_counter {
            true => board.definition().metric.window.approximate_millis(),
            false => part.kept(&moment.window).oldest.millis(),
        });
        call.arg(CELLS);
        for subject in &subjects {
            if by_values {
                call.key(keys.seen(subject)).key(keys.gone(subject));
            } else {
                call.key(keys.subject(subject));
            }
            call.arg(subject);
        }
    });
    let Answer { mut reply, .. } = answer.await?;
    let (_looked, _emptied, _gone) = (reply.count()?, reply.count()?, reply.count()?);
    Ok(u64::try_from(reply.integer()?).ok())
}

/// Some members of a set of subjects.
pub(super) async fn members(session: &Session, slot: HashSlot, key: &str) -> Result<Vec<Subject>, Failure> {
    let mut command = cmd("SRANDMEMBER");
    command.arg(key).arg(SUBJECTS);
    let texts = Reply::texts(session.servers.read(slot, Line::Calls, &command).await?)?;
    Ok(texts.into_iter().map(Subject::from_stored).collect())
}
