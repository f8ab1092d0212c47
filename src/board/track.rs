//! A track: one thing that an edition of a board keeps, with the arithmetic of its slots.

use std::fmt;
use std::sync::Arc;

use super::{
    Aggregate, Amount, Averaging, Calendar, Cover, Decimals, Definition, DefinitionError, EXACT_MAX, Generation,
    KeyBound, Kind, Layout, Metric, Mode, Order, Packed, Placement, Ranks, Scale, Span, Stamp, Timestamp, Value,
    Window, WindowLength, WindowSlots,
};

/// A day, in milliseconds.
const DAY: i64 = 86_400_000;

/// The identity of a track. Stored data contains it: the keys of a track, its operations in a log, cursors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u64);

impl TrackId {
    /// Returns the id of the first track of the edition with which a board of this generation begins.
    #[must_use]
    pub fn first_of(board: Generation) -> Self {
        Self(board.0)
    }

    /// Returns the id of the track with this number, of the edition whose first track has this id.
    #[must_use]
    pub fn numbered(self, number: usize) -> Self {
        Self(self.0.wrapping_add(number as u64))
    }

    /// Reads what `to_string` returns: 16 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let id = u64::from_str_radix(text, 16).ok().map(Self)?;
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for TrackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a track is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackRole {
    /// A window of the board, or a total over all time. It has a ranking, unless the board has none.
    Window,
    /// The newest slots, which are kept beside a total over all time. It has no ranking.
    KeptSlots,
    /// The windows of the subjects, each of which begins with the first event of its subject. It has no slots and no
    /// ranking.
    FromFirst,
}

/// A track: a window, a total, kept slots, or windows that begin with a first event.
///
/// It has slots, and what subjects have in them, and a ranking unless it is [unranked](Self::is_ranked). Reading,
/// retiring and auditing is about one track. Writing changes all tracks of a board.
#[derive(Clone, Debug)]
pub struct Track {
    id: TrackId,
    role: TrackRole,
    /// The metric with the window of this track.
    metric: Metric,
    /// The metric in its canonical form, which every page shows.
    canonical_metric: Arc<str>,
    slot: Option<Span>,
    calendar: Calendar,
    slots: u32,
    kept: u32,
    is_ranked: bool,
    cover: Cover,
    averaging: Averaging,
    scale: Scale,
    /// The calendar whose slots begin with the boundaries at which the ranks are noted, if they are.
    boundaries: Option<Calendar>,
    /// The calendar of the days of a cap for each person, if there is one.
    days: Option<Calendar>,
    /// The end of the period, if the track is that of the current period of a season.
    ends: Option<Timestamp>,
    /// The numbers of its ranking, if it is that of a packed period.
    packed: Option<Packed>,
    /// The definition of the edition.
    edition: Arc<Definition>,
}

impl Track {
    /// Creates the track that `own` describes: a definition that has the window of this track only.
    pub(super) fn new(
        id: TrackId,
        role: TrackRole,
        edition: &Arc<Definition>,
        own: Definition,
    ) -> Result<Self, DefinitionError> {
        let Layout { calendar, slots, kept } = own.layout()?;
        let track = Self {
            id,
            role,
            slot: own.slot,
            metric: own.metric.clone(),
            canonical_metric: own.metric.to_string().into(),
            calendar,
            slots,
            kept,
            is_ranked: own.ranked,
            cover: own.cover,
            averaging: own.averaging(),
            scale: edition.scale(),
            boundaries: own.boundaries_of_track(edition),
            days: edition.days_of_cap()?,
            ends: None,
            packed: None,
            edition: edition.clone(),
        };
        track.check_bounds()?;
        Ok(track)
    }

    /// Checks that an event of each type can count: a weight, or the room for second keys, may be too large for a slot.
    fn check_bounds(&self) -> Result<(), DefinitionError> {
        let most = self.scale.largest_within(self.slot_bound());
        if self.scale.has_times() && most == Amount(0) {
            let why =
                "leaves no room for a score in one slot: choose a coarser precision, such as first:1m, or fewer slots";
            return Err(DefinitionError::Misplaced { key: "ties", why });
        }
        if self.key_bound().is_some_and(|keys| keys.most == 0 || most == Amount(0)) {
            let why = "needs a 'most' of which a share for each slot, most / (2 x slots), is 1 or more, and that leaves a score";
            return Err(DefinitionError::Misplaced { key: "tie_break", why });
        }
        match self.metric.terms.largest(self.decimals()) {
            Some(largest) if largest <= most || !self.kind().is_sum() => Ok(()),
            _ if self.scale.has_keys() => {
                let key = if self.scale.has_times() { "ties" } else { "tie_break" };
                let why = "leaves no room in one slot for what an event counts";
                Err(DefinitionError::Misplaced { key, why })
            }
            _ => {
                let why = "has a weight that is more than a subject may have in one slot, (2^53 - 1) / (2 x slots) in the last decimal";
                Err(DefinitionError::Misplaced { key: "metric", why })
            }
        }
    }

    /// Returns the same track, whose window ends at this time, if any, and does not move there.
    pub(super) fn ending_at(self, ends: Option<Timestamp>) -> Self {
        Self { ends, ..self }
    }

    /// Returns the same track, of a period that is packed, or not.
    pub(super) fn packed_as(self, packed: Option<Packed>) -> Self {
        Self { packed, ..self }
    }

    /// Returns the numbers of its ranking, if it is that of a packed period: then its lines are in
    /// [sheets](crate::store::Store::sheets), and it has nothing else.
    pub fn packed(&self) -> Option<Packed> {
        self.packed
    }

    /// Returns the end of the slot that starts at `head`.
    pub fn end_of(&self, head: Timestamp) -> Timestamp {
        self.ends.unwrap_or_else(|| self.calendar.next(head))
    }

    /// Returns the calendar whose slots begin with the boundaries at which the ranks of the track are noted, if they are.
    pub fn boundaries(&self) -> Option<&Calendar> {
        self.boundaries.as_ref()
    }

    /// Returns the calendar of the days in which a person adds up to the cap, if there is one.
    pub fn days(&self) -> Option<&Calendar> {
        self.days.as_ref()
    }

    /// Returns the start of the day in which an item counts for the cap of its person, if there is one.
    pub fn day_of(&self, at: Timestamp) -> Option<Timestamp> {
        self.days.as_ref().map(|days| days.slot_of(at))
    }

    /// Returns the newest boundary at an instant, and the next one, if the ranks of the track are noted at boundaries.
    pub fn boundaries_at(&self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        self.boundaries.as_ref().map(|calendar| (calendar.slot_of(now), calendar.next(now)))
    }

    /// Returns where the head of the track must have been before a boundary for the ranks to be those at the boundary,
    /// when a call at `now` is the first one after it. `None` if that cannot be: a slot in between has left the window
    /// only in part, or has been written to.
    pub fn head_before(&self, boundary: Timestamp, now: Timestamp) -> Option<Timestamp> {
        if self.is_all_time() {
            return Some(Timestamp::EPOCH);
        }
        (self.calendar.slot_of(now) == boundary).then(|| self.calendar.previous(boundary))
    }

    pub fn id(&self) -> TrackId {
        self.id
    }

    pub fn role(&self) -> TrackRole {
        self.role
    }

    /// Returns the metric with the window of this track.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// Returns the metric in its canonical form.
    pub fn canonical_metric(&self) -> &Arc<str> {
        &self.canonical_metric
    }

    /// Returns the length of a slot, or `None` if the track has no slots to the outside.
    pub fn slot(&self) -> Option<Span> {
        self.slot
    }

    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// Returns the length of the window.
    pub fn length(&self) -> WindowLength {
        self.metric.window
    }

    /// Returns the number of slots in the window.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the number of newest slots that answer for this length, in whatever way it is asked for: those that are as
    /// long, and the [additional](Self::additional_slots) one, so that a window with `cover = full` is never shorter than
    /// what was asked for. `None` if there are not as many, or if the length cannot be compared with that of a slot.
    pub fn slots_for(&self, length: Span) -> Option<u32> {
        let slots = self.calendar.slots_covering(length)?.checked_add(u64::from(self.additional_slots()))?;
        u32::try_from(slots).ok().filter(|slots| *slots <= self.slots)
    }

    /// Returns the number of slots that a window has in addition to those that are as long as it: 1 with `cover = full`.
    pub fn additional_slots(&self) -> u32 {
        u32::from(self.cover == Cover::Full)
    }

    /// Returns the number of slots that are kept. A ranked track keeps the slots of its window. An unranked one keeps
    /// one slot more, or as many as `keep` asks for.
    pub fn kept(&self) -> u32 {
        self.kept
    }

    /// Returns the start of the oldest slot that is kept while the window has this floor. O(1) on a ranked track,
    /// otherwise O(kept slots).
    pub fn oldest_kept(&self, floor: Timestamp) -> Timestamp {
        (self.slots..self.kept).fold(floor, |start, _| self.calendar.previous(start))
    }

    /// Returns whether the track has a ranking.
    pub fn is_ranked(&self) -> bool {
        self.is_ranked
    }

    /// Returns whether the track counts over all time. Then it has one slot inside, which never ends, and no slots to
    /// the outside.
    pub fn is_all_time(&self) -> bool {
        self.metric.window == WindowLength::All
    }

    /// Returns whether each subject has a window of its own, which begins with its first event.
    pub fn is_from_first(&self) -> bool {
        self.role == TrackRole::FromFirst
    }

    pub fn cover(&self) -> Cover {
        self.cover
    }

    /// Returns how the slots combine.
    pub fn kind(&self) -> Kind {
        self.edition.kind()
    }

    pub fn order(&self) -> Order {
        self.edition.order
    }

    /// Returns whether subjects that tie share a rank, or each line has a rank of its own.
    pub fn ranks(&self) -> Ranks {
        self.edition.ranks
    }

    pub fn decimals(&self) -> Decimals {
        self.scale.decimals
    }

    /// Returns the unit of the numbers of the track.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns the bound of the second keys in a slot, if there are such and they are added up. Elsewhere each number has
    /// one key.
    pub fn key_bound(&self) -> Option<KeyBound> {
        let parts = if self.is_all_time() { 1 } else { 2 * i64::from(self.slots) };
        self.scale.key_bound(parts).filter(|_| self.kind() == Kind::Sum)
    }

    /// Returns the largest number of values that are stored for a subject, for COUNT_DISTINCT.
    pub fn max_values(&self) -> Option<u32> {
        self.edition.max_values
    }

    /// Returns the largest number of keys with a ranking, if the track has a [ranking for each key](Definition::most_keys).
    pub fn most_keys(&self) -> Option<u32> {
        self.edition.most_keys().filter(|_| self.is_ranked)
    }

    /// Returns, for AVG, how measurements make a score.
    pub fn averaging(&self) -> Averaging {
        self.averaging
    }

    /// Returns the combined value of the aggregates: a subject's score, or the value of a window. See [`Kind::value`].
    pub fn value<'a>(&self, aggregates: impl IntoIterator<Item = &'a Aggregate>) -> Option<Value> {
        self.kind().value(aggregates, self.averaging)
    }

    /// Returns the largest magnitude that one subject may hold in one slot, in units: (2^53 − 1) / (2 x slots). With
    /// this bound no sum of live and retiring slots exceeds 2^53 − 1, in whatever order they are added and subtracted.
    /// Over all time, where nothing retires, it is 2^53 − 1.
    pub fn slot_bound(&self) -> Amount {
        if self.is_all_time() { Amount(EXACT_MAX) } else { Amount(EXACT_MAX / (2 * i64::from(self.slots))) }
    }

    /// Returns a sentence about the scores and second keys that a subject can have, if equal scores have an order.
    pub fn note_of_keys(&self) -> Option<String> {
        if !self.scale.has_keys() {
            return None;
        }
        if !self.kind().is_sum() {
            let score = self.scale.shown(self.scale.largest());
            return Some(format!("window {}: a score is from -{score} to {score}", self.length()));
        }
        let place = match (self.is_all_time(), self.role) {
            (true, _) => "in all",
            (false, TrackRole::KeptSlots) => "in one kept slot",
            (false, _) => "in one slot",
        };
        let score = self.scale.shown(self.scale.largest_within(self.slot_bound()));
        let key = self.key_bound().map(|KeyBound { most, .. }| format!(" and a second key from -{most} to {most}"));
        let key = key.unwrap_or_default();
        Some(format!("window {}: {place} a subject has a score from -{score} to {score}{key}", self.length()))
    }

    /// Returns how long a COUNT_DISTINCT total over all time remembers that a value was taken back, in milliseconds.
    /// Other tracks, for which this is `None`, remember it until the slot of the retraction expires.
    pub fn tombstone_life(&self) -> Option<i64> {
        (self.is_all_time() && self.kind().remembers_values()).then_some(DAY)
    }

    /// Returns the time, in milliseconds, for which an item can count: the length of the window, and the additional
    /// slot of `cover = full`.
    pub(super) fn life(&self) -> i64 {
        let additional = match (self.cover, self.slot) {
            (Cover::Full, Some(slot)) => slot.approximate_millis(),
            _ => 0,
        };
        self.length().approximate_millis().saturating_add(additional)
    }

    /// Returns a note if one slot is a large part of the given number of newest slots: the newest one is only partly
    /// over, so they cover noticeably less time than their length. Returns `None` with `cover = "full"`.
    pub fn coarseness(&self, slots: u32) -> Option<String> {
        const LARGE_PART: u32 = 4;
        let slot = self.slot.filter(|_| !self.is_all_time())?;
        if slots > LARGE_PART || self.cover == Cover::Full || self.is_from_first() {
            return None;
        }
        let (least, are) = (slots - slots.min(1), if slots == 1 { "slot is" } else { "slots are" });
        Some(format!(
            "{slots} {are} read, each of {slot}: between {least} and {slots} x {slot} of time count, because the newest slot is \
             only partly over; shorter slots or cover = \"full\" count nearly the whole time or more"
        ))
    }

    /// Returns whether the window is one slot of a day or more, such as today or this month: it is meant to begin
    /// empty.
    pub fn is_calendar(&self) -> bool {
        self.slots == 1 && self.slot.is_some_and(|slot| slot.approximate_millis() >= DAY)
    }

    /// Returns the window at `now`. O(slots); a [`WindowSlots`] that is kept makes it O(1) while the head stays the
    /// same.
    pub fn window_at(&self, now: Timestamp) -> Window {
        WindowSlots::at(self, now).window
    }

    /// Returns where an increment for `at` belongs when the store's clock reads `now` and the window is `window`.
    /// Without `at`, or with `at` up to `max_skew` milliseconds ahead, it belongs to the head.
    pub fn place(&self, at: Option<Timestamp>, now: Timestamp, window: &Window, max_skew: i64) -> Placement {
        if self.is_from_first() {
            return self.place_in_life(at.unwrap_or(now), now, max_skew);
        }
        match at {
            None => Placement::Slot(window.head),
            Some(at) if at >= window.head => {
                if at > now.plus_millis(max_skew) {
                    Placement::TooEarly
                } else {
                    Placement::Slot(window.head)
                }
            }
            Some(at) if at < window.floor => Placement::TooLate,
            Some(at) => Placement::Slot(self.calendar.slot_of(at)),
        }
    }

    /// Returns where an increment belongs on a `from_first` board. Such a board has no slots: any time within the last
    /// window length is accepted and is its own slot.
    fn place_in_life(&self, at: Timestamp, now: Timestamp, max_skew: i64) -> Placement {
        let life = self.length().approximate_millis();
        if at > now.plus_millis(max_skew) {
            Placement::TooEarly
        } else if at.millis() <= now.millis().saturating_sub(life) {
            // Not computed with `plus_millis`, which stops at the epoch.
            Placement::TooLate
        } else {
            Placement::Slot(at.min(now))
        }
    }

    /// Returns where a sample with time `at` belongs: its own slot, never one after the head. With `stamp = "end"` this
    /// is the slot of the last instant before `at`, so `at` may be the end of the slot. Unlike an increment it is not
    /// moved back to the head, because a sample *replaces* the content of its slot and must not replace another slot's.
    pub fn place_sample(&self, at: Timestamp, window: &Window) -> Placement {
        let at = match self.edition.stamp {
            Stamp::End if !self.is_all_time() => at.plus_millis(-1),
            _ => at,
        };
        if at < window.floor {
            Placement::TooLate
        } else if at >= window.end {
            Placement::TooEarly
        } else {
            Placement::Slot(self.calendar.slot_of(at))
        }
    }
}

impl TrackRole {
    /// Returns the role of the first track of an edition.
    pub(super) fn of_first(definition: &Definition) -> Self {
        match definition.mode {
            Mode::Sliding => TrackRole::Window,
            Mode::FromFirst => TrackRole::FromFirst,
        }
    }
}
