//! Rules, evaluated.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;

const RULE: &str = "COUNT(30m, login, device_id) > 3";

/// With a board that counts logins on each device over half an hour, and five of them on d1.
async fn site() -> Site {
    let site =
        Site::with_rules(&[("many-logins", RULE), ("odd", "COUNT(30m, logout, device_id) > 3 OR amount >= 10")]).await;
    assert_eq!(site.client.define("device-logins", "COUNT(30m, login, device_id)", "1m").await.status, 201);
    let increments = ["10:06", "10:06", "10:05", "10:01", "09:50"]
        .map(|time| json!({"subject": "d1", "at": format!("2026-01-02T{time}:10Z")}));
    let added = site.client.add("device-logins", json!({ "increments": increments })).await;
    assert_eq!(added.body["accepted"], 5, "{added:?}");
    site
}

async fn evaluate(site: &Site, body: Value) -> Answer {
    site.client.post("/v1/evaluate", body).await
}

#[actix_web::test]
async fn the_result_of_a_rule_has_the_values_of_its_sides() {
    let site = site().await;
    let answer = evaluate(&site, json!({"rule": "count(30m,login,device_id)>3", "fields": {"device_id": "d1"}})).await;
    assert_eq!(
        answer.body,
        json!({
            "hit": true,
            "rules": [{
                "rule": RULE, "hit": true,
                "sides": [{
                    "left": "COUNT(30m, login, device_id)", "left_value": 5, "operator": ">", "right": "3",
                    "right_value": 3, "hit": true,
                    "metrics": [{
                        "metric": "COUNT(30m, login, device_id)", "board": "device-logins", "subject": "d1", "value": 5,
                        "window": {"from": "2026-01-02T09:38:00Z", "to": "2026-01-02T10:08:00Z", "slots": 30},
                        "covers_since": "2026-01-02T10:07:00Z",
                    }],
                }],
            }],
            "as_of": "2026-01-02T10:07:00Z",
        })
    );
    let absent = evaluate(&site, json!({"rule": RULE, "fields": {"device_id": "d2"}})).await;
    assert_eq!((&absent.body["hit"], &absent.body["rules"][0]["sides"][0]["left_value"]), (&json!(false), &json!(0)));
}

/// From the background: an event at 09:31:08 counts in 09:31–09:32; at 09:33:20 a 5-minute window of minute slots spans
/// 09:29–09:34.
#[actix_web::test]
async fn a_rule_with_a_shorter_window_is_evaluated_from_the_slots() {
    let site = site().await;
    for (window, value, from, slots) in [
        ("30m", 5, "09:38", 30),
        ("3m", 3, "10:05", 3),
        ("90s", 2, "10:06", 2),
        ("1s", 0, "10:07", 1),
        ("1800s", 5, "09:38", 30),
    ] {
        let rule = format!("COUNT({window}, login, device_id) = {value}");
        let answer = evaluate(&site, json!({"rule": rule, "fields": {"device_id": "d1"}})).await;
        let metric = &answer.body["rules"][0]["sides"][0]["metrics"][0];
        let window = json!({"from": format!("2026-01-02T{from}:00Z"), "to": "2026-01-02T10:08:00Z", "slots": slots});
        assert_eq!((&answer.body["hit"], &metric["window"]), (&json!(true), &window), "{rule}: {answer:?}");
    }
}

#[actix_web::test]
async fn a_rule_combines_fields_arithmetic_and_several_boards() {
    let site = site().await;
    let sums = json!({"metric": "SUM(1d, pay, amount, user_id)", "slot": "1h", "decimals": 2});
    site.client.put("/v1/boards/paid", sums).await;
    site.client.add("paid", json!({"subject": "7", "amount": 166.65})).await;
    let rules = [
        ("SUM(1d, pay, amount, user_id) = 166.65", true),
        ("SUM(1d, pay, amount, user_id) > 33.34 * COUNT(30m, login, device_id)", false),
        ("SUM(1d, pay, amount, user_id) >= 33.32 * COUNT(30m, login, device_id) AND channel = 'app'", true),
        ("NOT (amount < 100 OR ok = false)", true),
        ("amount / (COUNT(30m, login, device_id) - 5) > 0", false),
    ];
    let texts: Vec<_> = rules.iter().map(|(rule, _)| *rule).collect();
    let fields = json!({"device_id": "d1", "user_id": 7, "channel": "app", "amount": 100.00, "ok": true, "x": null});
    let answer = evaluate(&site, json!({"rules": texts, "fields": fields})).await;
    let hits: Vec<_> = answer.body["rules"].as_array().unwrap().iter().map(|rule| rule["hit"].clone()).collect();
    assert_eq!(hits, rules.map(|(_, hit)| json!(hit)), "{answer:?}");
    assert_eq!(answer.body["hit"], true);
    let both = &answer.body["rules"][1]["sides"][0];
    let boards: Vec<_> = both["metrics"].as_array().unwrap().iter().map(|metric| metric["board"].clone()).collect();
    assert_eq!(boards, ["paid", "device-logins"]);
    // Nothing can be divided by nothing, and no comparison with it holds.
    assert_eq!(answer.body["rules"][4]["sides"][0]["left_value"], Value::Null);
}

#[actix_web::test]
async fn a_comparison_lists_its_own_metrics_only() {
    let site = site().await;
    let (exact, estimate) = ("COUNT_DISTINCT(1h, pay, a, b)", "APPROX_COUNT_DISTINCT(1h, pay, a, b)");
    site.client.define("exact", exact, "1m").await;
    site.client.define("estimate", estimate, "1m").await;
    let rule = format!("{exact} = 0 AND {estimate} = 0 AND {estimate} - {exact} >= {exact}");
    let answer = evaluate(&site, json!({"rule": rule, "fields": {"a": "x"}})).await;
    let listed = |side: &Value| -> Vec<_> {
        side["metrics"].as_array().unwrap().iter().map(|metric| metric["metric"].as_str().unwrap().to_owned()).collect()
    };
    let sides: Vec<_> = answer.body["rules"][0]["sides"].as_array().unwrap().iter().map(listed).collect();
    assert_eq!(sides, [vec![exact], vec![estimate], vec![estimate, exact]], "{answer:?}");
}

#[actix_web::test]
async fn the_number_of_rules_and_metrics_is_limited() {
    let site = site().await;
    // 180 different metrics a rule.
    let sum = |from: usize| (from..from + 180).map(|n| format!("COUNT({n}s,a,b)")).collect::<Vec<_>>().join("+");
    let rules = |rules: usize| (0..rules).map(|n| format!("{}>1", sum(1 + n * 180))).collect::<Vec<_>>();
    let body = |count: usize| json!({"rules": rules(count), "fields": {"b": "x"}});
    assert_eq!(evaluate(&site, body(5)).await.refusal(), (422, "no_board"));
    let more = evaluate(&site, body(6)).await;
    assert_eq!((more.refusal(), &more.body["limit"]), ((413, "too_large"), &json!(1_000)));
}

#[actix_web::test]
async fn a_null_field_is_treated_as_absent() {
    let site = site().await;
    let body = json!({"rule": RULE, "rules": null, "name": null, "fields": {"device_id": "d1"}, "type": null,
        "at": null, "id": null, "record": null});
    assert_eq!(evaluate(&site, body).await.body["hit"], true);
}

#[actix_web::test]
async fn a_slot_that_is_a_large_part_of_the_window_is_said() {
    let metric = |window: &str| format!("COUNT_DISTINCT({window}, login, device_id, user_id)");
    let today = "COUNT(1d, login, device_id)";
    let rules = [("day", metric("1d")), ("week", metric("7d")), ("today", today.to_owned())];
    let rules = rules.map(|(name, metric)| (name, format!("{metric} > 2")));
    let site = Site::with_rules(&rules.each_ref().map(|(name, rule)| (*name, rule.as_str()))).await;
    let define = async |name: &str, window: &str, slot: &str, cover: &str| {
        let definition = json!({"metric": metric(window), "slot": slot, "cover": cover, "ranked": false});
        let dry = site.client.put(&format!("/v1/boards/{name}?dry_run=true"), definition.clone()).await;
        let defined = site.client.put(&format!("/v1/boards/{name}"), definition).await;
        assert_eq!((defined.status, &defined.body["notes"]), (201, &dry.body["notes"]), "{}", defined.text);
        defined.body["notes"][0].as_str().unwrap_or_default().to_owned()
    };
    let notes = async || {
        let items = site.client.get("/v1/rules").await.body["items"].clone();
        [0, 1, 2].map(|rule: usize| items[rule]["metrics"][0]["note"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(define("month", "30d", "1d", "current").await, "");
    // A definition of today means a window that begins at midnight; the rule has the note nevertheless.
    let of_today = json!({"metric": today, "slot": "1d", "ranked": false});
    let defined = site.client.put("/v1/boards/logins-today", of_today).await;
    assert_eq!((defined.status, &defined.body["notes"]), (201, &Value::Null), "{}", defined.text);
    let [day, today, week] = notes().await;
    for note in [day, today] {
        assert!(note.starts_with("1 slot is read, each of 1d: between 0 and 1 x 1d of time count"), "{note}");
    }
    assert_eq!(week, "");
    let note = define("three", "3h", "1h", "current").await;
    assert!(note.starts_with("window 3h: 3 slots are read, each of 1h: between 2 and 3 x 1h of time count"), "{note}");
    // `full` never covers too little.
    assert_eq!(define("today", "1d", "1d", "current").await, "");
    assert_eq!(define("covered", "3h", "1h", "full").await, "");
    assert_eq!(define("hour", "1h", "1m", "current").await, "");
}

#[actix_web::test]
async fn configured_rules_are_listed_and_evaluated_by_name() {
    let site = site().await;
    let list = site.client.get("/v1/rules").await;
    assert_eq!(
        list.body,
        json!({"next": null, "items": [
            {"name": "many-logins", "when": RULE,
                "metrics": [{"metric": "COUNT(30m, login, device_id)", "board": "device-logins",
                    "covers_since": "2026-01-02T10:07:00Z"}]},
            {"name": "odd", "when": "COUNT(30m, logout, device_id) > 3 OR amount >= 10",
                "metrics": [{"metric": "COUNT(30m, logout, device_id)", "board": null}]},
        ]})
    );
    let answer = evaluate(&site, json!({"name": "many-logins", "fields": {"device_id": "d1"}})).await;
    assert_eq!((&answer.body["hit"], &answer.body["rules"][0]["name"]), (&json!(true), &json!("many-logins")));
    let twice = evaluate(&site, json!({"names": ["many-logins", "many-logins"], "fields": {"device_id": "d1"}})).await;
    assert_eq!(twice.body["rules"].as_array().map(Vec::len), Some(2));
    let unknown = evaluate(&site, json!({"names": ["many-logins", "few"], "fields": {"device_id": "d1"}})).await;
    assert_eq!((unknown.refusal(), &unknown.body["field"]), ((422, "unknown_rule"), &json!("names[1]")));
}

#[actix_web::test]
async fn the_error_of_an_unserved_metric_has_a_board_that_would_serve_it() {
    let site = site().await;
    let rule = "COUNT(1h, login, device_id) > 3";
    let answer = evaluate(&site, json!({"rule": rule, "fields": {"device_id": "d1"}})).await;
    assert_eq!(answer.refusal(), (422, "no_board"));
    assert!(answer.body["detail"].as_str().unwrap().contains("[boards.\"login-per-device_id\"]"), "{answer:?}");
    // What it shows is what it takes.
    let board = format!("/v1/boards/{}", answer.body["board"].as_str().unwrap());
    assert_eq!(site.client.put(&board, answer.body["definition"].clone()).await.status, 201, "{answer:?}");
    let served = evaluate(&site, json!({"rule": rule, "fields": {"device_id": "d1"}})).await;
    assert_eq!((served.status, &served.body["hit"]), (200, &json!(false)), "{served:?}");
}

#[actix_web::test]
async fn a_board_defined_or_removed_by_another_instance_is_noticed() {
    let site = site().await;
    let other = site.second_instance();
    let ask = json!({"rule": RULE, "fields": {"device_id": "d1"}});
    assert_eq!(evaluate(&site, ask.clone()).await.body["hit"], true);
    assert_eq!(other.post("/v1/evaluate", ask.clone()).await.body["hit"], true);
    assert_eq!(other.delete("/v1/boards/device-logins").await.status, 200);
    assert_eq!(evaluate(&site, ask.clone()).await.refusal(), (422, "no_board"));
    assert_eq!(other.define("again", "COUNT(1h, login, device_id)", "1m").await.status, 201);
    let answer = evaluate(&site, ask).await;
    assert_eq!(answer.body["rules"][0]["sides"][0]["metrics"][0]["board"], "again");
}

#[actix_web::test]
async fn record_counts_the_event_first_and_only_if_all_rules_are_valid() {
    let site = site().await;
    let event = json!({"rule": RULE, "fields": {"device_id": "d9"}, "type": "login", "id": "e-1", "record": true});
    for (id, value) in [("e-1", 1), ("e-2", 2), ("e-2", 2), ("e-3", 3), ("e-4", 4)] {
        let mut event = event.clone();
        event["id"] = json!(id);
        let answer = evaluate(&site, event).await;
        let side = &answer.body["rules"][0]["sides"][0];
        assert_eq!((&side["left_value"], &side["hit"]), (&json!(value), &json!(value > 3)), "{answer:?}");
        assert!(answer.body["recorded"]["boards"].get("device-logins").is_some(), "{answer:?}");
    }
    let again = evaluate(&site, event.clone()).await.body;
    assert_eq!((&again["recorded"]["accepted"], &again["recorded"]["duplicates"]), (&json!(0), &json!(1)), "{again}");
    let elsewhere = json!({"rule": "1 = 1", "fields": {}, "type": "logout", "record": true});
    let elsewhere = evaluate(&site, elsewhere).await.body;
    assert_eq!((&elsewhere["recorded"]["unknown"], &elsewhere["as_of"]), (&json!(1), &Value::Null), "{elsewhere}");
    let refused = json!({"rule": "1 = 1", "fields": {"device": "d9"}, "type": "login", "record": true});
    let refused = evaluate(&site, refused).await.body;
    assert_eq!(refused["recorded"]["rejected"][0]["code"], "missing_field", "{refused}");
    let unrecorded = evaluate(&site, json!({"rule": RULE, "fields": {"device_id": "d9"}})).await.body;
    assert_eq!(unrecorded.get("recorded"), None);
    for (change, code) in [
        (json!({"rule": "COUNT(30m, login, device_id) >"}), "invalid_rule"),
        (json!({"rule": "COUNT(30m, login, nothing) > 3"}), "missing_field"),
        (json!({"rule": "COUNT(31m, login, device_id) > 3"}), "no_board"),
        (json!({"rule": "COUNT(30m, login, device_id) > limit"}), "missing_field"),
        (json!({"rule": "COUNT(30m, login, device_id) > device_id"}), "invalid_field"),
        (json!({"type": null}), "invalid_field"),
    ] {
        let mut event = event.clone();
        event["id"] = json!("e-5");
        for (key, value) in change.as_object().unwrap() {
            event[key] = value.clone();
        }
        assert_eq!(evaluate(&site, event).await.refusal(), (422, code), "{change}");
    }
    assert_eq!(site.client.score("device-logins", "d9").await, 4);
}

#[actix_web::test]
async fn errors_name_the_field() {
    let site = site().await;
    let fields = json!({"device_id": "d1", "text": "x"});
    for (body, code, field, says) in [
        (json!({"fields": fields}), "invalid_field", "rule", "one of"),
        (json!({"rule": RULE, "name": "many-logins"}), "invalid_field", "rule", "one of"),
        (json!({"rules": []}), "invalid_field", "rules", "1 to 100"),
        (json!({"rules": vec![RULE; 101]}), "invalid_field", "rules", "1 to 100"),
        (
            json!({"rule": "COUNT(likes, a, b) > 3"}),
            "invalid_rule",
            "rule",
            "expected a duration or all, found 'likes' at column 7",
        ),
        (json!({"rules": [RULE, "1 >"], "fields": fields}), "invalid_rule", "rules[1]", "column 4"),
        (json!({"rule": RULE}), "missing_field", "fields.device_id", "'device_id' is missing"),
        (json!({"rule": RULE, "fields": {"device_id": ""}}), "invalid_field", "fields.device_id", "must not be empty"),
        (json!({"rule": RULE, "fields": {"device_id": null}}), "missing_field", "fields.device_id", "missing"),
        (json!({"rule": "text > 3", "fields": fields}), "invalid_field", "fields.text", "number"),
        (json!({"rule": RULE, "fields": []}), "invalid_field", "fields", "an object"),
        (json!({"rule": RULE, "fields": {"device_id": ["d1"]}}), "missing_field", "fields.device_id", "missing"),
        (json!({"rule": RULE, "fields": fields, "at": "soon"}), "invalid_field", "at", "'soon' is not a time"),
        (json!({"rule": RULE, "fields": fields, "record": true}), "invalid_field", "type", "'type'"),
        (json!({"rule": RULE, "feilds": fields}), "unknown_field", "feilds", "unknown field"),
    ] {
        let answer = evaluate(&site, body.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, code), &json!(field)), "{body}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(says), "{body}: {answer:?}");
    }
    let column = evaluate(&site, json!({"rule": "COUNT(likes, a, b) > 3"})).await.body["column"].clone();
    assert_eq!(column, 7);
}

#[actix_web::test]
async fn an_event_recorded_twice_with_the_same_key_counts_once() {
    let site = site().await;
    let body = json!({"rule": RULE, "fields": {"device_id": "d7"}, "type": "login", "record": true});
    let mut outcomes = Vec::new();
    for key in ["k-1", "k-1", "k-2"] {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        let answer =
            site.client.send_with(reqwest::Method::POST, "/v1/evaluate", &headers, body.to_string()).await.body;
        outcomes.push((answer["recorded"]["accepted"].clone(), answer["recorded"]["duplicates"].clone()));
    }
    assert_eq!(outcomes, [(json!(1), json!(0)), (json!(0), json!(1)), (json!(1), json!(0))]);
}
