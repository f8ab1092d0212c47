//! The steps that lead from the editions that a partition has to those that it should have.

use crate::board::{Board, Edition, Generation, MAX_FURTHER, TrackId};

/// The tracks of an edition in a partition, whose ids follow from that of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracks {
    pub first: TrackId,
    pub further: usize,
}

/// The editions of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub current: Tracks,
    pub other: Option<Tracks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Attach(Tracks),
    Exchange,
    Detach(Tracks),
    /// Only the epoch changes.
    Nothing,
}

impl Tracks {
    pub fn of(edition: &Edition) -> Self {
        Self { first: edition.id(), further: edition.tracks().len() - 1 }
    }

    /// Returns those of the edition with which a board begins. Which tracks exist is not stored with it, so these are
    /// all that there may be.
    pub fn of_first_edition(generation: Generation) -> Self {
        Self { first: TrackId::first_of(generation), further: MAX_FURTHER }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (first, further) = text.split_once('+')?;
        let further = further.parse().ok().filter(|further| *further <= MAX_FURTHER)?;
        Some(Self { first: TrackId::parse(first)?, further })
    }

    pub fn print(self) -> String {
        format!("{}+{}", self.first, self.further)
    }

    /// Returns the ids of the tracks after the first one.
    pub fn further_ids(self) -> impl Iterator<Item = TrackId> {
        (1..=self.further).map(move |number| self.first.numbered(number))
    }
}

impl Pair {
    pub fn of(board: &Board) -> Self {
        Self { current: Tracks::of(board.edition()), other: board.editions().get(1).map(Tracks::of) }
    }

    /// Returns the editions after a step.
    pub fn after(self, step: Step) -> Self {
        match (step, self.other) {
            (Step::Attach(tracks), _) => Self { other: Some(tracks), ..self },
            (Step::Exchange, Some(other)) => Self { current: other, other: Some(self.current) },
            (Step::Detach(_), _) => Self { other: None, ..self },
            (Step::Exchange | Step::Nothing, _) => self,
        }
    }

    fn has(self, first: TrackId) -> bool {
        self.current.first == first || self.other.is_some_and(|other| other.first == first)
    }

    /// Returns the next step on the way to `target`. A partition is one step behind at most, unless its server has lost
    /// its latest writes.
    pub fn next_step(self, target: Pair) -> Step {
        match self.other {
            Some(other) if !target.has(other.first) => Step::Detach(other),
            Some(_) if self.current.first != target.current.first => Step::Exchange,
            None if self.current.first != target.current.first => Step::Attach(target.current),
            None => target.other.map_or(Step::Nothing, Step::Attach),
            Some(_) => Step::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lead_from_any_editions_to_any_others() {
        let tracks = |first: u64| Tracks { first: TrackId(first), further: 1 };
        let pair =
            |(current, other): (u64, u64)| Pair { current: tracks(current), other: (other > 0).then(|| tracks(other)) };
        let pairs = [(1, 0), (1, 2), (2, 1), (2, 0), (2, 3), (3, 2), (1, 3), (3, 0)].map(pair);
        for from in pairs {
            for to in pairs {
                let (mut at, mut steps) = (from, 0);
                while at.current.first != to.current.first || at.other.map(|o| o.first) != to.other.map(|o| o.first) {
                    let step = at.next_step(to);
                    assert_ne!(step, Step::Nothing, "{at:?} to {to:?}");
                    at = at.after(step);
                    steps += 1;
                    assert!(steps <= 5, "{from:?} to {to:?}");
                }
                assert_eq!(at.next_step(to), Step::Nothing);
            }
        }
        let steps = |from, to| pair(from).next_step(pair(to));
        assert_eq!(steps((1, 0), (1, 2)), Step::Attach(tracks(2)));
        assert_eq!(steps((1, 2), (2, 1)), Step::Exchange);
        assert_eq!(steps((2, 1), (2, 0)), Step::Detach(tracks(1)));
        assert_eq!(Tracks::parse(&tracks(9).print()), Some(tracks(9)));
        assert_eq!(Tracks::parse("9+1"), None);
    }
}
