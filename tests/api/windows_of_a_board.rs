//! Boards with further windows.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;

/// The windows of the board in these tests, the main one first.
pub const WINDOWS: [&str; 4] = ["24h", "1h", "7d", "all"];

pub fn definition() -> Value {
    json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "windows": ["1h/1m", "7d/6h", "all"]})
}

/// A board `tabs` with four windows, without data.
pub async fn defined() -> Site {
    let site = Site::new().await;
    let answer = site.client.put("/v1/boards/tabs", definition()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    site
}

/// A board `tabs` on which each further window has one subject more: a within the hour, b within the day, c within the
/// week, d of long ago.
async fn filled() -> Site {
    let site = defined().await;
    let like = json!({"type": "like", "fields": {"post_id": "a"}, "at": "2026-01-02T10:05:00Z", "id": "e-1"});
    for accepted in [1, 0] {
        let answer = site.client.post("/v1/events", like.clone()).await;
        assert_eq!(answer.body["accepted"], accepted, "{answer:?}");
    }
    let increments = json!({"increments": [
        {"subject": "b", "amount": 2, "at": "2026-01-02T09:00:00Z"},
        {"subject": "c", "amount": 3, "at": "2026-01-01T00:00:00Z"},
        {"subject": "d", "amount": 4, "at": "2020-01-01T00:00:00Z"},
    ]});
    let answer = site.client.add("tabs", increments).await;
    assert_eq!(answer.body["accepted"], 3, "{answer:?}");
    site
}

/// The ranking of each window of [`filled`].
const FILLED: [&str; 4] = ["b2 a1", "a1", "c3 b2 a1", "d4 c3 b2 a1"];

fn lines(items: &Value) -> String {
    let items = items.as_array().expect("lines");
    let line = |line: &Value| format!("{}{}", line["subject"].as_str().expect("a subject"), line["score"]);
    items.iter().map(line).collect::<Vec<_>>().join(" ")
}

async fn ranking(site: &Site, window: &str) -> String {
    let page = site.client.get(&format!("/v1/boards/tabs/rankings?window={window}")).await;
    assert_eq!(page.status, 200, "{page:?}");
    lines(&page.body["items"])
}

async fn rankings(site: &Site) -> [String; 4] {
    let mut found = Vec::new();
    for window in WINDOWS {
        found.push(ranking(site, window).await);
    }
    found.try_into().expect("four windows")
}

pub fn refused_window(answer: &Answer) -> &str {
    assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("window")), "{answer:?}");
    answer.body["detail"].as_str().expect("a detail")
}

#[actix_web::test]
async fn each_window_has_a_ranking_of_its_own() {
    let site = filled().await;
    assert_eq!(rankings(&site).await, FILLED);
    assert_eq!(lines(&site.client.get("/v1/boards/tabs/rankings").await.body["items"]), FILLED[0]);
    assert_eq!(ranking(&site, "168h").await, FILLED[2]);
    for (window, metric, slots, total) in [
        ("24h", "COUNT(24h, like, post_id)", 24, 2),
        ("1h", "COUNT(1h, like, post_id)", 60, 1),
        ("7d", "COUNT(7d, like, post_id)", 28, 3),
        ("all", "COUNT(all, like, post_id)", 0, 4),
    ] {
        let page = site.client.get(&format!("/v1/boards/tabs/rankings?window={window}")).await;
        assert_eq!((&page.body["metric"], &page.body["total"]), (&json!(metric), &json!(total)), "{page:?}");
        assert_eq!(page.body["window"]["slots"], slots);
        let known = [("if-none-match", page.header("etag"))];
        let path = format!("/v1/boards/tabs/rankings?window={window}");
        assert_eq!(site.client.send_with(Method::GET, &path, &known, "").await.status, 304);
        let standing = site.client.get(&format!("/v1/boards/tabs/subjects/a?window={window}")).await;
        assert_eq!((&standing.body["score"], &standing.body["rank"]), (&json!(1), &json!(total)), "{standing:?}");
        let near = site.client.get(&format!("/v1/boards/tabs/subjects/a/neighbors?window={window}")).await;
        assert_eq!(near.body["items"], page.body["items"], "{near:?}");
        let path = format!("/v1/boards/tabs/rankings/lookup?window={window}");
        let lookup = site.client.post(&path, json!({"subjects": ["a", "z"]})).await;
        assert_eq!((&lookup.body["metric"], &lookup.body["items"][0]["rank"]), (&json!(metric), &json!(total)));
        let value = site.client.get(&format!("/v1/boards/tabs/subjects/c/window?window={window}")).await;
        assert_eq!(value.body["value"], if total >= 3 { 3 } else { 0 }, "{value:?}");
    }
    // A second instance finds the windows in the store.
    let page = site.second_instance().get("/v1/boards/tabs/rankings?window=7d").await;
    assert_eq!(lines(&page.body["items"]), FILLED[2]);
}

#[actix_web::test]
async fn a_cursor_is_of_one_window() {
    let site = filled().await;
    for (window, ranking) in WINDOWS.into_iter().zip(FILLED) {
        let mut path = format!("/v1/boards/tabs/rankings?limit=1&window={window}");
        let mut found = Vec::new();
        loop {
            let page = site.client.get(&path).await;
            assert_eq!(page.status, 200, "{page:?}");
            found.push(lines(&page.body["items"]));
            let Some(next) = page.body["next"].as_str() else { break };
            // The window of a cursor need not be named, but may be.
            let window = if found.len() == 1 { "" } else { &format!("&window={window}") };
            path = format!("/v1/boards/tabs/rankings?limit=1&cursor={next}{window}");
        }
        assert_eq!(found.join(" "), ranking, "{window}");
    }
    let next = |page: Answer| page.body["next"].as_str().expect("a cursor").to_owned();
    let of_week = next(site.client.get("/v1/boards/tabs/rankings?limit=1&window=7d").await);
    let of_day = next(site.client.get("/v1/boards/tabs/rankings?limit=1").await);
    for (cursor, window, of) in [(&of_week, "24h", "7d"), (&of_week, "all", "7d"), (&of_day, "7d", "24h")] {
        let answer = site.client.get(&format!("/v1/boards/tabs/rankings?cursor={cursor}&window={window}")).await;
        let expected = format!("the cursor belongs to the window {of}, not to {window}");
        assert!(refused_window(&answer).starts_with(&expected), "{answer:?}");
    }
    let fresh = site.second_instance().get(&format!("/v1/boards/tabs/rankings?cursor={of_week}")).await;
    assert_eq!(lines(&fresh.body["items"]), "b2 a1");
    site.client.delete("/v1/boards/tabs").await;
    site.client.put("/v1/boards/tabs", definition()).await;
    for window in ["", "&window=7d"] {
        let stale = site.client.get(&format!("/v1/boards/tabs/rankings?cursor={of_week}{window}")).await;
        assert_eq!(stale.refusal(), (409, "stale_cursor"), "{window}");
    }
}

#[actix_web::test]
async fn exports_are_of_the_chosen_window() {
    let site = filled().await;
    for (window, ranking) in WINDOWS.into_iter().zip(FILLED) {
        let path = format!("/v1/boards/tabs/rankings?window={window}");
        let answer = site.client.send_with(Method::GET, &path, &[("accept", "application/x-ndjson")], "").await;
        let mut found: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let end = found.pop().expect("a last line");
        assert_eq!(lines(&Value::Array(found)), ranking);
        assert_eq!(end["metric"], format!("COUNT({window}, like, post_id)"), "{end}");
    }
    // The cursor of a piece continues in its window.
    let accept = [("accept", "application/x-ndjson")];
    let piece = site.client.send_with(Method::GET, "/v1/boards/tabs/rankings?window=all&limit=2", &accept, "").await;
    let end: Value = serde_json::from_str(piece.text.lines().last().unwrap()).unwrap();
    let rest = format!("/v1/boards/tabs/rankings?cursor={}", end["next"].as_str().expect("a cursor"));
    let rest = site.client.send_with(Method::GET, &rest, &accept, "").await;
    assert_eq!(rest.text.lines().count(), 3, "{rest:?}");
}

#[actix_web::test]
async fn the_status_has_every_window() {
    let site = filled().await;
    let status = site.client.get("/v1/boards/tabs").await.body;
    assert_eq!((&status["total"], &status["floor"]), (&json!(2), &json!("2026-01-01T11:00:00Z")), "{status}");
    let windows = status["each_window"].as_array().expect("windows");
    let shown = |key: &str| windows.iter().map(|window| window[key].clone()).collect::<Vec<_>>();
    assert_eq!(shown("length"), WINDOWS);
    assert_eq!(shown("slot"), [json!("1h"), json!("1m"), json!("6h"), Value::Null]);
    assert_eq!(shown("total"), [2, 1, 3, 4]);
    assert_eq!(shown("retiring"), [0, 0, 0, 0]);
    let floors = ["2026-01-01T11:00:00Z", "2026-01-02T09:08:00Z", "2025-12-26T12:00:00Z"].map(|floor| json!(floor));
    assert_eq!(shown("floor"), [&floors[..], &[Value::Null]].concat());
    assert_eq!(windows.iter().map(|window| window["window"]["slots"].clone()).collect::<Vec<_>>(), [24, 60, 28, 0]);
    assert_eq!((&shown("slots")[0], &shown("slots")[3]), (&status["slots"], &json!([])));
    let ends = |window: usize| windows[window]["slots"].as_array().unwrap().last().map(|slot| slot["to"].clone());
    assert_eq!(
        (ends(1), ends(2)),
        (Some(json!("2026-01-02T10:06:00Z")), Some(json!("2026-01-02T12:00:00Z"))),
        "{status}"
    );
    assert_eq!(shown("retiring_slots"), vec![json!([]); 4]);
    site.client.define("one", "COUNT(24h, like, post_id)", "1h").await;
    assert_eq!(site.client.get("/v1/boards/one").await.body.get("each_window"), None);
}

#[actix_web::test]
async fn the_finest_window_answers() {
    let site = filled().await;
    for (query, slots, value) in [
        ("last=5m", 5, 1),
        ("last=1h", 60, 1),
        ("last=2h", 2, 1),
        ("last=24h", 24, 1),
        ("last=2d", 8, 1),
        ("last=7d", 28, 1),
        ("last=1h&window=24h", 1, 1),
        ("last=1h&window=7d", 1, 1),
        ("", 24, 1),
        ("window=1h", 60, 1),
        ("window=all", 0, 1),
        ("from=2026-01-02T10:00:00Z", 1, 1),
        ("from=2026-01-02T10:00:00Z&window=1h", 8, 1),
    ] {
        let answer = site.client.get(&format!("/v1/boards/tabs/subjects/a/window?{query}")).await;
        assert_eq!(
            (&answer.body["window"]["slots"], &answer.body["value"]),
            (&json!(slots), &json!(value)),
            "{query}: {answer:?}"
        );
    }
    let long = site.client.get("/v1/boards/tabs/subjects/a/window?last=8d").await;
    assert_eq!((long.refusal().1, &long.body["maximum"]), ("beyond_window", &json!("7d")), "{long:?}");
    let long = site.client.get("/v1/boards/tabs/subjects/a/window?last=2h&window=1h").await;
    assert_eq!((long.refusal().1, &long.body["maximum"]), ("beyond_window", &json!("1h")), "{long:?}");
    let fields = json!({"post_id": "c"});
    let queries = json!({"queries": [
        {"metric": "COUNT(30m, like, post_id)", "fields": fields},
        {"metric": "COUNT(24h, like, post_id)", "fields": fields},
        {"metric": "COUNT(3d, like, post_id)", "fields": fields},
        {"metric": "COUNT(all, like, post_id)", "fields": fields},
        {"board": "tabs", "subject": "c", "window": "7d"},
        {"board": "tabs", "subject": "c", "last": "2d"},
    ]});
    let answers = site.client.post("/v1/query", queries).await.body;
    let found: Vec<_> = answers["answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["window"]["slots"].clone(), a["value"].clone()))
        .collect();
    let expected =
        [(30, 0), (24, 0), (12, 3), (0, 3), (28, 3), (8, 3)].map(|(slots, value)| (json!(slots), json!(value)));
    assert_eq!(found, expected, "{answers}");
    let rule = "COUNT(all, like, post_id) = 3 AND COUNT(3d, like, post_id) = 3 AND COUNT(1h, like, post_id) = 0";
    let evaluated = site.client.post("/v1/evaluate", json!({"rule": rule, "fields": fields})).await;
    assert_eq!(evaluated.body["hit"], true, "{evaluated:?}");
}

#[actix_web::test]
async fn an_item_is_too_late_if_no_window_reaches_back_to_it() {
    let site = Site::new().await;
    let definition = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "windows": ["1h/1m", "7d/6h"]});
    site.client.put("/v1/boards/tabs", definition).await;
    let increments = json!({"increments": [
        {"subject": "a", "at": "2025-12-26T12:00:00Z"},
        {"subject": "a", "at": "2025-12-26T11:59:59Z"},
        {"subject": "a", "at": "2026-01-02T10:07:06Z"},
    ]});
    let answer = site.client.add("tabs", increments).await;
    assert_eq!(answer.body["accepted"], 1, "{answer:?}");
    let rejected = &answer.body["rejected"];
    assert_eq!((&rejected[0]["index"], &rejected[0]["code"]), (&json!(1), &json!("too_late")));
    assert!(rejected[0]["detail"].as_str().unwrap().ends_with("even the longest (7d)"), "{answer:?}");
    assert_eq!((&rejected[1]["index"], &rejected[1]["code"]), (&json!(2), &json!("too_early")));
    assert_eq!((ranking(&site, "24h").await, ranking(&site, "7d").await), (String::new(), "a1".to_owned()));
}

#[actix_web::test]
async fn an_amount_beyond_the_bound_of_one_window_counts_in_none() {
    let site = defined().await;
    // The window of 60 slots has the smallest bound.
    let bound = ((1_i64 << 53) - 1) / 120;
    let answer = site.client.add("tabs", json!({"subject": "a", "amount": bound + 1})).await;
    assert_eq!(answer.body["rejected"][0]["code"], "amount_out_of_range", "{answer:?}");
    let detail = answer.body["rejected"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("in one slot of any window") && detail.contains(&bound.to_string()), "{detail}");
    assert_eq!(rankings(&site).await, ["", "", "", ""]);
    site.client.add("tabs", json!({"subject": "a", "amount": bound})).await;
    assert_eq!(rankings(&site).await, [0; 4].map(|_| format!("a{bound}")));
}

#[actix_web::test]
async fn a_retraction_counts_in_every_window() {
    let site = filled().await;
    let retraction = json!({"type": "like", "fields": {"post_id": "b"}, "at": "2026-01-02T09:00:00Z", "retract": true});
    assert_eq!(site.client.post("/v1/events", retraction).await.body["accepted"], 1);
    assert_eq!(rankings(&site).await, ["b1 a1", "a1", "c3 b1 a1", "d4 c3 b1 a1"]);
}

#[actix_web::test]
async fn removing_a_subject_removes_it_from_every_window() {
    let site = filled().await;
    let removal = site.client.delete("/v1/boards/tabs/subjects/b").await;
    assert_eq!((&removal.body["score"], &removal.body["live_slots"]), (&json!(2), &json!(1)), "{removal:?}");
    let removal = site.client.delete("/v1/boards/tabs/subjects/d").await;
    assert_eq!((removal.status, &removal.body["score"]), (200, &json!(0)), "{removal:?}");
    assert_eq!(rankings(&site).await, ["a1", "a1", "c3 a1", "c3 a1"]);
}

#[actix_web::test]
async fn a_rollover_is_of_every_window() {
    let site = filled().await;
    site.client.set_clock("2026-01-02T11:05:00Z").await;
    // a has left the hour: of the other windows none has lost a slot with data.
    let dry = site.client.post("/v1/boards/tabs/rollover?dry_run=true", json!({})).await.body;
    assert_eq!((&dry["slots_retired"], &dry["subjects_touched"]), (&json!(1), &json!(1)), "{dry}");
    let done = site.client.post("/v1/boards/tabs/rollover", json!({})).await.body;
    assert_eq!((&done["slots_retired"], &done["subjects_removed"]), (&json!(1), &json!(1)), "{done}");
    assert_eq!((&done["head"], &done["floor"]), (&json!("2026-01-02T11:00:00Z"), &json!("2026-01-01T12:00:00Z")));
    assert_eq!(rankings(&site).await, ["b2 a1", "", "c3 b2 a1", "d4 c3 b2 a1"]);
    site.client.set_clock("2026-01-03T11:00:00Z").await;
    let all = site.client.post("/v1/rollover", json!({})).await.body;
    assert_eq!((all.as_array().unwrap().len(), &all[0]["board"]), (1, &json!("tabs")), "{all}");
    assert_eq!(rankings(&site).await, ["", "", "c3 b2 a1", "d4 c3 b2 a1"]);
    site.client.set_clock("2026-02-01T00:00:00Z").await;
    // The scheduler finds the windows that are due.
    site.service().roll_over_due().await.unwrap();
    assert_eq!(rankings(&site).await, ["", "", "", "d4 c3 b2 a1"]);
    let status = site.client.get("/v1/boards/tabs").await.body;
    let retiring = status["each_window"].as_array().unwrap().iter().map(|window| window["retiring"].clone());
    assert_eq!(retiring.collect::<Vec<_>>(), [0, 0, 0, 0]);
}

#[actix_web::test]
async fn an_audit_compares_every_window() {
    let site = filled().await;
    let audit = site.client.post("/v1/boards/tabs/audit", json!({})).await.body;
    assert_eq!((&audit["subjects_checked"], &audit["differences"]), (&json!(2 + 1 + 3 + 4), &json!(0)), "{audit}");
}

#[actix_web::test]
async fn values_are_those_of_the_chosen_window() {
    let site = Site::new().await;
    let definition = json!({"metric": "COUNT_DISTINCT(24h, visit, page, user)", "slot": "1h", "windows": ["7d/6h"]});
    assert_eq!(site.client.put("/v1/boards/tabs", definition).await.status, 201);
    for (user, at) in [("u1", "2026-01-02T10:00:00Z"), ("u2", "2026-01-01T00:00:00Z"), ("u3", "2025-12-31T00:00:00Z")] {
        let visit = json!({"type": "visit", "fields": {"page": "p", "user": user}, "at": at});
        assert_eq!(site.client.post("/v1/events", visit).await.body["accepted"], 1);
    }
    let values = |answer: &Answer| -> Vec<Value> {
        answer.body["items"].as_array().expect("values").iter().map(|item| item["value"].clone()).collect()
    };
    assert_eq!(values(&site.client.get("/v1/boards/tabs/subjects/p/values").await), ["u1"]);
    let week = site.client.get("/v1/boards/tabs/subjects/p/values?window=7d&limit=2").await;
    assert_eq!((values(&week), &week.body["total"]), (vec![json!("u1"), json!("u2")], &json!(3)), "{week:?}");
    let next = week.body["next"].as_str().expect("a cursor");
    let rest = site.client.get(&format!("/v1/boards/tabs/subjects/p/values?cursor={next}")).await;
    assert_eq!(values(&rest), ["u3"]);
    let other = site.client.get(&format!("/v1/boards/tabs/subjects/p/values?cursor={next}&window=24h")).await;
    assert!(refused_window(&other).starts_with("the cursor belongs to the window 7d"), "{other:?}");
}
