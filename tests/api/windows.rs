//! Windows of every metric, and of boards without a ranking.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;

async fn define(site: &Site, board: &str, definition: Value) {
    let answer = site.client.put(&format!("/v1/boards/{board}"), definition).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// Records events of one type on every board that counts it.
async fn record_events(site: &Site, kind: &str, events: &[(&str, Value)]) {
    for (at, fields) in events {
        let event = json!({"rule": "1 = 1", "fields": fields, "type": kind, "at": at, "record": true});
        let answer = site.client.post("/v1/evaluate", event).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

async fn window(site: &Site, board: &str, subject: &str, query: &str) -> Answer {
    site.client.get(&format!("/v1/boards/{board}/subjects/{subject}/window{query}")).await
}

/// The clock reads 10:07 and slots are an hour long: the window reaches 53 minutes into the oldest.
#[actix_web::test]
async fn a_weighted_edge_counts_the_remaining_share_of_the_oldest_slot() {
    let site = Site::new().await;
    define(&site, "full", json!({"metric": "COUNT(3h, like, post_id)", "slot": "1h", "cover": "full"})).await;
    for (at, amount) in [("07:30", 60), ("08:30", 600), ("09:30", 6_000), ("10:06", 60_000)] {
        site.client.add("full", json!({"subject": "p", "amount": amount, "at": format!("2026-01-02T{at}:00Z")})).await;
    }
    for (query, value, slots) in [
        ("?last=1h&edge=weighted", json!(60_000 + 5_300), 2),
        ("?last=61m&edge=weighted", json!(66_000 + 530), 3),
        ("?last=3h&edge=weighted", json!(66_600 + 53), 4),
        ("?edge=weighted", json!(66_600 + 53), 4),
        // Half of the slot from 08:00 lies after 08:30.
        ("?from=2026-01-02T08:30:00Z&edge=weighted", json!(66_000 + 300), 3),
        // Never shorter than asked for: the hour before 10:07 begins in the slot from 09:00.
        ("?last=1h&edge=slots", json!(66_000), 2),
        ("?last=1h", json!(66_000), 2),
        ("?last=3h", json!(66_660), 4),
    ] {
        let answer = window(&site, "full", "p", query).await;
        assert_eq!((&answer.body["value"], &answer.body["count"]), (&value, &value), "{query}: {answer:?}");
        assert_eq!(answer.body["window"]["slots"], slots, "{query}");
        let edge = if query.contains("weighted") { "weighted" } else { "slots" };
        assert_eq!(answer.body["edge"], edge, "{query}");
    }
    site.client.set_clock("2026-01-02T10:10:00Z").await;
    let thirds = window(&site, "full", "p", "?last=2h&edge=weighted").await;
    assert_eq!(thirds.body["value"], json!(66_500), "{thirds:?}");
    assert_eq!(window(&site, "full", "p", "?last=4h&edge=weighted").await.refusal(), (422, "beyond_window"));
    assert_eq!(window(&site, "full", "p", "?last=1h&edge=round").await.refusal(), (422, "invalid_field"));
}

#[actix_web::test]
async fn edge_and_as_of_are_refused_where_they_are_not_supported() {
    let site = Site::new().await;
    let metric = "COUNT(3h, login, device_id)";
    let distinct = "COUNT_DISTINCT(3h, login, device_id, user_id)";
    for (board, definition) in [
        ("ranked", json!({"metric": metric, "slot": "1h"})),
        ("unranked", json!({"metric": metric, "slot": "1h", "ranked": false})),
        ("distinct", json!({"metric": distinct, "slot": "1h", "ranked": false})),
        ("max", json!({"metric": "MAX(3h, bid, amount, item)", "slot": "1h", "cover": "full"})),
        ("first", json!({"metric": metric, "ranked": false, "mode": "from_first"})),
    ] {
        define(&site, board, definition).await;
    }
    let as_of = "?as_of=2026-01-02T09:00:00Z";
    for (board, query, code, says) in [
        ("ranked", as_of, "as_of_unsupported", "ranked board"),
        ("distinct", as_of, "as_of_unsupported", "last seen"),
        ("first", as_of, "as_of_unsupported", "windows that have ended"),
        ("ranked", "?edge=weighted", "edge_unsupported", "cover = \"full\""),
        ("max", "?edge=weighted", "edge_unsupported", "MIN and MAX"),
        ("first", "?edge=weighted", "edge_unsupported", "no slots"),
        ("first", "?last=1h", "invalid_field", "3h long"),
        ("first", "?from=2026-01-02T09:00:00Z", "invalid_field", "3h long"),
        ("first", "?last=181m", "invalid_field", "3h long"),
        ("unranked", "?as_of=yesterday", "invalid_field", "as_of"),
        ("unranked", "?as_of=2026-01-02T09:00:00Z&from=2026-01-02T09:30:00Z", "invalid_field", "from"),
    ] {
        let answer = window(&site, board, "x", query).await;
        let status = if code == "invalid_field" { 422 } else { 409 };
        assert_eq!(answer.refusal(), (status, code), "{board}{query}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(says), "{board}{query}: {answer:?}");
    }
    for last in ["3h", "180m"] {
        assert_eq!(window(&site, "first", "x", &format!("?last={last}")).await.status, 200, "{last}");
    }
}

#[actix_web::test]
async fn an_unranked_board_has_subjects_but_no_rankings() {
    let site = Site::new().await;
    define(&site, "u", json!({"metric": "COUNT(3h, login, device_id)", "slot": "1h", "ranked": false})).await;
    let now = "2026-01-02T10:06:00Z";
    record_events(&site, "login", &[(now, json!({"device_id": "d1"})), (now, json!({"device_id": "d1"}))]).await;
    let standing = site.client.get("/v1/boards/u/subjects/d1").await.body;
    assert_eq!(
        (&standing["score"], &standing["rank"], &standing["percentile"], &standing["total"]),
        (&json!(2), &Value::Null, &Value::Null, &json!(0))
    );
    let slots = json!([{"from": "2026-01-02T10:00:00Z", "to": "2026-01-02T11:00:00Z", "count": 2}]);
    assert_eq!(standing["slots"], slots);
    assert_eq!(window(&site, "u", "d1", "?last=1h").await.body["value"], 2);
    assert_eq!(site.client.get("/v1/boards/u/rankings").await.refusal(), (409, "not_ranked"));
    assert_eq!(site.client.get("/v1/boards/u/subjects/d1/neighbors").await.refusal(), (409, "not_ranked"));
    let lookup = site.client.post("/v1/boards/u/rankings/lookup", json!({"subjects": ["d1"]})).await;
    assert_eq!(lookup.refusal(), (409, "not_ranked"));
    assert_eq!(site.client.get("/v1/boards/u/subjects/d1/values").await.refusal(), (409, "no_values"));
    for call in ["rollover", "audit"] {
        assert_eq!(site.client.post(&format!("/v1/boards/u/{call}"), json!({})).await.status, 200, "{call}");
    }
    let removed = site.client.delete("/v1/boards/u/subjects/d1").await;
    assert_eq!((&removed.body["score"], &removed.body["live_slots"]), (&json!(2), &json!(1)));
    assert_eq!(site.client.score("u", "d1").await, 0);
}

#[actix_web::test]
async fn as_of_reads_a_past_window() {
    let site = Site::new().await;
    let definition = json!({"metric": "COUNT(2h, login, device_id)", "slot": "1h", "ranked": false, "keep": "6h"});
    define(&site, "u", definition).await;
    for (clock, count) in [("10:30", 1), ("11:30", 2), ("12:30", 4), ("13:30", 8)] {
        site.client.set_clock(&format!("2026-01-02T{clock}:00Z")).await;
        site.client.add("u", json!({"subject": "d", "amount": count})).await;
    }
    for (query, value, from, to) in [
        ("", 12, "12", "14"),
        ("?as_of=2026-01-02T13:00:00Z", 12, "12", "14"),
        ("?as_of=2026-01-02T12:59:59.999Z", 6, "11", "13"),
        ("?as_of=2026-01-02T12:00:00Z&last=1h", 4, "12", "13"),
        ("?as_of=2026-01-02T11:30:00Z", 3, "10", "12"),
        ("?as_of=2026-01-02T11:30:00Z&from=2026-01-02T11:10:00Z", 2, "11", "12"),
    ] {
        let answer = window(&site, "u", "d", query).await;
        assert_eq!(answer.body["value"], value, "{query}: {answer:?}");
        let bounds = (format!("2026-01-02T{from}:00:00Z"), format!("2026-01-02T{to}:00:00Z"));
        assert_eq!(
            (&answer.body["window"]["from"], &answer.body["window"]["to"]),
            (&json!(bounds.0), &json!(bounds.1))
        );
        // The instant that the answer describes.
        let now = "2026-01-02T13:30:00Z";
        let as_of = query.strip_prefix("?as_of=").map_or(now, |rest| rest.split('&').next().unwrap());
        assert_eq!(answer.body["as_of"], as_of, "{query}");
    }
    for query in ["?as_of=2026-01-02T13:30:01Z", "?as_of=2026-01-02T08:59:59Z"] {
        let answer = window(&site, "u", "d", query).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "beyond_window"), &json!("as_of")), "{query}");
        // What is kept, and not where the window begins.
        assert_eq!(answer.body["floor"], "2026-01-02T08:00:00Z", "{query}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains("from 2026-01-02T08:00:00Z until now"), "{answer:?}");
    }
}

#[actix_web::test]
async fn a_mean_is_shown_with_sum_and_count() {
    let site = Site::new().await;
    let definition = json!({"metric": "AVG(3h, rating, stars, film)", "slot": "1h", "decimals": 1, "min_samples": 3});
    define(&site, "films", definition).await;
    let rated = |at: &'static str, stars: f64| (at, json!({"film": "f", "stars": stars}));
    record_events(&site, "rating", &[rated("2026-01-02T09:30:00Z", 2.5), rated("2026-01-02T10:01:00Z", 4.0)]).await;
    let too_few = site.client.get("/v1/boards/films/subjects/f").await.body;
    assert_eq!((&too_few["score"], &too_few["rank"]), (&Value::Null, &Value::Null), "{too_few}");
    record_events(&site, "rating", &[rated("2026-01-02T10:02:00Z", 2.5)]).await;
    let standing = site.client.get("/v1/boards/films/subjects/f").await.body;
    assert_eq!(standing["rank"], 1);
    assert_eq!(standing["score"], 3);
    assert_eq!(
        standing["slots"],
        json!([
            {"from": "2026-01-02T09:00:00Z", "to": "2026-01-02T10:00:00Z", "count": 1, "sum": 2.5, "value": 2.5},
            {"from": "2026-01-02T10:00:00Z", "to": "2026-01-02T11:00:00Z", "count": 2, "sum": 6.5, "value": 3.25},
        ])
    );
    let whole = window(&site, "films", "f", "").await.body;
    assert_eq!((&whole["count"], &whole["sum"], &whole["value"]), (&json!(3), &json!(9), &json!(3)));
    let absent = window(&site, "films", "absent", "").await.body;
    assert_eq!((&absent["count"], &absent["sum"], &absent["value"]), (&json!(0), &json!(0), &Value::Null));
}

#[actix_web::test]
async fn a_prior_is_part_of_values_and_not_of_sums_and_counts() {
    let site = Site::new().await;
    let prior = json!({"mean": 3.5, "weight": 10});
    let definition = json!({"metric": "AVG(3h, rating, stars, film)", "slot": "1h", "decimals": 1, "prior": prior});
    define(&site, "films", definition).await;
    assert_eq!(site.client.get("/v1/boards/films").await.body["prior"], prior);
    let rated = |stars: f64| ("2026-01-02T09:30:00Z", json!({"film": "f", "stars": stars}));
    record_events(&site, "rating", &[rated(5.0), rated(4.0)]).await;
    let standing = site.client.get("/v1/boards/films/subjects/f").await.body;
    assert_eq!((&standing["score"], &standing["slots"][0]["value"]), (&json!(44.0 / 12.0), &json!(4.5)), "{standing}");
    let whole = window(&site, "films", "f", "").await.body;
    assert_eq!((&whole["count"], &whole["sum"], &whole["value"]), (&json!(2), &json!(9), &json!(44.0 / 12.0)));
    let queried = json!({"queries": [{"metric": "AVG(3h, rating, stars, film)", "fields": {"film": "f"}}]});
    let answer = site.client.post("/v1/query", queried).await.body;
    assert_eq!(answer["answers"][0]["value"], json!(44.0 / 12.0), "{answer}");
    for (prior, says) in [
        (json!({"mean": 3.55, "weight": 1}), "times 'weight'"),
        (json!({"mean": 3.5, "weight": 0}), "from 1 to 1000000"),
        (json!({"mean": "3", "weight": 1}), "is not a number"),
        (json!({"mean": 3}), "weight"),
    ] {
        let definition = json!({"metric": "AVG(3h, rating, stars, film)", "slot": "1h", "decimals": 1, "prior": prior});
        let refused = site.client.put("/v1/boards/other", definition).await;
        assert!(refused.status == 422 || refused.status == 400, "{refused:?}");
        assert!(refused.text.contains(says), "{refused:?}");
    }
    let definition = json!({"metric": "COUNT(3h, rating, film)", "slot": "1h", "prior": prior});
    let refused = site.client.put("/v1/boards/other", definition).await;
    assert_eq!((refused.status, &refused.body["field"]), (422, &json!("prior")), "{refused:?}");
}

#[actix_web::test]
async fn extremes_and_estimates_show_a_value_for_each_slot() {
    let site = Site::new().await;
    define(&site, "bids", json!({"metric": "MAX(3h, bid, amount, item)", "slot": "1h"})).await;
    define(&site, "bidders", json!({"metric": "APPROX_COUNT_DISTINCT(3h, bid, item, user)", "slot": "1h"})).await;
    let bid = |at: &'static str, amount: i64, user: &str| (at, json!({"item": "i", "amount": amount, "user": user}));
    let (nine, ten) = ("2026-01-02T09:30:00Z", "2026-01-02T10:01:00Z");
    record_events(&site, "bid", &[bid(nine, 70, "a"), bid(nine, 50, "b"), bid(ten, 60, "a"), bid(ten, -5, "c")]).await;
    let bids = site.client.get("/v1/boards/bids/subjects/i").await.body;
    let slot = |hour: &str, end: &str, value: i64| json!({"from": format!("2026-01-02T{hour}:00:00Z"), "to": format!("2026-01-02T{end}:00:00Z"), "value": value});
    assert_eq!((&bids["score"], &bids["slots"]), (&json!(70), &json!([slot("09", "10", 70), slot("10", "11", 60)])));
    assert_eq!(bids.get("standard_error"), None);
    assert_eq!(window(&site, "bids", "i", "?last=1h").await.body["value"], 60);
    let absent = window(&site, "bids", "absent", "").await.body;
    assert_eq!((&absent["value"], absent.get("count")), (&Value::Null, None));
    let bidders = site.client.get("/v1/boards/bidders/subjects/i").await.body;
    assert_eq!((&bidders["score"], &bidders["standard_error"]), (&json!(3), &json!(0.023)), "{bidders}");
    assert_eq!(bidders["slots"], json!([slot("09", "10", 2), slot("10", "11", 2)]));
    let last = window(&site, "bidders", "i", "?last=1h").await.body;
    assert_eq!((&last["count"], &last["value"], &last["standard_error"]), (&json!(2), &json!(2), &json!(0.023)));
}

#[actix_web::test]
async fn distinct_values_are_paged_with_their_last_seen_times() {
    let site = Site::new().await;
    let metric = "COUNT_DISTINCT(3h, login, device_id, user_id)";
    define(&site, "users", json!({"metric": metric, "slot": "1h", "max_values": 3})).await;
    let login = |at: &'static str, user: &str| (at, json!({"device_id": "d/1", "user_id": user}));
    let (eight, nine, ten) = ("2026-01-02T08:30:00Z", "2026-01-02T09:30:00Z", "2026-01-02T10:01:00Z");
    record_events(&site, "login", &[login(eight, "a"), login(nine, "b"), login(ten, "a"), login(ten, "c")]).await;
    let standing = site.client.get("/v1/boards/users/subjects/d%2F1").await.body;
    assert_eq!((&standing["score"], &standing["capped"]), (&json!(3), &json!(false)), "{standing}");
    assert_eq!(standing["slots"][0]["count"], 1);
    let first = site.client.get("/v1/boards/users/subjects/d%2F1/values?limit=2").await.body;
    assert_eq!(
        first,
        json!({
            "board": "users", "subject": "d/1",
            "window": {"from": "2026-01-02T08:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 3},
            "as_of": "2026-01-02T10:07:00Z", "total": 3, "capped": false,
            "items": [{"value": "c", "last_seen": ten}, {"value": "a", "last_seen": ten}],
            "next": first["next"],
        })
    );
    let cursor = first["next"].as_str().unwrap();
    for page in [format!("cursor={cursor}"), "offset=2".to_owned(), format!("cursor={cursor}&limit=1")] {
        let second = site.client.get(&format!("/v1/boards/users/subjects/d%2F1/values?{page}")).await.body;
        assert_eq!(second["items"], json!([{"value": "b", "last_seen": nine}]), "{page}");
        assert_eq!(second["next"], Value::Null);
    }
    record_events(&site, "login", &[login(ten, "d")]).await;
    let capped = site.client.get("/v1/boards/users/subjects/d%2F1").await.body;
    assert_eq!((&capped["score"], &capped["capped"]), (&json!(3), &json!(true)), "{capped}");
    assert_eq!(window(&site, "users", "d%2F1", "?last=1h").await.body["capped"], false);
    let whole = window(&site, "users", "d%2F1", "").await.body;
    assert_eq!((&whole["count"], &whole["capped"]), (&json!(3), &json!(true)));
    for query in ["limit=0", "limit=1001", "offset=-1", "cursor=5", &format!("cursor={cursor}&offset=0")] {
        let answer = site.client.get(&format!("/v1/boards/users/subjects/x/values?{query}")).await;
        assert_eq!(answer.refusal(), (422, "invalid_field"), "{query}");
    }
    // A cursor of a ranking is none of a list of values, and the reverse.
    let board = json!({"metric": "COUNT_DISTINCT(3h, login, device_id, user_id)", "slot": "1h"});
    define(&site, "other", board).await;
    let answer = site.client.get(&format!("/v1/boards/other/rankings?cursor={cursor}")).await;
    assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("cursor")));
    let stale = site.client.get(&format!("/v1/boards/other/subjects/x/values?cursor={cursor}")).await;
    assert_eq!(stale.refusal(), (409, "stale_cursor"));
}

#[actix_web::test]
async fn pages_of_values_skip_and_repeat_nothing_that_is_not_seen_again() {
    let site = Site::new().await;
    let metric = "COUNT_DISTINCT(3h, login, device_id, user_id)";
    define(&site, "users", json!({"metric": metric, "slot": "1h", "ranked": false})).await;
    let login = |at: &'static str, user: &str| (at, json!({"device_id": "d", "user_id": user}));
    let (eight, ten) = ("2026-01-02T08:30:00Z", "2026-01-02T10:01:00Z");
    let mut users: Vec<String> = (0..60).map(|nth| format!("u{nth:02}")).collect();
    record_events(&site, "login", &users.iter().map(|user| login(eight, user)).collect::<Vec<_>>()).await;
    let (mut read, mut path) = (Vec::new(), Some("/v1/boards/users/subjects/d/values?limit=20".to_owned()));
    while let Some(next) = path.take() {
        let page = site.client.get(&next).await.body;
        let items = page["items"].as_array().unwrap();
        read.extend(items.iter().map(|item| item["value"].as_str().unwrap().to_owned()));
        // One that was read, one that was not, and a new one are seen before the next page is read.
        let (last, first) = (items.last().unwrap()["value"].as_str().unwrap(), &users[usize::from(read.len() < 40)]);
        record_events(&site, "login", &[login(ten, last), login(ten, first), login(ten, &format!("new{next}"))]).await;
        path =
            page["next"].as_str().map(|cursor| format!("/v1/boards/users/subjects/d/values?limit=20&cursor={cursor}"));
    }
    // u01 and u00 moved to the beginning of the list before the page that they were on.
    let mut expected = users.split_off(2);
    expected.reverse();
    assert_eq!(read, expected);
}

#[actix_web::test]
async fn a_from_first_window_begins_with_the_first_event_of_the_subject() {
    let site = Site::new().await;
    let definition =
        json!({"metric": "SUM(1h, transfer, amount, customer)", "decimals": 2, "ranked": false, "mode": "from_first"});
    define(&site, "transfers", definition).await;
    let absent = window(&site, "transfers", "c", "").await.body;
    let would_be = json!({"from": "2026-01-02T10:07:00Z", "to": "2026-01-02T11:07:00Z", "slots": 1});
    assert_eq!((&absent["value"], &absent["window"]), (&json!(0), &would_be));
    let paid = |at: &'static str, amount: f64| (at, json!({"customer": "c", "amount": amount}));
    record_events(&site, "transfer", &[paid("2026-01-02T10:05:00Z", 10.5)]).await;
    site.client.set_clock("2026-01-02T11:04:59Z").await;
    record_events(&site, "transfer", &[paid("2026-01-02T11:04:58Z", 20.25)]).await;
    let own = window(&site, "transfers", "c", "?last=1h").await.body;
    let bounds = json!({"from": "2026-01-02T10:05:00Z", "to": "2026-01-02T11:05:00Z", "slots": 1});
    assert_eq!((&own["value"], &own["window"]), (&json!(30.75), &bounds));
    let standing = site.client.get("/v1/boards/transfers/subjects/c").await.body;
    assert_eq!((&standing["score"], &standing["window"]), (&json!(30.75), &bounds));
    let slot = json!({"from": "2026-01-02T10:05:00Z", "to": "2026-01-02T11:05:00Z", "count": 30.75});
    assert_eq!(standing["slots"], json!([slot]));
    // A rule about just this window is served by it.
    let rule = json!({"rule": "SUM(60m, transfer, amount, customer) > 30", "fields": {"customer": "c"}});
    assert_eq!(site.client.post("/v1/evaluate", rule).await.body["hit"], true);
    site.client.set_clock("2026-01-02T11:05:00Z").await;
    assert_eq!(window(&site, "transfers", "c", "").await.body["value"], 0);
}
