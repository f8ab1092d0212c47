//! The body of a request whose caller has a token for one item: the item that the token allows, or none.

use crate::access::{Caller, PinError};
use crate::http::body::{Body, Format};
use crate::http::call::Call;
use crate::http::codes::Code;
use crate::http::large;
use crate::http::problem::Problem;

/// Returns the format that the request declares. A token for one item is not for a stream.
pub(in crate::http) fn format(call: &Call) -> Result<Format, Problem> {
    match (call.format()?, call.caller.pin()) {
        (Format::Ndjson, Some(_)) => Err(forbidden("the token is for one item; send it as application/json")),
        (format, _) => Ok(format),
    }
}

/// Returns the item that the token of the caller allows, completed with what is free in the body. Without such a token
/// the body stays as it is.
pub(in crate::http) fn complete(caller: &Caller, body: Body) -> Result<Body, Problem> {
    match caller.pin() {
        None => Ok(body),
        // It is read on the thread that serves other requests, too.
        Some(_) if body.len() > large::BODY => {
            let detail = format!("the item of a token has at most {} bytes", large::BODY);
            Err(Problem::new(Code::TooLarge, detail).with("limit", large::BODY))
        }
        Some(pin) => match pin.complete(&body) {
            Ok(text) => Ok(body.with_text(text)),
            Err(PinError { field, detail }) if field.is_empty() => Err(forbidden(&detail)),
            Err(PinError { field, detail }) => Err(forbidden(&detail).with("field", field)),
        },
    }
}

/// Returns the problem of what a token does not allow.
pub(super) fn forbidden(detail: &str) -> Problem {
    Problem::new(Code::Forbidden, detail)
}
