//! JSON objects read strictly: no member twice, nothing that is not asked for.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a JSON object, each with the text of its value, in the order of the text. No name occurs twice.
#[derive(Default)]
pub(super) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A scalar JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scalar<'a> {
    Text(Cow<'a, str>),
    /// The text of the number.
    Number(&'a str),
    Bool(bool),
}

/// The largest number of members.
const MOST: usize = 256;

impl<'a> Members<'a> {
    /// Parses an object. Returns `None` if the text is not an object, or has a member twice, or too many. O(length).
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Takes the value of a member out. `null` counts as absent.
    pub(super) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1).filter(|raw| raw.get() != "null")
    }

    /// Returns the members that are left and not null.
    pub(super) fn rest(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.0.into_iter().filter(|(_, raw)| raw.get() != "null")
    }

    /// Returns the name of a member that is left, whatever its value.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.0.first().map(|(name, _)| &**name)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
                while let Some(TokenText(name)) = map.next_key()? {
                    if members.len() == MOST || members.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom("a member twice, or too many"));
                    }
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A text, such as the name of a member; borrowed unless it contains escapes.
#[derive(serde::Deserialize)]
struct TokenText<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Scalar<'a> {
    /// Reads a value that is a text, a number, or true or false.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        let text = raw.get();
        match text.as_bytes().first()? {
            b'"' => text_of(raw).map(Scalar::Text),
            b't' | b'f' => Some(Scalar::Bool(text == "true")),
            b'-' | b'0'..=b'9' => Some(Scalar::Number(text)),
            _ => None,
        }
    }
}

/// Reads a value that is a text.
pub(super) fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<TokenText<'_>>(raw.get()).ok().map(|text| text.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_each_member_once() {
        let mut members = Members::parse(r#"{"a":1,"b":null,"c":{"a":[1,2]}}"#).unwrap();
        assert_eq!(members.take("c").unwrap().get(), r#"{"a":[1,2]}"#);
        assert!(members.take("b").is_none() && members.take("d").is_none());
        assert_eq!(members.unknown(), Some("a"));
        let many = format!("{{{}}}", (0..257).map(|n| format!("\"{n}\":1")).collect::<Vec<_>>().join(","));
        for wrong in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":1}"#, "[]", "[1]", "1", "{", "{}x", "", &many] {
            assert!(Members::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn scalars_are_texts_numbers_and_booleans() {
        let read = |text: &str| -> Option<String> {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            Scalar::read(raw).map(|scalar| format!("{scalar:?}"))
        };
        assert_eq!(read(r#""a\u0062""#).unwrap(), r#"Text("ab")"#);
        assert_eq!(read("-1.50").unwrap(), r#"Number("-1.50")"#);
        assert_eq!(read("true").unwrap(), "Bool(true)");
        for other in ["null", "[]", "{}", r#""\ud800""#] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
