//! JSON responses.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;

use super::codes::Code;
use super::problem::Problem;
use crate::board::{Board, Shown, Value};

/// Formats a value with the decimals of the board; `None` if the metric has no value.
pub(super) fn score(board: &Arc<Board>, value: impl Into<Option<Value>>) -> Option<Shown> {
    value.into().map(|value| value.shown(board.decimals()))
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
    fn percentiles() {
        assert_eq!(percentile(1, 0), 100.0);
        assert_eq!(percentile(4, 3), 25.0);
        assert_eq!(percentile(3, 1), 66.6666);
        assert_eq!(percentile(10_000_000, 1), 99.9999);
    }
}
