//! A defined board, ready to do arithmetic with.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{
    Amount, BoardName, Calendar, Change, Decimals, Definition, DefinitionError, EXACT_MAX, Kind, Layout, Mode, Order,
    Placement, Stamp, Tally, Timestamp, Value, Window,
};

/// The longest dedupe horizon unless the window is shorter: a day, in milliseconds.
const LONGEST_DEDUPE_HORIZON: i64 = 86_400_000;

/// By so many slots a window is moved on; if it moved farther, its slots are looked up again.
const MOST_STEPS: u32 = 64;

/// Sets a board apart from a deleted one of the same name: drawn at random when it is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A defined board, ready to do arithmetic with.
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
    /// The last window asked for with its starts: a std-size lock held for a copy, never across an await.
    latest: Mutex<Option<(Window, Arc<[Timestamp]>)>>,
}

impl Board {
    /// Validates a definition.
    pub fn new(name: BoardName, generation: Generation, definition: Definition) -> Result<Self, DefinitionError> {
        let Layout { calendar, slots, kept } = definition.layout()?;
        let kind = definition.kind();
        let (parts, latest) = (None, Mutex::new(None));
        Ok(Self { name, generation, definition, calendar, slots, kind, kept, parts, latest })
    }

    /// The same board with how its store has divided it, in the store's own words.
    #[must_use]
    pub fn with_parts(self, parts: Option<Box<str>>) -> Self {
        Self { parts, ..self }
    }

    /// How its store has divided it, in the store's own words; `None` if it has not.
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

    /// How many slots the window has.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// How many slots it keeps: those of the window and, unranked, one more or as many as it was told to.
    pub fn kept(&self) -> u32 {
        self.kept
    }

    /// How its slots combine.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it has a ranking.
    pub fn is_ranked(&self) -> bool {
        self.definition.ranked
    }

    /// Whether its metric takes such a change.
    pub fn takes(&self, change: &Change) -> bool {
        match change {
            Change::Amount(_) => !matches!(self.kind, Kind::Distinct | Kind::Sketch),
            Change::Seen(_) => matches!(self.kind, Kind::Distinct | Kind::Sketch),
            Change::Set { .. } => {
                !matches!(self.kind, Kind::Distinct | Kind::Sketch) && self.definition.mode == Mode::Sliding
            }
        }
    }

    /// Whether a retraction can be undone: an extreme or a sketch does not tell what else there was.
    pub fn takes_retractions(&self) -> bool {
        matches!(self.kind, Kind::Sum | Kind::Mean | Kind::Distinct)
    }

    /// AVG: how often a subject must have been measured to be ranked.
    pub fn min_samples(&self) -> i64 {
        i64::from(self.definition.min_samples)
    }

    /// What slots say together: a subject's score, or the value of a window. See [`Kind::value`].
    pub fn value<'a>(&self, tallies: impl IntoIterator<Item = &'a Tally>) -> Option<Value> {
        self.kind.value(tallies, self.min_samples())
    }

    /// The largest magnitude one (slot, subject) may hold, in units: (2^53 − 1) / (2 x slots). With it, no sum
    /// of live and retiring slots passes 2^53 − 1, in whatever order they are added and subtracted.
    pub fn slot_bound(&self) -> Amount {
        Amount(EXACT_MAX / (2 * i64::from(self.slots)))
    }

    /// How long an event's id is remembered from its arrival, in milliseconds: the window, a day at most.
    pub fn dedupe_horizon(&self) -> i64 {
        self.definition.metric.window.approximate_millis().min(LONGEST_DEDUPE_HORIZON)
    }

    /// The window at `now`. O(1) while the head stays, a copy when it moves, O(slots) of calendar arithmetic when it
    /// moves far.
    pub fn window_at(&self, now: Timestamp) -> Window {
        self.window_and_starts(now).0
    }

    /// The window at `now` and the start of each of its slots, oldest first. Same cost.
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
                break; // the epoch: there is nothing before it
            }
            starts.push(before);
        }
        starts.reverse();
        let window = Window { floor: starts[0], head, end: self.calendar.next(head) };
        let starts: Arc<[Timestamp]> = starts.into();
        *latest = Some((window, starts.clone()));
        (window, starts)
    }

    /// The window and its starts once the head has moved a little on to `head`; `None` if it moved far.
    fn moved(&self, window: &Window, starts: &[Timestamp], head: Timestamp) -> Option<(Window, Arc<[Timestamp]>)> {
        let mut starts = starts.to_vec();
        let mut next = window.end;
        for _ in 0..MOST_STEPS {
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

    /// Where an increment for `at` belongs when the store's clock reads `now` and the window is `window`.
    /// Without `at`, or up to `max_skew` milliseconds ahead, it belongs to the head.
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

    /// On a `from_first` board there are no slots: any time within the last window belongs, to itself.
    fn place_in_life(&self, at: Timestamp, now: Timestamp, max_skew: i64) -> Placement {
        let life = self.definition.metric.window.approximate_millis();
        if at > now.plus_millis(max_skew) {
            Placement::TooEarly
        } else if at.millis() <= now.millis().saturating_sub(life) {
            // Not by `plus_millis`, which ends at the epoch.
            Placement::TooLate
        } else {
            Placement::Slot(at.min(now))
        }
    }

    /// Where a sample stamped `at` belongs: to its own slot, never a later one than the head, for a sample *sets* its
    /// slot and must not set another.
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
mod tests {
    use super::*;
    use crate::board::Cover;

    fn board(metric: &str, slot: &str, zone: &str, cover: Cover) -> Board {
        let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
        definition.timezone = zone.parse().unwrap();
        definition.cover = cover;
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
    }

    fn t(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn window_is_the_last_n_slots_with_now_inside() {
        let b = board("COUNT(24h, like, post)", "1h", "UTC", Cover::Current);
        let window = b.window_at(t("2026-01-02T09:00:00Z"));
        assert_eq!(
            window,
            Window {
                floor: t("2026-01-01T10:00:00Z"),
                head: t("2026-01-02T09:00:00Z"),
                end: t("2026-01-02T10:00:00Z")
            }
        );
        assert_eq!(b.window_at(t("2026-01-02T08:59:59.999Z")).floor, t("2026-01-01T09:00:00Z"));
        let full = board("COUNT(24h, like, post)", "1h", "UTC", Cover::Full);
        assert_eq!((full.slots(), full.window_at(t("2026-01-02T09:00:00Z")).floor), (25, t("2026-01-01T09:00:00Z")));
    }

    #[test]
    fn a_window_over_a_clock_change_still_has_n_slots() {
        let b = board("COUNT(24h, like, post)", "1h", "Europe/Berlin", Cover::Current);
        let (window, starts) = b.window_and_starts(t("2026-03-29T12:30:00Z"));
        assert_eq!(starts.len(), 24);
        assert_eq!(window.floor, t("2026-03-28T13:00:00Z"));
        let days = board("COUNT(7d, like, post)", "1d", "Europe/Berlin", Cover::Current);
        assert_eq!(days.window_at(t("2026-03-30T12:00:00Z")).floor, t("2026-03-23T23:00:00Z"));
    }

    #[test]
    fn increments_are_placed_by_their_time() {
        let b = board("COUNT(3h, like, post)", "1h", "UTC", Cover::Current);
        let now = t("2026-01-02T09:59:58Z");
        let window = b.window_at(now);
        let place = |at: &str| b.place(Some(t(at)), now, &window, 5_000);
        assert_eq!(b.place(None, now, &window, 5_000), Placement::Slot(window.head));
        assert_eq!(place("2026-01-02T07:00:00Z"), Placement::Slot(t("2026-01-02T07:00:00Z")));
        assert_eq!(place("2026-01-02T06:59:59.999Z"), Placement::TooLate);
        assert_eq!(place("2026-01-02T08:59:59.999Z"), Placement::Slot(t("2026-01-02T08:00:00Z")));
        // Ahead, even over the boundary: counts as now. There are no future slots.
        assert_eq!(place("2026-01-02T10:00:03Z"), Placement::Slot(window.head));
        assert_eq!(place("2026-01-02T10:00:03.001Z"), Placement::TooEarly);
    }

    #[test]
    fn bounds_follow_from_the_slots() {
        let b = board("COUNT(24h, like, post)", "1h", "UTC", Cover::Current);
        assert_eq!(b.slot_bound(), Amount(EXACT_MAX / 48));
        assert_eq!(b.dedupe_horizon(), 86_400_000);
    }

    #[test]
    fn a_window_that_moves_on_is_the_one_looked_up() {
        for (metric, slot, zone) in [
            ("COUNT(90m, a, b)", "30m", "UTC"),
            ("COUNT(12h, a, b)", "1h", "Australia/Lord_Howe"),
            ("COUNT(5d, a, b)", "1d", "Pacific/Apia"),
            ("COUNT(3mo, a, b)", "1mo", "America/Havana"),
        ] {
            let define = || {
                let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
                definition.timezone = zone.parse().unwrap();
                Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
            };
            let moving = define();
            for from in [0, 1_325_000_000_000] {
                let mut now = Timestamp::from_millis(from);
                for step in 0..300i64 {
                    assert_eq!(moving.window_and_starts(now), define().window_and_starts(now), "{metric} {now:?}");
                    now = now.plus_millis([600_000, 3_600_000, 86_400_000, 7_000_000][step as usize % 4]);
                }
            }
        }
    }
}
