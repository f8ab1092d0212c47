//! A track, and an edition, together with their board.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use super::{
    AttributeNames, Attributes, Board, EarlierRanks, Edition, EditionRole, PeriodName, RankingKey, Ranks,
    ShownAttributes, Subject, Tiers, Timestamp, Track, Window, WindowLength,
};

/// A track of a board: what reading, retiring and auditing is about. Cheap to clone.
///
/// On a board whose metric has `BY`, a track has a ranking for each key, and reads are about [one](Self::of_key) of
/// them.
#[derive(Clone, Debug)]
pub struct BoardTrack {
    board: Arc<Board>,
    number: usize,
    key: Option<RankingKey>,
    tiers: Option<Arc<Tiers>>,
    /// The ranks that lines show beside the present ones.
    earlier: Option<Arc<EarlierRanks>>,
    /// The attributes that lines show.
    attributes: Option<Arc<ShownAttributes>>,
    /// Whether the read names the period of the track.
    is_of_named_period: bool,
}

impl BoardTrack {
    /// Returns the track with this number, which the board has.
    pub(super) fn new(board: &Arc<Board>, number: usize) -> Self {
        debug_assert!(number < board.tracks().len());
        Self {
            board: board.clone(),
            number,
            key: None,
            tiers: None,
            earlier: None,
            attributes: None,
            is_of_named_period: false,
        }
    }

    /// Returns the same track, for reads of the ranking of this key.
    #[must_use]
    pub fn of_key(self, key: Option<RankingKey>) -> Self {
        Self { key, ..self }
    }

    /// Returns the key of the ranking that reads are about, if the board has keys.
    pub fn key(&self) -> Option<&RankingKey> {
        self.key.as_ref()
    }

    /// Returns the same track, with the tiers of the board.
    #[must_use]
    pub fn with_tiers(self, tiers: Option<Arc<Tiers>>) -> Self {
        Self { tiers, ..self }
    }

    /// Returns the tiers of the board, if it has any.
    pub fn tiers(&self) -> Option<&Arc<Tiers>> {
        self.tiers.as_ref()
    }

    /// Returns the same track, with the ranks of an earlier time.
    #[must_use]
    pub fn with_earlier(self, earlier: Option<Arc<EarlierRanks>>) -> Self {
        Self { earlier, ..self }
    }

    /// Returns the ranks of an earlier time that lines show, if they do and the ranks are known.
    pub fn earlier(&self) -> Option<&Arc<EarlierRanks>> {
        self.earlier.as_ref()
    }

    /// Returns the rank that a line of this subject shows of an earlier time: `None` if lines show none, and `Some(None)` if
    /// the subject was not among the first lines.
    pub fn rank_before(&self, subject: &Subject) -> Option<Option<u64>> {
        self.earlier.as_ref().map(|earlier| earlier.rank_of(subject))
    }

    /// Returns the same track, for reads whose lines show these attributes.
    #[must_use]
    pub fn showing(self, names: Option<Arc<AttributeNames>>) -> Self {
        self.with_attributes(names.map(|names| Arc::new(ShownAttributes { names, of: HashMap::new() })))
    }

    /// Returns the same track, with attributes that lines show.
    #[must_use]
    pub fn with_attributes(self, attributes: Option<Arc<ShownAttributes>>) -> Self {
        Self { attributes, ..self }
    }

    /// Returns the attributes that lines show, if they do. After a read of the ranking it has those of the lines.
    pub fn shown_attributes(&self) -> Option<&Arc<ShownAttributes>> {
        self.attributes.as_ref()
    }

    /// Returns the attributes that a line of this subject shows: `None` if lines show none.
    pub fn attributes_of(&self, subject: &Subject) -> Option<Attributes> {
        Some(self.attributes.as_ref()?.of(subject))
    }

    /// Returns whether reads of the ranking also count the subjects whose scores are not worse than those that they
    /// return, because tiers depend on it.
    pub fn counts_ties(&self) -> bool {
        self.ranks() == Ranks::Shared && self.tiers.as_ref().is_some_and(|tiers| tiers.count_ties())
    }

    /// Returns a subject of the ranking as it is stored: [with the key](Subject::in_ranking), if there is one.
    pub fn stored<'s>(&self, subject: &'s Subject) -> Cow<'s, Subject> {
        match &self.key {
            Some(key) => Cow::Owned(subject.clone().in_ranking(Some(key))),
            None => Cow::Borrowed(subject),
        }
    }

    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Returns the newest boundary at an instant, and the next one, if the ranks of the track are noted at
    /// [boundaries](Track::boundaries). Those of a sealed period are not.
    pub fn noted_at(&self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        self.boundaries_at(now).filter(|_| self.number < self.board.written_tracks().len())
    }

    /// Returns the time for which what is prepared at `now` for this window is valid, from its start to before its end:
    /// until the head moves, or the next ranks are noted.
    pub fn valid_within(&self, window: &Window, now: Timestamp) -> (Timestamp, Timestamp) {
        match self.noted_at(now) {
            Some((boundary, next)) => (window.head.max(boundary), window.end.min(next)),
            None => (window.head, window.end),
        }
    }

    /// Returns the position of the track among the [tracks](Board::tracks) of the board. It is valid only for this very
    /// board; what is stored names tracks by their [ids](Track::id).
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns whether this is the main track of the board's current edition.
    pub fn is_main(&self) -> bool {
        self.number == 0
    }

    /// Returns the time since which its edition has counted if that is after `start`, so that the track does not cover
    /// all the time from `start` on. Only the definition decides: items that are older may have been added since. A
    /// board whose time of definition is not known covers every time.
    pub fn covers_since(&self, start: Timestamp) -> Option<Timestamp> {
        let since = self.edition().since().or(self.board.defined_at());
        since.filter(|since| *since > start)
    }

    /// Returns the edition that has the track.
    pub fn edition(&self) -> BoardEdition {
        let has_track = |edition: &Edition| edition.numbers().contains(&self.number);
        let number = self.board.all_editions().iter().position(has_track).unwrap_or_default();
        BoardEdition { board: self.board.clone(), number, is_named_period: self.is_of_named_period }
    }

    /// Returns whether this is the main track of its edition.
    pub fn is_main_of_edition(&self) -> bool {
        self.board.all_editions().iter().any(|edition| edition.numbers().start == self.number)
    }
}

impl Deref for BoardTrack {
    type Target = Track;

    fn deref(&self) -> &Track {
        &self.board.tracks()[self.number]
    }
}

/// An edition of a board: what a read chooses a window of. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BoardEdition {
    board: Arc<Board>,
    number: usize,
    /// Whether the read names the period that the edition is. Otherwise it is about the current one, whichever that is.
    is_named_period: bool,
}

impl BoardEdition {
    /// Returns the edition with this number, which the board has.
    pub(super) fn new(board: &Arc<Board>, number: usize) -> Self {
        debug_assert!(number < board.all_editions().len());
        Self { board: board.clone(), number, is_named_period: false }
    }

    /// Returns the same edition, for a read that names its period.
    #[must_use]
    pub fn as_named_period(self) -> Self {
        Self { is_named_period: true, ..self }
    }

    /// Returns the name of its period, if the read names it.
    pub fn named_period(&self) -> Option<PeriodName> {
        self.period_name().filter(|_| self.is_named_period)
    }

    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Returns the position among [all editions](Board::all_editions) of the board: 0 for the current one.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns its role, or `None` if it is the current edition or a period of a season.
    pub fn role(&self) -> Option<EditionRole> {
        let other = self.board.other().filter(|_| self.number == 1 && self.board.season().is_none());
        other.map(|other| other.role)
    }

    /// Returns the main track, which reads use unless they choose another one.
    pub fn main_track(&self) -> BoardTrack {
        self.track(self.numbers().start)
    }

    /// Returns its track with this number.
    fn track(&self, number: usize) -> BoardTrack {
        BoardTrack { is_of_named_period: self.is_named_period, ..BoardTrack::new(&self.board, number) }
    }

    /// Returns all tracks with the board, the main one first.
    pub fn each_track(&self) -> impl Iterator<Item = BoardTrack> + use<> {
        let edition = self.clone();
        self.numbers().map(move |number| edition.track(number))
    }

    /// Returns the windows with the board, the main one first: all tracks but the kept slots.
    pub fn each_window(&self) -> impl Iterator<Item = BoardTrack> + use<> {
        self.each_track().take(self.windows().len())
    }

    /// Returns the track of the [kept slots](Edition::kept_slots) with the board.
    pub fn kept_track(&self) -> Option<BoardTrack> {
        self.kept_slots().map(|_| BoardTrack::new(&self.board, self.numbers().end - 1))
    }

    /// Returns the window of this length, or `None` if the edition has none. Of two windows of one length, such as `1w`
    /// and `7d`, it is the one that is written so, or else the first.
    pub fn window_of(&self, length: WindowLength) -> Option<BoardTrack> {
        let written_so = self.each_window().find(|window| window.length() == length);
        written_so.or_else(|| self.each_window().find(|window| window.length().is_as_long_as(length)))
    }
}

impl Deref for BoardEdition {
    type Target = Edition;

    fn deref(&self) -> &Edition {
        &self.board.all_editions()[self.number]
    }
}
