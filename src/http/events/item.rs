//! Parsing and validation of an event.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::board::{Board, Event, Field, Fields};
use crate::http::codes::ItemCode;
use crate::http::items::{
    self, FieldName, FieldValue, Item, ItemError, SourcedItem, TextField, item, visit_other_types,
};
use crate::http::schemas;
use crate::service::SourceItem;

/// Maximum number of fields of an event.
const MAX_FIELDS: usize = 256;

/// Maximum length of an event type in bytes, which is longer than any type in a metric.
const MAX_TYPE_BYTES: usize = 128;

item! {
    /// An occurrence with a type and fields.
    #[schema(as = Event)]
    pub(super) struct EventItem<'a> {
        /// Type of the event. It is counted by every board whose metric names this type.
        #[schema(value_type = String, min_length = 1, max_length = 128, example = "login")]
        kind as "type": TextField<'a>,
        #[schema(schema_with = schemas::fields, required = false)]
        fields: RawFields<'a>,
        /// Time of the event. Default: the store's current time.
        #[schema(schema_with = schemas::time, required = false)]
        at: TextField<'a>,
        #[schema(schema_with = schemas::id, required = false)]
        id: TextField<'a>,
        /// Whether the event reverses an earlier one, which happened at `at`. Default: false.
        #[schema(value_type = bool, required = false)]
        retract: Option<&'a RawValue>,
        #[schema(schema_with = schemas::position_of_item, required = false)]
        position: Option<&'a RawValue>,
    }
    /// A single event or a batch.
    enum EventsBody;
    /// A batch of events.
    struct EventBatch {
        /// The events. One that does not match this schema is rejected on its own: the response is still 200 and lists
        /// it in `rejected`, and the others count.
        events
    }
    invalid: ItemCode::InvalidEvent
}

/// The value of `fields`, not yet validated.
#[derive(Default)]
enum RawFields<'a> {
    /// Absent or null.
    #[default]
    Absent,
    Object(Vec<(Cow<'a, str>, &'a RawValue)>),
    /// More than [`MAX_FIELDS`] fields.
    TooMany,
    /// A value of a different type.
    WrongType,
}

impl<'a> FieldValue<'a> for RawFields<'a> {
    fn is_absent(&self) -> bool {
        matches!(self, RawFields::Absent)
    }
}

impl EventItem<'_> {
    /// Validates the members and converts them to an event. Also returns the names of the fields that are arrays or
    /// objects, which metrics treat as absent.
    pub(super) fn into_event(self) -> Result<(Arc<Event>, Vec<Box<str>>), ItemError> {
        items::check_no_position(self.position)?;
        self.into_event_of_source()
    }

    /// Does the same for the event of a token, which may be taken back and then has no time: it is that of the store.
    pub(super) fn into_event_of_token(self) -> Result<(Arc<Event>, Vec<Box<str>>), ItemError> {
        items::check_no_position(self.position)?;
        self.validate()
    }

    /// Does the same as [`into_event`](Self::into_event) for an event whose position was taken.
    fn into_event_of_source(self) -> Result<(Arc<Event>, Vec<Box<str>>), ItemError> {
        let (event, nested) = self.validate()?;
        items::check_retraction_time(event.retract, event.at)?;
        Ok((event, nested))
    }

    fn validate(self) -> Result<(Arc<Event>, Vec<Box<str>>), ItemError> {
        let kind = parse_type(self.kind)?;
        let (fields, nested) = self.fields.validate()?;
        let at = self.at.at()?;
        let id = self.id.id()?;
        let retract = items::parse_flag(self.retract, "retract", false, Self::INVALID)?;
        Ok((Arc::new(Event { kind, fields, at, id, retract }), nested))
    }
}

impl<'a> SourcedItem<'a> for EventItem<'a> {
    const NAME: &'static str = "event";

    fn take_position(&mut self) -> Option<&'a RawValue> {
        items::given(self.position.take())
    }

    fn into_source_item(self, _: Option<&Board>) -> Result<(SourceItem, Vec<Box<str>>), ItemError> {
        self.into_event_of_source().map(|(event, nested)| (SourceItem::Event(event), nested))
    }
}

/// Parses the `fields` of a request that does not send an event. Fields that metrics cannot use are left out.
pub(super) fn parse_fields(raw: &RawValue) -> Result<Fields, ItemError> {
    let fields: RawFields<'_> = serde_json::from_str(raw.get()).unwrap_or(RawFields::WrongType);
    fields.validate().map(|(fields, _)| fields)
}

/// Validates the type of an event, which is required.
pub(in crate::http) fn parse_type(text: TextField<'_>) -> Result<Box<str>, ItemError> {
    let structural = |detail: &str| Err(ItemError::structural(ItemCode::InvalidType, "type", detail));
    let value = |detail: String| Err(ItemError::value(ItemCode::InvalidType, "type", detail));
    match text {
        TextField::Absent => structural("the field 'type' is missing"),
        TextField::WrongType => structural("'type' must be a string"),
        TextField::Text(text) if text.is_empty() => value("'type' must not be empty".to_owned()),
        TextField::Text(text) if text.len() > MAX_TYPE_BYTES => {
            value(format!("'type' has {} bytes of UTF-8; at most {MAX_TYPE_BYTES} are allowed", text.len()))
        }
        TextField::Text(text) if text.contains(char::is_control) => {
            value("'type' contains a control character".to_owned())
        }
        TextField::Text(text) => Ok(text.into()),
    }
}

impl RawFields<'_> {
    /// Converts the fields, and returns the names of those that metrics cannot use.
    fn validate(self) -> Result<(Fields, Vec<Box<str>>), ItemError> {
        let raw_fields = match self {
            RawFields::Absent => return Ok(Default::default()),
            RawFields::Object(fields) => fields,
            RawFields::TooMany => {
                let detail = format!("an event may have at most {MAX_FIELDS} fields");
                return Err(ItemError::value(ItemCode::InvalidEvent, "fields", detail));
            }
            RawFields::WrongType => {
                return Err(ItemError::structural(ItemCode::InvalidEvent, "fields", "'fields' must be an object"));
            }
        };
        let (mut fields, mut nested) = (Vec::with_capacity(raw_fields.len()), Vec::new());
        if let Some(name) = repeated_name(&raw_fields) {
            let name = shortened(name);
            let detail = format!("the field '{name}' is given more than once in 'fields'");
            return Err(ItemError::structural(ItemCode::InvalidEvent, &name, detail));
        }
        for (name, raw) in raw_fields {
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
                        let detail = format!("the field '{}' is not valid Unicode", shortened(&name));
                        return Err(ItemError::value(ItemCode::InvalidField, &shortened(&name), detail));
                    }
                },
                Some(b't' | b'f') => Field::Bool(text == "true"),
                _ => Field::Number(text.into()),
            };
            fields.push((name.into(), field));
        }
        Ok((Fields::from_distinct(fields), nested))
    }
}

/// Returns a name that occurs more than once. O(n) for many fields.
fn repeated_name<'f, T>(fields: &'f [(Cow<'_, str>, T)]) -> Option<&'f str> {
    // Comparing all pairs is faster for the few fields of most events.
    const FEW: usize = 16;
    let names = || fields.iter().map(|(name, _)| &**name);
    if fields.len() <= FEW {
        return names()
            .enumerate()
            .find(|(at, name)| names().take(*at).any(|earlier| earlier == *name))
            .map(|(_, name)| name);
    }
    let mut seen = HashSet::with_capacity(fields.len());
    names().find(|name| !seen.insert(*name))
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = RawFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some((FieldName(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                    if fields.len() > MAX_FIELDS {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        return Ok(RawFields::TooMany);
                    }
                }
                Ok(RawFields::Object(fields))
            }

            fn visit_unit<E>(self) -> Result<RawFields<'de>, E> {
                Ok(RawFields::Absent)
            }

            visit_other_types!(RawFields<'de>, RawFields::WrongType);

            fn visit_str<E>(self, _: &str) -> Result<RawFields<'de>, E> {
                Ok(RawFields::WrongType)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawFields<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(RawFields::WrongType)
            }
        }
        deserializer.deserialize_any(FieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::items::parse_element;

    fn parsed(text: &str) -> Result<(Arc<Event>, Vec<Box<str>>), ItemError> {
        parse_element::<EventItem<'_>>(serde_json::from_str(text).unwrap())?.into_event()
    }

    #[test]
    fn fields_keep_their_text() {
        let (event, nested) =
            parsed(r#"{"type":"pay","fields":{"a":1.50e+0,"b":"é\n","c":false,"d":null,"e":[1],"f":{"g":1}}}"#)
                .unwrap();
        let fields: Vec<_> = event.fields.iter().collect();
        let expected =
            [("a", Field::Number("1.50e+0".into())), ("b", Field::Text("é\n".into())), ("c", Field::Bool(false))];
        assert_eq!(fields, expected.each_ref().map(|(name, field)| (*name, field)));
        assert_eq!(nested, ["e", "f"].map(Box::<str>::from));
    }

    #[test]
    fn errors_have_a_code_and_a_field() {
        let many: Vec<_> = (0..257).map(|n| format!("\"f{n}\":1")).collect();
        let repeated = format!(r#"{{"type":"a","fields":{{"f99":null,{}}}}}"#, many[..200].join(","));
        for (text, code, field) in [
            (r#"{}"#, ItemCode::InvalidType, "type"),
            (r#"{"type":5}"#, ItemCode::InvalidType, "type"),
            (r#"{"type":""}"#, ItemCode::InvalidType, "type"),
            (r#"{"type":"a","fields":[]}"#, ItemCode::InvalidEvent, "fields"),
            (r#"{"type":"a","fields":{"x":"\ud800"}}"#, ItemCode::InvalidField, "x"),
            (&format!(r#"{{"type":"a","fields":{{{}}}}}"#, many.join(",")), ItemCode::InvalidEvent, "fields"),
            (r#"{"type":"a","fields":{"x":1,"y":2,"x":1}}"#, ItemCode::InvalidEvent, "x"),
            (r#"{"type":"a","fields":{"x":null,"x":[]}}"#, ItemCode::InvalidEvent, "x"),
            (r#"{"type":"a","fields":{"x":1,"\u0078":1}}"#, ItemCode::InvalidEvent, "x"),
            (&repeated, ItemCode::InvalidEvent, "f99"),
            (r#"{"type":"a","retract":true}"#, ItemCode::MissingAt, "at"),
            (r#"{"type":"a","retract":1}"#, ItemCode::InvalidEvent, "retract"),
            (r#"{"type":"a","fields":{},"fields":{}}"#, ItemCode::InvalidEvent, "fields"),
            (r#"{"type":"a","subject":"x"}"#, ItemCode::UnknownField, "subject"),
            (r#"{"type":"a","position":1}"#, ItemCode::UnknownField, "position"),
            (r#"[]"#, ItemCode::InvalidEvent, ""),
        ] {
            let error = parsed(text).err().unwrap();
            assert_eq!((error.code, error.field.as_str()), (code, field), "{text}");
        }
    }
}
