//! Tests of several instances on one server.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[tokio::test]
async fn concurrent_adds_and_retiring_by_two_instances_are_exact() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (one, two) = (simulated(&server).await, simulated(&server).await);
        let board = hourly(&one, "hot").await;
        // The acknowledged amounts by slot and subject.
        let oracle: Arc<Mutex<BTreeMap<(Timestamp, String), i64>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let mut running = Vec::new();
        for task in 0..6_usize {
            let store = if task % 2 == 0 { one.clone() } else { two.clone() };
            let (board, stop, oracle) = (board.clone(), stop.clone(), oracle.clone());
            running.push(tokio::spawn(async move {
                let mut number = task;
                while !stop.load(Ordering::SeqCst) {
                    if task < 4 {
                        let items: Vec<_> = (0..40)
                            .map(|i| {
                                number += 7;
                                item(&format!("s{}", number % 900), (i % 5) as i64 - 1)
                            })
                            .collect();
                        let added = add(&store, &board, items.clone()).await;
                        let mut oracle = oracle.lock().unwrap();
                        for (item, outcome) in items.iter().zip(&added.outcomes) {
                            assert!(matches!(outcome, Outcome::Counted { .. }), "{outcome:?}");
                            let key = (added.frame.window.head, item.subject.as_str().to_owned());
                            let Change::Amount(amount) = item.change else { panic!("{item:?} is not an amount") };
                            *oracle.entry(key).or_default() += amount.0;
                        }
                    } else {
                        store.retire_step(&board.main()).await.unwrap();
                    }
                }
            }));
        }
        let mut now = t(START);
        for _ in 0..30 {
            let before = oracle.lock().unwrap().len();
            while oracle.lock().unwrap().len() < before + 300 {
                tokio::task::yield_now().await;
            }
            now = now.plus_millis(3_600_000);
            two.set_clock(now).await.unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        for task in running {
            task.await.unwrap();
        }
        let step = roll_over(&one, &board).await;
        assert_eq!((step.done, step.frame.retiring), (true, 0));
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for ((slot, name), amount) in
            oracle.lock().unwrap().iter().filter(|((slot, _), _)| *slot >= step.frame.window.floor)
        {
            assert!(*slot <= step.frame.window.head);
            *expected.entry(name.clone()).or_default() += amount;
        }
        expected.retain(|_, score| *score != 0);
        let held: BTreeMap<String, i64> = scores(&two, &board).await.into_iter().collect();
        assert_eq!(held, expected);
        assert_eq!(audit(&two, &board, false).await.1, []);
        assert!(keys(&server, "*:s:*").len() <= 3);
    }
}

#[tokio::test]
async fn interrupted_retiring_is_finished_by_another_instance() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (two, three) = (simulated(&server).await, simulated(&server).await);
        let mut cut = 0;
        let mut now = t("2026-01-01T04:30:00Z");
        loop {
            let one = simulated(&server).await;
            one.set_clock(now).await.unwrap();
            let board = hourly(&one, &format!("hot-{cut}")).await;
            add(&one, &board, (0..1_000).map(|i| item(&format!("s{i}"), i + 1))).await;
            now = now.plus_millis(3_600_000);
            one.set_clock(now).await.unwrap();
            add(&one, &board, (0..1_000).step_by(3).map(|i| item(&format!("s{i}"), -(i + 1)))).await;
            now = now.plus_millis(2 * 3_600_000);
            one.set_clock(now).await.unwrap();
            let mut done = false;
            for _ in 0..cut {
                done = one.retire_step(&board.main()).await.unwrap().done;
            }
            drop(one);
            assert_eq!(audit(&two, &board, false).await.1, [], "after {cut} steps");
            let (a, b) = tokio::join!(roll_over(&two, &board), roll_over(&three, &board));
            assert!(a.done && b.done);
            let expected: Vec<(String, i64)> = (0..1_000).step_by(3).map(|i| (format!("s{i}"), -(i + 1))).collect();
            assert_eq!(scores(&three, &board).await, expected, "after {cut} steps");
            if done {
                break;
            }
            cut += 1;
        }
        assert!(cut >= 3, "a slot was retired in {cut} steps: too few to interrupt");
    }
}

#[tokio::test]
async fn concurrent_definitions_create_one_board() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (one, two) = (simulated(&server).await, simulated(&server).await);
        let (a, b) = tokio::join!(hourly(&one, "hot"), hourly(&two, "hot"));
        assert_eq!(a.generation(), b.generation());
        let other = Definition::new("COUNT(4h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        let conflict = two.define(new_board(a.name(), &other)).await.unwrap();
        assert!(matches!(conflict, Defined::Conflict(kept) if kept.definition() == a.definition()));
        assert_eq!(two.board(a.name()).await.unwrap().unwrap().generation(), a.generation());
    }
}

/// Returns the version on the server, and checks that the instance reports the same.
async fn version(server: &RedisServer, store: &RedisStore) -> u64 {
    let version = store.boards_version().await.unwrap();
    let stored: Option<u64> = behind(server, &["GET", "rolltop:1:{rolltop:1:boards}:version"]);
    assert_eq!(stored.unwrap_or_default(), version);
    version
}

#[tokio::test]
async fn confirming_an_unannounced_board_changes_the_boards_version() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (one, two) = (simulated(&server).await, simulated(&server).await);
        let board = hourly(&one, "hot").await;
        let before = version(&server, &two).await;
        // As if the creator had ended before it changed the version of the list: the previous version is restored.
        assert_eq!(hourly(&two, "hot").await.generation(), board.generation());
        let after = version(&server, &one).await;
        assert_ne!(after, before);
        // Both have reported the version: no list has to be read again for it.
        for store in [&one, &two, &one, &two] {
            hourly(store, "hot").await;
        }
        assert_eq!(version(&server, &one).await, after);
        // If a server has lost all data, an old list must not be used.
        behind::<()>(&server, &["FLUSHALL"]);
        assert_eq!(version(&server, &one).await, 0);
    }
}

/// An instance that ends between the change of a board's editions and the change of the list's version.
#[tokio::test]
async fn editions_that_were_not_announced_are_announced_by_whoever_finds_them() {
    for engine in Engine::available() {
        for shards in [None, Some(3)] {
            let server = RedisServer::start(&engine);
            let (one, two) = (simulated(&server).await, simulated(&server).await);
            let definition =
                |metric: &str| Definition { shards, ..Definition::new(metric.parse().unwrap(), "1h".parse().unwrap()) };
            let name = BoardName::parse("hot").unwrap();
            let Defined::Created(board) =
                one.define(new_board(&name, &definition("COUNT(3h, like, post)"))).await.unwrap()
            else {
                panic!("{name} exists")
            };
            let before = version(&server, &two).await;
            let next = definition("COUNT(3h, like, post WHERE app = 1)");
            let to = board.attached(next, rolltop::board::TrackId(rand::random_range(1..=u64::MAX / 2))).unwrap();
            one.change_editions(&board, to.clone()).await.unwrap();
            let after = version(&server, &two).await;
            assert_ne!(after, before);
            // As if it had not been announced.
            behind::<()>(&server, &["SET", "rolltop:1:{rolltop:1:boards}:version", &before.to_string()]);
            behind::<i64>(&server, &["HDEL", "rolltop:1:{hot}:meta", "announced"]);
            two.board(&name).await.unwrap();
            assert_ne!(version(&server, &one).await, before);
            assert_eq!(behind::<String>(&server, &["HGET", "rolltop:1:{hot}:meta", "announced"]), "1");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_redefined_during_removal_is_listed_at_once() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (one, two) = (simulated(&server).await, simulated(&server).await);
        let mut board = hourly(&one, "hot").await;
        for round in 0..300 {
            let (remover, old) = (one.clone(), board.clone());
            let removing = tokio::spawn(async move { remover.undefine(&old).await.unwrap() });
            let new = loop {
                let new = hourly(&two, "hot").await;
                if new.generation() != board.generation() {
                    break new;
                }
            };
            // The removal may not have ended yet. The list is right at every time.
            for _ in 0..10 {
                let listed = two.boards().await.unwrap().boards;
                assert_eq!(listed.first().map(|board| board.generation()), Some(new.generation()), "round {round}");
            }
            assert!(removing.await.unwrap());
            board = new;
        }
        assert!(two.undefine(&board).await.unwrap());
        assert_eq!(keys(&server, "rolltop:1:boards"), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_version_requests_share_reads_and_are_current() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (one, two) = (simulated(&server).await, simulated(&server).await);
        let stop = Arc::new(AtomicBool::new(false));
        let crowd: Vec<_> = (0..64)
            .map(|_| {
                let (store, stop) = (two.clone(), stop.clone());
                tokio::spawn(async move {
                    let mut asked = 0_u64;
                    while !stop.load(Ordering::SeqCst) {
                        store.boards_version().await.unwrap();
                        asked += 1;
                    }
                    asked
                })
            })
            .collect();
        let mut seen = std::collections::HashSet::from([two.boards_version().await.unwrap()]);
        for round in 0..200 {
            let board = hourly(&one, &format!("b{round}")).await;
            assert!(seen.insert(two.boards_version().await.unwrap()), "round {round}");
            one.undefine(&board).await.unwrap();
            assert!(seen.insert(two.boards_version().await.unwrap()), "round {round}");
        }
        stop.store(true, Ordering::SeqCst);
        let mut asked = 0;
        for task in crowd {
            asked += task.await.unwrap();
        }
        let stats: String = behind(&server, &["INFO", "commandstats"]);
        let reads =
            stats.split("cmdstat_get:calls=").nth(1).and_then(|rest| rest.split(',').next()?.parse::<u64>().ok());
        assert!(reads.unwrap() * 4 < asked, "{reads:?} readings for {asked} who asked");
    }
}

/// Each step that retires a whole slot is in the way of all others that were about to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_steps_at_a_time_retire_small_slots_without_errors() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let definition = Definition::new("COUNT(5h, e, s)".parse().unwrap(), "1m".parse().unwrap());
    let Defined::Created(board) =
        store.define(new_board(&BoardName::parse("small").unwrap(), &definition)).await.unwrap()
    else {
        panic!("the board exists");
    };
    let now = store.now().await.unwrap();
    for minute in 0..240 {
        let increments = vec![item("s", 1)];
        store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
        store.set_clock(now.plus_millis((minute + 1) * 60_000)).await.unwrap();
    }
    // 239 slots expire, and the newest stays.
    store.set_clock(now.plus_millis(538 * 60_000)).await.unwrap();
    let track = board.main();
    let retire = async || {
        let mut slots = 0;
        loop {
            let step = store.retire_step(&track).await.unwrap();
            slots += step.slots_retired;
            if step.done {
                return slots;
            }
        }
    };
    let retired = futures_util::future::join_all((0..48).map(|_| retire())).await;
    assert_eq!(retired.iter().sum::<u64>(), 239);
    assert_eq!(store.page(&track, 0, 1).await.unwrap().items[0].score, rolltop::board::Value::Exact(Amount(1)));
}
