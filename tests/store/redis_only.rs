//! Tests of the properties that only the Redis store has: scripts, lost replies, several instances.

mod access;
mod auditing;
mod bounded;
mod calls;
mod clocks;
mod cluster;
mod damage;
mod distance;
mod editions;
mod epochs;
mod fault_suite;
mod faults;
mod healing;
mod health;
mod housekeeping;
mod instances;
mod load;
mod lookups;
mod metrics;
mod moderation;
mod moving;
mod parted_pages;
mod passing;
mod proxy;
mod ranking_keys;
mod reads;
mod redivision;
mod restarts;
mod rows;
mod sentinel;
mod several_windows;
mod sharded;
mod sharded_cluster;
mod sizing;
mod writers;
mod writing;

use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, cmd};
use rolltop::board::{Amount, Board, BoardName, Change, Definition, EventId, Subject, Timestamp};
use rolltop::store::redis::{RedisOptions, RedisStore};
use rolltop::store::{
    Added, AuditCursor, Batch, ClockMode, Defined, Increment, Lifecycle, NextTo, Outcome, PageStart, Place, Rejection,
    RetireStep, SlotRange, Store, StoreError, TableName,
};

use crate::given::{OnTrack, Units, exact, new_board, sums};
use crate::redis_server::{Engine, RedisServer};

const START: &str = "2026-01-01T00:30:00Z";

fn t(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Returns options with which a store waits long for answers: on a machine that is busy with other tests, a server may not
/// run for longer than a service would wait.
fn options(url: String, clock: ClockMode) -> RedisOptions {
    RedisOptions { patience: Duration::from_secs(60), ..RedisOptions::new(url, clock) }
}

/// Returns options with which a store waits as long as a service, for tests of servers that do not answer.
fn hasty(url: String, clock: ClockMode) -> RedisOptions {
    RedisOptions::new(url, clock)
}

async fn simulated(server: &RedisServer) -> Arc<RedisStore> {
    RedisStore::connect(options(server.url(), ClockMode::Simulated(t(START)))).await.unwrap()
}

/// Opens a store on the server's own clock.
async fn system(server: &RedisServer) -> Arc<RedisStore> {
    RedisStore::connect(options(server.url(), ClockMode::System)).await.unwrap()
}

async fn define(store: &RedisStore, name: &str, metric: &str, slot: &str) -> Arc<Board> {
    let definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
    match store.define(new_board(&BoardName::parse(name).unwrap(), &definition)).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) => board,
        Defined::Conflict(board) => panic!("{name} is defined otherwise: {:?}", board.definition()),
    }
}

/// Defines a board of three slots of an hour.
async fn hourly(store: &RedisStore, name: &str) -> Arc<Board> {
    define(store, name, "COUNT(3h, like, post)", "1h").await
}

fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap()
}

fn item(name: &str, amount: i64) -> Increment {
    Increment {
        other: None,
        subject: subject(name),
        change: Change::Amount(Amount(amount)),
        retract: false,
        at: None,
        id: None,
        period: None,
        event: None,
    }
}

fn with_id(increment: Increment, id: &str) -> Increment {
    Increment { id: Some(EventId::parse(id).unwrap()), ..increment }
}

fn batch(increments: impl IntoIterator<Item = Increment>) -> Batch {
    Batch { increments: increments.into_iter().collect(), return_scores: true }
}

async fn add(store: &RedisStore, board: &Arc<Board>, increments: impl IntoIterator<Item = Increment>) -> Added {
    store.add(board, batch(increments)).await.unwrap()
}

fn counted(score: i64) -> Outcome {
    Outcome::Counted { score: exact(score) }
}

/// Runs a command on the server directly, not through the store.
fn behind<T: FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command.query(&mut connection).unwrap()
}

/// Resets the server's statistics.
fn reset(server: &RedisServer) {
    behind::<()>(server, &["CONFIG", "RESETSTAT"]);
}

/// Returns how often the server ran each of these commands since the statistics were reset.
fn calls<const N: usize>(server: &RedisServer, names: [&str; N]) -> [u64; N] {
    let stats: String = behind(server, &["INFO", "commandstats"]);
    names.map(|name| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    })
}

/// Returns the same for one command.
fn calls_of(server: &RedisServer, name: &str) -> u64 {
    let [calls] = calls(server, [name]);
    calls
}

fn keys(server: &RedisServer, pattern: &str) -> Vec<String> {
    let mut keys: Vec<String> = behind(server, &["KEYS", pattern]);
    keys.sort();
    keys
}

async fn scores(store: &RedisStore, track: &impl OnTrack) -> Vec<(String, i64)> {
    let page = store.page(&track.track(), 0, 10_000).await.unwrap();
    page.items.iter().map(|line| (line.subject.as_str().to_owned(), line.score.units())).collect()
}

/// Makes steps until nothing below the floor remains. Returns the sum of all steps.
async fn roll_over(store: &RedisStore, track: &impl OnTrack) -> RetireStep {
    let mut sum: Option<RetireStep> = None;
    for _ in 0..20_000 {
        let step = store.retire_step(&track.track()).await.unwrap();
        let done = step.done;
        if step.skipped {
            tokio::task::yield_now().await;
        }
        sum = Some(match sum {
            None => step,
            Some(before) => RetireStep {
                slots_advanced: before.slots_advanced + step.slots_advanced,
                slots_retired: before.slots_retired + step.slots_retired,
                subjects_touched: before.subjects_touched + step.subjects_touched,
                subjects_removed: before.subjects_removed + step.subjects_removed,
                ..step
            },
        });
        if let (true, Some(sum)) = (done, &sum) {
            return sum.clone();
        }
    }
    panic!("rolling over does not end: {sum:?}");
}

/// Audits the whole board. Returns the number of subjects compared, and those that differ.
async fn audit(store: &RedisStore, track: &impl OnTrack, repair: bool) -> (u64, Vec<(String, i64, i64)>, u64) {
    let (mut checked, mut differences, mut repaired) = (0, Vec::new(), 0);
    let mut cursor = AuditCursor::default();
    loop {
        let step = store.audit_step(&track.track(), cursor, repair).await.unwrap();
        checked += step.checked;
        repaired += step.repaired;
        differences
            .extend(step.differences.iter().map(|d| (d.subject.as_str().to_owned(), d.score.units(), d.slots.units())));
        match step.next {
            Some(next) => cursor = next,
            None => return (checked, differences, repaired),
        }
    }
}
