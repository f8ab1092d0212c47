//! Boards over all time that keep their newest slots.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;

/// The bounds of a total, which has no slots.
fn all_time() -> Value {
    json!({"from": null, "to": null, "slots": 0})
}

async fn define(site: &Site, board: &str, definition: Value) -> Value {
    let answer = site.client.put(&format!("/v1/boards/{board}"), definition).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body
}

/// A board `likes` that keeps two days, and an unranked one `quiet`. On both, a has 1 like of this hour, 2 of yesterday
/// and 4 of long ago, b has 8 of long ago.
async fn filled() -> Site {
    let site = Site::new().await;
    let metric = "COUNT(all, like, post_id)";
    define(&site, "likes", json!({"metric": metric, "slot": "1h", "keep": "2d"})).await;
    define(&site, "quiet", json!({"metric": metric, "slot": "2h", "keep": "2d", "ranked": false})).await;
    let mut events = Vec::new();
    for (post, number, at) in [
        ("a", 1, "2026-01-02T10:05:00Z"),
        ("a", 2, "2026-01-01T10:30:00Z"),
        ("a", 4, "2020-01-01T00:00:00Z"),
        ("b", 8, "2020-01-01T00:00:00Z"),
    ] {
        for nth in 0..number {
            let id = format!("{post}-{number}-{nth}");
            events.push(json!({"type": "like", "fields": {"post_id": post}, "at": at, "id": id}));
        }
    }
    let answer = site.client.post("/v1/events", json!({"events": events})).await;
    assert_eq!(answer.body["rejected"], json!([]), "{answer:?}");
    site
}

async fn window(site: &Site, board: &str, query: &str) -> Answer {
    site.client.get(&format!("/v1/boards/{board}/subjects/a/window?{query}")).await
}

/// The start of each slot, and the number under this key.
fn slots(of: &Value, key: &str) -> Vec<(String, Value)> {
    let slot = |slot: &Value| (slot["from"].as_str().expect("a start").to_owned(), slot[key].clone());
    of["slots"].as_array().expect("slots").iter().map(slot).collect()
}

fn expected(slots: &[(&str, i64)]) -> Vec<(String, Value)> {
    slots.iter().map(|(from, number)| ((*from).to_owned(), json!(number))).collect()
}

const YESTERDAY: &str = "2026-01-01T10:00:00Z";
const NOW: &str = "2026-01-02T10:00:00Z";

#[actix_web::test]
async fn the_score_is_the_total_and_the_slots_are_the_newest() {
    let site = filled().await;
    let ranking = site.client.get("/v1/boards/likes/rankings").await.body;
    let lines: Vec<_> = ranking["items"].as_array().unwrap().iter().map(|line| line["score"].clone()).collect();
    assert_eq!((lines, &ranking["window"]), (vec![json!(8), json!(7)], &all_time()));
    for (board, now) in [("likes", NOW), ("quiet", NOW)] {
        let standing = site.client.get(&format!("/v1/boards/{board}/subjects/a")).await.body;
        assert_eq!((&standing["score"], &standing["window"]), (&json!(7), &all_time()));
        assert_eq!(slots(&standing, "count"), expected(&[(YESTERDAY, 2), (now, 1)]), "{standing}");
        assert_eq!(standing["slots_are_partial"], true);
        let old = site.client.get(&format!("/v1/boards/{board}/subjects/b?window=all")).await.body;
        assert_eq!((&old["score"], &old["slots"], &old["slots_are_partial"]), (&json!(8), &json!([]), &json!(true)));
    }
    define(&site, "day", json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"})).await;
    define(&site, "total", json!({"metric": "COUNT(all, like, post_id)"})).await;
    for board in ["day", "total"] {
        for path in ["", "/subjects/a"] {
            let body = site.client.get(&format!("/v1/boards/{board}{path}")).await.body;
            assert_eq!(body.get("slots_are_partial"), None, "{body}");
        }
    }
}

#[actix_web::test]
async fn shorter_windows_are_read_from_the_kept_slots() {
    let site = filled().await;
    for (query, slots, from, value) in [
        ("", 0, Value::Null, 7),
        ("window=all", 0, Value::Null, 7),
        ("last=1h", 1, json!(NOW), 1),
        ("last=24h", 24, json!("2026-01-01T11:00:00Z"), 1),
        ("last=25h", 25, json!(YESTERDAY), 3),
        ("last=2d", 48, json!("2025-12-31T11:00:00Z"), 3),
        ("from=2026-01-01T10:59:00Z", 25, json!(YESTERDAY), 3),
        ("last=1h&as_of=2026-01-01T10:45:00Z", 1, json!(YESTERDAY), 2),
    ] {
        let answer = window(&site, "likes", query).await;
        let shown = &answer.body["window"];
        assert_eq!((&shown["slots"], &shown["from"]), (&json!(slots), &from), "{query}: {answer:?}");
        assert_eq!(answer.body["value"], value, "{query}: {answer:?}");
    }
    for (query, code, says) in [
        ("last=49h", "beyond_window", "49h is 49 slots of 1h; the board keeps 48 (2d)"),
        ("last=1h&window=all", "invalid_field", "leave out 'window' to read the kept slots"),
        ("window=2d", "invalid_field", "its only window is all; its kept slots, of 2d, serve shorter"),
        ("as_of=2026-01-01T10:45:00Z", "as_of_unsupported", "kept slots are read with 'last' or 'from'"),
        ("last=2d&as_of=2025-12-31T11:00:00Z", "beyond_window", "is not kept; the board keeps slots from 2025-12-"),
        ("from=2025-12-01T00:00:00Z", "beyond_window", "2025-12-31T11:00:00Z"),
        ("last=1h&edge=weighted", "edge_unsupported", "cover = \"full\""),
        ("edge=weighted", "edge_unsupported", "an all-time window has no slots"),
    ] {
        let answer = window(&site, "likes", query).await;
        assert_eq!(answer.refusal().1, code, "{query}: {answer:?}");
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{query}: {detail}");
    }
    assert_eq!(window(&site, "likes", "last=49h").await.body["maximum"], "2d");
    let full = json!({"metric": "COUNT(all, visit, page)", "slot": "1h", "keep": "2d", "cover": "full"});
    define(&site, "full", full).await;
    let visits = json!({"increments": [
        {"subject": "a", "amount": 60, "at": "2026-01-02T10:00:00Z"},
        {"subject": "a", "amount": 60, "at": "2026-01-02T09:00:00Z"},
    ]});
    assert_eq!(site.client.add("full", visits).await.body["accepted"], 2);
    let weighted = window(&site, "full", "last=1h&edge=weighted").await.body;
    assert_eq!(weighted["value"], 113, "53 of the 60 minutes of the oldest slot are within the hour: {weighted}");
}

#[actix_web::test]
async fn rules_and_queries_use_the_kept_slots() {
    let site = filled().await;
    let fields = json!({"post_id": "a"});
    let rule = "COUNT(all, like, post_id) = 7 AND COUNT(1h, like, post_id) = 1 AND COUNT(25h, like, post_id) = 3";
    let evaluated = site.client.post("/v1/evaluate", json!({"rule": rule, "fields": fields})).await;
    assert_eq!(evaluated.body["hit"], true, "{evaluated:?}");
    let queries = json!({"queries": [
        {"metric": "COUNT(1h, like, post_id)", "fields": fields},
        {"metric": "COUNT(all, like, post_id)", "fields": fields},
        {"board": "quiet", "subject": "a", "last": "26h"},
        {"metric": "COUNT(3d, like, post_id)", "fields": fields},
    ]});
    let answers = site.client.post("/v1/query", queries).await.body;
    let found = |nth: usize| {
        let answer = &answers["answers"][nth];
        (answer["board"].clone(), answer["window"]["slots"].clone(), answer["value"].clone())
    };
    assert_eq!(found(0), (json!("likes"), json!(1), json!(1)), "{answers}");
    // Of two totals that of the unranked board is read.
    assert_eq!(found(1), (json!("quiet"), json!(0), json!(7)), "{answers}");
    assert_eq!(found(2), (json!("quiet"), json!(13), json!(3)), "{answers}");
    assert_eq!(answers["answers"][3]["error"]["code"], "no_board", "{answers}");
}

#[actix_web::test]
async fn a_retraction_needs_its_time_and_an_old_one_changes_the_total() {
    let site = filled().await;
    let retraction = json!({"subject": "a", "retract": true});
    let answer = site.client.add("likes", retraction).await;
    assert_eq!((answer.status, &answer.body["rejected"][0]["code"]), (200, &json!("missing_at")), "{answer:?}");
    for (at, score, yesterday) in [("2020-01-01T00:00:00Z", 6, 2), ("2026-01-01T10:30:00Z", 5, 1)] {
        let retraction = json!({"subject": "a", "retract": true, "at": at});
        assert_eq!(site.client.add("likes", retraction).await.body["accepted"], 1);
        let standing = site.client.get("/v1/boards/likes/subjects/a").await.body;
        assert_eq!(standing["score"], score);
        assert_eq!(slots(&standing, "count"), expected(&[(YESTERDAY, yesterday), (NOW, 1)]), "{standing}");
    }
    let event = json!({"type": "like", "fields": {"post_id": "a"}, "retract": true});
    assert_eq!(site.client.post("/v1/events", event).await.body["rejected"][0]["code"], "missing_at");
}

#[actix_web::test]
async fn a_sample_replaces_its_slot_and_moves_the_total() {
    let site = filled().await;
    let put = async |board: &str, sample: Value| site.client.put(&format!("/v1/boards/{board}/samples"), sample).await;
    for amount in [10, 10] {
        let answer = put("likes", json!({"subject": "a", "amount": amount, "at": "2026-01-01T10:59:00Z"})).await;
        assert_eq!(answer.body["accepted"], 1, "{answer:?}");
        let standing = site.client.get("/v1/boards/likes/subjects/a").await.body;
        assert_eq!(standing["score"], 15);
        assert_eq!(slots(&standing, "count"), expected(&[(YESTERDAY, 10), (NOW, 1)]), "{standing}");
    }
    let missing = put("likes", json!({"subject": "a", "amount": 1})).await;
    assert_eq!(missing.body["field"], "at", "{missing:?}");
    let late = put("likes", json!({"samples": [{"subject": "a", "amount": 1, "at": "2025-12-31T10:59:59Z"}]})).await;
    let rejected = &late.body["rejected"][0];
    assert_eq!(rejected["code"], "too_late", "{late:?}");
    assert_eq!(rejected["detail"], "the slot is older than those that this board keeps, 2d");
    let most = ((1_i64 << 53) - 1) / 96;
    let beyond = put("likes", json!({"samples": [{"subject": "a", "amount": most + 1, "at": NOW}]})).await;
    assert_eq!(beyond.body["rejected"][0]["code"], "amount_out_of_range", "{beyond:?}");
    assert!(beyond.text.contains(&format!("between -{most} and {most} in one kept slot")), "{beyond:?}");

    define(&site, "best", json!({"metric": "MAX(all, game, score, player)", "slot": "1d", "keep": "30d"})).await;
    let refused = put("best", json!({"subject": "a", "value": 1, "at": NOW})).await;
    assert_eq!(refused.refusal(), (409, "samples_unsupported"), "{refused:?}");
    assert!(refused.body["detail"].as_str().unwrap().contains("define a board without 'keep'"), "{refused:?}");
    site.client.add("best", json!({"subject": "ann", "value": 900, "at": "2020-01-01T00:00:00Z"})).await;
    site.client.add("best", json!({"subject": "ann", "value": 700})).await;
    let best = async |query: &str| {
        site.client.get(&format!("/v1/boards/best/subjects/ann/window{query}")).await.body["value"].clone()
    };
    assert_eq!((best("").await, best("?last=7d").await), (json!(900), json!(700)));
}

#[actix_web::test]
async fn the_newest_value_keeps_its_time() {
    let site = Site::new().await;
    define(&site, "elo", json!({"metric": "LAST(all, rating, elo, player)", "slot": "1h", "keep": "2d"})).await;
    site.client.add("elo", json!({"subject": "ann", "value": 1500, "at": "2020-01-01T00:00:00Z"})).await;
    let standing = site.client.get("/v1/boards/elo/subjects/ann").await.body;
    assert_eq!((&standing["score"], &standing["at"]), (&json!(1500), &json!("2020-01-01T00:00:00Z")), "{standing}");
    assert_eq!((&standing["slots"], &standing["slots_are_partial"]), (&json!([]), &json!(true)), "{standing}");
    site.client.add("elo", json!({"subject": "ann", "value": 1600, "at": "2026-01-02T10:05:00Z"})).await;
    let standing = site.client.get("/v1/boards/elo/subjects/ann").await.body;
    assert_eq!((&standing["score"], &standing["at"]), (&json!(1600), &json!("2026-01-02T10:05:00Z")), "{standing}");
    assert_eq!(slots(&standing, "value"), expected(&[(NOW, 1600)]));
}

#[actix_web::test]
async fn the_status_lists_the_kept_slots() {
    let site = filled().await;
    let status = site.client.get("/v1/boards/likes").await.body;
    assert_eq!((&status["slot"], &status["keep"]), (&json!("1h"), &json!("2d")));
    assert_eq!((&status["slots_in_window"], &status["slots_kept"]), (&json!(0), &json!(49)));
    assert_eq!((&status["window"], &status["total"]), (&all_time(), &json!(2)));
    assert_eq!((&status["head"], &status["floor"]), (&json!(NOW), &json!("2025-12-31T11:00:00Z")), "{status}");
    assert_eq!(slots(&status, "events"), expected(&[(YESTERDAY, 2), (NOW, 1)]), "{status}");
    assert!(slots(&status, "subjects").iter().all(|(_, subjects)| subjects.is_null()), "{status}");
    assert_eq!((&status["slots_are_partial"], status.get("each_window")), (&json!(true), None), "{status}");
    let metric = "COUNT(all, like, post_id)";
    let preview = async |definition: Value| -> Value {
        let answer = site.client.put("/v1/boards/new?dry_run=true", definition).await;
        assert_eq!((answer.status, answer.body.get("each_window")), (200, None), "{answer:?}");
        answer.body
    };
    let total = preview(json!({"metric": metric})).await["bytes_per_subject"]["all_slots"].as_u64().unwrap();
    let day = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "ranked": false});
    let day = preview(day).await["bytes_per_subject"]["all_slots"].as_u64().unwrap();
    let kept = preview(json!({"metric": metric, "slot": "1h", "keep": "24h"})).await;
    assert_eq!(kept["bytes_per_subject"]["all_slots"], total + day, "each counts once");
    assert_eq!((&kept["slots_in_window"], &kept["slots_kept"]), (&json!(0), &json!(25)));
}

#[actix_web::test]
async fn kept_slots_expire_and_the_total_stays() {
    let site = filled().await;
    site.client.set_clock("2026-01-03T10:30:00Z").await;
    let done = site.client.post("/v1/boards/likes/rollover", json!({})).await.body;
    assert_eq!((&done["head"], &done["floor"]), (&json!("2026-01-03T10:00:00Z"), &json!("2026-01-01T11:00:00Z")));
    let standing = site.client.get("/v1/boards/likes/subjects/a").await.body;
    assert_eq!((&standing["score"], slots(&standing, "count")), (&json!(7), expected(&[(NOW, 1)])), "{standing}");
    site.client.set_clock("2026-02-01T00:00:00Z").await;
    // The scheduler finds the kept slots that are due, without a read that would clean them.
    site.service().roll_over_due().await.unwrap();
    for board in ["likes", "quiet"] {
        let standing = site.client.get(&format!("/v1/boards/{board}/subjects/a")).await.body;
        assert_eq!((&standing["score"], &standing["slots"]), (&json!(7), &json!([])), "{standing}");
        let status = site.client.get(&format!("/v1/boards/{board}")).await.body;
        assert_eq!((&status["slots"], &status["retiring_slots"]), (&json!([]), &json!([])), "{status}");
        let dry = site.client.post(&format!("/v1/boards/{board}/rollover?dry_run=true"), json!({})).await.body;
        assert_eq!(dry["slots_retired"], 0, "{dry}");
        assert_eq!(window(&site, board, "last=2d").await.body["value"], 0);
    }
}

#[actix_web::test]
async fn audits_and_removals_are_of_both() {
    let site = filled().await;
    for board in ["likes", "quiet"] {
        let audit = site.client.post(&format!("/v1/boards/{board}/audit?repair=true"), json!({})).await.body;
        assert_eq!((&audit["differences"], &audit["missing_slots"]), (&json!(0), &json!(0)), "{audit}");
        let removal = site.client.delete(&format!("/v1/boards/{board}/subjects/a")).await.body;
        assert_eq!((&removal["score"], &removal["live_slots"]), (&json!(7), &json!(2)), "{removal}");
        let standing = site.client.get(&format!("/v1/boards/{board}/subjects/a")).await.body;
        assert_eq!((&standing["score"], &standing["slots"]), (&json!(0), &json!([])), "{standing}");
        assert_eq!(window(&site, board, "last=2d").await.body["value"], 0);
        assert_eq!(site.client.score(board, "b").await, 8);
    }
    assert_eq!(site.client.delete("/v1/boards/likes").await.status, 200);
    define(&site, "likes", json!({"metric": "COUNT(all, like, post_id)", "slot": "1h", "keep": "2d"})).await;
    let status = site.client.get("/v1/boards/likes").await.body;
    assert_eq!((&status["total"], &status["slots"]), (&json!(0), &json!([])), "{status}");
}

#[actix_web::test]
async fn definitions_that_cannot_keep_slots_are_refused() {
    let site = Site::new().await;
    let count = "COUNT(all, like, post_id)";
    for (metric, rest, field, says) in [
        (count, json!({"slot": "1h"}), "slot", "only together with 'keep'"),
        (count, json!({"keep": "2d"}), "keep", "only together with 'slot'"),
        (
            count,
            json!({"slot": "1h", "keep": "2d", "windows": ["7d/6h"]}),
            "windows",
            "not allowed together with 'keep'",
        ),
        (count, json!({"slot": "1h", "keep": "90d"}), "keep", "the slots to keep: "),
        (count, json!({"slot": "7h", "keep": "2d"}), "slot", "the slots to keep: "),
        (count, json!({"slot": "1h", "keep": "90m"}), "keep", "the slots to keep: "),
        ("COUNT_DISTINCT(all, visit, page, user)", json!({"slot": "1h", "keep": "2d"}), "keep", "COUNT_DISTINCT"),
        ("COUNT(24h, like, post_id)", json!({"slot": "1h", "keep": "2d"}), "keep", "an all-time window"),
    ] {
        let mut definition = rest;
        definition["metric"] = json!(metric);
        for path in ["/v1/boards/b", "/v1/boards/b?dry_run=true"] {
            let answer = site.client.put(path, definition.clone()).await;
            assert_eq!(answer.refusal(), (422, "invalid_field"), "{answer:?}");
            let detail = answer.body["detail"].as_str().unwrap();
            assert_eq!(answer.body["field"], field, "{definition}: {detail}");
            assert!(detail.contains(says), "{definition}: {detail}");
        }
    }
}
