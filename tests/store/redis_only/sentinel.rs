//! Tests of the store on a master that Sentinels name.

use std::time::Instant;

use super::load::{Load, total};
use super::*;
use crate::redis_cluster::Sentinel;

fn blocking<T>(run: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(run)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_over_master_is_found_through_the_sentinels() {
    for engine in Engine::available() {
        let mut sentinel = blocking(|| Sentinel::start(&engine));
        let wrong = sentinel.url().replace("/main", "/mian");
        let refused = RedisStore::connect(options(wrong, ClockMode::System)).await.err().unwrap();
        assert!(matches!(&refused, StoreError::Setup { .. }) && refused.to_string().contains("'mian'"), "{refused}");
        let plain = sentinel.sentinels[0].url();
        let refused = RedisStore::connect(options(plain, ClockMode::System)).await.err().unwrap();
        assert!(refused.to_string().contains("redis+sentinel://"), "{refused}");

        let connect = || RedisStore::connect(options(sentinel.url(), ClockMode::System));
        let stores = [connect().await.unwrap(), connect().await.unwrap()];
        let store = &stores[0];
        let board = hourly(store, "hot").await;
        let before = Load::start(&stores, &board, "before");
        before.progress(200).await;
        let before = before.stop().await;
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
