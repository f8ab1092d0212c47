//! Streams of live rankings of a running service, on both stores.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::event_stream::{Follower, View};
use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;

const START: &str = "2026-01-01T00:00:00Z";
/// The windows of the board, each of which has a stream.
const WINDOWS: [&str; 3] = ["3h", "10m", "all"];

/// Writes, or moves the clock and rolls over.
async fn step(service: &Running, random: &mut StdRng, minute: &mut u32) {
    if random.random_bool(0.3) {
        *minute += random.random_range(1..90);
        let now = format!("2026-01-{:02}T{:02}:{:02}:00Z", 1 + *minute / 1_440, *minute / 60 % 24, *minute % 60);
        service.ok("PUT", "/v1/clock", Some(json!({ "now": now }))).await;
        service.ok("POST", "/v1/boards/b/rollover", None).await;
    } else {
        let count = random.random_range(1..12);
        let increments: Vec<_> =
            (0..count).map(|_| json!({"subject": format!("s{}", random.random_range(0..25))})).collect();
        service.ok("POST", "/v1/boards/b/increments", Some(json!({ "increments": increments }))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_follow_the_rankings_and_end_when_the_service_stops() {
    let seed = crate::drawn::seed();
    let server = RedisServer::start(&Engine::available()[0]);
    for store in ["embedded", &server.url()] {
        let (mut random, mut minute) = (StdRng::seed_from_u64(seed), 0);
        let folder = tempfile::tempdir().unwrap();
        let mut service = Running::start(folder.path(), &["--store", store, "--clock", &format!("simulated={START}")]);
        let definition = json!({"metric": "COUNT(3h, like, post)", "slot": "1h", "windows": ["10m/1m", "all"]});
        service.ok("PUT", "/v1/boards/b", Some(definition)).await;
        let mut views = Vec::new();
        for window in WINDOWS {
            let url = format!("{}/v1/boards/b/stream?limit=10&window={window}", service.base);
            let mut follower = Follower::open(&url, &[]).await;
            assert_eq!(follower.headers["content-type"], "text/event-stream");
            let mut view = View::default();
            view.apply(follower.expect("page").await);
            views.push((window, follower, view));
        }
        for _ in 0..8 {
            for _ in 0..random.random_range(1..4) {
                step(&service, &mut random, &mut minute).await;
            }
            for (window, follower, view) in &mut views {
                let path = format!("/v1/boards/b/rankings?limit=10&window={window}");
                let page = service.ok("GET", &path, None).await;
                // The stream reaches the page.
                while (&json!(view.items), &view.window, &view.total)
                    != (&page["items"], &page["window"], &page["total"])
                {
                    view.apply(follower.next().await.expect("an event"));
                }
            }
        }
        let begun = Instant::now();
        assert!(tokio::task::block_in_place(|| service.terminate()).success());
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        for (_, mut follower, mut view) in views {
            while let Some(event) = follower.next().await {
                view.apply(event);
            }
        }
    }
}
