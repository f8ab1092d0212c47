//! Schemas of values that occur in several resources, for `#[schema(schema_with = …)]`.

use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, Array, ArrayBuilder, KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType,
    Type,
};

use super::codes::{Code, ItemCode};

const NO_CONTROL_CHARACTERS: &str = r"^[^\x00-\x1F\x7F-\x9F]+$";

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

pub(super) fn time() -> Object {
    string()
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("A time in RFC 3339 format, in UTC."))
        .build()
}

pub(super) fn covers_since() -> Object {
    let description = "The time at which the board was defined, if that is after the start of the slots that were read: \
        what happened before is missing, unless it was sent afterwards. Absent if the board covers these slots. Over all \
        time always present, except for boards defined by a version that did not record it.";
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    string().format(Some(format)).description(Some(description)).build()
}

pub(super) fn time_or_null() -> Object {
    let types = SchemaType::from_iter([Type::String, Type::Null]);
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    let description = "A time in RFC 3339 format, in UTC, or null.";
    ObjectBuilder::new().schema_type(types).format(Some(format)).description(Some(description)).build()
}

pub(super) fn board() -> Object {
    string().pattern(Some("^[a-z0-9][a-z0-9._-]{0,62}$")).description(Some("The name of the board.")).build()
}

pub(super) fn subject() -> Object {
    string()
        .min_length(Some(1))
        .max_length(Some(512))
        .pattern(Some(NO_CONTROL_CHARACTERS))
        .description(Some("The ranked or counted subject: 1 to 512 bytes of UTF-8 without control characters."))
        .build()
}

/// The subject of a line of a ranking.
pub(super) fn subject_or_null() -> Object {
    let description = "The ranked subject: 1 to 512 bytes of UTF-8 without control characters. Null where the subject \
                       was removed from a final period, in which the line keeps its place. Never null in the current \
                       period, nor on a board without a season.";
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .min_length(Some(1))
        .max_length(Some(512))
        .pattern(Some(NO_CONTROL_CHARACTERS))
        .description(Some(description))
        .build()
}

/// The tier of a line. Always optional.
pub(super) fn tier() -> Object {
    string()
        .min_length(Some(1))
        .max_length(Some(64))
        .description(Some("The name of the best tier that the subject reaches. Absent if it reaches none."))
        .build()
}

/// The rank of a line at an earlier time. Always optional.
pub(super) fn rank_before() -> Object {
    let description = "The competition rank just before the instant `from_as_of`, or in the period before; null if \
        the subject is not among the first 1,000 there. Absent on a board without `movement`, and if the ranks then are not known.";
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(1))
        .maximum(Some(1_000))
        .description(Some(description))
        .build()
}

/// The key of a ranking. Always optional: only boards with `BY` have keys.
pub(super) fn by() -> Object {
    string()
        .min_length(Some(1))
        .max_length(Some(512))
        .pattern(Some(NO_CONTROL_CHARACTERS))
        .description(Some(
            "The key of the ranking, on boards whose metric has `BY`: 1 to 512 bytes of UTF-8 without control characters. \
             Absent on other boards.",
        ))
        .build()
}

pub(super) fn value() -> Object {
    string()
        .min_length(Some(1))
        .max_length(Some(512))
        .pattern(Some(NO_CONTROL_CHARACTERS))
        .description(Some("The counted value: 1 to 512 bytes of UTF-8 without control characters."))
        .build()
}

pub(super) fn fields() -> Object {
    let description = "The fields of an event: strings, numbers (parsed exactly) and booleans. Null, arrays and \
                       objects are treated as absent. At most 256 fields.";
    let value = ObjectBuilder::new().schema_type(SchemaType::AnyValue).build();
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(value)))))
        .description(Some(description))
        .examples([json!({"device_id": "device-1", "user_id": "user-7", "amount": 166.6})])
        .build()
}

pub(super) fn score() -> Object {
    let description = "An exact number, which is an integer on boards without decimals; the mean for AVG. Null for \
                       AVG, MIN, MAX and LAST if the subject has no data.";
    let types = SchemaType::from_iter([Type::Number, Type::Null]);
    ObjectBuilder::new().schema_type(types).format(Some(decimal())).description(Some(description)).build()
}

/// The format of exact numbers, which generators may map to a type of decimals: https://spec.openapis.org/registry/format/
fn decimal() -> SchemaFormat {
    SchemaFormat::Custom("decimal".to_owned())
}

pub(super) fn amount() -> Object {
    let description = "The amount to add, for COUNT and SUM. May be negative; parsed exactly, with at most the \
                       decimals of the board. Default: 1.";
    ObjectBuilder::new().schema_type(Type::Number).format(Some(decimal())).description(Some(description)).build()
}

pub(super) fn operand() -> Object {
    let types = SchemaType::from_iter([Type::Number, Type::String, Type::Boolean, Type::Null]);
    let description = "The value of one side of a comparison: a number, a string or a boolean; null if it has no \
                       value, such as the mean of no data or a quotient with divisor 0.";
    ObjectBuilder::new().schema_type(types).description(Some(description)).examples([4]).build()
}

pub(super) fn slots_are_partial() -> Object {
    let description = "True on a board over all time that keeps its newest slots, otherwise absent: `slots` do not add \
                       up to the score, which also counts what is older.";
    ObjectBuilder::new().schema_type(Type::Boolean).description(Some(description)).examples([true]).build()
}

pub(super) fn edge() -> Object {
    let description = "Weight of the oldest slot: 1 for `slots`; for `weighted` the share of the slot that is still \
                       within the window.";
    string().enum_values(Some(["slots", "weighted"])).description(Some(description)).build()
}

pub(super) fn standard_error() -> Object {
    let description = "The relative standard error of the estimate, for APPROX_COUNT_DISTINCT boards only.";
    ObjectBuilder::new().schema_type(Type::Number).description(Some(description)).examples([0.023]).build()
}

pub(super) fn code() -> Object {
    string().enum_values(Some(Code::ALL.iter().map(|code| code.as_str()))).build()
}

pub(super) fn item_code() -> Object {
    let lines: Vec<_> = ItemCode::ALL.iter().map(|code| format!("- `{}`:{}", code.as_str(), code.meaning())).collect();
    string()
        .enum_values(Some(ItemCode::ALL.iter().map(|code| code.as_str())))
        .description(Some(lines.join("\n")))
        .build()
}

pub(super) fn rejected_counts() -> Object {
    let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(count)))))
        .description(Some("Number of rejections by code; absent if there are none."))
        .build()
}

pub(super) fn subjects() -> Array {
    let description = "The subjects to look up. Duplicates are ignored. At most 200, or 1,000 with `\"ranks\": false`.";
    distinct(subject(), 1_000, description)
}

pub(super) fn removed() -> Array {
    distinct(subject(), 1_000, "The subjects to remove. Duplicates are ignored.")
}

pub(super) fn removed_values() -> Array {
    distinct(value(), 1_000, "The values to remove from all subjects, in place of `subjects`. Duplicates are ignored.")
}

pub(super) fn keys() -> Array {
    distinct(by(), 100, "The keys whose rankings are read. Duplicates are ignored.")
}

/// Returns the schema of what [`object::distinct`](super::object::distinct) parses.
fn distinct(item: Object, most: usize, description: &str) -> Array {
    ArrayBuilder::new().items(item).min_items(Some(1)).max_items(Some(most)).description(Some(description)).build()
}

pub(super) fn id() -> Object {
    let description = "Identifier of the item. Each board and subject counts an id once within the board's horizon \
                       (`ids.horizon` of the board), from its arrival: `dedupe`, or the window, at most 24 hours.";
    string()
        .min_length(Some(1))
        .max_length(Some(128))
        .pattern(Some(NO_CONTROL_CHARACTERS))
        .description(Some(description))
        .examples(["e-81"])
        .build()
}

pub(super) fn value_to_count() -> Object {
    let description = "AVG, MIN, MAX and LAST: the measured number, parsed exactly, with at most the decimals of the board. \
                       COUNT_DISTINCT and APPROX_COUNT_DISTINCT: the value to count, 1 to 512 bytes of UTF-8 without \
                       control characters; a number or boolean is counted as its JSON text.";
    let types = SchemaType::from_iter([Type::String, Type::Number, Type::Boolean]);
    ObjectBuilder::new()
        .schema_type(types)
        .description(Some(description))
        .examples([json!("user-7"), json!(21.5)])
        .build()
}
