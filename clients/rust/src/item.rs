//! What is counted: increments of one board, and events.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{MapAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::{Decimal, Error, Result};

/// An amount or a value for one subject of a board. Without either it adds 1.
///
/// ```
/// # use rolltop_client::Increment;
/// let sold = Increment::new("shop-1").amount(5).id("order-81");
/// let as_line = Increment::from_json(r#"{"subject":"shop-1","amount":5,"id":"order-81"}"#)?;
/// # Ok::<(), rolltop_client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Increment(pub(crate) Object);

/// Something that happened. It counts on every board whose metric names its type.
///
/// ```
/// # use rolltop_client::Event;
/// let event = Event::new("like").field("post_id", "post-1").field("user_id", 7);
/// ```
#[derive(Clone, Debug)]
pub struct Event {
    object: Object,
    fields: Object,
}

/// What a [`Sender`](crate::Sender) sends: [`Increment`] or [`Event`].
pub trait Countable: sealed::Sealed + Send + 'static {}

pub(crate) mod sealed {
    pub trait Sealed: Sized {
        /// The name of the list of such items in a request.
        const LIST: &'static str;

        /// Returns the members.
        fn into_object(self) -> super::Object;
    }
}

/// The members of an item, each with its text in JSON, in the order in which they were set.
#[derive(Clone, Debug, Default)]
pub struct Object {
    members: Vec<(Cow<'static, str>, String)>,
    /// Why it cannot be sent.
    wrong: Option<String>,
    pub(crate) tag: Option<u64>,
}

/// The setters that increments and events share.
macro_rules! setters {
    ($($object:tt)*) => {
        /// Sets the time at which it happened. By default that at which the service gets it.
        pub fn at(mut self, time: impl Into<DateTime<Utc>>) -> Self {
            self.$($object)*.set("at", &time.into());
            self
        }

        /// Sets what tells it from others: the service counts an id once. By default a random one.
        pub fn id(mut self, id: &str) -> Self {
            self.$($object)*.set("id", id);
            self
        }

        /// Undoes an earlier one, which happened at the time `at`.
        pub fn retract(mut self) -> Self {
            self.$($object)*.set("retract", &true);
            self
        }

        /// Sets a number that reports return, such as that of a line in a file. It is not sent.
        pub fn tag(mut self, tag: u64) -> Self {
            self.$($object)*.tag = Some(tag);
            self
        }
    };
}

impl Increment {
    /// Creates an increment that adds 1 to this subject.
    pub fn new(subject: &str) -> Self {
        let mut object = Object::default();
        object.set("subject", subject);
        Self(object)
    }

    /// Reads an increment of the API: the text of a JSON object, such as a line of a stream. The service checks its
    /// members.
    ///
    /// # Errors
    ///
    /// `invalid_item`, if it is not a JSON object.
    pub fn from_json(text: &str) -> Result<Self> {
        Object::parse(text).map(Self)
    }

    /// Takes an increment of the API.
    pub fn from_object(object: &Map<String, Value>) -> Self {
        Self(Object::of(object))
    }

    /// Adds this amount, on boards of COUNT and SUM: a number, or a text such as `"19.99"`, which is that number exactly.
    ///
    /// What is no number is an error when the item is added or sent, before anything is sent.
    pub fn amount<A>(mut self, amount: A) -> Self
    where
        A: TryInto<Decimal>,
        A::Error: fmt::Display,
    {
        match amount.try_into() {
            Ok(amount) => self.0.set("amount", &amount),
            Err(error) => self.0.refuse(format!("amount: {error}")),
        }
        self.0.refuse_both();
        self
    }

    /// Counts this number or text in place of an amount, on boards of AVG, MIN, MAX, LAST and those that count different
    /// values.
    pub fn value(mut self, value: impl Serialize) -> Self {
        self.0.set("value", &value);
        self.0.refuse_both();
        self
    }

    /// Adds a second key, which a board with `tie_break` needs.
    pub fn tie_break(mut self, key: i64) -> Self {
        self.0.set("tie_break", &key);
        self
    }

    /// Merges these attributes with those of the subject, once it is counted: an object, in which null removes one.
    pub fn attributes(mut self, attributes: &impl Serialize) -> Self {
        self.0.set("attributes", attributes);
        self
    }

    /// Chooses the ranking of this key, on a board whose metric has `BY`.
    pub fn by(mut self, key: &str) -> Self {
        self.0.set("by", key);
        self
    }

    setters!(0);
}

impl Event {
    /// Creates an event of this type without fields.
    pub fn new(kind: &str) -> Self {
        let mut object = Object::default();
        object.set("type", kind);
        Self { object, fields: Object::default() }
    }

    /// Reads an event of the API: the text of a JSON object, such as a line of a stream. The service checks its
    /// members.
    ///
    /// # Errors
    ///
    /// `invalid_item`, if it is not a JSON object.
    pub fn from_json(text: &str) -> Result<Self> {
        Ok(Self { object: Object::parse(text)?, fields: Object::default() })
    }

    /// Takes an event of the API.
    pub fn from_object(object: &Map<String, Value>) -> Self {
        Self { object: Object::of(object), fields: Object::default() }
    }

    /// Sets a field, beside those that were set before.
    pub fn field(mut self, name: &str, value: impl Serialize) -> Self {
        self.fields.set(name.to_owned(), &value);
        self
    }

    setters!(object);
}

impl Object {
    /// Sets a member, in place of what it was.
    fn set(&mut self, name: impl Into<Cow<'static, str>>, value: &(impl Serialize + ?Sized)) {
        let name = name.into();
        match serde_json::to_string(value) {
            // Such as a number that is none. The service takes it for absent, and would count 1.
            Ok(text) if text == "null" => self.refuse(format!("the value of '{name}' is not one that counts")),
            Ok(text) => match self.members.iter_mut().find(|(set, _)| *set == name) {
                Some((_, value)) => *value = text,
                None => self.members.push((name, text)),
            },
            Err(error) => self.refuse(format!("the value of '{name}' is not JSON: {error}")),
        }
    }

    /// Says why it cannot be sent; the first reason stays.
    fn refuse(&mut self, reason: String) {
        self.wrong.get_or_insert(reason);
    }

    fn refuse_both(&mut self) {
        let has = |name| self.members.iter().any(|(set, _)| set == name);
        if has("amount") && has("value") {
            self.refuse("an increment has an amount or a value, not both".to_owned());
        }
    }

    fn of(object: &Map<String, Value>) -> Self {
        let members = object.iter().map(|(name, value)| (name.clone().into(), value.to_string()));
        Self { members: members.collect(), ..Self::default() }.without_null_id()
    }

    fn parse(text: &str) -> Result<Self> {
        let mut parser = serde_json::Deserializer::from_str(text);
        let read = parser.deserialize_map(Members).and_then(|members| parser.end().map(|()| members));
        let members = read.map_err(|error| Error::invalid_item(format!("it is not a JSON object: {error}")))?;
        Ok(Self { members, ..Self::default() }.without_null_id())
    }

    /// The service takes `null` for absent, so another id would be a second one.
    fn without_null_id(mut self) -> Self {
        self.members.retain(|(name, value)| name != "id" || value != "null");
        self
    }

    /// Returns the names and texts of the members.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().map(|(name, text)| (&**name, text.as_str()))
    }

    /// Gives it this id, unless it has one.
    pub(crate) fn give_id(&mut self, id: impl FnOnce() -> String) {
        if !self.members.iter().any(|(name, _)| name == "id") {
            self.set("id", &id());
        }
    }

    /// Returns an item that can be sent.
    ///
    /// # Errors
    ///
    /// `invalid_item`, if something was set that cannot be sent.
    pub(crate) fn checked(self) -> Result<Self> {
        match self.wrong {
            Some(detail) => Err(Error::invalid_item(detail)),
            None => Ok(self),
        }
    }
}

/// Writes the JSON.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, value)) in self.members.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            // A text is always JSON.
            let name = serde_json::to_string(name).unwrap_or_default();
            write!(f, "{comma}{name}:{value}")?;
        }
        f.write_str("}")
    }
}

/// Reads the members of an object, also such as are there twice: the service says so.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'static, str>, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Self::Value, M::Error> {
        let mut members = Vec::with_capacity(4);
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            // Lines of NDJSON have none, but objects of files may.
            members.push((Cow::Owned(name), value.get().to_owned()));
        }
        Ok(members)
    }
}

impl sealed::Sealed for Increment {
    const LIST: &'static str = "increments";

    fn into_object(self) -> Object {
        self.0
    }
}

impl sealed::Sealed for Event {
    const LIST: &'static str = "events";

    fn into_object(mut self) -> Object {
        self.object.wrong = self.object.wrong.or(self.fields.wrong.take());
        let is_new = !self.object.members.iter().any(|(name, _)| name == "fields");
        if is_new {
            self.object.members.push(("fields".into(), self.fields.to_string()));
        } else if !self.fields.members.is_empty() {
            self.object.wrong = Some("fields cannot be set in an event that has them already".to_owned());
        }
        self.object
    }
}

impl Countable for Increment {}
impl Countable for Event {}

#[cfg(test)]
mod tests {
    use super::*;
    use sealed::Sealed;

    fn printed(item: impl Sealed) -> String {
        item.into_object().checked().unwrap().to_string()
    }

    #[test]
    fn increments_are_what_the_api_describes() {
        let at: DateTime<chrono::FixedOffset> = "2026-01-02T11:07:00+01:00".parse().unwrap();
        let item = Increment::new("a\"b").amount("0.10".parse::<Decimal>().unwrap()).by("é").at(at).id("i").retract();
        assert_eq!(
            printed(item),
            r#"{"subject":"a\"b","amount":0.10,"by":"é","at":"2026-01-02T10:07:00Z","id":"i","retract":true}"#
        );
        assert_eq!(printed(Increment::new("a").amount("2.50").amount(3)), r#"{"subject":"a","amount":3}"#);
        assert_eq!(printed(Increment::new("a").value(1.5)), r#"{"subject":"a","value":1.5}"#);
    }

    #[test]
    fn events_are_what_the_api_describes() {
        let event = Event::new("like").field("post_id", "p").field("n", 1).field("n", 2).id("i");
        assert_eq!(printed(event), r#"{"type":"like","id":"i","fields":{"post_id":"p","n":2}}"#);
        assert_eq!(printed(Event::new("like")), r#"{"type":"like","fields":{}}"#);
        let line = r#"{"type":"like","fields":{"a":1}}"#;
        assert_eq!(printed(Event::from_json(line).unwrap()), line);
        assert!(Event::from_json(line).unwrap().field("b", 1).into_object().checked().is_err());
    }

    #[test]
    fn lines_are_sent_as_they_are() {
        for line in [
            r#"{"subject":"a","amount":12345678901234567890.1234567890}"#,
            r#"{"subject":"a","subject":"b"}"#,
            r#"{"subject":"\ud800","id":"x"}"#,
            "{}",
        ] {
            assert_eq!(printed(Increment::from_json(line).unwrap()), line);
        }
        let spaced = Increment::from_json(" { \"subject\" : \"a\" , \"id\" : null }\r\n").unwrap();
        assert_eq!(printed(spaced), r#"{"subject":"a"}"#);
        let Value::Object(object) = serde_json::json!({"subject": "a", "id": null}) else { unreachable!() };
        assert_eq!(printed(Increment::from_object(&object)), r#"{"subject":"a"}"#);
    }

    #[test]
    fn what_is_no_item_is_refused() {
        for line in ["", "1", "[]", "null", "{", "{\"a\":}", "{} {}", "{\"subject\":\"a\"},{}", "{'a':1}"] {
            assert_eq!(Increment::from_json(line).unwrap_err().code(), "invalid_item", "{line}");
        }
        for item in [
            Increment::new("a").value(f64::NAN),
            Increment::new("a").amount("many").amount(1),
            Increment::new("a").amount(2).value("u-1"),
            Increment::new("a").value(1.5).amount(2),
        ] {
            assert_eq!(item.into_object().checked().unwrap_err().code(), "invalid_item");
        }
    }

    #[test]
    fn an_id_is_given_once() {
        let mut item = Increment::new("a").into_object();
        item.give_id(|| "one".to_owned());
        item.give_id(|| unreachable!());
        assert_eq!(item.to_string(), r#"{"subject":"a","id":"one"}"#);
    }
}
