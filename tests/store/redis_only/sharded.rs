//! Tests of boards of several parts: exact over all parts and nodes, and removed completely.

use std::time::Duration;

use super::proxy::{Fault, Proxy};
use super::*;
use crate::redis_cluster::RedisCluster;

async fn define_parts(store: &RedisStore, name: &str, definition: Definition, shards: u32) -> Arc<Board> {
    let definition = Definition { shards: Some(shards), ..definition };
    match store.define(new_board(&BoardName::parse(name).unwrap(), &definition)).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) => board,
        Defined::Conflict(board) => panic!("{name} is defined otherwise: {:?}", board.definition()),
    }
}

fn likes() -> Definition {
    Definition::new("COUNT(3h, like, post)".parse().unwrap(), "1h".parse().unwrap())
}

fn quiet(increments: impl IntoIterator<Item = Increment>) -> Batch {
    Batch { increments: increments.into_iter().collect(), return_scores: false }
}

/// Returns the stored hash tags of a board's parts.
fn tags(server: &RedisServer, name: &str) -> Vec<String> {
    let parts: String = behind(server, &["HGET", &format!("rolltop:1:{{{name}}}:meta"), "parts"]);
    parts.split(',').map(|suffix| format!("{{{name}/{suffix}}}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tie_of_140_000_subjects_pages_exactly() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let board = define_parts(&store, "tie", likes(), 16).await;
    let mut names: Vec<String> = (0..140_000).map(|i| format!("{:x}-{i}", i * 7_919 % 140_001)).collect();
    for some in names.chunks(20_000) {
        store.add(&board, quiet(some.iter().map(|name| item(name, 1)))).await.unwrap();
    }
    // Some subjects before the tie and some after it.
    store.add(&board, quiet((0..30).map(|i| item(&format!("top-{i}"), 2 + i / 3)))).await.unwrap();
    store.add(&board, quiet((0..30).map(|i| item(&format!("last-{i}"), -1)))).await.unwrap();
    names.sort_unstable_by(|a, b| b.cmp(a));
    let mut top: Vec<(i64, String)> = (0..30).map(|i| (2 + i / 3, format!("top-{i}"))).collect();
    let mut last: Vec<(i64, String)> = (0..30).map(|i| (-1, format!("last-{i}"))).collect();
    top.sort_unstable_by(|a, b| b.cmp(a));
    last.sort_unstable_by(|a, b| b.cmp(a));
    let lines: Vec<(i64, String)> =
        top.into_iter().chain(names.into_iter().map(|name| (1, name))).chain(last).collect();
    let rank = |at: usize| 1 + lines.partition_point(|(score, _)| *score > lines[at].0) as u64;
    let wanted = |from: usize, count: usize| -> Vec<(u64, String, i64)> {
        let till = (from + count).min(lines.len());
        (from.min(till)..till).map(|at| (rank(at), lines[at].1.clone(), lines[at].0)).collect()
    };
    let plain = |page: rolltop::store::Page| -> Vec<(u64, String, i64)> {
        page.items.iter().map(|line| (line.rank, line.subject.as_str().to_owned(), line.score.units())).collect()
    };
    let offsets =
        [0, 1, 25, 31, 1_000, 1_024, 1_025, 5_000, 39_999, 70_000, 111_111, 139_980, 140_029, 140_059, 140_060];
    for offset in offsets {
        let page = store.page(&board.main(), offset, 50).await.unwrap();
        assert_eq!(page.total, 140_060);
        assert_eq!(plain(page), wanted(offset as usize, 50), "from {offset}");
    }
    for at in [0, 5, 29, 30, 31, 777, 70_001, 140_029, 140_030, 140_059] {
        let who = subject(&lines[at].1);
        let standing = store.standing(&board.main(), &who).await.unwrap();
        assert_eq!((standing.rank, standing.better, standing.total), (Some(rank(at)), rank(at) - 1, 140_060));
        assert_eq!(standing.slots.len(), 1);
        let from = at.saturating_sub(10);
        assert_eq!(
            plain(store.neighbors(&board.main(), &who, 10).await.unwrap()),
            wanted(from, at + 11 - from),
            "around {at}"
        );
    }
    let nobody = store.standing(&board.main(), &subject("nobody")).await.unwrap();
    assert_eq!((nobody.rank, nobody.better, nobody.score), (None, 140_030, exact(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_are_spread_evenly_over_six_masters() {
    let cluster = tokio::task::block_in_place(|| RedisCluster::start(&Engine::available()[0], 6, 0));
    let store = RedisStore::connect(options(cluster.url(), ClockMode::System)).await.unwrap();
    let board = define_parts(&store, "even", likes(), 24).await;
    let calls = || -> Vec<u64> {
        let infos: Vec<String> = tokio::task::block_in_place(|| cluster.on_masters(&["INFO", "commandstats"]));
        let scripts = |info: &String| -> u64 {
            let calls =
                |line: &str| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next()?.parse::<u64>().ok();
            info.lines().filter_map(calls).sum()
        };
        infos.iter().map(scripts).collect()
    };
    store.add(&board, quiet((0..2_000).map(|i| item(&format!("warm-{i}"), 1)))).await.unwrap();
    let before = calls();
    let write = |writer: usize| {
        let (store, board) = (store.clone(), board.clone());
        tokio::spawn(async move {
            for i in (0..24_000).skip(writer).step_by(8) {
                store.add(&board, quiet([item(&format!("subject-{i}"), 1)])).await.unwrap();
            }
        })
    };
    for written in (0..8).map(write).collect::<Vec<_>>() {
        written.await.unwrap();
    }
    let shares: Vec<u64> = calls().iter().zip(before).map(|(after, before)| after - before).collect();
    let even = shares.iter().sum::<u64>() as f64 / 6.0;
    assert!(shares.iter().all(|share| (*share as f64 / even - 1.0).abs() < 0.1), "{shares:?}");
    assert_eq!(store.page(&board.main(), 0, 1).await.unwrap().total, 26_000);
}

/// Returns what is left of boards of this name: list entries and records of removal.
fn left(server: &RedisServer, name: &str) -> Vec<String> {
    keys(server, &format!("*{{{name}*"))
}

/// Tests a definition that is interrupted at some point between its first command and its last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_definition_leaves_no_partial_board() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let (mut came, mut went) = (0, 0);
        let mut attempts = 0;
        // Each attempt is interrupted later, until some boards exist. On a busy machine that takes longer.
        while attempts < 60 || (came == 0 && attempts < 600) {
            let attempt = attempts;
            attempts += 1;
            let name = BoardName::parse(&format!("half-{attempt}")).unwrap();
            let definition = Definition { shards: Some(8), ..likes() };
            let define = store.define(new_board(&name, &definition));
            drop(tokio::time::timeout(Duration::from_micros(100 * attempt), define).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
            match store.board(&name).await.unwrap() {
                // The board exists and is complete.
                Some(board) => {
                    add(&store, &board, (0..20).map(|i| item(&format!("s{i}"), 1))).await;
                    assert_eq!(store.page(&board.main(), 0, 100).await.unwrap().total, 20);
                    came += 1;
                }
                None => went += u64::from(!left(&server, name.as_str()).is_empty()),
            }
        }
        assert!(came > 0 && went > 0, "{came} came to be, {went} left something");
        let before = keys(&server, "*");
        store.tidy_step().await.unwrap();
        assert_eq!(
            keys(&server, "*{half-*/*:meta").len(),
            before.iter().filter(|key| key.contains('/')).filter(|key| key.ends_with(":meta")).count()
        );
        store.set_clock(t("2026-01-01T00:40:00Z")).await.unwrap();
        while !store.tidy_step().await.unwrap() {}
        for attempt in 0..attempts {
            let name = BoardName::parse(&format!("half-{attempt}")).unwrap();
            match store.board(&name).await.unwrap() {
                Some(board) => assert_eq!(store.page(&board.main(), 0, 100).await.unwrap().total, 20),
                None => assert_eq!(left(&server, &format!("{name}/")), [""; 0]),
            }
        }
        assert_eq!(behind::<Vec<String>>(&server, &["SMEMBERS", "rolltop:1:removed"]), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removing_a_board_removes_every_key_of_every_part() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        let mut boards = Vec::new();
        for (nth, metric) in ["COUNT(3h, e, s)", "COUNT_DISTINCT(3h, e, s, c)", "AVG(3h, e, v, s)"].iter().enumerate() {
            let definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
            for ranked in [true, false] {
                let definition = Definition { ranked, ..definition.clone() };
                boards.push(define_parts(&store, &format!("b{nth}{ranked}"), definition, 5).await);
            }
        }
        for board in &boards {
            let value = rolltop::board::Counted::parse("v").unwrap();
            let item = |i: i64| match board.kind() {
                rolltop::board::Kind::Distinct => {
                    Increment { change: Change::Seen(value.clone()), ..item(&format!("s{i}"), 1) }
                }
                _ => item(&format!("s{i}"), 1),
            };
            other.add(board, quiet((0..200).map(|i| with_id(item(i), &format!("x{i}"))))).await.unwrap();
            assert!(left(&server, &format!("{}/", board.name())).len() > 5);
        }
        for board in &boards {
            assert!(store.undefine(board).await.unwrap());
            assert!(
                matches!(other.page(&board.main(), 0, 1).await, Err(StoreError::BoardChanged))
                    || !board.edition().main().is_ranked()
            );
            let late = other.add(board, quiet((0..20).map(|i| item(&format!("s{i}"), 1)))).await;
            assert!(matches!(late, Err(StoreError::BoardChanged)), "{late:?}");
            while !other.tidy_step().await.unwrap() {}
            assert_eq!(left(&server, board.name().as_str()), [""; 0]);
            assert!(!store.undefine(board).await.unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_count_once_despite_lost_replies_of_some_parts() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(options(proxy.url(), ClockMode::Simulated(t(START)))).await.unwrap();
        let board = define_parts(&store, "lossy", likes(), 6).await;
        for round in 0..20 {
            let items = || (0..60).map(|i| with_id(item(&format!("s{i}"), 1), &format!("{round}")));
            for _ in 0..20 {
                proxy.arm(Fault::Reset);
                match store.add(&board, quiet(items())).await {
                    Ok(_) => break,
                    Err(error) => assert!(error.is_transient(), "{error:?}"),
                }
            }
        }
        proxy.arm(Fault::None);
        assert!(proxy.happened() > 0);
        assert_eq!(scores(&store, &board).await.iter().map(|(_, score)| *score).collect::<Vec<_>>(), vec![20; 60]);
        assert_eq!(audit(&store, &board, false).await, (60, Vec::new(), 0));
    }
}

/// Tests one part that is ahead of the others, as if the clock of its node was ahead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_all_parts_have_the_same_head() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define_parts(&store, "heads", likes(), 4).await;
        let who: Vec<Subject> = (0..40).map(|i| subject(&format!("s{i}"))).collect();
        add(&store, &board, (0..40).map(|i| item(&format!("s{i}"), 1))).await;
        let tag = tags(&server, "heads").remove(1);
        let meta = format!("rolltop:1:{tag}:{}:meta", board.generation());
        let (head, floor) = (t("2026-01-01T01:00:00Z"), t("2025-12-31T23:00:00Z"));
        let millis = [head, floor].map(|time| time.millis().to_string());
        let _: i64 = behind(&server, &["HSET", &meta, "head", &millis[0], "floor", &millis[1]]);
        let frames = [
            store.page(&board.main(), 0, 10).await.unwrap().frame,
            store.page(&board.main(), 1_000, 10).await.unwrap().frame,
            store.neighbors(&board.main(), &who[0], 3).await.unwrap().frame,
            store.standing(&board.main(), &who[1]).await.unwrap().frame,
            store.lookup(&board.main(), &who, true).await.unwrap().frame,
            store.status(&board.main()).await.unwrap().frame,
        ];
        for frame in frames {
            assert_eq!((frame.window.head, frame.as_of), (head, head));
        }
        assert_eq!(store.page(&board.main(), 0, 10).await.unwrap().total, 40);
    }
}

/// Tests that a head that the clocks of the other parts make implausible expires nothing there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_far_ahead_does_not_advance_the_others() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        let board = define_parts(&store, "ahead", likes(), 4).await;
        add(&store, &board, (0..40).map(|i| item(&format!("s{i}"), 1))).await;
        let tags = tags(&server, "ahead");
        let meta = |tag: &str| format!("rolltop:1:{tag}:{}:meta", board.generation());
        let far = board.edition().main().window_at(store.now().await.unwrap().plus_millis(48 * 3_600_000)).head;
        let _: i64 = behind(&server, &["HSET", &meta(&tags[1]), "head", &far.millis().to_string()]);
        let error = store.page(&board.main(), 0, 10).await.unwrap_err();
        assert!(error.is_transient() && error.retry_after().is_some(), "{error:?}");
        for tag in [&tags[0], &tags[2], &tags[3]] {
            let head: i64 = behind(&server, &["HGET", &meta(tag), "head"]);
            assert!(head < far.millis());
        }
    }
}

/// Tests that the other parts are written to and read as usual while the hash slot of one part moves key by key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_in_a_migrating_slot_does_not_affect_other_parts() {
    for engine in Engine::available() {
        let cluster = tokio::task::block_in_place(|| RedisCluster::start(&engine, 3, 0));
        let store = RedisStore::connect(options(cluster.url(), ClockMode::System)).await.unwrap();
        let board = define_parts(&store, "moving", likes(), 6).await;
        let name = |i: i64| format!("s{i}");
        add(&store, &board, (0..120).map(|i| item(&name(i), 1))).await;
        let key = tokio::task::block_in_place(|| cluster.keys("*{moving/*:r")).remove(0);
        let slot = cluster.slot(&key);
        let (from, owned): (usize, i64) = tokio::task::block_in_place(|| {
            let from = cluster.owner(slot);
            (from, cluster.nodes[from].ask(&["ZCARD", &key]).unwrap())
        });
        let to = (from + 1) % 3;
        tokio::task::block_in_place(|| {
            cluster.begin_move(slot, from, to);
            cluster.move_keys(slot, from, to, 1);
        });
        let (mut done, mut put_off) = (0, 0);
        for i in 0..120 {
            match store.count(&board.main(), &subject(&name(i)), SlotRange::Slots(1)).await {
                Ok(_) => done += 1,
                Err(error) => {
                    assert!(error.is_transient(), "{error:?}");
                    put_off += 1;
                }
            }
        }
        assert!(owned > 0 && done >= 120 - owned && put_off <= owned, "{done} done, {put_off} put off of {owned}");
        if let Err(error) = store.page(&board.main(), 0, 10).await {
            assert!(error.is_transient() && error.retry_after().is_some(), "{error:?}");
        }
        tokio::task::block_in_place(|| {
            while cluster.move_keys(slot, from, to, 10) > 0 {}
            cluster.end_move(slot, from, to);
        });
        add(&store, &board, (0..120).map(|i| item(&name(i), 1))).await;
        assert!(scores(&store, &board).await.iter().all(|(_, score)| *score == 2));
    }
}

/// Tests that after a restart each part is checked separately: differences are repaired, and a part that lost a slot is
/// held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_is_healed_or_held_separately() {
    for engine in Engine::available() {
        let arguments = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
        let mut server = RedisServer::start_with(&engine, &arguments);
        let store = simulated(&server).await;
        let board = define_parts(&store, "healed", likes(), 4).await;
        add(&store, &board, (0..80).map(|i| item(&format!("s{i}"), i + 1))).await;
        let key = |tag: &str, rest: &str| format!("rolltop:1:{tag}:{}:{rest}", board.generation());
        let tags = tags(&server, "healed");
        for tag in &tags[..2] {
            let first: Vec<String> = behind(&server, &["ZRANGE", &key(tag, "r"), "0", "0"]);
            let _: String = behind(&server, &["ZINCRBY", &key(tag, "r"), "5", &first[0]]);
        }
        let slot = keys(&server, &key(&tags[2], "s:*")).remove(0);
        let _: i64 = behind(&server, &["UNLINK", &slot]);
        server.kill();
        server.restart();
        let is_known = |server: &RedisServer, tag: &String| {
            let fields: Vec<Option<String>> = behind(server, &["HMGET", &key(tag, "meta"), "run", "held"]);
            fields.iter().any(Option::is_some)
        };
        for _ in 0..200 {
            if let Err(error) = store.tend().await {
                assert!(error.is_transient(), "{error}");
            }
            if tags.iter().all(|tag| is_known(&server, tag)) && !store.warnings().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let held = |tag: &String| behind::<Option<String>>(&server, &["HGET", &key(tag, "meta"), "held"]).is_some();
        assert_eq!(tags.iter().map(held).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(store.warnings().len(), 1);
        let (_, differences, _) = audit(&store, &board, false).await;
        assert!(!differences.is_empty() && differences.iter().all(|(_, _, slots)| *slots == 0), "{differences:?}");
        audit(&store, &board, true).await;
        assert_eq!((store.warnings(), audit(&store, &board, false).await.1), (Vec::new(), Vec::new()));
    }
}
