//! Tests of unsuitable servers, damaged data, full memory, long absence, and large slots.

use super::*;

#[tokio::test]
async fn unsuitable_servers_are_refused_and_passwords_hidden() {
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
async fn a_full_expiry_drops_the_ranking_at_once_and_the_slots_later() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..700).map(|i| item(&format!("s{i}"), 1))).await;
        store.set_clock(t("2026-01-01T01:00:00Z")).await.unwrap();
        add(&store, &board, [item("s1", 1)]).await;
        store.set_clock(t("2026-03-01T00:00:00Z")).await.unwrap();
        // A write made in the same step that drops the ranking stays.
        assert_eq!(add(&store, &board, [item("s1", 7)]).await.outcomes, [counted(7)]);
        assert_eq!(scores(&store, &board).await, [("s1".to_owned(), 7)]);
        let status = store.status(&board.main()).await.unwrap();
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
async fn an_audit_finds_and_repairs_external_changes() {
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
        let standing = store.standing(&board.main(), &subject("s9")).await.unwrap();
        assert_eq!(standing.score, exact(5));
    }
}

#[tokio::test]
async fn a_corrupt_key_is_reported_and_other_data_kept() {
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
async fn with_full_memory_writes_are_refused_and_rollover_works() {
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
async fn retire_steps_of_a_large_slot_are_bounded() {
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
            let step = store.retire_step(&board.main()).await.unwrap();
            // The server returns whole buckets of its hash table, so somewhat more than requested.
            assert!(step.subjects_touched <= 3_000, "{step:?}");
            steps += 1;
            assert!(steps < 1_000, "rolling over does not end");
            touched += step.subjects_touched;
            if step.done {
                break;
            }
            // In between, an audit finds score = live slots + what is not yet subtracted.
            if steps % 5 == 0 {
                assert_eq!(audit(&store, &board, false).await.1, []);
            }
        }
        assert!(steps >= 10, "{steps} steps");
        assert_eq!(touched, 20_000);
        assert_eq!(scores(&store, &board).await, [("s0-0".to_owned(), 1)]);
    }
}
