//! Lines of a packed period whose subjects were removed: they keep their places, and pages go past them as past others.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use rolltop::board::BoardName;
use serde_json::{Value as Json, json};

use crate::client::Client;
use crate::site::Site;

const RANKINGS: &str = "/v1/boards/b/rankings?period=2026-01-02";

/// A board with a final period of five subjects, of which the second, the third and the last have left nameless lines.
async fn site() -> Site {
    let site = Site::new().await;
    let season = json!({"every": "1d", "grace": "2h", "archive": 2});
    let definition = json!({"metric": "SUM(all, sale, amount, seller)", "season": season});
    assert_eq!(site.client.put("/v1/boards/b", definition).await.status, 201);
    for (who, amount) in [("a", 9), ("b", 8), ("c", 8), ("d", 7), ("e", 6)] {
        site.client.add("b", json!({"subject": who, "amount": amount})).await;
    }
    site.client.set_clock("2026-01-04T01:00:00Z").await;
    // The first to ask notices that the period has ended.
    assert_eq!(site.client.get(RANKINGS).await.body["period"]["final"], true);
    let board = site.store.board(&BoardName::parse("b").unwrap()).await.unwrap().unwrap();
    assert!(site.service().pack_periods(&board).await.unwrap());
    for who in ["b", "c", "e"] {
        assert_eq!(site.client.delete(&format!("/v1/boards/b/subjects/{who}")).await.status, 200);
    }
    site
}

fn line(rank: u64, subject: Option<&str>, score: u64) -> Json {
    json!({"rank": rank, "subject": subject, "score": score})
}

fn lines() -> [Json; 5] {
    [line(1, Some("a"), 9), line(2, None, 8), line(2, None, 8), line(4, Some("d"), 7), line(5, None, 6)]
}

/// Returns the lines of all pages from the end that this member leads away from, and the first page at the other end.
async fn walked(client: &Client, first: Json, member: &str, limit: u32) -> (Vec<Json>, Json) {
    let (mut lines, mut page) = (Vec::new(), first);
    loop {
        let mut items = page["items"].as_array().unwrap().clone();
        if member == "prev" {
            items.reverse();
        }
        lines.extend(items);
        let Some(cursor) = page[member].as_str() else { return (lines, page) };
        let answer = client.get(&format!("{RANKINGS}&limit={limit}&cursor={cursor}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        page = answer.body;
    }
}

#[actix_web::test]
async fn pages_go_past_nameless_lines_in_both_directions() {
    let site = site().await;
    for limit in 1..=5 {
        let first = site.client.get(&format!("{RANKINGS}&limit={limit}")).await.body;
        let (down, last) = walked(&site.client, first, "next", limit).await;
        assert_eq!(down, lines(), "limit {limit}");
        let (mut up, _) = walked(&site.client, last, "prev", limit).await;
        up.reverse();
        assert_eq!(up, lines(), "limit {limit}");
    }
}

#[actix_web::test]
async fn exports_have_nameless_lines_and_go_on_after_one() {
    let site = site().await;
    let get = async |path: &str, accept| site.client.send_with(Method::GET, path, &[("accept", accept)], "").await.text;
    let whole = get(RANKINGS, "application/x-ndjson").await;
    let ndjson = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Json>>();
    assert_eq!(ndjson(&whole)[..5], lines());
    let csv = get(RANKINGS, "text/csv").await;
    assert_eq!(csv, "rank,subject,score\r\n1,a,9\r\n2,,8\r\n2,,8\r\n4,d,7\r\n5,,6\r\n");
    let piece = ndjson(&get(&format!("{RANKINGS}&limit=2"), "application/x-ndjson").await);
    assert_eq!(piece[..2], lines()[..2]);
    let rest = format!("{RANKINGS}&cursor={}", piece[2]["next"].as_str().unwrap());
    assert_eq!(ndjson(&get(&rest, "application/x-ndjson").await)[..3], lines()[2..]);
}

#[actix_web::test]
async fn neighbors_and_winners_may_be_nameless() {
    let site = site().await;
    let around = site.client.get("/v1/boards/b/subjects/d/neighbors?radius=1&period=2026-01-02").await.body;
    assert_eq!(around["items"], json!(lines()[2..]));
    let periods = site.client.get("/v1/boards/b/periods?winners=2&final=true").await.body;
    assert_eq!(periods["items"][0]["winners"], json!(lines()[..2]));
}

/// Returns a cursor with another subject, and the checksum that it has then.
fn with_subject(cursor: &str, subject: &str) -> String {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).unwrap();
    let content = [&bytes[..18], subject.as_bytes()].concat();
    URL_SAFE_NO_PAD.encode([&content[..], &crc32c::crc32c(&content).to_be_bytes()].concat())
}

#[actix_web::test]
async fn a_cursor_at_a_line_that_never_was_is_a_place_like_any_other() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "a", "a", "b", "b", "c"]).await;
    let page = site.client.get("/v1/boards/b/rankings?limit=2").await.body;
    let at = async |subject: &str| {
        let cursor = with_subject(page["next"].as_str().unwrap(), subject);
        site.client.get(&format!("/v1/boards/b/rankings?cursor={cursor}")).await
    };
    assert_eq!(at("b").await.body["items"], json!([line(3, Some("c"), 1)]));
    for number in ["0", "7", "18446744073709551615"] {
        let after = at(&format!("\u{1}{number}")).await;
        assert_eq!((after.status, &after.body["items"]), (200, &json!([line(3, Some("c"), 1)])), "{after:?}");
    }
    for number in ["", "x", "+1", "01", "18446744073709551616"] {
        let refused = at(&format!("\u{1}{number}")).await;
        assert_eq!((refused.refusal(), &refused.body["field"]), ((422, "invalid_field"), &json!("cursor")), "{number}");
    }
    // Nobody can ask for such a subject, nor count for it.
    let refused = site.client.get("/v1/boards/b/subjects/%010").await;
    assert_eq!(refused.refusal(), (400, "invalid_subject"));
    let rejected = site.client.add("b", json!({"increments": [{"subject": "\u{1}0"}]})).await;
    assert_eq!(rejected.body["rejected"][0]["code"], "invalid_subject", "{rejected:?}");
}

#[actix_web::test]
async fn a_cursor_beyond_the_last_line_of_a_packed_period_is_at_its_end() {
    let site = site().await;
    let page = site.client.get(&format!("{RANKINGS}&limit=2")).await.body;
    for number in ["5", "18446744073709551615"] {
        let cursor = with_subject(page["next"].as_str().unwrap(), &format!("\u{1}{number}"));
        let after = site.client.get(&format!("{RANKINGS}&cursor={cursor}")).await;
        assert_eq!((after.status, &after.body["items"]), (200, &json!([])), "{after:?}");
    }
}
