//! Tests of keys with the program itself: the first key, the commands, the configuration that changes, several
//! instances, backups, the record of administrative acts.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::redis_server::{Engine, RedisServer};
use crate::running::{Running, program, serve};
use crate::waiting::Wait;

/// A key that `rolltop keys hash` made, and the table for the configuration.
pub struct Made {
    pub key: String,
    pub table: String,
}

pub fn hash(folder: &Path, args: &[&str]) -> Made {
    let output = program(folder).args(["keys", "hash"]).args(args).output().unwrap();
    let (table, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{said}");
    let key = said.split_whitespace().find(|word| word.starts_with("rt_")).unwrap().to_owned();
    assert!(table.starts_with("\n[[keys]]") && !table.contains(&key[24..]), "{table}");
    Made { key, table }
}

/// Runs a command against a service with a key. Returns whether it succeeded, and what it printed.
pub fn run(service: &Running, folder: &Path, key: &str, args: &[&str]) -> (bool, String, String) {
    let mut command = program(folder);
    command.env("ROLLTOP_KEY", key).env("ROLLTOP_URL", &service.base).args(args);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

async fn status(service: &Running, key: Option<&str>, path: &str) -> u16 {
    let mut request = service.client.get(format!("{}{path}", service.base));
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    request.send().await.unwrap().status().as_u16()
}

/// Waits until a request has this status.
async fn until(service: &Running, key: &str, path: &str, expected: u16) {
    let wait = Wait::begin("a change of a key");
    loop {
        let found = status(service, Some(key), path).await;
        if found == expected {
            return;
        }
        wait.pause(found);
    }
}

#[test]
fn without_a_key_it_starts_only_where_nobody_else_reaches_it() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str]| {
        let output = program(folder.path()).args(["serve"]).args(args).stdout(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?} {said}");
        assert!(said.contains("rolltop keys hash") && said.contains("anonymous"), "{said}");
    };
    refused(&["--listen", "0.0.0.0:0"]);
    refused(&["--listen", "127.0.0.1:0", "--hosts", "rolltop.example"]);
    for args in [&["--anonymous", "view"][..], &["--anonymous", "none"], &["--anonymous", "all"]] {
        let mut command = program(folder.path());
        command.args(["serve", "--listen", "0.0.0.0:0"]).args(args);
        Running::launch(command);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_key_makes_others_that_outlive_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = hash(folder, &[]);
    std::fs::write(folder.join("rolltop.toml"), &first.table).unwrap();
    let start = |config: bool| {
        let mut command = program(folder);
        // Where everybody might reach it.
        command.args(["serve", "--listen", "0.0.0.0:0"]);
        if config {
            command.args(["--config", "rolltop.toml"]);
        }
        let mut service = Running::launch(command);
        service.base = service.base.replace("0.0.0.0", "127.0.0.1");
        service
    };
    let mut service = start(true);
    assert_eq!(status(&service, None, "/v1/boards").await, 401);
    assert_eq!(status(&service, Some(&first.key), "/v1/boards").await, 200);
    assert_eq!(status(&service, None, "/healthz").await, 200);
    let make = ["keys", "create", "--name", "the shop", "--scopes", "read,write", "--boards", "shop-*"];
    let (done, key, said) = run(&service, folder, &first.key, &make);
    assert!(done && key.starts_with("rt_") && said.contains("read,write on shop-*"), "{key} {said}");
    let (done, _, said) = run(&service, folder, &key, &make);
    assert!(!done && said.contains("'admin'"), "{said}");
    let (_, listed, _) = run(&service, folder, &first.key, &["keys", "list"]);
    assert!(listed.contains("the shop") && listed.contains("in the configuration"), "{listed}");
    // A crash, and a start without the first key.
    service.kill();
    let mut service = start(false);
    assert_eq!(status(&service, Some(&first.key), "/v1/boards").await, 401);
    assert_eq!(status(&service, Some(&key), "/v1/boards").await, 200);
    assert!(service.terminate().success());
    let service = start(true);
    let id = key.split('_').nth(1).unwrap();
    let (done, rotated, said) = run(&service, folder, &first.key, &["keys", "rotate", id, "--overlap", "1h"]);
    assert!(done && said.contains("rotating until"), "{said}");
    for key in [&key, &rotated] {
        assert_eq!(status(&service, Some(key), "/v1/boards").await, 200);
    }
    let (done, said, _) = run(&service, folder, &first.key, &["keys", "revoke", id]);
    assert!(done && said.starts_with("revoked"), "{said}");
    for key in [&key, &rotated] {
        assert_eq!(status(&service, Some(key), "/v1/boards").await, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_the_configuration_are_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (one, two) = (hash(folder, &[]), hash(folder, &["--scopes", "read", "--name", "two"]));
    let write = |text: String| std::fs::write(folder.join("rolltop.toml"), text).unwrap();
    write(one.table.clone());
    let service = Running::start(folder, &["--config", "rolltop.toml"]);
    assert_eq!(status(&service, Some(&two.key), "/v1/boards").await, 401);
    write(format!("{}\n{}", one.table, two.table));
    until(&service, &two.key, "/v1/boards", 200).await;
    // A file that is not valid changes nothing, and what follows is taken over.
    write("[[keys]]\nid = 5\n".to_owned());
    let id = two.key.split('_').nth(1).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(status(&service, Some(&two.key), "/v1/boards").await, 200);
    write(format!("revoked_keys = [\"{id}\"]\n{}\n{}", one.table, two.table));
    until(&service, &two.key, "/v1/boards", 401).await;
    assert_eq!(status(&service, Some(&one.key), "/v1/boards").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_instance_learns_of_a_key_and_of_its_end() {
    for engine in Engine::available() {
        let (server, folder) = (RedisServer::start(&engine), tempfile::tempdir().unwrap());
        let folder = folder.path();
        let first = hash(folder, &[]);
        std::fs::write(folder.join("rolltop.toml"), &first.table).unwrap();
        let args = ["--store", &server.url(), "--config", "rolltop.toml"];
        let (a, b) = (Running::start(folder, &args), Running::start(folder, &args));
        let (done, key, said) = run(&a, folder, &first.key, &["keys", "create", "--name", "k", "--scopes", "view"]);
        assert!(done, "{said}");
        until(&b, &key, "/v1/keys/self", 200).await;
        let revoked = run(&b, folder, &first.key, &["keys", "revoke", key.split('_').nth(1).unwrap()]);
        assert!(revoked.0, "{}", revoked.2);
        assert_eq!(status(&b, Some(&key), "/v1/keys/self").await, 401);
        until(&a, &key, "/v1/keys/self", 401).await;
        // The keys that were read last are used while Redis is away.
        let (_, key, _) = run(&a, folder, &first.key, &["keys", "create", "--name", "k", "--scopes", "view"]);
        until(&b, &key, "/v1/keys/self", 200).await;
        drop(server);
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        for service in [&a, &b] {
            assert_eq!(status(service, Some(&key), "/v1/keys/self").await, 200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn emptying_redis_opens_nothing() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let first = hash(folder, &[]);
    std::fs::write(folder.join("rolltop.toml"), &first.table).unwrap();
    let service = Running::start(folder, &["--store", &server.url(), "--config", "rolltop.toml"]);
    let (_, key, _) = run(&service, folder, &first.key, &["keys", "create", "--name", "k", "--scopes", "read"]);
    assert_eq!(status(&service, Some(&key), "/v1/boards").await, 200);
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd("FLUSHALL").exec(&mut connection).unwrap();
    until(&service, &key, "/v1/boards", 401).await;
    assert_eq!(status(&service, None, "/v1/boards").await, 401);
    until(&service, &first.key, "/v1/boards", 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_in_backups() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = hash(folder, &[]);
    std::fs::write(folder.join("rolltop.toml"), &first.table).unwrap();
    let service = Running::start(folder, &["--config", "rolltop.toml", "--backup-dir", "backups"]);
    let (_, key, _) = run(&service, folder, &first.key, &["keys", "create", "--name", "k", "--scopes", "read"]);
    let (done, backup, said) = run(&service, folder, &first.key, &["backup"]);
    assert!(done, "{said}");
    let (done, _, said) = run(&service, folder, &key, &["backup"]);
    assert!(!done && said.contains("'admin'"), "{said}");
    let restored = Running::start(folder, &["--config", "rolltop.toml", "--data-dir", &backup]);
    assert_eq!(status(&restored, Some(&key), "/v1/boards").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn administrative_acts_are_recorded_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = hash(folder, &[]);
    std::fs::write(folder.join("rolltop.toml"), &first.table).unwrap();
    let mut command: Command = serve(folder, &["--config", "rolltop.toml", "--log-format", "json"]);
    command.env_remove("RUST_LOG");
    let service = Running::launch(command);
    let (_, key, _) = run(&service, folder, &first.key, &["keys", "create", "--name", "k", "--scopes", "manage"]);
    let put = |key: Option<String>, id: &str| {
        let url = format!("{}/v1/boards/b", service.base);
        let definition = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"});
        let request = service.client.put(url).header("x-request-id", id).json(&definition);
        let request = if let Some(key) = key { request.bearer_auth(key) } else { request };
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(put(Some(key.clone()), "act-1").await, 201);
    assert_eq!(put(None, "act-2").await, 401);
    let wait = Wait::begin("the record");
    let (of_act, log) = loop {
        let log = service.log();
        let events: Vec<Value> = log.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let of = |id: &str| events.iter().find(|event| event["fields"]["request_id"] == id).cloned();
        if let (Some(one), Some(two)) = (of("act-1"), of("act-2")) {
            break ([one, two], log.join("\n"));
        }
        wait.pause(log);
    };
    let id = key.split('_').nth(1).unwrap();
    for (event, caller, status) in [(&of_act[0], &*format!("key {id}"), 201), (&of_act[1], "refused", 401)] {
        assert_eq!(event["target"], "audit", "{event}");
        let fields = &event["fields"];
        assert_eq!((&fields["caller"], &fields["status"]), (&json!(caller), &json!(status)), "{event}");
        assert_eq!((&fields["path"], &fields["from"]), (&json!("/v1/boards/b"), &json!("127.0.0.1")), "{event}");
    }
    for secret in [&key, &first.key] {
        assert!(!log.contains(&secret[24..]), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_no_key_hides_no_other() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let first = hash(folder, &[]);
    std::fs::write(folder.join("rolltop.toml"), &first.table).unwrap();
    let service = Running::start(folder, &["--store", &server.url(), "--config", "rolltop.toml"]);
    let make = |name: &str| run(&service, folder, &first.key, &["keys", "create", "--name", name, "--scopes", "read"]);
    let key = make("one").1;
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let hash = redis::cmd("KEYS").arg("*:table:keys").query::<Vec<String>>(&mut connection).unwrap().remove(0);
    redis::cmd("HSET").arg(hash).arg("0000000000000001").arg(&b"\xff\xfe"[..]).exec(&mut connection).unwrap();
    let (done, other, said) = make("two");
    assert!(done, "{said}");
    for key in [&key, &other] {
        assert_eq!(status(&service, Some(key), "/v1/boards").await, 200);
    }
    // The table is read every second.
    let wait = Wait::begin("the warning");
    loop {
        let request = service.client.get(format!("{}/readyz", service.base)).bearer_auth(&first.key);
        let warnings = request.send().await.unwrap().text().await.unwrap();
        if warnings.contains("0000000000000001") {
            break;
        }
        wait.rest(warnings).await;
    }
    let revoked = run(&service, folder, &first.key, &["keys", "revoke", key.split('_').nth(1).unwrap()]);
    assert!(revoked.0, "{}", revoked.2);
    assert_eq!(status(&service, Some(&key), "/v1/boards").await, 401);
}
