//! Pages that describe the codes of problems and of rejected items. The `type` of a problem refers to them.

use std::fmt::Write;

use actix_web::{HttpRequest, HttpResponse};

use super::codes::{Code, ItemCode};
use super::problem::Problem;

/// Get the description of a code
///
/// Returns an HTML page that says what a code of a problem, or of a rejected item, means and what to do.
#[utoipa::path(
    get, path = "/problems/{code}", operation_id = "getProblemDescription", tag = "operations",
    params(("code" = String, Path, example = "unknown_board", description = "The code.")),
    responses((status = 200, description = "The description.", body = String, content_type = "text/html")),
)]
pub(super) async fn page(request: HttpRequest) -> Result<HttpResponse, Problem> {
    let name = request.match_info().get("code").unwrap_or_default();
    let text = describe(name).ok_or_else(|| Problem::not_found(request.path()))?;
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"))
        .body(text))
}

/// Returns the page of a code. A name may be that of a problem and of a rejected item.
fn describe(name: &str) -> Option<String> {
    let of_request = Code::ALL.iter().find(|code| code.as_str() == name);
    let of_item = ItemCode::ALL.iter().find(|code| code.as_str() == name);
    let name = of_request.map(|code| code.as_str()).or(of_item.map(|code| code.as_str()))?;
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{name} - Rolltop</title>\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <style>:root{{color-scheme:light dark}}body{{font:1rem/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;\
         padding:0 1rem}}</style><h1><code>{name}</code></h1>"
    );
    let mut section = |heading: &str, meaning: &str, advice: &str| {
        // Writing to a string cannot fail.
        let _ = write!(page, "<h2>{heading}</h2><p>{}<p><b>What to do:</b> {}", html(meaning), html(advice));
    };
    if let Some(code) = of_request {
        section(&format!("Status {}: {}", code.status().as_u16(), html(code.title())), code.meaning(), code.advice());
    }
    if let Some(code) = of_item {
        section("A rejected item of a request", code.meaning(), code.advice());
    }
    Some(page)
}

/// Escapes text for HTML, and marks `code` between backticks.
fn html(text: &str) -> String {
    let escaped = text.trim().replace('&', "&amp;").replace('<', "&lt;");
    let mut marked = String::with_capacity(escaped.len() + 32);
    for (at, piece) in escaped.split('`').enumerate() {
        if at > 0 {
            marked.push_str(if at % 2 == 1 { "<code>" } else { "</code>" });
        }
        marked.push_str(piece);
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_described_with_what_to_do() {
        let names = Code::ALL.iter().map(|code| code.as_str()).chain(ItemCode::ALL.iter().map(|code| code.as_str()));
        for name in names {
            let page = describe(name).unwrap();
            assert!(page.contains(&format!("<code>{name}</code>")) && page.contains("What to do:"), "{page}");
            assert_eq!(page.matches("<code>").count(), page.matches("</code>").count(), "{page}");
        }
        let both = describe("unknown_field").unwrap();
        assert!(both.contains("Status 422") && both.contains("A rejected item"), "{both}");
        assert_eq!(describe("nothing"), None);
    }
}
