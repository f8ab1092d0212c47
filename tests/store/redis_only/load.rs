//! Writers whose every increment has an id, and who repeat it until it is acknowledged.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;

const WRITERS: u64 = 8;

pub struct Load {
    tasks: Vec<tokio::task::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    acknowledged: AtomicU64,
    /// The number of responses that asked to try again.
    put_off: AtomicU64,
    /// The times of the acknowledgements.
    times: Mutex<Vec<Instant>>,
}

impl Load {
    /// Starts the writers. Each uses the next of the stores. `ids` is the prefix of all ids of this load.
    pub fn start(stores: &[Arc<RedisStore>], board: &Arc<Board>, ids: &'static str) -> Load {
        let (stop, counts) = <(Arc<AtomicBool>, Arc<Counts>)>::default();
        let writer = |writer: u64| {
            let store = stores[writer as usize % stores.len()].clone();
            tokio::spawn(write(store, board.clone(), format!("{ids}{writer}"), stop.clone(), counts.clone()))
        };
        Load { tasks: (0..WRITERS).map(writer).collect(), stop, counts }
    }

    /// Waits until this many more increments were acknowledged.
    pub async fn progress(&self, more: u64) {
        let wanted = self.acknowledged() + more;
        while self.acknowledged() < wanted {
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "a writer failed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub fn acknowledged(&self) -> u64 {
        self.counts.acknowledged.load(Ordering::SeqCst)
    }

    pub fn put_off(&self) -> u64 {
        self.counts.put_off.load(Ordering::SeqCst)
    }

    /// Returns the largest number of increments that were acknowledged within one second so far.
    pub fn most_in_a_second(&self) -> u64 {
        let mut times = self.counts.times.lock().unwrap().clone();
        times.sort_unstable();
        let within = |last: usize| {
            let second = times[last].checked_sub(Duration::from_secs(1));
            last + 1 - second.map_or(0, |second| times.partition_point(|time| *time < second))
        };
        (0..times.len()).map(within).max().unwrap_or(0) as u64
    }

    /// Stops the writers. Returns the number of increments, all of which are acknowledged.
    pub async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
        self.counts.acknowledged.load(Ordering::SeqCst)
    }
}

async fn write(store: Arc<RedisStore>, board: Arc<Board>, name: String, stop: Arc<AtomicBool>, counts: Arc<Counts>) {
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        // Often enough that a call is in progress at any time.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let increment = with_id(item(&format!("s{}", number % 5), 1), &format!("{name}-{number}"));
        loop {
            match store.add(&board, batch([increment.clone()])).await {
                Ok(added) => {
                    let outcome = &added.outcomes[0];
                    assert!(matches!(outcome, Outcome::Counted { .. } | Outcome::Duplicate { .. }), "{outcome:?}");
                    counts.acknowledged.fetch_add(1, Ordering::SeqCst);
                    counts.times.lock().unwrap().push(Instant::now());
                    break;
                }
                Err(error) => {
                    assert!(error.is_transient() && error.retry_after().is_some(), "{error:?}");
                    counts.put_off.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }
}

/// Returns the sum of all subjects, as soon as the store responds.
pub async fn total(store: &RedisStore, board: &Arc<Board>) -> u64 {
    loop {
        match store.page(&board.main(), 0, 10_000).await {
            Ok(page) => return page.items.iter().map(|line| line.score.units().unsigned_abs()).sum(),
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
