//! Streams of live rankings of a running service, on both stores.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::event_stream::{Follower, View};
use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;

const STREAM: &str = "/v1/boards/b/stream?limit=10";

async fn open(service: &Running) -> Follower {
    Follower::open(&format!("{}{STREAM}", service.base), &[]).await
}

/// Applies events to a view until it is the ranking.
async fn reach(service: &Running, follower: &mut Follower, view: &mut View) {
    let page = service.ok("GET", "/v1/boards/b/rankings?limit=10", None).await;
    while view.items != *page["items"].as_array().unwrap() {
        view.apply(follower.next().await.expect("an event"));
    }
    assert_eq!(view.total, page["total"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_follow_the_ranking_and_end_when_the_service_stops() {
    let server = RedisServer::start(&Engine::available()[0]);
    for store in ["embedded", &server.url()] {
        let folder = tempfile::tempdir().unwrap();
        let mut service = Running::start(folder.path(), &["--store", store]);
        let definition = json!({"metric": "COUNT(1h, like, post)", "slot": "1m"});
        service.ok("PUT", "/v1/boards/b", Some(definition)).await;
        let (mut follower, mut view) = (open(&service).await, View::default());
        assert_eq!(follower.headers["content-type"], "text/event-stream");
        view.apply(follower.expect("page").await);
        for round in 0..3 {
            let increments: Vec<_> = (0..20).map(|n| json!({"subject": format!("s{}", n % (round + 2))})).collect();
            service.ok("POST", "/v1/boards/b/increments", Some(json!({"increments": increments}))).await;
            reach(&service, &mut follower, &mut view).await;
        }
        let begun = Instant::now();
        assert!(tokio::task::block_in_place(|| service.terminate()).success());
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        while let Some(event) = follower.next().await {
            view.apply(event);
        }
    }
}
