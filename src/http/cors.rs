//! Cross-origin resource sharing (CORS): what tells a browser that a page of another origin may send a request and read
//! its response. [`Access`], publishable and signing keys say which origins may; without any, nothing is added to
//! responses.

use actix_web::dev::{RequestHead, ResponseHead};
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue,
    ORIGIN, VARY,
};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpMessage, HttpRequest, HttpResponse};

use super::access::{Access, Effect};
use super::needs::Needs;
use super::problem::Problem;
use super::state::HttpState;
use crate::access::Caller;

/// The headers that requests of other origins may have.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, content-encoding, if-none-match, idempotency-key, last-event-id, traceparent, \
     x-request-id",
);

/// The headers that pages may read, besides those that they always may.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "etag, location, retry-after, rolltop-as-of, rolltop-interval, www-authenticate, x-request-id",
);

/// The time in seconds for which a browser need not ask again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

/// Returns the response to a preflight, by which a browser asks whether a page of another origin may send a request to
/// a path with these methods. Returns `None` if the request is none, or if there are no other origins.
pub(super) fn preflight(
    state: &HttpState,
    head: &RequestHead,
    methods: &[(Method, Needs)],
) -> Option<Result<HttpResponse, Problem>> {
    if head.method != Method::OPTIONS || !has_origins(state) {
        return None;
    }
    let text = |name: HeaderName| head.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let (origin, wanted) = (text(ORIGIN)?, text(ACCESS_CONTROL_REQUEST_METHOD)?);
    // A method that the path does not have is missing in the list, which tells the browser.
    let known = methods.iter().find(|(method, _)| method.as_str() == wanted);
    let effect = known.map_or(Effect::Reads, |(_, needs)| needs.effect());
    // A preflight has no key. That of the request itself may be for pages of this origin.
    let allows = |effect| state.access.allows(origin, effect) || state.service.keys().allows_origin(origin);
    if !allows(effect) {
        return Some(Err(Access::foreign(origin, effect)));
    }
    let allowed = methods.iter().filter(|(_, needs)| allows(needs.effect()));
    let allowed: Vec<&str> = allowed.map(|(method, _)| method.as_str()).collect();
    let response = HttpResponse::Ok()
        .insert_header((ACCESS_CONTROL_ALLOW_METHODS, allowed.join(", ")))
        .insert_header((ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS))
        .insert_header((ACCESS_CONTROL_MAX_AGE, MAX_AGE))
        .insert_header((VARY, "Access-Control-Request-Method"))
        .finish();
    Some(Ok(response))
}

/// Returns whether pages of other origins may use the service at all.
fn has_origins(state: &HttpState) -> bool {
    state.access.has_origins() || state.service.keys().has_origins()
}

/// Lets pages of the allowed origins read the response with these headers to a request, even if it is a problem. A
/// response that every page may read is left as it is.
pub(super) fn share(state: &HttpState, request: &HttpRequest, response: &mut ResponseHead) {
    let (access, keys) = (&state.access, state.service.keys());
    let (status, response) = (response.status, response.headers_mut());
    if !has_origins(state) || response.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        return;
    }
    let allowed = if access.is_public() {
        Some(HeaderValue::from_static("*"))
    } else {
        response.append(VARY, HeaderValue::from_static("Origin"));
        // What a key may read is for pages of its own origins. Why a request was refused, which says nothing about what
        // is stored, and what a browser asks before it, is for those of any key.
        let is_without_data = request.method() == Method::OPTIONS
            || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
        let of_key = |origin: &str| {
            let extensions = request.extensions();
            let key = extensions.get::<Caller>().and_then(Caller::key);
            key.is_some_and(|key| key.allows_origin(origin)) || (is_without_data && keys.allows_origin(origin))
        };
        let is_allowed =
            |origin: &&HeaderValue| origin.to_str().is_ok_and(|o| access.allows(o, Effect::Reads) || of_key(o));
        request.headers().get(ORIGIN).filter(is_allowed).cloned()
    };
    if let Some(allowed) = allowed {
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    }
}
