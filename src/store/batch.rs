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
//!
//! On a board with two editions each of them counts an item or does not, by itself. Items are added up if they are in
//! all tracks of both, and a sum that one of the editions refuses is refused by both, so that its items are tried one
//! by one.

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::{Entry, MAX_EDITIONS, Missed, Slots, Sum};
use crate::board::{
    Amount, Board, Change, Counted, Edition, Event, EventId, Frame, Mode, NotCounted, Placement, Subject, Timestamp,
    Track, Value, Window,
};

/// A change for one subject of one board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    pub subject: Subject,
    /// A change that the current edition of the board accepts, see [`Edition::takes`], or [`Change::Not`] if the item
    /// is for the other one only.
    pub change: Change,
    /// On a board with two editions, the change in the other one. Without one it is [`NotCounted::Unknown`] there.
    pub other: Option<Box<Change>>,
    /// Whether this reverses an earlier increment, the one with the same change, subject and time. MIN, MAX, LAST
    /// and the approximate metric cannot reverse increments; callers reject such retractions before.
    pub retract: bool,
    /// The time when the event happened. If absent, the store's time on arrival. Required for a retraction and for a
    /// sample, except over all time.
    pub at: Option<Timestamp>,
    /// The event's id: the increment counts once per (board, subject, id) within the dedupe horizon.
    pub id: Option<EventId>,
    /// The start of the period in which the item must be to count, on a board with a season.
    pub period: Option<Timestamp>,
    /// The event that causes the change, if one does: what it is in an edition that the caller did not know.
    pub event: Option<Arc<Event>>,
}

impl Increment {
    /// Returns the signed effect of an amount of COUNT or SUM: a retraction subtracts it.
    pub fn signed(&self, amount: Amount) -> Amount {
        // Only the smallest `i64` has no opposite. The saturated value is out of range just the same.
        Amount(if self.retract { amount.0.saturating_neg() } else { amount.0 })
    }

    /// Returns the removal of a value of a subject from each edition of a board that stores values.
    pub fn forgetting(board: &Board, subject: Subject, value: Counted) -> Self {
        let change = |edition: &Edition| match edition.kind().remembers_values() {
            true => Change::Forget(value.clone()),
            false => Change::Not(NotCounted::OtherPeriod),
        };
        let other = board.editions().get(1).map(|other| Box::new(change(other)));
        let change = change(board.edition());
        Self { subject, change, other, retract: false, at: None, id: None, period: None, event: None }
    }

    /// Returns the value that is to be forgotten, if this is about one.
    pub fn forgotten(&self) -> Option<&Counted> {
        [Some(&self.change), self.other.as_deref()].into_iter().flatten().find_map(|change| match change {
            Change::Forget(value) => Some(value),
            _ => None,
        })
    }

    /// Returns the change in an edition of the board, by its number.
    pub fn change_in(&self, edition: usize) -> &Change {
        match edition {
            0 => &self.change,
            _ => self.other.as_deref().unwrap_or(&Change::Not(NotCounted::Unknown)),
        }
    }

    /// Returns the same item for a board whose editions have changed since it was made. In an edition that the caller
    /// did not know it is what the [event](Self::event) is there or, of an item that is no event, what
    /// [follows](Edition::translated) from its change in the edition that was the current one.
    #[must_use]
    pub fn carried(&self, from: &Board, to: &Board) -> Self {
        if let Some(value) = self.forgotten() {
            return Self::forgetting(to, self.subject.clone(), value.clone());
        }
        let change = |edition: &Edition| {
            let same = |known: &&Edition| {
                let is_taken = match self.change {
                    Change::Set { .. } => edition.has_same_samples_as(known),
                    _ => !self.retract || edition.takes_retractions(),
                };
                edition.counts_same_items_as(known) && is_taken
            };
            let known = || from.editions().iter().enumerate();
            let found =
                known().find(|(_, known)| known.id() == edition.id()).or_else(|| known().find(|(_, k)| same(k)));
            match (found, &self.event) {
                (Some((number, _)), _) => self.change_in(number).clone(),
                (None, Some(event)) => edition.change_of(event),
                (None, None) => edition.translated(&self.change, from.edition(), self.retract),
            }
        };
        let other = to.editions().get(1).map(|edition| Box::new(change(edition)));
        Self { change: change(to.edition()), other, ..self.clone() }
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
    /// The key has no ranking, and the board has as many as it may have: see
    /// [`Definition::most_keys`](crate::board::Definition::most_keys).
    TooManyKeys,
    /// The subject is frozen: see [`Moderation::is_frozen`](crate::board::Moderation::is_frozen).
    SubjectFrozen,
    /// A sample, or a value to forget, while contents are being imported into the board.
    ImportOpen,
    /// The item is not in the [period](Increment::period) that it names, or that period is sealed.
    WrongPeriod,
}

/// The outcome of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Counted. If asked for, with the subject's score: see [`Batch::return_scores`].
    ///
    /// Even if asked for, the score is `None` where a subject without data has no value: see
    /// [`absent`](crate::board::Kind::absent).
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
    /// The outcome of each item in the current edition of the board that the caller named, in the order given. Of an
    /// item that is for the other edition only it is [`Outcome::Counted`], whatever that one did. Of an item that met
    /// exchanged editions it is the outcome in either of them.
    pub outcomes: Vec<Outcome>,
    /// The board as the store has it, if its editions have changed since the caller got it.
    pub newer: Option<Arc<Board>>,
}

/// Increments, placed in their slots and added up.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    /// The updates, ordered by the first item of each. They must be applied in this order.
    pub entries: Vec<Entry<'a>>,
    /// The indexes of items that belong to no slot of the window, with the reasons.
    pub rejected: Vec<(usize, Rejection)>,
    /// The indexes of items that count as accepted, and for which there is nothing to do: retractions without an id of
    /// events that have left the window, and items for another edition that does not count them either.
    pub without_effect: Vec<usize>,
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
        let most = increments.size_hint().1;
        // A single increment, the most frequent request, has nothing to be added up with.
        let singly = singly || most == Some(1);
        let placing = Placing { editions: board.editions(), windows, now, max_skew };
        // The entries to which amounts may be added.
        let mut open: HashMap<(Slots, Missed, &str), usize, rapidhash::fast::RandomState> = HashMap::default();
        // The bound of second keys is checked for each item.
        let takes_sums = board
            .editions()
            .iter()
            .all(|edition| edition.definition().mode == Mode::Sliding && !edition.scale().has_keys());
        for (index, increment) in increments {
            let (slots, missed) = match placing.place(increment) {
                Ok(placed) => placed,
                // Whether the id was counted before is found out in the order of the items.
                Err(Rejection::TooLate) if increment.retract && increment.id.is_some() => {
                    (Slots::none(), [Some(NotCounted::TooLate); MAX_EDITIONS])
                }
                Err(Rejection::WrongPeriod) if increment.id.is_some() => {
                    (Slots::none(), [Some(NotCounted::OtherPeriod); MAX_EDITIONS])
                }
                Err(Rejection::TooLate) if increment.retract || matches!(increment.change, Change::Not(_)) => {
                    plan.without_effect.push(index);
                    continue;
                }
                Err(rejection) => {
                    plan.rejected.push((index, rejection));
                    continue;
                }
            };
            let sums = sums(board, increment, &missed);
            let is_sum = |edition: usize| missed[edition].is_some() || sums[edition].is_some();
            let are_sums = !slots.is_none() && (0..board.editions().len()).all(is_sum);
            // What becomes of an item that is too late in the current edition depends on whether it is a retraction.
            let are_sums = are_sums && missed[0] != Some(NotCounted::TooLate);
            let sent = if are_sums { None } else { Some(increment) };
            if increment.id.is_none() && !singly && are_sums && takes_sums {
                if open.capacity() == 0 {
                    // Most items of a batch are for subjects of their own. A table that grows hashes each of them again.
                    open.reserve(most.unwrap_or_default());
                }
                match open.entry((slots.clone(), missed, increment.subject.as_str())) {
                    std::collections::hash_map::Entry::Occupied(found) => {
                        plan.entries[*found.get()].add(index, &sums);
                        continue;
                    }
                    std::collections::hash_map::Entry::Vacant(place) => {
                        place.insert(plan.entries.len());
                    }
                }
            } else if !open.is_empty() {
                // Amounts after this item must be added after it, so they need a new entry.
                open.remove(&(slots.clone(), missed, increment.subject.as_str()));
            }
            plan.entries.push(Entry {
                slots,
                at: increment.at.map_or(now, |at| at.min(now)),
                subject: &increment.subject,
                sums,
                missed,
                sent,
                id: increment.id.as_ref(),
                items: vec![index],
            });
        }
        plan
    }
}

/// Returns the amount of an item as a sum, for each edition that counts it and adds amounts up.
fn sums(board: &Board, increment: &Increment, missed: &Missed) -> [Option<Sum>; MAX_EDITIONS] {
    let mut sums = [None; MAX_EDITIONS];
    for (number, edition) in board.editions().iter().enumerate() {
        if let (Change::Amount(amount), true, None) =
            (increment.change_in(number), edition.adds_amounts_up(), missed[number])
        {
            sums[number] = Some(Sum::of(increment.signed(*amount)));
        }
    }
    sums
}

/// The tracks of a board at one time, in which items are placed.
struct Placing<'a> {
    editions: &'a [Edition],
    /// The window of each track.
    windows: &'a [Window],
    now: Timestamp,
    max_skew: i64,
}

impl Placing<'_> {
    /// Returns the slots of an increment and the editions that do not count it, or the reason why none of them does.
    fn place(&self, increment: &Increment) -> Result<(Slots, Missed), Rejection> {
        let mut missed = [None; MAX_EDITIONS];
        let slots = match self.editions {
            [only] => match self.place_in(only, &increment.change, increment) {
                Err(Rejection::WrongPeriod) if increment.period.is_none() => return Err(Rejection::TooLate),
                placed => placed?,
            },
            editions => {
                let mut all = Vec::with_capacity(self.windows.len());
                for (number, edition) in editions.iter().enumerate() {
                    let reason = match increment.change_in(number) {
                        Change::Not(reason) => Some(*reason),
                        change => match self.place_in(edition, change, increment) {
                            Ok(slots) => {
                                all.extend((0..edition.tracks().len()).map(|track| slots.of(track)));
                                None
                            }
                            Err(Rejection::TooLate) => Some(NotCounted::TooLate),
                            Err(Rejection::WrongPeriod) => Some(NotCounted::OtherPeriod),
                            Err(rejection) => return Err(rejection),
                        },
                    };
                    missed[number] = reason;
                    all.resize(edition.numbers().end, None);
                }
                Slots::Each(all.into())
            }
        };
        if missed[..self.editions.len()].iter().all(Option::is_some) {
            let is_wrong = increment.period.is_some() && missed.contains(&Some(NotCounted::OtherPeriod));
            Err(if is_wrong { Rejection::WrongPeriod } else { Rejection::TooLate })
        } else {
            Ok((slots, missed))
        }
    }

    /// Returns the slots of a change in the tracks of one edition. If the edition is another period than that of the
    /// item, or than the one that the item names, the reason is [`Rejection::WrongPeriod`].
    fn place_in(&self, edition: &Edition, change: &Change, increment: &Increment) -> Result<Slots, Rejection> {
        let windows = &self.windows[edition.numbers()];
        if matches!(change, Change::Forget(_)) {
            // The value may be in any slot of any track, also of a period that has ended.
            return Ok(windows.iter().map(|window| Some(window.head)).collect());
        }
        let mut at = increment.at;
        if let Some(period) = edition.period() {
            let time = at.unwrap_or(self.now);
            if time > self.now.plus_millis(self.max_skew) {
                return Err(Rejection::TooEarly);
            }
            // Within the skew, a time in the future counts as now.
            let time = time.min(self.now);
            let is_named = increment.period.is_none_or(|start| start == period.start);
            if !is_named || !period.contains(time) {
                return Err(Rejection::WrongPeriod);
            }
            at = Some(time);
        }
        // A sample replaces a slot, so it needs one wherever slots are kept.
        let replaces = matches!(change, Change::Set { .. });
        let placements = edition.tracks().iter().zip(windows).map(|(track, window): (&Track, _)| match replaces {
            true => track.place_sample(at.unwrap_or(self.now), window),
            false => track.place(at, self.now, window, self.max_skew),
        });
        let slots = placements.map(|placement| match placement {
            Placement::Slot(slot) => Ok(Some(slot)),
            Placement::TooLate => Ok(None),
            // The skew is the same for all tracks.
            Placement::TooEarly => Err(Rejection::TooEarly),
        });
        let slots: Slots = slots.collect::<Result<_, _>>()?;
        let mut each = (0..edition.tracks().len()).map(|track| slots.of(track).is_some());
        let is_placed = if replaces { each.all(|has_slot| has_slot) } else { each.any(|has_slot| has_slot) };
        if is_placed { Ok(slots) } else { Err(Rejection::TooLate) }
    }
}

#[cfg(test)]
mod tests;
