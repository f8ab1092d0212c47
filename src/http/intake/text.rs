//! Values of an item, taken whatever their type is, and read as what they should be.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::flaw::Flaw;
use crate::board::{EventId, Subject, Timestamp};
use crate::http::codes::ItemCode;

/// A value that should be a string.
#[derive(Default)]
pub(in crate::http) enum Text<'a> {
    /// Not there, or null.
    #[default]
    Absent,
    Is(Cow<'a, str>),
    /// Something else than a string.
    IsNot,
}

/// A value that should be true or false.
pub(in crate::http) struct Truth;

impl Truth {
    /// Whether it is true; a field that is absent or null is not.
    pub(in crate::http) fn read(raw: Option<&RawValue>, field: &str, code: ItemCode) -> Result<bool, Flaw> {
        match raw.map(RawValue::get) {
            None | Some("null" | "false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Flaw::shape(code, field, format!("'{field}' must be true or false"))),
        }
    }
}

/// A retraction has to say when its twin happened.
pub(in crate::http) fn retraction_is_dated(retract: bool, at: Option<Timestamp>) -> Result<(), Flaw> {
    if retract && at.is_none() {
        return Err(Flaw::value(ItemCode::MissingAt, "at", "a retraction needs 'at', the time of what it undoes"));
    }
    Ok(())
}

impl<'a> Text<'a> {
    /// Whether there is nothing.
    pub(in crate::http) fn is_absent(&self) -> bool {
        matches!(self, Text::Absent)
    }

    /// Takes the next value; `true` if there was one already.
    pub(in crate::http) fn fill<A: MapAccess<'a>>(&mut self, map: &mut A) -> Result<bool, A::Error> {
        let before = std::mem::replace(self, map.next_value()?);
        Ok(!before.is_absent())
    }

    /// As the subject, which must be there.
    pub(in crate::http) fn subject(self) -> Result<Subject, Flaw> {
        let flaw = |detail| Err(Flaw::shape(ItemCode::InvalidSubject, "subject", detail));
        match self {
            Text::Is(text) => Subject::parse(&text).map_err(|e| Flaw::value(ItemCode::InvalidSubject, "subject", e)),
            Text::Absent => flaw("the field 'subject' is missing"),
            Text::IsNot => flaw("'subject' must be a string"),
        }
    }

    /// As the time at which something happened.
    pub(in crate::http) fn at(self) -> Result<Option<Timestamp>, Flaw> {
        match self {
            Text::Absent => Ok(None),
            Text::Is(text) => match Timestamp::parse(&text) {
                Ok(at) => Ok(Some(at)),
                Err(error) => Err(Flaw::value(ItemCode::InvalidAt, "at", error)),
            },
            Text::IsNot => {
                let detail = "'at' must be a string such as \"2026-01-31T09:30:00Z\"";
                Err(Flaw::shape(ItemCode::InvalidAt, "at", detail))
            }
        }
    }

    /// As an event's identity.
    pub(in crate::http) fn id(self) -> Result<Option<EventId>, Flaw> {
        match self {
            Text::Absent => Ok(None),
            Text::Is(text) => match EventId::parse(&text) {
                Ok(id) => Ok(Some(id)),
                Err(error) => Err(Flaw::value(ItemCode::InvalidId, "id", error)),
            },
            Text::IsNot => Err(Flaw::shape(ItemCode::InvalidId, "id", "'id' must be a string")),
        }
    }
}

/// Visits whatever stands there, so that a wrong type is an answer instead of the end of parsing.
macro_rules! any_other {
    ($value:ty, $other:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<$value, E> {
            Ok($other)
        }

        fn visit_i64<E>(self, _: i64) -> Result<$value, E> {
            Ok($other)
        }

        fn visit_u64<E>(self, _: u64) -> Result<$value, E> {
            Ok($other)
        }

        fn visit_f64<E>(self, _: f64) -> Result<$value, E> {
            Ok($other)
        }
    };
}
pub(in crate::http) use any_other;

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text::Is(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text::Is(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<Text<'de>, E> {
                Ok(Text::Absent)
            }

            any_other!(Text<'de>, Text::IsNot);

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Text::IsNot)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text::IsNot)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
