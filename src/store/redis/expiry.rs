//! Expiry of the keys of single subjects. These keys cannot be listed, so they are found through the expiry periods in
//! which the subjects were written to.
//!
//! No key has a time to live: otherwise a wrong server clock could delete data. A write adds its subjects to the set of
//! the current expiry period. Once nothing that was written in a period can still be kept, its subjects are checked, a
//! bounded number in each step. Whether a key is deleted depends on its content, never on the time when it was written:
//! a subject that was written to later is only moved to the current period.

use redis::cmd;

use super::part::Part;
use super::reply::Reply;
use super::scripts::SWEEP;
use super::servers::{Channel, ServerFailure};
use super::session::{ScriptAnswer, Session};
use crate::board::{Subject, Timestamp, Track, Window};

/// The shortest period, in milliseconds.
const SHORTEST: i64 = 60_000;
/// The largest number of subjects of one step, and the approximate largest number of cells: 1 to 2 ms of the server's
/// time.
const SUBJECTS: usize = 200;
const CELLS: usize = 4_000;

/// Returns whether the board has keys of single subjects.
pub(super) fn has_subject_keys(track: &Track) -> bool {
    !track.is_ranked() || track.kind().remembers_values()
}

/// Returns the length of a period, in milliseconds: a quarter of the time for which a value is kept. So the keys of
/// idle subjects are kept a quarter longer than necessary. The length is constant for a board, although months differ
/// in length.
///
/// Over all time only the tombstones of COUNT_DISTINCT expire. On other boards over all time no period ever ends.
fn width(track: &Track) -> i64 {
    let window = track.length().approximate_millis();
    let life = match track.tombstone_life() {
        Some(life) => life,
        None if track.is_from_first() => window,
        None => window / i64::from(track.slots().max(1)) * i64::from(track.kept()),
    };
    (life / 4).max(SHORTEST)
}

/// Returns the number of periods whose sets may contain a subject that is written to in this number of slots.
pub(super) fn periods(track: &Track, slots: usize) -> usize {
    let window = track.length().approximate_millis();
    let slot = (window / i64::from(track.slots().max(1))).max(1);
    let slots = i64::try_from(slots).unwrap_or(i64::MAX);
    // The last one is the period that the newest slot is in.
    let passed = (slots - 1).saturating_mul(slot) / width(track);
    usize::try_from(passed).unwrap_or(usize::MAX).min(slots as usize - 1) + 1
}

/// Returns the number of the period that contains this time.
pub(super) fn period(track: &Track, now: Timestamp) -> i64 {
    now.millis().div_euclid(width(track))
}

/// Returns the number of the oldest period whose data may still be kept.
pub(super) fn oldest_needed(part: &Part, window: &Window, now: Timestamp) -> i64 {
    let track = &part.track;
    let life = match track.tombstone_life() {
        Some(life) => life,
        None if track.is_from_first() => track.length().approximate_millis(),
        None => part.kept(window).life,
    };
    now.millis().saturating_sub(life).div_euclid(width(track))
}

/// Makes one bounded step for a period that is due. Returns the time that the server worked on it, in microseconds, if
/// the server can measure it.
pub(super) async fn sweep(session: &Session, part: &Part, due: i64) -> Result<Option<u64>, ServerFailure> {
    let track = &part.track;
    let subjects = members(session, &part.keys.written(due)).await?;
    let by_values = track.kind().remembers_values();
    let answer = session.step(part, &SWEEP, |moment, call| {
        let keys = &part.keys;
        let now = period(track, moment.now).max(due + 1);
        call.key(keys.written(due)).key(&keys.periods).key(keys.written(now));
        let (stored, kept) = match track.tombstone_life() {
            Some(life) => ("seen_forever", life),
            None if track.is_from_first() => ("counter", track.length().approximate_millis()),
            None => (if by_values { "seen" } else { "subject" }, part.kept(&moment.window).oldest.millis()),
        };
        call.arg("stored", stored).arg("due", due).arg("current", now).arg("kept", kept);
        call.arg("cells", CELLS);
        for subject in &subjects {
            if by_values {
                call.key(keys.seen(subject)).key(keys.gone(subject));
            } else {
                call.key(keys.subject(subject));
            }
            call.more(subject);
        }
    });
    let ScriptAnswer { mut reply, .. } = answer.await?;
    let (_looked, _emptied, _gone) = (reply.count()?, reply.count()?, reply.count()?);
    Ok(u64::try_from(reply.integer()?).ok())
}

/// Returns some members of a set of subjects.
pub(super) async fn members(session: &Session, key: &str) -> Result<Vec<Subject>, ServerFailure> {
    let mut command = cmd("SRANDMEMBER");
    command.arg(key).arg(SUBJECTS);
    let texts = Reply::texts(session.servers.read(Channel::Calls, &command).await?)?;
    Ok(texts.into_iter().map(Subject::from_stored).collect())
}
