//! Sources: events with positions count once on each board, whatever is sent again, and from where the board joined.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use rolltop::access::{Grant, Scope};
use rolltop::store::TableName;
use serde_json::{Value as Json, json};

use crate::access::{Guarded, key, key_of, keys};
use crate::client::{Answer, Client};
use crate::failing_store::Fault;
use crate::site::Site;

const SOURCE: &str = "/v1/sources/log";
const METRIC: &str = "COUNT(24h, like, post_id)";

/// Returns the event of a position: each has a subject of its own.
fn like(position: u64) -> Json {
    let fields = json!({"post_id": format!("p{position}")});
    json!({"type": "like", "fields": fields, "at": "2026-01-02T10:00:00Z", "position": position})
}

/// Sends the events of a log after one position, up to another one.
async fn send(client: &Client, after: Option<u64>, through: u64) -> Answer {
    send_more(client, "", after, through).await
}

/// Does the same to fill a board.
async fn fill(client: &Client, board: &str, after: Option<u64>, through: u64) -> Answer {
    send_more(client, &format!("&fill={board}"), after, through).await
}

async fn send_more(client: &Client, more: &str, after: Option<u64>, through: u64) -> Answer {
    let first = after.map_or(0, |after| after + 1);
    let events: Vec<_> = (first..=through).map(like).collect();
    let after = after.map_or_else(|| "start".to_owned(), |after| after.to_string());
    client.post(&format!("/v1/events?source=log&after={after}{more}"), json!({"events": events})).await
}

async fn ndjson(client: &Client, path: &str, lines: impl IntoIterator<Item = Json>) -> Answer {
    let body: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    client.send(Method::POST, path, Some("application/x-ndjson"), body).await
}

/// Returns the scores of a board by subject.
async fn scores(client: &Client, board: &str) -> BTreeMap<String, u64> {
    let page = client.get(&format!("/v1/boards/{board}/rankings?limit=1000")).await.body;
    let score = |line: &Json| (line["subject"].as_str().unwrap().to_owned(), line["score"].as_u64().unwrap());
    page["items"].as_array().unwrap_or_else(|| panic!("{page}")).iter().map(score).collect()
}

/// Returns the positions that each board has joined at and reached.
async fn joined(client: &Client) -> BTreeMap<String, (String, String)> {
    let state = client.get(SOURCE).await.body;
    let text = |value: &Json| value.as_str().unwrap_or("?").to_owned();
    let each = state["joined"].as_array().unwrap().iter();
    each.map(|one| (text(&one["board"]), (text(&one["from"]), text(&one["reached"])))).collect()
}

/// Checks that a board has counted each event once from where it joined, up to a position.
async fn assert_counts(client: &Client, board: &str, first: u64, last: u64) {
    let expected: BTreeMap<_, _> = (first..=last).map(|position| (format!("p{position}"), 1)).collect();
    assert_eq!(scores(client, board).await, expected, "{board}");
}

#[actix_web::test]
async fn a_source_is_defined_listed_and_removed() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    assert_eq!(client.get(SOURCE).await.refusal(), (404, "unknown_source"));
    assert_eq!(client.get("/v1/sources/%20").await.refusal(), (404, "unknown_source"));
    assert_eq!(send(client, None, 1).await.refusal(), (404, "unknown_source"));
    let new = client.put(SOURCE, json!({})).await;
    let shown = json!({"source": "log", "boards": ["*"], "keys": [], "reached": null, "joined": []});
    assert_eq!((new.status, &new.body, new.header("location")), (201, &shown, SOURCE));
    let other = site.second_instance();
    let again = other.put(SOURCE, json!({"boards": ["a", "b-*"], "keys": ["5f1c2a9d04b7e386"]})).await;
    assert_eq!((again.status, &again.body["boards"]), (200, &json!(["a", "b-*"])));
    client.put("/v1/sources/A.log", json!({"boards": ["a"]})).await;
    let first = json!({"source": "A.log", "boards": ["a"], "keys": []});
    let second = json!({"source": "log", "boards": ["a", "b-*"], "keys": ["5f1c2a9d04b7e386"]});
    assert_eq!(client.get("/v1/sources").await.body, json!({"items": [first, second], "next": null}));
    for (path, body, field) in [
        ("/v1/sources/-a", json!({}), "source"),
        (SOURCE, json!({"boards": []}), "boards"),
        (SOURCE, json!({"boards": ["A"]}), "boards"),
        (SOURCE, json!({"keys": ["x"]}), "keys"),
        (SOURCE, json!({"keys": vec!["5f1c2a9d04b7e386"; 65]}), "keys"),
    ] {
        let refused = client.put(path, body).await;
        assert_eq!(
            (refused.refusal(), refused.body["field"].as_str().unwrap().split('[').next()),
            ((422, "invalid_field"), Some(field))
        );
    }
    assert_eq!(client.delete(SOURCE).await.body["boards"], json!(["a", "b-*"]));
    assert_eq!(other.delete(SOURCE).await.refusal(), (404, "unknown_source"));
}

#[actix_web::test]
async fn events_count_once_whatever_is_sent_again() {
    let site = Site::with_board("a").await;
    let (client, other) = (&site.client, site.second_instance());
    client.put(SOURCE, json!({})).await;
    // A request without events only asks where the source is.
    for after in ["start", "1000"] {
        let path = format!("/v1/events?source=log&after={after}");
        let asked = client.post(&path, json!({"events": []})).await;
        assert_eq!((asked.status, &asked.body["source"]["reached"]), (200, &Json::Null), "{asked:?}");
    }
    let first = send(client, None, 9).await.body;
    assert_eq!(
        (&first["accepted"], &first["source"]),
        (&json!(10), &json!({"name": "log", "reached": "9", "repeated": 0, "waiting": 0, "left_out": []}))
    );
    let again = send(&other, None, 9).await.body;
    assert_eq!(
        (&again["accepted"], &again["source"]["repeated"], &again["unmatched"]),
        (&json!(0), &json!(10), &json!(0))
    );
    let more = send(&other, Some(4), 14).await.body;
    assert_eq!(
        (&more["accepted"], &more["source"]["repeated"], &more["source"]["reached"]),
        (&json!(5), &json!(5), &json!("14"))
    );
    // What was counted before says where the source is.
    assert_eq!(send(client, Some(2), 5).await.body["source"]["reached"], "14");
    let gap = send(client, Some(15), 20).await;
    assert_eq!(
        (gap.refusal(), &gap.body["reached"], &gap.body["source"]),
        ((409, "source_behind"), &json!("14"), &json!("log"))
    );
    let none = client.post("/v1/events?source=log&after=14", json!({"events": []})).await;
    assert_eq!((none.status, &none.body["source"]["reached"]), (200, &json!("14")));
    let lines = ndjson(client, "/v1/events?source=log&after=14", (15..7_015).map(like)).await;
    assert_eq!(
        (lines.status, &lines.body["accepted"], &lines.body["source"]["reached"]),
        (200, &json!(7_000), &json!("7014"))
    );
    let lines = ndjson(client, "/v1/events?source=log&after=6999", (7_000..7_020).map(like)).await;
    assert_eq!((&lines.body["accepted"], &lines.body["source"]["repeated"]), (&json!(5), &json!(15)));
    let nothing = ndjson(client, "/v1/events?source=log&after=7019", []).await;
    assert_eq!((nothing.status, &nothing.body["source"]["reached"]), (200, &json!("7019")), "{nothing:?}");
    let behind = ndjson(client, "/v1/events?source=log&after=7020", [like(7_021)]).await;
    assert_eq!((behind.refusal(), &behind.body["reached"]), ((409, "source_behind"), &json!("7019")));
    let total = client.get("/v1/boards/a/rankings?limit=1").await.body["total"].clone();
    assert_eq!(total, 7_020);
    let metrics = client.get("/metrics").await.text;
    assert!(metrics.contains("rolltop_events_total{outcome=\"repeated\"}"), "{metrics}");
}

#[actix_web::test]
async fn an_instance_says_what_was_sent_to_it() {
    let site = Site::with_board("a").await;
    let (client, other) = (&site.client, site.second_instance());
    client.put("/v1/sources/sent-log", json!({})).await;
    assert_eq!(client.get("/v1/sources/sent-log").await.body.get("sent"), None);
    let (mut late, mut old, mut early) = (like(2), like(1), like(4));
    late["at"] = json!("2025-01-01T00:00:00Z");
    old["at"] = json!("2026-01-02T09:00:00Z");
    early["at"] = json!("2026-01-02T10:40:00Z");
    // Nobody counts it.
    let view = json!({"type": "view", "position": 3, "at": "2026-01-02T10:05:00Z"});
    let path = "/v1/events?source=sent-log&after=start";
    client.post(path, json!({"events": [like(0), old, late, view, early]})).await;
    ndjson(client, path, [like(0)]).await;
    let mut sent = client.get("/v1/sources/sent-log").await.body["sent"].take();
    assert!(sent["per_second"].take().as_f64().is_some_and(|rate| rate > 0.0 && rate <= 5.0), "{sent}");
    let expected = json!({"accepted": 2, "repeated": 1, "rejected": {"too_late": 1}, "newest": "2026-01-02T10:00:00Z",
        "per_second": null});
    assert_eq!(sent, expected);
    assert_eq!(client.get("/v1/sources").await.body["items"][0]["sent"]["accepted"], 2);
    assert_eq!(other.get("/v1/sources").await.body["items"][0].get("sent"), None);
    let metrics = client.get("/metrics").await.text;
    for line in [
        "rolltop_source_items_total{source=\"sent-log\",outcome=\"accepted\"} 2",
        "rolltop_source_items_total{source=\"sent-log\",outcome=\"repeated\"} 1",
        "rolltop_source_items_total{source=\"sent-log\",outcome=\"rejected\"} 1",
        "rolltop_source_items_total{source=\"sent-log\",outcome=\"passed\"} 1",
        "rolltop_source_newest_timestamp_seconds{source=\"sent-log\"} 1767348000",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    // A source that is defined again is another one, on whichever instance it was removed.
    other.delete("/v1/sources/sent-log").await;
    client.get("/v1/sources").await;
    assert!(!client.get("/metrics").await.text.contains("sent-log"));
    client.put("/v1/sources/sent-log", json!({})).await;
    assert_eq!(client.get("/v1/sources/sent-log").await.body.get("sent"), None);
}

#[actix_web::test]
async fn a_position_is_a_growing_number() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.put(SOURCE, json!({})).await;
    let event = |position: Json| {
        let mut event = like(0);
        event["position"] = position;
        event
    };
    let large = "340282366920938463463374607431768211454";
    for (after, positions, says) in [
        ("start", vec![json!(null)], "missing"),
        ("start", vec![json!("start")], "whole number"),
        ("start", vec![json!(-1)], "whole number"),
        ("start", vec![json!(1.5)], "whole number"),
        ("start", vec![json!("1 ")], "whole number"),
        ("start", vec![json!([1])], "whole number"),
        ("start", vec![json!("340282366920938463463374607431768211455")], "whole number"),
        ("start", vec![json!(1), json!("1")], "event 1: 'position' is 1, and that before it is 1"),
        ("start", vec![json!(2), json!(1)], "event 1: 'position' is 1, and that before it is 2"),
        ("7", vec![json!(7), json!(8)], "not after 7"),
    ] {
        let path = format!("/v1/events?source=log&after={after}");
        let events: Vec<_> = positions.into_iter().map(event).collect();
        let refused = client.post(&path, json!({"events": events})).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("position")), "{says}");
        assert!(refused.body["detail"].as_str().unwrap().contains(says), "{says}: {refused:?}");
        let refused = ndjson(client, &path, events).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("position")), "{says}");
        assert_eq!(refused.body["counted_through"], 0);
    }
    for (query, field) in [
        ("source=log", "after"),
        ("after=1", "source"),
        ("source=%23&after=1", "source"),
        ("source=log&after=-1", "after"),
        ("source=log&after=1&strict=true", "strict"),
        ("source=log&after=1&return=score", "return"),
    ] {
        let refused = client.post(&format!("/v1/events?{query}"), event(json!(2))).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!(field)), "{query}");
    }
    let headers = [("content-type", "application/json"), ("idempotency-key", "x")];
    let refused =
        client.send_with(Method::POST, "/v1/events?source=log&after=1", &headers, event(json!(2)).to_string()).await;
    assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("Idempotency-Key")));
    assert_eq!(client.post("/v1/events", event(json!(2))).await.refusal(), (422, "unknown_field"));
    assert_eq!(scores(client, "a").await, BTreeMap::new(), "nothing of this counted");
    let single = client.post("/v1/events?source=log&after=start", event(json!(large))).await;
    assert_eq!((single.status, &single.body["source"]["reached"]), (200, &json!(large)));
}

#[actix_web::test]
async fn events_that_no_board_takes_are_passed() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.define("b", "COUNT(24h, like, post_id WHERE big = true)", "1h").await;
    client.put(SOURCE, json!({})).await;
    let first = json!({"type": 5, "position": 0});
    let passed = client.post("/v1/events?source=log&after=start", first).await.body;
    assert_eq!((&passed["accepted"], &passed["source"]["reached"]), (&json!(0), &json!("0")), "{passed}");
    let (mut no_field, mut late, mut nested) = (like(3), like(4), like(5));
    no_field["fields"] = json!({});
    late["at"] = json!("2025-01-01T00:00:00Z");
    nested["fields"] = json!([]);
    let unknown = json!({"type": "view", "position": 6});
    let events = [like(1), no_field, late, nested, unknown];
    let receipt = client.post("/v1/events?source=log&after=start", json!({"events": events})).await.body;
    assert_eq!((&receipt["accepted"], &receipt["unknown"]), (&json!(1), &json!(1)), "{receipt}");
    assert_eq!(receipt["rejected_counts"], json!({"missing_field": 1, "too_late": 1, "invalid_event": 1}));
    assert_eq!(receipt["source"]["reached"], "6");
    assert_eq!(joined(client).await["b"], ("start".to_owned(), "6".to_owned()), "a board without matches moves on");
    // Also the last one of a request, and one that is alone: the next request goes on after it.
    let (mut member, mut no_type) = (like(8), like(9));
    member["extra"] = json!(1);
    no_type.as_object_mut().unwrap().remove("type");
    let receipt = ndjson(client, "/v1/events?source=log&after=6", [like(7), member.clone()]).await.body;
    let rejected = [(
        "rejected",
        json!([{"line": 2, "field": "extra", "code": "unknown_field", "detail": receipt["rejected"][0]["detail"]}]),
    )];
    assert_eq!((&receipt["accepted"], &receipt["rejected"]), (&json!(1), &rejected[0].1), "{receipt}");
    assert_eq!(receipt["source"]["reached"], "8");
    let alone = client.post("/v1/events?source=log&after=8", no_type).await;
    assert_eq!((alone.status, &alone.body["rejected_counts"]), (200, &json!({"invalid_type": 1})), "{alone:?}");
    member["position"] = json!(10);
    let alone = client.post("/v1/events?source=log&after=9", member).await;
    assert_eq!((alone.status, &alone.body["source"]["reached"]), (200, &json!("10")), "{alone:?}");
    // What has no position that can be read is not passed: nothing says what it would pass over.
    for lines in [format!("{}\nno event\n", like(11)), format!("{}\n[]\n{}", like(11), like(12))] {
        let path = "/v1/events?source=log&after=10";
        let refused = client.send(Method::POST, path, Some("application/x-ndjson"), lines).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("position")));
        assert!(refused.body["detail"].as_str().unwrap().contains("line 2"), "{refused:?}");
    }
    let refused = client.post("/v1/events?source=log&after=10", json!({"events": [like(11), 5]})).await;
    assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("position")));
    let counted: BTreeMap<_, _> = [1, 7].map(|position| (format!("p{position}"), 1)).into();
    assert_eq!(scores(client, "a").await, counted);
}

/// Neither does an event hold the log up that only another edition would count, nor is it passed.
#[actix_web::test]
async fn an_event_that_waits_for_the_edition_beside_is_shown() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.define("b", "COUNT(24h, like, post_id WHERE big = true)", "1h").await;
    client
        .put("/v1/boards/b/next", json!({"metric": "COUNT(24h, like, post_id WHERE small = true)", "slot": "1h"}))
        .await;
    client.put(SOURCE, json!({"boards": ["b"]})).await;
    let mut early = like(2);
    early["at"] = json!("2026-01-02T10:40:00Z");
    early["fields"]["small"] = json!(true);
    let waits = client.post("/v1/events?source=log&after=start", json!({"events": [like(1), early]})).await.body;
    let source = &waits["source"];
    assert_eq!((&source["reached"], &source["waiting"]), (&json!("start"), &json!(1)), "{waits}");
    assert_eq!(source["waiting_for"], json!({"too_early": 1}));
    assert_eq!(waits["unmatched"], 1);
}

#[actix_web::test]
async fn a_source_without_boards_passes_nothing() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.put(SOURCE, json!({"boards": ["shop-*"]})).await;
    let refused = send(client, None, 5).await;
    assert_eq!((refused.refusal(), &refused.body["source"]), ((409, "unsupported"), &json!("log")));
    client.define("shop-1", METRIC, "1h").await;
    send(client, None, 5).await;
    assert_counts(client, "shop-1", 0, 5).await;
}

/// What the row of a source and its boards say of each other may be lost in a failover, on either side.
#[actix_web::test]
async fn a_source_goes_on_where_boards_are_after_a_failover() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.define("b", METRIC, "1h").await;
    client.put(SOURCE, json!({})).await;
    send(client, None, 9).await;
    // The row has b no more; meanwhile a has gone on.
    client.put(SOURCE, json!({"boards": ["a"]})).await;
    send(client, Some(9), 14).await;
    let rows = site.store.rows(TableName::Sources, None).await.unwrap().unwrap().rows;
    let mut row: Json = serde_json::from_str(&rows["log"]).unwrap();
    let b = client.get("/v1/boards/b").await.body["generation"].as_str().unwrap().to_owned();
    let joined = row["joined"]["start"].as_str().unwrap().replace(&b, "");
    (row["joined"]["start"], row["boards"]) = (json!(joined), json!(["*"]));
    let lost = row.to_string();
    assert!(site.store.change_row(TableName::Sources, "log", Some(&rows["log"]), Some(&lost)).await.unwrap());
    let behind = send(client, Some(14), 19).await;
    assert_eq!((behind.refusal(), &behind.body["reached"]), ((409, "source_behind"), &json!("9")));
    send(client, Some(9), 19).await;
    assert_counts(client, "b", 0, 19).await;
    assert!(fill(client, "b", None, 5).await.body["detail"].as_str().unwrap().contains("joined it again"));
    // A fill of which the row knows nothing goes on where the board is.
    client.define("c", METRIC, "1h").await;
    send(client, Some(19), 24).await;
    fill(client, "c", Some(4), 12).await;
    let rows = site.store.rows(TableName::Sources, None).await.unwrap().unwrap().rows;
    let mut row: Json = serde_json::from_str(&rows["log"]).unwrap();
    assert!(row.as_object_mut().unwrap().remove("fills").is_some(), "{row}");
    let lost = row.to_string();
    assert!(site.store.change_row(TableName::Sources, "log", Some(&rows["log"]), Some(&lost)).await.unwrap());
    assert_eq!(fill(client, "c", Some(4), 15).await.refusal(), (409, "unsupported"));
    fill(client, "c", Some(12), 19).await;
    assert_counts(client, "c", 5, 24).await;
}

#[actix_web::test]
async fn a_log_goes_on_when_a_period_ends() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    let season = json!({"metric": "COUNT(all, like, post_id)", "season": {"every": "1d", "grace": "2h"}});
    let defined = client.put("/v1/boards/cup", season).await;
    assert_eq!(defined.status, 201, "{defined:?}");
    client.put(SOURCE, json!({})).await;
    let at = |mut event: Json, at: &str| {
        event["at"] = json!(at);
        event
    };
    let first = "2026-01-02T23:59:59Z";
    client.set_clock(first).await;
    client.post("/v1/events?source=log&after=start", at(like(0), first)).await;
    client.set_clock("2026-01-03T00:30:00Z").await;
    for after in ["start", "0"] {
        let events = json!({"events": [at(like(1), first), at(like(2), "2026-01-03T00:00:01Z")]});
        let sent = client.post(&format!("/v1/events?source=log&after={after}"), events).await;
        assert_eq!((sent.status, &sent.body["source"]["reached"]), (200, &json!("2")), "{sent:?}");
    }
    let of = async |period: &str| {
        let page = client.get(&format!("/v1/boards/cup/rankings?period={period}")).await.body;
        page["items"].as_array().unwrap().iter().map(|line| line["subject"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("2026-01-02").await, ["p1", "p0"]);
    assert_eq!(of("2026-01-03").await, ["p2"]);
}

#[actix_web::test]
async fn an_event_that_may_count_later_waits() {
    let site = Site::with_board("a").await;
    let client = &site.client;
    client.put(SOURCE, json!({})).await;
    let mut early = like(2);
    early["at"] = json!("2026-01-02T10:40:00Z");
    let events = [like(1), early.clone(), like(3)];
    let path = "/v1/events?source=log&after=start";
    let receipt = client.post(path, json!({"events": events})).await.body;
    let source = json!({"name": "log", "reached": "1", "repeated": 0, "waiting": 1, "waiting_for": {"too_early": 1}, "left_out": []});
    assert_eq!((&receipt["accepted"], &receipt["source"]), (&json!(2), &source), "{receipt}");
    assert_eq!(receipt["rejected"], json!([]));
    // A stream ends where an event waits, and says where it goes on.
    let lines: Vec<_> = (0..6_000).map(|nth| if nth == 2 { early.clone() } else { like(nth) }).collect();
    let waits = ndjson(client, path, lines.clone()).await;
    assert_eq!((waits.refusal(), &waits.body["reached"]), ((503, "source_waits"), &json!("1")), "{waits:?}");
    assert_eq!((waits.header("retry-after"), &waits.body["counted_through"]), ("1", &json!(5_000)));
    client.set_clock("2026-01-02T10:40:00Z").await;
    let rest = ndjson(client, "/v1/events?source=log&after=1", lines.into_iter().skip(2)).await;
    assert_eq!((rest.status, &rest.body["source"]["waiting"]), (200, &json!(0)), "{rest:?}");
    assert_eq!(client.get("/v1/boards/a/rankings?limit=1").await.body["total"], 6_000 - 1);
    assert!(scores(client, "a").await.values().all(|score| *score == 1));
}

#[actix_web::test]
async fn a_new_board_joins_where_the_source_is() {
    let site = Site::with_board("a").await;
    let (client, other) = (&site.client, site.second_instance());
    client.put(SOURCE, json!({"boards": ["a", "b", "c-*"]})).await;
    send(client, Some(4), 9).await;
    other.define("b", METRIC, "1h").await;
    other.define("x", METRIC, "1h").await;
    // A rewind does not take it back.
    send(client, Some(0), 7).await;
    assert_eq!(joined(client).await["b"], ("9".to_owned(), "9".to_owned()));
    send(&other, Some(7), 12).await;
    assert_counts(client, "a", 5, 12).await;
    assert_counts(client, "b", 10, 12).await;
    assert_eq!(scores(client, "x").await, BTreeMap::new(), "it is none of the source");
    // A board of the same name is a new one.
    other.delete("/v1/boards/b").await;
    other.define("b", METRIC, "1h").await;
    send(client, Some(12), 14).await;
    assert_counts(client, "b", 13, 14).await;
    // One that leaves and is added again goes on where the source is, and counts nothing twice.
    client.put(SOURCE, json!({"boards": ["a"]})).await;
    send(&other, Some(14), 19).await;
    assert_counts(client, "b", 13, 14).await;
    other.put(SOURCE, json!({"boards": ["*"]})).await;
    assert_eq!(joined(client).await.len(), 2);
    send(client, Some(10), 24).await;
    let mut counted: BTreeMap<_, _> = [13, 14].map(|position| (format!("p{position}"), 1)).into();
    counted.extend((20..=24).map(|position| (format!("p{position}"), 1)));
    assert_eq!(scores(client, "b").await, counted);
    assert_counts(client, "a", 5, 24).await;
    assert_counts(client, "x", 20, 24).await;
    // A source that is removed and defined again is another one.
    client.delete(SOURCE).await;
    client.put(SOURCE, json!({})).await;
    send(&other, Some(23), 24).await;
    assert_eq!(scores(client, "a").await["p24"], 2);
}

#[actix_web::test]
async fn a_board_is_filled_with_what_was_in_the_log_before() {
    let site = Site::with_board("a").await;
    let (client, other) = (&site.client, site.second_instance());
    client.put(SOURCE, json!({"boards": ["a", "b", "c", "first", "new"]})).await;
    send(client, None, 49).await;
    client.define("b", METRIC, "1h").await;
    assert!(fill(client, "b", None, 9).await.body["detail"].as_str().unwrap().contains("without 'fill'"));
    client.define("c", METRIC, "1h").await;
    let first = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "mode": "from_first", "ranked": false});
    assert_eq!(client.put("/v1/boards/first", first).await.status, 201);
    send(client, Some(49), 59).await;
    let source = |answer: &Answer| {
        let source = &answer.body["source"];
        (source["reached"].as_str().unwrap_or("?").to_owned(), source["filled"].clone(), source["repeated"].clone())
    };
    let begun = fill(client, "b", None, 29).await;
    assert_eq!((begun.status, &begun.body["accepted"]), (200, &json!(30)), "{begun:?}");
    assert_eq!(source(&begun), ("29".to_owned(), json!(false), json!(0)));
    let again = fill(&other, "b", Some(9), 39).await;
    assert_eq!((&again.body["accepted"], source(&again)), (&json!(10), ("39".to_owned(), json!(false), json!(20))));
    let gap = fill(client, "b", Some(41), 45).await;
    assert_eq!((gap.refusal(), &gap.body["reached"]), ((409, "source_behind"), &json!("39")));
    let state = client.get(SOURCE).await.body;
    let shown =
        json!({"board": "b", "from": "49", "reached": "59", "fill": {"from": "start", "until": "49", "reached": "39"}});
    assert_eq!((&state["reached"], &state["joined"][1]), (&json!("59"), &shown));
    let lines = (40..70).map(like);
    let ended = ndjson(&other, "/v1/events?source=log&after=39&fill=b", lines).await;
    assert_eq!((&ended.body["accepted"], source(&ended)), (&json!(10), ("49".to_owned(), json!(true), json!(20))));
    let nothing = fill(client, "b", None, 59).await;
    assert_eq!((&nothing.body["accepted"], source(&nothing)), (&json!(0), ("49".to_owned(), json!(true), json!(60))));
    send(client, Some(59), 64).await;
    for board in ["a", "b"] {
        assert_counts(client, board, 0, 64).await;
    }
    // A fill goes on from where it has begun, not from before.
    fill(client, "c", Some(19), 49).await;
    assert_counts(client, "c", 20, 64).await;
    for (board, says) in [
        ("c", "cannot begin earlier"),
        ("first", "order of events"),
        ("nobody", "no such board"),
        ("new", "no such board"),
    ] {
        let refused = fill(client, board, None, 9).await;
        assert_eq!((refused.refusal(), &refused.body["board"]), ((409, "unsupported"), &json!(board)));
        assert!(refused.body["detail"].as_str().unwrap().contains(says), "{refused:?}");
    }
    client.define("new", METRIC, "1h").await;
    send(client, Some(64), 66).await;
    let path = "/v1/events?source=log&after=start&fill=new";
    let asked = client.post(path, json!({"events": []})).await;
    assert_eq!((asked.status, &asked.body["source"]["reached"]), (200, &Json::Null), "it does not begin the fill");
    let mut timeless = like(3);
    timeless["at"] = Json::Null;
    let refused = client.post(path, json!({"events": [like(2), timeless, like(4)]})).await;
    assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("at")));
    client.post(path, json!({"events": [like(2), like(4)]})).await;
    let counted: BTreeMap<_, _> = [2, 4, 65, 66].map(|position| (format!("p{position}"), 1)).into();
    assert_eq!(scores(client, "new").await, counted);
    // What it has counted is not one part of the log any more.
    client.put(SOURCE, json!({"boards": ["a"]})).await;
    client.put(SOURCE, json!({})).await;
    client.define("b2", METRIC, "1h").await;
    send(client, Some(66), 67).await;
    client.put(SOURCE, json!({"boards": ["a"]})).await;
    client.put(SOURCE, json!({})).await;
    assert!(fill(client, "b2", None, 9).await.body["detail"].as_str().unwrap().contains("joined it again"));
    assert_eq!(client.post("/v1/events?fill=b", like(1)).await.body["field"], "source");
}

#[actix_web::test]
async fn only_listed_keys_send_to_a_source() {
    let [listed, unlisted, narrow] = [&["*"][..], &["*"], &["shop-*"]].map(|boards| key(&[Scope::Write], boards));
    let manager = key(&[Scope::Manage, Scope::Write], &["shop-*"]);
    let page = key_of(rolltop::access::KeyKind::Publishable, &[Scope::Write], &["*"], &["*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&listed, &unlisted, &narrow, &manager, &page])).await;
    let ids = [&listed, &narrow, &page].map(|key| key.key.id.to_string());
    guarded.site.client.put(SOURCE, json!({"keys": ids})).await;
    let path = "/v1/events?source=log&after=start";
    for (key, answer) in [
        (&listed, None),
        (&unlisted, Some("log")),
        (&narrow, Some("log")),
        (&manager, Some("log")),
        (&page, Some("log")),
    ] {
        let sent = guarded.post(key, path, &like(1)).await;
        match answer {
            None => assert_eq!(sent.status, 200, "{sent:?}"),
            Some(source) => assert_eq!((sent.refusal(), &sent.body["source"]), ((403, "forbidden"), &json!(source))),
        }
    }
    // A manager sends to sources of its own boards, and changes only those.
    let put = async |source: &str, body: Json| {
        guarded.send(Some(&manager.bearer()), Method::PUT, &format!("/v1/sources/{source}"), Some(&body)).await
    };
    assert_eq!(put("own", json!({"boards": ["shop-*"]})).await.status, 201);
    assert_eq!(guarded.post(&manager, "/v1/events?source=own&after=start", &like(1)).await.status, 200);
    assert_eq!(put("own", json!({"boards": ["*"]})).await.refusal(), (403, "forbidden"));
    assert_eq!(put("log", json!({"boards": ["shop-*"]})).await.refusal(), (403, "forbidden"));
    assert_eq!(guarded.send(Some(&manager.bearer()), Method::DELETE, SOURCE, None).await.refusal(), (403, "forbidden"));
}

#[actix_web::test]
async fn a_store_that_fails_in_the_middle_loses_nothing_and_counts_nothing_twice() {
    let faults = [
        Fault::Unreachable,
        Fault::TimedOut,
        Fault::Overloaded,
        Fault::ReadOnly,
        Fault::Backend,
        Fault::BoardChanged,
        Fault::ClockDoubted,
        Fault::Corrupt,
    ];
    for fault in faults {
        let site = Site::with_board("a").await;
        let client = &site.client;
        client.define("b", METRIC, "1h").await;
        client.put(SOURCE, json!({})).await;
        let mut at = None;
        for calls in 0..40 {
            match calls % 2 {
                0 => site.switch.fail_after_writes(fault, calls / 2),
                _ => site.switch.fail_after_reads(fault, calls / 2),
            }
            let sent = send(client, at, at.map_or(10, |at| at + 10)).await;
            site.switch.work();
            if calls == 20 {
                client.define("c", METRIC, "1h").await;
            }
            let reached = client.get(SOURCE).await.body["reached"].clone();
            let left_out = sent.body["source"]["left_out"].as_array().is_some_and(|boards| !boards.is_empty());
            if sent.status == 200 && !left_out {
                assert_eq!(sent.body["source"]["reached"], reached, "{fault:?} {sent:?}");
            }
            at = reached.as_str().and_then(|text| text.parse::<u64>().ok());
        }
        let (from, last) = (joined(client).await["c"].0.parse::<u64>().unwrap(), at.unwrap());
        assert!(last > from && from > 50, "{fault:?}: {from} {last}");
        for board in ["a", "b"] {
            assert_counts(client, board, 0, last).await;
        }
        assert_counts(client, "c", from + 1, last).await;
    }
}

/// The crossings: boards come, go, change and leave while several instances send parts of the log from anywhere.
#[actix_web::test]
async fn whatever_boards_do_meanwhile_each_event_counts_once_from_where_they_joined() {
    let seed = crate::drawn::seed();
    for seed in seed..seed + 12 {
        let mut random = StdRng::seed_from_u64(seed);
        let site = Site::with_board("a").await;
        let instances = [site.client.clone(), site.second_instance(), site.second_instance()];
        site.client.put(SOURCE, json!({})).await;
        let mut reached: Option<u64> = None;
        // The boards that may have left the source, so that they have counted more than one part of the log.
        let mut left = BTreeSet::new();
        for step in 0..60 {
            let client = instances.choose(&mut random).unwrap();
            let board = *["a", "b", "c"].choose(&mut random).unwrap();
            match random.random_range(0..16) {
                14 | 15 => {
                    let after = [None, Some(3), Some(20)].choose(&mut random).copied().unwrap();
                    let filled =
                        fill(client, board, after, after.map_or(0, |after| after + 1) + random.random_range(0..60))
                            .await;
                    assert!(matches!(filled.status, 200 | 409), "seed {seed}: {filled:?}");
                }

                0 => drop(client.define(board, METRIC, "1h").await),
                1 if board != "a" => {
                    client.delete(&format!("/v1/boards/{board}")).await;
                    left.remove(board);
                }
                2 => {
                    let next = json!({"metric": "COUNT(48h, like, post_id)", "slot": "1h"});
                    client.put(&format!("/v1/boards/{board}/next"), next).await;
                }
                3 => drop(client.post(&format!("/v1/boards/{board}/next/promote?early=true"), json!({})).await),
                4 => drop(client.delete(&format!("/v1/boards/{board}/previous")).await),
                5 => {
                    let boards = *[&["*"][..], &["a"], &["a", "b"]].choose(&mut random).unwrap();
                    assert_eq!(client.put(SOURCE, json!({"boards": boards})).await.status, 200);
                    left.extend(["b", "c"]);
                }
                _ => {
                    let after = match (reached, random.random_range(0..4)) {
                        (Some(reached), 0) => reached.checked_sub(random.random_range(1..30)),
                        (reached, _) => reached,
                    };
                    let through = after.map_or(0, |after| after + 1) + random.random_range(0..20);
                    let sent = send(client, after, through).await;
                    assert!(matches!(sent.status, 200 | 409), "seed {seed}: {sent:?}");
                    if sent.status == 409 {
                        assert_eq!(sent.code(), "source_behind", "seed {seed}: {sent:?}");
                    }
                    let place =
                        if sent.status == 200 { &sent.body["source"]["reached"] } else { &sent.body["reached"] };
                    reached = place.as_str().unwrap().parse().ok();
                }
            }
            let state = client.get(SOURCE).await.body;
            let after = |position: &Json| position.as_str().unwrap().parse::<u64>().map_or(0, |position| position + 1);
            for one in state["joined"].as_array().unwrap() {
                let board = one["board"].as_str().unwrap();
                let mut counts = (after(&one["from"])..after(&one["reached"])).collect::<Vec<_>>();
                if let Some(fill) = one.get("fill") {
                    counts.extend(after(&fill["from"])..after(&fill["reached"]));
                }
                let counted = scores(client, board).await;
                assert!(counted.values().all(|score| *score == 1), "seed {seed} step {step}: {one} {counted:?}");
                let missing: Vec<_> = counts.iter().filter(|n| !counted.contains_key(&format!("p{n}"))).collect();
                assert!(missing.is_empty(), "seed {seed} step {step}: {one} lacks {missing:?}");
                let is_one_part = !left.contains(board);
                assert!(!is_one_part || counted.len() == counts.len(), "seed {seed} step {step}: {one} {counted:?}");
            }
        }
    }
}
