//! One increment as it is sent, and what it takes to become one of a board.
//!
//! Parsed in one pass that borrows from the body. The amount stays the text it was sent as, because a float on
//! the way would lose what an amount promises to keep.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::board::{Amount, AmountError, Board, Change, EventId, Subject, Timestamp};
use crate::http::codes::ItemCode;
use crate::store::Increment;

/// The fields of an increment, for messages.
pub(super) const FIELDS: &str = "subject, amount, at, id";

/// The most items a JSON batch may have.
pub(super) const MOST_ITEMS: usize = 100_000;

/// What one JSON object said, not yet judged.
#[derive(Default)]
pub(super) struct Item<'a> {
    subject: Text<'a>,
    amount: Option<&'a RawValue>,
    at: Text<'a>,
    id: Text<'a>,
    /// The first field that does not belong.
    stray: Option<Stray>,
}

/// A body: one increment, or `{"increments":[…]}`.
#[derive(Default)]
pub(super) struct Sent<'a> {
    /// What stands beside `increments`, or the single increment.
    pub(super) single: Item<'a>,
    pub(super) increments: Option<Items<'a>>,
}

/// The value of `increments`.
pub(super) enum Items<'a> {
    List(Vec<&'a RawValue>),
    /// More than [`MOST_ITEMS`].
    TooMany,
    NoList,
}

/// A value that should be a string.
#[derive(Default)]
enum Text<'a> {
    /// Not there, or null.
    #[default]
    Absent,
    Is(Cow<'a, str>),
    /// Something else than a string.
    IsNot,
}

enum Stray {
    Unknown(String),
    Repeated(&'static str),
}

/// Why an item is not an increment of the board.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) code: ItemCode,
    /// The field at fault.
    pub(super) field: String,
    pub(super) detail: String,
    /// The *shape* is wrong (a missing or unknown field, another type), not merely a value. One that is sent alone
    /// makes the whole request unsound.
    pub(super) of_shape: bool,
}

impl Flaw {
    fn shape(code: ItemCode, field: &str, detail: impl Into<String>) -> Self {
        Self { code, field: field.to_owned(), detail: detail.into(), of_shape: true }
    }

    fn value(code: ItemCode, field: &str, error: impl fmt::Display) -> Self {
        Self { code, field: field.to_owned(), detail: error.to_string(), of_shape: false }
    }
}

impl<'a> Item<'a> {
    /// Whether there is nothing in it at all.
    pub(super) fn is_empty(&self) -> bool {
        let absent = |text: &Text<'_>| matches!(text, Text::Absent);
        absent(&self.subject) && self.amount.is_none() && absent(&self.at) && absent(&self.id) && self.stray.is_none()
    }

    /// Reads the values as the board has them. What is wrong is named, with what is allowed.
    pub(super) fn judge(self, board: &Board) -> Result<Increment, Flaw> {
        match self.stray {
            None => {}
            Some(Stray::Unknown(name)) => {
                let detail = format!("there is no field '{name}'; an increment has {FIELDS}");
                return Err(Flaw::shape(ItemCode::UnknownField, &name, detail));
            }
            Some(Stray::Repeated(name)) => {
                let detail = format!("the field '{name}' is given twice");
                return Err(Flaw::shape(ItemCode::InvalidIncrement, name, detail));
            }
        }
        let subject = match self.subject {
            Text::Is(text) => Subject::parse(&text).map_err(|e| Flaw::value(ItemCode::InvalidSubject, "subject", e))?,
            Text::Absent => {
                return Err(Flaw::shape(ItemCode::InvalidSubject, "subject", "the field 'subject' is missing"));
            }
            Text::IsNot => return Err(Flaw::shape(ItemCode::InvalidSubject, "subject", "'subject' must be a string")),
        };
        let at = match self.at {
            Text::Absent => None,
            Text::Is(text) => Some(Timestamp::parse(&text).map_err(|e| Flaw::value(ItemCode::InvalidAt, "at", e))?),
            Text::IsNot => {
                let detail = "'at' must be a string such as \"2026-01-31T09:30:00Z\"";
                return Err(Flaw::shape(ItemCode::InvalidAt, "at", detail));
            }
        };
        let id = match self.id {
            Text::Absent => None,
            Text::Is(text) => Some(EventId::parse(&text).map_err(|e| Flaw::value(ItemCode::InvalidId, "id", e))?),
            Text::IsNot => return Err(Flaw::shape(ItemCode::InvalidId, "id", "'id' must be a string")),
        };
        let change = Change::Amount(amount(self.amount, board)?);
        Ok(Increment { subject, change, retract: false, at, id })
    }
}

fn amount(raw: Option<&RawValue>, board: &Board) -> Result<Amount, Flaw> {
    let text = match raw.map(RawValue::get) {
        None | Some("null") => return Ok(Amount::one(board.decimals())),
        Some(text) => text,
    };
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return Err(Flaw::shape(ItemCode::InvalidAmount, "amount", "'amount' must be a number"));
    }
    Amount::parse(text, board.decimals()).map_err(|error| {
        let code = match error {
            AmountError::NotANumber { .. } => ItemCode::InvalidAmount,
            AmountError::Precision { .. } => ItemCode::AmountPrecision,
            AmountError::Range { .. } => ItemCode::AmountOutOfRange,
        };
        Flaw::value(code, "amount", error)
    })
}

/// A key of an increment, or of a batch.
enum Key {
    Subject,
    Amount,
    At,
    Id,
    Increments,
    Other(String),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Key, E> {
                Ok(match name {
                    "subject" => Key::Subject,
                    "amount" => Key::Amount,
                    "at" => Key::At,
                    "id" => Key::Id,
                    "increments" => Key::Increments,
                    other => Key::Other(other.chars().take(64).collect()),
                })
            }
        }
        deserializer.deserialize_str(Name)
    }
}

impl<'a> Item<'a> {
    /// Reads the value of one key into its field.
    fn take<A: MapAccess<'a>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        let stray = match key {
            Key::Subject => self.subject.fill(map)?.then_some(Stray::Repeated("subject")),
            Key::At => self.at.fill(map)?.then_some(Stray::Repeated("at")),
            Key::Id => self.id.fill(map)?.then_some(Stray::Repeated("id")),
            Key::Amount => self.amount.replace(map.next_value()?).is_some().then_some(Stray::Repeated("amount")),
            Key::Increments => {
                map.next_value::<IgnoredAny>()?;
                Some(Stray::Unknown("increments".to_owned()))
            }
            Key::Other(name) => {
                map.next_value::<IgnoredAny>()?;
                Some(Stray::Unknown(name))
            }
        };
        if self.stray.is_none() {
            self.stray = stray;
        }
        Ok(())
    }
}

impl<'a> Text<'a> {
    /// Takes the next value; `true` if there was one already.
    fn fill<A: MapAccess<'a>>(&mut self, map: &mut A) -> Result<bool, A::Error> {
        let before = std::mem::replace(self, map.next_value()?);
        Ok(!matches!(before, Text::Absent))
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

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of increments")
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

impl<'de: 'a, 'a> Deserialize<'de> for Item<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Item<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object with {FIELDS}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item<'de>, A::Error> {
                let mut item = Item::default();
                while let Some(key) = map.next_key()? {
                    item.take(key, &mut map)?;
                }
                Ok(item)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Sent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Sent<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object with {FIELDS}, or {{\"increments\":[…]}}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sent<'de>, A::Error> {
                let mut sent = Sent::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        Key::Increments if sent.increments.is_none() => sent.increments = Some(map.next_value()?),
                        other => sent.single.take(other, &mut map)?,
                    }
                }
                Ok(sent)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
