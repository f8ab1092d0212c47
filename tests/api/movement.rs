//! Movement: the rank at an earlier time that each kind of answer shows.

use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::client::Client;
use crate::event_stream::{Follower, View};
use crate::site::Site;

async fn defined(definition: Json) -> Site {
    let site = Site::new().await;
    let answer = site.client.put("/v1/boards/b", definition.clone()).await;
    assert_eq!((answer.status, &answer.body["movement"]), (201, &definition["movement"]), "{answer:?}");
    // The scheduler does the same.
    site.client.get("/v1/boards/b/rankings").await;
    site
}

async fn add(client: &Client, amounts: &[(&str, u32)]) {
    let items: Vec<Json> =
        amounts.iter().map(|(subject, amount)| json!({"subject": subject, "amount": amount})).collect();
    let answer = client.add("b", json!({"increments": items})).await;
    assert_eq!(answer.body["accepted"], amounts.len(), "{answer:?}");
}

/// Returns subject and earlier rank of lines: 0 for null, `None` if there is none.
fn shown(lines: &Json) -> Vec<(&str, Option<u64>)> {
    let from = |line: &Json| line.get("from").map(|from| from.as_u64().unwrap_or_default());
    lines.as_array().unwrap().iter().map(|line| (line["subject"].as_str().unwrap(), from(line))).collect()
}

#[actix_web::test]
async fn every_kind_of_answer_shows_the_rank_at_the_boundary() {
    for definition in [
        json!({"metric": "SUM(24h, like, amount, post_id)", "slot": "1h", "movement": "1h"}),
        json!({"metric": "SUM(all, like, amount, post_id)", "movement": "1h"}),
        json!({"metric": "SUM(all, like, amount, post_id)", "season": {"every": "1w"}, "movement": "1h"}),
    ] {
        let site = defined(definition).await;
        let client = &site.client;
        add(client, &[("a", 5), ("b", 3), ("c", 3), ("d", 1)]).await;
        let before = client.get("/v1/boards/b/rankings").await.body;
        // What the ranking was at 10:00, before the board was defined, is not known.
        assert_eq!((before.get("from_as_of"), before["items"][0].get("from")), (None, None));
        client.set_clock("2026-01-02T11:00:00Z").await;
        add(client, &[("d", 9), ("e", 4)]).await;
        let page = client.get("/v1/boards/b/rankings").await.body;
        assert_eq!(page["from_as_of"], "2026-01-02T11:00:00Z");
        let lines = [("d", Some(4)), ("a", Some(1)), ("e", Some(0)), ("c", Some(2)), ("b", Some(2))];
        assert_eq!(shown(&page["items"]), lines);
        assert_eq!(page["items"][2]["from"], Json::Null);
        // Once more, from what was made before.
        assert_eq!(client.get("/v1/boards/b/rankings").await.body["items"], page["items"]);
        let two = client.get("/v1/boards/b/rankings?limit=2").await.body;
        assert_eq!(shown(&two["items"]), lines[..2]);
        let next = two["next"].as_str().unwrap();
        let rest = client.get(&format!("/v1/boards/b/rankings?cursor={next}")).await.body;
        assert_eq!((shown(&rest["items"]), &rest["from_as_of"]), (lines[2..].to_vec(), &page["from_as_of"]));
        let around = client.get("/v1/boards/b/subjects/a/neighbors?radius=1").await.body;
        assert_eq!((shown(&around["items"]), &around["from_as_of"]), (lines[..3].to_vec(), &page["from_as_of"]));
        for ranks in [true, false] {
            let body = json!({"subjects": ["a", "e", "x", "d"], "ranks": ranks});
            let found = client.post("/v1/boards/b/rankings/lookup", body).await.body;
            assert_eq!(shown(&found["items"]), [("d", Some(4)), ("a", Some(1)), ("e", Some(0)), ("x", Some(0))]);
            assert_eq!(found["from_as_of"], page["from_as_of"]);
        }
        for (subject, from) in [("d", json!(4)), ("e", Json::Null), ("x", Json::Null)] {
            let standing = client.get(&format!("/v1/boards/b/subjects/{subject}")).await.body;
            assert_eq!((standing.get("from"), &standing["from_as_of"]), (Some(&from), &page["from_as_of"]));
        }
        let headers = [("accept", "application/x-ndjson")];
        let export = client.send_with(Method::GET, "/v1/boards/b/rankings?limit=3", &headers, "").await;
        let exported: Vec<Json> = export.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(shown(&json!(exported[..3])), lines[..3]);
        // A removed subject is not named any more, and the others keep their ranks.
        client.delete("/v1/boards/b/subjects/a").await;
        add(client, &[("a", 1)]).await;
        let page = client.get("/v1/boards/b/rankings").await.body;
        let lines = [("d", Some(4)), ("e", Some(0)), ("c", Some(2)), ("b", Some(2)), ("a", Some(0))];
        assert_eq!(shown(&page["items"]), lines);
    }
}

#[actix_web::test]
async fn lines_show_the_rank_in_the_period_before() {
    let season = json!({"every": "1d", "grace": "2h", "archive": 2});
    let site =
        defined(json!({"metric": "SUM(all, sale, amount, seller)", "season": season, "movement": "period"})).await;
    let client = &site.client;
    add(client, &[("a", 5), ("b", 3)]).await;
    assert_eq!(shown(&client.get("/v1/boards/b/rankings").await.body["items"]), [("a", None), ("b", None)]);
    client.set_clock("2026-01-03T01:00:00Z").await;
    add(client, &[("c", 7), ("b", 2)]).await;
    let page = client.get("/v1/boards/b/rankings").await.body;
    assert_eq!(shown(&page["items"]), [("c", Some(0)), ("b", Some(2))]);
    assert_eq!(page["from_as_of"], "2026-01-03T00:00:00Z");
    // Late items move the ranks then.
    for _ in 0..2 {
        let late = json!({"subject": "b", "amount": 2, "at": "2026-01-02T12:00:00Z"});
        assert_eq!(client.add("b", late).await.body["accepted"], 1);
    }
    assert_eq!(shown(&client.get("/v1/boards/b/rankings").await.body["items"]), [("c", Some(0)), ("b", Some(1))]);
    assert_eq!(client.get("/v1/boards/b/subjects/a").await.body["from"], 2);
    client.set_clock("2026-01-04T05:00:00Z").await;
    add(client, &[("a", 1)]).await;
    assert_eq!(shown(&client.get("/v1/boards/b/rankings").await.body["items"]), [("a", Some(0))]);
    let ended = client.get("/v1/boards/b/rankings?period=2026-01-03").await.body;
    assert_eq!(shown(&ended["items"]), [("c", Some(0)), ("b", Some(1))]);
    let oldest = client.get("/v1/boards/b/rankings?period=2026-01-02").await.body;
    assert_eq!(shown(&oldest["items"]), [("b", None), ("a", None)]);
    client.delete("/v1/boards/b/subjects/b").await;
    let ended = client.get("/v1/boards/b/rankings?period=2026-01-03").await.body;
    assert_eq!(shown(&ended["items"]), [("c", Some(0))]);
}

#[actix_web::test]
async fn ranks_in_the_period_before_follow_from_its_page_and_not_from_when_it_was_read() {
    let orders = [(false, false), (true, false), (false, true), (true, true)];
    let cases = ["all", "1", "2"].into_iter().flat_map(|top| orders.map(|(read, packed)| (top, read, packed)));
    for (top, is_read, is_packed) in cases {
        let what = format!("archive_top {top}, read {is_read}, packed {is_packed}");
        let archive_top: Json = top.parse::<u32>().map_or(json!("all"), |top| json!(top));
        let season = json!({"every": "1d", "grace": "2h", "archive": 2, "archive_top": archive_top});
        let metric = "SUM(all, sale, amount, seller)";
        let site = defined(json!({"metric": metric, "season": season, "movement": "period"})).await;
        let client = &site.client;
        add(client, &[("a", 5), ("b", 3), ("c", 1)]).await;
        client.set_clock("2026-01-03T05:00:00Z").await;
        add(client, &[("a", 1), ("b", 2), ("c", 3)]).await;
        let ranks = async || {
            let page = client.get("/v1/boards/b/rankings").await.body;
            ["a", "b", "c"].map(|who| {
                let line = page["items"].as_array().unwrap().iter().find(|line| line["subject"] == who);
                line.map(|line| line["from"].as_u64())
            })
        };
        let before = if is_read { Some(ranks().await) } else { None };
        if is_packed {
            site.pack("b").await;
            let after = if is_read { Some(ranks().await) } else { None };
            assert_eq!(before, after, "{what}");
        }
        client.put("/v1/boards/b/subjects/a/hidden", json!({})).await;
        let expected = match top {
            // The line of the hidden subject is the only one that is kept.
            "1" => [None, Some(None), Some(None)],
            "2" => [None, Some(Some(1)), Some(None)],
            _ => [None, Some(Some(1)), Some(Some(2))],
        };
        for _ in 0..2 {
            assert_eq!(ranks().await, expected, "{what}, hidden");
        }
        if !is_packed {
            site.pack("b").await;
            assert_eq!(ranks().await, expected, "{what}, hidden and packed");
        }
        client.delete("/v1/boards/b/subjects/a/hidden").await;
        let shown = match top {
            "1" => [Some(Some(1)), Some(None), Some(None)],
            "2" => [Some(Some(1)), Some(Some(2)), Some(None)],
            _ => [Some(Some(1)), Some(Some(2)), Some(Some(3))],
        };
        assert_eq!(ranks().await, shown, "{what}, shown again");
        assert!(before.is_none_or(|before| before == shown), "{what}, before");
    }
}

#[actix_web::test]
async fn a_period_that_has_ended_shows_no_rank_of_an_hour() {
    let season = json!({"every": "1d", "grace": "2h", "archive": 2});
    let site = defined(json!({"metric": "SUM(all, sale, amount, seller)", "season": season, "movement": "1h"})).await;
    let client = &site.client;
    add(client, &[("a", 5), ("b", 3)]).await;
    for time in ["2026-01-03T00:30:00Z", "2026-01-03T01:30:00Z", "2026-01-03T05:00:00Z"] {
        client.set_clock(time).await;
        add(client, &[("a", 1)]).await;
        let ended = client.get("/v1/boards/b/rankings?period=2026-01-02").await.body;
        assert_eq!(shown(&ended["items"]), [("a", None), ("b", None)], "{time}");
    }
    assert_eq!(shown(&client.get("/v1/boards/b/rankings").await.body["items"]), [("a", Some(1))]);
}

#[actix_web::test]
async fn a_stream_sends_the_lines_whose_earlier_rank_has_changed() {
    let site = defined(json!({"metric": "SUM(all, like, amount, post_id)", "movement": "1h"})).await;
    let client = &site.client;
    add(client, &[("a", 5), ("b", 3)]).await;
    client.set_clock("2026-01-02T11:00:00Z").await;
    let path = format!("http://127.0.0.1:{}/v1/boards/b/stream?limit=10", client.port);
    let mut follower = Follower::open(&path, &[]).await;
    let mut view = View::default();
    view.apply(follower.expect("page").await);
    assert_eq!(shown(&json!(view.items)), [("a", Some(1)), ("b", Some(2))]);
    add(client, &[("b", 3)]).await;
    let change = follower.expect("change").await;
    assert_eq!(change.data["from_as_of"], "2026-01-02T11:00:00Z");
    view.apply(change);
    assert_eq!(shown(&json!(view.items)), [("b", Some(2)), ("a", Some(1))]);
    // No line has changed, but the ranks to compare with have.
    client.set_clock("2026-01-02T12:00:00Z").await;
    let change = follower.expect("change").await;
    assert_eq!(shown(&change.data["rows"]), [("b", Some(1)), ("a", Some(2))]);
    assert_eq!(change.data["from_as_of"], "2026-01-02T12:00:00Z");
}

#[actix_web::test]
async fn movement_is_refused_where_there_are_no_ranks_to_compare_with() {
    let site = Site::new().await;
    for (definition, part) in [
        (json!({"metric": "COUNT(24h, a, b BY c)", "slot": "1h", "movement": "1h"}), "BY"),
        (json!({"metric": "COUNT(24h, a, b)", "slot": "2h", "movement": "1h"}), "whole number of slots"),
        (json!({"metric": "COUNT(24h, a, b)", "slot": "1h", "movement": "period"}), "season"),
        (json!({"metric": "COUNT(24h, a, b)", "slot": "1h", "ranked": false, "movement": "1d"}), "ranked"),
        (json!({"metric": "COUNT(24h, a, b)", "slot": "1h", "movement": "1w"}), "`1h`"),
    ] {
        let answer = site.client.put("/v1/boards/b", definition).await;
        assert_eq!(answer.status, 422, "{answer:?}");
        assert_eq!(answer.body["field"], "movement", "{answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(part), "{answer:?}");
    }
}
