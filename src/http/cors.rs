//! Cross-origin resource sharing (CORS), disabled unless origins are configured.

use actix_cors::Cors;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LOCATION, RETRY_AFTER};
use actix_web::middleware::Condition;

use super::caching::ROLLTOP_AS_OF;
use super::items::IDEMPOTENCY_KEY;
use super::live::ROLLTOP_INTERVAL;
use super::request_id::X_REQUEST_ID;

/// Browsers send it when they reconnect to a stream of events.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Returns the middleware that allows pages of the given origins to call the API. Wrap the application in it as the
/// outermost middleware. Without origins it is disabled; `*` allows all origins.
pub fn cors(origins: &[String]) -> Condition<Cors> {
    let any = origins.iter().any(|origin| origin == "*");
    let base = Cors::default()
        .allowed_methods(["GET", "POST", "PUT", "DELETE"])
        .allowed_headers([CONTENT_TYPE, CONTENT_ENCODING, IF_NONE_MATCH, IDEMPOTENCY_KEY, LAST_EVENT_ID, X_REQUEST_ID])
        .expose_headers([ETAG, LOCATION, RETRY_AFTER, ROLLTOP_AS_OF, ROLLTOP_INTERVAL, X_REQUEST_ID])
        .max_age(3_600);
    let cors = if any {
        base.allow_any_origin().send_wildcard()
    } else {
        let allowed = origins.to_vec();
        base.allowed_origin_fn(move |origin, _| allowed.iter().any(|known| known.as_bytes() == origin.as_bytes()))
    };
    Condition::new(!origins.is_empty(), cors)
}
