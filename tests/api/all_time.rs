//! Boards over all time, and of the newest value.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;

async fn define(site: &Site, board: &str, definition: Value) -> Answer {
    let answer = site.client.put(&format!("/v1/boards/{board}"), definition).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer
}

/// No answer may have the bounds of the slot that a board over all time has inside.
fn without_bounds(answer: Answer) -> Value {
    assert!(answer.status < 300, "{answer:?}");
    let text = answer.body.to_string();
    assert!(!text.contains("\"1970-") && !text.contains("\"9999-"), "{text}");
    answer.body
}

#[actix_web::test]
async fn a_board_over_all_time_has_no_slots_to_the_outside() {
    let site = Site::new().await;
    let defined = define(&site, "likes", json!({"metric": "count(ALL, like, post_id)"})).await.body;
    assert_eq!(
        (&defined["metric"], &defined["slot"], &defined["dedupe"]),
        (&json!("COUNT(all, like, post_id)"), &json!(null), &json!(null))
    );
    assert_eq!((&defined["slots_in_window"], &defined["slots_kept"]), (&json!(0), &json!(0)));
    site.client.add("likes", json!({"subject": "a", "amount": 3, "at": "1999-01-01T00:00:00Z"})).await;
    site.client.add("likes", json!({"subject": "b"})).await;
    let window = json!({"from": null, "to": null, "slots": 0});
    for path in ["", "/rankings", "/subjects/a", "/subjects/a/window", "/subjects/a/neighbors", "/rankings?limit=1"] {
        let body = without_bounds(site.client.get(&format!("/v1/boards/likes{path}")).await);
        assert_eq!(body["window"], window, "{path}");
        assert_eq!(body["retiring"], 0, "{path}");
    }
    let status = without_bounds(site.client.get("/v1/boards/likes").await);
    assert_eq!((&status["head"], &status["floor"], &status["slots"]), (&json!(null), &json!(null), &json!([])));
    let standing = without_bounds(site.client.get("/v1/boards/likes/subjects/a").await);
    assert_eq!((&standing["score"], &standing["rank"], &standing["slots"]), (&json!(3), &json!(1), &json!([])));
    for (path, body) in [
        ("/v1/boards/likes/rankings/lookup", json!({"subjects": ["a"]})),
        ("/v1/boards/likes/rollover", json!({})),
        ("/v1/boards/likes/audit", json!({})),
        ("/v1/rollover?dry_run=true", json!({})),
        ("/v1/query", json!({"queries": [{"metric": "COUNT(all, like, post_id)", "subject": "a"}]})),
        ("/v1/evaluate", json!({"rule": "COUNT(all, like, post_id) > 2", "fields": {"post_id": "a"}})),
    ] {
        without_bounds(site.client.post(path, body).await);
    }
    let preview = site.client.put("/v1/boards/other?dry_run=true", json!({"metric": "MAX(all, g, s, p)"})).await;
    assert_eq!(without_bounds(preview)["slots_in_window"], 0);
    assert_eq!(site.client.delete("/v1/boards/likes/subjects/a").await.status, 200);
}

#[actix_web::test]
async fn what_needs_slots_is_refused() {
    let site = Site::new().await;
    let metric = "COUNT(all, like, post_id)";
    for (key, value) in [
        ("slot", json!("1h")),
        ("keep", json!("30d")),
        ("cover", json!("full")),
        ("stamp", json!("end")),
        ("timezone", json!("Europe/Berlin")),
        ("mode", json!("from_first")),
        ("dedupe", json!("91d")),
        ("dedupe", json!("59s")),
    ] {
        let answer = site.client.put("/v1/boards/b", json!({"metric": metric, "ranked": false, key: value})).await;
        assert_eq!(answer.refusal(), (422, "invalid_field"), "{answer:?}");
        let field = answer.body["field"].as_str().unwrap();
        assert_eq!(field, key, "{answer:?}");
    }
    let other = json!({"metric": "COUNT(1h, like, post_id)", "slot": "1m", "dedupe": "91d"});
    assert_eq!(site.client.put("/v1/boards/b", other).await.body["field"], "dedupe");
    define(&site, "likes", json!({"metric": metric, "ranked": false, "dedupe": "30d"})).await;
    for (query, code, field) in [
        ("last=1h", "invalid_field", "last"),
        ("from=2026-01-02T00:00:00Z", "invalid_field", "from"),
        ("as_of=2026-01-02T00:00:00Z", "as_of_unsupported", ""),
        ("edge=weighted", "edge_unsupported", ""),
    ] {
        let answer = site.client.get(&format!("/v1/boards/likes/subjects/a/window?{query}")).await;
        assert_eq!(answer.refusal().1, code, "{query}: {answer:?}");
        assert_eq!(answer.body["field"].as_str().unwrap_or_default(), field, "{query}");
    }
    let missing = site.client.post("/v1/evaluate", json!({"rule": "COUNT(1h, like, post_id) > 2", "fields": {}})).await;
    assert!(missing.status >= 400);
}

#[actix_web::test]
async fn retractions_and_samples_need_no_time() {
    let site = Site::new().await;
    define(&site, "likes", json!({"metric": "COUNT(all, like, post_id)"})).await;
    define(&site, "day", json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"})).await;
    site.client.add("likes", json!({"subject": "a", "amount": 5})).await;
    let retraction = json!({"subject": "a", "amount": 2, "retract": true});
    let answer = site.client.post("/v1/boards/likes/increments", retraction.clone()).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{answer:?}");
    let answer = site.client.post("/v1/boards/day/increments", retraction).await;
    assert_eq!(answer.body["rejected"][0]["code"], "missing_at", "{answer:?}");
    assert_eq!(site.client.get("/v1/boards/likes/subjects/a").await.body["score"], 3);
    let sample = json!({"subject": "a", "amount": 40});
    assert_eq!(site.client.put("/v1/boards/likes/samples", sample.clone()).await.status, 200);
    assert_eq!(site.client.put("/v1/boards/day/samples", sample).await.body["field"], "at");
    assert_eq!(site.client.get("/v1/boards/likes/subjects/a").await.body["score"], 40);
    // An event counts on every board of its type, so a retraction always has the time of the event.
    let event = json!({"type": "like", "fields": {"post_id": "a"}, "retract": true});
    let answer = site.client.post("/v1/events", event).await;
    assert_eq!(answer.body["rejected"][0]["code"], "missing_at", "{answer:?}");
    let event = json!({"type": "like", "fields": {"post_id": "a"}, "retract": true, "at": "2020-01-01T00:00:00Z"});
    assert_eq!(site.client.post("/v1/events", event).await.status, 200);
    assert_eq!(site.client.get("/v1/boards/likes/subjects/a").await.body["score"], 39);
    assert_eq!(site.client.get("/v1/boards/day/subjects/a").await.body["score"], 0);
    let beyond = json!({"subject": "a", "amount": 9_007_199_254_740_991_u64});
    let answer = site.client.post("/v1/boards/likes/increments", beyond).await;
    assert!(answer.text.contains("on this board must be between"), "{answer:?}");
}

#[actix_web::test]
async fn rules_and_queries_find_the_board_over_all_time() {
    let site = Site::new().await;
    define(&site, "day", json!({"metric": "COUNT(24h, login, device_id)", "slot": "1h"})).await;
    let rule = json!({"rule": "COUNT(all, login, device_id) = 2", "fields": {"device_id": "d"}});
    let missing = site.client.post("/v1/evaluate", rule.clone()).await;
    assert_eq!(missing.refusal().1, "no_board");
    assert!(missing.text.contains("metric = \\\"COUNT(all, login, device_id)\\\", ranked = false"), "{missing:?}");
    define(&site, "ever", json!({"metric": "COUNT(all, login, device_id)", "ranked": false})).await;
    for at in ["2026-01-02T10:00:00Z", "2025-01-01T00:00:00Z"] {
        let event = json!({"type": "login", "fields": {"device_id": "d"}, "at": at});
        assert_eq!(site.client.post("/v1/events", event).await.status, 200);
    }
    let answer = site.client.post("/v1/evaluate", rule).await;
    assert_eq!(answer.body["hit"], true, "{answer:?}");
    let queries = json!({"queries": [
        {"metric": "COUNT(all, login, device_id)", "fields": {"device_id": "d"}},
        {"metric": "COUNT(24h, login, device_id)", "fields": {"device_id": "d"}},
    ]});
    let answer = site.client.post("/v1/query", queries).await;
    let found =
        |nth: usize| (answer.body["answers"][nth]["board"].clone(), answer.body["answers"][nth]["value"].clone());
    assert_eq!((found(0), found(1)), ((json!("ever"), json!(2)), (json!("day"), json!(1))), "{answer:?}");
}

#[actix_web::test]
async fn the_latest_score_is_a_board_of_its_own() {
    let site = Site::new().await;
    define(&site, "elo", json!({"metric": "last(all, rating, elo, player)", "decimals": 1})).await;
    define(&site, "elo-day", json!({"metric": "LAST(24h, rating, elo, player)", "slot": "1h", "cover": "full"})).await;
    for (at, player, elo) in [
        ("2026-01-02T09:30:00Z", "ann", 1500.5_f64),
        ("2026-01-02T10:05:00Z", "ann", 1480.0),
        ("2026-01-02T09:59:00Z", "ann", 1600.0),
        ("2026-01-02T10:00:00Z", "bob", 1490.0),
    ] {
        let value = json!({"subject": player, "value": elo, "at": at});
        let answer = site.client.post("/v1/boards/elo/increments", value).await;
        assert_eq!(answer.body["accepted"], 1, "{answer:?}");
        let event = json!({"type": "rating", "at": at, "fields": {"player": player, "elo": elo.trunc()}});
        assert_eq!(site.client.post("/v1/events", event).await.status, 200);
    }
    let page = without_bounds(site.client.get("/v1/boards/elo/rankings").await);
    // The event of 10:05 was the second one with that time, so its whole number stands.
    let lines: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|line| (line["subject"].clone(), line["score"].clone())).collect();
    assert_eq!(lines, [(json!("bob"), json!(1490)), (json!("ann"), json!(1480))]);
    let window = site.client.get("/v1/boards/elo/subjects/ann/window").await;
    assert_eq!(
        (&window.body["value"], &window.body["at"]),
        (&json!(1480), &json!("2026-01-02T10:05:00Z")),
        "{window:?}"
    );
    let rule = json!({"rule": "LAST(all, rating, elo, player) > 1000", "fields": {"player": "ann"}});
    let evaluated = site.client.post("/v1/evaluate", rule).await;
    assert!(evaluated.text.contains("\"at\":\"2026-01-02T10:05:00Z\""), "{evaluated:?}");
    let standing = site.client.get("/v1/boards/elo/subjects/ann").await;
    assert_eq!(standing.body["at"], "2026-01-02T10:05:00Z", "{standing:?}");
    let standing = site.client.get("/v1/boards/elo-day/subjects/ann").await;
    let newest = &standing.body["slots"].as_array().unwrap()[1];
    assert_eq!((&newest["value"], &newest["at"]), (&json!(1480), &json!("2026-01-02T10:05:00Z")), "{standing:?}");
    let retraction = json!({"subject": "ann", "value": 1480, "retract": true, "at": "2026-01-02T10:05:00Z"});
    let answer = site.client.post("/v1/boards/elo/increments", retraction).await;
    assert_eq!(answer.body["rejected"][0]["code"], "retraction_unsupported", "{answer:?}");
    let weighted = site.client.get("/v1/boards/elo-day/subjects/ann/window?edge=weighted").await;
    assert_eq!(weighted.refusal().1, "edge_unsupported");
    let sample = json!({"subject": "ann", "value": 1200, "at": "2026-01-02T10:01:00Z"});
    assert_eq!(site.client.put("/v1/boards/elo/samples", sample).await.status, 200);
    assert_eq!(site.client.get("/v1/boards/elo/subjects/ann").await.body["score"], 1200);
    let nobody = site.client.get("/v1/boards/elo/subjects/zoe/window").await;
    assert_eq!((&nobody.body["value"], nobody.body.get("at")), (&json!(null), None));
}

/// Portions of a stream are sent at the same time where their order does not matter. Here it does.
#[actix_web::test]
async fn the_last_line_of_a_stream_wins() {
    let site = Site::new().await;
    define(&site, "elo", json!({"metric": "LAST(all, rating, elo, player)"})).await;
    for round in 0..3 {
        let last = 20_000 + round;
        let lines =
            |line: &dyn Fn(i32) -> Value| (0..=last).map(|value| line(value).to_string() + "\n").collect::<String>();
        let events = lines(&|value| json!({"type": "rating", "fields": {"player": "ann", "elo": value}}));
        let answer = site.client.send(reqwest::Method::POST, "/v1/events", Some("application/x-ndjson"), events).await;
        assert_eq!(answer.body["accepted"], last + 1, "{answer:?}");
        assert_eq!(site.client.get("/v1/boards/elo/subjects/ann").await.body["score"], last);
        let at = "2026-01-02T10:07:00Z";
        let increments = lines(&|value| json!({"subject": "bob", "value": value, "at": at}));
        let answer = site.client.ndjson("elo", increments).await;
        assert_eq!(answer.body["accepted"], last + 1, "{answer:?}");
        assert_eq!(site.client.get("/v1/boards/elo/subjects/bob").await.body["score"], last);
    }
}
