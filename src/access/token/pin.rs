//! The one item that a token allows.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde_json::value::RawValue;

use super::members::{Members, Scalar, text_of};
use super::range::Range;
use crate::board::compare_numbers;

/// A kind of item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemType {
    Event,
    Increment,
    Sample,
}

impl ItemType {
    /// Returns the path of the operation that takes single items of this kind.
    pub(in crate::access) fn path(self) -> &'static str {
        match self {
            ItemType::Event => "/v1/events",
            ItemType::Increment => "/v1/boards/{board}/increments",
            ItemType::Sample => "/v1/boards/{board}/samples",
        }
    }
}

impl fmt::Display for ItemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ItemType::Event => "event",
            ItemType::Increment => "increment",
            ItemType::Sample => "sample",
        })
    }
}

/// The item that a token allows. What it has is filled in where the item of a request does not have it, and refused
/// where it has something else; only the fields with a range are free within it.
#[derive(Clone, Debug)]
pub struct Pin {
    /// The type of an event. `None`: the item is an increment.
    event: Option<Box<str>>,
    /// The members of the increment, or the fields of the event.
    fields: Vec<(Box<str>, Value)>,
    /// Whether the event may be taken back, too. Then no field is free.
    takes_back: bool,
}

/// What a field may be.
#[derive(Clone, Debug)]
enum Value {
    /// This value only: a text, a number, or true or false.
    Fixed(Box<RawValue>),
    /// A number in this range.
    Within(Range),
}

/// The reason why an item is not the one that a token allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct PinError {
    /// The field that is wrong. Empty if it is the item.
    pub field: String,
    pub detail: String,
}

impl PinError {
    fn new(field: &str, detail: String) -> Self {
        Self { field: field.chars().take(64).collect(), detail }
    }
}

/// The members of an increment that a token may fix; those with a number may have a range instead.
const OF_INCREMENT: [&str; 5] = ["subject", "by", "amount", "value", "tie_break"];

impl Pin {
    /// Reads a pin from the members `event`, `increment` and `range` of the claim. `None` if there is no item.
    pub(super) fn parse(
        event: Option<&RawValue>,
        increment: Option<&RawValue>,
        range: Option<&RawValue>,
    ) -> Result<Option<Self>, &'static str> {
        let (kind, fields) = match (event, increment) {
            (None, None) if range.is_some() => return Err("has 'range' without 'event' or 'increment'"),
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err("has both 'event' and 'increment'"),
            (Some(event), None) => {
                let mut members = Members::parse(event.get()).ok_or("has 'event' that is no object")?;
                let kind = members.take("type").and_then(text_of).filter(|kind| !kind.is_empty());
                let kind = kind.ok_or("has 'event' without 'type'")?;
                let fields = match members.take("fields") {
                    Some(fields) => Members::parse(fields.get()).ok_or("has 'fields' that is no object")?,
                    None => Members::default(),
                };
                if members.unknown().is_some() {
                    return Err("has 'event' with members other than 'type' and 'fields'");
                }
                (Some(Box::from(kind)), fields)
            }
            (None, Some(increment)) => {
                (None, Members::parse(increment.get()).ok_or("has 'increment' that is no object")?)
            }
        };
        let mut known = Vec::new();
        for (name, raw) in fields.rest() {
            let is_text = kind.is_none() && (name == "subject" || name == "by");
            if kind.is_none() && !OF_INCREMENT.contains(&&*name) {
                return Err(
                    "has 'increment' with members other than 'subject', 'by', 'amount', 'value' and 'tie_break'",
                );
            }
            match Scalar::read(raw) {
                Some(Scalar::Text(_)) => {}
                Some(_) if !is_text => {}
                _ => return Err("fixes a field to something that is no text, number, true or false"),
            }
            known.push((Box::from(name), Value::Fixed(raw.to_owned())));
        }
        if kind.is_none() && !known.iter().any(|(name, _)| &**name == "subject") {
            return Err("has 'increment' without 'subject'");
        }
        let ranges = range.map_or(Some(None), |raw| Members::parse(raw.get()).map(Some));
        let ranges = ranges.ok_or("has 'range' that is no object")?;
        for (name, raw) in ranges.into_iter().flat_map(Members::rest) {
            if known.iter().any(|(known, _)| **known == *name) {
                return Err("has a range for a field that it fixes");
            }
            if kind.is_none() && !OF_INCREMENT[2..].contains(&&*name) {
                return Err("has a range for something other than 'amount', 'value' and 'tie_break' of an increment");
            }
            let range = Range::read(raw).ok_or("has a range that is no list of a smallest and a largest number")?;
            known.push((Box::from(name), Value::Within(range)));
        }
        Ok(Some(Self { event: kind, fields: known, takes_back: false }))
    }

    /// Returns the same pin, for an event that may be taken back, too.
    pub(super) fn taking_back(self) -> Result<Self, &'static str> {
        match &self.event {
            None => Err("has 'retract' without 'event'"),
            // A free field could name the like of another person.
            Some(_) if self.free().next().is_some() => Err("has both 'retract' and 'range'"),
            Some(_) => Ok(Self { takes_back: true, ..self }),
        }
    }

    /// Returns whether the event may be taken back, too.
    pub fn takes_back(&self) -> bool {
        self.takes_back
    }

    /// Returns the kind of the item.
    pub fn item(&self) -> ItemType {
        if self.event.is_some() { ItemType::Event } else { ItemType::Increment }
    }

    /// Returns the fields of the event, or members of the increment, that are free within a range.
    pub fn free(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(|(_, value)| matches!(value, Value::Within(_))).map(|(name, _)| &**name)
    }

    /// Returns the JSON text of the item that the body of a request stands for: what the token fixes, with the fields
    /// of the body that are free. O(length of the body).
    pub fn complete(&self, body: &[u8]) -> Result<String, PinError> {
        let body = if body.is_empty() { &b"{}"[..] } else { body };
        let no_object = || PinError::new("", "the token is for one JSON object, with each member once".to_owned());
        let mut item = std::str::from_utf8(body).ok().and_then(Members::parse).ok_or_else(no_object)?;
        let Some(kind) = &self.event else { return self.complete_fields(item) };
        match item.take("type").map(|raw| text_of(raw).is_some_and(|given| *given == **kind)) {
            None | Some(true) => {}
            Some(false) => return Err(PinError::new("type", format!("the token is for events of type '{kind}'"))),
        }
        let fields = match item.take("fields") {
            Some(raw) => Members::parse(raw.get()).ok_or_else(no_object)?,
            None => Members::default(),
        };
        let retract = match self.takes_back.then(|| item.take("retract").map(RawValue::get)).flatten() {
            None | Some("false") => "",
            Some("true") => ",\"retract\":true",
            Some(_) => return Err(PinError::new("retract", "'retract' must be true or false".to_owned())),
        };
        if let Some((name, _)) = item.rest().next() {
            return Err(not_allowed(&name));
        }
        let fields = self.complete_fields(fields)?;
        Ok(format!("{{\"type\":{},\"fields\":{fields}{retract}}}", serde_json::Value::from(&**kind)))
    }

    /// Returns the JSON text of an object with all fields.
    fn complete_fields(&self, mut given: Members<'_>) -> Result<String, PinError> {
        let mut text = String::from("{");
        for (name, value) in &self.fields {
            let raw = given.take(name);
            let value = match (value, raw) {
                (Value::Fixed(fixed), None) => Cow::Borrowed(fixed.get()),
                (Value::Fixed(fixed), Some(raw)) if is_same(fixed, raw) => Cow::Borrowed(fixed.get()),
                (Value::Fixed(_), Some(_)) => {
                    return Err(PinError::new(name, format!("the token is for another value of '{name}'")));
                }
                (Value::Within(range), Some(raw)) => match range.admit(raw) {
                    Some(number) => Cow::Owned(number.into()),
                    None => {
                        let detail = format!("'{name}' must be a number from {range}, as the token says");
                        return Err(PinError::new(name, detail));
                    }
                },
                (Value::Within(range), None) => {
                    let detail = format!("'{name}' is missing; the token allows a number from {range}");
                    return Err(PinError::new(name, detail));
                }
            };
            let separator = if text.len() > 1 { "," } else { "" };
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}{}:{value}", serde_json::Value::from(&**name));
        }
        if let Some((name, _)) = given.rest().next() {
            return Err(not_allowed(&name));
        }
        text.push('}');
        Ok(text)
    }
}

fn not_allowed(name: &str) -> PinError {
    let name: String = name.chars().take(64).collect();
    let detail = format!("the token does not allow '{name}': it is for one item, with the fields that it names");
    PinError { field: name, detail }
}

/// Returns whether two values are the same: texts by their characters, numbers by their value.
fn is_same(fixed: &RawValue, given: &RawValue) -> bool {
    match (Scalar::read(fixed), Scalar::read(given)) {
        (Some(Scalar::Number(a)), Some(Scalar::Number(b))) => {
            compare_numbers(a, b).is_some_and(std::cmp::Ordering::is_eq)
        }
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn raw(value: &Json) -> Option<Box<RawValue>> {
        (!value.is_null()).then(|| serde_json::value::to_raw_value(value).unwrap())
    }

    fn pin(claim: &Json) -> Result<Pin, &'static str> {
        let [event, increment, range] = ["event", "increment", "range"].map(|name| raw(&claim[name]));
        Pin::parse(event.as_deref(), increment.as_deref(), range.as_deref()).map(|pin| pin.expect("an item"))
    }

    fn complete(claim: Json, body: &str) -> Result<Json, String> {
        let text = pin(&claim).unwrap().complete(body.as_bytes());
        text.map(|text| serde_json::from_str(&text).unwrap()).map_err(|error| error.field)
    }

    #[test]
    fn what_an_event_fixes_is_filled_in_and_nothing_else_is_allowed() {
        let claim = || {
            json!({"event": {"type": "rate", "fields": {"post": "p1", "user": "u7", "n": 1.50, "app": true}},
                "range": {"stars": [1, 5]}})
        };
        let whole = json!({"type": "rate", "fields": {"post": "p1", "user": "u7", "n": 1.5, "app": true, "stars": 4}});
        for body in [
            r#"{"fields":{"stars":4}}"#,
            r#"{"type":"rate","fields":{"stars":4.0}}"#,
            r#"{"type":null,"id":null,"fields":{"user":null,"stars":40e-1}}"#,
            r#"{"fields":{"post":"p\u0031","user":"u7","n":15e-1,"app":true,"stars":4}}"#,
        ] {
            assert_eq!(complete(claim(), body).as_ref(), Ok(&whole), "{body}");
        }
        for (body, field) in [
            ("", "stars"),
            ("{}", "stars"),
            (r#"{"fields":{"stars":null}}"#, "stars"),
            (r#"{"fields":{"stars":6}}"#, "stars"),
            (r#"{"fields":{"stars":"4"}}"#, "stars"),
            (r#"{"fields":{"stars":-1000000}}"#, "stars"),
            (r#"{"type":"like","fields":{"stars":4}}"#, "type"),
            (r#"{"type":5,"fields":{"stars":4}}"#, "type"),
            (r#"{"fields":{"stars":4,"post":"p2"}}"#, "post"),
            (r#"{"fields":{"stars":4,"post":["p1"]}}"#, "post"),
            (r#"{"fields":{"stars":4,"n":1}}"#, "n"),
            (r#"{"fields":{"stars":4,"n":"1.5"}}"#, "n"),
            (r#"{"fields":{"stars":4,"app":false}}"#, "app"),
            (r#"{"fields":{"stars":4,"more":1}}"#, "more"),
            (r#"{"fields":{"stars":4},"at":"2026-01-01T00:00:00Z"}"#, "at"),
            (r#"{"fields":{"stars":4},"id":"x"}"#, "id"),
            (r#"{"fields":{"stars":4},"retract":true}"#, "retract"),
            (r#"{"fields":{"stars":4},"retract":false}"#, "retract"),
            (r#"{"events":[]}"#, "events"),
            (r#"{"events":[],"fields":{"stars":4}}"#, "events"),
            (r#"{"fields":{"stars":4,"stars":4}}"#, ""),
            (r#"{"fields":{"stars":4},"fields":{"stars":4}}"#, ""),
            (r#"[{"fields":{"stars":4}}]"#, ""),
            (r#"{"fields":{"stars":4}}{"fields":{"stars":4}}"#, ""),
            ("nonsense", ""),
        ] {
            assert_eq!(complete(claim(), body), Err(field.to_owned()), "{body}");
        }
    }

    #[test]
    fn an_event_may_be_taken_back_with_the_fields_that_are_fixed() {
        let like = |fields: Json| json!({"event": {"type": "like", "fields": fields}});
        let fixed = pin(&like(json!({"post": "p1", "user": "u7"}))).unwrap().taking_back().unwrap();
        let complete = |body: &str| match fixed.complete(body.as_bytes()) {
            Ok(text) => serde_json::from_str::<Json>(&text).map_err(|error| error.to_string()),
            Err(error) => Err(error.field),
        };
        let given = json!({"type": "like", "fields": {"post": "p1", "user": "u7"}});
        for body in ["", "{}", r#"{"retract":false}"#, r#"{"retract":null,"fields":{"user":"u7"}}"#] {
            assert_eq!(complete(body).as_ref(), Ok(&given), "{body}");
        }
        let mut back = given.clone();
        back["retract"] = json!(true);
        assert_eq!(complete(r#"{"retract":true}"#).as_ref(), Ok(&back));
        for (body, field) in [
            (r#"{"retract":true,"at":"2026-01-01T00:00:00Z"}"#, "at"),
            (r#"{"retract":true,"id":"x"}"#, "id"),
            (r#"{"retract":true,"type":"share"}"#, "type"),
            (r#"{"retract":true,"fields":{"user":"u8"}}"#, "user"),
            (r#"{"retract":true,"fields":{"post":"p2"}}"#, "post"),
            (r#"{"retract":true,"fields":{"more":1}}"#, "more"),
            (r#"{"retract":true,"retract":true}"#, ""),
            (r#"{"retract":"true"}"#, "retract"),
            (r#"{"retract":1}"#, "retract"),
            (r#"{"retract":[true]}"#, "retract"),
            (r#"{"events":[{"retract":true}]}"#, "events"),
            (r#"{"position":1,"retract":true}"#, "position"),
        ] {
            assert_eq!(complete(body), Err(field.to_owned()), "{body}");
        }
        let free = json!({"event": {"type": "like", "fields": {"post": "p1"}}, "range": {"user": [1, 9]}});
        assert!(pin(&free).unwrap().taking_back().is_err());
        assert!(pin(&json!({"increment": {"subject": "p1", "value": "u7"}})).unwrap().taking_back().is_err());
    }

    #[test]
    fn an_increment_is_for_one_subject() {
        let fixed = || json!({"increment": {"subject": "p1", "amount": 2}});
        assert_eq!(complete(fixed(), "{}"), Ok(json!({"subject": "p1", "amount": 2})));
        assert_eq!(complete(fixed(), r#"{"amount":2.0}"#), Ok(json!({"subject": "p1", "amount": 2})));
        for (body, field) in [
            (r#"{"amount":3}"#, "amount"),
            (r#"{"value":3}"#, "value"),
            (r#"{"subject":"p2"}"#, "subject"),
            (r#"{"increments":[{}]}"#, "increments"),
        ] {
            assert_eq!(complete(fixed(), body), Err(field.to_owned()), "{body}");
        }
        let free = || json!({"increment": {"subject": "p1"}, "range": {"amount": [-1, 1]}});
        assert_eq!(complete(free(), r#"{"amount":-1}"#), Ok(json!({"subject": "p1", "amount": -1})));
        assert_eq!(complete(free(), r#"{"amount":-1000000}"#), Err("amount".to_owned()));
        assert_eq!(complete(free(), "{}"), Err("amount".to_owned()));
        let one = || json!({"increment": {"subject": "a\"b"}});
        assert_eq!(complete(one(), "{}"), Ok(json!({"subject": "a\"b"})));
        assert_eq!(complete(one(), r#"{"amount":1}"#), Err("amount".to_owned()));
    }

    #[test]
    fn other_pins_are_refused() {
        for wrong in [
            json!({"range": {"a": [1, 2]}}),
            json!({"event": {}}),
            json!({"event": {"type": ""}}),
            json!({"event": {"type": "a", "at": "2026-01-01T00:00:00Z"}}),
            json!({"event": {"type": "a", "fields": []}}),
            json!({"event": {"type": "a", "fields": {"b": []}}}),
            json!({"event": {"type": "a", "fields": {"b": 1}}, "range": {"b": [1, 2]}}),
            json!({"event": {"type": "a"}, "range": {"b": [2, 1]}}),
            json!({"event": {"type": "a"}, "range": {"b": 1}}),
            json!({"event": {"type": "a"}, "range": []}),
            json!({"event": {"type": "a"}, "increment": {"subject": "b"}}),
            json!({"increment": {}}),
            json!({"increment": {"subject": 5}}),
            json!({"increment": {"subject": "a", "id": "b"}}),
            json!({"increment": {"subject": "a"}, "range": {"subject": [1, 2]}}),
            json!({"increment": {"subject": "a"}, "range": {"at": [1, 2]}}),
        ] {
            let [event, increment, range] = ["event", "increment", "range"].map(|name| raw(&wrong[name]));
            assert!(Pin::parse(event.as_deref(), increment.as_deref(), range.as_deref()).is_err(), "{wrong}");
        }
    }
}
