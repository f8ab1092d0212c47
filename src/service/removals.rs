//! The removal of subjects: one, all of a key, or all of a name.
//!
//! No index leads from a key to its subjects that have no rank, or from a name to its keys. So what is of a key, or of a
//! name, is found by a walk over all contents of the board, in steps while everything else continues.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use super::{About, AboutBoard, Result, Service, ServiceError};
use crate::access::Caller;
use crate::board::{Board, BoardName, RankingKey, Subject, Timestamp};
use crate::store::{ContentsCursor, Removal, StoreError};

/// The largest number of names whose subjects one walk removes.
pub const MAX_NAMES: usize = 1_000;

/// What a walk has removed.
#[derive(Clone, Debug)]
pub struct RemovedAll {
    pub board: Arc<Board>,
    /// The number of subjects. A subject that was counted again while the walk was under way may be counted twice.
    pub subjects: u64,
    /// The store's time at the end of the walk.
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
        match self.store.remove(&board, &stored).await {
            Err(StoreError::BoardChanged | StoreError::StaleEpoch) => {
                let fresh = self.refreshed(&board).await?;
                let (fresh, stored) = self.stored_subject(&fresh, subject, key).await?;
                Ok(About { answer: self.store.remove(&fresh, &stored).await?, of: fresh })
            }
            removal => Ok(About { answer: removal?, of: board }),
        }
    }

    /// Removes all subjects of a key. What is counted for the key in the meantime may stay.
    ///
    /// Returns [`ServiceError::UnexpectedKey`] if the board has no keys.
    pub async fn remove_key(&self, caller: &Caller, name: &BoardName, key: &RankingKey) -> Result<RemovedAll> {
        self.remove_all(caller, name, |subject| subject.key() == Some(key.as_str())).await
    }

    /// Removes the subjects of these names, at most [`MAX_NAMES`], from the rankings of all keys. What is counted for
    /// them in the meantime may stay.
    ///
    /// Returns [`ServiceError::UnexpectedKey`] if the board has no keys.
    pub async fn remove_from_all_keys(
        &self,
        caller: &Caller,
        name: &BoardName,
        names: &HashSet<Subject>,
    ) -> Result<RemovedAll> {
        debug_assert!(names.len() <= MAX_NAMES);
        self.remove_all(caller, name, |subject| names.contains(subject.name())).await
    }

    /// Removes the subjects that a walk over the contents of all tracks meets and that `is_meant` selects. After each
    /// step it pauses for as long as the step took, so that other requests run.
    async fn remove_all(
        &self,
        caller: &Caller,
        name: &BoardName,
        is_meant: impl Fn(&Subject) -> bool,
    ) -> Result<RemovedAll> {
        let board = self.board(caller, name).await?;
        let board = self.refreshed(&board).await?;
        if !board.has_keys() {
            return Err(ServiceError::UnexpectedKey { board });
        }
        // A subject of which only expired slots are left is in no contents, but it may still be in the ranking.
        self.roll_over_tracks(&board).await?;
        let mut subjects = 0;
        for track in board.each_track() {
            let mut cursor = Some(ContentsCursor::default());
            while let Some(at) = cursor {
                caller.require_current()?;
                let started = Instant::now();
                let step = self.store.contents_step(&track, at).await?;
                let meant: HashSet<Subject> =
                    step.contents.into_iter().map(|(subject, _)| subject).filter(&is_meant).collect();
                for subject in &meant {
                    self.store.remove(&board, subject).await?;
                }
                subjects += meant.len() as u64;
                cursor = step.next;
                tokio::time::sleep(started.elapsed()).await;
            }
        }
        Ok(RemovedAll { board, subjects, as_of: self.store.now().await? })
    }
}
