//! What a refused request is answered with: `application/problem+json` as RFC 9457 has it.

use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use super::codes::Code;
use crate::board::{FieldFault, Timestamp};
use crate::service::ServiceError;
use crate::store::StoreError;

/// The media type of every error.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// A refused request: a [`Code`], a sentence for a person, and members for a program.
///
/// Boxed, because results that carry it are mostly successes.
#[derive(Debug)]
pub struct Problem(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    detail: String,
    members: Vec<(String, Value)>,
    retry_after: Option<Duration>,
    /// The methods a path does have, for `Allow`.
    allow: Option<String>,
}

impl Problem {
    /// A problem whose detail names the thing and the way out.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, detail: detail.into(), members: Vec::new(), retry_after: None, allow: None }))
    }

    /// A field of the body or a parameter of the query that is wrong.
    pub fn field(field: &str, detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidField, detail).with("field", field)
    }

    /// The same with one more member.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.0.members.push((member.to_owned(), value.into()));
        self
    }

    /// The same, asking the client to come back after so long: in whole seconds, one at least.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// The same, naming the methods that the path has.
    #[must_use]
    pub(super) fn allow(mut self, methods: &str) -> Self {
        self.0.allow = Some(methods.to_owned());
        self
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.0.code
    }
}

/// The members in the order of RFC 9457, then those of the code.
impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Inner { code, detail, members, retry_after, .. } = &*self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("urn:rolltop:problem:{}", code.as_str()))?;
        map.serialize_entry("title", code.title())?;
        map.serialize_entry("status", &code.status().as_u16())?;
        map.serialize_entry("detail", detail)?;
        map.serialize_entry("code", code)?;
        for (member, value) in members {
            map.serialize_entry(member, value)?;
        }
        if let Some(delay) = retry_after {
            map.serialize_entry("retry_after", &whole_seconds(*delay))?;
        }
        map.end()
    }
}

impl Problem {
    /// What a client is told instead of an internal failure: where to find it in the log, in which it is written here,
    /// once, where it leaves the house. `None` for all that a client may know.
    pub(super) fn concealed(&self) -> Option<Problem> {
        (self.0.code == Code::Internal).then(|| {
            let id = format!("{:016x}", rand::random::<u64>());
            tracing::error!(error_id = %id, detail = %self.0.detail, "a request failed for no fault of its own");
            let detail = format!("the log of this instance says more under error_id {id}");
            Problem::new(Code::Internal, detail).with("error_id", id)
        })
    }

    /// Whether it says when to try again.
    pub(super) fn asks_to_retry(&self) -> bool {
        self.0.retry_after.is_some()
    }

    fn text(&self) -> String {
        // Texts and numbers in a map of texts: there is nothing that could fail to be JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn whole_seconds(delay: Duration) -> u64 {
    let rounded_up = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    rounded_up.max(1)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.detail)
    }
}

impl std::error::Error for Problem {}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.0.code.status()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        response.content_type(PROBLEM_JSON);
        if let Some(delay) = self.0.retry_after {
            response.insert_header((RETRY_AFTER, whole_seconds(delay)));
        }
        if let Some(methods) = &self.0.allow {
            response.insert_header((ALLOW, methods.as_str()));
        }
        match self.concealed() {
            Some(concealed) => response.body(concealed.text()),
            None => response.body(self.text()),
        }
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let detail = error.to_string();
        match error {
            ServiceError::UnknownBoard(name) => Problem::new(Code::UnknownBoard, detail).with("board", name.as_str()),
            ServiceError::Conflict { existing, keys } => Problem::new(Code::BoardConflict, detail)
                .with("board", existing.name().as_str())
                .with("keys", keys)
                .with("existing", json!(existing.definition())),
            ServiceError::Definition(error) => Problem::field(error.field(), detail),
            ServiceError::NotRanked(name) => Problem::new(Code::NotRanked, detail).with("board", name.as_str()),
            ServiceError::NoValues(name) => Problem::new(Code::NoValues, detail).with("board", name.as_str()),
            ServiceError::AsOfUnsupported { board, .. } => {
                Problem::new(Code::AsOfUnsupported, detail).with("board", board.as_str())
            }
            ServiceError::EdgeUnsupported { board, .. } => {
                Problem::new(Code::EdgeUnsupported, detail).with("board", board.as_str())
            }
            ServiceError::TooLong { window, .. } => {
                Problem::new(Code::BeyondWindow, detail).with("field", "last").with("maximum", window.to_string())
            }
            ServiceError::NotKept { floor, .. } => {
                Problem::new(Code::BeyondWindow, detail).with("field", "as_of").with("floor", floor.to_string())
            }
            ServiceError::Misasked { field, .. } => Problem::field(field, detail),
            ServiceError::NoBoard { metric, suggestion } => {
                let problem = Problem::new(Code::NoBoard, detail).with("metric", metric.to_string());
                match suggestion {
                    Some((name, definition)) => problem.with("board", name).with("definition", json!(definition)),
                    None => problem,
                }
            }
            ServiceError::UnknownRule(name) => Problem::new(Code::UnknownRule, detail).with("rule", name),
            ServiceError::Field(fault) => {
                let code = match fault {
                    FieldFault::Missing { .. } => Code::MissingField,
                    FieldFault::Invalid { .. } | FieldFault::Amount { .. } => Code::InvalidField,
                };
                Problem::new(code, detail).with("field", format!("fields.{}", fault.field()))
            }
            ServiceError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let (detail, retry_after) = (error.to_string(), error.retry_after());
        let time = |t: Timestamp| t.to_string();
        let problem = match error {
            StoreError::BoardChanged => Problem::new(Code::BoardChanged, detail),
            StoreError::BeyondWindow { floor } => Problem::new(Code::BeyondWindow, detail).with("floor", time(floor)),
            StoreError::ClockBackward { now } => Problem::new(Code::ClockBackward, detail).with("now", time(now)),
            StoreError::ClockNotSimulated => Problem::new(Code::NotFound, detail),
            StoreError::Overloaded { .. } => Problem::new(Code::Overloaded, detail),
            StoreError::Unreachable { .. } => Problem::new(Code::StoreUnreachable, detail),
            StoreError::TimedOut { .. } => Problem::new(Code::StoreTimeout, detail),
            StoreError::ReadOnly { .. } => Problem::new(Code::StoreReadOnly, detail),
            StoreError::ClockDoubted { .. } => Problem::new(Code::ClockDoubted, detail),
            StoreError::Unsupported { .. } => Problem::new(Code::Unsupported, detail),
            StoreError::BackupFailed { .. } => Problem::new(Code::BackupFailed, detail),
            StoreError::Unreadable { name, .. } => Problem::new(Code::BoardUnreadable, detail).with("board", name),
            StoreError::Emptied { .. } => Problem::new(Code::NotReady, detail),
            StoreError::ClockModeMismatch { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Setup { .. }
            | StoreError::Backend { .. } => Problem::new(Code::Internal, detail),
        };
        match retry_after {
            Some(delay) => problem.retry_after(delay),
            None => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_what_where_and_when_to_come_back() {
        let problem = Problem::field("limit", "too many").retry_after(Duration::from_millis(1_200));
        assert_eq!(
            problem.text(),
            concat!(
                r#"{"type":"urn:rolltop:problem:invalid_field","title":"A field is invalid","status":422,"#,
                r#""detail":"too many","code":"invalid_field","field":"limit","retry_after":2}"#
            )
        );
        assert_eq!(problem.error_response().headers().get(RETRY_AFTER).map(|v| v.as_bytes()), Some(&b"2"[..]));
    }

    #[actix_web::test]
    async fn an_internal_failure_keeps_its_insides_to_the_log() {
        let problem = Problem::from(StoreError::Backend { source: "secret of the house".into() });
        let response = problem.error_response();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = actix_web::body::to_bytes(response.into_body()).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(!body.to_string().contains("secret"), "{body}");
        assert!(body["detail"].as_str().unwrap().contains(body["error_id"].as_str().unwrap()));
    }
}
