//! An edition: a rule, and the tracks that count by it.

use std::ops::Range;
use std::sync::Arc;

use super::{
    Change, Decimals, Definition, DefinitionError, Event, FieldFault, Kind, Mode, Order, Packed, Period, Scale,
    Subject, Timestamp, Track, TrackId, TrackRole,
};

/// The reason why an edition does not accept samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSamples {
    /// Values are counted, which a number does not tell.
    CountsValues,
    /// There is a cap for each person, and the sum of a slot does not tell what it is of whom.
    Capped,
    /// Equal scores are ordered by the time of the newest item, which the sum of a slot does not tell.
    Times,
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
/// A board has one edition, and beside it for some time another one: see [`Board::other`](super::Board::other).
#[derive(Clone, Debug)]
pub struct Edition {
    definition: Arc<Definition>,
    /// The tracks of all editions of the board.
    all: Arc<[Track]>,
    /// The positions of its own tracks.
    own: Range<usize>,
    /// The time since which it has counted, unless that is the time when the board was defined.
    since: Option<Timestamp>,
    /// The time in which an item must be to count, on a board with a season.
    period: Option<Period>,
    /// The numbers of its ranking, if it is a packed period.
    packed: Option<Packed>,
}

impl Edition {
    /// Creates an edition of a definition, which is validated here. Its tracks get the ids from `id` on.
    pub(super) fn new(id: TrackId, definition: Definition) -> Result<Self, DefinitionError> {
        definition.check_rankings()?;
        definition.check_starts()?;
        definition.check_movement()?;
        let definition = Arc::new(definition);
        // The first, whose own definition is the whole one, because the errors of the others do not say which key is
        // wrong.
        let first = (TrackRole::of_first(&definition), (*definition).clone());
        let further = definition.windows.iter().map(|window| (TrackRole::Window, definition.of_window(*window)));
        let kept_slots = definition.of_kept_slots().map(|own| (TrackRole::KeptSlots, own));
        let all = std::iter::once(first).chain(further).chain(kept_slots);
        let tracks =
            all.enumerate().map(|(number, (role, own))| Track::new(id.numbered(number), role, &definition, own));
        let all = tracks.collect::<Result<Arc<[Track]>, _>>()?;
        Ok(Self { definition, own: 0..all.len(), all, since: None, period: None, packed: None })
    }

    /// Returns the same editions as those of one board, whose tracks are the tracks of all of them. The first one is
    /// the current one, whose tracks end with its period.
    pub(super) fn joined(editions: impl IntoIterator<Item = Edition>) -> Box<[Edition]> {
        let editions: Vec<_> = editions.into_iter().collect();
        let ends = |number: usize, edition: &Edition| edition.period.filter(|_| number == 0).map(|period| period.end);
        let tracks = editions.iter().enumerate().flat_map(|(number, edition)| {
            let end = ends(number, edition);
            edition.tracks().iter().map(move |track| track.clone().ending_at(end).packed_as(edition.packed))
        });
        let all: Arc<[Track]> = tracks.collect();
        let mut next = 0;
        let placed = editions.into_iter().map(|edition| {
            let own = next..next + edition.own.len();
            next = own.end;
            Edition { all: all.clone(), own, ..edition }
        });
        placed.collect()
    }

    /// Returns the same edition, which has counted since this time.
    pub(super) fn counting_since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    /// Returns the time since which it has counted, unless that is the time when the board was defined.
    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Returns the same edition, which counts the items of this period only.
    pub(super) fn in_period(self, period: Option<Period>) -> Self {
        Self { period, ..self }
    }

    /// Returns the same edition, a period that is packed, or not.
    pub(super) fn packed_as(self, packed: Option<Packed>) -> Self {
        Self { packed, ..self }
    }

    /// Returns the numbers of its ranking, if it is a packed period.
    pub fn packed(&self) -> Option<Packed> {
        self.packed
    }

    /// Returns the time in which an item must be to count, on a board with a season.
    pub fn period(&self) -> Option<Period> {
        self.period
    }

    /// Returns the identity of the edition: the id of its first track.
    pub fn id(&self) -> TrackId {
        self.main().id()
    }

    /// Returns the tracks of all editions of the board.
    pub(super) fn all_tracks(&self) -> &Arc<[Track]> {
        &self.all
    }

    /// Returns the positions of its tracks among those of the board.
    pub fn numbers(&self) -> Range<usize> {
        self.own.clone()
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Returns the tracks: first the main window or the total over all time, then the further windows in the order of
    /// [`Definition::windows`], or the kept slots.
    pub fn tracks(&self) -> &[Track] {
        &self.all[self.own.clone()]
    }

    /// Returns the track that reads use unless they choose another one.
    pub fn main(&self) -> &Track {
        &self.all[self.own.start]
    }

    /// Returns the windows: all tracks but the kept slots.
    pub fn windows(&self) -> &[Track] {
        let tracks = self.tracks();
        &tracks[..tracks.len() - usize::from(self.kept_slots().is_some())]
    }

    /// Returns the newest slots that a total over all time [keeps](Definition::keep) beside it, if it keeps any. They
    /// do not add up to its totals.
    pub fn kept_slots(&self) -> Option<&Track> {
        self.tracks().last().filter(|track| track.role() == TrackRole::KeptSlots)
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

    /// Returns the unit of the numbers of the edition.
    pub fn scale(&self) -> Scale {
        self.main().scale()
    }

    /// Returns the effect of an event on the edition: see [`Metric::contribution`](super::Metric::contribution). With its
    /// second key, if there are such; a time is added by the store. With a cap it is the person of the event.
    pub fn contribution(&self, event: &Event) -> Result<Option<(Subject, Change)>, FieldFault> {
        let Definition { metric, tie_break, cap, .. } = self.definition();
        let contribution = metric.contribution(event, self.decimals())?;
        let scale = self.scale();
        match contribution {
            Some((subject, Change::Amount(amount))) if scale.has_keys() => {
                let key = tie_break.as_ref().map_or(Ok(0), |tie_break| tie_break.key_of(&event.fields))?;
                let number = scale.number(amount, key).ok_or_else(|| {
                    let field =
                        metric.terms.iter().find_map(|term| term.field.clone().filter(|_| term.event == event.kind));
                    let largest = scale.shown(scale.largest());
                    let detail =
                        format!("expected from -{largest} to {largest}, because the board orders equal scores");
                    FieldFault::Invalid { field: field.unwrap_or_else(|| "type".into()), detail }
                })?;
                Ok(Some((subject, Change::Amount(number))))
            }
            Some((subject, Change::Amount(_))) if let Some(cap) = cap => {
                Ok(Some((subject, Change::Seen(cap.person_of(&event.fields)?))))
            }
            contribution => Ok(contribution),
        }
    }

    /// Returns whether increments and samples of this form are accepted.
    pub fn takes(&self, change: &Change) -> bool {
        match change {
            Change::Amount(_) => !self.kind().counts_values(),
            Change::Seen(_) => self.kind().counts_values(),
            Change::Forget(_) => self.kind().remembers_values(),
            Change::Set { .. } => self.refuses_samples().is_none(),
            Change::Not(_) => false,
        }
    }

    /// Returns a change with the time of its item, if equal scores are ordered by time and it has a number. A retraction
    /// takes back a number, and no time.
    pub fn timed(&self, change: &Change, at: Timestamp, retract: bool) -> Option<Change> {
        let scale = self.scale();
        match change {
            _ if retract || !scale.has_times() => None,
            Change::Amount(number) => Some(Change::Amount(scale.timed(*number, at))),
            Change::Set { sum, count } => Some(Change::Set { sum: scale.timed(*sum, at), count: *count }),
            Change::Seen(_) | Change::Forget(_) | Change::Not(_) => None,
        }
    }

    /// Returns whether amounts are added up, so that those of several items can be written as one.
    pub fn adds_amounts_up(&self) -> bool {
        self.kind() == Kind::Sum
    }

    /// Returns whether the numbers of both are the same: with the same decimals, and the same second keys.
    pub fn has_same_unit_as(&self, other: &Self) -> bool {
        self.scale() == other.scale() && self.definition.tie_break == other.definition.tie_break
    }

    /// Returns whether both count the same items with the same changes: then what one of them has can be computed from
    /// what the other one has, where their slots allow it.
    pub fn counts_same_items_as(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.definition(), other.definition());
        ours.metric.same_but_window(&theirs.metric) && self.has_same_unit_as(other) && self.has_counters_of(other)
    }

    /// Returns whether both have counters of the same persons, for days that begin at the same time, or none. How much of
    /// each counts may differ.
    pub fn has_counters_of(&self, other: &Self) -> bool {
        fn per(edition: &Edition) -> Option<&str> {
            edition.definition.cap.as_ref().map(|cap| &*cap.per)
        }
        per(self) == per(other) && self.main().days() == other.main().days()
    }

    /// Returns whether a sample of one of them is a sample of the other one: both take samples, for the same slots.
    pub fn has_same_samples_as(&self, other: &Self) -> bool {
        let [ours, theirs] = [self, other].map(|edition| edition.tracks().iter().map(Track::calendar));
        self.kind() == other.kind()
            && self.refuses_samples().is_none()
            && other.refuses_samples().is_none()
            && self.definition.stamp == other.definition.stamp
            && ours.eq(theirs)
    }

    /// Returns the reason why samples are not accepted, if they are not.
    pub fn refuses_samples(&self) -> Option<NoSamples> {
        match self.kind() {
            Kind::Distinct | Kind::Sketch => Some(NoSamples::CountsValues),
            Kind::Capped { .. } => Some(NoSamples::Capped),
            _ if self.definition.mode == Mode::FromFirst => Some(NoSamples::FromFirst),
            _ if self.windows().len() > 1 => Some(NoSamples::FurtherWindows),
            Kind::Min | Kind::Max => self.kept_slots().map(|_| NoSamples::ExtremeOfAllTime),
            Kind::TimedSum(_) => {
                (!self.main().is_all_time() || self.kept_slots().is_some()).then_some(NoSamples::Times)
            }
            Kind::Sum | Kind::Mean | Kind::Last => None,
        }
    }

    /// Returns whether a retraction can be subtracted. It cannot for extremes, newest values and sketches, which do not
    /// store the values that they were computed from.
    pub fn takes_retractions(&self) -> bool {
        match self.kind() {
            Kind::Sum | Kind::TimedSum(_) | Kind::Mean | Kind::Distinct | Kind::Capped { .. } => true,
            Kind::Min | Kind::Max | Kind::Last | Kind::Sketch => false,
        }
    }
}
