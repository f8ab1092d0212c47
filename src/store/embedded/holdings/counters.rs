//! `from_first` boards: one counter per subject, which begins with an event and ends a fixed time later.
//!
//! The counter is stored as the record's only cell, and its start as the record's sort key.

use super::{Holdings, OutOfRange};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::record::{Counter, PackedCell};

impl Holdings {
    /// Returns the counter of a subject, if it has not ended at `now`. O(1).
    pub(in super::super) fn counter(&self, name: HashedName, now: i64) -> Option<Counter> {
        self.counter_at(self.subjects.id(name)?, now)
    }

    fn counter_at(&self, id: u32, now: i64) -> Option<Counter> {
        let duration = self.traits.counter_duration?;
        let counter = self.counter_of(id)?;
        (counter.start <= now && now < counter.start + duration).then_some(counter)
    }

    /// Returns the counter of a subject, even if it has ended.
    pub(super) fn counter_of(&self, id: u32) -> Option<Counter> {
        let record = self.subjects.get(id).filter(|record| record.len() > 0)?;
        Some(Counter { start: record.sort_key, amount: record.newest.amount })
    }

    /// Adds to a subject's counter, or begins a new one. Returns the counter if that changed it. O(1).
    ///
    /// A retraction whose counter has ended changes nothing.
    pub(in super::super) fn count_from_first(
        &mut self,
        name: HashedName,
        amount: i64,
        retracts: bool,
        (at, now): (i64, i64),
        bound: i64,
    ) -> Result<Option<Counter>, OutOfRange> {
        let Some(duration) = self.traits.counter_duration else { return Ok(None) };
        let known = self.subjects.id(name);
        let running = known.and_then(|id| self.counter_at(id, now));
        let next = match running.filter(|counter| at < counter.start + duration) {
            Some(counter) => Counter { amount: counter.amount.checked_add(amount).ok_or(OutOfRange)?, ..counter },
            None if retracts => return Ok(None),
            None => Counter { start: at, amount },
        };
        if next.amount.unsigned_abs() > bound.unsigned_abs() {
            return Err(OutOfRange);
        }
        let id = self.id_or_add(known, name)?;
        self.set_counter(id, next);
        Ok(Some(next))
    }

    /// Replaces the subject's counter.
    pub(super) fn set_counter(&mut self, id: u32, counter: Counter) {
        if let Some(record) = self.subjects.get_mut(id) {
            record.sort_key = counter.start;
            record.newest = PackedCell { amount: counter.amount, count: 1, ..PackedCell::default() };
        }
    }
}
