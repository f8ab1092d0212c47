//! Tests of boards with several windows: one script changes all of them, and they are created and removed together.

use super::proxy::{Fault, Proxy};
use super::*;
use crate::given::{With, new_board, seen};
use crate::site::{COUNTED, DUPLICATE};

const OUT_OF_RANGE: Outcome = Outcome::Rejected(Rejection::OutOfRange);

fn with_windows(metric: &str, slot: &str, windows: &[&str]) -> Definition {
    let definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
    Definition { windows: windows.iter().map(|window| window.parse().unwrap()).collect(), ..definition }
}

async fn define_board(store: &RedisStore, definition: &Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse("hot").unwrap(), definition)).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) => board,
        Defined::Conflict(board) => panic!("the board is defined otherwise: {:?}", board.definition()),
    }
}

fn quiet(increments: impl IntoIterator<Item = Increment>) -> Batch {
    Batch { increments: increments.into_iter().collect(), return_scores: false }
}

/// Returns the ranking of each window.
async fn rankings(store: &RedisStore, board: &Arc<Board>) -> Vec<Vec<(String, i64)>> {
    let mut rankings = Vec::new();
    for window in board.each_window() {
        roll_over(store, &window).await;
        rankings.push(scores(store, &window).await);
    }
    rankings
}

fn lines(lines: &[(&str, i64)]) -> Vec<(String, i64)> {
    lines.iter().map(|(subject, score)| ((*subject).to_owned(), *score)).collect()
}

#[tokio::test]
async fn an_item_that_one_window_refuses_counts_in_none() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board =
            define_board(&store, &with_windows("SUM(3h, sale, amount, seller)", "1h", &["10m/1m", "all"])).await;
        let most = board.tracks()[1].slot_bound().0;
        assert!(most < board.edition().main().slot_bound().0);
        let items = [item("a", 5), with_id(item("b", most + 1), "x"), item("a", 7)];
        assert_eq!(store.add(&board, quiet(items)).await.unwrap().outcomes, [COUNTED, OUT_OF_RANGE, COUNTED]);
        assert_eq!(rankings(&store, &board).await, vec![lines(&[("a", 12)]); 3]);
        // The id was not recorded. The window of 10 minutes does not take an item this old.
        let late = with_id(item("b", most + 1).at("2026-01-01T00:10:00Z"), "x");
        assert_eq!(store.add(&board, quiet([late.clone(), late])).await.unwrap().outcomes, [COUNTED, DUPLICATE]);
        // A sum that is refused is tried item by item.
        let items = [item("c", most), item("c", 2), item("c", -1)];
        assert_eq!(add(&store, &board, items).await.outcomes, [counted(most - 1), OUT_OF_RANGE, counted(most - 1)]);
        let all = lines(&[("b", most + 1), ("c", most - 1), ("a", 12)]);
        assert_eq!(rankings(&store, &board).await, [all.clone(), lines(&[("c", most - 1), ("a", 12)]), all]);
    }
}

#[tokio::test]
async fn damaged_data_of_one_window_changes_no_window() {
    for metric in ["COUNT(3h, like, post)", "AVG(3h, like, x, post)", "MAX(3h, like, x, post)"] {
        let server = RedisServer::start(&Engine::available()[0]);
        let store = simulated(&server).await;
        let board = define_board(&store, &with_windows(metric, "1h", &["10m/1m"])).await;
        store.add(&board, quiet([item("a", 1)])).await.unwrap();
        let slot = format!("rolltop:1:{{hot}}:{}:s:{}", board.tracks()[1].id(), t(START).millis());
        behind::<i64>(&server, &["HSET", &slot, "a", "much"]);
        let failed = store.add(&board, quiet([item("a", 1), item("b", 1)])).await;
        assert!(matches!(failed, Err(StoreError::Corrupt { .. })), "{failed:?}");
        let cells: Vec<String> = behind(
            &server,
            &["HVALS", &format!("rolltop:1:{{hot}}:{}:s:{}", board.generation(), t(START).millis() - 1_800_000)],
        );
        assert_eq!(cells.len(), 2, "b is counted");
        assert_eq!(cells[0], cells[1], "{metric}");
    }
}

#[tokio::test]
async fn all_windows_share_a_hash_tag_and_are_removed_together() {
    for shards in [None, Some(3)] {
        let server = RedisServer::start(&Engine::available()[0]);
        let store = simulated(&server).await;
        let metric = "COUNT_DISTINCT(3h, visit, page, visitor)";
        let board =
            define_board(&store, &Definition { shards, ..with_windows(metric, "1h", &["10m/1m", "all"]) }).await;
        let notes = keys(&server, "rolltop:1:removed");
        assert!(notes.is_empty(), "the note about the creation is left");
        let who = ["a", "b", "c", "d", "e"];
        store.add(&board, quiet(who.map(|who| with_id(seen(who, "v"), "x")))).await.unwrap();
        assert_eq!(rankings(&store, &board).await.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5]);
        let of_board = keys(&server, "rolltop:1:{hot*");
        let metas = of_board.iter().filter(|key| key.ends_with(":meta")).count();
        assert_eq!(metas, if shards.is_some() { 1 + 3 * 3 } else { 3 }, "{of_board:?}");
        let tag = |key: &String| key[key.find('{').unwrap()..=key.find('}').unwrap()].to_owned();
        let mut tags: Vec<String> = of_board.iter().map(tag).collect();
        tags.dedup();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), if shards.is_some() { 4 } else { 1 }, "{tags:?}");

        assert!(store.undefine(&board).await.unwrap());
        for window in board.each_window() {
            assert!(matches!(store.page(&window, 0, 1).await, Err(StoreError::BoardChanged)));
        }
        assert!(matches!(store.add(&board, quiet([seen("a", "v")])).await, Err(StoreError::BoardChanged)));
        while !store.tidy_step().await.unwrap() {}
        let left = keys(&server, "*");
        let is_of_store = |key: &String| [":clock", ":check", ":version"].iter().any(|end| key.ends_with(end));
        assert!(left.iter().all(is_of_store), "{left:?}");
    }
}

#[tokio::test]
async fn a_different_instance_removes_what_is_left_of_all_windows() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let board = define_board(&store, &with_windows("COUNT(3h, like, post)", "1h", &["10m/1m", "all"])).await;
    store.add(&board, quiet([item("a", 1)])).await.unwrap();
    // The instance that removes the board ends after it has deleted the meta key.
    behind::<i64>(&server, &["SADD", "rolltop:1:removed", &format!("{}:hot+2", board.generation())]);
    behind::<i64>(&server, &["DEL", "rolltop:1:{hot}:meta"]);
    while !store.tidy_step().await.unwrap() {}
    assert_eq!(keys(&server, "rolltop:1:{hot}*"), Vec::<String>::new());
    assert_eq!(keys(&server, "rolltop:1:removed"), Vec::<String>::new());
}

/// Tests that a lost window is not taken for a removed board, after which others would be told to send their items
/// again.
#[tokio::test]
async fn a_window_whose_meta_key_is_lost_is_damage() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    let board = define_board(&store, &with_windows("COUNT(3h, like, post)", "1h", &["10m/1m", "all"])).await;
    store.add(&board, quiet([item("a", 1)])).await.unwrap();
    behind::<i64>(&server, &["DEL", &format!("rolltop:1:{{hot}}:{}:meta", board.tracks()[1].id())]);
    for items in [vec![item("a", 1)], vec![with_id(item("a", 1), "x")]] {
        let added = store.add(&board, quiet(items)).await;
        assert!(matches!(added, Err(StoreError::Corrupt { .. })), "{added:?}");
    }
    assert_eq!(scores(&store, &board).await, lines(&[("a", 1)]));
}

#[tokio::test]
async fn a_damaged_total_refuses_its_own_samples_only() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = simulated(&server).await;
    for (metric, cell) in [("SUM(all, sale, amount, seller)", "x"), ("AVG(all, sale, amount, seller)", "1,x")] {
        let (slot, keep) = ("1h".parse().ok(), "3h".parse().ok());
        let kept = Definition { slot, keep, ..Definition::without_slots(metric.parse().unwrap()) };
        let board = define_board(&store, &kept).await;
        store.add(&board, quiet([item("a", 1), item("b", 1)])).await.unwrap();
        let slots = keys(&server, "rolltop:1:{hot}*:s:0");
        assert_eq!(slots.len(), 1, "{:?}", keys(&server, "rolltop:1:{hot}*"));
        behind::<i64>(&server, &["HSET", &slots[0], "a", cell]);
        let sample = |who| Increment {
            change: Change::Set { sum: Amount(5), count: 1 },
            ..item(who, 0).at("2026-01-01T00:20:00Z")
        };
        let added = store.add(&board, quiet([sample("a"), sample("b")])).await;
        assert!(matches!(added, Err(StoreError::Corrupt { .. })), "{added:?}");
        let standing = store.standing(&board.main(), &Subject::parse("b").unwrap()).await.unwrap();
        let set = if metric.starts_with("AVG") {
            rolltop::board::Value::Real(5.0)
        } else {
            rolltop::board::Value::Exact(Amount(5))
        };
        assert_eq!(standing.score, Some(set), "{metric}");
        assert!(store.undefine(&board).await.unwrap());
    }
}

#[tokio::test]
async fn a_write_whose_reply_is_lost_counts_once_in_every_window() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(options(proxy.url(), ClockMode::System)).await.unwrap();
        let board = define_board(&store, &with_windows("COUNT(3h, like, post)", "1h", &["2h/1m", "all"])).await;
        let mut total = 0;
        for round in 0..8 {
            proxy.arm(Fault::Reset);
            let (items, each) = match round % 3 {
                0 => (vec![item("a", 1)], 1),
                1 => (vec![with_id(item("a", 2), &format!("i{round}")), item("a", 3)], 5),
                _ => (vec![item("a", 1), item("b", 1)], 1),
            };
            let before = proxy.happened();
            let added = store.add(&board, quiet(items)).await.unwrap();
            assert!(added.outcomes.iter().all(|outcome| *outcome == COUNTED), "{added:?}");
            assert_eq!(proxy.happened(), before + 1);
            total += each;
        }
        for ranking in rankings(&store, &board).await {
            assert_eq!(ranking, lines(&[("a", total), ("b", 2)]));
        }
        for window in board.each_window() {
            assert_eq!(audit(&store, &window, false).await.1, []);
            let status = store.status(&window).await.unwrap();
            assert!(status.slots.iter().map(|(_, subjects)| subjects).sum::<u64>() >= 2, "{status:?}");
        }
    }
}

#[tokio::test]
async fn a_write_is_one_script_for_all_windows() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board =
            define_board(&store, &with_windows("COUNT(3h, like, post)", "1h", &["10m/1m", "2h/5m", "all"])).await;
        // The first write creates the slots. `add.lua` leaves it to `write.lua`.
        store.add(&board, quiet([item("a", 1)])).await.unwrap();
        for items in [vec![item("a", 1)], vec![item("a", 1), item("b", 2)], vec![with_id(item("a", 1), "x")]] {
            reset(&server);
            store.add(&board, quiet(items)).await.unwrap();
            assert_eq!(calls(&server, ["evalsha", "eval"]), [1, 0]);
        }
        let versions: Vec<String> = keys(&server, "rolltop:1:{hot}*:meta")
            .iter()
            .map(|meta| behind(&server, &["HGET", meta, "version"]))
            .collect();
        assert_eq!(versions.len(), 4);
        assert_eq!(rankings(&store, &board).await, vec![lines(&[("a", 4), ("b", 2)]); 4]);
    }
}

/// Only the main window's arguments have the items for which nothing is left to do.
#[tokio::test]
async fn a_score_is_returned_for_a_retraction_that_is_late_in_every_window() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        for metric in ["COUNT(3h, like, post)", "COUNT_DISTINCT(3h, visit, page, visitor)"] {
            let board = define_board(&store, &with_windows(metric, "1h", &["10m/1m", "2h/5m"])).await;
            let is_count = metric.starts_with("COUNT(");
            let of = || if is_count { item("a", 1) } else { seen("a", "v") };
            let late = Increment { retract: true, ..of().at("2025-12-31T00:00:00Z") };
            let batch = Batch { increments: vec![of(), late.clone(), late], return_scores: true };
            let added = store.add(&board, batch).await.unwrap();
            let one = Outcome::Counted { score: Some(rolltop::board::Value::Exact(Amount(1))) };
            assert_eq!(added.outcomes, [one; 3], "{metric}");
            assert!(store.undefine(&board).await.unwrap());
        }
    }
}

#[tokio::test]
async fn a_write_names_the_slots_that_only_one_window_lacks() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let metric = "COUNT_DISTINCT(3h, visit, page, visitor)";
        let board = define_board(&store, &with_windows(metric, "1h", &["5h/1m", "all"])).await;
        store.add(&board, quiet([seen("a", "v"), seen("a", "w")])).await.unwrap();
        // The slot that counts the value in the window of 5 hours is not among its newest ones.
        store.set_clock(t("2026-01-01T02:00:00Z")).await.unwrap();
        store.add(&board, quiet([])).await.unwrap();
        reset(&server);
        assert_eq!(store.add(&board, quiet([seen("a", "v"), seen("b", "v")])).await.unwrap().outcomes, [COUNTED; 2]);
        assert_eq!(calls_of(&server, "evalsha"), 2, "one that lacks a slot, and one that names it");
        assert_eq!(rankings(&store, &board).await, vec![lines(&[("a", 2), ("b", 1)]); 3]);
        for window in board.each_window() {
            assert_eq!(audit(&store, &window, false).await.1, []);
        }
        store.set_clock(t("2026-01-01T05:31:00Z")).await.unwrap();
        let ages = [lines(&[]), lines(&[("b", 1), ("a", 1)]), lines(&[("a", 2), ("b", 1)])];
        assert_eq!(rankings(&store, &board).await, ages);
    }
}
