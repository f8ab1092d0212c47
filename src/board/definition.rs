//! A board: a named metric over a rolling window, and everything its stored data depends on.

use std::fmt;
use std::sync::Arc;

use chrono_tz::Tz;
use parking_lot::Mutex;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    Amount, BoardName, Calendar, Change, Decimals, EXACT_MAX, Kind, Metric, Placement, SlotError, Span, Tally,
    Timestamp, Value, Window,
};

/// The most slots a window may have.
pub const MAX_SLOTS: u64 = 2_000;

/// The longest dedupe horizon unless the window is shorter: a day, in milliseconds.
const LONGEST_DEDUPE_HORIZON: i64 = 86_400_000;

/// Which end of the scores is the top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The highest score is first; ties by subject, the greatest bytes first.
    #[default]
    Desc,
    /// The lowest score is first (lap times); ties by subject, the smallest bytes first.
    Asc,
}

/// How much time the window's slots are sure to cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cover {
    /// `window / slot` slots, the one containing now included: between N−1 and N slots of time.
    #[default]
    Current,
    /// One slot more, so that the window is never shorter than it says.
    Full,
}

/// When a subject's window begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It slides: the last so many slots, for every subject the same.
    #[default]
    Sliding,
    /// It begins with the subject's first event and ends a fixed time later; the next event begins another.
    /// COUNT and SUM on unranked boards only.
    FromFirst,
}

/// Which end of its slot a sample is stamped with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stamp {
    /// 06:02 belongs to 06:02–06:03.
    #[default]
    Start,
    /// 06:02 belongs to 06:01–06:02.
    End,
}

/// What a board is declared with. None of it can change while the board holds data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub metric: Metric,
    pub slot: Span,
    pub decimals: Decimals,
    pub timezone: Tz,
    pub order: Order,
    pub cover: Cover,
    /// Whether there is a ranking. Without one a subject's slots are read by themselves, and nothing rolls over.
    pub ranked: bool,
    /// Unranked boards: how long slots are kept for looking back (`as_of`); the window and one slot if absent.
    pub keep: Option<Span>,
    pub mode: Mode,
    /// AVG: subjects measured less often than this are not ranked; 1 at least.
    pub min_samples: u32,
    /// COUNT_DISTINCT: the most values remembered per subject; past it the one seen longest ago goes.
    pub max_values: Option<u32>,
    pub stamp: Stamp,
}

/// Why a definition cannot be a board; [`field`](Self::field) names the culprit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    #[error(transparent)]
    Slot(#[from] SlotError),
    #[error("a window of {window} in slots of {slot} would have {slots} slots; at most {MAX_SLOTS} are allowed")]
    TooManySlots { window: Span, slot: Span, slots: u64 },
    #[error("keeping {keep} in slots of {slot} would be {slots} slots; at most {} are allowed", 2 * MAX_SLOTS)]
    TooManyKept { keep: Span, slot: Span, slots: u64 },
    /// A key that does not go with the rest.
    #[error("'{key}' {why}")]
    Misplaced { key: &'static str, why: &'static str },
}

impl DefinitionError {
    /// The key of the definition that is wrong.
    pub fn field(&self) -> &'static str {
        match self {
            DefinitionError::Slot(SlotError::NotWhole { .. }) | DefinitionError::TooManySlots { .. } => "metric",
            DefinitionError::Slot(_) => "slot",
            DefinitionError::TooManyKept { .. } => "keep",
            DefinitionError::Misplaced { key, .. } => key,
        }
    }
}

impl Definition {
    /// A definition with every default: no decimals, UTC, highest first, the current cover.
    pub fn new(metric: Metric, slot: Span) -> Self {
        Self {
            metric,
            slot,
            decimals: Decimals::default(),
            timezone: Tz::UTC,
            order: Order::Desc,
            cover: Cover::Current,
            ranked: true,
            keep: None,
            mode: Mode::Sliding,
            min_samples: 1,
            max_values: None,
            stamp: Stamp::Start,
        }
    }

    /// How the board's slots combine.
    pub fn kind(&self) -> Kind {
        self.metric.aggregate.kind()
    }

    /// Whether its keys go together.
    fn check(&self) -> Result<(), DefinitionError> {
        let misplaced = |key, why| Err(DefinitionError::Misplaced { key, why });
        let kind = self.kind();
        if matches!(kind, Kind::Distinct | Kind::Sketch) && self.decimals != Decimals::default() {
            return misplaced("decimals", "must be 0: distinct values are counted in whole numbers");
        }
        if self.mode == Mode::FromFirst {
            if self.ranked {
                return misplaced("mode", "from_first needs ranked = false: every subject's window is its own");
            }
            if kind != Kind::Sum {
                return misplaced("mode", "from_first takes COUNT and SUM only");
            }
            if self.keep.is_some() || self.cover == Cover::Full {
                return misplaced("mode", "from_first has no slots, so neither 'keep' nor 'cover' applies");
            }
        }
        if self.keep.is_some() && self.ranked {
            return misplaced(
                "keep",
                "needs ranked = false: the slots of a ranked board go when they leave the window",
            );
        }
        if self.keep.is_some() && kind == Kind::Distinct {
            return misplaced("keep", "cannot apply to COUNT_DISTINCT, which forgets older sightings of a value");
        }
        if self.min_samples != 1 && (kind != Kind::Mean || !self.ranked) {
            return misplaced("min_samples", "goes with AVG on ranked boards only");
        }
        if self.min_samples == 0 {
            return misplaced("min_samples", "must be at least 1");
        }
        match self.max_values {
            Some(_) if kind != Kind::Distinct => misplaced("max_values", "goes with COUNT_DISTINCT only"),
            Some(0) => misplaced("max_values", "must be at least 1"),
            _ => Ok(()),
        }
    }

    /// The calendar and how many slots the window has, if the definition is sound in every part.
    pub fn layout(&self) -> Result<(Calendar, u32), DefinitionError> {
        self.check()?;
        let calendar = Calendar::new(self.slot, self.timezone)?;
        if self.mode == Mode::FromFirst {
            return Ok((calendar, 1));
        }
        let slots = calendar.slots_exactly(self.metric.window)?;
        let window = match u32::try_from(slots) {
            Ok(count) if slots <= MAX_SLOTS => count + u32::from(self.cover == Cover::Full),
            _ => return Err(DefinitionError::TooManySlots { window: self.metric.window, slot: self.slot, slots }),
        };
        self.kept(&calendar, window)?;
        Ok((calendar, window))
    }

    /// How many slots an unranked board keeps; a ranked one those of its window.
    fn kept(&self, calendar: &Calendar, slots: u32) -> Result<u32, DefinitionError> {
        if self.ranked || self.kind() == Kind::Distinct || self.mode == Mode::FromFirst {
            return Ok(slots);
        }
        let Some(keep) = self.keep else { return Ok(slots + 1) };
        let too_many = |slots| DefinitionError::TooManyKept { keep, slot: self.slot, slots };
        let kept = calendar.slots_covering(keep).ok_or(DefinitionError::Misplaced {
            key: "keep",
            why: "and the slot must both be in months, or neither",
        })?;
        if kept < u64::from(slots) {
            return Err(DefinitionError::Misplaced { key: "keep", why: "must not be shorter than the window" });
        }
        u32::try_from(kept).ok().filter(|kept| u64::from(*kept) <= 2 * MAX_SLOTS).ok_or_else(|| too_many(kept))
    }

    /// The keys in which two definitions differ, for a message to whoever tried to change a board in place.
    pub fn differences(&self, other: &Definition) -> Vec<&'static str> {
        let mut keys = Vec::new();
        let mut differs = |key, different: bool| {
            if different {
                keys.push(key);
            }
        };
        differs("metric", self.metric != other.metric);
        differs("slot", self.slot != other.slot);
        differs("decimals", self.decimals != other.decimals);
        differs("timezone", self.timezone != other.timezone);
        differs("order", self.order != other.order);
        differs("cover", self.cover != other.cover);
        differs("ranked", self.ranked != other.ranked);
        differs("keep", self.keep != other.keep);
        differs("mode", self.mode != other.mode);
        differs("min_samples", self.min_samples != other.min_samples);
        differs("max_values", self.max_values != other.max_values);
        differs("stamp", self.stamp != other.stamp);
        keys
    }
}

/// The wire and disk form: a flat object of texts and one number. Each key is read on its own, so that an error
/// stands at the line and column of the value that is wrong.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    #[serde(serialize_with = "shown", deserialize_with = "metric")]
    metric: Metric,
    #[serde(default, deserialize_with = "slot")]
    slot: Option<Span>,
    #[serde(default, serialize_with = "digits", deserialize_with = "decimals")]
    decimals: Decimals,
    #[serde(default = "utc", serialize_with = "shown", deserialize_with = "timezone")]
    timezone: Tz,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    cover: Cover,
    // What follows is written only where it is not the default, so that what was stored before it existed reads on.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    ranked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "keep")]
    keep: Option<Span>,
    #[serde(default, skip_serializing_if = "is_default")]
    mode: Mode,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    min_samples: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_values: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    stamp: Stamp,
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn keep<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    text.parse().map(Some).map_err(|error| D::Error::custom(format!("keep: {error}")))
}

fn utc() -> Tz {
    Tz::UTC
}

fn shown<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn digits<S: Serializer>(value: &Decimals, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(value.digits())
}

fn metric<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(|error| D::Error::custom(format!("metric: {error}")))
}

fn slot<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(|error| D::Error::custom(format!("slot: {error}")))
}

fn decimals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimals, D::Error> {
    let digits = i64::deserialize(deserializer)?;
    let allowed = u8::try_from(digits).ok().and_then(Decimals::new);
    allowed.ok_or_else(|| D::Error::custom(format!("decimals: {digits} is not within 0 to {}", Decimals::MOST)))
}

fn timezone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tz, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(|_| {
        D::Error::custom(format!("timezone: '{name}' is not a zone of the IANA database, such as Europe/Berlin"))
    })
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Definition {
            metric,
            slot,
            decimals,
            timezone,
            order,
            cover,
            ranked,
            keep,
            mode,
            min_samples,
            max_values,
            stamp,
        } = self.clone();
        let slot = Some(slot);
        Plain { metric, slot, decimals, timezone, order, cover, ranked, keep, mode, min_samples, max_values, stamp }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Plain {
            metric,
            slot,
            decimals,
            timezone,
            order,
            cover,
            ranked,
            keep,
            mode,
            min_samples,
            max_values,
            stamp,
        } = Plain::deserialize(deserializer)?;
        // A window that begins with a subject's first event has no slots; what stands here is of no effect.
        let slot =
            slot.or((mode == Mode::FromFirst).then_some(Span::DAY)).ok_or_else(|| D::Error::missing_field("slot"))?;
        Ok(Definition {
            metric,
            slot,
            decimals,
            timezone,
            order,
            cover,
            ranked,
            keep,
            mode,
            min_samples,
            max_values,
            stamp,
        })
    }
}

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
    /// The last window asked for with its starts: a std-size lock held for a copy, never across an await.
    latest: Mutex<Option<(Window, Arc<[Timestamp]>)>>,
}

impl Board {
    /// Validates a definition.
    pub fn new(name: BoardName, generation: Generation, definition: Definition) -> Result<Self, DefinitionError> {
        let (calendar, slots) = definition.layout()?;
        let kept = definition.kept(&calendar, slots)?;
        let kind = definition.kind();
        Ok(Self { name, generation, definition, calendar, slots, kind, kept, latest: Mutex::new(None) })
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

    /// The window at `now`. O(1) while the head stays, O(slots) when it moves.
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

    /// Where an increment for `at` belongs when the store's clock reads `now` and the window is `window`.
    /// Without `at`, or up to `max_skew` milliseconds ahead, it belongs to the head.
    pub fn place(&self, at: Option<Timestamp>, now: Timestamp, window: &Window, max_skew: i64) -> Placement {
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
    fn limits() {
        let define =
            |metric: &str, slot: &str| Definition::new(metric.parse().unwrap(), slot.parse().unwrap()).layout();
        assert_eq!(define("COUNT(2000s, a, b)", "1s").unwrap().1, 2_000);
        assert!(matches!(define("COUNT(2001s, a, b)", "1s"), Err(DefinitionError::TooManySlots { slots: 2_001, .. })));
        assert_eq!(define("COUNT(90m, a, b)", "1h").unwrap_err().field(), "metric");
        assert_eq!(define("COUNT(90m, a, b)", "7m").unwrap_err().field(), "slot");
        assert_eq!(define("COUNT(1d, a, b)", "1d").unwrap().1, 1);
        let b = board("COUNT(24h, like, post)", "1h", "UTC", Cover::Current);
        assert_eq!(b.slot_bound(), Amount(EXACT_MAX / 48));
        assert_eq!(b.dedupe_horizon(), 86_400_000);
    }

    #[test]
    fn the_wire_form_round_trips_and_names_its_errors() {
        let text = r#"{"metric":"SUM(7d, sale, amount, seller_id)","slot":"1h","decimals":2,"timezone":"Europe/Berlin","order":"asc","cover":"full"}"#;
        let definition: Definition = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&definition).unwrap(), text);
        for (bad, says) in [
            (r#"{"metric":"COUNT(x, a, b)","slot":"1h"}"#, "metric: expected a duration"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","decimals":10}"#, "decimals: 10"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","timezone":"Mars"}"#, "timezone: 'Mars'"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","colour":"red"}"#, "unknown field `colour`"),
        ] {
            let error = serde_json::from_str::<Definition>(bad).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
