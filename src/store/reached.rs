//! How far a source is counted on a board, or on a partition of one.
//!
//! Items of a log arrive in order, so one position would be enough: everything up to it is counted. But items that are
//! written together are added up by subject, so a step in the middle of a request does not end at a position. So
//! subjects are divided into [`LANES`] lanes, and each has a position of its own. While all are equal, they are stored as
//! one: that is so before and after each request, unless one was cut short.

use xxhash_rust::xxh3::xxh3_64;

use crate::board::{Position, Subject};

/// The number of lanes. It is a part of what is stored, and never changes.
pub const LANES: usize = 32;

/// Returns the lane of a subject: the lowest bits of its XXH3 hash. Partitions go by the highest ones.
pub fn lane_of(subject: &Subject) -> usize {
    xxh3_64(subject.as_str().as_bytes()) as usize % LANES
}

/// The position up to which each lane of a source is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached(Lanes);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Lanes {
    Even(Position),
    /// At least two of them differ.
    Uneven(Box<[Position; LANES]>),
}

impl Reached {
    /// Every lane has reached the position.
    pub fn evenly(position: Position) -> Self {
        Self(Lanes::Even(position))
    }

    /// Returns whether every lane has reached the same position.
    pub fn is_even(&self) -> bool {
        matches!(self.0, Lanes::Even(_))
    }

    /// Returns the position that a lane has reached.
    pub fn in_lane(&self, lane: usize) -> Position {
        match &self.0 {
            Lanes::Even(position) => *position,
            Lanes::Uneven(lanes) => lanes[lane % LANES],
        }
    }

    /// Returns the position that every lane has reached: the place from which the source goes on.
    pub fn least(&self) -> Position {
        match &self.0 {
            Lanes::Even(position) => *position,
            Lanes::Uneven(lanes) => lanes.iter().copied().min().unwrap_or_default(),
        }
    }

    /// Returns the same with other positions in some lanes. A lane does not go back.
    #[must_use]
    pub fn raised(&self, raise: impl IntoIterator<Item = (usize, Position)>) -> Self {
        let mut lanes: [Position; LANES] = std::array::from_fn(|lane| self.in_lane(lane));
        for (lane, position) in raise {
            lanes[lane % LANES] = position.max(lanes[lane % LANES]);
        }
        Self::of(lanes)
    }

    /// Returns what both have reached.
    #[must_use]
    pub fn both(&self, other: &Self) -> Self {
        Self::of(std::array::from_fn(|lane| self.in_lane(lane).min(other.in_lane(lane))))
    }

    fn of(lanes: [Position; LANES]) -> Self {
        let is_even = lanes.iter().all(|lane| *lane == lanes[0]);
        Self(if is_even { Lanes::Even(lanes[0]) } else { Lanes::Uneven(Box::new(lanes)) })
    }

    /// Returns the stored form: the position in hexadecimal digits, or those of all lanes, separated by commas. Equal
    /// values have equal texts.
    pub fn text(&self) -> String {
        match &self.0 {
            Lanes::Even(position) => format!("{:x}", { position.0 }),
            Lanes::Uneven(lanes) => {
                let lanes: Vec<_> = lanes.iter().map(|lane| format!("{:x}", { lane.0 })).collect();
                lanes.join(",")
            }
        }
    }

    /// Reads the stored form. Returns `None` for what [`text`](Self::text) does not write.
    pub fn parse(text: &str) -> Option<Self> {
        let position = |text| u128::from_str_radix(text, 16).ok().map(Position);
        let reached = match text.contains(',') {
            true => Self::of(text.split(',').map(position).collect::<Option<Vec<_>>>()?.try_into().ok()?),
            false => Self::evenly(position(text)?),
        };
        (reached.text() == text).then_some(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lanes_are_one_position() {
        let even = Reached::evenly(Position(7));
        let uneven = even.raised([(3, Position(9)), (4, Position(5))]);
        assert_eq!((uneven.in_lane(3), uneven.in_lane(4), uneven.least()), (Position(9), Position(7), Position(7)));
        assert_eq!(uneven.raised((0..LANES).map(|lane| (lane, Position(9)))), Reached::evenly(Position(9)));
    }

    #[test]
    fn the_stored_form_is_short_while_even_and_is_read_again() {
        let even = Reached::evenly(Position(40_000_000_000));
        let uneven = even.raised([(31, Position::MAX)]);
        assert_eq!(even.text(), "9502f9000");
        for reached in [even, uneven, Reached::evenly(Position::MAX), Reached::evenly(Position(0))] {
            assert_eq!(Reached::parse(&reached.text()), Some(reached));
        }
        let equal = vec!["1f"; LANES].join(",");
        for wrong in ["", "x", "1,2", "-1", "+1", "01", "1F", ",", &equal, &"f".repeat(33)] {
            assert_eq!(Reached::parse(wrong), None, "{wrong}");
        }
    }

    /// The lane of a subject is a part of what is stored.
    #[test]
    fn subjects_stay_in_their_lanes() {
        let lanes = ["post-1", "post-2", "ü"].map(|subject| lane_of(&Subject::parse(subject).unwrap()));
        assert_eq!(lanes, [14, 6, 14]);
    }
}
