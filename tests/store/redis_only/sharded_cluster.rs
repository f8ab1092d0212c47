//! Tests of boards of 16 parts on a cluster, written to with ids: masters are replaced, hash slots move.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::writers::{Account, Held, Plan, Writers, assert_exact, held, patiently};
use super::*;
use crate::given::definition;
use crate::redis_cluster::RedisCluster;

const SUBJECTS: u64 = 80;

/// Returns a plan with one item for each call, so that each call concerns exactly one part.
fn plan(seed: u64) -> Plan {
    let pause = Duration::from_millis(5);
    Plan { seed, writers: 4, subjects: SUBJECTS, items: 1, pause, boards_go: false }
}

fn blocking<T>(run: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(run)
}

async fn connect(cluster: &RedisCluster) -> [Arc<RedisStore>; 2] {
    let connect = || RedisStore::connect(options(cluster.url(), ClockMode::System));
    [connect().await.unwrap(), connect().await.unwrap()]
}

async fn boards(store: &RedisStore) -> [Arc<Board>; 2] {
    let parts = async |name: &str, definition: Definition| {
        let definition = Definition { shards: Some(16), ..definition };
        match store.define(new_board(&BoardName::parse(name).unwrap(), &definition)).await.unwrap() {
            Defined::Created(board) => board,
            other => panic!("{other:?}"),
        }
    };
    [
        parts("likes", definition("COUNT(24h, e, s)", "1h")).await,
        parts("values", definition("COUNT_DISTINCT(24h, e, s, c)", "1h")).await,
    ]
}

/// Returns the hash slot of each ranked subject.
fn places(cluster: &RedisCluster, boards: &[Arc<Board>]) -> BTreeMap<(usize, String), u16> {
    let mut places = BTreeMap::new();
    for (nth, board) in boards.iter().enumerate() {
        for key in cluster.keys(&format!("*{{{}/*:r", board.name())) {
            let slot = cluster.slot(&key);
            let ranked: Vec<String> = cluster.nodes[cluster.owner(slot)].ask(&["ZRANGE", &key, "0", "-1"]).unwrap();
            places.extend(ranked.into_iter().map(|subject| ((nth, subject), slot)));
        }
    }
    places
}

/// Returns what every subject has.
async fn all_held(store: &RedisStore, boards: &[Arc<Board>]) -> BTreeMap<(usize, String), Held> {
    let mut all = BTreeMap::new();
    for (nth, board) in boards.iter().enumerate() {
        for subject in 0..SUBJECTS {
            let name = format!("s{subject}");
            all.insert((nth, name.clone()), held(store, board, &name).await);
        }
    }
    all
}

fn of(account: &Account, who: &(usize, String)) -> i64 {
    account.held.get(who).map_or(0, |held| held.sum)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_master_loses_no_replicated_item_of_any_part() {
    for engine in Engine::available() {
        let mut cluster = blocking(|| RedisCluster::start(&engine, 3, 3));
        let stores = connect(&cluster).await;
        let boards = boards(&stores[0]).await;
        let before = Writers::start(&stores, &boards, &plan(1));
        before.progress(300).await;
        let before = before.stop().await;
        blocking(|| cluster.nodes[..3].iter().for_each(RedisServer::wait_until_replicated));
        let places = blocking(|| places(&cluster, &boards));
        let killed: BTreeSet<_> = blocking(|| places.iter().filter(|(_, slot)| cluster.owner(**slot) == 0).collect());
        assert!(killed.len() > 20 && killed.len() < places.len() / 2, "{} of {}", killed.len(), places.len());

        let during = Writers::start(&stores, &boards, &plan(2));
        during.progress(100).await;
        blocking(|| cluster.nodes[0].kill());
        let mark = Instant::now();
        // One of the parts that the failed master had.
        let (of_board, name) = killed.first().unwrap().0;
        let probe = with_id(item(name, 0), "probe");
        let probe = if *of_board == 0 { probe } else { unreachable!("boards are in order") };
        patiently(|| stores[1].add(&boards[0], batch([probe.clone()]))).await;
        let recovered = mark.elapsed();
        during.progress(100).await;
        let put_off = during.put_off();
        let during = during.stop().await;
        let then = all_held(&stores[0], &boards).await;
        let mut lost = 0;
        for (who, found) in &then {
            let (least, most) = (of(&before, who), of(&before, who) + of(&during, who));
            assert!(least <= found.sum && found.sum <= most, "{who:?}: {least} <= {} <= {most}", found.sum);
            lost += most - found.sum;
            assert!(found.sum == most || killed.iter().any(|(of, _)| *of == who), "{who:?} was not on the dead master");
        }
        println!(
            "{}: {} before and {} during, {lost} lost, put off {put_off} times, recovered in {recovered:?}",
            engine.name, before.items, during.items
        );

        // Items acknowledged after that count once, even while the old master comes back as a replica.
        let after = Writers::start(&stores, &boards, &plan(3));
        after.progress(50).await;
        blocking(|| cluster.nodes[0].restart());
        after.progress(100).await;
        let after = after.stop().await;
        for (who, found) in all_held(&stores[1], &boards).await {
            assert_eq!(found.sum, then[&who].sum + of(&after, &who), "{who:?}");
        }
        for board in &boards {
            assert_eq!(audit(&stores[0], board, false).await.1, []);
        }
        // The replicas have the ids too.
        for (place, item) in before.last.iter().chain(&after.last) {
            let again = add(&stores[0], &boards[*place], [item.clone()]).await;
            assert!(matches!(again.outcomes[..], [Outcome::Duplicate { .. }]), "{again:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_of_parts_count_once_during_orderly_failovers() {
    for engine in Engine::available() {
        let cluster = blocking(|| RedisCluster::start(&engine, 3, 3));
        let stores = connect(&cluster).await;
        let boards = boards(&stores[0]).await;
        let writers = Writers::start(&stores, &boards, &plan(1));
        writers.progress(100).await;
        // Fail over two masters, and one of them back.
        for replica in [3, 4, 0] {
            blocking(|| cluster.fail_over(replica));
            writers.progress(100).await;
        }
        let account = writers.stop().await;
        println!("{}: {} items, put off {}", engine.name, account.items, account.put_off.values().sum::<u64>());
        assert_exact(&stores[1], &boards, &account).await;
    }
}

/// Returns the hash slots of all parts of both boards that a node has, and the subjects in them.
fn slots_on(cluster: &RedisCluster, boards: &[Arc<Board>], node: usize) -> (Vec<u16>, BTreeSet<(usize, String)>) {
    let mut places = places(cluster, boards);
    places.retain(|_, slot| cluster.owner(*slot) == node);
    let slots: BTreeSet<u16> = places.values().copied().collect();
    (slots.into_iter().collect(), places.into_keys().collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_migration_by_key_delays_only_its_own_parts() {
    for engine in Engine::available() {
        let cluster = blocking(|| RedisCluster::start(&engine, 3, 0));
        let stores = connect(&cluster).await;
        let boards = boards(&stores[0]).await;
        let writers = Writers::start(&stores, &boards, &plan(1));
        writers.progress(200).await;
        let (slots, who) = blocking(|| slots_on(&cluster, &boards, 0));
        assert!(slots.len() >= 10, "{slots:?}");
        for (from, to) in [(0, 1), (1, 2)] {
            blocking(|| slots.iter().for_each(|slot| cluster.begin_move(*slot, from, to)));
            let (mut left, mut is_first) = (slots.clone(), from == 0);
            while !left.is_empty() {
                left.retain(|slot| blocking(|| cluster.move_keys(*slot, from, to, 3)) > 0);
                if let Err(error) = stores[1].page(&boards[0].main(), 0, 10).await {
                    assert!(error.is_transient() && error.retry_after().is_some(), "{error:?}");
                }
                // The hash slot stays half moved for longer than a write waits.
                while std::mem::take(&mut is_first) || (from == 0 && writers.put_off() == 0) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            blocking(|| slots.iter().for_each(|slot| cluster.end_move(*slot, from, to)));
            writers.progress(100).await;
        }
        let account = writers.stop().await;
        println!("{}: {} items, put off {}", engine.name, account.items, account.put_off.values().sum::<u64>());
        let disturbed: Vec<_> = account.put_off.keys().filter(|of| !who.contains(*of)).collect();
        assert!(disturbed.is_empty(), "put off although their slots did not move: {disturbed:?}");
        assert_exact(&stores[0], &boards, &account).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_of_parts_count_once_during_atomic_slot_migrations() {
    for engine in Engine::available() {
        let cluster = blocking(|| RedisCluster::start(&engine, 3, 0));
        let stores = connect(&cluster).await;
        let boards = boards(&stores[0]).await;
        let writers = Writers::start(&stores, &boards, &plan(1));
        writers.progress(200).await;
        let (slots, _) = blocking(|| slots_on(&cluster, &boards, 0));
        let moves = [(0, 1), (1, 2)].into_iter().flat_map(|(from, to)| slots.iter().map(move |slot| (*slot, from, to)));
        let mut moved = 0;
        for (slot, from, to) in moves {
            if !blocking(|| cluster.move_atomically(slot, from, to)) {
                println!("{} cannot move slots atomically", engine.name);
                break;
            }
            moved += 1;
            writers.progress(1).await;
        }
        let account = writers.stop().await;
        let put_off = account.put_off.values().sum::<u64>();
        println!("{}: {moved} moves, {} items, put off {put_off}", engine.name, account.items);
        assert!(engine.name == "redis" || moved == 2 * slots.len());
        assert_exact(&stores[1], &boards, &account).await;
    }
}
