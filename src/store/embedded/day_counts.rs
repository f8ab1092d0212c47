//! The counters of a subject of a board with a cap: what each person has in each day.
//!
//! They are in the order of days and persons, which no item changes. So a walk in portions misses none.

use std::collections::BTreeSet;

use super::few_or_many::{FewOrMany, tree_bytes};
use super::owned_state::SubjectData;
use crate::board::{DayCount, Timestamp};
use crate::store::sizing::{Content, allocated};

/// The counters of a subject.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// By the start of the day, and by person, the count.
    pub(super) days: FewOrMany<i64, FewOrMany<Box<str>, i64>>,
    len: usize,
    /// The bytes of the persons, and those of the entries of all days.
    texts: usize,
    entries: usize,
    /// If their number is limited: the counters in the order in which they are dropped, by the time that tells the count.
    order: Option<BTreeSet<(i64, Box<str>)>>,
    /// The newest time of a counter that was dropped because there were too many.
    pub(super) dropped: Option<i64>,
}

/// Returns the bytes of counters: of their entries, and of their persons with texts of this length.
pub(super) fn estimated_bytes(Content { slots, values, is_limited, .. }: Content, length: usize) -> usize {
    let persons = values.div_ceil(slots.min(values));
    let texts = values * allocated(length);
    let order = if is_limited { texts + tree_bytes(values, size_of::<(i64, Box<str>)>()) } else { 0 };
    let of_days = FewOrMany::<i64, FewOrMany<Box<str>, i64>>::estimated_bytes(slots.min(values));
    of_days + slots.min(values) * FewOrMany::<Box<str>, i64>::estimated_bytes(persons) + texts + order
}

impl Counters {
    pub(super) fn get(&self, day: i64, person: &str) -> Option<i64> {
        self.days.get(&day)?.get(person).copied()
    }

    /// Changes the counters of a day, and counts the memory of its entries.
    fn change_day<T>(&mut self, day: i64, change: impl FnOnce(&mut FewOrMany<Box<str>, i64>) -> T) -> T {
        if self.days.get(&day).is_none() {
            self.days.insert(day, FewOrMany::default());
        }
        let mut none = FewOrMany::default();
        let of_day = self.days.get_mut(&day).unwrap_or(&mut none);
        let before = of_day.memory_bytes();
        let changed = change(of_day);
        self.entries = self.entries + of_day.memory_bytes() - before;
        if of_day.len() == 0 {
            self.days.remove(&day);
        }
        changed
    }

    /// Sets a count. Returns the one before.
    pub(super) fn set(&mut self, day: i64, person: &str, count: i64) -> Option<i64> {
        let before = self.change_day(day, |of_day| {
            let held = of_day.get_mut(person).map(|held| std::mem::replace(held, count));
            if held.is_none() {
                of_day.insert(person.into(), count);
            }
            held
        });
        if before.is_none() {
            self.len += 1;
            self.texts += allocated(person.len());
        }
        if let Some(order) = &mut self.order {
            if let Some(before) = before {
                order.remove(&(day + before, person.into()));
            }
            order.insert((day + count, person.into()));
        }
        before
    }

    pub(super) fn remove(&mut self, day: i64, person: &str) -> Option<i64> {
        self.days.get(&day)?;
        let count = self.change_day(day, |of_day| of_day.remove(person))?;
        self.removed(day, person, count);
        Some(count)
    }

    /// Notes that a counter is no longer in its day.
    fn removed(&mut self, day: i64, person: &str, count: i64) {
        if let Some(order) = &mut self.order {
            order.remove(&(day + count, person.into()));
        }
        self.len -= 1;
        self.texts -= allocated(person.len());
    }

    /// Returns whether anything is from before this time. The times of a day are after its start.
    pub(super) fn has_any_before(&self, floor: i64) -> bool {
        self.oldest_day().is_some_and(|day| day < floor) || self.dropped.is_some_and(|at| at < floor)
    }

    fn oldest_day(&self) -> Option<i64> {
        self.days.all().next().map(|(day, _)| *day)
    }

    /// Removes up to `most` counters of days before this time. Returns how many.
    pub(super) fn remove_before(&mut self, floor: i64, most: usize) -> usize {
        let mut removed = 0;
        while removed < most
            && let Some(day) = self.oldest_day().filter(|day| *day < floor)
        {
            if let Some((person, count)) = self.change_day(day, FewOrMany::pop_first) {
                self.removed(day, &person, count);
                removed += 1;
            }
        }
        self.dropped = self.dropped.filter(|at| *at >= floor);
        removed
    }

    /// Returns the number of counters of days from this time on. O(days) if any is older.
    pub(super) fn count_from(&self, floor: i64) -> usize {
        match self.has_any_before(floor) {
            true => self.days.from(&floor).map(|(_, of_day)| of_day.len()).sum(),
            false => self.len,
        }
    }

    /// Keeps the order in which counters are dropped, from the first counter on.
    pub(super) fn keep_order(&mut self) {
        self.order.get_or_insert_default();
    }

    /// Returns the counter with the earliest time, from this time on; of several, the one with the smallest text. O(log
    /// counters).
    pub(super) fn oldest(&self, floor: i64) -> Option<DayCount<'_>> {
        let (day, _) = self.days.from(&floor).next()?;
        let (at, person) = self.order.as_ref()?.range((day - DayCount::MOST, Box::default())..).next()?;
        Some(DayCount { day: Timestamp::from_millis(*day), person, count: at - day })
    }

    /// Returns the counters from this day and person on, in the order of days and persons. O(log counters) to start.
    pub(super) fn from<'a>(&'a self, day: i64, person: &'a str) -> impl Iterator<Item = DayCount<'a>> {
        self.days.from(&day).flat_map(move |(start, of_day)| {
            let first = if *start == day { person } else { "" };
            let counts = of_day.from(first);
            counts.map(|(person, count)| DayCount { day: Timestamp::from_millis(*start), person, count: *count })
        })
    }
}

impl SubjectData for Counters {
    fn len(&self) -> usize {
        self.len
    }

    fn is_empty(&self) -> bool {
        self.len == 0 && self.dropped.is_none()
    }

    fn memory_bytes(&self) -> usize {
        let order = self.order.as_ref().map(|order| tree_bytes(order.len(), size_of::<(i64, Box<str>)>()) + self.texts);
        let own = allocated(size_of::<Self>()) + self.days.memory_bytes() + self.entries + self.texts;
        own + order.unwrap_or_default()
    }
}
