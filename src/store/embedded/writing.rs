//! How a batch takes effect on a board's tables, and what the journal is told.

use super::holdings::OutOfRange;
use super::names::Name;
use super::operations::Operations;
use super::reading;
use super::sightings::Sighting;
use super::tables::Tables;
use crate::board::{Amount, Board, Change, Kind, Mark};
use crate::store::{Added, Batch, Entry, Increment, Outcome, Plan, Rejection};

/// Records visited for each item while a round of visits is due, so that what waits to be freed is a third of what is live at
/// most, however fast more comes.
const VISITS_PER_ITEM: u64 = 4;
/// The most records visited by one batch: a tenth of a millisecond.
const MOST_VISITS: u64 = 1_024;

/// Entries that are brought into the cache together before they are applied.
const PORTION: usize = 256;

/// Applies a batch to tables that have been advanced. O(items x log n).
pub(super) fn apply(
    board: &Board,
    tables: &mut Tables,
    batch: &Batch,
    max_skew: i64,
    operations: &mut Operations,
) -> Added {
    let increments = &batch.increments;
    tables.visit((increments.len() as u64 * VISITS_PER_ITEM).min(MOST_VISITS));
    let mut outcomes = vec![Outcome::Counted { score: None }; increments.len()];
    let plan = Plan::new(board, &tables.window, tables.now, max_skew, increments.iter().enumerate());
    for (item, rejection) in plan.rejected {
        outcomes[item] = Outcome::Rejected(rejection);
    }
    let now = tables.now.millis();
    let mut writing = Writing { board, tables, operations, increments, bound: board.slot_bound().0 };
    for portion in plan.entries.chunks(PORTION) {
        let names: Vec<Name> = portion.iter().map(|entry| Name::from(entry.subject.as_str())).collect();
        if names.len() > 1 {
            writing.tables.holdings.touch(&names);
        }
        for (entry, name) in portion.iter().zip(names) {
            writing.apply(entry, name, now, &mut outcomes);
        }
    }
    if batch.return_scores {
        for (outcome, increment) in outcomes.iter_mut().zip(increments) {
            if let Outcome::Counted { score } | Outcome::Duplicate { score } = outcome {
                *score = reading::score(tables, &increment.subject);
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

/// A batch that is taking effect.
struct Writing<'a> {
    board: &'a Board,
    tables: &'a mut Tables,
    operations: &'a mut Operations,
    increments: &'a [Increment],
    bound: i64,
}

impl Writing<'_> {
    /// Makes an entry's update, or says why not.
    fn apply(&mut self, entry: &Entry, name: Name, now: i64, outcomes: &mut [Outcome]) {
        if let Some(id) = entry.id {
            let fingerprint = self.tables.key.of(entry.subject, id);
            let outcome = if self.tables.ids.seen(fingerprint, now) {
                Outcome::Duplicate { score: None }
            } else if self.take(entry, name).is_ok() {
                self.operations.id(now, fingerprint);
                self.tables.ids.remember(fingerprint, now);
                return;
            } else {
                Outcome::Rejected(Rejection::OutOfRange)
            };
            set(outcomes, entry, outcome);
        } else if entry.sent.is_some() {
            if self.take(entry, name).is_err() {
                set(outcomes, entry, Outcome::Rejected(Rejection::OutOfRange));
            }
        } else if entry.is_beyond_exact() || self.take(entry, name).is_err() {
            // The sum is refused: each item for itself, in order.
            for &item in &entry.items {
                let Change::Amount(amount) = self.increments[item].change else { continue };
                let amount = self.increments[item].signed(amount);
                if self.take_amount(entry, name, item, amount).is_err() {
                    outcomes[item] = Outcome::Rejected(Rejection::OutOfRange);
                }
            }
        }
    }

    /// Makes an entry's update as a whole, or changes nothing.
    fn take(&mut self, entry: &Entry, name: Name) -> Result<(), OutOfRange> {
        let Some(increment) = entry.sent else { return self.take_amount(entry, name, entry.items[0], entry.amount) };
        let (subject, slot) = (entry.subject.as_str(), entry.slot.millis());
        let holdings = &mut self.tables.holdings;
        match (self.board.kind(), &increment.change) {
            (Kind::Sum, Change::Set { sum, .. }) => {
                let sum = holdings.set_sum(name, slot, sum.0, self.bound)?;
                self.operations.amount(slot, sum, subject);
            }
            (Kind::Mean, Change::Amount(amount)) => {
                let sample = if increment.retract { (-amount.0, -1) } else { (amount.0, 1) };
                let samples = holdings.measure(name, slot, sample, self.bound)?;
                self.operations.samples(slot, samples, subject);
            }
            (Kind::Mean, Change::Set { sum, count }) => {
                let samples = holdings.set_samples(name, slot, (sum.0, *count), self.bound)?;
                self.operations.samples(slot, samples, subject);
            }
            (Kind::Min | Kind::Max, change) => {
                let extreme = match change {
                    Change::Amount(amount) => holdings.extend(name, slot, amount.0)?,
                    Change::Set { sum, .. } => holdings.set_extreme(name, slot, sum.0)?,
                    Change::Seen(_) => return Err(OutOfRange),
                };
                if let Some(extreme) = extreme {
                    self.operations.amount(slot, extreme, subject);
                }
            }
            (Kind::Distinct, Change::Seen(value)) => {
                let sighting = Sighting { at: entry.at.millis(), gone: increment.retract };
                let floor = self.tables.window.floor.millis();
                let seeing = holdings.sight(name, value.as_str(), sighting, floor)?;
                if seeing.changed {
                    self.operations.sighted(Some(sighting), subject, value.as_str());
                }
                if let Some(dropped) = seeing.dropped {
                    self.operations.sighted(None, subject, &dropped);
                }
                if let Some(at) = seeing.capped {
                    self.operations.capped(at, subject);
                }
            }
            (Kind::Sketch, Change::Seen(value)) => {
                let mark = Mark::of(value.as_str());
                if holdings.mark(name, slot, mark)? {
                    self.operations.marked(slot, mark, subject);
                }
            }
            // Callers send what the metric takes; of anything else nothing could be counted.
            (Kind::Sum | Kind::Mean | Kind::Distinct | Kind::Sketch, _) => return Err(OutOfRange),
        }
        Ok(())
    }

    /// COUNT and SUM: adds an amount, of the entry or of the one of its items.
    fn take_amount(&mut self, entry: &Entry, name: Name, item: usize, amount: Amount) -> Result<(), OutOfRange> {
        let (subject, slot) = (entry.subject.as_str(), entry.slot.millis());
        let holdings = &mut self.tables.holdings;
        if holdings.rule.life.is_none() {
            let new = holdings.add(name, slot, amount.0, self.bound)?;
            self.operations.amount(slot, new, subject);
            return Ok(());
        }
        let (retracts, times) = (self.increments[item].retract, (entry.at.millis(), self.tables.now.millis()));
        if let Some(counter) = holdings.count_from_first(name, amount.0, retracts, times, self.bound)? {
            self.operations.amount(counter.start, counter.amount, subject);
        }
        Ok(())
    }
}
