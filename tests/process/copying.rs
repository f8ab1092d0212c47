//! Tests of `rolltop copy`: from one store to another, into boards that are in use, and while everything is killed.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{process, rounds};
use crate::redis_server::{Engine, RedisServer, free_port};
use crate::running::{Running, program};
use crate::waiting::Wait;

/// The boards, and which field of an item has its number or value.
fn boards() -> Vec<(&'static str, Value, &'static str)> {
    let of = |metric: &str, more: Value| {
        let mut definition = json!({"metric": metric, "slot": "1h"});
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        definition
    };
    vec![
        ("counts", of("COUNT(24h, like, post)", json!({"windows": ["7d/6h", "all"]})), "amount"),
        ("sums", of("SUM(24h, sale, price, shop)", json!({"decimals": 2, "order": "asc"})), "amount"),
        ("means", of("AVG(24h, rating, stars, film)", json!({"decimals": 1, "min_samples": 3})), "value"),
        ("best", of("MAX(24h, game, score, player)", json!({"slot": "15m"})), "value"),
        ("newest", of("LAST(24h, reading, degrees, sensor)", json!({})), "value"),
        ("distinct", of("COUNT_DISTINCT(24h, login, device, user)", json!({})), "text"),
        ("approximate", of("APPROX_COUNT_DISTINCT(24h, view, page, user)", json!({})), "text"),
        ("totals", of("COUNT(all, like, post)", json!({"keep": "30d"})), "amount"),
        ("unranked", of("COUNT(24h, login, device)", json!({"ranked": false, "keep": "48h"})), "amount"),
    ]
}

/// Returns drawn items as lines, the same for a seed.
fn items(seed: u64, field: &str, number: usize) -> Vec<String> {
    static NOW: LazyLock<DateTime<Utc>> = LazyLock::new(Utc::now);
    let (mut random, now) = (StdRng::seed_from_u64(seed), *NOW);
    let item = |n: usize| {
        // Nothing leaves a window of a day while the test runs.
        let at = now - TimeDelta::milliseconds(random.random_range(0..20 * 3_600_000));
        let mut item = json!({"subject": format!("s{}", random.random_range(0..400)), "at": at.to_rfc3339(), "id": format!("{seed}-{n}")});
        match field {
            "text" => item["value"] = json!(format!("u{}", random.random_range(0..60))),
            field => item[field] = json!(random.random_range(1..50)),
        }
        item.to_string() + "\n"
    };
    (0..number).map(item).collect()
}

async fn fill(service: &Running, number: usize) {
    for (seed, (board, definition, field)) in boards().into_iter().enumerate() {
        service.ok("PUT", &format!("/v1/boards/{board}"), Some(definition)).await;
        service.ndjson_until_counted(board, &items(seed as u64, field, number)).await;
    }
}

fn copy(folder: &Path, from: &Running, to: &Running, more: &[&str]) -> Command {
    let mut command = program(folder);
    command.args(["copy", "--from", &from.base, "--to", &to.base]).args(more);
    for (board, ..) in boards() {
        command.args(["--board", board]);
    }
    command
}

/// Returns everything that the boards answer, apart from times.
async fn answers(service: &Running) -> Vec<Value> {
    let mut all = Vec::new();
    for (board, definition, _) in boards() {
        let status = service.ok("GET", &format!("/v1/boards/{board}"), None).await;
        all.push(json!([board, status["total"], status["slots"]]));
        let windows: &[&str] = if board == "counts" { &["24h", "7d", "all"] } else { &[""] };
        for window in windows.iter().filter(|_| definition["ranked"] != false) {
            let window = if window.is_empty() { String::new() } else { format!("&window={window}") };
            let page = service.ok("GET", &format!("/v1/boards/{board}/rankings?limit=1000{window}"), None).await;
            all.push(json!([board, page["items"], page["total"], page["retiring"]]));
        }
        let tiers = service.ok("GET", &format!("/v1/boards/{board}/tiers"), None).await;
        all.push(json!([board, tiers["tiers"]]));
        for list in ["hidden", "frozen"] {
            let page = service.ok("GET", &format!("/v1/boards/{board}/{list}"), None).await;
            all.push(json!([board, list, page["items"], page["total"]]));
        }
        for subject in ["s0", "s7", "s399"] {
            let path = format!("/v1/boards/{board}/subjects/{subject}");
            let standing = service.ok("GET", &path, None).await;
            all.push(json!([board, standing["score"], standing["rank"], standing["slots"], standing["kept_slots"]]));
            let last = service.ok("GET", &format!("{path}/window?last=6h"), None).await;
            // A member of another name would be null on both sides.
            assert!(last.get("count").or(last.get("value")).is_some() && standing.get("slots").is_some(), "{last}");
            all.push(json!([board, last["count"], last["value"]]));
            if board == "distinct" {
                let values = service.ok("GET", &format!("{path}/values?limit=1000"), None).await;
                all.push(json!([board, values["items"], values["total"]]));
            }
        }
        let audit = service.ok("POST", &format!("/v1/boards/{board}/audit"), None).await;
        assert_eq!((&audit["differences"], &audit["missing_slots"]), (&json!(0), &json!(0)), "{board}: {audit}");
    }
    all
}

/// Asserts that two services answer the same. A slot may begin between the answers of one and those of the other: then
/// both are asked again.
async fn assert_same(one: &Running, other: &Running) {
    for _ in 0..3 {
        if answers(one).await == answers(other).await {
            return;
        }
    }
    let (one, other) = (answers(one).await, answers(other).await);
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
}

fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}{error}");
    out.into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn boards_of_every_metric_move_to_redis_and_back() {
    let (folder, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let from = Running::start(folder.path(), &[]);
    fill(&from, 3_000).await;
    for (board, definition, _) in boards() {
        from.ok("PUT", &format!("/v1/boards/{board}/subjects/s7/frozen"), None).await;
        if definition["ranked"] != false {
            from.ok("PUT", &format!("/v1/boards/{board}/subjects/s0/hidden"), Some(json!({"shadow": true}))).await;
            from.ok("PUT", &format!("/v1/boards/{board}/subjects/s7/hidden"), None).await;
        }
    }
    let tiers = json!({"tiers": [{"name": "gold", "top": 12.345}, {"name": "silver", "score": 1234567890.12}]});
    from.ok("PUT", "/v1/boards/sums/tiers", Some(tiers)).await;
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let to = Running::start(folder.path(), &["--store", &server.url()]);
        let said = output(copy(folder.path(), &from, &to, &["--shards", "5"]));
        assert_eq!(said.matches("are the same at").count(), boards().len(), "{said}");
        assert_eq!(said.matches(&format!("sums: 2 tiers set at {}", to.base)).count(), 1, "{said}");
        assert_eq!(said.matches("tiers").count(), 1, "{said}");
        assert_same(&to, &from).await;
        let shards = to.ok("GET", "/v1/boards/counts", None).await["shards"].clone();
        assert_eq!(shards, 5);
        // The same contents are merged once. What moderators do meanwhile does not make a copy fail.
        to.ok("PUT", "/v1/boards/counts/subjects/s399/hidden", None).await;
        let said = output(copy(folder.path(), &from, &to, &[]));
        assert_eq!(said.matches("merged before").count(), boards().len(), "{said}");
        assert_eq!(said.matches("; other subjects are hidden or frozen there").count(), 1, "{said}");
        assert!(!said.contains("tiers"), "{said}");
        to.ok("DELETE", "/v1/boards/counts/subjects/s399/hidden", None).await;
        assert_same(&to, &from).await;
        let data = back.path().join(engine.name);
        let there = Running::start(back.path(), &["--data-dir", data.to_str().unwrap()]);
        let said = output(copy(folder.path(), &to, &there, &["--dir", "back"]));
        assert_eq!(said.matches("are the same at").count(), boards().len(), "{said}");
        assert_same(&there, &from).await;
    }
}

/// Starts a server that passes requests without a body on, but knows no tiers, as before there were any. Returns its URL.
async fn without_tiers(service: &Running) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, address) = (format!("http://{}", listener.local_addr().unwrap()), service.address().to_owned());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(&address).await.unwrap();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await?);
                }
                let head = String::from_utf8(head).unwrap();
                if head.lines().next().unwrap().contains("/tiers") {
                    let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                    return client.write_all(answer.as_bytes()).await;
                }
                // One request for each connection.
                server.write_all(head.replacen("\r\n", "\r\nconnection: close\r\n", 1).as_bytes()).await?;
                tokio::io::copy(&mut server, &mut client).await.map(drop)
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn tiers_of_the_new_board_stay_and_earlier_servers_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (Running::start(folder.path(), &[]), Running::start(folder.path(), &["--data-dir", "other"]));
    from.ok("PUT", "/v1/boards/b", Some(json!({"metric": "COUNT(24h, like, post)", "slot": "1h"}))).await;
    from.ok("PUT", "/v1/boards/b/tiers", Some(json!({"tiers": [{"name": "gold", "rank": 1}]}))).await;
    let copy = |url: &str, name: &str| {
        let mut command = program(folder.path());
        command.args(["copy", "--from", url, "--to", &to.base, "--board", "b", "--as", name]);
        tokio::task::spawn_blocking(move || output(command))
    };
    let old = without_tiers(&from).await;
    let said = copy(&old, "of-old").await.unwrap();
    assert!(said.contains("no scores differ") && !said.contains("tier"), "{said}");

    let said = copy(&from.base, "b").await.unwrap();
    assert!(said.contains("b: 1 tier set at "), "{said}");
    let own = json!([{"name": "silver", "rank": 2}]);
    to.ok("PUT", "/v1/boards/b/tiers", Some(json!({"tiers": own}))).await;
    let said = copy(&from.base, "b").await.unwrap();
    assert!(said.contains("b: b has other tiers, which are not changed"), "{said}");
    assert_eq!(to.ok("GET", "/v1/boards/b/tiers", None).await["tiers"], own);
}

/// Kills the copy, the server that it copies to, or the one that it copies from, until a copy succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_that_is_killed_anywhere_is_continued_and_counts_once() {
    let mut random = StdRng::seed_from_u64(crate::drawn::seed());
    let (folder, server) = (tempfile::tempdir().unwrap(), RedisServer::start(&Engine::available()[0]));
    let url = server.url();
    for round in 0..rounds(2) {
        let (at, prefix) = (folder.path().join(format!("{round}")), format!("round-{round}"));
        std::fs::create_dir_all(&at).unwrap();
        let (here, there) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
        let listening = |address: &str, more: &[&str]| {
            let mut command = program(&at);
            command.args(["serve", "--listen", address]).args(more);
            command
        };
        let from = || listening(&here, &[]);
        let to = || match round % 2 {
            0 => listening(&there, &["--store", &url, "--redis-prefix", &prefix]),
            _ => listening(&there, &["--data-dir", "other"]),
        };
        let (mut source, mut target) = (Running::launch(from()), Running::launch(to()));
        fill(&source, 4_000).await;
        output(copy(&at, &source, &target, &["--define"]));
        let (mut kills, mut live) = (0, 0);
        let wait = Wait::begin("a copy that is not killed");
        loop {
            let mut command = copy(&at, &source, &target, &[]);
            let said = File::options().create(true).append(true).open(at.join("said")).unwrap();
            let mut child = command.stdout(said).stderr(Stdio::null()).spawn().unwrap();
            // Producers have switched, and send to the new boards meanwhile.
            for (seed, (board, _, field)) in boards().into_iter().enumerate() {
                let lines = items(1_000 + 100 * live + seed as u64, field, 100);
                target.ndjson_until_counted(board, &lines).await;
            }
            live += 1;
            if kills == 0 {
                // The first kill comes when a board is merged, and others are not.
                let merged = || std::fs::read_to_string(at.join("said")).unwrap().contains(" merged");
                while !merged() && child.try_wait().unwrap().is_none() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            } else {
                tokio::time::sleep(Duration::from_millis(random.random_range(5..400))).await;
            }
            if kills == 12 {
                let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
                assert!(status.success());
                break;
            }
            kills += 1;
            let action = random.random_range(0..3);
            match action {
                0 => process::kill(child.id()),
                1 => {
                    target.kill();
                    target = Running::launch(to());
                }
                _ => {
                    source.kill();
                    source = Running::launch(from());
                }
            }
            if action > 0 {
                // The copy goes on with a server that is back.
                tokio::time::sleep(Duration::from_millis(random.random_range(0..1_500))).await;
            }
            child.kill().ok();
            if child.wait().unwrap().success() {
                break;
            }
            wait.pause("it goes on");
        }
        // One more copy finds that all is merged.
        let said = output(copy(&at, &source, &target, &[]));
        assert_eq!(said.matches("merged before").count(), boards().len(), "{said}");
        // What the new boards have received besides, the old ones receive now.
        for turn in 0..live {
            for (seed, (board, _, field)) in boards().into_iter().enumerate() {
                source.ndjson_until_counted(board, &items(1_000 + 100 * turn + seed as u64, field, 100)).await;
            }
        }
        println!("round {round}: {kills} kills, {live} times live items");
        assert_same(&target, &source).await;
    }
}
