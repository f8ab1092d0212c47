//! A network that cuts, delays and repeats, and kills of the service: nothing is lost, and nothing counts twice.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::TryStreamExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop_client::{Increment, Service};
use support::network::BadNetwork;
use support::{Running, Store};

/// The number of subjects.
const SUBJECTS: u32 = 300;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

async fn survives(store: Store, batch: usize, every: Duration, coalesces: bool) {
    let Some(program) = support::program() else { return };
    let items = number("ROLLTOP_CLIENT_ITEMS").unwrap_or(20_000);
    let seed = number("ROLLTOP_TEST_SEED").unwrap_or_else(rand::random);
    println!("ROLLTOP_TEST_SEED={seed}");
    let mut running = Running::start(&program, store).await;
    let network = BadNetwork::to(running.port, seed).await;
    let service = Service::builder(&network.url).timeout(Duration::from_secs(3)).build().unwrap();
    let sender = service.board("hot-posts").sender().batch(batch).every(every).coalesces(coalesces).start().unwrap();
    let mut draw = StdRng::seed_from_u64(seed);
    let mut expected = BTreeMap::new();
    let began = std::time::Instant::now();
    for number in 1..=items {
        let subject = format!("s{}", draw.random_range(0..SUBJECTS));
        sender.add(Increment::new(&subject)).await.unwrap();
        *expected.entry(subject).or_insert(0_u64) += 1;
        if number % (items / 5) == 0 && number < items {
            running.kill().await;
            running.start_again().await;
        }
        if coalesces && number % 10 == 0 {
            // So that there are many requests.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    sender.close().await.unwrap();
    println!("{items} items in {:?}: {:?}, {:?}", began.elapsed(), sender.counts(), network.faults());
    let counts = sender.counts();
    assert_eq!((counts.failed, counts.rejected, counts.dropped, counts.waiting), (0, 0, 0, 0));
    assert_eq!(counts.accepted + counts.duplicates + counts.combined, items);
    let lines = running.service().board("hot-posts").top().lines();
    let found: Vec<_> = lines.try_collect().await.unwrap();
    let found = found.into_iter().map(|line| (line.subject.unwrap(), line.score.unwrap().as_str().parse().unwrap()));
    assert_eq!(found.collect::<BTreeMap<_, u64>>(), expected, "seed {seed}, {:?}", network.faults());
    assert!(network.faults().iter().all(|(_, number)| *number > 0), "seed {seed}, {:?}", network.faults());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_count_once_on_every_store() {
    for store in support::stores().await {
        survives(store, 100, Duration::from_millis(50), false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_count_once() {
    survives(Store::Embedded, 20, Duration::from_millis(2), true).await;
}
