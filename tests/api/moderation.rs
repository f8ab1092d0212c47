//! Moderation: subjects that are hidden or frozen, one by one, many in a request, and their lists.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::event_stream::Follower;
use crate::site::Site;

const NDJSON: &str = "application/x-ndjson";

/// A board with a ranking of three.
async fn site() -> Site {
    let site = Site::with_board("b").await;
    let items = [("a", 5), ("b", 3), ("c", 1)].map(|(subject, amount)| json!({"subject": subject, "amount": amount}));
    assert_eq!(site.client.add("b", json!({"increments": items})).await.body["accepted"], 3);
    site
}

async fn put(client: &Client, path: &str) -> Answer {
    client.send(Method::PUT, path, None, "").await
}

/// Returns the lines of the ranking as pairs of rank and subject.
async fn ranking(client: &Client) -> Value {
    let page = client.get("/v1/boards/b/rankings").await.body;
    let lines = page["items"].as_array().unwrap();
    assert_eq!(page["total"], lines.len());
    lines.iter().map(|line| json!([line["rank"], line["subject"]])).collect()
}

/// Returns the members of a list as texts: subject, `h`, `s` or nothing, and `f` if it is frozen.
async fn list(client: &Client, path: &str) -> (Vec<String>, u64, Value) {
    let page = client.get(path).await;
    assert_eq!(page.status, 200, "{page:?}");
    let shown = |item: &Value| {
        let flag = |name: &str, letter: &'static str| if item[name] == true { letter } else { "" };
        let by = item["by"].as_str().map_or_else(String::new, |by| format!("{by}/"));
        let (hidden, shadow) = (flag("hidden", "h"), flag("shadow", "s"));
        format!("{by}{} {hidden}{shadow}{}", item["subject"].as_str().unwrap(), flag("frozen", "f"))
    };
    let items = page.body["items"].as_array().unwrap().iter().map(shown).collect();
    (items, page.body["total"].as_u64().unwrap(), page.body["next"].clone())
}

#[actix_web::test]
async fn a_hidden_subject_is_in_nothing_that_shows_a_ranking() {
    let site = site().await;
    let client = &site.client;
    let hidden = put(client, "/v1/boards/b/subjects/a/hidden").await;
    assert_eq!(hidden.body, json!({"board": "b", "subject": "a", "hidden": true, "shadow": false}));
    assert_eq!(ranking(client).await, json!([[1, "b"], [2, "c"]]));
    let added = client.send(
        Method::POST,
        "/v1/boards/b/increments?return=score",
        Some("application/json"),
        r#"{"subject":"a"}"#,
    );
    assert_eq!(added.await.body["scores"][0]["score"], 6, "it goes on counting");
    let standing = client.get("/v1/boards/b/subjects/a").await.body;
    let shown = ["score", "rank", "percentile", "hidden", "total"].map(|name| standing[name].clone());
    assert_eq!(json!(shown), json!([6, null, null, true, 2]));
    assert_eq!(client.get("/v1/boards/b/subjects/a/window?last=1h").await.body["value"], 6);
    assert!(client.get("/v1/boards/b/subjects/b").await.body.get("hidden").is_none());
    let found = client.post("/v1/boards/b/rankings/lookup", json!({"subjects": ["a", "b"]})).await.body;
    let found: Value =
        found["items"].as_array().unwrap().iter().map(|line| json!([line["subject"], line["rank"]])).collect();
    assert_eq!(found, json!([["b", 1], ["a", null]]));
    assert_eq!(client.get("/v1/boards/b/subjects/a/neighbors").await.body["items"], json!([]));
    assert_eq!(client.get("/v1/boards/b").await.body["total"], 2);
    let export = client.send(Method::GET, "/v1/boards/b/rankings?limit=1", None, "").await;
    assert!(!export.text.contains("\"a\""), "{export:?}");
    let queried = client.post("/v1/query", json!({"board": "b", "subject": "a"})).await.body;
    assert_eq!(queried["answers"][0]["value"], 6, "{queried}");

    let shadowed = client.put("/v1/boards/b/subjects/a/hidden", json!({"shadow": true})).await;
    assert_eq!(json!([shadowed.body["hidden"], shadowed.body["shadow"]]), json!([true, true]));
    let standing = client.get("/v1/boards/b/subjects/a").await.body;
    let shown = ["rank", "score", "total", "percentile"].map(|name| standing[name].clone());
    assert_eq!(json!(shown), json!([1, 6, 3, 100.0]), "as if it were shown");
    assert!(standing.get("hidden").is_none(), "nothing says that it is hidden: {standing}");
    assert_eq!(ranking(client).await, json!([[1, "b"], [2, "c"]]));

    let shown = client.delete("/v1/boards/b/subjects/a/hidden").await;
    assert_eq!(shown.body, json!({"board": "b", "subject": "a", "hidden": false, "shadow": false}));
    assert_eq!(ranking(client).await, json!([[1, "a"], [2, "b"], [3, "c"]]));
    assert_eq!(client.delete("/v1/boards/b/subjects/a/hidden").await.status, 200, "not an error");
}

/// A body that is not understood must not be taken for none, and none of its fields for its opposite.
#[actix_web::test]
async fn bodies_are_read_as_they_are_or_refused() {
    let site = site().await;
    let client = &site.client;
    let with = |path, media, body| client.send(Method::PUT, path, media, body);
    let (hidden, frozen) = ("/v1/boards/b/subjects/a/hidden", "/v1/boards/b/subjects/a/frozen");
    assert_eq!(with(hidden, None, r#"{"shadow":true}"#).await.code(), "unsupported_media_type");
    assert_eq!(with(hidden, Some("application/json"), r#"{"hidden":false}"#).await.code(), "unknown_field");
    assert_eq!(with(frozen, Some("application/json"), r#"{"frozen":false}"#).await.code(), "unknown_field");
    assert_eq!(list(client, "/v1/boards/b/frozen").await.1 + list(client, "/v1/boards/b/hidden").await.1, 0);
    assert_eq!(with(hidden, Some("application/json"), "").await.status, 200);
    assert_eq!(with(frozen, Some("application/json"), "{}").await.status, 200);
    for body in [json!({"subject": "b", "hidden": null}), json!({"subject": "b", "hidden": true, "shadow": null})] {
        assert_eq!(client.post("/v1/boards/b/hidden", body).await.body["accepted"], 1);
        assert_eq!(list(client, "/v1/boards/b/hidden").await.0, ["a hf", "b h"], "null is the default");
    }
}

#[actix_web::test]
async fn a_stream_drops_a_subject_when_it_is_hidden() {
    let site = site().await;
    let url = format!("http://127.0.0.1:{}/v1/boards/b/stream?limit=10", site.client.port);
    let mut follower = Follower::open(&url, &[]).await;
    assert_eq!(follower.expect("page").await.data["items"][0]["subject"], "a");
    assert_eq!(put(&site.client, "/v1/boards/b/subjects/a/hidden").await.status, 200);
    let change = follower.expect("change").await.data;
    assert_eq!(json!([change["gone"], change["total"]]), json!([["a"], 2]), "{change}");
}

#[actix_web::test]
async fn items_of_a_frozen_subject_are_rejected_with_a_code() {
    let site = site().await;
    let client = &site.client;
    let frozen = put(client, "/v1/boards/b/subjects/a/frozen").await;
    assert_eq!(frozen.body, json!({"board": "b", "subject": "a", "frozen": true}));
    let added = client.add("b", json!({"increments": [{"subject": "a"}, {"subject": "b"}]})).await.body;
    assert_eq!(json!([added["accepted"], added["rejected"][0]["code"]]), json!([1, "subject_frozen"]));
    let event = client.post("/v1/events", json!({"type": "like", "fields": {"post_id": "a"}})).await;
    assert_eq!((event.refusal(), &event.body["rejected"][0]["code"]), ((422, "rejected"), &json!("subject_frozen")));
    let set = client.put("/v1/boards/b/subjects/a", json!({"amount": 70})).await;
    assert_eq!(set.refusal(), (409, "subject_frozen"), "{set:?}");
    assert_eq!(client.get("/v1/boards/b/subjects/a").await.body["score"], 5);
    assert_eq!(client.delete("/v1/boards/b/subjects/a/frozen").await.body["frozen"], false);
    assert_eq!(client.add("b", json!({"subject": "a"})).await.body["accepted"], 1);
}

#[actix_web::test]
async fn many_subjects_are_changed_in_a_batch_or_a_stream_and_listed_in_pages() {
    let site = site().await;
    let client = &site.client;
    let batch = json!({"subjects": [
        {"subject": "a", "shadow": true}, {"subject": "z/9"}, {"subject": ""}, {"subject": "x", "by": "k"},
        {"subject": "c", "hidden": false}, {"subject": "y", "hide": 1}, {"subject": "w", "hidden": "yes"},
    ]});
    let changed = client.post("/v1/boards/b/hidden", batch).await.body;
    let codes: Value =
        changed["rejected"].as_array().unwrap().iter().map(|one| json!([one["index"], one["code"]])).collect();
    let expected = json!([[2, "invalid_subject"], [3, "unexpected_key"], [5, "unknown_field"], [6, "invalid_subject"]]);
    assert_eq!((&changed["accepted"], codes), (&json!(3), expected), "{changed}");
    let lines = "{\"subject\":\"b\"}\n\nnot json\n{\"subject\":\"a\"}\n{\"subject\":\"a\",\"frozen\":false}\n";
    let changed = client.send(Method::POST, "/v1/boards/b/frozen", Some(NDJSON), lines).await.body;
    assert_eq!(changed["accepted"], 3);
    assert_eq!(json!([changed["rejected"][0]["line"], changed["rejected"][0]["code"]]), json!([3, "malformed_line"]));
    assert_eq!(list(client, "/v1/boards/b/hidden").await, (vec!["a hs".into(), "z/9 h".into()], 2, Value::Null));
    assert_eq!(list(client, "/v1/boards/b/frozen").await, (vec!["b f".into()], 1, Value::Null));
    let one = client.post("/v1/boards/b/hidden", json!({"subject": "b"})).await.body;
    assert_eq!(one["accepted"], 1);
    let (first, total, next) = list(client, "/v1/boards/b/hidden?limit=2").await;
    assert_eq!((first, total), (vec!["a hs".to_owned(), "b hf".to_owned()], 3));
    let rest = list(client, &format!("/v1/boards/b/hidden?limit=2&cursor={}", next.as_str().unwrap())).await;
    assert_eq!(rest, (vec!["z/9 h".into()], 3, Value::Null));
    assert_eq!(list(client, "/v1/boards/b/hidden?prefix=z%2F").await.0, ["z/9 h"]);
    assert_eq!(client.get("/v1/boards/b/hidden?cursor=%2B").await.refusal(), (422, "invalid_field"));
    assert_eq!(client.get("/v1/boards/b/hidden?by=k").await.refusal(), (422, "unexpected_key"));
    // A removal ends what is set.
    client.delete("/v1/boards/b/subjects/b").await;
    assert_eq!(list(client, "/v1/boards/b/hidden").await.0, ["a hs", "z/9 h"]);
    let single = client.post("/v1/boards/b/hidden", json!({"subject": "x", "hide": 1})).await;
    assert_eq!(single.refusal(), (422, "unknown_field"), "{single:?}");
}

#[actix_web::test]
async fn with_keys_a_subject_is_hidden_in_one_ranking() {
    let site = Site::new().await;
    let client = &site.client;
    assert_eq!(client.define("k", "COUNT(24h, like, post_id BY community)", "1h").await.status, 201);
    let items = [("go", "x"), ("rust", "x"), ("rust", "y")].map(|(by, subject)| json!({"by": by, "subject": subject}));
    assert_eq!(client.add("k", json!({"increments": items})).await.body["accepted"], 3);
    let path = "/v1/boards/k/subjects/x/hidden";
    assert_eq!(put(client, path).await.refusal(), (422, "missing_key"));
    let hidden = put(client, &format!("{path}?by=rust")).await.body;
    assert_eq!(hidden, json!({"board": "k", "by": "rust", "subject": "x", "hidden": true, "shadow": false}));
    assert_eq!(client.get("/v1/boards/k/rankings?by=rust").await.body["total"], 1);
    assert_eq!(client.get("/v1/boards/k/rankings?by=go").await.body["total"], 1);
    let frozen =
        client.post("/v1/boards/k/frozen", json!({"subjects": [{"by": "art", "subject": "z"}, {"subject": "z"}]}));
    assert_eq!(frozen.await.body["rejected"][0]["code"], "missing_key");
    assert_eq!(put(client, &format!("{path}?by=go")).await.status, 200);
    assert_eq!(list(client, "/v1/boards/k/hidden").await.0, ["go/x h", "rust/x h"]);
    assert_eq!(list(client, "/v1/boards/k/hidden?by=rust&prefix=x").await.0, ["rust/x h"]);
    assert_eq!(list(client, "/v1/boards/k/hidden?by=rust&prefix=y").await.0, Vec::<String>::new());
    let (_, _, next) = list(client, "/v1/boards/k/hidden?limit=1").await;
    let rest = list(client, &format!("/v1/boards/k/hidden?limit=1&cursor={}", next.as_str().unwrap())).await;
    assert_eq!(rest.0, ["rust/x h"]);
    assert_eq!(client.get("/v1/boards/k/hidden?prefix=x").await.refusal(), (422, "missing_key"));
    assert_eq!(client.get("/v1/boards/k").await.body["keys"], 1, "a key whose subjects are all hidden is gone");
    // Removing the subject from all keys finds also those without data.
    assert_eq!(client.delete("/v1/boards/k/subjects/z?all_keys=true").await.status, 200);
    assert_eq!(client.delete("/v1/boards/k/subjects/x?all_keys=true").await.status, 200);
    assert_eq!(list(client, "/v1/boards/k/hidden").await.0, Vec::<String>::new());
    assert_eq!(list(client, "/v1/boards/k/frozen").await.0, Vec::<String>::new());
}

#[actix_web::test]
async fn an_unranked_board_freezes_and_hides_nothing() {
    let site = Site::new().await;
    let client = &site.client;
    let definition = json!({"metric": "COUNT(24h, login, device)", "slot": "1h", "ranked": false});
    assert_eq!(client.put("/v1/boards/u", definition).await.status, 201);
    assert_eq!(put(client, "/v1/boards/u/subjects/d/hidden").await.refusal(), (409, "not_ranked"));
    assert_eq!(client.post("/v1/boards/u/hidden", json!({"subject": "d"})).await.refusal(), (409, "not_ranked"));
    assert_eq!(put(client, "/v1/boards/u/subjects/d/frozen").await.status, 200);
    let rejected = client.add("u", json!({"subject": "d"})).await.body;
    assert_eq!(rejected["rejected"][0]["code"], "subject_frozen");
    for path in ["/v1/boards/none/subjects/d/hidden", "/v1/boards/none/subjects/d/frozen"] {
        assert_eq!(put(client, path).await.refusal(), (404, "unknown_board"));
        assert_eq!(client.delete(path).await.refusal(), (404, "unknown_board"));
    }
    assert_eq!(put(client, "/v1/boards/u/subjects/%FF/frozen").await.refusal(), (400, "invalid_subject"));
    assert_eq!(put(client, "/v1/boards/u/subjects/d/frozen?shadow=1").await.refusal(), (422, "unknown_field"));
    let body = client.put("/v1/boards/u/subjects/d/hidden", json!({"shade": true})).await;
    assert_eq!(body.refusal(), (422, "unknown_field"));
}

#[actix_web::test]
async fn contents_carry_what_is_set() {
    let site = site().await;
    let client = &site.client;
    for path in ["subjects/a/hidden", "subjects/a/frozen", "subjects/new/frozen"] {
        assert_eq!(put(client, &format!("/v1/boards/b/{path}")).await.status, 200);
    }
    client.put("/v1/boards/b/subjects/c/hidden", json!({"shadow": true})).await;
    let contents = client.get("/v1/boards/b/contents").await.text;
    let moderated: Vec<Value> = contents
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .flat_map(|line| line["moderated"].as_array().cloned().unwrap_or_default())
        .collect();
    assert_eq!(json!(moderated), json!([["a", "hf"], ["c", "s"], ["new", "f"]]));
    assert_eq!(client.define("copy", "COUNT(24h, like, post_id)", "1h").await.status, 201);
    // What the other board has set stays.
    put(client, "/v1/boards/copy/subjects/b/frozen").await;
    for _ in 0..2 {
        let imported = client.send(Method::POST, "/v1/boards/copy/contents", Some(NDJSON), contents.clone()).await;
        assert_eq!(imported.body["ended"], true, "{imported:?}");
    }
    assert_eq!(list(client, "/v1/boards/copy/hidden").await.0, ["a hf", "c hs"]);
    assert_eq!(list(client, "/v1/boards/copy/frozen").await.0, ["a hf", "b f", "new f"]);
    let page = client.get("/v1/boards/copy/rankings").await.body;
    assert_eq!(json!([page["total"], page["items"][0]["subject"]]), json!([1, "b"]));
    client.delete("/v1/boards/copy/subjects/a/hidden").await;
    assert_eq!(client.get("/v1/boards/copy/rankings").await.body["items"][0]["score"], 5);
    let wrong = contents.replace("\"hf\"", "\"fh\"");
    assert_eq!(client.define("third", "COUNT(24h, like, post_id)", "1h").await.status, 201);
    let refused = client.send(Method::POST, "/v1/boards/third/contents", Some(NDJSON), wrong).await;
    assert_eq!(refused.refusal(), (422, "invalid_contents"), "{refused:?}");
}
