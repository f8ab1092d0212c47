//! The keys of a board whose metric has `BY`: each has a ranking of its own.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::about::about;
use super::reads::ranked;
use super::{About, Result, Service, ServiceError};
use crate::board::{Board, BoardTrack, RankingKey, Subject};
use crate::store::{Keys, Page};

/// The number of rankings that are read at the same time.
const AT_ONCE: usize = 32;

/// Returns an error if a board needs a key and has got none, or has no keys and has got one.
fn check_key(board: &Arc<Board>, key: Option<&RankingKey>) -> Result<()> {
    match (board.has_keys(), key) {
        (true, None) => Err(ServiceError::MissingKey { board: board.clone() }),
        (false, Some(_)) => Err(ServiceError::UnexpectedKey { board: board.clone() }),
        _ => Ok(()),
    }
}

/// Returns the track for reads of the ranking of this key, which a board with keys needs and the others do not have.
pub(super) fn in_ranking(track: BoardTrack, key: Option<RankingKey>) -> Result<BoardTrack> {
    check_key(track.board(), key.as_ref())?;
    Ok(track.of_key(key))
}

/// Returns an error if the track has no rankings, or no keys.
fn has_keys(track: &BoardTrack) -> Result<()> {
    match track.board().has_keys() {
        true => ranked(track),
        false => Err(ServiceError::UnexpectedKey { board: track.board().clone() }),
    }
}

impl Service {
    /// Returns a subject as it is stored, in the ranking of this key, and the board. Makes a store call only if the
    /// board that this instance knows does not take the key, because it may be an older one.
    pub(super) async fn stored_subject(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
        key: Option<&RankingKey>,
    ) -> Result<(Arc<Board>, Subject)> {
        let board = match check_key(board, key) {
            Ok(()) => board.clone(),
            Err(_) => self.refreshed(board).await?,
        };
        check_key(&board, key)?;
        Ok((board, subject.clone().in_ranking(key)))
    }

    /// Returns the keys of a window that have a ranked subject, ordered by bytes: those after `after`, at most `limit`.
    /// Returns [`ServiceError::UnexpectedKey`] if the board has no keys.
    pub async fn ranking_keys(
        &self,
        track: &BoardTrack,
        after: Option<&RankingKey>,
        limit: u32,
    ) -> Result<About<Keys>> {
        about!(self, track, has_keys, |current| self.store.keys(current, after, limit))
    }

    /// Returns the first lines of the rankings of these keys, in their order. Each page is of one instant, and different
    /// pages may be of different ones. One store call for each.
    pub async fn pages_of_keys(
        &self,
        track: &BoardTrack,
        keys: Vec<RankingKey>,
        limit: u32,
    ) -> Result<Vec<About<Page>>> {
        has_keys(track)?;
        let page = |key| async move { self.page(&track.clone().of_key(Some(key)), 0, limit).await };
        stream::iter(keys).map(page).buffered(AT_ONCE).try_collect().await
    }
}
