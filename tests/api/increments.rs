//! Increments as JSON: one, and a batch.

use serde_json::{Value, json};

use crate::site::Site;

#[actix_web::test]
async fn an_increment_without_optional_fields_uses_the_defaults() {
    let site = Site::with_board("b").await;
    let client = &site.client;
    let answer = client.add("b", json!({"subject": "post-1"})).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, r#"{"accepted":1,"duplicates":0,"rejected":[]}"#));
    let full = json!({"subject": "post-1", "amount": 4, "at": "2026-01-02T09:59:59Z", "id": "e-1"});
    assert_eq!(client.add("b", full.clone()).await.body["accepted"], 1);
    assert_eq!(client.add("b", full).await.body, json!({"accepted": 0, "duplicates": 1, "rejected": []}));
    let nulls = json!({"subject": "post-1", "amount": null, "at": null, "id": null});
    assert_eq!(client.add("b", nulls).await.body["accepted"], 1);
    assert_eq!(client.score("b", "post-1").await, 6);
}

#[actix_web::test]
async fn an_invalid_value_is_rejected_and_a_wrong_shape_is_refused() {
    let site = Site::with_board("b").await;
    for (body, code) in [
        (json!({"subject": "x", "at": "2026-01-01T10:59:59.999Z"}), "too_late"),
        (json!({"subject": "x", "at": "2026-01-02T10:07:05.001Z"}), "too_early"),
        (json!({"subject": "x", "at": "yesterday"}), "invalid_at"),
        (json!({"subject": ""}), "invalid_subject"),
        (json!({"subject": "a\nb"}), "invalid_subject"),
        (json!({"subject": "é".repeat(257)}), "invalid_subject"),
        (json!({"subject": "x", "id": ""}), "invalid_id"),
        (json!({"subject": "x", "amount": 0.5}), "amount_precision"),
        (json!({"subject": "x", "amount": 1e300}), "amount_out_of_range"),
        (json!({"subject": "x", "amount": 9_007_199_254_740_991_i64}), "amount_out_of_range"),
    ] {
        let answer = site.client.add("b", body.clone()).await;
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
        let rejected = &answer.body["rejected"][0];
        assert_eq!((&rejected["index"], &rejected["code"]), (&json!(0), &json!(code)), "{body}: {answer:?}");
        assert_eq!(answer.body["rejected_counts"], json!({code: 1}), "{body}");
    }
    for (body, code, field) in [
        (json!({}), "invalid_field", json!("subject")),
        (json!({"subject": 5}), "invalid_field", json!("subject")),
        (json!({"subject": null}), "invalid_field", json!("subject")),
        (json!({"subject": "x", "amount": "five"}), "invalid_field", json!("amount")),
        (json!({"subject": "x", "amount": [1]}), "invalid_field", json!("amount")),
        (json!({"subject": "x", "at": 5}), "invalid_field", json!("at")),
        (json!({"subject": "x", "id": {"a": 1}}), "invalid_field", json!("id")),
        (json!({"subject": "x", "ammount": 5}), "unknown_field", json!("ammount")),
        (json!([]), "invalid_field", json!("body")),
        (json!("x"), "invalid_field", json!("body")),
        (json!({"increments": {"subject": "x"}}), "invalid_field", json!("increments")),
        (json!({"increments": null}), "invalid_field", json!("increments")),
        (json!({"increments": [], "subject": "x"}), "unknown_field", Value::Null),
    ] {
        let answer = site.client.add("b", body.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, code), &field), "{body}: {answer:?}");
    }
    assert_eq!(site.client.score("b", "x").await, 0);
}

#[actix_web::test]
async fn valid_items_of_a_batch_count_and_invalid_ones_are_listed() {
    let site = Site::with_board("b").await;
    // Written by hand: a lone surrogate and a number beyond floats are JSON, but no library writes them.
    let body = r#"{"increments":[{"subject":"a"},5,{"subject":"a","amount":2},{"subject":7},{"subjet":"a"},null,
        {"subject":"\ud800"},{"subject":"a","at":1e999},{"subject":"a","subject":"b"},{"subject":"late",
        "at":"2025-01-01T00:00:00Z"},{"subject":"a","amount":4,"id":"i"},{"subject":"a","amount":4,"id":"i"}]}"#;
    let path = "/v1/boards/b/increments";
    let answer = site.client.send(reqwest::Method::POST, path, Some("application/json"), body).await;
    assert_eq!((answer.status, &answer.body["accepted"], &answer.body["duplicates"]), (200, &json!(3), &json!(1)));
    let named: Vec<_> =
        answer.body["rejected"].as_array().unwrap().iter().map(|r| (r["index"].clone(), r["code"].clone())).collect();
    let expected = [
        (1, "invalid_increment"),
        (3, "invalid_subject"),
        (4, "unknown_field"),
        (5, "invalid_increment"),
        (6, "invalid_increment"),
        (7, "invalid_increment"),
        (8, "invalid_increment"),
        (9, "too_late"),
    ];
    assert_eq!(named, expected.map(|(index, code)| (json!(index), json!(code))), "{answer:?}");
    assert_eq!(answer.body["rejected_counts"]["invalid_increment"], 5);
    assert_eq!(site.client.score("b", "a").await, 7);
}

#[actix_web::test]
async fn at_most_1000_rejections_are_listed_and_all_are_counted() {
    let site = Site::with_board("b").await;
    // By turns refused by us and by the store, and shown in the order sent.
    let bad = [json!({"subject": ""}), json!({"subject": "a", "at": "2020-01-01T00:00:00Z"})];
    let items: Vec<_> = bad.iter().cycle().take(1_500).collect();
    let answer = site.client.add("b", json!({"increments": items})).await;
    let shown: Vec<_> =
        answer.body["rejected"].as_array().unwrap().iter().map(|r| r["index"].as_u64().unwrap()).collect();
    assert_eq!(shown, (0..1_000).collect::<Vec<_>>());
    assert_eq!(answer.body["rejected_counts"], json!({"invalid_subject": 750, "too_late": 750}));
}

#[actix_web::test]
async fn scores_are_returned_on_request() {
    let site = Site::with_board("b").await;
    let path = "/v1/boards/b/increments?return=score";
    let batch = json!({"increments": [
        {"subject": "a", "amount": 5}, {"subject": ""}, {"subject": "b", "id": "i"}, {"subject": "b", "id": "i"}]});
    let answer = site.client.post(path, batch).await;
    assert_eq!(
        answer.body["scores"],
        json!([{"index": 0, "subject": "a", "score": 5}, {"index": 2, "subject": "b", "score": 1},
            {"index": 3, "subject": "b", "score": 1}]),
        "{answer:?}"
    );
    let none = site.client.post(path, json!({"increments": []})).await;
    assert_eq!(none.body, json!({"accepted": 0, "duplicates": 0, "rejected": [], "scores": []}));
    let refused = site.client.post("/v1/boards/b/increments?return=rank", json!({"subject": "a"})).await;
    assert_eq!(refused.refusal(), (422, "invalid_field"));
}

#[actix_web::test]
async fn amounts_are_exact_to_the_last_decimal() {
    let site = Site::new().await;
    let definition = json!({"metric": "SUM(7d, sale, amount, seller)", "slot": "1h", "decimals": 2});
    site.client.put("/v1/boards/s", definition).await;
    for amount in ["0.1", "0.2", "-0.1", "1e1", "12345678901.23"] {
        let body = format!(r#"{{"subject":"x","amount":{amount}}}"#);
        let path = "/v1/boards/s/increments";
        let answer = site.client.send(reqwest::Method::POST, path, Some("application/json"), body).await;
        assert_eq!(answer.body["accepted"], 1, "{answer:?}");
    }
    let page = site.client.get("/v1/boards/s/rankings").await;
    assert!(page.text.contains(r#""score":12345678911.43}"#), "{}", page.text);
    let fine = site.client.add("s", json!({"subject": "x", "amount": 0.125})).await;
    assert_eq!(fine.body["rejected"][0]["code"], "amount_precision");
}

#[actix_web::test]
async fn a_board_redefined_by_another_instance_is_read_again() {
    // Two instances over one store would do this; one instance does it with its cache of the first board.
    let site = Site::with_board("b").await;
    let other = site.second_instance();
    assert_eq!(other.add("b", json!({"subject": "a"})).await.body["accepted"], 1);
    site.client.delete("/v1/boards/b").await;
    let definition = json!({"metric": "SUM(7d, sale, amount, seller)", "slot": "1h", "decimals": 2});
    assert_eq!(site.client.put("/v1/boards/b", definition).await.status, 201);
    let answer = other.add("b", json!({"subject": "a", "amount": 0.25})).await;
    assert_eq!(answer.body["accepted"], 1, "{answer:?}");
    assert_eq!(other.score("b", "a").await, json!(0.25));
    site.client.delete("/v1/boards/b").await;
    assert_eq!(other.add("b", json!({"subject": "a"})).await.refusal(), (404, "unknown_board"));
}

#[actix_web::test]
async fn a_retraction_subtracts_from_the_slot_of_its_increment() {
    let site = Site::with_board("b").await;
    let at = "2026-01-01T11:30:00Z";
    site.client.add("b", json!({"subject": "a", "at": at, "id": "e-1"})).await;
    let undone = json!({"subject": "a", "at": at, "id": "r-1", "retract": true});
    for (accepted, duplicates) in [(1, 0), (0, 1)] {
        let answer = site.client.add("b", undone.clone()).await;
        assert_eq!(answer.body, json!({"accepted": accepted, "duplicates": duplicates, "rejected": []}));
    }
    let standing = site.client.get("/v1/boards/b/subjects/a").await;
    assert_eq!((&standing.body["score"], &standing.body["slots"]), (&json!(0), &json!([])), "{standing:?}");
    // A retraction of an increment that has left the window is accepted and changes nothing.
    let late = json!({"subject": "a", "at": "2026-01-01T10:59:59Z", "retract": true});
    assert_eq!(site.client.add("b", late.clone()).await.body["accepted"], 1);
    assert_eq!(site.client.score("b", "a").await, 0);
    // With an id that was counted before it is a duplicate, and its receipt says so.
    for (id, accepted) in [("e-1", 0), ("r-2", 1), ("r-2", 1)] {
        let mut late = late.clone();
        late["id"] = json!(id);
        let receipt = json!({"accepted": accepted, "duplicates": 1 - accepted, "rejected": []});
        assert_eq!(site.client.add("b", late).await.body, receipt, "{id}");
    }
    let timeless = site.client.add("b", json!({"subject": "a", "retract": true})).await;
    assert_eq!(timeless.body["rejected"][0]["code"], "missing_at");
}

#[actix_web::test]
async fn fields_are_checked_against_the_current_definition() {
    let site = Site::with_board("b").await;
    let other = site.second_instance();
    let value = json!({"subject": "a", "value": 5});
    let answer = other.add("b", value.clone()).await;
    assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "unknown_field"), &json!("value")));
    assert!(answer.body["detail"].as_str().unwrap().contains("'amount'"), "{answer:?}");
    // Defined again through the first instance, it takes a value, which the second does not know yet.
    site.client.delete("/v1/boards/b").await;
    assert_eq!(site.client.define("b", "MAX(24h, like, weight, post_id)", "1h").await.status, 201);
    let retraction = json!({"subject": "a", "value": 5, "at": "2026-01-02T10:00:00Z", "retract": true});
    let answer = other.add("b", retraction).await;
    assert_eq!((answer.status, &answer.body["rejected"][0]["code"]), (200, &json!("retraction_unsupported")));
}

#[actix_web::test]
async fn increments_are_counted_for_every_metric() {
    let site = Site::new().await;
    for (board, metric, items, score) in [
        ("avg", "AVG(24h, e, v, s)", vec![json!(1), json!(2)], json!(1.5)),
        ("min", "MIN(24h, e, v, s)", vec![json!(3), json!(-2), json!(5)], json!(-2)),
        ("max", "MAX(24h, e, v, s)", vec![json!(3), json!(-2), json!(5)], json!(5)),
        ("exact", "COUNT_DISTINCT(24h, e, s, v)", vec![json!("u"), json!(7), json!("7"), json!("é")], json!(3)),
        ("about", "APPROX_COUNT_DISTINCT(24h, e, s, v)", vec![json!("u"), json!(7), json!("7")], json!(2)),
    ] {
        assert_eq!(site.client.define(board, metric, "1h").await.status, 201);
        let sent: Vec<_> = items.iter().map(|value| json!({"subject": "a", "value": value})).collect();
        let path = format!("/v1/boards/{board}/increments?return=score");
        let answer = site.client.post(&path, json!({"increments": sent})).await;
        assert_eq!(answer.body["accepted"], items.len(), "{answer:?}");
        assert_eq!(answer.body["scores"].as_array().unwrap().last().unwrap()["score"], score, "{answer:?}");
        assert_eq!(site.client.score(board, "a").await, score, "{board}");
    }
    let at = "2026-01-02T10:00:00Z";
    for (board, value, score) in [("avg", json!(1), json!(2)), ("exact", json!("u"), json!(2))] {
        let seen = json!({"subject": "b", "value": value, "at": at});
        let undone = json!({"subject": "b", "value": value, "at": at, "retract": true});
        for item in [seen, undone] {
            assert_eq!(site.client.add(board, item).await.body["accepted"], 1);
        }
        let nothing = if board == "avg" { Value::Null } else { json!(0) };
        assert_eq!(site.client.score(board, "b").await, nothing, "{board}");
        let undone = json!({"subject": "a", "value": value, "at": "2026-01-02T10:07:00Z", "retract": true});
        assert_eq!(site.client.add(board, undone).await.body["accepted"], 1);
        assert_eq!(site.client.score(board, "a").await, score, "{board}");
    }
    // A board on which no subject has enough measurements has an empty ranking, and no error.
    let definition = json!({"metric": "AVG(24h, e, v, s)", "slot": "1h", "min_samples": 2});
    site.client.put("/v1/boards/rare", definition).await;
    let once = site.client.post("/v1/boards/rare/increments?return=score", json!({"subject": "a", "value": 4})).await;
    assert_eq!(once.body["scores"], json!([{"index": 0, "subject": "a", "score": null}]), "{once:?}");
}

#[actix_web::test]
async fn large_requests_get_the_same_responses_as_small_ones() {
    let site = Site::with_board("b").await;
    let items: Vec<Value> =
        (0..3_000).map(|i| json!({"subject": format!("post-{}", i % 300), "id": format!("id-{i}")})).collect();
    let batch = json!({"increments": items});
    assert!(batch.to_string().len() > 64 << 10);
    let path = "/v1/boards/b/increments?return=score";
    for (accepted, duplicates) in [(3_000, 0), (0, 3_000)] {
        let answer = site.client.post(path, batch.clone()).await;
        let counts = (&answer.body["accepted"], &answer.body["duplicates"], answer.status);
        assert_eq!(counts, (&json!(accepted), &json!(duplicates), 200));
        let scores = answer.body["scores"].as_array().unwrap();
        assert_eq!(scores.len(), 3_000);
        assert_eq!(scores[2_999], json!({"index": 2_999, "subject": "post-299", "score": 10}));
    }
    let asked = |i: usize| json!({"board": "b", "subject": format!("post-{i}")});
    let answer = site.client.post("/v1/query", json!({"queries": (0..301).map(asked).collect::<Vec<_>>()})).await;
    let counts: Vec<_> = answer.body["answers"].as_array().unwrap().iter().map(|answer| &answer["count"]).collect();
    assert_eq!((counts.len(), counts[0], counts[299], counts[300]), (301, &json!(10), &json!(10), &json!(0)));
    let answer = site.client.add("unknown", batch.clone()).await;
    assert_eq!(answer.refusal(), (404, "unknown_board"));
    let mut cut = batch.to_string();
    cut.pop();
    let answer = site.client.send(reqwest::Method::POST, path, Some("application/json"), cut).await;
    assert_eq!(answer.refusal(), (400, "malformed_json"));
}

#[actix_web::test]
async fn a_request_repeated_with_its_key_counts_once() {
    let site = Site::with_board("b").await;
    for (board, metric) in [("sums", "SUM(24h, sale, amount, seller)"), ("means", "AVG(24h, sale, amount, seller)")] {
        site.client.define(board, metric, "1h").await;
    }
    let send = async |key: &str, method: &str, path: &str, kind: &str, body: &str| {
        let headers = [("content-type", kind), ("idempotency-key", key)];
        let answer = site.client.send_with(method.parse().unwrap(), path, &headers, body.to_owned()).await;
        assert_eq!(answer.status, 200, "{key}");
        let receipt = answer.body;
        (receipt["accepted"].as_u64().unwrap(), receipt["duplicates"].as_u64().unwrap())
    };
    let (json, ndjson) = ("application/json", "application/x-ndjson");
    let (increments, lines) =
        ("/v1/boards/b/increments", "{\"subject\":\"a\"}\n{\"subject\":\"a\"}\n{\"subject\":\"c\"}\n");
    // Two equal items of a request are two items.
    let batch = r#"{"increments":[{"subject":"a"},{"subject":"a"},{"subject":"d","id":"own"}]}"#;
    let event = r#"{"type":"sale","fields":{"seller":"s","amount":5}}"#;
    let at = r#""at":"2026-01-02T10:00:00Z""#;
    let sample = format!(r#"{{"subject":"t","amount":9,{at}}}"#);
    for (key, method, path, kind, body, items) in [
        ("one", "POST", increments, json, r#"{"subject":"a"}"#, 1),
        ("batch", "POST", increments, json, batch, 3),
        ("stream", "POST", increments, ndjson, lines, 3),
        ("event", "POST", "/v1/events", json, event, 1),
        ("events", "POST", "/v1/events", ndjson, &format!("{event}\n{event}\n"), 2),
        ("sample", "PUT", "/v1/boards/sums/samples", json, &sample, 1),
    ] {
        assert_eq!(send(key, method, path, kind, body).await, (items, 0), "{key}");
        assert_eq!(send(key, method, path, kind, body).await, (0, items), "{key}");
    }
    assert_eq!(site.client.score("b", "a").await, 5);
    assert_eq!(site.client.score("sums", "s").await, 15);
    assert_eq!(site.client.score("sums", "t").await, 9);
    // Other keys count again, except for an item with an id of its own.
    assert_eq!(send("batch-2", "POST", increments, json, batch).await, (2, 1));
    // A part of the request that was not counted before counts now.
    assert_eq!(send("stream", "POST", increments, ndjson, &format!("{lines}{{\"subject\":\"e\"}}\n")).await, (1, 3));
    let headers = [("content-type", json), ("idempotency-key", "two words")];
    let answer = site.client.send_with(reqwest::Method::POST, increments, &headers, r#"{"subject":"a"}"#).await;
    assert_eq!(answer.status, 422);
    assert_eq!(answer.body["field"], "idempotency-key");
}
