//! A track together with its board.

use std::ops::Deref;
use std::sync::Arc;

use super::{Board, Track};

/// A track of a board: what reading, retiring and auditing is about. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BoardTrack {
    board: Arc<Board>,
    number: usize,
}

impl BoardTrack {
    /// Returns the track with this number, which the board has.
    pub(super) fn new(board: &Arc<Board>, number: usize) -> Self {
        debug_assert!(number < board.tracks().len());
        Self { board: board.clone(), number }
    }

    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Returns the position of the track among the [tracks](super::Edition::tracks) of the board. It is valid only for
    /// this very board; what is stored names tracks by their [ids](Track::id).
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns whether this is the main track of its board.
    pub fn is_main(&self) -> bool {
        self.number == 0
    }
}

impl Deref for BoardTrack {
    type Target = Track;

    fn deref(&self) -> &Track {
        &self.board.tracks()[self.number]
    }
}
