//! Cross-origin resource sharing (CORS): what tells a browser that a page of another origin may send a request and read
//! its response. [`Access`] says which origins may; without any, nothing is added to responses.

use actix_web::HttpResponse;
use actix_web::dev::RequestHead;
use actix_web::http::Method;
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, VARY,
};

use super::access::{Access, Effect};
use super::problem::Problem;

/// The headers that requests of other origins may have.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "content-type, content-encoding, if-none-match, idempotency-key, last-event-id, x-request-id",
);

/// The headers that pages may read, besides those that they always may.
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("etag, location, retry-after, rolltop-as-of, rolltop-interval, x-request-id");

/// The time in seconds for which a browser need not ask again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

/// Returns the response to a preflight, by which a browser asks whether a page of another origin may send a request to
/// a path with these methods. Returns `None` if the request is none, or if there are no other origins.
pub(super) fn preflight(
    access: &Access,
    head: &RequestHead,
    methods: &[(Method, Effect)],
) -> Option<Result<HttpResponse, Problem>> {
    if head.method != Method::OPTIONS || !access.has_origins() {
        return None;
    }
    let text = |name: HeaderName| head.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let (origin, wanted) = (text(ORIGIN)?, text(ACCESS_CONTROL_REQUEST_METHOD)?);
    // A method that the path does not have is missing in the list, which tells the browser.
    let known = methods.iter().find(|(method, _)| method.as_str() == wanted);
    let effect = known.map_or(Effect::Reads, |(_, effect)| *effect);
    if !access.allows(origin, effect) {
        return Some(Err(Access::foreign(origin, effect)));
    }
    let allowed = methods.iter().filter(|(_, effect)| access.allows(origin, *effect));
    let allowed: Vec<&str> = allowed.map(|(method, _)| method.as_str()).collect();
    let response = HttpResponse::Ok()
        .insert_header((ACCESS_CONTROL_ALLOW_METHODS, allowed.join(", ")))
        .insert_header((ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS))
        .insert_header((ACCESS_CONTROL_MAX_AGE, MAX_AGE))
        .insert_header((VARY, "Access-Control-Request-Method"))
        .finish();
    Some(Ok(response))
}

/// Lets pages of the allowed origins read the response with these headers to a request, even if it is a problem. A
/// response that every page may read is left as it is.
pub(super) fn share(access: &Access, request: &RequestHead, response: &mut HeaderMap) {
    if !access.has_origins() || response.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        return;
    }
    let allowed = if access.is_public() {
        Some(HeaderValue::from_static("*"))
    } else {
        response.append(VARY, HeaderValue::from_static("Origin"));
        let is_allowed = |origin: &&HeaderValue| origin.to_str().is_ok_and(|o| access.allows(o, Effect::Reads));
        request.headers().get(ORIGIN).filter(is_allowed).cloned()
    };
    if let Some(allowed) = allowed {
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    }
}
