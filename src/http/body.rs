//! Request bodies: media types, size limits and JSON objects with errors per field.

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use actix_web::web::{Bytes, BytesMut, Payload};
use futures_util::StreamExt;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::codes::Code;
use super::problem::Problem;
use super::state::HttpOptions;

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// One JSON text.
    Json,
    /// One JSON text per line.
    Ndjson,
}

/// Returns the format that the request declares, or JSON if it declares none.
pub(super) fn format(request: &HttpRequest) -> Result<Format, Problem> {
    let unsupported = |detail: String| Problem::new(Code::UnsupportedMediaType, detail);
    if let Some(encoding) = request.headers().get(CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(unsupported("encoded bodies are not supported; send the body without Content-Encoding".into()));
    }
    let Some(declared) = request.headers().get(CONTENT_TYPE) else { return Ok(Format::Json) };
    let text = declared.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    match essence {
        "application/json" => Ok(Format::Json),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Ok(Format::Ndjson),
        _ if essence.eq_ignore_ascii_case("application/json") => Ok(Format::Json),
        _ if essence.eq_ignore_ascii_case("application/x-ndjson") => Ok(Format::Ndjson),
        _ => Err(unsupported(format!(
            "media type '{}' is not supported; use application/json or, for events, increments and samples, application/x-ndjson",
            essence.chars().take(64).collect::<String>()
        ))),
    }
}

/// Reads a JSON body within the size and time limits of the options.
pub(super) async fn read_json(
    request: &HttpRequest,
    payload: Payload,
    options: &HttpOptions,
) -> Result<Bytes, Problem> {
    match format(request)? {
        Format::Json => read(payload, options).await,
        Format::Ndjson => Err(Problem::new(
            Code::UnsupportedMediaType,
            "NDJSON is supported for events, increments and samples only; use application/json",
        )),
    }
}

/// Reads a body within the size and time limits of the options.
pub(super) async fn read(payload: Payload, options: &HttpOptions) -> Result<Bytes, Problem> {
    let in_time = tokio::time::timeout(options.body_timeout, gather(payload, options.max_body)).await;
    in_time.unwrap_or_else(|_| {
        let seconds = options.body_timeout.as_secs_f64();
        Err(Problem::new(Code::BodyTimeout, format!("the body did not arrive within {seconds} s")))
    })
}

/// Reads at most `limit` bytes. A body that arrives in one piece is not copied.
async fn gather(mut payload: Payload, limit: usize) -> Result<Bytes, Problem> {
    let Some(first) = payload.next().await.transpose().map_err(unreadable)? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(too_large(limit));
    }
    let Some(second) = payload.next().await.transpose().map_err(unreadable)? else { return Ok(first) };
    let mut whole = BytesMut::from(first.as_ref());
    let mut piece = second;
    loop {
        if whole.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        whole.extend_from_slice(&piece);
        match payload.next().await.transpose().map_err(unreadable)? {
            Some(next) => piece = next,
            None => return Ok(whole.freeze()),
        }
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("a JSON body may have at most {limit} bytes; send more as a stream of application/x-ndjson");
    Problem::new(Code::TooLarge, detail).with("limit", limit)
}

/// Returns the problem of a body that ended before it was complete.
pub(super) fn unreadable(error: PayloadError) -> Problem {
    match error {
        PayloadError::Overflow => Problem::new(Code::TooLarge, "the body is larger than allowed"),
        other => Problem::new(Code::IncompleteBody, format!("the body is incomplete: {other}")),
    }
}

/// Returns the problem of a body that is not valid JSON.
pub(super) fn malformed(error: &serde_json::Error) -> Problem {
    Problem::new(Code::MalformedJson, format!("the body is not valid JSON: {error}"))
        .with("line", error.line())
        .with("column", error.column())
}

/// Returns the message of the error without its position, which for a field counts from the start of the field.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(at) = text.rfind(" at line ") {
        text.truncate(at);
    }
    text
}

/// A JSON object whose fields are parsed one by one, so that an error can name the field.
pub(super) struct Object<'a> {
    fields: Vec<(String, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// Parses a body that may have only the `known` fields.
    pub(super) fn parse(body: &'a [u8], known: &[&str]) -> Result<Self, Problem> {
        Self::parse_as("body", body, known)
    }

    /// Parses a nested object that may have only the `known` fields; errors refer to it by `name`.
    pub(super) fn nested(name: &str, raw: &'a RawValue, known: &[&str]) -> Result<Self, Problem> {
        Self::parse_as(name, raw.get().as_bytes(), known)
    }

    fn parse_as(name: &str, text: &'a [u8], known: &[&str]) -> Result<Self, Problem> {
        let object: Object<'a> = serde_json::from_slice(text).map_err(|error| {
            if error.is_data() {
                let (known, why) = (known.join(", "), without_position(&error));
                let shown = if name == "body" { "the body".to_owned() } else { format!("'{name}'") };
                Problem::field(name, format!("{shown} must be an object with {known}: {why}"))
            } else {
                malformed(&error)
            }
        })?;
        if let Some((unknown, _)) = object.fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(unknown_field(unknown, known));
        }
        for (at, (name, _)) in object.fields.iter().enumerate() {
            if object.fields[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::field(name, format!("the field '{name}' is given more than once")));
            }
        }
        Ok(object)
    }

    /// Refuses any given field that is not among the `known` ones.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.fields.iter().find(|(name, raw)| !known.contains(&name.as_str()) && raw.get() != "null") {
            Some((unknown, _)) => Err(unknown_field(unknown, known)),
            None => Ok(()),
        }
    }

    /// Returns the value of a field, if it is given and not null.
    fn given(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.iter().find(|(given, raw)| given == name && raw.get() != "null").map(|(_, raw)| *raw)
    }

    /// Returns whether a field is given and not null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given(name).is_some()
    }

    /// Parses a field, if it is given and not null.
    pub(super) fn optional<T: Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(raw) = self.given(name) else { return Ok(None) };
        serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|error| Problem::field(name, format!("'{name}': {}", without_position(&error))))
    }

    /// Parses a field that must be given.
    pub(super) fn required<T: Deserialize<'a>>(&self, name: &str) -> Result<T, Problem> {
        self.optional(name)?.ok_or_else(|| Problem::field(name, format!("the field '{name}' is missing")))
    }
}

fn unknown_field(name: &str, known: &[&str]) -> Problem {
    let name: String = name.chars().take(64).collect();
    let detail = format!("unknown field '{name}'; expected one of {}", known.join(", "));
    Problem::new(Code::UnknownField, detail).with("field", name)
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    // One field more than any object may have is enough to find an unknown or repeated one.
                    if fields.len() <= MAX_FIELDS {
                        fields.push(field);
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Fields).map(|fields| Object { fields })
    }
}

/// Upper bound on the number of fields of any object in the API.
const MAX_FIELDS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(body: &str) -> serde_json::Value {
        let object = Object::parse(body.as_bytes(), &["now", "deep"]);
        object
            .and_then(|object| object.required::<u8>("now"))
            .map_or_else(|problem| serde_json::to_value(problem).unwrap(), |_| "fine".into())
    }

    #[test]
    fn an_error_names_the_field_or_the_position() {
        let number = |n: u64| serde_json::Value::from(n);
        let text = |t: &str| serde_json::Value::from(t);
        for (body, code, member, value) in [
            ("{\n \"now\": 1,,}", "malformed_json", "line", number(2)),
            ("{\"now\"", "malformed_json", "column", number(6)),
            ("", "malformed_json", "line", number(1)),
            ("[]", "invalid_field", "field", text("body")),
            ("3", "invalid_field", "field", text("body")),
            ("{}", "invalid_field", "field", text("now")),
            (r#"{"now":null}"#, "invalid_field", "field", text("now")),
            (r#"{"now":"x"}"#, "invalid_field", "field", text("now")),
            (r#"{"now":1,"now":2}"#, "invalid_field", "field", text("now")),
            (r#"{"now":1,"nwo":2}"#, "unknown_field", "field", text("nwo")),
        ] {
            let problem = problem(body);
            assert_eq!((&problem["code"], &problem[member]), (&text(code), &value), "{body}");
        }
        assert_eq!(problem(r#" {"now":1,"deep":null} "#), "fine");
    }

    #[test]
    fn an_error_names_the_nested_object() {
        let body = Object::parse(br#"{"deep":5}"#, &["deep"]).unwrap();
        let problem = Object::nested("deep", body.required("deep").unwrap(), &["now"]).err().unwrap();
        let problem = serde_json::to_value(problem).unwrap();
        assert_eq!(problem["field"], "deep");
        assert_eq!(
            problem["detail"],
            "'deep' must be an object with now: invalid type: integer `5`, expected an object"
        );
    }
}
