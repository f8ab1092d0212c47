//! What a client gets wrong before anything is looked at.

use reqwest::Method;
use serde_json::json;

use crate::site::Site;

#[actix_web::test]
async fn malformed_json_says_where() {
    let site = Site::with_board("b").await;
    for (method, path) in [
        (Method::POST, "/v1/boards/b/increments"),
        (Method::POST, "/v1/events"),
        (Method::PUT, "/v1/boards/b/samples"),
        (Method::POST, "/v1/boards/b/rankings/lookup"),
        (Method::PUT, "/v1/boards/c"),
        (Method::PUT, "/v1/clock"),
    ] {
        for (body, line, column) in [("{\n  \"a\": tru,", 2, 11), ("{\"a\": 1} x", 1, 10), ("", 1, 0)] {
            let answer = site.client.send(method.clone(), path, Some("application/json"), body).await;
            assert_eq!(answer.refusal(), (400, "malformed_json"), "{path} {body}");
            let position = (&answer.body["line"], &answer.body["column"]);
            assert_eq!(position, (&json!(line), &json!(column)), "{path} {body}: {answer:?}");
        }
    }
}

#[actix_web::test]
async fn unsupported_media_types_and_bodies_that_are_too_large() {
    let site = Site::with(|options| options.max_body = 1_000).await;
    site.client.define("b", "COUNT(1h, x, y)", "1m").await;
    let path = "/v1/boards/b/increments";
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        let answer = site.client.send(Method::POST, path, Some(kind), r#"{"subject":"a"}"#).await;
        assert_eq!(answer.refusal(), (415, "unsupported_media_type"), "{kind}");
    }
    for kind in [None, Some("application/json; charset=utf-8"), Some("Application/JSON")] {
        let answer = site.client.send(Method::POST, path, kind, r#"{"subject":"a"}"#).await;
        assert_eq!(answer.body["accepted"], 1, "{kind:?}: {answer:?}");
    }
    let ndjson = site.client.send(Method::PUT, "/v1/boards/c", Some("application/x-ndjson"), "{}").await;
    assert_eq!(ndjson.refusal(), (415, "unsupported_media_type"));
    let large = format!(r#"{{"subject":"{}"}}"#, "a".repeat(1_000));
    let answer = site.client.send(Method::POST, path, Some("application/json"), large.clone()).await;
    assert_eq!((answer.refusal(), &answer.body["limit"]), ((413, "too_large"), &json!(1_000)));
    // A stream is as long as it likes.
    let lines = "{\"subject\":\"a\"}\n".repeat(1_000);
    assert_eq!(site.client.ndjson("b", lines).await.body["accepted"], 1_000);
    let packed = b"POST /v1/boards/b/increments HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-encoding: gzip\r\n\
                   content-length: 2\r\n\r\n{}";
    assert!(site.client.raw(packed).await.starts_with("HTTP/1.1 415"));
}

#[actix_web::test]
async fn the_number_of_items_of_a_batch_is_limited() {
    let site = Site::with_board("b").await;
    let body = format!(r#"{{"increments":[{}0]}}"#, "0,".repeat(100_000));
    let path = "/v1/boards/b/increments";
    let answer = site.client.send(Method::POST, path, Some("application/json"), body).await;
    assert_eq!((answer.refusal(), &answer.body["limit"]), ((413, "too_large"), &json!(100_000)));
}

#[actix_web::test]
async fn a_body_that_does_not_arrive_times_out() {
    let site = Site::with(|options| options.body_timeout = std::time::Duration::from_millis(50)).await;
    assert_eq!(site.client.define("b", "COUNT(24h, like, post_id)", "1h").await.status, 201);
    for path in ["POST /v1/boards/b/increments", "POST /v1/boards/b/rankings/lookup", "PUT /v1/boards/c"] {
        let begun = format!("{path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{");
        // The connection stays open on this side: the answer, and the end, are the server's.
        let answer = site.client.raw(begun.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("\"body_timeout\""), "{path}: {answer}");
    }
}

#[actix_web::test]
async fn paths_and_methods_that_do_not_exist() {
    let site = Site::with_board("b").await;
    for path in ["/v2", "/v1", "/v1/boards/b/nothing", "/v1/boards/b/subjects/", "/v1/boards/b/subjects/a/b", "/%00"] {
        assert_eq!(site.client.get(path).await.refusal(), (404, "not_found"), "{path}");
    }
    for (method, path, allow) in [
        (Method::PATCH, "/v1/boards/b", "GET, HEAD, PUT, DELETE"),
        (Method::POST, "/v1/boards/b/subjects/x", "GET, HEAD, DELETE"),
        (Method::GET, "/v1/boards/b/increments", "POST"),
        (Method::PUT, "/healthz", "GET, HEAD"),
        (Method::OPTIONS, "/v1/rollover", "POST"),
        (Method::DELETE, "/v1/clock", "GET, HEAD, PUT"),
    ] {
        let answer = site.client.send(method, path, None, "").await;
        assert_eq!((answer.refusal(), answer.header("allow")), ((405, "method_not_allowed"), allow), "{path}");
    }
    let head = site.client.send(Method::HEAD, "/v1/boards/b/rankings", None, "").await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
}

#[actix_web::test]
async fn parameters_are_read_strictly() {
    let site = Site::with_board("b").await;
    for (path, code, field) in [
        ("/v1/boards/b/rankings?limit=0", "invalid_field", "limit"),
        ("/v1/boards/b/rankings?limit=1001", "invalid_field", "limit"),
        ("/v1/boards/b/rankings?offset=-1", "invalid_field", "offset"),
        ("/v1/boards/b/rankings?offset=99999999999999999999", "invalid_field", "offset"),
        ("/v1/boards/b/rankings?limt=5", "unknown_field", "limt"),
        ("/v1/boards/b/rankings?limit=5&limit=6", "invalid_field", "limit"),
        ("/v1/boards/b?x=1", "unknown_field", "x"),
        ("/v1/boards/b/subjects/a?last=1h", "unknown_field", "last"),
    ] {
        let answer = site.client.get(path).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, code), &json!(field)), "{path}");
    }
}
