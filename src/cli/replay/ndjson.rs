//! NDJSON: one JSON object per line.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use super::fields::Fields;
use super::record::{Record, Skip};

type JsonObject<'l> = HashMap<Cow<'l, str>, &'l RawValue, rapidhash::fast::RandomState>;

/// Parses one line. Texts are taken without their quotes, numbers and booleans as they are written.
pub fn parse<'l>(line: &'l [u8], names: &Fields<String>) -> Result<Record<'l>, Skip> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Err(Skip::Blank);
    }
    let text = std::str::from_utf8(line).map_err(|_| Skip::NotUtf8)?;
    let object: JsonObject<'l> = serde_json::from_str(text).map_err(|_| Skip::NotJson)?;
    let text_of = |name: &String| object.get(name.as_str()).and_then(|value| plain_text(value));
    names.try_map(|name| Ok::<_, Skip>(text_of(name)))?.record()
}

/// Returns the names of the fields of a line, sorted. Empty if it is no JSON object.
pub fn names_in(line: &[u8]) -> Vec<String> {
    let object: Option<JsonObject<'_>> =
        std::str::from_utf8(line).ok().and_then(|text| serde_json::from_str(text).ok());
    let mut names: Vec<String> =
        object.into_iter().flat_map(|object| object.into_keys().map(Cow::into_owned)).collect();
    names.sort();
    names
}

/// Returns the text of a value. Returns `None` for null, an empty text, an object and an array.
fn plain_text(value: &RawValue) -> Option<Cow<'_, str>> {
    let raw = value.get();
    match raw.as_bytes().first()? {
        b'"' => {
            // A text without escapes is borrowed. Any other is copied.
            let text = match serde_json::from_str::<&str>(raw) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => Cow::Owned(serde_json::from_str::<String>(raw).ok()?),
            };
            (!text.is_empty()).then_some(text)
        }
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(raw)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Fields<String> {
        Fields {
            subject: Some("page".into()),
            amount: Some("delta".into()),
            by: None,
            value: None,
            time: Some("time".into()),
            id: Some("rev".into()),
        }
    }

    #[test]
    fn named_fields_are_extracted_unchanged() {
        let line = r#" {"time":"2015-09-12T00:46:58.771Z","page":"A \"b\" \u00e9/日本","delta":-36.50,"rev":17,"x":{"y":[1]}} "#;
        let record = parse(line.as_bytes(), &names()).unwrap();
        assert_eq!(record.subject, "A \"b\" é/日本");
        assert_eq!(record.amount.as_deref(), Some("-36.50"));
        assert_eq!(record.id.as_deref(), Some("17"));
        assert_eq!(record.at.unwrap().to_string(), "2015-09-12T00:46:58.771Z");
        let only = Fields { amount: None, time: None, id: None, ..names() };
        let record = parse(line.as_bytes(), &only).unwrap();
        assert_eq!((record.amount, record.at, record.id), (None, None, None));
        let samples = Fields { by: Some("rev".into()), value: Some("delta".into()), ..only };
        let record = parse(line.as_bytes(), &samples).unwrap();
        assert_eq!((record.by.as_deref(), record.value.as_deref()), (Some("17"), Some("-36.50")));
        assert_eq!(parse(br#"{"page":"a"}"#, &samples), Err(Skip::NoKey));
        assert_eq!(parse(br#"{"page":"a","rev":1}"#, &samples), Err(Skip::NoValue));
        assert_eq!(names_in(line.as_bytes()), ["delta", "page", "rev", "time", "x"]);
    }

    #[test]
    fn invalid_lines_are_skipped_with_a_reason() {
        let deep = format!(r#"{{"page":"a","x":{}"#, "[".repeat(100_000));
        for (line, reason) in [
            ("", Skip::Blank),
            ("nonsense", Skip::NotJson),
            ("[1]", Skip::NotJson),
            ("{\"page\":\"a\"", Skip::NotJson),
            (&deep, Skip::NotJson),
            ("{}", Skip::NoSubject),
            (r#"{"page":null}"#, Skip::NoSubject),
            (r#"{"page":""}"#, Skip::NoSubject),
            (r#"{"page":["a"]}"#, Skip::NoSubject),
            (r#"{"page":"\ud800"}"#, Skip::NoSubject),
            (r#"{"page":"a"}"#, Skip::NoTime),
            (r#"{"page":"a","time":"soon"}"#, Skip::BadTime),
            (r#"{"page":"a","time":0}"#, Skip::NoAmount),
            (r#"{"page":"a","time":0,"delta":"many"}"#, Skip::BadAmount),
            (r#"{"page":"a","time":0,"delta":true}"#, Skip::BadAmount),
            (r#"{"page":"a","time":0,"delta":1}"#, Skip::NoId),
        ] {
            let shown: String = line.chars().take(60).collect();
            assert_eq!(parse(line.as_bytes(), &names()), Err(reason), "{shown}");
        }
        assert_eq!(parse(b"{\"page\":\"\xff\"}", &names()), Err(Skip::NotUtf8));
    }
}
