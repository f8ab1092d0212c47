//! Samples: what a slot holds, set instead of added to.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::site::Site;

async fn set(client: &Client, board: &str, body: Value) -> Answer {
    client.put(&format!("/v1/boards/{board}/samples"), body).await
}

async fn define(site: &Site, board: &str, definition: Value) {
    let answer = site.client.put(&format!("/v1/boards/{board}"), definition).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[actix_web::test]
async fn boards_that_have_no_numbers_or_no_slots_take_none() {
    let site = Site::new().await;
    for (board, definition) in [
        ("distinct", json!({"metric": "COUNT_DISTINCT(24h, login, device, user)", "slot": "1h"})),
        ("approx", json!({"metric": "APPROX_COUNT_DISTINCT(24h, login, device, user)", "slot": "1h"})),
        ("first", json!({"metric": "COUNT(24h, login, device)", "mode": "from_first", "ranked": false})),
    ] {
        define(&site, board, definition).await;
        let sample = json!({"subject": "a", "at": "2026-01-02T10:00:00Z", "amount": 1});
        let answer = set(&site.client, board, sample.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["board"]), ((409, "samples_unsupported"), &json!(board)));
        let path = format!("/v1/boards/{board}/samples");
        let answer = site.client.send(Method::PUT, &path, Some("application/x-ndjson"), sample.to_string()).await;
        assert_eq!(answer.refusal(), (409, "samples_unsupported"));
    }
    let nowhere = set(&site.client, "nowhere", json!({})).await;
    assert_eq!(nowhere.refusal(), (404, "unknown_board"));
}

#[actix_web::test]
async fn a_sample_alone_of_the_wrong_shape_is_a_refusal() {
    let site = Site::with_board("b").await;
    for (body, code, field) in [
        (json!({}), "invalid_field", json!("subject")),
        (json!({"subject": "a"}), "invalid_field", json!("at")),
        (json!({"subject": "a", "at": "2026-01-02T10:00:00Z"}), "invalid_field", json!("amount")),
        (json!({"subject": "a", "at": "2026-01-02T10:00:00Z", "value": 1}), "unknown_field", json!("value")),
        (json!({"subject": "a", "at": "2026-01-02T10:00:00Z", "amount": 1, "id": "x"}), "unknown_field", json!("id")),
        (json!({"samples": 5}), "invalid_field", json!("samples")),
        (json!({"increments": []}), "unknown_field", json!("increments")),
    ] {
        let answer = set(&site.client, "b", body.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, code), &field), "{body}: {answer:?}");
    }
    let batch = json!({"samples": [{"subject": "a"}, 5, {"subject": "a", "at": "2026-01-01T10:59:59Z", "amount": 1},
        {"subject": "a", "at": "2026-01-02T11:00:00Z", "amount": 1}]});
    let answer = set(&site.client, "b", batch).await;
    let codes: Vec<_> = answer.body["rejected"].as_array().unwrap().iter().map(|r| r["code"].clone()).collect();
    assert_eq!(codes, ["missing_at", "invalid_sample", "too_late", "too_early"], "{answer:?}");
}
