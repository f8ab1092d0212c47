//! Increments of a source: as its events do, they count once, whatever is sent again and by whom.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::client::{Answer, Client};
use crate::site::Site;

const SOURCE: &str = "/v1/sources/log";
const AT: &str = "2026-01-02T10:00:00Z";

/// Returns the increment of a position: each has a subject of its own.
fn increment(position: u64) -> Json {
    json!({"subject": format!("p{position}"), "at": AT, "position": position})
}

async fn send(client: &Client, board: &str, query: &str, increments: impl IntoIterator<Item = Json>) -> Answer {
    let increments: Vec<_> = increments.into_iter().collect();
    client.post(&format!("/v1/boards/{board}/increments?source=log&{query}"), json!({"increments": increments})).await
}

async fn ndjson(client: &Client, board: &str, query: &str, lines: impl IntoIterator<Item = Json>) -> Answer {
    let body: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    let path = format!("/v1/boards/{board}/increments?source=log&{query}");
    client.send(Method::POST, &path, Some("application/x-ndjson"), body).await
}

/// Returns the scores of a board by subject, as text.
async fn scores(client: &Client, board: &str) -> BTreeMap<String, String> {
    let page = client.get(&format!("/v1/boards/{board}/rankings?limit=1000")).await.body;
    let score = |line: &Json| (line["subject"].as_str().unwrap().to_owned(), line["score"].to_string());
    page["items"].as_array().unwrap_or_else(|| panic!("{page}")).iter().map(score).collect()
}

fn counted(scores: &[(&str, &str)]) -> BTreeMap<String, String> {
    scores.iter().map(|(subject, score)| ((*subject).to_owned(), (*score).to_owned())).collect()
}

async fn reached(client: &Client, board: &str) -> Json {
    let state = client.get(SOURCE).await.body;
    let is_it = |one: &&Json| one["board"] == board;
    state["joined"].as_array().unwrap().iter().find(is_it).unwrap_or(&Json::Null)["reached"].clone()
}

#[actix_web::test]
async fn increments_count_once_and_other_boards_move_on() {
    let site = Site::with_board("a").await;
    let (client, other) = (&site.client, site.second_instance());
    client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    client.put(SOURCE, json!({})).await;
    let first =
        send(client, "a", "after=start", [json!({"subject": "x", "amount": 5, "position": 0}), increment(3)]).await;
    let receipt = json!({"accepted": 2, "duplicates": 0, "rejected": [],
        "source": {"name": "log", "reached": "3", "repeated": 0, "waiting": 0, "left_out": []}});
    assert_eq!((first.status, &first.body), (200, &receipt));
    assert_eq!(reached(client, "b").await, "3");
    let again =
        send(&other, "a", "after=start", [json!({"subject": "x", "amount": 5, "position": 0}), increment(3)]).await;
    assert_eq!((&again.body["accepted"], &again.body["source"]["repeated"]), (&json!(0), &json!(2)), "{again:?}");
    assert_eq!(send(client, "b", "after=4", [increment(5)]).await.refusal(), (409, "source_behind"));
    // The log goes on with one of another board, and with events.
    assert_eq!(send(&other, "b", "after=3", [increment(4)]).await.body["accepted"], 1);
    let like = json!({"type": "like", "fields": {"post_id": "e"}, "at": AT, "position": 7});
    assert_eq!(client.post("/v1/events?source=log&after=4", like).await.body["source"]["reached"], "7");
    let lines = ndjson(client, "a", "after=4", (5..6_000).map(increment)).await;
    let source = &lines.body["source"];
    assert_eq!(
        (&lines.body["accepted"], &source["repeated"], &source["reached"]),
        (&json!(5_992), &json!(3), &json!("5999"))
    );
    assert_eq!(scores(client, "b").await, counted(&[("e", "1"), ("p4", "1")]));
    assert_eq!(client.get("/v1/boards/a/rankings?limit=1").await.body["total"], 5_995);
    assert_eq!(client.get("/v1/boards/a/subjects/x").await.body["score"], 5);
    // What is wrong for good is passed and counted as what it is; a single one as one of several.
    let wrong = json!({"subject": "x", "value": 1, "position": 6_000});
    let passed = client.post("/v1/boards/a/increments?source=log&after=5999", wrong).await;
    assert_eq!((passed.status, &passed.body["source"]["reached"]), (200, &json!("6000")), "{passed:?}");
    assert_eq!(passed.body["rejected_counts"], json!({"unknown_field": 1}));
    let late = json!({"subject": "x", "at": "2025-01-01T00:00:00Z", "position": 6_001});
    let early = json!({"subject": "y", "at": "2026-01-02T10:40:00Z", "position": 6_003});
    let waits = send(client, "a", "after=6000", [late, increment(6_002), early]).await.body;
    assert_eq!((&waits["accepted"], &waits["rejected_counts"]), (&json!(1), &json!({"too_late": 1})), "{waits}");
    assert_eq!((&waits["source"]["reached"], &waits["source"]["waiting"]), (&json!("6002"), &json!(1)));
    // Other tests count the same metrics.
    let metrics = client.get("/metrics").await.text;
    for code in ["unknown_field", "too_late"] {
        let name = format!("rolltop_increments_total{{outcome=\"{code}\"}} ");
        let number = metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("{metrics}"));
        assert!(number.parse::<u64>().unwrap() > 0, "{name}{number}");
    }
}

#[actix_web::test]
async fn a_board_is_filled_with_increments() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.put(SOURCE, json!({})).await;
    send(client, "a", "after=start", (0..5).map(increment)).await;
    client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    send(client, "b", "after=4", [increment(5)]).await;
    let filled = send(client, "b", "after=start&fill=b", (0..5).map(increment)).await.body;
    assert_eq!((&filled["accepted"], &filled["source"]["filled"]), (&json!(5), &json!(true)), "{filled}");
    assert_eq!(scores(client, "b").await.len(), 6);
    assert_eq!(scores(client, "a").await.len(), 5);
    let no_time = send(client, "b", "after=start&fill=b", [json!({"subject": "x", "position": 0})]).await;
    assert_eq!((no_time.refusal(), &no_time.body["field"]), ((422, "invalid_field"), &json!("at")));
    let other = send(client, "a", "after=start&fill=b", [increment(0)]).await;
    assert_eq!((other.refusal(), &other.body["field"]), ((422, "invalid_field"), &json!("fill")));
}

#[actix_web::test]
async fn what_does_not_go_with_a_source_is_refused() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    client.put(SOURCE, json!({"boards": ["b"]})).await;
    for query in ["after=1&strict=true", "after=1&return=score", "after=1&period=2026-01"] {
        let refused = send(client, "b", query, [increment(2)]).await;
        let field = query[8..].split('=').next().unwrap();
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!(field)), "{query}");
    }
    assert_eq!(client.post("/v1/boards/b/increments", increment(2)).await.refusal(), (422, "unknown_field"));
    let missing = send(client, "b", "after=start", [json!({"subject": "x"})]).await;
    assert_eq!((missing.refusal(), &missing.body["field"]), ((422, "invalid_field"), &json!("position")));
    assert!(missing.body["detail"].as_str().unwrap().contains("increment 0: 'position' is missing"), "{missing:?}");
    // A board that the source does not have would count what nobody knows the place of.
    for items in [vec![increment(1)], vec![]] {
        let refused = send(client, "a", "after=start", items).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("source")));
    }
    let sample = json!({"subject": "x", "amount": 1, "at": AT});
    let refused = client.put("/v1/boards/b/samples?source=log&after=start", sample).await;
    assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "unknown_field"), &json!("source")));
    assert_eq!(send(client, "none", "after=start", [increment(1)]).await.refusal(), (404, "unknown_board"));
    assert_eq!(scores(client, "a").await.len() + scores(client, "b").await.len(), 0);
}

/// Otherwise one item would pass over all up to the other position.
#[actix_web::test]
async fn a_position_that_is_given_twice_is_none() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.put(SOURCE, json!({})).await;
    let twice = r#"{"subject": "x", "position": 1, "position": 99}"#;
    let event = r#"{"type": "like", "extra": 1, "position": 1, "position": 99, "fields": {"post_id": "x"}}"#;
    for (path, item) in [("/v1/boards/a/increments", twice), ("/v1/events", event)] {
        for media_type in ["application/json", "application/x-ndjson"] {
            let path = format!("{path}?source=log&after=start");
            let refused = client.send(Method::POST, &path, Some(media_type), item).await;
            assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("position")));
            assert!(refused.body["detail"].as_str().unwrap().contains("more than once"), "{refused:?}");
        }
    }
    assert_eq!(client.get(SOURCE).await.body["reached"], Json::Null);
}

/// The row of a source has room for some hundred boards. Those beyond are left out, and nothing of them is lost silently.
#[actix_web::test]
async fn a_source_takes_as_many_boards_as_it_has_room_for() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    for number in 0..1_300 {
        client.define(&format!("b{number}"), "COUNT(24h, like, post_id)", "1d").await;
    }
    client.put(SOURCE, json!({})).await;
    let like = json!({"type": "like", "fields": {"post_id": "e"}, "at": AT, "position": 0});
    let first = client.post("/v1/events?source=log&after=start", like).await.body;
    let left_out: Vec<_> = first["source"]["left_out"].as_array().unwrap_or_else(|| panic!("{first}")).clone();
    assert!((1..=500).contains(&left_out.len()), "{}", left_out.len());
    assert_eq!((&first["accepted"], &first["source"]["reached"]), (&json!(1), &json!("0")));
    // What there is room for joins with the next request. The boards are tried in one order.
    let again = send(client, "a", "after=0", []).await;
    assert_eq!((again.status, &again.body["source"]["reached"]), (200, &json!("0")), "{again:?}");
    let mut refused = 0;
    for board in left_out.iter().rev().take(3) {
        let answer = send(client, board.as_str().unwrap(), "after=0", [increment(1)]).await;
        refused += u32::from(answer.status == 409);
        let state = client.get(SOURCE).await.body;
        assert!(answer.status == 200 || state["reached"] == "0", "nothing is passed: {}", state["reached"]);
        let is_said = answer.status == 200 || answer.refusal() == (409, "unsupported");
        assert!(is_said && (answer.status == 409 || answer.body["accepted"] == 1), "{answer:?}");
    }
    assert!(refused > 0, "nobody else would count these");
}

/// An instance that knows an earlier definition must not pass what the present one counts.
#[actix_web::test]
async fn increments_are_parsed_for_the_definition_that_counts_them() {
    let site = Site::with_board("a").await;
    let (client, other) = (&site.client, site.second_instance());
    client.put(SOURCE, json!({})).await;
    send(&other, "a", "after=start", [increment(0)]).await;
    client.delete("/v1/boards/a").await;
    client.define("a", "AVG(24h, like, weight, post_id)", "1h").await;
    let value = |position: u64| json!({"subject": "x", "value": position, "at": AT, "position": position});
    let counted_now = send(&other, "a", "after=0", [value(1)]).await.body;
    assert_eq!(
        (&counted_now["accepted"], &counted_now["source"]["reached"]),
        (&json!(1), &json!("1")),
        "{counted_now}"
    );
    client.delete("/v1/boards/a").await;
    client.define("a", "COUNT(24h, like, post_id)", "1h").await;
    let lines = ndjson(&other, "a", "after=1", [increment(2)]).await.body;
    assert_eq!((&lines["accepted"], &lines["source"]["reached"]), (&json!(1), &json!("2")), "{lines}");
    assert_eq!(scores(client, "a").await, counted(&[("p2", "1")]));
}

/// The crossings: boards change and come back while several instances send increments of one or the other from anywhere.
#[actix_web::test]
async fn whatever_boards_do_meanwhile_each_increment_counts_once() {
    let owner = |position: u64| if position % 14 < 7 { "a" } else { "b" };
    let seed = crate::drawn::seed();
    for seed in seed..seed + 12 {
        let mut random = StdRng::seed_from_u64(seed);
        let site = Site::with_board("a").await;
        let instances = [site.client.clone(), site.second_instance(), site.second_instance()];
        let sum = json!({"metric": "SUM(24h, sale, price, shop)", "slot": "1h", "decimals": 1});
        site.client.put("/v1/boards/b", sum.clone()).await;
        site.client.put(SOURCE, json!({})).await;
        let mut place: Option<u64> = None;
        for step in 0..60 {
            let client = instances.choose(&mut random).unwrap();
            let board = *["a", "b"].choose(&mut random).unwrap();
            match random.random_range(0..12) {
                0 => drop(client.delete("/v1/boards/b").await),
                1 => drop(client.put("/v1/boards/b", sum.clone()).await),
                2 => {
                    let next = json!({"metric": "SUM(48h, sale, price, shop)", "slot": "1h", "decimals": 1});
                    // Of a board that counts otherwise a successor is not filled with what there is.
                    client.put("/v1/boards/b/next", next).await;
                }
                3 => drop(client.post(&format!("/v1/boards/{board}/next/promote?early=true"), json!({})).await),
                4 => drop(client.delete(&format!("/v1/boards/{board}/previous")).await),
                _ => {
                    let after = match (place, random.random_range(0..4)) {
                        (Some(place), 0) => place.checked_sub(random.random_range(1..30)),
                        (place, _) => place,
                    };
                    let first = after.map_or(0, |after| after + 1);
                    let board = owner(first);
                    let end = first + random.random_range(0..8);
                    let items = (first..end).take_while(|position| owner(*position) == board).map(increment);
                    let query =
                        format!("after={}", after.map_or_else(|| "start".to_owned(), |after| after.to_string()));
                    let sent = match random.random() {
                        true => send(client, board, &query, items).await,
                        false => ndjson(client, board, &query, items).await,
                    };
                    match sent.status {
                        200 => place = sent.body["source"]["reached"].as_str().and_then(|at| at.parse().ok()).or(place),
                        409 if sent.code() == "source_behind" => {
                            place = sent.body["reached"].as_str().unwrap().parse().ok();
                        }
                        // Board b is not there: nothing passes until it is.
                        404 if board == "b" => {}
                        409 if sent.code() == "board_changed" => {}
                        _ => panic!("seed {seed} step {step}: {sent:?}"),
                    }
                }
            }
            let state = site.client.get(SOURCE).await.body;
            let after = |position: &Json| position.as_str().unwrap().parse::<u64>().map_or(0, |position| position + 1);
            for one in state["joined"].as_array().unwrap() {
                let board = one["board"].as_str().unwrap();
                let own = (after(&one["from"])..after(&one["reached"])).filter(|position| owner(*position) == board);
                let expected: BTreeMap<_, _> = own.map(|position| (format!("p{position}"), "1".to_owned())).collect();
                assert_eq!(scores(client, board).await, expected, "seed {seed} step {step}: {one}");
            }
        }
    }
}
