//! Crashes at every operation: the process is killed, or the power is lost.

use parking_lot::Mutex;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::*;
use crate::store::embedded::storage::files::simulated::Crash;

/// A disk after a crash.
struct Left {
    disk: Simulated,
    /// The number of writes that were acknowledged before the crash and must exist.
    acknowledged: usize,
    what: String,
}

/// Runs a script, which is told where to count the writes acknowledged, and returns the state after a crash before each
/// operation.
fn crash_everywhere(
    durability: Durability,
    seed: u64,
    script: impl AsyncFn(&Embedded, &AtomicUsize) -> Result<()>,
) -> Vec<Left> {
    let disk = Simulated::new();
    let (left, acknowledged) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (images, counter, source) = (left.clone(), acknowledged.clone(), disk.clone());
    disk.on_operation(Box::new(move |number, op| {
        if !op.changes() {
            return;
        }
        let counted = counter.load(Ordering::SeqCst);
        for crash in [Crash::Killed, Crash::PowerLoss, Crash::PowerLossInOrder] {
            let kept = crash == Crash::Killed || durability == Durability::Always;
            images.lock().push(Left {
                disk: source.crash(seed.wrapping_add(number), crash),
                acknowledged: if kept { counted } else { 0 },
                what: format!("{durability}, seed {seed}, {crash:?} before operation {number} ({op:?})"),
            });
        }
    }));
    runtime().block_on(async {
        let store = open(&disk, durability).unwrap();
        script(&store, &acknowledged).await.unwrap();
        store.close().await.unwrap();
    });
    std::mem::take(&mut *left.lock())
}

/// Tests that a store survives a crash at every point of a script. `check` is called with each store that was opened
/// after a crash, the number of writes that it must contain, and a description.
pub(super) fn survives(
    durability: Durability,
    script: impl AsyncFn(&Embedded, &AtomicUsize) -> Result<()>,
    check: impl AsyncFn(&Embedded, usize, &str),
) {
    let seed = super::drawn::seed();
    let mut left = crash_everywhere(durability, seed, script);
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    left.shuffle(&mut random);
    left.truncate(points(left.len()));
    for Left { disk, acknowledged, what } in left {
        // Some crash again while they are opened.
        let again = Arc::new(Mutex::new(None));
        let at: u64 = random.random_range(1..60);
        let (image, source) = (again.clone(), disk.clone());
        disk.on_operation(Box::new(move |number, _| {
            if number == at {
                *image.lock() = Some(source.crash(seed ^ number, Crash::PowerLoss));
            }
        }));
        runtime().block_on(async {
            let store = open(&disk, durability).unwrap_or_else(|error| panic!("{what}: {error}"));
            check(&store, acknowledged, &what).await;
            store.close().await.unwrap();
        });
        let second = again.lock().take();
        // After a kill nothing is lost yet. The power loss may lose data that only the system's memory had.
        let kept = if durability == Durability::Always { acknowledged } else { 0 };
        if let Some(disk) = second {
            let what = format!("{what}, then a power loss before operation {at} of the next start");
            runtime().block_on(async {
                let store = open(&disk, durability).unwrap_or_else(|error| panic!("{what}: {error}"));
                check(&store, kept, &what).await;
                store.close().await.unwrap();
            });
        }
    }
}

async fn script(store: &Embedded, acknowledged: &AtomicUsize) -> Result<()> {
    let boards = define(store).await?;
    run(store, &boards, acknowledged).await
}

#[test]
fn crashes_with_always_lose_no_acknowledged_write() {
    survives(Durability::Always, script, check);
}

#[test]
fn crashes_with_everysec_keep_the_durability_guarantee() {
    survives(Durability::EverySecond, script, check);
}
