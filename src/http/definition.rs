//! Parsing of board definitions.

use utoipa::ToSchema;

use super::body::Object;
use super::problem::Problem;
use super::schemas;
use crate::board::{Decimals, Definition, MAX_SHARDS, Metric, Mode, SyntaxError};

/// Parses a definition key by key, so that an error names its key. A key with the value `null` is treated as absent.
pub(super) fn parse(body: &[u8]) -> Result<Definition, Problem> {
    let object = Object::parse(body, &Definition::KEYS)?;
    let invalid = |key: &str, error: &dyn std::fmt::Display| Problem::field(key, format!("'{key}': {error}"));
    let metric: String = object.required("metric")?;
    let metric: Metric =
        metric.parse().map_err(|error: SyntaxError| invalid("metric", &error).with("column", error.column))?;
    let mode: Mode = object.optional("mode")?.unwrap_or_default();
    let slot = match mode.slot(object.optional("slot")?) {
        Some(slot) => slot,
        None => object.required("slot")?,
    };
    let mut definition = Definition::new(metric, slot);
    definition.mode = mode;
    if let Some(digits) = whole_number(&object, "decimals", 0, u32::from(Decimals::MAX))? {
        definition.decimals = u8::try_from(digits).ok().and_then(Decimals::new).unwrap_or_default();
    }
    if let Some(zone) = object.optional::<String>("timezone")? {
        definition.timezone = zone.parse().map_err(|_| {
            let zone: String = zone.chars().take(64).collect();
            invalid("timezone", &format_args!("'{zone}' is not an IANA time zone, such as Europe/Berlin"))
        })?;
    }
    definition.order = object.optional("order")?.unwrap_or_default();
    definition.cover = object.optional("cover")?.unwrap_or_default();
    definition.ranked = object.optional("ranked")?.unwrap_or(true);
    definition.keep = object.optional("keep")?;
    definition.min_samples = whole_number(&object, "min_samples", 1, u32::MAX)?.unwrap_or(1);
    definition.max_values = whole_number(&object, "max_values", 1, u32::MAX)?;
    definition.stamp = object.optional("stamp")?.unwrap_or_default();
    definition.shards = whole_number(&object, "shards", 1, MAX_SHARDS)?;
    Ok(definition)
}

/// Parses a whole number, which may be written as 2.0.
fn whole_number(object: &Object<'_>, key: &str, minimum: u32, maximum: u32) -> Result<Option<u32>, Problem> {
    let Some(number) = object.optional::<serde_json::Value>(key)? else { return Ok(None) };
    let within = |n: &f64| n.fract() == 0.0 && (f64::from(minimum)..=f64::from(maximum)).contains(n);
    match number.as_f64().filter(within) {
        Some(number) => Ok(Some(number as u32)),
        None => {
            let detail = format!("'{key}': {number} is not a whole number from {minimum} to {maximum}");
            Err(Problem::field(key, detail).with("minimum", minimum).with("maximum", maximum))
        }
    }
}

/// The definition of a board.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Definition)]
#[expect(dead_code, reason = "schema only; definitions are parsed key by key")]
pub(super) struct DefinitionBody {
    /// `COUNT(window, event, subject)`, `SUM|AVG|MIN|MAX(window, event, value, subject)`, or
    /// `COUNT_DISTINCT|APPROX_COUNT_DISTINCT(window, event, subject, counted)`, with an optional filter before the closing
    /// parenthesis: `WHERE channel = 'app'`. Subject and counted value are a field, a prefix `prefix(ip, 24)`, or several
    /// fields `(ip, device_id)`.
    #[schema(example = "COUNT(24h, like, post_id)")]
    metric: String,
    /// Length of a slot: less than an hour and a divisor of it, up to a day and a divisor of 24 h, a number of whole days,
    /// `1w` or `1mo`. The window is a whole number of slots, at most 2,000. Optional with the `mode` `from_first`.
    #[schema(example = "1h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$", required = false)]
    slot: String,
    /// Number of decimals of scores. Default: 0.
    #[schema(minimum = 0, maximum = 9, required = false)]
    decimals: u8,
    /// IANA time zone with whose midnights slots of an hour and more are aligned. Default: UTC.
    #[schema(required = false, example = "Europe/Berlin")]
    timezone: String,
    /// Order of the ranking. Default: `desc`.
    #[schema(schema_with = schemas::order, required = false)]
    order: String,
    /// `full` keeps one additional slot, so that the window never covers less than its length. Default: `current`.
    #[schema(schema_with = schemas::cover, required = false)]
    cover: String,
    /// Whether the board has a ranking. An unranked board needs no rollover; its subjects are read one by one, for example
    /// as features of rules. Default: `true`.
    #[schema(required = false)]
    ranked: bool,
    /// Retention time of slots on an unranked board, for reads with `as_of`. Not available with COUNT_DISTINCT. Default:
    /// the window and one slot.
    #[schema(required = false, example = "48h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$")]
    keep: String,
    /// Default: `sliding`.
    #[schema(schema_with = schemas::mode, required = false)]
    mode: String,
    /// Number of measurements that a subject needs to be ranked, for ranked AVG boards. Default: 1.
    #[schema(minimum = 1, required = false)]
    min_samples: u32,
    /// Maximum number of values stored per subject, for COUNT_DISTINCT. Beyond it the value last seen longest ago is
    /// dropped, and responses have `capped` true. Default: no limit.
    #[schema(minimum = 1, required = false, example = 1000)]
    max_values: u32,
    /// Default: `start`.
    #[schema(schema_with = schemas::stamp, required = false)]
    stamp: String,
    /// Number of parts that a Redis store divides the board into, so that several nodes of a cluster share it. It does not
    /// change any result. The embedded store ignores it. Default: not divided.
    #[schema(minimum = 1, maximum = 64, required = false, example = 24)]
    shards: u32,
}
