//! The values of a definition's keys in the serialized form: how each is written, parsed, and left out.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use chrono::NaiveDate;
use chrono_tz::Tz;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

use super::{BoardName, Cap, Decimals, FurtherWindow, MAX_SHARDS, Season, Span, TieBreak, language};

/// The limits of the number of decimals.
pub(super) const DECIMALS: RangeInclusive<u32> = 0..=Decimals::MAX as u32;
/// The limits of numbers that are at least 1.
pub(super) const POSITIVE: RangeInclusive<u32> = 1..=u32::MAX;
/// The limits of the number of shards.
pub(super) const SHARDS: RangeInclusive<u32> = 1..=MAX_SHARDS;

/// The largest number of characters of a value in an error message.
const SHOWN: usize = 64;

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

pub(super) fn utc() -> Tz {
    Tz::UTC
}

pub(super) fn twelve() -> u32 {
    12
}

pub(super) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(super) fn texts<S: Serializer>(values: &[impl Display], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

pub(super) fn windows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FurtherWindow>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

pub(super) fn digits<S: Serializer>(value: &Decimals, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(value.digits())
}

/// Parses a text.
pub(super) fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

pub(super) fn timezone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tz, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(|_| {
        let name: String = name.chars().take(SHOWN).collect();
        D::Error::custom(format!("'{name}' is not an IANA time zone, such as Europe/Berlin"))
    })
}

pub(super) fn decimals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimals, D::Error> {
    let digits = whole_number::<D::Error, u32>(&Value::deserialize(deserializer)?, DECIMALS)?;
    Ok(u8::try_from(digits).ok().and_then(Decimals::new).unwrap_or_default())
}

pub(super) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole_number(&Value::deserialize(deserializer)?, POSITIVE)
}

pub(super) fn positive_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = Option::<Value>::deserialize(deserializer)?;
    number.map(|number| whole_number(&number, POSITIVE)).transpose()
}

pub(super) fn shards<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = Option::<Value>::deserialize(deserializer)?;
    number.map(|number| whole_number(&number, SHARDS)).transpose()
}

pub(super) fn board_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BoardName>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    name.map(|name| BoardName::parse(&name).map_err(D::Error::custom)).transpose()
}

pub(super) fn most_of_ties<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole_number(&Value::deserialize(deserializer)?, 1..=TieBreak::MOST)
}

pub(super) fn most_of_cap<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole_number(&Value::deserialize(deserializer)?, 1..=Cap::MOST)
}

pub(super) fn one_day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let span = Span::deserialize(deserializer)?;
    match span == Span::DAY {
        true => Ok(span),
        false => Err(D::Error::custom(format!("'every' of a cap must be 1d, a calendar day, and is {span}"))),
    }
}

pub(super) fn field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    let name = Box::<str>::deserialize(deserializer)?;
    match language::is_name(&name) {
        true => Ok(name),
        false => {
            let shown: String = name.chars().take(SHOWN).collect();
            Err(D::Error::custom(format!(
                "'{shown}' is not the name of a field: a letter or '_', then letters, digits, '_', '-' or '.', 64 at most"
            )))
        }
    }
}

/// The field of events that has their second key, unless another one is named.
const TIE_BREAK: &str = "tie_break";

pub(super) fn tie_break() -> Box<str> {
    TIE_BREAK.into()
}

pub(super) fn is_tie_break(field: &str) -> bool {
    field == TIE_BREAK
}

pub(super) fn prior_weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole_number(&Value::deserialize(deserializer)?, 1..=1_000_000)
}

pub(super) fn archive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole_number(&Value::deserialize(deserializer)?, 0..=Season::MAX_ARCHIVE)
}

pub(super) fn archive_top<E: Error>(value: &Value) -> Result<u32, E> {
    whole_number(value, POSITIVE)
        .map_err(|_: E| E::custom(format!("{value} is neither 'all' nor a whole number of lines from 1 on")))
}

pub(super) fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NaiveDate>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    match text.parse() {
        Ok(date) => Ok(Some(date)),
        Err(_) => {
            let text: String = text.chars().take(SHOWN).collect();
            Err(D::Error::custom(format!("'{text}' is not a day, such as 2026-11-02")))
        }
    }
}

/// Returns a whole number, which may be written as 2.0. The limits are below 2^53.
fn whole_number<E: Error, N>(value: &Value, limits: RangeInclusive<N>) -> Result<N, E>
where
    N: Copy + Display + Into<u64> + TryFrom<u64>,
{
    let [least, most] = [*limits.start(), *limits.end()].map(|limit| limit.into() as f64);
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && (least..=most).contains(number));
    let number = number.and_then(|number| N::try_from(number as u64).ok());
    number.ok_or_else(|| E::custom(not_within(value, &limits)))
}

/// Returns the message about a value that is not a whole number within the limits.
pub(super) fn not_within(value: impl Display, limits: &RangeInclusive<impl Display>) -> String {
    format!("{value} is not a whole number from {} to {}", limits.start(), limits.end())
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema;

    use super::*;
    use crate::board::{Cover, Definition, Mode, Movement, Order, Span, Stamp};

    #[test]
    fn every_key_is_listed_in_order() {
        let definition = Definition {
            decimals: Decimals::new(2).unwrap(),
            order: Order::Asc,
            cover: Cover::Full,
            ranked: false,
            keep: Some(Span::DAY),
            mode: Mode::FromFirst,
            min_samples: 2,
            prior: serde_json::from_str(r#"{"mean":3.5,"weight":10}"#).unwrap(),
            tie_break: serde_json::from_str(r#"{"most":10,"order":"asc"}"#).unwrap(),
            ties: Some("first".parse().unwrap()),
            ranks: crate::board::Ranks::Ordinal,
            max_values: Some(2),
            max_keys: Some(2),
            stamp: Stamp::End,
            shards: Some(2),
            dedupe: Some(Span::DAY),
            windows: vec!["7d/6h".parse().unwrap()],
            season: serde_json::from_str(r#"{"every":"1mo"}"#).unwrap(),
            movement: Some(Movement::Day),
            starts: "2026-11-01T05:00".parse().ok(),
            attributes: BoardName::parse("players").ok(),
            cap: serde_json::from_str(r#"{"per":"u","most":10,"every":"1d"}"#).unwrap(),
            ..Definition::new("COUNT(1h, a, b)".parse().unwrap(), Span::DAY)
        };
        let written = serde_json::to_string(&definition).unwrap();
        let places = Definition::KEYS.map(|key| written.find(&format!("\"{key}\":")));
        assert!(places.is_sorted() && places[0].is_some(), "{written}");
        assert_eq!(serde_json::to_value(&definition).unwrap().as_object().unwrap().len(), places.len());
    }

    #[test]
    fn the_schema_has_every_key_with_its_limits() {
        let schema = serde_json::to_value(Definition::schema()).unwrap();
        assert_eq!(schema["properties"].as_object().unwrap().len(), Definition::KEYS.len());
        for key in Definition::KEYS {
            let property = &schema["properties"][key];
            let limits = Definition::limits(key);
            // The schema leaves out the largest value of the type.
            let maximum = limits.clone().map(|limits| *limits.end()).filter(|maximum| *maximum != u32::MAX);
            let number = |member: &str| property[member].as_f64();
            assert!(property.is_object(), "{key}");
            assert_eq!(number("minimum"), limits.map(|limits| f64::from(*limits.start())), "{key}");
            assert_eq!(number("maximum"), maximum.map(f64::from), "{key}");
        }
    }

    #[test]
    fn the_form_round_trips_and_its_errors_name_what_is_allowed() {
        let text = r#"{"metric":"SUM(7d, sale, amount, seller_id)","slot":"1h","decimals":2,"timezone":"Europe/Berlin","order":"asc","cover":"full"}"#;
        let definition: Definition = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&definition).unwrap(), text);
        let spread = Definition { shards: Some(24), ..definition };
        let written = serde_json::to_string(&spread).unwrap();
        assert_eq!(written, text.replace('}', r#","shards":24}"#));
        assert_eq!(serde_json::from_str::<Definition>(&written).unwrap(), spread);
        assert_eq!(serde_json::from_str::<Definition>(&written.replace("24", "24.0")).unwrap(), spread);
        for (bad, says) in [
            (r#"{"metric":"COUNT(x, a, b)","slot":"1h"}"#, "expected a duration or all"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","decimals":10}"#, "10 is not a whole number from 0 to 9"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","timezone":"Mars"}"#, "'Mars' is not an IANA time zone"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","colour":"red"}"#, "unknown field `colour`"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","shards":0}"#, "0 is not a whole number from 1 to 64"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","shards":65}"#, "65 is not a whole number from 1 to 64"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","shards":2.5}"#, "2.5 is not a whole number from 1 to 64"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","min_samples":0}"#, "0 is not a whole number from 1 to"),
            (r#"{"metric":"COUNT(1h, a, b)","slot":"1h","shards":-1}"#, "-1 is not a whole number from 1 to 64"),
        ] {
            let error = serde_json::from_str::<Definition>(bad).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
