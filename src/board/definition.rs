//! The definition of a board: its metric, its slots, and everything else that its stored data depends on.

mod check;
mod choices;

use std::ops::RangeInclusive;

use chrono_tz::Tz;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::{PartialSchema, ToSchema};

pub use self::choices::{Cover, Mode, Order, Ranks, Stamp};
use super::{
    Averaging, BoardName, Calendar, Cap, Decimals, FurtherWindow, Kind, Metric, Movement, PeriodLength, Prior, Scale,
    Season, SlotError, Span, Starts, TieBreak, Ties, WindowLength, form,
};

/// The largest number of slots that a window may have.
pub const MAX_SLOTS: u64 = 2_000;

/// The largest number of shards that a board may have.
pub const MAX_SHARDS: u32 = 64;

/// The largest number of further windows that a board may have.
pub const MAX_FURTHER: usize = 8;

/// The definition of a board.
//
// The one place of its keys. Requests, the configuration and both stores contain this form: a flat object of strings,
// numbers and booleans. The comments of the keys are also their descriptions in the OpenAPI document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields, expecting = "a definition with 'metric', 'slot' and so on")]
pub struct Definition {
    /// `COUNT(window, event, subject)`, `SUM|AVG|MIN|MAX|LAST(window, event, value, subject)`, or
    /// `COUNT_DISTINCT|APPROX_COUNT_DISTINCT(window, event, subject, counted)`, with an optional filter before the
    /// closing parenthesis: `WHERE channel = 'app'`. Several types of events are `like + comment`, with a field each
    /// `rating: stars + review: score`, and in SUM with weights: `like*1 + comment*3 + order: amount*0.1`. Subject and counted value are a field, a prefix `prefix(ip, 24)`,
    /// or several fields `(ip, device_id)`. After the subject, `BY community` gives each value of that field, the key,
    /// a ranking of its own. The window is a duration, or `all` for all time.
    #[serde(serialize_with = "form::text", deserialize_with = "form::parsed")]
    #[schema(value_type = String, example = "COUNT(24h, like, post_id)")]
    pub metric: Metric,
    /// Length of a slot: less than an hour and a divisor of it, up to a day and a divisor of 24 h, a number of whole
    /// days, `1w`, a number of months that divides a year, such as `1mo` and `3mo`, or `1y`. The window is a whole number
    /// of slots, at most 2,000. Optional with the `mode` `from_first`. For a window of `all` time, only with `keep`: the
    /// length of the slots that are kept beside the total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, example = "1h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo|y)$")]
    pub slot: Option<Span>,
    /// Number of decimals of scores. Default: 0.
    #[serde(default, serialize_with = "form::digits", deserialize_with = "form::decimals")]
    #[schema(value_type = u8, minimum = 0, maximum = 9)]
    pub decimals: Decimals,
    /// IANA time zone with whose midnights slots of an hour and more are aligned. Default: UTC.
    #[serde(default = "form::utc", serialize_with = "form::text", deserialize_with = "form::timezone")]
    #[schema(value_type = String, example = "Europe/Berlin")]
    pub timezone: Tz,
    /// Order of the ranking. Default: `desc`.
    #[serde(default)]
    #[schema(schema_with = Order::schema)]
    pub order: Order,
    /// `full` keeps one additional slot, so that the window never covers less than its length. Default: `current`.
    #[serde(default)]
    #[schema(schema_with = Cover::schema)]
    pub cover: Cover,
    // The keys below are written only where they differ from the default. So definitions stored before these keys
    // existed still serialize to the same bytes.
    /// Whether the board has a ranking. An unranked board needs no rollover; its subjects are read one by one, for
    /// example as features of rules. Default: `true`.
    #[serde(default = "form::yes", skip_serializing_if = "form::is_yes")]
    pub ranked: bool,
    /// Default: `sliding`.
    #[serde(default, skip_serializing_if = "form::is_default")]
    #[schema(schema_with = Mode::schema)]
    pub mode: Mode,
    /// Retention time of slots on an unranked board, for reads with `as_of`. Not available with COUNT_DISTINCT.
    /// Default: the window and one slot. For a window of `all` time, ranked or not, together with `slot`: the time for
    /// which the newest slots are kept beside the total, so that shorter windows can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, example = "48h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo|y)$")]
    pub keep: Option<Span>,
    /// Number of measurements that a subject needs to be ranked, for ranked AVG boards. Default: 1.
    #[serde(default = "form::one", skip_serializing_if = "form::is_one", deserialize_with = "form::positive")]
    #[schema(minimum = 1)]
    pub min_samples: u32,
    /// For AVG: measurements that each subject has beside its own, so that few measurements do not lead. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub prior: Option<Prior>,
    /// Second key by which subjects with the same score are ordered, for COUNT, SUM, MIN, MAX and LAST. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub tie_break: Option<TieBreak>,
    /// Subject that is first among equal scores: the one that has had its score for longer (`first`), or not as long
    /// (`last`), for COUNT, SUM, MIN, MAX and LAST. `first:1ms` and the like give the precision of times, which is a second by
    /// default. Default: by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, example = "first", pattern = "^(first|last)(:(1ms|100ms|1s|1m))?$", required = false)]
    pub ties: Option<Ties>,
    /// Whether subjects that tie share a rank, or each line has a rank of its own. Default: `shared`.
    #[serde(default, skip_serializing_if = "form::is_default")]
    #[schema(schema_with = Ranks::schema)]
    pub ranks: Ranks,
    /// Maximum number of values stored per subject, for COUNT_DISTINCT, and of the counters of a `cap`. Beyond it the value
    /// last seen longest ago is dropped, or a counter of the oldest day, and responses have `capped` true. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "form::positive_if_any")]
    #[schema(value_type = u32, minimum = 1, example = 1000)]
    pub max_values: Option<u32>,
    /// Maximum number of keys that have a ranked subject, for a metric with `BY`. Items of further keys are refused, those
    /// of existing keys count. A board that a Redis store divides into shards may have somewhat more. Default:
    /// 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "form::positive_if_any")]
    #[schema(value_type = u32, minimum = 1, example = 100_000)]
    pub max_keys: Option<u32>,
    /// Default: `start`.
    #[serde(default, skip_serializing_if = "form::is_default")]
    #[schema(schema_with = Stamp::schema)]
    pub stamp: Stamp,
    /// Number of parts that a Redis store divides the board into, so that several nodes of a cluster share it. It does
    /// not change any result. The embedded store ignores it. Default: not divided, and 64 on a cluster if the metric
    /// has `BY` and `max_keys` is 100,000 or more.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "form::shards")]
    #[schema(value_type = u32, minimum = 1, maximum = 64, example = 24)]
    pub shards: Option<u32>,
    /// Time for which ids are remembered from their arrival, from a minute to 90 days. Default: as long as an item can
    /// count, but at most 24 hours: the longest window, with the additional slot of the `cover` `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, example = "30d", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo|y)$")]
    pub dedupe: Option<Span>,
    /// Further windows of the same metric, at most 8, each with its slots: `7d/6h`, or `all`. Each has a ranking of its
    /// own, which reads choose with `window=7d`. One write counts in all windows that reach back to its time. For
    /// ranked boards with the `mode` `sliding`. Default: none.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "form::texts",
        deserialize_with = "form::windows"
    )]
    #[schema(value_type = Vec<String>, max_items = 8, example = json!(["7d/6h", "all"]))]
    pub windows: Vec<FurtherWindow>,
    /// The totals begin again with each period, and ended periods can be read. Only for a window of `all` time, without
    /// `windows` and `keep`. Default: no season.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Season, required = false)]
    pub season: Option<Season>,
    /// Lines also have `from`, the rank that the subject had just before this hour (`1h`) or day (`1d`) began in the
    /// time zone of the board, or in the period before (`period`, on a board with a season). An hour or day must be a
    /// whole number of slots. Not for a metric with `BY`. Default: lines have no `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, example = "1d", pattern = "^(1h|1d|period)$", required = false)]
    pub movement: Option<Movement>,
    /// A day, or a whole hour of a day, in the time zone of the board, with which a slot or period of a day or longer
    /// begins; the others before and after it follow from it. It gives days their hour, weeks their day, and months and
    /// years their day (1 to 28) and month. Shorter slots and periods are not moved. Default: midnight, `1w` on Mondays,
    /// a number of days counted from 1970-01-01, months on the first, a number of months counted from January.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        value_type = String,
        example = "2026-11-02T05:00",
        pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:00)?$",
        required = false
    )]
    pub starts: Option<Starts>,
    /// Board that keeps the attributes of the subjects, so that several boards show the same ones. It has no `BY`, and
    /// names no other board itself. Default: the board keeps them itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "form::board_if_any")]
    #[schema(value_type = String, example = "players", required = false)]
    pub attributes: Option<BoardName>,
    /// Most that one person adds to one subject in a day, for ranked COUNT boards whose slots are a day or longer. Default:
    /// no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub cap: Option<Cap>,
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Definition::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut definition = Definition::deserialize(deserializer)?;
        if definition.mode == Mode::FromFirst && definition.metric.window != WindowLength::All {
            // The window of a subject has no slots, so the key has no effect.
            definition.slot.get_or_insert(Span::DAY);
        }
        if definition.slot.is_none() && definition.metric.window != WindowLength::All {
            return Err(D::Error::missing_field("slot"));
        }
        Ok(definition)
    }
}

/// The slots that a definition leads to.
#[derive(Clone, Debug)]
pub struct Layout {
    pub calendar: Calendar,
    /// The number of slots in the window.
    pub slots: u32,
    /// The number of slots that the board keeps, at least those of the window.
    pub kept: u32,
}

/// The reason why a definition is not valid. [`field`](Self::field) names the key at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    #[error(transparent)]
    Slot(#[from] SlotError),
    #[error("a window of {window} in slots of {slot} would have {slots} slots; at most {MAX_SLOTS} are allowed")]
    TooManySlots { window: Span, slot: Span, slots: u64 },
    #[error("keeping {keep} in slots of {slot} would be {slots} slots; at most {} are allowed", 2 * MAX_SLOTS)]
    TooManyKept { keep: Span, slot: Span, slots: u64 },
    /// The key is not allowed together with the others.
    #[error("'{key}' {why}")]
    Misplaced { key: &'static str, why: &'static str },
    /// A further window is not valid.
    #[error("the window {window}: {reason}")]
    FurtherWindow { window: FurtherWindow, reason: Box<DefinitionError> },
    /// The length of the periods is not valid.
    #[error("'season' must have an 'every' that is a slot: {0}")]
    Season(SlotError),
    /// The slots that a board over all time keeps are not valid.
    #[error("the slots to keep: {0}")]
    KeptSlots(Box<DefinitionError>),
    /// The number is outside of the [limits](Definition::limits) of its key.
    #[error("{}", form::not_within(number, limits))]
    Number { key: &'static str, number: u32, limits: RangeInclusive<u32> },
}

impl DefinitionError {
    /// Returns the key of the definition that is wrong.
    pub fn field(&self) -> &'static str {
        match self {
            DefinitionError::Slot(SlotError::NotWhole { .. }) | DefinitionError::TooManySlots { .. } => "metric",
            DefinitionError::Slot(_) => "slot",
            DefinitionError::TooManyKept { .. } => "keep",
            DefinitionError::Misplaced { key, .. } | DefinitionError::Number { key, .. } => key,
            DefinitionError::FurtherWindow { .. } => "windows",
            DefinitionError::Season(_) => "season",
            DefinitionError::KeptSlots(reason) if reason.field() == "metric" => "keep",
            DefinitionError::KeptSlots(reason) => reason.field(),
        }
    }
}

impl Definition {
    /// The keys of the serialized form, in the order of the fields.
    pub const KEYS: [&str; 25] = [
        "metric",
        "slot",
        "decimals",
        "timezone",
        "order",
        "cover",
        "ranked",
        "mode",
        "keep",
        "min_samples",
        "prior",
        "tie_break",
        "ties",
        "ranks",
        "max_values",
        "max_keys",
        "stamp",
        "shards",
        "dedupe",
        "windows",
        "season",
        "movement",
        "starts",
        "attributes",
        "cap",
    ];

    /// The largest number of keys with a ranking, unless `max_keys` says otherwise.
    pub const DEFAULT_MAX_KEYS: u32 = 1_000_000;

    /// The number of keys that a board must be allowed to have for the store to choose its number of shards. Each shard
    /// takes some more than its part of `max_keys`, so with fewer keys all shards together would take far too many.
    const MANY_KEYS: u32 = 100_000;

    /// Creates a definition with every default: no decimals, UTC, highest score first, the current cover.
    pub fn new(metric: Metric, slot: Span) -> Self {
        Self { slot: Some(slot), ..Self::without_slots(metric) }
    }

    /// Creates a definition with every default for a metric over all time, whose board has no slots.
    pub fn without_slots(metric: Metric) -> Self {
        Self {
            metric,
            slot: None,
            decimals: Decimals::default(),
            timezone: Tz::UTC,
            order: Order::Desc,
            cover: Cover::Current,
            ranked: true,
            keep: None,
            mode: Mode::Sliding,
            min_samples: 1,
            prior: None,
            tie_break: None,
            ties: None,
            ranks: Ranks::Shared,
            max_values: None,
            max_keys: None,
            stamp: Stamp::Start,
            shards: None,
            dedupe: None,
            windows: Vec::new(),
            season: None,
            movement: None,
            starts: None,
            attributes: None,
            cap: None,
        }
    }

    /// Returns the definition of a board that has one of the windows only: the main window, or one of the further ones.
    /// Keys that have no effect on a window of all time get their defaults there, so it has no slots to keep either.
    pub(super) fn of_window(&self, window: FurtherWindow) -> Definition {
        let FurtherWindow { length, slot } = window;
        let metric = Metric { window: length, ..self.metric.clone() };
        let own = Definition { metric, slot, windows: Vec::new(), ..self.clone() };
        match length {
            WindowLength::All => Definition {
                slot: None,
                timezone: Tz::UTC,
                cover: Cover::Current,
                keep: None,
                stamp: Stamp::Start,
                starts: None,
                ..own
            },
            WindowLength::Span(_) => own,
        }
    }

    /// Returns the definition of the board that holds the newest slots of a board over all time, if it keeps any: an
    /// unranked board whose window is as long as the slots are kept.
    pub(super) fn of_kept_slots(&self) -> Option<Definition> {
        let keep = self.keep.filter(|_| self.metric.window == WindowLength::All)?;
        let metric = Metric { window: keep.into(), ..self.metric.clone() };
        let own = Definition {
            windows: Vec::new(),
            keep: None,
            min_samples: 1,
            tie_break: None,
            ties: None,
            ranks: Ranks::Shared,
            ..self.clone()
        };
        Some(Definition { metric, ranked: false, ..own })
    }

    /// Returns the main window, which reads use unless they choose another one.
    pub fn main_window(&self) -> FurtherWindow {
        FurtherWindow { length: self.metric.window, slot: self.slot }
    }

    /// Returns the smallest and the largest value of a key, if its value is a number.
    pub fn limits(key: &str) -> Option<RangeInclusive<u32>> {
        match key {
            "decimals" => Some(form::DECIMALS),
            "min_samples" | "max_values" | "max_keys" => Some(form::POSITIVE),
            "shards" => Some(form::SHARDS),
            _ => None,
        }
    }

    /// Returns the largest number of keys with a ranking, if the metric has `BY`.
    pub fn most_keys(&self) -> Option<u32> {
        self.metric.by.as_ref().map(|_| self.max_keys.unwrap_or(Self::DEFAULT_MAX_KEYS))
    }

    /// Returns the unit of the board's numbers.
    pub fn scale(&self) -> Scale {
        Scale::new(self.decimals, self.order, self.tie_break.as_ref(), self.ties)
    }

    /// Returns how the measurements of AVG make a score.
    pub(super) fn averaging(&self) -> Averaging {
        let prior = self.prior.and_then(|prior| Some((prior.sum(self.decimals).ok()?.0, i64::from(prior.weight))));
        Averaging { min_samples: i64::from(self.min_samples), prior: prior.unwrap_or_default() }
    }

    /// Returns how the board's slots combine.
    pub fn kind(&self) -> Kind {
        if let Some(cap) = &self.cap {
            return Kind::Capped { most: cap.most };
        }
        match (self.metric.function.kind(), self.ties) {
            (Kind::Sum, Some(_)) => self.scale().times().map_or(Kind::Sum, |(split, ..)| Kind::TimedSum(split)),
            (kind, _) => kind,
        }
    }

    /// Returns the calendar of the days in which a person adds up to the cap, if there is one.
    pub(super) fn days_of_cap(&self) -> Result<Option<Calendar>, SlotError> {
        let days = |cap: &Cap| Calendar::with_start(cap.every, self.timezone, self.starts);
        self.cap.as_ref().map(days).transpose()
    }

    /// Returns the calendar, the number of slots in the window and the number of slots that the board keeps.
    pub fn layout(&self) -> Result<Layout, DefinitionError> {
        self.check()?;
        let calendar = match (self.slot, self.metric.window) {
            (_, WindowLength::All) => Calendar::eternal(),
            (Some(slot), _) => Calendar::with_start(slot, self.timezone, self.starts)?,
            (None, WindowLength::Span(_)) => {
                return Err(DefinitionError::Misplaced { key: "slot", why: "is required unless the window is all" });
            }
        };
        let slots = self.slots(&calendar)?;
        let kept = self.kept(&calendar, slots)?;
        Ok(Layout { calendar, slots, kept })
    }

    fn slots(&self, calendar: &Calendar) -> Result<u32, DefinitionError> {
        let (WindowLength::Span(window), Mode::Sliding) = (self.metric.window, self.mode) else { return Ok(1) };
        let slots = calendar.slots_exactly(window)?;
        match u32::try_from(slots) {
            Ok(count) if slots <= MAX_SLOTS => Ok(count + u32::from(self.cover == Cover::Full)),
            _ => Err(DefinitionError::TooManySlots { window, slot: self.slot.unwrap_or(window), slots }),
        }
    }

    /// Returns the number of slots that the board keeps: on a ranked board those of its window.
    fn kept(&self, calendar: &Calendar, slots: u32) -> Result<u32, DefinitionError> {
        let is_counter = self.mode == Mode::FromFirst || self.metric.window == WindowLength::All;
        if self.ranked || self.kind().remembers_values() || is_counter {
            return Ok(slots);
        }
        let Some(keep) = self.keep else { return Ok(slots + 1) };
        let too_many = |slots| DefinitionError::TooManyKept { keep, slot: self.slot.unwrap_or(keep), slots };
        let kept = calendar.slots_covering(keep).ok_or(DefinitionError::Misplaced {
            key: "keep",
            why: "and the slot must both be in months or years, or neither",
        })?;
        if kept < u64::from(slots) {
            return Err(DefinitionError::Misplaced { key: "keep", why: "must not be shorter than the window" });
        }
        u32::try_from(kept).ok().filter(|kept| u64::from(*kept) <= 2 * MAX_SLOTS).ok_or_else(|| too_many(kept))
    }

    /// Returns whether the definition leaves the number of shards to the store, as one with many keys may.
    fn leaves_shards(&self) -> bool {
        self.shards.is_none() && self.most_keys().is_some_and(|most| most >= Self::MANY_KEYS)
    }

    /// Returns the definition of a new board on a store whose boards with many keys have this number of shards, unless
    /// their definition says otherwise.
    #[must_use]
    pub fn with_default_shards(&self, shards: Option<u32>) -> Definition {
        let is_manual = self.season.is_some_and(|season| season.every == PeriodLength::Manual);
        let leaves = self.leaves_shards() && !is_manual;
        Definition { shards: if leaves { shards } else { self.shards }, ..self.clone() }
    }

    /// Returns the keys in which the definition of a board differs from one that was given, for the error message of an
    /// attempt to change the board in place. If the given one leaves the number of shards to the store, any number is
    /// right.
    pub fn differences(&self, given: &Definition) -> Vec<&'static str> {
        let [these, others] = [self, given].map(|definition| serde_json::to_value(definition).unwrap_or_default());
        let differs = |key: &&str| these[key] != others[key] && !(*key == "shards" && given.leaves_shards());
        Self::KEYS.into_iter().filter(differs).collect()
    }
}

#[cfg(test)]
mod tests;
