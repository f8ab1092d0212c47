//! The keys of a board whose metric has `BY`: each has a ranking of its own.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::about::about;
use super::reads::ranked;
use super::{About, Result, Service, ServiceError};
use crate::board::{Board, BoardTrack, RankingKey, Subject};
use crate::store::{Keys, Page, TextRange};

/// The number of rankings that are read at the same time.
const AT_ONCE: usize = 32;

/// Returns a key as the board spells it. Returns an error if the board needs a key and has got none or one that no
/// event gives, or if it has no keys and has got one.
fn spelled(board: &Arc<Board>, key: Option<RankingKey>) -> Result<Option<RankingKey>> {
    match (board.has_keys(), key) {
        (true, None) => Err(ServiceError::MissingKey { board: board.clone() }),
        (true, Some(key)) => spelled_key(board, key).map(Some),
        (false, Some(_)) => Err(ServiceError::UnexpectedKey { board: board.clone() }),
        (false, None) => Ok(None),
    }
}

/// Returns a key as a board with keys spells it.
pub(super) fn spelled_key(board: &Arc<Board>, key: RankingKey) -> Result<RankingKey> {
    let spelled = board.definition().metric.spelled_key(key);
    spelled.map_err(|error| ServiceError::KeyForm { board: board.clone(), error })
}

/// Returns the track for reads of the ranking of this key, which a board with keys needs and the others do not have.
pub(super) fn in_ranking(track: BoardTrack, key: Option<RankingKey>) -> Result<BoardTrack> {
    let key = spelled(track.board(), key)?;
    Ok(track.of_key(key))
}

/// Returns a track in place of another one: for reads of the ranking of the same key, whose lines show the same.
pub(super) fn in_ranking_of(track: BoardTrack, before: &BoardTrack) -> Result<BoardTrack> {
    in_ranking(shown_as(track, before), before.key().cloned())
}

/// Returns a track whose lines show what those of another one do. Another board of the same name has tiers of its own,
/// which the next read knows.
pub(super) fn shown_as(track: BoardTrack, before: &BoardTrack) -> BoardTrack {
    let is_same = track.board().generation() == before.board().generation();
    track.with_tiers(before.tiers().filter(|_| is_same).cloned()).with_attributes(before.shown_attributes().cloned())
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
    pub async fn stored_subject(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
        key: Option<&RankingKey>,
    ) -> Result<(Arc<Board>, Subject)> {
        let (board, key) = match spelled(board, key.cloned()) {
            Ok(key) => (board.clone(), key),
            Err(_) => {
                let board = self.refreshed(board).await?;
                let key = spelled(&board, key.cloned())?;
                (board, key)
            }
        };
        Ok((board, subject.clone().in_ranking(key.as_ref())))
    }

    /// Returns the first keys of a range that have a ranked subject in a window, at most `limit`.
    /// Returns [`ServiceError::UnexpectedKey`] if the board has no keys.
    pub async fn ranking_keys(&self, track: &BoardTrack, range: TextRange<'_>, limit: u32) -> Result<About<Keys>> {
        about!(self, track, has_keys, |current| self.store.keys(current, range, limit))
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
        let page = |key| async move { self.page(&in_ranking(track.clone(), Some(key))?, 0, limit).await };
        stream::iter(keys).map(page).buffered(AT_ONCE).try_collect().await
    }
}
