//! A store that fails: every answer says what is known, and when to come back.

use serde_json::json;

use crate::failing_store::Fault;
use crate::site::Site;

const FAULTS: [(Fault, u16, &str, &str); 7] = [
    (Fault::Unreachable, 503, "store_unreachable", "1"),
    (Fault::TimedOut, 503, "store_timeout", "1"),
    (Fault::Overloaded, 503, "overloaded", "3"),
    (Fault::ReadOnly, 503, "store_read_only", "1"),
    (Fault::Backend, 500, "internal", ""),
    (Fault::BoardChanged, 409, "board_changed", ""),
    (Fault::ClockDoubted, 503, "clock_doubted", "57"),
];

#[actix_web::test]
async fn a_failed_write_says_why_and_when_to_retry() {
    for (fault, status, code, retry_after) in FAULTS {
        let site = Site::with_board("b").await;
        site.client.count("b", &["a"]).await;
        site.switch.fail(fault);
        for answer in [
            site.client.add("b", json!({"subject": "a"})).await,
            site.client.delete("/v1/boards/b/subjects/a").await,
            site.client.get("/v1/boards/b/rankings").await,
            site.client.ndjson("b", "{\"subject\":\"a\"}\n").await,
        ] {
            assert_eq!((answer.refusal(), answer.header("retry-after")), ((status, code), retry_after), "{answer:?}");
            assert!(!answer.text.contains("secret"), "{answer:?}");
            if code == "internal" {
                assert_eq!(answer.body["request_id"].as_str().unwrap().len(), 16);
            }
        }
    }
}

#[actix_web::test]
async fn a_store_error_fails_readiness_but_not_liveness() {
    for (fault, reason) in [
        (Fault::Unreachable, "nowhere:1"),
        (Fault::ReadOnly, "the store takes no writes: the disk is full"),
        (
            Fault::ClockDoubted,
            "the system clock reads 2033-05-18T03:33:20Z, but 2023-11-14T22:13:20Z was the last time",
        ),
    ] {
        let site = Site::new().await;
        let ready = site.client.get("/readyz").await.body;
        assert_eq!((&ready["status"], &ready["warnings"]), (&json!("ready"), &json!([])));
        site.switch.fail(fault);
        let answer = site.client.get("/readyz").await;
        assert_eq!(answer.refusal(), (503, "not_ready"));
        assert!(answer.body["reasons"][0].as_str().unwrap().contains(reason), "{answer:?}");
        assert_eq!(site.client.get("/healthz").await.body["status"], "ok");
    }
}
