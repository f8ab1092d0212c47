//! JSON bodies with one item or a list of items.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::de::Read;
use serde_json::value::RawValue;

use super::field::visit_other_types;
use super::item::{FieldName, Item, Parsed};
use super::item_error::ItemError;
use super::lines::NdjsonLine;
use crate::http::body::{self, MAX_ITEMS};
use crate::http::codes::{Code, ItemCode};
use crate::http::problem::Problem;

/// The items of a body.
pub(super) enum OneOrMany<'a, I> {
    One(I),
    /// The elements of a list, to be parsed by [`parse_element`].
    Many(Vec<&'a RawValue>),
}

/// Splits a body into its items.
pub(super) fn parse_body<'a, I: Item<'a>>(body: &'a [u8]) -> Result<OneOrMany<'a, I>, Problem> {
    let mut parsed = Body { single: Parsed::<I>::default(), list: None };
    read(Deserializer::from_slice(body), &mut parsed).map_err(|error| {
        if error.is_data() { Problem::field("body", body::without_position(&error)) } else { body::malformed(&error) }
    })?;
    let list = I::LIST;
    match parsed.list {
        None => Ok(OneOrMany::One(parsed.single.into_item()?)),
        Some(List::WrongType) => Err(Problem::field(list, format!("'{list}' must be a list"))),
        Some(List::TooLong) => {
            let detail = format!("a batch may have at most {MAX_ITEMS} {list}; send more as application/x-ndjson");
            Err(Problem::new(Code::TooLarge, detail).with("limit", MAX_ITEMS))
        }
        Some(List::Elements(_)) if !parsed.single.is_empty() => {
            Err(Problem::new(Code::UnknownField, format!("a body with '{list}' must not have other fields")))
        }
        Some(List::Elements(elements)) => Ok(OneOrMany::Many(elements)),
    }
}

/// Parses an element of a list.
pub(in crate::http) fn parse_element<'a, I: Item<'a>>(raw: &'a RawValue) -> Result<I, ItemError> {
    let mut parsed = Parsed::default();
    match read(Deserializer::from_str(raw.get()), &mut parsed) {
        Ok(()) => parsed.into_item(),
        Err(error) => Err(ItemError::structural(I::INVALID, "", body::without_position(&error))),
    }
}

/// Parses a line of a stream.
pub(in crate::http) fn parse_line<'a, I: Item<'a>>(line: NdjsonLine<'a>) -> Result<I, ItemError> {
    let NdjsonLine::Text(text) = line else {
        return Err(ItemError::structural(ItemCode::LineTooLong, "", "the line exceeds the maximum length"));
    };
    let mut parsed = Parsed::default();
    match read(Deserializer::from_slice(text), &mut parsed) {
        Ok(()) => parsed.into_item(),
        Err(error) => Err(ItemError::structural(ItemCode::MalformedLine, "", error.to_string())),
    }
}

/// Reads a JSON object and nothing after it.
fn read<'a, R: Read<'a>>(mut json: Deserializer<R>, object: impl Visitor<'a, Value = ()>) -> serde_json::Result<()> {
    json.deserialize_map(object)?;
    json.end()
}

/// A whole body: an item, or an object with a list of items.
struct Body<'a, I> {
    /// The single item, or the fields next to the list.
    single: Parsed<I>,
    list: Option<List<'a>>,
}

impl<'de, I: Item<'de>> Visitor<'de> for &mut Body<'de, I> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {}, or {{\"{}\":[…]}}", I::FIELDS.join(", "), I::LIST)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(FieldName(name)) = map.next_key()? {
            if name == I::LIST && self.list.is_none() {
                self.list = Some(map.next_value()?);
            } else {
                self.single.read_field(&name, &mut map)?;
            }
        }
        Ok(())
    }
}

/// The value of the key of the list.
enum List<'a> {
    Elements(Vec<&'a RawValue>),
    /// More than [`MAX_ITEMS`] elements.
    TooLong,
    WrongType,
}

impl<'de: 'a, 'a> Deserialize<'de> for List<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = List<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<'de>, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push(element);
                    if elements.len() > MAX_ITEMS {
                        while list.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(List::TooLong);
                    }
                }
                Ok(List::Elements(elements))
            }

            fn visit_unit<E>(self) -> Result<List<'de>, E> {
                Ok(List::WrongType)
            }

            visit_other_types!(List<'de>, List::WrongType);

            fn visit_str<E>(self, _: &str) -> Result<List<'de>, E> {
                Ok(List::WrongType)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(List::WrongType)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
