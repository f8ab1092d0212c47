//! The value of a subject, set in every window, and two windows of one length.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;

/// A game with the best score of the calendar week, of the last seven days, of the last hour and of all time.
async fn site() -> Site {
    let site = Site::new().await;
    let best = json!({"metric": "MAX(1w, game, score, player)", "slot": "1w", "windows": ["7d/6h", "1h/1m", "all"]});
    let defined = site.client.put("/v1/boards/best", best).await;
    assert_eq!((defined.status, &defined.body["notes"]), (201, &Value::Null), "{}", defined.text);
    site
}

async fn set(site: &Site, body: Value) -> Answer {
    site.client.put("/v1/boards/best/subjects/p1", body).await
}

async fn scores(site: &Site) -> Value {
    let mut scores = Vec::new();
    for window in ["1w", "7d", "1h", "all"] {
        let read = site.client.get(&format!("/v1/boards/best/subjects/p1?window={window}")).await;
        scores.push(read.body["score"].clone());
    }
    scores.into()
}

#[actix_web::test]
async fn a_calendar_week_and_seven_days_are_two_windows() {
    let site = site().await;
    // The clock reads Friday, 2 January; the week began on Monday, 29 December.
    for (player, at) in [("p1", "2025-12-30T12:00:00Z"), ("p2", "2025-12-27T12:00:00Z"), ("p1", "2026-01-02T10:07:00Z")]
    {
        let item = json!({"subject": player, "value": 5, "at": at});
        assert_eq!(site.client.add("best", item).await.body["accepted"], 1);
    }
    for (window, total, slots) in [("1w", 1, 1), ("7d", 2, 28), ("168h", 1, 1), ("all", 2, 0)] {
        let page = site.client.get(&format!("/v1/boards/best/rankings?window={window}")).await;
        assert_eq!((&page.body["total"], &page.body["window"]["slots"]), (&json!(total), &json!(slots)), "{window}");
    }
    for windows in [json!(["1w/1w"]), json!(["1w/1d"]), json!(["7d/1w"])] {
        let wrong = json!({"metric": "MAX(1w, game, score, player)", "slot": "1w", "windows": windows});
        let answer = site.client.put("/v1/boards/other", wrong).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("windows")));
    }
}

#[actix_web::test]
async fn a_wrong_best_score_is_corrected_in_every_window() {
    let site = site().await;
    for (value, at) in [(999_999, "2026-01-02T10:00:00Z"), (700, "2025-12-30T12:00:00Z"), (900, "2020-01-01T00:00:00Z")]
    {
        let item = json!({"subject": "p1", "value": value, "at": at});
        assert_eq!(site.client.add("best", item).await.body["accepted"], 1);
    }
    assert_eq!(scores(&site).await, json!([999_999, 999_999, 999_999, 999_999]));
    let sample = json!({"subject": "p1", "value": 880, "at": "2026-01-02T09:00:00Z"});
    let samples = site.client.put("/v1/boards/best/samples", sample).await;
    assert_eq!(samples.refusal(), (409, "samples_unsupported"));
    assert!(samples.text.contains("PUT /v1/boards/best/subjects/{subject}"), "{}", samples.text);
    // Twice, as after an answer that was lost.
    for _ in 0..2 {
        let answer = set(&site, json!({"value": "880", "at": "2026-01-02T09:00:00Z"})).await;
        let expected = json!({"board": "best", "subject": "p1", "score": 880, "as_of": "2026-01-02T10:07:00Z"});
        assert_eq!((answer.status, answer.body), (200, expected));
        assert_eq!(scores(&site).await, json!([880, 880, null, 880]));
    }
    assert_eq!(set(&site, json!({"value": 5})).await.body["score"], 5);
    assert_eq!(scores(&site).await, json!([5, 5, 5, 5]));
    let audit = site.client.post("/v1/boards/best/audit", json!({})).await;
    assert_eq!(audit.body["differences"], 0, "{}", audit.text);
}

#[actix_web::test]
async fn a_value_that_cannot_be_set_changes_nothing() {
    let site = site().await;
    assert_eq!(set(&site, json!({"value": 5})).await.status, 200);
    for (body, code, field) in [
        (json!({}), "invalid_field", "value"),
        (json!({"amount": 5}), "unknown_field", "amount"),
        (json!({"value": 1, "amount": 5}), "unknown_field", "amount"),
        (json!({"value": "x"}), "invalid_field", "value"),
        (json!({"value": 0.5}), "invalid_field", "value"),
        (json!({"value": 9_007_199_254_740_991_i64}), "invalid_field", "value"),
        (json!({"value": 1, "at": "2026-01-02T10:07:01Z"}), "invalid_field", "at"),
        (json!({"value": 1, "at": "yesterday"}), "invalid_field", "at"),
        (json!({"value": 1, "id": "x"}), "unknown_field", "id"),
    ] {
        let answer = set(&site, body.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, code), &json!(field)), "{body}");
        assert_eq!(scores(&site).await, json!([5, 5, 5, 5]), "{body}");
    }
    let unknown = site.client.put("/v1/boards/none/subjects/p1", json!({"value": 1})).await;
    assert_eq!(unknown.refusal(), (404, "unknown_board"));
    let likes = json!({"metric": "COUNT(1h, like, post)", "slot": "1m"});
    assert_eq!(site.client.put("/v1/boards/likes", likes).await.status, 201);
    let late = json!({"amount": 1, "at": "2026-01-02T09:00:00Z"});
    let late = site.client.put("/v1/boards/likes/subjects/p", late).await;
    assert_eq!((late.refusal(), &late.body["field"]), ((422, "invalid_field"), &json!("at")));
    let users = json!({"metric": "COUNT_DISTINCT(1h, like, post, user)", "slot": "1m"});
    assert_eq!(site.client.put("/v1/boards/users", users).await.status, 201);
    let distinct = site.client.put("/v1/boards/users/subjects/p", json!({"value": 1})).await;
    assert_eq!(distinct.refusal(), (409, "samples_unsupported"));
    let none = site.client.send(Method::PUT, "/v1/boards/best/subjects/p1", Some("application/json"), "[]").await;
    assert_eq!(none.status, 422);
}

#[actix_web::test]
async fn values_that_are_set_at_the_same_time_are_not_added_up() {
    let site = Site::new().await;
    let total = json!({"metric": "SUM(24h, sale, amount, seller)", "slot": "1h", "windows": ["7d/6h", "all"]});
    assert_eq!(site.client.put("/v1/boards/sales", total).await.status, 201);
    for _ in 0..20 {
        let set = |amount: u32| site.client.put("/v1/boards/sales/subjects/ann", json!({"amount": amount}));
        let answers = futures_util::future::join_all((1..=8).map(set)).await;
        assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
        let score = site.client.score("sales", "ann").await;
        assert!((1..=8).any(|amount| score == amount), "{score}");
    }
    let refused = site.client.put("/v1/boards/sales/subjects/ann", json!({"amount": 9_007_199_254_740_991_i64})).await;
    assert_eq!((refused.status, &refused.body["field"]), (422, &json!("amount")));
}

/// The bounds of a board are about what is new: what has nothing yet is refused before anything changes, and what is there is
/// not removed for a value that has no room.
#[actix_web::test]
async fn a_value_is_set_within_the_bounds_of_the_board_and_never_lost_to_them() {
    let site = Site::new().await;
    let client = &site.client;
    let by = json!({"metric": "COUNT(24h, like, post BY tag)", "slot": "1h", "max_keys": 2});
    assert_eq!(client.put("/v1/boards/by", by).await.status, 201);
    let add = async |tag: &str| {
        let increments = json!({"increments": [{"subject": "x", "by": tag, "amount": 7}]});
        client.post("/v1/boards/by/increments", increments).await.body["accepted"].clone()
    };
    assert_eq!((add("k0").await, add("k1").await, add("k2").await), (json!(1), json!(1), json!(0)));
    let set = async |tag: &str| client.put(&format!("/v1/boards/by/subjects/x?by={tag}"), json!({"amount": 9})).await;
    let refused = set("k2").await;
    assert_eq!((refused.refusal(), &refused.body["rejected"][0]["code"]), ((422, "rejected"), &json!("too_many_keys")));
    // A key that is counted while another one is hidden is one too many when that is shown again.
    assert_eq!(client.put("/v1/boards/by/subjects/x/hidden?by=k0", json!({})).await.status, 200);
    assert_eq!(add("k2").await, 1);
    assert_eq!(client.delete("/v1/boards/by/subjects/x/hidden?by=k0").await.status, 200);
    assert_eq!(set("k0").await.refusal(), (422, "rejected"));
    assert_eq!(client.get("/v1/boards/by/subjects/x?by=k0").await.body["score"], 7);
    // Another subject keeps the ranking of the key.
    assert_eq!(client.post("/v1/boards/by/increments", json!({"subject": "y", "by": "k1"})).await.status, 200);
    assert_eq!((set("k1").await.body["score"].clone(), add("k3").await), (json!(9), json!(0)));
}
