//! The removal of values from all subjects of a board.

use rolltop::board::BoardName;
use serde_json::{Value, json};

use crate::client::Client;
use crate::site::Site;

const METRIC: &str = "COUNT_DISTINCT(24h, like, post, user)";

async fn like(client: &Client, board: &str, likes: &[(&str, &str)]) {
    let increments: Vec<_> = likes.iter().map(|(post, user)| json!({"subject": post, "value": user})).collect();
    let answer = client.add(board, json!({"increments": increments})).await;
    assert_eq!(answer.body["accepted"], likes.len(), "{answer:?}");
}

async fn users(client: &Client, query: &str) -> Vec<Value> {
    let answer = client.get(&format!("/v1/boards/{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut users: Vec<Value> =
        answer.body["items"].as_array().unwrap().iter().map(|item| item["value"].clone()).collect();
    users.sort_by_key(ToString::to_string);
    users
}

#[actix_web::test]
async fn a_value_is_removed_from_all_subjects_windows_and_editions() {
    let site = Site::new().await;
    let client = &site.client;
    let body = json!({"metric": METRIC, "slot": "1h", "windows": ["48h/2h"]});
    assert_eq!(client.put("/v1/boards/likes", body).await.status, 201);
    let posts: Vec<String> = (0..700).map(|nth| format!("p{nth}")).collect();
    for user in ["ann", "bob"] {
        for some in posts.chunks(500) {
            like(client, "likes", &some.iter().map(|post| (post.as_str(), user)).collect::<Vec<_>>()).await;
        }
    }
    let successor = json!({"metric": METRIC.replace("24h", "72h"), "slot": "6h"});
    assert_eq!(client.put("/v1/boards/likes/next", successor).await.status, 201);
    like(client, "likes", &[("p0", "ann"), ("p0", "cy")]).await;
    // One that was taken back.
    let undone = json!({"subject": "p9", "value": "ann", "at": "2026-01-02T10:07:00Z", "retract": true});
    assert_eq!(client.add("likes", undone).await.body["accepted"], 1);

    let removed = client.post("/v1/boards/likes/removals", json!({"values": ["ann", "nobody", "ann"]})).await;
    let expected = json!({"board": "likes", "values": 700, "final_periods": 0, "approximate": false,
        "as_of": "2026-01-02T10:07:00Z"});
    assert_eq!((removed.status, &removed.body), (200, &expected));
    let again = client.post("/v1/boards/likes/removals", json!({"values": ["ann"]})).await;
    assert_eq!(again.body["values"], 0, "{again:?}");
    for query in ["", "?window=48h"] {
        let left = users(client, &format!("likes/subjects/p0/values{query}")).await;
        assert_eq!(left, ["bob", "cy"], "{query}");
    }
    // It may be filled meanwhile with what the board has.
    let next = users(client, "likes/subjects/p0/values?of=next").await;
    assert!(next.contains(&json!("cy")) && !next.contains(&json!("ann")), "{next:?}");
    let page = client.get("/v1/boards/likes/rankings?limit=2").await;
    let scores: Vec<&Value> = page.body["items"].as_array().unwrap().iter().map(|line| &line["score"]).collect();
    assert_eq!((scores, &page.body["total"]), (vec![&json!(2), &json!(1)], &json!(700)));
    // Whoever likes again counts.
    like(client, "likes", &[("p9", "ann")]).await;
    assert_eq!(users(client, "likes/subjects/p9/values").await, ["ann", "bob"]);
    assert_eq!(client.post("/v1/boards/likes/audit", json!({})).await.body["differences"], 0);
}

#[actix_web::test]
async fn a_removal_of_values_says_where_there_are_none() {
    let site = Site::with_board("plain").await;
    let client = &site.client;
    let approximate = METRIC.replace("COUNT", "APPROX_COUNT");
    assert_eq!(client.define("about", &approximate, "1h").await.status, 201);
    assert_eq!(client.define("keyed", &METRIC.replace("post,", "post BY country,"), "1h").await.status, 201);
    assert_eq!(client.define("both", METRIC, "1h").await.status, 201);
    let successor = json!({"metric": approximate, "slot": "1h"});
    assert_eq!(client.put("/v1/boards/both/next", successor).await.status, 201);
    let remove = async |path: &str, body: Value| client.post(&format!("/v1/boards/{path}"), body).await;
    let values = || json!({"values": ["ann"]});
    for (path, body, status, code) in [
        ("plain/removals", values(), 409, "no_values"),
        ("about/removals", values(), 409, "no_values"),
        ("both/removals?by=se", values(), 422, "unexpected_key"),
        ("both/removals", json!({}), 422, "invalid_field"),
        ("both/removals", json!({"values": ["a"], "subjects": ["a"]}), 422, "invalid_field"),
        ("both/removals", json!({"values": []}), 422, "invalid_field"),
        ("both/removals", json!({"values": [5]}), 422, "invalid_field"),
    ] {
        let answer = remove(path, body).await;
        assert_eq!(answer.refusal(), (status, code), "{path}: {answer:?}");
    }
    like(client, "both", &[("p", "ann")]).await;
    let removed = remove("both/removals", values()).await.body;
    assert_eq!(json!([removed["values"], removed["approximate"]]), json!([1, true]));

    let item = |by: &str| json!({"by": by, "subject": "p", "value": "ann"});
    client.add("keyed", json!({"increments": [item("se"), item("no"), item("fi")]})).await;
    let removed = remove("keyed/removals?by=se", values()).await.body;
    assert_eq!(json!([removed["by"], removed["values"]]), json!(["se", 1]));
    assert_eq!(users(client, "keyed/subjects/p/values?by=no").await, ["ann"]);
    assert_eq!(remove("keyed/removals", values()).await.body["values"], 2);
    assert_eq!(client.get("/v1/boards/keyed/keys").await.body["keys"], 0);
}

#[actix_web::test]
async fn values_of_a_final_period_stay_until_it_is_packed() {
    let site = Site::new().await;
    let client = &site.client;
    let season = json!({"every": "1d", "grace": "2h", "archive": 2});
    let metric = METRIC.replace("24h", "all");
    assert_eq!(client.put("/v1/boards/b", json!({"metric": metric, "season": season})).await.status, 201);
    like(client, "b", &[("p", "ann"), ("p", "bob")]).await;
    // Nobody has noticed that the period has become final.
    client.set_clock("2026-01-03T02:00:00Z").await;
    let remove = async || {
        let removed = client.post("/v1/boards/b/removals", json!({"values": ["ann"]})).await;
        json!([removed.status, removed.body["values"], removed.body["final_periods"]])
    };
    assert_eq!(remove().await, json!([200, 1, 1]));
    like(client, "b", &[("p", "ann"), ("q", "ann"), ("q", "bob")]).await;
    assert_eq!(remove().await, json!([200, 3, 1]));
    let scores = async |query: &str| {
        let page = client.get(&format!("/v1/boards/b/rankings{query}")).await.body;
        page["items"].as_array().unwrap().iter().map(|line| line["score"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((scores("").await, scores("?period=previous").await), (vec![json!(1)], vec![json!(2)]));
    let board = site.store.board(&BoardName::parse("b").unwrap()).await.unwrap().unwrap();
    assert!(site.service().pack_periods(&board).await.unwrap());
    assert_eq!(remove().await, json!([200, 0, 0]));
    assert_eq!(scores("?period=previous").await, [json!(2)]);
}
