//! Errors and hangs at every operation: refused writes are not counted, and writes resume when the disk works again.

use std::time::Instant;

use rand::{Rng, SeedableRng};

use super::*;
use crate::store::embedded::storage::files::simulated::Fault;

/// The longest time after which writes must resume.
const RESUMES: Duration = Duration::from_secs(20);

/// Returns the number of operations that the script takes.
fn operations(durability: Durability) -> u64 {
    let disk = Simulated::new();
    runtime().block_on(async {
        let store = open(&disk, durability).unwrap();
        let boards = define(&store).await.unwrap();
        run(&store, &boards, &AtomicUsize::new(0)).await.unwrap();
        store.close().await.unwrap();
    });
    disk.operations()
}

/// Sends the script while the disk fails at operation `at` and the following ones. Each write must be refused without
/// effect, counted, or unknown.
fn survives(durability: Durability, fault: Fault, at: u64, length: u64) {
    let what = format!("{durability}, {fault:?} at operation {at} and {length} more");
    let disk = Simulated::new();
    for number in at..=at + length {
        disk.at(number, fault);
    }
    // Operations that hang continue after longer than a caller waits, even if they prevent the store from being opened.
    let (done, hanging) = std::sync::mpsc::channel::<()>();
    let hung = disk.clone();
    let releasing = std::thread::spawn(move || {
        while hanging.recv_timeout(2 * pace().unknown_after) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            hung.release();
        }
    });
    runtime().block_on(async {
        let store = match open(&disk, durability) {
            Ok(store) => store,
            Err(StoreError::Setup { .. } | StoreError::Corrupt { .. }) if fault != Fault::Hang => {
                // The fault made the start fail, which reports it. The next start succeeds.
                disk.clear_faults();
                open(&disk, durability).unwrap_or_else(|error| panic!("{what}: {error}"))
            }
            Err(error) => panic!("{what}: {error}"),
        };
        let mut boards = None;
        let started = Instant::now();
        let mut acknowledged = 0;
        for number in 0..WRITES {
            let sent = match &boards {
                None => match define(&store).await {
                    Ok(defined) => send(&store, boards.insert(defined), number).await,
                    Err(error) => Err(error),
                },
                Some(boards) => send(&store, boards, number).await,
            };
            match sent {
                Ok(_) => acknowledged += 1,
                Err(StoreError::ReadOnly { .. } | StoreError::TimedOut { .. } | StoreError::Overloaded { .. }) => break,
                Err(error) => panic!("{what}: {error}"),
            }
        }
        disk.clear_faults();
        disk.release();
        let boards = loop {
            if let Ok(boards) = define(&store).await
                && store.check().await.is_ok()
            {
                break boards;
            }
            assert!(started.elapsed() < RESUMES, "{what}: writes do not resume: {:?}", store.check().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        for number in 0..WRITES {
            while let Err(error) = send(&store, &boards, number).await {
                assert!(started.elapsed() < RESUMES, "{what}: writes do not resume: {error}");
                disk.release();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        assert_eq!(state(&store, &boards).await, expected(WRITES), "{what}: in memory");
        assert_eq!(rows(&store).await, expected_rows(WRITES), "{what}: rows in memory");
        store.close().await.unwrap_or_else(|error| panic!("{what}: {error}"));
        drop(store);
        let store = open(&disk, durability).unwrap_or_else(|error| panic!("{what}: {error}"));
        check(&store, acknowledged.max(WRITES), &what).await;
        store.close().await.unwrap();
    });
    drop(done);
    releasing.join().unwrap();
}

fn everywhere(durability: Durability, fault: Fault) {
    let seed = super::drawn::seed();
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let all = operations(durability);
    let count = points(all as usize) / 4;
    for point in 0..count as u64 {
        let at = 1 + point * all / count.max(1) as u64;
        let length = [0, 3, 40][random.random_range(0..3)];
        survives(durability, fault, at, if fault == Fault::Hang { 0 } else { length });
    }
}

#[test]
fn a_full_disk_at_any_operation_is_survived() {
    for durability in [Durability::Always, Durability::EverySecond] {
        everywhere(durability, Fault::NoSpace);
    }
}

#[test]
fn io_errors_at_any_operation_are_survived() {
    for durability in [Durability::Always, Durability::EverySecond] {
        everywhere(durability, Fault::Io);
    }
}

#[test]
fn disk_hangs_at_any_operation_are_survived() {
    for durability in [Durability::Always, Durability::EverySecond] {
        everywhere(durability, Fault::Hang);
    }
}
