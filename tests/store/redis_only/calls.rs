//! Tests of the calls with scripts: what is stored, counted once, or refused.

use super::*;

#[tokio::test]
async fn every_call_works_and_works_after_script_flush() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        every_call_works(&store, || behind::<()>(&server, &["SCRIPT", "FLUSH"]), || keys(&server, "*")).await;
    }
}

/// Tests all calls on an empty store. `flush` makes the servers forget all scripts, `keys` lists their keys.
pub async fn every_call_works(store: &RedisStore, flush: impl Fn(), keys: impl Fn() -> Vec<String>) {
    flush();
    let board = hourly(store, "hot").await;
    flush();
    let added = add(store, &board, [item("a", 5), item("b", 3), item("a", -1), with_id(item("b", 1), "x")]).await;
    // Scores are those after the whole step.
    assert_eq!(added.outcomes, [counted(4), counted(4), counted(4), counted(4)]);
    let again = add(store, &board, [with_id(item("b", 1), "x"), item("c", 0)]).await;
    assert_eq!(again.outcomes, [Outcome::Duplicate { score: exact(4) }, counted(0)]);
    flush();
    let page = store.page(&board.main(), 0, 10).await.unwrap();
    let lines: Vec<_> = page.items.iter().map(|l| (l.rank, l.subject.as_str(), l.score.units())).collect();
    assert_eq!((page.total, lines), (2, vec![(1, "b", 4), (1, "a", 4)]));
    assert_eq!(page.frame.as_of, t(START));
    let place = Place { score: exact(4).unwrap(), subject: subject("b") };
    flush();
    let page = store.page_from(&board.main(), &PageStart::Place(NextTo::after(place)), 10).await.unwrap();
    let lines: Vec<_> = page.items.iter().map(|l| (l.rank, l.subject.as_str(), l.score.units())).collect();
    assert_eq!((page.total, page.first, lines), (2, 1, vec![(1, "a", 4)]));
    flush();
    assert_eq!(store.neighbors(&board.main(), &subject("a"), 1).await.unwrap().items.len(), 2);
    flush();
    let lookup = store.lookup(&board.main(), &[subject("x"), subject("a")], true).await.unwrap();
    assert_eq!((lookup.scores, lookup.ranks), (vec![None, exact(4)], vec![None, Some(1)]));
    flush();
    let standing = store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!((standing.rank, standing.score.units(), standing.better), (Some(1), 4, 0));
    assert_eq!(sums(&standing.slots), [(t("2026-01-01T00:00:00Z"), 4)]);
    flush();
    assert_eq!(store.set_clock(t("2026-01-01T01:30:00Z")).await.unwrap(), t("2026-01-01T01:30:00Z"));
    flush();
    let count = store.count(&board.main(), &subject("a"), SlotRange::Slots(2)).await.unwrap();
    assert_eq!((count.slots, count.units()), (2, 4));
    assert_eq!(store.count(&board.main(), &subject("a"), SlotRange::Slots(1)).await.unwrap().units(), 0);
    add(store, &board, [item("a", 10)]).await;
    flush();
    let status = store.status(&board.main()).await.unwrap();
    let slots = [(t("2026-01-01T00:00:00Z"), 2), (t("2026-01-01T01:00:00Z"), 1)];
    assert_eq!((status.total, status.slots.as_slice(), status.retiring.len()), (Some(2), slots.as_slice(), 0));
    flush();
    store.set_clock(t("2026-01-01T03:00:00Z")).await.unwrap();
    flush();
    let step = roll_over(store, &board).await;
    assert_eq!((step.slots_advanced, step.slots_retired), (2, 1));
    assert_eq!((step.subjects_touched, step.subjects_removed), (2, 1));
    assert_eq!(scores(store, &board).await, [("a".to_owned(), 10)]);
    flush();
    assert_eq!(audit(store, &board, false).await, (1, vec![], 0));
    flush();
    let removal = store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((removal.score.units(), removal.live_slots, removal.retiring_slots), (10, 1, 0));
    store.check().await.unwrap();
    assert_eq!(store.boards().await.unwrap().boards.len(), 1);
    flush();
    assert!(store.change_row(TableName::Keys, "a", None, Some("1")).await.unwrap());
    flush();
    assert_eq!(store.rows(TableName::Keys, None).await.unwrap().unwrap().rows["a"], "1");
    assert!(store.change_row(TableName::Keys, "a", Some("1"), None).await.unwrap());
    flush();
    assert!(store.undefine(&board).await.unwrap());
    assert!(!store.undefine(&board).await.unwrap());
    assert!(matches!(store.page(&board.main(), 0, 1).await, Err(StoreError::BoardChanged)));
    assert!(matches!(store.add(&board, batch([item("a", 1)])).await, Err(StoreError::BoardChanged)));
    assert!(store.board(board.name()).await.unwrap().is_none());
    let left = keys();
    assert!(
        left.iter().all(|key| [":clock", ":check", ":version", ":table:keys"].iter().any(|end| key.ends_with(end))),
        "{left:?}"
    );
}

#[tokio::test]
async fn adding_and_paging_work_on_the_system_clock() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = RedisStore::connect(options(server.url(), ClockMode::System)).await.unwrap();
        let board = hourly(&store, "hot").await;
        let now = store.now().await.unwrap();
        let at = |ahead: i64| Increment { at: Some(now.plus_millis(ahead)), ..item("a", 1) };
        let outcomes =
            add(&store, &board, [at(0), at(60_000), at(-14_400_000), with_id(item("a", 1), "x")]).await.outcomes;
        let (early, late) = (Outcome::Rejected(Rejection::TooEarly), Outcome::Rejected(Rejection::TooLate));
        assert_eq!(outcomes, [counted(2), early, late, counted(2)]);
        let page = store.page(&board.main(), 0, 10).await.unwrap();
        assert!(page.frame.as_of >= now && page.frame.window.holds_at(page.frame.as_of));
        assert!(matches!(store.set_clock(now).await, Err(StoreError::ClockNotSimulated)));
        let other = RedisStore::connect(options(server.url(), ClockMode::Simulated(now))).await;
        assert!(matches!(other.err(), Some(StoreError::ClockModeMismatch { stored: "system", wanted: "simulated" })));
    }
}

#[tokio::test]
async fn ids_count_once_and_expired_buckets_are_deleted() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "hot", "COUNT(2h, like, post)", "1h").await;
        let once = || [with_id(item("a", 1), "x"), with_id(item("b", 1), "x")];
        assert_eq!(add(&store, &board, once()).await.outcomes, [counted(1), counted(1)]);
        let last = t(START).plus_millis(board.dedupe_horizon() - 1);
        store.set_clock(last).await.unwrap();
        // The counted item has left the window, because slots are aligned. The id is still known.
        let duplicate = Outcome::Duplicate { score: exact(0) };
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

/// Instances of an earlier version do not add the additional slot of `cover = full` to the horizon. They name buckets
/// by half of it, so this version must do so too.
#[tokio::test]
async fn buckets_of_ids_are_those_of_the_window_without_its_additional_slot() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let text = r#"{"metric":"COUNT(2h, like, post)","slot":"15m","cover":"full"}"#;
        let definition = serde_json::from_str(text).unwrap();
        let Defined::Created(full) =
            store.define(new_board(&BoardName::parse("full").unwrap(), &definition)).await.unwrap()
        else {
            panic!("there was no such board");
        };
        let once = || [with_id(item("a", 1), "x"), with_id(item("b", 1), "x")];
        assert_eq!(add(&store, &full, once()).await.outcomes, [counted(1), counted(1)]);
        let buckets = || keys(&server, "*:d:*");
        let bucket = format!("{{full}}:{}:d:{}", full.generation(), t(START).millis() / 3_600_000);
        assert!(buckets().len() == 1 && buckets()[0].ends_with(&bucket), "{:?}", buckets());
        // As long as the horizon, housekeeping keeps it.
        store.set_clock(t(START).plus_millis(135 * 60_000 - 1)).await.unwrap();
        roll_over(&store, &full).await;
        let outcomes = add(&store, &full, once()).await.outcomes;
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Duplicate { .. })), "{outcomes:?}");
        assert_eq!(buckets().len(), 1);
        store.set_clock(t(START).plus_millis(5 * 3_600_000)).await.unwrap();
        roll_over(&store, &full).await;
        assert_eq!(buckets(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn refused_sums_are_retried_by_item_and_early_items_judged_exactly() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        let bound = board.edition().main().slot_bound().0;
        let added = add(&store, &board, [item("a", bound), item("a", 10), item("b", 1), item("a", -5)]).await;
        let refused = Outcome::Rejected(Rejection::OutOfRange);
        assert_eq!(added.outcomes, [counted(bound - 5), refused, counted(1), counted(bound - 5)]);
        let added =
            add(&store, &board, [item("c", i64::MAX), item("c", i64::MAX), item("c", 2), item("d", -bound - 1)]);
        assert_eq!(added.await.outcomes, [refused, refused, counted(2), refused]);
        assert_eq!(audit(&store, &board, false).await, (3, vec![], 0));

        // One instance moves the clock. Another one, which does not know this, uses the new time.
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
async fn a_batch_of_2500_items_returns_every_outcome() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        let items =
            (0..2_500).map(|i| with_id(item(&format!("s{}", i % 1_300), i64::from(i)), &format!("id{}", i % 2_000)));
        let items: Vec<_> = items.collect();
        let outcomes = add(&store, &board, items.clone()).await.outcomes;
        // The same id with another subject is a different id.
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. })));
        let outcomes = add(&store, &board, items).await.outcomes;
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Duplicate { score: Some(_) })));
        let total: i64 = scores(&store, &board).await.iter().map(|(_, score)| score).sum();
        assert_eq!(total, (0..2_500).sum::<i64>());
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

#[tokio::test]
async fn subjects_of_special_characters_are_kept_apart() {
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
            let around = store.neighbors(&board.main(), &subject(name), 0).await.unwrap();
            assert_eq!(around.items[0].subject.as_str(), name);
            assert_eq!(store.remove(&board, &subject(name)).await.unwrap().live_slots, 1);
        }
        assert_eq!(audit(&store, &board, false).await.1, []);
        assert_eq!(scores(&store, &other).await, [("a".to_owned(), 1)]);
    }
}

#[tokio::test]
async fn a_redefined_board_does_not_use_the_old_keys() {
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
            store.retire_step(&old.main()).await.err(),
            store.remove(&old, &subject("a")).await.err(),
            store.status(&old.main()).await.err(),
            store.audit_step(&old.main(), AuditCursor::default(), true).await.err(),
        ] {
            assert!(matches!(refused, Some(StoreError::BoardChanged)), "{refused:?}");
        }
        assert!(!store.undefine(&old).await.unwrap());
        assert_eq!(scores(&store, &new).await, []);
        assert_eq!(add(&store, &new, [with_id(item("a", 5), "x")]).await.outcomes, [counted(5)]);
        let names: Vec<_> = store.boards().await.unwrap().boards.iter().map(|board| board.name().to_string()).collect();
        assert_eq!(names, ["hot"]);
    }
}
