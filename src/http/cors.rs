//! Cross-origin resource sharing (CORS), disabled unless origins are configured.

use actix_cors::Cors;
use actix_web::http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use actix_web::middleware::Condition;

/// Returns the middleware that allows pages of the given origins to call the API. Wrap the application in it as the
/// outermost middleware. Without origins it is disabled; `*` allows all origins.
pub fn cors(origins: &[String]) -> Condition<Cors> {
    let any = origins.iter().any(|origin| origin == "*");
    let base = Cors::default()
        .allowed_methods(["GET", "POST", "PUT", "DELETE"])
        .allowed_header(CONTENT_TYPE)
        .expose_headers([LOCATION, RETRY_AFTER])
        .max_age(3_600);
    let cors = if any {
        base.allow_any_origin().send_wildcard()
    } else {
        let allowed = origins.to_vec();
        base.allowed_origin_fn(move |origin, _| allowed.iter().any(|known| known.as_bytes() == origin.as_bytes()))
    };
    Condition::new(!origins.is_empty(), cors)
}
