//! Boards whose metric has `BY`: a ranking for each key.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::event_stream::Follower;
use crate::site::Site;
use crate::waiting::Wait;

const METRIC: &str = "COUNT(24h, like, post_id BY community)";
const NDJSON: &str = "application/x-ndjson";

/// Adds one to each subject in the ranking of its key.
async fn count(client: &Client, board: &str, items: &[(&str, &str)]) {
    let increments: Vec<_> = items.iter().map(|(by, subject)| json!({"by": by, "subject": subject})).collect();
    let answer = client.add(board, json!({"increments": increments})).await;
    assert_eq!(answer.body["accepted"], items.len(), "{answer:?}");
}

/// A board of two communities that have a post in common, beside a board without keys.
async fn site() -> Site {
    let site = Site::with_board("plain").await;
    assert_eq!(site.client.define("b", METRIC, "1h").await.status, 201);
    count(&site.client, "b", &[("rust", "x"), ("rust", "x"), ("rust", "y"), ("go", "x")]).await;
    site
}

/// Returns the lines of a ranking as pairs of subject and score.
async fn ranking(client: &Client, query: &str) -> Value {
    let answer = client.get(&format!("/v1/boards/b/rankings?{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    pairs(&answer.body["items"])
}

fn pairs(items: &Value) -> Value {
    items.as_array().unwrap().iter().map(|line| json!([line["subject"], line["score"]])).collect()
}

async fn keys(client: &Client, query: &str) -> (u64, Vec<String>, Value) {
    let answer = client.get(&format!("/v1/boards/b/keys?{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let keys = answer.body["items"].as_array().unwrap().iter().map(|item| item["by"].as_str().unwrap().to_owned());
    (answer.body["keys"].as_u64().unwrap(), keys.collect(), answer.body["next"].clone())
}

#[actix_web::test]
async fn each_key_has_a_ranking_of_its_own() {
    let site = site().await;
    let page = site.client.get("/v1/boards/b/rankings?by=rust").await;
    assert_eq!(
        page.body,
        json!({
            "board": "b", "by": "rust", "metric": METRIC, "total": 2, "retiring": 0, "as_of": "2026-01-02T10:07:00Z",
            "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
            "items": [{"rank": 1, "subject": "x", "score": 2}, {"rank": 2, "subject": "y", "score": 1}],
            "next": null, "prev": null,
        })
    );
    assert_eq!(ranking(&site.client, "by=go").await, json!([["x", 1]]));
    assert_eq!(ranking(&site.client, "by=unknown").await, json!([]), "an empty ranking, not an error");
    let standing = site.client.get("/v1/boards/b/subjects/x?by=rust").await.body;
    let shown = ["by", "subject", "score", "rank", "total"].map(|member| standing[member].clone());
    assert_eq!(json!(shown), json!(["rust", "x", 2, 1, 2]));
    assert_eq!(standing["slots"][0]["count"], 2);
    let window = site.client.get("/v1/boards/b/subjects/x/window?last=1h&by=go").await.body;
    assert_eq!(json!([window["by"], window["subject"], window["value"]]), json!(["go", "x", 1]));
    let near = site.client.get("/v1/boards/b/subjects/y/neighbors?by=rust").await.body;
    assert_eq!(json!([near["by"], pairs(&near["items"])]), json!(["rust", [["x", 2], ["y", 1]]]));
    let found = site.client.post("/v1/boards/b/rankings/lookup?by=go", json!({"subjects": ["x", "y"]})).await.body;
    assert_eq!(json!([found["by"], pairs(&found["items"])]), json!(["go", [["x", 1], ["y", 0]]]));
    let status = site.client.get("/v1/boards/b").await.body;
    assert_eq!(json!([status["total"], status["keys"], status["max_keys"]]), json!([3, 2, 1_000_000]));
    let plain = site.client.get("/v1/boards/plain").await.body;
    assert!(plain.get("keys").is_none() && plain.get("max_keys").is_none(), "{plain}");
    assert!(site.client.get("/v1/boards/plain/rankings").await.body.get("by").is_none());
}

#[actix_web::test]
async fn reads_and_writes_need_a_key_exactly_where_there_are_keys() {
    let site = site().await;
    let reads = ["rankings", "subjects/x", "subjects/x/window", "subjects/x/neighbors", "stream"];
    let by_get = async |path: String| site.client.get(&path).await;
    for read in reads {
        let missing = by_get(format!("/v1/boards/b/{read}")).await;
        assert_eq!(missing.refusal(), (422, "missing_key"), "{read}: {missing:?}");
        assert!(missing.body["detail"].as_str().unwrap().contains("community"), "{missing:?}");
        assert_eq!(json!([missing.body["field"], missing.body["metric"]]), json!(["by", METRIC]));
        let unexpected = by_get(format!("/v1/boards/plain/{read}?by=rust")).await;
        assert_eq!(unexpected.refusal(), (422, "unexpected_key"), "{read}: {unexpected:?}");
    }
    for (path, code) in [
        ("/v1/boards/b/rankings?by=", "invalid_field"),
        ("/v1/boards/b/rankings?by=a%00b", "invalid_field"),
        ("/v1/boards/b/rankings?by=a%ffb", "invalid_field"),
        ("/v1/boards/plain/keys", "unexpected_key"),
        ("/v1/boards/b/subjects/x/values?by=rust", "no_values"),
        ("/v1/stream?view=b", "missing_key"),
        ("/v1/stream?view=plain,by=a", "unexpected_key"),
    ] {
        assert_eq!(by_get(path.to_owned()).await.code(), code, "{path}");
    }
    let long = "k".repeat(513);
    assert_eq!(by_get(format!("/v1/boards/b/rankings?by={long}")).await.code(), "invalid_field");
    for (board, query, code) in [("b", "", "missing_key"), ("plain", "?by=rust", "unexpected_key")] {
        let path = format!("/v1/boards/{board}/subjects/x{query}");
        assert_eq!(site.client.delete(&path).await.refusal(), (422, code));
        assert_eq!(site.client.put(&path, json!({"amount": 1})).await.refusal(), (422, code));
        let lookup = format!("/v1/boards/{board}/rankings/lookup{query}");
        assert_eq!(site.client.post(&lookup, json!({"subjects": ["x"]})).await.refusal(), (422, code));
    }
    // A single item is refused, and one of several is rejected.
    let single = site.client.add("b", json!({"subject": "x"})).await;
    assert_eq!((single.refusal(), &single.body["field"]), ((422, "missing_key"), &json!("by")));
    assert!(single.body["detail"].as_str().unwrap().contains("community"), "{single:?}");
    assert_eq!(site.client.add("plain", json!({"subject": "x", "by": "rust"})).await.code(), "unexpected_key");
    assert_eq!(site.client.add("b", json!({"subject": "x", "by": 5})).await.code(), "invalid_field");
    let batch = json!({"increments": [{"subject": "x"}, {"subject": "x", "by": ""}, {"subject": "z", "by": "go"}]});
    let batch = site.client.add("b", batch).await;
    assert_eq!((batch.status, &batch.body["accepted"]), (200, &json!(1)), "{batch:?}");
    assert_eq!(batch.body["rejected_counts"], json!({"missing_key": 1, "invalid_by": 1}));
    let lines = "{\"subject\":\"x\",\"by\":\"rust\"}\n{\"subject\":\"x\"}\n";
    let stream = site.client.ndjson("b", lines).await;
    assert_eq!(json!([stream.body["accepted"], stream.body["rejected"][0]["code"]]), json!([1, "missing_key"]));
    let at = "2026-01-02T10:00:00Z";
    let sample = site.client.put("/v1/boards/b/samples", json!({"subject": "x", "amount": 9, "at": at})).await;
    assert_eq!(sample.refusal(), (422, "missing_key"));
    let sample = json!({"by": "go", "subject": "x", "amount": 9, "at": at});
    let sample = site.client.put("/v1/boards/b/samples?return=score", sample).await;
    assert_eq!(sample.body["scores"], json!([{"index": 0, "by": "go", "subject": "x", "score": 9}]));
    assert_eq!(ranking(&site.client, "by=go").await, json!([["x", 9], ["z", 1]]));
    assert_eq!(ranking(&site.client, "by=rust").await, json!([["x", 3], ["y", 1]]));
}

#[actix_web::test]
async fn events_rules_and_queries_take_the_key_from_the_fields() {
    let site = site().await;
    let like = |fields: Value| json!({"type": "like", "fields": fields});
    let fields = json!({"community": "go", "post_id": "z"});
    let recorded = site.client.post("/v1/events?return=score", like(fields.clone())).await;
    let keyed = recorded.body["scores"].as_array().unwrap().iter().find(|score| score["board"] == "b").cloned();
    let expected = json!({"index": 0, "board": "b", "by": "go", "subject": "z", "score": 1});
    assert_eq!(keyed, Some(expected), "{recorded:?}");
    let without = site.client.post("/v1/events", like(json!({"post_id": "z"}))).await;
    let rejected = &without.body["rejected"][0];
    assert_eq!(
        json!([rejected["board"], rejected["code"], rejected["field"]]),
        json!(["b", "missing_field", "community"])
    );
    let rule = json!({"rule": "COUNT(6h, like, post_id BY community) >= 2",
        "fields": {"community": "rust", "post_id": "x"}});
    let evaluated = site.client.post("/v1/evaluate", rule).await;
    let metric = &evaluated.body["rules"][0]["sides"][0]["metrics"][0];
    assert_eq!(json!([metric["by"], metric["subject"], metric["value"]]), json!(["rust", "x", 2]), "{evaluated:?}");
    let queries = json!({"queries": [
        {"metric": "COUNT(1h, like, post_id BY community)", "fields": {"community": "rust", "post_id": "y"}},
        {"board": "b", "by": "go", "subject": "x"},
        {"board": "b", "subject": "x"},
        {"board": "plain", "by": "go", "subject": "x"},
    ]});
    let answered = site.client.post("/v1/query", queries).await;
    let shown = |answer: &Value| json!([answer["by"], answer["subject"], answer["value"], answer["error"]["code"]]);
    let shown: Vec<Value> = answered.body["answers"].as_array().unwrap().iter().map(shown).collect();
    let expected = json!([
        ["rust", "y", 1, null],
        ["go", "x", 1, null],
        [null, null, null, "missing_key"],
        [null, null, null, "unexpected_key"]
    ]);
    assert_eq!(json!(shown), expected);
}

#[actix_web::test]
async fn two_hops_name_the_keys_of_both_boards() {
    let site = Site::new().await;
    let users = "COUNT_DISTINCT(30d, login, device BY app, user)";
    assert_eq!(site.client.define("users", users, "1d").await.status, 201);
    assert_eq!(
        site.client.define("devices", "COUNT_DISTINCT(30d, login, user BY app, device)", "1d").await.status,
        201
    );
    for (app, device, user) in [("a", "d1", "u1"), ("a", "d2", "u1"), ("b", "d3", "u1"), ("a", "d1", "u2")] {
        let fields = json!({"app": app, "device": device, "user": user});
        assert_eq!(site.client.post("/v1/events", json!({"type": "login", "fields": fields})).await.status, 200);
    }
    let hop =
        async |from: Value, to: Value| site.client.post("/v1/query", json!({"hop": {"from": from, "to": to}})).await;
    let from = json!({"board": "users", "by": "a", "subject": "d1"});
    let answer = hop(from.clone(), json!({"board": "devices", "by": "a"})).await.body["answers"][0].clone();
    assert_eq!(json!([answer["followed"], answer["value"], answer["hop"]["from"]]), json!([2, 2, from]), "{answer}");
    let missing = hop(from, json!({"board": "devices"})).await.body["answers"][0]["error"]["code"].clone();
    assert_eq!(missing, "missing_key");
    let values = site.client.get("/v1/boards/users/subjects/d1/values?by=a&limit=1").await.body;
    assert_eq!(json!([values["by"], values["total"]]), json!(["a", 2]));
    let next = values["next"].as_str().unwrap();
    let path = |by: &str| format!("/v1/boards/users/subjects/d1/values?by={by}&limit=1&cursor={next}");
    assert_eq!(site.client.get(&path("a")).await.body["items"].as_array().unwrap().len(), 1);
    assert_eq!(site.client.get(&path("b")).await.refusal(), (422, "invalid_field"));
}

#[actix_web::test]
async fn a_key_of_several_fields_or_of_a_network_has_one_spelling() {
    let site = Site::new().await;
    let client = &site.client;
    for (board, metric) in [
        ("songs", "COUNT(24h, play, song BY (country, genre))"),
        ("logins", "COUNT(24h, play, song BY prefix(ip, 16))"),
    ] {
        assert_eq!(client.define(board, metric, "1h").await.status, 201);
    }
    let fields = json!({"song": "s", "country": "se", "genre": "jazz", "ip": "10.1.2.3"});
    let event = client.post("/v1/events", json!({"type": "play", "fields": fields})).await;
    assert_eq!(event.body["accepted"], 1, "{event:?}");
    let encoded = |key: &str| key.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    for (board, spelled, others, wrong) in [
        ("songs", r#"["se","jazz"]"#, [r#"["se", "jazz"]"#, r#"[ "\u0073e","jazz"]"#], [r#"["se"]"#, "se,jazz"]),
        ("logins", "10.1.0.0/16", ["10.1.2.3", "10.1.2.3/16"], ["10.1", "10.1.0.0/24"]),
    ] {
        for key in others.into_iter().chain([spelled]) {
            for read in ["rankings", "subjects/s", "subjects/s/window", "subjects/s/neighbors"] {
                let read = client.get(&format!("/v1/boards/{board}/{read}?by={}", encoded(key))).await;
                assert_eq!((read.status, &read.body["by"]), (200, &json!(spelled)), "{key}: {read:?}");
            }
            let several = client.post(&format!("/v1/boards/{board}/rankings/by"), json!({"keys": [key]})).await;
            assert_eq!(
                json!([several.body["rankings"][0]["by"], several.body["rankings"][0]["total"]]),
                json!([spelled, 1])
            );
            let query = json!({"queries": [{"board": board, "by": key, "subject": "s"}]});
            let answer = client.post("/v1/query", query).await;
            assert_eq!(answer.body["answers"][0]["count"], 1, "{answer:?}");
            count(client, board, &[(key, "t")]).await;
            let removed = client.delete(&format!("/v1/boards/{board}/subjects/t?by={}", encoded(key))).await;
            assert_eq!(removed.body["score"], 1, "{removed:?}");
        }
        for key in wrong {
            let read = client.get(&format!("/v1/boards/{board}/rankings?by={}", encoded(key))).await;
            assert_eq!((read.refusal(), &read.body["field"]), ((422, "invalid_field"), &json!("by")), "{key}");
            let removed = client.delete(&format!("/v1/boards/{board}/keys/{}", encoded(key))).await;
            assert_eq!(removed.refusal(), (422, "invalid_field"), "{key}");
            let increments = json!({"increments": [{"by": key, "subject": "s"}, {"by": spelled, "subject": "s"}]});
            let batch = client.add(board, increments).await;
            assert_eq!(json!([batch.body["accepted"], batch.body["rejected"][0]["code"]]), json!([1, "invalid_by"]));
        }
        let listed = client.get(&format!("/v1/boards/{board}/keys")).await;
        assert_eq!(listed.body["items"], json!([{"by": spelled}]));
        let removed = client.delete(&format!("/v1/boards/{board}/keys/{}", encoded(others[0]))).await;
        assert_eq!(removed.body["subjects"], 1, "{removed:?}");
    }
}

#[actix_web::test]
async fn a_board_that_is_suggested_for_a_rule_can_be_defined() {
    let site = Site::new().await;
    let fields = json!({"device": "d", "country": "se"});
    let rule = json!({"rule": "COUNT(1h, login, device BY country) > 1", "fields": fields});
    let missing = site.client.post("/v1/evaluate", rule.clone()).await;
    assert_eq!((missing.code(), &missing.body["board"]), ("no_board", &json!("login-per-device-by-country")));
    assert!(!missing.body["detail"].as_str().unwrap().contains("ranked"), "{missing:?}");
    let path = format!("/v1/boards/{}", missing.body["board"].as_str().unwrap());
    assert_eq!(site.client.put(&path, missing.body["definition"].clone()).await.status, 201);
    assert_eq!(site.client.post("/v1/evaluate", rule).await.status, 200);
}

#[actix_web::test]
async fn cursors_belong_to_the_ranking_of_a_key() {
    let site = site().await;
    let page = async |query: &str| site.client.get(&format!("/v1/boards/b/rankings?limit=1&{query}")).await;
    let first = page("by=rust").await;
    let next = first.body["next"].as_str().unwrap().to_owned();
    let second = page(&format!("by=rust&cursor={next}")).await;
    assert_eq!(pairs(&second.body["items"]), json!([["y", 1]]));
    assert_eq!(second.body["next"], Value::Null);
    for other in ["by=go&", ""] {
        let refused = page(&format!("{other}cursor={next}")).await;
        assert_eq!(refused.refusal(), (422, "invalid_field"), "{refused:?}");
    }
    let export = |query: &str| {
        let path = format!("/v1/boards/b/rankings?{query}");
        let client = site.client.clone();
        async move { client.send_with(Method::GET, &path, &[("accept", NDJSON)], "").await }
    };
    let lines = |answer: &Answer| -> Vec<Value> {
        answer.text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    };
    let begun = lines(&export("by=rust&limit=1").await);
    let end = begun.last().unwrap();
    assert_eq!(json!([begun[0]["subject"], end["by"], end["complete"]]), json!(["x", "rust", true]));
    let next = end["next"].as_str().unwrap();
    let rest = lines(&export(&format!("by=rust&cursor={next}")).await);
    assert_eq!(json!([rest.len(), rest[0]["subject"]]), json!([2, "y"]));
    assert_eq!(export(&format!("by=go&cursor={next}")).await.code(), "invalid_field");
    assert_eq!(export("limit=1").await.code(), "missing_key");
}

#[actix_web::test]
async fn the_keys_are_listed_by_name() {
    let site = site().await;
    count(&site.client, "b", &[("a/b%", "x"), ("zig", "x"), ("日本", "x")]).await;
    assert_eq!(keys(&site.client, "limit=2").await, (5, vec!["a/b%".into(), "go".into()], json!("go")));
    let rest = ["rust", "zig", "日本"].map(str::to_owned).to_vec();
    assert_eq!(keys(&site.client, "limit=3&cursor=go").await, (5, rest.clone(), Value::Null));
    assert_eq!(keys(&site.client, "cursor=h").await, (5, rest, Value::Null), "any text is a cursor");
    for (query, code) in [("limit=0", "invalid_field"), ("cursor=", "invalid_field"), ("by=a", "unknown_field")] {
        assert_eq!(site.client.get(&format!("/v1/boards/b/keys?{query}")).await.code(), code, "{query}");
    }
    for (query, found, next) in [
        ("prefix=", 5, Value::Null),
        ("prefix=g", 1, Value::Null),
        ("prefix=go", 1, Value::Null),
        ("prefix=gopher", 0, Value::Null),
        ("prefix=%E6%97%A5", 1, Value::Null),
        ("prefix=r&cursor=go", 1, Value::Null),
        ("prefix=go&cursor=h", 0, Value::Null),
        ("prefix=&limit=4", 4, json!("zig")),
    ] {
        let (all, some, after) = keys(&site.client, query).await;
        assert_eq!((all, some.len(), after), (5, found, next), "{query}: {some:?}");
    }
    // A key whose subjects have expired is none.
    site.client.set_clock("2026-01-03T09:00:00Z").await;
    count(&site.client, "b", &[("late", "x")]).await;
    site.client.set_clock("2026-01-03T12:00:00Z").await;
    site.tick().await;
    assert_eq!(keys(&site.client, "").await, (1, vec!["late".into()], Value::Null));
    assert_eq!(site.client.get("/v1/boards/b").await.body["keys"], 1);
}

#[actix_web::test]
async fn the_first_lines_of_many_keys_in_one_call() {
    let site = site().await;
    let by = async |board: &str, body: Value| site.client.post(&format!("/v1/boards/{board}/rankings/by"), body).await;
    let answer = by("b", json!({"keys": ["rust", "none", "go", "rust"], "limit": 1})).await;
    assert_eq!((answer.status, &answer.body["metric"]), (200, &json!(METRIC)), "{answer:?}");
    let shown = |one: &Value| json!([one["by"], one["total"], pairs(&one["items"]), one["next"].is_null()]);
    let shown: Vec<Value> = answer.body["rankings"].as_array().unwrap().iter().map(shown).collect();
    let expected = json!([["rust", 2, [["x", 2]], false], ["none", 0, [], true], ["go", 1, [["x", 1]], true]]);
    assert_eq!(json!(shown), expected);
    let next = answer.body["rankings"][0]["next"].as_str().unwrap();
    assert_eq!(ranking(&site.client, &format!("by=rust&cursor={next}")).await, json!([["y", 1]]));
    let many: Vec<String> = (0..101).map(|n| format!("k{n}")).collect();
    for (body, field) in [
        (json!({"keys": []}), "keys"),
        (json!({"keys": many}), "keys"),
        (json!({"keys": ["a", ""]}), "keys[1]"),
        (json!({"keys": ["a", 5]}), "keys[1]"),
        (json!({"keys": ["a"], "limit": 0}), "limit"),
        (json!({"keys": ["a"], "limit": 101}), "limit"),
    ] {
        let refused = by("b", body).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!(field)));
    }
    let large = by("b", json!({"keys": many[..100], "limit": 100})).await;
    assert_eq!((large.status, large.body["rankings"].as_array().unwrap().len()), (200, 100));
    assert_eq!(by("plain", json!({"keys": ["a"]})).await.refusal(), (422, "unexpected_key"));
}

#[actix_web::test]
async fn a_subject_is_removed_from_one_key_or_from_all() {
    let site = site().await;
    let removed = site.client.delete("/v1/boards/b/subjects/x?by=go").await.body;
    assert_eq!(json!([removed["by"], removed["subject"], removed["score"]]), json!(["go", "x", 1]));
    assert_eq!(keys(&site.client, "").await.1, ["rust"], "a key that became empty leaves nothing");
    let keyed: Vec<String> = (0..50).map(|n| format!("k{n:02}")).collect();
    let items: Vec<(&str, &str)> = keyed.iter().flat_map(|key| [(key.as_str(), "x"), (key.as_str(), "z")]).collect();
    count(&site.client, "b", &items).await;
    let removed = site.client.delete("/v1/boards/b/subjects/x?all_keys=true").await.body;
    let expected = json!({"board": "b", "subject": "x", "keys": 51, "as_of": "2026-01-02T10:07:00Z"});
    assert_eq!(removed, expected);
    assert_eq!(ranking(&site.client, "by=rust").await, json!([["y", 1]]));
    assert_eq!(ranking(&site.client, "by=k07").await, json!([["z", 1]]));
    assert_eq!(site.client.delete("/v1/boards/b/subjects/x?all_keys=true").await.body["keys"], 0);
    for (path, code) in [
        ("/v1/boards/b/subjects/x?all_keys=true&by=go", "invalid_field"),
        ("/v1/boards/b/subjects/x?all_keys=false", "missing_key"),
        ("/v1/boards/plain/subjects/x?all_keys=true", "unexpected_key"),
    ] {
        assert_eq!(site.client.delete(path).await.refusal(), (422, code), "{path}");
    }
    assert_eq!(site.client.post("/v1/boards/b/audit", json!({})).await.body["differences"], 0);
}

#[actix_web::test]
async fn several_subjects_are_removed_in_one_call() {
    let site = site().await;
    let remove = async |path: &str, subjects: Value| {
        site.client.post(&format!("/v1/boards/{path}"), json!({"subjects": subjects})).await
    };
    site.client.count("plain", &["x", "y", "z"]).await;
    let removed = remove("plain/removals", json!(["x", "none", "z", "x"])).await;
    let expected = json!({"board": "plain", "subjects": 2, "as_of": "2026-01-02T10:07:00Z"});
    assert_eq!((removed.status, &removed.body), (200, &expected));
    assert_eq!(site.client.get("/v1/boards/plain/rankings").await.body["total"], 1);

    count(&site.client, "b", &[("zig", "x"), ("zig", "y"), ("zig", "z")]).await;
    let removed = remove("b/removals?by=zig", json!(["x", "y"])).await.body;
    assert_eq!(json!([removed["by"], removed["subjects"]]), json!(["zig", 2]));
    assert_eq!(ranking(&site.client, "by=zig").await, json!([["z", 1]]));
    assert_eq!(ranking(&site.client, "by=go").await, json!([["x", 1]]));
    let removed = remove("b/removals?all_keys=true", json!(["z", "x", "none"])).await.body;
    assert_eq!(json!([removed["by"], removed["subjects"]]), json!([null, 3]));
    assert_eq!(keys(&site.client, "").await, (1, vec!["rust".into()], Value::Null));
    assert_eq!(ranking(&site.client, "by=rust").await, json!([["y", 1]]));

    let many: Vec<String> = (0..1_001).map(|nth| format!("s{nth}")).collect();
    assert_eq!(remove("b/removals?by=rust", json!(many[1..])).await.body["subjects"], 0);
    for (path, subjects, code) in [
        ("b/removals", json!(["x"]), "missing_key"),
        ("b/removals?by=a&all_keys=true", json!(["x"]), "invalid_field"),
        ("plain/removals?by=a", json!(["x"]), "unexpected_key"),
        ("plain/removals?all_keys=true", json!(["x"]), "unexpected_key"),
        ("plain/removals", json!([]), "invalid_field"),
        ("plain/removals", json!(many), "invalid_field"),
        ("plain/removals", json!(["x", 5]), "invalid_field"),
    ] {
        assert_eq!(remove(path, subjects).await.refusal(), (422, code), "{path}");
    }
}

/// Writes for other names and keys go on while subjects are removed, on a board with two windows and a successor.
#[actix_web::test]
async fn removals_take_what_they_name_from_all_windows_and_editions_while_others_are_counted() {
    let site = site().await;
    let body = json!({"metric": METRIC, "slot": "1h", "windows": ["48h/2h"]});
    assert_eq!(site.client.put("/v1/boards/c", body).await.status, 201);
    let keyed: Vec<String> = (0..40).map(|nth| format!("k{nth:02}")).collect();
    let all: Vec<(&str, &str)> =
        keyed.iter().flat_map(|key| ["gone", "kept"].map(|subject| (key.as_str(), subject))).collect();
    count(&site.client, "c", &all).await;
    let successor = json!({"metric": METRIC, "slot": "2h", "windows": ["48h/2h"]});
    let attached = site.client.put("/v1/boards/c/next", successor).await;
    assert_eq!(attached.status, 201, "{attached:?}");
    count(&site.client, "c", &all).await;
    let writes = async {
        for _ in 0..20 {
            let kept: Vec<(&str, &str)> = keyed.iter().map(|key| (key.as_str(), "kept")).collect();
            count(&site.client, "c", &kept).await;
        }
    };
    let removal = site.client.delete("/v1/boards/c/subjects/gone?all_keys=true");
    let (removed, key_removed, ()) = tokio::join!(removal, site.client.delete("/v1/boards/c/keys/k07"), writes);
    assert_eq!((removed.status, key_removed.status), (200, 200), "{removed:?} {key_removed:?}");
    let lines =
        async |query: &str| pairs(&site.client.get(&format!("/v1/boards/c/rankings?{query}")).await.body["items"]);
    for window in ["24h", "48h"] {
        for key in keyed.iter().filter(|key| *key != "k07") {
            let found = lines(&format!("by={key}&window={window}")).await;
            assert_eq!(found, json!([["kept", 22]]), "{key} {window}");
            let found = lines(&format!("by={key}&window={window}&of=next")).await;
            assert_eq!(found.as_array().unwrap().len(), 1, "{key} {window}: {found}");
        }
        // What was counted for the key after it was removed may stay; nothing else does.
        let left = lines(&format!("by=k07&window={window}")).await;
        assert!(left.as_array().unwrap().iter().all(|line| line[0] == "kept"), "{left}");
    }
    assert_eq!(site.client.post("/v1/boards/c/audit", json!({})).await.body["differences"], 0);
}

#[actix_web::test]
async fn a_board_that_gets_or_loses_its_keys_is_read_again() {
    let site = site().await;
    let other = site.second_instance();
    for (metric, counted, without, with) in [
        ("COUNT(24h, like, post_id)", json!({"subject": "x"}), 200, 422),
        (METRIC, json!({"subject": "x", "by": "rust"}), 422, 200),
    ] {
        // The other instance knows the board as it was.
        assert_eq!(other.get("/v1/boards/b").await.status, 200);
        assert_eq!(site.client.delete("/v1/boards/b").await.status, 200);
        assert_eq!(site.client.define("b", metric, "1h").await.status, 201);
        assert_eq!(other.add("b", counted).await.body["accepted"], 1, "{metric}");
        assert_eq!(other.get("/v1/boards/b/rankings").await.status, without, "{metric}");
        assert_eq!(other.get("/v1/boards/b/rankings?by=rust").await.status, with, "{metric}");
        assert_eq!(other.get("/v1/boards/b/subjects/x").await.status, without, "{metric}");
        assert_eq!(other.get("/v1/boards/b/keys").await.status, with, "{metric}");
    }
}

#[actix_web::test]
async fn an_export_as_csv_is_of_one_key() {
    let site = site().await;
    let export =
        site.client.send_with(Method::GET, "/v1/boards/b/rankings?by=rust", &[("accept", "text/csv")], "").await;
    assert_eq!((export.status, export.text.as_str()), (200, "rank,subject,score\r\n1,x,2\r\n2,y,1\r\n"));
}

#[actix_web::test]
async fn a_key_is_removed_with_all_its_subjects() {
    let site = site().await;
    count(&site.client, "b", &[("a/b", "x"), ("a/b", "y")]).await;
    // One that has expired, and is not subtracted yet.
    let earlier = json!({"by": "a/b", "subject": "old", "at": "2026-01-01T11:30:00Z"});
    assert_eq!(site.client.add("b", earlier).await.body["accepted"], 1);
    site.client.set_clock("2026-01-02T12:00:00Z").await;
    let removed = site.client.delete("/v1/boards/b/keys/a%2Fb").await;
    let expected = json!({"board": "b", "by": "a/b", "subjects": 2, "as_of": "2026-01-02T12:00:00Z"});
    assert_eq!((removed.status, &removed.body), (200, &expected));
    assert_eq!(keys(&site.client, "").await, (2, vec!["go".into(), "rust".into()], Value::Null));
    assert_eq!(ranking(&site.client, "by=a/b").await, json!([]));
    assert_eq!(site.client.delete("/v1/boards/b/keys/none").await.body["subjects"], 0);
    for (path, code) in
        [("b/keys/%ff", "invalid_field"), ("b/keys/%", "invalid_field"), ("plain/keys/a", "unexpected_key")]
    {
        let request = format!("DELETE /v1/boards/{path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        let answer = site.client.raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 422") && answer.contains(&format!("\"{code}\"")), "{path}: {answer}");
    }
}

#[actix_web::test]
async fn the_value_of_a_subject_is_set_in_one_key() {
    let site = site().await;
    let set = site.client.put("/v1/boards/b/subjects/x?by=rust", json!({"amount": 7})).await.body;
    assert_eq!(json!([set["by"], set["subject"], set["score"]]), json!(["rust", "x", 7]));
    assert_eq!(ranking(&site.client, "by=rust").await, json!([["x", 7], ["y", 1]]));
    assert_eq!(ranking(&site.client, "by=go").await, json!([["x", 1]]));
}

#[actix_web::test]
async fn live_views_follow_one_key() {
    let site = site().await;
    count(&site.client, "b", &[("a,limit=3", "x")]).await;
    let follow = |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", site.client.port);
        async move { Follower::open(&url, &[]).await }
    };
    let mut rust = follow("/v1/boards/b/stream?by=rust").await;
    let page = rust.expect("page").await;
    let ranking = site.client.get("/v1/boards/b/rankings?by=rust&limit=10").await;
    assert_eq!((page.id.as_deref(), &page.data), (Some(ranking.header("etag")), &ranking.body));
    let mut several = follow("/v1/stream?view=b,limit=25,by=a,limit%3D3&view=b,by=go&view=b").await;
    let views: Vec<Value> = [several.expect("page").await, several.expect("page").await]
        .into_iter()
        .map(|event| json!([event.data["view"], event.data["page"]["by"], pairs(&event.data["page"]["items"])]))
        .collect();
    assert_eq!(
        json!(views),
        json!([["b,limit=25,by=a,limit=3", "a,limit=3", [["x", 1]]], ["b,by=go", "go", [["x", 1]]]])
    );
    let problem = several.expect("problem").await.data;
    assert_eq!(json!([problem["view"], problem["problem"]["code"]]), json!(["b", "missing_key"]));
    count(&site.client, "b", &[("rust", "y"), ("rust", "y")]).await;
    let change = rust.expect("change").await;
    assert_eq!(pairs(&change.data["rows"]), json!([["y", 3], ["x", 2]]));
}

#[actix_web::test]
async fn the_tag_of_a_ranking_changes_with_its_key_only() {
    let site = site().await;
    let read = async |tag: &str| {
        site.client.send_with(Method::GET, "/v1/boards/b/rankings?by=rust", &[("if-none-match", tag)], "").await
    };
    let tag = read("\"none\"").await.header("etag").to_owned();
    count(&site.client, "b", &[("go", "x"), ("zig", "x")]).await;
    assert_eq!(read(&tag).await.status, 304);
    count(&site.client, "b", &[("rust", "x")]).await;
    assert_eq!(read(&tag).await.status, 200);
}

#[actix_web::test]
async fn contents_name_keys_and_are_imported_with_them() {
    let site = site().await;
    assert_eq!(site.client.define("copy", METRIC, "1h").await.status, 201);
    count(&site.client, "copy", &[("rust", "x")]).await;
    let contents = site.client.get("/v1/boards/b/contents").await.text;
    assert!(!contents.contains("\\u0000") && !contents.contains('\0'), "{contents}");
    let mut cells = Vec::new();
    for line in contents.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let (sums, by) = (line["sums"].as_array().into_iter().flatten(), line["by"].as_array().into_iter().flatten());
        cells.extend(by.zip(sums).map(|(by, sum)| json!([by, sum]).to_string()));
    }
    cells.sort();
    assert_eq!(cells, [r#"["go",["x",1]]"#, r#"["rust",["x",2]]"#, r#"["rust",["y",1]]"#]);
    let import = async |board: &str, text: String| {
        site.client.send(Method::POST, &format!("/v1/boards/{board}/contents"), Some(NDJSON), text).await
    };
    let without: String = contents
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("by");
            format!("{line}\n")
        })
        .collect();
    let refused = import("copy", without).await;
    assert_eq!(refused.refusal(), (422, "invalid_contents"), "{refused:?}");
    assert_eq!(import("plain", contents.clone()).await.refusal(), (409, "import_refused"));
    let imported = import("copy", contents).await;
    assert_eq!(json!([imported.body["merged"], imported.body["ended"]]), json!([3, true]), "{imported:?}");
    let read =
        async |by: &str| pairs(&site.client.get(&format!("/v1/boards/copy/rankings?by={by}")).await.body["items"]);
    assert_eq!((read("rust").await, read("go").await), (json!([["x", 3], ["y", 1]]), json!([["x", 1]])));
}

#[actix_web::test]
async fn a_limit_of_keys_holds_in_each_window() {
    let site = Site::new().await;
    let definition = json!({"metric": METRIC, "slot": "1h", "windows": ["all"], "max_keys": 1});
    assert_eq!(site.client.put("/v1/boards/b", definition).await.status, 201);
    count(&site.client, "b", &[("go", "x")]).await;
    site.client.set_clock("2026-01-05T12:00:00Z").await;
    site.tick().await;
    let refused = site.client.add("b", json!({"by": "zig", "subject": "x"})).await;
    let refused = &refused.body["rejected"][0];
    assert_eq!(refused["code"], "too_many_keys", "{refused:?}");
    assert!(refused["detail"].as_str().unwrap().contains("in one of its windows"), "{refused:?}");
    let status = site.client.get("/v1/boards/b").await;
    let keys: Vec<&Value> =
        status.body["each_window"].as_array().unwrap().iter().map(|window| &window["keys"]).collect();
    assert_eq!(keys, [0, 1]);
}

#[actix_web::test]
async fn a_key_beyond_the_limit_is_refused_and_the_others_go_on() {
    let site = Site::new().await;
    let definition = json!({"metric": METRIC, "slot": "1h", "max_keys": 2});
    assert_eq!(site.client.put("/v1/boards/b", definition).await.status, 201);
    count(&site.client, "b", &[("go", "x"), ("rust", "x")]).await;
    let beyond = json!({"increments": [{"by": "zig", "subject": "x"}, {"by": "go", "subject": "y"}]});
    let beyond = site.client.add("b", beyond).await;
    assert_eq!(json!([beyond.body["accepted"], beyond.body["rejected"][0]["code"]]), json!([1, "too_many_keys"]));
    assert_eq!(site.client.delete("/v1/boards/b/keys/go").await.body["subjects"], 2);
    count(&site.client, "b", &[("zig", "x")]).await;
    for (definition, key) in [
        (json!({"metric": METRIC, "slot": "1h", "ranked": false}), "metric"),
        (json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "max_keys": 2}), "max_keys"),
    ] {
        let refused = site.client.put("/v1/boards/other", definition).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!(key)));
    }
}

#[actix_web::test]
async fn a_successor_is_compared_over_all_keys() {
    let site = site().await;
    let definition = json!({"metric": "COUNT(12h, like, post_id BY community)", "slot": "1h"});
    assert_eq!(site.client.put("/v1/boards/b/next", definition).await.status, 201);
    count(&site.client, "b", &[("new", "z")]).await;
    // Only the window of the board has this.
    let early = json!({"by": "go", "subject": "early", "at": "2026-01-01T22:30:00Z"});
    assert_eq!(site.client.add("b", early).await.body["accepted"], 1);
    site.tick().await;
    assert_eq!(ranking(&site.client, "by=new&of=next").await, json!([["z", 1]]));
    assert_eq!(site.client.post("/v1/boards/b/next/compare", json!({})).await.status, 202);
    let wait = Wait::begin("the end of a comparison");
    let compared = loop {
        let comparison = site.client.get("/v1/boards/b/next").await.body["comparison"].clone();
        if comparison["state"] != "running" {
            break comparison;
        }
        wait.rest(&comparison).await;
    };
    let shown = ["state", "in_both", "only_board", "only_next", "different", "tops"].map(|name| compared[name].clone());
    assert_eq!(shown[0], "done", "{compared:?}");
    assert_eq!(json!([shown[1], shown[2], shown[3], shown[5]]), json!([4, 1, 0, []]), "{compared:?}");
    let expected = json!([{"by": "go", "subject": "early", "score": 1, "next_score": null}]);
    assert_eq!(compared["differences"], expected);
}

#[actix_web::test]
async fn mirrored_reads_are_of_the_same_key() {
    let site = Site::new().await;
    let service = site.service();
    service.mirror_reads(1.0);
    let client = &crate::site::serve(service, crate::site::options());
    assert_eq!(client.define("b", METRIC, "1h").await.status, 201);
    // A successor with another filter does not have what was counted before.
    count(client, "b", &[("go", "x"), ("rust", "y"), ("rust", "y")]).await;
    let filtered = json!({"metric": "COUNT(24h, like, post_id BY community WHERE app = 1)", "slot": "1h"});
    let attached = client.put("/v1/boards/b/next", filtered).await;
    assert_eq!(attached.status, 201, "{attached:?}");
    count(client, "b", &[("go", "x")]).await;
    assert_eq!(ranking(client, "by=go").await, json!([["x", 2]]));
    let wait = Wait::begin("the difference of a read");
    let differences = loop {
        let body = client.get("/v1/boards/b/next").await.body;
        if let Some(differences) = body.get("mirrored_differences") {
            break differences.clone();
        }
        wait.rest(&body).await;
    };
    assert_eq!(json!([differences[0]["by"], differences[0]["line"]]), json!(["go", {"subject": "x", "score": 2}]));
}
