//! Places in the order of a ranking or of a subject's values, and pages that begin or end at one.

use std::cmp::Ordering;
use std::ops::Bound;

use super::Ranked;
use crate::board::{Counted, Order, Subject, Timestamp, Value};

/// A place in the order of a ranking: a score as it is stored, and a subject. Each line of a ranking has a place. A
/// place stays where it is in the order, whether or not the ranking has a line there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub score: Value,
    pub subject: Subject,
}

impl Place {
    /// Returns the place of a line.
    pub fn of(line: &Ranked) -> Self {
        Self { score: line.score, subject: line.subject.clone() }
    }

    /// Compares two places on a board of this order: by score, then by subject bytes. Returns `Less` if this place
    /// comes first.
    pub fn compare(&self, other: &Place, order: Order) -> Ordering {
        compare_scores(self.score, other.score, order).then_with(|| {
            let ascending = self.subject.cmp(&other.subject);
            if order == Order::Asc { ascending } else { ascending.reverse() }
        })
    }
}

/// The position at which a page of a ranking begins or ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PageStart {
    /// The page begins after this many lines.
    Offset(u64),
    /// The page is next to a place.
    Place(NextTo),
}

/// The lines next to a place, on one side of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NextTo {
    pub place: Place,
    pub direction: Direction,
    /// Whether the line at the place, if there is one, is among these lines.
    pub inclusive: bool,
}

/// The side of a place on which lines are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The lines after the place in the order of the ranking.
    Forward,
    /// The lines before the place. They are returned in the order of the ranking too.
    Backward,
}

impl NextTo {
    /// Returns the lines strictly after a place.
    pub fn after(place: Place) -> Self {
        Self { place, direction: Direction::Forward, inclusive: false }
    }

    /// Returns the lines strictly before a place.
    pub fn before(place: Place) -> Self {
        Self { place, direction: Direction::Backward, inclusive: false }
    }

    /// Returns the lines on the other side of the same boundary: all lines that are not among these.
    #[must_use]
    pub fn others(self) -> Self {
        let direction = match self.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        Self { direction, inclusive: !self.inclusive, ..self }
    }

    /// Returns whether the boundary of these lines comes after the line at the place, if there is one, or before it.
    pub(crate) fn is_boundary_after_line(&self) -> bool {
        (self.direction == Direction::Forward) != self.inclusive
    }

    /// Returns the position of the first line, from 0, and the number of the `limit` lines nearest to the boundary,
    /// which has `boundary` lines before it.
    pub(crate) fn span(&self, boundary: u64, limit: u64) -> (u64, u64) {
        match self.direction {
            Direction::Forward => (boundary, limit),
            Direction::Backward => (boundary.saturating_sub(limit), boundary.min(limit)),
        }
    }
}

/// A place in the order of a subject's values: the time at which a value was last seen, and the value. A place stays
/// where it is in the order, whether or not the subject has a value there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValuePlace {
    pub last_seen: Timestamp,
    pub value: Counted,
}

/// The position at which a page of a subject's values begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ValuesStart {
    /// The page begins after this many values.
    Offset(u64),
    /// The page has the values strictly after this place: those last seen earlier, and of the same time those with
    /// smaller bytes.
    After(ValuePlace),
}

/// Compares two scores. Returns `Less` if the first one is strictly better.
pub(crate) fn compare_scores(a: Value, b: Value, order: Order) -> Ordering {
    match order {
        Order::Asc => a.cmp(&b),
        Order::Desc => b.cmp(&a),
    }
}

/// Returns the order of a ranking that is read from its end.
pub(in crate::store) fn backward(order: Order) -> Order {
    match order {
        Order::Asc => Order::Desc,
        Order::Desc => Order::Asc,
    }
}

/// Texts that begin alike, in the order of their bytes: keys of rankings, or subjects.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextRange<'a> {
    /// The beginning of the texts, empty for all.
    pub prefix: &'a str,
    /// The text before the first.
    pub after: Option<&'a str>,
}

impl<'a> TextRange<'a> {
    /// Returns where the range begins.
    pub fn start(&self) -> Bound<&'a str> {
        match self.after.filter(|after| *after >= self.prefix) {
            Some(after) => Bound::Excluded(after),
            None if self.prefix.is_empty() => Bound::Unbounded,
            None => Bound::Included(self.prefix),
        }
    }

    /// Returns whether the range goes on up to this text, which is not before its start.
    pub fn reaches(&self, text: &str) -> bool {
        text.starts_with(self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Amount;

    #[test]
    fn what_is_on_one_side_of_a_boundary_is_not_on_the_other() {
        let place = Place { score: Value::Exact(Amount(7)), subject: Subject::parse("a").unwrap() };
        let (after, before) = (NextTo::after(place.clone()), NextTo::before(place));
        assert!(after.is_boundary_after_line() && !before.is_boundary_after_line());
        for lines in [after, before] {
            let others = lines.clone().others();
            assert_eq!(others.is_boundary_after_line(), lines.is_boundary_after_line());
            assert_ne!(others.direction, lines.direction);
            assert_eq!(others.others(), lines);
        }
    }

    #[test]
    fn a_page_is_next_to_its_boundary() {
        let place = Place { score: Value::ZERO, subject: Subject::parse("a").unwrap() };
        assert_eq!(NextTo::after(place.clone()).span(7, 3), (7, 3));
        assert_eq!(NextTo::before(place.clone()).span(7, 3), (4, 3));
        assert_eq!(NextTo::before(place.clone()).span(2, 3), (0, 2));
        assert_eq!(NextTo::before(place).span(7, 0), (7, 0));
    }
}
