//! Field values of items, which accept any JSON type when parsed and are validated afterwards.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::item_error::ItemError;
use crate::board::{EventId, RankingKey, Subject, Timestamp};
use crate::http::codes::ItemCode;

/// The value of a field as it is parsed, not yet validated.
pub(in crate::http) trait FieldValue<'a>: Default + Deserialize<'a> {
    /// Returns whether the field has no value.
    fn is_absent(&self) -> bool;

    /// Reads the next value of the map.
    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Self, A::Error> {
        map.next_value()
    }

    /// Reads the next value of the map into the field; returns whether it already had a value.
    fn fill<A: MapAccess<'a>>(&mut self, map: &mut A) -> Result<bool, A::Error> {
        let before = std::mem::replace(self, Self::read(map)?);
        Ok(!before.is_absent())
    }
}

/// A value that should be a string.
#[derive(Default)]
pub(in crate::http) enum TextField<'a> {
    /// Absent or null.
    #[default]
    Absent,
    Text(Cow<'a, str>),
    /// A value of a different type.
    WrongType,
}

/// Returns the value of a field unless it is absent or null.
pub(in crate::http) fn given(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

/// Checks that an item has no position, as only those of a source have one.
pub(in crate::http) fn check_no_position(position: Option<&RawValue>) -> Result<(), ItemError> {
    match given(position) {
        None => Ok(()),
        Some(_) => {
            let detail = "'position' is for a request with the parameter 'source'";
            Err(ItemError::structural(ItemCode::UnknownField, "position", detail))
        }
    }
}

/// Parses a boolean field; an absent or null field has the default.
pub(in crate::http) fn parse_flag(
    raw: Option<&RawValue>,
    field: &str,
    default: bool,
    code: ItemCode,
) -> Result<bool, ItemError> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(default),
        Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(ItemError::structural(code, field, format!("'{field}' must be true or false"))),
    }
}

/// Checks that a retraction has the time of the item that it reverses.
pub(in crate::http) fn check_retraction_time(retract: bool, at: Option<Timestamp>) -> Result<(), ItemError> {
    if retract && at.is_none() {
        let detail = "a retraction needs 'at', the time of the item that it reverses";
        return Err(ItemError::value(ItemCode::MissingAt, "at", detail));
    }
    Ok(())
}

impl<'a> FieldValue<'a> for TextField<'a> {
    fn is_absent(&self) -> bool {
        matches!(self, TextField::Absent)
    }
}

/// The JSON text of a value of any type. Null is a value, which the item converts as it needs.
impl<'a> FieldValue<'a> for Option<&'a RawValue> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Self, A::Error> {
        map.next_value().map(Some)
    }
}

impl TextField<'_> {
    /// Parses the field as a subject, which is required.
    pub(in crate::http) fn subject(self) -> Result<Subject, ItemError> {
        let error = |detail| Err(ItemError::structural(ItemCode::InvalidSubject, "subject", detail));
        match self {
            TextField::Text(text) => {
                Subject::parse(&text).map_err(|e| ItemError::value(ItemCode::InvalidSubject, "subject", e))
            }
            TextField::Absent => error("the field 'subject' is missing"),
            TextField::WrongType => error("'subject' must be a string"),
        }
    }

    /// Parses the field as the key of a ranking.
    pub(in crate::http) fn key(self) -> Result<Option<RankingKey>, ItemError> {
        match self {
            TextField::Absent => Ok(None),
            TextField::Text(text) => match RankingKey::parse(&text) {
                Ok(key) => Ok(Some(key)),
                Err(error) => Err(ItemError::value(ItemCode::InvalidBy, "by", format!("'by': {error}"))),
            },
            TextField::WrongType => Err(ItemError::structural(ItemCode::InvalidBy, "by", "'by' must be a string")),
        }
    }

    /// Parses the field as the time of an item.
    pub(in crate::http) fn at(self) -> Result<Option<Timestamp>, ItemError> {
        match self {
            TextField::Absent => Ok(None),
            TextField::Text(text) => match Timestamp::parse(&text) {
                Ok(at) => Ok(Some(at)),
                Err(error) => Err(ItemError::value(ItemCode::InvalidAt, "at", error)),
            },
            TextField::WrongType => {
                let detail = "'at' must be a string such as \"2026-01-31T09:30:00Z\"";
                Err(ItemError::structural(ItemCode::InvalidAt, "at", detail))
            }
        }
    }

    /// Parses the field as an item id.
    pub(in crate::http) fn id(self) -> Result<Option<EventId>, ItemError> {
        match self {
            TextField::Absent => Ok(None),
            TextField::Text(text) if text.starts_with(EventId::OF_TOKENS) => {
                let detail = format!("'id' must not begin with '{}', like the ids of tokens", EventId::OF_TOKENS);
                Err(ItemError::value(ItemCode::InvalidId, "id", detail))
            }
            TextField::Text(text) => match EventId::parse(&text) {
                Ok(id) => Ok(Some(id)),
                Err(error) => Err(ItemError::value(ItemCode::InvalidId, "id", error)),
            },
            TextField::WrongType => Err(ItemError::structural(ItemCode::InvalidId, "id", "'id' must be a string")),
        }
    }
}

/// Implements the visitor methods for values of other types, so that a wrong type does not end parsing.
macro_rules! visit_other_types {
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
pub(in crate::http) use visit_other_types;

impl<'de: 'a, 'a> Deserialize<'de> for TextField<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = TextField<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<TextField<'de>, E> {
                Ok(TextField::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<TextField<'de>, E> {
                Ok(TextField::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<TextField<'de>, E> {
                Ok(TextField::Absent)
            }

            visit_other_types!(TextField<'de>, TextField::WrongType);

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TextField<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(TextField::WrongType)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextField<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(TextField::WrongType)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
