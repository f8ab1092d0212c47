//! The definition of a board: its metric, its slots, and everything else that its stored data depends on.

use chrono_tz::Tz;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Calendar, Decimals, Kind, Metric, SlotError, Span, form};

/// The largest number of slots that a window may have.
pub const MAX_SLOTS: u64 = 2_000;

/// The largest number of shards that a board may have.
pub const MAX_SHARDS: u32 = 64;

/// The order of a ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The highest score is first. Ties are ordered by subject, the greatest bytes first.
    #[default]
    Desc,
    /// The lowest score is first (lap times). Ties are ordered by subject, the smallest bytes first.
    Asc,
}

/// The amount of time that the window's slots cover at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cover {
    /// `window / slot` slots, including the one that contains now. They cover between N−1 and N slots of time.
    #[default]
    Current,
    /// One slot more, so that the slots never cover less time than the window.
    Full,
}

/// The beginning of a subject's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The window slides: it consists of the last slots, the same for every subject.
    #[default]
    Sliding,
    /// The window begins with the subject's first event and ends a fixed time later. The next event after that begins a
    /// new window. For COUNT and SUM on unranked boards only.
    FromFirst,
}

impl Mode {
    /// Returns the slot length for a definition with this `slot` key, or `None` if the key is missing and required. A
    /// `from_first` window has no slots, so the key is optional there and has no effect.
    pub(crate) fn slot(self, said: Option<Span>) -> Option<Span> {
        said.or((self == Mode::FromFirst).then_some(Span::DAY))
    }
}

/// The end of its slot that a sample is stamped with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stamp {
    /// The start: a sample stamped 06:02 belongs to 06:02–06:03.
    #[default]
    Start,
    /// The end: a sample stamped 06:02 belongs to 06:01–06:02.
    End,
}

/// The definition of a board. No key can change while the board holds data.
///
/// In requests, the configuration and both stores it is a flat object of texts, numbers and truth values. Each key is
/// parsed on its own, so that an error carries the line and column of the value at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, expecting = "a definition with 'metric', 'slot' and so on")]
pub struct Definition {
    #[serde(serialize_with = "form::text", deserialize_with = "form::metric")]
    pub metric: Metric,
    #[serde(default = "form::no_slot", deserialize_with = "form::slot")]
    pub slot: Span,
    #[serde(default, serialize_with = "form::digits", deserialize_with = "form::decimals")]
    pub decimals: Decimals,
    #[serde(default = "form::utc", serialize_with = "form::text", deserialize_with = "form::timezone")]
    pub timezone: Tz,
    #[serde(default)]
    pub order: Order,
    #[serde(default)]
    pub cover: Cover,
    // The keys below are written only where they differ from the default. So definitions stored before these keys
    // existed still serialize to the same bytes.
    /// Whether the board has a ranking. Without a ranking, each subject's slots are read on their own and there is no
    /// rollover.
    #[serde(default = "form::yes", skip_serializing_if = "form::is_yes")]
    pub ranked: bool,
    /// For unranked boards: how long slots are kept for reads of the past (`as_of`). If absent, the window and one
    /// slot.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "form::keep")]
    pub keep: Option<Span>,
    #[serde(default, skip_serializing_if = "form::is_default")]
    pub mode: Mode,
    /// For AVG: the number of measurements, at least 1, that a subject needs to be ranked.
    #[serde(default = "form::one", skip_serializing_if = "form::is_one")]
    pub min_samples: u32,
    /// For COUNT_DISTINCT: the largest number of values remembered per subject. Beyond it, the value that was seen
    /// longest ago is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_values: Option<u32>,
    #[serde(default, skip_serializing_if = "form::is_default")]
    pub stamp: Stamp,
    /// For Redis: the number of parts that the board is spread over, so that several nodes of a cluster share it. If
    /// absent, the board is not spread. The embedded store ignores it. It does not change any result.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "form::shards")]
    pub shards: Option<u32>,
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Definition::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut definition = Definition::deserialize(deserializer)?;
        let given = Some(definition.slot).filter(|slot| *slot != form::no_slot());
        definition.slot = definition.mode.slot(given).ok_or_else(|| D::Error::missing_field("slot"))?;
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
    #[error("{shards} shards are not within 1 to {MAX_SHARDS}")]
    Shards { shards: u32 },
}

impl DefinitionError {
    /// Returns the key of the definition that is wrong.
    pub fn field(&self) -> &'static str {
        match self {
            DefinitionError::Slot(SlotError::NotWhole { .. }) | DefinitionError::TooManySlots { .. } => "metric",
            DefinitionError::Slot(_) => "slot",
            DefinitionError::TooManyKept { .. } => "keep",
            DefinitionError::Misplaced { key, .. } => key,
            DefinitionError::Shards { .. } => "shards",
        }
    }
}

impl Definition {
    /// The keys of the serialized form.
    pub const KEYS: [&str; 13] = [
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
        "max_values",
        "stamp",
        "shards",
    ];

    /// Creates a definition with every default: no decimals, UTC, highest score first, the current cover.
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
            shards: None,
        }
    }

    /// Returns how the board's slots combine.
    pub fn kind(&self) -> Kind {
        self.metric.function.kind()
    }

    /// Checks that the keys are allowed together.
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
        if let Some(shards) = self.shards.filter(|shards| !(1..=MAX_SHARDS).contains(shards)) {
            return Err(DefinitionError::Shards { shards });
        }
        match self.max_values {
            Some(_) if kind != Kind::Distinct => misplaced("max_values", "goes with COUNT_DISTINCT only"),
            Some(0) => misplaced("max_values", "must be at least 1"),
            _ => Ok(()),
        }
    }

    /// Returns the calendar, the number of slots in the window and the number of slots that the board keeps.
    pub fn layout(&self) -> Result<Layout, DefinitionError> {
        self.check()?;
        let calendar = Calendar::new(self.slot, self.timezone)?;
        let slots = self.slots(&calendar)?;
        let kept = self.kept(&calendar, slots)?;
        Ok(Layout { calendar, slots, kept })
    }

    fn slots(&self, calendar: &Calendar) -> Result<u32, DefinitionError> {
        if self.mode == Mode::FromFirst {
            return Ok(1);
        }
        let slots = calendar.slots_exactly(self.metric.window)?;
        match u32::try_from(slots) {
            Ok(count) if slots <= MAX_SLOTS => Ok(count + u32::from(self.cover == Cover::Full)),
            _ => Err(DefinitionError::TooManySlots { window: self.metric.window, slot: self.slot, slots }),
        }
    }

    /// Returns the number of slots that the board keeps: on a ranked board those of its window.
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

    /// Returns the keys in which two definitions differ, for the error message of an attempt to change a board in
    /// place.
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
        differs("shards", self.shards != other.shards);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let define =
            |metric: &str, slot: &str| Definition::new(metric.parse().unwrap(), slot.parse().unwrap()).layout();
        assert_eq!(define("COUNT(2000s, a, b)", "1s").unwrap().slots, 2_000);
        assert!(matches!(define("COUNT(2001s, a, b)", "1s"), Err(DefinitionError::TooManySlots { slots: 2_001, .. })));
        assert_eq!(define("COUNT(90m, a, b)", "1h").unwrap_err().field(), "metric");
        assert_eq!(define("COUNT(90m, a, b)", "7m").unwrap_err().field(), "slot");
        assert_eq!(define("COUNT(1d, a, b)", "1d").unwrap().slots, 1);
    }

    #[test]
    fn shards_are_bounded_and_part_of_what_cannot_change() {
        let plain = Definition::new("COUNT(1h, a, b)".parse().unwrap(), "1m".parse().unwrap());
        for shards in [1, 24, 64] {
            let spread = Definition { shards: Some(shards), ..plain.clone() };
            assert!(spread.layout().is_ok());
            assert_eq!(spread.differences(&plain), ["shards"]);
        }
        for shards in [0, 65, u32::MAX] {
            let error = Definition { shards: Some(shards), ..plain.clone() }.layout().unwrap_err();
            assert_eq!(error.field(), "shards");
            assert!(error.to_string().contains("1 to 64"), "{error}");
        }
    }

    #[test]
    fn keys_that_do_not_go_together_are_named() {
        for (json, key) in [
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","mode":"from_first"}"#, "mode"),
            (r#"{"metric":"AVG(1h, a, v, b)","mode":"from_first","ranked":false}"#, "mode"),
            (r#"{"metric":"COUNT(1h, a, b)","mode":"from_first","ranked":false,"cover":"full"}"#, "mode"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","keep":"2h"}"#, "keep"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","ranked":false,"keep":"30m"}"#, "keep"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1s","ranked":false,"keep":"2h"}"#, "metric"),
            (r#"{"metric":"COUNT(1m, a, b)","slot":"1s","ranked":false,"keep":"2h"}"#, "keep"),
            (r#"{"metric":"COUNT_DISTINCT(1h, a, b, c)","slot":"1m","ranked":false,"keep":"2h"}"#, "keep"),
            (r#"{"metric":"COUNT_DISTINCT(1h, a, b, c)","slot":"1m","decimals":2}"#, "decimals"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","min_samples":2}"#, "min_samples"),
            (r#"{"metric":"AVG(1h, a, v, b)","slot":"1m","min_samples":0}"#, "min_samples"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","max_values":5}"#, "max_values"),
            (r#"{"metric":"COUNT_DISTINCT(1h, a, b, c)","slot":"1m","max_values":0}"#, "max_values"),
        ] {
            let definition: Definition = serde_json::from_str(json).unwrap();
            assert_eq!(definition.layout().unwrap_err().field(), key, "{json}");
        }
        for (json, kept) in [
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1m"}"#, 60),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","ranked":false}"#, 61),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1m","ranked":false,"keep":"2h"}"#, 120),
            (r#"{"metric":"COUNT(90s, a, b)","mode":"from_first","ranked":false}"#, 1),
            (r#"{"metric":"COUNT_DISTINCT(1h, a, b, c)","slot":"1m","ranked":false}"#, 60),
        ] {
            let definition: Definition = serde_json::from_str(json).unwrap();
            assert_eq!(definition.layout().unwrap().kept, kept, "{json}");
        }
    }
}
