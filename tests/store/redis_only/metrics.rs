//! Tests of the metrics that are more than a sum: what is stored for them, and that nothing is lost or counted twice.

use rolltop::board::{Mark, Mode, Sketch, Value};
use rolltop::store::SlotQuery;

use super::proxy::{Fault, Proxy};
use super::*;
use crate::given::{With, definition, mean, new_board, sample, seen, unranked, value};

async fn define_as(store: &RedisStore, name: &str, definition: &Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse(name).unwrap(), definition)).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?} instead of a new board"),
    }
}

async fn score(store: &RedisStore, board: &Arc<Board>, who: &str) -> Option<Value> {
    store.standing(&board.main(), &subject(who)).await.unwrap().score
}

fn hash(server: &RedisServer, key: &str) -> Vec<Vec<u8>> {
    behind(server, &["HVALS", key])
}

/// Tests that Lua and Rust estimate, merge and store sketches identically: sparse, dense, and when a dense one retires.
#[tokio::test]
async fn sketches_on_redis_equal_those_of_the_library() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "about", "APPROX_COUNT_DISTINCT(3h, login, device, user)", "1h").await;
        let of = |values: &mut dyn Iterator<Item = u32>| {
            let mut sketch = Sketch::default();
            for value in values {
                sketch.mark(Mark::of(&format!("u{value}")));
            }
            sketch
        };
        let marked = |parts: &[std::ops::Range<u32>]| of(&mut parts.iter().cloned().flatten());
        let parts = [0..5_000, 4_900..5_300, 5_200..8_000];
        for (hour, part) in parts.iter().enumerate() {
            store.set_clock(t(START).plus_millis(hour as i64 * 3_600_000)).await.unwrap();
            for step in part.clone().collect::<Vec<_>>().chunks(700) {
                add(&store, &board, step.iter().map(|i| seen("d", &format!("u{i}")))).await;
                let so_far = of(&mut (0..=*step.last().unwrap()));
                assert_eq!(score(&store, &board, "d").await, exact(so_far.estimate()));
            }
            let slot = format!("*:s:{}", board.edition().main().window_at(store.now().await.unwrap()).head.millis());
            let slot = keys(&server, &slot).swap_remove(0);
            assert_eq!(hash(&server, &slot), [marked(&parts[hour..=hour]).as_bytes()]);
        }
        let totals = keys(&server, "*:t").swap_remove(0);
        assert_eq!(hash(&server, &totals), [marked(&parts).as_bytes()]);
        assert_eq!(audit(&store, &board, false).await.1, []);
        for retired in 1..=3 {
            store.set_clock(t(START).plus_millis((2 + retired as i64) * 3_600_000)).await.unwrap();
            roll_over(&store, &board).await;
            let left = marked(&parts[retired..]);
            assert_eq!(score(&store, &board, "d").await, exact(left.estimate()), "{retired} retired");
            let expected: Vec<Vec<u8>> =
                Some(left.as_bytes().to_vec()).filter(|text| !text.is_empty()).into_iter().collect();
            assert_eq!(hash(&server, &totals), expected);
        }
    }
}

/// Tests ten boards of every kind: everything is sent before the first response arrives.
#[tokio::test]
async fn add_all_and_read_on_many_boards_take_one_round_trip() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(options(proxy.url(), ClockMode::System)).await.unwrap();
        let mut batches = Vec::new();
        for (ranked, prefix) in [(true, "r"), (false, "u")] {
            for (nth, metric) in [
                "COUNT(3h, e, s)",
                "AVG(3h, e, v, s)",
                "MAX(3h, e, v, s)",
                "COUNT_DISTINCT(3h, e, s, c)",
                "APPROX_COUNT_DISTINCT(3h, e, s, c)",
            ]
            .iter()
            .enumerate()
            {
                let definition = Definition { ranked, ..definition(metric, "1h") };
                let board = define_as(&store, &format!("{prefix}{nth}"), &definition).await;
                let item = if nth < 3 { item("a", 1) } else { seen("a", "x") };
                batches.push((board, batch([with_id(item, "event")])));
            }
        }
        // The first time, scripts are loaded into the server.
        let all_counted = |added: Vec<Result<Added, StoreError>>| {
            added.into_iter().all(|added| matches!(added.unwrap().outcomes[..], [Outcome::Counted { score: Some(_) }]))
        };
        assert!(all_counted(store.add_all(batches.clone()).await));
        for (_, batch) in &mut batches {
            batch.increments[0] = with_id(batch.increments[0].clone(), "another");
        }
        let at_once = async |scripts: u64, waiting: &mut (dyn Future<Output = ()> + Unpin)| {
            let before = proxy.so_far();
            proxy.hold(true);
            let left = proxy.calls(before + scripts);
            let left = std::pin::pin!(left);
            let both = futures_util::future::select(waiting, left).await;
            let futures_util::future::Either::Right((_, waiting)) = both else { panic!("an answer was not held") };
            proxy.hold(false);
            waiting.await;
            assert_eq!(proxy.so_far(), before + scripts);
        };
        at_once(10, &mut Box::pin(async { assert!(all_counted(store.add_all(batches.clone()).await)) })).await;
        // The same holds for ten questions: the ranked boards need a script each, the others none.
        let query = |board: &Arc<Board>| SlotQuery {
            track: board.main(),
            subject: subject("a"),
            range: SlotRange::Slots(3),
            as_of: None,
        };
        let queries: Vec<SlotQuery> = batches.iter().map(|(board, _)| query(board)).collect();
        store.read(queries.clone()).await;
        let one_each = async |queries: Vec<SlotQuery>| {
            let contents = store.read(queries).await;
            assert!(contents.iter().all(|contents| contents.as_ref().unwrap().aggregates.len() == 1));
        };
        at_once(5, &mut Box::pin(one_each(queries))).await;
    }
}

#[tokio::test]
async fn a_change_with_a_lost_reply_is_applied_once() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(options(proxy.url(), ClockMode::System)).await.unwrap();
        let board = define(&store, "mean", "AVG(3h, e, v, s)", "1h").await;
        let counter = Definition { mode: Mode::FromFirst, ..unranked("SUM(1h, e, v, s)", "1h") };
        let counter = define_as(&store, "counter", &counter).await;
        for round in 1..=3 {
            for (board, expected) in [(&board, mean(2 * round, round)), (&counter, exact(2 * round))] {
                proxy.arm(Fault::Reset);
                assert_eq!(add(&store, board, [item("a", 2)]).await.outcomes, [Outcome::Counted { score: expected }]);
            }
        }
        assert_eq!(proxy.happened(), 6);
        let slot = keys(&server, "*:s:*").swap_remove(0);
        assert_eq!(hash(&server, &slot), [b"6,3"]);
    }
}

#[tokio::test]
async fn reading_an_unranked_board_takes_few_commands() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let sum = define_as(&store, "sum", &unranked("SUM(2000m, e, v, s)", "1m")).await;
        let distinct = define_as(&store, "distinct", &unranked("COUNT_DISTINCT(2000m, e, s, c)", "1m")).await;
        let now = store.now().await.unwrap();
        let back = |minutes: i64| now.plus_millis(-60_000 * minutes);
        add(&store, &sum, (0..2_000).map(|i| item("a", 1).at_time(back(i)))).await;
        add(&store, &distinct, (0..2_000).map(|i| seen("a", &format!("u{i}")).at_time(back(i)))).await;
        // Every slice of the subject, and nothing else of it.
        assert_eq!(keys(&server, "*:u:*").len(), 1);
        assert_eq!(behind::<u64>(&server, &["HLEN", &keys(&server, "*:u:a")[0]]), 2_001);
        assert_eq!(behind::<u64>(&server, &["ZCARD", &keys(&server, "*:v:a")[0]]), 2_000);
        assert_eq!(keys(&server, "*:x:*").len() + keys(&server, "*:s:*").len() + keys(&server, "*:r").len(), 0);
        // The first time, a script is loaded into the server.
        store.count(&distinct.main(), &subject("a"), SlotRange::Slots(600)).await.unwrap();
        for (board, looks) in [(&sum, ["hgetall", "hmget"]), (&distinct, ["zcount", "zrangebyscore"])] {
            for slots in [1, 30, 600, 2_000] {
                reset(&server);
                let reading = store.count(&board.main(), &subject("a"), SlotRange::Slots(slots)).await.unwrap();
                assert_eq!((reading.slots, reading.units()), (slots, i64::from(slots)));
                let stats: String = behind(&server, &["INFO", "commandstats"]);
                // One of them reads the board's meta key, and one the simulated clock. Many values are counted slot by
                // slot, by a script that reads the meta key again.
                let most = if board.name().as_str() == "sum" { 3 } else { u64::from(slots) + 6 };
                assert_eq!(
                    calls_of(&server, "evalsha"),
                    u64::from(board.name().as_str() != "sum" && slots > 32),
                    "{stats}"
                );
                assert!(calls(&server, looks).iter().sum::<u64>() <= most, "{stats}");
            }
        }
    }
}

#[tokio::test]
async fn writes_delete_slices_that_are_no_longer_kept() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define_as(&store, "sum", &unranked("SUM(3m, e, v, s)", "1m")).await;
        let distinct = define_as(&store, "distinct", &unranked("COUNT_DISTINCT(3m, e, s, c)", "1m")).await;
        for minute in 0..50_i64 {
            store.set_clock(t(START).plus_millis(minute * 60_000)).await.unwrap();
            add(&store, &board, [item("a", 1)]).await;
            add(&store, &distinct, [seen("a", &format!("u{minute}"))]).await;
            let (slices, values) = (keys(&server, "*:u:a").swap_remove(0), keys(&server, "*:v:a").swap_remove(0));
            // The kept slots, one that is due, and the field with the time of the last cleaning.
            assert!(behind::<u64>(&server, &["HLEN", &slices]) <= u64::from(board.edition().main().kept()) + 2);
            assert!(behind::<u64>(&server, &["ZCARD", &values]) <= 3);
        }
        let standing = store.standing(&board.main(), &subject("a")).await.unwrap();
        assert_eq!(sums(&standing.slots).len(), 3);
        assert_eq!(store.remove(&board, &subject("a")).await.unwrap().live_slots, 3);
        assert_eq!(store.remove(&distinct, &subject("a")).await.unwrap().score, exact(3));
        assert_eq!(keys(&server, "*:u:*").len() + keys(&server, "*:v:*").len(), 0);
    }
}

/// Tests slots that the call did not name and has to be asked for: of old values seen again, and of dropped values.
#[tokio::test]
async fn old_values_are_moved_dropped_and_retracted_from_their_slots() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let wide = Definition { max_values: Some(3), ..definition("COUNT_DISTINCT(500m, e, s, c)", "1m") };
        let board = define_as(&store, "wide", &wide).await;
        for (minute, name) in [(0, "a"), (100, "b"), (200, "c")] {
            store.set_clock(t(START).plus_millis(minute * 60_000)).await.unwrap();
            add(&store, &board, [seen("d", name)]).await;
        }
        store.set_clock(t(START).plus_millis(400 * 60_000)).await.unwrap();
        // `a` moves up. `b` is then the oldest and is dropped for `e`. `c` is retracted.
        let now = store.now().await.unwrap();
        let outcomes =
            add(&store, &board, [seen("d", "a"), seen("d", "e"), seen("d", "c").at_time(now).undone()]).await;
        assert_eq!(outcomes.outcomes, [counted(2), counted(2), counted(2)]);
        let standing = store.standing(&board.main(), &subject("d")).await.unwrap();
        assert_eq!((sums(&standing.slots), standing.capped), (vec![(standing.frame.window.head, 2)], true));
        assert_eq!(keys(&server, "*:s:*").len(), 1, "the slots that were emptied are gone");
        let values = store.values(&board.main(), &subject("d"), 0, 10).await.unwrap();
        let names: Vec<_> = values.items.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!((values.total, names), (2, vec![value("e"), value("a")]));
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

/// Tests that a sample that makes a slot worse restores slots that it dominated, whichever instance wrote them.
#[tokio::test]
async fn a_worse_sample_restores_the_dominated_slots() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        let board = define(&store, "most", "MAX(60m, e, v, s)", "1m").await;
        for (minute, amount) in [(0, 5), (10, 9), (20, 7), (30, 3)] {
            let now = t(START).plus_millis(minute * 60_000);
            store.set_clock(now).await.unwrap();
            let store = if minute % 20 == 0 { &store } else { &other };
            add(store, &board, [item("a", amount)]).await;
        }
        let worse = |amount| sample("a", amount, "2026-01-01T00:40:00Z");
        assert_eq!(add(&store, &board, [worse(6)]).await.outcomes, [counted(7)]);
        assert_eq!(
            add(&other, &board, [worse(2), sample("a", -1, "2026-01-01T00:50:00Z")]).await.outcomes,
            [counted(5); 2]
        );
        assert_eq!(audit(&store, &board, false).await.1, []);
        let standing = store.standing(&board.main(), &subject("a")).await.unwrap();
        let amounts: Vec<i64> = sums(&standing.slots).iter().map(|(_, amount)| *amount).collect();
        assert_eq!(amounts, [5, 2, -1, 3]);
        // The slot of 5 retires. The staircase has the next one.
        store.set_clock(t("2026-01-01T01:30:00Z")).await.unwrap();
        roll_over(&store, &board).await;
        assert_eq!(score(&store, &board, "a").await, exact(3));
    }
}

#[tokio::test]
async fn damaged_cells_and_totals_are_reported_and_repaired() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        for (nth, metric) in ["AVG(3h, e, v, s)", "MAX(3h, e, v, s)"].into_iter().enumerate() {
            let board = define(&store, &format!("b{nth}"), metric, "1h").await;
            add(&store, &board, [item("a", 4), item("b", 4)]).await;
            let of = |suffix: &str| keys(&server, &format!("*{{b{nth}}}*{suffix}")).swap_remove(0);
            let (slot, totals, ranking) = (of(":s:*"), of(":t"), of(":r"));
            let sound: Vec<u8> = behind(&server, &["HGET", &slot, "b"]);
            behind::<()>(&server, &["HSET", &slot, "b", "much"]);
            let refused = store.add(&board, batch([item("a", 4), item("b", 5), item("c", 4)])).await.unwrap_err();
            assert!(matches!(&refused, StoreError::Corrupt { detail } if detail.contains("'b'")), "{refused}");
            behind::<()>(&server, &["HSET", &slot, "b", std::str::from_utf8(&sound).unwrap()]);
            let ranked = |page: rolltop::store::Page| {
                page.items.iter().map(|line| (line.subject.to_string(), line.score.as_f64())).collect::<Vec<_>>()
            };
            let all = [("c".to_owned(), 4.0), ("b".to_owned(), 4.0), ("a".to_owned(), 4.0)];
            assert_eq!(ranked(store.page(&board.main(), 0, 9).await.unwrap()), all);
            for key in [&slot, &totals, &ranking] {
                behind::<()>(&server, &["RENAME", key, "kept"]);
                behind::<()>(&server, &["SET", key, "1"]);
                let refused = store.add(&board, batch([item("a", 9)])).await.unwrap_err();
                assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
                behind::<()>(&server, &["RENAME", "kept", key]);
            }
            assert_eq!(ranked(store.page(&board.main(), 0, 9).await.unwrap()), all);
            // A score, a total, and a total of an unknown subject.
            behind::<()>(&server, &["ZADD", &ranking, "50", "a"]);
            let foreign: Vec<u8> = behind(&server, &["HGET", &totals, "c"]);
            let copy = |name: &str| {
                let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
                cmd("HSET").arg(&totals).arg(name).arg(&foreign).query::<()>(&mut connection).unwrap();
            };
            behind::<()>(&server, &["HDEL", &totals, "b"]);
            copy("ghost");
            let mut cursor = AuditCursor::default();
            let mut found = Vec::new();
            loop {
                let step = store.audit_step(&board.main(), cursor, true).await.unwrap();
                found.extend(step.differences.into_iter().map(|d| d.subject.to_string()));
                let Some(next) = step.next else { break };
                cursor = next;
            }
            found.sort();
            assert_eq!(found, ["a", "b", "ghost"]);
            assert_eq!(ranked(store.page(&board.main(), 0, 9).await.unwrap()), all);
            let mut known: Vec<String> = behind(&server, &["HKEYS", &totals]);
            known.sort();
            assert_eq!(known, ["a", "b", "c"]);
        }
    }
}

#[tokio::test]
async fn with_full_memory_refused_writes_change_nothing() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let mut boards = Vec::new();
        for (nth, (metric, ranked)) in [
            ("AVG(3h, e, v, s)", true),
            ("MIN(3h, e, v, s)", false),
            ("COUNT_DISTINCT(3h, e, s, c)", true),
            ("COUNT_DISTINCT(3h, e, s, c)", false),
            ("APPROX_COUNT_DISTINCT(3h, e, s, c)", true),
        ]
        .into_iter()
        .enumerate()
        {
            let board = define_as(&store, &format!("b{nth}"), &Definition { ranked, ..definition(metric, "1h") }).await;
            let items = |n: i64| {
                let item = if nth < 2 { item("a", n) } else { seen("a", &format!("v{n}")) };
                with_id(item, &format!("id{n}"))
            };
            add(&store, &board, [items(1)]).await;
            boards.push((board, batch([items(2), items(3)])));
        }
        let held = || {
            let all = keys(&server, "*");
            // Reading a large hash may change the order in which the server dumps it.
            let of = |key: &String| match key.ends_with(":meta") {
                true => {
                    let fields: std::collections::BTreeMap<String, Vec<u8>> = behind(&server, &["HGETALL", key]);
                    (key.clone(), Some(format!("{fields:?}").into_bytes()))
                }
                false => (key.clone(), behind::<Option<Vec<u8>>>(&server, &["DUMP", key])),
            };
            all.iter().map(of).collect::<Vec<_>>()
        };
        let before = held();
        behind::<()>(&server, &["CONFIG", "SET", "maxmemory", "1"]);
        for (board, batch) in &boards {
            let refused = store.add(board, batch.clone()).await.unwrap_err();
            assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused:?}");
        }
        assert!(before == held(), "something was written");
        behind::<()>(&server, &["CONFIG", "SET", "maxmemory", "0"]);
        for (board, batch) in &boards {
            assert!(store.add(board, batch.clone()).await.is_ok());
        }
    }
}
