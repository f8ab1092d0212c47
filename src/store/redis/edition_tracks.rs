//! The tracks that an edition has, as meta keys and notes about removals have them.

use crate::board::{Edition, Generation, MAX_FURTHER, TrackId};

/// The tracks of an edition, whose ids follow from that of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EditionTracks {
    pub first: TrackId,
    pub further: usize,
}

impl EditionTracks {
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
