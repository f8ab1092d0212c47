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
async fn distinct_and_from_first_boards_refuse_samples() {
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
async fn a_single_sample_of_the_wrong_shape_is_refused() {
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

#[actix_web::test]
async fn a_sample_replaces_and_repeating_it_changes_nothing() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "a", "b"]).await;
    let sample = |amount: i64| json!({"subject": "a", "at": "2026-01-02T10:01:00Z", "amount": amount});
    for (amount, score) in [(412, 412), (412, 412), (7, 7)] {
        let path = "/v1/boards/b/samples?return=score";
        let answer = site.client.put(path, sample(amount)).await;
        assert_eq!(
            answer.body,
            json!({"accepted": 1, "duplicates": 0, "rejected": [],
                "scores": [{"index": 0, "subject": "a", "score": score}]})
        );
        let page = site.client.get("/v1/boards/b/rankings").await;
        assert_eq!(page.body["items"][0], json!({"rank": 1, "subject": "a", "score": score}));
    }
    // An increment after it adds to it, another slot is another sample, and 0 empties a slot.
    site.client.count("b", &["a"]).await;
    let earlier = json!({"subject": "a", "at": "2026-01-02T08:00:00Z", "amount": 100});
    assert_eq!(set(&site.client, "b", earlier).await.body["accepted"], 1);
    assert_eq!(site.client.score("b", "a").await, 108);
    assert_eq!(set(&site.client, "b", sample(0)).await.body["accepted"], 1);
    assert_eq!(site.client.score("b", "a").await, 100);
}

#[actix_web::test]
async fn each_kind_of_metric_has_its_own_fields() {
    let site = Site::new().await;
    for metric in ["AVG", "MIN", "MAX"] {
        let definition = json!({"metric": format!("{metric}(2h, measured, v, sensor)"), "slot": "1h", "decimals": 1});
        define(&site, &metric.to_lowercase(), definition).await;
    }
    let at = ["2026-01-02T09:00:00Z", "2026-01-02T10:00:00Z"];
    for (board, samples, score) in [
        ("avg", [json!({"sum": 10.5, "count": 3}), json!({"sum": 4.5, "count": 2})], 3.0),
        ("min", [json!({"value": -1.5}), json!({"value": 3})], -1.5),
        ("max", [json!({"value": -1.5}), json!({"value": 3})], 3.0),
    ] {
        let samples: Vec<Value> = samples
            .into_iter()
            .zip(at)
            .map(|(mut sample, at)| {
                sample["subject"] = json!("a");
                sample["at"] = json!(at);
                sample
            })
            .collect();
        for _ in 0..2 {
            let answer = set(&site.client, board, json!({"samples": samples})).await;
            assert_eq!(answer.body["accepted"], 2, "{answer:?}");
            assert_eq!(site.client.score(board, "a").await.as_f64(), Some(score), "{board}");
        }
    }
    // A correction may make an extreme worse.
    let worse = json!({"subject": "a", "at": at[1], "value": -7});
    assert_eq!(set(&site.client, "max", worse).await.body["accepted"], 1);
    assert_eq!(site.client.score("max", "a").await.as_f64(), Some(-1.5));
    let nothing = json!({"samples": [{"subject": "a", "at": at[0], "sum": 0, "count": 0}, {"subject": "a", "at": at[1],
        "sum": 0, "count": 0}]});
    assert_eq!(set(&site.client, "avg", nothing).await.body["accepted"], 2);
    assert_eq!(site.client.score("avg", "a").await, Value::Null);
}

#[actix_web::test]
async fn end_stamped_samples_count_in_the_preceding_slot() {
    let site = Site::new().await;
    let definition = json!({"metric": "COUNT(1h, calls, host)", "slot": "1m", "stamp": "end"});
    define(&site, "b", definition).await;
    let text = "{\"subject\":\"a\",\"at\":\"2026-01-02T10:02:00Z\",\"amount\":1}\n".repeat(2_500)
        + "{\"subject\":\"a\",\"at\":\"2026-01-02T10:02:00Z\",\"amount\":5}\n";
    let answer = site.client.send(Method::PUT, "/v1/boards/b/samples", Some("application/x-ndjson"), text).await;
    assert_eq!(answer.body["accepted"], 2_501, "{answer:?}");
    let standing = site.client.get("/v1/boards/b/subjects/a").await;
    assert_eq!(standing.body["score"], 5);
    assert_eq!(standing.body["slots"][0]["from"], "2026-01-02T10:01:00Z", "{standing:?}");
}
