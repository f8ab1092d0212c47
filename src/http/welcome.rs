//! The start page at `/`, for browsers.

use actix_web::HttpResponse;

/// Get the start page
///
/// Returns an HTML page that describes the service, links to the API and shows first requests.
#[utoipa::path(
    get, path = "/", operation_id = "getWelcome", tag = "operations",
    responses((status = 200, description = "The start page.", body = String, content_type = "text/html")),
)]
pub(super) async fn welcome() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"))
        .body(include_str!("welcome.html"))
}
