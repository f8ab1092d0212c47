//! Events: one, a batch, a stream, each for every board of its type.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::failing_store::Fault;
use crate::site::Site;

async fn site(boards: &[(&str, &str)]) -> Site {
    let site = Site::new().await;
    for (board, metric) in boards {
        let answer = site.client.define(board, metric, "1h").await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    site
}

async fn send(client: &Client, body: Value) -> Answer {
    client.post("/v1/events", body).await
}

async fn stream(client: &Client, text: impl Into<reqwest::Body>) -> Answer {
    client.send(Method::POST, "/v1/events", Some("application/x-ndjson"), text).await
}

/// The places and reasons of rejections, and the boards and fields where they are named.
fn rejections(answer: &Answer) -> Vec<(u64, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rejected = answer.body["rejected"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    rejected
        .iter()
        .map(|r| {
            assert!(!text(&r["detail"]).is_empty(), "{r}");
            let place = r["index"].as_u64().or(r["line"].as_u64()).unwrap();
            (place, text(&r["board"]), text(&r["field"]), text(&r["code"]))
        })
        .collect()
}

fn rejection(place: u64, board: &str, field: &str, code: &str) -> (u64, String, String, String) {
    (place, board.to_owned(), field.to_owned(), code.to_owned())
}

#[actix_web::test]
async fn an_event_counts_on_every_board_of_its_type() {
    let site = site(&[
        ("per-device", "COUNT(24h, login, device_id)"),
        ("per-user", "COUNT(24h, login, user_id)"),
        ("spent", "SUM(24h, login, amount, user_id)"),
        ("per-pair", "COUNT(24h, login, (user_id, device_id))"),
        ("in-app", "COUNT(24h, login, user_id WHERE channel = 'app')"),
        ("likes", "COUNT(24h, like, post_id)"),
    ])
    .await;
    let fields = json!({"device_id": "d1", "user_id": 7, "amount": 12, "channel": "web", "ok": true, "gone": null});
    let login = json!({"type": "login", "fields": fields, "at": "2026-01-02T09:30:00Z", "id": "e-1"});
    let answer = site.client.post("/v1/events?return=score", login.clone()).await;
    let took = json!({"accepted": 1, "duplicates": 0, "rejected": 0});
    assert_eq!(
        (answer.status, &answer.body),
        (
            200,
            &json!({
                "accepted": 1, "duplicates": 0, "rejected": [], "unmatched": 0, "unknown": 0, "unknown_types": {},
                "boards": {"per-device": took, "per-pair": took, "per-user": took, "spent": took},
                "scores": [
                    {"index": 0, "board": "per-device", "subject": "d1", "score": 1},
                    {"index": 0, "board": "per-pair", "subject": "[7,\"d1\"]", "score": 1},
                    {"index": 0, "board": "per-user", "subject": "7", "score": 1},
                    {"index": 0, "board": "spent", "subject": "7", "score": 12},
                ],
            })
        )
    );
    assert_eq!(site.client.score("spent", "7").await, 12);
    assert_eq!(site.client.score("per-pair", "%5B7%2C%22d1%22%5D").await, 1);
    assert_eq!(site.client.score("in-app", "7").await, 0);
    let slots = site.client.get("/v1/boards/per-device/subjects/d1").await.body["slots"].clone();
    assert_eq!(slots[0]["from"], "2026-01-02T09:00:00Z");

    let again = send(&site.client, login).await;
    assert_eq!((&again.body["accepted"], &again.body["duplicates"]), (&json!(0), &json!(1)), "{again:?}");
    assert_eq!(again.body["boards"]["spent"], json!({"accepted": 0, "duplicates": 1, "rejected": 0}));
    // One that a board has not seen counts there, and so counts.
    assert_eq!(site.client.define("later", "COUNT(24h, login, device_id)", "1h").await.status, 201);
    let more = json!({"type": "login", "fields": {"device_id": "d1", "user_id": 7, "amount": 12}, "id": "e-1"});
    let partly = send(&site.client, more).await;
    assert_eq!((&partly.body["accepted"], &partly.body["duplicates"]), (&json!(1), &json!(0)), "{partly:?}");
    assert_eq!(site.client.score("per-device", "d1").await, 1);
    assert_eq!(site.client.score("later", "d1").await, 1);
}

#[actix_web::test]
async fn uncounted_types_and_filtered_events_are_reported() {
    let site = site(&[("apps", "COUNT(24h, login, user WHERE channel = 'app')")]).await;
    let none = send(&site.client, json!({"type": "page_view"})).await;
    assert_eq!(
        none.body,
        json!({"accepted": 0, "duplicates": 0, "rejected": [], "unmatched": 0, "unknown": 1,
            "unknown_types": {"page_view": 1}, "boards": {}})
    );
    let mut events: Vec<_> = (0..150).map(|n| json!({"type": format!("type-{n}")})).collect();
    events.push(json!({"type": "type-3", "fields": {"x": 1}}));
    events.push(json!({"type": "login", "fields": {"user": "u", "channel": "web"}}));
    events.push(json!({"type": "login", "fields": {"user": "u"}}));
    events.push(json!({"type": "login", "fields": {"user": "u", "channel": "app"}}));
    let answer = send(&site.client, json!({"events": events})).await;
    let numbers = ["accepted", "unmatched", "unknown"].map(|key| answer.body[key].clone());
    assert_eq!(numbers, [json!(1), json!(2), json!(151)], "{answer:?}");
    let types = answer.body["unknown_types"].as_object().unwrap();
    assert_eq!((types.len(), &types["type-3"], types.get("type-100")), (100, &json!(2), None));
    assert_eq!(answer.body["boards"], json!({"apps": {"accepted": 1, "duplicates": 0, "rejected": 0}}));
}

#[actix_web::test]
async fn an_event_may_be_refused_by_one_board_and_counted_by_another() {
    let site = site(&[
        ("count", "COUNT(24h, sale, seller)"),
        ("day", "COUNT(1h, sale, seller)"),
        ("sum", "SUM(24h, sale, amount, seller)"),
        ("big", "COUNT(24h, sale, buyer WHERE amount >= 100)"),
        ("nets", "COUNT(24h, login, prefix(ip, 24))"),
    ])
    .await;
    // Written by hand: no library writes some of these.
    let body = r#"{"events":[
        {"type":"sale","fields":{"seller":"s"}},
        {"type":"sale","fields":{"seller":"s","amount":"x12"}},
        {"type":"sale","fields":{"seller":"s","amount":0.5}},
        {"type":"sale","fields":{"seller":"s","amount":[1]}},
        {"type":"sale","fields":{"seller":"s","amount":5,"nested":{"deep":[1,{}]}}},
        {"type":"sale","fields":{"seller":"s","amount":500}},
        {"type":"sale","fields":{"seller":"","amount":1}},
        {"type":"sale","fields":{"seller":"s","amount":2},"at":"2026-01-02T09:00:00Z"},
        {"type":"sale","fields":{"seller":"s","amount":2},"at":"2026-01-09T09:00:00Z"},
        {"type":"login","fields":{"ip":"example.org"}},
        {"type":"login","fields":{"ip":"203.0.113.9"}}
    ]}"#;
    let answer = site.client.send(Method::POST, "/v1/events", Some("application/json"), body).await;
    assert_eq!(
        rejections(&answer),
        [
            rejection(0, "sum", "amount", "missing_field"),
            rejection(1, "big", "amount", "invalid_field"),
            rejection(1, "sum", "amount", "invalid_field"),
            rejection(2, "sum", "amount", "amount_precision"),
            rejection(3, "sum", "amount", "invalid_field"),
            rejection(5, "big", "buyer", "missing_field"),
            rejection(6, "count", "seller", "invalid_field"),
            rejection(6, "day", "seller", "invalid_field"),
            rejection(6, "sum", "seller", "invalid_field"),
            rejection(7, "day", "", "too_late"),
            rejection(8, "count", "", "too_early"),
            rejection(8, "day", "", "too_early"),
            rejection(8, "sum", "", "too_early"),
            rejection(9, "nets", "ip", "invalid_field"),
        ],
        "{answer:?}"
    );
    // No board counted events 6, 8 and 9.
    assert_eq!((&answer.body["accepted"], &answer.body["unmatched"]), (&json!(8), &json!(0)), "{answer:?}");
    assert_eq!(answer.body["rejected_counts"]["missing_field"], 2);
    assert_eq!(answer.body["boards"]["sum"], json!({"accepted": 3, "duplicates": 0, "rejected": 6}));
    assert_eq!(site.client.score("count", "s").await, 7);
    assert_eq!(site.client.score("sum", "s").await, 507);
    assert_eq!(site.client.score("nets", "203.0.113.0%2F24").await, 1);
}

#[actix_web::test]
async fn a_wrong_shape_is_refused_alone_and_rejected_in_a_batch() {
    let site = site(&[("b", "COUNT(24h, like, post)")]).await;
    for (event, code, field, item_code) in [
        (json!({}), "invalid_field", "type", "invalid_type"),
        (json!({"type": null}), "invalid_field", "type", "invalid_type"),
        (json!({"type": 5}), "invalid_field", "type", "invalid_type"),
        (json!({"type": "like", "fields": []}), "invalid_field", "fields", "invalid_event"),
        (json!({"type": "like", "fields": "post"}), "invalid_field", "fields", "invalid_event"),
        (json!({"type": "like", "retract": 1}), "invalid_field", "retract", "invalid_event"),
        (json!({"type": "like", "at": 5}), "invalid_field", "at", "invalid_at"),
        (json!({"type": "like", "id": []}), "invalid_field", "id", "invalid_id"),
        (json!({"type": "like", "subject": "x"}), "unknown_field", "subject", "unknown_field"),
    ] {
        let alone = send(&site.client, event.clone()).await;
        assert_eq!((alone.refusal(), &alone.body["field"]), ((422, code), &json!(field)), "{event}: {alone:?}");
        let good = json!({"type": "like", "fields": {"post": "p"}});
        let among = send(&site.client, json!({"events": [good.clone(), event, good]})).await;
        assert_eq!(rejections(&among), [rejection(1, "", field, item_code)], "{among:?}");
        assert_eq!(among.body["accepted"], 2, "{among:?}");
    }
    for (body, code, field) in [
        (json!([]), "invalid_field", json!("body")),
        (json!({"events": {"type": "like"}}), "invalid_field", json!("events")),
        (json!({"events": [], "type": "like"}), "unknown_field", Value::Null),
    ] {
        let answer = send(&site.client, body.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, code), &field), "{body}: {answer:?}");
    }
    for (event, field, code) in [
        (json!({"type": "like", "at": "yesterday"}), "at", "invalid_at"),
        (json!({"type": "like", "id": ""}), "id", "invalid_id"),
        (json!({"type": "x".repeat(129)}), "type", "invalid_type"),
        (json!({"type": "like", "retract": true}), "at", "missing_at"),
    ] {
        let answer = send(&site.client, event).await;
        assert_eq!(rejections(&answer), [rejection(0, "", field, code)], "{answer:?}");
    }
    let empty = send(&site.client, json!({"events": []})).await;
    assert_eq!((empty.status, &empty.body["accepted"]), (200, &json!(0)));
    let many = json!({"events": vec![json!({"type": "like"}); 10_001]});
    let refused = site.client.post("/v1/events?return=score", many).await;
    assert_eq!((refused.refusal(), &refused.body["limit"]), ((413, "too_large"), &json!(10_000)));
}

#[actix_web::test]
async fn a_retraction_undoes_its_event_if_the_metric_supports_it() {
    let site = site(&[
        ("likes", "COUNT(24h, like, post)"),
        ("weights", "SUM(2h, like, weight, post)"),
        ("best", "MAX(24h, like, weight, post)"),
    ])
    .await;
    let at = "2026-01-02T07:30:00Z";
    for (weight, id) in [(3, "e-1"), (4, "e-2")] {
        let increment = json!({"subject": "p", "id": id, "at": "2026-01-02T09:30:00Z", "amount": weight});
        assert_eq!(site.client.add("weights", increment).await.body["accepted"], 1);
        assert_eq!(site.client.add("likes", json!({"subject": "p", "at": at})).await.body["accepted"], 1);
    }
    let undone = json!({"type": "like", "fields": {"post": "p", "weight": 3}, "at": at, "id": "r-1", "retract": true});
    let answer = send(&site.client, undone.clone()).await;
    assert_eq!(rejections(&answer), [rejection(0, "best", "retract", "retraction_unsupported")], "{answer:?}");
    assert_eq!(answer.body["accepted"], 1);
    assert_eq!(site.client.score("likes", "p").await, 1);
    // The event that it retracts had left that board's window: there was nothing to undo.
    assert_eq!(answer.body["boards"]["weights"]["accepted"], 1);
    assert_eq!(site.client.score("weights", "p").await, 7);
    let again = send(&site.client, undone).await;
    assert_eq!(again.body["boards"]["likes"], json!({"accepted": 0, "duplicates": 1, "rejected": 0}));
    assert_eq!(site.client.score("likes", "p").await, 1);
}

#[actix_web::test]
async fn a_stream_counts_on_several_boards_and_names_rejected_lines() {
    let site = site(&[("posts", "COUNT(24h, like, post)"), ("users", "COUNT(24h, like, user)")]).await;
    let mut text = String::new();
    for line in 1..=5_000_u32 {
        match line {
            2_000 => text.push_str("{\"type\":\n"),
            2_001 => text.push('\n'),
            2_002 => text.push_str("{\"type\":\"like\",\"fields\":{\"post\":\"p\"}}\n"),
            2_003 => text.push_str(&format!("{{\"type\":\"{}\"}}\n", "x".repeat(70_000))),
            2_004 => text.push_str("{\"type\":\"view\"}\n"),
            _ => text.push_str(&format!(
                "{{\"type\":\"like\",\"fields\":{{\"post\":\"p\",\"user\":\"u{}\"}}}}\n",
                line % 10
            )),
        }
    }
    let answer = stream(&site.client, text).await;
    assert_eq!(
        rejections(&answer),
        [
            rejection(2_000, "", "", "malformed_line"),
            rejection(2_002, "users", "user", "missing_field"),
            rejection(2_003, "", "", "line_too_long"),
        ],
        "{answer:?}"
    );
    assert!(answer.body["rejected"][0].get("index").is_none(), "{answer:?}");
    let numbers = ["accepted", "duplicates", "unmatched", "unknown"].map(|key| answer.body[key].clone());
    assert_eq!(numbers, [4_996, 0, 0, 1].map(|number| json!(number)));
    assert_eq!(answer.body["boards"]["users"], json!({"accepted": 4_995, "duplicates": 0, "rejected": 1}));
    assert_eq!(site.client.score("posts", "p").await, 4_996);
    let scores = site.client.send(Method::POST, "/v1/events?return=score", Some("application/x-ndjson"), "{}").await;
    assert_eq!((scores.refusal(), &scores.body["field"]), ((422, "invalid_field"), &json!("return")));
}

#[actix_web::test]
async fn boards_defined_changed_and_removed_by_other_instances_are_noticed() {
    let site = site(&[("a", "COUNT(24h, like, post)")]).await;
    let other = site.second_instance();
    let like = json!({"type": "like", "fields": {"post": "p", "weight": 5}});
    assert_eq!(send(&other, like.clone()).await.body["accepted"], 1);
    // What comes through the same instance holds at once, whenever the list was read.
    assert_eq!(other.define("b", "COUNT(24h, like, post)", "1h").await.status, 201);
    assert_eq!(send(&other, like.clone()).await.body["boards"]["b"]["accepted"], 1);
    other.delete("/v1/boards/b").await;
    assert_eq!(send(&other, like.clone()).await.body["boards"].get("b"), None);
    // A board defined again elsewhere counts as it does now, though what is known here is still the old one.
    site.client.delete("/v1/boards/a").await;
    assert_eq!(site.client.define("a", "SUM(24h, like, weight, post)", "1h").await.status, 201);
    let answer = send(&other, like.clone()).await;
    assert_eq!(answer.body["boards"], json!({"a": {"accepted": 1, "duplicates": 0, "rejected": 0}}), "{answer:?}");
    assert_eq!(site.client.score("a", "p").await, 5);
    // One that has gone elsewhere takes nothing, and is no error.
    site.client.delete("/v1/boards/a").await;
    let gone = send(&other, like.clone()).await;
    assert_eq!((gone.status, &gone.body["accepted"], &gone.body["boards"]), (200, &json!(0), &json!({})), "{gone:?}");
    let unknown = send(&other, like.clone()).await;
    assert_eq!(unknown.body["unknown_types"], json!({"like": 1}), "{unknown:?}");
    // One that is new elsewhere counts at once, whether or not another counts the type already.
    for (board, boards) in [("c", 1), ("d", 2)] {
        assert_eq!(site.client.define(board, "COUNT(24h, like, post)", "1h").await.status, 201);
        let answer = send(&other, like.clone()).await;
        assert_eq!(answer.body["boards"].as_object().unwrap().len(), boards, "{answer:?}");
        assert_eq!(answer.body["boards"][board]["accepted"], 1, "{answer:?}");
    }
    // So it is where the type of a board has become another.
    site.client.delete("/v1/boards/c").await;
    assert_eq!(site.client.define("c", "COUNT(24h, share, post)", "1h").await.status, 201);
    let share = send(&other, json!({"type": "share", "fields": {"post": "p"}})).await;
    assert_eq!(share.body["boards"], json!({"c": {"accepted": 1, "duplicates": 0, "rejected": 0}}), "{share:?}");
    // A board that has gone has no say in what an event needs.
    assert_eq!(site.client.define("w", "SUM(24h, share, weight, post)", "1h").await.status, 201);
    let bare = json!({"type": "share", "fields": {"post": "p"}});
    assert_eq!(send(&other, bare.clone()).await.body["rejected"][0]["board"], "w");
    site.client.delete("/v1/boards/w").await;
    let answer = send(&other, bare).await;
    assert_eq!((&answer.body["accepted"], &answer.body["rejected"]), (&json!(1), &json!([])), "{answer:?}");
}

#[actix_web::test]
async fn a_failure_of_the_store_is_reported_with_the_progress_of_the_stream() {
    let site = site(&[("a", "COUNT(24h, like, post)"), ("b", "COUNT(24h, like, post)")]).await;
    let like = json!({"type": "like", "fields": {"post": "p"}});
    assert_eq!(send(&site.client, like.clone()).await.body["accepted"], 1);
    // One board has it and the other has not: that is no success, and not an answer by which nothing was counted.
    for fault in [Fault::Unreachable, Fault::Overloaded, Fault::ReadOnly, Fault::TimedOut] {
        site.switch.fail_after_writes(fault, 1);
        let answer = send(&site.client, like.clone()).await;
        assert_eq!((answer.refusal(), answer.header("retry-after")), ((503, "store_timeout"), "1"), "{answer:?}");
    }
    site.switch.fail(Fault::Unreachable);
    assert_eq!(send(&site.client, like).await.refusal(), (503, "store_unreachable"));
    site.switch.fail_after_writes(Fault::ReadOnly, 8);
    let text = "{\"type\":\"like\",\"fields\":{\"post\":\"p\"}}\nnot json\n".repeat(10_000);
    let answer = stream(&site.client, text).await;
    assert_eq!(answer.refusal(), (503, "store_read_only"));
    let through = answer.body["counted_through"].as_u64().unwrap();
    assert_eq!(answer.body["accepted"].as_u64().unwrap(), through.div_ceil(2), "{answer:?}");
    assert!((1..=4_000).contains(&through), "{answer:?}");
}

#[actix_web::test]
async fn a_board_with_damaged_data_is_named_beside_what_others_have_counted() {
    let site = site(&[("a", "COUNT(24h, like, post)"), ("b", "COUNT(24h, like, post)")]).await;
    let like = json!({"type": "like", "fields": {"post": "p"}, "id": "x"});
    for (counted, duplicates) in [(1, 0), (0, 1)] {
        site.switch.fail_after_writes(Fault::Corrupt, 1);
        let answer = send(&site.client, like.clone()).await;
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(counted)), "{answer:?}");
        assert_eq!(answer.body["duplicates"], duplicates, "{answer:?}");
        let rejected = &answer.body["rejected"][0];
        assert_eq!((&rejected["board"], &rejected["code"]), (&json!("b"), &json!("board_damaged")), "{answer:?}");
        assert!(!answer.text.contains("secret"), "{answer:?}");
    }
    // Nothing else is known of the event.
    site.switch.fail(Fault::Corrupt);
    assert_eq!(send(&site.client, like.clone()).await.refusal(), (500, "internal"));
    site.switch.work();
    let answer = send(&site.client, like).await;
    assert_eq!(
        (&answer.body["boards"]["a"]["duplicates"], &answer.body["boards"]["b"]["accepted"]),
        (&json!(1), &json!(1))
    );
}

#[actix_web::test]
async fn events_are_counted_in_the_metrics() {
    let site = site(&[("b", "COUNT(24h, like, post)")]).await;
    for event in [json!({"type": "like", "fields": {"post": "p"}}), json!({"type": "other"}), json!({"type": "like"})] {
        send(&site.client, event).await;
    }
    let metrics = site.client.get("/metrics").await.text;
    for outcome in ["accepted", "unknown", "rejected"] {
        let line =
            metrics.lines().find(|line| line.starts_with(&format!("rolltop_events_total{{outcome=\"{outcome}\"}}")));
        let count = line.and_then(|line| line.rsplit(' ').next()).and_then(|count| count.parse::<u64>().ok());
        assert!(count.is_some_and(|count| count > 0), "{outcome}: {metrics}");
    }
}

#[actix_web::test]
async fn one_event_counts_on_ranked_and_unranked_boards_of_every_metric() {
    let boards = [
        ("count", "COUNT(24h, pay, user)", json!(3)),
        ("sum", "SUM(24h, pay, amount, user)", json!(60)),
        ("avg", "AVG(24h, pay, amount, user)", json!(20)),
        ("min", "MIN(24h, pay, amount, user)", json!(10)),
        ("max", "MAX(24h, pay, amount, user)", json!(30)),
        ("exact", "COUNT_DISTINCT(24h, pay, user, card)", json!(2)),
        ("about", "APPROX_COUNT_DISTINCT(24h, pay, user, card)", json!(2)),
        ("pairs", "COUNT_DISTINCT(24h, pay, user, (card, ok))", json!(3)),
    ];
    let site = Site::new().await;
    for (board, metric, _) in &boards {
        for ranked in [true, false] {
            let definition = json!({"metric": metric, "slot": "1h", "ranked": ranked});
            let answer = site.client.put(&format!("/v1/boards/{board}-{ranked}"), definition).await;
            assert_eq!(answer.status, 201, "{answer:?}");
        }
    }
    let event = |amount: u32, card: &str, ok: bool| {
        let fields = json!({"user": "u", "amount": amount, "card": card, "ok": ok});
        json!({"type": "pay", "fields": fields, "id": format!("e-{amount}")})
    };
    let events = json!({"events": [event(10, "c1", true), event(20, "c2", true), event(30, "c1", false)]});
    for (accepted, duplicates) in [(3, 0), (0, 3)] {
        let answer = site.client.post("/v1/events?return=score", events.clone()).await;
        assert_eq!((&answer.body["accepted"], &answer.body["duplicates"]), (&json!(accepted), &json!(duplicates)));
        assert_eq!(answer.body["boards"].as_object().unwrap().len(), 2 * boards.len());
        for (board, _, score) in &boards {
            for ranked in [true, false] {
                let board = format!("{board}-{ranked}");
                let scores = answer.body["scores"].as_array().unwrap();
                let last = scores.iter().rfind(|new| new["board"] == *board).unwrap();
                assert_eq!((&last["index"], last["score"].as_f64()), (&json!(2), score.as_f64()), "{board}");
                assert_eq!(site.client.score(&board, "u").await.as_f64(), score.as_f64(), "{board}");
            }
        }
    }
}

#[actix_web::test]
async fn repeated_likes_of_one_user_count_once() {
    let site = site(&[("likes", "COUNT_DISTINCT(24h, like, post, user)")]).await;
    let click = |at: &str, retract: bool| {
        let fields = json!({"post": "p", "user": "u"});
        json!({"type": "like", "fields": fields, "at": format!("2026-01-02T10:0{at}:00Z"), "retract": retract})
    };
    for (event, score) in [
        (click("1", false), 1),
        (click("2", false), 1),
        (click("4", true), 0),
        // The like before the un-like, late, does not bring it back; one after it does.
        (click("3", false), 0),
        (click("5", false), 1),
    ] {
        assert_eq!(send(&site.client, event.clone()).await.body["accepted"], 1);
        assert_eq!(site.client.score("likes", "p").await, score, "{event}");
    }
}

#[actix_web::test]
async fn a_batch_of_several_portions_has_one_receipt() {
    let site = site(&[("a", "COUNT(24h, e, s)"), ("b", "COUNT(24h, e, s)"), ("c", "SUM(24h, e, v, s)")]).await;
    let event = |n: usize| match n {
        39_999 => r#"{"type":"e","fields":{"s":"x"}}"#,
        20_000 => r#"{"type":"none"}"#,
        30_000 => "5",
        _ => r#"{"type":"e","fields":{"s":"x","v":2}}"#,
    };
    let events: Vec<_> = (0..40_000).map(event).collect();
    let body = format!("{{\"events\":[{}]}}", events.join(","));
    let answer = site.client.send(Method::POST, "/v1/events", Some("application/json"), body).await;
    let expected = [rejection(30_000, "", "", "invalid_event"), rejection(39_999, "c", "v", "missing_field")];
    assert_eq!((answer.status, rejections(&answer)), (200, expected.to_vec()));
    assert_eq!((&answer.body["accepted"], &answer.body["unknown"]), (&json!(39_998), &json!(1)));
    assert_eq!(site.client.score("c", "x").await, 2 * 39_997);
}
