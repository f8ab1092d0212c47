//! Tests of portions of sources while replies are lost, servers end, and latest writes with them: each item of the log is
//! counted once in the end, because what a partition has reached is lost together with what it has counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rolltop::board::{Position, SourceNumber};
use rolltop::store::{Fate, Portion};

use super::healing::{PERSISTENT, cut_inside_a_script};
use super::proxy::{Fault, Proxy};
use super::*;
use crate::given::definition;
use crate::redis_cluster::RedisCluster;

const SOURCE: SourceNumber = SourceNumber(5);
/// The number of subjects.
const SUBJECTS: u64 = 120;

fn blocking<T>(run: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(run)
}

/// The subject of the item at a position of the log, which has one at each.
fn subject_at(position: u64) -> String {
    format!("s{}", (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % SUBJECTS)
}

/// Senders of one log to some boards, each of which goes on from where the boards are.
struct Senders {
    tasks: Vec<tokio::task::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// The largest position that was acknowledged.
    sent: Arc<AtomicU64>,
    boards: Vec<Arc<Board>>,
}

/// Returns the place from which all boards go on.
async fn place(store: &RedisStore, boards: &[Arc<Board>]) -> Result<u64, StoreError> {
    let mut place = u64::MAX;
    for board in boards {
        place = place.min(store.reached(board, SOURCE).await?.map_or(0, |reached| reached.least().0 as u64));
    }
    Ok(place)
}

/// Sends a portion to each board. Returns whether all of them have counted all of it.
async fn send(store: &RedisStore, boards: &[Arc<Board>], after: u64, len: u64) -> bool {
    let items = || (after + 1..=after + len).map(|at| (Position(at.into()), item(&subject_at(at), 1)));
    let range = (Position(after.into()), Position((after + len).into()));
    let portion = || Portion::new(SOURCE, range, items()).unwrap();
    let portion = || if after == 0 { portion().joining() } else { portion() };
    let mut is_done = true;
    for passed in store.pass(boards.iter().map(|board| (board.clone(), portion())).collect()).await {
        match passed {
            Ok(passed) if passed.failure.is_none() => {
                assert!(!passed.fates.iter().any(|fate| matches!(fate, Fate::Waits(_))), "{:?}", passed.fates);
            }
            Ok(passed) => is_done = passed.failure.is_none(),
            Err(StoreError::SourceBehind { .. }) => is_done = false,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                is_done = false;
            }
        }
    }
    is_done
}

impl Senders {
    fn start(stores: &[Arc<RedisStore>], boards: &[Arc<Board>]) -> Self {
        let (stop, sent) = <(Arc<AtomicBool>, Arc<AtomicU64>)>::default();
        let sender = |(nth, store): (usize, &Arc<RedisStore>)| {
            let (store, boards, stop, sent) = (store.clone(), boards.to_vec(), stop.clone(), sent.clone());
            tokio::spawn(async move {
                let mut after = 0;
                let len = 300 + 170 * nth as u64;
                while !stop.load(Ordering::SeqCst) {
                    if send(&store, &boards, after, len).await {
                        after += len;
                        sent.fetch_max(after, Ordering::SeqCst);
                    } else {
                        after = place(&store, &boards).await.unwrap_or(after);
                    }
                }
            })
        };
        let tasks = stores.iter().enumerate().map(sender).collect();
        Self { tasks, stop, sent, boards: boards.to_vec() }
    }

    /// Waits until some portions more were acknowledged.
    async fn progress(&self, portions: u64) {
        let before = self.sent.load(Ordering::SeqCst);
        while self.sent.load(Ordering::SeqCst) < before + 300 * portions {
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "a sender failed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends, and asserts that each item up to the end of what was sent is counted once.
    async fn stop(self, store: &RedisStore) {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
        // What was lost at last is sent again.
        let end = self.sent.load(Ordering::SeqCst);
        let mut after = place(store, &self.boards).await.unwrap();
        while after < end {
            if send(store, &self.boards, after, end - after).await {
                break;
            }
            after = place(store, &self.boards).await.unwrap_or(after);
        }
        for board in &self.boards {
            let reached = store.reached(board, SOURCE).await.unwrap().expect("it has joined");
            let mut expected: BTreeMap<String, i64> = BTreeMap::new();
            let mut most = end;
            while Position(most.into()) < reached.least() {
                most += 1;
            }
            (1..=most).for_each(|at| *expected.entry(subject_at(at)).or_default() += 1);
            let found: BTreeMap<_, _> = scores(store, board).await.into_iter().collect();
            assert_eq!(found, expected, "{} has reached {reached:?} of {end}", board.name());
            assert_eq!(audit(store, board, false).await.1, []);
        }
    }
}

/// Defines boards that count a log in different ways.
async fn boards(store: &RedisStore, shards: Option<u32>) -> Vec<Arc<Board>> {
    let mut boards = Vec::new();
    for (name, windows) in [("alone", vec![]), ("windows", vec!["1h/5m".parse().unwrap(), "all".parse().unwrap()])] {
        let definition = Definition { shards, windows, ..definition("COUNT(24h, e, s)", "1h") };
        match store.define(new_board(&BoardName::parse(name).unwrap(), &definition)).await.unwrap() {
            Defined::Created(board) => boards.push(board),
            other => panic!("{other:?}"),
        }
    }
    boards
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn portions_whose_replies_are_lost_count_once() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let proxy = Proxy::start(server.port).await;
        let store = RedisStore::connect(hasty(proxy.url(), ClockMode::System)).await.unwrap();
        let boards = boards(&store, None).await;
        let senders = Senders::start(&[store.clone(), store.clone()], &boards);
        for round in 1..=40 {
            proxy.arm(if round % 20 == 0 { Fault::Silence } else { Fault::Reset });
            while proxy.happened() < round {
                tokio::task::yield_now().await;
            }
            senders.progress(1).await;
        }
        senders.stop(&store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_loses_is_sent_again() {
    for engine in Engine::available() {
        let mut server = RedisServer::start_with(&engine, &["--save", "", "--appendonly", "no"]);
        let stores = [system(&server).await, system(&server).await];
        let boards = boards(&stores[0], None).await;
        let senders = Senders::start(&stores, &boards);
        senders.progress(2).await;
        for _ in 0..3 {
            blocking(|| behind::<()>(&server, &["SAVE"]));
            senders.progress(20).await;
            // It comes back with the data of that time.
            blocking(|| server.restart());
            senders.progress(5).await;
        }
        senders.stop(&stores[1]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_failed_over_master_loses_is_sent_again() {
    for engine in Engine::available() {
        let mut cluster = blocking(|| RedisCluster::start(&engine, 3, 3));
        let connect = || RedisStore::connect(options(cluster.url(), ClockMode::System));
        let stores = [connect().await.unwrap(), connect().await.unwrap()];
        let boards = boards(&stores[0], Some(16)).await;
        let senders = Senders::start(&stores, &boards);
        senders.progress(3).await;
        blocking(|| cluster.nodes[..3].iter().for_each(RedisServer::wait_until_replicated));
        for replica in [3, 0] {
            blocking(|| cluster.fail_over(replica));
            senders.progress(3).await;
        }
        blocking(|| cluster.nodes[1].kill());
        senders.progress(3).await;
        blocking(|| cluster.nodes[1].restart());
        senders.progress(3).await;
        senders.stop(&stores[1]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_in_other_partitions_has_reached_the_same() {
    let server = RedisServer::start(&Engine::available()[0]);
    let store = system(&server).await;
    let boards = boards(&store, None).await;
    assert!(send(&store, &boards[..1], 0, 900).await);
    let mut known = boards[0].clone();
    let mut after = 900;
    for shards in [5, 1, 3] {
        known = store.redivide(&known, shards, &[SOURCE]).await.unwrap();
        assert_eq!(place(&store, std::slice::from_ref(&known)).await.unwrap(), after);
        // A part is sent again.
        assert!(send(&store, std::slice::from_ref(&known), after - 400, 700).await);
        after += 300;
        let total: i64 = scores(&store, &known).await.iter().map(|(_, score)| score).sum();
        assert_eq!(total as u64, after, "{shards} shards");
    }
    // An item that waits holds one lane back.
    let early = Increment { at: Some(store.now().await.unwrap().plus_millis(600_000)), ..item("s1", 1) };
    let range = (Position(after.into()), Position((after + 1).into()));
    let portion = Portion::new(SOURCE, range, [(range.1, early)]).unwrap();
    let passed = store.pass(vec![(known.clone(), portion)]).await.remove(0).unwrap();
    assert!(matches!(passed.fates[..], [Fate::Waits(Some(Rejection::TooEarly))]) && !passed.reached.is_even());
    let uneven = store.redivide(&known, 2, &[SOURCE]).await;
    assert!(matches!(uneven, Err(StoreError::EditionsBusy { .. })), "{uneven:?}");
    // It goes on as before.
    known = store.board(known.name()).await.unwrap().unwrap();
    assert!(send(&store, std::slice::from_ref(&known), after, 100).await);
    assert_eq!(store.redivide(&known, 2, &[SOURCE]).await.unwrap().definition().shards, Some(2));
    // A partition that has lost what it had joined is not taken for one that has not.
    known = store.board(known.name()).await.unwrap().unwrap();
    let lost = keys(&server, &format!("*{{alone/{}}}*:o", known.partitions().unwrap()[0])).swap_remove(0);
    behind::<()>(&server, &["DEL", &lost]);
    let partial = store.redivide(&known, 3, &[SOURCE]).await;
    assert!(matches!(partial, Err(StoreError::EditionsBusy { .. })), "{partial:?}");
    // Of a source that is not to be kept it does not matter.
    known = store.redivide(&known, 3, &[]).await.unwrap();
    assert_eq!(store.reached(&known, SOURCE).await.unwrap(), None);
}

/// A server that is restarted twice may have applied the first half of a step.
#[tokio::test]
async fn half_of_a_step_is_never_counted_again() {
    let redis = Engine::available().into_iter().find(|engine| engine.name == "redis");
    let Some(engine) = redis else { return };
    // A board of add.lua, one of write.lua, and two of change.lua, one of which writes at once.
    let metrics = [
        ("COUNT(24h, e, s)", None, ":r\r\n"),
        ("COUNT(24h, e, s)", Some("x"), ":r\r\n"),
        ("MAX(24h, e, v, s)", None, ":r\r\n"),
        ("COUNT_DISTINCT(24h, e, s, c)", None, ":r\r\n"),
    ];
    // What is written between the two starts: an item, or a smaller portion of the same source.
    let meanwhile = [false, true];
    for ((metric, id, before), passes) in metrics.into_iter().flat_map(|board| meanwhile.map(|passes| (board, passes)))
    {
        let mut server = RedisServer::start_with(&engine, PERSISTENT);
        let options = RedisOptions { rewrite_aof: false, ..options(server.url(), ClockMode::Simulated(t(START))) };
        let store = RedisStore::connect(options).await.unwrap();
        let board = define(&store, "hot", metric, "1h").await;
        let change = |at: u64| match metric.contains("DISTINCT") {
            true => Change::Seen(crate::given::value(&format!("v{at}"))),
            false => Change::Amount(Amount(at as i64)),
        };
        let item = |at: u64| {
            let item = Increment { change: change(at), ..item(&format!("s{}", at % 40), 1) };
            if id.is_some() { with_id(item, &format!("{at}")) } else { item }
        };
        let pass = async |after: u64, through: u64| {
            let range = (Position(after.into()), Position(through.into()));
            let items = (after + 1..=through).map(|at| (Position(at.into()), item(at)));
            let portion = Portion::new(SOURCE, range, items).unwrap();
            let portion = if after == 0 { portion.joining() } else { portion };
            store.pass(vec![(board.clone(), portion)]).await.remove(0)
        };
        pass(0, 80).await.unwrap();
        pass(80, 160).await.unwrap();
        server.kill();
        cut_inside_a_script(&server, before.as_bytes());
        // The server drops the half at its first start, and applies it at its second, with what was written meanwhile.
        server.restart();
        assert_eq!(place(&store, std::slice::from_ref(&board)).await.unwrap(), 80, "{metric}");
        match passes {
            true => drop(pass(80, 100).await.unwrap()),
            false => drop(add(&store, &board, [item(1_000)]).await),
        }
        server.kill();
        server.restart();
        let found = store.reached(&board, SOURCE).await;
        assert!(
            matches!(&found, Err(StoreError::Corrupt { detail }) if detail.contains("half of a step")),
            "{metric}: {found:?}"
        );
        let again = pass(80, 160).await;
        assert!(matches!(again, Err(StoreError::Corrupt { .. })), "{metric}: {again:?}");
    }
}
