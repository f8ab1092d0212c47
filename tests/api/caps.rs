//! Boards with a cap for each person.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::site::Site;

fn capped(most: u64) -> Value {
    json!({"metric": "COUNT(7d, like, post)", "slot": "1d", "cap": {"per": "user", "most": most, "every": "1d"}})
}

async fn define(client: &Client, board: &str, definition: &Value) {
    let answer = client.put(&format!("/v1/boards/{board}"), definition.clone()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

fn like(post: &str, user: &str) -> Value {
    json!({"type": "like", "at": "2026-01-02T08:00:00Z", "fields": {"post": post, "user": user}})
}

#[actix_web::test]
async fn events_and_increments_count_up_to_the_cap_of_their_person() {
    let site = Site::new().await;
    let client = &site.client;
    define(client, "likes", &capped(2)).await;
    let shown = client.get("/v1/boards/likes").await.body;
    assert_eq!(shown["cap"], capped(2)["cap"], "{shown}");
    let events =
        json!({"events": [like("a", "ann"), like("a", "ann"), like("a", "ann"), like("a", "bob"), like("b", "ann")]});
    assert_eq!(client.post("/v1/events", events).await.body["accepted"], 5);
    let ranked = |scores: [(&str, u64); 2]| -> Vec<Value> {
        let lines = scores.into_iter().zip(1..);
        lines.map(|((subject, score), rank)| json!({"rank": rank, "subject": subject, "score": score})).collect()
    };
    let page = "/v1/boards/likes/rankings";
    assert_eq!(client.items(page).await, ranked([("a", 3), ("b", 1)]));
    // The third one of Ann is taken back, which leaves what counts.
    let mut undone = like("a", "ann");
    undone["retract"] = json!(true);
    assert_eq!(client.post("/v1/events", undone).await.body["accepted"], 1);
    assert_eq!(client.items(page).await, ranked([("a", 3), ("b", 1)]));
    let more = json!([{"subject": "b", "value": "bob"}, {"subject": "b", "value": 7}, {"subject": "b", "value": "cy", "id": "1"}]);
    let added = client
        .send(
            Method::POST,
            "/v1/boards/likes/increments?return=score",
            Some("application/json"),
            json!({"increments": more}).to_string(),
        )
        .await;
    assert_eq!(added.body["accepted"], 3, "{added:?}");
    assert_eq!(client.items(page).await, ranked([("b", 4), ("a", 3)]));
    let window = client.get("/v1/boards/likes/subjects/a/window?last=2d").await.body;
    assert_eq!((&window["value"], &window["capped"]), (&json!(3), &json!(false)), "{window}");
    assert_eq!(client.post("/v1/boards/likes/audit", json!({})).await.body["differences"], 0);
}

#[actix_web::test]
async fn items_without_a_person_are_rejected() {
    let site = Site::new().await;
    let client = &site.client;
    define(client, "likes", &capped(2)).await;
    for (increment, code, field) in [
        (json!({"subject": "a"}), "invalid_value", "value"),
        (json!({"subject": "a", "amount": 1}), "unknown_field", "amount"),
        (json!({"subject": "a", "value": "ann", "amount": 1}), "unknown_field", "amount"),
        (json!({"subject": "a", "value": "ann", "retract": true}), "missing_at", "at"),
    ] {
        let answer = client.add("likes", json!({"increments": [increment]})).await.body;
        let rejected = &answer["rejected"][0];
        assert_eq!(rejected["code"], code, "{increment}: {answer}");
        assert!(rejected["detail"].as_str().unwrap().contains(&format!("'{field}'")), "{increment}: {answer}");
    }
    // Over all time there is a day too.
    let total = json!({"metric": "COUNT(all, share, post)", "cap": capped(2)["cap"]});
    define(client, "total", &total).await;
    let retraction = json!({"increments": [{"subject": "a", "value": "ann", "retract": true}]});
    assert_eq!(client.add("total", retraction).await.body["rejected"][0]["code"], "missing_at");
    let event = json!({"type": "like", "fields": {"post": "a"}});
    let answer = client.post("/v1/events", json!({"events": [event]})).await.body;
    assert_eq!(answer["accepted"], 0, "{answer}");
    assert!(answer.to_string().contains("user"), "{answer}");
    let sample = json!({"subject": "a", "amount": 5, "at": "2026-01-02T08:00:00Z"});
    assert_eq!(client.put("/v1/boards/likes/samples", sample).await.refusal(), (409, "samples_unsupported"));
    let set = client.put("/v1/boards/likes/subjects/a", json!({"amount": 5})).await;
    assert_eq!(set.refusal(), (409, "samples_unsupported"));
    assert_eq!(client.get("/v1/boards/likes/subjects/a/values").await.refusal(), (409, "no_values"));
}

#[actix_web::test]
async fn a_definition_says_why_it_may_not_have_a_cap() {
    let site = Site::new().await;
    let client = &site.client;
    let cap = json!({"per": "user", "most": 2, "every": "1d"});
    for (change, field, says) in [
        (json!({"slot": "1h"}), "cap", "slots of whole days"),
        (json!({"metric": "SUM(7d, like, amount, post)"}), "cap", "only with COUNT"),
        (json!({"metric": "COUNT_DISTINCT(7d, like, post, user)"}), "cap", "only with COUNT"),
        (json!({"ranked": false}), "cap", "ranked = true"),
        (json!({"metric": "COUNT(all, like, post)", "slot": null, "season": {"every": "6h"}}), "cap", "periods"),
        (json!({"ties": "first"}), "cap", "'ties'"),
        (json!({"windows": ["24h/1h"]}), "windows", "slots of whole days"),
        (json!({"metric": "COUNT(all, like, post)", "keep": "7d"}), "keep", "'cap'"),
        (json!({"cap": {"per": "user", "most": 2, "every": "1h"}}), "cap", "must be 1d"),
        (json!({"cap": {"per": "user", "most": 0, "every": "1d"}}), "cap", "from 1 to 1000000"),
        (json!({"cap": {"per": "user", "most": 2}}), "cap", "every"),
    ] {
        let mut definition = json!({"metric": "COUNT(7d, like, post)", "slot": "1d", "cap": cap});
        for (key, value) in change.as_object().unwrap() {
            definition[key] = value.clone();
        }
        let answer = client.put("/v1/boards/likes", definition).await;
        assert!([400, 422].contains(&answer.status), "{change}: {answer:?}");
        assert!(answer.text.contains(says), "{change}: {answer:?}");
        let named = answer.body["field"].as_str().unwrap_or_default();
        assert!(["", field, "every", "most", "cap.every", "cap.most"].contains(&named), "{change}: {answer:?}");
    }
    let daily =
        json!({"metric": "COUNT(all, like, post)", "timezone": "Asia/Tokyo", "starts": "2026-11-02T05:00", "cap": cap});
    define(client, "daily", &daily).await;
}

/// COUNT means all likes, so a query by the metric does not get the score of a board with a cap, unless it names the board.
#[actix_web::test]
async fn rules_and_queries_name_a_board_with_a_cap() {
    let site = Site::new().await;
    let client = &site.client;
    define(client, "likes", &capped(1)).await;
    let events = json!({"events": [like("a", "ann"), like("a", "ann")]});
    assert_eq!(client.post("/v1/events", events).await.body["accepted"], 2);
    let query = |board: Option<&str>| {
        let mut query = json!({"metric": "COUNT(7d, like, post)", "fields": {"post": "a"}});
        if let Some(board) = board {
            query = json!({"board": board, "subject": "a"});
        }
        json!({"queries": [query]})
    };
    let none = client.post("/v1/query", query(None)).await.body;
    assert_eq!(none["answers"][0]["error"]["code"], "no_board", "{none}");
    assert_eq!(client.post("/v1/query", query(Some("likes"))).await.body["answers"][0]["value"], 1);
    let named = json!({"queries": [{"metric": "COUNT(7d, like, post)", "board": "likes", "fields": {"post": "a"}}]});
    assert_eq!(client.post("/v1/query", named).await.body["answers"][0]["value"], 1);
    let rule = json!({"rule": "COUNT(7d, like, post) >= 1", "boards": ["likes"], "fields": {"post": "a"}});
    let hit = client.post("/v1/evaluate", rule).await;
    assert_eq!((hit.status, &hit.body["hit"]), (200, &json!(true)), "{hit:?}");
    define(client, "all-likes", &json!({"metric": "COUNT(7d, like, post)", "slot": "1d"})).await;
    assert_eq!(
        client.post("/v1/events", json!({"events": [like("a", "ann"), like("a", "ann")]})).await.body["accepted"],
        2
    );
    assert_eq!(client.post("/v1/query", query(None)).await.body["answers"][0]["value"], 2);
}

#[actix_web::test]
async fn contents_have_counts_and_persons_can_be_removed() {
    let site = Site::new().await;
    let client = &site.client;
    let kind = &[("content-type", "application/x-ndjson")];
    for (board, most) in [("likes", 2), ("copy", 2), ("other", 3)] {
        define(client, board, &capped(most)).await;
    }
    for user in ["ann", "ann", "ann", "bob"] {
        let answer = client.add("likes", json!({"subject": "a", "value": user})).await;
        assert_eq!(answer.body["accepted"], 1);
    }
    let contents = client.send_with(Method::GET, "/v1/boards/likes/contents", &[], "").await.text;
    let day = 1_767_312_000_000_i64;
    for count in [json!(["a", "ann", day, 3]), json!(["a", "bob", day, 1])] {
        assert!(contents.contains(&count.to_string()), "{contents}");
    }
    assert_eq!(client.add("copy", json!({"subject": "a", "value": "bob"})).await.body["accepted"], 1);
    let merged = client.send_with(Method::POST, "/v1/boards/copy/contents", kind, contents.clone()).await;
    assert_eq!((merged.status, &merged.body["merged"]), (200, &json!(2)), "{merged:?}");
    assert_eq!(client.score("copy", "a").await, 4);
    for (from, to) in [("\"ann\",1767312000000", "\"ann\",1767312000001"), (",3]", ",1000001]")] {
        define(client, "wrong", &capped(2)).await;
        let wrong = contents.replace(from, to);
        let refused = client.send_with(Method::POST, "/v1/boards/wrong/contents", kind, wrong).await;
        let is_refused = refused.status != 200 || refused.body["refused"] == 1;
        assert!(is_refused, "{refused:?}");
        assert_eq!(client.delete("/v1/boards/wrong").await.status, 200);
    }
    // How much of a person counts is that of the board.
    let merged = client.send_with(Method::POST, "/v1/boards/other/contents", kind, contents.clone()).await;
    assert_eq!((merged.status, &merged.body["merged"]), (200, &json!(2)), "{merged:?}");
    assert_eq!(client.score("other", "a").await, 4);
    let mut of_accounts = capped(2);
    of_accounts["cap"]["per"] = json!("account");
    define(client, "accounts", &of_accounts).await;
    let refused = client.send_with(Method::POST, "/v1/boards/accounts/contents", kind, contents).await;
    assert!(refused.status == 409 && refused.text.contains("'cap'"), "{refused:?}");
    let removed = client.post("/v1/boards/copy/removals", json!({"values": ["ann", "nobody"]})).await;
    assert_eq!((removed.status, &removed.body["values"]), (200, &json!(1)), "{removed:?}");
    assert_eq!(client.score("copy", "a").await, 2);
    assert_eq!(client.post("/v1/boards/copy/audit", json!({})).await.body["differences"], 0);
}
