//! JSON objects of requests, parsed with errors that name the field.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::de::StrRead;
use serde_json::value::RawValue;

use super::body::{malformed, without_position};
use super::codes::Code;
use super::problem::Problem;
use crate::board::NameError;

/// Upper bound on the number of fields of any object in the API.
const MAX_FIELDS: usize = 16;

/// Parses a body as a `T`, a type with a derived `Deserialize` that may have nested objects.
///
/// The fields of the type are those that the object may have. A field with the value `null` is treated as absent.
/// Errors name the field.
pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    T::deserialize(ObjectSource::Body(body)).map_err(|error| error.at("body"))
}

/// Parses an array of texts with 1 to `most` elements. Returns each value once, in the order of first occurrence.
/// Errors name the element.
pub(super) fn distinct<T: Clone + Eq + Hash>(
    name: &str,
    given: &[serde_json::Value],
    most: u64,
    parse: impl Fn(&str) -> Result<T, NameError>,
) -> Result<Vec<T>, Problem> {
    if given.is_empty() || given.len() as u64 > most {
        let detail = format!("'{name}' must have 1 to {most} elements, not {}", given.len());
        return Err(Problem::field(name, detail).with("minimum", 1).with("maximum", most));
    }
    let (mut seen, mut values) = (HashSet::with_capacity(given.len()), Vec::with_capacity(given.len()));
    for (index, value) in given.iter().enumerate() {
        let field = format!("{name}[{index}]");
        let text = value.as_str().ok_or_else(|| Problem::field(&field, format!("'{field}' must be a string")))?;
        let value = parse(text).map_err(|error| Problem::field(&field, format!("'{field}': {error}")))?;
        if seen.insert(value.clone()) {
            values.push(value);
        }
    }
    Ok(values)
}

/// A JSON object whose fields are parsed one by one, so that an error can name the field.
pub(super) struct Object<'a> {
    fields: Vec<(String, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// Parses a body that may have only the `known` fields.
    pub(super) fn parse(body: &'a [u8], known: &[&str]) -> Result<Self, Problem> {
        Self::from_text("body", body, known)
    }

    /// Parses a nested object that may have only the `known` fields; errors refer to it by `name`.
    pub(super) fn nested(name: &str, raw: &'a RawValue, known: &[&str]) -> Result<Self, Problem> {
        Self::from_text(name, raw.get().as_bytes(), known)
    }

    fn from_text(name: &str, text: &'a [u8], known: &[&str]) -> Result<Self, Problem> {
        let object: Object<'a> = serde_json::from_slice(text).map_err(|error| {
            if error.is_data() {
                let (known, why) = (known.join(", "), without_position(&error));
                let shown = if name == "body" { "the body".to_owned() } else { format!("'{name}'") };
                Problem::field(name, format!("{shown} must be an object with {known}: {why}"))
            } else {
                malformed(&error)
            }
        })?;
        if let Some((unknown, _)) = object.fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(unknown_field(unknown, known));
        }
        for (at, (name, _)) in object.fields.iter().enumerate() {
            if object.fields[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::field(name, format!("the field '{name}' is given more than once")));
            }
        }
        Ok(object)
    }

    /// Refuses any given field that is not among the `known` ones.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.fields.iter().find(|(name, raw)| !known.contains(&name.as_str()) && raw.get() != "null") {
            Some((unknown, _)) => Err(unknown_field(unknown, known)),
            None => Ok(()),
        }
    }

    /// Returns the value of a field, if it is given and not null.
    fn given(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.iter().find(|(given, raw)| given == name && raw.get() != "null").map(|(_, raw)| *raw)
    }

    /// Returns whether a field is given and not null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given(name).is_some()
    }

    /// Parses the object as a `T`. It may have no other fields than the type, unless they are null.
    pub(super) fn parse_as<T: Deserialize<'a>>(&self) -> Result<T, Problem> {
        T::deserialize(ObjectSource::Object(self)).map_err(|error| error.at("body"))
    }

    /// Passes the given fields among the `known` ones to the visitor, in the order of `known`.
    fn visit<V: Visitor<'a>>(&self, known: &'static [&'static str], visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_map(KnownFields { object: self, names: known.iter(), next: None })
    }
}

fn missing_field(name: &str) -> Problem {
    Problem::field(name, format!("the field '{name}' is missing"))
}

fn unknown_field(name: &str, known: &[&str]) -> Problem {
    let name: String = name.chars().take(64).collect();
    let detail = format!("unknown field '{name}'; expected one of {}", known.join(", "));
    Problem::new(Code::UnknownField, detail).with("field", name)
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    // One field more than any object may have is enough to find an unknown or repeated one.
                    if fields.len() <= MAX_FIELDS {
                        fields.push(field);
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(ObjectVisitor).map(|fields| Object { fields })
    }
}

/// The error of a `Deserialize` implementation.
#[derive(Debug)]
enum FieldError {
    /// The message about a value whose field is not known yet.
    Message(String),
    Problem(Problem),
}

impl FieldError {
    /// Returns the problem, whose field is this one unless it is an inner one.
    fn at(self, name: &str) -> Problem {
        match self {
            FieldError::Message(message) => Problem::field(name, format!("'{name}': {message}")),
            FieldError::Problem(problem) => problem,
        }
    }
}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        FieldError::Message(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        FieldError::Problem(missing_field(field))
    }
}

impl From<Problem> for FieldError {
    fn from(problem: Problem) -> Self {
        FieldError::Problem(problem)
    }
}

impl std::error::Error for FieldError {}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::Message(message) => f.write_str(message),
            FieldError::Problem(problem) => problem.fmt(f),
        }
    }
}

/// The fields of an object, for a visitor.
struct KnownFields<'o, 'a, I> {
    object: &'o Object<'a>,
    /// The names of the fields that the object may have.
    names: I,
    next: Option<FieldSource<'o, 'a>>,
}

impl<'o, 'de, I: Iterator<Item = &'o &'static str>> MapAccess<'de> for KnownFields<'o, 'de, I> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        let object = self.object;
        self.next = self.names.find_map(|name| Some(FieldSource { name, raw: object.given(name)? }));
        let Some(FieldSource { name, .. }) = self.next else { return Ok(None) };
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldError> {
        let Some(source) = self.next.take() else { return Err(de::Error::custom("a value without its name")) };
        let name = source.name;
        seed.deserialize(source).map_err(|error| error.at(name).into())
    }
}

/// Deserializer of an object into a struct, whose fields are the ones that the object may have.
enum ObjectSource<'o, 'a> {
    /// The text of the object.
    Body(&'a [u8]),
    /// An object that has been parsed. Fields that the struct does not have may be null.
    Object(&'o Object<'a>),
}

impl<'de> Deserializer<'de> for ObjectSource<'_, 'de> {
    type Error = FieldError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self {
            ObjectSource::Body(text) => Object::parse(text, fields)?.visit(fields, visitor),
            ObjectSource::Object(object) => {
                object.only(fields)?;
                object.visit(fields, visitor)
            }
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, FieldError> {
        Err(de::Error::custom("an object is parsed as a struct only"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Deserializer of one field, which is not null.
struct FieldSource<'n, 'a> {
    name: &'n str,
    raw: &'a RawValue,
}

impl<'a> FieldSource<'_, 'a> {
    fn read<T>(
        self,
        read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'a>>) -> serde_json::Result<T>,
    ) -> Result<T, FieldError> {
        read(&mut serde_json::Deserializer::from_str(self.raw.get()))
            .map_err(|error| FieldError::Message(without_position(&error)))
    }
}

impl<'de> Deserializer<'de> for FieldSource<'_, 'de> {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.read(|json| json.deserialize_any(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.read(|json| json.deserialize_newtype_struct(name, visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.read(|json| json.deserialize_enum(name, variants, visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        Object::nested(self.name, self.raw, fields)?.visit(fields, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it can be parsed matters")]
    struct Outer {
        now: u8,
        deep: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it can be parsed matters")]
    struct Inner {
        unit: Unit,
        text: Option<String>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Day,
    }

    fn problem(body: &str) -> serde_json::Value {
        match parse::<Outer>(body.as_bytes()) {
            Ok(_) => "fine".into(),
            Err(problem) => serde_json::to_value(problem).unwrap(),
        }
    }

    #[test]
    fn an_error_names_the_field_or_the_position() {
        let number = |n: u64| serde_json::Value::from(n);
        let text = |t: &str| serde_json::Value::from(t);
        for (body, code, member, value) in [
            ("{\n \"now\": 1,,}", "malformed_json", "line", number(2)),
            ("{\"now\"", "malformed_json", "column", number(6)),
            ("", "malformed_json", "line", number(1)),
            ("[]", "invalid_field", "field", text("body")),
            ("3", "invalid_field", "field", text("body")),
            ("{}", "invalid_field", "field", text("now")),
            (r#"{"now":null}"#, "invalid_field", "field", text("now")),
            (r#"{"now":"x"}"#, "invalid_field", "field", text("now")),
            (r#"{"now":1,"now":2}"#, "invalid_field", "field", text("now")),
            (r#"{"now":1,"nwo":2}"#, "unknown_field", "field", text("nwo")),
        ] {
            let problem = problem(body);
            assert_eq!((&problem["code"], &problem[member]), (&text(code), &value), "{body}");
        }
        assert_eq!(problem(r#" {"now":1,"deep":null} "#), "fine");
    }

    #[test]
    fn an_error_names_the_nested_object() {
        assert_eq!(problem(r#"{"now":1,"deep":{"unit":"day","text":null}}"#), "fine");
        for (deep, field, detail) in [
            ("5", "deep", "'deep' must be an object with unit, text: invalid type: integer `5`, expected an object"),
            ("{}", "unit", "the field 'unit' is missing"),
            (r#"{"unit":"week"}"#, "unit", "'unit': unknown variant `week`, expected `day`"),
            (r#"{"unit":"day","text":5}"#, "text", "'text': invalid type: integer `5`, expected a string"),
            (r#"{"now":1}"#, "now", "unknown field 'now'; expected one of unit, text"),
        ] {
            let problem = problem(&format!(r#"{{"now":1,"deep":{deep}}}"#));
            assert_eq!((&problem["field"], &problem["detail"]), (&field.into(), &detail.into()));
        }
    }

    #[test]
    fn a_parsed_object_may_have_other_fields_that_are_null() {
        let object = |text| Object::parse(text, &["unit", "text", "now"]).unwrap();
        assert!(object(br#"{"unit":"day","now":null}"#).parse_as::<Inner>().is_ok());
        let problem = object(br#"{"unit":"day","now":1}"#).parse_as::<Inner>().unwrap_err();
        assert_eq!(problem.to_string(), "unknown_field: unknown field 'now'; expected one of unit, text");
    }
}
