//! Schemas of values that occur in several resources, for `#[schema(schema_with = …)]`.

use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, Array, ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};

use super::codes::{Code, ItemCode};

const DATE_TIME: Option<SchemaFormat> = Some(SchemaFormat::KnownFormat(KnownFormat::DateTime));

/// Returns the schema of a value of one of these types.
pub(super) fn of<const N: usize>(types: [Type; N], description: &str) -> ObjectBuilder {
    let types = match types.as_slice() {
        [only] => SchemaType::Type(only.clone()),
        _ => SchemaType::from_iter(types),
    };
    ObjectBuilder::new().schema_type(types).description(Some(description))
}

/// Returns the schema of a string.
pub(super) fn string(description: &str) -> ObjectBuilder {
    of([Type::String], description)
}

/// Limits a string to 1 to so many bytes without control characters.
fn name(string: ObjectBuilder, most: usize) -> ObjectBuilder {
    string.min_length(Some(1)).max_length(Some(most)).pattern(Some(r"^[^\x00-\x1F\x7F-\x9F]+$"))
}

pub(super) fn time() -> ObjectBuilder {
    string("A time in RFC 3339 format, in UTC.").format(DATE_TIME)
}

pub(super) fn covers_since() -> ObjectBuilder {
    let description = "The time at which the board was defined, if that is after the start of the slots that were read: \
        what happened before is missing, unless it was sent afterwards. Absent if the board covers these slots. Over all \
        time always present, except for boards defined by a version that did not record it.";
    string(description).format(DATE_TIME)
}

pub(super) fn time_or_null() -> ObjectBuilder {
    of([Type::String, Type::Null], "A time in RFC 3339 format, in UTC, or null.").format(DATE_TIME)
}

pub(super) fn board() -> ObjectBuilder {
    string("The name of the board.").pattern(Some("^[a-z0-9][a-z0-9._-]{0,62}$"))
}

pub(super) fn subject() -> ObjectBuilder {
    name(string("The ranked or counted subject: 1 to 512 bytes of UTF-8 without control characters."), 512)
}

/// The subject of a line of a ranking.
pub(super) fn subject_or_null() -> ObjectBuilder {
    let description = "The ranked subject: 1 to 512 bytes of UTF-8 without control characters. Null where the subject \
                       was removed from a final period, in which the line keeps its place. Never null in the current \
                       period, nor on a board without a season.";
    name(of([Type::String, Type::Null], description), 512)
}

/// The tier of a line. Always optional.
pub(super) fn tier() -> ObjectBuilder {
    let description = "The name of the best tier that the subject reaches. Absent if it reaches none.";
    string(description).min_length(Some(1)).max_length(Some(64))
}

/// The rank of a line at an earlier time. Always optional.
pub(super) fn rank_before() -> ObjectBuilder {
    let description = "The rank just before the instant `from_as_of`, or in the period before; null if \
        the subject is not among the first 1,000 there. Absent on a board without `movement`, and if the ranks then are not known.";
    let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
    of([Type::Integer, Type::Null], description).format(Some(format)).minimum(Some(1)).maximum(Some(1_000))
}

/// All attributes of a subject.
pub(super) fn all_attributes() -> ObjectBuilder {
    attributes()
        .description(Some("The attributes of the subject, in the order of their names: any JSON values but null."))
}

/// The attributes of an item.
pub(super) fn attributes_of_item() -> ObjectBuilder {
    let description = "Attributes to merge with those of the subject: null removes one. At most 32, and with those that are \
        there 1,024 bytes.";
    all_attributes().description(Some(description))
}

/// The attributes of an item that is about nothing else.
pub(super) fn attributes_or_null() -> ObjectBuilder {
    let description = "Attributes to merge with those of the subject: null removes one. At most 32, and with those that are \
        there 1,024 bytes. Null instead of the object removes all.";
    all_attributes().description(Some(description)).schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
}

/// The attributes of a subject that are asked for.
pub(super) fn attributes() -> ObjectBuilder {
    let description = "The attributes of the subject that are asked for, in the order of their names: any JSON values but null. \
        Empty if it has none. Absent without the parameter `attributes`.";
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Object))
        .description(Some(description))
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
}

/// The key of a ranking. Always optional: only boards with `BY` have keys.
pub(super) fn by() -> ObjectBuilder {
    let description = "The key of the ranking, on boards whose metric has `BY`: 1 to 512 bytes of UTF-8 without control \
                       characters. Absent on other boards.";
    name(string(description), 512)
}

pub(super) fn value() -> ObjectBuilder {
    name(string("The counted value: 1 to 512 bytes of UTF-8 without control characters."), 512)
}

/// Returns the schema of an object with any members of this value.
fn map(value: ObjectBuilder, description: &str) -> ObjectBuilder {
    let value = AdditionalProperties::RefOr(RefOr::T(Schema::Object(value.build())));
    of([Type::Object], description).additional_properties(Some(value))
}

pub(super) fn fields() -> ObjectBuilder {
    let description = "The fields of an event: strings, numbers (parsed exactly) and booleans. Null, arrays and \
                       objects are treated as absent. At most 256 fields.";
    map(ObjectBuilder::new().schema_type(SchemaType::AnyValue), description)
        .examples([json!({"device_id": "device-1", "user_id": "user-7", "amount": 166.6})])
}

pub(super) fn score() -> ObjectBuilder {
    let description = "An exact number, which is an integer on boards without decimals; the mean for AVG. Null for \
                       AVG, MIN, MAX and LAST if the subject has no data.";
    of([Type::Number, Type::Null], description).format(Some(decimal()))
}

pub(super) fn tie() -> ObjectBuilder {
    let description = "What orders the subject among equal scores: its second key, a whole number, on a board with `tie_break`; \
                       its time, RFC 3339, on a board with `ties`. Absent on other boards.";
    of([Type::Integer, Type::String], description)
}

pub(super) fn tie_break_of_item() -> ObjectBuilder {
    let description = "On a board with `tie_break`, the second key, a whole number from -`most` to `most`: it is added up \
                       for COUNT and SUM, otherwise it belongs to the value. Required there, and unknown on other boards.";
    of([Type::Integer], description).format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
}

/// The format of exact numbers, which generators may map to a type of decimals: https://spec.openapis.org/registry/format/
fn decimal() -> SchemaFormat {
    SchemaFormat::Custom("decimal".to_owned())
}

pub(super) fn amount() -> ObjectBuilder {
    let description = "The amount to add, for COUNT and SUM. May be negative; parsed exactly, with at most the \
                       decimals of the board. Default: 1.";
    of([Type::Number], description).format(Some(decimal()))
}

pub(super) fn operand() -> ObjectBuilder {
    let description = "The value of one side of a comparison: a number, a string or a boolean; null if it has no \
                       value, such as the mean of no data or a quotient with divisor 0.";
    of([Type::Number, Type::String, Type::Boolean, Type::Null], description).examples([4])
}

pub(super) fn slots_are_partial() -> ObjectBuilder {
    let description = "True on a board over all time that keeps its newest slots, otherwise absent: `slots` do not add \
                       up to the score, which also counts what is older.";
    of([Type::Boolean], description).examples([true])
}

pub(super) fn edge() -> ObjectBuilder {
    let description = "Weight of the oldest slot: 1 for `slots`; for `weighted` the share of the slot that is still \
                       within the window.";
    string(description).enum_values(Some(["slots", "weighted"]))
}

pub(super) fn standard_error() -> ObjectBuilder {
    let description = "The relative standard error of the estimate, for APPROX_COUNT_DISTINCT boards only.";
    of([Type::Number], description).examples([0.023])
}

pub(super) fn code() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(Code::ALL.iter().map(|code| code.as_str())))
}

pub(super) fn item_code() -> ObjectBuilder {
    let lines: Vec<_> = ItemCode::ALL.iter().map(|code| format!("- `{}`:{}", code.as_str(), code.meaning())).collect();
    string(&lines.join("\n")).enum_values(Some(ItemCode::ALL.iter().map(|code| code.as_str())))
}

pub(super) fn rejected_counts() -> ObjectBuilder {
    by_code("Number of rejections by code; absent if there are none.")
}

pub(super) fn rejections() -> ObjectBuilder {
    by_code("Number of rejections by code.")
}

fn by_code(description: &str) -> ObjectBuilder {
    map(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)), description)
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
fn distinct(item: ObjectBuilder, most: usize, description: &str) -> Array {
    ArrayBuilder::new().items(item).min_items(Some(1)).max_items(Some(most)).description(Some(description)).build()
}

pub(super) fn id() -> ObjectBuilder {
    let description = "Identifier of the item. Each board and subject counts an id once within the board's horizon \
                       (`ids.horizon` of the board), from its arrival: `dedupe`, or the window, at most 24 hours.";
    name(string(description), 128).examples(["e-81"])
}

pub(super) fn source() -> ObjectBuilder {
    string("The name of the source.").pattern(Some("^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$"))
}

pub(super) fn position() -> ObjectBuilder {
    string("A position in the log of a source: that of an item, or `start`, which is before the first one.")
        .pattern(Some("^(start|[0-9]{1,39})$"))
        .examples(["41"])
}

pub(super) fn position_or_null() -> ObjectBuilder {
    of([Type::String, Type::Null], "A position in the log of a source, or null.").pattern(Some("^(start|[0-9]{1,39})$"))
}

pub(super) fn position_of_item() -> ObjectBuilder {
    let description = "With `source`, and required then: the position of the item in the log of the source. A whole \
                       number from 0, which grows from item to item, with any gaps. Numbers from 2^53 on are best sent \
                       as strings.";
    of([Type::String, Type::Integer], description).minimum(Some(0)).examples([json!("42")])
}

pub(super) fn value_to_count() -> ObjectBuilder {
    let description = "AVG, MIN, MAX and LAST: the measured number, parsed exactly, with at most the decimals of the board. \
                       COUNT_DISTINCT and APPROX_COUNT_DISTINCT: the value to count, 1 to 512 bytes of UTF-8 without \
                       control characters; a number or boolean is counted as its JSON text. COUNT with a cap: the person, in the same \
                       form.";
    of([Type::String, Type::Number, Type::Boolean], description).examples([json!("user-7"), json!(21.5)])
}
