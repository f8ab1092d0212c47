//! The clock, rollover and audit.

use serde_json::json;

use crate::site::Site;

#[actix_web::test]
async fn the_clock_refuses_earlier_times() {
    let site = Site::new().await;
    assert_eq!(site.client.get("/v1/clock").await.body, json!({"now": "2026-01-02T10:07:00Z"}));
    for now in ["2026-01-02T10:07:00Z", "2026-01-02T12:00:00Z", "2026-01-02T12:00:00Z"] {
        let answer = site.client.put("/v1/clock", json!({"now": now})).await;
        assert_eq!((answer.status, answer.body), (200, json!({"now": now})));
    }
    let back = site.client.put("/v1/clock", json!({"now": "2026-01-02T11:59:59.999Z"})).await;
    assert_eq!((back.refusal(), &back.body["now"]), ((409, "clock_backward"), &json!("2026-01-02T12:00:00Z")));
    for bad in [json!({"now": 5}), json!({"now": "noon"}), json!({})] {
        let answer = site.client.put("/v1/clock", bad).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("now")));
    }
}

#[actix_web::test]
async fn the_clock_endpoint_requires_a_simulated_clock() {
    let site = Site::with(|options| options.simulated_clock = false).await;
    assert_eq!(site.client.get("/v1/clock").await.refusal(), (404, "not_found"));
    assert_eq!(
        site.client.put("/v1/clock", json!({"now": "2030-01-01T00:00:00Z"})).await.refusal(),
        (404, "not_found")
    );
    let document = site.client.get("/openapi.json").await;
    assert!(document.body["paths"].get("/v1/clock").is_none());
}

#[actix_web::test]
async fn a_rollover_returns_what_it_did_and_a_dry_run_what_it_would_do() {
    let site = Site::with_board("b").await;
    site.client.define("other", "COUNT(1h, x, y)", "1m").await;
    for (subject, at) in [("a", "2026-01-01T11:10:00Z"), ("a", "2026-01-02T10:01:00Z"), ("b", "2026-01-01T11:20:00Z")] {
        site.client.add("b", json!({"subject": subject, "at": at})).await;
    }
    site.client.set_clock("2026-01-02T11:00:00Z").await;
    let dry = site.client.post("/v1/boards/b/rollover?dry_run=true", json!({})).await.body;
    assert_eq!(
        (&dry["dry_run"], &dry["slots_retired"], &dry["subjects_touched"]),
        (&json!(true), &json!(1), &json!(2))
    );
    assert_eq!(site.client.get("/v1/boards/b/rankings").await.body["retiring"], 1);
    let mut done = site.client.post("/v1/boards/b/rollover", json!({})).await.body;
    assert!(done["took_ms"].is_u64(), "{done}");
    // The first call that looks advances the head. Here it is the dry run.
    done["took_ms"] = json!(0);
    let expected = json!({"board": "b", "head": "2026-01-02T11:00:00Z", "floor": "2026-01-01T12:00:00Z",
        "slots_advanced": 0, "slots_retired": 1, "subjects_touched": 2, "subjects_removed": 1, "took_ms": 0});
    assert_eq!(done, expected);
    let page = site.client.get("/v1/boards/b/rankings").await.body;
    assert_eq!((&page["retiring"], &page["items"]), (&json!(0), &json!([{"rank": 1, "subject": "a", "score": 1}])));
    let all = site.client.post("/v1/rollover", json!({})).await.body;
    let boards: Vec<_> = all.as_array().unwrap().iter().map(|done| done["board"].clone()).collect();
    assert_eq!(boards, ["b", "other"]);
    let unknown = site.client.post("/v1/boards/nope/rollover", json!({})).await;
    assert_eq!(unknown.refusal(), (404, "unknown_board"));
}

#[actix_web::test]
async fn an_audit_of_a_consistent_board_reports_no_differences() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "b"]).await;
    for path in ["/v1/boards/b/audit", "/v1/boards/b/audit?repair=true"] {
        let mut audit = site.client.post(path, json!({})).await.body;
        assert!(audit["took_ms"].is_u64(), "{audit}");
        audit["took_ms"] = json!(0);
        let expected = json!({"board": "b", "subjects_checked": 2, "differences": 0, "worst": 0, "examples": [],
            "repaired": 0, "missing_slots": 0, "took_ms": 0});
        assert_eq!(audit, expected);
    }
}
