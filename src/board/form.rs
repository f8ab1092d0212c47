//! The values of a definition's keys in the serialized form: how each is written, parsed, and left out.

use std::fmt;

use chrono_tz::Tz;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use super::{Decimals, MAX_SHARDS, Metric, Span};

pub(super) fn yes() -> bool {
    true
}

pub(super) fn is_yes(value: &bool) -> bool {
    *value
}

pub(super) fn one() -> u32 {
    1
}

pub(super) fn is_one(value: &u32) -> bool {
    *value == 1
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(super) fn keep<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    text.parse().map(Some).map_err(|error| D::Error::custom(format!("keep: {error}")))
}

pub(super) fn utc() -> Tz {
    Tz::UTC
}

pub(super) fn text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(super) fn digits<S: Serializer>(value: &Decimals, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(value.digits())
}

pub(super) fn metric<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(|error| D::Error::custom(format!("metric: {error}")))
}

/// Returns the value of a missing key `slot`. It is no duration, so no text parses to it.
pub(super) fn no_slot() -> Span {
    Span::ZERO
}

pub(super) fn slot<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(|error| D::Error::custom(format!("slot: {error}")))
}

pub(super) fn decimals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimals, D::Error> {
    let digits = i64::deserialize(deserializer)?;
    let allowed = u8::try_from(digits).ok().and_then(Decimals::new);
    allowed.ok_or_else(|| D::Error::custom(format!("decimals: {digits} is not within 0 to {}", Decimals::MAX)))
}

pub(super) fn shards<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let Some(number) = Option::<i64>::deserialize(deserializer)? else { return Ok(None) };
    let allowed = u32::try_from(number).ok().filter(|shards| (1..=MAX_SHARDS).contains(shards));
    allowed.map(Some).ok_or_else(|| D::Error::custom(format!("shards: {number} is not within 1 to {MAX_SHARDS}")))
}

pub(super) fn timezone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tz, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(|_| {
        D::Error::custom(format!("timezone: '{name}' is not a zone of the IANA database, such as Europe/Berlin"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Cover, Definition, Mode, Order, Stamp};

    #[test]
    fn every_key_is_listed_once() {
        let definition = Definition {
            decimals: Decimals::new(2).unwrap(),
            order: Order::Asc,
            cover: Cover::Full,
            ranked: false,
            keep: Some(Span::DAY),
            mode: Mode::FromFirst,
            min_samples: 2,
            max_values: Some(2),
            stamp: Stamp::End,
            shards: Some(2),
            ..Definition::new("COUNT(1h, a, b)".parse().unwrap(), Span::DAY)
        };
        let written = serde_json::to_value(&definition).unwrap();
        let mut written: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        let mut listed = Definition::KEYS;
        written.sort_unstable();
        listed.sort_unstable();
        assert_eq!(written, listed);
    }

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
