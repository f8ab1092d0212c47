//! The layer around the whole application: what holds for every response, whichever part of the program or of a library
//! makes it.

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, X_CONTENT_TYPE_OPTIONS};

/// What a page may load that has no policy of its own: nothing.
const LOADS_NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The policy in addition to that of a page. A browser enforces each of several policies.
const NOT_FRAMED: HeaderValue = HeaderValue::from_static("frame-ancestors 'none'");

/// Wraps the whole application: `App::new().wrap_fn(http::outermost)`.
pub fn outermost<S, B>(
    request: ServiceRequest,
    application: &S,
) -> impl Future<Output = Result<ServiceResponse<B>, Error>> + use<S, B>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let response = application.call(request);
    async move {
        let mut response = response.await?;
        protect(response.headers_mut());
        Ok(response)
    }
}

/// Forbids that a page of another origin shows the response in a frame, where its user could be led to click on it, and
/// that a browser guesses a media type.
fn protect(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = if headers.contains_key(CONTENT_SECURITY_POLICY) { NOT_FRAMED } else { LOADS_NOTHING };
    headers.append(CONTENT_SECURITY_POLICY, policy);
}
