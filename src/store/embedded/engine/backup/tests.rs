//! Tests of backups on a simulated disk on which any operation can be the last one, or fail.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::super::super::storage::files::simulated::{Crash, Fault, Simulated};
use super::super::super::{Durability, Embedded, EmbeddedOptions, Pace};
use super::*;
use crate::board::{Amount, Board, BoardName, Change, Definition, EventId, Subject, Timestamp};
use crate::store::embedded::tests::new_board;
use crate::store::{Added, Batch, ClockMode, Increment, Lifecycle, Outcome, Store, TableName};

const BACKUPS: &str = "/backups";
/// A pace with constant checkpoints and new segments.
const BUSY: Pace = Pace {
    log_bytes: 300,
    segment_bytes: 4_096,
    age: Duration::MAX,
    unknown_after: Duration::from_secs(10),
    tick: Duration::from_millis(100),
};

fn open(disk: &Simulated, path: &Path, pace: Pace) -> Result<Arc<Embedded>> {
    let clock = ClockMode::Simulated(Timestamp::EPOCH);
    let options = EmbeddedOptions {
        durability: Durability::Always,
        backup_dir: Some(BACKUPS.into()),
        ..EmbeddedOptions::new(path, clock)
    };
    Embedded::open_on(disk.rooted(path), options, pace)
}

async fn board(store: &Embedded) -> Arc<Board> {
    let name = BoardName::parse("b").unwrap();
    let definition = Definition::new("COUNT(24h, like, post)".parse().unwrap(), "1h".parse().unwrap());
    store.define(new_board(&name, &definition)).await.unwrap();
    store.board(&name).await.unwrap().unwrap()
}

/// Adds one to a subject, with a number as the id.
async fn add(store: &Embedded, number: u64) -> Outcome {
    let increment = Increment {
        other: None,
        subject: Subject::parse(&format!("post-{}", number % 7)).unwrap(),
        change: Change::Amount(Amount(1)),
        retract: false,
        at: None,
        id: Some(EventId::parse(&number.to_string()).unwrap()),
        period: None,
        event: None,
    };
    let batch = Batch { increments: vec![increment], return_scores: false };
    let Added { outcomes, .. } = store.add(&board(store).await, batch).await.unwrap();
    outcomes[0]
}

/// Adds a row with this number as its text, and removes the one that was added with the number before.
async fn change_rows(store: &Embedded, number: u64) {
    let change = async |number: u64, is_added: bool| {
        let (id, text) = (format!("row-{number}"), number.to_string());
        let (from, to) = if is_added { (None, Some(&*text)) } else { (Some(&*text), None) };
        store.change_row(TableName::Keys, &id, from, to).await.unwrap();
    };
    change(number, true).await;
    if let Some(before) = number.checked_sub(1) {
        change(before, false).await;
    }
}

/// Returns the sum of all scores.
async fn counted(store: &Embedded) -> u64 {
    let page = store.page(&board(store).await.main(), 0, 100).await.unwrap();
    let score = |value| if let crate::board::Value::Exact(Amount(units)) = value { units.unsigned_abs() } else { 0 };
    page.items.iter().map(|line| score(line.score)).sum()
}

/// Creates a store with `count` numbers counted, on a new disk.
async fn filled(count: u64) -> (Simulated, Arc<Embedded>) {
    let disk = Simulated::new();
    let store = open(&disk, Path::new("/data"), BUSY).unwrap();
    for number in 0..count {
        add(&store, number).await;
        change_rows(&store, number).await;
    }
    (disk, store)
}

/// Returns the directories of backups that can be opened.
fn backups(disk: &Simulated) -> Vec<PathBuf> {
    let names = disk.rooted(Path::new(BACKUPS)).list("").unwrap_or_default();
    let paths = names.into_iter().map(|name| Path::new(BACKUPS).join(name));
    paths.filter(|path| disk.rooted(path).exists(MANIFEST).unwrap()).collect()
}

/// Asserts that a directory contains exactly the first `count` numbers, and the row of the last one.
async fn has(disk: &Simulated, path: &Path, count: u64) {
    let store = open(disk, path, Pace::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(counted(&store).await, count, "{}", path.display());
    let rows = store.rows(TableName::Keys, None).await.unwrap().unwrap().rows;
    let last = (count - 1).to_string();
    assert_eq!(rows, [(format!("row-{last}"), last)].into(), "{}", path.display());
    assert_eq!(add(&store, count - 1).await, Outcome::Duplicate { score: None });
    assert_eq!(add(&store, count).await, Outcome::Counted { score: None });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_during_a_backup_leaves_it_complete_or_absent() {
    const COUNT: u64 = 40;
    let (disk, store) = filled(COUNT).await;
    store.backup().await.unwrap();
    let crashed = Arc::new(Mutex::new(Vec::new()));
    let (images, seen) = (crashed.clone(), disk.clone());
    disk.on_operation(Box::new(move |number, op| {
        if op.changes() && op.path.starts_with(BACKUPS) {
            for crash in [Crash::Killed, Crash::PowerLoss, Crash::PowerLossInOrder] {
                images.lock().push(seen.crash(number, crash));
            }
        }
    }));
    store.backup().await.unwrap();
    disk.on_operation(Box::new(|_, _| ()));
    let crashed = std::mem::take(&mut *crashed.lock());
    assert!(crashed.len() > 30, "{}", crashed.len());
    let mut finished = 0;
    for image in crashed {
        let found = backups(&image);
        // The first backup was complete before this one began.
        assert!((1..=2).contains(&found.len()), "{found:?}");
        finished += found.len() - 1;
        for path in found.iter().map(PathBuf::as_path).chain([Path::new("/data")]) {
            has(&image, path, COUNT).await;
        }
    }
    assert!(finished > 0, "the last operations come after the manifest");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_during_a_backup_leaves_it_complete_or_absent() {
    let (disk, store) = filled(40).await;
    let (mut count, mut failed, mut made) = (40, 0, 0);
    for fault in [Fault::NoSpace, Fault::Io] {
        for nth in 1.. {
            let before = backups(&disk);
            let operations = Arc::new(AtomicU64::new(0));
            let counter = operations.clone();
            disk.when(1, fault, move |op| {
                op.path.starts_with(BACKUPS) && counter.fetch_add(1, Ordering::Relaxed) + 1 == nth
            });
            let outcome = store.backup().await;
            disk.clear_faults();
            let after = backups(&disk);
            match outcome {
                Ok(backup) => {
                    // Where a link failed, the file was copied.
                    assert_eq!(after.len(), before.len() + 1);
                    has(&disk, &backup.path, count).await;
                    made += 1;
                }
                Err(StoreError::BackupFailed { detail }) => {
                    assert!(detail.contains(BACKUPS), "{detail}");
                    assert_eq!(after, before);
                    failed += 1;
                }
                Err(other) => panic!("{other}"),
            }
            // Not in every iteration: without a write in between, the log needs no further segment, whose creation
            // takes a while.
            if nth % 5 == 0 {
                assert_eq!(add(&store, count).await, Outcome::Counted { score: None });
                change_rows(&store, count).await;
                count += 1;
            }
            if operations.load(Ordering::Relaxed) < nth {
                break;
            }
        }
    }
    assert!(failed > 10 && made > 2, "{failed} failed, {made} made");
    drop(store);
    has(&disk, Path::new("/data"), count).await;
}
