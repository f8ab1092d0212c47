//! Changes of a board's editions, and the stored form of what such changes lead to.

use serde::{Deserialize, Serialize};

use super::{Board, Definition, DefinitionError, Edition, Epoch, Packed, Period, Redivision, Timestamp, TrackId};

/// What the edition beside the current one is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EditionRole {
    /// It may become the current one.
    Next,
    /// It was the current one, and may be again.
    Previous,
}

impl EditionRole {
    pub fn name(self) -> &'static str {
        match self {
            EditionRole::Next => "next",
            EditionRole::Previous => "previous",
        }
    }
}

/// The edition beside the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherEdition {
    pub role: EditionRole,
    /// The store's time from which it may be removed, for a previous edition.
    pub until: Option<Timestamp>,
}

/// How the editions of a board changed from one epoch to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditionsChange {
    /// A second edition was added.
    Attach,
    /// The two editions exchanged their roles.
    Exchange,
    /// The second edition was removed.
    Detach,
    /// The current edition, a period, got an end.
    Close,
    /// The second edition went to the archive, the oldest of which may have been removed.
    Seal,
    /// The ranking of an edition of the archive was packed: nothing else is left of it.
    Pack,
}

impl EditionsChange {
    /// Returns the change between two forms of one board, or `None` if it is not one change.
    pub fn between(from: &Board, to: &Board) -> Option<Self> {
        let is_next = to.generation() == from.generation() && to.epoch().0 == from.epoch().0 + 1;
        let ids = |board: &Board| board.editions().iter().map(Edition::id).collect::<Vec<_>>();
        let packed = |board: &Board| board.archive().iter().filter(|edition| edition.packed().is_some()).count();
        match (is_next, &*ids(from), &*ids(to)) {
            (true, before, after) if before == after && packed(from) < packed(to) => Some(Self::Pack),
            (true, [a], [c, _]) if a == c => Some(Self::Attach),
            (true, [a], [c]) if a == c => Some(Self::Close),
            (true, [a, b], [c, d]) if (a, b) == (d, c) => Some(Self::Exchange),
            (true, [a, b], [c]) if a == c => Some(match to.archive().first().is_some_and(|first| first.id() == *b) {
                true => Self::Seal,
                false => Self::Detach,
            }),
            _ => None,
        }
    }
}

/// The reason why a definition cannot be that of a board's successor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuccessorError {
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// Something differs that is the board's and not the edition's.
    #[error("the {what} of a successor must be that of its board; for another one define another board")]
    Differs { field: &'static str, what: &'static str },
    /// The board or the successor has a season.
    #[error("a board with a season has no successor, and a successor has no season; define another board")]
    Season,
}

impl SuccessorError {
    /// Returns the key of the definition that is wrong.
    pub fn field(&self) -> &'static str {
        match self {
            SuccessorError::Definition(error) => error.field(),
            SuccessorError::Differs { field, .. } => field,
            SuccessorError::Season => "season",
        }
    }
}

/// The stored form of everything about editions that the definition of the current one does not say.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditionsForm {
    /// The id of the first track of the current edition.
    tracks: String,
    /// The time since which it has counted, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    period: Option<PeriodForm>,
    /// The dedupe horizon and the width of a bucket, in milliseconds.
    dedupe: (i64, i64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<OtherForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redivision: Option<Redivision>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    archive: Vec<ArchivedForm>,
}

/// An edition of the archive, which has the definition of the current one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchivedForm {
    tracks: String,
    /// The numbers of lines and of subjects, if it is packed. Right after the id, where stores look for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    packed: Option<(u64, u64)>,
    period: PeriodForm,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OtherForm {
    role: EditionRole,
    tracks: String,
    definition: Definition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    period: Option<PeriodForm>,
    /// In milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
}

/// The start and the end of a period, in milliseconds, and its number.
type PeriodForm = (i64, i64, u64);

/// Returns the stored form of a period.
fn stored(period: Period) -> PeriodForm {
    (period.start.millis(), period.end.millis(), period.number)
}

/// Returns the period of a stored form.
fn period((start, end, number): PeriodForm) -> Period {
    Period { start: Timestamp::from_millis(start), end: Timestamp::from_millis(end), number }
}

impl Board {
    /// Returns the board with a successor beside its edition, whose tracks have the ids from `first` on. The board has
    /// one edition.
    pub fn attached(&self, definition: Definition, first: TrackId) -> Result<Self, SuccessorError> {
        let ours = self.definition();
        let differs = |field, what| Err(SuccessorError::Differs { field, what });
        if !definition.metric.terms.has_types_of(&ours.metric.terms) {
            return differs("metric", "set of event types");
        }
        if definition.metric.subject != ours.metric.subject {
            return differs("metric", "subject");
        }
        if definition.metric.by != ours.metric.by {
            return differs("metric", "key after BY");
        }
        if definition.shards != ours.shards {
            return differs("shards", "number of shards");
        }
        if definition.dedupe != ours.dedupe {
            return differs("dedupe", "dedupe time");
        }
        if ours.season.is_some() || definition.season.is_some() {
            return Err(SuccessorError::Season);
        }
        let edition = Edition::new(first, definition)?;
        let other = OtherEdition { role: EditionRole::Next, until: None };
        Ok(self.changed([self.edition().clone(), edition], Some(other)))
    }

    /// Returns the board with its two editions exchanged: the current one is the previous one then, until `until` at
    /// least. `None` if the board has one edition.
    #[must_use]
    pub fn exchanged(&self, until: Timestamp) -> Option<Self> {
        let [current, other] = self.editions() else { return None };
        let previous = OtherEdition { role: EditionRole::Previous, until: Some(until) };
        Some(self.changed([other.clone(), current.clone()], Some(previous)))
    }

    /// Returns the board with its current edition alone.
    #[must_use]
    pub fn detached(&self) -> Self {
        self.changed([self.edition().clone()], None)
    }

    /// Returns the board whose edition with this number has counted since this time.
    #[must_use]
    pub fn counting_since(self, edition: usize, since: Timestamp) -> Self {
        let editions = self.all_editions().iter().enumerate().map(|(number, known)| match number == edition {
            true => known.clone().counting_since(Some(since)),
            false => known.clone(),
        });
        let (editions, other) = (Edition::joined(editions), self.other());
        self.with_editions(editions, other)
    }

    pub(super) fn changed(&self, editions: impl IntoIterator<Item = Edition>, other: Option<OtherEdition>) -> Self {
        let epoch = Epoch(self.epoch().0 + 1);
        Self::clone(self).with_editions(Edition::joined(editions), other).with_epoch(epoch)
    }

    /// Returns the stored form of what [`definition`](Self::definition) does not say about the editions, or `None` in
    /// the first epoch, in which there is nothing to say.
    pub fn stored_editions(&self) -> Option<String> {
        if self.epoch() == Epoch::default() {
            return None;
        }
        let other = self.other().zip(self.editions().get(1)).map(|(other, edition)| OtherForm {
            role: other.role,
            tracks: edition.id().to_string(),
            definition: edition.definition().clone(),
            since: edition.since().map(Timestamp::millis),
            period: edition.period().map(stored),
            until: other.until.map(Timestamp::millis),
        });
        let dedupe = (self.dedupe_horizon(), self.dedupe_bucket());
        let since = self.edition().since().map(Timestamp::millis);
        let redivision = self.redivision().cloned();
        let archived = |edition: &Edition| {
            let packed = edition.packed().map(|packed| (packed.lines, packed.total));
            Some(ArchivedForm { tracks: edition.id().to_string(), packed, period: stored(edition.period()?) })
        };
        let form = EditionsForm {
            tracks: self.edition().id().to_string(),
            since,
            period: self.edition().period().map(stored),
            dedupe,
            other,
            redivision,
            archive: self.archive().iter().filter_map(archived).collect(),
        };
        serde_json::to_string(&form).ok()
    }

    /// Returns the board of which this is the form in its first epoch, in `epoch` with the editions of a
    /// [stored form](Self::stored_editions). Returns what is wrong with the form.
    pub fn with_stored_editions(self, epoch: Epoch, form: Option<&str>) -> Result<Self, String> {
        let Some(form) = form else {
            return match epoch == Epoch::default() {
                true => Ok(self),
                false => Err(format!("the editions of epoch {} are missing", epoch.0)),
            };
        };
        let form: EditionsForm = serde_json::from_str(form).map_err(|error| error.to_string())?;
        let id = |text: &str| TrackId::parse(text).ok_or_else(|| format!("the id of a track: '{text}'"));
        let edition = |tracks: &str, definition: &Definition, since: Option<i64>, of: Option<PeriodForm>| {
            let edition = Edition::new(id(tracks)?, definition.clone()).map_err(|error| error.to_string())?;
            Ok::<_, String>(edition.counting_since(since.map(Timestamp::from_millis)).in_period(of.map(period)))
        };
        let current = edition(&form.tracks, self.definition(), form.since, form.period)?;
        let (other, second) = match form.other {
            None => (None, None),
            Some(OtherForm { role, tracks, definition, since, period, until }) => {
                let until = until.map(Timestamp::from_millis);
                (Some(OtherEdition { role, until }), Some(edition(&tracks, &definition, since, period)?))
            }
        };
        let archived = |own: &ArchivedForm| {
            let packed = own.packed.map(|(lines, total)| Packed { lines, total });
            Ok::<_, String>(edition(&own.tracks, self.definition(), None, Some(own.period))?.packed_as(packed))
        };
        let archive = form.archive.iter().map(archived).collect::<Result<Vec<_>, _>>()?;
        let (horizon, bucket) = form.dedupe;
        if horizon <= 0 || bucket <= 0 {
            return Err("the dedupe horizon".to_owned());
        }
        let editions = Edition::joined(std::iter::once(current).chain(second).chain(archive));
        let board = self.with_editions(editions, other).with_epoch(epoch).with_dedupe(horizon, bucket);
        Ok(board.with_redivision(form.redivision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Generation};

    fn definition(text: &str) -> Definition {
        serde_json::from_str(text).unwrap()
    }

    fn board() -> Board {
        let own = definition(r#"{"metric":"COUNT(24h, like, post)","slot":"1h","windows":["7d/6h"]}"#);
        Board::new(BoardName::parse("b").unwrap(), Generation(7), own).unwrap()
    }

    fn next() -> Definition {
        definition(r#"{"metric":"SUM(2h, like, weight, post WHERE app = 1)","slot":"1h","decimals":2}"#)
    }

    fn ids(board: &Board) -> Vec<u64> {
        board.tracks().iter().map(|track| track.id().0).collect()
    }

    #[test]
    fn what_ids_cost_stays_that_of_the_board_as_it_was_created() {
        let left = board().attached(next(), TrackId(100)).unwrap().exchanged(Timestamp::EPOCH).unwrap().detached();
        assert_eq!((ids(&left), left.definition()), (vec![100], &next()));
        assert_eq!(left.dedupe_bucket(), board().dedupe_bucket());
        assert_eq!(left.clock_tolerance(), 2 * 3_600_000);
    }

    #[test]
    fn two_changes_or_none_are_not_one() {
        let both = board().attached(next(), TrackId(100)).unwrap();
        let exchanged = both.exchanged(Timestamp::EPOCH).unwrap();
        let between = EditionsChange::between;
        assert_eq!((between(&board(), &exchanged), between(&both, &both)), (None, None));
        assert_eq!(between(&both, &exchanged.detached()), None);
    }

    #[test]
    fn a_successor_has_shards_and_dedupe_time_of_its_board() {
        let board = Board::new(
            BoardName::parse("b").unwrap(),
            Generation(7),
            Definition { shards: Some(3), dedupe: Some("2h".parse().unwrap()), ..board().definition().clone() },
        )
        .unwrap();
        let named = |key: &str| key == "decimals";
        let whole = board.completed(next(), named);
        assert_eq!((whole.shards, whole.dedupe), (board.definition().shards, board.definition().dedupe));
        assert!(board.attached(whole.clone(), TrackId(100)).is_ok());
        assert_eq!(board.completed(whole.clone(), named), whole);
        let other = board.completed(Definition { shards: Some(4), ..next() }, named);
        assert_eq!(other.shards, Some(4), "which is refused");
        assert!(board.attached(other, TrackId(100)).is_err());
    }

    #[test]
    fn editions_survive_being_stored() {
        let both = board().attached(next(), TrackId(u64::MAX)).unwrap().counting_since(1, Timestamp::from_millis(9));
        for stored in [both.clone(), both.exchanged(Timestamp::from_millis(5)).unwrap(), both.detached()] {
            let form = stored.stored_editions();
            let own = stored.definition().clone();
            let fresh = Board::new(stored.name().clone(), stored.generation(), own).unwrap();
            let read = fresh.with_stored_editions(stored.epoch(), form.as_deref()).unwrap();
            assert_eq!((ids(&read), read.other(), read.epoch()), (ids(&stored), stored.other(), stored.epoch()));
            assert_eq!(read.stored_editions(), form);
            assert_eq!(read.dedupe_horizon(), stored.dedupe_horizon());
            for (a, b) in read.editions().iter().zip(stored.editions()) {
                assert_eq!((a.definition(), a.since()), (b.definition(), b.since()));
            }
        }
        assert_eq!(board().stored_editions(), None);
        assert!(board().with_stored_editions(Epoch(1), None).is_err());
        for wrong in ["", "{}", r#"{"tracks":"7","dedupe":[1,1]}"#, r#"{"tracks":"0000000000000007","dedupe":[0,1]}"#] {
            assert!(board().with_stored_editions(Epoch(1), Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn builds_from_before_editions_cannot_read_a_later_epoch() {
        assert_eq!((Epoch(0).to_string(), Epoch(3).to_string()), ("0".to_owned(), "2.3".to_owned()));
        for text in ["2.3", "2.18446744073709551615"] {
            assert!(text.parse::<u64>().is_err());
            assert_eq!(Epoch::of_stored(Some(text)).unwrap().to_string(), text);
        }
        for text in ["3", "0", "2.0", "2.03", "2.", "x"] {
            assert_eq!(Epoch::of_stored(Some(text)), None, "{text}");
        }
    }
}
