//! Successors of boards: dual runs, what is counted by one of them only, fills, comparisons, and the exchange.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::site::{START, Site};
use crate::waiting::Wait;

const NEXT: &str = "/v1/boards/posts/next";

async fn begin(client: &Client, definition: Value) -> Answer {
    client.put(NEXT, definition).await
}

async fn event(client: &Client, fields: Value, id: &str) -> Value {
    client.post("/v1/events?return=score", json!({"type": "like", "fields": fields, "id": id})).await.body
}

async fn lines(client: &Client, query: &str) -> Vec<(String, Value)> {
    let answer = client.get(&format!("/v1/boards/posts/rankings{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let line = |line: &Value| (line["subject"].as_str().unwrap().to_owned(), line["score"].clone());
    answer.body["items"].as_array().unwrap().iter().map(line).collect()
}

fn scores(expected: &[(&str, i64)]) -> Vec<(String, Value)> {
    expected.iter().map(|(subject, score)| ((*subject).to_owned(), json!(score))).collect()
}

/// A board with a successor that counts likes from apps over a longer window in other slots.
async fn in_dual_run() -> Site {
    let site = Site::new().await;
    let client = &site.client;
    assert_eq!(client.define("posts", "COUNT(24h, like, post)", "1h").await.status, 201);
    client.count("posts", &["a", "a", "b"]).await;
    let answer = begin(client, json!({"metric": "COUNT(48h, like, post WHERE app = 1)", "slot": "2h"})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!((&answer.body["since"], &answer.body["fill"]["state"]), (&json!(START), &json!("none")), "{answer:?}");
    // 24 slots after the first one that begins after `since`.
    assert_eq!((&answer.body["full_at"], &answer.body["exact"]), (&json!("2026-01-04T10:00:00Z"), &json!(true)));
    site
}

#[actix_web::test]
async fn a_successor_counts_beside_its_board_and_takes_over() {
    let site = in_dual_run().await;
    let client = &site.client;
    for (fields, id) in [
        (json!({"post": "a", "app": 1}), "1"),
        (json!({"post": "c", "app": 1}), "2"),
        (json!({"post": "b", "app": 0}), "3"),
        (json!({"post": "b"}), "4"),
        (json!({"post": "a", "app": 1}), "1"),
    ] {
        event(client, fields, id).await;
    }
    assert_eq!(lines(client, "").await, scores(&[("b", 3), ("a", 3), ("c", 1)]));
    assert_eq!(lines(client, "?of=next").await, scores(&[("c", 1), ("a", 1)]));
    let next = client.get(NEXT).await.body;
    assert_eq!((&next["not_counted"], &next["only_counted"]), (&json!({"filtered": 2}), &json!({})), "{next}");
    let board = client.get("/v1/boards/posts").await.body;
    assert_eq!(board["next"], "COUNT(48h, like, post WHERE app = 1)");
    let status = client.get("/v1/boards/posts?of=next").await.body;
    assert_eq!((&status["metric"], &status["total"]), (&board["next"], &json!(2)), "{status}");
    let before = client.get("/v1/boards/posts/rankings?limit=1").await.body["next"].as_str().unwrap().to_owned();

    let too_early = client.send(Method::POST, &format!("{NEXT}/promote"), None, "").await;
    assert_eq!(too_early.refusal(), (409, "successor_not_full"));
    assert_eq!(too_early.body["full_at"], "2026-01-04T10:00:00Z", "{too_early:?}");
    let promoted = client.send(Method::POST, &format!("{NEXT}/promote?keep_previous=2h&early=true"), None, "").await;
    assert_eq!((promoted.status, &promoted.body["metric"]), (200, &board["next"]), "{promoted:?}");
    assert_eq!(promoted.body["previous"], "COUNT(24h, like, post)");
    assert_eq!(lines(client, "").await, scores(&[("c", 1), ("a", 1)]));
    assert_eq!(lines(client, "?of=previous").await, scores(&[("b", 3), ("a", 3), ("c", 1)]));
    let stale = client.get(&format!("/v1/boards/posts/rankings?cursor={before}")).await;
    assert_eq!(stale.refusal(), (409, "stale_cursor"));
    assert_eq!(client.get(NEXT).await.refusal(), (404, "unknown_edition"));
    // Both are written to, and an id counts once across the exchange.
    event(client, json!({"post": "c", "app": 1}), "5").await;
    event(client, json!({"post": "c", "app": 1}), "2").await;
    assert_eq!(lines(client, "").await, scores(&[("c", 2), ("a", 1)]));
    assert_eq!(lines(client, "?of=previous").await, scores(&[("b", 3), ("a", 3), ("c", 2)]));

    let back = client.send(Method::POST, "/v1/boards/posts/previous/promote?keep_previous=1h", None, "").await;
    assert_eq!((back.status, &back.body["metric"]), (200, &json!("COUNT(24h, like, post)")), "{back:?}");
    assert_eq!(lines(client, "").await, scores(&[("b", 3), ("a", 3), ("c", 2)]));
    let previous = client.get("/v1/boards/posts/previous").await.body;
    assert_eq!(previous["until"], "2026-01-02T11:07:00Z", "{previous}");
    // It is removed after its time.
    client.set_clock("2026-01-02T11:07:00Z").await;
    site.tick().await;
    assert_eq!(client.get("/v1/boards/posts/previous").await.refusal(), (404, "unknown_edition"));
    assert_eq!(lines(client, "").await, scores(&[("b", 3), ("a", 3), ("c", 2)]));
    assert_eq!(client.get("/v1/boards/posts").await.body["previous"], Value::Null);
}

#[actix_web::test]
async fn a_dual_run_is_refused_where_it_makes_no_sense() {
    let site = in_dual_run().await;
    let client = &site.client;
    let same = begin(client, json!({"metric": "COUNT(48h, like, post WHERE app = 1)", "slot": "2h"})).await;
    assert_eq!(same.status, 200, "{same:?}");
    let other = begin(client, json!({"metric": "COUNT(48h, like, post)", "slot": "2h"})).await;
    assert_eq!(other.refusal(), (409, "editions_conflict"));
    assert_eq!(client.delete(NEXT).await.body["metric"], "COUNT(24h, like, post)");
    assert_eq!(client.delete(NEXT).await.refusal(), (404, "unknown_edition"));
    for (definition, field) in [
        (json!({"metric": "COUNT(48h, click, post)", "slot": "2h"}), "metric"),
        (json!({"metric": "COUNT(48h, like, user)", "slot": "2h"}), "metric"),
        (json!({"metric": "COUNT(48h, like, post)", "slot": "2h", "shards": 3}), "shards"),
        (json!({"metric": "COUNT(48h, like, post)", "slot": "2h", "dedupe": "3d"}), "dedupe"),
        (json!({"metric": "COUNT(48h, like, post)", "slot": "7h"}), "slot"),
    ] {
        let answer = begin(client, definition).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!(field)), "{answer:?}");
    }
    let itself = begin(client, json!({"metric": "COUNT(24h, like, post)", "slot": "1h"})).await;
    assert_eq!(itself.refusal(), (409, "editions_conflict"));
    assert_eq!(
        client.put("/v1/boards/none/next", json!({"metric": "COUNT(2h, a, b)", "slot": "1h"})).await.status,
        404
    );
    for of in ["", "now", "NEXT"] {
        let answer = client.get(&format!("/v1/boards/posts/rankings?of={of}")).await;
        assert_eq!(answer.refusal(), (422, "invalid_field"), "{of}");
    }
    assert_eq!(client.get("/v1/boards/posts/rankings?of=previous").await.refusal(), (404, "unknown_edition"));
    let keep = client.send(Method::POST, &format!("{NEXT}/promote?keep_previous=3y"), None, "").await;
    assert_eq!(keep.refusal(), (422, "invalid_field"));
}

#[actix_web::test]
async fn a_fill_that_may_have_missed_something_begins_again() {
    let site = Site::new().await;
    let client = &site.client;
    assert_eq!(client.define("posts", "COUNT(24h, like, post)", "1h").await.status, 201);
    client.count("posts", &["a", "a", "b"]).await;
    let successor = json!({"metric": "COUNT(24h, like, post)", "slot": "2h"});
    assert_eq!(begin(client, successor).await.status, 201);
    let fill = async || client.get(NEXT).await.body["fill"].clone();
    site.switch.disturb_walks(true);
    site.tick().await;
    assert_eq!(fill().await, json!({"state": "running", "cells": 32}), "two cells, twice in each of eight walks");
    site.switch.disturb_walks(false);
    site.switch.restart(true);
    site.tick().await;
    assert_eq!(fill().await["state"], "running");
    site.switch.restart(false);
    site.tick().await;
    assert_eq!(fill().await, json!({"state": "done"}));
    assert_eq!(lines(client, "?of=next").await, scores(&[("a", 2), ("b", 1)]));
}

#[actix_web::test]
async fn a_successor_that_counts_the_same_is_filled_and_compared() {
    let site = Site::new().await;
    let client = &site.client;
    assert_eq!(client.define("posts", "SUM(24h, sale, price, post)", "1h").await.status, 201);
    let earlier = json!({"increments": [
        {"subject": "a", "amount": 5, "at": "2026-01-02T08:30:00Z"}, {"subject": "a", "amount": 2},
        {"subject": "b", "amount": 4, "at": "2026-01-02T09:30:00Z"}]});
    assert_eq!(client.add("posts", earlier).await.body["accepted"], 3);
    let answer = begin(client, json!({"metric": "SUM(24h, sale, price, post)", "slot": "2h"})).await;
    assert_eq!((answer.status, &answer.body["fill"]["state"]), (201, &json!("running")), "{answer:?}");
    let early = client.send(Method::POST, &format!("{NEXT}/promote"), None, "").await;
    assert_eq!(early.refusal(), (409, "editions_conflict"));
    client.add("posts", json!({"subject": "b", "amount": 1})).await;
    site.tick().await;
    let filled = client.get(NEXT).await.body;
    assert_eq!((&filled["fill"]["state"], &filled["full_at"]), (&json!("done"), &json!(START)), "{filled}");
    assert_eq!(lines(client, "?of=next").await, lines(client, "").await);
    let window = client.get("/v1/boards/posts/subjects/a/window?last=2h&of=next").await.body;
    assert_eq!((&window["value"], &window["window"]["from"]), (&json!(2), &json!("2026-01-02T10:00:00Z")), "{window}");

    // The slot of two hours in which this would be has left the window of the successor.
    client.add("posts", json!({"subject": "c", "amount": 3, "at": "2026-01-01T11:30:00Z"})).await;
    let compared = compare(client).await;
    assert_eq!(
        (&compared["in_both"], &compared["different"], &compared["only_board"]),
        (&json!(2), &json!(0), &json!(1))
    );
    assert_eq!(compared["tops"][0], json!({"lines": 3, "common": 2, "largest_change": 0}), "{compared}");
    assert_eq!(compared["differences"], json!([{"subject": "c", "score": 3, "next_score": null}]));
    // What rankings leave out is compared, too.
    let hidden = json!({"subjects": [{"subject": "a"}, {"subject": "c"}, {"subject": "unknown"}]});
    assert_eq!(client.post("/v1/boards/posts/hidden", hidden).await.body["accepted"], 3);
    let compared = compare(client).await;
    assert_eq!(json!([compared["in_both"], compared["only_board"]]), json!([2, 1]), "{compared}");
    for subject in ["a", "c", "unknown"] {
        client.delete(&format!("/v1/boards/posts/subjects/{subject}/hidden")).await;
    }
    assert_eq!(client.get(NEXT).await.body["not_counted"], json!({"too_late": 1}));
    assert_eq!(client.send(Method::POST, &format!("{NEXT}/promote"), None, "").await.status, 200);
    assert_eq!(lines(client, "").await, scores(&[("a", 7), ("b", 5)]));
}

/// What is taken back before the fill comes to it is no longer on the board, so the fill does not find it there.
#[actix_web::test]
async fn a_successor_keeps_nothing_of_what_is_taken_back_during_the_fill() {
    for (metric, amount) in [
        ("COUNT(24h, like, post)", json!({"subject": "a"})),
        ("SUM(24h, sale, price, post)", json!({"subject": "a", "amount": 5})),
        ("AVG(24h, rating, stars, post)", json!({"subject": "a", "value": 5})),
        ("COUNT(all, like, post)", json!({"subject": "a"})),
        ("COUNT_DISTINCT(24h, like, post, user)", json!({"subject": "a", "value": "u"})),
    ] {
        let site = Site::new().await;
        let client = &site.client;
        let definition = |slot: &str, order: &str| match metric.contains("all") {
            true => json!({"metric": metric, "order": order}),
            false => json!({"metric": metric, "slot": slot, "order": order}),
        };
        assert_eq!(client.put("/v1/boards/posts", definition("1h", "desc")).await.status, 201);
        let add = async |mut item: Value, who: &str, retract: bool| {
            item["subject"] = json!(who);
            (item["retract"], item["at"]) = (json!(retract), json!("2026-01-02T10:05:00Z"));
            let added = client.add("posts", item).await;
            assert_eq!(added.body["accepted"], 1, "{metric}: {added:?}");
        };
        add(amount.clone(), "a", false).await;
        add(amount.clone(), "b", false).await;
        assert_eq!(begin(client, definition("2h", "asc")).await.status, 201);
        add(amount.clone(), "a", true).await;
        site.tick().await;
        assert_eq!(client.get(NEXT).await.body["fill"]["state"], "done");
        let [ours, theirs] = [lines(client, "").await, lines(client, "?of=next").await];
        assert_eq!((ours.len(), &ours), (1, &theirs), "{metric}");
        let subject = client.get("/v1/boards/posts/subjects/a?of=next").await.body;
        assert!(subject["rank"].is_null(), "{metric}: {subject}");
    }
}

/// Compares the board with its successor, and waits for the end.
async fn compare(client: &Client) -> Value {
    let begun = client.send(Method::POST, &format!("{NEXT}/compare"), None, "").await;
    assert_eq!(begun.status, 202, "{begun:?}");
    let wait = Wait::begin("the end of a comparison");
    loop {
        let comparison = client.get(NEXT).await.body["comparison"].clone();
        assert_ne!(comparison["state"], "failed", "{comparison}");
        if comparison["state"] == "done" {
            return comparison;
        }
        wait.rest(&comparison).await;
    }
}

/// An instance that knows the board from before, and that has not read it since, sends what it has.
#[actix_web::test]
async fn instances_that_do_not_know_of_a_change_lose_and_double_nothing() {
    let site = Site::new().await;
    let (client, other) = (&site.client, site.second_instance());
    assert_eq!(client.define("posts", "SUM(24h, sale, price, post)", "1h").await.status, 201);
    other.count("posts", &["a"]).await;
    let answer = begin(client, json!({"metric": "SUM(48h, sale, price, post)", "slot": "1h", "decimals": 2})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    // What its first increment is in the successor follows from what it is on the board.
    let late = json!({"subject": "a", "amount": 2});
    assert_eq!(other.add("posts", late.clone()).await.body["accepted"], 1);
    assert_eq!(other.add("posts", late.clone()).await.body["accepted"], 1);
    assert_eq!((client.score("posts", "a").await, next_score(client).await), (json!(5), json!(4)));
    assert_eq!(client.send(Method::POST, &format!("{NEXT}/promote?early=true"), None, "").await.status, 200);
    // This instance still takes the amount for one of the earlier edition.
    assert_eq!(other.add("posts", late).await.body["accepted"], 1);
    assert_eq!(other.score("posts", "a").await, 6);
    let previous = client.get("/v1/boards/posts/subjects/a?of=previous").await.body;
    assert_eq!(previous["score"], 7, "{previous}");
    assert_eq!(client.delete("/v1/boards/posts/previous").await.status, 200);
    assert_eq!(other.add("posts", json!({"subject": "a", "amount": 0.25})).await.body["accepted"], 1);
    assert_eq!(other.score("posts", "a").await, 6.25);
}

async fn next_score(client: &Client) -> Value {
    client.get("/v1/boards/posts/subjects/a?of=next").await.body["score"].clone()
}

#[actix_web::test]
async fn mirrored_reads_are_compared_and_differences_are_kept() {
    let site = Site::new().await;
    let service = site.service();
    service.mirror_reads(1.0);
    let client = &crate::site::serve(service, crate::site::options());
    assert_eq!(client.define("posts", "COUNT(24h, like, post)", "1h").await.status, 201);
    client.count("posts", &["a", "a", "b"]).await;
    assert_eq!(
        begin(client, json!({"metric": "COUNT(24h, like, post WHERE app = 1)", "slot": "1h"})).await.status,
        201
    );
    client.count("posts", &["b"]).await;
    assert_eq!(lines(client, "").await, scores(&[("b", 2), ("a", 2)]));
    let wait = Wait::begin("the difference of a read");
    let differences = loop {
        let body = client.get(NEXT).await.body;
        if let Some(differences) = body.get("mirrored_differences") {
            break differences.clone();
        }
        wait.rest(&body).await;
    };
    assert_eq!(
        differences,
        json!([{"read": "page", "at": START, "position": 0, "line": {"subject": "b", "score": 2},
            "next_line": {"subject": "b", "score": 1}}])
    );
    // They are of that successor.
    assert_eq!(client.send(Method::DELETE, NEXT, None, "").await.status, 200);
    let other = begin(client, json!({"metric": "COUNT(12h, like, post)", "slot": "1h"})).await;
    assert_eq!((other.status, other.body.get("mirrored_differences")), (201, None), "{other:?}");
}

#[actix_web::test]
async fn queries_streams_and_lookups_choose_an_edition() {
    let site = in_dual_run().await;
    let client = &site.client;
    client.count("posts", &["c"]).await;
    let query = |of: Value| json!({"board": "posts", "subject": "c", "of": of, "last": "2h"});
    let answer = client.post("/v1/query", json!({"queries": [query(json!("next")), query(Value::Null)]})).await;
    let read = |at: usize| (&answer.body["answers"][at]["value"], &answer.body["answers"][at]["window"]["slots"]);
    assert_eq!((read(0), read(1)), ((&json!(1), &json!(1)), (&json!(1), &json!(2))), "{answer:?}");
    let looked = client.post("/v1/boards/posts/rankings/lookup?of=next", json!({"subjects": ["a", "c"]})).await;
    assert_eq!(looked.body["items"][0]["subject"], "c", "{looked:?}");
    assert_eq!(looked.body["total"], 1);
    let neighbors = client.get("/v1/boards/posts/subjects/c/neighbors?of=next").await;
    assert_eq!(neighbors.body["items"].as_array().unwrap().len(), 1, "{neighbors:?}");
    assert_eq!(client.get("/v1/boards/posts/stream?of=next").await.status, 200);
    assert_eq!(client.get("/v1/stream?view=posts,of=next").await.status, 200);
    assert_eq!(client.get("/v1/boards/posts/stream?of=previous").await.refusal(), (404, "unknown_edition"));
    let audit = client.send(Method::POST, "/v1/boards/posts/audit?of=next", None, "").await;
    assert_eq!((&audit.body["subjects_checked"], &audit.body["differences"]), (&json!(1), &json!(0)), "{audit:?}");
}

/// Functions over a field, each of which judges events in its own way.
const FUNCTIONS: [&str; 9] = [
    "COUNT(3h, like, post)",
    "SUM(3h, like, v, post)",
    "AVG(3h, like, v, post)",
    "MIN(3h, like, v, post)",
    "MAX(3h, like, w, post)",
    "LAST(3h, like, v, post)",
    "COUNT_DISTINCT(3h, like, post, who)",
    "APPROX_COUNT_DISTINCT(3h, like, post, who)",
    "SUM(6h, like, w, post)",
];

#[actix_web::test]
async fn an_answer_by_which_nothing_was_counted_is_true_of_both_editions() {
    let site = Site::new().await;
    let client = &site.client;
    let events = [
        json!({"type": "like", "fields": {"post": "a", "v": 3, "w": 5, "who": "u"}, "at": "2026-01-02T10:00:00Z"}),
        // Not by MIN, MAX, LAST and sketches.
        json!({"type": "like", "fields": {"post": "a", "v": 3, "w": 5, "who": "u"}, "at": "2026-01-02T10:00:00Z", "retract": true}),
        json!({"type": "like", "fields": {"post": "a", "v": 2, "who": "x"}, "at": "2026-01-02T10:00:00Z"}),
        json!({"type": "like", "fields": {"post": "a", "w": 2}, "at": "2026-01-02T10:00:00Z"}),
        // Only the longest window reaches back.
        json!({"type": "like", "fields": {"post": "b", "v": 2, "w": 3, "who": "z"}, "at": "2026-01-02T06:00:00Z"}),
        json!({"type": "like", "fields": {"post": "c", "v": 1, "w": 8_000_000_000_000_000_i64, "who": "z"}, "at": "2026-01-02T10:00:00Z"}),
    ];
    let (mut refused, mut beside) = (0, 0);
    for (first, second) in FUNCTIONS.iter().flat_map(|first| FUNCTIONS.map(|second| (*first, second))) {
        if first == second {
            continue;
        }
        assert_eq!(client.define("posts", first, "1h").await.status, 201);
        let begun = begin(client, json!({"metric": second, "slot": "1h"})).await;
        assert_eq!(begun.status, 201, "{begun:?}");
        let held = async || {
            let mut held = Vec::new();
            for query in ["", "?of=next"] {
                held.push(lines(client, query).await);
                let path = format!("/v1/boards/posts{query}");
                held.push(vec![("slots".to_owned(), client.get(&path).await.body["slots"].clone())]);
            }
            held
        };
        for event in &events {
            let before = held().await;
            let answer = client.post("/v1/events", event.clone()).await;
            let after = held().await;
            match answer.status {
                422 => {
                    refused += 1;
                    assert!(answer.text.contains("nothing was counted"), "{answer:?}");
                    assert_eq!(before, after, "{first} beside {second}, {event}: {answer:?}");
                }
                _ => {
                    assert_eq!(answer.status, 200, "{answer:?}");
                    let is_beside = answer.body["accepted"] == 0 && before != after;
                    if is_beside && answer.body["rejected"] != json!([]) {
                        beside += 1;
                        let detail = answer.body["rejected"][0]["detail"].as_str().unwrap();
                        assert!(
                            detail.contains("the next edition of the board"),
                            "{first} beside {second}: {answer:?}"
                        );
                    }
                }
            }
        }
        client.delete("/v1/boards/posts").await;
    }
    assert!(refused > 5 && beside > 20, "{refused} {beside}");
}

/// A site asks for the windows of its tabs and shows arrows; a successor that names only its metric keeps both.
#[actix_web::test]
async fn what_a_successor_does_not_name_it_has_from_the_board() {
    let site = Site::new().await;
    let client = &site.client;
    let posts = json!({"metric": "COUNT(24h, like, post)", "slot": "1h", "windows": ["1h/1m", "all"], "movement": "1d",
        "order": "asc", "timezone": "Europe/Berlin"});
    assert_eq!(client.put("/v1/boards/posts", posts).await.status, 201);
    client.count("posts", &["a", "a", "b"]).await;
    let next = json!({"metric": "COUNT(48h, like, post)", "slot": "1h"});
    let begun = begin(client, next.clone()).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let kept = json!(["windows", "movement", "order", "timezone"].map(|key| begun.body[key].clone()));
    assert_eq!(kept, json!([["1h/1m", "all"], "1d", "asc", "Europe/Berlin"]), "{begun:?}");
    let metric = json!({"key": "metric", "board": "COUNT(24h, like, post)", "edition": "COUNT(48h, like, post)"});
    assert_eq!(begun.body["changes"], json!([metric]), "{begun:?}");
    assert_eq!(begun.body["stops"], json!(["window=24h: there are the windows 48h, 1h and all"]));
    assert_eq!(begin(client, next).await.status, 200, "it is the same one again");
    site.tick().await;
    assert_eq!(client.get(NEXT).await.body["fill"]["state"], "done");
    let promoted = client.send(Method::POST, &format!("{NEXT}/promote?early=true"), None, "").await;
    assert_eq!((promoted.status, &promoted.body["changes"]), (200, &json!([metric])), "{promoted:?}");
    assert_eq!(lines(client, "?window=1h").await, scores(&[("b", 1), ("a", 2)]));
    assert_eq!(client.get("/v1/boards/posts/rankings").await.body["items"][0]["from"], Value::Null);
    let back = client.get("/v1/boards/posts/previous").await.body;
    assert_eq!(back["changes"][0]["edition"], "COUNT(24h, like, post)", "{back}");
}

/// What is lost is said where a dual run begins, where it is compared and where the successor takes over.
#[actix_web::test]
async fn what_a_successor_does_without_is_said() {
    let site = Site::new().await;
    let client = &site.client;
    let posts =
        json!({"metric": "COUNT(24h, like, post)", "slot": "1h", "windows": ["1h/1m", "all"], "movement": "1d"});
    assert_eq!(client.put("/v1/boards/posts", posts).await.status, 201);
    let tiers = json!({"tiers": [{"name": "gold", "score": 10}]});
    assert_eq!(client.put("/v1/boards/posts/tiers", tiers).await.status, 200);
    let next =
        json!({"metric": "SUM(24h, like, weight, post)", "slot": "1h", "decimals": 2, "windows": [], "movement": null});
    let begun = begin(client, next).await;
    assert_eq!((begun.status, &begun.body["windows"], &begun.body["movement"]), (201, &json!([]), &Value::Null));
    let keys: Vec<&Value> = begun.body["changes"].as_array().unwrap().iter().map(|change| &change["key"]).collect();
    assert_eq!(keys, ["metric", "decimals", "windows", "movement"], "{begun:?}");
    assert_eq!(begun.body["changes"][2], json!({"key": "windows", "board": ["1h/1m", "all"], "edition": []}));
    let stops = begun.body["stops"].clone();
    let expected = json!([
        "window=1h: the only window is 24h",
        "window=all: the only window is 24h",
        "from, the earlier rank in lines: there is none without movement",
        "queries and rules by the metric COUNT(24h, like, post): it is not that of the edition",
        "increments: they do not say what the edition counts, and count there only if the metric has the same types, \
         fields and weights",
        "tiers by score: their bounds stay, while scores are other ones; see GET …/tiers",
    ]);
    assert_eq!(stops, expected);
    let compared = client.send(Method::POST, &format!("{NEXT}/compare"), None, "").await;
    assert_eq!((compared.status, &compared.body["stops"]), (202, &stops), "{compared:?}");
    let promoted = client.send(Method::POST, &format!("{NEXT}/promote?early=true"), None, "").await;
    assert_eq!((promoted.status, &promoted.body["stops"]), (200, &stops), "{promoted:?}");
}

/// A total over all time that begins empty never has what the board has.
#[actix_web::test]
async fn a_successor_that_is_never_complete_takes_over_only_if_that_is_asked_for() {
    let site = Site::new().await;
    let client = &site.client;
    assert_eq!(client.define("posts", "COUNT(24h, like, post)", "1h").await.status, 201);
    client.count("posts", &["a"]).await;
    let begun = begin(client, json!({"metric": "SUM(all, like, weight, post)"})).await;
    assert_eq!((begun.status, &begun.body["full_at"]), (201, &Value::Null), "{begun:?}");
    let promote = async |query: &str| client.send(Method::POST, &format!("{NEXT}/promote{query}"), None, "").await;
    for query in ["", "?early=false"] {
        let refused = promote(query).await;
        assert_eq!((refused.refusal(), &refused.body["full_at"]), ((409, "successor_not_full"), &Value::Null));
    }
    assert_eq!(promote("?early=yes").await.refusal(), (422, "invalid_field"));
    assert_eq!(promote("?early=true").await.status, 200);
    let back = "/v1/boards/posts/previous/promote";
    assert_eq!(client.send(Method::POST, &format!("{back}?early=true"), None, "").await.status, 422);
    assert_eq!(client.send(Method::POST, back, None, "").await.status, 200, "what was the board is complete");
}
