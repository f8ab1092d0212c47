//! `from_first` boards: a counter per subject, which begins with an event and ends a fixed time later.
//!
//! The counter is the record's one slice, named by the time at which it began.

use super::{Holdings, OutOfRange};
use crate::store::embedded::record::Slice;

/// A subject's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Counter {
    /// When it began, in milliseconds.
    pub start: i64,
    pub amount: i64,
}

impl Holdings {
    /// The counter of a subject, if it lives at `now`. O(1).
    pub(in super::super) fn counter(&self, subject: &str, now: i64) -> Option<Counter> {
        let slice = self.record(subject)?.1.slices.first()?;
        let life = self.rule.life?;
        let lives = slice.slot <= now && now < slice.slot + life;
        lives.then_some(Counter { start: slice.slot, amount: slice.amount })
    }

    /// Adds to a subject's counter, or begins another; answers the counter if that changed it. O(1).
    ///
    /// A retraction whose counter has ended finds nothing to undo.
    pub(in super::super) fn count_from_first(
        &mut self,
        subject: &str,
        amount: i64,
        retracts: bool,
        (at, now): (i64, i64),
        bound: i64,
    ) -> Result<Option<Counter>, OutOfRange> {
        let Some(life) = self.rule.life else { return Ok(None) };
        let next = match self.counter(subject, now).filter(|counter| at < counter.start + life) {
            Some(counter) => Counter { amount: counter.amount.checked_add(amount).ok_or(OutOfRange)?, ..counter },
            None if retracts => return Ok(None),
            None => Counter { start: at, amount },
        };
        if next.amount.unsigned_abs() > bound.unsigned_abs() {
            return Err(OutOfRange);
        }
        // No memory holds the four billion subjects at which ids run out.
        let id = self.slab.intern(subject).ok_or(OutOfRange)?;
        self.set_counter(id, next);
        self.enqueue(id);
        Ok(Some(next))
    }

    /// Makes this the subject's one counter.
    pub(super) fn set_counter(&mut self, id: u32, counter: Counter) {
        if let Some(record) = self.slab.get_mut(id) {
            record.slices.clear();
            record.slices.reserve_exact(1);
            record.slices.push(Slice { slot: counter.start, amount: counter.amount, place: 0 });
        }
    }
}
