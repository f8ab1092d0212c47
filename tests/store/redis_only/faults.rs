//! Tests of lost replies, broken connections, and servers that fail and come back.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::proxy::{Fault, Proxy};
use super::*;

/// Writers that add 1 at a time until they are stopped.
struct Writers {
    tasks: Vec<tokio::task::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    counted: Arc<AtomicI64>,
    unknown: Arc<AtomicI64>,
}

impl Writers {
    fn start(store: &Arc<RedisStore>, board: &Arc<Board>) -> Writers {
        let (stop, counted, unknown) = <(Arc<AtomicBool>, Arc<AtomicI64>, Arc<AtomicI64>)>::default();
        let writer = |i: i64| {
            let (store, board, name) = (store.clone(), board.clone(), format!("s{}", i % 3));
            let (stop, counted, unknown) = (stop.clone(), counted.clone(), unknown.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    match store.add(&board, batch([item(&name, 1)])).await {
                        Ok(_) => counted.fetch_add(1, Ordering::SeqCst),
                        Err(error) if error.is_transient() => unknown.fetch_add(1, Ordering::SeqCst),
                        Err(error) => panic!("{error}"),
                    };
                }
            })
        };
        let tasks = (0..8).map(writer).collect();
        Writers { tasks, stop, counted, unknown }
    }

    /// Waits until this many more adds were acknowledged.
    async fn progress(&self, more: i64) {
        let before = self.counted.load(Ordering::SeqCst);
        while self.counted.load(Ordering::SeqCst) < before + more {
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "a writer failed");
            tokio::task::yield_now().await;
        }
    }

    /// Stops the writers. Returns the number of acknowledged adds, and of those with unknown outcome.
    async fn stop(self) -> (i64, i64) {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
        (self.counted.load(Ordering::SeqCst), self.unknown.load(Ordering::SeqCst))
    }
}

async fn total(store: &RedisStore, board: &Arc<Board>) -> i64 {
    scores(store, board).await.iter().map(|(_, score)| score).sum()
}

#[tokio::test]
async fn increments_whose_replies_are_lost_count_once() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(hasty(proxy.url(), ClockMode::System)).await.unwrap();
        let board = hourly(&store, "hot").await;
        let writers = Writers::start(&store, &board);
        for round in 1..=40 {
            proxy.arm(if round % 20 == 0 { Fault::Silence } else { Fault::Reset });
            while proxy.happened() < round {
                tokio::task::yield_now().await;
            }
            writers.progress(1).await;
        }
        let (counted, unknown) = writers.stop().await;
        assert_eq!(unknown, 0, "every write was repeated until it was known to be done");
        assert!(counted > 0);
        assert_eq!(total(&store, &board).await, counted);
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

#[tokio::test]
async fn a_lost_reply_is_repeated_unchanged() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(hasty(proxy.url(), ClockMode::System)).await.unwrap();
        let board = hourly(&store, "hot").await;
        let bound = board.edition().main().slot_bound().0;
        add(&store, &board, [item("b", bound)]).await;
        proxy.arm(Fault::Reset);
        let outcomes =
            add(&store, &board, [item("a", 3), with_id(item("a", 4), "x"), item("b", 1), item("a", -1)]).await.outcomes;
        assert_eq!(proxy.happened(), 1);
        assert_eq!(outcomes, [counted(6), counted(6), Outcome::Rejected(Rejection::OutOfRange), counted(6)]);
        assert_eq!(scores(&store, &board).await, [("b".to_owned(), bound), ("a".to_owned(), 6)]);
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_a_killed_server() {
    for engine in Engine::available() {
        let mut server =
            RedisServer::start_with(&engine, &["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        let writers = Writers::start(&store, &board);
        for _ in 0..3 {
            writers.progress(50).await;
            server = tokio::task::spawn_blocking(move || {
                server.restart();
                server
            })
            .await
            .unwrap();
            // Reads find the server again as well. While it loads its data they may fail.
            while store.page(&board.main(), 0, 1).await.is_err() {
                tokio::task::yield_now().await;
            }
        }
        let (counted, unknown) = writers.stop().await;
        let held = total(&store, &board).await;
        assert!(counted >= 150 && counted <= held && held <= counted + unknown, "{counted} <= {held} <= +{unknown}");
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

#[tokio::test]
async fn without_a_server_calls_fail_with_its_address() {
    for engine in Engine::available() {
        let mut server = RedisServer::start(&engine);
        let store = system(&server).await;
        let board = hourly(&store, "hot").await;
        server.kill();
        let at = format!("127.0.0.1:{}", server.port);
        // The first call may find its connection broken. After it, the store knows that there is no connection.
        let _ = store.now().await;
        let failed = store.now().await.unwrap_err();
        assert!(matches!(&failed, StoreError::Unreachable { at: told, .. } if *told == at), "{failed:?}");
        assert!(failed.retry_after().is_some());
        let failed = store.check().await.unwrap_err();
        assert!(failed.is_transient() && failed.to_string().contains(&at), "{failed}");
        let failed = store.add(&board, batch([item("a", 1)])).await.unwrap_err();
        assert!(failed.is_transient(), "{failed:?}");
        server.restart();
        assert!(
            matches!(store.page(&board.main(), 0, 1).await, Err(StoreError::BoardChanged)),
            "nothing was persisted"
        );
    }
}

#[tokio::test]
async fn reads_succeed_after_their_connection_broke() {
    for engine in Engine::available() {
        let mut server = RedisServer::start_with(&engine, &["--appendonly", "yes", "--appendfsync", "always"]);
        let store = system(&server).await;
        let board = hourly(&store, "hot").await;
        store.add(&board, batch([item("a", 1)])).await.unwrap();
        for _ in 0..3 {
            assert_eq!(scores(&store, &board).await, [("a".to_owned(), 1)]);
            server.restart();
        }
    }
}
