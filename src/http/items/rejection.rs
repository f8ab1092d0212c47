//! Rejected items: their position in the request, and codes and details of the reasons.

use crate::board::{AmountError, Board, Mode, Score};
use crate::http::codes::ItemCode;
use crate::service::Rejection;

/// Maximum number of rejections that a response lists; all are counted.
pub(in crate::http) const MAX_SHOWN: usize = 1_000;

/// Position of an item in its request.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) enum Position {
    /// Index in a JSON body, from 0.
    Index(u64),
    /// Line of a stream, from 1.
    Line(u64),
}

impl Position {
    /// Returns the fields `index` and `line` of a response, one of which is set.
    pub(in crate::http) fn index_and_line(self) -> (Option<u64>, Option<u64>) {
        match self {
            Position::Index(index) => (Some(index), None),
            Position::Line(line) => (None, Some(line)),
        }
    }
}

/// Returns the code of a rejection by the store.
pub(in crate::http) fn code_of_rejection(rejection: Rejection) -> ItemCode {
    match rejection {
        Rejection::TooLate => ItemCode::TooLate,
        Rejection::TooEarly => ItemCode::TooEarly,
        Rejection::OutOfRange => ItemCode::AmountOutOfRange,
    }
}

/// Returns the code of an amount that a board does not accept.
pub(in crate::http) fn code_of_amount(error: &AmountError) -> ItemCode {
    match error {
        AmountError::NotANumber { .. } => ItemCode::InvalidAmount,
        AmountError::Precision { .. } => ItemCode::AmountPrecision,
        AmountError::Range { .. } => ItemCode::AmountOutOfRange,
    }
}

/// Returns the detail of a rejection by the store.
pub(in crate::http) fn detail_of_rejection(rejection: Rejection, board: &Board) -> String {
    match rejection {
        Rejection::TooLate => match board.definition().mode {
            Mode::Sliding => "the slot has left the window".to_owned(),
            Mode::FromFirst => "a window that begins at this time has already ended".to_owned(),
        },
        Rejection::TooEarly => "the time is too far ahead of the store's clock".to_owned(),
        Rejection::OutOfRange => {
            let bound = Score { units: board.slot_bound().0, decimals: board.decimals() };
            let place = if board.is_all_time() { "on" } else { "in one slot of" };
            format!("the amount of a subject {place} this board must be between -{bound} and {bound}")
        }
    }
}
