//! Tiers: what is refused, and the tier that each kind of answer shows.

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use reqwest::Method;
use rolltop::store::TableName;
use serde_json::{Value as Json, json};

use crate::client::Client;
use crate::event_stream::{Follower, View};
use crate::site::Site;

const PATH: &str = "/v1/boards/b/tiers";

async fn set(client: &Client, tiers: Json) {
    let answer = client.put(PATH, json!({"tiers": tiers})).await;
    assert_eq!((answer.status, &answer.body), (200, &json!({"board": "b", "tiers": tiers})));
}

/// Returns the tiers of lines, in their order.
fn tiers(lines: &Json) -> Vec<Option<&str>> {
    lines.as_array().unwrap().iter().map(|line| line["tier"].as_str()).collect()
}

#[actix_web::test]
async fn tiers_are_set_replaced_and_removed_with_their_board() {
    let site = Site::with_board("b").await;
    let client = &site.client;
    assert_eq!(client.get(PATH).await.body, json!({"board": "b", "tiers": []}));
    client.count("b", &["x"]).await;
    assert_eq!(client.get("/v1/boards/b/rankings").await.body["items"][0].get("tier"), None);
    set(client, json!([{"name": "gold", "top": 12.5}, {"name": "silver", "rank": 3}, {"name": "b☆", "score": 100}]))
        .await;
    assert_eq!(client.get(PATH).await.body["tiers"][0], json!({"name": "gold", "top": 12.5}));
    let other = site.second_instance();
    assert_eq!(other.get(PATH).await.body["tiers"].as_array().unwrap().len(), 3);
    set(&other, json!([{"name": "all", "rank": 100}])).await;
    assert_eq!(client.get(PATH).await.body["tiers"], json!([{"name": "all", "rank": 100}]));
    assert_eq!(client.get("/v1/boards/b/rankings").await.body["items"][0]["tier"], "all");
    set(client, json!([])).await;
    assert_eq!(client.get("/v1/boards/b/rankings").await.body["items"][0].get("tier"), None);
    // A long number is the number that it is.
    let long = format!(r#"{{"tiers":[{{"name":"a","score":7.{}}}]}}"#, "0".repeat(20_000));
    let answer = client.send(Method::PUT, PATH, Some("application/json"), long).await;
    assert_eq!((answer.status, &answer.body["tiers"]), (200, &json!([{"name": "a", "score": 7}])), "{answer:?}");
    let unknown = client.put(PATH, json!({"tiers": [{"name": "a", "rank": 1, "color": "red"}]})).await;
    assert_eq!(unknown.refusal(), (422, "unknown_field"));
    // A board of the same name does not inherit them.
    set(client, json!([{"name": "all", "rank": 100}])).await;
    assert_eq!(client.delete("/v1/boards/b").await.status, 200);
    assert_eq!(client.get(PATH).await.code(), "unknown_board");
    // Nor does one that another instance knows only as it was: it asks the store.
    assert_eq!(other.get(PATH).await.code(), "unknown_board");
    let tiers = json!({"tiers": [{"name": "ghost", "rank": 100}]});
    assert_eq!(other.put(PATH, tiers).await.code(), "unknown_board");
    client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    assert_eq!(client.get(PATH).await.body["tiers"], json!([]));
}

#[actix_web::test]
async fn tiers_that_stay_of_a_removed_board_are_not_those_of_the_next() {
    let site = Site::with_board("b").await;
    let client = &site.client;
    set(client, json!([{"name": "ghost", "rank": 100}])).await;
    let rows = site.store.rows(TableName::Tiers, None).await.unwrap().unwrap().rows;
    assert_eq!(client.delete("/v1/boards/b").await.status, 200);
    // As if the instance had been killed just before it removed them.
    assert!(site.store.change_row(TableName::Tiers, "b", None, Some(&rows["b"])).await.unwrap());
    client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    client.count("b", &["x"]).await;
    let other = site.second_instance();
    for instance in [client, &other] {
        assert_eq!(instance.get(PATH).await.body["tiers"], json!([]));
        assert_eq!(instance.get("/v1/boards/b/rankings").await.body["items"][0].get("tier"), None);
    }
    set(client, json!([{"name": "new", "rank": 100}])).await;
    assert_eq!(client.get("/v1/boards/b/rankings").await.body["items"][0]["tier"], "new");
    assert_eq!(client.delete("/v1/boards/b").await.status, 200);
    let left = site.store.rows(TableName::Tiers, None).await.unwrap().unwrap().rows;
    assert!(left.is_empty(), "a removal makes room: {left:?}");
}

#[actix_web::test]
async fn impossible_tiers_are_refused() {
    let site = Site::with_board("b").await;
    let client = &site.client;
    let many: Vec<Json> = (0..17).map(|n| json!({"name": format!("t{n}"), "rank": n + 1})).collect();
    for (wrong, part) in [
        (json!(many), "at most 16"),
        (json!([{"name": "", "rank": 1}]), "1 to 64"),
        (json!([{"name": "x".repeat(65), "rank": 1}]), "1 to 64"),
        (json!([{"name": "a\nb", "rank": 1}]), "control"),
        (json!([{"name": "a"}]), "exactly one of"),
        (json!([{"name": "a", "rank": 1, "top": 5}]), "one of"),
        (json!([{"name": "a", "rank": 0}]), "from 1 to"),
        (json!([{"name": "a", "rank": 1.5}]), "whole number"),
        (json!([{"name": "a", "top": 0}]), "percentage"),
        (json!([{"name": "a", "top": 100.001}]), "percentage"),
        (json!([{"name": "a", "score": "9"}]), "not a number"),
        (json!([{"name": "a", "rank": 1}, {"name": "a", "rank": 2}]), "two tiers"),
        (json!([{"name": "a", "rank": 1, "color": "red"}]), "color"),
        (json!([["gold", 1]]), "must be an object"),
        (json!([{"name": "a", "rank": 1_000_000_001}]), "from 1 to"),
        (json!({}), "tiers"),
        (Json::Null, "tiers"),
    ] {
        let answer = client.put(PATH, json!({"tiers": wrong})).await;
        assert_eq!(answer.status, 422, "{wrong}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(part), "{wrong}: {answer:?}");
    }
    assert_eq!(client.put(PATH, json!({})).await.status, 422);
    let unranked = json!({"metric": "COUNT(24h, like, post)", "slot": "1h", "ranked": false});
    client.put("/v1/boards/plain", unranked).await;
    let answer = client.put("/v1/boards/plain/tiers", json!({"tiers": [{"name": "a", "rank": 1}]})).await;
    assert_eq!(answer.code(), "not_ranked");
    assert_eq!(client.get(PATH).await.body["tiers"], json!([]));
}

#[actix_web::test]
async fn a_large_tie_leaves_a_share_empty() {
    let site = Site::with_board("b").await;
    let client = &site.client;
    set(client, json!([{"name": "gold", "top": 5}, {"name": "hundred", "rank": 100}])).await;
    let items: Vec<Json> =
        (0..200).map(|n| json!({"subject": format!("s{n}"), "amount": if n < 190 { 9 } else { 1 }})).collect();
    client.add("b", json!({"increments": items})).await;
    let page = client.get("/v1/boards/b/rankings?limit=200").await.body;
    assert!(tiers(&page["items"])[..190].iter().all(|tier| *tier == Some("hundred")));
    assert!(tiers(&page["items"])[190..].iter().all(Option::is_none));
    client.add("b", json!({"increments": [{"subject": "s7", "amount": 1}]})).await;
    let page = client.get("/v1/boards/b/rankings?limit=2").await.body;
    assert_eq!(tiers(&page["items"]), [Some("gold"), Some("hundred")]);
}

/// Returns the tier that each line of a whole ranking must have.
fn expected(lines: &[Json], is_ascending: bool) -> HashMap<String, Option<&'static str>> {
    let number = |line: &Json| line["score"].as_f64().unwrap();
    let total = lines.len() as f64;
    let tier = |line: &Json| {
        let score = number(line);
        let is_better = |other: &Json| if is_ascending { number(other) < score } else { number(other) > score };
        let better = lines.iter().filter(|other| is_better(other)).count();
        let not_worse = better + lines.iter().filter(|other| number(other) == score).count();
        let reaches = if is_ascending { score <= 3.0 } else { score >= 3.0 };
        match () {
            () if not_worse as f64 <= (total * 0.1).ceil() => Some("gold"),
            () if better < 5 => Some("silver"),
            () if not_worse as f64 <= (total * 0.4).ceil() => Some("bronze"),
            () if reaches => Some("three"),
            () => None,
        }
    };
    lines.iter().map(|line| (line["subject"].as_str().unwrap().to_owned(), tier(line))).collect()
}

#[actix_web::test]
async fn every_kind_of_answer_shows_the_tier_of_the_whole_ranking() {
    let mut random = rand::rngs::StdRng::seed_from_u64(crate::drawn::seed());
    let definitions = [
        json!({"metric": "SUM(24h, like, amount, post_id)", "slot": "1h", "windows": ["2h/1h"]}),
        json!({"metric": "MIN(24h, like, amount, post_id)", "slot": "1h", "order": "asc", "decimals": 1}),
        json!({"metric": "AVG(24h, like, amount, post_id)", "slot": "1h"}),
        json!({"metric": "SUM(24h, like, amount, post_id BY k)", "slot": "1h"}),
    ];
    for definition in definitions {
        let site = Site::new().await;
        let client = &site.client;
        assert_eq!(client.put("/v1/boards/b", definition.clone()).await.status, 201);
        let is_ascending = definition["order"] == "asc";
        let has_keys = definition["metric"].as_str().unwrap().contains("BY");
        let of = |rest: &str| if has_keys { format!("{rest}&by=rust") } else { rest.to_owned() };
        set(
            client,
            json!([{"name": "gold", "top": 10}, {"name": "silver", "rank": 5}, {"name": "bronze", "top": 40},
                {"name": "three", "score": 3}]),
        )
        .await;
        let field = if definition["metric"].as_str().unwrap().starts_with("SUM") { "amount" } else { "value" };
        let mut follower = match has_keys {
            true => None,
            false => {
                let path = format!("http://127.0.0.1:{}/v1/boards/b/stream?limit=10", client.port);
                Some(Follower::open(&path, &[]).await)
            }
        };
        let mut view = View::default();
        for _ in 0..12 {
            let count = random.random_range(1..20);
            let item = |n: u32, amount: u32| {
                let mut item = json!({"subject": format!("s{n}"), field: amount});
                if has_keys {
                    item["by"] = json!("rust");
                }
                item
            };
            let items: Vec<Json> =
                (0..count).map(|_| item(random.random_range(0..40), random.random_range(0..6))).collect();
            client.add("b", json!({"increments": items})).await;
            let whole = client.get(&of("/v1/boards/b/rankings?limit=1000")).await.body;
            let lines = whole["items"].as_array().unwrap();
            let expected = expected(lines, is_ascending);
            let check = |line: &Json, of: &str| {
                let subject = line["subject"].as_str().unwrap();
                assert_eq!(line["tier"].as_str(), expected[subject], "{of}: {line} in {whole}");
            };
            lines.iter().for_each(|line| check(line, "whole"));
            let offset = random.random_range(0..30);
            let page = client.get(&of(&format!("/v1/boards/b/rankings?limit=4&offset={offset}"))).await.body;
            page["items"].as_array().unwrap().iter().for_each(|line| check(line, "page"));
            if let Some(next) = page["next"].as_str() {
                let page = client.get(&of(&format!("/v1/boards/b/rankings?limit=3&cursor={next}"))).await.body;
                page["items"].as_array().unwrap().iter().for_each(|line| check(line, "cursor"));
            }
            let subjects: Vec<&str> = lines.iter().map(|line| line["subject"].as_str().unwrap()).collect();
            // Amounts may all have been 0 so far, and nobody is looked up then.
            if !subjects.is_empty() {
                let asked = json!({"subjects": subjects});
                let lookup = client.post(&of("/v1/boards/b/rankings/lookup?"), asked).await.body;
                lookup["items"].as_array().unwrap().iter().for_each(|line| check(line, "lookup"));
            }
            for subject in subjects.iter().take(5) {
                check(&client.get(&of(&format!("/v1/boards/b/subjects/{subject}?"))).await.body, "standing");
                let around = client.get(&of(&format!("/v1/boards/b/subjects/{subject}/neighbors?radius=2"))).await.body;
                around["items"].as_array().unwrap().iter().for_each(|line| check(line, "neighbors"));
            }
            let headers = [("accept", "application/x-ndjson")];
            let export = client.send_with(Method::GET, &of("/v1/boards/b/rankings?limit=17"), &headers, "").await;
            let text = export.text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
            text.filter(|line| line.get("rank").is_some()).for_each(|line| check(&line, "export"));
            if has_keys {
                let by = client.post("/v1/boards/b/rankings/by", json!({"keys": ["rust"], "limit": 7})).await.body;
                by["rankings"][0]["items"].as_array().unwrap().iter().for_each(|line| check(line, "by"));
            }
            if let Some(follower) = &mut follower {
                let page = client.get("/v1/boards/b/rankings?limit=10").await;
                while view.id != page.header("etag") {
                    view.apply(follower.next().await.expect("an event"));
                }
                assert_eq!(json!(view.items), page.body["items"]);
            }
        }
    }
}

#[actix_web::test]
async fn a_stream_sends_lines_whose_tier_alone_has_changed() {
    let site = Site::with_board("b").await;
    let client = &site.client;
    client.count("b", &["x", "x", "y"]).await;
    let path = format!("http://127.0.0.1:{}/v1/boards/b/stream?limit=10", client.port);
    let mut follower = Follower::open(&path, &[]).await;
    follower.expect("page").await;
    set(client, json!([{"name": "half", "top": 50}])).await;
    let rows = follower.expect("change").await.data["rows"].clone();
    assert_eq!((tiers(&rows), rows[0]["subject"].as_str()), (vec![Some("half")], Some("x")));
    // Two more subjects: the second one is among the better half now, though its line has not moved.
    client.count("b", &["y", "z", "w"]).await;
    client.count("b", &["x"]).await;
    loop {
        let change = follower.expect("change").await;
        let rows = change.data["rows"].as_array().unwrap().iter();
        if rows.clone().any(|row| row["subject"] == "y" && row["tier"] == "half") {
            break;
        }
    }
    set(client, json!([])).await;
    // What was counted last may come in a change of its own, before the one that takes the tier from both lines.
    loop {
        let rows = follower.expect("change").await.data["rows"].clone();
        let of_both = |row: &&Json| row["subject"] == "x" || row["subject"] == "y";
        let without_tier = |row: &Json| row.get("tier").is_none();
        let both: Vec<&Json> = rows.as_array().unwrap().iter().filter(of_both).collect();
        if both.len() == 2 && both.into_iter().all(without_tier) {
            break;
        }
    }
}

#[actix_web::test]
async fn csv_has_a_column_and_a_shadowed_subject_its_own_tier() {
    let site = Site::with_board("b").await;
    let client = &site.client;
    let headers = [("accept", "text/csv")];
    client.count("b", &["x", "x", "x", "y", "y", "z"]).await;
    let export = client.send_with(Method::GET, "/v1/boards/b/rankings", &headers, "").await;
    assert_eq!(export.text, "rank,subject,score\r\n1,x,3\r\n2,y,2\r\n3,z,1\r\n");
    set(client, json!([{"name": "a, b", "top": 34}])).await;
    let export = client.send_with(Method::GET, "/v1/boards/b/rankings", &headers, "").await;
    assert_eq!(export.text, "rank,subject,score,tier\r\n1,x,3,\"a, b\"\r\n2,y,2,\"a, b\"\r\n3,z,1,\r\n");
    client.put("/v1/boards/b/subjects/y/hidden", json!({"shadow": true})).await;
    let hidden = client.get("/v1/boards/b/subjects/y").await.body;
    assert_eq!((&hidden["rank"], &hidden["total"], &hidden["tier"]), (&json!(2), &json!(3), &json!("a, b")));
    client.put("/v1/boards/b/subjects/y/hidden", json!({})).await;
    let hidden = client.get("/v1/boards/b/subjects/y").await.body;
    assert_eq!((&hidden["rank"], &hidden["tier"]), (&Json::Null, &Json::Null));
    assert_eq!(client.get("/v1/boards/b/subjects/nobody").await.body.get("tier"), None);
    let answer = client.post("/v1/boards/b/rankings/lookup", json!({"subjects": ["x"], "ranks": false})).await.body;
    assert_eq!(answer["items"][0].get("tier"), None, "without ranks nothing is known of tiers");
}
