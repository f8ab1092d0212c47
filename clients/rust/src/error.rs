//! The error of all calls.

use std::fmt;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::{Map, Value};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// A call that failed: refused by the service, or not answered.
#[derive(Debug)]
pub struct Error(Box<Parts>);

#[derive(Debug)]
struct Parts {
    code: String,
    detail: String,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    problem: Map<String, Value>,
    source: Option<reqwest::Error>,
}

/// Codes with which the service did nothing, and asks to send again.
const NOTHING_DONE: [&str; 4] = ["incomplete_body", "connection_ended", "board_changed", "board_frozen"];

impl Error {
    /// Returns the code, which is stable: that of the service's problem, or `unreachable`, `timed_out` or `interrupted`
    /// if there was no answer, `unexpected_answer` if it was not one of the service, `invalid_name` for a name that no
    /// request can carry, `invalid_item` for an item that cannot be sent, `invalid_setting` for a setting of the client
    /// that is wrong, `closed` for a [`Sender`](crate::Sender) that was closed.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// Returns what is wrong, for people.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns the HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Returns the id under which the service logs the request.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns the time after which the service asks to try again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the members of the problem (RFC 9457) that the service answered; none if it did not.
    pub fn problem(&self) -> &Map<String, Value> {
        &self.0.problem
    }

    /// Returns whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self.0.status {
            None => matches!(self.code(), "unreachable" | "timed_out" | "interrupted"),
            // Proxies have codes of their own from 500 on.
            Some(200 | 408 | 425 | 429 | 500..) => true,
            Some(_) => NOTHING_DONE.contains(&self.code()),
        }
    }

    /// Returns whether the request may have been carried out all the same.
    pub fn is_unknown(&self) -> bool {
        match self.0.status {
            None => matches!(self.code(), "timed_out" | "interrupted"),
            // A proxy may answer 503 although the service has the request.
            Some(503) => self.0.problem.is_empty() || self.code() == "store_timeout",
            Some(status) => matches!(status, 200 | 408 | 500..),
        }
    }

    fn new(code: &str, detail: String) -> Self {
        Self(Box::new(Parts {
            code: code.to_owned(),
            detail,
            status: None,
            request_id: None,
            retry_after: None,
            problem: Map::new(),
            source: None,
        }))
    }

    pub(crate) fn invalid_setting(detail: String) -> Self {
        Self::new("invalid_setting", detail)
    }

    pub(crate) fn invalid_name(detail: String) -> Self {
        Self::new("invalid_name", detail)
    }

    pub(crate) fn invalid_item(detail: String) -> Self {
        Self::new("invalid_item", detail)
    }

    pub(crate) fn closed() -> Self {
        Self::new("closed", "the sender is closed".to_owned())
    }

    pub(crate) fn timed_out(after: Duration) -> Self {
        Self::new("timed_out", format!("no answer in {} s", after.as_secs_f64()))
    }

    pub(crate) fn interrupted(detail: &str) -> Self {
        Self::new("interrupted", detail.to_owned())
    }

    /// Returns the error of a success that is not an answer of the service, such as a page of a proxy.
    pub(crate) fn unexpected(status: u16, detail: String) -> Self {
        let mut error = Self::new("unexpected_answer", detail);
        error.0.status = Some(status);
        error
    }

    /// Returns the error of an answer that is not a success.
    pub(crate) fn of_answer(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        // What is no object is a page of a proxy in between.
        let mut error = Self::of_problem(serde_json::from_slice(body).unwrap_or_default());
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if error.0.problem.is_empty() {
            error.0.code = format!("http_{status}");
            error.0.detail = format!("status {status}, and the body is not an answer of rolltop");
        }
        error.0.status = Some(status);
        error.0.request_id = text("x-request-id");
        // A proxy may give a date, which is not worth the trouble.
        error.0.retry_after = text(RETRY_AFTER.as_str()).and_then(|text| text.parse().ok()).map(Duration::from_secs);
        error
    }

    /// Returns the error of a problem, such as one in a stream.
    pub(crate) fn of_problem(problem: Map<String, Value>) -> Self {
        let text = |name: &str| problem.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut error = Self::new("", text("detail").or_else(|| text("title")).unwrap_or_default());
        error.0.code = text("code").unwrap_or_default();
        error.0.status = problem.get("status").and_then(Value::as_u64).and_then(|status| status.try_into().ok());
        error.0.request_id = text("request_id");
        error.0.problem = problem;
        error
    }
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        let code = match () {
            () if error.is_builder() => "invalid_setting",
            () if error.is_connect() => "unreachable",
            () if error.is_timeout() => "timed_out",
            () => "interrupted",
        };
        let url = error.url().map_or("the service", reqwest::Url::as_str);
        let mut detail = match error.is_connect() {
            true => format!("{url} does not respond"),
            false => format!("{url} did not answer whole"),
        };
        // The causes say what is wrong: that a certificate is not trusted, or who refused the connection.
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            detail = format!("{detail}: {error}");
            cause = error.source();
        }
        let mut made = Self::new(code, detail);
        made.0.source = Some(error);
        made
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.0.detail, self.0.code)?;
        self.request_id().map_or(Ok(()), |id| write!(f, " (request {id})"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The texts of the causes are in `detail`.
        self.0.source.as_ref().and_then(std::error::Error::source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_an_answer_says_what_the_service_says() {
        let headers = HeaderMap::from_iter([
            (RETRY_AFTER, "7".parse().unwrap()),
            ("x-request-id".parse::<reqwest::header::HeaderName>().unwrap(), "r-1".parse().unwrap()),
        ]);
        let body = br#"{"code":"overloaded","status":503,"title":"Too much","detail":"too many requests wait"}"#;
        let error = Error::of_answer(503, &headers, body);
        assert_eq!(error.to_string(), "too many requests wait [overloaded] (request r-1)");
        assert_eq!((error.status(), error.retry_after()), (Some(503), Some(Duration::from_secs(7))));
        assert_eq!(error.problem()["title"], "Too much");
        assert!(error.is_transient() && !error.is_unknown());
    }

    #[test]
    fn pages_of_proxies_and_dates_are_understood() {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, "Fri, 31 Dec 1999 23:59:59 GMT".parse().unwrap())]);
        let error = Error::of_answer(502, &headers, b"<html>Bad gateway</html>");
        assert_eq!((error.code(), error.retry_after()), ("http_502", None));
        assert!(error.is_transient() && error.is_unknown());
    }

    #[test]
    fn what_may_succeed_later_is_told_from_what_will_not() {
        let of = |status: u16, code: &str| {
            Error::of_answer(status, &HeaderMap::new(), format!("{{\"code\":\"{code}\"}}").as_bytes())
        };
        assert!(!of(404, "unknown_board").is_transient());
        assert!(of(409, "board_frozen").is_transient() && !of(409, "board_frozen").is_unknown());
        assert!(of(503, "store_timeout").is_unknown());
        let page = |status| Error::of_answer(status, &HeaderMap::new(), b"<html>");
        assert!(page(503).is_unknown() && page(522).is_unknown() && page(522).is_transient());
        assert!(!Error::invalid_name("x".into()).is_transient());
    }
}
