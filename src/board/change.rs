//! The effect of an increment on one subject of a board.

use super::{Amount, Counted};

/// The effect of an increment. The board's metric decides which variants it accepts: see [`Kind`](super::Kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// For COUNT and SUM: an amount to add, which may be negative. For AVG, MIN, MAX and LAST: one measurement.
    Amount(Amount),
    /// For COUNT_DISTINCT and APPROX_COUNT_DISTINCT: a value that was seen.
    Seen(Counted),
    /// A sample: *replaces* what the subject has in the slot. For COUNT and SUM, `sum` is the slot's sum; for MIN and
    /// MAX, `sum` is the slot's extreme; for AVG, `sum` and `count` are the slot's sum and number of measurements; for
    /// LAST, `sum` is the slot's newest value.
    Set { sum: Amount, count: i64 },
}
