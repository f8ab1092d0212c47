//! Tests of `kill -9` under mixed load: at random moments, when a file appears in the data folder, and in a first
//! start.
//!
//! `ROLLTOP_CRASH_ROUNDS=100 cargo test --release --test process kills` runs more rounds.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::harness::ledger::Ledger;
use crate::harness::{process, rounds};
use crate::running::{Running, serve};

/// Kills the process when this many files have appeared below the folder, or after three seconds. Blocks.
fn kill_at_new_file(id: u32, folder: &Path, nth: usize) {
    let deadline = Instant::now() + Duration::from_secs(3);
    let mut known = process::files(folder);
    let mut appeared = 0;
    while appeared < nth && Instant::now() < deadline {
        let now = process::files(folder);
        appeared += now.difference(&known).count();
        known = now;
    }
    process::kill(id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_kills_lose_and_repeat_no_acknowledged_increment() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::new("crash");
    let mut service = Running::start(folder.path(), &[]);
    ledger.define(&service).await;
    let mut random = StdRng::seed_from_u64(crate::drawn::seed());
    for round in 1..=rounds(8) {
        let from = ledger.len();
        let writers = ledger.load(&service, 3, 4);
        let (id, data) = (service.id(), folder.path().join("data"));
        let (pause, nth) = (random.random_range(20..600), random.random_range(1..=3));
        let killed = tokio::task::spawn_blocking(move || match round % 2 {
            0 => kill_at_new_file(id, &data, nth),
            _ => {
                std::thread::sleep(Duration::from_millis(pause));
                process::kill(id);
            }
        });
        killed.await.unwrap();
        ledger.stop(writers).await;
        service.kill();
        let durability = if round % 3 == 0 { "always" } else { "everysec" };
        let start = serve(folder.path(), &["--durability", durability]);
        service = Running::try_launch(start).unwrap_or_else(|why| {
            panic!("round {round}, {} acknowledged: it does not open again: {why}", ledger.acknowledged())
        });
        ledger.check(&service).await;
        ledger.settle(&service, from).await;
    }
    // Increments that were sent long ago also count only once.
    ledger.settle(&service, 0).await;
    println!("{} increments were acknowledged", ledger.acknowledged());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn kills_during_recovery_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::new("crash");
    let mut service = Running::start(folder.path(), &[]);
    ledger.define(&service).await;
    let writers = ledger.load(&service, 3, 4);
    tokio::time::sleep(Duration::from_millis(800)).await;
    service.kill();
    ledger.stop(writers).await;
    for round in 0..rounds(20) {
        let mut start = serve(folder.path(), &[]);
        let mut child = start.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(5 * (round as u64 % 40))).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let service = Running::start(folder.path(), &[]);
    ledger.check(&service).await;
    ledger.settle(&service, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_first_start_does_not_prevent_the_second() {
    for round in 0..rounds(60).max(60) as u64 {
        let folder = tempfile::tempdir().unwrap();
        let mut command = serve(folder.path(), &[]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round % 61));
        child.kill().unwrap();
        child.wait().unwrap();
        let second = Running::try_launch(serve(folder.path(), &[]));
        let second = second.unwrap_or_else(|why| panic!("killed after {} ms: {why}", round % 61));
        second.ok("GET", "/readyz", None).await;
    }
}
