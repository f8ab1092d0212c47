//! Parsing of one JSON object field by field.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::item_error::UnexpectedField;
use crate::http::codes::ItemCode;

/// The fields of one JSON object, not yet validated. Values borrow from the body.
pub(in crate::http) trait Item<'a>: Default {
    /// Key of the list of items in a batch.
    const LIST: &'static str;
    /// Names of the fields, for messages.
    const FIELDS: &'static str;
    /// Code of an element that is not an object, or repeats a field.
    const INVALID: ItemCode;

    /// Reads the value of the named field. An unexpected field is returned, for
    /// [`set_unexpected`](Self::set_unexpected).
    fn read_value<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<UnexpectedField>, A::Error>;

    /// Stores an unexpected field, unless there already is one.
    fn set_unexpected(&mut self, field: UnexpectedField);

    /// Returns whether the object has no fields.
    fn is_empty(&self) -> bool;
}

/// An item in a form that implements `Deserialize`.
pub(super) struct Parsed<I>(pub(super) I);

/// The name of a field; borrowed unless it contains escapes.
pub(in crate::http) struct FieldName<'a>(pub(in crate::http) Cow<'a, str>);

/// Reads one field of the item, expected or not.
pub(super) fn read_field<'a, I: Item<'a>, A: MapAccess<'a>>(
    item: &mut I,
    name: &str,
    map: &mut A,
) -> Result<(), A::Error> {
    if let Some(unexpected) = item.read_value(name, map)? {
        item.set_unexpected(unexpected);
    }
    Ok(())
}

/// Skips the value of an unknown field, and returns the field.
pub(in crate::http) fn skip_unknown<'a, A: MapAccess<'a>>(
    name: &str,
    map: &mut A,
) -> Result<Option<UnexpectedField>, A::Error> {
    map.next_value::<IgnoredAny>()?;
    Ok(Some(UnexpectedField::Unknown(name.chars().take(64).collect())))
}

impl<'de, I: Item<'de>> Deserialize<'de> for Parsed<I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<I>(PhantomData<I>);
        impl<'de, I: Item<'de>> Visitor<'de> for Fields<I> {
            type Value = I;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object with {}", I::FIELDS)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<I, A::Error> {
                let mut item = I::default();
                while let Some(FieldName(name)) = map.next_key()? {
                    read_field(&mut item, &name, &mut map)?;
                }
                Ok(item)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Parsed)
    }
}

impl<'de> Deserialize<'de> for FieldName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = FieldName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowed)
    }
}
