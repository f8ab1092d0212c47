//! What responses say of the instant that it refers to.

use serde::Serialize;
use utoipa::ToSchema;

use super::schemas;
use crate::board::{Board, BoardName, Frame, Timestamp, Window};

/// The exact bounds of a window: `from` is inclusive, `to` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct WindowBounds {
    /// Start of the oldest slot that counts.
    #[schema(schema_with = schemas::time)]
    pub(super) from: Timestamp,
    /// End of the newest slot. It is in the future; the window rolls over when the clock reaches it.
    #[schema(schema_with = schemas::time)]
    pub(super) to: Timestamp,
    /// Number of slots in the window.
    #[schema(minimum = 1, maximum = 2001)]
    pub(super) slots: u32,
}

impl WindowBounds {
    /// Returns the bounds of a window with this number of slots.
    pub(super) fn of(window: &Window, slots: u32) -> Self {
        Self { from: window.floor, to: window.end, slots }
    }
}

/// The window and the time that a response refers to.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Frame)]
pub(super) struct FrameShown {
    /// The slots that were read.
    window: WindowBounds,
    /// The store's time of the response.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
    /// Number of expired slots that are not yet fully subtracted. Unless it is 0, scores may include parts of them. Values
    /// over windows never include them.
    retiring: u64,
}

impl FrameShown {
    /// Returns the frame of a response that was read from this number of slots.
    pub(super) fn of(frame: &Frame, slots: u32) -> Self {
        Self { window: WindowBounds::of(&frame.window, slots), as_of: frame.as_of, retiring: frame.retiring }
    }
}

/// The board, the window and the time that a response with ranks refers to.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct RankingFrame {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(flatten)]
    frame: FrameShown,
    /// Number of ranked subjects on the board.
    total: u64,
}

impl RankingFrame {
    /// Returns the frame of a response about the whole window of the board, on which `total` subjects are ranked.
    pub(super) fn of(board: &Board, frame: &Frame, total: u64) -> Self {
        Self { board: board.name().clone(), frame: FrameShown::of(frame, board.slots()), total }
    }
}
