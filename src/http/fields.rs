//! The fields of an event, as a body has them.

use serde_json::value::RawValue;

use super::body::without_position;
use super::problem::Problem;
use crate::board::{Field, Fields};

/// Reads an object of fields. Numbers keep their text; null is as good as leaving a field out, and so are lists and
/// objects, which no metric reads.
pub(super) fn read(raw: Option<&RawValue>) -> Result<Fields, Problem> {
    let mut fields = Fields::default();
    let Some(raw) = raw else { return Ok(fields) };
    let invalid = |error: &serde_json::Error| {
        Problem::field("fields", format!("'fields' must be an object: {}", without_position(error)))
    };
    let given: Pairs = serde_json::from_str(raw.get()).map_err(|error| invalid(&error))?;
    for (name, value) in given.0 {
        let text = value.get();
        let field = match text.as_bytes().first() {
            Some(b'"') => Field::Text(serde_json::from_str(text).map_err(|error| invalid(&error))?),
            Some(b't') => Field::Bool(true),
            Some(b'f') => Field::Bool(false),
            Some(b'-' | b'0'..=b'9') => Field::Number(text.into()),
            _ => continue,
        };
        fields.set(name, field);
    }
    Ok(fields)
}

/// An object in the order in which it was sent.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                    if pairs.len() > MOST_FIELDS {
                        return Err(serde::de::Error::custom(format!("it has more than {MOST_FIELDS} fields")));
                    }
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(Visitor).map(Pairs)
    }
}

/// The most fields of an event: to find one is to look through them.
const MOST_FIELDS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_text_and_what_no_metric_reads_is_left_out() {
        let raw = RawValue::from_string(
            r#"{"a":"x\u0041","n":166.60,"big":1e400,"t":true,"f":false,"null":null,"list":[1],"map":{},"n":-0}"#
                .into(),
        );
        let fields = read(Some(&raw.unwrap())).unwrap();
        let seen: Vec<_> = fields.iter().map(|(name, field)| (name, field.clone())).collect();
        assert_eq!(
            seen,
            [
                ("a", Field::Text("xA".into())),
                ("n", Field::Number("-0".into())),
                ("big", Field::Number("1e400".into())),
                ("t", Field::Bool(true)),
                ("f", Field::Bool(false)),
            ]
        );
        assert_eq!(read(None).unwrap(), Fields::default());
        let list = RawValue::from_string("[1]".into()).unwrap();
        assert!(read(Some(&list)).unwrap_err().to_string().contains("'fields' must be an object"));
        let many: Vec<String> = (0..300).map(|n| format!("\"f{n}\":1")).collect();
        let many = RawValue::from_string(format!("{{{}}}", many.join(","))).unwrap();
        assert!(read(Some(&many)).unwrap_err().to_string().contains("256"));
    }
}
