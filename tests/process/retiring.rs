//! Test of a large slot that retires while writes and reads continue: nothing is lost, and no call waits for the whole
//! slot.

use std::path::Path;

use serde_json::json;

use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;

const SUBJECTS: usize = 200_000;

async fn retires_in_the_background(folder: &Path, args: &[&str]) {
    let args = [args, &["--clock", "simulated=2026-01-01T00:30:00Z"]].concat();
    let service = Running::start(folder, &args);
    service.ok("PUT", "/v1/boards/big", Some(json!({"metric": "COUNT(2h, hit, page)", "slot": "1h"}))).await;
    let lines = (0..SUBJECTS).map(|n| format!("{{\"subject\":\"page-{n}\"}}\n")).collect();
    assert_eq!(service.ndjson("big", lines).await["accepted"], SUBJECTS);
    // One write in the next slot. Otherwise every slot would expire at once and there would be nothing to subtract.
    service.ok("PUT", "/v1/clock", Some(json!({"now": "2026-01-01T01:30:00Z"}))).await;
    service.ok("POST", "/v1/boards/big/increments", Some(json!({"subject": "page-0"}))).await;
    service.ok("PUT", "/v1/clock", Some(json!({"now": "2026-01-01T02:00:00Z"}))).await;

    let rollover = tokio::spawn(service.client.post(format!("{}/v1/boards/big/rollover", service.base)).send());
    let (mut written, mut seen_retiring) = (1usize, false);
    while !rollover.is_finished() {
        let line = |n| format!("{{\"subject\":\"page-{}\"}}\n", (written + n) * 997 % SUBJECTS);
        assert_eq!(service.ndjson("big", (0..100).map(line).collect()).await["accepted"], 100);
        written += 100;
        let page = service.ok("GET", "/v1/boards/big/rankings?limit=10", None).await;
        seen_retiring |= page["retiring"] == 1 && page["total"].as_u64() < Some(SUBJECTS as u64);
        // This holds while the slot retires: live slots + what is not yet subtracted = the score, for every subject.
        let one = service.ok("GET", "/v1/boards/big/subjects/page-0", None).await;
        assert!(one["score"].as_u64() >= one["slots"][0]["count"].as_u64(), "{one}");
    }
    let report: serde_json::Value = rollover.await.unwrap().unwrap().json().await.unwrap();
    assert!(seen_retiring, "the slot retired before anybody could look: {report}");
    let audit = service.ok("POST", "/v1/boards/big/audit", None).await;
    assert_eq!(audit["differences"], 0, "{audit}");
    let (mut sum, mut next) = (0, "/v1/boards/big/rankings?limit=1000".to_owned());
    loop {
        let page = service.ok("GET", &next, None).await;
        assert_eq!(page["retiring"], 0);
        sum += page["items"].as_array().unwrap().iter().map(|item| item["score"].as_u64().unwrap()).sum::<u64>();
        match page["next"].as_str() {
            Some(cursor) => next = format!("/v1/boards/big/rankings?limit=1000&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(sum, written as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    retires_in_the_background(folder.path(), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    retires_in_the_background(folder.path(), &["--store", &server.url()]).await;
}
