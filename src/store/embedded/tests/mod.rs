//! The parts together, on a disk of the tests' own: one that can be copied at any moment, and made to fail.

mod contents;
mod crashing;
mod freeing;
mod measuring;
mod parts;
mod passing;
mod walking;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::boards::LiveBoard;
use super::disk::{Disk, DiskError, Pair, Write};
use super::writer::Pace;
use super::{Durability, Embedded, EmbeddedOptions};
use crate::board::{Amount, Board, BoardName, Change, Counted, Definition, EventId, Mode, Subject, Timestamp};
use crate::store::{Batch, ClockMode, Defined, Increment, Limits, Outcome, Result, Store};

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const HOUR: i64 = 3_600_000;

/// A disk in memory.
#[derive(Default)]
struct Memory {
    entries: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    fails: AtomicBool,
    /// Whoever holds it keeps groups from being written.
    gate: Mutex<()>,
    /// How many groups have come to the gate.
    knocks: AtomicUsize,
}

impl Disk for Memory {
    fn commit(&self, writes: Vec<Write>, _: bool) -> Result<(), DiskError> {
        self.knocks.fetch_add(1, Ordering::SeqCst);
        let _open = self.gate.lock();
        self.sync()?;
        let mut entries = self.entries.lock();
        let mut keys = std::collections::HashSet::new();
        for write in writes {
            assert!(keys.insert(write.key().to_vec()), "a group may hold a key only once");
            match write {
                Write::Put(key, value) => entries.insert(key, value),
                Write::Delete(key) => entries.remove(&key),
            };
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        if self.fails.load(Ordering::SeqCst) { Err(DiskError("no space left".to_owned())) } else { Ok(()) }
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, DiskError> {
        let after = after.map(<[u8]>::to_vec);
        let entries = self.entries.lock();
        let found = entries.range(prefix.to_vec()..).filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after));
        let found = found.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        Ok(found.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
        Ok(self.entries.lock().get(key).cloned())
    }
}

impl Memory {
    /// The disk as a crash right now would leave it.
    fn crashed(&self) -> Arc<Memory> {
        Arc::new(Memory { entries: Mutex::new(self.entries.lock().clone()), ..Memory::default() })
    }
}

fn open(folder: &Path, disk: &Arc<Memory>, pace: Pace) -> Result<Arc<Embedded>> {
    let options = EmbeddedOptions {
        path: folder.to_owned(),
        clock: ClockMode::Simulated(START),
        durability: Durability::Always,
        limits: Limits::default(),
    };
    let disk = disk.clone();
    Embedded::open_on(options, pace, |_| Ok(disk))
}

/// Folds after every group.
const EAGER: Pace = Pace { every: Duration::ZERO, bytes: 1 };

async fn define(store: &Embedded, metric: &str) -> Arc<Board> {
    define_as(store, &hours(metric)).await
}

async fn define_as(store: &Embedded, definition: &Definition) -> Arc<Board> {
    match store.define(&BoardName::parse("b").unwrap(), definition).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => board,
    }
}

fn subject(number: u8) -> Subject {
    Subject::parse(&format!("subject-{number}")).unwrap()
}

fn increment(number: u8, amount: i64, at: Option<Timestamp>, id: Option<u8>) -> Increment {
    let id = id.map(|id| EventId::parse(&format!("e{id}")).unwrap());
    Increment { subject: subject(number), change: Change::Amount(Amount(amount)), retract: false, at, id }
}

async fn add(store: &Embedded, board: &Arc<Board>, increments: Vec<Increment>) -> Result<Vec<Outcome>> {
    Ok(store.add(board, Batch { increments, return_scores: false }).await?.outcomes)
}

fn live(store: &Embedded) -> Arc<LiveBoard> {
    store.boards.read().values().next().unwrap().clone()
}

/// A board of three slots of an hour.
fn hours(metric: &str) -> Definition {
    Definition::new(metric.parse().unwrap(), "1h".parse().unwrap())
}

/// A board of each metric and mode.
fn every_definition() -> Vec<Definition> {
    let kinds = [
        "SUM(3h, sale, amount, seller)",
        "AVG(3h, sale, amount, seller)",
        "MIN(3h, sale, amount, seller)",
        "MAX(3h, sale, amount, seller)",
        "COUNT_DISTINCT(3h, login, device, user)",
        "APPROX_COUNT_DISTINCT(3h, login, device, user)",
    ];
    let ranked = kinds.map(hours).into_iter();
    let unranked = kinds.map(|metric| Definition { ranked: false, ..hours(metric) }).into_iter();
    let more = [
        Definition { min_samples: 2, ..hours(kinds[1]) },
        Definition { max_values: Some(2), ..hours(kinds[4]) },
        Definition { ranked: false, keep: Some("6h".parse().unwrap()), ..hours(kinds[0]) },
        Definition { ranked: false, mode: Mode::FromFirst, ..hours(kinds[0]) },
    ];
    ranked.chain(unranked).chain(more).collect()
}

/// What a board takes, made of a number.
fn change(board: &Board, number: i64) -> Change {
    let amount = Change::Amount(Amount(number));
    let seen = || Change::Seen(Counted::parse(&format!("value-{number}")).unwrap());
    if board.takes(&amount) { amount } else { seen() }
}
