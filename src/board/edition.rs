//! An edition: a rule, and the tracks that count by it.

use std::sync::Arc;

use super::{Change, Decimals, Definition, DefinitionError, Generation, Kind, Mode, Order, Track, TrackId, TrackRole};

/// The reason why an edition does not accept samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSamples {
    /// Values are counted, which a number does not tell.
    CountsValues,
    /// The mode is `from_first`.
    FromFirst,
    /// A slot of a further window has other bounds.
    FurtherWindows,
    /// The total beside kept slots is the extreme of all time, which cannot be computed again without the replaced
    /// value.
    ExtremeOfAllTime,
}

/// A rule with its tracks. It accepts an item in all of its tracks that reach back to the item's time, or in none.
///
/// A board has one edition.
#[derive(Clone, Debug)]
pub struct Edition {
    definition: Arc<Definition>,
    tracks: Box<[Track]>,
}

impl Edition {
    /// Creates an edition of a definition, which is validated here. Its tracks get the ids that follow from the board's
    /// generation: see [`TrackId::numbered`].
    pub(super) fn new(generation: Generation, definition: Definition) -> Result<Self, DefinitionError> {
        let definition = Arc::new(definition);
        // The first, whose own definition is the whole one, because the errors of the others do not say which key is
        // wrong.
        let first = (TrackRole::of_first(&definition), (*definition).clone());
        let further = definition.windows.iter().map(|window| (TrackRole::Window, definition.of_window(*window)));
        let kept_slots = definition.of_kept_slots().map(|own| (TrackRole::KeptSlots, own));
        let all = std::iter::once(first).chain(further).chain(kept_slots);
        let tracks = all
            .enumerate()
            .map(|(number, (role, own))| Track::new(TrackId::numbered(generation, number), role, &definition, own));
        let tracks = tracks.collect::<Result<_, _>>()?;
        Ok(Self { definition, tracks })
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Returns the tracks: first the main window or the total over all time, then the further windows in the order of
    /// [`Definition::windows`], or the kept slots.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Returns the track that reads use unless they choose another one.
    pub fn main(&self) -> &Track {
        &self.tracks[0]
    }

    /// Returns the windows: all tracks but the kept slots.
    pub fn windows(&self) -> &[Track] {
        &self.tracks[..self.tracks.len() - usize::from(self.kept_slots().is_some())]
    }

    /// Returns the newest slots that a total over all time [keeps](Definition::keep) beside it, if it keeps any. They
    /// do not add up to its totals.
    pub fn kept_slots(&self) -> Option<&Track> {
        self.tracks.last().filter(|track| track.role() == TrackRole::KeptSlots)
    }

    /// Returns whether events and samples belong to slots by their time, so that a retraction and a sample must name
    /// one. A total over all time without [kept slots](Self::kept_slots) has no slots.
    pub fn has_slots(&self) -> bool {
        !self.main().is_all_time() || self.kept_slots().is_some()
    }

    /// Returns how slots combine.
    pub fn kind(&self) -> Kind {
        self.definition.kind()
    }

    pub fn order(&self) -> Order {
        self.definition.order
    }

    pub fn decimals(&self) -> Decimals {
        self.definition.decimals
    }

    /// Returns whether increments and samples of this form are accepted.
    pub fn takes(&self, change: &Change) -> bool {
        match change {
            Change::Amount(_) => !self.kind().counts_values(),
            Change::Seen(_) => self.kind().counts_values(),
            Change::Set { .. } => self.refuses_samples().is_none(),
        }
    }

    /// Returns the reason why samples are not accepted, if they are not.
    pub fn refuses_samples(&self) -> Option<NoSamples> {
        match self.kind() {
            Kind::Distinct | Kind::Sketch => Some(NoSamples::CountsValues),
            _ if self.definition.mode == Mode::FromFirst => Some(NoSamples::FromFirst),
            _ if self.windows().len() > 1 => Some(NoSamples::FurtherWindows),
            Kind::Min | Kind::Max => self.kept_slots().map(|_| NoSamples::ExtremeOfAllTime),
            Kind::Sum | Kind::Mean | Kind::Last => None,
        }
    }

    /// Returns whether a retraction can be subtracted. It cannot for extremes, newest values and sketches, which do not
    /// store the values that they were computed from.
    pub fn takes_retractions(&self) -> bool {
        match self.kind() {
            Kind::Sum | Kind::Mean | Kind::Distinct => true,
            Kind::Min | Kind::Max | Kind::Last | Kind::Sketch => false,
        }
    }
}
