//! Tests of the endpoints for operators.

use reqwest::Method;
use serde_json::json;

use crate::failing_store::Fault;
use crate::site::Site;

#[actix_web::test]
async fn metrics_count_requests_and_increments() {
    let site = Site::with_board("b").await;
    site.client.add("b", json!({"increments": [{"subject": "a"}, {"subject": ""}]})).await;
    site.client.ndjson("b", "{\"subject\":\"a\"}\nnot json\n").await;
    site.client.get("/v1/boards/nope/rankings").await;
    let metrics = site.client.get("/metrics").await;
    assert!(metrics.header("content-type").starts_with("text/plain"));
    for series in [
        r#"rolltop_http_requests_total{route="/v1/boards/{board}/increments",method="POST",status="2xx"}"#,
        r#"rolltop_http_requests_total{route="/v1/boards/{board}/rankings",method="GET",status="4xx"}"#,
        r#"rolltop_http_request_duration_seconds_count{route="/v1/boards/{board}/increments",method="POST",status="2xx"}"#,
        r#"rolltop_http_request_duration_seconds_bucket{route="/v1/boards/{board}/rankings",method="GET",status="4xx",le="5"}"#,
        "rolltop_http_requests_in_flight",
        r#"rolltop_increments_total{outcome="accepted"}"#,
        r#"rolltop_increments_total{outcome="invalid_subject"}"#,
        r#"rolltop_increments_total{outcome="malformed_line"}"#,
    ] {
        let line = metrics.text.lines().find(|line| line.starts_with(series));
        let value: f64 = line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default();
        assert!(value >= 1.0, "{series}: {line:?} in\n{}", metrics.text);
    }
    // A class that a route has never answered with has no histogram.
    let never = r#"duration_seconds_count{route="/v1/boards/{board}/rankings",method="GET",status="1xx"}"#;
    assert!(!metrics.text.contains(never), "{}", metrics.text);
    assert!(!metrics.text.contains("nope"), "a label with a client's value:\n{}", metrics.text);
    let without = Site::with(|options| options.metrics = None).await;
    assert_eq!(without.client.get("/metrics").await.refusal(), (404, "not_found"));
}

/// The store is looked at for each answer of `/metrics`, so the gauges need no other call before it. Other tests of
/// this process share the recorder and may come in between: what is looked for is seen at some time.
#[actix_web::test]
async fn metrics_show_whether_the_store_refuses_writes() {
    let site = Site::new().await;
    let shows = async |line: &str| {
        for _ in 0..100 {
            let metrics = site.client.get("/metrics").await.text;
            if metrics.lines().any(|shown| shown == line) {
                return true;
            }
        }
        false
    };
    assert!(shows("rolltop_writes_refused 0").await);
    assert!(shows("rolltop_clock_doubted 0").await);
    site.switch.fail(Fault::ReadOnly);
    assert!(shows("rolltop_writes_refused 1").await);
}

#[actix_web::test]
async fn the_series_of_a_removed_board_are_removed() {
    let site = Site::new().await;
    let shown = async |board: &str| {
        let metrics = site.client.get("/metrics").await.text;
        metrics.lines().filter(|line| line.contains(&format!("board=\"{board}\""))).count()
    };
    for board in ["stays", "goes"] {
        site.client.define(board, "COUNT(3h, like, post)", "1h").await;
        site.client.count(board, &["a"]).await;
        assert_eq!(site.client.post(&format!("/v1/boards/{board}/rollover"), json!({})).await.status, 200);
        assert!(shown(board).await >= 3, "{board}");
    }
    assert!(site.client.delete("/v1/boards/goes").await.status < 300);
    assert_eq!(shown("goes").await, 0);
    assert!(shown("stays").await >= 3);
}

#[actix_web::test]
async fn the_api_can_be_explored() {
    let site = Site::new().await;
    // The client follows the redirect.
    let explorer = site.client.get("/swagger-ui").await;
    assert!(explorer.text.contains("swagger-ui-bundle.js"), "{}", explorer.text);
    let script = site.client.get("/swagger-ui/swagger-initializer.js").await;
    assert!(script.text.contains("/openapi.json"), "{}", script.text);
    assert_eq!(site.client.get("/swagger-ui/swagger-ui-bundle.js").await.status, 200);
}

#[actix_web::test]
async fn other_origins_are_allowed_only_if_configured() {
    let preflight = "OPTIONS /v1/query HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: https://app.example\r\n\
                     access-control-request-method: POST\r\naccess-control-request-headers: content-type\r\n\r\n";
    let get = "GET /v1/boards HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: https://app.example\r\n\r\n";
    for (origins, allowed) in [
        (vec![], None),
        (vec!["https://app.example".to_owned()], Some("access-control-allow-origin: https://app.example")),
        (vec!["https://other.example".to_owned()], None),
        (vec!["*".to_owned()], Some("access-control-allow-origin: *")),
    ] {
        let site = Site::with(|options| options.cors_origins = origins.clone()).await;
        for request in [preflight, get] {
            let answer = site.client.raw(request.as_bytes()).await;
            match allowed {
                Some(header) => assert!(answer.contains(header), "{origins:?}: {answer}"),
                None => assert!(!answer.contains("access-control-allow-origin"), "{origins:?}: {answer}"),
            }
        }
    }
    let plain = Site::new().await;
    assert_eq!(plain.client.send(Method::OPTIONS, "/v1/boards", None, "").await.refusal(), (405, "method_not_allowed"));
}

#[actix_web::test]
async fn the_type_of_a_problem_leads_to_its_description() {
    let site = Site::with_board("b").await;
    for path in ["/v1/boards/unknown", "/v1/boards/b/rankings?limit=x", "/v1/boards/b/subjects/a/values"] {
        let problem = site.client.get(path).await;
        let page = site.client.get(problem.body["type"].as_str().unwrap()).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(page.header("content-type").starts_with("text/html"));
        assert!(page.text.contains(problem.code()) && page.text.contains("What to do"), "{}", page.text);
    }
    // Also the codes of rejected items.
    assert!(site.client.get("/problems/too_late").await.text.contains("rejected item"));
    assert_eq!(site.client.get("/problems/nothing").await.refusal(), (404, "not_found"));
}
