//! Tests of `rolltop doctor`: what it says before a service starts, beside one, and about servers.

use std::path::Path;

use crate::redis_server::{Engine, RedisServer, free_port};
use crate::running::{Running, program};

/// Runs the command for a service with these options. Returns its exit code, its lines, and what it said at the end.
fn doctor(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = program(folder).arg("doctor").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn beside_a_service(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    tokio::task::block_in_place(|| doctor(folder, args))
}

/// Returns the line about something that has these words.
fn line<'a>(printed: &'a str, about: &str, words: &str) -> &'a str {
    let is_it = |line: &&str| line.get(9..).is_some_and(|rest| rest.starts_with(about)) && line.contains(words);
    printed.lines().find(is_it).unwrap_or_else(|| panic!("no line about {about} says '{words}':\n{printed}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_and_the_disk_are_judged_before_the_first_start_and_beside_a_service() {
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("127.0.0.1:{}", free_port());
    let args = ["--listen", &listen, "--data-dir", "data", "--backup-dir", "backups"];
    let (code, printed, said) = doctor(folder.path(), &args);
    assert_eq!(code, Some(0), "{printed}{said}");
    assert!(line(&printed, "disk", "will be made").starts_with("ok"), "{printed}");
    assert!(line(&printed, "service", "can be started there").starts_with("ok"), "{printed}");
    assert!(line(&printed, "keys", "on this machine").starts_with("ok"), "{printed}");
    assert!(line(&printed, "backups", "no backup yet").starts_with("warning"), "{printed}");
    assert!(!folder.path().join("data").exists(), "nothing is made");

    let service = Running::start(folder.path(), &["--backup-dir", "backups"]);
    let listen = service.base.trim_start_matches("http://");
    let (code, printed, said) = beside_a_service(folder.path(), &["--listen", listen, "--backup-dir", "backups"]);
    assert_eq!(code, Some(0), "{printed}{said}");
    assert!(line(&printed, "service", "is ready").starts_with("ok"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_a_service_from_starting_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = other.local_addr().unwrap().to_string();
    let answering = tokio::spawn(async move {
        while let Ok((stream, _)) = other.accept().await {
            drop(stream);
        }
    });
    std::fs::write(folder.path().join("data"), "a file").unwrap();
    let (code, printed, said) = beside_a_service(folder.path(), &["--listen", &listen, "--data-dir", "data/store"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(line(&printed, "service", "does not answer as Rolltop does").starts_with("WRONG"), "{printed}");
    assert!(line(&printed, "disk", "cannot be").starts_with("WRONG"), "{printed}");
    assert!(said.contains("2 things are wrong"), "{said}");
    answering.abort();

    let (code, _, said) = doctor(folder.path(), &["--max-skew", "yesterday"]);
    assert_eq!(code, Some(2), "wrong settings are wrong usage: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_judged() {
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("127.0.0.1:{}", free_port());
    let look = |store: &str| beside_a_service(folder.path(), &["--listen", &listen, "--store", store]);
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (code, printed, said) = look(&server.url());
        assert_eq!(code, Some(0), "{printed}{said}");
        assert!(line(&printed, "redis", "evicts nothing").starts_with("ok"), "{printed}");
        assert!(line(&printed, "redis", "no maxmemory").starts_with("warning"), "{printed}");

        let evicting = RedisServer::start_with(&engine, &["--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"]);
        let (code, printed, _) = look(&evicting.url());
        assert_eq!(code, Some(1), "{printed}");
        assert!(line(&printed, "redis", "CONFIG SET maxmemory-policy noeviction").starts_with("WRONG"), "{printed}");
    }
    let nobody = format!("redis://127.0.0.1:{}", free_port());
    let (code, printed, _) = look(&nobody);
    assert_eq!(code, Some(1), "{printed}");
    assert!(line(&printed, "redis", "cannot reach").starts_with("WRONG"), "{printed}");
}
