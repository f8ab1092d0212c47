//! `/`: what this is and where to go, for a person with a browser.

use actix_web::HttpResponse;

/// Read this page
///
/// A small page for people: what this is, where to go, a first request.
#[utoipa::path(
    get, path = "/", operation_id = "getWelcome", tag = "operations",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")),
)]
pub(super) async fn welcome() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"))
        .body(include_str!("welcome.html"))
}
