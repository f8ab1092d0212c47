//! Tests of a clock that is wrong when the service starts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::shim;
use crate::running::{Running, serve};

const SUBJECTS: u64 = 1_000;
const TEN_YEARS: u64 = 10 * 365 * 86_400;

async fn define(service: &Running) {
    service.ok("PUT", "/v1/boards/ranked", Some(json!({"metric": "COUNT(24h, hit, page)", "slot": "1h"}))).await;
    let unranked = json!({"metric": "COUNT(24h, hit, page)", "slot": "1h", "ranked": false});
    service.ok("PUT", "/v1/boards/unranked", Some(unranked)).await;
}

/// Returns the content of the boards: the number of ranked subjects, the score of one of them, and the value of one
/// subject on the unranked board.
async fn contents(service: &Running) -> [Value; 3] {
    let page = service.ok("GET", "/v1/boards/ranked/rankings?limit=1", None).await;
    let subject = |board: &str| format!("/v1/boards/{board}/subjects/page-7");
    let (ranked, unranked) =
        (service.ok("GET", &subject("ranked"), None).await, service.ok("GET", &subject("unranked"), None).await);
    [page["total"].clone(), ranked["score"].clone(), unranked["score"].clone()]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_glitch_at_startup_expires_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = shim::compile("clock", folder.path()) else { return };
    let mut service = Running::start(folder.path(), &[]);
    define(&service).await;
    for board in ["ranked", "unranked"] {
        let lines = (0..SUBJECTS).map(|n| format!("{{\"subject\":\"page-{n}\"}}\n")).collect();
        assert_eq!(service.ndjson(board, lines).await["accepted"], SUBJECTS);
    }
    let all = [json!(SUBJECTS), json!(1), json!(1)];
    assert_eq!(contents(&service).await, all);
    assert!(tokio::task::block_in_place(|| service.terminate()).success());

    let mut command = serve(folder.path(), &[]);
    command.env("LD_PRELOAD", library).env("SHIM_CLOCK_AHEAD", TEN_YEARS.to_string()).env("SHIM_CLOCK_MILLIS", "2000");
    let begun = Instant::now();
    service = Running::launch(command);
    while begun.elapsed() < Duration::from_secs(4) {
        assert_eq!(contents(&service).await, all, "{:?} after the start", begun.elapsed());
        // A write may be refused for now, but must not count in the wrong year.
        let increment = json!({"subject": "other"});
        let (status, answer) = service.call("POST", "/v1/boards/unranked/increments", Some(increment)).await;
        assert!(status == 200 || status == 503, "{status} {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    service.kill();

    service = Running::start(folder.path(), &[]);
    assert_eq!(contents(&service).await, all);
    service.ok("GET", "/readyz", None).await;
    service.ok("POST", "/v1/boards/ranked/increments", Some(json!({"subject": "page-7"}))).await;
    assert_eq!(contents(&service).await, [json!(SUBJECTS), json!(2), json!(1)]);
    let window = service.ok("GET", "/v1/boards/ranked", None).await["window"]["to"].clone();
    let to = chrono::DateTime::parse_from_rfc3339(window.as_str().unwrap()).unwrap();
    assert!((to.to_utc() - chrono::Utc::now()).num_hours() < 2, "{window}");
}
