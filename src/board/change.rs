//! What an increment does to one subject of a board.

use super::{Amount, Counted};

/// What an increment does. Which of them a board takes, its metric decides: see [`Kind`](super::Kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// COUNT and SUM: an amount to add, which may be negative. AVG, MIN and MAX: one measurement.
    Amount(Amount),
    /// COUNT_DISTINCT and APPROX_COUNT_DISTINCT: a value that was seen.
    Seen(Counted),
    /// A sample: *sets* what the subject has in the slot, whatever it had. COUNT and SUM take the sum, MIN and MAX
    /// the extreme (both as `sum`), AVG sum and count.
    Set { sum: Amount, count: i64 },
}
