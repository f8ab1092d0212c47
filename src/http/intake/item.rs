//! One JSON object as it is sent.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::flaw::Stray;
use crate::http::codes::ItemCode;

/// What one JSON object says, not yet judged. Its values borrow from the body.
pub(in crate::http) trait Item<'a>: Default {
    /// What it is called, for messages.
    const NAME: &'static str;
    /// The key of a list of them.
    const LIST: &'static str;
    /// Its fields, for messages.
    const FIELDS: &'static str;
    /// The code of what is not one at all, or names a field twice.
    const INVALID: ItemCode;

    /// Takes the value of the field of this name; what it answers is noted by [`note`](Self::note).
    fn take<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<Stray>, A::Error>;

    /// Remembers a field that does not belong, if it is the first.
    fn note(&mut self, stray: Stray);

    /// Whether there is nothing in it at all.
    fn is_empty(&self) -> bool;
}

/// An item, read from JSON.
pub(super) struct Parsed<I>(pub(super) I);

/// A field's name; borrowed unless it was written with escapes.
pub(in crate::http) struct Name<'a>(pub(in crate::http) Cow<'a, str>);

/// Takes one field into the item, whatever its name.
pub(super) fn take_field<'a, I: Item<'a>, A: MapAccess<'a>>(
    item: &mut I,
    name: &str,
    map: &mut A,
) -> Result<(), A::Error> {
    if let Some(stray) = item.take(name, map)? {
        item.note(stray);
    }
    Ok(())
}

/// The value of a field that an item does not have.
pub(in crate::http) fn unknown<'a, A: MapAccess<'a>>(name: &str, map: &mut A) -> Result<Option<Stray>, A::Error> {
    map.next_value::<IgnoredAny>()?;
    Ok(Some(Stray::Unknown(name.chars().take(64).collect())))
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
                while let Some(Name(name)) = map.next_key()? {
                    take_field(&mut item, &name, &mut map)?;
                }
                Ok(item)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Parsed)
    }
}

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowed)
    }
}
