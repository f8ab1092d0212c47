//! The last step of every operation: request id, caching and compression of its response.

use std::collections::HashMap;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::body::{BodyStream, BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue, VARY};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use futures_util::stream;

use super::request_id::{RequestId, X_REQUEST_ID};
use super::state::HttpOptions;
use super::{caching, compression};

/// How the responses of a path are delivered.
pub(super) struct Delivery {
    /// Whether responses describe the present only, so that they must not be cached.
    is_live: bool,
    /// Whether responses have the format that `Accept` asks for.
    has_formats: bool,
    /// Whether responses depend on who asks.
    depends_on_key: bool,
    max_age: Duration,
    /// Exceptions from `max_age`, by board.
    max_ages: HashMap<String, Duration>,
}

impl Delivery {
    /// Returns the delivery of the responses of a path template.
    pub(super) fn new(path: &str, options: &HttpOptions) -> Self {
        let max_ages = options.max_ages.iter().map(|(board, age)| (board.as_str().to_owned(), *age));
        Self {
            is_live: Self::is_live(path),
            has_formats: path == "/v1/boards/{board}/rankings",
            depends_on_key: path.starts_with("/v1/"),
            max_age: if path.starts_with("/v1/") { options.max_age } else { Duration::ZERO },
            max_ages: if path.contains("{board}") { max_ages.collect() } else { HashMap::new() },
        }
    }

    /// Returns whether the responses of a path describe the present only.
    pub(super) fn is_live(path: &str) -> bool {
        matches!(path, "/healthz" | "/readyz" | "/metrics" | "/v1/stream" | "/v1/boards/{board}/stream")
    }

    /// Adds the headers of caching and of the request id, answers 304 where the client has the body already, and
    /// compresses the body.
    pub(super) fn finish(&self, response: ServiceResponse, id: &RequestId) -> ServiceResponse {
        let (request, mut response) = response.into_parts();
        response.headers_mut().insert(X_REQUEST_ID, id.header_value().clone());
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        let is_ok = response.status() == StatusCode::OK;
        if self.has_formats {
            response.headers_mut().append(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        } else if is_ok {
            response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if is_get && self.depends_on_key {
            response.headers_mut().append(VARY, HeaderValue::from_static("Authorization"));
        }
        if self.is_live {
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        if !is_ok {
            return ServiceResponse::new(request, response);
        }
        let (response, body) = response.into_parts();
        let response = match body.try_into_bytes() {
            Err(body) => {
                // For HEAD a stream is dropped, because the server would read it to its end and send nothing of it.
                let body = if *request.method() == Method::HEAD { no_pieces() } else { body };
                // A stream compresses its pieces itself, or does not: an encoder would delay events.
                response.set_body(body)
            }
            Ok(body) => {
                let mut response = response.set_body(body);
                if is_get && !self.is_live {
                    response = caching::conditional(&request, response, self.max_age_of(&request));
                }
                compression::compress(&request, response).map_into_boxed_body()
            }
        };
        ServiceResponse::new(request, response)
    }

    fn max_age_of(&self, request: &HttpRequest) -> Duration {
        let of_board = request.match_info().get("board").and_then(|board| self.max_ages.get(board));
        of_board.copied().unwrap_or(self.max_age)
    }
}

/// Returns a stream that ends at once.
fn no_pieces() -> BoxBody {
    BoxBody::new(BodyStream::new(stream::empty::<Result<Bytes, std::convert::Infallible>>()))
}
