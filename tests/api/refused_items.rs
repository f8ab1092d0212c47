//! Items that are refused: what a single event answers, strict requests, and numbers that are sent as texts.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;

/// With the sales of each seller, in cents, and their number.
async fn site() -> Site {
    let site = Site::new().await;
    let sales = json!({"metric": "SUM(24h, sale, amount, seller)", "slot": "1h", "decimals": 2});
    assert_eq!(site.client.put("/v1/boards/sales", sales).await.status, 201);
    assert_eq!(site.client.define("big", "COUNT(24h, sale, seller WHERE amount >= 100)", "1h").await.status, 201);
    site
}

fn sale(amount: Value) -> Value {
    json!({"type": "sale", "fields": {"seller": "s1", "amount": amount}})
}

async fn send(site: &Site, body: Value) -> Answer {
    site.client.post("/v1/events", body).await
}

#[actix_web::test]
async fn a_single_event_that_no_board_counts_because_it_is_refused_is_an_error() {
    let site = site().await;
    let without = json!({"type": "sale", "fields": {"seller": "s1"}});
    let mut late = sale(json!(1));
    late["at"] = json!("2026-01-01T00:00:00Z");
    for (event, code) in [
        (without, "missing_field"),
        (sale(json!("19,99")), "invalid_field"),
        (sale(json!(19.999)), "amount_precision"),
        (late, "too_late"),
        (json!({"type": "", "fields": {}}), "invalid_type"),
    ] {
        let answer = send(&site, event.clone()).await;
        assert_eq!(answer.refusal(), (422, "rejected"), "{event}");
        assert_eq!((&answer.body["index"], &answer.body["rejected"][0]["code"]), (&json!(0), &json!(code)), "{event}");
        assert!(answer.body["rejected_counts"][code].as_u64() >= Some(1), "{event}");
        // In a list the others count, so the status says nothing about one of them.
        let answer = send(&site, json!({"events": [event, sale(json!(1))]})).await;
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{}", answer.text);
    }
    // One board counts it, or none has to: these are outcomes, not errors.
    assert_eq!(site.client.define("all", "COUNT(24h, sale, seller)", "1h").await.status, 201);
    let partly = send(&site, json!({"type": "sale", "fields": {"seller": "s1"}})).await;
    assert_eq!((partly.status, &partly.body["accepted"]), (200, &json!(1)), "{}", partly.text);
    assert_eq!(send(&site, json!({"type": "return", "fields": {}})).await.body["unknown"], 1);
}

#[actix_web::test]
async fn numbers_in_texts_are_exact() {
    let site = site().await;
    for amount in [json!("19.99"), json!(19.99), json!("100"), json!("1.5e2"), json!("-0.01"), json!("90071992547.41")]
    {
        let answer = send(&site, sale(amount.clone())).await;
        assert_eq!(answer.body["boards"]["sales"]["accepted"], 1, "{amount}: {}", answer.text);
    }
    assert_eq!(site.client.score("sales", "s1").await, json!(90_071_992_837.38));
    assert_eq!(site.client.score("big", "s1").await, json!(3));
    for (amount, code) in [("19.999", "amount_precision"), ("1e99", "amount_out_of_range"), ("", "invalid_field")] {
        let answer = send(&site, sale(json!(amount))).await;
        assert_eq!(answer.body["rejected"][0]["code"], code, "{amount}");
    }
    let added = site.client.add("sales", json!({"subject": "s2", "amount": "19.99"})).await;
    assert_eq!((added.status, &added.body["accepted"]), (200, &json!(1)), "{}", added.text);
    assert_eq!(site.client.define("best", "MAX(24h, game, score, player)", "1h").await.status, 201);
    let sample = json!({"subject": "p", "value": "9007199254", "at": "2026-01-02T10:00:00Z"});
    assert_eq!(site.client.put("/v1/boards/best/samples", sample).await.body["accepted"], 1);
    assert_eq!(site.client.score("best", "p").await, json!(9_007_199_254_u64));
    for text in ["", "x", "1,5", " 1", "0x10", "NaN"] {
        let answer = site.client.add("sales", json!({"subject": "s2", "amount": text})).await;
        assert_eq!(answer.refusal(), (422, "invalid_field"), "{text}");
    }
    assert_eq!(site.client.score("sales", "s2").await, json!(19.99));
    let rule = json!({"rule": "amount > 100 AND amount = 150.0", "fields": {"amount": "150"}});
    assert_eq!(site.client.post("/v1/evaluate", rule).await.body["hit"], true);
}

#[actix_web::test]
async fn a_strict_request_counts_all_items_or_none() {
    let site = site().await;
    let events = |last: Value| json!({"events": [sale(json!(1)), sale(json!(2)), last]});
    let refused = send_strict(&site, "/v1/events", events(sale(json!("x")))).await;
    assert_eq!((refused.refusal(), &refused.body["index"]), ((422, "rejected"), &json!(2)), "{}", refused.text);
    let invalid = send_strict(&site, "/v1/events", events(json!({"fields": {}}))).await;
    assert_eq!((invalid.refusal(), &invalid.body["index"]), ((422, "rejected"), &json!(2)));
    let increments = |last: Value| json!({"increments": [{"subject": "s1"}, last]});
    let path = "/v1/boards/sales/increments";
    let refused = send_strict(&site, path, increments(json!({"subject": "s2", "amount": 0.001}))).await;
    assert_eq!((refused.refusal(), &refused.body["index"]), ((422, "rejected"), &json!(1)), "{}", refused.text);
    assert_eq!(refused.body["rejected"][0]["code"], "amount_precision");
    assert_eq!(site.client.score("sales", "s1").await, json!(0));
    // What only the store knows is reported as without `strict`.
    let late = json!({"subject": "s2", "amount": 1, "at": "2026-01-01T00:00:00Z"});
    let answer = send_strict(&site, path, increments(late)).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{}", answer.text);
    assert_eq!(answer.body["rejected"][0]["code"], "too_late");
    let answer = send_strict(&site, "/v1/events", events(sale(json!(3)))).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(3)), "{}", answer.text);
    assert_eq!(site.client.score("sales", "s1").await, json!(7));
    for path in ["/v1/events?strict=true", "/v1/boards/sales/increments?strict=true"] {
        let stream = site.client.send(reqwest::Method::POST, path, Some("application/x-ndjson"), "{}\n").await;
        assert_eq!((stream.refusal(), &stream.body["field"]), ((422, "invalid_field"), &json!("strict")));
    }
}

async fn send_strict(site: &Site, path: &str, body: Value) -> Answer {
    site.client.post(&format!("{path}?strict=true"), body).await
}

/// Each event has an outcome on each board, so a small body can have very many: they are not held all at once.
#[actix_web::test]
async fn refusals_by_many_boards_are_settled_in_portions() {
    const BOARDS: usize = 20;
    const EVENTS: usize = 10_000;
    let site = Site::new().await;
    for number in 0..BOARDS {
        let defined = site.client.define(&format!("b{number}"), "COUNT(24h, s, x)", "1h").await;
        assert_eq!(defined.status, 201);
    }
    let refused = async |events: usize| {
        let before = site.switch.calls();
        let answer = send(&site, json!({"events": vec![json!({"type": "s"}); events]})).await;
        assert_eq!(answer.body["rejected_counts"], json!({"missing_field": events * BOARDS}), "{}", answer.text);
        site.switch.calls() - before
    };
    // The first request also reads the list of boards.
    refused(10).await;
    let (few, many) = (refused(10).await, refused(EVENTS).await);
    assert!(many > few, "{many} calls for {EVENTS} events, and {few} for 10");
    let strict = json!({"events": vec![json!({"type": "s"}); EVENTS]});
    let answer = site.client.post("/v1/events?strict=true", strict).await;
    assert_eq!(answer.refusal(), (422, "rejected"));
    assert_eq!(answer.body["rejected_counts"], json!({"missing_field": EVENTS * BOARDS}));
}
