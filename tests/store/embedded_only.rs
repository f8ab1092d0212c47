//! Tests of the properties that only the embedded store has: durability, locking, damage, files.

mod batches;
mod damage;
mod passing;
mod restarts;
mod rows;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rolltop::board::{Amount, Board, BoardName, Change, Definition, EventId, Subject, Timestamp};
use rolltop::store::embedded::{Durability, Embedded, EmbeddedOptions, Pace};
use rolltop::store::{
    Batch, ClockMode, Defined, Increment, Lifecycle, Outcome, Rejection, Result, SlotRange, Store, StoreError,
};

use crate::given::{Units, new_board};
use crate::waiting::Wait;

const START: &str = "2026-01-01T00:30:00Z";

fn t(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap()
}

fn name(text: &str) -> BoardName {
    BoardName::parse(text).unwrap()
}

fn options(path: &Path, durability: Durability) -> EmbeddedOptions {
    let clock = ClockMode::Simulated(t(START));
    EmbeddedOptions { durability, ..EmbeddedOptions::new(path, clock) }
}

async fn open(path: &Path) -> Result<Arc<Embedded>> {
    Embedded::open(options(path, Durability::EverySecond)).await
}

async fn define(store: &Embedded, board: &str, metric: &str, slot: &str) -> Arc<Board> {
    let definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
    match store.define(new_board(&name(board), &definition)).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => board,
    }
}

fn increment(who: &str, amount: i64, at: Option<&str>, id: Option<&str>) -> Increment {
    let id = id.map(|id| EventId::parse(id).unwrap());
    Increment {
        other: None,
        subject: subject(who),
        change: Change::Amount(Amount(amount)),
        retract: false,
        at: at.map(t),
        id,
        period: None,
        event: None,
    }
}

async fn add(store: &Embedded, board: &Arc<Board>, increments: Vec<Increment>) -> Vec<Outcome> {
    store.add(board, Batch { increments, return_scores: false }).await.unwrap().outcomes
}

/// Returns everything that can be read from a board, except what is still retiring.
async fn readable(store: &Embedded, board: &Arc<Board>) -> String {
    let page = store.page(&board.main(), 0, 100_000).await.unwrap();
    let mut text = format!("{:?} {} {:?}\n", page.frame.window, page.total, page.items);
    for item in &page.items {
        text += &format!("{:?}\n", store.standing(&board.main(), &item.subject).await.unwrap().slots);
    }
    let status = store.status(&board.main()).await.unwrap();
    text + &format!("{:?} {:?}", status.slots, status.events)
}

/// Returns settings with small segments, and with checkpoints of every board that has entries in the log.
fn eager() -> Pace {
    let tick = Duration::from_millis(1);
    Pace { log_bytes: 1, segment_bytes: 16 << 10, age: Duration::ZERO, tick, ..Pace::default() }
}

async fn open_eager(path: &Path) -> Arc<Embedded> {
    Embedded::open_at_pace(options(path, Durability::EverySecond), eager()).await.unwrap()
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = Wait::begin(what);
    while !holds() {
        wait.rest("it does not hold").await;
    }
}

/// Returns the manifest of a data directory.
fn manifest(folder: &Path) -> serde_json::Value {
    let text = fs::read_to_string(folder.join("MANIFEST")).unwrap();
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
}

/// Returns the number of files of sealed ids that the manifest names for the first board.
fn named_ids(folder: &Path) -> usize {
    manifest(folder)["boards"][0]["ids"].as_array().map_or(0, Vec::len)
}

/// Returns the names in a directory of a data directory.
fn names(folder: &Path, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(folder.join(directory)).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// Reads the files of a data directory, by path, without the zeros of segments that are allocated ahead.
fn contents(folder: &Path) -> Contents {
    loop {
        // The files that a manifest names stay as long as it is the current one. Others may be deleted at any time.
        let manifest = fs::read(folder.join("MANIFEST")).unwrap();
        let mut found = BTreeMap::new();
        for directory in ["log", "checkpoints", "ids"] {
            for name in names(folder, directory) {
                let path = Path::new(directory).join(name);
                match fs::read(folder.join(&path)) {
                    Ok(bytes) if directory == "log" => drop(found.insert(path, without_zeros(bytes))),
                    Ok(bytes) => drop(found.insert(path, bytes)),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
                }
            }
        }
        if fs::read(folder.join("MANIFEST")).unwrap() == manifest {
            found.insert("MANIFEST".into(), manifest);
            return found;
        }
    }
}

fn without_zeros(mut bytes: Vec<u8>) -> Vec<u8> {
    // By pages, because byte by byte 32 MiB would take long without optimization.
    while bytes.ends_with(&[0; 4_096]) {
        bytes.truncate(bytes.len() - 4_096);
    }
    // The last frame may end with zeros that belong to it.
    bytes.resize((bytes.len() + 64).next_multiple_of(8), 0);
    bytes
}

fn write_contents(contents: &Contents) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for directory in ["log", "checkpoints", "ids"] {
        fs::create_dir(to.path().join(directory)).unwrap();
    }
    for (path, bytes) in contents {
        fs::write(to.path().join(path), bytes).unwrap();
    }
    to
}

/// Copies the files as they are at this moment, as a crash would leave them. The copy is not locked, because a lock
/// belongs to a process.
fn crash_copy(from: &Path) -> tempfile::TempDir {
    write_contents(&contents(from))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_restores_everything() {
    let folder = tempfile::tempdir().unwrap();
    let expected = {
        let store = open(folder.path()).await.unwrap();
        let board = define(&store, "b", "SUM(3h, sale, amount, seller)", "1h").await;
        for hour in 1..=3 {
            store.set_clock(t(&format!("2026-01-01T0{hour}:30:00Z"))).await.unwrap();
            let sales = (0..300).map(|i| increment(&format!("seller/{i} ü"), hour * 1_000 - i, None, None)).collect();
            add(&store, &board, sales).await;
        }
        add(&store, &board, vec![increment("seller/1 ü", 7, None, Some("e-1"))]).await;
        store.remove(&board, &subject("seller/2 ü")).await.unwrap();
        add(&store, &board, vec![increment("seller/3 ü", 5, Some("2026-01-01T02:10:00Z"), None)]).await;
        // The slot of 01:00 expires and stays partly retired.
        store.set_clock(t("2026-01-01T04:10:00Z")).await.unwrap();
        let frame = store.page(&board.main(), 0, 1).await.unwrap().frame;
        assert_eq!(frame.retiring, 1);
        // An advance is written without waiting. The acknowledged write after it ensures that it is on the disk.
        add(&store, &board, vec![increment("seller/4 ü", 1, None, None)]).await;
        let mut steps = 0;
        let copy = crash_copy(folder.path());
        while !store.retire_step(&board.main()).await.unwrap().done {
            steps += 1;
            assert!(steps < 100);
        }
        let expected = readable(&store, &board).await;
        store.close().await.unwrap();

        // A store that crashed while retiring has finished retiring when it is open again.
        let crashed = open(copy.path()).await.unwrap();
        let board = crashed.board(&name("b")).await.unwrap().unwrap();
        assert_eq!(readable(&crashed, &board).await, expected);
        expected
    };
    for durability in [Durability::Always, Durability::EverySecond, Durability::Off] {
        let store = Embedded::open(options(folder.path(), durability)).await.unwrap();
        let board = store.board(&name("b")).await.unwrap().unwrap();
        assert_eq!(board.definition().metric.to_string(), "SUM(3h, sale, amount, seller)");
        assert_eq!(store.now().await.unwrap(), t("2026-01-01T04:10:00Z"));
        assert_eq!(readable(&store, &board).await, expected);
        assert_eq!(store.page(&board.main(), 0, 1).await.unwrap().frame.retiring, 0);
        let again = add(&store, &board, vec![increment("seller/1 ü", 7, None, Some("e-1"))]).await;
        assert_eq!(again, [Outcome::Duplicate { score: None }]);
        assert_eq!(
            add(&store, &board, vec![increment("x", 1, Some("2026-01-01T01:59:59Z"), None)]).await,
            [Outcome::Rejected(Rejection::TooLate)]
        );
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_loses_no_acknowledged_write() {
    for durability in [Durability::Always, Durability::EverySecond] {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(options(folder.path(), durability)).await.unwrap();
        let board = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
        for round in 1..=40 {
            let likes = (0..round).map(|i| increment(&format!("p{i}"), 1, None, None)).collect();
            add(&store, &board, likes).await;
            if round % 10 == 0 {
                let copy = crash_copy(folder.path());
                let crashed = Embedded::open(options(copy.path(), durability)).await.unwrap();
                let other = crashed.board(&name("b")).await.unwrap().unwrap();
                assert_eq!(readable(&crashed, &other).await, readable(&store, &board).await);
            }
        }
        // The store is dropped, not closed.
        let expected = readable(&store, &board).await;
        drop(store);
        let store = Embedded::open(options(folder.path(), durability)).await.unwrap();
        assert_eq!(readable(&store, &board).await, expected);
    }
}

#[tokio::test]
async fn a_data_directory_is_locked_by_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await.unwrap();
    match open(folder.path()).await {
        Err(StoreError::DataDirectory { detail }) => {
            assert!(detail.contains(&folder.path().display().to_string()) && detail.contains("another process"));
        }
        other => panic!("{other:?}"),
    }
    drop(store);
    open(folder.path()).await.unwrap();
}

#[tokio::test]
async fn a_store_keeps_its_clock_mode_and_its_later_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await.unwrap();
    store.set_clock(t("2026-05-01T00:00:00Z")).await.unwrap();
    assert!(matches!(
        store.set_clock(t("2026-04-01T00:00:00Z")).await,
        Err(StoreError::ClockBackward { now }) if now == t("2026-05-01T00:00:00Z")
    ));
    drop(store);
    let system = EmbeddedOptions { clock: ClockMode::System, ..options(folder.path(), Durability::Always) };
    assert!(matches!(Embedded::open(system).await, Err(StoreError::ClockModeMismatch { .. })));
    assert_eq!(open(folder.path()).await.unwrap().now().await.unwrap(), t("2026-05-01T00:00:00Z"));
}

#[tokio::test]
async fn a_removed_board_stays_removed_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await.unwrap();
    let old = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
    add(&store, &old, vec![increment("a", 5, None, Some("id"))]).await;
    assert!(store.undefine(&old).await.unwrap());
    assert!(!store.undefine(&old).await.unwrap());
    let new = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
    assert!(matches!(store.page(&old.main(), 0, 1).await, Err(StoreError::BoardChanged)));
    assert_eq!(add(&store, &new, vec![increment("a", 1, None, Some("id"))]).await, [Outcome::Counted { score: None }]);
    drop(store);
    let store = open(folder.path()).await.unwrap();
    let board = store.board(&name("b")).await.unwrap().unwrap();
    assert_eq!(board.generation(), new.generation());
    assert_eq!(store.count(&board.main(), &subject("a"), SlotRange::Slots(24)).await.unwrap().units(), 1);
}

#[tokio::test]
async fn a_data_directory_of_an_older_layout_is_refused_unchanged() {
    for old in ["database", "watermark"] {
        let folder = tempfile::tempdir().unwrap();
        match old {
            "database" => fs::create_dir(folder.path().join(old)).unwrap(),
            file => fs::write(folder.path().join(file), b"8").unwrap(),
        }
        match open(folder.path()).await {
            Err(StoreError::DataDirectory { detail }) => {
                assert!(detail.contains(&folder.path().display().to_string()), "{detail}");
                assert!(detail.contains("version"), "{detail}");
            }
            other => panic!("{other:?}"),
        }
        assert!(folder.path().join(old).exists() && !folder.path().join("MANIFEST").exists());
    }
}
