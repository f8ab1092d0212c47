//! Lines of a ranking whose subjects were removed: they keep their places, and pages go past them as past others.

use reqwest::Method;
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
    // Tied lines are backward in the bytes of their subjects.
    site.switch.lose(&["e", "b", "c"]);
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

#[actix_web::test]
async fn a_cursor_at_a_line_that_never_was_is_a_place_like_any_other() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "a", "a", "b", "b", "c"]).await;
    site.switch.lose(&["b"]);
    let page = site.client.get("/v1/boards/b/rankings?limit=2").await.body;
    let cursor = page["next"].as_str().unwrap().to_owned();
    // Nobody can ask for such a subject, but a cursor that was made for it may come where there is no such line.
    site.switch.lose(&[]);
    let after = site.client.get(&format!("/v1/boards/b/rankings?cursor={cursor}")).await;
    assert_eq!((after.status, &after.body["items"]), (200, &json!([line(3, Some("c"), 1)])), "{after:?}");
    for path in ["%011", "%010"] {
        let refused = site.client.get(&format!("/v1/boards/b/subjects/{path}")).await;
        assert_eq!(refused.refusal(), (400, "invalid_subject"), "{path}");
    }
    let rejected = site.client.add("b", json!({"increments": [{"subject": "\u{1}0"}]})).await;
    assert_eq!(rejected.body["rejected"][0]["code"], "invalid_subject", "{rejected:?}");
}
