//! The windows of a board: the one that a read chooses, and what is done for all of them.

use std::sync::Arc;

use futures_util::future::{OptionFuture, join};

use super::{About, AuditReport, Result, RolloverReport, Service, ServiceError, about_board, audit};
use crate::board::{Board, BoardName, Generation, Subject, WindowLength};
use crate::store::{self, Removal, Standing, Status, StoreError};

impl Service {
    /// Returns the window of a board that a read chooses: the one of this length, or else the one that its cursor belongs to, or
    /// else the main window. Makes no store call if this instance knows the board and its window.
    ///
    /// Returns [`ServiceError::UnknownWindow`] if the board has no window of this length, and
    /// [`ServiceError::CursorOfOtherWindow`] if the cursor belongs to another one.
    pub async fn window(
        &self,
        name: &BoardName,
        length: Option<WindowLength>,
        cursor: Option<Generation>,
    ) -> Result<Arc<Board>> {
        let board = self.board(name).await?;
        let Some(requested) = length else {
            let of_cursor = cursor.and_then(|generation| window_with(&board, generation));
            return Ok(of_cursor.unwrap_or(&board).clone());
        };
        let (board, window) = match board.window_of(requested) {
            Some(window) => (board.clone(), window.clone()),
            None => {
                // The board that this instance knows may be an older one.
                let fresh = self.refreshed(&board).await?;
                let window = window_of(&fresh, requested)?;
                (fresh, window)
            }
        };
        match cursor.and_then(|generation| window_with(&board, generation)) {
            Some(other) if other.generation() != window.generation() => {
                Err(ServiceError::CursorOfOtherWindow { of: other.length(), requested })
            }
            _ => Ok(window),
        }
    }

    /// Reads the board of the same name from the store and returns the window to read instead of one that no longer
    /// exists: for a further window, that of the same length, and otherwise the main window. One store call.
    ///
    /// Returns [`StoreError::BoardChanged`] if what was the main window is a further one of the new board, because the
    /// caller may have chosen it by its length.
    pub(super) async fn refreshed_window(&self, board: &Arc<Board>) -> Result<Arc<Board>> {
        let fresh = self.refreshed(board).await?;
        if board.is_further() {
            return window_of(&fresh, board.length());
        }
        match fresh.window_of(board.length()) {
            Some(window) if window.is_further() => Err(StoreError::BoardChanged.into()),
            _ => Ok(fresh),
        }
    }

    /// Returns the score and rank of one subject, as [`standing`](Self::standing) does, and what it has in the slots that
    /// a board over all time [keeps](Board::kept_slots). The two are read at the same time, but not in one atomic step.
    pub async fn standing_and_kept(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
    ) -> Result<About<(Standing, Option<Standing>)>> {
        about_board!(self, board, |current| self.standing_and_kept_on(current, subject))
    }

    async fn standing_and_kept_on(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
    ) -> store::Result<(Standing, Option<Standing>)> {
        let kept: OptionFuture<_> =
            board.kept_slots().map(|kept_slots| self.store.standing(kept_slots, subject)).into();
        let (standing, kept) = join(self.standing_on(board, subject), kept).await;
        Ok((standing?, kept.transpose()?))
    }

    /// Removes a subject from the ranking, from every slot of each window and from the slots that are kept beside a
    /// total. Returns what was removed from the main window; over all time, the number of slots is that of the kept ones.
    pub async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<About<Removal>> {
        about_board!(self, whole board, |current| self.remove_from_tracks(current, subject))
    }

    /// Removes a subject from each track, one after the other, so a write in between may be missing from the later ones.
    /// A total comes before the slots that are kept beside it, because these expire and it does not.
    pub(super) async fn remove_from_tracks(&self, board: &Arc<Board>, subject: &Subject) -> store::Result<Removal> {
        let mut removal = self.store.remove(board, subject).await?;
        for further in board.further() {
            let of_further = self.store.remove(further, subject).await?;
            if board.kept_slots().is_some() {
                removal.live_slots = of_further.live_slots;
            }
        }
        Ok(removal)
    }

    /// Returns head, floor, slots and totals of one window.
    pub async fn status(&self, board: &Arc<Board>) -> Result<About<Status>> {
        about_board!(self, board, |current| self.store.status(current))
    }

    /// Returns head, floor, slots and totals of each window, in the order of [`Board::tracks`], and of the slots that a
    /// board over all time keeps. One store call for each.
    pub async fn statuses(&self, board: &Arc<Board>) -> Result<About<Vec<Status>>> {
        about_board!(self, whole board, |current| self.statuses_of_tracks(current))
    }

    async fn statuses_of_tracks(&self, board: &Arc<Board>) -> store::Result<Vec<Status>> {
        let mut statuses = Vec::with_capacity(1 + board.further().len());
        for track in board.tracks() {
            statuses.push(self.store.status(track).await?);
        }
        Ok(statuses)
    }

    /// Rolls all windows of a board over, and the slots that a board over all time keeps. Returns when nothing below their
    /// floors remains. The numbers of the report are sums. Its frame is that of the main window, or that of the kept slots.
    pub async fn rollover(&self, board: &Arc<Board>) -> Result<About<RolloverReport>> {
        about_board!(self, whole board, |current| self.roll_over_tracks(current))
    }

    async fn roll_over_tracks(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let mut report = self.rollover.run(board).await?;
        for further in board.further() {
            report.add(board, &self.rollover.run(further).await?);
        }
        Ok(report)
    }

    /// Returns the work that a rollover would do.
    pub async fn rollover_preview(&self, board: &Arc<Board>) -> Result<About<RolloverReport>> {
        about_board!(self, whole board, |current| self.preview_of_tracks(current))
    }

    async fn preview_of_tracks(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let mut report = self.rollover.preview(board).await?;
        for further in board.further() {
            report.add(board, &self.rollover.preview(further).await?);
        }
        Ok(report)
    }

    /// Compares every subject's score with the value of its slots, in every window. With `repair`, corrects the
    /// differences.
    pub async fn audit(&self, board: &Arc<Board>, repair: bool) -> Result<About<AuditReport>> {
        about_board!(self, whole board, |current| audit::run_all(&*self.store, current, repair))
    }
}

/// Returns the window of this length, or the error that lists the windows of the board.
fn window_of(board: &Arc<Board>, requested: WindowLength) -> Result<Arc<Board>> {
    let unknown = || ServiceError::UnknownWindow { board: board.clone(), requested };
    board.window_of(requested).cloned().ok_or_else(unknown)
}

/// Returns the window of the board with this generation.
pub(super) fn window_with(board: &Arc<Board>, generation: Generation) -> Option<&Arc<Board>> {
    board.track_number(generation).and_then(|number| board.windows().nth(number))
}
