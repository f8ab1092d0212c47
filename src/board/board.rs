//! A board: a validated definition with the arithmetic of its windows.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{
    Aggregate, Amount, BoardName, Calendar, Change, Cover, Decimals, Definition, DefinitionError, EXACT_MAX, Kind,
    Layout, Mode, Order, Placement, Span, Stamp, Timestamp, Value, Window, WindowLength,
};

/// A day, in milliseconds: the longest dedupe horizon unless the definition has one, and the time for which a board over
/// all time remembers that a value was taken back.
const DAY: i64 = 86_400_000;

/// The most slots by which a cached window is moved forward. If it has to move further, its slots are computed again.
const MAX_STEPS: u32 = 64;

/// A number that tells a board from a deleted one of the same name. Drawn at random when the board is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Generation {
    /// Returns the generation of a board's [track](Board::tracks) with this number, given that of the board, which is that
    /// of track 0.
    #[must_use]
    pub fn of_track(self, number: usize) -> Self {
        Self(self.0.wrapping_add(number as u64))
    }
}

/// A board: a validated definition with its name, its generation and the arithmetic of its windows.
///
/// Each further window of a board is a `Board` too, with the same name, a definition that has this window only, and a
/// generation of its own. So whatever is read, retired or audited about a window is about a board. Only what is written
/// concerns a board with all its windows.
#[derive(Debug)]
pub struct Board {
    name: BoardName,
    generation: Generation,
    definition: Definition,
    calendar: Calendar,
    slots: u32,
    kind: Kind,
    kept: u32,
    parts: Option<Box<str>>,
    defined_at: Option<Timestamp>,
    dedupe_horizon: i64,
    dedupe_bucket: i64,
    clock_tolerance: i64,
    further: Vec<Arc<Board>>,
    is_further: bool,
    /// The last window asked for, with the starts of its slots. The lock is held only for a copy, never across an
    /// await.
    latest: Mutex<Option<(Window, Arc<[Timestamp]>)>>,
}

impl Board {
    /// Creates a board from a definition, which is validated here.
    pub fn new(name: BoardName, generation: Generation, definition: Definition) -> Result<Self, DefinitionError> {
        // First, because the errors of further boards do not say which key of this definition is wrong.
        let mut board = Self::of_one_window(name, generation, definition)?;
        let definition = &board.definition;
        let windows = definition.windows.iter().map(|window| definition.of_window(*window));
        let mut further = Vec::with_capacity(definition.windows.len());
        for (own, number) in windows.chain(definition.of_kept_slots()).zip(1..) {
            let further_board = Self::of_one_window(board.name.clone(), generation.of_track(number), own)?;
            further.push(Self { is_further: true, ..further_board });
        }
        let all = || std::iter::once(&board).chain(&further);
        let longest = |of: fn(&Board) -> i64| all().map(of).max().unwrap_or(DAY);
        let (dedupe_horizon, dedupe_bucket) = match definition.dedupe.map(Span::approximate_millis) {
            Some(dedupe) => (dedupe, dedupe / 2),
            None => (longest(|board| board.dedupe_horizon), longest(|board| board.dedupe_bucket)),
        };
        let clock_tolerance = all().map(|board| board.clock_tolerance).min().unwrap_or(DAY);
        for board in std::iter::once(&mut board).chain(&mut further) {
            (board.dedupe_horizon, board.dedupe_bucket) = (dedupe_horizon, dedupe_bucket);
            board.clock_tolerance = clock_tolerance;
        }
        Ok(Self { further: further.into_iter().map(Arc::new).collect(), ..board })
    }

    /// Creates a board without its further windows.
    fn of_one_window(name: BoardName, generation: Generation, definition: Definition) -> Result<Self, DefinitionError> {
        let Layout { calendar, slots, kept } = definition.layout()?;
        let (kind, length) = (definition.kind(), definition.metric.window);
        let standard = length.approximate_millis();
        let additional = match (definition.cover, definition.slot) {
            (Cover::Full, Some(slot)) => slot.approximate_millis(),
            _ => 0,
        };
        Ok(Self {
            dedupe_horizon: standard.saturating_add(additional).min(DAY),
            dedupe_bucket: standard.min(DAY) / 2,
            clock_tolerance: if length == WindowLength::All { DAY } else { standard },
            name,
            generation,
            definition,
            calendar,
            slots,
            kind,
            kept,
            parts: None,
            defined_at: None,
            further: Vec::new(),
            is_further: false,
            latest: Mutex::new(None),
        })
    }

    /// Returns the same board with the store's description of how it is divided into parts. Only the store interprets
    /// the text.
    #[must_use]
    pub fn with_parts(self, parts: Option<Box<str>>) -> Self {
        let divided = |further: Arc<Board>| match Arc::try_unwrap(further) {
            Ok(board) => Arc::new(board.with_parts(parts.clone())),
            Err(shared) => shared,
        };
        let further = self.further.into_iter().map(divided).collect();
        Self { further, parts, ..self }
    }

    /// Returns the same board with the store's time of its definition.
    #[must_use]
    pub fn with_defined_at(self, defined_at: Option<Timestamp>) -> Self {
        let defined = |further: Arc<Board>| match Arc::try_unwrap(further) {
            Ok(board) => Arc::new(board.with_defined_at(defined_at)),
            Err(shared) => shared,
        };
        let further = self.further.into_iter().map(defined).collect();
        Self { further, defined_at, ..self }
    }

    /// Returns the store's time when the board was defined, or `None` if the store has not recorded it: earlier versions
    /// did not.
    pub fn defined_at(&self) -> Option<Timestamp> {
        self.defined_at
    }

    /// Returns the time since which the board has counted if that is after `start`, so that it does not cover all the time
    /// from `start` on. Only the definition decides: items that are older than the board may have been added to it since. A
    /// board whose time of definition is not known covers every time.
    pub fn covers_since(&self, start: Timestamp) -> Option<Timestamp> {
        self.defined_at.filter(|defined_at| *defined_at > start)
    }

    /// Returns the further boards that a write to this board changes: its further windows, in the order of
    /// [`Definition::windows`], or its [kept slots](Self::kept_slots).
    pub fn further(&self) -> &[Arc<Board>] {
        &self.further
    }

    /// Returns all boards that a write to this board changes: first the board itself, then the
    /// [further](Self::further) ones.
    pub fn tracks(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Board>> {
        std::iter::once(self).chain(&self.further)
    }

    /// Returns whether this is one of the [further](Self::further) boards of a board.
    pub fn is_further(&self) -> bool {
        self.is_further
    }

    /// Returns the further windows: [`further`](Self::further) without kept slots.
    pub fn further_windows(&self) -> &[Arc<Board>] {
        if self.kept_slots().is_some() { &[] } else { &self.further }
    }

    /// Returns the board itself, which stands for its main window, and then its further windows.
    pub fn windows(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Board>> {
        std::iter::once(self).chain(self.further_windows())
    }

    /// Returns the unranked board that stores the newest slots of a board over all time, if it [keeps](Definition::keep)
    /// any. They do not add up to its totals.
    pub fn kept_slots(&self) -> Option<&Arc<Board>> {
        self.further.first().filter(|_| self.is_all_time() && self.definition.keep.is_some())
    }

    /// Returns whether events and samples belong to slots by their time, so that a retraction and a sample must name
    /// one. A board over all time without [kept slots](Self::kept_slots) has no slots.
    pub fn has_slots(&self) -> bool {
        !self.is_all_time() || self.kept_slots().is_some()
    }

    /// Returns a note if one slot is a large part of the given number of newest slots: the newest one is only partly over, so
    /// they cover noticeably less time than their length. Returns `None` for boards with `cover = "full"`.
    pub fn coarseness(&self, slots: u32) -> Option<String> {
        const LARGE_PART: u32 = 4;
        let slot = self.definition.slot.filter(|_| !self.is_all_time())?;
        if slots > LARGE_PART || self.definition.cover == Cover::Full || self.definition.mode == Mode::FromFirst {
            return None;
        }
        let (least, are) = (slots - slots.min(1), if slots == 1 { "slot is" } else { "slots are" });
        Some(format!(
            "{slots} {are} read, each of {slot}: between {least} and {slots} x {slot} of time count, because the newest slot is \
             only partly over; shorter slots or cover = \"full\" count nearly the whole time or more"
        ))
    }

    /// Returns whether the window is one slot of a day or more, such as today or this month: it is meant to begin empty.
    pub fn is_calendar(&self) -> bool {
        self.slots == 1 && self.definition.slot.is_some_and(|slot| slot.approximate_millis() >= DAY)
    }

    /// Returns the window of this length, or `None` if the board has none. Of two windows of one length, such as `1w` and
    /// `7d`, it is the one that is written so, or else the first.
    pub fn window_of(self: &Arc<Self>, length: WindowLength) -> Option<&Arc<Board>> {
        let written_so = self.windows().find(|board| board.length() == length);
        written_so.or_else(|| self.windows().find(|board| board.length().is_as_long_as(length)))
    }

    /// Returns the number of the [track](Self::tracks) with this generation: 0 for the board itself. Returns `None` if it
    /// belongs to a different board.
    pub fn track_number(&self, generation: Generation) -> Option<usize> {
        let number = usize::try_from(generation.0.wrapping_sub(self.generation.0)).ok()?;
        (number <= self.further.len()).then_some(number)
    }

    /// Returns the store's description of how the board is divided into parts, or `None` if it is not divided.
    pub fn parts(&self) -> Option<&str> {
        self.parts.as_deref()
    }

    pub fn name(&self) -> &BoardName {
        &self.name
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    pub fn order(&self) -> Order {
        self.definition.order
    }

    pub fn decimals(&self) -> Decimals {
        self.definition.decimals
    }

    /// Returns the length of the window.
    pub fn length(&self) -> WindowLength {
        self.definition.metric.window
    }

    /// Returns the number of slots in the window.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the number of slots that the board keeps. A ranked board keeps the slots of its window. An unranked
    /// board keeps one slot more, or as many as `keep` asks for.
    pub fn kept(&self) -> u32 {
        self.kept
    }

    /// Returns how the board's slots combine.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether the board has a ranking.
    pub fn is_ranked(&self) -> bool {
        self.definition.ranked
    }

    /// Returns whether the board's metric accepts this change.
    pub fn takes(&self, change: &Change) -> bool {
        match change {
            Change::Amount(_) => !matches!(self.kind, Kind::Distinct | Kind::Sketch),
            Change::Seen(_) => matches!(self.kind, Kind::Distinct | Kind::Sketch),
            Change::Set { .. } => {
                !matches!(self.kind, Kind::Distinct | Kind::Sketch)
                    && self.definition.mode == Mode::Sliding
                    && match self.kept_slots() {
                        // The extreme of all time cannot be computed again without the replaced value.
                        Some(_) => !matches!(self.kind, Kind::Min | Kind::Max),
                        None => self.further.is_empty(),
                    }
            }
        }
    }

    /// Returns whether a retraction can be subtracted. It cannot for extremes, newest values and sketches, which do not
    /// store the values that they were computed from.
    pub fn takes_retractions(&self) -> bool {
        matches!(self.kind, Kind::Sum | Kind::Mean | Kind::Distinct)
    }

    /// Returns, for AVG, the number of measurements that a subject needs to be ranked.
    pub fn min_samples(&self) -> i64 {
        i64::from(self.definition.min_samples)
    }

    /// Returns the combined value of the aggregates: a subject's score, or the value of a window. See [`Kind::value`].
    pub fn value<'a>(&self, aggregates: impl IntoIterator<Item = &'a Aggregate>) -> Option<Value> {
        self.kind.value(aggregates, self.min_samples())
    }

    /// Returns the largest magnitude that one subject may hold in one slot, in units: (2^53 − 1) / (2 x slots). With
    /// this bound no sum of live and retiring slots exceeds 2^53 − 1, in whatever order they are added and subtracted.
    /// Over all time, where nothing retires, it is 2^53 − 1.
    pub fn slot_bound(&self) -> Amount {
        if self.is_all_time() { Amount(EXACT_MAX) } else { Amount(EXACT_MAX / (2 * i64::from(self.slots))) }
    }

    /// Returns how long the id of an event is remembered after its arrival, in milliseconds: as long as `dedupe` says,
    /// or else for the longest window with the additional slot of `cover = full`, at most a day.
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

    /// Returns whether the board counts over all time. Then it has one slot inside, which never ends, and no slots to
    /// the outside.
    pub fn is_all_time(&self) -> bool {
        self.definition.metric.window == WindowLength::All
    }

    /// Returns how long a COUNT_DISTINCT board over all time remembers that a value was taken back, in milliseconds. Other
    /// boards, for which this is `None`, remember it until the slot of the retraction expires.
    pub fn tombstone_life(&self) -> Option<i64> {
        (self.is_all_time() && self.kind == Kind::Distinct).then_some(DAY)
    }

    /// Returns the time, in milliseconds, that a clock must be ahead of the expected time to be doubted: the shortest
    /// window. Over all time, where a wrong clock expires ids and tombstones only, it is a day, also if `dedupe` is
    /// shorter: otherwise each longer restart would be doubted.
    pub fn clock_tolerance(&self) -> i64 {
        self.clock_tolerance
    }

    /// Returns the window at `now`. O(1) while the head stays the same. A move of the head copies the starts; a move of
    /// more than 64 slots computes all of them again, O(slots).
    pub fn window_at(&self, now: Timestamp) -> Window {
        self.window_and_starts(now).0
    }

    /// Returns the window at `now` and the start of each of its slots, oldest first. Costs the same as
    /// [`window_at`](Self::window_at).
    pub fn window_and_starts(&self, now: Timestamp) -> (Window, Arc<[Timestamp]>) {
        let mut latest = self.latest.lock();
        if let Some((window, starts)) = latest.as_ref()
            && window.holds_at(now)
        {
            return (*window, starts.clone());
        }
        let head = self.calendar.slot_of(now);
        if let Some((window, starts)) = latest.as_ref().and_then(|(window, starts)| self.moved(window, starts, head)) {
            *latest = Some((window, starts.clone()));
            return (window, starts);
        }
        let mut starts = Vec::with_capacity(self.slots as usize);
        starts.push(head);
        while starts.len() < self.slots as usize {
            let oldest = starts[starts.len() - 1];
            let before = self.calendar.previous(oldest);
            if before == oldest {
                break; // there is no slot before the epoch
            }
            starts.push(before);
        }
        starts.reverse();
        let window = Window { floor: starts[0], head, end: self.calendar.next(head) };
        let starts: Arc<[Timestamp]> = starts.into();
        *latest = Some((window, starts.clone()));
        (window, starts)
    }

    /// Returns the window and its starts after the head has moved to `head`, or `None` if it moved by more than
    /// [`MAX_STEPS`] slots.
    fn moved(&self, window: &Window, starts: &[Timestamp], head: Timestamp) -> Option<(Window, Arc<[Timestamp]>)> {
        let mut starts = starts.to_vec();
        let mut next = window.end;
        for _ in 0..MAX_STEPS {
            if next > head || starts.last().is_none_or(|last| *last >= next) {
                break;
            }
            starts.push(next);
            next = self.calendar.next(next);
        }
        if starts.last() != Some(&head) {
            return None;
        }
        let surplus = starts.len().saturating_sub(self.slots as usize);
        let starts: Arc<[Timestamp]> = starts[surplus..].into();
        Some((Window { floor: starts[0], head, end: next }, starts))
    }

    /// Returns where an increment for `at` belongs when the store's clock reads `now` and the window is `window`.
    /// Without `at`, or with `at` up to `max_skew` milliseconds ahead, it belongs to the head.
    pub fn place(&self, at: Option<Timestamp>, now: Timestamp, window: &Window, max_skew: i64) -> Placement {
        if self.definition.mode == Mode::FromFirst {
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
        let life = self.definition.metric.window.approximate_millis();
        if at > now.plus_millis(max_skew) {
            Placement::TooEarly
        } else if at.millis() <= now.millis().saturating_sub(life) {
            // Not computed with `plus_millis`, which stops at the epoch.
            Placement::TooLate
        } else {
            Placement::Slot(at.min(now))
        }
    }

    /// Returns where a sample with time `at` belongs: its own slot, never one after the head. With `stamp = "end"` this is
    /// the slot of the last instant before `at`, so `at` may be the end of the slot. Unlike an increment it is not moved
    /// back to the head, because a sample *replaces* the content of its slot and must not replace another slot's.
    pub fn place_sample(&self, at: Timestamp, window: &Window) -> Placement {
        let at = match self.definition.stamp {
            Stamp::Start => at,
            Stamp::End => at.plus_millis(-1),
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

#[cfg(test)]
mod tests;
