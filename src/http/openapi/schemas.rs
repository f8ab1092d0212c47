//! Schemas of values that occur all over the API.

use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, Array, ArrayBuilder, KnownFormat, Object, ObjectBuilder, Ref, Schema, SchemaFormat,
    SchemaType, Type,
};

use crate::http::codes::{Code, ItemCode};

const NO_CONTROL_CHARACTERS: &str = r"^[^\x00-\x1F\x7F-\x9F]+$";

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

pub(in crate::http) fn time() -> Object {
    text()
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("An instant as RFC 3339 writes it, in UTC."))
        .build()
}

pub(in crate::http) fn time_or_null() -> Object {
    let types = SchemaType::from_iter([Type::String, Type::Null]);
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    let what = "An instant as RFC 3339 writes it, in UTC; null where there is none.";
    ObjectBuilder::new().schema_type(types).format(Some(format)).description(Some(what)).build()
}

pub(in crate::http) fn board() -> Object {
    text().pattern(Some("^[a-z0-9][a-z0-9._-]{0,62}$")).description(Some("The board's name.")).build()
}

pub(in crate::http) fn subject() -> Object {
    text()
        .min_length(Some(1))
        .max_length(Some(512))
        .pattern(Some(NO_CONTROL_CHARACTERS))
        .description(Some("What is ranked or counted: 1 to 512 bytes of UTF-8 without control characters."))
        .build()
}

pub(in crate::http) fn value() -> Object {
    text()
        .min_length(Some(1))
        .max_length(Some(512))
        .pattern(Some(NO_CONTROL_CHARACTERS))
        .description(Some("What is counted: 1 to 512 bytes of UTF-8 without control characters."))
        .build()
}

/// An event's fields.
pub(in crate::http) fn fields() -> Object {
    let what = "The fields of an event: texts, numbers (read exactly), true and false. Null, lists and objects are as \
                good as absent. At most 256.";
    let value = ObjectBuilder::new().schema_type(SchemaType::AnyValue).build();
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(value)))))
        .description(Some(what))
        .examples([serde_json::json!({"device_id": "device-1", "user_id": "user-7", "amount": 166.6})])
        .build()
}

pub(in crate::http) fn score() -> Object {
    let exact = "An exact number, an integer where the board has no decimals; of AVG the mean. Null where AVG, MIN and \
                 MAX say nothing of a subject without data.";
    let types = SchemaType::from_iter([Type::Number, Type::Null]);
    ObjectBuilder::new().schema_type(types).description(Some(exact)).build()
}

pub(in crate::http) fn amount() -> Object {
    let what = "COUNT and SUM: how much; 1 if absent. May be negative. At most as many decimals as the board keeps, \
                read exactly.";
    ObjectBuilder::new().schema_type(Type::Number).description(Some(what)).build()
}

pub(in crate::http) fn order() -> Object {
    text().enum_values(Some(["desc", "asc"])).description(Some("Which end of the scores is the top.")).build()
}

pub(in crate::http) fn cover() -> Object {
    let what = "`full` keeps one slot more, so that the window is never shorter than it says.";
    text().enum_values(Some(["current", "full"])).description(Some(what)).build()
}

/// What a side of a comparison came to.
pub(in crate::http) fn operand() -> Object {
    let types = SchemaType::from_iter([Type::Number, Type::String, Type::Boolean, Type::Null]);
    let what = "A number, a text, or a truth value; null where there is none: a mean of nothing, a quotient of zero.";
    ObjectBuilder::new().schema_type(types).description(Some(what)).examples([4]).build()
}

/// A problem in the place of an answer.
pub(in crate::http) fn problem() -> Ref {
    Ref::from_schema_name("Problem")
}

pub(in crate::http) fn mode() -> Object {
    let what = "`sliding`: the last so many slots. `from_first`: a subject's window begins with its first event and \
                ends a fixed time later; COUNT and SUM on unranked boards.";
    text().enum_values(Some(["sliding", "from_first"])).description(Some(what)).build()
}

pub(in crate::http) fn stamp() -> Object {
    let what = "Which end of its slot a sample is stamped with: with `end`, 06:02 belongs to 06:01–06:02.";
    text().enum_values(Some(["start", "end"])).description(Some(what)).build()
}

pub(in crate::http) fn edge() -> Object {
    let what = "How the oldest slot counts: whole, or by the share of it that the window still reaches.";
    text().enum_values(Some(["slots", "weighted"])).description(Some(what)).build()
}

pub(in crate::http) fn standard_error() -> Object {
    let what = "The relative standard error of an estimate; only on APPROX_COUNT_DISTINCT boards.";
    ObjectBuilder::new().schema_type(Type::Number).description(Some(what)).examples([0.023]).build()
}

pub(in crate::http) fn code() -> Object {
    text().enum_values(Some(Code::ALL.iter().map(|code| code.as_str()))).build()
}

pub(in crate::http) fn item_code() -> Object {
    let lines: Vec<_> = ItemCode::ALL.iter().map(|code| format!("- `{}`:{}", code.as_str(), code.meaning())).collect();
    text().enum_values(Some(ItemCode::ALL.iter().map(|code| code.as_str()))).description(Some(lines.join("\n"))).build()
}

pub(in crate::http) fn rejected_counts() -> Object {
    let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(count)))))
        .description(Some("How many were not counted, by code; absent if there are none."))
        .build()
}

pub(super) fn subjects() -> Array {
    ArrayBuilder::new()
        .items(subject())
        .min_items(Some(1))
        .max_items(Some(1_000))
        .description(Some("A subject given twice counts once."))
        .build()
}

pub(super) fn id() -> Object {
    let once = "Counts once per board and subject, for as long as the window, at most a day, after it arrived.";
    text()
        .min_length(Some(1))
        .max_length(Some(128))
        .pattern(Some(NO_CONTROL_CHARACTERS))
        .description(Some(once))
        .examples(["e-81"])
        .build()
}

pub(super) fn value_to_count() -> Object {
    let what = "AVG, MIN, MAX: the number measured, with at most as many decimals as the board keeps, read exactly. \
                COUNT_DISTINCT, APPROX_COUNT_DISTINCT: the text seen, 1 to 512 bytes of UTF-8 without control \
                characters; of a number or a truth value its own text.";
    let types = SchemaType::from_iter([Type::String, Type::Number, Type::Boolean]);
    ObjectBuilder::new().schema_type(types).description(Some(what)).examples([json!("user-7"), json!(21.5)]).build()
}
