//! Answers about a board that may have been defined again since the caller looked it up.

use std::sync::Arc;

use crate::board::Board;

/// An answer about a board, and the board that it is about. If the requested board was removed and defined again in the
/// meantime, this is the new board. The answer has the decimals and slots of the new board.
#[derive(Clone, Debug)]
pub struct About<T> {
    /// The board that the store answered about: the main window of a board, or the further window that was read.
    pub board: Arc<Board>,
    pub answer: T,
}

/// Calls the store about one window of a board, or with `whole` about a board. If the board was removed and defined again,
/// calls it once more about the new one. An optional check runs before each call and may refuse it.
macro_rules! about_board {
    ($self:ident, whole $board:ident, |$current:ident| $call:expr) => {
        about_board!($self, $board, |_current| Ok(()), refreshed, |$current| $call)
    };
    ($self:ident, $board:ident, |$current:ident| $call:expr) => {
        about_board!($self, $board, |_current| Ok(()), |$current| $call)
    };
    ($self:ident, $board:ident, $check:expr, |$current:ident| $call:expr) => {
        about_board!($self, $board, $check, refreshed_window, |$current| $call)
    };
    ($self:ident, $board:ident, $check:expr, $refreshed:ident, |$current:ident| $call:expr) => {{
        let check: fn(&crate::board::Board) -> crate::service::Result<()> = $check;
        check($board)?;
        let $current = $board;
        match $call.await {
            Err(crate::store::StoreError::BoardChanged) => {
                let fresh = $self.$refreshed($board).await?;
                check(&fresh)?;
                let $current = &fresh;
                let answer = $call.await?;
                Ok(crate::service::About { board: fresh, answer })
            }
            other => Ok(crate::service::About { board: $board.clone(), answer: other? }),
        }
    }};
}

pub(super) use about_board;
