//! What answers have in common: they are JSON, and they say which window they are about.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use utoipa::ToSchema;

use super::codes::Code;
use super::openapi::time_schema;
use super::problem::Problem;
use crate::board::{Board, Frame, Shown, Timestamp, Value};

/// The exact bounds of a window: `from` is in it, `to` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct WindowBounds {
    /// Start of the oldest slot that counts.
    #[schema(schema_with = time_schema)]
    pub(super) from: Timestamp,
    /// End of the newest slot, in the future: the window rolls on when the clock reaches it.
    #[schema(schema_with = time_schema)]
    pub(super) to: Timestamp,
    /// How many slots it has.
    #[schema(minimum = 1, maximum = 2001)]
    pub(super) slots: u32,
}

impl WindowBounds {
    /// The board's whole window.
    pub(super) fn of(board: &Board, frame: &Frame) -> Self {
        Self { from: frame.window.floor, to: frame.window.end, slots: board.slots() }
    }
}

/// A value as the board shows it; null where its metric says nothing.
pub(super) fn score(board: &Arc<Board>, value: impl Into<Option<Value>>) -> Option<Shown> {
    value.into().map(|value| value.shown(board.decimals()))
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// 200 with this body.
pub(super) fn json(body: &impl Serialize) -> HttpResponse {
    json_with(StatusCode::OK, body)
}

/// This status with this body.
pub(super) fn json_with(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    match text(body) {
        Ok(text) => written(status, text),
        Err(problem) => problem.into(),
    }
}

/// The JSON text of a body.
pub(super) fn text(body: &impl Serialize) -> Result<Vec<u8>, Problem> {
    // Room for most answers at once; a long page grows it twice.
    let mut text = Vec::with_capacity(1_024);
    match serde_json::to_writer(&mut text, body) {
        Ok(()) => Ok(text),
        Err(error) => Err(Problem::new(Code::Internal, format!("an answer could not be written as JSON: {error}"))),
    }
}

/// This status with a body that is JSON text.
pub(super) fn written(status: StatusCode, text: Vec<u8>) -> HttpResponse {
    HttpResponse::build(status).insert_header((CONTENT_TYPE, JSON)).body(text)
}

impl From<Problem> for HttpResponse {
    fn from(problem: Problem) -> Self {
        actix_web::ResponseError::error_response(&problem)
    }
}

/// Wall time as answers show it.
pub(super) fn millis(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
