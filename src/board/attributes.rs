//! Attributes: what stands beside a subject, such as its name and a picture. Nothing is counted or ranked by them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::Subject;

/// The attributes of a subject: a small JSON object, as it is stored.
///
/// The text has each attribute as its name, a zero byte, the JSON text of its value, and a zero byte, in the order of
/// the names (in Redis in any order). Neither a name nor a JSON text contains a zero byte, so scripts can take it apart without parsing JSON, which
/// would change numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(Option<Arc<str>>);

/// A change of the attributes of a subject. Its text is that of [`Attributes`], with an empty value for each attribute that
/// is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributesChange {
    mode: ChangeMode,
    text: Box<str>,
}

/// What becomes of the attributes that a subject has before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeMode {
    /// Those that are not named stay.
    Merge,
    /// Those that are not named are removed.
    Replace,
    /// If there are any, nothing is changed.
    Begin,
}

/// The attributes that are read of subjects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeNames {
    All,
    /// Those of these names, as far as a subject has them, in the order of the names.
    Named(Arc<[Box<str>]>),
}

/// The attributes that the lines of a ranking show.
#[derive(Clone, Debug)]
pub struct ShownAttributes {
    /// Those that are asked for.
    pub names: Arc<AttributeNames>,
    /// Those of the subjects that have some.
    pub of: HashMap<Subject, Attributes>,
}

impl ShownAttributes {
    /// Returns those that a line of a subject shows.
    pub fn of(&self, subject: &Subject) -> Attributes {
        self.of.get(subject).cloned().unwrap_or_default()
    }
}

/// What is wrong with attributes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributesError {
    #[error("attributes must be a JSON object, such as {{\"name\": \"Ann\"}}")]
    NoObject,
    #[error("the name of an attribute has 1 to {MAX_NAME_BYTES} letters, digits, '_', '-' and '.'")]
    Name,
    #[error("the attribute '{0}' is given more than once")]
    Repeated(String),
    #[error("the attribute '{name}' has a value that cannot be read: {reason}")]
    Value { name: String, reason: String },
    #[error("a subject has at most {MAX_ATTRIBUTES} attributes")]
    TooMany,
    #[error(
        "the attributes of a subject may have {MAX_ATTRIBUTES_BYTES} bytes as a JSON object, with those that a merge leaves"
    )]
    TooLong,
}

/// The largest number of bytes of the attributes of a subject, as a JSON object without white space between them.
pub const MAX_ATTRIBUTES_BYTES: usize = 1_024;
/// The largest number of attributes of a subject.
pub const MAX_ATTRIBUTES: usize = 32;
const MAX_NAME_BYTES: usize = 64;
/// How often arrays and objects of a value may be in one another. Readers of JSON have a limit of 128, for the whole text
/// in which the value is.
const MAX_DEPTH: usize = 120;

/// The bytes of an attribute in a JSON object beside its name and value: two quotation marks, a colon and a comma.
const BESIDE: usize = 4;

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Returns names and values of a text.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut parts = text.split_terminator('\0');
    std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
}

/// Returns the text of names and values, unless they are too many or too long for a subject.
fn text_of<'a>(attributes: impl Iterator<Item = (&'a str, &'a str)>) -> Result<String, AttributesError> {
    let (mut text, mut number, mut bytes) = (String::new(), 0, 1);
    for (name, value) in attributes {
        (number, bytes) = (number + 1, bytes + name.len() + value.len() + BESIDE);
        if number > MAX_ATTRIBUTES {
            return Err(AttributesError::TooMany);
        }
        if bytes > MAX_ATTRIBUTES_BYTES {
            return Err(AttributesError::TooLong);
        }
        for part in [name, value] {
            text.push_str(part);
            text.push('\0');
        }
    }
    Ok(text)
}

impl Attributes {
    /// Reads what [`stored`](Self::stored) returned.
    pub fn of_stored(text: &str) -> Option<Self> {
        let is_valid = |(name, value): (&str, &str)| is_name(name) && !value.is_empty();
        let is_whole = text.bytes().filter(|byte| *byte == 0).count() == 2 * pairs(text).count();
        let is_ended = text.is_empty() || text.ends_with('\0');
        if !(is_ended && is_whole && pairs(text).all(is_valid)) {
            return None;
        }
        if pairs(text).is_sorted_by_key(|(name, _)| name) {
            return Some(Self::of(text));
        }
        // Scripts leave attributes at their places. What is not too long is not too long in another order.
        let sorted: BTreeMap<&str, &str> = pairs(text).collect();
        text_of(sorted.into_iter()).ok().map(|text| Self::of(&text))
    }

    fn of(text: &str) -> Self {
        Self((!text.is_empty()).then(|| text.into()))
    }

    /// Returns the stored form, which is empty if there are none.
    pub fn stored(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns each attribute as its name and the JSON text of its value, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        pairs(self.stored())
    }

    /// Returns the JSON text of an attribute.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find_map(|(own, value)| (own == name).then_some(value))
    }

    /// Returns an attribute as a text: a string as what it stands for, and any other value as JSON. Empty if there is none.
    pub fn text(&self, name: &str) -> Cow<'_, str> {
        let json = self.get(name).unwrap_or_default();
        match json.starts_with('"') {
            true => serde_json::from_str(json).map_or(Cow::Borrowed(json), Cow::Owned),
            false => json.into(),
        }
    }

    /// Returns the attributes after a change. O(attributes).
    ///
    /// Returns [`AttributesError::TooMany`] or [`AttributesError::TooLong`] if they would be too many or too long.
    pub fn after(&self, change: &AttributesChange) -> Result<Self, AttributesError> {
        let mut all: BTreeMap<&str, &str> = match change.mode {
            ChangeMode::Begin if !self.is_empty() => return Ok(self.clone()),
            ChangeMode::Merge => self.iter().collect(),
            ChangeMode::Replace | ChangeMode::Begin => BTreeMap::new(),
        };
        for (name, value) in pairs(&change.text) {
            if value.is_empty() {
                all.remove(name)
            } else {
                all.insert(name, value)
            };
        }
        Ok(Self::of(&text_of(all.into_iter())?))
    }

    /// Returns the attributes of these names.
    #[must_use]
    pub fn of_names(self, names: &AttributeNames) -> Self {
        let AttributeNames::Named(names) = names else { return self };
        let chosen = self.iter().filter(|(name, _)| names.iter().any(|own| **own == **name));
        // A part of what is not too long is not too long.
        Self::of(&text_of(chosen).unwrap_or_default())
    }

    /// Returns the change after which a subject has exactly these.
    pub fn change(&self) -> AttributesChange {
        AttributesChange { mode: ChangeMode::Replace, text: self.stored().into() }
    }
}

impl AttributesChange {
    /// Returns the change that removes all attributes.
    pub fn clear() -> Self {
        Attributes::default().change()
    }

    /// Returns the change that replaces all attributes by those of a JSON object.
    pub fn replacing(object: &RawValue) -> Result<Self, AttributesError> {
        let Given { set, .. } = Given::of(object)?;
        Ok(Self { mode: ChangeMode::Replace, text: text_of(texts(&set))?.into() })
    }

    /// Returns the change that sets the attributes of a JSON object, and removes those that are `null` there.
    pub fn merging(object: &RawValue) -> Result<Self, AttributesError> {
        let Given { set, removed } = Given::of(object)?;
        let removed = texts(&removed).flat_map(|(name, value)| [name, "\0", value, "\0"]);
        let text = text_of(texts(&set))? + &removed.collect::<String>();
        Ok(Self { mode: ChangeMode::Merge, text: text.into() })
    }

    /// Returns the same change for subjects that have no attributes. The others keep what they have.
    #[must_use]
    pub fn for_new(self) -> Self {
        Self { mode: ChangeMode::Begin, ..self }
    }

    pub fn mode(&self) -> ChangeMode {
        self.mode
    }

    /// Returns the attributes that are set, and those that are removed with an empty value, in the form of
    /// [`Attributes::stored`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether there is something that it may change.
    pub fn is_empty(&self) -> bool {
        self.mode != ChangeMode::Replace && self.text.is_empty()
    }
}

impl AttributeNames {
    /// Parses names with commas between them, or `*` for all.
    pub fn parse(text: &str) -> Result<Self, AttributesError> {
        if text == "*" {
            return Ok(Self::All);
        }
        let mut names: Vec<Box<str>> = Vec::new();
        for name in text.split(',') {
            if !is_name(name) {
                return Err(AttributesError::Name);
            }
            if names.len() == MAX_ATTRIBUTES {
                return Err(AttributesError::TooMany);
            }
            if !names.iter().any(|known| **known == *name) {
                names.push(name.into());
            }
        }
        Ok(Self::Named(names.into()))
    }
}

impl AttributeNames {
    /// Returns the names, which are none if all are meant.
    pub fn named(&self) -> &[Box<str>] {
        match self {
            AttributeNames::All => &[],
            AttributeNames::Named(names) => names,
        }
    }
}

impl fmt::Display for AttributeNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeNames::All => f.write_str("*"),
            AttributeNames::Named(names) => f.write_str(&names.join(",")),
        }
    }
}

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = String::with_capacity(self.stored().len() + 3 * MAX_ATTRIBUTES);
        for (name, value) in self.iter() {
            object.push(if object.is_empty() { '{' } else { ',' });
            let name = if name == "as_of" { "as\\u005fof" } else { name };
            for part in ["\"", name, "\":", value] {
                object.push_str(part);
            }
        }
        object.push_str(if object.is_empty() { "{}" } else { "}" });
        RawValue::from_string(object).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// The members of a JSON object of attributes, with the JSON texts of their values, which are empty for those that are
/// removed. The bounds are those of what is set; of what a subject may have, as many can be removed.
#[derive(Default)]
struct Given<'a> {
    set: BTreeMap<Cow<'a, str>, String>,
    removed: BTreeMap<Cow<'a, str>, String>,
}

fn texts<'a>(members: &'a BTreeMap<Cow<'_, str>, String>) -> impl Iterator<Item = (&'a str, &'a str)> {
    members.iter().map(|(name, value)| (&**name, &**value))
}

impl<'a> Given<'a> {
    fn of(object: &'a RawValue) -> Result<Self, AttributesError> {
        if !object.get().starts_with('{') {
            return Err(AttributesError::NoObject);
        }
        let members: Members<'a> = serde_json::from_str(object.get()).map_err(|_| AttributesError::NoObject)?;
        members.0
    }

    fn add(&mut self, name: Cow<'a, str>, value: String) -> Result<(), AttributesError> {
        if self.set.contains_key(&name) || self.removed.contains_key(&name) {
            return Err(AttributesError::Repeated(name.into_owned()));
        }
        let to = if value.is_empty() { &mut self.removed } else { &mut self.set };
        if to.len() == MAX_ATTRIBUTES {
            return Err(AttributesError::TooMany);
        }
        to.insert(name, value);
        Ok(())
    }
}

/// Members of an object, up to the first that is not valid.
struct Members<'a>(Result<Given<'a>, AttributesError>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Ok(Given::default());
                while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    // After an error the rest is only skipped.
                    all = all.and_then(|mut given| {
                        let (name, value) = checked(name.0, value)?;
                        given.add(name, value).map(|()| given)
                    });
                }
                Ok(Members(all))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns a member with the JSON text of its value, which is empty for `null`.
fn checked<'a>(name: Cow<'a, str>, value: &RawValue) -> Result<(Cow<'a, str>, String), AttributesError> {
    if !is_name(&name) {
        return Err(AttributesError::Name);
    }
    let text = match value.get() {
        "null" => return Ok((name, String::new())),
        text => written(text),
    };
    let invalid = |reason: &str| AttributesError::Value { name: name.clone().into_owned(), reason: reason.to_owned() };
    if depth(&text) > MAX_DEPTH {
        return Err(invalid(&format!("its arrays and objects are in one another more than {MAX_DEPTH} times")));
    }
    if text.len() > MAX_ATTRIBUTES_BYTES {
        return Err(AttributesError::TooLong);
    }
    // A text may be valid JSON and yet none that can be read, such as one with half of a surrogate pair.
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(_) => Ok((name, text)),
        Err(error) => Err(invalid(error.to_string().split(" at line ").next().unwrap_or_default())),
    }
}

/// Returns how often arrays and objects of a JSON text are in one another.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut is_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            b'[' | b'{' if !is_string => depth += 1,
            b']' | b'}' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        is_string ^= byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
    }
    deepest
}

/// Returns a JSON text as it is stored and shown: without white space around its parts, in which there may be line ends, and
/// with the characters escaped that end a line for some readers.
///
/// The entity tag of a response leaves out the times of members `as_of`, which must not be those of attributes. So that
/// name is written with an escape, which stands for the same.
fn written(json: &str) -> String {
    let (mut text, mut is_string, mut is_escaped) = (String::with_capacity(json.len()), false, false);
    for char in json.chars() {
        match char {
            ' ' | '\t' | '\n' | '\r' if !is_string => {}
            '\u{85}' | '\u{2028}' | '\u{2029}' => text.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => text.push(char),
        }
        is_string ^= char == '"' && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
    }
    if text.contains(AS_OF) { text.replace(AS_OF, "\"as\\u005fof\":\"") } else { text }
}

/// The beginning of a member that the entity tag of a response leaves out.
const AS_OF: &str = "\"as_of\":\"";

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn merge(text: &str) -> AttributesChange {
        AttributesChange::merging(&raw(text)).unwrap()
    }

    fn json(attributes: &Attributes) -> String {
        serde_json::to_string(attributes).unwrap()
    }

    #[test]
    fn changes_replace_merge_and_remove() {
        let none = Attributes::default();
        let ann = none.after(&merge(r#"{"name":"Ann","level":1.50,"badges":["a", {"b":1}],"gone":null}"#)).unwrap();
        assert_eq!(json(&ann), r#"{"badges":["a",{"b":1}],"level":1.50,"name":"Ann"}"#);
        assert_eq!(ann.get("level"), Some("1.50"));
        let older = ann.after(&merge(r#"{"name":null,"level":12345678901234567890123}"#)).unwrap();
        assert_eq!(json(&older), r#"{"badges":["a",{"b":1}],"level":12345678901234567890123}"#);
        let replaced = AttributesChange::replacing(&raw(r#"{"z":true,"y":null}"#)).unwrap();
        assert_eq!(json(&older.after(&replaced).unwrap()), r#"{"z":true}"#);
        assert_eq!(ann.after(&AttributesChange::clear()).unwrap(), none);
        assert_eq!(none.after(&ann.change()).unwrap(), ann);
        assert!(merge("{}").is_empty() && !AttributesChange::clear().is_empty());
    }

    #[test]
    fn what_is_removed_leaves_room_for_what_is_set() {
        let many = |value: &dyn Fn(usize) -> String| -> Vec<String> {
            (0..MAX_ATTRIBUTES).map(|number| format!("\"{number:064}\":{}", value(number))).collect()
        };
        let short: Vec<String> = (0..MAX_ATTRIBUTES).map(|number| format!("\"{number}\":1")).collect();
        let full = Attributes::default().after(&merge(&format!("{{{}}}", short.join(",")))).unwrap();
        let one_less: Vec<String> = short.iter().map(|member| member.replace(":1", ":null")).collect();
        let changed = full.after(&merge(&format!("{{{},\"new\":1}}", one_less.join(",")))).unwrap();
        assert_eq!(json(&changed), r#"{"new":1}"#);
        assert_eq!(full.after(&merge(r#"{"new":1}"#)), Err(AttributesError::TooMany));
        let removed = merge(&format!("{{{},\"a\":\"{}\"}}", many(&|_| "null".to_owned()).join(","), "x".repeat(900)));
        assert_eq!(Attributes::default().after(&removed).unwrap().stored().len(), 1 + 1 + 902 + 1);
    }

    #[test]
    fn values_are_not_too_deep() {
        let nested = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(AttributesChange::merging(&raw(&nested(MAX_DEPTH))).is_ok());
        for depth in [MAX_DEPTH + 1, 127] {
            let error = AttributesChange::merging(&raw(&nested(depth))).unwrap_err();
            assert!(error.to_string().contains("more than 120 times"), "{error}");
        }
        assert!(AttributesChange::merging(&raw(&format!(r#"{{"a":"\"{}"}}"#, "[".repeat(200)))).is_ok());
    }

    #[test]
    fn the_stored_form_round_trips_and_what_is_damaged_is_found() {
        let some = Attributes::default().after(&merge(r#"{"a":1,"b":"x\u0000"}"#)).unwrap();
        assert_eq!(some.stored(), "a\u{0}1\u{0}b\u{0}\"x\\u0000\"\u{0}");
        assert_eq!(Attributes::of_stored(some.stored()), Some(some));
        assert_eq!(Attributes::of_stored(""), Some(Attributes::default()));
        // As a script may leave them.
        let placed = Attributes::of_stored("b\u{0}2\u{0}a\u{0}1\u{0}").unwrap();
        assert_eq!(placed.stored(), "a\u{0}1\u{0}b\u{0}2\u{0}");
        for damaged in ["a", "a\u{0}", "a\u{0}1", "a\u{0}1\u{0}b\u{0}", "a\u{0}\u{0}", "\u{0}1\u{0}", "a b\u{0}1\u{0}"]
        {
            assert_eq!(Attributes::of_stored(damaged), None, "{damaged:?}");
        }
    }

    /// Otherwise a response with another one would have the same entity tag.
    #[test]
    fn no_attribute_looks_like_the_time_of_a_response() {
        let some =
            Attributes::default().after(&merge(r#"{"as_of":"x","b":{"as_of":"y"},"c":"\"as_of\":\"z\""}"#)).unwrap();
        let shown = json(&some);
        assert!(!shown.contains("\"as_of\":\""), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, serde_json::json!({"as_of": "x", "b": {"as_of": "y"}, "c": "\"as_of\":\"z\""}));
    }

    #[test]
    fn what_is_not_valid_is_named() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_ATTRIBUTES_BYTES));
        let many: Vec<String> = (0..33).map(|number| format!("\"a{number}\":1")).collect();
        let many = format!("{{{}}}", many.join(","));
        for (text, error) in [
            ("[]", AttributesError::NoObject),
            ("\"{}\"", AttributesError::NoObject),
            (r#"{"":1}"#, AttributesError::Name),
            (r#"{"a b":1}"#, AttributesError::Name),
            (r#"{"ä":1}"#, AttributesError::Name),
            (r#"{"a":1,"a":2}"#, AttributesError::Repeated("a".to_owned())),
            (long.as_str(), AttributesError::TooLong),
            (many.as_str(), AttributesError::TooMany),
        ] {
            assert_eq!(AttributesChange::merging(&raw(text)), Err(error.clone()), "{text}");
            assert_eq!(AttributesChange::replacing(&raw(text)), Err(error), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_value() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for text in [r#"{"a":"\ud800"}"#, r#"{"a":1e999}"#, &deep] {
            let error = AttributesChange::merging(&raw(text)).unwrap_err();
            assert!(matches!(&error, AttributesError::Value { name, .. } if name == "a"), "{error}");
            assert!(!error.to_string().contains("line"), "{error}");
        }
    }

    /// Lines of exports, streams and contents have one object each.
    #[test]
    fn values_are_in_one_line() {
        let text = "{\"a\":[\n \"x \\\" \\n\u{2028}y\" ,\t1 ]\r\n, \"b\": {\"as_of\" : \"1\"}}";
        let some = Attributes::default().after(&merge(text)).unwrap();
        let shown = json(&some);
        assert_eq!(shown, r#"{"a":["x \" \n\u2028y",1],"b":{"as\u005fof":"1"}}"#);
        // What is shown is set again as it is.
        assert_eq!(Attributes::default().after(&AttributesChange::replacing(&raw(&shown)).unwrap()).unwrap(), some);
    }

    #[test]
    fn what_is_for_new_subjects_leaves_those_that_have_some() {
        let begin = AttributesChange::replacing(&raw(r#"{"a":1}"#)).unwrap().for_new();
        let ann = Attributes::default().after(&begin).unwrap();
        assert_eq!(json(&ann), r#"{"a":1}"#);
        let other = AttributesChange::replacing(&raw(r#"{"b":1}"#)).unwrap().for_new();
        assert_eq!(ann.after(&other).unwrap(), ann);
    }

    /// The bound is that of the object that responses show.
    #[test]
    fn the_bound_is_that_of_the_object() {
        let of = |bytes: usize| raw(&format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8)));
        let whole = AttributesChange::replacing(&of(MAX_ATTRIBUTES_BYTES)).unwrap();
        let whole = Attributes::default().after(&whole).unwrap();
        assert_eq!(json(&whole).len(), MAX_ATTRIBUTES_BYTES);
        assert_eq!(AttributesChange::replacing(&of(MAX_ATTRIBUTES_BYTES + 1)), Err(AttributesError::TooLong));
        assert_eq!(whole.after(&merge(r#"{"b":1}"#)), Err(AttributesError::TooLong));
        assert_eq!(json(&whole.after(&merge(r#"{"a":1,"b":1}"#)).unwrap()), r#"{"a":1,"b":1}"#);
    }

    #[test]
    fn names_choose_attributes() {
        let texts = Attributes::default().after(&merge(r#"{"a":"x\"\n","b":[1]}"#)).unwrap();
        assert_eq!(["a", "b", "c"].map(|name| texts.text(name).into_owned()), ["x\"\n", "[1]", ""]);
        let all = Attributes::default().after(&merge(r#"{"a":1,"b":2,"c":3}"#)).unwrap();
        let names = AttributeNames::parse("c,a,x,a").unwrap();
        assert_eq!(names.to_string(), "c,a,x");
        assert_eq!(json(&all.clone().of_names(&names)), r#"{"a":1,"c":3}"#);
        assert_eq!(all.clone().of_names(&AttributeNames::parse("*").unwrap()), all);
        for bad in ["", "a,", "a b", "*,a"] {
            assert_eq!(AttributeNames::parse(bad), Err(AttributesError::Name), "{bad}");
        }
    }
}
