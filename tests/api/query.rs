//! Many queries in one request.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;

async fn site() -> Site {
    let site = Site::with_board("likes").await;
    assert_eq!(site.client.define("logins", "COUNT(30m, login, device_id)", "1m").await.status, 201);
    site.client.count("likes", &["p1", "p1", "p2"]).await;
    site.client.count("logins", &["d1", "d1", "d1"]).await;
    site
}

async fn query(site: &Site, body: Value) -> Answer {
    site.client.post("/v1/query", body).await
}

/// Defining a board for a metric does not change the value that rules and queries get for it.
#[actix_web::test]
async fn a_board_younger_than_the_window_does_not_serve_a_metric_that_an_older_one_serves() {
    let metric = "COUNT(30m, login, device_id)";
    let site = Site::with_rules(&[("often", "COUNT(30m, login, device_id) >= 3")]).await;
    assert_eq!(site.client.define("old", metric, "5m").await.status, 201);
    site.client.set_clock("2026-01-02T10:40:00Z").await;
    site.client.count("old", &["d1", "d1", "d1"]).await;
    let defined = site.client.define("new", metric, "1m").await;
    assert_eq!((defined.status, &defined.body["defined_at"]), (201, &json!("2026-01-02T10:40:00Z")));
    site.client.count("new", &["d1"]).await;
    // The same from an instance that did not define the boards.
    let clients = [&site.client, &site.second_instance()];
    let asked = |board: Value| json!({"metric": metric, "board": board, "fields": {"device_id": "d1"}});
    let of = |answer: &Value| json!([answer["board"], answer["value"], answer["covers_since"]]);
    let by_query = async |client: &crate::client::Client, board: Value| {
        let answer = client.post("/v1/query", asked(board)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        of(&answer.body["answers"][0])
    };
    let rule = json!({"rule": "COUNT(30m, login, device_id) >= 3", "fields": {"device_id": "d1"}});
    let defined_at = "2026-01-02T10:40:00Z";
    for client in clients {
        assert_eq!(by_query(client, Value::Null).await, json!(["old", 3, null]));
        assert_eq!(by_query(client, json!("new")).await, json!(["new", 1, defined_at]));
        let evaluated = client.post("/v1/evaluate", rule.clone()).await;
        assert_eq!(of(&evaluated.body["rules"][0]["sides"][0]["metrics"][0]), json!(["old", 3, null]));
        assert_eq!(evaluated.body["hit"], true);
        let pinned =
            json!({"rule": "COUNT(30m, login, device_id) >= 3", "boards": ["new"], "fields": {"device_id": "d1"}});
        let evaluated = client.post("/v1/evaluate", pinned).await;
        assert_eq!(of(&evaluated.body["rules"][0]["sides"][0]["metrics"][0]), json!(["new", 1, defined_at]));
        let window = client.get("/v1/boards/new/subjects/d1/window?last=5m").await;
        assert_eq!(window.body["covers_since"], defined_at);
    }
    let rules = async || site.client.get("/v1/rules").await.body["items"][0]["metrics"].clone();
    assert_eq!(rules().await, json!([{"metric": metric, "board": "old"}]));
    // The new board covers the window once it is as old as the window is long.
    for (now, board) in [("11:09:59", "old"), ("11:10:00", "new")] {
        site.client.set_clock(&format!("2026-01-02T{now}Z")).await;
        for client in clients {
            assert_eq!(by_query(client, Value::Null).await[0], board, "{now}");
        }
    }
    assert_eq!(by_query(&site.client, json!("old")).await, json!(["old", 0, null]));
    // If the older one is removed, the younger one serves the metric as far as it covers it.
    assert_eq!(site.client.define("newest", metric, "30s").await.status, 201);
    for board in ["old", "new"] {
        assert_eq!(site.client.delete(&format!("/v1/boards/{board}")).await.status, 200);
    }
    for client in clients {
        assert_eq!(by_query(client, Value::Null).await, json!(["newest", 0, "2026-01-02T11:10:00Z"]));
    }
    let served = json!([{"metric": metric, "board": "newest", "covers_since": "2026-01-02T11:10:00Z"}]);
    assert_eq!(rules().await, served);
}

#[actix_web::test]
async fn a_pinned_board_must_exist_and_serve_the_metric() {
    let site = site().await;
    let fields = json!({"device_id": "d1"});
    for (board, code, detail) in [
        ("likes", "invalid_field", "'board': COUNT(30m, login, device_id) is not served by the given board 'likes'"),
        ("nothing", "unknown_board", "unknown board 'nothing'"),
        ("No", "unknown_board", "unknown board 'No'"),
    ] {
        let asked = json!({"metric": "COUNT(30m, login, device_id)", "board": board, "fields": fields});
        let error = &query(&site, json!({"queries": [asked]})).await.body["answers"][0]["error"];
        assert_eq!(error["code"], code, "{error}");
        assert!(error["detail"].as_str().unwrap().starts_with(detail), "{error}");
    }
    let rule = "COUNT(30m, login, device_id) > 0 AND COUNT(1h, like, post_id) = 0";
    let evaluate = async |boards: Value| {
        let body = json!({"rule": rule, "boards": boards, "fields": {"device_id": "d1", "post_id": "p9"}});
        site.client.post("/v1/evaluate", body).await
    };
    assert_eq!(evaluate(json!(["logins", "likes"])).await.body["hit"], true);
    for (boards, field) in [(json!(["logins"]), "board"), (json!([]), "boards"), (json!(["logins", "No"]), "boards[1]")]
    {
        let answer = evaluate(boards).await;
        assert_eq!((answer.code(), &answer.body["field"]), ("invalid_field", &json!(field)), "{answer:?}");
    }
    let named = json!({"name": "often", "boards": ["logins"], "fields": fields});
    assert_eq!(site.client.post("/v1/evaluate", named).await.body["field"], "boards");
}

#[actix_web::test]
async fn each_query_has_its_own_answer_or_error_in_order() {
    let site = site().await;
    let queries = json!([
        {"board": "likes", "subject": "p1"},
        {"board": "likes", "subject": "p2", "last": "1h"},
        {"board": "nothing", "subject": "p1"},
        {"metric": "COUNT(30m, login, device_id)", "fields": {"device_id": "d1"}},
        {"metric": "COUNT(5m, login, device_id)", "fields": {"device_id": "d2"}},
        {"board": "likes", "subject": "p1", "last": "25h"},
        {"board": "likes", "subject": "p1", "from": "2026-01-02T08:30:00Z"},
        {"metric": "COUNT(30m, login)", "fields": {}},
        {"metric": "COUNT(30m, login, device_id)", "fields": {}},
        {"metric": "COUNT(30m, logout, device_id)", "fields": {"device_id": "d1"}},
        {"board": "likes"},
        {"board": "likes", "subject": "p1", "metric": "COUNT(30m, login, device_id)"},
        {"board": "likes", "subject": "p1", "fields": {}},
        {"board": "likes", "subject": "p1", "edge": "weighted"},
        {"board": "likes", "subject": "p1", "as_of": "2026-01-02T08:30:00Z"},
        {"board": "likes", "subject": "p1", "from": "2026-01-02T11:30:00Z"},
        {"hop": {"from": {"board": "likes", "subject": "p1"}, "to": {"board": "logins"}}},
        5,
        {"board": "likes", "subject": "p2"},
    ]);
    let answer = query(&site, json!({ "queries": queries })).await;
    let answers = answer.body["answers"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    let said: Vec<Value> = answers
        .iter()
        .map(|answer| if answer["error"].is_null() { answer["value"].clone() } else { answer["error"]["code"].clone() })
        .collect();
    let expected = json!([
        2,
        1,
        "unknown_board",
        3,
        0,
        "beyond_window",
        2,
        "invalid_rule",
        "missing_field",
        "no_board",
        "invalid_field",
        "unknown_field",
        "unknown_field",
        "edge_unsupported",
        "as_of_unsupported",
        "invalid_field",
        "no_values",
        "invalid_field",
        1,
    ]);
    assert_eq!(Value::from(said), expected, "{answer:?}");
    assert_eq!(
        answers[4],
        json!({"board": "logins", "subject": "d2", "metric": "COUNT(5m, login, device_id)",
            "window": {"from": "2026-01-02T10:03:00Z", "to": "2026-01-02T10:08:00Z", "slots": 5},
            "count": 0, "value": 0, "edge": "slots", "covers_since": "2026-01-02T10:07:00Z", "as_of": "2026-01-02T10:07:00Z", "retiring": 0})
    );
    let error = &answers[2]["error"];
    assert_eq!((&error["status"], &error["board"]), (&json!(404), &json!("nothing")));
    assert_eq!(answers[17]["error"]["field"], "queries[17]");
    let nulls =
        json!({"board": "likes", "subject": "p1", "last": null, "as_of": null, "metric": null, "queries": null});
    assert_eq!(query(&site, nulls).await.body["answers"][0]["value"], 2);
}

#[actix_web::test]
async fn a_single_query_needs_no_list() {
    let site = site().await;
    let one = query(&site, json!({"board": "likes", "subject": "p1", "last": "2h"})).await;
    assert_eq!(one.body["answers"][0]["count"], 2);
    assert_eq!(query(&site, json!({"board": "likes"})).await.refusal(), (422, "invalid_field"));
    assert_eq!(query(&site, json!({})).await.refusal(), (422, "invalid_field"));
    assert_eq!(query(&site, json!({"queries": []})).await.body, json!({"answers": []}));
    let both = query(&site, json!({"queries": [], "board": "likes"})).await;
    assert_eq!((both.refusal(), &both.body["field"]), ((422, "unknown_field"), &json!("board")));
}

#[actix_web::test]
async fn the_number_of_queries_is_limited() {
    let site = site().await;
    let one = json!({"board": "likes", "subject": "p1"});
    let most = query(&site, json!({"queries": vec![one.clone(); 1_000]})).await;
    assert_eq!(most.body["answers"].as_array().map(Vec::len), Some(1_000));
    let more = query(&site, json!({"queries": vec![one; 1_001]})).await;
    assert_eq!((more.refusal(), &more.body["limit"]), ((413, "too_large"), &json!(1_000)));
    let hop = json!({"hop": {"from": {"board": "likes", "subject": "p1"}, "to": {"board": "logins"}}});
    let more = query(&site, json!({"queries": vec![hop; 11]})).await;
    assert_eq!((more.refusal(), &more.body["limit"]), ((413, "too_large"), &json!(10)));
}

#[actix_web::test]
async fn many_unserved_metrics_take_few_calls_of_the_store() {
    let site = site().await;
    let one = json!({"metric": "COUNT(1h, nothing, device_id)", "fields": {"device_id": "d1"}});
    let before = site.switch.calls();
    let answer = query(&site, json!({"queries": vec![one; 100]})).await;
    assert_eq!(answer.body["answers"][99]["error"]["code"], "no_board");
    // Whether the list of boards is still the newest, for the request, and perhaps because it was old.
    assert!(site.switch.calls() - before <= 3, "{} calls", site.switch.calls() - before);
}

#[actix_web::test]
async fn a_query_is_repeated_if_another_instance_redefined_the_board() {
    let site = site().await;
    let ask = json!({"queries": [{"board": "likes", "subject": "p1"}, {"board": "logins", "subject": "d1"}]});
    assert_eq!(query(&site, ask.clone()).await.body["answers"][0]["value"], 2);
    let other = site.second_instance();
    other.delete("/v1/boards/likes").await;
    other.define("likes", "COUNT(48h, like, post_id)", "1h").await;
    let answers = query(&site, ask.clone()).await.body["answers"].clone();
    assert_eq!((&answers[0]["value"], &answers[0]["window"]["slots"]), (&json!(0), &json!(48)));
    assert_eq!(answers[1]["value"], 3);
    other.delete("/v1/boards/likes").await;
    let answers = query(&site, ask).await.body["answers"].clone();
    assert_eq!((&answers[0]["error"]["code"], &answers[1]["value"]), (&json!("unknown_board"), &json!(3)));
}

/// Devices d1 to d4 and users u1 to u3: who was seen on which.
#[actix_web::test]
async fn a_hop_query_counts_the_devices_of_the_users_of_a_device() {
    let site = Site::new().await;
    for (board, metric) in [
        ("users-per-device", "COUNT_DISTINCT(30d, login, device_id, user_id)"),
        ("devices-per-user", "COUNT_DISTINCT(30d, login, user_id, device_id)"),
    ] {
        let definition = json!({"metric": metric, "slot": "1d", "ranked": false});
        assert_eq!(site.client.put(&format!("/v1/boards/{board}"), definition).await.status, 201);
    }
    let logins = [("d1", "u1"), ("d1", "u2"), ("d2", "u1"), ("d2", "u2"), ("d3", "u2"), ("d4", "u3")];
    for (device, user) in logins {
        let fields = json!({"device_id": device, "user_id": user});
        let event = json!({"rule": "1 = 1", "fields": fields, "type": "login", "record": true});
        assert_eq!(site.client.post("/v1/evaluate", event).await.status, 200);
    }
    let hop = async |device: &str, most: Value| {
        let from = json!({"board": "users-per-device", "subject": device});
        let mut hop = json!({"from": from, "to": {"board": "devices-per-user"}});
        if !most.is_null() {
            hop["most"] = most;
        }
        query(&site, json!({ "hop": hop })).await.body["answers"][0].clone()
    };
    for (device, count, followed) in [("d1", 3, 2), ("d4", 1, 1), ("d9", 0, 0)] {
        let answer = hop(device, Value::Null).await;
        assert_eq!((&answer["value"], &answer["followed"]), (&json!(count), &json!(followed)), "{answer}");
        assert_eq!((&answer["capped"], &answer["hop"]["most"]), (&json!(false), &json!(100)), "{answer}");
    }
    let bounded = hop("d1", json!(1)).await;
    assert_eq!((&bounded["followed"], &bounded["capped"]), (&json!(1), &json!(true)), "{bounded}");
    for (key, value) in
        [("subject", json!("d1")), ("last", json!("1h")), ("fields", json!({})), ("edge", json!("slots"))]
    {
        let from = json!({"board": "users-per-device", "subject": "d1"});
        let mut body = json!({"hop": {"from": from, "to": {"board": "devices-per-user"}}});
        body[key] = Value::Null;
        assert_eq!(query(&site, body.clone()).await.body["answers"][0]["value"], 3, "{key}");
        body[key] = value;
        let answer = query(&site, body.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "unknown_field"), &json!(key)), "{answer:?}");
        let one = query(&site, json!({"queries": [body]})).await;
        assert_eq!(one.body["answers"][0]["error"]["code"], "unknown_field", "{one:?}");
    }
    for most in [json!(0), json!(1_001), json!("all")] {
        let from = json!({"board": "users-per-device", "subject": "d1"});
        let body = json!({"hop": {"from": from, "to": {"board": "devices-per-user"}, "most": most}});
        let answer = query(&site, body).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("most")), "{answer:?}");
    }
}

#[actix_web::test]
async fn a_suggested_board_keeps_as_many_decimals_as_others_of_the_field() {
    let site = Site::new().await;
    let sellers = json!({"metric": "SUM(7d, sale, price, seller)", "slot": "1h", "decimals": 2});
    assert_eq!(site.client.put("/v1/boards/sellers", sellers).await.status, 201);
    for (metric, decimals) in
        [("SUM(31d, sale, price, seller)", 2), ("SUM(7d, sale, weight, seller)", 0), ("COUNT(7d, sale, shop)", 0)]
    {
        let answer = query(&site, json!({"metric": metric, "fields": {"seller": "s", "shop": "x"}})).await;
        let error = &answer.body["answers"][0]["error"];
        assert_eq!(error["definition"]["decimals"], decimals, "{error}");
        let detail = error["detail"].as_str().unwrap();
        assert_eq!(detail.contains("decimals = 2"), decimals == 2, "{detail}");
    }
}
