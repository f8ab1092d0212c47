//! What protects users of a browser from pages of other origins.

use reqwest::Method;
use rolltop::http::registered;

use crate::site::Site;

/// Every path: operations, the console, the explorer with its files, descriptions of problems, and paths that do not
/// exist.
fn paths() -> Vec<String> {
    let operations = registered(true).into_iter().map(|(_, path)| path.replace("{board}", "b").replace("{subject}", "a"));
    let others = [
        "/",
        "/console.js",
        "/rolltop-board.js",
        "/swagger-ui",
        "/swagger-ui/",
        "/swagger-ui/index.html",
        "/swagger-ui/swagger-initializer.js",
        "/swagger-ui/swagger-ui.css",
        "/swagger-ui/nothing.js",
        "/problems/not_found",
        "/problems/nothing",
        "/nothing",
        "/v1/boards/none/rankings",
    ];
    operations.chain(others.map(str::to_owned)).collect()
}

#[actix_web::test]
async fn no_response_may_be_shown_in_a_frame_or_have_its_type_guessed() {
    let site = Site::with_board("b").await;
    for path in paths() {
        for method in [Method::GET, Method::POST, Method::OPTIONS, Method::DELETE] {
            if method == Method::DELETE && path.starts_with("/v1/boards") {
                continue; // the board is still needed
            }
            let answer = site.client.send(method.clone(), &path, None, "").await;
            let policies: Vec<&str> =
                answer.headers.get_all("content-security-policy").iter().map(|value| value.to_str().unwrap()).collect();
            assert!(policies.iter().any(|policy| policy.contains("frame-ancestors 'none'")), "{method} {path}: {policies:?}");
            // Every page says what it may load.
            assert!(policies.iter().any(|policy| policy.contains("default-src")), "{method} {path}: {policies:?}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff", "{method} {path}");
        }
    }
}

#[actix_web::test]
async fn the_explorer_is_there_only_if_it_is_wanted() {
    for explorer in [false, true] {
        let site = Site::with(|options| options.explorer = explorer).await;
        for path in ["/swagger-ui", "/swagger-ui/", "/swagger-ui/index.html", "/swagger-ui/swagger-initializer.js"] {
            let answer = site.client.get(path).await;
            if explorer {
                assert_eq!(answer.status, 200, "{path}");
            } else {
                assert_eq!(answer.refusal(), (404, "not_found"), "{path}");
            }
        }
        assert_eq!(site.client.get("/openapi.json").await.status, 200);
        let console = site.client.get("/").await.text;
        assert!(console.contains(if explorer { " explorer=on\"" } else { " explorer=off\"" }), "{console}");
    }
}

#[actix_web::test]
async fn unknown_files_of_the_explorer_are_problems_with_a_request_id() {
    let site = Site::new().await;
    for method in [Method::GET, Method::POST] {
        let answer = site.client.send(method.clone(), "/swagger-ui/nothing.js", None, "").await;
        assert_eq!(answer.refusal(), (404, "not_found"), "{method}");
        assert_eq!(answer.body["request_id"], answer.header("x-request-id"), "{method}");
    }
}

/// Browsers send `Sec-Fetch-Site`, also where they send no `Origin`.
#[actix_web::test]
async fn a_change_that_a_page_of_another_site_asks_for_is_refused() {
    let site = Site::with_board("b").await;
    for (value, status) in [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)] {
        let from = [("sec-fetch-site", value)];
        let answer = site.client.send_with(Method::POST, "/v1/boards/b/rollover", &from, "").await;
        assert_eq!(answer.status, status, "{value}: {answer:?}");
        if status == 403 {
            assert_eq!(answer.refusal(), (403, "foreign_origin"), "{value}");
        }
        assert_eq!(site.client.send_with(Method::GET, "/v1/boards/b", &from, "").await.status, 200, "{value}");
    }
}
