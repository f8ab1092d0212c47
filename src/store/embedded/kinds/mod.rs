//! The kinds of metrics: one file for each, with all that the store knows of it. The counters of the mode `from_first`,
//! which is not a kind, are in [`holdings`](super::holdings).
//!
//! A new kind needs a file here, a line in [`of`], and, if it writes to the log what no other kind does, an
//! [operation](super::log_operations).

mod capped;
mod distinct;
mod extreme;
mod last;
mod mean;
mod sketch;
mod sum;
mod timed_sum;

pub(super) use super::holdings::StoredKind;
use crate::board::{Amount, EXACT_MAX, Kind};

/// Returns the implementation of a kind.
pub(super) fn of(kind: Kind) -> &'static dyn StoredKind {
    match kind {
        Kind::Sum => &sum::Sum,
        Kind::TimedSum(_) => &timed_sum::TimedSum,
        Kind::Distinct => &distinct::Distinct,
        Kind::Capped { .. } => &capped::Capped,
        Kind::Mean => &mean::Mean,
        Kind::Min | Kind::Max => &extreme::Extreme,
        Kind::Last => &last::Last,
        Kind::Sketch => &sketch::Approximate,
    }
}

/// Returns whether every store represents a measurement exactly. Those of items are checked when they are read.
fn is_exact(amount: Amount) -> bool {
    amount.0.unsigned_abs() <= EXACT_MAX.unsigned_abs()
}
