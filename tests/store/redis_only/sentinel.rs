//! Tests of the store on a master that Sentinels name.

use std::time::Instant;

use super::load::{Load, total};
use super::*;
use crate::redis_cluster::{Sentinel, until};

fn blocking<T>(run: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(run)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_over_master_is_found_through_the_sentinels() {
    for engine in Engine::available() {
        // A restarted server has no data, so it must not be promoted again before it has followed the new master.
        let mut sentinel = blocking(|| Sentinel::start(&engine, 3_000));
        let wrong = sentinel.url().replace("/main", "/mian");
        let refused = RedisStore::connect(hasty(wrong, ClockMode::System)).await.err().unwrap();
        assert!(matches!(&refused, StoreError::Setup { .. }) && refused.to_string().contains("'mian'"), "{refused}");
        let plain = sentinel.sentinels[0].url();
        let refused = RedisStore::connect(hasty(plain, ClockMode::System)).await.err().unwrap();
        assert!(refused.to_string().contains("redis+sentinel://"), "{refused}");

        let connect = || RedisStore::connect(hasty(sentinel.url(), ClockMode::System));
        let stores = [connect().await.unwrap(), connect().await.unwrap()];
        let store = &stores[0];
        let board = hourly(store, "hot").await;
        let before = Load::start(&stores, &board, "before");
        before.progress(200).await;
        let before = before.stop().await;
        assert!(store.change_row(TableName::Keys, "a", None, Some("before")).await.unwrap());
        let known = store.rows(TableName::Keys, None).await.unwrap().unwrap();
        blocking(|| sentinel.servers[0].wait_until_replicated());

        let during = Load::start(&stores, &board, "during");
        during.progress(200).await;
        blocking(|| {
            sentinel.servers[0].kill();
            // The remaining Sentinels are enough, although the first one asked has ended.
            sentinel.sentinels[0].kill();
        });
        let killed = Instant::now();
        during.progress(1).await;
        let recovered = killed.elapsed();
        during.progress(200).await;
        // The old master comes back and is made a replica.
        blocking(|| {
            sentinel.servers[0].restart();
            sentinel.wait_for_replica(0);
        });
        during.progress(200).await;
        let put_off = during.put_off();
        let during = during.stop().await;

        for (store, from, to) in [(&stores[1], "before", "after"), (store, "after", "later")] {
            assert_eq!(store.rows(TableName::Keys, None).await.unwrap().unwrap().rows["a"], from);
            assert!(store.change_row(TableName::Keys, "a", Some(from), Some(to)).await.unwrap());
            assert_ne!(store.rows(TableName::Keys, Some(known.version)).await.unwrap(), None);
        }

        let held = total(store, &board).await;
        println!(
            "{}: {before} before and {during} during, {} lost, put off {put_off} times, recovered in {recovered:?}",
            engine.name,
            before + during - held
        );
        assert!(before <= held && held <= before + during, "{before} <= {held} <= +{during}");
        assert_eq!(audit(store, &board, false).await.1, []);
        let again = add(store, &board, [with_id(item("s0", 1), "before0-0")]).await;
        assert!(matches!(again.outcomes[..], [Outcome::Duplicate { .. }]), "{again:?}");
    }
}

/// The ways in which a replica replaces a master that goes on working.
#[derive(Clone, Copy, Debug)]
enum Switch {
    /// An operator asks for it. The former master is told only about ten seconds later.
    Requested,
    /// The master is paused until it is replaced, and then continues with what it had received.
    Paused,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requested_failover_loses_at_most_what_was_acknowledged_in_a_second() {
    a_switch_loses_at_most_what_was_acknowledged_in_a_second(Switch::Requested).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_of_the_master_loses_at_most_what_was_acknowledged_in_a_second() {
    a_switch_loses_at_most_what_was_acknowledged_in_a_second(Switch::Paused).await;
}

/// Returns the number of switches: 1, or that of the environment.
fn switches() -> usize {
    std::env::var("ROLLTOP_SWITCHES").ok().and_then(|number| number.parse().ok()).unwrap_or(1)
}

async fn a_switch_loses_at_most_what_was_acknowledged_in_a_second(switch: Switch) {
    for engine in Engine::available() {
        let sentinel = blocking(|| Sentinel::start(&engine, 700));
        let connect = || RedisStore::connect(hasty(sentinel.url(), ClockMode::System));
        let stores = [connect().await.unwrap(), connect().await.unwrap()];
        let board = hourly(&stores[0], "hot").await;
        let load = Load::start(&stores, &board, "during");
        let named = |port| sentinel.sentinels.iter().all(|one| Sentinel::master_of(one) == Some(port));
        for turn in 0..switches() {
            let (master, replica) = (&sentinel.servers[turn % 2], &sentinel.servers[(turn + 1) % 2]);
            load.progress(200).await;
            blocking(|| {
                if let Switch::Paused = switch {
                    master.pause(true);
                } else {
                    let sentinel = &sentinel.sentinels[turn % 3];
                    let begin = || sentinel.ask::<()>(&["SENTINEL", "FAILOVER", Sentinel::MASTER]).is_ok();
                    until("a Sentinel begins a failover", begin);
                }
                until("the replica is named", || named(replica.port));
                master.pause(false);
            });
            load.progress(200).await;
            // Until then the former master takes every write that it is sent.
            blocking(|| sentinel.wait_for_replica(turn % 2));
        }
        load.progress(200).await;
        let (most, put_off) = (load.most_in_a_second(), load.put_off());
        let acknowledged = load.stop().await;
        let third = connect().await.unwrap();
        let mut held = Vec::new();
        for store in stores.iter().chain([&third]) {
            held.push(total(store, &board).await);
        }
        println!(
            "{} {switch:?}: {acknowledged} acknowledged, {} lost, {most} in a second, put off {put_off} times",
            engine.name,
            acknowledged - held[0]
        );
        assert!(held.iter().all(|each| *each == held[0]), "the instances see different stores: {held:?}");
        let allowed = most * switches() as u64;
        assert!(held[0] <= acknowledged && acknowledged - held[0] <= allowed, "{} of {acknowledged}, {most}", held[0]);
        assert_eq!(audit(&stores[0], &board, false).await.1, []);
    }
}
