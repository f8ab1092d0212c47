//! What became of events.

use std::sync::Arc;

use crate::board::{Board, FieldFault, Subject, Value};
use crate::store::{Outcome, Rejection};

/// The outcome of the events of one call.
#[derive(Debug, Default)]
pub struct Recorded {
    /// One outcome for each event, in the given order.
    pub events: Vec<EventOutcome>,
}

/// The outcome of one event.
#[derive(Debug, Default)]
pub struct EventOutcome {
    /// Whether the metric of at least one board names its type.
    pub is_known: bool,
    /// The outcome on each board, ordered by board name. Boards whose filter excludes the event are not listed.
    pub boards: Vec<OnBoard>,
}

/// The outcome of an event on one board.
#[derive(Debug)]
pub struct OnBoard {
    pub board: Arc<Board>,
    /// The subject of the event on this board. Set only if scores were requested.
    pub subject: Option<Subject>,
    pub taken: Taken,
    /// Whether the current edition of the board has refused it, and the one beside it may have counted it.
    pub is_beside: bool,
}

/// The outcome of an event on a board whose metric names its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Counted. Contains the subject's new score as in [`Outcome::Counted`].
    Counted { score: Option<Value> },
    /// The id was counted before. Contains the subject's score as in [`Outcome::Duplicate`].
    Duplicate { score: Option<Value> },
    /// Not counted. Nothing has changed.
    Refused(Refusal),
    /// An event of a source that was handled before, or that is before what the board counts of the source.
    Repeated,
    /// An event of a source that is not counted yet: for this reason, unless it only follows one that waits.
    Waits(Option<Rejection>),
}

/// The reason why a board did not count an event of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A field that the metric needs is missing or invalid.
    Field(FieldFault),
    /// The metric does not support retractions: it is MIN, MAX, LAST or approximate.
    RetractionUnsupported,
    /// A retraction must have the time of the event that it reverses.
    RetractionWithoutTime,
    /// The store rejected it.
    Store(Rejection),
    /// The data of the board is damaged, so whether it counted the event is not known.
    Damaged,
}

impl Refusal {
    /// Returns whether the event was refused before it was sent to the store.
    pub(super) fn is_ours(&self) -> bool {
        !matches!(self, Refusal::Store(_) | Refusal::Damaged)
    }
}

impl From<Outcome> for Taken {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Counted { score } => Taken::Counted { score },
            Outcome::Duplicate { score } => Taken::Duplicate { score },
            Outcome::Rejected(rejection) => Taken::Refused(Refusal::Store(rejection)),
        }
    }
}
