//! JSON responses.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use memchr::memchr2_iter;
use serde::Serialize;

use super::codes::Code;
use super::problem::Problem;
use crate::board::{Scale, Shown, Tie, Value};

/// Formats a value in the unit of its board; `None` if the metric has no value.
pub(super) fn score(scale: Scale, value: impl Into<Option<Value>>) -> Option<Shown> {
    value.into().map(|value| value.shown(scale))
}

/// Returns what orders a value among those with the same score, if its board has such.
pub(super) fn tie(scale: Scale, value: impl Into<Option<Value>>) -> Option<Tie> {
    value.into().and_then(|value| value.tie(scale))
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns a response with status 200 and a JSON body.
pub(super) fn json(body: &impl Serialize) -> HttpResponse {
    json_with(StatusCode::OK, body)
}

/// Returns a response with a JSON body.
pub(super) fn json_with(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    match to_json(body) {
        Ok(text) => json_text(status, text),
        Err(problem) => problem.into(),
    }
}

/// Returns a response about something that a request has defined: with status 201 and its path if it is new, else 200.
pub(super) fn defined(is_new: bool, path: &str, body: &impl Serialize) -> HttpResponse {
    let mut response = json_with(if is_new { StatusCode::CREATED } else { StatusCode::OK }, body);
    if is_new && let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

/// Serializes a body as JSON.
pub(super) fn to_json(body: &impl Serialize) -> Result<Vec<u8>, Problem> {
    // Enough for most responses; a long page grows the buffer twice.
    let mut text = Vec::with_capacity(1_024);
    append_json(&mut text, body)?;
    Ok(text)
}

/// Serializes a value as JSON at the end of a text.
pub(super) fn append_json(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Problem> {
    serde_json::to_writer(text, value)
        .map_err(|error| Problem::new(Code::Internal, format!("a response could not be serialized as JSON: {error}")))
}

/// Serializes a value as JSON at the end of a text, as one line for every reader: some take U+0085, U+2028 and U+2029
/// for the end of a line, which JSON allows unescaped in strings.
pub(super) fn append_line(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Problem> {
    let start = text.len();
    append_json(text, value)?;
    escape_line_ends(text, start);
    Ok(())
}

/// Escapes the characters that end a line for some readers in JSON from `start` on. JSON has them in strings only.
pub(super) fn escape_line_ends(text: &mut Vec<u8>, start: usize) {
    let escape_of = |rest: &[u8]| match rest {
        [0xC2, 0x85, ..] => Some((2, br"\u0085")),
        [0xE2, 0x80, 0xA8, ..] => Some((3, br"\u2028")),
        [0xE2, 0x80, 0xA9, ..] => Some((3, br"\u2029")),
        _ => None,
    };
    let found = memchr2_iter(0xC2, 0xE2, &text[start..]).map(|at| start + at);
    let found: Vec<_> = found.filter_map(|at| escape_of(&text[at..]).map(|escape| (at, escape))).collect();
    if found.is_empty() {
        return;
    }
    let rest = text.split_off(start);
    let mut done = start;
    for (at, (len, escape)) in found {
        text.extend_from_slice(&rest[done - start..at - start]);
        text.extend_from_slice(escape);
        done = at + len;
    }
    text.extend_from_slice(&rest[done - start..]);
}

/// Returns a response whose body is already serialized as JSON.
pub(super) fn json_text(status: StatusCode, text: Vec<u8>) -> HttpResponse {
    HttpResponse::build(status).insert_header((CONTENT_TYPE, JSON)).body(text)
}

/// Returns a duration in whole milliseconds.
pub(super) fn millis(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// Returns 100 × (total − better) / total, rounded down to four decimals, so that it is 100 only for the first rank.
pub(super) fn percentile(total: u64, better: u64) -> f64 {
    let share = u128::from(total.saturating_sub(better)) * 1_000_000 / u128::from(total.max(1));
    share as f64 / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_no_character_that_ends_a_line() {
        for subject in [
            "plain",
            "",
            "\u{2028}",
            "a\u{85}b\u{2028}\u{2029}c",
            "caf\u{e9} \u{a0}\u{2027}\u{202a} \u{65e5}\u{672c}\u{2028}",
            "\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\"\\\u{2029}\\",
        ] {
            let mut text = "\u{2028}".as_bytes().to_vec();
            append_line(&mut text, &subject).unwrap();
            let line = std::str::from_utf8(&text[3..]).unwrap();
            // Those at which Python's `splitlines` splits.
            assert!(!line.contains([
                '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'
            ]));
            assert_eq!(serde_json::from_str::<String>(line).unwrap(), subject);
            assert!(text.starts_with("\u{2028}".as_bytes()), "what was there before is left as it is");
        }
    }

    #[test]
    fn percentiles() {
        assert_eq!(percentile(1, 0), 100.0);
        assert_eq!(percentile(4, 3), 25.0);
        assert_eq!(percentile(3, 1), 66.6666);
        assert_eq!(percentile(10_000_000, 1), 99.9999);
    }
}
