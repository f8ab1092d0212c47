//! Boards that count several types of events, with weights.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::site::Site;
use crate::waiting::Wait;

const POINTS: &str = "SUM(24h, like*1 + comment*3 + share*5 - spam*0.5, post)";

/// A board of points, in halves.
async fn site() -> Site {
    let site = Site::new().await;
    let answer = site.client.put("/v1/boards/points", json!({"metric": POINTS, "slot": "1h", "decimals": 1})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.body["metric"], "SUM(24h, comment*3 + like + share*5 - spam*0.5, post)");
    site
}

fn event(kind: &str, post: &str, id: Option<&str>) -> Value {
    json!({"type": kind, "fields": {"post": post}, "at": "2026-01-02T09:30:00Z", "id": id})
}

async fn send(client: &Client, events: impl IntoIterator<Item = Value>) -> Answer {
    client.post("/v1/events", json!({"events": events.into_iter().collect::<Vec<_>>()})).await
}

async fn lines(client: &Client, path: &str) -> Vec<(String, Value)> {
    let answer = client.get(path).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let line = |line: &Value| (line["subject"].as_str().unwrap().to_owned(), line["score"].clone());
    answer.body["items"].as_array().unwrap().iter().map(line).collect()
}

fn scores(expected: &[(&str, f64)]) -> Vec<(String, Value)> {
    let number = |score: f64| if score.fract() == 0.0 { json!(score as i64) } else { json!(score) };
    expected.iter().map(|(subject, score)| ((*subject).to_owned(), number(*score))).collect()
}

#[actix_web::test]
async fn each_type_counts_its_weight_and_is_taken_back_with_it() {
    let site = site().await;
    let client = &site.client;
    let kinds = ["like", "comment", "share", "spam", "like", "view"];
    let answer = send(client, kinds.map(|kind| event(kind, "a", None))).await;
    let took = json!({"accepted": 5, "duplicates": 0, "rejected": 0});
    assert_eq!(
        (&answer.body["boards"], &answer.body["unknown_types"]),
        (&json!({"points": took}), &json!({"view": 1})),
        "{answer:?}"
    );
    send(client, [event("comment", "b", None), event("spam", "c", None)]).await;
    let page = "/v1/boards/points/rankings";
    assert_eq!(lines(client, page).await, scores(&[("a", 9.5), ("b", 3.0), ("c", -0.5)]));

    let mut back = event("share", "a", None);
    back["retract"] = json!(true);
    send(client, [back]).await;
    assert_eq!(client.score("points", "a").await, json!(4.5));
    // An increment is points, whatever type it stands for.
    client.add("points", json!({"subject": "b", "amount": 2.5})).await;
    assert_eq!(client.score("points", "b").await, json!(5.5));
    let audit = client.post("/v1/boards/points/audit", json!({})).await;
    assert_eq!(audit.body["differences"], 0, "{audit:?}");
}

#[actix_web::test]
async fn ids_are_those_of_a_type() {
    let site = site().await;
    let client = &site.client;
    let sent = || ["like", "comment", "like"].map(|kind| event(kind, "a", Some("17")));
    let counts = |answer: &Answer| [&answer.body["accepted"], &answer.body["duplicates"]].map(Value::as_u64);
    assert_eq!(counts(&send(client, sent()).await), [Some(2), Some(1)]);
    assert_eq!(counts(&send(client, sent()).await), [Some(0), Some(3)]);
    assert_eq!(client.score("points", "a").await, 4);
    // A retraction has an id of its own, which belongs to its type too.
    let back = |kind: &str| {
        let mut back = event(kind, "a", Some("18"));
        back["retract"] = json!(true);
        back
    };
    assert_eq!(counts(&send(client, [back("like"), back("comment"), back("like")]).await), [Some(2), Some(1)]);
    assert_eq!(client.score("points", "a").await, 0);
    // Two terms of one type are one type.
    let metric = "SUM(24h, order*5 + order: amount, customer)";
    assert_eq!(client.define("orders", metric, "1h").await.status, 201);
    let order = json!({"type": "order", "fields": {"customer": "c", "amount": 20}, "id": "1"});
    assert_eq!(counts(&send(client, [order]).await), [Some(1), Some(0)]);
    let same = client.add("orders", json!({"subject": "c", "amount": 25, "id": "1"})).await;
    assert_eq!((&same.body["duplicates"], client.score("orders", "c").await), (&json!(1), json!(25)), "{same:?}");
}

#[actix_web::test]
async fn what_does_not_fit_is_refused_and_said() {
    let site = Site::new().await;
    let client = &site.client;
    let define = |metric: &str, decimals: u8| {
        let definition = json!({"metric": metric, "slot": "1h", "decimals": decimals});
        async move { client.put("/v1/boards/points?dry_run=true", definition).await }
    };
    for metric in ["SUM(24h, like + view*0.01, post)", "SUM(24h, like + order: amount*0.01, post)"] {
        let refused = define(metric, 1).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("decimals")));
        assert_eq!(define(metric, 2).await.status, 200);
    }
    let noted = define("SUM(24h, like + order: amount*0.1, post)", 3).await;
    let note = "order: amounts of 'amount' in steps of 0.01 fit, because times 0.1 they have at most the 3 decimals of the board";
    assert_eq!(noted.body["notes"], json!([note]), "{noted:?}");
    // With 24 slots a subject may have (2^53 - 1) / 48 units in one.
    let too_large = define("SUM(24h, like*187649984473771 + view, post)", 0).await;
    assert_eq!((too_large.status, &too_large.body["field"]), (422, &json!("metric")), "{too_large:?}");
    assert_eq!(define("SUM(24h, like*187649984473770 + view, post)", 0).await.status, 200);
    let wrong = define("SUM(24h, like + like*2, post)", 0).await;
    assert_eq!((&wrong.body["field"], &wrong.body["column"]), (&json!("metric"), &json!(17)), "{wrong:?}");

    let metric = "SUM(24h, visit*5 + order: amount*0.1, post WHERE shop = 'a')";
    let definition = json!({"metric": metric, "slot": "1h", "decimals": 2});
    assert_eq!(client.put("/v1/boards/shop", definition).await.status, 201);
    let order = |fields: Value| json!({"type": "order", "fields": fields});
    let answer = send(
        client,
        [
            order(json!({"post": "a", "shop": "a", "amount": 19.99})),
            order(json!({"post": "a", "shop": "a", "amount": "19.9"})),
            order(json!({"post": "a", "shop": "a"})),
            order(json!({"post": "a", "shop": "b"})),
            json!({"type": "visit", "fields": {"post": "a"}}),
            json!({"type": "visit", "fields": {"shop": "a"}}),
        ],
    )
    .await;
    let rejected: Vec<_> =
        answer.body["rejected"].as_array().unwrap().iter().map(|r| [&r["index"], &r["field"]]).collect();
    let expected = [[json!(0), json!("amount")], [json!(2), json!("amount")], [json!(5), json!("post")]];
    assert_eq!(rejected, expected.each_ref().map(|pair| pair.each_ref()), "{answer:?}");
    assert_eq!(client.score("shop", "a").await, json!(1.99));
}

#[actix_web::test]
async fn the_order_of_terms_does_not_matter_and_weights_do() {
    let site = site().await;
    let client = &site.client;
    let define = |metric: &'static str| {
        let definition = json!({"metric": metric, "slot": "1h", "decimals": 1});
        async move { client.put("/v1/boards/points", definition).await }
    };
    let same = define("SUM(24h, share*5.0 - spam*0.50 + like + comment*3, post)").await;
    assert_eq!(same.status, 200, "{same:?}");
    let other = define("SUM(24h, share*4 - spam*0.5 + like + comment*3, post)").await;
    assert_eq!(other.refusal(), (409, "board_conflict"));

    send(client, [event("like", "a", None), event("share", "a", None)]).await;
    let query = |metric: &'static str| {
        let query = json!({"queries": [{"metric": metric, "fields": {"post": "a"}}]});
        async move { client.post("/v1/query", query).await.body["answers"][0].clone() }
    };
    let answer = query("SUM(3h, share*5 - spam*0.5 + comment*3 + like, post)").await;
    assert_eq!((&answer["value"], &answer["board"]), (&json!(6), &json!("points")), "{answer}");
    let answer = query("SUM(3h, share*4 - spam*0.25 + comment*3 + like, post)").await;
    assert_eq!(answer["error"]["code"], "no_board", "{answer}");
    assert_eq!(answer["error"]["definition"]["decimals"], 2, "{answer}");
    let record = json!({"rule": format!("{POINTS} > 10"), "record": true, "type": "share", "fields": {"post": "a"}});
    let verdict = client.post("/v1/evaluate", record).await;
    assert_eq!((verdict.status, &verdict.body["hit"]), (200, &json!(true)), "{verdict:?}");
}

#[actix_web::test]
async fn a_successor_has_the_same_types_and_may_have_other_weights() {
    let site = site().await;
    let client = &site.client;
    let next = "/v1/boards/points/next";
    send(client, [event("comment", "a", None)]).await;
    let other_types = client.put(next, json!({"metric": "SUM(24h, like + comment*3, post)", "slot": "1h"})).await;
    assert_eq!((other_types.status, &other_types.body["field"]), (422, &json!("metric")), "{other_types:?}");
    let metric = "SUM(24h, comment*10 + share*2 + like + spam*-1, post)";
    let begun = client.put(next, json!({"metric": metric, "slot": "1h"})).await;
    assert_eq!((begun.status, &begun.body["fill"]["state"]), (201, &json!("none")), "{begun:?}");

    send(client, [event("comment", "b", Some("1")), event("share", "b", Some("1")), event("spam", "c", None)]).await;
    let mut back = event("comment", "b", None);
    back["retract"] = json!(true);
    send(client, [back]).await;
    client.add("points", json!({"subject": "a"})).await;
    let [of_board, of_next] = ["", "?of=next"].map(|of| format!("/v1/boards/points/rankings{of}"));
    assert_eq!(lines(client, &of_board).await, scores(&[("b", 5.0), ("a", 4.0), ("c", -0.5)]));
    assert_eq!(lines(client, &of_next).await, scores(&[("b", 2.0), ("c", -1.0)]));
    let state = client.get(next).await.body;
    assert_eq!(state["not_counted"], json!({"not_accepted": 1}), "an increment does not say of what type it is");

    let promoted = client.send(Method::POST, &format!("{next}/promote?early=true"), None, "").await;
    assert_eq!(promoted.status, 200, "{promoted:?}");
    let again = send(client, [event("comment", "b", Some("1")), event("comment", "b", Some("2"))]).await;
    assert_eq!((&again.body["accepted"], &again.body["duplicates"]), (&json!(1), &json!(1)));
    assert_eq!(lines(client, &of_board).await, scores(&[("b", 12.0), ("c", -1.0)]));
    // A successor that counts the same is filled.
    let metric = "SUM(48h, share*2 + comment*10 + like - spam, post)";
    let begun = client.put(next, json!({"metric": metric, "slot": "2h"})).await;
    assert_eq!(begun.status, 409, "there is a previous edition: {begun:?}");
    assert_eq!(client.delete("/v1/boards/points/previous").await.status, 200);
    assert_eq!(client.put(next, json!({"metric": metric, "slot": "2h"})).await.status, 201);
    site.tick().await;
    let wait = Wait::begin("the end of the fill");
    loop {
        let state = client.get(next).await.body;
        if state["fill"]["state"] == "done" {
            break;
        }
        wait.rest(&state).await;
    }
    assert_eq!(lines(client, &of_next).await, scores(&[("b", 12.0), ("c", -1.0)]));
}

#[actix_web::test]
async fn other_functions_take_several_types_too() {
    let site = Site::new().await;
    let client = &site.client;
    for (board, metric) in [
        ("people", "COUNT_DISTINCT(24h, like + comment, post, user)"),
        ("best", "MAX(24h, lap: ms + sprint: time, post)"),
        ("mean", "AVG(24h, lap: ms + sprint: time, post)"),
        ("all", "COUNT(24h, like + lap, post)"),
    ] {
        assert_eq!(client.define(board, metric, "1h").await.status, 201);
    }
    let of = |kind: &str, field: &str, value: Value| json!({"type": kind, "fields": {"post": "a", field: value}});
    let answer = send(
        client,
        [
            of("like", "user", json!("ann")),
            of("comment", "user", json!("ann")),
            of("comment", "user", json!("bob")),
            of("lap", "ms", json!(10)),
            of("sprint", "time", json!(20)),
        ],
    )
    .await;
    assert_eq!(answer.body["rejected"], json!([]), "{answer:?}");
    for (board, score) in [("people", 2), ("best", 20), ("mean", 15), ("all", 2)] {
        assert_eq!(client.score(board, "a").await, score, "{board}");
    }
}
