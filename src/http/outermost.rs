//! The layer around the whole application: what holds for every request and response, whichever part of the program or
//! of a library handles it.

use std::cell::Cell;
use std::future::ready;

use actix_web::dev::{Extensions, Service, ServiceRequest, ServiceResponse};
use actix_web::http::ConnectionType;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use actix_web::{Error, HttpResponse};
use futures_util::future::Either;

use super::codes::Code;
use super::early_answer::Held;
use super::problem::Problem;
use super::request_id::RequestId;

/// What a page may load that has no policy of its own: nothing.
const LOADS_NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The policy in addition to that of a page. A browser enforces each of several policies.
const NOT_FRAMED: HeaderValue = HeaderValue::from_static("frame-ancestors 'none'");

/// Maximum length of the target of a request in bytes: several times as long as any operation needs.
const MAX_TARGET: usize = 8 << 10;

/// What is known of a connection between its requests.
#[derive(Default)]
struct Connection {
    /// Whether the last request, or the response to it, says that no request follows.
    is_ending: Cell<bool>,
}

/// Prepares what is known of a new connection.
pub(super) fn prepare(data: &mut Extensions) {
    data.insert(Connection::default());
}

/// Wraps the whole application: `App::new().wrap_fn(http::outermost)`.
pub fn outermost<S>(
    mut request: ServiceRequest,
    application: &S,
) -> impl Future<Output = Result<ServiceResponse, Error>> + use<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse, Error = Error>,
{
    let (refusal, is_last, held) = (refusal(&request), is_last(&request), Held::of(&mut request));
    let response = match refusal {
        None => Either::Left(application.call(request)),
        // Made within the scope, because the response to a problem names the request.
        Some(problem) => {
            let id = RequestId::of(request.headers());
            let response = id.sync_scope(|| HttpResponse::from(problem));
            Either::Right(ready(Ok(request.into_response(response))))
        }
    };
    async move {
        let mut response = response.await?;
        protect(response.headers_mut());
        if is_last {
            // The server would say what the newest request on the connection asks for, which may be one that follows.
            response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
        }
        Ok(match held {
            Some(held) => held.until_sent(response),
            None => response,
        })
    }
}

/// Returns whether the connection is to be closed after the response, and remembers it for requests that follow.
fn is_last(request: &ServiceRequest) -> bool {
    let connection = request.conn_data::<Connection>();
    let is_last = request.head().connection_type() == ConnectionType::Close;
    if let Some(connection) = connection
        && is_last
    {
        connection.is_ending.set(true);
    }
    is_last || connection.is_some_and(|connection| connection.is_ending.get())
}

/// Returns the problem of a request that no part of the application handles.
fn refusal(request: &ServiceRequest) -> Option<Problem> {
    // The server reads ahead, and would execute what it finds.
    if request.conn_data::<Connection>().is_some_and(|connection| connection.is_ending.get()) {
        let detail =
            "the request was not executed, because the one before it on the connection has 'Connection: close'";
        return Some(Problem::new(Code::ConnectionEnded, detail));
    }
    let len = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    (len > MAX_TARGET).then(|| {
        let detail = format!("path and query have {len} bytes; at most {MAX_TARGET} are allowed");
        Problem::new(Code::UriTooLong, detail).with("limit", MAX_TARGET)
    })
}

/// Forbids that a page of another origin shows the response in a frame, where its user could be led to click on it, and
/// that a browser guesses a media type.
fn protect(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = if headers.contains_key(CONTENT_SECURITY_POLICY) { NOT_FRAMED } else { LOADS_NOTHING };
    headers.append(CONTENT_SECURITY_POLICY, policy);
}
