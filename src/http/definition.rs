//! A board's definition as a body has it.

use super::body::Object;
use super::problem::Problem;
use crate::board::{Decimals, Definition, MAX_SHARDS, Metric, Mode, SyntaxError};

/// The keys of a definition.
const KEYS: [&str; 13] = [
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

/// Reads a definition key by key, so that an error names its key. `null` is as good as leaving a key out.
pub(super) fn read(body: &[u8]) -> Result<Definition, Problem> {
    let object = Object::parse(body, &KEYS)?;
    let wrong = |key: &str, error: &dyn std::fmt::Display| Problem::field(key, format!("'{key}': {error}"));
    let metric: String = object.required("metric")?;
    let metric: Metric =
        metric.parse().map_err(|error: SyntaxError| wrong("metric", &error).with("column", error.column))?;
    let mode: Mode = object.optional("mode")?.unwrap_or_default();
    let slot = match mode.slot(object.optional("slot")?) {
        Some(slot) => slot,
        None => object.required("slot")?,
    };
    let mut definition = Definition::new(metric, slot);
    definition.mode = mode;
    if let Some(digits) = whole(&object, "decimals", 0, u32::from(Decimals::MOST))? {
        definition.decimals = u8::try_from(digits).ok().and_then(Decimals::new).unwrap_or_default();
    }
    if let Some(zone) = object.optional::<String>("timezone")? {
        definition.timezone = zone.parse().map_err(|_| {
            let zone: String = zone.chars().take(64).collect();
            wrong("timezone", &format_args!("'{zone}' is not a zone of the IANA database, such as Europe/Berlin"))
        })?;
    }
    definition.order = object.optional("order")?.unwrap_or_default();
    definition.cover = object.optional("cover")?.unwrap_or_default();
    definition.ranked = object.optional("ranked")?.unwrap_or(true);
    definition.keep = object.optional("keep")?;
    definition.min_samples = whole(&object, "min_samples", 1, u32::MAX)?.unwrap_or(1);
    definition.max_values = whole(&object, "max_values", 1, u32::MAX)?;
    definition.stamp = object.optional("stamp")?.unwrap_or_default();
    definition.shards = whole(&object, "shards", 1, MAX_SHARDS)?;
    Ok(definition)
}

/// A whole number as JSON has it, for which 2.0 is one too.
fn whole(object: &Object<'_>, key: &str, least: u32, most: u32) -> Result<Option<u32>, Problem> {
    let Some(number) = object.optional::<serde_json::Value>(key)? else { return Ok(None) };
    let within = |n: &f64| n.fract() == 0.0 && (f64::from(least)..=f64::from(most)).contains(n);
    match number.as_f64().filter(within) {
        Some(number) => Ok(Some(number as u32)),
        None => {
            let detail = format!("'{key}': {number} is not a whole number from {least} to {most}");
            Err(Problem::field(key, detail).with("minimum", least).with("maximum", most))
        }
    }
}
