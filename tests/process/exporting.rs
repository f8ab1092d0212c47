//! Tests of exports of large rankings: with little memory, from every store, and while the service is stopped.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;

const SUBJECTS: usize = 200_000;

/// Returns the text of an export.
async fn export(service: &Running, path: &str, accept: &str) -> String {
    let answer = service.client.get(format!("{}{path}", service.base)).header("accept", accept).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    answer.text().await.unwrap()
}

/// Returns the memory of the process in KiB.
fn memory(service: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

async fn fill(service: &Running, board: &str, extra: Value, name: impl Fn(usize) -> String) {
    let mut definition = json!({"metric": "SUM(24h, sale, price, seller)", "slot": "1h"});
    definition.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    service.ok("PUT", &format!("/v1/boards/{board}"), Some(definition)).await;
    for first in (0..SUBJECTS).step_by(50_000) {
        let line = |n: usize| format!("{{\"subject\":\"{}\",\"amount\":{}}}\n", name(n), n % 20_000 + 1);
        assert_eq!(service.ndjson(board, (first..first + 50_000).map(line).collect()).await["accepted"], 50_000);
    }
}

async fn exports_the_whole_ranking(folder: &Path, args: &[&str], boards: &[(&str, Value)]) {
    let service = Running::start(folder, args);
    for (board, extra) in boards {
        fill(&service, board, extra.clone(), |n| format!("seller-{n}")).await;
        let path = format!("/v1/boards/{board}/rankings");
        let text = export(&service, &path, "application/x-ndjson").await;
        let (mut expected, mut sum) = (Vec::new(), 0);
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let line: Value = serde_json::from_str(line).unwrap();
            if lines.peek().is_none() {
                assert_eq!((&line["complete"], &line["lines"]), (&json!(true), &json!(SUBJECTS)), "{line}");
                assert_eq!((&line["total"], &line["next"]), (&json!(SUBJECTS), &Value::Null), "{line}");
                break;
            }
            // Ten subjects have each score.
            assert_eq!(line["rank"], json!(expected.len() / 10 * 10 + 1));
            sum += line["score"].as_u64().unwrap();
            expected.push((line["subject"].as_str().unwrap().to_owned(), line["score"].clone()));
        }
        assert_eq!(sum, (1..=20_000).sum::<u64>() * 10);
        let page = service.ok("GET", &format!("{path}?offset=123456&limit=1000"), None).await;
        for (item, (subject, score)) in page["items"].as_array().unwrap().iter().zip(&expected[123_456..]) {
            assert_eq!((&item["subject"], &item["score"]), (&json!(subject), score));
        }
        let text = export(&service, &format!("{path}?offset=199000"), "text/csv").await;
        assert_eq!(text.lines().count(), 1_001);
        assert!(text.ends_with(&format!("{},{}\r\n", expected[SUBJECTS - 1].0, expected[SUBJECTS - 1].1)), "{text}");
        let mut names: Vec<&String> = expected.iter().map(|(subject, _)| subject).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUBJECTS);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    exports_the_whole_ranking(folder.path(), &[], &[("one", json!({})), ("up", json!({"order": "asc"}))]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_redis() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let boards = [("one", json!({})), ("sharded", json!({"shards": 3}))];
    exports_the_whole_ranking(folder.path(), &["--store", &server.url()], &boards).await;
}

/// Begins an export and reads nothing but the first bytes of the answer.
fn begin(service: &Running, accept_encoding: &str) -> TcpStream {
    let mut stream = TcpStream::connect(service.address()).unwrap();
    let request = format!(
        "GET /v1/boards/one/rankings HTTP/1.1\r\nhost: localhost\r\naccept: application/x-ndjson\r\naccept-encoding: \
         {accept_encoding}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_stop_reading_cost_a_page_each_and_do_not_delay_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Running::start(folder.path(), &["--shutdown-timeout", "2s"]);
    // 80 MB as NDJSON, 400 KB a page.
    fill(&service, "one", json!({}), |n| format!("{n:06}{}", "x".repeat(380))).await;
    let before = memory(&service);
    let clients: Vec<TcpStream> = (0..40).map(|n| begin(&service, ["identity", "gzip", "br", "zstd"][n % 4])).collect();
    // Others are served in the meantime.
    for _ in 0..50 {
        service.ok("GET", "/v1/boards/one/rankings?limit=10", None).await;
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    let after = memory(&service);
    // A page as lines, as text and as compressed text, and the state of an encoder.
    assert!(after < before + 40 * 4_096, "{before} KiB before and {after} KiB after");
    let begun = Instant::now();
    assert!(service.terminate().success());
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    drop(clients);
}
