//! An item of a source's log.

use std::sync::Arc;

use crate::board::{Board, Event, Timestamp};
use crate::service::add::translate;
use crate::service::events::fan;
use crate::service::events::outcome::Refusal;
use crate::store::Increment;

/// An item of a source's log.
#[derive(Clone, Debug)]
pub enum SourceItem {
    /// Is counted by the boards whose metrics name its type.
    Event(Arc<Event>),
    /// Is counted by one board, for whose current edition it was parsed. Boxed, because most sources have events.
    Increment(Box<Increment>),
}

impl SourceItem {
    /// Returns the time of the item, if it has one.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Event(event) => event.at,
            Self::Increment(increment) => increment.at,
        }
    }

    /// Returns the type of the event; an increment has none.
    pub fn kind(&self) -> &str {
        match self {
            Self::Event(event) => &event.kind,
            Self::Increment(_) => "",
        }
    }

    /// Returns what a board that the item is for adds, or `None` if the filter of its current edition excludes the item.
    pub(super) fn increment(&self, board: &Board) -> Option<Result<Increment, Refusal>> {
        match self {
            Self::Event(event) => fan::increment(board, event),
            Self::Increment(increment) => {
                let mut increment = Increment::clone(increment);
                translate(board, std::slice::from_mut(&mut increment));
                Some(Ok(increment))
            }
        }
    }

    /// Returns what the edition of a board beside the current one adds, if only that one counts the item.
    pub(super) fn increment_of_other(&self, board: &Board) -> Option<Increment> {
        match self {
            Self::Event(event) => fan::increment_of_other(board, event),
            Self::Increment(_) => None,
        }
    }
}
