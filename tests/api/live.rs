//! Streams of live rankings.

use std::net::IpAddr;

use rand::{Rng, SeedableRng};
use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::client::Client;
use crate::event_stream::{Follower, View};
use crate::failing_store::Fault;
use crate::site::Site;

async fn follow(client: &Client, path: &str, headers: &[(&str, &str)]) -> Follower {
    Follower::open(&format!("http://127.0.0.1:{}{path}", client.port), headers).await
}

const BOARD: &str = "/v1/boards/b/rankings?limit=10";

#[actix_web::test]
async fn a_stream_begins_with_the_page_and_goes_on_with_changes() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["x", "x", "y"]).await;
    let mut follower = follow(&site.client, "/v1/boards/b/stream", &[("accept-encoding", "gzip, br")]).await;
    for (header, value) in [("content-type", "text/event-stream"), ("cache-control", "no-store")] {
        assert_eq!(follower.headers[header], value);
    }
    assert!(!follower.headers.contains_key("content-encoding"));
    let page = follower.expect("page").await;
    let ranking = site.client.get(BOARD).await;
    assert_eq!((page.id.as_deref(), &page.data["items"]), (Some(ranking.header("etag")), &ranking.body["items"]));
    assert_eq!(page.data["metric"], "COUNT(24h, like, post_id)");

    site.client.count("b", &["y", "y"]).await;
    let change = follower.expect("change").await;
    assert_eq!(
        (&change.data["rows"], &change.data["gone"], &change.data["total"]),
        (
            &json!([{"position": 1, "rank": 1, "subject": "y", "score": 3},
                    {"position": 2, "rank": 2, "subject": "x", "score": 2}]),
            &json!([]),
            &json!(2)
        )
    );
    assert_eq!(change.id.as_deref(), Some(site.client.get(BOARD).await.header("etag")));
    // A change of the window alone is one too.
    site.client.set_clock("2026-01-02T11:00:00Z").await;
    let turned = follower.expect("change").await;
    assert_eq!((&turned.data["rows"], &turned.data["window"]["to"]), (&json!([]), &json!("2026-01-02T12:00:00Z")));
    site.client.set_clock("2026-01-05T13:00:00Z").await;
    let gone = loop {
        // The slots leave the window, then they are subtracted.
        let change = follower.expect("change").await;
        if change.data["total"] == 0 {
            break change;
        }
    };
    assert_eq!(gone.data["gone"], json!(["y", "x"]));
}

#[actix_web::test]
async fn a_client_that_has_the_page_does_not_get_it_again() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["x"]).await;
    let mut first = follow(&site.client, "/v1/boards/b/stream?limit=10&interval=1s", &[]).await;
    let id = first.expect("page").await.id.unwrap();
    let mut again = follow(&site.client, "/v1/boards/b/stream", &[("last-event-id", &id)]).await;
    let mut other = follow(&site.client, "/v1/boards/b/stream", &[("last-event-id", "W/\"0\"")]).await;
    assert_eq!(other.expect("page").await.id.as_deref(), Some(&*id));
    site.client.count("b", &["x"]).await;
    for follower in [&mut first, &mut again, &mut other] {
        assert_eq!(follower.expect("change").await.data["rows"][0]["score"], 2);
    }
    // The same page from another instance has the same id.
    let elsewhere = follow(&site.second_instance(), "/v1/boards/b/stream", &[]).await.expect("page").await;
    assert_eq!(elsewhere.id.as_deref(), Some(site.client.get(BOARD).await.header("etag")));
}

#[actix_web::test]
async fn changes_applied_to_the_page_give_the_ranking() {
    let mut random = rand::rngs::StdRng::seed_from_u64(crate::drawn::seed());
    let site = Site::new().await;
    let windows = json!({"metric": "COUNT(3h, like, post_id)", "slot": "1h", "windows": ["10m/1m", "all"]});
    assert_eq!(site.client.put("/v1/boards/b", windows).await.status, 201);
    let mut views = Vec::new();
    for window in ["3h", "10m", "all"] {
        let path = format!("/v1/boards/b/stream?window={window}&limit=10");
        views.push((window, follow(&site.client, &path, &[]).await, View::default()));
    }
    let mut now = 1_440 + 10 * 60 + 7;
    for _ in 0..60 {
        match random.random_range(0..4) {
            0 => {
                now += random.random_range(1..90);
                let (day, hour, minute) = (1 + now / 1_440, now / 60 % 24, now % 60);
                site.client.set_clock(&format!("2026-01-{day:02}T{hour:02}:{minute:02}:00Z")).await;
                site.client.post("/v1/boards/b/rollover", Json::Null).await;
            }
            _ => {
                let subjects: Vec<String> =
                    (0..random.random_range(1..12)).map(|_| format!("s{}", random.random_range(0..25))).collect();
                site.client.count("b", &subjects.iter().map(String::as_str).collect::<Vec<_>>()).await;
            }
        }
        if random.random_bool(0.5) {
            continue;
        }
        for (window, follower, view) in &mut views {
            let ranking = site.client.get(&format!("/v1/boards/b/rankings?window={window}&limit=10")).await;
            // The stream reaches the page with the same tag.
            while view.id != ranking.header("etag") {
                view.apply(follower.next().await.expect("an event"));
            }
            let page = &ranking.body;
            assert_eq!(json!(view.items), page["items"], "{window}");
            assert_eq!((&view.window, &view.total), (&page["window"], &page["total"]), "{window}");
        }
    }
}

#[actix_web::test]
async fn several_views_share_a_stream() {
    let site = Site::with_board("b").await;
    assert_eq!(site.client.define("c", "COUNT(1h, like, post_id)", "1m").await.status, 201);
    let path = "/v1/stream?view=b&view=c,limit=25,window=1h&view=gone&view=b,limit=11&interval=1s";
    let mut follower = follow(&site.client, path, &[]).await;
    for (name, view) in
        [("page", "b"), ("page", "c,limit=25,window=1h"), ("problem", "gone"), ("problem", "b,limit=11")]
    {
        let event = follower.expect(name).await;
        assert_eq!((&event.data["view"], event.id), (&json!(view), None));
        assert!(event.data[name].is_object(), "{:?}", event.data);
    }
    site.client.count("c", &["x"]).await;
    let change = follower.expect("change").await.data;
    assert_eq!(
        (&change["view"], &change["change"]["rows"][0]["subject"]),
        (&json!("c,limit=25,window=1h"), &json!("x"))
    );
    // A board that is removed ends its view only.
    assert_eq!(site.client.delete("/v1/boards/c").await.status, 200);
    let problem = follower.expect("problem").await.data;
    assert_eq!(problem["problem"]["code"], "unknown_board");
    site.client.count("b", &["y"]).await;
    assert_eq!(follower.expect("change").await.data["view"], "b");

    for (path, refusal) in [
        ("/v1/stream", (422, "invalid_field")),
        ("/v1/stream?view=", (422, "invalid_field")),
        ("/v1/stream?view=b,limit=11", (422, "invalid_field")),
        ("/v1/stream?view=b,window=x", (422, "invalid_field")),
        ("/v1/stream?view=b&interval=2s", (422, "invalid_field")),
        ("/v1/stream?view=b&interval=1s&interval=1s", (422, "invalid_field")),
        ("/v1/stream?view=b&limit=10", (422, "unknown_field")),
        ("/v1/stream?view=gone&view=gone", (404, "unknown_board")),
    ] {
        assert_eq!(site.client.get(path).await.refusal(), refusal, "{path}");
    }
    let many = format!("/v1/stream?{}", ["view=b"; 21].join("&"));
    assert_eq!(site.client.get(&many).await.refusal(), (422, "invalid_field"));
}

#[actix_web::test]
async fn a_stream_tells_why_it_cannot_be_read() {
    let site = Site::with_board("b").await;
    site.client.put("/v1/boards/u", json!({"metric": "COUNT(1h, a, b)", "slot": "1m", "ranked": false})).await;
    for (path, refusal) in [
        ("/v1/boards/gone/stream", (404, "unknown_board")),
        ("/v1/boards/u/stream", (409, "not_ranked")),
        ("/v1/boards/b/stream?window=7d", (422, "invalid_field")),
        ("/v1/boards/b/stream?limit=20", (422, "invalid_field")),
        ("/v1/boards/b/stream?interval=1", (422, "invalid_field")),
        ("/v1/boards/b/stream?offset=10", (422, "unknown_field")),
    ] {
        assert_eq!(site.client.get(path).await.refusal(), refusal, "{path}");
    }
    let mut follower = follow(&site.client, "/v1/boards/b/stream", &[]).await;
    follower.expect("page").await;
    site.switch.fail(Fault::Unreachable);
    assert_eq!(follower.expect("problem").await.data["code"], "store_unreachable");
    // One that comes now gets the last page, and learns that it is not of now.
    let mut later = follow(&site.client, "/v1/boards/b/stream", &[]).await;
    later.expect("page").await;
    assert_eq!(later.expect("problem").await.data["code"], "store_unreachable");
    site.switch.work();
    // Nothing has changed, but the clients must learn that what they show is current again.
    for follower in [&mut follower, &mut later] {
        assert_eq!(follower.expect("change").await.data["rows"], json!([]));
    }

    // A board that is defined again has nothing in common with the one before.
    site.client.count("b", &["x"]).await;
    follower.expect("change").await;
    let other = site.second_instance();
    assert_eq!(other.delete("/v1/boards/b").await.status, 200);
    assert_eq!(other.define("b", "COUNT(2h, like, post_id)", "1h").await.status, 201);
    let page = follower.next().await.expect("an event");
    if page.name == "problem" {
        // It was read between the two calls, when there was no board.
        return assert!(follower.next().await.is_none());
    }
    assert_eq!(page.data["metric"], "COUNT(2h, like, post_id)");
    assert_eq!(other.delete("/v1/boards/b").await.status, 200);
    assert_eq!(follower.expect("problem").await.data["code"], "unknown_board");
    assert!(follower.next().await.is_none(), "the stream ends");
}

#[actix_web::test]
async fn the_head_of_a_stream_names_no_coding() {
    let site = Site::with_board("b").await;
    let accept = [("accept-encoding", "gzip, br")];
    let head = site.client.send_with(Method::HEAD, "/v1/boards/b/stream", &accept, "").await;
    assert_eq!((head.status, head.header("content-type")), (200, "text/event-stream"), "{head:?}");
    assert_eq!(head.header("content-encoding"), "", "{head:?}");
}

/// Characters at which some readers of lines split, such as `splitlines` of Python.
#[actix_web::test]
async fn a_subject_never_ends_a_line_of_an_event() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a\u{2028}b"]).await;
    for path in ["/v1/boards/b/stream", "/v1/stream?view=b&view=%E2%80%A8"] {
        let url = format!("http://127.0.0.1:{}{path}", site.client.port);
        let mut response = reqwest::Client::new().get(url).send().await.unwrap();
        let mut text = String::new();
        // The page, and of several views the problem of the other, whose name is not that of a board.
        while text.matches("data: ").count() < 1 + usize::from(path.contains("view")) || !text.ends_with("\n\n") {
            text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().expect("an event")).unwrap());
        }
        assert!(text.contains(r"a\u2028b") && !text.contains(['\u{85}', '\u{2028}', '\u{2029}']), "{text}");
    }
}

#[actix_web::test]
async fn a_client_with_many_views_leaves_some_to_others() {
    const BOARDS: usize = 260;
    let site = Site::new().await;
    for number in 0..BOARDS {
        let defined = site.client.define(&format!("b{number}"), "COUNT(24h, like, post_id)", "1h").await;
        assert_eq!(defined.status, 201);
    }
    let get = async |address: [u8; 4], path: &str| {
        // A connection of its own, from this address.
        let client = reqwest::Client::builder().local_address(IpAddr::from(address)).build().unwrap();
        client.get(format!("http://127.0.0.1:{}{path}", site.client.port)).send().await.unwrap()
    };
    let views = |board: usize| [10, 25, 50, 100].map(|limit| format!("view=b{board},limit={limit}")).join("&");
    let mut open = Vec::new();
    for first in (0..BOARDS).step_by(5) {
        let views = (first..first + 5).map(views).collect::<Vec<_>>().join("&");
        let mut response = get([127, 0, 0, 1], &format!("/v1/stream?{views}&interval=1m")).await;
        let first = response.chunk().await.unwrap().unwrap();
        let text = String::from_utf8_lossy(&first);
        assert_eq!((response.status().as_u16(), text.contains("problem")), (200, false), "{} streams", open.len());
        open.push(response);
    }
    // These are more views than an instance once had for all clients together.
    for address in [[127, 0, 0, 1], [127, 0, 0, 2]] {
        let response = get(address, "/v1/boards/b0/stream?interval=5s").await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["rolltop-interval"]),
            (200, &"5s".parse().unwrap())
        );
    }
}
