//! The input and the result of a write, and the order in which its items take effect.
//!
//! Amounts of the same subject and slot whose items carry no id are added up first and applied as one update; so a
//! thousand likes of one post cost one update. The outcome of each item is as if the items had arrived one by one: a
//! sum must stay away from the bound by a [margin](Entry::margin), so that each of the intermediate sums is in range
//! too. A sum that does not is refused, and its items are tried one by one in their order. [`Plan`] implements this
//! rule. All stores share it, so that all return the same results.
//!
//! On a board with several tracks, items of one subject that differ in one of their slots are different updates, in the
//! order of the first item of each. They may share a slot of a long window. At the bound of that slot, other items may
//! be refused than if they had arrived one by one.

use std::collections::HashMap;

use crate::board::{
    Amount, Board, Change, EXACT_MAX, EventId, Frame, Kind, Mode, Placement, Subject, Timestamp, Track, Value, Window,
};

/// A change for one subject of one board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    pub subject: Subject,
    /// A change that the board's metric accepts: see [`Edition::takes`](crate::board::Edition::takes).
    pub change: Change,
    /// Whether this reverses an earlier increment, the one with the same change, subject and time. MIN, MAX, LAST
    /// and the approximate metric cannot reverse increments; callers reject such retractions before.
    pub retract: bool,
    /// The time when the event happened. If absent, the store's time on arrival. Required for a retraction and for a
    /// sample, except over all time.
    pub at: Option<Timestamp>,
    /// The event's id: the increment counts once per (board, subject, id) within the dedupe horizon.
    pub id: Option<EventId>,
}

impl Increment {
    /// Returns the signed effect of an amount of COUNT or SUM: a retraction subtracts it.
    pub fn signed(&self, amount: Amount) -> Amount {
        // Only the smallest `i64` has no opposite. The saturated value is out of range just the same.
        Amount(if self.retract { amount.0.saturating_neg() } else { amount.0 })
    }
}

/// The increments of one request to one board.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub increments: Vec<Increment>,
    /// Whether to return each subject's new score: the score of the main track after the item was counted. For a large
    /// batch, and for sketches, it may contain later writes.
    pub return_scores: bool,
}

/// The reason why one item was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The item's slot has left the window.
    TooLate,
    /// The item's time is ahead of the store's clock by more than the allowed skew.
    TooEarly,
    /// The subject would exceed [`Track::slot_bound`] in this slot.
    OutOfRange,
    /// The item needs memory that the store does not have: see
    /// [`StoreError::MemoryFull`](super::StoreError::MemoryFull).
    MemoryFull,
    /// The subject would be new on a ranked board that has as many as it may have.
    TooManySubjects,
    /// A sample, while contents are being imported into the board.
    ImportOpen,
}

/// The outcome of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Counted. If asked for, with the subject's score: see [`Batch::return_scores`].
    ///
    /// Even if asked for, the score is `None` where a subject without data has no value: see [`Kind::absent`].
    Counted {
        score: Option<Value>,
    },
    /// The id was counted before. If asked for, with the current score.
    Duplicate {
        score: Option<Value>,
    },
    Rejected(Rejection),
}

/// The result of a [`Batch`].
#[derive(Clone, Debug)]
pub struct Added {
    /// The frame of the step that applied the last item.
    pub frame: Frame,
    /// The outcome of each item, in the order given.
    pub outcomes: Vec<Outcome>,
}

/// The slot that an update belongs to, in each track of a board.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Slots {
    /// The start of the slot in the only track that the update changes, the first. No allocation, so that a board with
    /// one track costs none for an item.
    First(Timestamp),
    /// The start of the slot in each track, or `None` where the slot has left the window. At least one is a slot,
    /// except for a retraction with an id of an event that has left all windows: it is a duplicate or changes nothing.
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
    fn none() -> Self {
        Slots::Each(Box::default())
    }

    fn is_none(&self) -> bool {
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

/// One update to apply: a change of one subject in one slot, for one or more items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its slot in each track of the board.
    pub slots: Slots,
    /// The time when the event happened, at most the store's now. COUNT_DISTINCT stores it as the time a value was last
    /// seen.
    pub at: Timestamp,
    pub subject: &'a Subject,
    /// For COUNT and SUM: the sum of the items, with retractions subtracted. Exact up to ±[`EXACT_MAX`]. A greater
    /// magnitude means that the update is refused and that its items must be tried one by one. 0 if
    /// [`sent`](Self::sent) holds the change.
    pub amount: Amount,
    /// The smallest and the largest sum of the first items, from none to all of them.
    pub range: (Amount, Amount),
    /// The item itself, for changes that are not added up: samples, and all changes of other metrics.
    pub sent: Option<&'a Increment>,
    /// The item's id. Present if the entry is a single item with an id.
    pub id: Option<&'a EventId>,
    /// The indexes of the items that the entry stands for.
    pub items: Vec<usize>,
}

/// Increments, placed in their slots and added up.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    /// The updates, ordered by the first item of each. They must be applied in this order.
    pub entries: Vec<Entry<'a>>,
    /// The indexes of items that belong to no slot of the window, with the reasons.
    pub rejected: Vec<(usize, Rejection)>,
    /// The indexes of retractions without an id of events that have left the window. They count as accepted, and there
    /// is nothing to do.
    pub expired_retractions: Vec<usize>,
}

impl<'a> Plan<'a> {
    /// Places the increments by the clock `now` and adds up amounts where possible, unless each increment must be
    /// applied `singly`. `windows` are those of the board's tracks at that time. O(items x tracks).
    pub fn new(
        board: &Board,
        windows: &[Window],
        now: Timestamp,
        max_skew: i64,
        singly: bool,
        increments: impl IntoIterator<Item = (usize, &'a Increment)>,
    ) -> Self {
        let mut plan = Plan::default();
        let increments = increments.into_iter();
        // A single increment, the most frequent request, has nothing to be added up with.
        let singly = singly || increments.size_hint().1 == Some(1);
        let placing = Placing { tracks: board.tracks(), windows, now, max_skew };
        // The entries to which amounts may be added.
        let mut open: HashMap<(Slots, &str), usize, rapidhash::fast::RandomState> = HashMap::default();
        for (index, increment) in increments {
            let slots = match placing.place(increment) {
                Ok(slots) => slots,
                // Whether the id was counted before is found out in the order of the items.
                Err(Rejection::TooLate) if increment.retract && increment.id.is_some() => Slots::none(),
                Err(Rejection::TooLate) if increment.retract => {
                    plan.expired_retractions.push(index);
                    continue;
                }
                Err(rejection) => {
                    plan.rejected.push((index, rejection));
                    continue;
                }
            };
            let (amount, sent) = match &increment.change {
                Change::Amount(amount) if board.kind() == Kind::Sum && !slots.is_none() => {
                    (increment.signed(*amount), None)
                }
                _ => (Amount(0), Some(increment)),
            };
            let adds_up = sent.is_none() && board.definition().mode == Mode::Sliding;
            if increment.id.is_none() && !singly && adds_up {
                match open.entry((slots.clone(), increment.subject.as_str())) {
                    std::collections::hash_map::Entry::Occupied(found) => {
                        plan.entries[*found.get()].add(index, amount);
                        continue;
                    }
                    std::collections::hash_map::Entry::Vacant(place) => {
                        place.insert(plan.entries.len());
                    }
                }
            } else if !open.is_empty() {
                // Amounts after this item must be added after it, so they need a new entry.
                open.remove(&(slots.clone(), increment.subject.as_str()));
            }
            plan.entries.push(Entry {
                slots,
                at: increment.at.map_or(now, |at| at.min(now)),
                subject: &increment.subject,
                amount,
                range: (amount.min(Amount(0)), amount.max(Amount(0))),
                sent,
                id: increment.id.as_ref(),
                items: vec![index],
            });
        }
        plan
    }
}

/// The tracks of a board at one time, in which items are placed.
struct Placing<'a> {
    tracks: &'a [Track],
    /// The window of each track.
    windows: &'a [Window],
    now: Timestamp,
    max_skew: i64,
}

impl Placing<'_> {
    /// Returns the slots of an increment, or the reason why it is not accepted.
    fn place(&self, increment: &Increment) -> Result<Slots, Rejection> {
        let placements = self.tracks.iter().zip(self.windows).map(|(track, window)| match increment.change {
            Change::Set { .. } => track.place_sample(increment.at.unwrap_or(self.now), window),
            _ => track.place(increment.at, self.now, window, self.max_skew),
        });
        let slots = placements.map(|placement| match placement {
            Placement::Slot(slot) => Ok(Some(slot)),
            Placement::TooLate => Ok(None),
            // The skew is the same for all tracks.
            Placement::TooEarly => Err(Rejection::TooEarly),
        });
        let slots: Slots = slots.collect::<Result<_, _>>()?;
        // A sample replaces a slot, so it needs one wherever slots are kept.
        let replaces = matches!(increment.change, Change::Set { .. });
        let mut each = (0..self.tracks.len()).map(|track| slots.of(track).is_some());
        let is_placed = if replaces { each.all(|has_slot| has_slot) } else { each.any(|has_slot| has_slot) };
        if is_placed { Ok(slots) } else { Err(Rejection::TooLate) }
    }
}

impl Entry<'_> {
    /// Adds the amount of one more item.
    fn add(&mut self, item: usize, amount: Amount) {
        self.items.push(item);
        // A sum that is saturated here is beyond every bound, and so is its margin.
        self.amount = Amount(self.amount.0.saturating_add(amount.0));
        self.range = (self.range.0.min(self.amount), self.range.1.max(self.amount));
    }

    /// Returns how far what a slot holds must stay from the bound after the update, so that it was never beyond the
    /// bound after one of the items: 0 if all amounts have one sign.
    ///
    /// For simplicity it is the same on both sides, so that a sum may be refused whose items are all in range.
    pub fn margin(&self) -> i64 {
        let (Amount(low), Amount(high), Amount(sum)) = (self.range.0, self.range.1, self.amount);
        if low == sum.min(0) && high == sum.max(0) { 0 } else { high.saturating_sub(sum).max(sum.saturating_sub(low)) }
    }

    /// Returns whether the sum is beyond the exact range of every store, so that its items must be tried one by one.
    pub fn is_beyond_exact(&self) -> bool {
        self.amount.0.unsigned_abs() > EXACT_MAX as u64
    }
}

#[cfg(test)]
mod tests;
