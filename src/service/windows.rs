//! The windows of a board: the one that a read chooses, and what is done for all of them.

use std::sync::Arc;

use super::{About, AuditReport, Result, RolloverReport, Service, ServiceError, about_board, audit};
use crate::board::{Board, BoardName, Generation, Subject, WindowLength};
use crate::store::{self, Removal, Status};

impl Service {
    /// Returns the window of a board that a read chooses: the one of this length, or else the one that its cursor is of, or
    /// else the main window. Makes no store call if this instance knows the board and its window.
    ///
    /// Returns [`ServiceError::UnknownWindow`] if the board has no window of this length, and
    /// [`ServiceError::CursorOfOtherWindow`] if the cursor is of another one.
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

    /// Reads the board of the same name from the store and returns its window of the same length. Instead of a main window
    /// of another length, returns the main window. One store call.
    pub(super) async fn refreshed_window(&self, board: &Arc<Board>) -> Result<Arc<Board>> {
        let fresh = self.refreshed(board).await?;
        match fresh.window_of(board.length()) {
            None if !board.is_further() => Ok(fresh),
            _ => window_of(&fresh, board.length()),
        }
    }

    /// Removes a subject from the ranking and from every slot of each window. Returns what was removed from the main
    /// window.
    pub async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<About<Removal>> {
        about_board!(self, board, |current| self.remove_from_windows(current, subject))
    }

    /// Removes a subject from each window, from the main one last: if the call is interrupted, the subject remains there,
    /// and a repeated call removes the rest.
    async fn remove_from_windows(&self, board: &Arc<Board>, subject: &Subject) -> store::Result<Removal> {
        for window in board.further() {
            self.store.remove(window, subject).await?;
        }
        self.store.remove(board, subject).await
    }

    /// Returns head, floor, slots and totals of one window.
    pub async fn status(&self, board: &Arc<Board>) -> Result<About<Status>> {
        about_board!(self, board, |current| self.store.status(current))
    }

    /// Returns head, floor, slots and totals of each window, in the order of [`Board::windows`]. One store call for each.
    pub async fn statuses(&self, board: &Arc<Board>) -> Result<About<Vec<Status>>> {
        about_board!(self, board, |current| self.statuses_of_windows(current))
    }

    async fn statuses_of_windows(&self, board: &Arc<Board>) -> store::Result<Vec<Status>> {
        let mut statuses = Vec::with_capacity(1 + board.further().len());
        for window in board.windows() {
            statuses.push(self.store.status(window).await?);
        }
        Ok(statuses)
    }

    /// Rolls all windows of a board over. Returns when nothing below their floors remains. The numbers of the report are
    /// sums over the windows, and its frame is that of the main window.
    pub async fn rollover(&self, board: &Arc<Board>) -> Result<About<RolloverReport>> {
        about_board!(self, board, |current| self.roll_over_windows(current))
    }

    async fn roll_over_windows(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let mut report = self.rollover.run(board).await?;
        for window in board.further() {
            report.add(&self.rollover.run(window).await?);
        }
        Ok(report)
    }

    /// Returns the work that a rollover would do.
    pub async fn rollover_preview(&self, board: &Arc<Board>) -> Result<About<RolloverReport>> {
        about_board!(self, board, |current| self.preview_of_windows(current))
    }

    async fn preview_of_windows(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let mut report = self.rollover.preview(board).await?;
        for window in board.further() {
            report.add(&self.rollover.preview(window).await?);
        }
        Ok(report)
    }

    /// Compares every subject's score with the value of its slots, in every window. With `repair`, corrects the
    /// differences.
    pub async fn audit(&self, board: &Arc<Board>, repair: bool) -> Result<About<AuditReport>> {
        about_board!(self, board, |current| audit::run_all(&*self.store, current, repair))
    }
}

/// Returns the window of this length, or the error that names those there are.
fn window_of(board: &Arc<Board>, requested: WindowLength) -> Result<Arc<Board>> {
    let unknown = || ServiceError::UnknownWindow { board: board.clone(), requested };
    board.window_of(requested).cloned().ok_or_else(unknown)
}

/// Returns the window of the board with this generation.
pub(super) fn window_with(board: &Arc<Board>, generation: Generation) -> Option<&Arc<Board>> {
    board.window_number(generation).and_then(|number| board.windows().nth(number))
}
