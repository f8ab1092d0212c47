//! A JSON body: one item, or a list of them.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::flaw::Flaw;
use super::item::{Item, Name, Parsed, take_field};
use super::lines::Line;
use super::text::any_other;
use crate::http::body;
use crate::http::codes::{Code, ItemCode};
use crate::http::problem::Problem;

/// The most items a JSON list may have.
const MOST_ITEMS: usize = 100_000;

/// What a body turned out to be.
pub(in crate::http) enum OneOrMany<'a, I> {
    One(I),
    /// Each still to be read with [`from_raw`].
    Many(Vec<&'a RawValue>),
}

/// Takes a body apart.
pub(in crate::http) fn read<'a, I: Item<'a>>(body: &'a [u8]) -> Result<OneOrMany<'a, I>, Problem> {
    let sent: Sent<'a, I> = serde_json::from_slice(body).map_err(|error| {
        if error.is_data() { Problem::field("body", body::without_position(&error)) } else { body::malformed(&error) }
    })?;
    let list = I::LIST;
    match sent.list {
        None => Ok(OneOrMany::One(sent.single)),
        Some(Items::NoList) => Err(Problem::field(list, format!("'{list}' must be a list"))),
        Some(Items::TooMany) => {
            let detail = format!("a batch may have {MOST_ITEMS} {list}; send more as application/x-ndjson");
            Err(Problem::new(Code::TooLarge, detail).with("limit", MOST_ITEMS))
        }
        Some(Items::List(_)) if !sent.single.is_empty() => {
            Err(Problem::new(Code::UnknownField, format!("beside '{list}' there must be no other field")))
        }
        Some(Items::List(items)) => Ok(OneOrMany::Many(items)),
    }
}

/// An element of a list: what is wrong with it is its own affair.
pub(in crate::http) fn from_raw<'a, I: Item<'a>>(raw: &'a RawValue) -> Result<I, Flaw> {
    match serde_json::from_str(raw.get()) {
        Ok(Parsed(item)) => Ok(item),
        Err(error) => Err(Flaw::shape(I::INVALID, "", body::without_position(&error))),
    }
}

/// A line of a stream.
pub(in crate::http) fn from_line<'a, I: Item<'a>>(line: Line<'a>) -> Result<I, Flaw> {
    let Line::Text(text) = line else {
        return Err(Flaw::shape(ItemCode::LineTooLong, "", "the line is longer than allowed"));
    };
    match serde_json::from_slice(text) {
        Ok(Parsed(item)) => Ok(item),
        Err(error) => Err(Flaw::shape(ItemCode::MalformedLine, "", error.to_string())),
    }
}

/// A whole body: an item, or an object with a list of them.
struct Sent<'a, I> {
    /// What stands beside the list, or the single item.
    single: I,
    list: Option<Items<'a>>,
}

/// The value of the list's key.
enum Items<'a> {
    List(Vec<&'a RawValue>),
    /// More than [`MOST_ITEMS`].
    TooMany,
    NoList,
}

impl<'de, I: Item<'de>> Deserialize<'de> for Sent<'de, I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<I>(PhantomData<I>);
        impl<'de, I: Item<'de>> Visitor<'de> for Fields<I> {
            type Value = Sent<'de, I>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object with {}, or {{\"{}\":[…]}}", I::FIELDS, I::LIST)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sent<'de, I>, A::Error> {
                let mut sent = Sent { single: I::default(), list: None };
                while let Some(Name(name)) = map.next_key()? {
                    if name == I::LIST && sent.list.is_none() {
                        sent.list = Some(map.next_value()?);
                    } else {
                        take_field(&mut sent.single, &name, &mut map)?;
                    }
                }
                Ok(sent)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                    if items.len() > MOST_ITEMS {
                        while list.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(Items::TooMany);
                    }
                }
                Ok(Items::List(items))
            }

            fn visit_unit<E>(self) -> Result<Items<'de>, E> {
                Ok(Items::NoList)
            }

            any_other!(Items<'de>, Items::NoList);

            fn visit_str<E>(self, _: &str) -> Result<Items<'de>, E> {
                Ok(Items::NoList)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Items<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Items::NoList)
            }
        }
        deserializer.deserialize_any(List)
    }
}
