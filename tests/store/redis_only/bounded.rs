//! Tests that no script does more work than it should: few commands, few look-ups, no partial changes.

use rolltop::board::{Mark, Sketch};

use super::*;
use crate::given::{With, definition, new_board, seen, unranked};

const SKETCHES: &str = include_str!("../../../src/store/redis/lua/kind/sketch.lua");

async fn define_as(store: &RedisStore, name: &str, definition: &Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse(name).unwrap(), definition)).await.unwrap() {
        Defined::Created(board) => board,
        other => panic!("{other:?} instead of a new board"),
    }
}

/// Returns the number of calls of each command by scripts since the statistics were reset.
fn commands(server: &RedisServer) -> Vec<(String, u64)> {
    let stats: String = behind(server, &["INFO", "commandstats"]);
    stats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="))
        .map(|(name, rest)| (name.to_owned(), rest.split(',').next().unwrap().parse().unwrap()))
        .filter(|(name, _)| !name.starts_with("config") && name != "evalsha" && name != "info")
        .collect()
}

/// Returns marks of all shapes: few and many, ordinary and extreme ranks.
fn marks(seed: u64, count: usize) -> Vec<Mark> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let highest = [12, 54, 1][seed as usize % 3];
    let rank = |drawn: u64| if seed % 4 == 3 { 54 } else { (1 + drawn.trailing_zeros() as u64 % highest) as u8 };
    (0..count).map(|_| Mark { register: (next() % 2_048) as u16, rank: rank(next()) }).collect()
}

#[tokio::test]
async fn lua_and_rust_sketches_of_random_marks_are_equal() {
    // Marks two lists, merges them, and removes the first again.
    let driver = "
        local texts, at = {}, 1
        for list = 1, 2 do
          local text = ''
          for _ = 1, tonumber(ARGV[at]) do
            text = mark(text, tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])) or text
            at = at + 2
          end
          at, texts[list] = at + 1, text
        end
        local acc = new()
        fold(acc, 0, texts[1])
        fold(acc, 0, texts[2])
        local merged = total_of(acc)
        local stays = {texts[2]}
        withdraw(acc, 0, texts[1], function() return table.remove(stays) end)
        local left = total_of(acc)
        local function told(text) return string.format('%d', estimate(text)) end
        return {texts[1], texts[2], merged, left, told(texts[1]), told(merged), told(left)}";
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        for seed in 0..60u64 {
            let size = |nth: u64| [1, 7, 300, 682, 683, 900, 1_500, 3_000][((seed + nth * 3) % 8) as usize];
            let lists = [marks(2 * seed, size(0)), marks(2 * seed + 1, size(1))];
            let mut call = cmd("EVAL");
            call.arg(format!("{SKETCHES}\n{driver}")).arg(0);
            let mut sketches = [Sketch::default(), Sketch::default()];
            for (sketch, list) in sketches.iter_mut().zip(&lists) {
                call.arg(list.len());
                for mark in list {
                    call.arg(mark.register).arg(mark.rank);
                    sketch.mark(*mark);
                }
            }
            // The last argument of the kind is empty.
            call.arg("");
            let [a, b] = sketches;
            let mut merged = a.clone();
            merged.merge(&b);
            let found: Vec<Vec<u8>> = call.query(&mut connection).unwrap();
            for (nth, sketch) in [&a, &b, &merged, &b].into_iter().enumerate() {
                assert_eq!(found[nth], sketch.as_bytes(), "sketch {nth} of seed {seed}");
            }
            for (nth, sketch) in [&a, &merged, &b].into_iter().enumerate() {
                assert_eq!(found[4 + nth], sketch.estimate().to_string().as_bytes(), "estimate {nth} of seed {seed}");
            }
        }
    }
}

/// Tests that a step takes few full sketches, because they take long to merge.
#[tokio::test]
async fn a_retire_step_handles_at_most_16_full_sketches() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "about", "APPROX_COUNT_DISTINCT(2h, e, s, c)", "1h").await;
        let name = |i: i64| format!("s{i}");
        add(&store, &board, (0..60).map(|i| seen(&name(i), "x"))).await;
        let mut full = Sketch::default();
        for i in 0..5_000 {
            full.mark(Mark::of(&format!("u{i}")));
        }
        let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        for (i, pattern) in (0..60).flat_map(|i| [(i, "*:s:*"), (i, "*:t")]) {
            let key = keys(&server, pattern).swap_remove(0);
            cmd("HSET").arg(key).arg(name(i)).arg(full.as_bytes()).query::<()>(&mut connection).unwrap();
        }
        store.set_clock(t(START).plus_millis(3_600_000)).await.unwrap();
        add(&store, &board, (0..60).map(|i| seen(&name(i), "u1"))).await;
        store.set_clock(t(START).plus_millis(2 * 3_600_000)).await.unwrap();
        let (mut touched, mut done) = (0, false);
        while !done {
            let step = store.retire_step(&board.main()).await.unwrap();
            assert!(step.subjects_touched <= 16, "{step:?}");
            assert!(step.done || step.subjects_touched > 0, "{step:?}");
            (touched, done) = (touched + step.subjects_touched, step.done);
        }
        assert_eq!(touched, 60);
        assert!(scores(&store, &board).await.iter().all(|(_, score)| *score == 1));
        assert_eq!(audit(&store, &board, false).await, (60, vec![], 0));
    }
}

/// Tests a value that occurs twice in one call, both times from a slot that cannot be read.
#[tokio::test]
async fn a_value_in_a_damaged_slot_is_refused_without_partial_changes() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        for (nth, most) in [None, Some(1)].into_iter().enumerate() {
            let definition = Definition { max_values: most, ..definition("COUNT_DISTINCT(9h, e, s, c)", "1h") };
            let board = define_as(&store, &format!("b{nth}"), &definition).await;
            add(&store, &board, [seen("a", "x"), seen("b", "x")]).await;
            let slot = keys(&server, &format!("*{{b{nth}}}*:s:*")).swap_remove(0);
            behind::<()>(&server, &["HSET", &slot, "b", "much"]);
            store.set_clock(store.now().await.unwrap().plus_millis(3_600_000)).await.unwrap();
            let what = if most.is_some() { "y" } else { "x" };
            let twice = [seen("a", "y"), seen("b", what), seen("b", what)];
            let refused = store.add(&board, batch(twice)).await.unwrap_err();
            assert!(matches!(&refused, StoreError::Corrupt { detail } if detail.contains("'b'")), "{refused}");
            behind::<()>(&server, &["HSET", &slot, "b", "1"]);
            let found = if most.is_some() { 1 } else { 2 };
            let mut standing = scores(&store, &board).await;
            standing.sort_unstable();
            assert_eq!(standing, [("a".to_owned(), found), ("b".to_owned(), 1)]);
            let values = async |who: &str| store.values(&board.main(), &subject(who), 0, 9).await.unwrap().total as i64;
            assert_eq!((values("a").await, values("b").await), (found, 1));
            assert_eq!(audit(&store, &board, false).await.1, []);
        }
    }
}

/// Tests forty calls' worth of values. Each call contains one value whose slot only the script can find.
#[tokio::test]
async fn one_batch_can_move_values_from_many_slots() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "wide", "COUNT_DISTINCT(100m, e, s, c)", "1m").await;
        for minute in 0..40_i64 {
            store.set_clock(t(START).plus_millis(minute * 60_000)).await.unwrap();
            add(&store, &board, [seen("d", &format!("v{minute}"))]).await;
        }
        store.set_clock(t(START).plus_millis(90 * 60_000)).await.unwrap();
        let again = (0..8_000).map(|i| seen("d", &if i % 200 == 0 { format!("v{}", i / 200) } else { "same".into() }));
        let outcomes = add(&store, &board, again).await.outcomes;
        assert_eq!(outcomes.last(), Some(&counted(41)));
        let standing = store.standing(&board.main(), &subject("d")).await.unwrap();
        assert_eq!(sums(&standing.slots), [(standing.frame.window.head, 41)]);
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

/// Tests subjects that began together. All are due at the same time, but not all are cleaned up in one call.
#[tokio::test]
async fn cleanup_of_subjects_is_spread_over_calls() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define_as(&store, "slices", &unranked("SUM(500m, e, v, s)", "1m")).await;
        let now = store.now().await.unwrap();
        let name = |i: i64| format!("s{i}");
        for i in 0..30 {
            let all = (0..500).map(|back| item(&name(i), 1).at_time(now.plus_millis(-60_000 * back)));
            let all = Batch { increments: all.collect(), return_scores: false };
            store.add(&board, all).await.unwrap();
        }
        store.set_clock(now.plus_millis(40 * 60_000)).await.unwrap();
        let mut looked = 0;
        for call in 1..=5 {
            reset(&server);
            let all = Batch { increments: (0..30).map(|i| item(&name(i), 1)).collect(), return_scores: false };
            store.add(&board, all).await.unwrap();
            let looks = commands(&server).iter().find(|(name, _)| name == "hkeys").map_or(0, |(_, calls)| *calls);
            assert!(looks <= 8, "{looks} subjects were looked through by one call");
            looked += looks;
            assert!(call < 5 || looked == 30, "{looked} are done");
        }
        for key in keys(&server, "*:u:*") {
            assert_eq!(behind::<u64>(&server, &["HLEN", &key]), 463, "{key}");
        }
        assert_eq!(store.standing(&board.main(), &subject("s7")).await.unwrap().score, exact(465));
    }
}

#[tokio::test]
async fn an_entry_costs_a_bounded_number_of_commands() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        for (nth, (metric, ranked, most)) in [
            ("SUM(3h, e, v, s)", false, 2),
            ("AVG(3h, e, v, s)", true, 2),
            ("MAX(3h, e, v, s)", true, 2),
            ("APPROX_COUNT_DISTINCT(3h, e, s, c)", true, 2),
            ("COUNT_DISTINCT(3h, e, s, c)", false, 4),
            ("COUNT_DISTINCT(3h, e, s, c)", true, 6),
        ]
        .into_iter()
        .enumerate()
        {
            let definition = Definition { ranked, ..definition(metric, "1h") };
            let board = define_as(&store, &format!("b{nth}"), &definition).await;
            // One or two scripts, as many commands each as there are entries, and a few more.
            let send = async |of: &str| {
                let one = |i: i64| match metric.contains("DISTINCT") {
                    true => seen(&format!("s{i}"), of),
                    false => item(&format!("s{i}"), 1),
                };
                let all = Batch { increments: (0..40).map(one).collect(), return_scores: false };
                store.add(&board, all).await.unwrap();
            };
            send("x").await;
            for of in ["x", "y"] {
                reset(&server);
                send(of).await;
                let called = commands(&server);
                let sum: u64 = called.iter().map(|(_, calls)| calls).sum();
                assert!(sum <= 40 * most + 28, "{metric}, ranked {ranked}: {sum} commands: {called:?}");
            }
        }
    }
}
