//! Boards on which the first, or the last, of equal scores is first.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::site::Site;

/// Returns the time of a day at which sites begin.
fn at(time: &str) -> String {
    format!("2026-01-02T{time}Z")
}

async fn define(client: &Client, board: &str, definition: Value) {
    let answer = client.put(&format!("/v1/boards/{board}"), definition).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

async fn solve(client: &Client, team: &str, points: i64, time: &str) {
    let event = json!({"type": "solve", "at": at(time), "fields": {"team": team, "points": points}});
    let answer = client.post("/v1/events", event).await;
    assert_eq!(answer.body["accepted"], 1, "{answer:?}");
}

fn line(rank: u64, team: &str, score: i64, time: &str) -> Value {
    json!({"rank": rank, "subject": team, "score": score, "tie": at(time)})
}

#[actix_web::test]
async fn every_answer_shows_the_time_of_a_score() {
    let site = Site::new().await;
    let client = &site.client;
    define(client, "contest", json!({"metric": "SUM(24h, solve, points, team)", "slot": "1h", "ties": "first"})).await;
    for (team, points, time) in [
        ("ants", 100, "08:00:00"),
        ("bees", 200, "09:05:00"),
        ("ants", 100, "09:09:00"),
        ("cats", 200, "09:05:00"),
        ("dogs", 10, "09:00:01"),
        ("eels", 5, "09:00:02"),
        ("eels", -5, "09:00:03"),
    ] {
        solve(client, team, points, time).await;
    }
    let page = "/v1/boards/contest/rankings";
    let all = [
        line(1, "cats", 200, "09:05:00"),
        line(1, "bees", 200, "09:05:00"),
        line(3, "ants", 200, "09:09:00"),
        line(4, "dogs", 10, "09:00:01"),
    ];
    assert_eq!(client.items(page).await, all);
    assert_eq!(client.items("/v1/boards/contest/subjects/ants/neighbors?radius=1").await, all[1..]);
    assert_eq!(client.items_in_pages(page, 1).await, all);
    let standing = client.get("/v1/boards/contest/subjects/ants").await.body;
    let shown = ["rank", "score", "tie"].map(|key| standing[key].clone());
    assert_eq!(shown, [json!(3), json!(200), json!(at("09:09:00"))], "{standing}");
    let of_slots: Vec<_> = standing["slots"].as_array().unwrap().iter().map(|slot| slot["tie"].clone()).collect();
    assert_eq!(of_slots, [at("08:00:00"), at("09:09:00")], "{standing}");
    let none = client.get("/v1/boards/contest/subjects/eels").await.body;
    assert_eq!((&none["rank"], &none["score"], none.get("tie")), (&Value::Null, &json!(0), None), "{none}");
    let found = client.post("/v1/boards/contest/rankings/lookup", json!({"subjects": ["dogs", "eels"]})).await.body;
    assert_eq!((&found["items"][0]["tie"], found["items"][1].get("tie")), (&json!(at("09:00:01")), None), "{found}");
    let csv = client.send_with(Method::GET, page, &[("accept", "text/csv")], "").await.text;
    assert_eq!(csv.lines().nth(3), Some("3,ants,200,2026-01-02T09:09:00Z"), "{csv}");
    let query = json!({"queries": [{"metric": "SUM(24h, solve, points, team)", "fields": {"team": "ants"}}]});
    assert_eq!(client.post("/v1/query", query).await.body["answers"][0]["value"], 200);
    let distribution = client.get("/v1/boards/contest/distribution?scores=200&percentiles=50").await.body;
    assert_eq!(distribution["ranges"][1]["subjects"], 3, "{distribution}");
    let tiers = json!({"tiers": [{"name": "gold", "score": 200}]});
    assert_eq!(client.put("/v1/boards/contest/tiers", tiers).await.status, 200);
    let golden = client.items(page).await.iter().filter(|line| line["tier"] == "gold").count();
    assert_eq!(golden, 3);
}

#[actix_web::test]
async fn increments_samples_and_set_scores_have_times() {
    let site = Site::new().await;
    let client = &site.client;
    define(client, "all", json!({"metric": "SUM(all, solve, points, team)", "ties": "first"})).await;
    let add = |item: Value| async move {
        let answer = client.add("all", item).await;
        assert_eq!(answer.body["accepted"], 1, "{answer:?}");
    };
    add(json!({"subject": "ants", "amount": 3, "at": at("09:00:00")})).await;
    add(json!({"subject": "ants", "amount": 1, "at": at("08:00:00")})).await;
    // Without a time it is that of the arrival, and what was taken back leaves its time.
    add(json!({"subject": "bees", "amount": 4})).await;
    add(json!({"subject": "cats", "amount": 4, "at": at("07:00:00")})).await;
    add(json!({"subject": "cats", "amount": 2, "at": at("10:00:00")})).await;
    add(json!({"subject": "cats", "amount": 2, "at": at("10:00:00"), "retract": true})).await;
    add(json!({"subject": "cats", "amount": 0})).await;
    let now = client.get("/v1/boards/all/rankings").await.body["as_of"].as_str().unwrap().to_owned();
    let bees = json!({"rank": 3, "subject": "bees", "score": 4, "tie": format!("{}Z", &now[..19])});
    let path = "/v1/boards/all/rankings";
    assert_eq!(client.items(path).await, [line(1, "ants", 4, "09:00:00"), line(2, "cats", 4, "10:00:00"), bees]);
    let scored =
        client.post("/v1/boards/all/increments?return=score", json!({"subject": "dogs", "at": at("09:00:00")})).await;
    assert_eq!(
        (&scored.body["scores"][0]["score"], &scored.body["scores"][0]["tie"]),
        (&json!(1), &json!(at("09:00:00")))
    );
    assert_eq!(client.delete("/v1/boards/all/subjects/dogs").await.status, 200);
    // The jury says when a score was reached.
    let sample = json!({"samples": [{"subject": "cats", "amount": 4, "at": at("07:00:00")}]});
    assert_eq!(client.put("/v1/boards/all/samples", sample).await.body["accepted"], 1);
    assert_eq!(client.items(path).await[0], line(1, "cats", 4, "07:00:00"));
    let set = client.put("/v1/boards/all/subjects/bees", json!({"amount": 4, "at": at("06:30:00")})).await;
    assert_eq!((&set.body["score"], &set.body["tie"]), (&json!(4), &json!(at("06:30:00"))), "{set:?}");
    assert_eq!(client.items(path).await[0], line(1, "bees", 4, "06:30:00"));
    for (item, code) in [
        (json!({"subject": "a", "amount": 8_388_608}), "amount_out_of_range"),
        (json!({"subject": "a", "amount": 1, "tie_break": 1}), "unknown_field"),
    ] {
        let refused = client.add("all", json!({"increments": [item]})).await;
        assert_eq!(refused.body["rejected"][0]["code"], code, "{refused:?}");
    }
    let largest = client.put("/v1/boards/all/subjects/zebras", json!({"amount": 8_388_607})).await;
    assert_eq!(largest.body["score"], 8_388_607, "{largest:?}");
    let refused = client.put("/v1/boards/all/subjects/zebras", json!({"amount": 8_388_608})).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(client.items(path).await[0]["score"], 8_388_607, "a refused score changes nothing");
}

#[actix_web::test]
async fn a_definition_says_where_an_order_of_equal_scores_is_possible() {
    let site = Site::new().await;
    let client = &site.client;
    let define = |metric: &'static str, more: Value| async move {
        let mut definition = json!({"metric": metric, "slot": "1h", "ties": "first"});
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
        ("COUNT(24h, e, s)", json!({"tie_break": {"most": 100, "order": "asc"}})),
        ("COUNT(24h, e, s)", json!({"ties": "newest"})),
        ("COUNT(24h, e, s)", json!({"ties": "first:2s"})),
        ("COUNT(24h, e, s)", json!({"ties": "first:"})),
        ("COUNT(3h, e, s)", json!({"slot": "90s", "ties": "first:1m"})),
        ("COUNT(24h, e, s)", json!({"windows": ["3h/90s"], "ties": "first:1m"})),
        // 8,191 in 5,001 shares is no score in one of them.
        ("COUNT(2000h, e, s)", json!({"ties": "last:1ms", "decimals": 1, "slot": "1h"})),
        ("SUM(30d, like*1 + comment*1000, s)", json!({"ties": "first:1ms"})),
    ] {
        let refused = define(metric, more.clone()).await;
        let named = ["'ties'", "'order'", "order"].iter().any(|key| refused.text.contains(key));
        assert!(refused.status == 422 && named, "{metric} {more} {refused:?}");
    }
    for (metric, more) in [
        ("COUNT(24h, e, s)", json!({"ties": "last"})),
        ("COUNT(24h, e, s)", json!({"ties": "first:1s"})),
        ("MAX(24h, e, v, s)", json!({"windows": ["7d/6h", "all"], "movement": "1d"})),
        ("MIN(24h, e, v, s)", json!({"order": "asc", "ties": "last:100ms"})),
        ("LAST(24h, e, v, s)", json!({"order": "asc"})),
        ("SUM(24h, e, v, s BY k)", json!({"decimals": 2, "ties": "first:1m"})),
    ] {
        let allowed = define(metric, more).await;
        assert_eq!(allowed.status, 200, "{metric} {allowed:?}");
    }
    let notes = define("COUNT(24h, e, s)", json!({"ties": "first:1s"})).await;
    assert_eq!(notes.body["ties"], "first", "{notes:?}");
    assert_eq!(notes.body["notes"][0], "window 24h: in one slot a subject has a score from -174761 to 174761");
    assert!(notes.body["notes"][1].as_str().unwrap().starts_with("ties: an item that is taken back"), "{notes:?}");
    client.define("plain", "COUNT(24h, e, s)", "1h").await;
    let samples = json!({"samples": [{"subject": "a", "amount": 1, "at": at("09:00:00")}]});
    define_ties(client).await;
    let refused = client.put("/v1/boards/timed/samples", samples).await;
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("samples_unsupported")), "{refused:?}");
    let edge = client.get("/v1/boards/timed/subjects/a/window?last=2h&edge=weighted").await;
    assert!(edge.text.contains("what orders equal scores"), "{edge:?}");
}

async fn define_ties(client: &Client) {
    let definition = json!({"metric": "COUNT(24h, e, s)", "slot": "1h", "cover": "full", "ties": "first"});
    define(client, "timed", definition).await;
}

#[actix_web::test]
async fn successors_and_copies_have_the_times() {
    let site = Site::new().await;
    let client = &site.client;
    let definition = |more: Value| {
        let mut definition = json!({"metric": "SUM(24h, solve, points, team)", "slot": "1h", "ties": "last"});
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        definition
    };
    define(client, "contest", definition(json!({}))).await;
    for (team, points, time) in
        [("ants", 7, "08:00:00"), ("bees", 7, "09:05:00"), ("cats", 3, "08:30:00"), ("cats", -3, "08:40:00")]
    {
        solve(client, team, points, time).await;
    }
    let expected = [line(1, "bees", 7, "09:05:00"), line(2, "ants", 7, "08:00:00")];
    let next = "/v1/boards/contest/next";
    for (more, state) in [
        (json!({"ties": "first"}), "none"),
        (json!({"ties": "last:1m"}), "none"),
        (json!({"order": "asc"}), "none"),
        (json!({"cover": "full"}), "none"),
        // Two slots of an hour have room in one of two hours, and three have not.
        (json!({"metric": "SUM(24h, solve, points, team)", "slot": "3h", "cover": "full"}), "none"),
        (json!({"slot": "2h", "movement": "1d"}), "running"),
        (json!({"movement": "1h"}), "running"),
    ] {
        let begun = client.put(next, definition(more.clone())).await;
        assert_eq!((begun.status, &begun.body["fill"]["state"]), (201, &json!(state)), "{more} {begun:?}");
        if state == "running" {
            site.tick().await;
            let filled = client.get("/v1/boards/contest/rankings?of=next").await;
            assert_eq!(filled.body["items"], json!(expected), "{more} {filled:?}");
        }
        assert_eq!(client.delete(next).await.status, 200);
    }
    // The contents of a board, merged into another one.
    let contents = client.send_with(Method::GET, "/v1/boards/contest/contents", &[], "").await.text;
    let kind = &[("content-type", "application/x-ndjson")];
    define(client, "copy", definition(json!({}))).await;
    let merged = client.send_with(Method::POST, "/v1/boards/copy/contents", kind, contents.clone()).await;
    assert_eq!(merged.status, 200, "{merged:?}");
    assert_eq!(client.items("/v1/boards/copy/rankings").await, expected);
    // A time that is not in its slot would not leave with it.
    let ants = merged_number(&contents, "ants");
    let wrong = contents.replace(&ants.to_string(), &(ants + 86_400).to_string());
    define(client, "wrong", definition(json!({}))).await;
    let refused = client.send_with(Method::POST, "/v1/boards/wrong/contents", kind, wrong).await;
    assert!(refused.text.contains("is not in its slot"), "{refused:?}");
    define(client, "other", definition(json!({"ties": "first"}))).await;
    let refused = client.send_with(Method::POST, "/v1/boards/other/contents", kind, contents.clone()).await;
    assert!(refused.text.contains("'ties'"), "{refused:?}");
}

/// Returns the number that a subject has in contents.
fn merged_number(contents: &str, subject: &str) -> i64 {
    let after = contents.split(&format!("[\"{subject}\",")).nth(1).expect("the subject");
    after.split(']').next().unwrap().parse().expect("a number")
}

#[actix_web::test]
async fn a_period_has_the_same_lines_before_and_after_it_is_packed() {
    let site = Site::new().await;
    let client = &site.client;
    let season = json!({"every": "1d", "archive": 3});
    let definition =
        json!({"metric": "SUM(all, solve, points, team)", "season": season, "ties": "first", "ranks": "ordinal"});
    define(client, "contest", definition).await;
    for (team, time) in [("ants", "09:00:00"), ("bees", "08:00:00"), ("cats", "08:00:00"), ("dogs", "07:00:00")] {
        solve(client, team, 7, time).await;
    }
    solve(client, "eels", 9, "09:30:00").await;
    let times = [
        line(1, "eels", 9, "09:30:00"),
        line(2, "dogs", 7, "07:00:00"),
        line(3, "cats", 7, "08:00:00"),
        line(4, "bees", 7, "08:00:00"),
        line(5, "ants", 7, "09:00:00"),
    ];
    assert_eq!(client.items("/v1/boards/contest/rankings").await, times);
    client.set_clock("2026-01-03T05:00:00Z").await;
    let path = "/v1/boards/contest/rankings?period=2026-01-02";
    assert_eq!(client.items(path).await, times);
    client.put("/v1/boards/contest/subjects/cats/hidden", json!({})).await;
    let mut shown = vec![times[0].clone(), times[1].clone()];
    shown.extend([line(3, "bees", 7, "08:00:00"), line(4, "ants", 7, "09:00:00")]);
    let looked = json!({"subjects": ["bees", "ants", "cats"]});
    for _ in 0..2 {
        assert_eq!(client.items(path).await, shown);
        let found = client.post("/v1/boards/contest/rankings/lookup?period=2026-01-02", looked.clone()).await.body;
        let of =
            |key: &str| found["items"].as_array().unwrap().iter().map(|line| line[key].clone()).collect::<Vec<_>>();
        assert_eq!(of("rank"), [json!(3), json!(4), Value::Null], "{found}");
        assert_eq!(of("rank_among"), [json!(1), json!(2), Value::Null], "{found}");
        assert_eq!(of("percentile")[..2], [json!(50.0), json!(25.0)], "{found}");
        let standing = client.get("/v1/boards/contest/subjects/ants?period=2026-01-02").await.body;
        assert_eq!((&standing["rank"], &standing["percentile"]), (&json!(4), &json!(25.0)), "{standing}");
        assert_eq!(standing["tie"], at("09:00:00"));
        site.pack("contest").await;
    }
    client.delete("/v1/boards/contest/subjects/dogs").await;
    shown[1] = json!({"rank": 2, "subject": null, "score": 7, "tie": at("07:00:00")});
    assert_eq!(client.items(path).await, shown, "a removed subject leaves its line");
}

#[actix_web::test]
async fn lines_with_ordinal_ranks_are_numbered_in_their_order() {
    let site = Site::new().await;
    let client = &site.client;
    let definition = json!({"metric": "COUNT(24h, like, post)", "slot": "1h", "ranks": "ordinal"});
    define(client, "posts", definition.clone()).await;
    client.count("posts", &["a", "b", "b", "c", "d", "e", "e"]).await;
    let ranks = |items: &[Value]| {
        let rank = |line: &Value| (line["rank"].as_u64().unwrap(), line["subject"].as_str().unwrap().to_owned());
        items.iter().map(rank).collect::<Vec<_>>()
    };
    let expected: Vec<(u64, String)> = (1..).zip(["e", "b", "d", "c", "a"].map(ToOwned::to_owned)).collect();
    assert_eq!(ranks(&client.items_in_pages("/v1/boards/posts/rankings", 2).await), expected);
    let around = client.items("/v1/boards/posts/subjects/c/neighbors?radius=1").await;
    assert_eq!(ranks(&around), expected[2..]);
    let tiers = json!({"tiers": [{"name": "podium", "rank": 3}]});
    assert_eq!(client.put("/v1/boards/posts/tiers", tiers).await.status, 200);
    let on_podium = client.items("/v1/boards/posts/rankings").await;
    assert_eq!(on_podium.iter().filter(|line| line["tier"] == "podium").count(), 3);
    // The best 60 % are three of five, though the third has as many likes as the last.
    let tiers = json!({"tiers": [{"name": "gold", "top": 60}]});
    assert_eq!(client.put("/v1/boards/posts/tiers", tiers).await.status, 200);
    let tier_of = |line: &Value| line["tier"] == "gold";
    let golden: Vec<bool> = client.items("/v1/boards/posts/rankings").await.iter().map(tier_of).collect();
    assert_eq!(golden, [true, true, true, false, false]);
    let third = client.get("/v1/boards/posts/subjects/d").await.body;
    assert_eq!((&third["tier"], &third["percentile"]), (&json!("gold"), &json!(60.0)), "{third}");
    let looked = client.post("/v1/boards/posts/rankings/lookup", json!({"subjects": ["d", "c"]})).await.body;
    assert_eq!([&looked["items"][0]["tier"], &looked["items"][1]["tier"]], [&json!("gold"), &Value::Null], "{looked}");
    let shown = client.put("/v1/boards/posts?dry_run=true", definition).await.body;
    assert_eq!((&shown["ranks"], shown.get("ties")), (&json!("ordinal"), None), "{shown}");
    for definition in [
        json!({"metric": "COUNT(24h, like, post)", "slot": "1h", "ranked": false, "ranks": "ordinal"}),
        json!({"metric": "COUNT(24h, like, post)", "slot": "1h", "ranks": "dense"}),
    ] {
        let refused = client.put("/v1/boards/b", definition).await;
        assert!(refused.status == 422 && refused.text.contains("ranks"), "{refused:?}");
    }
}
