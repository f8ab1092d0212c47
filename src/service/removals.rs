//! The removal of subjects: one, several, all of a key, or all of a name.
//!
//! No index leads from a key to its subjects that have no rank, or from a name to its keys. So what is of a key, or of a
//! name, is found by a walk over all contents of the board, in steps while everything else continues.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::about::{ATTEMPTS, about};
use super::ranking_keys::spelled_key;
use super::{About, AboutBoard, Result, Service, ServiceError};
use crate::access::Caller;
use crate::board::{Board, BoardName, RankingKey, Subject, Timestamp};
use crate::store::{self, ContentsCursor, Removal, StoreError};

/// The number of subjects that are removed at the same time.
const AT_ONCE: usize = 32;
/// The number of times that a walk begins again because the store has lost its position.
const MOST_RESTARTS: u32 = 3;

/// What the removal of several subjects has removed.
#[derive(Clone, Debug)]
pub struct RemovedAll {
    /// The number of subjects that were found. One that was counted again in the meantime may be counted twice.
    pub subjects: u64,
    /// The store's time at the end.
    pub as_of: Timestamp,
}

impl Service {
    /// Removes a subject, of the ranking of a key if the board has keys, from every track: from the ranking and from
    /// every slot. Returns what was removed from the main track; over all time, the number of slots is that of the kept
    /// ones.
    pub async fn remove(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
        key: Option<&RankingKey>,
    ) -> Result<AboutBoard<Removal>> {
        let (board, stored) = self.stored_subject(board, subject, key).await?;
        let present = &board;
        let was_hidden = about!(self, whole present, |current| self.rankings.was_hidden(current, &stored))?.answer;
        let removed_before = match was_hidden {
            // Its lines are not shown for a moment, when it is not hidden any more.
            true => self.remove_from_archive(&board, &stored, was_hidden).await?,
            false => 0,
        };
        let (mut board, mut stored, mut attempts) = (board, stored, ATTEMPTS);
        let removed = loop {
            match self.store.remove(&board, &stored).await {
                // At the end of a period, and when it is packed, the editions change several times.
                Err(StoreError::BoardChanged | StoreError::StaleEpoch) if attempts > 0 => {
                    attempts -= 1;
                    (board, stored) = self.stored_subject(&self.refreshed(&board).await?, subject, key).await?;
                }
                removed => break removed,
            }
        };
        self.known_ranks.forget(board.generation());
        let mut removed = About { answer: removed?, of: board };
        removed.answer.live_slots += removed_before;
        removed.answer.live_slots += self.remove_from_archive(&removed.of, &stored, was_hidden).await?;
        Ok(removed)
    }

    /// Takes a subject that was removed from a board out of its packed periods. Returns the number of those that had it.
    async fn remove_from_archive(&self, board: &Arc<Board>, subject: &Subject, was_hidden: bool) -> Result<u64> {
        let removed = about!(self, whole board, |current| self.rankings.remove(current, subject, was_hidden))?;
        Ok(removed.answer)
    }

    /// Removes subjects, each as [`remove`](Self::remove) does, some at the same time. After an error, some may be
    /// removed. Counts those that had something in slots of the main window.
    pub async fn remove_several(
        &self,
        caller: &Caller,
        name: &BoardName,
        subjects: Vec<Subject>,
        key: Option<&RankingKey>,
    ) -> Result<RemovedAll> {
        let board = &self.board(caller, name).await?;
        let remove = |subject: Subject| async move { self.remove(board, &subject, key).await };
        let mut removals = stream::iter(subjects).map(remove).buffer_unordered(AT_ONCE);
        let mut subjects = 0;
        while let Some(About { answer, .. }) = removals.try_next().await? {
            let any = answer.live_slots + answer.retiring_slots > 0;
            subjects += u64::from(any);
        }
        Ok(RemovedAll { subjects, as_of: self.store.now().await? })
    }

    /// Removes all subjects of a key. What is counted for the key in the meantime may stay.
    ///
    /// Returns [`ServiceError::UnexpectedKey`] if the board has no keys.
    pub async fn remove_key(&self, caller: &Caller, name: &BoardName, key: &RankingKey) -> Result<RemovedAll> {
        let board = self.board_with_keys(caller, name).await?;
        let key = spelled_key(&board, key.clone())?;
        self.remove_all(caller, board, &format!("{key}\0"), |subject| subject.key() == Some(key.as_str())).await
    }

    /// Removes the subjects of these names from the rankings of all keys. One walk serves any number of names. What is
    /// counted for them in the meantime may stay.
    ///
    /// Returns [`ServiceError::UnexpectedKey`] if the board has no keys.
    pub async fn remove_from_all_keys(
        &self,
        caller: &Caller,
        name: &BoardName,
        names: &HashSet<Subject>,
    ) -> Result<RemovedAll> {
        let board = self.board_with_keys(caller, name).await?;
        self.remove_all(caller, board, "", |subject| names.contains(subject.name())).await
    }

    /// Returns the board as the store has it now.
    async fn board_with_keys(&self, caller: &Caller, name: &BoardName) -> Result<Arc<Board>> {
        let board = self.board(caller, name).await?;
        let board = self.refreshed(&board).await?;
        match board.has_keys() {
            true => Ok(board),
            false => Err(ServiceError::UnexpectedKey { board }),
        }
    }

    /// Removes the subjects that a walk over the contents of all tracks meets and that `is_meant` selects, all of which
    /// begin with `prefix` as they are stored. After each step it pauses for as long as the step took, so that other
    /// requests run. If the store loses the position of the walk, the walk begins again.
    async fn remove_all(
        &self,
        caller: &Caller,
        board: Arc<Board>,
        prefix: &str,
        is_meant: impl Fn(&Subject) -> bool,
    ) -> Result<RemovedAll> {
        // A subject of which only expired slots are left is in no contents, but it may still be in the ranking.
        self.roll_over_tracks(&board).await?;
        let (mut subjects, mut restarts) = (0, 0);
        for track in board.each_track() {
            let mut cursor = Some(ContentsCursor::default());
            while let Some(at) = cursor {
                caller.require_current()?;
                let started = Instant::now();
                let step = match self.store.contents_step(&track, at).await {
                    Err(StoreError::WalkLost) if restarts < MOST_RESTARTS => {
                        restarts += 1;
                        cursor = Some(ContentsCursor::default());
                        continue;
                    }
                    step => step?,
                };
                let meant: HashSet<Subject> =
                    step.contents.into_iter().map(|(subject, _)| subject).filter(&is_meant).collect();
                subjects += meant.len() as u64;
                let remove = |subject: Subject| {
                    let board = &board;
                    async move { self.store.remove(board, &subject).await }
                };
                let mut removals = stream::iter(meant).map(remove).buffer_unordered(AT_ONCE);
                while removals.try_next().await?.is_some() {}
                cursor = step.next;
                store::rest(started).await;
            }
        }
        // A subject without contents may be hidden or frozen, and have attributes.
        self.end_moderation(caller, &board, prefix, &is_meant).await?;
        self.remove_attributes(caller, &board, prefix, &is_meant).await?;
        Ok(RemovedAll { subjects, as_of: self.store.now().await? })
    }
}
