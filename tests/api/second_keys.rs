//! Boards with a second key, by which subjects with the same score are ordered.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::site::Site;

/// A board of points over a day, on which the fewest seconds are first among equal points.
async fn site() -> Site {
    let site = Site::new().await;
    let tie_break = json!({"most": 480_000, "order": "asc", "field": "seconds"});
    let definition =
        json!({"metric": "SUM(24h, game, points, player)", "slot": "1h", "decimals": 1, "tie_break": tie_break});
    let answer = site.client.put("/v1/boards/games", definition).await;
    assert_eq!((answer.status, &answer.body["tie_break"]), (201, &tie_break), "{answer:?}");
    let note = "window 24h: in one slot a subject has a score from -8947848.5 to 8947848.5 and a second key from -10000 to 10000";
    assert_eq!(answer.body["notes"], json!([note]));
    site
}

async fn play(client: &Client, player: &str, points: f64, seconds: i64) {
    let fields = json!({"player": player, "points": points, "seconds": seconds});
    let answer = client.post("/v1/events", json!({"type": "game", "fields": fields})).await;
    assert_eq!(answer.body["accepted"], 1, "{answer:?}");
}

fn line(rank: u64, player: &str, score: f64, tie: i64) -> Value {
    let score = if score.fract() == 0.0 { json!(score as i64) } else { json!(score) };
    json!({"rank": rank, "subject": player, "score": score, "tie": tie})
}

#[actix_web::test]
async fn every_answer_shows_score_and_second_key() {
    let site = site().await;
    let client = &site.client;
    for (player, points, seconds) in [("a", 2.5, 300), ("a", 1.0, 90), ("b", 3.5, 400), ("c", 3.5, 390), ("d", -1.0, 5)]
    {
        play(client, player, points, seconds).await;
    }
    let page = "/v1/boards/games/rankings";
    let all = [line(1, "c", 3.5, 390), line(1, "a", 3.5, 390), line(3, "b", 3.5, 400), line(4, "d", -1.0, 5)];
    assert_eq!(client.items(page).await, all);
    assert_eq!(client.items("/v1/boards/games/subjects/b/neighbors?radius=1").await, all[1..]);
    assert_eq!(client.items_in_pages(page, 1).await, all);
    let standing = client.get("/v1/boards/games/subjects/a").await.body;
    assert_eq!(["rank", "score", "tie"].map(|key| standing[key].clone()), [json!(1), json!(3.5), json!(390)]);
    assert_eq!(standing["slots"][0]["count"], 3.5, "{standing}");
    let found = client.post("/v1/boards/games/rankings/lookup", json!({"subjects": ["d", "b", "x"]})).await.body;
    let of = |key: &str| found["items"].as_array().unwrap().iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(
        (of("tie"), of("rank")),
        (vec![json!(400), json!(5), Value::Null], vec![json!(3), json!(4), Value::Null])
    );
    let csv = client.send_with(Method::GET, page, &[("accept", "text/csv")], "").await.text;
    assert_eq!(csv.lines().take(2).collect::<Vec<_>>(), ["rank,subject,score,tie", "1,c,3.5,390"], "{csv}");
    let query = json!({"queries": [{"metric": "SUM(24h, game, points, player)", "fields": {"player": "a"}}]});
    assert_eq!(client.post("/v1/query", query).await.body["answers"][0]["value"], 3.5);
    for (rule, hit) in [("> 3.4", true), ("= 3.5", true), ("< 3.5", false)] {
        let rule = json!({"rule": format!("SUM(24h, game, points, player) {rule}"), "fields": {"player": "b"}});
        let verdict = client.post("/v1/evaluate", rule).await.body;
        assert_eq!(verdict["hit"], hit, "{verdict}");
    }
}

#[actix_web::test]
async fn tiers_and_distributions_are_about_scores() {
    let site = site().await;
    let client = &site.client;
    for (player, points, seconds) in
        [("a", 5.0, 10), ("b", 5.0, 9_000), ("c", 4.9, 0), ("d", 0.0, 7), ("e", -5.0, 10_000)]
    {
        play(client, player, points, seconds).await;
    }
    let tiers = json!({"tiers": [{"name": "gold", "score": 5}, {"name": "zero", "score": 0}]});
    assert_eq!(client.put("/v1/boards/games/tiers", tiers).await.status, 200);
    let tier = |line: &Value| line["tier"].clone();
    let of_lines: Vec<Value> = client.items("/v1/boards/games/rankings").await.iter().map(tier).collect();
    assert_eq!(of_lines, [json!("gold"), json!("gold"), json!("zero"), json!("zero"), Value::Null]);
    let answer = client.get("/v1/boards/games/distribution?scores=-5,0,5&percentiles=50").await.body;
    let numbers: Vec<_> = answer["ranges"].as_array().unwrap().iter().map(|range| range["subjects"].clone()).collect();
    assert_eq!(numbers, [0, 1, 2, 2], "{answer}");
    assert_eq!(answer["ranges"][1]["from"], -5, "{answer}");
}

#[actix_web::test]
async fn items_need_a_second_key_within_its_range() {
    let site = site().await;
    let client = &site.client;
    let add = |item: Value| async move { client.add("games", item).await };
    let took = add(json!({"subject": "a", "amount": 2, "tie_break": 60})).await;
    assert_eq!(took.body["accepted"], 1, "{took:?}");
    let back = json!({"subject": "a", "amount": 1, "tie_break": 20, "retract": true, "at": "2026-01-02T10:00:00Z"});
    assert_eq!(add(back).await.body["accepted"], 1);
    assert_eq!(client.items("/v1/boards/games/rankings").await, [line(1, "a", 1.0, 40)]);
    for (item, code, says) in [
        (json!({"subject": "a", "amount": 2}), "invalid_value", "the field 'tie_break' is missing"),
        (json!({"subject": "a", "amount": 2, "tie_break": 480_001}), "invalid_amount", "from -480000 to 480000"),
        (
            json!({"subject": "a", "amount": 2, "tie_break": 1.5}),
            "invalid_amount",
            "'tie_break' must be a whole number",
        ),
        (
            json!({"subject": "a", "amount": 2, "tie_break": "many"}),
            "invalid_amount",
            "'tie_break' must be a whole number",
        ),
        (json!({"subject": "a", "amount": 2, "tie_break": 9_961}), "amount_out_of_range", "between -10000 and 10000"),
        (
            json!({"subject": "a", "amount": 9_007_199_254_i64, "tie_break": 1}),
            "amount_out_of_range",
            "'amount' must be from",
        ),
    ] {
        let refused = client.add("games", json!({"increments": [item]})).await;
        let rejected = &refused.body["rejected"][0];
        assert_eq!(rejected["code"], code, "{refused:?}");
        assert!(rejected["detail"].as_str().unwrap().contains(says), "{says}: {rejected}");
    }
    let plain = client.define("plain", "COUNT(24h, game, player)", "1h").await;
    assert_eq!((plain.status, plain.body.get("tie_break")), (201, None));
    let refused = client.add("plain", json!({"increments": [{"subject": "a", "tie_break": 1}]})).await;
    assert_eq!(refused.body["rejected"][0]["code"], "unknown_field", "{refused:?}");
    for (fields, detail) in [
        (json!({"player": "a", "points": 1}), "the field 'seconds' is missing"),
        (
            json!({"player": "a", "points": 1, "seconds": 0.5}),
            "the field 'seconds': expected a whole number from -480000 to 480000, found 0.5",
        ),
    ] {
        let refused = client.post("/v1/events", json!({"type": "game", "fields": fields, "id": "1"})).await;
        let of_board = &refused.body["rejected"][0];
        assert_eq!((&of_board["field"], &of_board["detail"]), (&json!("seconds"), &json!(detail)), "{refused:?}");
    }
    assert_eq!(client.items("/v1/boards/games/rankings").await, [line(1, "a", 1.0, 40)]);
    let set = client.put("/v1/boards/games/subjects/a", json!({"amount": 7.5, "tie_break": 99})).await;
    assert_eq!((&set.body["score"], &set.body["tie"]), (&json!(7.5), &json!(99)), "{set:?}");
    let refused = client.put("/v1/boards/games/subjects/a", json!({"amount": 7.5, "tie_break": 10_001})).await;
    assert_eq!((refused.status, &refused.body["field"]), (422, &json!("tie_break")), "{refused:?}");
    assert_eq!(client.items("/v1/boards/games/rankings").await, [line(1, "a", 7.5, 99)]);
    let sample = json!({"samples": [{"subject": "a", "at": "2026-01-02T10:00:00Z", "amount": 8, "tie_break": 3}]});
    assert_eq!(client.put("/v1/boards/games/samples", sample).await.body["accepted"], 1);
    assert_eq!(client.items("/v1/boards/games/rankings").await, [line(1, "a", 8.0, 3)]);
}

#[actix_web::test]
async fn a_definition_says_where_a_second_key_is_possible() {
    let site = Site::new().await;
    let client = &site.client;
    let define = |metric: &'static str, more: Value| async move {
        let mut definition = json!({"metric": metric, "slot": "1h", "tie_break": {"most": 100, "order": "asc"}});
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.put("/v1/boards/b?dry_run=true", definition).await
    };
    for (metric, more) in [
        ("AVG(24h, e, v, s)", json!({})),
        ("COUNT_DISTINCT(24h, e, s, u)", json!({})),
        ("APPROX_COUNT_DISTINCT(24h, e, s, u)", json!({})),
        ("MAX(24h, e, v, s)", json!({"order": "asc"})),
        ("MIN(24h, e, v, s)", json!({})),
        ("COUNT(24h, e, s)", json!({"ranked": false})),
        ("COUNT(24h, e, s)", json!({"tie_break": {"most": 0, "order": "asc"}})),
        ("COUNT(24h, e, s)", json!({"tie_break": {"most": 1_099_511_627_776_u64, "order": "asc"}})),
        ("COUNT(24h, e, s)", json!({"tie_break": {"most": 5}})),
        ("COUNT(24h, e, s)", json!({"tie_break": {"most": 5, "order": "up"}})),
        // A share of 10 for each of 48 slots is 0; and with so many bits for keys no score is left.
        ("COUNT(24h, e, s)", json!({"tie_break": {"most": 10, "order": "asc"}})),
        ("SUM(2000h, e, v, s)", json!({"tie_break": {"most": 1_099_511_627_775_u64, "order": "asc"}})),
        ("COUNT(24h, e, s)", json!({"tie_break": {"most": 100, "order": "asc", "field": ""}})),
        ("COUNT(24h, e, s)", json!({"tie_break": {"most": 100, "order": "asc", "field": "a b"}})),
    ] {
        let refused = define(metric, more.clone()).await;
        assert!(matches!(refused.status, 400 | 422), "{metric} {more} {refused:?}");
        assert!(
            refused.text.contains("tie_break") || refused.text.contains("order") || refused.text.contains("most"),
            "{refused:?}"
        );
    }
    for (metric, more) in [
        ("COUNT(24h, e, s)", json!({})),
        ("MAX(24h, e, v, s)", json!({"windows": ["7d/6h", "all"], "movement": "1d"})),
        ("MIN(24h, e, v, s)", json!({"order": "asc"})),
        ("LAST(24h, e, v, s)", json!({"order": "asc"})),
        ("SUM(24h, like + comment*3, s)", json!({"tie_break": {"most": 1_099_511_627_775_u64, "order": "desc"}})),
    ] {
        let allowed = define(metric, more).await;
        assert_eq!(allowed.status, 200, "{metric} {allowed:?}");
    }
    let largest = define("MAX(24h, e, v, s)", json!({})).await;
    assert_eq!(largest.body["notes"], json!(["window 24h: a score is from -17592186044415 to 17592186044415"]));
}

#[actix_web::test]
async fn a_successor_is_filled_only_where_every_second_key_has_room() {
    let site = Site::new().await;
    let client = &site.client;
    let definition = |metric: &str, slot: &str, more: Value| {
        let mut definition =
            json!({"metric": metric, "slot": slot, "tie_break": {"most": 100_000, "order": "asc", "field": "seconds"}});
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        definition
    };
    let board = definition("SUM(6h, game, points, player)", "1h", json!({}));
    assert_eq!(client.put("/v1/boards/games", board).await.status, 201);
    let item = json!({"subject": "ann", "amount": 500, "tie_break": 8_000});
    assert_eq!(client.add("games", item).await.body["accepted"], 1);
    let next = "/v1/boards/games/next";
    for (slot, more, state) in [
        // One slot more has less room in each, and a slot of two hours has just what two had.
        ("1h", json!({"cover": "full"}), json!("none")),
        ("2h", json!({"cover": "full"}), json!("none")),
        ("2h", json!({}), json!("running")),
        ("1h", json!({"tie_break": {"most": 200_000, "order": "asc"}}), json!("none")),
        ("1h", json!({"order": "asc"}), json!("none")),
        ("1h", json!({"decimals": 0, "movement": "1h"}), json!("running")),
    ] {
        let begun = client.put(next, definition("SUM(6h, game, points, player)", slot, more.clone())).await;
        assert_eq!((begun.status, &begun.body["fill"]["state"]), (201, &state), "{slot} {more} {begun:?}");
        assert_eq!(client.delete(next).await.status, 200);
    }
    // Increments count where the second key means the same, and have one.
    let other = json!({"tie_break": {"most": 100_000, "order": "asc", "field": "attempts"}});
    assert_eq!(client.put(next, definition("SUM(6h, game, points, player)", "1h", other)).await.status, 201);
    client.add("games", json!({"subject": "bob", "amount": 500, "tie_break": 7})).await;
    assert_eq!(client.get(next).await.body["not_counted"], json!({"not_accepted": 1}));
    let stops = client.get(next).await.body["stops"].to_string();
    assert!(stops.contains("items without the second key"), "{stops}");
}
