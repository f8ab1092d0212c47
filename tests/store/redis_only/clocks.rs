//! Tests of a server whose clock is wrong for a while, by more than a year: no data is lost.

use std::time::Duration;

use super::*;
use crate::given::{new_board, seen, unranked};

/// 400 days.
const LEAP: Duration = Duration::from_secs(400 * 86_400);

async fn define_as(store: &RedisStore, name: &str, definition: &Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse(name).unwrap(), definition)).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) => board,
        other => panic!("{other:?} instead of a board"),
    }
}

/// Returns a ranked sum, a ranked count of values, and an unranked sum.
async fn boards(store: &RedisStore) -> [Arc<Board>; 3] {
    [
        hourly(store, "hot").await,
        define(store, "values", "COUNT_DISTINCT(3h, e, s, c)", "1h").await,
        define_as(store, "slices", &unranked("SUM(3h, e, v, s)", "1h")).await,
    ]
}

async fn fill(store: &RedisStore, [hot, values, slices]: &[Arc<Board>; 3]) {
    add(store, hot, [item("a", 5)]).await;
    add(store, values, (0..10).map(|i| seen("a", &format!("v{i}")))).await;
    add(store, slices, [item("a", 7)]).await;
}

async fn assert_filled(store: &RedisStore, [hot, values, slices]: &[Arc<Board>; 3]) {
    assert_eq!(scores(store, hot).await, [("a".to_owned(), 5)]);
    assert_eq!(scores(store, values).await, [("a".to_owned(), 10)]);
    assert_eq!(store.values(&values.main(), &subject("a"), 0, 100).await.unwrap().total, 10);
    assert_eq!(store.standing(&slices.main(), &subject("a")).await.unwrap().score, exact(7));
}

fn doubted<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    assert!(
        matches!(&answer, Err(StoreError::ClockDoubted { retry_after, .. }) if *retry_after <= Duration::from_secs(60)),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_jump_of_the_server_clock_expires_nothing() {
    for engine in Engine::available() {
        let Some(server) = RedisServer::with_movable_clock(&engine) else { continue };
        let store = system(&server).await;
        let boards = boards(&store).await;
        fill(&store, &boards).await;
        store.tidy_step().await.unwrap();
        server.set_clock_ahead(LEAP);
        for _ in 0..15 {
            for board in &boards {
                roll_over(&store, board).await;
            }
            store.tidy_step().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_filled(&store, &boards).await;
        // Seen again in the meantime: still the same ten values.
        add(&store, &boards[1], (0..10).map(|i| seen("a", &format!("v{i}")))).await;
        server.set_clock_ahead(Duration::ZERO);
        assert_filled(&store, &boards).await;
        for board in &boards[..2] {
            assert_eq!(audit(&store, board, false).await.1, []);
        }
        let seen: i64 = behind(&server, &["HGET", "rolltop:1:clock", "seen"]);
        assert!(seen <= store.now().await.unwrap().millis(), "no doubted time is recorded");
    }
}

#[tokio::test]
async fn an_instance_started_during_a_clock_jump_does_not_trust_it() {
    for engine in Engine::available() {
        // With a recorded time, and without one as an earlier version left it.
        for is_recorded in [true, false] {
            let Some(server) = RedisServer::with_movable_clock(&engine) else { continue };
            let store = system(&server).await;
            let boards = boards(&store).await;
            fill(&store, &boards).await;
            let before = store.now().await.unwrap();
            if is_recorded {
                store.tidy_step().await.unwrap();
            }
            server.set_clock_ahead(LEAP);
            let started = system(&server).await;
            assert_filled(&started, &boards).await;
            for board in &boards {
                let frame = started.standing(&board.main(), &subject("a")).await.unwrap().frame;
                assert!(frame.as_of.millis() <= before.millis() + 60_000, "{frame:?}");
                doubted(started.add(board, batch([item("b", 1)])).await);
                doubted(started.remove(board, &subject("a")).await);
                roll_over(&started, board).await;
            }
            let all = boards.iter().map(|board| (board.clone(), batch([item("b", 1)]))).collect();
            for answer in started.add_all(all).await {
                doubted(answer);
            }
            let one = Definition::new("COUNT(3h, like, post)".parse().unwrap(), "1h".parse().unwrap());
            doubted(started.define(new_board(&BoardName::parse("new").unwrap(), &one)).await);
            hourly(&started, "hot").await;
            doubted(started.check().await);
            started.tidy_step().await.unwrap();
            let seen: Option<i64> = behind(&server, &["HGET", "rolltop:1:clock", "seen"]);
            assert!(seen.is_none_or(|seen| seen <= before.millis() + 60_000), "{seen:?}");
            // An instance that kept running is not affected, and after the clock is right again no instance is.
            add(&store, &boards[0], [item("b", 1)]).await;
            server.set_clock_ahead(Duration::ZERO);
            add(&started, &boards[0], [item("b", -1)]).await;
            started.check().await.unwrap();
            hourly(&started, "new").await;
            assert_filled(&started, &boards).await;
            assert_filled(&store, &boards).await;
        }
    }
}

#[tokio::test]
async fn trust_clock_accepts_a_clock_jump_at_once() {
    for engine in Engine::available() {
        let Some(server) = RedisServer::with_movable_clock(&engine) else { continue };
        let store = system(&server).await;
        let boards = boards(&store).await;
        fill(&store, &boards).await;
        server.set_clock_ahead(LEAP);
        let trusting = RedisOptions { trust_clock: true, ..options(server.url(), ClockMode::System) };
        let trusting = RedisStore::connect(trusting).await.unwrap();
        assert_eq!(scores(&trusting, &boards[0]).await, []);
        add(&trusting, &boards[0], [item("b", 1)]).await;
        trusting.check().await.unwrap();
    }
}

/// Tests that a restart within a minute, or within a window, does not make the clock doubted.
#[tokio::test]
async fn a_restart_after_a_short_time_does_not_doubt_the_clock() {
    for engine in Engine::available() {
        let Some(server) = RedisServer::with_movable_clock(&engine) else { continue };
        let store = system(&server).await;
        let quick = define(&store, "quick", "COUNT(3s, like, post)", "1s").await;
        let hot = hourly(&store, "hot").await;
        store.tidy_step().await.unwrap();
        server.set_clock_ahead(Duration::from_secs(50));
        let started = system(&server).await;
        add(&started, &quick, [item("a", 1)]).await;
        server.set_clock_ahead(Duration::from_secs(170 * 60));
        let started = system(&server).await;
        add(&started, &hot, [item("a", 1)]).await;
        doubted(started.add(&quick, batch([item("a", 1)])).await);
    }
}
