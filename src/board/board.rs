//! A board: its identity, its editions, and what holds for all of them.

use std::fmt;
use std::sync::Arc;

use super::{
    BoardEdition, BoardName, BoardTrack, Decimals, Definition, DefinitionError, Edition, EditionRole, Kind,
    OtherEdition, Redivision, Scale, Span, Timestamp, Track, TrackId, WindowLength,
};

/// A day, in milliseconds: the longest dedupe horizon unless the definition has one.
const DAY: i64 = 86_400_000;

/// A number that tells a board from a deleted one of the same name. Drawn at random when the board is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u64);

impl Generation {
    /// Parses what is displayed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The number of changes to a board's editions since it was created. Every instance that uses a board has to know its
/// current editions, so a call that names a different epoch does nothing until the caller knows them: see
/// [`StaleEpoch`](crate::store::StoreError::StaleEpoch).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// The text before the number of an epoch, except of the first one: the version of the stored form of boards whose
/// editions have changed. Versions of the service that do not know the form cannot read the text, so they refuse such a
/// board instead of writing to one of its editions only.
const FORM: &str = "2.";

impl Epoch {
    /// Reads the text that a store has for an epoch: none for the first one, otherwise exactly what `to_string`
    /// returns, because stores compare the texts.
    pub fn of_stored(text: Option<&str>) -> Option<Self> {
        let Some(text) = text else { return Some(Self::default()) };
        let number = text.strip_prefix(FORM)?;
        number.parse().ok().map(Self).filter(|epoch| epoch.to_string() == text)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            number => write!(f, "{FORM}{number}"),
        }
    }
}

/// A board: a name, a generation, and the editions that count the items that are written to it.
///
/// Writing, defining and removing is about a board. Reading, retiring and auditing is about one of its tracks: see
/// [`BoardTrack`].
#[derive(Clone, Debug)]
pub struct Board {
    name: BoardName,
    generation: Generation,
    epoch: Epoch,
    partitions: Option<PartitionNumbers>,
    defined_at: Option<Timestamp>,
    dedupe_horizon: i64,
    dedupe_bucket: i64,
    clock_tolerance: i64,
    /// The current one first, and those of the archive last, the newest first.
    editions: Box<[Edition]>,
    /// The number of editions that are written to.
    written: usize,
    /// What the second edition is for, if there is one.
    other: Option<OtherEdition>,
    redivision: Option<Redivision>,
}

/// The numbers that tell the partitions of a board apart, in their order. The store assigns them.
pub type PartitionNumbers = Arc<[u32]>;

impl Board {
    /// Creates a board from a definition, which is validated here.
    pub fn new(name: BoardName, generation: Generation, definition: Definition) -> Result<Self, DefinitionError> {
        let edition = Edition::new(TrackId::first_of(generation), definition)?;
        let standard = |track: &Track| track.length().approximate_millis();
        let longest = |of: fn(&Track) -> i64| edition.tracks().iter().map(of).max().unwrap_or(DAY).min(DAY);
        let (dedupe_horizon, dedupe_bucket) = match edition.definition().dedupe.map(Span::approximate_millis) {
            Some(dedupe) => (dedupe, dedupe / 2),
            None => (longest(Track::life), longest(standard) / 2),
        };
        Ok(Self {
            clock_tolerance: clock_tolerance(edition.tracks()),
            name,
            generation,
            epoch: Epoch::default(),
            partitions: None,
            defined_at: None,
            dedupe_horizon,
            dedupe_bucket,
            editions: Box::new([edition]),
            written: 1,
            other: None,
            redivision: None,
        })
    }

    /// Returns the same board with these editions, which are [joined](Edition::joined): the current one, the other one
    /// if there is one, and those of the archive.
    pub(super) fn with_editions(self, editions: Box<[Edition]>, other: Option<OtherEdition>) -> Self {
        let written = 1 + usize::from(other.is_some());
        debug_assert!(written <= editions.len());
        let of_tracks = editions.first().map_or(DAY, |edition| clock_tolerance(edition.all_tracks()));
        let period =
            editions.first().and_then(Edition::period).map(|period| period.end.millis() - period.start.millis());
        let clock_tolerance = of_tracks.min(period.unwrap_or(DAY));
        Self { editions, written, other, clock_tolerance, ..self }
    }

    /// Returns the same board with this dedupe horizon and bucket.
    pub(super) fn with_dedupe(self, dedupe_horizon: i64, dedupe_bucket: i64) -> Self {
        Self { dedupe_horizon, dedupe_bucket, ..self }
    }

    /// Returns the same board, divided into partitions with these numbers.
    #[must_use]
    pub fn with_partitions(self, partitions: Option<PartitionNumbers>) -> Self {
        Self { partitions, ..self }
    }

    /// Returns the same board, frozen while its data is copied to these partitions, or no longer.
    pub(super) fn with_redivision(self, redivision: Option<Redivision>) -> Self {
        Self { redivision, ..self }
    }

    /// Returns the same board in this epoch.
    #[must_use]
    pub fn with_epoch(self, epoch: Epoch) -> Self {
        Self { epoch, ..self }
    }

    /// Returns the same board with the store's time of its definition, which on a board with a season is in the first
    /// period.
    #[must_use]
    pub fn with_defined_at(self, defined_at: Option<Timestamp>) -> Self {
        let board = Self { defined_at, ..self };
        let first = defined_at.filter(|_| board.edition().period().is_none());
        match first.and_then(|at| board.period_at(at, None)) {
            Some(period) => {
                let editions = Edition::joined([board.edition().clone().in_period(Some(period))]);
                board.with_editions(editions, None)
            }
            None => board,
        }
    }

    pub fn name(&self) -> &BoardName {
        &self.name
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the epoch of the editions.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns whether both are the same board with the same editions.
    pub fn is_same_as(&self, other: &Self) -> bool {
        (self.generation, self.epoch) == (other.generation, other.epoch)
    }

    /// Returns the editions that are written to, one or two: first the current one.
    pub fn editions(&self) -> &[Edition] {
        &self.editions[..self.written]
    }

    /// Returns the editions that are read only: the ended periods of a season, the newest first.
    pub fn archive(&self) -> &[Edition] {
        &self.editions[self.written..]
    }

    /// Returns the editions that are written to, and those of the archive.
    pub fn all_editions(&self) -> &[Edition] {
        &self.editions
    }

    /// Returns the current edition, which reads use unless they ask for another one.
    pub fn edition(&self) -> &Edition {
        &self.editions[0]
    }

    /// Returns what the second edition is for, if the board has two. Writes change both in one atomic step.
    pub fn other(&self) -> Option<OtherEdition> {
        self.other
    }

    /// Returns the definition of the current edition.
    pub fn definition(&self) -> &Definition {
        self.edition().definition()
    }

    /// Returns the name of the board that keeps the attributes of the subjects, if it is another one.
    pub fn keeper(&self) -> Option<&BoardName> {
        self.definition().attributes.as_ref().filter(|keeper| *keeper != self.name())
    }

    /// Returns whether other boards may name this one as that which keeps the attributes of their subjects.
    pub fn keeps_for_others(&self) -> bool {
        self.keeper().is_none() && !self.has_keys()
    }

    /// Returns whether the metric has `BY`, so that each key has a ranking of its own. The same in all editions.
    pub fn has_keys(&self) -> bool {
        self.definition().metric.by.is_some()
    }

    /// Returns how slots combine in the current edition.
    pub fn kind(&self) -> Kind {
        self.edition().kind()
    }

    /// Returns the decimals of scores in the current edition.
    pub fn scale(&self) -> Scale {
        self.edition().scale()
    }

    pub fn decimals(&self) -> Decimals {
        self.edition().decimals()
    }

    /// Returns all tracks of all editions: first those that a write may change, the main one of the current edition
    /// before all others, then those of the archive.
    pub fn tracks(&self) -> &[Track] {
        self.edition().all_tracks()
    }

    /// Returns the tracks that a write may change, the main one of the current edition first.
    pub fn written_tracks(&self) -> &[Track] {
        &self.tracks()[..self.editions[self.written - 1].numbers().end]
    }

    /// Returns the numbers of the board's partitions, or `None` if it is not divided.
    pub fn partitions(&self) -> Option<&PartitionNumbers> {
        self.partitions.as_ref()
    }

    /// Returns the partitions to which the data is being copied, if it is. Until that has ended the board is frozen: it
    /// is read, and not written to.
    pub fn redivision(&self) -> Option<&Redivision> {
        self.redivision.as_ref()
    }

    /// Returns the store's time when the board was defined, or `None` if the store has not recorded it: earlier
    /// versions did not.
    pub fn defined_at(&self) -> Option<Timestamp> {
        self.defined_at
    }

    /// Returns how long the id of an event is remembered after its arrival, in milliseconds: as long as `dedupe` says,
    /// or else for the longest window with the additional slot of `cover = full`, at most a day. It follows from the
    /// edition with which the board was created, whichever is the current one.
    pub fn dedupe_horizon(&self) -> i64 {
        self.dedupe_horizon
    }

    /// Returns the time, in milliseconds, during which arriving ids belong to one bucket: half of `dedupe`, or of the
    /// longest window, at most half a day.
    ///
    /// Stored data names buckets by their number since the epoch, so this must stay the same for a definition. It does
    /// not include the additional slot of `cover = full`, which earlier versions did not add to the horizon.
    pub fn dedupe_bucket(&self) -> i64 {
        self.dedupe_bucket
    }

    /// Returns the time, in milliseconds, that a clock must be ahead of the expected time to be doubted: the shortest
    /// window, or the current period if that is shorter. Over all time, where a wrong clock expires ids and tombstones
    /// only, it is a day, even if `dedupe` is shorter: otherwise each longer restart would be doubted.
    pub fn clock_tolerance(&self) -> i64 {
        self.clock_tolerance
    }

    /// Returns the main track of the current edition, which reads use unless they choose another one.
    pub fn main(self: &Arc<Self>) -> BoardTrack {
        BoardTrack::new(self, 0)
    }

    /// Returns all tracks of all editions with the board, those of the current edition first.
    pub fn each_track(self: &Arc<Self>) -> impl Iterator<Item = BoardTrack> {
        (0..self.tracks().len()).map(|number| BoardTrack::new(self, number))
    }

    /// Returns the tracks that a write may change with the board, those of the current edition first.
    pub fn each_written_track(self: &Arc<Self>) -> impl Iterator<Item = BoardTrack> {
        (0..self.written_tracks().len()).map(|number| BoardTrack::new(self, number))
    }

    /// Returns the current edition with the board.
    pub fn current(self: &Arc<Self>) -> BoardEdition {
        BoardEdition::new(self, 0)
    }

    /// Returns the edition of this role with the board, if there is one. The periods of a season have none.
    pub fn edition_as(self: &Arc<Self>, role: EditionRole) -> Option<BoardEdition> {
        let is_wanted = |other: &OtherEdition| other.role == role && self.season().is_none();
        self.other.filter(is_wanted).map(|_| BoardEdition::new(self, 1))
    }

    /// Returns the periods of a season with the board: the current one first, the others from the newest on. None if the
    /// board has no season.
    pub fn each_period(self: &Arc<Self>) -> impl Iterator<Item = BoardEdition> {
        let periods = if self.season().is_some() { self.editions.len() } else { 0 };
        (0..periods).map(|number| BoardEdition::new(self, number).as_named_period())
    }

    /// Returns the windows of the current edition with the board, the main one first: all tracks but the kept slots.
    pub fn each_window(self: &Arc<Self>) -> impl Iterator<Item = BoardTrack> {
        (0..self.edition().windows().len()).map(|number| BoardTrack::new(self, number))
    }

    /// Returns the track of the [kept slots](Edition::kept_slots) of the current edition with the board.
    pub fn kept_track(self: &Arc<Self>) -> Option<BoardTrack> {
        self.current().kept_track()
    }

    /// Returns the track with this id, of any edition.
    pub fn track_with(self: &Arc<Self>, id: TrackId) -> Option<BoardTrack> {
        self.each_track().find(|track| track.id() == id)
    }

    /// Returns the window of the current edition with this length: see [`BoardEdition::window_of`].
    pub fn window_of(self: &Arc<Self>, length: WindowLength) -> Option<BoardTrack> {
        self.current().window_of(length)
    }
}

/// Returns the time by which a clock must be ahead to be doubted: see [`Board::clock_tolerance`].
fn clock_tolerance(tracks: &[Track]) -> i64 {
    let of = |track: &Track| if track.is_all_time() { DAY } else { track.length().approximate_millis() };
    tracks.iter().map(of).min().unwrap_or(DAY)
}

#[cfg(test)]
mod tests;
