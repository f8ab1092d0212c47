//! The serialized form of a definition, in requests and on disk: a flat object of texts, numbers and truth values.

use std::fmt;

use chrono_tz::Tz;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Cover, Decimals, Definition, MAX_SHARDS, Metric, Mode, Order, Span, Stamp};

/// The serialized keys. Each key is parsed on its own, so that an error carries the line and column of the value at
/// fault.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a definition with 'metric', 'slot' and so on")]
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
    // The keys below are written only where they differ from the default. So definitions stored before these keys
    // existed still serialize to the same bytes.
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
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "shards")]
    shards: Option<u32>,
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
    allowed.ok_or_else(|| D::Error::custom(format!("decimals: {digits} is not within 0 to {}", Decimals::MAX)))
}

fn shards<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let Some(number) = Option::<i64>::deserialize(deserializer)? else { return Ok(None) };
    let allowed = u32::try_from(number).ok().filter(|shards| (1..=MAX_SHARDS).contains(shards));
    allowed.map(Some).ok_or_else(|| D::Error::custom(format!("shards: {number} is not within 1 to {MAX_SHARDS}")))
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
            shards,
        } = self.clone();
        let slot = Some(slot);
        Plain {
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
            shards,
        }
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
            shards,
        } = Plain::deserialize(deserializer)?;
        let slot = mode.slot(slot).ok_or_else(|| D::Error::missing_field("slot"))?;
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
            shards,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_round_trips_and_names_its_errors() {
        let text = r#"{"metric":"SUM(7d, sale, amount, seller_id)","slot":"1h","decimals":2,"timezone":"Europe/Berlin","order":"asc","cover":"full"}"#;
        let definition: Definition = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&definition).unwrap(), text);
        let spread = Definition { shards: Some(24), ..definition };
        let written = serde_json::to_string(&spread).unwrap();
        assert_eq!(written, text.replace('}', r#","shards":24}"#));
        assert_eq!(serde_json::from_str::<Definition>(&written).unwrap(), spread);
        for (bad, says) in [
            (r#"{"metric":"COUNT(x, a, b)","slot":"1h"}"#, "metric: expected a duration"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","decimals":10}"#, "decimals: 10"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","timezone":"Mars"}"#, "timezone: 'Mars'"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","colour":"red"}"#, "unknown field `colour`"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","shards":0}"#, "shards: 0 is not within 1 to 64"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","shards":65}"#, "shards: 65 is not within 1 to 64"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","shards":-1}"#, "shards: -1 is not within 1 to 64"),
        ] {
            let error = serde_json::from_str::<Definition>(bad).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
