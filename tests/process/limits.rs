//! Tests of the limits of the system: few file descriptors, and a log that cannot be written.

use std::fs::File;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::running::{Running, serve, serve_after};

const BOARD: &str = "/v1/boards/few";

/// Returns the soft and the hard limit of open files.
fn open_files(service: &Running) -> (u64, u64) {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.id())).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or(u64::MAX));
    (numbers.next().unwrap(), numbers.next().unwrap())
}

async fn define(service: &Running) {
    service.ok("PUT", BOARD, Some(json!({"metric": "COUNT(24h, hit, page)", "slot": "1h"}))).await;
}

/// Writes new subjects from this one on, for this time, over one connection. Returns the next subject. Each write must
/// be acknowledged.
async fn write_for(service: &Running, duration: Duration, first: usize) -> usize {
    let begun = Instant::now();
    let mut written = first;
    while written == first || begun.elapsed() < duration {
        let lines = (written..written + 1_000).map(|n| format!("{{\"subject\":\"page-{n}\"}}\n")).collect();
        assert_eq!(service.ndjson("few", lines).await["accepted"], 1_000);
        written += 1_000;
    }
    written
}

#[tokio::test(flavor = "multi_thread")]
async fn the_soft_limit_of_open_files_is_raised_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let service = Running::launch(serve_after("ulimit -Sn 100 && ulimit -Hn 1500", folder.path(), &[]));
    assert_eq!(open_files(&service), (1_500, 1_500));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_descriptors_leave_the_store_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let service = Running::launch(serve_after("ulimit -n 512", folder.path(), &[]));
    define(&service).await;
    let mut written = write_for(&service, Duration::ZERO, 0).await;
    // The connections above the limit wait in the backlog. The connection of `service` was made before them.
    let idle: Vec<TcpStream> = (0..700).map(|_| TcpStream::connect(service.address()).unwrap()).collect();
    written = write_for(&service, Duration::from_secs(4), written).await;
    let open = std::fs::read_dir(format!("/proc/{}/fd", service.id())).unwrap().count();
    assert!(open < 500, "{open} of 512 descriptors are open");
    service.ok("GET", "/readyz", None).await;
    drop(idle);
    write_for(&service, Duration::from_secs(2), written).await;
    // A new connection is served as soon as the service has noticed that the others are closed.
    let (address, client) = (service.base.clone(), reqwest::Client::new());
    let answer = client.get(format!("{address}/readyz")).timeout(Duration::from_secs(20)).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve(folder.path(), &[]);
    // Every write to the log fails as on a full disk, and everything is logged.
    command.env("RUST_LOG", "trace").stderr(File::options().write(true).open("/dev/full").unwrap());
    let mut service = Running::launch(command);
    define(&service).await;
    let written = write_for(&service, Duration::from_secs(1), 0).await;
    assert_eq!(service.ok("GET", &format!("{BOARD}/rankings?limit=1"), None).await["total"], written);
    assert_eq!(service.ended(), None);
    assert_eq!(tokio::task::block_in_place(|| service.terminate()).code(), Some(0));
}

#[test]
fn a_start_that_fails_says_so_by_its_exit_code_though_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut command = serve(folder.path(), &["--store", "redis://127.0.0.1:1"]);
    assert_eq!(command.stdout(full()).stderr(full()).status().unwrap().code(), Some(1));
}
