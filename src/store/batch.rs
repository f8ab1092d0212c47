//! What a write is made of, and how it takes effect.
//!
//! Amounts of the same subject and slot whose items carry no id are added up first and applied as one; so
//! a thousand likes of one post cost one update. If a sum is refused (out of range), its items are tried singly
//! in their order. A sum is exact however long the batch is: only what it comes to is in range or not, whatever it was
//! on the way. [`Plan`] is that rule, shared by every store so that all give the same answers.

use std::collections::{BTreeMap, HashMap};

use crate::board::{
    Amount, Board, Change, EXACT_MAX, EventId, Frame, Kind, Mode, Placement, Subject, Timestamp, Value, Window,
};

/// A change for one subject of one board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    pub subject: Subject,
    /// One that the board's metric takes: see [`Board::takes`].
    pub change: Change,
    /// Undoes its twin, the change of the same subject and time. Refused by MIN, MAX and the approximate metric,
    /// which cannot: callers see to that.
    pub retract: bool,
    /// When it happened; the store's now if absent. A retraction and a sample have one.
    pub at: Option<Timestamp>,
    /// Counts once per (board, subject, id) within the dedupe horizon.
    pub id: Option<EventId>,
}

impl Increment {
    /// An amount of COUNT and SUM as it changes the sum: a retraction subtracts it.
    pub fn signed(&self, amount: Amount) -> Amount {
        // Only the least `i64` has no opposite; what it becomes is as far out of range.
        Amount(if self.retract { amount.0.saturating_neg() } else { amount.0 })
    }
}

/// The increments of one request to one board.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub increments: Vec<Increment>,
    /// Answer each subject's new score, from the same atomic step.
    pub return_scores: bool,
}

/// Why one item was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Its slot has left the window.
    TooLate,
    /// It is further ahead of the store's clock than the allowed skew.
    TooEarly,
    /// The (slot, subject) would pass [`Board::slot_bound`].
    OutOfRange,
}

/// What became of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Counted; with the subject's score after the step that counted it, if asked for.
    ///
    /// A score that was asked for is `None` still where the metric says nothing of the subject: see
    /// [`Kind::absent`].
    Counted {
        score: Option<Value>,
    },
    /// The id was counted before; with the score now, if asked for.
    Duplicate {
        score: Option<Value>,
    },
    Rejected(Rejection),
}

/// The answer to a [`Batch`].
#[derive(Clone, Debug)]
pub struct Added {
    /// The frame of the step that took the last item.
    pub frame: Frame,
    /// One per item, in the order given.
    pub outcomes: Vec<Outcome>,
}

/// One update to make: a change of a (slot, subject), on behalf of one or more items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub slot: Timestamp,
    /// When it happened, never later than the store's now: what the last-seen scheme remembers.
    pub at: Timestamp,
    pub subject: &'a Subject,
    /// COUNT and SUM: the sum of its items, retractions subtracted. It is exact up to ±[`EXACT_MAX`]; beyond, it stands
    /// for "refused, try them singly". 0 where [`sent`](Self::sent) says what to do.
    pub amount: Amount,
    /// The item itself where it is not an amount to be added up: samples, and all that other metrics take.
    pub sent: Option<&'a Increment>,
    /// Present where the entry is a single item with an id.
    pub id: Option<&'a EventId>,
    /// The items it stands for, by their index.
    pub items: Vec<usize>,
}

/// Increments, placed in their slots and added up.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    /// Updates in the order of each one's first item. Apply them in this order.
    pub entries: Vec<Entry<'a>>,
    /// Items that no slot takes, by index.
    pub rejected: Vec<(usize, Rejection)>,
    /// Retractions whose twin has left the window, by index: counted, and nothing is left to do.
    pub moot: Vec<usize>,
}

impl<'a> Plan<'a> {
    /// Places the increments by the clock `now` and adds up what may be added. O(items).
    pub fn new(
        board: &Board,
        window: &Window,
        now: Timestamp,
        max_skew: i64,
        increments: impl IntoIterator<Item = (usize, &'a Increment)>,
    ) -> Self {
        let mut plan = Plan::default();
        let increments = increments.into_iter();
        // A single increment, the most frequent request of all, has nothing to be added up with.
        let is_alone = increments.size_hint().1 == Some(1);
        let mut open: HashMap<(Timestamp, &str), usize, rapidhash::fast::RandomState> = HashMap::default();
        // Sums that have passed what an `Amount` holds, by entry: later items may bring them back.
        let mut wide: BTreeMap<usize, i128> = BTreeMap::new();
        for (index, increment) in increments {
            let placement = match increment.change {
                Change::Set { .. } => board.place_sample(increment.at.unwrap_or(now), window),
                _ => board.place(increment.at, now, window, max_skew),
            };
            let slot = match placement {
                Placement::Slot(slot) => slot,
                Placement::TooLate if increment.retract => {
                    plan.moot.push(index);
                    continue;
                }
                Placement::TooLate => {
                    plan.rejected.push((index, Rejection::TooLate));
                    continue;
                }
                Placement::TooEarly => {
                    plan.rejected.push((index, Rejection::TooEarly));
                    continue;
                }
            };
            let (amount, sent) = match &increment.change {
                Change::Amount(amount) if board.kind() == Kind::Sum => (increment.signed(*amount), None),
                _ => (Amount(0), Some(increment)),
            };
            let adds_up = sent.is_none() && board.definition().mode == Mode::Sliding;
            if increment.id.is_none() && !is_alone && adds_up {
                match open.entry((slot, increment.subject.as_str())) {
                    std::collections::hash_map::Entry::Occupied(found) => {
                        let at = *found.get();
                        let entry = &mut plan.entries[at];
                        entry.items.push(index);
                        match entry.amount.0.checked_add(amount.0) {
                            Some(sum) if !wide.contains_key(&at) => entry.amount = Amount(sum),
                            _ => *wide.entry(at).or_insert(entry.amount.0.into()) += i128::from(amount.0),
                        }
                        continue;
                    }
                    std::collections::hash_map::Entry::Vacant(place) => {
                        place.insert(plan.entries.len());
                    }
                }
            } else if sent.is_some() {
                // What comes after a sample adds to it.
                open.remove(&(slot, increment.subject.as_str()));
            }
            plan.entries.push(Entry {
                slot,
                at: increment.at.map_or(now, |at| at.min(now)),
                subject: &increment.subject,
                amount,
                sent,
                id: increment.id.as_ref(),
                items: vec![index],
            });
        }
        for (at, sum) in wide {
            plan.entries[at].amount = Amount(sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        }
        plan
    }
}

impl Entry<'_> {
    /// Whether the sum itself is beyond what any store holds, so that only its items can be tried.
    pub fn is_beyond_exact(&self) -> bool {
        self.amount.0.unsigned_abs() > EXACT_MAX as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};

    fn increment(subject: &str, amount: i64, at: Option<&str>, id: Option<&str>) -> Increment {
        Increment {
            subject: Subject::parse(subject).unwrap(),
            change: Change::Amount(Amount(amount)),
            retract: false,
            at: at.map(|at| Timestamp::parse(at).unwrap()),
            id: id.map(|id| EventId::parse(id).unwrap()),
        }
    }

    #[test]
    fn adds_up_same_slot_and_subject_without_ids_in_order_of_arrival() {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let now = Timestamp::parse("2026-01-01T10:30:00Z").unwrap();
        let window = board.window_at(now);
        let items = [
            increment("a", 1, None, None),
            increment("b", 2, None, None),
            increment("a", 4, Some("2026-01-01T10:00:00Z"), None),
            increment("a", 8, Some("2026-01-01T09:00:00Z"), None),
            increment("a", 16, None, Some("x")),
            increment("a", 32, Some("2026-01-01T08:59:59Z"), None),
            increment("a", 64, Some("2026-01-01T11:00:00Z"), None),
            increment("a", -5, None, None),
        ];
        let plan = Plan::new(&board, &window, now, 5_000, items.iter().enumerate());
        let seen: Vec<_> = plan
            .entries
            .iter()
            .map(|e| (e.subject.as_str(), e.amount.0, e.items.clone(), e.id.is_some(), e.slot == window.head))
            .collect();
        assert_eq!(
            seen,
            [
                ("a", 0, vec![0, 2, 7], false, true),
                ("b", 2, vec![1], false, true),
                ("a", 8, vec![3], false, false),
                ("a", 16, vec![4], true, true),
            ]
        );
        assert_eq!(plan.rejected, [(5, Rejection::TooLate), (6, Rejection::TooEarly)]);
    }

    #[test]
    fn a_sum_is_exact_whatever_it_is_on_the_way() {
        let definition = Definition::new("SUM(2h, sale, amount, seller)".parse().unwrap(), "1h".parse().unwrap());
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let now = Timestamp::parse("2026-01-01T10:30:00Z").unwrap();
        let sum = |amounts: &[(usize, i64)]| {
            let amounts = amounts.iter().flat_map(|(times, amount)| std::iter::repeat_n(*amount, *times));
            let items: Vec<Increment> = amounts.map(|amount| increment("a", amount, None, None)).collect();
            let plan = Plan::new(&board, &board.window_at(now), now, 5_000, items.iter().enumerate());
            assert_eq!((plan.entries.len(), plan.entries[0].items.len()), (1, items.len()));
            (plan.entries[0].amount.0, plan.entries[0].is_beyond_exact())
        };
        assert_eq!(sum(&[(1_025, EXACT_MAX), (1_024, -EXACT_MAX)]), (EXACT_MAX, false));
        assert_eq!(sum(&[(1_025, EXACT_MAX), (1_025, -EXACT_MAX), (1, 7)]), (7, false));
        assert_eq!(sum(&[(3_000, -EXACT_MAX), (3_000, EXACT_MAX), (1, -7)]), (-7, false));
        assert_eq!(sum(&[(2, i64::MIN), (2, i64::MAX)]), (-2, false));
        assert_eq!(sum(&[(2, i64::MAX), (1, -i64::MAX), (1, 1)]), (i64::MAX, true));
        assert_eq!(sum(&[(3_000, -EXACT_MAX)]), (i64::MIN, true));
    }
}
