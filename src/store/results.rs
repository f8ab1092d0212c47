//! The requests and results of a store's reads and housekeeping.

use std::sync::Arc;
use std::time::Duration;

use super::Lines;
use crate::board::{
    Aggregate, Attributes, Board, BoardTrack, Counted, Frame, Moderation, RankingKey, Subject, Timestamp, Track, Value,
    Visibility,
};

/// The result of [`Store::define`](super::Store::define).
#[derive(Clone, Debug)]
pub enum Defined {
    /// The board was created.
    Created(Arc<Board>),
    /// The board existed with the same definition.
    Unchanged(Arc<Board>),
    /// The board exists with a different definition, which was not changed.
    Conflict(Arc<Board>),
}

/// All boards of a store.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The boards whose definitions can be read, by name.
    pub boards: Vec<Arc<Board>>,
    /// The boards whose definitions this version cannot read.
    pub unreadable: Vec<Unreadable>,
}

/// A board whose definition this version cannot read, because a newer version wrote it or because it is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The name as stored. It need not be a valid board name.
    pub name: String,
    /// The generation as stored.
    pub generation: String,
    /// The error, and where it is.
    pub reason: String,
}

/// One line of a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The rank, from 1.
    pub rank: u64,
    pub subject: Subject,
    pub score: Value,
}

/// A part of a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub frame: Frame,
    /// The number of ranked subjects.
    pub total: u64,
    /// The number of ranked subjects before the first line here; on a page without lines, before the position where the
    /// page would begin.
    pub first: u64,
    pub items: Lines,
    /// The number of ranked subjects whose score is not worse than that of the last line, on a page with lines of a track
    /// that [counts ties](BoardTrack::counts_ties).
    pub not_worse: Option<u64>,
}

impl Page {
    /// Returns whether the ranking has lines after this page.
    pub fn has_next(&self) -> bool {
        self.first + (self.items.len() as u64) < self.total
    }
}

/// The position of one subject in the ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub frame: Frame,
    pub total: u64,
    /// The score, or [`Kind::absent`](crate::board::Kind::absent) if the subject would not be ranked if it were
    /// visible. On an unranked board, the value of the window.
    pub score: Option<Value>,
    /// The rank, or `None` if the subject is not ranked. If it is [shadowed](Visibility::Shadowed), the rank that it
    /// would have.
    pub rank: Option<u64>,
    /// Whether the subject is in the ranking. Always [`Visible`](Visibility::Visible) on an unranked board.
    pub visibility: Visibility,
    /// The number of ranked subjects with a better rank, or with a strictly better score: percentile = 100 x (total − better)
    /// / total.
    pub better: u64,
    /// The number of ranked subjects whose score is not worse, if the subject has a rank and the track
    /// [counts ties](BoardTrack::counts_ties).
    pub not_worse: Option<u64>,
    /// The live slots in which the subject has data, oldest first, each with its start.
    pub slots: Vec<(Timestamp, Aggregate)>,
    /// For COUNT_DISTINCT: whether values of this window were dropped because the board remembers a limited number.
    pub capped: bool,
}

/// The scores and ranks of given subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    pub frame: Frame,
    /// The number of ranked subjects.
    pub total: u64,
    /// The score of each requested subject, in the order of the request; `None` if it is not ranked.
    pub scores: Vec<Option<Value>>,
    /// The rank of each requested subject in the whole ranking, in the order of the request; `None` if it is not
    /// ranked. Each is `None` if ranks were not requested.
    pub ranks: Vec<Option<u64>>,
    /// For each requested subject that has a rank here, the number of ranked subjects whose score is not worse. Each is
    /// `None` unless the track [counts ties](BoardTrack::counts_ties).
    pub not_worse: Vec<Option<u64>>,
}

/// The part of the window to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotRange {
    /// This many of the newest slots, including the head; at most the window's.
    Slots(u32),
    /// All slots from the one that contains this time.
    From(Timestamp),
}

/// A request to read one subject's slots.
#[derive(Clone, Debug)]
pub struct SlotQuery {
    pub track: BoardTrack,
    pub subject: Subject,
    pub range: SlotRange,
    /// The time at which the window ends, if not now. Only for unranked boards, except COUNT_DISTINCT and `from_first`.
    pub as_of: Option<Timestamp>,
}

/// The content of the requested slots for one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotContents {
    /// The frame, whose window is the part that was read: from the oldest slot read to the end of the newest.
    pub frame: Frame,
    /// The number of slots read.
    pub slots: u32,
    /// The slots with data, oldest first, each with its start. For COUNT_DISTINCT, the number of values last seen in
    /// each slot. On a `from_first` board, at most one counter, with the time at which it began.
    pub aggregates: Vec<(Timestamp, Aggregate)>,
    /// For COUNT_DISTINCT: whether values of these slots were dropped because the board remembers a limited number.
    pub capped: bool,
}

impl SlotContents {
    /// Returns the combined value of the slots.
    pub fn value(&self, track: &Track) -> Option<Value> {
        track.value(self.aggregates.iter().map(|(_, aggregate)| aggregate))
    }
}

/// A page of the values that one subject was seen with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    pub frame: Frame,
    /// The number of values in the window.
    pub total: u64,
    /// The number of values before the first item here; on a page without items, before the position where the page
    /// would begin, `total` at most.
    pub first: u64,
    /// The values and the time when each was last seen, newest first. Values of the same time are ordered by bytes, the
    /// greatest first.
    pub items: Vec<(Counted, Timestamp)>,
    pub capped: bool,
}

impl Values {
    /// Returns whether there are values after this page.
    pub fn has_next(&self) -> bool {
        self.first + (self.items.len() as u64) < self.total
    }
}

/// The data that the removal of a subject deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub frame: Frame,
    /// The score that the subject had, as [`Standing::score`].
    pub score: Option<Value>,
    /// The number of live slots in which the subject had data.
    pub live_slots: u64,
    /// The number of retiring slots in which the subject still had data.
    pub retiring_slots: u64,
}

impl Removal {
    /// Returns what was removed from a board, given what was removed from each of its tracks: that of the main track.
    /// On a board over all time with kept slots, the number of live slots is that of the kept slots.
    pub(in crate::store) fn of_board(board: &Board, tracks: Vec<Removal>) -> Option<Self> {
        let of_periods: u64 = tracks.iter().map(|track| track.live_slots).sum();
        let mut tracks = tracks.into_iter();
        let main = tracks.next()?;
        if board.season().is_some() {
            return Some(Self { live_slots: of_periods, ..main });
        }
        let kept_slots = board.edition().kept_slots().and_then(|_| tracks.next());
        Some(Self { live_slots: kept_slots.map_or(main.live_slots, |kept_slots| kept_slots.live_slots), ..main })
    }
}

/// The state of a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub frame: Frame,
    /// The number of ranked subjects, those of all keys if there are keys. `None` if it is not known: the server lost a
    /// part of a write to a track with many keys.
    pub total: Option<u64>,
    /// The number of keys that have a ranked subject, if the track has a ranking for each key.
    pub keys: Option<u64>,
    /// The starts of the live slots that have data, oldest first, each with its number of subjects.
    pub slots: Vec<(Timestamp, u64)>,
    /// The retiring slots, oldest first, each with the number of subjects not yet subtracted.
    pub retiring: Vec<(Timestamp, u64)>,
    /// The starts of the slots of the window in which items were counted, oldest first, each with their number. A slot
    /// may have items and no subject, if later items have cancelled them or if the subject was removed.
    pub events: Vec<(Timestamp, u64)>,
    /// A number that changes when a subject is removed, when contents are merged, and when data is moved so that a walk
    /// over the [contents](super::Store::contents_step) may return it twice; of a period to which nothing is written any
    /// more, also when a subject is hidden or shown. It is meant to be compared for equality.
    pub upheavals: u64,
}

/// Some of the keys of a track that have a ranked subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub frame: Frame,
    /// The number of keys that have a ranked subject.
    pub total: u64,
    /// The keys, ordered by bytes.
    pub keys: Vec<RankingKey>,
}

/// Some of the subjects of a list of moderated ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moderated {
    /// The number of subjects of the list.
    pub total: u64,
    /// The subjects, with their keys where there are keys, ordered by bytes.
    pub items: Vec<(Subject, Moderation)>,
}

/// Some of the subjects that have attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The number of subjects that have some.
    pub total: u64,
    /// The subjects, with their keys where there are keys, ordered by bytes.
    pub items: Vec<(Subject, Attributes)>,
}

/// The result of one bounded step of retiring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetireStep {
    pub frame: Frame,
    /// The number of slots by which the head moved forward in this step.
    pub slots_advanced: u64,
    /// The number of slots that this step finished: it subtracted their last amount, or dropped them as a whole. A
    /// board of several partitions counts the slots of each partition.
    pub slots_retired: u64,
    /// The number of subjects from which this step subtracted.
    pub subjects_touched: u64,
    /// The number of subjects that this step removed from the ranking because no score was left.
    pub subjects_removed: u64,
    /// Whether nothing below the floor is left, nor any other data of the board that is no longer needed.
    pub done: bool,
    /// Whether this call did nothing because another instance has just made a step for this board. Call again shortly.
    pub skipped: bool,
    /// The time that the store itself spent on the step, without network latency.
    pub worked: Duration,
}

/// The position at which an audit continues. Opaque: pass only a cursor that the previous step returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditCursor(pub(crate) String);

/// A subject whose score differs from the value of its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub subject: Subject,
    /// The score in the ranking.
    pub score: Option<Value>,
    /// The value of the live slots and of what is not yet subtracted of the retiring ones.
    pub slots: Option<Value>,
}

/// The result of one bounded step of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditStep {
    pub frame: Frame,
    /// The number of subjects compared. A subject may be compared twice if the store moved it in the meantime.
    pub checked: u64,
    pub differences: Vec<Difference>,
    /// The number of differences that this step repaired.
    pub repaired: u64,
    /// The number of slots that should exist but do not: a part of the data is lost.
    pub missing_slots: u64,
    /// The cursor of the next step, or `None` when the audit is complete.
    pub next: Option<AuditCursor>,
}

/// A backup of the store's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The directory of the backup, which can be opened as a data directory.
    pub path: std::path::PathBuf,
    /// The number of files.
    pub files: u64,
    /// The total size in bytes.
    pub bytes: u64,
}
