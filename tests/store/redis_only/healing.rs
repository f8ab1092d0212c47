//! Tests of the state after a restart of the server: one instance heals few differences, and a board that lost a part
//! is held for a decision.

use super::*;
use crate::documented_user;
use crate::waiting::Wait;

pub(super) const PERSISTENT: &[&str] = &["--save", "", "--appendonly", "yes", "--appendfsync", "always"];

fn meta(board: &Board) -> String {
    format!("rolltop:1:{{{}}}:meta", board.name())
}

fn field(server: &RedisServer, board: &Board, name: &str) -> Option<String> {
    behind(server, &["HGET", &meta(board), name])
}

/// Does the work of the scheduler until the board is known to be complete, or is held.
pub(super) async fn tend(server: &RedisServer, stores: &[&Arc<RedisStore>], board: &Board) {
    let info: String = behind(server, &["INFO", "server"]);
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap().trim().to_owned();
    for _ in 0..100 {
        for outcome in futures_util::future::join_all(stores.iter().map(|store| store.tend())).await {
            if let Err(error) = outcome {
                assert!(error.is_transient(), "{error}");
            }
        }
        if field(server, board, "run").as_ref() == Some(&run) || field(server, board, "held").is_some() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("no instance has checked the board");
}

/// Truncates the append-only file inside the last script, before the last write that has this text.
pub(super) fn cut_inside_a_script(server: &RedisServer, text: &[u8]) {
    let folder = server.folder().join("appendonlydir");
    let file = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with(".incr.aof"))
        .expect("an append-only file");
    let bytes = std::fs::read(&file).unwrap();
    let last = |needle: &[u8]| bytes.windows(needle.len()).rposition(|window| window == needle);
    let (script, write) = (last(b"MULTI\r\n").unwrap(), last(text).unwrap());
    assert!(script < write, "the last script made no such write");
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(write as u64).unwrap();
}

/// Starts a server that has the documented user after each of its starts.
fn with_documented_user(engine: &Engine) -> RedisServer {
    let rules = documented_user::rules();
    RedisServer::start_with(engine, &[PERSISTENT, &["--user", "app"], &rules].concat())
}

/// Restarts a server on the truncated file. The server drops the truncated script at its first start, and applies half
/// of it at its second.
async fn after_a_cut(server: &mut RedisServer, rewrites: bool) -> (Arc<RedisStore>, Arc<Board>) {
    let url = documented_user::url(&server.url());
    let options = RedisOptions { rewrite_aof: rewrites, ..options(url, ClockMode::Simulated(t(START))) };
    let store = RedisStore::connect(options).await.unwrap();
    let board = hourly(&store, "hot").await;
    tend(server, &[&store], &board).await;
    add(&store, &board, (0..40).map(|i| item(&format!("s{i}"), i + 1))).await;
    add(&store, &board, (0..40).map(|i| item(&format!("s{i}"), 100))).await;
    server.kill();
    // After the write of the slot and before that of the ranking.
    cut_inside_a_script(server, b":r\r\n");
    server.restart();
    tend(server, &[&store], &board).await;
    assert_eq!(audit(&store, &board, false).await.1, [], "the cut script was dropped as a whole");
    if rewrites {
        for _ in 0..200 {
            let info: String = behind(server, &["INFO", "persistence"]);
            if info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    add(&store, &board, [item("after", 7)]).await;
    server.kill();
    server.restart();
    (store, board)
}

#[tokio::test]
async fn a_partially_replayed_script_is_healed_automatically() {
    for engine in Engine::available() {
        let mut server = with_documented_user(&engine);
        let (store, board) = after_a_cut(&mut server, false).await;
        let (_, differences, _) = audit(&store, &board, false).await;
        // Valkey drops the half again.
        let replays = engine.name == "redis";
        assert!(!replays || !differences.is_empty(), "the server did not replay the half: there is nothing to heal");
        tend(&server, &[&store], &board).await;
        assert_eq!(field(&server, &board, "held"), None);
        assert_eq!(audit(&store, &board, false).await.1, []);
        assert_eq!(store.warnings(), [""; 0]);
        assert!(scores(&store, &board).await.contains(&("after".to_owned(), 7)));
    }
}

#[tokio::test]
async fn a_rewritten_append_only_file_replays_no_partial_script() {
    for engine in Engine::available() {
        let mut server = with_documented_user(&engine);
        let (store, board) = after_a_cut(&mut server, true).await;
        assert_eq!(audit(&store, &board, false).await.1, []);
        let asked: Vec<String> = behind(&server, &["HKEYS", "rolltop:1:rewrites"]);
        assert_eq!(asked.len(), 2, "one rewrite for each run: {asked:?}");
    }
}

/// Tests that a rewrite that was refused is asked for again, by every instance, and that each says so until it is done.
#[tokio::test]
async fn a_refused_rewrite_is_a_warning_until_it_is_done() {
    for engine in Engine::available() {
        let server = RedisServer::start_with(&engine, PERSISTENT);
        let refusing: Vec<&str> = documented_user::rules().into_iter().chain(["-bgrewriteaof"]).collect();
        documented_user::create(&server, &refusing);
        let url = documented_user::url(&server.url());
        let connect = || RedisStore::connect(options(url.clone(), ClockMode::Simulated(t(START))));
        let stores = [connect().await.unwrap(), connect().await.unwrap()];
        let reasons = |store: &RedisStore| {
            let warnings = store.warnings();
            assert!(warnings.iter().all(|warning| warning.contains("+bgrewriteaof")), "{warnings:?}");
            warnings.len()
        };
        for store in &stores {
            for _ in 0..2 {
                store.tend().await.unwrap();
                assert_eq!(reasons(store), 1);
            }
        }
        assert_eq!(behind::<u64>(&server, &["HLEN", "rolltop:1:rewrites"]), 0, "nobody has done it");
        documented_user::create(&server, &documented_user::rules());
        let wait = Wait::begin("every instance to learn that the file is rewritten");
        while stores.iter().map(|store| reasons(store)).sum::<usize>() > 0 {
            wait.rest(stores[0].warnings()).await;
            for store in &stores {
                store.tend().await.unwrap();
            }
        }
        assert_eq!(behind::<u64>(&server, &["HLEN", "rolltop:1:rewrites"]), 1, "one of them has asked");
    }
}

#[tokio::test]
async fn only_one_of_two_instances_heals_a_board() {
    for engine in Engine::available() {
        let mut server = RedisServer::start_with(&engine, PERSISTENT);
        let (one, two) = (simulated(&server).await, simulated(&server).await);
        let board = hourly(&one, "hot").await;
        add(&one, &board, (0..30).map(|i| item(&format!("s{i}"), i + 1))).await;
        tend(&server, &[&one, &two], &board).await;
        let ranking = keys(&server, "*:r").swap_remove(0);
        behind::<()>(&server, &["ZADD", &ranking, "1000", "s1", "1000", "s2"]);
        server.kill();
        server.restart();
        reset(&server);
        tend(&server, &[&one, &two], &board).await;
        assert_eq!(calls_of(&server, "zscan"), 2, "a pass that reads and one that repairs, by one of them");
        assert_eq!(audit(&two, &board, false).await.1, []);
        assert_eq!(field(&server, &board, "healer"), None);
    }
}

#[tokio::test]
async fn an_expired_healing_claim_is_taken_over() {
    for engine in Engine::available() {
        let mut server = RedisServer::start_with(&engine, PERSISTENT);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        tend(&server, &[&store], &board).await;
        server.kill();
        server.restart();
        let time: Vec<i64> = behind(&server, &["TIME"]);
        let millis = |ahead: i64| (time[0] + ahead) * 1_000;
        let claim = |till: i64| behind::<()>(&server, &["HSET", &meta(&board), "healer", &format!("someone {till}")]);
        claim(millis(20));
        while store.tend().await.is_err() {}
        let healer = field(&server, &board, "healer").unwrap();
        assert!(healer.starts_with("someone"), "the claim holds: {healer}");
        for till in [millis(-1), millis(86_400)] {
            claim(till);
            behind::<()>(&server, &["HDEL", &meta(&board), "run"]);
            let fresh = simulated(&server).await;
            tend(&server, &[&fresh], &board).await;
            assert_eq!(field(&server, &board, "healer"), None, "it ran out, or the clock was set back");
        }
    }
}

#[tokio::test]
async fn a_board_with_a_missing_slot_is_held_until_it_is_repaired_manually() {
    for engine in Engine::available() {
        let mut server = RedisServer::start_with(&engine, PERSISTENT);
        let (one, two) = (simulated(&server).await, simulated(&server).await);
        let (board, other) = (hourly(&one, "hot").await, hourly(&one, "other").await);
        add(&one, &board, (0..30).map(|i| item(&format!("s{i}"), i + 1))).await;
        one.set_clock(t(START).plus_millis(3_600_000)).await.unwrap();
        add(&one, &board, (0..30).map(|i| item(&format!("s{i}"), 1))).await;
        tend(&server, &[&one, &two], &board).await;
        let slot = keys(&server, "*{hot}*:s:*").swap_remove(0);
        behind::<()>(&server, &["DEL", &slot]);
        let before = scores(&one, &board).await;
        server.kill();
        server.restart();
        tend(&server, &[&one, &two], &board).await;
        tend(&server, &[&one, &two], &other).await;
        assert!(field(&server, &board, "held").unwrap().contains("1 slots are missing"));
        for store in [&one, &two] {
            store.tend().await.unwrap();
            assert_eq!(store.warnings().len(), 1, "{:?}", store.warnings());
            assert!(store.warnings()[0].contains("'hot'"));
            store.check().await.unwrap();
        }
        assert_eq!(scores(&one, &board).await, before, "the ranking may be the last copy");
        assert_eq!(field(&server, &other, "held"), None);
        // An audit that only reads finds the same differences, and the board stays held.
        assert_eq!(audit(&one, &board, false).await.1.len(), 30);
        assert!(field(&server, &board, "held").is_some());
        // It also stays held after another restart.
        server.kill();
        server.restart();
        tend(&server, &[&one], &board).await;
        assert_eq!(scores(&one, &board).await, before);
        assert_eq!(audit(&one, &board, true).await.2, 30);
        assert_eq!((field(&server, &board, "held"), one.warnings()), (None, vec![]));
        assert_eq!(scores(&one, &board).await.len(), 30);
        tend(&server, &[&one, &two], &board).await;
        assert_eq!(audit(&two, &board, false).await.1, []);
    }
}

#[tokio::test]
async fn a_board_with_many_differences_is_held_for_manual_repair() {
    for engine in Engine::available() {
        let mut server = RedisServer::start_with(&engine, PERSISTENT);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..1_200).map(|i| item(&format!("s{i}"), i + 1))).await;
        tend(&server, &[&store], &board).await;
        let ranking = keys(&server, "*:r").swap_remove(0);
        behind::<()>(&server, &["DEL", &ranking]);
        server.kill();
        server.restart();
        tend(&server, &[&store], &board).await;
        let held = field(&server, &board, "held").unwrap();
        assert!(held.contains("1200 of 1200"), "{held}");
        assert_eq!(scores(&store, &board).await, []);
        assert_eq!(audit(&store, &board, true).await.2, 1_200);
        assert_eq!(field(&server, &board, "held"), None);
    }
}

/// Tests that a board that was just defined is not audited. An audit of a large board uses a share of the server's time
/// for minutes.
#[tokio::test]
async fn a_new_board_is_not_audited() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..40).map(|i| item(&format!("s{i}"), 1))).await;
        assert!(field(&server, &board, "run").is_some());
        reset(&server);
        tend(&server, &[&store], &board).await;
        let stats: String = behind(&server, &["INFO", "commandstats"]);
        assert!(!stats.contains("zscan") && !stats.contains("zscore"), "{stats}");
    }
}
