//! Tests of pages of boards of several parts: cached pages are not read again, and always equal the content of the
//! parts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::store::Page;

use super::*;
use crate::contract::is_everywhere;
use crate::redis_cluster::RedisCluster;

const HOUR: i64 = 3_600_000;

async fn parted(store: &RedisStore, name: &str, shards: u32) -> Arc<Board> {
    let definition = Definition::new("COUNT(3h, like, post)".parse().unwrap(), "1h".parse().unwrap());
    let definition = Definition { shards: Some(shards), ..definition };
    match store.define(new_board(&BoardName::parse(name).unwrap(), &definition)).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) => board,
        Defined::Conflict(board) => panic!("{name} is defined otherwise: {:?}", board.definition()),
    }
}

fn plain(page: &Page) -> Vec<(u64, String, i64)> {
    page.items.iter().map(|line| (line.rank, line.subject.as_str().to_owned(), line.score.units())).collect()
}

/// Returns the key of the ranking that contains a subject.
fn ranking_of(server: &RedisServer, name: &str) -> String {
    let has = |key: &String| behind::<Option<f64>>(server, &["ZSCORE", key, name]).is_some();
    keys(server, "*:r").into_iter().find(has).unwrap()
}

#[tokio::test]
async fn cached_pages_of_parts_reread_only_changed_parts() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        let board = parted(&store, "hot", 4).await;
        add(&store, &board, (0..1_000).map(|i| item(&format!("s{i}"), i + 1))).await;
        // Near the top, and beyond the lines that are read from there.
        let read = async || {
            let pages = [store.page(&board.main(), 0, 20).await, store.page(&board.main(), 10, 20).await];
            pages.into_iter().chain([store.page(&board.main(), 700, 20).await]).map(Result::unwrap).collect::<Vec<_>>()
        };
        let changed = async |name: &str, score: i64, offset: u64| {
            let page = store.page(&board.main(), offset, 20).await.unwrap();
            assert_eq!(page.items[0].subject.as_str(), name);
            assert_eq!(page.items[0].score.units(), score);
        };
        read().await;
        let first = read().await;
        reset(&server);
        for _ in 0..20 {
            let again = read().await;
            for (before, after) in first.iter().zip(&again) {
                assert_eq!((plain(before), before.total), (plain(after), after.total));
                assert!(after.items.is_shared() && after.frame.as_of >= before.frame.as_of);
            }
        }
        // For each page, one check of each of four parts, and the time of the one node.
        assert_eq!(calls(&server, ["evalsha", "eval", "zrevrange", "hmget", "time"]), [0, 0, 0, 240, 60]);

        // After a write to one part, its lines are read again. Because that part may change again, its lines are read
        // together with the next check. As they did not change, they are not read a third time.
        add(&store, &board, [item("s5", 5_000)]).await;
        reset(&server);
        for reads in [1, 2, 2, 2] {
            changed("s5", 5_006, 0).await;
            assert_eq!(calls(&server, ["zrevrange", "evalsha", "eval"]), [reads, 0, 0]);
        }
        // Another page of the same board finds the same.
        assert_eq!(store.page(&board.main(), 700, 1).await.unwrap().items[0].subject.as_str(), "s300");

        // After a new connection nothing that was read before is used, whatever its version.
        let key = ranking_of(&server, "s8");
        behind::<()>(&server, &["CLIENT", "KILL", "TYPE", "normal"]);
        behind::<f64>(&server, &["ZADD", &key, "CH", "6000", "s8"]);
        changed("s8", 6_000, 0).await;

        // One part without a version: neither its lines nor the page over all parts are cached.
        let meta = key.replace(":r", ":meta");
        behind::<u64>(&server, &["HDEL", &meta, "version"]);
        behind::<f64>(&server, &["ZADD", &key, "CH", "7000", "s8"]);
        changed("s8", 7_000, 0).await;
        behind::<f64>(&server, &["ZADD", &key, "CH", "8000", "s8"]);
        changed("s8", 8_000, 0).await;
        reset(&server);
        changed("s8", 8_000, 0).await;
        assert_eq!(calls(&server, ["evalsha", "eval"]), [1, 0]);

        // Another generation of one part: the board no longer exists.
        behind::<u64>(&server, &["HSET", &meta, "version", "test:1"]);
        changed("s8", 8_000, 0).await;
        behind::<u64>(&server, &["HSET", &meta, "generation", "other"]);
        for offset in [0, 700] {
            assert!(matches!(store.page(&board.main(), offset, 20).await, Err(StoreError::BoardChanged)));
        }
    }
}

#[tokio::test]
async fn equal_concurrent_pages_of_parts_are_merged_once() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        let board = parted(&store, "hot", 4).await;
        add(&store, &board, (0..1_000).map(|i| item(&format!("s{i}"), i + 1))).await;
        // The first time, the script is loaded into the server.
        for _ in 0..2 {
            store.page(&board.main(), 0, 20).await.unwrap();
        }
        reset(&server);
        let track = board.main();
        let pages = futures_util::future::join_all((0..200).map(|_| store.page(&track, 0, 20))).await;
        assert!(pages.iter().all(|page| page.as_ref().unwrap().items[0].score.units() == 1_000));
        let [scripts, looks] = calls(&server, ["evalsha", "hmget"]);
        assert!(scripts == 0 && looks <= 40, "{scripts} scripts, {looks} looks");
    }
}

/// The expected result of the operations.
#[derive(Default)]
struct Model {
    now: i64,
    /// The amounts by hour and subject.
    amounts: BTreeMap<(i64, String), i64>,
}

impl Model {
    fn add(&mut self, name: String, amount: i64) {
        *self.amounts.entry((self.now / HOUR, name)).or_default() += amount;
    }

    fn leap(&mut self, hours: i64) {
        self.now += hours * HOUR;
        let floor = self.now / HOUR - 2;
        self.amounts.retain(|(hour, _), _| *hour >= floor);
    }

    /// Returns score and subject of each line, best first.
    fn ranking(&self) -> Vec<(i64, String)> {
        let mut sums: BTreeMap<&String, i64> = BTreeMap::new();
        for ((_, name), amount) in &self.amounts {
            *sums.entry(name).or_default() += amount;
        }
        let mut lines: Vec<_> =
            sums.into_iter().filter(|(_, sum)| *sum != 0).map(|(name, sum)| (sum, name.clone())).collect();
        lines.sort_unstable_by(|a, b| b.cmp(a));
        lines
    }
}

/// Returns the combined rankings of all parts of the existing boards, best first.
fn held(connection: &mut redis::Connection, keys: &[String]) -> Vec<(i64, String)> {
    let mut lines = Vec::new();
    for key in keys {
        let part: Vec<(String, f64)> =
            cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES").query(connection).unwrap();
        lines.extend(part.into_iter().map(|(name, score)| (score as i64, name)));
    }
    lines.sort_unstable_by(|a, b| b.cmp(a));
    lines
}

fn page_of(lines: &[(i64, String)], offset: usize, limit: usize) -> Vec<(u64, String, i64)> {
    let rank = |score: i64| 1 + lines.partition_point(|(other, _)| *other > score) as u64;
    let some = lines.iter().skip(offset).take(limit);
    some.map(|(score, name)| (rank(*score), name.clone(), *score)).collect()
}

/// Compares every page with what the parts' keys contain at that moment, and with the model whenever nothing is
/// retiring.
#[tokio::test]
async fn pages_of_parts_are_exact_after_random_operations() {
    let operations = if is_everywhere() { 10_000 } else { 2_500 };
    for (seed, engine) in (1..).zip(Engine::available()) {
        let mut rng = StdRng::seed_from_u64(seed);
        let server = RedisServer::start(&engine);
        let stores = [simulated(&server).await, simulated(&server).await];
        let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        let mut board = parted(&stores[0], "random", 3).await;
        let rankings = |board: &Board| -> Vec<String> {
            let metas = keys(&server, &format!("*:{}:meta", board.generation()));
            metas.iter().map(|key| key.replace(":meta", ":r")).collect()
        };
        let mut parts = rankings(&board);
        assert_eq!(parts.len(), 3);
        let mut model = Model { now: t(START).millis(), ..Model::default() };
        let (mut retiring, mut pages, mut compared) = (false, 0, 0);
        reset(&server);
        for operation in 0..operations {
            let store = &stores[rng.random_range(0..2)];
            let name = |rng: &mut StdRng| format!("s{}", rng.random_range(0..400));
            match rng.random_range(0..1_000) {
                0..150 => {
                    let items: Vec<(String, i64)> = (0..[1, 1, 1, 60][rng.random_range(0..4)])
                        .map(|_| (name(&mut rng), rng.random_range(-2..6)))
                        .collect();
                    let added = add(store, &board, items.iter().map(|(name, amount)| item(name, *amount))).await;
                    assert!(added.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. })));
                    items.into_iter().for_each(|(name, amount)| model.add(name, amount));
                }
                150..170 => {
                    let name = name(&mut rng);
                    store.remove(&board, &subject(&name)).await.unwrap();
                    model.amounts.retain(|(_, other), _| *other != name);
                }
                170..176 => {
                    model.leap([1, 1, 1, 2, 5][rng.random_range(0..5)]);
                    store.set_clock(Timestamp::from_millis(model.now)).await.unwrap();
                    retiring = true;
                }
                176..260 => retiring &= !store.retire_step(&board.main()).await.unwrap().done,
                260..262 => {
                    assert!(store.undefine(&board).await.unwrap());
                    let stale = stores[rng.random_range(0..2)].page(&board.main(), 0, 10).await;
                    assert!(matches!(stale, Err(StoreError::BoardChanged)), "{stale:?}");
                    board = parted(&stores[rng.random_range(0..2)], "random", 3).await;
                    parts = rankings(&board);
                    (model.amounts, retiring) = (BTreeMap::new(), false);
                }
                _ => {
                    // Mostly the same few pages, near the top and beyond 192 lines.
                    let (offset, limit) = match rng.random_range(0..10) {
                        0..5 => (0, 10),
                        5..7 => (200, 10),
                        7 => (30, 40),
                        _ => (rng.random_range(0..420), rng.random_range(1..60)),
                    };
                    let page = store.page(&board.main(), offset, limit).await.unwrap();
                    let lines = held(&mut connection, &parts);
                    let wanted = page_of(&lines, offset as usize, limit as usize);
                    assert_eq!((plain(&page), page.total), (wanted, lines.len() as u64), "operation {operation}");
                    assert_eq!(page.frame.as_of.millis(), model.now);
                    assert!(page.frame.window.holds_at(page.frame.as_of));
                    retiring |= page.frame.retiring > 0;
                    if !retiring {
                        assert_eq!(lines, model.ranking(), "operation {operation}");
                        compared += 1;
                    }
                    pages += 1;
                }
            }
        }
        let [scripts] = calls(&server, ["evalsha"]);
        assert!(compared > pages / 4, "{compared} of {pages}");
        assert!(scripts < 5 * operations, "{scripts} scripts");
    }
}

/// Tests that no page is stale. A reader notes what was acknowledged before its read, and must find no less, and no
/// more than was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_of_parts_are_not_stale() {
    const SUBJECTS: usize = 6;
    const WRITES: i64 = 250;
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let stores = [system(&server).await, system(&server).await];
        let board = parted(&stores[0], "busy", 4).await;
        let counters = || -> Arc<Vec<AtomicI64>> { Arc::new((0..SUBJECTS).map(|_| AtomicI64::new(0)).collect()) };
        let (sent, done) = (counters(), counters());
        let mut tasks = Vec::new();
        for writer in 0..SUBJECTS {
            let (store, board) = (stores[writer % 2].clone(), board.clone());
            let (sent, done) = (sent.clone(), done.clone());
            tasks.push(tokio::spawn(async move {
                for _ in 0..WRITES {
                    sent[writer].fetch_add(1, Ordering::SeqCst);
                    add(&store, &board, [item(&format!("s{writer}"), 1)]).await;
                    done[writer].fetch_add(1, Ordering::SeqCst);
                }
            }));
        }
        for reader in 0..8 {
            let (store, board) = (stores[reader % 2].clone(), board.clone());
            let (sent, done) = (sent.clone(), done.clone());
            let all = |counters: &[AtomicI64]| -> Vec<i64> {
                counters.iter().map(|counter| counter.load(Ordering::SeqCst)).collect()
            };
            tasks.push(tokio::spawn(async move {
                loop {
                    let least = all(&done);
                    let page = store.page(&board.main(), 0, 4 + reader as u32 % 3).await.unwrap();
                    let most = all(&sent);
                    for (_, name, score) in plain(&page) {
                        let who: usize = name[1..].parse().unwrap();
                        assert!((least[who]..=most[who]).contains(&score), "{name} has {score}");
                    }
                    if least.iter().all(|least| *least == WRITES) {
                        return;
                    }
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    }
}

/// Tests a part whose hash slot moves to another node while its pages are cached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cached_page_is_reread_after_a_part_moved() {
    for engine in Engine::available() {
        let cluster = tokio::task::block_in_place(|| RedisCluster::start(&engine, 3, 0));
        let store = RedisStore::connect(options(cluster.url(), ClockMode::System)).await.unwrap();
        let board = parted(&store, "moving", 6).await;
        add(&store, &board, (0..120).map(|i| item(&format!("s{i}"), i + 1))).await;
        let first = store.page(&board.main(), 0, 30).await.unwrap();
        tokio::task::block_in_place(|| {
            let key = cluster.keys("*{moving/*:r").remove(0);
            let slot = cluster.slot(&key);
            let from = cluster.owner(slot);
            let to = (from + 1) % 3;
            cluster.begin_move(slot, from, to);
            while cluster.move_keys(slot, from, to, 10) > 0 {}
            cluster.end_move(slot, from, to);
            // The version is not changed: only the move to another node shows that the page has to be read again.
            let best: Vec<String> = cluster.nodes[to].ask(&["ZREVRANGE", &key, "0", "0"]).unwrap();
            cluster.nodes[to].ask::<f64>(&["ZINCRBY", &key, "1000", &best[0]]).unwrap();
        });
        let page = store.page(&board.main(), 0, 30).await.unwrap();
        assert!(page.items[0].score.units() > 1_000 && page.total == 120);
        assert_ne!(plain(&page), plain(&first));
    }
}
