//! Changes of the number of shards of a board: its data is copied to other partitions while it is frozen.
//!
//! The board is frozen by a change of its epoch, in its own meta key first and then in each partition, like a change of
//! its editions. So no instance writes in the earlier epoch, and one that knows the present one refuses writes by
//! itself. Reads and retiring go on. The next epoch ends this, in either of two ways: with the partitions that have a
//! copy, or with those that the board had. Of the two only one is made, because both expect the epoch in which the
//! board is frozen. Only the board's own meta key decides.
//!
//! The instance that copies renews a lease. Once the lease has ended, the next instance that writes to the board,
//! retires its slots or changes its shards lets it go on as before. The copies of an attempt that ended early, and the
//! data of partitions that the board no longer has, are found by a note and deleted some minutes later (see
//! `removing`): until then a write whose reply was lost finds its record in the partition to which it was sent.

mod copy;
mod ids;
mod lease;

use std::sync::Arc;

use self::copy::Copy;
use super::boards;
use super::division::Division;
use super::editions;
use super::reached;
use super::removing::{self, Noted};
use super::servers::ServerFailure;
use super::session::Session;
use super::timekeeping;
use crate::board::{Board, EditionsChange, Redivision, SourceNumber};
use crate::store::{CopyProgress, Result, StoreError};

/// The number of times that a board is looked up, or frozen, because it has changed in the meantime.
const ATTEMPTS: usize = 8;

/// Copies the data of a board to another number of shards, with what it has reached of these sources.
pub(super) async fn redivide(
    session: &Session,
    board: &Arc<Board>,
    shards: u32,
    sources: &[SourceNumber],
) -> Result<Arc<Board>> {
    let failed = |failure| session.servers.error(failure);
    if board.definition().shards == Some(shards) && board.redivision().is_none() {
        return Ok(board.clone());
    }
    let mut board = board.clone();
    for _ in 0..ATTEMPTS {
        // An attempt whose lease has ended does not prevent the next one.
        board = match writable(session, &board).await {
            Err(ServerFailure::Frozen(_)) => {
                return Err(busy("the data of the board is being copied to another number of shards already"));
            }
            found => found.map_err(failed)?,
        };
        // Between two portions of a log: what is frozen in the middle of one cannot be divided.
        if !reached::wait_until_even(session, &board, sources).await.map_err(failed)? {
            break;
        }
        if let Some(divided) = redivide_once(session, &board, shards, sources).await? {
            return Ok(divided);
        }
        board = boards::stored_again(session, &board).await.map_err(failed)?;
    }
    Err(busy(
        "a source is in the middle of a portion, or an event of it waits: let its sender end the portion, then begin the change again",
    ))
}

/// Does the same, unless a portion of a source was on its way when the board was frozen. Then the board goes on as before.
async fn redivide_once(
    session: &Session,
    board: &Arc<Board>,
    shards: u32,
    sources: &[SourceNumber],
) -> Result<Option<Arc<Board>>> {
    let failed = |failure| session.servers.error(failure);
    let frozen = freeze(session, board, shards).await?;
    let mut begun = None;
    let exchanged = async {
        if board.partitions().is_some() {
            // Portions that begin now are refused, and those that have begun end first.
            reached::wait_until_even(session, board, sources).await.map_err(failed)?;
        }
        // When this returns, no instance writes to the board.
        editions::bring_forward(session, &frozen).await.map_err(failed)?;
        if !reached::is_even(session, &frozen, sources).await.map_err(failed)? {
            return Ok(None);
        }
        let copy = begun.insert(Copy::begin(session, &frozen).await.map_err(failed)?);
        copy.fill(session, &frozen, sources).await?;
        exchange(session, &frozen, copy).await.map_err(failed)?;
        Ok(Some(copy.board.clone()))
    };
    let exchanged = exchanged.await;
    if !matches!(exchanged, Ok(Some(_))) {
        // If this fails, the lease ends, and the copy is deleted later.
        let _ = thaw(session, &frozen).await;
        if let Some(copy) = begun {
            let _ = removing::begin(session, &copy.noted).await;
        }
    }
    exchanged
}

fn busy(detail: &str) -> StoreError {
    StoreError::EditionsBusy { detail: detail.to_owned() }
}

/// Freezes a board: from then on its own meta key refuses changes, and each partition refuses writes once it has
/// followed.
async fn freeze(session: &Session, board: &Arc<Board>, shards: u32) -> Result<Arc<Board>> {
    let failed = |failure| session.servers.error(failure);
    if board.main().is_from_first() {
        let detail = "the shards of a board of the mode from_first cannot be changed".to_owned();
        return Err(StoreError::Unsupported { detail });
    }
    if board.season().is_some() {
        let detail = "the shards of a board with a season cannot be changed".to_owned();
        return Err(StoreError::Unsupported { detail });
    }
    if board.other().is_some() {
        return Err(busy("the board has two editions: remove the one beside the current one first"));
    }
    for partition in session.partitions_of(board).all() {
        timekeeping::admit(session, &partition.clock).await?;
    }
    let refused = |error| StoreError::Setup { detail: format!("board '{}': {error}", board.name()) };
    let division = Division::choose_again(board.name(), shards, board.epoch()).map_err(refused)?;
    let partitions = division.numbers().map(|numbers| numbers.to_vec().into()).unwrap_or_default();
    let frozen = Arc::new(board.frozen(Redivision { shards, partitions }));
    let freeze = async {
        editions::bring_forward(session, board).await?;
        editions::check_free(session, board, EditionsChange::Exchange).await?;
        lease::renew(session, board, CopyProgress::default()).await?;
        editions::change_own(session, board, &frozen).await
    };
    freeze.await.map_err(failed)?;
    Ok(frozen)
}

/// Has a frozen board use the partitions that have a copy.
async fn exchange(session: &Session, frozen: &Arc<Board>, copy: &Copy) -> Result<(), ServerFailure> {
    // The data of the present partitions is deleted once the board has others.
    let left = Noted::division(frozen, timekeeping::look(session).await?);
    left.write(session).await?;
    if let Err(failure) = editions::change_own(session, frozen, &copy.board).await {
        if !failure.is_unknown() {
            left.strike(session).await?;
        }
        return Err(failure);
    }
    if let Err(failure) = leave(session, frozen, copy).await {
        // The board has the other partitions all the same. Instances learn of it when they write or retire.
        tracing::warn!(board = %frozen.name(), ?failure, "not every instance was told of the board's other partitions");
    }
    Ok(())
}

/// Has all instances use the partitions that have the copy. Those before it get an epoch of their own, so that nothing
/// is read from them.
async fn leave(session: &Session, frozen: &Arc<Board>, copy: &Copy) -> Result<(), ServerFailure> {
    let left = Arc::new(frozen.thawed());
    let brought = editions::bring_forward(session, &left).await;
    session.forget(&left);
    boards::announce_again(session, &copy.board).await?;
    copy.noted.strike(session).await?;
    brought.map(drop)
}

/// Lets a frozen board go on as before, unless it is no longer frozen.
async fn thaw(session: &Session, frozen: &Arc<Board>) -> Result<(), ServerFailure> {
    let thawed = Arc::new(frozen.thawed());
    match editions::change_own(session, frozen, &thawed).await {
        Ok(()) => editions::bring_forward(session, &thawed).await.map(drop),
        // Another instance was first, or the board has other partitions by now.
        Err(failure) if failure.is_outdated() => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Returns the board as it can be written to: the board itself, unless it is frozen. If it was, and no longer is, it is
/// looked up. Costs nothing for a board that is not frozen.
pub(super) async fn writable(session: &Session, board: &Arc<Board>) -> Result<Arc<Board>, ServerFailure> {
    match board.redivision() {
        None => Ok(board.clone()),
        // Boxed, because every write would move what only a frozen board needs.
        Some(_) => Box::pin(once_thawed(session, board)).await,
    }
}

/// Returns a board that was frozen as it is now, or an error if it still is.
async fn once_thawed(session: &Session, board: &Arc<Board>) -> Result<Arc<Board>, ServerFailure> {
    let mut found = board.clone();
    for _ in 0..ATTEMPTS {
        let Some(redivision) = found.redivision() else { return Ok(found) };
        match lease::look(session, &found).await {
            Ok(Some(_)) => return Err(ServerFailure::Frozen(redivision.shards)),
            Ok(None) => thaw(session, &found).await?,
            Err(ServerFailure::StaleEpoch) => {}
            Err(failure) => return Err(failure),
        }
        session.forget(&found);
        found = boards::stored_again(session, board).await?;
    }
    Err(ServerFailure::KeptChanging)
}

/// Returns an error unless the board can be written to as the caller knows it.
pub(super) async fn check_writable(session: &Session, board: &Arc<Board>) -> Result<(), ServerFailure> {
    let found = writable(session, board).await?;
    if found.is_same_as(board) { Ok(()) } else { Err(ServerFailure::StaleEpoch) }
}

/// Lets a frozen board go on as before if the instance that copied its data has ended. Then, and if the board was
/// changed by another instance, returns [`ServerFailure::StaleEpoch`].
pub(super) async fn attend(session: &Session, board: &Arc<Board>) -> Result<(), ServerFailure> {
    match check_writable(session, board).await {
        Err(ServerFailure::Frozen(_)) => Ok(()),
        checked => checked,
    }
}

/// Returns how far the data of a board is copied, or `None` if it is not.
pub(super) async fn progress(session: &Session, board: &Arc<Board>) -> Result<Option<CopyProgress>, ServerFailure> {
    match boards::stored_again(session, board).await? {
        frozen if frozen.redivision().is_some() => lease::look(session, &frozen).await,
        _ => Ok(None),
    }
}

/// Ends the copying of a board's data. Returns whether there was any.
pub(super) async fn end(session: &Session, board: &Arc<Board>) -> Result<bool, ServerFailure> {
    match boards::stored_again(session, board).await? {
        frozen if frozen.redivision().is_some() => thaw(session, &frozen).await.map(|()| true),
        _ => Ok(false),
    }
}
