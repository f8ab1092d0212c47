//! Tests of writes under load and under failures: waiting, reported outcomes, and the work of a script.

use std::time::{Duration, Instant};

use super::proxy::Proxy;
use super::*;
use crate::given::{With, new_board, seen, unranked};

/// The patience of a write, and some time for a slow machine.
const PATIENCE: Duration = Duration::from_secs(9);

fn quiet(increments: impl IntoIterator<Item = Increment>) -> Batch {
    Batch { increments: increments.into_iter().collect(), return_scores: false }
}

fn many(count: usize) -> Batch {
    quiet((0..count).map(|i| item(&format!("s{i}"), 1)))
}

/// Returns the outcome of the rest of a batch that is in progress when the server is lost.
async fn outcome_when(gone: impl FnOnce(&mut RedisServer)) -> (Result<Added, StoreError>, Result<Added, StoreError>) {
    let mut server = RedisServer::start(&Engine::available()[0]);
    let proxy = Proxy::start(server.port).await;
    let store = RedisStore::connect(hasty(proxy.url(), ClockMode::System)).await.unwrap();
    let (board, other) = (hourly(&store, "hot").await, hourly(&store, "other").await);
    store.add(&other, quiet([item("a", 1)])).await.unwrap();
    let before = proxy.so_far();
    let batch = {
        let (store, board) = (store.clone(), board.clone());
        let ids = (0..100_000).map(|i| with_id(item(&format!("s{i}"), 1), "x"));
        let batch = quiet(ids);
        tokio::spawn(async move { store.add(&board, batch).await })
    };
    proxy.calls(before + 20).await;
    let begun = Instant::now();
    gone(&mut server);
    let single = store.add(&other, quiet([item("a", 1)])).await;
    assert!(begun.elapsed() < PATIENCE, "a single increment waited {:?}", begun.elapsed());
    let batch = batch.await.unwrap();
    assert!(begun.elapsed() < PATIENCE, "the batch was answered after {:?}", begun.elapsed());
    (batch, single)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_to_a_killed_server_times_out_without_blocking_others() {
    let (batch, single) = outcome_when(RedisServer::kill).await;
    assert!(matches!(batch, Err(StoreError::TimedOut { .. })), "{batch:?}");
    assert!(matches!(single, Err(ref error) if error.is_transient()), "{single:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_to_a_paused_server_times_out_without_blocking_others() {
    let (batch, single) = outcome_when(|server| behind(server, &["CLIENT", "PAUSE", "60000"])).await;
    assert!(matches!(batch, Err(StoreError::TimedOut { .. })), "{batch:?}");
    assert!(matches!(single, Err(StoreError::TimedOut { .. })), "{single:?}");
}

#[tokio::test]
async fn batches_that_were_not_sent_return_unreachable() {
    let mut server = RedisServer::start(&Engine::available()[0]);
    let store = system(&server).await;
    let (one, other) = (hourly(&store, "one").await, hourly(&store, "other").await);
    server.kill();
    // The first of these calls finds that the connection is broken.
    let _ = store.add(&one, quiet([item("a", 1)])).await;
    let begun = Instant::now();
    let answers = store.add_all(vec![(one, many(4_000)), (other, many(1))]).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::Unreachable { .. }))), "{answers:?}");
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_version_beside_writes_waits_as_long_as_a_write() {
    let mut server =
        RedisServer::start_with(&Engine::available()[0], &["--appendonly", "yes", "--appendfsync", "always"]);
    let store = system(&server).await;
    let board = hourly(&store, "hot").await;
    let version = store.boards_version().await.unwrap();
    server.kill();
    let asked = async { tokio::join!(store.boards_version_beside_writes(), store.add(&board, quiet([item("a", 1)]))) };
    let restarted = async {
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        tokio::task::spawn_blocking(move || {
            server.restart();
            server
        })
        .await
        .unwrap()
    };
    let ((read, added), _server) = tokio::join!(asked, restarted);
    assert_eq!(read.unwrap(), version);
    added.unwrap();
}

/// Returns the number of scripts called between an increment and its response, as the smallest of several attempts. The
/// time that the test itself waits for the processor counts as well.
async fn scripts_between(proxy: &Proxy, store: &RedisStore, board: &Arc<Board>) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..8 {
        let before = proxy.so_far();
        store.add(board, quiet([item("single", 1)])).await.unwrap();
        least = least.min(proxy.so_far() - before);
    }
    least
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_batch_lets_single_increments_pass() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(hasty(proxy.url(), ClockMode::System)).await.unwrap();
        let (hot, other) = (hourly(&store, "hot").await, hourly(&store, "other").await);
        let before = proxy.so_far();
        let batch = {
            let (store, hot) = (store.clone(), hot.clone());
            let ids = (0..100_000).map(|i| with_id(item(&format!("s{i}"), 1), "x"));
            let batch = batch(ids);
            tokio::spawn(async move { store.add(&hot, batch).await })
        };
        proxy.calls(before + 8).await;
        let (of_other, of_same) =
            (scripts_between(&proxy, &store, &other).await, scripts_between(&proxy, &store, &hot).await);
        assert!(!batch.is_finished(), "the batch was over before anything could wait for it");
        assert!(
            of_other <= 6 && of_same <= 16,
            "{of_other} scripts of another board, {of_same} of the same, passed by"
        );
        let added = batch.await.unwrap().unwrap();
        assert!(added.outcomes.iter().all(|outcome| *outcome == counted(1)));
        assert_eq!(store.standing(&hot.main(), &subject("single")).await.unwrap().score, exact(8));
        assert_eq!(audit(&store, &hot, false).await.1, []);
    }
}

#[tokio::test]
async fn an_item_with_an_id_waits_for_the_items_of_a_refused_sum() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        let bound = board.edition().main().slot_bound().0;
        // Items without ids of one subject are one entry, which is before all of these.
        let crowd = (0..3_000).map(|i| with_id(item(&format!("s{i}"), 1), "x"));
        let items = [item("a", bound), item("a", 10)].into_iter().chain(crowd);
        let items = items.chain([with_id(item("a", 1), "x"), with_id(item("a", -1), "y")]);
        let outcomes = add(&store, &board, items).await.outcomes;
        let refused = Outcome::Rejected(Rejection::OutOfRange);
        let of_a: Vec<Outcome> = outcomes[..2].iter().chain(&outcomes[3_002..]).copied().collect();
        assert!(
            matches!(of_a[..], [Outcome::Counted { .. }, one, other, Outcome::Counted { .. }]
            if one == refused && other == refused),
            "{of_a:?}"
        );
        assert_eq!(store.standing(&board.main(), &subject("a")).await.unwrap().score, exact(bound - 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_are_flushed_repeatedly_are_sent_as_text() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = system(&server).await;
        let board = hourly(&store, "hot").await;
        let url = server.url();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let told = stop.clone();
        let flusher = std::thread::spawn(move || {
            let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
            while !told.load(std::sync::atomic::Ordering::SeqCst) {
                cmd("SCRIPT").arg("FLUSH").query::<()>(&mut connection).unwrap();
            }
        });
        for round in 0..400 {
            store.add(&board, quiet([item("a", 1), item(&format!("s{round}"), 1)])).await.unwrap();
            store.page(&board.main(), 0, 1).await.unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        flusher.join().unwrap();
        assert_eq!(store.standing(&board.main(), &subject("a")).await.unwrap().score, exact(400));
    }
}

#[tokio::test]
async fn scores_of_many_sketches_are_read_outside_the_write_script() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let definition = unranked("APPROX_COUNT_DISTINCT(2000m, e, s, c)", "1m");
        let board = match store.define(new_board(&BoardName::parse("about").unwrap(), &definition)).await.unwrap() {
            Defined::Created(board) => board,
            other => panic!("{other:?}"),
        };
        let now = store.now().await.unwrap();
        let old = |who: &str, back: i64| seen(who, &format!("v{back}")).at_time(now.plus_millis(-60_000 * back));
        let all = (0..8).flat_map(|who| (1..2_000).map(move |back| (format!("s{who}"), back)));
        store.add(&board, quiet(all.map(|(who, back)| old(&who, back)))).await.unwrap();
        reset(&server);
        let again = (0..8).map(|who| seen(&format!("s{who}"), "new"));
        let outcomes = add(&store, &board, again).await.outcomes;
        assert_eq!(
            (calls_of(&server, "hgetall"), calls_of(&server, "evalsha")),
            (0, 1),
            "one script, which looks at no other cell"
        );
        for (who, outcome) in outcomes.into_iter().enumerate() {
            let standing = store.standing(&board.main(), &subject(&format!("s{who}"))).await.unwrap();
            assert_eq!(outcome, Outcome::Counted { score: standing.score });
        }
    }
}

/// Tests entries that read every slot of their subject.
#[tokio::test]
async fn worse_samples_over_many_slots_are_split_over_scripts() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "most", "MAX(1000m, e, v, s)", "1m").await;
        let now = store.now().await.unwrap();
        let at = |who: i64, back: i64, amount: i64| {
            item(&format!("s{who}"), amount).at_time(now.plus_millis(-60_000 * back))
        };
        let old = (0..20).flat_map(|who| (1..1_000).map(move |back| (who, back)));
        store.add(&board, quiet(old.map(|(who, back)| at(who, back, back)))).await.unwrap();
        // The oldest slot has the extreme.
        let worse = |who: i64| Increment { change: Change::Set { sum: Amount(0), count: 1 }, ..at(who, 999, 0) };
        reset(&server);
        store.add(&board, quiet((0..20).map(worse))).await.unwrap();
        let (looks, scripts) = (calls_of(&server, "hget"), calls_of(&server, "evalsha"));
        // All cells but the entry's own, which is read together with those of the other entries.
        assert!(looks >= 20 * 998 && looks / scripts <= 6_000, "{looks} looks in {scripts} scripts");
        let scores = scores(&store, &board).await;
        assert!(scores.len() == 20 && scores.iter().all(|(_, score)| *score == 998), "{scores:?}");
    }
}
