//! The two editions of a board, and changes from one epoch to the next.
//!
//! The board's own meta key is the source of truth: it has the definition of the current edition, the stored form of
//! everything else about editions, and the epoch. It is changed first, if it is in the expected epoch. Then each
//! partition follows, in one step of its own: until then it is written to and read in the earlier epoch, by instances
//! that know the board as it was. A board that is not divided changes in both respects in one step.
//!
//! If the instance that changes a board ends early, partitions are left behind. An instance that knows the board as it
//! is finds that a partition has an earlier epoch, brings it forward and makes its call again ([`follow`]). An instance
//! that finds a later epoch than the one that it knows has to look the board up.
//!
//! A step of a partition changes all of its tracks, and the meta key of each track has the epoch too. A track that is
//! found in another epoch than its partition is brought to it in the same way.
//!
//! An instance that sends nothing to a board, because its filter excludes all events, would never find a later epoch. So
//! the version of the list of boards changes before the call that changes editions returns, as it does when a board is
//! defined: each request with events asks for it.

mod compare;
mod dual_run;
mod fill;
mod partition;
mod steps;

use std::sync::Arc;

use futures_util::future::try_join_all;
use redis::cmd;

pub(super) use self::compare::compare;
pub(super) use self::dual_run::dual_run;
pub(super) use self::fill::{end_fill, fill};
use self::partition::bring;
use super::boards;
use super::division::Division;
use super::part::Part;
use super::removing::{self, Noted};
use super::scripts::{EDITIONS, ScriptCall};
use super::servers::ServerFailure;
use super::session::Session;
use super::timekeeping;
use crate::board::{Board, Edition, EditionsChange, Timestamp};
use crate::store::{Result, StoreError};

/// The time, in milliseconds, from a call that closes a period to the end of the period. The script that makes the change
/// must run before.
const CLOSING: i64 = 1_000;

/// The number of times that a call is made because a partition was in an earlier epoch.
pub(super) const ATTEMPTS: usize = 4;

/// Replaces the editions of a board, if it is `from`, by those of `to`.
pub(super) async fn change(session: &Session, from: &Arc<Board>, to: Board) -> Result<Arc<Board>> {
    let failed = |failure| session.servers.error(failure);
    if let Some(stored) = changed_before(session, from, &to).await.map_err(failed)? {
        announce(session, &stored).await.map_err(failed)?;
        return Ok(stored);
    }
    let Some(change) = EditionsChange::between(from, &to) else {
        let detail = "only one change of a board's editions at a time".to_owned();
        return Err(StoreError::Unsupported { detail });
    };
    let to = match change {
        EditionsChange::Close => to.closed_at(change, end_of_closed(session, from).await.map_err(failed)?),
        _ => to,
    };
    if change == EditionsChange::Attach {
        for partition in session.partitions_of(from).all() {
            timekeeping::admit(session, &partition.clock).await?;
        }
    }
    let to = make(session, from, Arc::new(to), change).await.map_err(failed)?;
    announce(session, &to).await.map_err(failed)?;
    Ok(to)
}

/// Has every instance learn, before it decides which events it sends to the board, that the board has other editions.
async fn announce(session: &Session, board: &Arc<Board>) -> Result<(), ServerFailure> {
    match partition::is_to_be_announced(board) {
        true => boards::announce(session, board).await,
        false => Ok(()),
    }
}

/// Returns the time at which a period ends that is closed now. It is ahead of the clock, so that every instance knows the
/// end before it has come: an item counts in the period of its time, whoever sends it. A simulated clock stands still.
async fn end_of_closed(session: &Session, board: &Arc<Board>) -> Result<Timestamp, ServerFailure> {
    let now = session.time_for(&session.partitions_of(board).first().clock, None).await?;
    Ok(if session.simulated { now } else { now.plus_millis(CLOSING) })
}

/// Returns the board if an earlier attempt has changed it. Returns an error unless it is `from` or `to`.
async fn changed_before(session: &Session, from: &Arc<Board>, to: &Board) -> Result<Option<Arc<Board>>, ServerFailure> {
    let stored = boards::stored_again(session, from).await?;
    if is_equal(&stored, to) {
        bring_forward(session, &stored).await?;
        return Ok(Some(stored));
    }
    if stored.epoch() != from.epoch() {
        return Err(ServerFailure::StaleEpoch);
    }
    Ok(None)
}

/// Makes the steps of the board's season that are due at `now`, which one of its partitions has reached. Returns whether
/// there were any: then the board has other editions than the caller knows.
pub(super) async fn turn(session: &Session, board: &Arc<Board>, now: Timestamp) -> Result<bool, ServerFailure> {
    let mut at = board.clone();
    while let Some(to) = at.season_step(now) {
        at = match changed_before(session, &at, &to).await? {
            Some(stored) => stored,
            None => {
                let change = EditionsChange::between(&at, &to).ok_or(ServerFailure::KeptChanging)?;
                make(session, &at, Arc::new(to), change).await?
            }
        };
    }
    Ok(!Arc::ptr_eq(&at, board))
}

/// Makes the steps of the board's season that are due by the clock of any of its partitions.
async fn turn_if_due(session: &Session, board: &Arc<Board>) -> Result<bool, ServerFailure> {
    if board.season_step_at().is_none() {
        return Ok(false);
    }
    let mut now = Timestamp::EPOCH;
    for partition in session.partitions_of(board).all() {
        now = now.max(session.time_for(&partition.clock, None).await?);
    }
    turn(session, board, now).await
}

async fn make(
    session: &Session,
    from: &Arc<Board>,
    to: Arc<Board>,
    change: EditionsChange,
) -> Result<Arc<Board>, ServerFailure> {
    bring_forward(session, from).await?;
    check_free(session, from, change).await?;
    let noted = match change {
        EditionsChange::Detach => Noted::detached(from),
        EditionsChange::Seal => Noted::left_archive(from, &to),
        EditionsChange::Pack => Noted::packed(from, &to),
        EditionsChange::Attach | EditionsChange::Close | EditionsChange::Exchange => None,
    };
    if let Some(noted) = &noted {
        noted.write(session).await?;
    }
    change_own(session, from, &to).await?;
    match bring_forward(session, &to).await {
        // The change is made. Another instance has made the next one already.
        Ok(_) | Err(ServerFailure::StaleEpoch) => {}
        Err(failure) => return Err(failure),
    }
    if let Some(noted) = &noted {
        removing::begin(session, noted).await?;
    }
    Ok(to)
}

/// Changes the own meta key of a board, if it is in the epoch of `from`.
pub(super) async fn change_own(session: &Session, from: &Arc<Board>, to: &Arc<Board>) -> Result<(), ServerFailure> {
    let mut made = change_own_once(session, from, to).await;
    if made.as_ref().is_err_and(ServerFailure::is_unknown)
        && let Ok(stored) = boards::stored_again(session, from).await
    {
        made = if is_equal(&stored, to) { Ok(()) } else { change_own_once(session, from, to).await };
    }
    made?;
    session.forget(from);
    Ok(())
}

async fn change_own_once(session: &Session, from: &Arc<Board>, to: &Arc<Board>) -> Result<(), ServerFailure> {
    match (from.partitions(), to.partitions()) {
        // The meta key of its only partition is its own.
        (None, None) => partition::change_whole(session, from, to, session.partitions_of(to).first()).await,
        _ => set_own(session, from, to).await,
    }
}

/// Returns whether both are the same board with the same editions.
fn is_equal(stored: &Board, to: &Board) -> bool {
    stored.is_same_as(to) && stored.definition() == to.definition() && stored.stored_editions() == to.stored_editions()
}

/// Returns an error if the editions cannot be changed now.
pub(super) async fn check_free(
    session: &Session,
    board: &Arc<Board>,
    change: EditionsChange,
) -> Result<(), ServerFailure> {
    if board.season().is_some() {
        // Nothing is compared, and nothing is imported.
        return Ok(());
    }
    let partitions = session.partitions_of(board);
    let check = |part: Arc<Part>| async move {
        let mut fields = cmd("HMGET");
        fields.arg(&part.keys.meta).arg("import").arg("held").arg("run");
        let mut reply = session.read(&fields).await?;
        let (import, held, run) = (reply.maybe_text()?, reply.maybe_text()?, reply.maybe_text()?);
        if import.is_some() {
            return Err(ServerFailure::ImportOpen);
        }
        let is_audited = session.servers.run(part.slot()).is_none_or(|now| run.as_deref() == Some(&*now));
        if change != EditionsChange::Exchange || held.is_none() && is_audited {
            return Ok(());
        }
        let why = match held {
            Some(reason) => format!("the board is held: {reason}"),
            None => "the board is being audited after a restart of Redis; try again in some seconds".to_owned(),
        };
        Err(ServerFailure::EditionsBusy(why))
    };
    try_join_all(partitions.parts().cloned().map(check)).await.map(drop)
}

/// Changes the own meta key of a board that is divided, or will be: it has no tracks.
async fn set_own(session: &Session, from: &Arc<Board>, to: &Arc<Board>) -> Result<(), ServerFailure> {
    let meta = session.keys.meta(from.name());
    let mut call = ScriptCall::default();
    call.key(meta);
    // If the board was not divided, its own meta key is that of its main track. The others follow in the same step.
    let partitions = session.partitions_of(from);
    let further: Vec<_> = match from.partitions() {
        None => partitions.parts().filter(|part| !part.track.is_main()).collect(),
        Some(_) => Vec::new(),
    };
    for part in &further {
        call.key(&part.keys.meta);
    }
    partition::add_board_arguments(session, to, &mut call, &from.epoch().to_string(), None);
    let form = partition::Form::of(to)?;
    call.arg("next", to.epoch())
        .arg("action", "none")
        .arg("definition", form.definition)
        .arg("editions", form.editions);
    call.arg("stay", further.len()).arg("current", "").arg("other", "").arg("leaving", "").arg("run", "");
    call.arg("parts", Division::of_board(to).stored().unwrap_or_default());
    let ids = |board: &Board| board.editions().iter().map(Edition::id).collect::<Vec<_>>();
    let is_decided_again = ids(from) != ids(to) && partition::is_to_be_announced(to);
    call.arg("announced", if is_decided_again { "" } else { "1" });
    partition::read_done(&mut session.call(&EDITIONS, &call).await?).map(drop)
}

/// Brings every partition of a board to its epoch. Returns whether one of them was behind. O(partitions); one round
/// trip if none is.
pub(super) async fn bring_forward(session: &Session, board: &Arc<Board>) -> Result<bool, ServerFailure> {
    let partitions = session.partitions_of(board);
    let moved = try_join_all(partitions.all().iter().map(|own| bring(session, board, own))).await?;
    Ok(moved.contains(&true))
}

/// Decides what to do after a call about a board found that the board does not exist, or not in this epoch. Returns if
/// the call may be made again, because a partition was behind and has been brought forward. Otherwise returns the error
/// with which to end the call.
pub(super) async fn follow(session: &Session, board: &Arc<Board>, found: ServerFailure) -> Result<(), ServerFailure> {
    if !found.is_outdated() {
        return Err(found);
    }
    if Box::pin(turn_if_due(session, board)).await? {
        return Err(ServerFailure::StaleEpoch);
    }
    let stored = match boards::stored(session, board.name()).await {
        // Whoever looks the board up learns why.
        Err(ServerFailure::Unreadable(_)) => return Err(found),
        stored => stored?,
    };
    let Some(stored) = stored.filter(|stored| stored.generation() == board.generation()) else {
        session.forget(board);
        return Err(ServerFailure::BoardChanged);
    };
    if stored.epoch() != board.epoch() {
        session.forget(board);
        return Err(ServerFailure::StaleEpoch);
    }
    match bring_forward(session, board).await? {
        true => Ok(()),
        // Another instance has just brought it forward.
        false if matches!(found, ServerFailure::StaleEpoch | ServerFailure::StepDue) => Ok(()),
        false => Err(found),
    }
}
