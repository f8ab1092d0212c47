//! Days, weeks, months, quarters and years that begin where a definition says.

use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::client::Client;
use crate::site::Site;

async fn with(definition: Json) -> Site {
    let site = Site::new().await;
    let answer = site.client.put("/v1/boards/b", definition.clone()).await;
    assert_eq!((answer.status, &answer.body["starts"]), (201, &definition["starts"]), "{answer:?}");
    site
}

/// Returns begin and end of the window, and the subjects of the ranking.
async fn shown(client: &Client) -> (String, String, Vec<String>) {
    let page = client.get("/v1/boards/b/rankings").await.body;
    let time = |member: &str| page["window"][member].as_str().unwrap_or_default().to_owned();
    let subject = |line: &Json| line["subject"].as_str().unwrap().to_owned();
    (time("from"), time("to"), page["items"].as_array().unwrap().iter().map(subject).collect())
}

async fn assert_shown(client: &Client, from: &str, to: &str, subjects: &[&str]) {
    let (is_from, is_to, are) = shown(client).await;
    assert_eq!(
        (is_from.as_str(), is_to.as_str(), are.iter().map(String::as_str).collect()),
        (from, to, subjects.to_vec())
    );
}

#[actix_web::test]
async fn a_day_begins_at_five_in_berlin() {
    let definition = json!({"metric": "COUNT(1d, like, post_id)", "slot": "1d", "timezone": "Europe/Berlin",
        "starts": "2026-11-01T05:00"});
    let site = with(definition.clone()).await;
    let client = &site.client;
    client.count("b", &["a"]).await;
    assert_shown(client, "2026-01-02T04:00:00Z", "2026-01-03T04:00:00Z", &["a"]).await;
    for (at, accepted) in [("2026-01-02T04:00:00Z", 1), ("2026-01-02T03:59:59.999Z", 0)] {
        let answer = client.add("b", json!({"increments": [{"subject": "b", "at": at}]})).await;
        assert_eq!(answer.body["accepted"], accepted, "{answer:?}");
    }
    client.set_clock("2026-01-03T03:59:59.999Z").await;
    assert_shown(client, "2026-01-02T04:00:00Z", "2026-01-03T04:00:00Z", &["b", "a"]).await;
    client.set_clock("2026-01-03T04:00:00Z").await;
    assert_shown(client, "2026-01-03T04:00:00Z", "2026-01-04T04:00:00Z", &[]).await;
    // The day in which clocks go forward has 23 hours.
    client.set_clock("2026-03-29T02:59:59Z").await;
    assert_shown(client, "2026-03-28T04:00:00Z", "2026-03-29T03:00:00Z", &[]).await;
    assert_eq!(client.get("/v1/boards/b").await.body["starts"], "2026-11-01T05:00");
    assert_eq!(client.put("/v1/boards/b", definition.clone()).await.status, 200);
    let mut other = definition;
    other["starts"] = "2026-11-01T06:00".into();
    let conflict = client.put("/v1/boards/b", other.clone()).await;
    assert_eq!(conflict.refusal(), (409, "board_conflict"));
    let dry = client.put("/v1/boards/b?dry_run=true", other).await.body;
    assert_eq!((&dry["conflict"]["keys"], &dry["starts"]), (&json!(["starts"]), &json!("2026-11-01T06:00")));
}

#[actix_web::test]
async fn weeks_months_quarters_and_years_begin_where_the_definition_says() {
    // It is Friday, 2 January.
    for (length, starts, zone, from, to) in [
        ("1w", "2026-11-01", "UTC", "2025-12-28T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("7d", "2026-11-03T05:00", "America/New_York", "2025-12-30T10:00:00Z", "2026-01-06T10:00:00Z"),
        ("1mo", "2026-11-15", "Europe/Berlin", "2025-12-14T23:00:00Z", "2026-01-14T23:00:00Z"),
        ("3mo", "2026-11-01T05:00", "Europe/Berlin", "2025-11-01T04:00:00Z", "2026-02-01T04:00:00Z"),
        ("1y", "2000-04-06", "Europe/London", "2025-04-05T23:00:00Z", "2026-04-05T23:00:00Z"),
    ] {
        let metric = format!("COUNT({length}, like, post_id)");
        let site = with(json!({"metric": metric, "slot": length, "timezone": zone, "starts": starts})).await;
        let client = &site.client;
        let items = json!({"increments": [{"subject": "a", "at": from}]});
        assert_eq!(client.add("b", items).await.body["accepted"], 1, "{length}");
        assert_shown(client, from, to, &["a"]).await;
        client.set_clock(to).await;
        assert!(shown(client).await.2.is_empty(), "{length}");
    }
    // A year of quarters, which begin in January where nothing else is said.
    let site = with(json!({"metric": "COUNT(1y, like, post_id)", "slot": "3mo"})).await;
    assert_shown(&site.client, "2025-04-01T00:00:00Z", "2026-04-01T00:00:00Z", &[]).await;
    assert_eq!(site.client.get("/v1/boards/b").await.body.get("starts"), None);
}

#[actix_web::test]
async fn windows_and_movement_have_the_same_day() {
    let site = with(json!({"metric": "SUM(24h, like, amount, post_id)", "slot": "1h", "windows": ["1d/1d", "all"],
        "timezone": "Europe/Berlin", "movement": "1d", "starts": "2026-11-01T05:00"}))
    .await;
    let client = &site.client;
    let add = async |subject: &str, amount: u32| {
        let answer = client.add("b", json!({"subject": subject, "amount": amount})).await;
        assert_eq!(answer.body["accepted"], 1, "{answer:?}");
    };
    add("a", 2).await;
    add("b", 1).await;
    // The window ends with this hour, as the scheduler would have it.
    client.set_clock("2026-01-03T03:30:00Z").await;
    for window in ["24h", "all", "1d"] {
        client.get(&format!("/v1/boards/b/rankings?window={window}")).await;
    }
    client.set_clock("2026-01-03T04:10:00Z").await;
    add("b", 5).await;
    for (window, from) in [("24h", json!([2, 1])), ("all", json!([2, 1])), ("1d", json!([2]))] {
        let page = client.get(&format!("/v1/boards/b/rankings?window={window}")).await.body;
        let lines: Vec<&Json> = page["items"].as_array().unwrap().iter().map(|line| &line["from"]).collect();
        assert_eq!((&page["from_as_of"], json!(lines)), (&json!("2026-01-03T04:00:00Z"), from), "{window}: {page}");
    }
}

#[actix_web::test]
async fn a_season_of_quarters_is_named_by_first_days() {
    let site = with(json!({"metric": "SUM(all, sale, amount, seller)", "timezone": "America/New_York",
        "season": {"every": "3mo", "grace": "2h", "archive": 4}, "starts": "2025-12-01T05:00"}))
    .await;
    let client = &site.client;
    let period = |name: &str, start: &str, end: &str, is_final: bool| json!({"name": name, "start": start, "end": end, "final": is_final});
    let first = period("2025-12-01", "2025-12-01T10:00:00Z", "2026-03-01T10:00:00Z", false);
    assert_eq!(client.get("/v1/boards/b").await.body["period"], first);
    let sell = async |query: &str, item: Json| client.post(&format!("/v1/boards/b/increments{query}"), item).await.body;
    assert_eq!(sell("?period=2025-12-01", json!({"subject": "a", "amount": 3})).await["accepted"], 1);
    client.set_clock("2026-03-01T10:00:00Z").await;
    let late = json!({"subject": "a", "amount": 4, "at": "2026-03-01T09:59:59.999Z"});
    assert_eq!(sell("?period=2025-12-01", late).await["accepted"], 1);
    assert_eq!(sell("?period=2026-03-01", json!({"subject": "b", "amount": 1})).await["accepted"], 1);
    client.set_clock("2026-06-01T09:00:01Z").await;
    let names = async |query: &str| {
        let list = client.get(&format!("/v1/boards/b/periods{query}")).await.body;
        list["items"].as_array().unwrap().iter().map(|item| item["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["2025-12-01", "2026-03-01", "2026-06-01"]);
    assert_eq!(names("?final=true").await, ["2025-12-01"]);
    assert_eq!(names("?after=2025-12-01").await, ["2026-03-01", "2026-06-01"]);
    assert_eq!(client.get("/v1/boards/b/periods?after=2025-12").await.status, 422);
    for (name, score) in [("2025-12-01", 7), ("2026-03-01", 1), ("previous", 1)] {
        let page = client.get(&format!("/v1/boards/b/rankings?period={name}")).await.body;
        assert_eq!(page["items"][0]["score"], score, "{page}");
    }
    for name in ["2025-12", "2025-12-02", "2026-03-01T05", "2026"] {
        let unknown = client.get(&format!("/v1/boards/b/rankings?period={name}")).await;
        assert_eq!(unknown.refusal(), (404, "unknown_period"), "{name}");
    }
    assert_eq!(client.send(Method::POST, "/v1/boards/b/close", None, "").await.refusal(), (409, "period_conflict"));
}

#[actix_web::test]
async fn what_starts_cannot_say_is_refused() {
    let site = Site::new().await;
    let day = json!({"metric": "COUNT(1d, a, b)", "slot": "1d"});
    let month = json!({"metric": "COUNT(1y, a, b)", "slot": "1mo"});
    let hour = json!({"metric": "COUNT(24h, a, b)", "slot": "1h"});
    let season = json!({"metric": "COUNT(all, a, b)", "season": {"every": "14d", "start": "2026-11-02"}});
    for (definition, starts, field, part) in [
        (&day, json!("2026-11-02T05:30"), "starts", "is not a day or a whole hour of a day"),
        (&day, json!("05:00"), "starts", "is not a day or a whole hour of a day"),
        (&day, json!(5), "starts", "string"),
        (&month, json!("2026-11-30"), "starts", "a day from 1 to 28"),
        (&hour, json!("2026-11-02T05:00"), "starts", "has no effect"),
        (&season, json!("2026-11-02"), "season", "no 'start' beside 'starts'"),
    ] {
        let mut definition = definition.clone();
        definition["starts"] = starts;
        for path in ["/v1/boards/b", "/v1/boards/b?dry_run=true"] {
            let refused = site.client.put(path, definition.clone()).await;
            assert_eq!((refused.status, &refused.body["field"]), (422, &json!(field)), "{definition}: {refused:?}");
            assert!(refused.body["detail"].as_str().unwrap().contains(part), "{refused:?}");
        }
    }
    for (slot, window) in [("5mo", "10mo"), ("2y", "4y"), ("3mo", "4mo")] {
        let metric = format!("COUNT({window}, a, b)");
        let refused = site.client.put("/v1/boards/b", json!({"metric": metric, "slot": slot})).await;
        assert_eq!(refused.status, 422, "{slot}: {refused:?}");
    }
    let null =
        site.client.put("/v1/boards/b", json!({"metric": "COUNT(1d, a, b)", "slot": "1d", "starts": null})).await;
    assert_eq!((null.status, null.body.get("starts")), (201, None));
}

#[actix_web::test]
async fn slots_of_seven_days_say_that_they_begin_on_thursdays() {
    let site = Site::new().await;
    let client = &site.client;
    let notes = async |definition: Json| {
        let dry = client.put("/v1/boards/b?dry_run=true", definition).await;
        assert_eq!(dry.status, 200, "{dry:?}");
        dry.body["notes"].clone()
    };
    let sevens = json!({"metric": "COUNT(7d, a, b)", "slot": "7d"});
    let note = notes(sevens.clone()).await;
    let expected = "slots of 7d begin on Thursdays, because days are counted from 1970-01-01: for another day give 'starts', \
        such as 2026-11-02 for Mondays, or write 1w, which begins on Mondays";
    assert_eq!(note, json!([expected]));
    let defined = client.put("/v1/boards/b", sevens).await;
    assert_eq!((defined.status, &defined.body["notes"]), (201, &note));
    assert_eq!(client.get("/v1/boards/b").await.body["notes"], note);
    assert_eq!(notes(json!({"metric": "COUNT(7d, a, b)", "slot": "7d", "starts": "2026-11-02"})).await, Json::Null);
    assert_eq!(notes(json!({"metric": "COUNT(1w, a, b)", "slot": "1w"})).await, Json::Null);
}

/// A successor may begin its days elsewhere. It is filled where its slots consist of slots of the board.
#[actix_web::test]
async fn a_successor_whose_days_begin_at_five_is_filled_from_hours() {
    let site = Site::new().await;
    let client = &site.client;
    client.define("b", "COUNT(48h, like, post_id)", "1h").await;
    let items = json!({"increments": [
        {"subject": "a", "at": "2026-01-02T05:00:00Z"}, {"subject": "b", "at": "2026-01-02T04:59:59Z"}]});
    assert_eq!(client.add("b", items).await.body["accepted"], 2);
    let next = json!({"metric": "COUNT(1d, like, post_id)", "slot": "1d", "starts": "2026-11-01T05:00"});
    let begun = client.put("/v1/boards/b/next", next).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let changes = begun.body["changes"].as_array().unwrap();
    assert!(changes.contains(&json!({"key": "starts", "board": null, "edition": "2026-11-01T05:00"})), "{begun:?}");
    site.tick().await;
    assert_eq!(client.get("/v1/boards/b/next").await.body["fill"]["state"], "done");
    let page = client.get("/v1/boards/b/rankings?of=next").await.body;
    assert_eq!((&page["total"], &page["items"][0]["subject"]), (&json!(1), &json!("a")), "{page}");
    assert_eq!(page["window"]["from"], "2026-01-02T05:00:00Z");
    // What the next one does not name is that of the board.
    assert_eq!(client.send(Method::POST, "/v1/boards/b/next/promote", None, "").await.status, 200);
    assert_eq!(client.delete("/v1/boards/b/previous").await.status, 200);
    let another = client.put("/v1/boards/b/next", json!({"metric": "COUNT(2d, like, post_id)", "slot": "1d"})).await;
    assert_eq!((another.status, &another.body["starts"]), (201, &json!("2026-11-01T05:00")), "{another:?}");
}
