//! What moderators set for subjects: hidden, shadowed and frozen ones.

use std::sync::Arc;
use std::time::Instant;

use super::about::{ATTEMPTS, about};
use super::ranking_keys::spelled_key;
use super::reads::ranked;
use super::{Result, Service, ServiceError};
use crate::access::Caller;
use crate::board::{Board, BoardName, ModerationChange, ModerationList, RankingKey, Subject};
use crate::store::{self, Moderated, StoreError, TextRange};

/// The number of subjects that are read at a time to find those of a name or key.
const READ_TOGETHER: u32 = 1_000;

impl Service {
    /// Changes what is set for a subject, of the ranking of a key if the board has keys.
    ///
    /// Returns [`ServiceError::NotRanked`] if it is to be hidden on a board without a ranking.
    pub async fn moderate(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
        key: Option<&RankingKey>,
        change: ModerationChange,
    ) -> Result<()> {
        let (board, stored) = self.stored_subject(board, subject, key).await?;
        self.moderate_several(&board, &[(stored, change)]).await
    }

    /// Changes what is set for subjects, given as they are stored. The changes of one subject take effect in their
    /// order. After an error, some may be made. Repeated ones change nothing.
    ///
    /// Returns [`ServiceError::NotRanked`] if a subject is to be hidden on a board without a ranking.
    pub async fn moderate_several(&self, board: &Arc<Board>, changes: &[(Subject, ModerationChange)]) -> Result<()> {
        let hides = |change| matches!(change, ModerationChange::Visibility(visibility) if visibility.is_hidden());
        if changes.iter().any(|(_, change)| hides(*change)) {
            ranked(&board.main())?;
        }
        let (mut present, mut attempts) = (board.clone(), ATTEMPTS);
        loop {
            match self.store.moderate(&present, changes).await {
                // At the end of a period, and when it is packed, the editions change several times.
                Err(error @ (StoreError::BoardChanged | StoreError::StaleEpoch)) if attempts > 0 => {
                    attempts -= 1;
                    present = self.refreshed(&present).await?;
                    // On a board that was defined anew, subjects may be stored in another way. Editions of one agree.
                    let is_anew = present.generation() != board.generation();
                    if is_anew && present.definition().metric != board.definition().metric {
                        return Err(error.into());
                    }
                }
                changed => return Ok(changed?),
            }
        }
    }

    /// Returns subjects of a list, with their keys if the board has keys, in the order of their bytes, after `after`, at
    /// most `limit`: those of the ranking of `key`, if one is given, whose names begin with `prefix`.
    ///
    /// Returns [`ServiceError::MissingKey`] if there are keys, and a prefix without one is given.
    pub async fn moderated(
        &self,
        caller: &Caller,
        name: &BoardName,
        list: ModerationList,
        of: ModeratedRange<'_>,
        limit: u32,
    ) -> Result<Moderated> {
        let board = self.board(caller, name).await?;
        let board = self.refreshed(&board).await?;
        let prefix = of.stored_prefix(&board)?;
        let range = TextRange { prefix: &prefix, after: of.after };
        // At the end of a period the board has just got other editions.
        let board = &board;
        Ok(about!(self, whole board, |current| self.store.moderated(current, list, range, limit))?.answer)
    }

    /// Ends what is set for the subjects that begin with this text, as they are stored, and that `is_meant` selects.
    /// After each step it pauses for as long as the step took, so that other requests run.
    pub(super) async fn end_moderation(
        &self,
        caller: &Caller,
        board: &Arc<Board>,
        prefix: &str,
        is_meant: impl Fn(&Subject) -> bool,
    ) -> Result<()> {
        for list in [ModerationList::Hidden, ModerationList::Frozen] {
            let mut after: Option<Subject> = None;
            loop {
                caller.require_current()?;
                let started = Instant::now();
                let range = TextRange { prefix, after: after.as_ref().map(Subject::as_str) };
                let mut page = self.store.moderated(board, list, range, READ_TOGETHER).await?;
                let subjects = page.items.iter().map(|(subject, _)| subject);
                let changes: Vec<(Subject, ModerationChange)> = subjects
                    .filter(|subject| is_meant(subject))
                    .map(|subject| (subject.clone(), ModerationChange::Clear))
                    .collect();
                self.store.moderate(board, &changes).await?;
                match page.items.pop() {
                    Some((last, _)) => after = Some(last),
                    None => break,
                }
                store::rest(started).await;
            }
        }
        Ok(())
    }
}

impl ModeratedRange<'_> {
    /// Returns what the subjects begin with, as they are stored.
    ///
    /// Returns [`ServiceError::MissingKey`] if there are keys, and a prefix without one is given.
    pub(super) fn stored_prefix(&self, board: &Arc<Board>) -> Result<String> {
        Ok(match self.key {
            Some(key) if board.has_keys() => format!("{}\0{}", spelled_key(board, key.clone())?, self.prefix),
            None if board.has_keys() && self.prefix.is_empty() => String::new(),
            None if !board.has_keys() => self.prefix.to_owned(),
            None => return Err(ServiceError::MissingKey { board: board.clone() }),
            Some(_) => return Err(ServiceError::UnexpectedKey { board: board.clone() }),
        })
    }
}

/// Which subjects of a list are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModeratedRange<'a> {
    pub key: Option<&'a RankingKey>,
    /// The beginning of the names. With a key if the board has keys.
    pub prefix: &'a str,
    /// The subject before the first, as it is stored.
    pub after: Option<&'a str>,
}
