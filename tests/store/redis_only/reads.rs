//! Tests of combined reads: few commands for many questions, no stale responses, bounded portions.

use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::store::SlotQuery;

use super::*;
use crate::given::unranked;

/// Returns the number of bytes that the server received since its statistics were reset.
fn received(server: &RedisServer) -> u64 {
    let stats: String = behind(server, &["INFO", "stats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
    line.unwrap().trim().parse().unwrap()
}

async fn define_as(store: &RedisStore, name: &str, definition: &Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse(name).unwrap(), definition)).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?} instead of a new board"),
    }
}

fn query(board: &Arc<Board>, who: &str, slots: u32) -> SlotQuery {
    SlotQuery { track: board.main(), subject: subject(who), range: SlotRange::Slots(slots), as_of: None }
}

/// Gives a board a version, as writes do.
fn set_version(server: &RedisServer, version: &str) {
    behind::<u64>(server, &["HSET", &keys(server, "*:meta")[0], "version", version]);
}

/// Tests that no response is stale. A reader notes what was acknowledged before its read, and must find no less, and no
/// more than was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_are_not_stale() {
    for (seed, engine) in (1..).zip(Engine::available()) {
        let server = RedisServer::start(&engine);
        let (store, other) = (system(&server).await, system(&server).await);
        let ranked = define(&store, "ranked", "COUNT(24h, like, post)", "1h").await;
        let unranked = define_as(&store, "unranked", &unranked("COUNT(24h, like, post)", "1h")).await;
        let (sent, done) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        let mut tasks = Vec::new();
        for worker in 0..24_u64 {
            let store = if worker % 4 == 3 { other.clone() } else { store.clone() };
            let (ranked, unranked, sent, done) = (ranked.clone(), unranked.clone(), sent.clone(), done.clone());
            tasks.push(tokio::spawn(async move {
                let mut rng = StdRng::seed_from_u64(seed * 1_000 + worker);
                if worker == 0 {
                    for _ in 0..400 {
                        let amount = rng.random_range(1..9);
                        sent.fetch_add(amount, Ordering::SeqCst);
                        let add = |board| store.add(board, batch([item("a", amount)]));
                        let both = futures_util::future::join(add(&ranked), add(&unranked)).await;
                        assert!(both.0.is_ok() && both.1.is_ok());
                        done.fetch_add(amount, Ordering::SeqCst);
                        for _ in 0..rng.random_range(0..4) {
                            tokio::task::yield_now().await;
                        }
                    }
                    return;
                }
                let who = subject("a");
                while done.load(Ordering::SeqCst) < sent.load(Ordering::SeqCst) || done.load(Ordering::SeqCst) < 1_500 {
                    let least = done.load(Ordering::SeqCst);
                    let found = match rng.random_range(0..6) {
                        0 | 1 => {
                            let page = store.page(&ranked.main(), 0, rng.random_range(1..3)).await.unwrap();
                            page.items.first().map_or(0, |line| line.score.units())
                        }
                        2 => {
                            let lookup = store.lookup(&ranked.main(), std::slice::from_ref(&who), true).await.unwrap();
                            lookup.scores[0].map_or(0, |score| Some(score).units())
                        }
                        3 => store.standing(&ranked.main(), &who).await.unwrap().score.units(),
                        4 => store.count(&ranked.main(), &who, SlotRange::Slots(2)).await.unwrap().units(),
                        _ => store.count(&unranked.main(), &who, SlotRange::Slots(2)).await.unwrap().units(),
                    };
                    let most = sent.load(Ordering::SeqCst);
                    assert!((least..=most).contains(&found), "{found} is not within {least}..={most}");
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test]
async fn concurrent_reads_share_scripts() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..100).map(|i| item(&format!("s{i}"), i + 1))).await;
        store.standing(&board.main(), &subject("s1")).await.unwrap();
        reset(&server);
        let (one, other) = (subject("s1"), subject("s2"));
        let of = |i: usize| if i.is_multiple_of(2) { &one } else { &other };
        let track = board.main();
        let standings = join_all((0..500).map(|i| store.standing(&track, of(i)))).await;
        assert!(
            standings.iter().enumerate().all(|(i, found)| found.as_ref().unwrap().score.units() == 2 + i as i64 % 2)
        );
        // Questions that were combined share one script, because they are about the same slots. A busy machine needs
        // some more.
        let [scripts] = calls(&server, ["evalsha"]);
        assert!(scripts <= 100, "{scripts} scripts");
    }
}

#[tokio::test]
async fn cached_pages_are_reread_only_after_changes() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..100).map(|i| item(&format!("s{i}"), i + 1))).await;
        set_version(&server, "test:1");
        let read = async || {
            let track = board.main();
            let pages = join_all((0..200).map(|i| store.page(&track, i % 20, 5))).await;
            pages.into_iter().map(Result::unwrap).collect::<Vec<_>>()
        };
        // The first time, the script is loaded into the server, page by page.
        read().await;
        let first = read().await;
        reset(&server);
        let again = read().await;
        for (before, after) in first.iter().zip(&again) {
            assert_eq!((&before.items, before.total), (&after.items, after.total));
            assert!(after.frame.as_of >= before.frame.as_of);
        }
        let [scripts, looks, times] = calls(&server, ["evalsha", "hmget", "time"]);
        // One look is shared by all who ask at that moment. On a busy machine they do not all ask at once.
        assert!(scripts == 0 && looks <= 100 && times <= 100, "{scripts} scripts, {looks} looks, {times} times");

        // Another version: each page is read again, for all who ask before the read is sent.
        behind::<f64>(&server, &["ZADD", &keys(&server, "*:r")[0], "CH", "1000", "s7"]);
        set_version(&server, "test:2");
        reset(&server);
        let changed = read().await;
        assert_eq!((changed[0].items[0].subject.as_str(), changed[0].items[0].score.units()), ("s7", 1_000));
        let [scripts, lines] = calls(&server, ["evalsha", "zrevrange"]);
        // The script calls `ZREVRANGE` too, and the first lines are read without a script.
        assert!((19..=100).contains(&scripts), "{scripts} scripts for 20 pages that were asked for 200 times");
        assert!((20..=100).contains(&lines), "{lines} reads of lines of 20 pages that were asked for 200 times");

        // After a new connection nothing that was read before is used, whatever its version.
        behind::<()>(&server, &["CLIENT", "KILL", "TYPE", "normal"]);
        behind::<f64>(&server, &["ZADD", &keys(&server, "*:r")[0], "CH", "2000", "s8"]);
        let page = store.page(&board.main(), 0, 5).await.unwrap();
        assert_eq!(page.items[0].subject.as_str(), "s8");

        // Without a version nothing is cached.
        behind::<u64>(&server, &["HDEL", &keys(&server, "*:meta")[0], "version"]);
        behind::<f64>(&server, &["ZADD", &keys(&server, "*:r")[0], "CH", "3000", "s9"]);
        assert_eq!(store.page(&board.main(), 0, 5).await.unwrap().items[0].subject.as_str(), "s9");
        reset(&server);
        store.page(&board.main(), 0, 5).await.unwrap();
        assert_eq!(calls(&server, ["evalsha"]), [1]);

        // Another generation: the board no longer exists.
        set_version(&server, "test:3");
        store.page(&board.main(), 0, 5).await.unwrap();
        behind::<u64>(&server, &["HSET", &keys(&server, "*:meta")[0], "generation", "other"]);
        assert!(matches!(store.page(&board.main(), 0, 5).await, Err(StoreError::BoardChanged)));
    }
}

/// Tests a head that moves without a change of the version, by the local clock or through another instance.
#[tokio::test]
async fn a_cached_page_is_replaced_when_the_window_moves() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        let board = hourly(&store, "hot").await;
        add(&store, &board, [item("a", 1)]).await;
        set_version(&server, "test:1");
        let page = store.page(&board.main(), 0, 5).await.unwrap();
        assert_eq!((page.total, page.frame.as_of, page.frame.retiring), (1, t(START), 0));
        for hours in 1..6 {
            let now = t(START).plus_millis(hours * 3_600_000);
            store.set_clock(now).await.unwrap();
            if hours % 2 == 0 {
                other.page(&board.main(), 0, 1).await.unwrap();
            }
            let page = store.page(&board.main(), 0, 5).await.unwrap();
            assert!(page.frame.as_of == now && page.frame.window.holds_at(now));
            let gone = now.millis() >= t(START).millis() + 3 * 3_600_000;
            // The slot is not subtracted yet.
            assert_eq!((page.total, page.frame.retiring), (1, u64::from(gone)));
        }
    }
}

/// Tests that the time of a response is never before the stored head, and that a response for a new window moves the
/// head first.
#[tokio::test]
async fn reads_without_a_script_advance_the_head() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define_as(&store, "sum", &unranked("SUM(3h, e, v, s)", "1h")).await;
        add(&store, &board, [item("a", 1)]).await;
        let meta = keys(&server, "*:meta").swap_remove(0);
        let head = || behind::<i64>(&server, &["HGET", &meta, "head"]);
        for hours in 1..3 {
            store.set_clock(t(START).plus_millis(hours * 3_600_000)).await.unwrap();
            reset(&server);
            let queries = (0..40).map(|i| query(&board, &format!("s{i}"), 3)).collect();
            assert!(store.read(queries).await.iter().all(Result::is_ok));
            assert_eq!(head(), t("2026-01-01T00:00:00Z").millis() + hours * 3_600_000);
        }
        // One script for all of them, which is loaded into the server the first time.
        assert_eq!(calls(&server, ["evalsha"]), [1]);
        // The clock is behind the head that the board has reached.
        behind::<u64>(&server, &["HSET", &meta, "head", &t("2026-01-01T03:00:00Z").millis().to_string()]);
        let reading = store.count(&board.main(), &subject("a"), SlotRange::Slots(3)).await.unwrap();
        assert_eq!((reading.frame.as_of, reading.units()), (t("2026-01-01T03:00:00Z"), 0));
    }
}

/// Tests that a large call to a server that stopped answering ends with its first portion, although small reads wait
/// too and each portion would wait for its turn.
#[tokio::test]
async fn a_large_read_from_an_unresponsive_server_ends_soon() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = RedisStore::connect(hasty(server.url(), ClockMode::System)).await.unwrap();
        let board = define(&store, "wide", "COUNT(2000m, e, s)", "1m").await;
        add(&store, &board, (0..300).map(|i| item(&format!("s{i}"), i + 1))).await;
        store.count(&board.main(), &subject("s1"), SlotRange::Slots(2_000)).await.unwrap();
        server.pause(true);
        let small = tokio::spawn({
            let (store, board) = (store.clone(), board.clone());
            async move {
                loop {
                    drop(store.page(&board.main(), 0, 10).await);
                }
            }
        });
        let begun = std::time::Instant::now();
        let queries: Vec<SlotQuery> = (0..300).map(|i| query(&board, &format!("s{i}"), 2_000)).collect();
        let answers = store.read(queries).await;
        let took = begun.elapsed();
        small.abort();
        server.pause(false);
        assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(StoreError::is_transient)));
        assert!(took < std::time::Duration::from_secs(15), "{took:?}");
        store.count(&board.main(), &subject("s1"), SlotRange::Slots(2_000)).await.unwrap();
    }
}

/// Tests how much one huge request makes the server receive and do at a time.
#[tokio::test]
async fn a_large_query_is_read_in_bounded_portions() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        let board = define(&store, "wide", "COUNT(2000m, e, s)", "1m").await;
        add(&store, &board, (0..64).map(|i| item(&format!("s{i}"), i + 1))).await;
        store.count(&board.main(), &subject("s1"), SlotRange::Slots(2_000)).await.unwrap();

        // A thousand times the same few: each is read once.
        reset(&server);
        let queries: Vec<SlotQuery> = (0..1_000).map(|i| query(&board, &format!("s{}", i % 10), 2_000)).collect();
        let contents = store.read(queries).await;
        assert!(contents.iter().enumerate().all(|(i, found)| found.as_ref().unwrap().units() == 1 + i as i64 % 10));
        let [scripts] = calls(&server, ["evalsha"]);
        assert!((5..=12).contains(&scripts), "{scripts} scripts");
        assert!(received(&server) < 1_500_000);

        // Different subjects: one for each script.
        reset(&server);
        let queries: Vec<SlotQuery> = (0..64).map(|i| query(&board, &format!("s{i}"), 2_000)).collect();
        let contents = store.read(queries).await;
        assert!(contents.iter().enumerate().all(|(i, found)| found.as_ref().unwrap().units() == 1 + i as i64));
        let [scripts, looks] = calls(&server, ["evalsha", "hmget"]);
        // A script that finds that the window has moved on looks at nothing, and is called again.
        assert!((64..=72).contains(&scripts) && looks >= 64 * 2_000, "{scripts} scripts, {looks} looks");
        assert!(received(&server) / scripts < 200_000);
    }
}
