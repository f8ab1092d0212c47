//! Tests of random faults under load: every acknowledged item counts once, and work continues as soon as the server is
//! back.
//!
//! Two instances write with ids to boards of several kinds on one server. The server is killed, paused, filled and so
//! on, in an order drawn from a seed. `ROLLTOP_TEST_SEED=<n>` draws the same faults again. `ROLLTOP_FAULT_ROUNDS=<n>`
//! sets the number of faults on each engine; by default each fault occurs once. With `--nocapture` the recovery times
//! are printed.

mod fault;
mod recovery;
mod site;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use self::fault::Fault;
use self::recovery::Recovery;
use self::site::Site;
use super::writers::{Plan, Writers, assert_exact};
use super::*;
use crate::drawn::seed;

/// The number of faults on one server. Then a new one is started, so that the data stays small in a long run.
const FAULTS_EACH: usize = 60;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn rounds(few: usize) -> usize {
    from_environment("ROLLTOP_FAULT_ROUNDS").map_or(few, |rounds| rounds.max(1) as usize)
}

fn plan(seed: u64) -> Plan {
    let pause = std::time::Duration::from_millis(20);
    Plan { seed, writers: 2, subjects: 40, items: 5, pause, boards_go: false }
}

/// Returns all faults in random order, repeatedly.
fn faults(random: &mut StdRng, rounds: usize) -> Vec<Fault> {
    let mut drawn = Vec::new();
    while drawn.len() < rounds {
        let mut each = Fault::ALL;
        each.shuffle(random);
        drawn.extend(each);
    }
    drawn.truncate(rounds);
    drawn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_written_during_random_faults_count_once() {
    let seed = seed();
    for engine in Engine::available() {
        let mut random = StdRng::seed_from_u64(seed);
        let mut recovery = Recovery::default();
        let all = faults(&mut random, rounds(Fault::ALL.len()));
        for (nth, faults) in all.chunks(FAULTS_EACH).enumerate() {
            let mut site = Site::start(&engine).await;
            let boards = site.boards().await;
            let keepers = site.keep(&boards);
            let writers = Writers::start(&site.stores, &boards, &plan(seed + nth as u64));
            writers.progress(3).await;
            for fault in faults {
                if !site.can(*fault) {
                    continue;
                }
                println!("{}: {fault:?}", engine.name);
                site.prepare(&mut random);
                let mark = fault.strike(&mut site, &writers, &mut random).await;
                recovery.note(*fault, writers.recovered(&mark).await);
                writers.progress(2).await;
            }
            let account = writers.stop().await;
            keepers.stop().await;
            println!("{}: {} items, put off {}", engine.name, account.items, account.put_off.values().sum::<u64>());
            for store in &site.stores {
                assert_exact(store, &boards, &account).await;
                assert_eq!(store.warnings(), [""; 0]);
            }
        }
        println!("{}: until the first answer, until every board was written to through both\n{recovery}", engine.name);
        recovery.assert_generous();
    }
}

/// Tests that after the server was emptied, exactly the items acknowledged on the newly defined boards count, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_server_counts_exactly_the_later_items() {
    let seed = seed();
    for engine in Engine::available() {
        let mut random = StdRng::seed_from_u64(seed);
        let mut site = Site::start(&engine).await;
        let mut boards = site.boards().await;
        // The ids are the same each time: those from before must be forgotten.
        let plan = Plan { boards_go: true, ..plan(seed) };
        let mut writers = Writers::start(&site.stores, &boards, &plan);
        for round in 0..rounds(Fault::ALL.len()).div_ceil(5) {
            writers.progress(3).await;
            site.prepare(&mut random);
            behind::<()>(&site.server, &["FLUSHALL"]);
            if random.random_ratio(1, 3) {
                tokio::task::block_in_place(|| site.server.restart());
            }
            let gone = std::mem::take(&mut boards);
            site.reopen().await;
            boards = site.boards().await;
            let before = std::mem::replace(&mut writers, Writers::start(&site.stores, &boards, &plan));
            let (first, all) = writers.recovered(&writers.mark()).await;
            println!("{}: round {round}, first answer after {first:?}, on all boards after {all:?}", engine.name);
            assert!(before.stop().await.items > 0);
            for (board, again) in gone.iter().zip(&boards) {
                assert_ne!(board.generation(), again.generation());
                let late = site.stores[0].add(board, batch([item("late", 1)])).await;
                assert!(matches!(late, Err(StoreError::BoardChanged)), "{late:?}");
            }
        }
        writers.progress(5).await;
        let account = writers.stop().await;
        for store in &site.stores {
            assert_exact(store, &boards, &account).await;
            store.check().await.unwrap();
        }
    }
}
