//! Imports: contents of another board are merged into a board, each piece once.
//!
//! Each part of a board has an import of its own. They are opened in the order of the parts, so of two imports that
//! begin at the same time only one opens the first part. They are ended in the opposite order, so an import is open as
//! long as it is in the first part, and a call that ended halfway is completed by the next one.

mod chunk;
mod merge;

use std::sync::Arc;

pub(super) use self::chunk::Counters;
use super::boards;
use super::part::Part;
use super::partitions::Partitions;
use super::scripts::{IMPORT, ScriptCall};
use super::servers::ServerFailure;
use super::session::Session;
use super::timekeeping;
use crate::board::{Amount, Board, BoardTrack, Change, Track};
use crate::store::{ImportBegun, ImportId, MAX_IMPORTS, Merged, Piece, Result, StoreError};

/// The state of an import in one part after a call.
enum PartImport {
    /// Open, with the number of the last piece that is merged.
    Open(u64),
    /// Ended by this call.
    Closed,
    /// Ended before.
    Ended,
    /// Not known.
    None,
    /// Not opened.
    Refused(ImportBegun),
}

/// Begins an import, or continues it.
pub(super) async fn begin(session: &Session, board: &Arc<Board>, import: ImportId) -> Result<ImportBegun> {
    check(&board.main())?;
    if board.season().is_some() {
        let detail = "a board with a season takes no imports".to_owned();
        return Err(StoreError::NoImport { detail });
    }
    if board.other().is_some() {
        let stored = boards::stored(session, board.name()).await.map_err(|failure| session.servers.error(failure))?;
        let detail =
            "a board with two editions takes no imports: remove the one beside the current one first".to_owned();
        return Err(match stored {
            Some(stored) if stored.is_same_as(board) => StoreError::NoImport { detail },
            Some(stored) if stored.generation() == board.generation() => StoreError::StaleEpoch,
            _ => StoreError::BoardChanged,
        });
    }
    let partitions = session.partitions_of(board);
    open_all(session, &partitions, import).await.map_err(|failure| session.servers.error(failure))
}

/// Opens an import into the parts that receive a copy, which have nothing yet.
pub(super) async fn open(session: &Session, board: &Arc<Board>, import: ImportId) -> Result<(), ServerFailure> {
    match open_all(session, &session.partitions_of(board), import).await? {
        ImportBegun::Open { .. } => Ok(()),
        refused => Err(ServerFailure::NoImport(format!("the copy was not begun: {refused:?}"))),
    }
}

/// Ends an import as if it had never been opened: the board does not remember it.
pub(super) async fn cancel(session: &Session, board: &Arc<Board>, import: ImportId) -> Result<(), ServerFailure> {
    for part in session.partitions_of(board).parts() {
        call(session, part, "cancel", import).await?;
    }
    Ok(())
}

/// Ends an import. Returns whether it was open.
pub(super) async fn end(session: &Session, board: &Arc<Board>, import: ImportId) -> Result<bool> {
    let partitions = session.partitions_of(board);
    end_all(session, &partitions, import).await.map_err(|failure| session.servers.error(failure))
}

/// Merges a piece into a track.
pub(super) async fn merge(session: &Session, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged> {
    check(track)?;
    let is_sound = (1..1 << 40).contains(&piece.number) && piece.contents.len() <= Piece::MAX_CONTENTS;
    if !is_sound {
        let detail = format!("a piece has a number below 2^40 and at most {} contents", Piece::MAX_CONTENTS);
        return Err(StoreError::NoImport { detail });
    }
    merge_own(session, track, (import, piece), Counters::Add).await
}

/// Merges a piece of any size that this store has made.
pub(super) async fn merge_own(
    session: &Session,
    track: &BoardTrack,
    (import, piece): (ImportId, &Piece),
    counters: Counters,
) -> Result<Merged> {
    let parts = session.parts_of(track);
    for part in parts.all() {
        timekeeping::admit(session, &part.clock).await?;
    }
    merge::merge(session, &parts, (import, piece), counters).await.map_err(|failure| session.servers.error(failure))
}

/// Returns an error for a track that takes no imports.
fn check(track: &Track) -> Result<()> {
    match track.is_from_first() {
        true => Err(StoreError::NoImport { detail: "a board of the mode from_first takes no imports".to_owned() }),
        false => Ok(()),
    }
}

async fn open_all(session: &Session, partitions: &Partitions, import: ImportId) -> Result<ImportBegun, ServerFailure> {
    let tracks = partitions.first().parts().len();
    let mut through = vec![u64::MAX; tracks];
    let mut opened = Vec::new();
    for part in partitions.parts() {
        let refusal = match call(session, part, "open", import).await? {
            PartImport::Open(merged) => {
                let through = &mut through[part.track.number()];
                *through = merged.min(*through);
                opened.push(part);
                continue;
            }
            PartImport::Refused(refusal) => refusal,
            PartImport::Ended | PartImport::Closed | PartImport::None => {
                // A call that ended the import may have ended halfway.
                end_all(session, partitions, import).await?;
                return Ok(ImportBegun::Ended);
            }
        };
        // Nothing was merged: the import was never open in all parts.
        for part in opened.into_iter().rev() {
            call(session, part, "cancel", import).await?;
        }
        return Ok(refusal);
    }
    Ok(ImportBegun::Open { through })
}

async fn end_all(session: &Session, partitions: &Partitions, import: ImportId) -> Result<bool, ServerFailure> {
    let mut was_open = false;
    let parts: Vec<_> = partitions.parts().collect();
    for part in parts.into_iter().rev() {
        was_open |= matches!(call(session, part, "end", import).await?, PartImport::Closed);
    }
    Ok(was_open)
}

async fn call(
    session: &Session,
    part: &Part,
    action: &'static str,
    import: ImportId,
) -> Result<PartImport, ServerFailure> {
    let board = part.track.board();
    let mut call = ScriptCall::default();
    call.key(&part.keys.meta).arg("generation", part.generation()).arg("epoch", board.epoch());
    call.arg("action", action).arg("import", import);
    call.arg("samples", if takes_samples(board) { "samples" } else { "" }).arg("most", MAX_IMPORTS);
    let mut reply = session.call(&IMPORT, &call).await?;
    Ok(match reply.text()?.as_str() {
        "open" => PartImport::Open(reply.count()?),
        "closed" => PartImport::Closed,
        "ended" => PartImport::Ended,
        "none" => PartImport::None,
        "other" => {
            let text = reply.text()?;
            let unreadable = || ServerFailure::Corrupt(format!("the id '{text}' of an import"));
            PartImport::Refused(ImportBegun::OtherOpen(ImportId::parse(&text).ok_or_else(unreadable)?))
        }
        "samples" => PartImport::Refused(ImportBegun::MayHaveSamples),
        "full" => PartImport::Refused(ImportBegun::TooMany),
        "board_changed" => {
            session.forget(board);
            return Err(ServerFailure::BoardChanged);
        }
        "stale_epoch" => {
            session.forget(board);
            return Err(ServerFailure::StaleEpoch);
        }
        other => return Err(ServerFailure::Corrupt(format!("unexpected reply to an import: '{other}'"))),
    })
}

fn takes_samples(board: &Board) -> bool {
    board.edition().takes(&Change::Set { sum: Amount(0), count: 1 })
}
