//! The response to a refused request: `application/problem+json` as defined by RFC 9457.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CACHE_CONTROL, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::codes::Code;
use super::request_id::{RequestId, X_REQUEST_ID};
use super::schemas::{self, string};
use crate::access::without_secrets;

/// The path of the pages that describe codes, before the code.
pub(super) const PROBLEMS: &str = "/problems/";

/// Media type of every problem.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// A refused request: a [`Code`], a detail for people and members for programs.
///
/// Boxed to keep the `Result`s that contain it small.
#[derive(Clone, Debug)]
pub struct Problem(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: Code,
    detail: String,
    members: Vec<(String, Value)>,
    retry_after: Option<Duration>,
    /// Value of the `Allow` header.
    allow: Option<String>,
}

impl Problem {
    /// Creates a problem. The detail names what is wrong and what is allowed.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, detail: detail.into(), members: Vec::new(), retry_after: None, allow: None }))
    }

    /// Creates a problem about an invalid field of the body or parameter of the query.
    pub fn field(field: &str, detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidField, detail).with("field", field)
    }

    /// Creates the problem of a path without operations.
    pub(super) fn not_found(path: &str) -> Self {
        let path: String = path.chars().take(128).collect();
        Self::new(Code::NotFound, format!("path {path} does not exist; /openapi.json describes the API"))
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.0.members.push((member.to_owned(), value.into()));
        self
    }

    /// Asks the client to retry after the delay, which is rounded up to whole seconds, at least one.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// Does the same if there is a delay.
    #[must_use]
    pub(super) fn retry_after_if(self, delay: Option<Duration>) -> Self {
        match delay {
            Some(delay) => self.retry_after(delay),
            None => self,
        }
    }

    /// Sets the `Allow` header to the methods of the path.
    #[must_use]
    pub(super) fn allow(mut self, methods: &str) -> Self {
        self.0.allow = Some(methods.to_owned());
        self
    }

    /// Returns the value of a member.
    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        self.0.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Returns the stable code.
    pub fn code(&self) -> Code {
        self.0.code
    }
}

/// Writes the members of RFC 9457 first, then those of the code.
impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Inner { code, detail, members, retry_after, .. } = &*self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("{PROBLEMS}{}", code.as_str()))?;
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
    /// Logs an internal error under the id of the request and returns the redacted problem; returns any other problem
    /// unchanged.
    ///
    /// Call it once, just before the problem is written to a response.
    pub(super) fn redacted(&self, id: &RequestId) -> Cow<'_, Problem> {
        if self.0.code != Code::Internal {
            return Cow::Borrowed(self);
        }
        let (trace_id, parent_id) = (id.trace_id(), id.parent_id());
        tracing::error!(request_id = id.as_str(), trace_id, parent_id, detail = %self.0.detail, "a request failed with an internal error");
        let detail = format!("internal error; the log of this instance has the cause under request_id {}", id.as_str());
        Cow::Owned(Problem::new(Code::Internal, detail))
    }

    /// Returns whether the problem says when to retry.
    pub(super) fn has_retry_after(&self) -> bool {
        self.0.retry_after.is_some()
    }

    fn text(&self) -> String {
        // Serializing strings and numbers under string keys cannot fail.
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
        if self.status_code() == StatusCode::UNAUTHORIZED {
            response.insert_header((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rolltop\"")));
        }
        let id = RequestId::current();
        response.insert_header((X_REQUEST_ID, id.header_value().clone()));
        response.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")));
        let (code, problem) = (self.0.code.as_str(), self.redacted(&id).into_owned());
        let (trace_id, parent_id) = (id.trace_id(), id.parent_id());
        let detail = without_secrets(&problem.0.detail);
        tracing::debug!(request_id = id.as_str(), trace_id, parent_id, code, %detail, "a request is refused");
        response.body(problem.with("request_id", id.as_str()).text())
    }
}

impl From<Problem> for HttpResponse {
    fn from(problem: Problem) -> Self {
        problem.error_response()
    }
}

/// Describes the members that every problem has, and those that several codes add.
impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        let kind = string("Identifies the kind of problem: the path of a page that says what it means and what to do.")
            .format(Some(SchemaFormat::Custom("uri-reference".to_owned())))
            .examples(["/problems/unknown_board"]);
        let integer = |format, description: &str| {
            schemas::of([Type::Integer], description).format(Some(SchemaFormat::KnownFormat(format)))
        };
        let status = integer(KnownFormat::Int32, "HTTP status code.").minimum(Some(400)).maximum(Some(599));
        let integer = |description| integer(KnownFormat::Int64, description);
        let keys = ArrayBuilder::new()
            .items(ObjectBuilder::new().schema_type(Type::String))
            .description(Some("The keys in which a definition differs from that of the existing board."));
        ObjectBuilder::new()
            .description(Some("A refused request, as defined by RFC 9457. Further members depend on the code."))
            .property("type", kind)
            .required("type")
            .property("title", string("Summary of the kind of problem, for people."))
            .required("title")
            .property("status", status)
            .required("status")
            .property("detail", string("This occurrence, for people: what is wrong and what is allowed."))
            .required("detail")
            .property("code", schemas::code())
            .required("code")
            .property(
                "request_id",
                string("The id of the request, also in the header `X-Request-Id`: that of the client, or a new one."),
            )
            .property("field", string("The field or parameter at fault."))
            .property("column", integer("The column of the error in the text of a metric, a rule or a line, from 1."))
            .property("minimum", integer("The smallest value or number of elements."))
            .property("maximum", integer("The largest value or number of elements."))
            .property("limit", integer("The limit that the request exceeds."))
            .property("retry_after", integer("The number of seconds after which to try again."))
            .property("board", string("The board that the problem is about."))
            .property("keys", keys)
            .into()
    }
}

impl ToSchema for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_has_code_members_and_retry_after() {
        let problem = Problem::field("limit", "too many").retry_after(Duration::from_millis(1_200));
        assert_eq!(
            problem.text(),
            concat!(
                r#"{"type":"/problems/invalid_field","title":"A field is invalid","status":422,"#,
                r#""detail":"too many","code":"invalid_field","field":"limit","retry_after":2}"#
            )
        );
        assert_eq!(problem.error_response().headers().get(RETRY_AFTER).map(|v| v.as_bytes()), Some(&b"2"[..]));
    }

    #[actix_web::test]
    async fn an_internal_error_is_redacted() {
        let problem = Problem::new(Code::Internal, "secret of the store");
        let response = problem.error_response();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = actix_web::body::to_bytes(response.into_body()).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(!body.to_string().contains("secret"), "{body}");
        assert!(body["detail"].as_str().unwrap().contains(body["request_id"].as_str().unwrap()));
    }
}
