//! A walk over the contents of a board, track by track.

use std::sync::Arc;

use super::{About, Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::{Attributes, Board, Moderation, ModerationList, Subject};
use crate::store::{ContentsCursor, ContentsStep, Status, StoreError, TextRange};

/// The position of a walk over the contents of a board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentsPosition {
    /// The number of the track, from 0.
    pub track: usize,
    /// The position within the track.
    pub cursor: ContentsCursor,
}

/// A walk over the contents of a board. It reads nothing until [`next_step`](Self::next_step) or
/// [`statuses`](Self::statuses) is called.
pub struct ContentsWalk {
    service: Arc<Service>,
    /// Asked before each step whether it may still read.
    caller: Caller,
    board: Arc<Board>,
    /// The position of the next step, or `None` at the end.
    next: Option<ContentsPosition>,
}

impl Service {
    /// Returns a walk over the contents of a board, and the state of each track before it.
    pub async fn contents(
        self: &Arc<Self>,
        caller: &Caller,
        board: &Arc<Board>,
        from: ContentsPosition,
    ) -> Result<(ContentsWalk, Vec<Status>)> {
        caller.require(Scope::Read)?;
        let About { of: edition, answer: before } = self.statuses(&board.current()).await?;
        let board = edition.board().clone();
        if from.track >= board.edition().tracks().len() {
            return Err(StoreError::WalkLost.into());
        }
        let walk = ContentsWalk { service: self.clone(), caller: caller.clone(), board, next: Some(from) };
        Ok((walk, before))
    }
}

impl ContentsWalk {
    /// Returns the board that is read.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Returns the position after the steps so far, or `None` at the end.
    pub fn position(&self) -> Option<&ContentsPosition> {
        self.next.as_ref()
    }

    /// Reads the next step. Returns the number of the track with it, or `None` at the end. After an error the same step
    /// can be read again.
    ///
    /// If the board was removed or defined again, returns [`ServiceError::StaleCursor`].
    pub async fn next_step(&mut self) -> Result<Option<(usize, ContentsStep)>> {
        let Some(ContentsPosition { track: number, cursor }) = self.next.clone() else { return Ok(None) };
        self.caller.require_current()?;
        let Some(track) = self.board.each_track().nth(number) else { return Ok(None) };
        let step = self.service.store.contents_step(&track, cursor).await.map_err(|error| self.error(error))?;
        self.next = match &step.next {
            Some(cursor) => Some(ContentsPosition { track: number, cursor: cursor.clone() }),
            None if number + 1 < self.board.edition().tracks().len() => {
                Some(ContentsPosition { track: number + 1, cursor: ContentsCursor::default() })
            }
            None => None,
        };
        Ok(Some((number, step)))
    }

    /// Returns subjects of a list of moderated ones after this one, as they are stored, at most `limit`. One store call.
    pub async fn moderated(
        &self,
        list: ModerationList,
        after: Option<&Subject>,
        limit: u32,
    ) -> Result<Vec<(Subject, Moderation)>> {
        self.caller.require_current()?;
        let range = TextRange { prefix: "", after: after.map(Subject::as_str) };
        let page = self.service.store.moderated(&self.board, list, range, limit).await;
        Ok(page.map_err(|error| self.error(error))?.items)
    }

    /// Returns subjects that have attributes after this one, as they are stored, at most `limit`. One store call.
    pub async fn described(&self, after: Option<&Subject>, limit: u32) -> Result<Vec<(Subject, Attributes)>> {
        self.caller.require_current()?;
        let range = TextRange { prefix: "", after: after.map(Subject::as_str) };
        let page = self.service.store.described(&self.board, range, limit).await;
        Ok(page.map_err(|error| self.error(error))?.items)
    }

    /// Returns the state of each track now.
    pub async fn statuses(&self) -> Result<Vec<Status>> {
        self.service.statuses_of_tracks(&self.board.current()).await.map_err(|error| self.error(error))
    }

    fn error(&self, error: StoreError) -> ServiceError {
        match error {
            StoreError::BoardChanged | StoreError::StaleEpoch => ServiceError::StaleCursor(self.board.name().clone()),
            // A position that no step returned.
            StoreError::Setup { .. } => StoreError::WalkLost.into(),
            error => error.into(),
        }
    }
}

/// Returns whether nothing but rollover and retiring has changed a track between two of its states: the numbers of
/// counted items of the slots that are live in both are the same, and no subject was removed. `None` if that is not
/// known, because the track counts no items by slot.
pub fn is_unchanged(before: &Status, after: &Status, counts_items: bool) -> Option<bool> {
    let floor = after.frame.window.floor;
    let live = before.events.iter().filter(|(start, _)| *start >= floor);
    let is_same = before.upheavals == after.upheavals && live.eq(after.events.iter());
    if is_same && !counts_items { None } else { Some(is_same) }
}
