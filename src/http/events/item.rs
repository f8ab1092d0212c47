//! One event as it is sent, and what it takes to become one.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::board::{Event, Field, Fields};
use crate::http::codes::ItemCode;
use crate::http::intake::{self, Flaw, Item, Name, Stray, Text, Truth, any_other};

/// The most fields an event may have.
const MOST_FIELDS: usize = 256;

/// The longest type of an event, in bytes: more than any metric names.
const MOST_TYPE_BYTES: usize = 128;

/// What one JSON object said, not yet judged.
#[derive(Default)]
pub(super) struct EventItem<'a> {
    kind: Text<'a>,
    fields: SentFields<'a>,
    at: Text<'a>,
    id: Text<'a>,
    retract: Option<&'a RawValue>,
    /// The first field that does not belong.
    stray: Option<Stray>,
}

/// The value of `fields`.
#[derive(Default)]
enum SentFields<'a> {
    /// Not there, or null.
    #[default]
    Absent,
    Are(Vec<(Cow<'a, str>, &'a RawValue)>),
    /// More than [`MOST_FIELDS`].
    TooMany,
    /// Something else than an object.
    AreNot,
}

/// An event, and what of it no metric can read.
pub(super) struct SentEvent {
    pub(super) event: Event,
    /// Fields that are lists or objects. To metrics they are absent.
    pub(super) nested: Vec<Box<str>>,
}

impl<'a> Item<'a> for EventItem<'a> {
    const NAME: &'static str = "an event";
    const LIST: &'static str = "events";
    const FIELDS: &'static str = "type, fields, at, id, retract";
    const INVALID: ItemCode = ItemCode::InvalidEvent;

    fn take<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<Stray>, A::Error> {
        let (name, again) = match name {
            "type" => ("type", self.kind.fill(map)?),
            "fields" => {
                let before = std::mem::replace(&mut self.fields, map.next_value()?);
                ("fields", !matches!(before, SentFields::Absent))
            }
            "at" => ("at", self.at.fill(map)?),
            "id" => ("id", self.id.fill(map)?),
            "retract" => ("retract", self.retract.replace(map.next_value()?).is_some()),
            other => return intake::unknown(other, map),
        };
        Ok(again.then_some(Stray::Repeated(name)))
    }

    fn note(&mut self, stray: Stray) {
        self.stray.get_or_insert(stray);
    }

    fn is_empty(&self) -> bool {
        let texts = [&self.kind, &self.at, &self.id];
        texts.iter().all(|text| text.is_absent())
            && matches!(self.fields, SentFields::Absent)
            && self.retract.is_none()
            && self.stray.is_none()
    }
}

impl EventItem<'_> {
    /// Reads the values. What is wrong is named, with what is allowed.
    pub(super) fn judge(self) -> Result<SentEvent, Flaw> {
        if let Some(stray) = self.stray {
            return Err(Flaw::stray(stray, Self::NAME, Self::FIELDS, Self::INVALID));
        }
        let kind = kind(self.kind)?;
        let (fields, nested) = self.fields.judge()?;
        let at = self.at.at()?;
        let id = self.id.id()?;
        let retract = Truth::read(self.retract, "retract", Self::INVALID)?;
        if retract && at.is_none() {
            let detail = "a retraction needs 'at', the time of the event that it undoes";
            return Err(Flaw::value(ItemCode::MissingAt, "at", detail));
        }
        Ok(SentEvent { event: Event { kind, fields, at, id, retract }, nested })
    }
}

/// Reads the `fields` of a body that is about an event without sending one; what no metric can read is left out.
pub(super) fn fields(raw: &RawValue) -> Result<Fields, Flaw> {
    // A value of any kind can be read; what is wrong with it is judged.
    let sent: SentFields<'_> = serde_json::from_str(raw.get()).unwrap_or(SentFields::AreNot);
    sent.judge().map(|(fields, _)| fields)
}

/// Reads the type of an event, which must be there.
pub(in crate::http) fn kind(text: Text<'_>) -> Result<Box<str>, Flaw> {
    let shape = |detail: &str| Err(Flaw::shape(ItemCode::InvalidType, "type", detail));
    let value = |detail: String| Err(Flaw::value(ItemCode::InvalidType, "type", detail));
    match text {
        Text::Absent => shape("the field 'type' is missing"),
        Text::IsNot => shape("'type' must be a string"),
        Text::Is(text) if text.is_empty() => value("'type' must not be empty".to_owned()),
        Text::Is(text) if text.len() > MOST_TYPE_BYTES => {
            value(format!("'type' has {} bytes of UTF-8; at most {MOST_TYPE_BYTES} are allowed", text.len()))
        }
        Text::Is(text) if text.contains(char::is_control) => value("'type' has a control character".to_owned()),
        Text::Is(text) => Ok(text.into()),
    }
}

impl SentFields<'_> {
    fn judge(self) -> Result<(Fields, Vec<Box<str>>), Flaw> {
        let sent = match self {
            SentFields::Absent => return Ok(Default::default()),
            SentFields::Are(fields) => fields,
            SentFields::TooMany => {
                let detail = format!("an event may have {MOST_FIELDS} fields");
                return Err(Flaw::value(ItemCode::InvalidEvent, "fields", detail));
            }
            SentFields::AreNot => {
                return Err(Flaw::shape(ItemCode::InvalidEvent, "fields", "'fields' must be an object"));
            }
        };
        let (mut fields, mut nested) = (Fields::default(), Vec::new());
        for (name, raw) in sent {
            let text = raw.get();
            let field = match text.as_bytes().first() {
                Some(b'n') => continue,
                Some(b'[' | b'{') => {
                    nested.push(name.into());
                    continue;
                }
                Some(b'"') => match serde_json::from_str::<Cow<'_, str>>(text) {
                    Ok(text) => Field::Text(text.into()),
                    Err(_) => {
                        let detail = format!("the field '{}' is a string that is not Unicode", shortened(&name));
                        return Err(Flaw::value(ItemCode::InvalidField, &shortened(&name), detail));
                    }
                },
                Some(b't' | b'f') => Field::Bool(text == "true"),
                _ => Field::Number(text.into()),
            };
            fields.set(name, field);
        }
        Ok((fields, nested))
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

impl<'de: 'a, 'a> Deserialize<'de> for SentFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = SentFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SentFields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                    if fields.len() > MOST_FIELDS {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        return Ok(SentFields::TooMany);
                    }
                }
                Ok(SentFields::Are(fields))
            }

            fn visit_unit<E>(self) -> Result<SentFields<'de>, E> {
                Ok(SentFields::Absent)
            }

            any_other!(SentFields<'de>, SentFields::AreNot);

            fn visit_str<E>(self, _: &str) -> Result<SentFields<'de>, E> {
                Ok(SentFields::AreNot)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SentFields<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(SentFields::AreNot)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::intake::from_raw;

    fn judged(text: &str) -> Result<SentEvent, Flaw> {
        from_raw::<EventItem<'_>>(serde_json::from_str(text).unwrap())?.judge()
    }

    #[test]
    fn fields_keep_what_was_sent() {
        let sent = judged(
            r#"{"type":"pay","fields":{"a":1.50e+0,"b":"é\n","c":false,"d":null,"e":[1],"f":{"g":1},"a":166.60}}"#,
        )
        .unwrap();
        let fields: Vec<_> = sent.event.fields.iter().collect();
        let expected =
            [("a", Field::Number("166.60".into())), ("b", Field::Text("é\n".into())), ("c", Field::Bool(false))];
        assert_eq!(fields, expected.each_ref().map(|(name, field)| (*name, field)));
        assert_eq!(sent.nested, ["e", "f"].map(Box::<str>::from));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many: Vec<_> = (0..257).map(|n| format!("\"f{n}\":1")).collect();
        for (text, code, field) in [
            (r#"{}"#, ItemCode::InvalidType, "type"),
            (r#"{"type":5}"#, ItemCode::InvalidType, "type"),
            (r#"{"type":""}"#, ItemCode::InvalidType, "type"),
            (r#"{"type":"a","fields":[]}"#, ItemCode::InvalidEvent, "fields"),
            (r#"{"type":"a","fields":{"x":"\ud800"}}"#, ItemCode::InvalidField, "x"),
            (&format!(r#"{{"type":"a","fields":{{{}}}}}"#, many.join(",")), ItemCode::InvalidEvent, "fields"),
            (r#"{"type":"a","retract":true}"#, ItemCode::MissingAt, "at"),
            (r#"{"type":"a","retract":1}"#, ItemCode::InvalidEvent, "retract"),
            (r#"{"type":"a","fields":{},"fields":{}}"#, ItemCode::InvalidEvent, "fields"),
            (r#"{"type":"a","subject":"x"}"#, ItemCode::UnknownField, "subject"),
            (r#"[]"#, ItemCode::InvalidEvent, ""),
        ] {
            let flaw = judged(text).err().unwrap();
            assert_eq!((flaw.code, flaw.field.as_str()), (code, field), "{text}");
        }
    }
}
