//! What a portion of a source's events causes on one board.

use std::collections::HashMap;
use std::sync::Arc;

use super::EventPortion;
use crate::board::{Board, Event, Position};
use crate::service::event_index::EventIndex;
use crate::service::events::fan::{increment, increment_of_other};
use crate::service::events::outcome::Refusal;
use crate::service::sources::Course;
use crate::store::Increment;

/// What a portion causes on one board.
pub(super) struct Share {
    pub board: Arc<Board>,
    /// What the board counts of the log. Set when the portion is sent; `None` if the board has not joined the source.
    pub course: Option<Course>,
    pub items: Vec<(Position, Increment)>,
    /// What the board does with events, by their indexes, in their order.
    pub events: Vec<(usize, Treatment)>,
}

/// What a board does with an event of its type.
pub(super) enum Treatment {
    /// It gets the next item.
    Counts,
    /// The edition beside the current one gets the next item, which the current one does not count.
    CountsBeside,
    /// It does not count this part of the log.
    LeavesOut,
    /// It refuses the event whatever the store says.
    Refuses(Refusal),
}

impl EventPortion<'_> {
    /// Spreads the events over boards of the source.
    pub(super) fn shares(&self, boards: Vec<Arc<Board>>, index: &EventIndex) -> Vec<Share> {
        let places: HashMap<_, _, rapidhash::fast::RandomState> =
            boards.iter().enumerate().map(|(place, board)| (board.generation(), place)).collect();
        let share = |board| Share { board, course: None, items: Vec::new(), events: Vec::new() };
        let mut shares: Vec<_> = boards.into_iter().map(share).collect();
        for (at, (position, event)) in self.events.iter().enumerate() {
            for board in index.of_type(&event.kind) {
                if let Some(share) = places.get(&board.generation()).map(|place| &mut shares[*place]) {
                    share.add(at, *position, event);
                }
            }
        }
        shares
    }
}

impl Share {
    /// Adds an event of the type of the board.
    fn add(&mut self, at: usize, position: Position, event: &Arc<Event>) {
        match increment(&self.board, event) {
            Some(Ok(item)) => {
                self.events.push((at, Treatment::Counts));
                self.items.push((position, item));
                return;
            }
            Some(Err(refusal)) => self.events.push((at, Treatment::Refuses(refusal))),
            None => {}
        }
        if let Some(item) = increment_of_other(&self.board, event) {
            self.events.push((at, Treatment::CountsBeside));
            self.items.push((position, item));
        }
    }

    /// Leaves out the events that are not in the part of the log that the board counts.
    pub(super) fn leave_out(&mut self, portion: &EventPortion<'_>, course: Course) {
        let is_within = |position: Position| course.from < position && position <= course.until;
        self.items.retain(|(position, _)| is_within(*position));
        self.events.retain_mut(|(event, treatment)| {
            if is_within(portion.events[*event].0) {
                return true;
            }
            let is_shown = !matches!(treatment, Treatment::CountsBeside);
            *treatment = Treatment::LeavesOut;
            is_shown
        });
    }
}
