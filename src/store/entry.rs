//! An update to apply: where and how it changes the tracks of a board.

use std::borrow::Cow;

use super::batch::{Increment, Outcome, Rejection};
use crate::board::{Amount, Change, EXACT_MAX, EventId, NotCounted, Subject, Timestamp};

/// The largest number of editions that a board has.
pub const MAX_EDITIONS: usize = 2;

/// For each edition, the reason why it does not count an item, if it does not.
pub type Missed = [Option<NotCounted>; MAX_EDITIONS];

/// The slot that an update belongs to, in each track of a board.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Slots {
    /// The start of the slot in the only track that the update changes, the first. No allocation, so that a board with
    /// one track costs none for an item.
    First(Timestamp),
    /// The start of the slot in each track, or `None` where the slot has left the window. At least one is a slot,
    /// except for a retraction with an id of an event that has left all windows: it is a duplicate or changes nothing;
    /// and for an item with an id that is not in the period that it names: it is a duplicate or rejected.
    Each(Box<[Option<Timestamp>]>),
}

impl FromIterator<Option<Timestamp>> for Slots {
    fn from_iter<I: IntoIterator<Item = Option<Timestamp>>>(slots: I) -> Self {
        let mut slots = slots.into_iter();
        match (slots.next(), slots.next()) {
            (None, _) | (Some(None), None) => Slots::none(),
            (Some(Some(only)), None) => Slots::First(only),
            (Some(first), Some(second)) => Slots::Each([first, second].into_iter().chain(slots).collect()),
        }
    }
}

impl Slots {
    pub(super) fn none() -> Self {
        Slots::Each(Box::default())
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Slots::Each(slots) if slots.is_empty())
    }

    /// Returns the slot in a track, the main one being 0, or `None` if the update does not change that track.
    pub fn of(&self, track: usize) -> Option<Timestamp> {
        match self {
            Slots::First(slot) => (track == 0).then_some(*slot),
            Slots::Each(slots) => slots.get(track).copied().flatten(),
        }
    }

    /// Returns the slot in the first track that the update changes.
    pub fn first(&self) -> Timestamp {
        match self {
            Slots::First(slot) => *slot,
            Slots::Each(slots) => slots.iter().copied().find_map(|slot| slot).unwrap_or(Timestamp::EPOCH),
        }
    }
}

/// The sum of the amounts of one or more items, with retractions subtracted. Exact up to ±[`EXACT_MAX`]. A greater
/// magnitude means that the update is refused and that its items must be tried one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    pub amount: Amount,
    /// The smallest and the largest sum of the first items, from none to all of them.
    pub range: (Amount, Amount),
}

/// One update to apply: a change of one subject in one slot, for one or more items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its slot in each track of the board. An edition that does not count it has none.
    pub slots: Slots,
    /// The time when the event happened, at most the store's now. COUNT_DISTINCT stores it as the time a value was last
    /// seen.
    pub at: Timestamp,
    pub subject: &'a Subject,
    /// For each edition that adds amounts up, and counts the entry, the sum of the items.
    pub sums: [Option<Sum>; MAX_EDITIONS],
    /// For each edition that does not count the entry, the reason.
    pub missed: [Option<NotCounted>; MAX_EDITIONS],
    /// The item itself, unless every edition that counts it adds its amount up, and the current one does not find it
    /// too late: samples, and all changes of other metrics.
    pub sent: Option<&'a Increment>,
    /// The item's id. Present if the entry is a single item with an id.
    pub id: Option<&'a EventId>,
    /// The indexes of the items that the entry stands for.
    pub items: Vec<usize>,
}

impl Sum {
    pub(super) fn of(amount: Amount) -> Self {
        Self { amount, range: (amount.min(Amount(0)), amount.max(Amount(0))) }
    }

    /// Adds the amount of one more item.
    fn add(&mut self, amount: Amount) {
        // A sum that is saturated here is beyond every bound, and so is its margin.
        self.amount = Amount(self.amount.0.saturating_add(amount.0));
        self.range = (self.range.0.min(self.amount), self.range.1.max(self.amount));
    }

    /// Returns how far what a slot holds must stay from the bound after the update, so that it was never beyond the
    /// bound after one of the items: 0 if all amounts have one sign.
    ///
    /// For simplicity it is the same on both sides, so that a sum may be refused whose items are all in range.
    pub fn margin(self) -> i64 {
        let (Amount(low), Amount(high), Amount(sum)) = (self.range.0, self.range.1, self.amount);
        if low == sum.min(0) && high == sum.max(0) { 0 } else { high.saturating_sub(sum).max(sum.saturating_sub(low)) }
    }
}

impl Entry<'_> {
    /// Adds one more item.
    pub(super) fn add(&mut self, item: usize, sums: &[Option<Sum>; MAX_EDITIONS]) {
        self.items.push(item);
        for (own, more) in self.sums.iter_mut().zip(sums) {
            if let (Some(own), Some(more)) = (own, more) {
                own.add(more.amount);
            }
        }
    }

    /// Returns whether every edition adds the same sum, apart from one that does not take the items.
    pub fn adds_alike(&self) -> bool {
        let takes_or_not = |missed: &NotCounted| {
            matches!(missed, NotCounted::Filtered | NotCounted::NotAccepted | NotCounted::OtherPeriod)
        };
        self.sent.is_none()
            && self.missed.iter().flatten().all(takes_or_not)
            && self.first_sum().is_some_and(|first| self.sums.iter().flatten().all(|sum| *sum == first))
    }

    /// Returns the sum in the first edition that has one.
    pub fn first_sum(&self) -> Option<Sum> {
        self.sums.iter().flatten().next().copied()
    }

    /// Returns the sum in an edition, 0 if it has none.
    pub fn amount(&self, edition: usize) -> Amount {
        self.sums[edition].map_or(Amount(0), |sum| sum.amount)
    }

    /// Returns the [margin](Sum::margin) of the sum in an edition.
    pub fn margin(&self, edition: usize) -> i64 {
        self.sums[edition].map_or(0, Sum::margin)
    }

    /// Returns the change in an edition, and whether it is to be reversed. Of amounts that are added up it is their
    /// sum, with retractions subtracted already. `None` if the edition does not count the entry.
    pub fn change(&self, edition: usize) -> Option<(Cow<'_, Change>, bool)> {
        if let Some(sum) = self.sums[edition] {
            return Some((Cow::Owned(Change::Amount(sum.amount)), false));
        }
        let sent = self.sent.filter(|_| self.missed[edition].is_none())?;
        Some((Cow::Borrowed(sent.change_in(edition)), sent.retract))
    }

    /// Returns the number of the edition whose count decides the outcome of its items: `answered`, unless they are of
    /// another period.
    pub fn decisive(&self, answered: usize) -> usize {
        match self.missed[answered] {
            Some(NotCounted::OtherPeriod) => MAX_EDITIONS - 1 - answered,
            _ => answered,
        }
    }

    /// Returns whether it removes a value of a subject.
    pub fn forgets(&self) -> bool {
        self.sent.is_some_and(|sent| sent.forgotten().is_some())
    }

    /// Returns whether it replaces what a subject has in a slot.
    pub fn is_sample(&self) -> bool {
        let is_sample =
            |edition| matches!(self.change(edition), Some((change, _)) if matches!(*change, Change::Set { .. }));
        self.sent.is_some() && (0..MAX_EDITIONS).any(is_sample)
    }

    /// Returns whether a sum is beyond the exact range of every store, so that its items must be tried one by one.
    pub fn is_beyond_exact(&self) -> bool {
        let is_beyond = |amount: Amount| amount.0.unsigned_abs() > EXACT_MAX as u64;
        // A single amount beyond it may hide in a sum that is not.
        self.sums.iter().flatten().any(|sum| is_beyond(sum.range.0) || is_beyond(sum.range.1))
    }

    /// Returns the outcome of its items if it is done: in the current edition it may be too late although the other
    /// one counts it.
    pub fn outcome(&self) -> Outcome {
        match (self.missed[0], self.sent) {
            (Some(NotCounted::OtherPeriod), _) if self.slots.is_none() => Outcome::Rejected(Rejection::WrongPeriod),
            (Some(NotCounted::TooLate), Some(sent)) if sent.retract => Outcome::Counted { score: None },
            (Some(NotCounted::TooLate), _) => Outcome::Rejected(Rejection::TooLate),
            _ => Outcome::Counted { score: None },
        }
    }
}
