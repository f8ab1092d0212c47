//! Tests of the meaning of a 2xx: nothing acknowledged is lost by `kill -9`, by SIGTERM, or by a restart of Redis.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;
use crate::waiting::Wait;

const BOARD: &str = "/v1/boards/crash";
const WRITERS: usize = 16;

/// The numbers of increments sent and acknowledged so far.
#[derive(Default)]
struct Load {
    sent: AtomicU64,
    acknowledged: AtomicU64,
    stop: AtomicBool,
}

async fn define(service: &Running) {
    service.ok("PUT", BOARD, Some(json!({"metric": "COUNT(30d, hit, page)", "slot": "1d"}))).await;
}

/// Starts writers that post single increments to 50 subjects until they are stopped or the service has ended.
fn start_load(service: &Running, load: &Arc<Load>) -> Vec<tokio::task::JoinHandle<()>> {
    let url = format!("{}{BOARD}/increments", service.base);
    let writer = |n: usize| {
        let (client, url, load) = (service.client.clone(), url.clone(), load.clone());
        tokio::spawn(async move {
            for i in n.. {
                if load.stop.load(Ordering::SeqCst) {
                    return;
                }
                load.sent.fetch_add(1, Ordering::SeqCst);
                let body = json!({"subject": format!("page-{}", i % 50)});
                match client.post(&url).json(&body).send().await {
                    Ok(answer) if answer.status().is_success() => {
                        load.acknowledged.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok(_) => {} // refused, for example while Redis restarts: not acknowledged, so it need not count
                    Err(_) => return,
                }
            }
        })
    };
    (0..WRITERS).map(writer).collect()
}

async fn wait_for(load: &Load, acknowledged: u64) {
    let wait = Wait::begin(format!("{acknowledged} acknowledged increments"));
    loop {
        let now = load.acknowledged.load(Ordering::SeqCst);
        if now >= acknowledged {
            return;
        }
        wait.rest(now).await;
    }
}

async fn total(service: &Running) -> u64 {
    let page = service.ok("GET", &format!("{BOARD}/rankings?limit=1000"), None).await;
    let items = page["items"].as_array().expect("items");
    let audit = service.ok("POST", &format!("{BOARD}/audit"), None).await;
    assert_eq!(audit["differences"], 0, "{audit}");
    items.iter().map(|item| item["score"].as_u64().expect("a score")).sum()
}

/// Kills the service under load several times. Each time it must have at least what was acknowledged, and at most what
/// was sent.
async fn survives_kills(folder: &Path, args: &[&str]) {
    let load = Arc::new(Load::default());
    let mut service = Running::start(folder, args);
    define(&service).await;
    for round in 1..=3 {
        let writers = start_load(&service, &load);
        wait_for(&load, round * 300).await;
        service.kill();
        for writer in writers {
            writer.await.expect("a writer");
        }
        service = Running::start(folder, args);
        let (kept, acknowledged, sent) =
            (total(&service).await, load.acknowledged.load(Ordering::SeqCst), load.sent.load(Ordering::SeqCst));
        assert!(
            (acknowledged..=sent).contains(&kept),
            "round {round}: acknowledged {acknowledged}, kept {kept}, sent {sent}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_with_always_loses_no_acknowledged_write_on_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    survives_kills(folder.path(), &["--durability", "always"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_with_everysec_loses_no_acknowledged_write_on_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    survives_kills(folder.path(), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_on_redis_loses_no_acknowledged_write_on_kill_9() {
    for engine in Engine::available() {
        let (server, folder) = (RedisServer::start(&engine), tempfile::tempdir().unwrap());
        survives_kills(folder.path(), &["--store", &server.url()]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_with_aof_always_loses_no_acknowledged_write_on_restart() {
    for engine in Engine::available() {
        let aof = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
        let (mut server, folder) = (RedisServer::start_with(&engine, &aof), tempfile::tempdir().unwrap());
        let service = Running::start(folder.path(), &["--store", &server.url()]);
        define(&service).await;
        let load = Arc::new(Load::default());
        let writers = start_load(&service, &load);
        for round in 1..=2 {
            wait_for(&load, round * 300).await;
            server.restart();
        }
        let before = load.acknowledged.load(Ordering::SeqCst);
        wait_for(&load, before + 300).await;
        load.stop.store(true, Ordering::SeqCst);
        for writer in writers {
            writer.await.expect("a writer");
        }
        let (kept, acknowledged, sent) =
            (total(&service).await, load.acknowledged.load(Ordering::SeqCst), load.sent.load(Ordering::SeqCst));
        assert!((acknowledged..=sent).contains(&kept), "acknowledged {acknowledged}, kept {kept}, sent {sent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sigterm_does_not_wait_for_requests() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Running::start(folder.path(), &["--durability", "off", "--shutdown-timeout", "10m"]);
    define(&service).await;
    service.ok("POST", "/v1/boards/crash/increments", Some(json!({"subject": "a", "amount": 7}))).await;
    // The body of this request never arrives.
    let mut open = std::net::TcpStream::connect(service.address()).unwrap();
    let head = "POST /v1/boards/crash/increments HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\n";
    open.write_all(format!("{head}content-length: 100\r\n\r\n{{\"subject\":\"a\"}}\n").as_bytes()).unwrap();
    while total(&service).await < 8 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    service.signal("TERM");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(service.ended(), None);
    let status = tokio::task::block_in_place(|| service.terminate());
    assert!(status.success(), "{status}");
    let service = Running::start(folder.path(), &["--durability", "off"]);
    assert_eq!(total(&service).await, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_completes_requests_in_flight_and_exits_with_0() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Running::start(folder.path(), &["--durability", "off"]);
    define(&service).await;
    let load = Arc::new(Load::default());
    let writers = start_load(&service, &load);
    wait_for(&load, 300).await;
    let status = tokio::task::block_in_place(|| service.terminate());
    assert!(status.success(), "{status}");
    for writer in writers {
        writer.await.expect("a writer");
    }
    let service = Running::start(folder.path(), &["--durability", "off"]);
    let (kept, acknowledged, sent) =
        (total(&service).await, load.acknowledged.load(Ordering::SeqCst), load.sent.load(Ordering::SeqCst));
    assert!((acknowledged..=sent).contains(&kept), "acknowledged {acknowledged}, kept {kept}, sent {sent}");
}
