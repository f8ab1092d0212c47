//! Attributes: what stands beside subjects, where it is shown, and which board keeps it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::event_stream::Follower;
use crate::site::Site;

const NDJSON: &str = "application/x-ndjson";

/// A board with a ranking of two, of which `a` has attributes.
async fn site() -> Site {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "a", "b"]).await;
    assert_eq!(set(&site.client, "b", "a", json!({"name": "Ann", "level": 2})).await.status, 200);
    site
}

async fn set(client: &Client, board: &str, subject: &str, attributes: Value) -> Answer {
    client.put(&format!("/v1/boards/{board}/subjects/{subject}/attributes"), attributes).await
}

async fn change(client: &Client, board: &str, subject: &str, attributes: &str) -> Answer {
    let path = format!("/v1/boards/{board}/subjects/{subject}/attributes");
    client.send(Method::PATCH, &path, Some("application/json"), attributes.to_owned()).await
}

async fn of(client: &Client, board: &str, subject: &str) -> Value {
    let found = client.get(&format!("/v1/boards/{board}/subjects/{subject}/attributes")).await;
    assert_eq!(found.status, 200, "{found:?}");
    found.body["attributes"].clone()
}

/// Returns subject and attributes of each line.
fn shown(lines: &Value) -> Value {
    lines.as_array().unwrap().iter().map(|line| json!([line["subject"], line["attributes"]])).collect()
}

#[actix_web::test]
async fn attributes_are_set_changed_and_removed() {
    let site = site().await;
    let client = &site.client;
    let changed = change(client, "b", "a", r#"{"level":1.50,"big":12345678901234567890123,"name":null}"#).await;
    assert!(changed.text.contains(r#""attributes":{"big":12345678901234567890123,"level":1.50}"#), "{changed:?}");
    let replaced = set(client, "b", "a", json!({"z": [1, {"y": null}], "x": null})).await.body;
    assert_eq!(replaced, json!({"board": "b", "subject": "a", "attributes": {"z": [1, {"y": null}]}}));
    assert_eq!(of(client, "b", "a").await, replaced["attributes"]);
    let removed = client.delete("/v1/boards/b/subjects/a/attributes").await;
    assert_eq!(removed.body["attributes"], json!({}));
    assert_eq!(of(client, "b", "nobody").await, json!({}));
    let long = json!({"a": "x".repeat(1_017)});
    assert_eq!(set(client, "b", "a", long.clone()).await.refusal(), (422, "invalid_field"));
    assert_eq!(set(client, "b", "a", json!({"a": "x".repeat(1_016)})).await.status, 200);
    let beyond = change(client, "b", "a", r#"{"b":1}"#).await;
    assert_eq!((beyond.refusal(), &beyond.body["field"]), ((422, "invalid_field"), &json!("attributes")));
    for (body, code) in [
        ("[]", "invalid_field"),
        ("null", "invalid_field"),
        (r#"{"a b":1}"#, "invalid_field"),
        (r#"{"a":1,"a":2}"#, "invalid_field"),
        (r#"{"a":"\ud800"}"#, "invalid_field"),
        ("{", "malformed_json"),
        ("", "malformed_json"),
    ] {
        let refused = change(client, "b", "a", body).await;
        assert_eq!(refused.code(), code, "{body}: {refused:?}");
    }
    let path = "/v1/boards/b/subjects/a/attributes";
    let untyped = client.send(Method::PATCH, path, None, "{}").await;
    assert_eq!(untyped.refusal(), (415, "unsupported_media_type"));
    let padded = format!("{{{}}}", " ".repeat(20_000));
    assert_eq!(change(client, "b", "a", &padded).await.code(), "invalid_field");
    assert_eq!(change(client, "none", "a", "{}").await.refusal(), (404, "unknown_board"));
    let frozen = client.send(Method::PUT, "/v1/boards/b/subjects/a/frozen", None, "").await;
    assert_eq!(frozen.status, 200);
    assert_eq!(
        change(client, "b", "a", r#"{"a":1}"#).await.status,
        200,
        "a frozen subject has attributes all the same"
    );
}

#[actix_web::test]
async fn every_read_of_a_ranking_shows_the_attributes_that_it_asks_for() {
    let site = site().await;
    let client = &site.client;
    set(client, "b", "b", json!({"name": "Bob, \"B\"\nb", "tags": ["x"]})).await;
    let names = json!([["a", {"name": "Ann"}], ["b", {"name": "Bob, \"B\"\nb"}]]);
    let page = client.get("/v1/boards/b/rankings?attributes=name").await;
    assert_eq!(shown(&page.body["items"]), names);
    let plain = client.get("/v1/boards/b/rankings").await;
    assert!(plain.body["items"][0].get("attributes").is_none(), "{plain:?}");
    let all = client.get("/v1/boards/b/rankings?attributes=*&limit=1").await.body;
    assert_eq!(shown(&all["items"]), json!([["a", {"level": 2, "name": "Ann"}]]));
    let cursor = all["next"].as_str().unwrap();
    let next = client.get(&format!("/v1/boards/b/rankings?attributes=tags,none&cursor={cursor}")).await.body;
    assert_eq!(shown(&next["items"]), json!([["b", {"tags": ["x"]}]]));
    let looked = client.post("/v1/boards/b/rankings/lookup?attributes=name", json!({"subjects": ["z", "a"]})).await;
    assert_eq!(shown(&looked.body["items"]), json!([["a", {"name": "Ann"}], ["z", {}]]));
    let around = client.get("/v1/boards/b/subjects/a/neighbors?attributes=name").await.body;
    assert_eq!(shown(&around["items"]), names);
    assert_eq!(client.get("/v1/boards/b/subjects/a?attributes=level").await.body["attributes"], json!({"level": 2}));
    let accept = |kind| [("accept", kind)];
    let path = "/v1/boards/b/rankings?attributes=name,tags";
    let lines = client.send_with(Method::GET, path, &accept("application/x-ndjson"), "").await.text;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        shown(&json!(lines[..2])),
        json!([["a", {"name": "Ann"}], ["b", {"name": "Bob, \"B\"\nb", "tags": ["x"]}]])
    );
    let csv = client.send_with(Method::GET, path, &accept("text/csv"), "").await.text;
    assert_eq!(csv, "rank,subject,score,name,tags\r\n1,a,2,Ann,\r\n2,b,1,\"Bob, \"\"B\"\"\nb\",\"[\"\"x\"\"]\"\r\n");
    let unnamed = client.send_with(Method::GET, "/v1/boards/b/rankings?attributes=*", &accept("text/csv"), "").await;
    assert_eq!((unnamed.refusal(), &unnamed.body["field"]), ((422, "invalid_field"), &json!("attributes")));
    for wrong in ["", "a,", "a%20b", "a%2C*"] {
        let refused = client.get(&format!("/v1/boards/b/rankings?attributes={wrong}")).await;
        assert_eq!(
            (refused.refusal(), &refused.body["field"]),
            ((422, "invalid_field"), &json!("attributes")),
            "{wrong}"
        );
    }
    // The entity tag covers them, also one that looks like the time of a response.
    let tags = async || client.get("/v1/boards/b/rankings?attributes=*").await.header("etag").to_owned();
    let mut seen = vec![tags().await];
    assert_eq!(tags().await, seen[0]);
    for attributes in [r#"{"as_of":"1"}"#, r#"{"as_of":"2"}"#, r#"{"deep":{"as_of":"1"}}"#, r#"{"deep":{"as_of":"2"}}"#]
    {
        change(client, "b", "a", attributes).await;
        let tag = tags().await;
        assert!(!seen.contains(&tag), "{attributes}");
        seen.push(tag);
    }
    assert_eq!(client.get("/v1/boards/b/rankings").await.header("etag"), plain.header("etag"));
}

#[actix_web::test]
async fn rankings_of_several_keys_show_them() {
    let site = Site::new().await;
    let client = &site.client;
    assert_eq!(client.define("k", "COUNT(24h, like, post_id BY community)", "1h").await.status, 201);
    let items = [("go", "x"), ("rust", "x")].map(|(by, subject)| json!({"by": by, "subject": subject}));
    assert_eq!(client.add("k", json!({"increments": items})).await.body["accepted"], 2);
    assert_eq!(set(client, "k", "x", json!({"n": 1})).await.refusal(), (422, "missing_key"));
    let path = "/v1/boards/k/subjects/x/attributes?by=rust";
    let of_rust = client.put(path, json!({"n": 1})).await.body;
    assert_eq!(of_rust, json!({"board": "k", "by": "rust", "subject": "x", "attributes": {"n": 1}}));
    let body = json!({"keys": ["go", "rust"], "limit": 10});
    let best = client.post("/v1/boards/k/rankings/by?attributes=n", body).await.body;
    let of_key = |at: usize| best["rankings"][at]["items"][0]["attributes"].clone();
    assert_eq!((of_key(0), of_key(1)), (json!({}), json!({"n": 1})));
    let keys: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let many = client.post("/v1/boards/k/rankings/by?attributes=n", json!({"keys": keys, "limit": 11})).await;
    assert_eq!((many.refusal(), &many.body["field"]), ((422, "invalid_field"), &json!("limit")));
    let listed = client.get("/v1/boards/k/attributes").await.body;
    assert_eq!(listed["items"], json!([{"by": "rust", "subject": "x", "attributes": {"n": 1}}]));
    // Removing a key, or a subject from all keys, removes what is beside it, also without data.
    client.put("/v1/boards/k/subjects/new/attributes?by=rust", json!({"n": 2})).await;
    client.put("/v1/boards/k/subjects/new/attributes?by=go", json!({"n": 3})).await;
    assert_eq!(client.delete("/v1/boards/k/subjects/x?all_keys=true").await.status, 200);
    assert_eq!(client.delete("/v1/boards/k/keys/go").await.status, 200);
    let listed = client.get("/v1/boards/k/attributes").await.body;
    assert_eq!(listed["items"], json!([{"by": "rust", "subject": "new", "attributes": {"n": 2}}]));
}

#[actix_web::test]
async fn periods_show_the_attributes_of_now() {
    let site = Site::new().await;
    let client = &site.client;
    let definition = json!({"metric": "COUNT(all, like, post_id)", "season": {"every": "1d", "archive": 3}});
    assert_eq!(client.put("/v1/boards/s", definition).await.status, 201);
    client.count("s", &["a"]).await;
    set(client, "s", "a", json!({"name": "then"})).await;
    client.set_clock("2026-01-03T10:07:00Z").await;
    site.pack("s").await;
    set(client, "s", "a", json!({"name": "now"})).await;
    let periods = client.get("/v1/boards/s/periods?attributes=name").await.body;
    assert_eq!(shown(&periods["items"][0]["winners"]), json!([["a", {"name": "now"}]]), "{periods}");
    let page = client.get("/v1/boards/s/rankings?period=2026-01-02&attributes=name").await.body;
    assert_eq!(shown(&page["items"]), json!([["a", {"name": "now"}]]));
    // A subject that is removed from a final period has no name and no attributes.
    client.delete("/v1/boards/s/subjects/a").await;
    let page = client.get("/v1/boards/s/rankings?period=2026-01-02&attributes=name").await.body;
    assert_eq!(shown(&page["items"]), json!([[null, {}]]));
}

#[actix_web::test]
async fn a_stream_shows_a_change_of_attributes_as_a_change_of_lines() {
    let site = site().await;
    let client = &site.client;
    let url = |query: &str| format!("http://127.0.0.1:{}/v1/boards/b/stream?limit=10{query}", client.port);
    let mut follower = Follower::open(&url("&attributes=name"), &[]).await;
    let mut plain = Follower::open(&url(""), &[]).await;
    let page = follower.expect("page").await.data;
    assert_eq!(shown(&page["items"]), json!([["a", {"name": "Ann"}], ["b", {}]]));
    assert!(plain.expect("page").await.data["items"][0].get("attributes").is_none());
    change(client, "b", "a", r#"{"level":3}"#).await;
    change(client, "b", "b", r#"{"name":"Bob"}"#).await;
    let change = follower.expect("change").await.data;
    assert_eq!(json!([shown(&change["rows"]), change["gone"]]), json!([[["b", {"name": "Bob"}]], []]), "{change}");
    client.count("b", &["b"]).await;
    assert!(plain.expect("change").await.data["rows"][0].get("attributes").is_none());
    let url = format!("http://127.0.0.1:{}/v1/stream?view=b,attributes=name;level", client.port);
    let first = Follower::open(&url, &[]).await.expect("page").await.data;
    assert_eq!(first["page"]["items"][1]["attributes"], json!({"level": 3, "name": "Ann"}), "{first}");
}

#[actix_web::test]
async fn increments_bring_attributes_along() {
    let site = site().await;
    let client = &site.client;
    let items = json!({"increments": [
        {"subject": "a", "id": "1", "attributes": {"level": 3, "name": null}},
        {"subject": "b", "at": "2020-01-01T00:00:00Z", "attributes": {"late": true}},
        {"subject": "c", "attributes": []},
        {"subject": "d", "attributes": null},
        {"subject": "e", "attributes": {}},
        {"subject": "f", "attributes": {"x": "x".to_owned().repeat(900)}},
    ]});
    let added = client.add("b", items).await.body;
    let codes: Value =
        added["rejected"].as_array().unwrap().iter().map(|one| json!([one["index"], one["code"]])).collect();
    assert_eq!(
        (&added["accepted"], codes),
        (&json!(4), json!([[1, "too_late"], [2, "invalid_attributes"]])),
        "{added}"
    );
    assert!(added.get("attributes_rejected").is_none(), "{added}");
    assert_eq!(of(client, "b", "a").await, json!({"level": 3}));
    assert_eq!(of(client, "b", "b").await, json!({}), "what is rejected describes nobody");
    // A duplicate brings them again. What would be too long is counted and not set.
    let again = json!({"increments": [
        {"subject": "f", "attributes": {"y": "y".repeat(200)}},
        {"subject": "a", "id": "1", "attributes": {"level": 4}},
    ]});
    let added = client.add("b", again).await.body;
    assert_eq!(json!([added["accepted"], added["duplicates"], added["rejected"]]), json!([1, 1, []]));
    let refused = &added["attributes_rejected"];
    assert_eq!(json!([refused[0]["index"], refused[0]["code"]]), json!([0, "invalid_attributes"]), "{added}");
    assert_eq!((of(client, "b", "a").await, client.score("b", "f").await), (json!({"level": 4}), json!(2)));
    // In a stream the last of several lines wins, however many there are.
    let lines: String = (0..5_000)
        .map(|number| match number % 2_500 {
            0 => format!("{{\"subject\":\"s\",\"attributes\":{{\"n\":{number}}}}}\n"),
            _ => format!("{{\"subject\":\"s{}\",\"attributes\":{{\"n\":{number}}}}}\n", number % 100),
        })
        .collect();
    let lines = lines + "{\"subject\":\"s\",\"attributes\":{\"n\":\"last\"}}\n{\"subject\":\"s\",\"attributes\":7}\n";
    let added = client.ndjson("b", lines).await.body;
    assert_eq!(json!([added["accepted"], added["rejected"][0]["line"]]), json!([5_001, 5_002]), "{added}");
    assert_eq!(of(client, "b", "s").await, json!({"n": "last"}));
    assert_eq!(of(client, "b", "s99").await, json!({"n": 4_999}));
    let strict = client.post("/v1/boards/b/increments?strict=true", json!({"subject": "a", "attributes": 1})).await;
    assert_eq!(strict.refusal(), (422, "rejected"), "{strict:?}");
}

/// An item that is counted is counted, also if its attributes cannot be set.
#[actix_web::test]
async fn what_cannot_be_set_is_counted_all_the_same() {
    let site = Site::new().await;
    let client = &site.client;
    let definition = json!({"metric": "COUNT(24h, kill, player)", "slot": "1h", "attributes": "players"});
    assert_eq!(client.put("/v1/boards/kills", definition).await.status, 201);
    let added =
        client.add("kills", json!({"increments": [{"subject": "a"}, {"subject": "a", "attributes": {"n": 1}}]})).await;
    let refused = &added.body["attributes_rejected"];
    assert_eq!((&added.body["accepted"], &refused[0]["index"]), (&json!(2), &json!(1)), "{added:?}");
    assert_eq!(refused[0]["code"], "attributes_not_set");
    assert!(refused[0]["detail"].as_str().unwrap().ends_with("no_attributes_board"), "{added:?}");
}

#[actix_web::test]
async fn many_subjects_are_described_in_a_batch_or_a_stream_and_listed_in_pages() {
    let site = site().await;
    let client = &site.client;
    let path = "/v1/boards/b/attributes";
    let batch = json!({"subjects": [
        {"subject": "a", "attributes": {"level": null, "x": 1}}, {"subject": "", "attributes": {}},
        {"subject": "c", "attributes": {"n": 1}}, {"subject": "c", "attributes": {"n": 2, "m": 3}},
        {"subject": "d", "attributes": {"n": "x".repeat(2_000)}}, {"subject": "e"}, {"subject": "f", "attributes": null},
        {"subject": "z/9", "attributes": {"n": 1}}, {"subject": "x", "by": "k", "attributes": {"n": 1}},
    ]});
    let changed = client.post(path, batch).await.body;
    let codes: Value =
        changed["rejected"].as_array().unwrap().iter().map(|one| json!([one["index"], one["code"]])).collect();
    let expected =
        json!([[1, "invalid_subject"], [4, "invalid_attributes"], [5, "invalid_attributes"], [8, "unexpected_key"]]);
    assert_eq!((&changed["accepted"], codes), (&json!(5), expected), "{changed}");
    let lines = "{\"subject\":\"a\",\"attributes\":null}\n\nnot json\n{\"subject\":\"B\",\"attributes\":{\"n\":1}}\n";
    let changed = client.send(Method::POST, path, Some(NDJSON), lines).await.body;
    assert_eq!(json!([changed["accepted"], changed["rejected"][0]["line"]]), json!([2, 3]), "{changed}");
    let page = client.get(&format!("{path}?limit=2")).await.body;
    assert_eq!(page["total"], 3);
    assert_eq!(shown(&page["items"]), json!([["B", {"n": 1}], ["c", {"m": 3, "n": 2}]]));
    let rest = client.get(&format!("{path}?limit=2&cursor={}", page["next"].as_str().unwrap())).await.body;
    assert_eq!(json!([shown(&rest["items"]), rest["next"]]), json!([[["z/9", {"n": 1}]], null]));
    assert_eq!(client.get(&format!("{path}?prefix=z%2F")).await.body["items"][0]["subject"], "z/9");
    assert_eq!(client.get(&format!("{path}?cursor=%2B")).await.refusal(), (422, "invalid_field"));
    let single = client.post(path, json!({"subject": "a", "attributes": {"a b": 1}})).await;
    assert_eq!(single.refusal(), (422, "invalid_field"), "{single:?}");
    let full = json!({"subject": "full", "attributes": {"a": "x".repeat(1_000)}});
    assert_eq!(client.post(path, full).await.body["accepted"], 1);
    let beyond = client.post(path, json!({"subject": "full", "attributes": {"b": "x".repeat(30)}})).await;
    assert_eq!(beyond.refusal(), (422, "invalid_field"), "{beyond:?}");
}

#[actix_web::test]
async fn several_boards_show_the_attributes_of_one() {
    let site = Site::new().await;
    let client = &site.client;
    let named = |keeper: &str| json!({"metric": "COUNT(24h, kill, player)", "slot": "1h", "attributes": keeper});
    let defined = client.put("/v1/boards/kills", named("players")).await.body;
    assert_eq!(defined["attributes"], "players");
    assert!(
        defined["notes"][0].as_str().unwrap().contains("'players' for its attributes, which does not exist"),
        "{defined}"
    );
    client.count("kills", &["a"]).await;
    let line = async |board: &str| {
        let page = client.get(&format!("/v1/boards/{board}/rankings?attributes=*")).await;
        assert_eq!(page.status, 200, "{page:?}");
        page.body["items"][0]["attributes"].clone()
    };
    assert_eq!(line("kills").await, json!({}), "without a board that keeps them there are none");
    let missing = change(client, "kills", "a", r#"{"n":1}"#).await;
    assert_eq!((missing.refusal(), &missing.body["board"]), ((409, "no_attributes_board"), &json!("players")));
    let players = json!({"metric": "COUNT(all, player, player)", "ranked": false});
    assert_eq!(client.put("/v1/boards/players", players).await.status, 201);
    assert_eq!(change(client, "kills", "a", r#"{"n":1}"#).await.body["board"], "kills");
    client.add("kills", json!({"subject": "a", "attributes": {"m": 2}})).await;
    assert_eq!(
        (of(client, "players", "a").await, line("kills").await),
        (json!({"m": 2, "n": 1}), json!({"m": 2, "n": 1}))
    );
    // Also one with keys, whose rankings have the same subjects.
    let by = json!({"metric": "COUNT(24h, kill, player BY map)", "slot": "1h", "attributes": "players"});
    assert_eq!(client.put("/v1/boards/by-map", by).await.status, 201);
    assert_eq!(
        client.add("by-map", json!({"subject": "a", "by": "x", "attributes": {"o": 3}})).await.body["accepted"],
        1
    );
    let page = client.get("/v1/boards/by-map/rankings?by=x&attributes=o").await.body;
    assert_eq!(page["items"][0]["attributes"], json!({"o": 3}));
    // A board that names another one keeps none for others, and neither does one with keys.
    client.define("keyed", "COUNT(24h, kill, player BY map)", "1h").await;
    for (keeper, why) in [("kills", "itself names another board"), ("keyed", "a ranking for each key")] {
        for query in ["", "?dry_run=true"] {
            let refused = client.put(&format!("/v1/boards/new{query}"), named(keeper)).await;
            assert_eq!((refused.refusal(), &refused.body["board"]), ((409, "no_attributes_board"), &json!(keeper)));
            assert!(refused.body["detail"].as_str().unwrap().ends_with(why), "{refused:?}");
        }
    }
    // Nor does one that becomes such a board later.
    assert_eq!(client.put("/v1/boards/early", named("late")).await.status, 201);
    assert_eq!(client.put("/v1/boards/late", named("players")).await.status, 201);
    client.count("early", &["a"]).await;
    assert_eq!(line("early").await, json!({}));
    assert_eq!(client.put("/v1/boards/early", named("late")).await.status, 200, "as at the start of an instance");
    assert_eq!(change(client, "early", "a", r#"{"n":1}"#).await.refusal(), (409, "no_attributes_board"));
    // One that names itself is as any other.
    assert_eq!(client.put("/v1/boards/own", named("own")).await.status, 201);
    client.count("own", &["a"]).await;
    assert_eq!(change(client, "own", "a", r#"{"n":7}"#).await.status, 200);
    assert_eq!(line("own").await, json!({"n": 7}));
    // An instance that knows the boards as they were follows them.
    let other = site.second_instance();
    assert_eq!(other.get("/v1/boards/kills/rankings?attributes=n").await.body["items"][0]["attributes"]["n"], 1);
    assert_eq!(client.delete("/v1/boards/players").await.status, 200);
    let emptied = other.get("/v1/boards/kills/rankings?attributes=n").await;
    assert_eq!((emptied.status, &emptied.body["items"][0]["attributes"]), (200, &json!({})), "{emptied:?}");
    assert_eq!(client.define("players", "COUNT(1h, x, y)", "1m").await.status, 201);
    assert_eq!(change(client, "players", "a", r#"{"n":2}"#).await.status, 200);
    assert_eq!(other.get("/v1/boards/kills/rankings?attributes=n").await.body["items"][0]["attributes"]["n"], 2);
    assert_eq!(change(&other, "kills", "a", r#"{"n":3}"#).await.body["attributes"]["n"], 3);
    // Where it is known as one without keys, while it has some by now, nothing of its rankings is shown or changed.
    for call in 0..3 {
        assert_eq!(client.delete("/v1/boards/players").await.status, 200);
        assert_eq!(client.define("players", "COUNT(1h, x, y)", "1m").await.status, 201);
        assert_eq!(other.get("/v1/boards/kills/subjects/a/attributes").await.status, 200);
        assert_eq!(client.delete("/v1/boards/players").await.status, 200);
        assert_eq!(client.define("players", "COUNT(1h, x, y BY z)", "1m").await.status, 201);
        let answer = match call {
            0 => other.get("/v1/boards/kills/attributes").await,
            1 => other.get("/v1/boards/kills/subjects/a/attributes?by=z").await,
            _ => {
                let path = "/v1/boards/kills/subjects/a/attributes?by=z";
                other.send(Method::PATCH, path, Some("application/json"), r#"{"n":4}"#).await
            }
        };
        assert_eq!(answer.refusal(), (409, "no_attributes_board"), "{call}: {answer:?}");
    }
}

/// A promotion exchanges the boards that are named, for every instance.
#[actix_web::test]
async fn a_successor_may_name_another_board() {
    let site = site().await;
    let client = &site.client;
    let other = site.second_instance();
    client.define("players", "COUNT(all, player, player)", "1h").await;
    client.put("/v1/boards/players", json!({"metric": "COUNT(all, player, player)"})).await;
    set(client, "players", "a", json!({"name": "of players"})).await;
    let name = async |client: &Client| {
        client.get("/v1/boards/b/rankings?attributes=name").await.body["items"][0]["attributes"]["name"].clone()
    };
    assert_eq!(name(&other).await, "Ann");
    // Another filter, so that it begins empty.
    let next = json!({"metric": "COUNT(24h, like, post_id WHERE app = 1)", "slot": "1h", "attributes": "players"});
    let begun = client.put("/v1/boards/b/next", next).await;
    assert_eq!((begun.status, &begun.body["attributes"]), (201, &json!("players")), "{begun:?}");
    assert_eq!(name(&other).await, "Ann", "the board itself decides");
    let promoted = client.send(Method::POST, "/v1/boards/b/next/promote?early=true", None, "").await;
    assert_eq!(promoted.status, 200, "{promoted:?}");
    client.count("b", &["a"]).await;
    assert_eq!((name(&other).await, name(client).await), (json!("of players"), json!("of players")));
    // What another instance sends goes to the board that is named now.
    assert_eq!(other.add("b", json!({"subject": "a", "attributes": {"name": "new"}})).await.body["accepted"], 1);
    assert_eq!(of(client, "players", "a").await, json!({"name": "new"}));
    // A successor of that one keeps the name, unless it says null.
    client.count("b", &["a"]).await;
    let third = json!({"metric": "COUNT(24h, like, post_id WHERE app = 2)", "slot": "1h", "attributes": null});
    assert_eq!(client.delete("/v1/boards/b/previous").await.status, 200);
    let begun = client.put("/v1/boards/b/next", third).await;
    assert!(begun.status == 201 && begun.body.get("attributes").is_none(), "{begun:?}");
    assert_eq!(client.send(Method::POST, "/v1/boards/b/next/promote?early=true", None, "").await.status, 200);
    client.count("b", &["a"]).await;
    assert_eq!(name(&other).await, "Ann", "what the board kept is still there");
}

#[actix_web::test]
async fn attributes_leave_with_their_subject_and_go_along_with_contents() {
    let site = site().await;
    let client = &site.client;
    set(client, "b", "new", json!({"n": 1.50})).await;
    let contents = client.get("/v1/boards/b/contents").await.text;
    assert!(contents.contains(r#""attributes":[["a",{"level":2,"name":"Ann"}],["new",{"n":1.5}]]"#), "{contents}");
    assert_eq!(client.define("copy", "COUNT(24h, like, post_id)", "1h").await.status, 201);
    set(client, "copy", "a", json!({"name": "here"})).await;
    for _ in 0..2 {
        let imported = client.send(Method::POST, "/v1/boards/copy/contents", Some(NDJSON), contents.clone()).await;
        assert_eq!(imported.body["ended"], true, "{imported:?}");
    }
    assert_eq!(of(client, "copy", "a").await, json!({"name": "here"}), "what is set here is newer");
    assert_eq!(of(client, "copy", "new").await, json!({"n": 1.5}));
    assert_eq!(client.define("third", "COUNT(24h, like, post_id)", "1h").await.status, 201);
    let wrong = contents.replace(r#"{"n":1.5}"#, "[]");
    let refused = client.send(Method::POST, "/v1/boards/third/contents", Some(NDJSON), wrong).await;
    assert_eq!(refused.refusal(), (422, "invalid_contents"), "{refused:?}");
    let both = contents.replace(r#""attributes":[["a""#, r#""moderated":[["a","h"]],"attributes":[["a""#);
    client.delete("/v1/boards/third").await;
    client.define("third", "COUNT(24h, like, post_id)", "1h").await;
    let refused = client.send(Method::POST, "/v1/boards/third/contents", Some(NDJSON), both).await;
    assert_eq!(refused.refusal(), (422, "invalid_contents"), "{refused:?}");

    client.delete("/v1/boards/b/subjects/a").await;
    let removed = client.post("/v1/boards/b/removals", json!({"subjects": ["new", "none"]})).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_eq!(client.get("/v1/boards/b/attributes").await.body["total"], 0);
}
