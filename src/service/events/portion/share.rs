//! What a portion of a source's items causes on one board.

use std::collections::HashMap;
use std::sync::Arc;

use super::{ItemPortion, SourceItem};
use crate::board::{Board, Position};
use crate::service::event_index::EventIndex;
use crate::service::events::outcome::Refusal;
use crate::service::sources::Course;
use crate::store::Increment;

/// What a portion causes on one board.
pub(super) struct Share {
    pub board: Arc<Board>,
    /// What the board counts of the log. Set when the portion is sent; `None` if the board has not joined the source.
    pub course: Option<Course>,
    pub increments: Vec<(Position, Increment)>,
    /// What the board does with items, by their indexes, in their order.
    pub items: Vec<(usize, Treatment)>,
}

/// What a board does with an item that is for it.
pub(super) enum Treatment {
    /// It gets the next increment.
    Counts,
    /// The edition beside the current one gets the next increment, which the current one does not count.
    CountsBeside,
    /// It does not count this part of the log.
    LeavesOut,
    /// It refuses the item whatever the store says.
    Refuses(Refusal),
}

impl ItemPortion<'_> {
    /// Spreads the items over boards of the source.
    pub(super) fn shares(&self, boards: Vec<Arc<Board>>, index: &EventIndex) -> Vec<Share> {
        let places: HashMap<_, _, rapidhash::fast::RandomState> =
            boards.iter().enumerate().map(|(place, board)| (board.generation(), place)).collect();
        let share = |board| Share { board, course: None, increments: Vec::new(), items: Vec::new() };
        let mut shares: Vec<_> = boards.into_iter().map(share).collect();
        for (at, (position, item)) in self.items.iter().enumerate() {
            for board in self.boards_of(item, index) {
                if let Some(share) = places.get(&board.generation()).map(|place| &mut shares[*place]) {
                    share.add(at, *position, item);
                }
            }
        }
        shares
    }
}

impl Share {
    /// Adds an item that is for the board.
    fn add(&mut self, at: usize, position: Position, item: &SourceItem) {
        match item.increment(&self.board) {
            Some(Ok(increment)) => {
                self.items.push((at, Treatment::Counts));
                self.increments.push((position, increment));
                return;
            }
            Some(Err(refusal)) => self.items.push((at, Treatment::Refuses(refusal))),
            None => {}
        }
        if let Some(increment) = item.increment_of_other(&self.board) {
            self.items.push((at, Treatment::CountsBeside));
            self.increments.push((position, increment));
        }
    }

    /// Leaves out the items that are not in the part of the log that the board counts.
    pub(super) fn leave_out(&mut self, portion: &ItemPortion<'_>, course: Course) {
        let is_within = |position: Position| course.from < position && position <= course.until;
        self.increments.retain(|(position, _)| is_within(*position));
        self.items.retain_mut(|(item, treatment)| {
            if is_within(portion.items[*item].0) {
                return true;
            }
            let is_shown = !matches!(treatment, Treatment::CountsBeside);
            *treatment = Treatment::LeavesOut;
            is_shown
        });
    }
}
