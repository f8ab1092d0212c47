//! What a client gets wrong before anything is looked at.

use reqwest::Method;
use serde_json::json;

use crate::site::Site;

#[actix_web::test]
async fn malformed_json_is_refused_with_line_and_column() {
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
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        let answer = site.client.send(Method::POST, path, Some(kind), r#"{"subject":"a"}"#).await;
        assert_eq!(answer.body["accepted"], 1, "{kind:?}: {answer:?}");
    }
    // A web page may send a body without a media type to any address.
    for path in [path, "/v1/events", "/v1/boards/b/rankings/lookup"] {
        let answer = site.client.send(Method::POST, path, None, r#"{"subject":"a"}"#).await;
        assert_eq!(answer.refusal(), (415, "unsupported_media_type"), "{path}");
        assert!(answer.body["detail"].as_str().unwrap().contains("Content-Type"), "{answer:?}");
    }
    assert_eq!(site.client.score("b", "a").await, 2);
    let ndjson = site.client.send(Method::PUT, "/v1/boards/c", Some("application/x-ndjson"), "{}").await;
    assert_eq!(ndjson.refusal(), (415, "unsupported_media_type"));
    let large = format!(r#"{{"subject":"{}"}}"#, "a".repeat(1_000));
    let answer = site.client.send(Method::POST, path, Some("application/json"), large.clone()).await;
    assert_eq!((answer.refusal(), &answer.body["limit"]), ((413, "too_large"), &json!(1_000)));
    // A stream is as long as it likes.
    let lines = "{\"subject\":\"a\"}\n".repeat(1_000);
    assert_eq!(site.client.ndjson("b", lines).await.body["accepted"], 1_000);
    let packed = b"POST /v1/boards/b/increments HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-encoding: br\r\n\
                   content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
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
        let head = format!("{path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
        let begun = format!("{head}content-length: 100\r\n\r\n{{");
        // The connection stays open on this side: the answer, and the end, are the server's.
        let answer = site.client.raw(begun.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("\"body_timeout\""), "{path}: {answer}");
    }
}

#[actix_web::test]
async fn unknown_paths_and_methods_are_refused() {
    let site = Site::with_board("b").await;
    for path in ["/v2", "/v1", "/v1/boards/b/nothing", "/v1/boards/b/subjects/", "/v1/boards/b/subjects/a/b", "/%00"] {
        assert_eq!(site.client.get(path).await.refusal(), (404, "not_found"), "{path}");
    }
    for (method, path, allow) in [
        (Method::PATCH, "/v1/boards/b", "GET, HEAD, PUT, DELETE"),
        (Method::POST, "/v1/boards/b/subjects/x", "GET, HEAD, PUT, DELETE"),
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
async fn unknown_repeated_and_invalid_parameters_are_refused() {
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

#[actix_web::test]
async fn a_stream_that_sends_nothing_is_ended_and_its_complete_lines_count() {
    let site = Site::with(|options| options.stream_idle_timeout = std::time::Duration::from_millis(50)).await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    let head = "POST /v1/boards/b/increments HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n";
    let begun = format!("{head}content-length: 1000\r\n\r\n{{\"subject\":\"a\"}}\n{{\"subject\":\"a\"}}\n{{\"subj");
    // The connection stays open on this side.
    let answer = site.client.raw(begun.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("\"body_timeout\""), "{answer}");
    assert!(answer.contains("\"accepted\":2") && answer.contains("\"counted_through\":2"), "{answer}");
    assert_eq!(site.client.score("b", "a").await, 2);
}

#[actix_web::test]
async fn pages_of_other_origins_change_nothing() {
    let site = Site::with(|options| options.cors_write_origins = vec!["https://app.example".to_owned()]).await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    let own = format!("http://127.0.0.1:{}", site.client.port);
    for (origin, is_accepted) in
        [(own.as_str(), true), ("https://app.example", true), ("https://evil.example", false), ("null", false)]
    {
        for (method, path, body) in [
            ("POST", "/v1/boards/b/increments", r#"{"subject":"a"}"#),
            ("POST", "/v1/events", r#"{"type":"x"}"#),
            ("POST", "/v1/rollover", ""),
            ("POST", "/v1/boards/b/audit?repair=true", ""),
            ("DELETE", "/v1/boards/b/subjects/a", ""),
        ] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\norigin: {origin}\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                site.client.port,
                body.len()
            );
            let answer = site.client.raw(request.as_bytes()).await;
            let status = if is_accepted { "HTTP/1.1 2" } else { "HTTP/1.1 403" };
            assert!(answer.starts_with(status), "{origin} {method} {path}: {answer}");
            assert_eq!(answer.contains("\"foreign_origin\""), !is_accepted, "{origin} {method} {path}: {answer}");
        }
        let get = format!(
            "GET /v1/boards HTTP/1.1\r\nhost: 127.0.0.1:{}\r\norigin: {origin}\r\nconnection: close\r\n\r\n",
            site.client.port
        );
        assert!(site.client.raw(get.as_bytes()).await.starts_with("HTTP/1.1 200"), "{origin}");
    }
}

#[actix_web::test]
async fn requests_to_unknown_hosts_are_refused() {
    let site = Site::with(|options| options.hosts = Some(vec!["rolltop.example".to_owned()])).await;
    for (host, status) in [("localhost:8080", "200"), ("rolltop.example", "200"), ("evil.example:8080", "421")] {
        for path in ["/v1/boards", "/", "/healthz", "/swagger-ui/", "/swagger-ui/swagger-initializer.js"] {
            let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            let answer = site.client.raw(request.as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host} {path}: {answer}");
        }
        for (path, known) in [("/swagger-ui", "308"), ("/swagger-ui/unknown.js", "404"), ("/unknown", "404")] {
            let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            let status = if status == "200" { known } else { status };
            let answer = site.client.raw(request.as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host} {path}: {answer}");
        }
    }
}

#[actix_web::test]
async fn every_path_has_a_request_id_and_refuses_writes_of_foreign_origins() {
    let site = Site::new().await;
    for path in
        ["/swagger-ui", "/swagger-ui/", "/swagger-ui/swagger-initializer.js", "/swagger-ui/unknown.js", "/unknown"]
    {
        let answer = site.client.send_with(Method::GET, path, &[("x-request-id", "r-7")], "").await;
        assert_eq!(answer.header("x-request-id"), "r-7", "{path}");
        let id = site.client.get(path).await.header("x-request-id").to_owned();
        assert_eq!(id.len(), 16, "{path}: {id}");
        let foreign = [("origin", "https://evil.example")];
        let answer = site.client.send_with(Method::POST, path, &foreign, "").await;
        assert_eq!(answer.refusal(), (403, "foreign_origin"), "{path}");
        assert_eq!(answer.body["request_id"], answer.header("x-request-id"), "{path}");
        let own = site.client.send_with(Method::POST, path, &[], "").await;
        assert!(own.status == 404 || own.status == 405, "{path}: {own:?}");
    }
}

#[actix_web::test]
async fn a_field_given_twice_is_refused() {
    let site = Site::with_board("b").await;
    let event = r#"{"type":"like","fields":{"post_id":"a","post_id":"b"}}"#;
    let answer = site.client.send(Method::POST, "/v1/events", Some("application/json"), event).await;
    assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("post_id")));
    let batch = format!(r#"{{"events":[{event},{{"type":"like","fields":{{"post_id":"a"}}}}]}}"#);
    let answer = site.client.send(Method::POST, "/v1/events", Some("application/json"), batch).await;
    assert_eq!((&answer.body["accepted"], &answer.body["rejected"][0]["code"]), (&json!(1), &json!("invalid_event")));
    let rule = r#"{"rule":"amount > 1","fields":{"amount":1,"amount":2}}"#;
    let answer = site.client.send(Method::POST, "/v1/evaluate", Some("application/json"), rule).await;
    assert_eq!(answer.refusal().0, 422, "{answer:?}");
}
