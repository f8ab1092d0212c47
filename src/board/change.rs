//! The effect of an increment on one subject of a board.

use super::{Amount, Counted};

/// The effect of an increment. The board's metric decides which variants it accepts: see [`Kind`](super::Kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// For COUNT and SUM: an amount to add, which may be negative. For AVG, MIN, MAX and LAST: one measurement.
    Amount(Amount),
    /// For COUNT_DISTINCT and APPROX_COUNT_DISTINCT: a value that was seen.
    Seen(Counted),
    /// For COUNT_DISTINCT: a value of which nothing stays, whenever it was last seen or taken back, in any track that items
    /// can count in. Unlike a retraction it leaves no tombstone, which would store the value again.
    Forget(Counted),
    /// A sample: *replaces* what the subject has in the slot. For COUNT and SUM, `sum` is the slot's sum; for MIN and
    /// MAX, `sum` is the slot's extreme; for AVG, `sum` and `count` are the slot's sum and number of measurements; for
    /// LAST, `sum` is the slot's newest value.
    Set { sum: Amount, count: i64 },
    /// An item that another edition of the board counts, and this one does not.
    Not(NotCounted),
}

/// The reason why one edition of a board did not count an item that another one may have counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NotCounted {
    /// Its filter excludes the event.
    Filtered,
    /// It does not take such items: a field is missing or invalid, or it takes no retractions, values or samples.
    NotAccepted,
    /// The item's slot has left its window.
    TooLate,
    /// The subject would exceed its bound in a slot.
    OutOfRange,
    /// The item belongs to another period of the season, or is a value to forget, and the edition stores none.
    OtherPeriod,
    /// Who sent the item did not know the edition.
    Unknown,
}

impl NotCounted {
    /// All reasons that are counted. Items of which nobody knew the effect are not: see
    /// [`DualRun::since`](crate::store::DualRun::since). Neither are items of other periods, which nothing lacks.
    pub const COUNTED: [Self; 4] = [Self::Filtered, Self::NotAccepted, Self::TooLate, Self::OutOfRange];

    /// Returns the code of the reason, in stored data and responses.
    pub fn code(self) -> &'static str {
        match self {
            Self::Filtered => "filtered",
            Self::NotAccepted => "not_accepted",
            Self::TooLate => "too_late",
            Self::OutOfRange => "out_of_range",
            Self::OtherPeriod => "other_period",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the reason with this code.
    pub fn of_code(code: &str) -> Option<Self> {
        Self::COUNTED.into_iter().find(|reason| reason.code() == code)
    }
}
