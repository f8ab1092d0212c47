//! The steps that lead from the editions that a partition has to those that it should have.

use crate::board::{Board, TrackId};
use crate::store::redis::edition_tracks::EditionTracks;

/// The editions of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub current: EditionTracks,
    pub other: Option<EditionTracks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Attach(EditionTracks),
    Exchange,
    Detach(EditionTracks),
    /// Only the epoch changes.
    Nothing,
}

impl Pair {
    pub fn of(board: &Board) -> Self {
        Self { current: EditionTracks::of(board.edition()), other: board.editions().get(1).map(EditionTracks::of) }
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
        let tracks = |first: u64| EditionTracks { first: TrackId(first), further: 1 };
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
        assert_eq!(EditionTracks::parse(&tracks(9).print()), Some(tracks(9)));
        assert_eq!(EditionTracks::parse("9+1"), None);
    }
}
