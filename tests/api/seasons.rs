//! Seasons: periods that are listed, read, named by writes, followed and closed.

use rolltop::board::BoardName;
use rolltop::store::SheetId;
use serde_json::{Value as Json, json};

use crate::client::Client;
use crate::event_stream::Follower;
use crate::site::Site;

/// A board whose period is a day with two hours of grace.
async fn with_days() -> Site {
    let site = Site::new().await;
    let season = json!({"every": "1d", "grace": "2h", "archive": 2});
    let definition = json!({"metric": "SUM(all, sale, amount, seller)", "season": season});
    let defined = site.client.put("/v1/boards/b", definition).await;
    assert_eq!((defined.status, &defined.body["season"]), (201, &season), "{defined:?}");
    let period =
        json!({"name": "2026-01-02", "start": "2026-01-02T00:00:00Z", "end": "2026-01-03T00:00:00Z", "final": false});
    assert_eq!(defined.body["period"], period);
    site
}

async fn sell(client: &Client, who: &str, amount: u32) {
    let answer = client.add("b", json!({"subject": who, "amount": amount})).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{answer:?}");
}

/// Returns name, whether it is final, number of subjects and the winner of each period.
fn shown<'a>(list: &'a Json) -> Vec<(&'a str, bool, u64, Option<&'a str>)> {
    let of = |period: &'a Json| {
        let (name, winner) = (period["name"].as_str().unwrap(), period["winners"][0]["subject"].as_str());
        (name, period["final"] == true, period["total"].as_u64().unwrap(), winner)
    };
    list["items"].as_array().unwrap().iter().map(of).collect()
}

#[actix_web::test]
async fn periods_are_listed_with_their_winners_and_read_by_name() {
    let site = with_days().await;
    let client = &site.client;
    sell(client, "a", 3).await;
    sell(client, "b", 5).await;
    client.set_clock("2026-01-03T01:00:00Z").await;
    sell(client, "c", 1).await;
    let late = json!({"subject": "a", "amount": 9, "at": "2026-01-02T12:00:00Z"});
    assert_eq!(client.add("b", late.clone()).await.body["accepted"], 1);
    let list = client.get("/v1/boards/b/periods").await.body;
    assert_eq!(shown(&list), [("2026-01-02", false, 2, Some("a")), ("2026-01-03", false, 1, Some("c"))]);
    assert_eq!(shown(&client.get("/v1/boards/b/periods?final=true").await.body), []);
    client.set_clock("2026-01-03T02:00:00Z").await;
    let refused = client.add("b", json!({"increments": [late]})).await;
    assert_eq!(refused.body["rejected"][0]["code"], "too_late", "{refused:?}");
    // The feed of what is final, from the period that was handled last.
    let list = client.get("/v1/boards/b/periods?final=true&after=2026-01-01").await.body;
    assert_eq!(shown(&list), [("2026-01-02", true, 2, Some("a"))]);
    assert_eq!(list["items"][0]["winners"][0], json!({"rank": 1, "subject": "a", "score": 12}));
    assert_eq!(shown(&client.get("/v1/boards/b/periods?final=true&after=2026-01-02").await.body), []);
    let only = client.get("/v1/boards/b/periods?limit=1&winners=1").await.body;
    assert_eq!((shown(&only).len(), only["items"][0]["winners"].as_array().unwrap().len()), (1, 1));
    assert_eq!((&only["next"], &list["next"]), (&json!("2026-01-02"), &Json::Null));
    for after in ["November", "0", "2026-01", ""] {
        let refused = client.get(&format!("/v1/boards/b/periods?after={after}")).await;
        assert_eq!((refused.status, &refused.body["field"]), (422, &json!("after")), "{after}: {refused:?}");
    }
    for (name, expected) in [("previous", "2026-01-02"), ("current", "2026-01-03")] {
        let page = client.get(&format!("/v1/boards/b/rankings?period={name}")).await.body;
        assert_eq!(page["period"]["name"], expected);
    }
    // Every read of a ranking takes the name.
    for (path, member, expected) in [
        ("rankings?", "total", json!(2)),
        ("subjects/b?", "rank", json!(2)),
        ("subjects/b/neighbors?radius=1&", "total", json!(2)),
        ("distribution?percentiles=100&", "percentiles", json!([{"percentile": 100.0, "score": 12}])),
    ] {
        let answer = client.get(&format!("/v1/boards/b/{path}period=2026-01-02")).await;
        assert_eq!((answer.status, &answer.body[member]), (200, &expected), "{path}: {answer:?}");
        assert_eq!(
            (&answer.body["period"]["name"], &answer.body["period"]["final"]),
            (&json!("2026-01-02"), &json!(true))
        );
        let current = client.get(&format!("/v1/boards/b/{path}")).await;
        assert_eq!(current.body["period"]["name"], "2026-01-03", "{path}: {current:?}");
    }
    let found = client.post("/v1/boards/b/rankings/lookup?period=2026-01-02", json!({"subjects": ["b"]})).await;
    assert_eq!(found.body["items"][0]["rank"], 2, "{found:?}");
    let unknown = client.get("/v1/boards/b/rankings?period=2026-01-09").await;
    assert_eq!(unknown.refusal(), (404, "unknown_period"));
    assert_eq!(unknown.body["periods"], json!(["2026-01-03", "2026-01-02"]));
    let both = client.get("/v1/boards/b/rankings?period=2026-01-02&of=next").await;
    assert_eq!((both.status, both.code()), (422, "invalid_field"));
    let path = "/v1/boards/b/rankings?period=2026-01-02";
    let csv = client.send_with(reqwest::Method::GET, path, &[("accept", "text/csv")], "").await;
    assert_eq!(csv.text, "rank,subject,score\r\n1,a,12\r\n2,b,5\r\n");
}

#[actix_web::test]
async fn a_subject_is_removed_and_hidden_in_every_period() {
    let site = with_days().await;
    let client = &site.client;
    for who in ["a", "b", "c"] {
        sell(client, who, 3).await;
    }
    client.set_clock("2026-01-03T12:00:00Z").await;
    sell(client, "a", 1).await;
    let total = async |period: &str| {
        client.get(&format!("/v1/boards/b/rankings?period={period}")).await.body["total"].as_u64().unwrap()
    };
    assert_eq!((total("2026-01-02").await, total("2026-01-03").await), (3, 1));
    assert_eq!(client.put("/v1/boards/b/subjects/a/hidden", json!({})).await.status, 200);
    assert_eq!((total("2026-01-02").await, total("2026-01-03").await), (2, 0));
    client.delete("/v1/boards/b/subjects/a/hidden").await;
    assert_eq!(client.delete("/v1/boards/b/subjects/a").await.status, 200);
    assert_eq!((total("2026-01-02").await, total("2026-01-03").await), (2, 0));
}

#[actix_web::test]
async fn items_that_name_another_period_are_rejected() {
    let site = with_days().await;
    let client = &site.client;
    let to = |period: &str| format!("/v1/boards/b/increments?period={period}");
    let item = json!({"subject": "a"});
    assert_eq!(client.post(&to("2026-01-02"), item.clone()).await.body["accepted"], 1);
    for period in ["2026-01-03", "2026-01-01", "nonsense"] {
        let unknown = client.post(&to(period), item.clone()).await;
        assert_eq!(unknown.refusal(), (404, "unknown_period"), "{unknown:?}");
    }
    for period in ["2026-01-02", "current"] {
        let item = json!({"subject": "a", "at": "2026-01-01T10:00:00Z"});
        let refused = client.post(&to(period), item.clone()).await;
        assert_eq!(refused.body["rejected"][0]["code"], "wrong_period", "{refused:?}");
        let detail = refused.body["rejected"][0]["detail"].as_str().unwrap();
        assert!(detail.ends_with("those that take items are 2026-01-02"), "{detail}");
    }
    // The name of a period that no call has begun yet.
    client.set_clock("2026-01-03T00:00:00Z").await;
    assert_eq!(client.post(&to("2026-01-03"), item.clone()).await.body["accepted"], 1);
    let lines = "{\"subject\":\"a\"}\n{\"subject\":\"a\",\"at\":\"2026-01-02T09:00:00Z\"}\n";
    let kind = Some("application/x-ndjson");
    let answer = client.send(reqwest::Method::POST, &to("2026-01-02"), kind, lines.to_owned()).await;
    assert_eq!((&answer.body["accepted"], &answer.body["rejected"][0]["line"]), (&json!(1), &json!(1)), "{answer:?}");
    let set = client.put("/v1/boards/b/samples?period=2026-01-02", json!({"subject": "a", "amount": 7})).await;
    assert_eq!(set.body["rejected"][0]["code"], "wrong_period", "{set:?}");
    // A period that is final, of which this instance has not heard.
    client.set_clock("2026-01-03T02:00:00Z").await;
    for (at, code, begins) in [
        (Some("2026-01-02T09:00:00Z"), "too_late", "the time is in no period that takes items"),
        (Some("2026-01-01T09:00:00Z"), "wrong_period", "the time is not in the period that the request names"),
        (None, "wrong_period", "the time is not in the period that the request names"),
    ] {
        let mut item = json!({"subject": "a", "id": format!("{at:?}")});
        if let Some(at) = at {
            item["at"] = at.into();
        }
        for _ in 0..2 {
            let refused = client.post(&to("2026-01-02"), item.clone()).await;
            assert_eq!(refused.body["rejected"][0]["code"], code, "{refused:?}");
            let detail = refused.body["rejected"][0]["detail"].as_str().unwrap();
            assert!(detail.starts_with(begins) && detail.ends_with(" 2026-01-03"), "{detail}");
        }
    }
    client.define("plain", "COUNT(24h, like, post_id)", "1h").await;
    let plain = client.post("/v1/boards/plain/increments?period=2026-01-02", item).await;
    assert_eq!(plain.refusal(), (404, "unknown_period"));
    assert_eq!(client.get("/v1/boards/plain/periods").await.refusal(), (404, "unknown_period"));
    assert_eq!(client.get("/v1/boards/b/periods?by=x").await.code(), "unexpected_key");
}

#[actix_web::test]
async fn what_would_change_ended_periods_by_accident_is_refused() {
    let site = with_days().await;
    let client = &site.client;
    sell(client, "a", 3).await;
    client.set_clock("2026-01-03T05:00:00Z").await;
    let set = client.put("/v1/boards/b/subjects/a", json!({"amount": 55})).await;
    assert_eq!(set.refusal(), (409, "unsupported"));
    assert_eq!(client.get("/v1/boards/b/rankings?period=previous").await.body["items"][0]["score"], 3);
    let undone = client.add("b", json!({"increments": [{"subject": "a", "amount": 3, "retract": true}]})).await;
    assert_eq!(undone.body["rejected"][0]["code"], "missing_at", "{undone:?}");
    // A metric over all time is not about a period.
    let asked = client
        .post(
            "/v1/query",
            json!({"queries": [{"metric": "SUM(all, sale, amount, seller)", "fields": {"seller": "a"}}]}),
        )
        .await;
    assert_eq!(asked.body["answers"][0]["error"]["code"], "no_board", "{asked:?}");
    let another = json!({"metric": "SUM(all, sale, amount, seller)", "season": {"every": "1d", "archive": 3}});
    let conflict = client.put("/v1/boards/b", another).await;
    assert_eq!(conflict.refusal(), (409, "board_conflict"));
    assert!(!conflict.body["detail"].as_str().unwrap().contains("dual run"), "{conflict:?}");
    // It has data in an ended period only.
    let removed = client.post("/v1/boards/b/removals", json!({"subjects": ["a"]})).await;
    assert_eq!(removed.body["subjects"], 1, "{removed:?}");
}

#[actix_web::test]
async fn pages_that_were_begun_in_a_period_go_on_in_it() {
    let site = with_days().await;
    let client = &site.client;
    for (amount, who) in ["a", "b", "c", "d"].into_iter().enumerate() {
        sell(client, who, 9 - amount as u32).await;
    }
    let first = client.get("/v1/boards/b/rankings?limit=2").await.body;
    client.set_clock("2026-01-03T05:00:00Z").await;
    sell(client, "z", 1).await;
    let second = client.get(&format!("/v1/boards/b/rankings?cursor={}", first["next"].as_str().unwrap())).await.body;
    let subjects: Vec<_> = second["items"].as_array().unwrap().iter().map(|line| line["subject"].as_str()).collect();
    assert_eq!((subjects, &second["period"]["name"]), (vec![Some("c"), Some("d")], &json!("2026-01-02")));
    // Until the period has left the archive.
    for day in ["04", "05", "06"] {
        client.set_clock(&format!("2026-01-{day}T05:00:00Z")).await;
        client.get("/v1/boards/b/rankings").await;
    }
    let gone = client.get(&format!("/v1/boards/b/rankings?cursor={}", first["next"].as_str().unwrap())).await;
    assert_eq!(gone.code(), "stale_cursor");
}

#[actix_web::test]
async fn a_stream_shows_the_period_and_goes_over_to_the_next_one() {
    let site = with_days().await;
    let client = &site.client;
    sell(client, "a", 3).await;
    let mut follower =
        Follower::open(&format!("http://127.0.0.1:{}/v1/boards/b/stream?limit=10", client.port), &[]).await;
    let page = follower.expect("page").await.data;
    assert_eq!((&page["period"]["name"], &page["total"]), (&json!("2026-01-02"), &json!(1)));
    client.set_clock("2026-01-03T00:00:00Z").await;
    let page = follower.expect("page").await.data;
    assert_eq!((&page["period"]["name"], &page["total"]), (&json!("2026-01-03"), &json!(0)));
    sell(client, "b", 1).await;
    let change = follower.expect("change").await.data;
    assert_eq!(change["rows"][0]["subject"], "b");
}

#[actix_web::test]
async fn a_period_that_nobody_reads_ends_at_a_tick() {
    let site = with_days().await;
    sell(&site.client, "a", 3).await;
    let name = rolltop::board::BoardName::parse("b").unwrap();
    for (time, editions, archive) in [
        ("2026-01-02T23:59:59Z", 1, 0),
        ("2026-01-03T00:00:00Z", 2, 0),
        ("2026-01-03T01:59:59Z", 2, 0),
        ("2026-01-03T02:00:00Z", 1, 1),
    ] {
        site.client.set_clock(time).await;
        site.tick().await;
        let board = site.store.board(&name).await.unwrap().unwrap();
        assert_eq!((board.editions().len(), board.archive().len()), (editions, archive), "{time}");
    }
}

#[actix_web::test]
async fn a_period_is_closed_by_hand_once() {
    let site = Site::new().await;
    let client = &site.client;
    let definition = json!({"metric": "COUNT(all, goal, player)", "season": {"every": "manual", "grace": "10m"}});
    let defined = client.put("/v1/boards/b", definition).await;
    assert_eq!(
        (&defined.body["period"]["name"], &defined.body["period"]["end"]),
        (&json!("1"), &Json::Null),
        "{defined:?}"
    );
    client.count("b", &["a", "a", "b"]).await;
    let closed = client.post("/v1/boards/b/close?period=1", json!({})).await;
    assert_eq!(closed.status, 200, "{closed:?}");
    assert_eq!((&closed.body["closed"]["name"], &closed.body["current"]["name"]), (&json!("1"), &json!("2")));
    assert_eq!(closed.body["closed"]["end"], "2026-01-02T10:07:00Z");
    let again = client.post("/v1/boards/b/close?period=1", json!({})).await;
    assert_eq!(again.body, closed.body, "a call that is repeated does nothing");
    let early = client.post("/v1/boards/b/close", json!({})).await;
    assert_eq!((early.refusal(), &early.body["until"]), ((409, "period_conflict"), &json!("2026-01-02T10:17:00Z")));
    assert_eq!(client.post("/v1/boards/b/close?period=7", json!({})).await.refusal(), (404, "unknown_period"));
    client.set_clock("2026-01-02T10:17:00Z").await;
    assert_eq!(client.post("/v1/boards/b/close", json!({})).await.body["current"]["name"], "3");
    let list = client.get("/v1/boards/b/periods").await.body;
    assert_eq!(
        list["items"].as_array().unwrap().iter().map(|period| &period["name"]).collect::<Vec<_>>(),
        ["1", "2", "3"]
    );
    let site = with_days().await;
    let refused = site.client.post("/v1/boards/b/close", json!({})).await;
    assert_eq!(refused.refusal(), (409, "period_conflict"));
    assert!(refused.body["detail"].as_str().unwrap().contains("end by the calendar"), "{refused:?}");
}

#[actix_web::test]
async fn impossible_seasons_are_refused() {
    let site = Site::new().await;
    let all = "COUNT(all, like, post)";
    for (metric, more, part) in [
        ("COUNT(24h, like, post)", json!({"slot": "1h", "season": {"every": "1d"}}), "only with the window all"),
        (all, json!({"windows": ["7d/6h"], "season": {"every": "1d"}}), "together with 'season'"),
        (all, json!({"slot": "1h", "keep": "3h", "season": {"every": "1d"}}), "together with 'season'"),
        (all, json!({"season": {"every": "30m", "grace": "1m"}}), "from 1h to 10y"),
        (all, json!({"season": {"every": "100000000d"}}), "from 1h to 10y"),
        (all, json!({"season": {"every": "5h"}}), "must divide 24 h"),
        (all, json!({"season": {"every": "1d", "grace": "13h"}}), "at most half"),
        (all, json!({"season": {"every": "1mo", "grace": "25h"}}), "ids are remembered"),
        (all, json!({"dedupe": "1m", "season": {"every": "1mo"}}), "ids are remembered"),
        (all, json!({"season": {"every": "1mo", "start": "2026-01-01"}}), "number of days"),
        (all, json!({"season": {"every": "14d", "start": "2026-02-30"}}), "is not a day"),
        (all, json!({"season": {"every": "1mo", "archive": 101}}), "from 0 to 100"),
        (all, json!({"season": {"every": "monthly"}}), "'manual'"),
        (all, json!({"season": {"every": "manual"}, "shards": 3}), "closed by hand"),
        (all, json!({"season": {}}), "every"),
        (all, json!({"season": {"every": "1d", "length": 1}}), "length"),
    ] {
        let mut definition = more;
        definition["metric"] = json!(metric);
        let answer = site.client.put("/v1/boards/b", definition.clone()).await;
        assert!(answer.status == 422 || answer.status == 400, "{definition}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(part), "{definition}: {answer:?}");
    }
    let fortnight = json!({"metric": all, "timezone": "Europe/Berlin",
        "season": {"every": "14d", "start": "2026-01-01", "grace": "12h"}});
    let defined = site.client.put("/v1/boards/b", fortnight).await;
    assert_eq!(
        (&defined.body["period"]["name"], &defined.body["period"]["start"]),
        (&json!("2026-01-01"), &json!("2025-12-31T23:00:00Z")),
        "{defined:?}"
    );
    // After a period has ended the board has two editions, and the reason is the same.
    for _ in 0..2 {
        let next = site.client.put("/v1/boards/b/next", json!({"metric": all})).await;
        assert_eq!((next.status, &next.body["field"]), (422, &json!("season")), "{next:?}");
        site.client.put("/v1/clock", json!({"now": "2026-01-14T23:10:00Z"})).await;
        // The first to ask notices it.
        assert_eq!(site.client.get("/v1/boards/b/hidden").await.status, 200);
    }
}

#[actix_web::test]
async fn a_removed_subject_leaves_its_line_in_a_packed_period() {
    let site = with_days().await;
    let client = &site.client;
    for (who, amount) in [("a", 3), ("b", 5), ("c", 1)] {
        sell(client, who, amount).await;
    }
    client.set_clock("2026-01-03T02:00:00Z").await;
    sell(client, "a", 1).await;
    site.pack("b").await;
    let removed = client.delete("/v1/boards/b/subjects/b").await;
    assert_eq!(removed.status, 200, "{removed:?}");
    let path = "/v1/boards/b/rankings?period=previous";
    let page = client.get(path).await.body;
    let lines = json!([
        {"rank": 1, "subject": null, "score": 5},
        {"rank": 2, "subject": "a", "score": 3},
        {"rank": 3, "subject": "c", "score": 1}
    ]);
    assert_eq!((&page["items"], &page["total"], &page["period"]["final"]), (&lines, &json!(3), &json!(true)));
    // Pages go on behind the line, and before it.
    let first = client.get(&format!("{path}&limit=1")).await.body;
    let next = client.get(&format!("{path}&limit=1&cursor={}", first["next"].as_str().unwrap())).await.body;
    assert_eq!(next["items"], json!([lines[1]]), "{next:?}");
    let back = client.get(&format!("{path}&limit=1&cursor={}", next["prev"].as_str().unwrap())).await.body;
    assert_eq!(back["items"], json!([lines[0]]), "{back:?}");
    let list = client.get("/v1/boards/b/periods?final=true&winners=1").await.body;
    assert_eq!(list["items"][0]["winners"], json!([lines[0]]));
    let csv = client.send_with(reqwest::Method::GET, path, &[("accept", "text/csv")], "").await;
    assert_eq!(csv.text, "rank,subject,score\r\n1,,5\r\n2,a,3\r\n3,c,1\r\n");
    let gone = client.get("/v1/boards/b/subjects/b?period=previous").await.body;
    assert_eq!((&gone["rank"], &gone["score"]), (&Json::Null, &json!(0)), "{gone:?}");
    // What a write about the current period does is not affected.
    assert_eq!(client.get("/v1/boards/b/rankings").await.body["items"][0]["subject"], "a");
    // Nothing is left to compare.
    let audit = client.post("/v1/boards/b/audit?period=previous", json!({})).await;
    assert_eq!((audit.status, &audit.body["differences"]), (200, &json!(0)), "{audit:?}");
}

#[actix_web::test]
async fn the_first_lines_of_a_period_are_kept() {
    let site = Site::new().await;
    let client = &site.client;
    let season = json!({"every": "1d", "archive_top": 2});
    let definition = json!({"metric": "SUM(all, sale, amount, seller)", "season": season});
    let dry = client.put("/v1/boards/b?dry_run=true", definition.clone()).await;
    let bytes = |answer: &crate::client::Answer| answer.body["bytes_per_archived_line"].as_u64();
    assert!(bytes(&dry).is_some_and(|bytes| (20..30).contains(&bytes)), "{dry:?}");
    let windows = client.put("/v1/boards/w?dry_run=true", json!({"metric": "COUNT(1h, e, s)", "slot": "1m"})).await;
    assert_eq!(bytes(&windows), None);
    let defined = client.put("/v1/boards/b", definition).await;
    assert_eq!((defined.status, &defined.body["season"]["archive_top"]), (201, &json!(2)));
    for (who, amount) in [("a", 3), ("b", 5), ("c", 1)] {
        sell(client, who, amount).await;
    }
    client.set_clock("2026-01-03T01:00:00Z").await;
    site.pack("b").await;
    let page = client.get("/v1/boards/b/rankings?period=previous").await.body;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["total"]), (2, &json!(3)));
    let found = client.post("/v1/boards/b/rankings/lookup?period=previous", json!({"subjects": ["a", "c"]})).await;
    let ranks: Vec<&Json> = found.body["items"].as_array().unwrap().iter().map(|item| &item["rank"]).collect();
    assert_eq!(ranks, [&json!(2), &Json::Null]);
    let refused = client.get("/v1/boards/b/distribution?percentiles=50&period=previous").await;
    assert!(refused.status == 409 && refused.body["detail"].as_str().unwrap().contains("first 2 of 3"), "{refused:?}");
    for (season, says) in [
        (json!({"every": "1d", "archive_top": 0}), "0 is neither 'all' nor a whole number of lines from 1 on"),
        (json!({"every": "1d", "archive_top": "top"}), "is neither 'all' nor"),
    ] {
        let refused = client.put("/v1/boards/x", json!({"metric": "COUNT(all, e, s)", "season": season})).await;
        assert!(refused.status == 422 && refused.body["detail"].as_str().unwrap().contains(says), "{refused:?}");
    }
    let with_keys = json!({"metric": "COUNT(all, e, s BY k)", "season": {"every": "1d", "archive_top": 5}});
    let refused = client.put("/v1/boards/x", with_keys).await;
    assert!(refused.status == 422 && refused.body["detail"].as_str().unwrap().contains("'archive_top'"), "{refused:?}");
}

#[actix_web::test]
async fn a_damaged_period_is_named_with_the_way_out() {
    let site = with_days().await;
    let client = &site.client;
    for (who, amount) in [("a", 3), ("b", 5), ("c", 1)] {
        sell(client, who, amount).await;
    }
    client.set_clock("2026-01-03T02:00:00Z").await;
    sell(client, "a", 1).await;
    site.pack("b").await;
    let board = site.store.board(&BoardName::parse("b").unwrap()).await.unwrap().unwrap();
    let track = board.each_period().nth(1).unwrap().main_track();
    let change = async |id: SheetId, from: &str, to: &str| {
        assert!(site.store.change_sheet(&track, id, Some(from), to).await.unwrap(), "{id}");
    };
    let head = site.store.sheets(&track, &[SheetId::Head]).await.unwrap().texts[0].clone().unwrap();
    let audit = async |more: &str| client.post(&format!("/v1/boards/b/audit{more}"), json!({})).await.body;
    let whole = audit("").await;
    assert_eq!((&whole["differences"], whole.get("damaged_sheets")), (&json!(0), None), "{whole}");
    change(SheetId::Head, &head, "x").await;
    for path in ["rankings?period=previous", "subjects/a?period=2026-01-02", "periods"] {
        let refused = client.get(&format!("/v1/boards/b/{path}")).await;
        assert_eq!((refused.refusal(), &refused.body["board"]), ((503, "board_unreadable"), &json!("b")), "{path}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(
            detail.contains("period 2026-01-02 of board 'b' cannot be read") && detail.contains("audit"),
            "{detail}"
        );
    }
    assert_eq!(client.get("/v1/boards/b/rankings").await.body["items"][0]["subject"], "a");
    for period in ["", "?period=previous"] {
        let found = audit(period).await;
        assert_eq!((&found["differences"], &found["repaired"]), (&json!(1), &json!(0)), "{found}");
        assert_eq!(found["damaged_sheets"], json!(["sheet h of period 2026-01-02 cannot be read"]));
    }
    assert_eq!(audit("?period=current").await["differences"], 1, "it is the board itself");
    let found = audit("?repair=true").await;
    assert_eq!((&found["differences"], &found["repaired"]), (&json!(1), &json!(1)), "{found}");
    assert_eq!(audit("").await["differences"], 0);
    let page = client.get("/v1/boards/b/rankings?period=previous").await.body;
    assert_eq!((&page["total"], &page["items"][0]["subject"]), (&json!(3), &json!("b")), "{page}");
}
