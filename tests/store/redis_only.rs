//! What only the Redis store promises: scripts, lost replies, several instances.

use std::sync::Arc;

use redis::{FromRedisValue, cmd};
use rolltop::board::{Amount, Board, BoardName, Definition, EventId, Subject, Timestamp};
use rolltop::store::redis::{RedisOptions, RedisStore};
use rolltop::store::{
    Added, AuditCursor, Batch, ClockMode, Defined, Increment, Limits, Outcome, Reach, Rejection, RetireStep, Store,
    StoreError,
};

use crate::redis_server::{Engine, RedisServer};

const START: &str = "2026-01-01T00:30:00Z";

fn t(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn options(url: String, clock: ClockMode) -> RedisOptions {
    let prefix = RedisOptions::PREFIX.to_owned();
    RedisOptions { url, prefix, clock, limits: Limits::default(), queue: 100_000 }
}

async fn simulated(server: &RedisServer) -> Arc<RedisStore> {
    RedisStore::connect(options(server.url(), ClockMode::Simulated(t(START)))).await.unwrap()
}

async fn define(store: &RedisStore, name: &str, metric: &str, slot: &str) -> Arc<Board> {
    let definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
    match store.define(&BoardName::parse(name).unwrap(), &definition).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) => board,
        Defined::Conflict(board) => panic!("{name} is defined otherwise: {:?}", board.definition()),
    }
}

/// A board of three slots of an hour.
async fn hourly(store: &RedisStore, name: &str) -> Arc<Board> {
    define(store, name, "COUNT(3h, like, post)", "1h").await
}

fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap()
}

fn item(name: &str, amount: i64) -> Increment {
    Increment { subject: subject(name), amount: Amount(amount), at: None, id: None }
}

fn with_id(increment: Increment, id: &str) -> Increment {
    Increment { id: Some(EventId::parse(id).unwrap()), ..increment }
}

fn batch(increments: impl IntoIterator<Item = Increment>) -> Batch {
    Batch { increments: increments.into_iter().collect(), return_scores: true }
}

async fn add(store: &RedisStore, board: &Arc<Board>, increments: impl IntoIterator<Item = Increment>) -> Added {
    store.add(board, batch(increments)).await.unwrap()
}

fn counted(score: i64) -> Outcome {
    Outcome::Counted { score: Some(Amount(score)) }
}

/// Runs a command on the server behind the store's back.
fn behind<T: FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command.query(&mut connection).unwrap()
}

fn keys(server: &RedisServer, pattern: &str) -> Vec<String> {
    let mut keys: Vec<String> = behind(server, &["KEYS", pattern]);
    keys.sort();
    keys
}

async fn scores(store: &RedisStore, board: &Arc<Board>) -> Vec<(String, i64)> {
    let page = store.page(board, 0, 10_000).await.unwrap();
    page.items.iter().map(|line| (line.subject.as_str().to_owned(), line.score.0)).collect()
}

/// Steps until nothing below the floor remains; answers the sum of all steps.
async fn roll_over(store: &RedisStore, board: &Arc<Board>) -> RetireStep {
    let mut sum: Option<RetireStep> = None;
    loop {
        let step = store.retire_step(board).await.unwrap();
        let done = step.done;
        if step.skipped {
            tokio::task::yield_now().await;
        }
        sum = Some(match sum {
            None => step,
            Some(before) => RetireStep {
                slots_advanced: before.slots_advanced + step.slots_advanced,
                slots_retired: before.slots_retired + step.slots_retired,
                subjects_touched: before.subjects_touched + step.subjects_touched,
                subjects_removed: before.subjects_removed + step.subjects_removed,
                ..step
            },
        });
        if let (true, Some(sum)) = (done, &sum) {
            return sum.clone();
        }
    }
}

/// Audits the whole board; answers how many subjects were compared and which differ.
async fn audit(store: &RedisStore, board: &Arc<Board>, repair: bool) -> (u64, Vec<(String, i64, i64)>, u64) {
    let (mut checked, mut differences, mut repaired) = (0, Vec::new(), 0);
    let mut cursor = AuditCursor::default();
    loop {
        let step = store.audit_step(board, cursor, repair).await.unwrap();
        checked += step.checked;
        repaired += step.repaired;
        differences.extend(step.differences.iter().map(|d| (d.subject.as_str().to_owned(), d.score.0, d.slots.0)));
        match step.next {
            Some(next) => cursor = next,
            None => return (checked, differences, repaired),
        }
    }
}

#[tokio::test]
async fn every_call_works_and_works_after_script_flush() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let flush = || behind::<()>(&server, &["SCRIPT", "FLUSH"]);
        flush();
        let board = hourly(&store, "hot").await;
        flush();
        let added = add(&store, &board, [item("a", 5), item("b", 3), item("a", -1), with_id(item("b", 1), "x")]).await;
        assert_eq!(added.outcomes, [counted(4), counted(3), counted(4), counted(4)]);
        let again = add(&store, &board, [with_id(item("b", 1), "x"), item("c", 0)]).await;
        assert_eq!(again.outcomes, [Outcome::Duplicate { score: Some(Amount(4)) }, counted(0)]);
        flush();
        let page = store.page(&board, 0, 10).await.unwrap();
        let lines: Vec<_> = page.items.iter().map(|l| (l.rank, l.subject.as_str(), l.score.0)).collect();
        assert_eq!((page.total, lines), (2, vec![(1, "b", 4), (1, "a", 4)]));
        assert_eq!(page.frame.as_of, t(START));
        flush();
        assert_eq!(store.neighbors(&board, &subject("a"), 1).await.unwrap().items.len(), 2);
        flush();
        let lookup = store.lookup(&board, &[subject("x"), subject("a")]).await.unwrap();
        assert_eq!(lookup.scores, [None, Some(Amount(4))]);
        flush();
        let standing = store.standing(&board, &subject("a")).await.unwrap();
        assert_eq!((standing.rank, standing.score.0, standing.better), (Some(1), 4, 0));
        assert_eq!(standing.slots, [(t("2026-01-01T00:00:00Z"), Amount(4))]);
        flush();
        assert_eq!(store.set_clock(t("2026-01-01T01:30:00Z")).await.unwrap(), t("2026-01-01T01:30:00Z"));
        flush();
        let count = store.count(&board, &subject("a"), Reach::Slots(2)).await.unwrap();
        assert_eq!((count.slots, count.amount.0), (2, 4));
        assert_eq!(store.count(&board, &subject("a"), Reach::Slots(1)).await.unwrap().amount.0, 0);
        add(&store, &board, [item("a", 10)]).await;
        flush();
        let status = store.status(&board).await.unwrap();
        let slots = [(t("2026-01-01T00:00:00Z"), 2), (t("2026-01-01T01:00:00Z"), 1)];
        assert_eq!((status.total, status.slots.as_slice(), status.retiring.len()), (2, slots.as_slice(), 0));
        flush();
        store.set_clock(t("2026-01-01T03:00:00Z")).await.unwrap();
        flush();
        let step = roll_over(&store, &board).await;
        assert_eq!((step.slots_advanced, step.slots_retired), (2, 1));
        assert_eq!((step.subjects_touched, step.subjects_removed), (2, 1));
        assert_eq!(scores(&store, &board).await, [("a".to_owned(), 10)]);
        flush();
        assert_eq!(audit(&store, &board, false).await, (1, vec![], 0));
        flush();
        let removal = store.remove(&board, &subject("a")).await.unwrap();
        assert_eq!((removal.score.0, removal.live_slots, removal.retiring_slots), (10, 1, 0));
        store.check().await.unwrap();
        assert_eq!(store.boards().await.unwrap().len(), 1);
        flush();
        assert!(store.undefine(&board).await.unwrap());
        assert!(!store.undefine(&board).await.unwrap());
        assert!(matches!(store.page(&board, 0, 1).await, Err(StoreError::BoardChanged)));
        assert!(matches!(store.add(&board, batch([item("a", 1)])).await, Err(StoreError::BoardChanged)));
        assert!(store.board(board.name()).await.unwrap().is_none());
        let left = keys(&server, "*");
        assert!(
            left.iter().all(|key| key.contains(":o:") || key.ends_with(":clock") || key.ends_with(":check")),
            "{left:?}"
        );
    }
}

#[tokio::test]
async fn the_same_on_the_servers_own_clock() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = RedisStore::connect(options(server.url(), ClockMode::System)).await.unwrap();
        let board = hourly(&store, "hot").await;
        let now = store.now().await.unwrap();
        let at = |ahead: i64| Increment { at: Some(now.plus_millis(ahead)), ..item("a", 1) };
        let outcomes =
            add(&store, &board, [at(0), at(60_000), at(-14_400_000), with_id(item("a", 1), "x")]).await.outcomes;
        let (early, late) = (Outcome::Rejected(Rejection::TooEarly), Outcome::Rejected(Rejection::TooLate));
        assert_eq!(outcomes, [counted(1), early, late, counted(2)]);
        let page = store.page(&board, 0, 10).await.unwrap();
        assert!(page.frame.as_of >= now && page.frame.window.holds_at(page.frame.as_of));
        assert!(matches!(store.set_clock(now).await, Err(StoreError::ClockNotSimulated)));
        let other = RedisStore::connect(options(server.url(), ClockMode::Simulated(now))).await;
        assert!(matches!(other.err(), Some(StoreError::ClockModeMismatch { stored: "system", wanted: "simulated" })));
    }
}

#[tokio::test]
async fn unfit_servers_are_refused_and_passwords_never_shown() {
    for engine in Engine::available() {
        let evicting = RedisServer::start_with(&engine, &["--maxmemory-policy", "allkeys-lru"]);
        let refused = RedisStore::connect(options(evicting.url(), ClockMode::System)).await.err().unwrap();
        assert!(matches!(&refused, StoreError::Setup { .. }), "{refused:?}");
        assert!(refused.to_string().contains("CONFIG SET maxmemory-policy noeviction"), "{refused}");

        let mut gone = RedisServer::start(&engine);
        gone.kill();
        for url in [format!("redis://me:hunter2@127.0.0.1:{}", gone.port), "redis://me:hunter2@:x:y".to_owned()] {
            let refused = RedisStore::connect(options(url, ClockMode::System)).await.err().unwrap();
            assert!(!format!("{refused} {refused:?}").contains("hunter2"), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn an_id_counts_once_within_the_horizon_and_its_bucket_goes_later() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "hot", "COUNT(2h, like, post)", "1h").await;
        let once = || [with_id(item("a", 1), "x"), with_id(item("b", 1), "x")];
        assert_eq!(add(&store, &board, once()).await.outcomes, [counted(1), counted(1)]);
        let last = t(START).plus_millis(board.dedupe_horizon() - 1);
        store.set_clock(last).await.unwrap();
        // What was counted has left the window, for slots are aligned; the id is still known.
        let duplicate = Outcome::Duplicate { score: Some(Amount(0)) };
        assert_eq!(add(&store, &board, once()).await.outcomes, [duplicate, duplicate]);
        store.set_clock(last.plus_millis(1)).await.unwrap();
        assert_eq!(add(&store, &board, once()).await.outcomes, [counted(1), counted(1)]);
        assert_eq!(keys(&server, "*:d:*").len(), 2);
        store.set_clock(last.plus_millis(30 * 86_400_000)).await.unwrap();
        for _ in 0..3 {
            roll_over(&store, &board).await;
        }
        assert_eq!(keys(&server, "*:d:*"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn refused_sums_are_tried_singly_and_early_items_judged_exactly() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        let bound = board.slot_bound().0;
        let added = add(&store, &board, [item("a", bound), item("a", 10), item("b", 1), item("a", -5)]).await;
        let refused = Outcome::Rejected(Rejection::OutOfRange);
        assert_eq!(added.outcomes, [counted(bound), refused, counted(1), counted(bound - 5)]);
        let added =
            add(&store, &board, [item("c", i64::MAX), item("c", i64::MAX), item("c", 2), item("d", -bound - 1)]);
        assert_eq!(added.await.outcomes, [refused, refused, counted(2), refused]);
        assert_eq!(audit(&store, &board, false).await, (3, vec![], 0));

        // One instance moves the clock; another, which does not know, judges by the new time.
        let other = simulated(&server).await;
        add(&other, &board, [item("b", 1)]).await;
        let now = t("2026-01-01T01:10:00Z");
        store.set_clock(now).await.unwrap();
        let at = |millis: i64| Increment { at: Some(now.plus_millis(millis)), ..item("e", 1) };
        let early = Outcome::Rejected(Rejection::TooEarly);
        assert_eq!(add(&other, &board, [at(5_000), at(5_001)]).await.outcomes, [counted(1), early]);
        store.set_clock(now.plus_millis(1)).await.unwrap();
        assert_eq!(add(&other, &board, [at(5_001), at(5_002)]).await.outcomes, [counted(2), early]);
        store.set_clock(now.plus_millis(10_800_000)).await.unwrap();
        let late = Outcome::Rejected(Rejection::TooLate);
        assert_eq!(add(&other, &board, [at(0)]).await.outcomes, [late]);
        assert!(add(&other, &board, []).await.frame.window.holds_at(now.plus_millis(10_800_000)));
    }
}

#[tokio::test]
async fn a_large_batch_is_one_answer() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        let items =
            (0..2_500).map(|i| with_id(item(&format!("s{}", i % 1_300), i64::from(i)), &format!("id{}", i % 2_000)));
        let items: Vec<_> = items.collect();
        let outcomes = add(&store, &board, items.clone()).await.outcomes;
        // The same id for another subject is another id.
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. })));
        let outcomes = add(&store, &board, items).await.outcomes;
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Duplicate { score: Some(_) })));
        let total: i64 = scores(&store, &board).await.iter().map(|(_, score)| score).sum();
        assert_eq!(total, (0..2_500).sum::<i64>());
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

#[tokio::test]
async fn when_all_has_expired_the_ranking_goes_at_once_and_the_slots_later() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..700).map(|i| item(&format!("s{i}"), 1))).await;
        store.set_clock(t("2026-01-01T01:00:00Z")).await.unwrap();
        add(&store, &board, [item("s1", 1)]).await;
        store.set_clock(t("2026-03-01T00:00:00Z")).await.unwrap();
        // A write made in the very step that drops the ranking stays.
        assert_eq!(add(&store, &board, [item("s1", 7)]).await.outcomes, [counted(7)]);
        assert_eq!(scores(&store, &board).await, [("s1".to_owned(), 7)]);
        let status = store.status(&board).await.unwrap();
        assert_eq!((status.frame.retiring, status.retiring.len(), status.slots.len()), (0, 0, 1));
        assert_eq!(audit(&store, &board, false).await.1, []);
        assert_eq!(keys(&server, "*:s:*").len(), 3);
        let step = roll_over(&store, &board).await;
        assert_eq!((step.slots_retired, step.subjects_touched), (2, 0));
        assert_eq!(keys(&server, "*:s:*").len(), 1);
        assert_eq!(scores(&store, &board).await, [("s1".to_owned(), 7)]);
    }
}

#[tokio::test]
async fn hostile_names_are_data() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let (board, other) = (hourly(&store, "hot").await, hourly(&store, "hot.meta").await);
        add(&store, &other, [item("a", 1)]).await;
        let alphabet: Vec<char> = "{}:%/\\.*?[]'\"` -0aé日🎉\u{202e}\u{200d}".chars().collect();
        let mut names: Vec<String> = vec!["x".repeat(512), "🎉".repeat(128), "0".into(), "-1".into(), "+inf".into()];
        for i in 0..3_000_usize {
            names.push((0..4).map(|digit| alphabet[i / alphabet.len().pow(digit) % alphabet.len()]).collect());
        }
        names.sort_unstable();
        names.dedup();
        let amounts: Vec<i64> = (1..=names.len() as i64).collect();
        add(&store, &board, names.iter().zip(&amounts).map(|(name, amount)| item(name, *amount))).await;
        let mut seen = scores(&store, &board).await;
        seen.sort_unstable();
        let expected: Vec<(String, i64)> = names.iter().cloned().zip(amounts).collect();
        assert_eq!(seen, expected);
        for name in names.iter().step_by(97) {
            let around = store.neighbors(&board, &subject(name), 0).await.unwrap();
            assert_eq!(around.items[0].subject.as_str(), name);
            assert_eq!(store.remove(&board, &subject(name)).await.unwrap().live_slots, 1);
        }
        assert_eq!(audit(&store, &board, false).await.1, []);
        assert_eq!(scores(&store, &other).await, [("a".to_owned(), 1)]);
    }
}

#[tokio::test]
async fn a_board_defined_anew_never_meets_the_old_keys() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let (store, other) = (simulated(&server).await, simulated(&server).await);
        let old = hourly(&store, "hot").await;
        add(&store, &old, [with_id(item("a", 1), "x")]).await;
        assert!(other.undefine(&old).await.unwrap());
        let new = hourly(&other, "hot").await;
        assert_ne!(old.generation(), new.generation());
        for refused in [
            store.add(&old, batch([item("a", 1)])).await.err(),
            store.retire_step(&old).await.err(),
            store.remove(&old, &subject("a")).await.err(),
            store.status(&old).await.err(),
            store.audit_step(&old, AuditCursor::default(), true).await.err(),
        ] {
            assert!(matches!(refused, Some(StoreError::BoardChanged)), "{refused:?}");
        }
        assert!(!store.undefine(&old).await.unwrap());
        assert_eq!(scores(&store, &new).await, []);
        assert_eq!(add(&store, &new, [with_id(item("a", 5), "x")]).await.outcomes, [counted(5)]);
        let names: Vec<_> = store.boards().await.unwrap().iter().map(|board| board.name().to_string()).collect();
        assert_eq!(names, ["hot"]);
    }
}

#[tokio::test]
async fn an_audit_finds_and_repairs_what_was_changed_behind_our_back() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..1_500).map(|i| item(&format!("s{i}"), 2))).await;
        store.set_clock(t("2026-01-01T01:30:00Z")).await.unwrap();
        add(&store, &board, (0..1_500).map(|i| item(&format!("s{i}"), 3))).await;
        assert_eq!(audit(&store, &board, false).await, (1_500, vec![], 0));
        let ranking = keys(&server, "*:r").swap_remove(0);
        behind::<()>(&server, &["ZADD", &ranking, "50", "s7", "1", "ghost"]);
        behind::<()>(&server, &["ZREM", &ranking, "s9"]);
        let expected = vec![("ghost".to_owned(), 1, 0), ("s7".to_owned(), 50, 5), ("s9".to_owned(), 0, 5)];
        let (_, mut found, repaired) = audit(&store, &board, false).await;
        found.sort_unstable();
        assert_eq!((&found, repaired), (&expected, 0));
        let (_, mut found, repaired) = audit(&store, &board, true).await;
        found.sort_unstable();
        assert_eq!((found, repaired), (expected, 3));
        assert_eq!(audit(&store, &board, false).await, (1_500, vec![], 0));
        let standing = store.standing(&board, &subject("s9")).await.unwrap();
        assert_eq!(standing.score, Amount(5));
    }
}

#[tokio::test]
async fn damage_is_told_and_changes_nothing_else() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, [item("a", 1), item("b", 1)]).await;
        let slot = keys(&server, "*:s:*").swap_remove(0);
        behind::<()>(&server, &["HSET", &slot, "b", "much"]);
        let refused = store.add(&board, batch([item("a", 1), item("b", 1), item("c", 1)])).await.unwrap_err();
        assert!(matches!(&refused, StoreError::Corrupt { detail } if detail.contains("'b'")), "{refused}");
        assert_eq!(scores(&store, &board).await, [("a".to_owned(), 2), ("c".to_owned(), 1), ("b".to_owned(), 1)]);
        behind::<()>(&server, &["HSET", &slot, "b", "1"]);
        for (key, command) in [(keys(&server, "*:r").swap_remove(0), "SET"), (slot, "SET")] {
            behind::<()>(&server, &["RENAME", &key, "kept"]);
            behind::<()>(&server, &[command, &key, "1"]);
            let refused = store.add(&board, batch([item("a", 1)])).await.unwrap_err();
            assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
            behind::<()>(&server, &["RENAME", "kept", &key]);
        }
        assert_eq!(audit(&store, &board, false).await, (3, vec![], 0));
        assert_eq!(add(&store, &board, [item("a", 1)]).await.outcomes, [counted(3)]);
    }
}

#[tokio::test]
async fn with_memory_full_writes_are_refused_and_rolling_over_goes_on() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..600).map(|i| item(&format!("s{i}"), 1))).await;
        store.set_clock(t("2026-01-01T01:30:00Z")).await.unwrap();
        add(&store, &board, [item("s0", 1)]).await;
        store.set_clock(t("2026-01-01T03:00:00Z")).await.unwrap();
        behind::<()>(&server, &["CONFIG", "SET", "maxmemory", "1"]);
        let step = roll_over(&store, &board).await;
        assert_eq!((step.subjects_touched, step.subjects_removed), (600, 599));
        let refused = store.add(&board, batch([item("a", 1)])).await.unwrap_err();
        assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused:?}");
        assert_eq!(scores(&store, &board).await, [("s0".to_owned(), 1)]);
        behind::<()>(&server, &["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(add(&store, &board, [item("a", 1)]).await.outcomes, [counted(1)]);
    }
}

#[tokio::test]
async fn steps_are_bounded_whatever_the_size_of_a_slot() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        for part in 0..10 {
            add(&store, &board, (0..2_000).map(|i| item(&format!("s{part}-{i}"), 1))).await;
        }
        store.set_clock(t("2026-01-01T01:30:00Z")).await.unwrap();
        add(&store, &board, [item("s0-0", 1)]).await;
        store.set_clock(t("2026-01-01T03:00:00Z")).await.unwrap();
        let (mut steps, mut touched) = (0, 0);
        loop {
            let step = store.retire_step(&board).await.unwrap();
            // The server hands out whole buckets of its hash table, so somewhat more than asked for.
            assert!(step.subjects_touched <= 3_000, "{step:?}");
            steps += 1;
            touched += step.subjects_touched;
            if step.done {
                break;
            }
            // In between, an audit sees score = live slots + what is not yet subtracted.
            if steps % 5 == 0 {
                assert_eq!(audit(&store, &board, false).await.1, []);
            }
        }
        assert!(steps >= 10, "{steps} steps");
        assert_eq!(touched, 20_000);
        assert_eq!(scores(&store, &board).await, [("s0-0".to_owned(), 1)]);
    }
}
