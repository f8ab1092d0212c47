//! Where items that were not counted stood, how many there were, and why.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::board::{Board, Mode, Score};
use crate::http::codes::ItemCode;
use crate::store::Rejection;

/// How many rejections an answer shows; all are counted.
pub(in crate::http) const SHOWN: usize = 1_000;

/// Where an item stood in its request.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) enum Place {
    /// From 0.
    Index(u64),
    /// From 1.
    Line(u64),
}

impl Place {
    /// As an answer shows it: the index, or the line.
    pub(in crate::http) fn index_and_line(self) -> (Option<u64>, Option<u64>) {
        match self {
            Place::Index(index) => (Some(index), None),
            Place::Line(line) => (None, Some(line)),
        }
    }
}

/// How many were rejected, by code.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http) struct RejectedCounts([u64; ItemCode::ALL.len()]);

impl RejectedCounts {
    /// Counts one more.
    pub(in crate::http) fn add(&mut self, code: ItemCode) {
        self.0[code as usize] += 1;
    }

    /// How many were rejected for this reason.
    pub(in crate::http) fn of(&self, code: ItemCode) -> u64 {
        self.0[code as usize]
    }

    pub(in crate::http) fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

impl Serialize for RejectedCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (code, count) in ItemCode::ALL.iter().zip(self.0).filter(|(_, count)| *count > 0) {
            map.serialize_entry(code, &count)?;
        }
        map.end()
    }
}

/// The code of the store's reason.
pub(in crate::http) fn code_of(rejection: Rejection) -> ItemCode {
    match rejection {
        Rejection::TooLate => ItemCode::TooLate,
        Rejection::TooEarly => ItemCode::TooEarly,
        Rejection::OutOfRange => ItemCode::AmountOutOfRange,
    }
}

/// The store's reason for a person.
pub(in crate::http) fn detail_of(rejection: Rejection, board: &Board) -> String {
    match rejection {
        Rejection::TooLate => match board.definition().mode {
            Mode::Sliding => "its slot has left the window".to_owned(),
            Mode::FromFirst => "a window that began with it would be over".to_owned(),
        },
        Rejection::TooEarly => "it is too far ahead of the store's clock".to_owned(),
        Rejection::OutOfRange => {
            let bound = Score { units: board.slot_bound().0, decimals: board.decimals() };
            format!("one subject holds at most {bound} in one slot of this board, and at least -{bound}")
        }
    }
}
