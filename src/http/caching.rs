//! Caching of responses: `ETag`, `If-None-Match` and `Cache-Control`.
//!
//! The entity tag is a hash of the body without `as_of`. So a client that polls gets 304 until something has changed,
//! although each response shows a later instant; the header `Rolltop-As-Of` of a 304 has that instant.

use std::sync::LazyLock;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, EntityTag, HeaderName, HeaderValue, IfNoneMatch,
    TryIntoHeaderValue,
};
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use memchr::memmem::Finder;
use xxhash_rust::xxh3::Xxh3Default;

/// The header of a 304 response with the instant at which the cached body was still the answer.
pub(super) const ROLLTOP_AS_OF: HeaderName = HeaderName::from_static("rolltop-as-of");

/// The start of a JSON member `as_of`. It cannot occur inside of a string, where quotation marks are escaped.
const AS_OF: &[u8] = b"\"as_of\":\"";
static AS_OF_FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(AS_OF));

/// Sets the caching headers of a successful response to a GET request, and returns 304 without a body if the client
/// has the same one. O(bytes).
pub(super) fn conditional(
    request: &HttpRequest,
    mut response: HttpResponse<Bytes>,
    max_age: Duration,
) -> HttpResponse<Bytes> {
    let (tag, as_of) = entity_tag(response.body());
    let is_known = match request.get_header::<IfNoneMatch>() {
        Some(IfNoneMatch::Any) => true,
        Some(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(&tag)),
        None => false,
    };
    let as_of = as_of.filter(|_| is_known).and_then(|as_of| HeaderValue::from_bytes(as_of).ok());
    let headers = response.headers_mut();
    // What a key may see is not for the next client of a shared cache.
    headers.insert(CACHE_CONTROL, cache_control(max_age, request.headers().contains_key(AUTHORIZATION)));
    if let Ok(tag) = tag.try_into_value() {
        headers.insert(ETAG, tag);
    }
    if is_known {
        headers.remove(CONTENT_TYPE);
        if let Some(as_of) = as_of {
            headers.insert(ROLLTOP_AS_OF, as_of);
        }
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response.set_body(Bytes::new());
    }
    response
}

/// Returns the value of `Cache-Control` for a response that may be used for this long without asking again, by the
/// client only if the response is private.
fn cache_control(max_age: Duration, is_private: bool) -> HeaderValue {
    let no_cache = HeaderValue::from_static("no-cache");
    match (max_age.as_secs(), is_private) {
        (0, _) => no_cache,
        (seconds, false) => HeaderValue::try_from(format!("max-age={seconds}")).unwrap_or(no_cache),
        (seconds, true) => HeaderValue::try_from(format!("private, max-age={seconds}")).unwrap_or(no_cache),
    }
}

/// Returns the entity tag of a body, and the first `as_of` in it.
pub(super) fn entity_tag(body: &[u8]) -> (EntityTag, Option<&[u8]>) {
    let mut hash = Xxh3Default::new();
    let (mut rest, mut first) = (body, None);
    while let Some(at) = AS_OF_FINDER.find(rest) {
        let value = &rest[at + AS_OF.len()..];
        let len = memchr::memchr(b'"', value).unwrap_or(value.len());
        hash.update(&rest[..at]);
        first.get_or_insert(&value[..len]);
        rest = &value[len..];
    }
    hash.update(rest);
    (EntityTag::new_weak(format!("{:032x}", hash.digest128())), first)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn the_tag_depends_on_everything_but_the_time() {
        let tag = |body: &str| entity_tag(body.as_bytes()).0;
        let body = r#"{"a":1,"as_of":"2026-01-01T00:00:00Z","b":[{"as_of":"2026-01-01T00:00:00Z","c":2}]}"#;
        assert_eq!(entity_tag(body.as_bytes()).1, Some(&b"2026-01-01T00:00:00Z"[..]));
        assert_eq!(tag(body), tag(&body.replace("00:00Z", "00:00.250Z")));
        for (from, to) in [("\"a\":1", "\"a\":2"), ("\"c\":2", "\"c\":3"), ("as_of", "at")] {
            assert_ne!(tag(body), tag(&body.replace(from, to)), "{from}");
        }
        // A string with the same characters is not a member.
        let string = r#"{"subject":"\"as_of\":\"x"}"#;
        assert_ne!(tag(string), tag(&string.replace('x', "y")));
        assert_eq!(entity_tag(b"").1, None);
    }

    fn respond(if_none_match: Option<&str>, max_age: u64) -> HttpResponse<Bytes> {
        let request =
            if_none_match.iter().fold(TestRequest::get(), |r, known| r.insert_header(("if-none-match", *known)));
        let body = Bytes::from_static(br#"{"as_of":"2026-01-01T00:00:00Z","total":3}"#);
        let response = HttpResponse::Ok().content_type("application/json").finish().set_body(body);
        conditional(&request.to_http_request(), response, Duration::from_secs(max_age))
    }

    #[test]
    fn a_known_body_is_not_sent_again() {
        let first = respond(None, 0);
        assert_eq!((first.status(), first.body().is_empty()), (StatusCode::OK, false));
        assert_eq!(first.headers().get(CACHE_CONTROL).unwrap(), "no-cache");
        let tag = first.headers().get(ETAG).unwrap().to_str().unwrap().to_owned();
        assert!(tag.starts_with("W/\""), "{tag}");
        for known in [tag.as_str(), &format!("\"other\", {tag}"), tag.trim_start_matches("W/"), "*"] {
            let second = respond(Some(known), 5);
            assert_eq!((second.status(), second.body().is_empty()), (StatusCode::NOT_MODIFIED, true), "{known}");
            assert_eq!(second.headers().get(ETAG).unwrap(), tag.as_str());
            assert_eq!(second.headers().get(ROLLTOP_AS_OF).unwrap(), "2026-01-01T00:00:00Z");
            assert_eq!(second.headers().get(CACHE_CONTROL).unwrap(), "max-age=5");
            assert_eq!(second.headers().get(CONTENT_TYPE), None);
        }
        for other in ["W/\"0\"", "\"x\""] {
            assert_eq!(respond(Some(other), 0).status(), StatusCode::OK, "{other}");
        }
    }
}
