//! What protects users of a browser from pages of other origins.

use reqwest::Method;
use rolltop::http::registered;

use crate::site::Site;

/// Every path: operations, the console, the explorer with its files, descriptions of problems, and paths that do not
/// exist.
fn paths() -> Vec<String> {
    let operations =
        registered(true).into_iter().map(|(_, path)| path.replace("{board}", "b").replace("{subject}", "a"));
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
            assert!(
                policies.iter().any(|policy| policy.contains("frame-ancestors 'none'")),
                "{method} {path}: {policies:?}"
            );
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
        assert!(console.contains(if explorer { " explorer=on " } else { " explorer=off " }), "{console}");
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

/// Browsers send `Sec-Fetch-Site` even where they send no `Origin`.
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

const READER: &str = "https://reader.example";
const WRITER: &str = "https://writer.example";
const OTHER: &str = "https://other.example";

const RECORDING: &str =
    r#"{"rule":"COUNT(24h, like, post_id) > 0","type":"like","fields":{"post_id":"a"},"record":true}"#;

async fn shared() -> Site {
    let site = Site::with(|options| {
        options.cors_origins = vec![READER.to_owned()];
        options.cors_write_origins = vec![WRITER.to_owned()];
    })
    .await;
    assert_eq!(site.client.define("b", "COUNT(24h, like, post_id)", "1h").await.status, 201);
    site.client.count("b", &["a"]).await;
    site
}

/// Every operation with a body that it accepts, or none, and whether it changes something.
const OPERATIONS: &[(&str, &str, &str, bool)] = &[
    ("POST", "/v1/boards/b/rankings/lookup", r#"{"subjects":["a"]}"#, false),
    ("POST", "/v1/query", r#"{"queries":[{"board":"b","subject":"a"}]}"#, false),
    ("POST", "/v1/evaluate", r#"{"rule":"COUNT(24h, like, post_id) > 0","fields":{"post_id":"a"}}"#, false),
    ("POST", "/v1/evaluate", RECORDING, true),
    ("POST", "/v1/boards/b/increments", r#"{"subject":"a"}"#, true),
    ("POST", "/v1/events", r#"{"type":"like","fields":{"post_id":"a"}}"#, true),
    ("PUT", "/v1/boards/b/samples", r#"{"subject":"another","amount":1}"#, true),
    ("PUT", "/v1/boards/c", r#"{"metric":"COUNT(24h, like, post_id)","slot":"1h"}"#, true),
    ("POST", "/v1/boards/b/rollover", "", true),
    ("POST", "/v1/rollover", "", true),
    ("POST", "/v1/boards/b/audit", "", true),
    ("POST", "/v1/backup", "", true),
    ("PUT", "/v1/clock", r#"{"now":"2026-01-02T10:07:00Z"}"#, true),
    ("DELETE", "/v1/boards/b/subjects/nothing", "", true),
    ("DELETE", "/v1/boards/nothing", "", true),
];

/// A page may also send a request without a preflight.
#[actix_web::test]
async fn origins_that_may_read_change_nothing() {
    let site = shared().await;
    for (method, path, body, changes) in OPERATIONS {
        for (origin, is_accepted) in [(READER, !changes), (WRITER, true), (OTHER, false)] {
            let headers = [("origin", origin), ("sec-fetch-site", "cross-site"), ("content-type", "application/json")];
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let answer = site.client.send_with(method.clone(), path, &headers, *body).await;
            let is_refused = answer.status == 403;
            assert_eq!(is_refused, !is_accepted, "{origin} {method} {path} {body}: {answer:?}");
            if is_refused {
                assert_eq!(answer.code(), "foreign_origin");
                // Whether an event is to be recorded is known after the body is read.
                let is_read_first = !changes || (*body == RECORDING && origin == OTHER);
                let setting = if is_read_first { "'cors_origins'" } else { "'cors_write_origins'" };
                assert!(answer.body["detail"].as_str().unwrap().contains(setting), "{answer:?}");
            }
            // A page that may read also reads why it was refused.
            let allowed = if origin == OTHER { "" } else { origin };
            assert_eq!(answer.header("access-control-allow-origin"), allowed, "{origin} {method} {path}");
        }
    }
    // A path that does not exist, too, says so to a page that may read.
    for (origin, allowed) in [(READER, READER), (WRITER, WRITER), (OTHER, "")] {
        let answer = site.client.send_with(Method::GET, "/elsewhere/v1/boards", &[("origin", origin)], "").await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (404, allowed), "{origin}");
    }
    // What the writer sent: an event twice, and an increment.
    assert_eq!(site.client.score("b", "a").await, 4);
}

#[actix_web::test]
async fn preflights_are_answered_by_what_the_request_would_do() {
    let site = shared().await;
    for (method, path, body, changes) in OPERATIONS {
        if *body == RECORDING {
            continue; // a preflight does not say what the body is
        }
        for (origin, is_accepted) in [(READER, !changes), (WRITER, true), (OTHER, false)] {
            let asks = [
                ("origin", origin),
                ("access-control-request-method", *method),
                ("access-control-request-headers", "content-type"),
                ("x-request-id", "r-7"),
            ];
            let answer = site.client.send_with(Method::OPTIONS, path, &asks, "").await;
            assert_eq!(answer.header("x-request-id"), "r-7", "{origin} {method} {path}");
            if is_accepted {
                assert_eq!(answer.status, 200, "{origin} {method} {path}: {answer:?}");
                assert_eq!(answer.header("access-control-allow-origin"), origin);
                assert!(answer.header("access-control-allow-methods").split(", ").any(|known| known == *method));
            } else {
                assert_eq!(answer.refusal(), (403, "foreign_origin"), "{origin} {method} {path}");
                assert_eq!(answer.body["request_id"], "r-7");
            }
        }
    }
    // A board may be read by the reader; the list leaves out what it may not send.
    let asks = [("origin", READER), ("access-control-request-method", "GET")];
    let answer = site.client.send_with(Method::OPTIONS, "/v1/boards/b", &asks, "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-methods")), (200, "GET"));
}
