//! Nothing is folded for now: the journal keeps everything, and opening does all of it again.

use super::codec::{IDS, REACHED, of_board};
use super::disk::{Disk, DiskError, Write};
use super::journal::Sweep;

/// Entries of one piece.
const PIECE: usize = 512;

/// A fold under way, of nothing.
#[derive(Debug)]
pub(super) struct Fold {
    deleted: u64,
}

impl Fold {
    /// Begins to fold nothing. Entries up to `deleted` are gone already.
    pub(super) fn begin(deleted: u64) -> Self {
        Self { deleted }
    }

    /// The sequence up to which the journal is gone when this is done.
    pub(super) fn through(&self) -> u64 {
        self.deleted
    }
}

/// The next piece of a sweep, which begins after the key `swept`; `None` when it is complete.
pub(super) fn sweep_piece(
    disk: &dyn Disk,
    sweep: Sweep,
    swept: &mut Option<Vec<u8>>,
) -> Result<Option<Vec<Write>>, DiskError> {
    let Sweep::All(generation) = sweep;
    for kind in [REACHED, IDS] {
        let prefix = of_board(kind, generation);
        // Kinds are in the order of their keys: of one before what was swept last, nothing comes after that.
        let after = swept.as_ref().filter(|key| **key >= prefix);
        let found = disk.scan(&prefix, after.map(Vec::as_slice), PIECE)?;
        let Some((last, _)) = found.last() else { continue };
        *swept = Some(last.clone());
        return Ok(Some(found.into_iter().map(|(key, _)| Write::Delete(key)).collect()));
    }
    Ok(None)
}
