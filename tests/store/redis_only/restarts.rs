//! Tests of the first call after a restart of the server, and of operations whose responses are lost: they succeed.

use super::proxy::{Fault, Proxy};
use super::*;

/// Starts the server again while the tasks of the test continue.
async fn restarted(mut server: RedisServer) -> RedisServer {
    let restart = move || {
        server.restart();
        server
    };
    tokio::task::spawn_blocking(restart).await.unwrap()
}

fn count() -> Definition {
    Definition::new("COUNT(3h, like, post)".parse().unwrap(), "1h".parse().unwrap())
}

/// The calls, each of which is made first after a restart.
const CALLS: [&str; 19] = [
    "set_clock",
    "define",
    "define again",
    "undefine",
    "board",
    "boards",
    "boards_version",
    "add",
    "remove",
    "page",
    "standing",
    "status",
    "retire_step",
    "tidy_step",
    "audit",
    "rows",
    "change_row",
    "check",
    "tend",
];

async fn call(store: &RedisStore, name: &str, board: &Arc<Board>, new: Option<&Arc<Board>>) -> Result<(), StoreError> {
    let named = |name: &str| BoardName::parse(name).unwrap();
    match name {
        "set_clock" => store.set_clock(t(START).plus_millis(1)).await.map(drop),
        "define" => {
            let defined = store.define(new_board(&named("new"), &count())).await?;
            assert!(matches!(defined, Defined::Created(_)), "{defined:?}");
            Ok(())
        }
        "define again" => store.define(new_board(&named("hot"), &count())).await.map(drop),
        "undefine" => {
            assert!(store.undefine(new.unwrap()).await?);
            Ok(())
        }
        "board" => store.board(&named("hot")).await.map(drop),
        "boards" => store.boards().await.map(drop),
        "boards_version" => store.boards_version().await.map(drop),
        "add" => store.add(board, batch([item("a", 1)])).await.map(drop),
        "remove" => {
            assert_eq!(store.remove(board, &subject("b")).await?.score, exact(1));
            Ok(())
        }
        "page" => store.page(&board.main(), 0, 10).await.map(drop),
        "standing" => store.standing(&board.main(), &subject("a")).await.map(drop),
        "status" => store.status(&board.main()).await.map(drop),
        "retire_step" => store.retire_step(&board.main()).await.map(drop),
        "tidy_step" => store.tidy_step().await.map(drop),
        "audit" => {
            let mut cursor = AuditCursor::default();
            while let Some(next) = store.audit_step(&board.main(), cursor, true).await?.next {
                cursor = next;
            }
            Ok(())
        }
        "rows" => store.rows(TableName::Keys, None).await.map(drop),
        "change_row" => {
            assert!(store.change_row(TableName::Keys, "a", None, Some("1")).await?);
            Ok(())
        }
        "check" => store.check().await,
        "tend" => store.tend().await,
        other => panic!("no call {other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_call_after_a_server_restart_succeeds() {
    for engine in Engine::available() {
        let mut server =
            RedisServer::start_with(&engine, &["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, [item("a", 1), item("b", 1)]).await;
        for name in CALLS {
            // All connections are in use.
            store.check().await.unwrap();
            store.page(&board.main(), 0, 1).await.unwrap();
            let new = store.board(&BoardName::parse("new").unwrap()).await.unwrap();
            server = restarted(server).await;
            if let Err(failed) = call(&store, name, &board, new.as_ref()).await {
                panic!("{}: {name}: {failed:?}", engine.name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boards_are_defined_and_removed_once_despite_lost_replies() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(options(proxy.url(), ClockMode::Simulated(t(START)))).await.unwrap();
        let other = simulated(&server).await;
        let divided = Definition { shards: Some(3), ..count() };
        for definition in [count(), divided] {
            for nth in 0.. {
                assert!(nth < 100, "answers are lost for ever");
                let name = BoardName::parse(&format!("b{nth}")).unwrap();
                let before = proxy.happened();
                proxy.arm_after(nth, Fault::Reset);
                let defined = store.define(new_board(&name, &definition)).await;
                let Ok(Defined::Created(board)) = defined else { panic!("{}: answer {nth}: {defined:?}", engine.name) };
                assert_eq!(other.board(&name).await.unwrap().unwrap().generation(), board.generation());
                add(&store, &board, [item("a", 1)]).await;
                assert!(store.undefine(&board).await.unwrap(), "{}: answer {nth}", engine.name);
                assert!(other.board(&name).await.unwrap().is_none());
                if proxy.happened() == before {
                    proxy.arm_after(0, Fault::None);
                    println!("{}: {nth} answers", engine.name);
                    break;
                }
            }
            assert_eq!(other.boards().await.unwrap().boards.len(), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subjects_are_repaired_once_despite_lost_replies() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(options(proxy.url(), ClockMode::System)).await.unwrap();
        let board = hourly(&store, "hot").await;
        add(&store, &board, (0..5).map(|i| item(&format!("s{i}"), i + 1))).await;
        let ranking = format!("rolltop:1:{{hot}}:{}:r", board.generation());
        // All connections are open, so no answer is that to the first commands of a connection.
        audit(&store, &board, false).await;
        for nth in 0.. {
            assert!(nth < 100, "answers are lost for ever");
            behind::<()>(&server, &["ZADD", &ranking, "99", "s1", "98", "ghost"]);
            behind::<()>(&server, &["ZREM", &ranking, "s3"]);
            let before = proxy.happened();
            proxy.arm_after(nth, Fault::Reset);
            let (_, differences, repaired) = audit(&store, &board, true).await;
            assert_eq!((differences.len(), repaired), (3, 3), "{}: answer {nth}: {differences:?}", engine.name);
            if proxy.happened() == before {
                println!("{}: {nth} answers", engine.name);
                break;
            }
        }
    }
}

/// Tests that listing boards waits only as long as a read, and not as long as a write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boards_version_times_out_like_a_read() {
    for engine in Engine::available() {
        let mut server = RedisServer::start(&engine);
        let store = system(&server).await;
        hourly(&store, "hot").await;
        tokio::task::spawn_blocking(move || server.kill()).await.unwrap();
        let beside_writes = store.boards_version_beside_writes();
        tokio::pin!(beside_writes);
        for _ in 0..3 {
            tokio::select! {
                biased;
                failed = store.boards_version() => assert!(failed.as_ref().is_err_and(StoreError::is_transient), "{failed:?}"),
                early = &mut beside_writes => panic!("{early:?} before those who only read"),
            }
        }
        assert!(beside_writes.await.is_err_and(|failed| failed.is_transient()));
    }
}
