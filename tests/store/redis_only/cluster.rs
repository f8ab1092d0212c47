//! Tests of the store on a cluster: hash slots that move, masters that fail, nodes that do not respond.

use std::time::{Duration, Instant};

use super::load::{Load, total};
use super::*;
use crate::redis_cluster::RedisCluster;

async fn on(cluster: &RedisCluster) -> Arc<RedisStore> {
    RedisStore::connect(hasty(cluster.url(), ClockMode::System)).await.unwrap()
}

/// Defines a board whose hash slot this node has.
async fn board_on(cluster: &RedisCluster, store: &RedisStore, node: usize) -> (Arc<Board>, u16) {
    for number in 0.. {
        let slot = cluster.slot(&format!("{{b{number}}}"));
        if cluster.owner(slot) == node {
            return (hourly(store, &format!("b{number}")).await, slot);
        }
    }
    unreachable!("some board falls on every node")
}

/// Runs blocking code beside the tasks of the test.
fn blocking<T>(run: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(run)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_works_on_a_cluster_and_after_script_flush() {
    for engine in Engine::available() {
        let cluster = blocking(|| RedisCluster::start(&engine, 3, 0));
        let store = RedisStore::connect(hasty(cluster.url(), ClockMode::Simulated(t(START)))).await.unwrap();
        let flush = || drop(blocking(|| cluster.on_masters::<()>(&["SCRIPT", "FLUSH"])));
        super::calls::every_call_works(&store, flush, || blocking(|| cluster.keys("*"))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_of_another_deployment_is_refused_with_the_right_scheme() {
    for engine in Engine::available() {
        let (cluster, server) = blocking(|| (RedisCluster::start(&engine, 1, 0), RedisServer::start(&engine)));
        let node = &cluster.nodes[0];
        for (url, says) in [
            (node.url(), "redis+cluster://"),
            (format!("redis+cluster://{}", server.address()), "redis://"),
            (format!("redis+sentinel://{}/main", server.address()), "Sentinels"),
            (format!("redis+cluster://127.0.0.1:1,{}", node.address()), ""),
        ] {
            match RedisStore::connect(hasty(url.clone(), ClockMode::System)).await {
                Ok(_) => assert_eq!(says, "", "{url}"),
                Err(refused @ StoreError::Setup { .. }) => {
                    assert!(!says.is_empty() && refused.to_string().contains(says), "{url}: {refused}");
                }
                Err(other) => panic!("{url}: {other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_during_a_slot_migration_by_key_count_once() {
    for engine in Engine::available() {
        let cluster = blocking(|| RedisCluster::start(&engine, 3, 0));
        let (store, other) = (on(&cluster).await, on(&cluster).await);
        let (board, slot) = board_on(&cluster, &store, 0).await;
        let (still, _) = board_on(&cluster, &store, 1).await;
        let stores = [store.clone(), other.clone()];
        let moving = Load::start(&stores, &board, "m");
        moving.progress(100).await;
        for (from, to) in [(0, 2), (2, 1), (1, 0)] {
            blocking(|| cluster.begin_move(slot, from, to));
            loop {
                // Reads of a board that moves return a result or an error to try again, and nothing else.
                if let Err(error) = other.page(&board.main(), 0, 10).await {
                    assert!(error.is_transient() && error.retry_after().is_some(), "{error:?}");
                }
                assert_eq!(other.page(&still.main(), 0, 10).await.unwrap().total, 0);
                if blocking(|| cluster.move_keys(slot, from, to, 2)) == 0 {
                    break;
                }
            }
            blocking(|| cluster.end_move(slot, from, to));
            moving.progress(100).await;
        }
        println!("{}: put off {} times", engine.name, moving.put_off());
        let acknowledged = moving.stop().await;
        assert_eq!(total(&store, &board).await, acknowledged);
        assert_eq!(audit(&other, &board, false).await.1, []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_during_an_atomic_slot_migration_count_once() {
    for engine in Engine::available() {
        let cluster = blocking(|| RedisCluster::start(&engine, 3, 0));
        let store = on(&cluster).await;
        let (board, slot) = board_on(&cluster, &store, 0).await;
        let moving = Load::start(&[store.clone(), on(&cluster).await], &board, "m");
        moving.progress(100).await;
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            if !blocking(|| cluster.move_atomically(slot, from, to)) {
                println!("{} cannot move slots atomically", engine.name);
                break;
            }
            moving.progress(100).await;
        }
        println!("{}: put off {} times", engine.name, moving.put_off());
        let acknowledged = moving.stop().await;
        assert_eq!(total(&store, &board).await, acknowledged);
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_during_an_orderly_failover_count_once() {
    for engine in Engine::available() {
        let cluster = blocking(|| RedisCluster::start(&engine, 3, 3));
        let store = on(&cluster).await;
        let (board, _) = board_on(&cluster, &store, 0).await;
        let load = Load::start(&[store.clone(), on(&cluster).await], &board, "m");
        load.progress(100).await;
        // To the replica and back.
        for replica in [3, 0, 3] {
            blocking(|| cluster.fail_over(replica));
            load.progress(100).await;
        }
        let acknowledged = load.stop().await;
        assert_eq!(total(&store, &board).await, acknowledged);
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_master_is_replaced_by_its_replica() {
    for engine in Engine::available() {
        let mut cluster = blocking(|| RedisCluster::start(&engine, 3, 3));
        let store = on(&cluster).await;
        let (board, _) = board_on(&cluster, &store, 0).await;
        let stores = [store.clone(), on(&cluster).await];
        let before = Load::start(&stores, &board, "before");
        before.progress(200).await;
        let before = before.stop().await;
        // Replicated data must not be lost.
        blocking(|| cluster.nodes[0].wait_until_replicated());

        let during = Load::start(&stores, &board, "during");
        during.progress(200).await;
        blocking(|| cluster.nodes[0].kill());
        let killed = Instant::now();
        during.progress(1).await;
        let recovered = killed.elapsed();
        during.progress(200).await;
        blocking(|| cluster.nodes[0].restart());
        during.progress(200).await;
        let put_off = during.put_off();
        let during = during.stop().await;

        let held = total(&store, &board).await;
        println!(
            "{}: {before} before and {during} during, {} lost, put off {put_off} times, recovered in {recovered:?}",
            engine.name,
            before + during - held
        );
        assert!(before <= held && held <= before + during, "{before} <= {held} <= +{during}");
        assert_eq!(audit(&store, &board, false).await.1, []);
        // The replica has the ids too.
        let again = add(&store, &board, [with_id(item("s0", 1), "before0-0")]).await;
        assert!(matches!(again.outcomes[..], [Outcome::Duplicate { .. }]), "{again:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unresponsive_node_delays_only_its_own_boards() {
    for engine in Engine::available() {
        let cluster = blocking(|| RedisCluster::start(&engine, 3, 0));
        let store = on(&cluster).await;
        let (silent, _) = board_on(&cluster, &store, 0).await;
        let (lively, _) = board_on(&cluster, &store, 1).await;
        add(&store, &lively, [item("a", 1)]).await;
        // Longer than two attempts of a read.
        blocking(|| cluster.nodes[0].ask::<()>(&["CLIENT", "PAUSE", "8000", "ALL"])).unwrap();
        let waiting = {
            let (store, silent) = (store.clone(), silent.clone());
            tokio::spawn(async move { store.page(&silent.main(), 0, 1).await })
        };
        let mut answered = 0;
        while !waiting.is_finished() {
            assert_eq!(store.page(&lively.main(), 0, 1).await.unwrap().total, 1);
            answered += 1;
        }
        let answer = waiting.await.unwrap();
        assert!(answer.as_ref().is_err_and(StoreError::is_transient), "{answer:?}");
        // Several seconds. If pages were held up, each would take as long as the waiting one, or as one of its two
        // attempts.
        assert!(answered >= 10, "{answered} pages were answered meanwhile");
        while store.page(&silent.main(), 0, 1).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
