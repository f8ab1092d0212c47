//! How a batch takes effect on a board's tables, and what the journal is told.

use super::codec::Operations;
use super::ids::pair;
use super::tables::Tables;
use crate::board::{Amount, Board, Change, Value};
use crate::store::{Added, Batch, Entry, Outcome, Plan, Rejection};

/// Applies a batch to tables that have been advanced. O(items x log n).
pub(super) fn apply(
    board: &Board,
    tables: &mut Tables,
    batch: &Batch,
    max_skew: i64,
    operations: &mut Operations,
) -> Added {
    let increments = &batch.increments;
    let mut outcomes = vec![Outcome::Counted { score: None }; increments.len()];
    let plan = Plan::new(board, &tables.window, tables.now, max_skew, increments.iter().enumerate());
    for (item, rejection) in plan.rejected {
        outcomes[item] = Outcome::Rejected(rejection);
    }
    let bound = board.slot_bound().0;
    let now = tables.now.millis();
    for entry in &plan.entries {
        let slot = entry.slot.millis();
        let subject = entry.subject.as_str();
        let mut counts = |tables: &mut Tables, amount: Amount| match tables.holdings.add(subject, slot, amount.0, bound)
        {
            Ok(new) => {
                operations.amount(slot, new, subject);
                true
            }
            Err(_) => false,
        };
        if let Some(id) = entry.id {
            let pair = pair(entry.subject, id);
            let outcome = if tables.ids.seen(&pair, now) {
                Outcome::Duplicate { score: None }
            } else if counts(tables, entry.amount) {
                operations.id(now, &pair);
                tables.ids.remember(pair, now);
                continue;
            } else {
                Outcome::Rejected(Rejection::OutOfRange)
            };
            set(&mut outcomes, entry, outcome);
        } else if entry.is_beyond_exact() || !counts(tables, entry.amount) {
            // The sum is refused: each item for itself, in order.
            for &item in &entry.items {
                let Change::Amount(amount) = increments[item].change else { continue };
                let amount = Amount(if increments[item].retract { -amount.0 } else { amount.0 });
                if !counts(tables, amount) {
                    outcomes[item] = Outcome::Rejected(Rejection::OutOfRange);
                }
            }
        }
    }
    if batch.return_scores {
        for (outcome, increment) in outcomes.iter_mut().zip(increments) {
            if let Outcome::Counted { score } | Outcome::Duplicate { score } = outcome {
                *score = Some(Value::Exact(Amount(tables.holdings.score_of(increment.subject.as_str()))));
            }
        }
    }
    Added { frame: tables.frame(), outcomes }
}

fn set(outcomes: &mut [Outcome], entry: &Entry, outcome: Outcome) {
    for &item in &entry.items {
        outcomes[item] = outcome;
    }
}
