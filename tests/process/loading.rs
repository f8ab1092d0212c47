//! Tests of starts while Redis loads its data.

use std::time::Duration;

use serde_json::json;

use crate::redis_server::{Engine, RedisServer};
use crate::running::{Running, serve};
use crate::waiting::Wait;

/// Loads a key in half a millisecond, and answers meanwhile.
const SLOW: [&str; 8] =
    ["--save", "", "--appendonly", "no", "--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"];

/// Restarts the server on its data, and starts an instance while the server loads it. Returns the instance.
async fn start_while_loading(mut server: RedisServer, folder: &std::path::Path) -> (RedisServer, Running) {
    let url = server.url();
    server.ask::<()>(&["SAVE"]).unwrap();
    server.kill();
    // It returns when all is loaded.
    let restarting = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    let is_loading = || {
        let client = redis::Client::open(url.clone()).unwrap();
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(5)).ok()?;
        redis::cmd("INFO").arg("persistence").query::<String>(&mut connection).ok()
    };
    let wait = Wait::begin("the server to load its data");
    loop {
        let state = is_loading();
        if state.as_ref().is_some_and(|state| state.contains("loading:1")) {
            break;
        }
        assert!(!state.is_some_and(|state| state.contains("loading:0")), "it has loaded all before the test began");
        wait.rest("no answer").await;
    }
    let running = Running::launch(serve(folder, &["--store", &url]));
    (restarting.await.unwrap(), running)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_for_a_redis_that_does_not_answer_and_not_for_one_that_is_not_there() {
    let (mut server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    server.pause(true);
    let command = serve(folder.path(), &["--store", &server.url()]);
    let starting = tokio::task::spawn_blocking(|| Running::launch(command));
    // Longer than an instance waits for one answer.
    tokio::time::sleep(Duration::from_secs(4)).await;
    server.pause(false);
    let running = starting.await.unwrap();
    running.has_logged("the start waits for an answer of Redis").await;
    drop(running);
    let url = server.url();
    server.kill();
    let refused = Running::try_launch(serve(folder.path(), &["--store", &url])).err().unwrap();
    assert!(refused.contains("cannot reach the store"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_while_redis_loads_its_data() {
    for engine in Engine::available() {
        let (server, folder) = (RedisServer::start_with(&engine, &SLOW), tempfile::tempdir().unwrap());
        let before = Running::start(folder.path(), &["--store", &server.url()]);
        before.ok("PUT", "/v1/boards/hot", Some(json!({"metric": "COUNT(24h, like, post)", "slot": "1h"}))).await;
        before.ok("POST", "/v1/boards/hot/increments", Some(json!({"subject": "p", "amount": 3}))).await;
        drop(before);
        let fill = "for i = 1, 10000 do redis.call('SET', 'other' .. i, i) end";
        server.ask::<()>(&["EVAL", fill, "0"]).unwrap();
        let (_server, running) = start_while_loading(server, folder.path()).await;
        running.has_logged("the start waits until Redis has loaded its data").await;
        // It says how far the server is.
        running.has_logged("% are loaded").await;
        assert_eq!(running.ok("GET", "/v1/boards/hot/subjects/p", None).await["score"], 3);
    }
}
