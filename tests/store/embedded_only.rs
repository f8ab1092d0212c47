//! What only the embedded store promises: durability, locking, damage.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rolltop::board::{Amount, Board, BoardName, Change, Definition, EventId, Subject, Timestamp};
use rolltop::store::embedded::{Durability, Embedded, EmbeddedOptions};
use rolltop::store::{
    Batch, ClockMode, Defined, Increment, Limits, Outcome, Reach, Rejection, Result, Store, StoreError,
};

use crate::given::Units;

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
    EmbeddedOptions { path: path.to_owned(), clock, durability, limits: Limits::default() }
}

async fn open(path: &Path) -> Result<Arc<Embedded>> {
    Embedded::open(options(path, Durability::EverySecond)).await
}

async fn define(store: &Embedded, board: &str, metric: &str, slot: &str) -> Arc<Board> {
    let definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
    match store.define(&name(board), &definition).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => board,
    }
}

fn increment(who: &str, amount: i64, at: Option<&str>, id: Option<&str>) -> Increment {
    let id = id.map(|id| EventId::parse(id).unwrap());
    Increment { subject: subject(who), change: Change::Amount(Amount(amount)), retract: false, at: at.map(t), id }
}

async fn add(store: &Embedded, board: &Arc<Board>, increments: Vec<Increment>) -> Vec<Outcome> {
    store.add(board, Batch { increments, return_scores: false }).await.unwrap().outcomes
}

/// Everything that can be read of a board, but for what is still retiring.
async fn readable(store: &Embedded, board: &Arc<Board>) -> String {
    let page = store.page(board, 0, 100_000).await.unwrap();
    let mut text = format!("{:?} {} {:?}\n", page.frame.window, page.total, page.items);
    for item in &page.items {
        text += &format!("{:?}\n", store.standing(board, &item.subject).await.unwrap().slots);
    }
    text + &format!("{:?}", store.status(board).await.unwrap().slots)
}

/// The files of a data directory, each by its path in it; without the zeros to which the log is allocated ahead.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    // The watermark first: a raised one must not meet a log that was read before.
    let mark = fs::read(folder.join("watermark")).ok().map(|bytes| ("watermark".into(), bytes));
    let mut found: Vec<_> = mark.into_iter().collect();
    let mut folders = vec![folder.join("database")];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let mut bytes = fs::read(&path).unwrap();
                // By pages: byte by byte, 64 MiB take a while without optimisation.
                while bytes.len() > 4096 && bytes.ends_with(&[0; 4096]) {
                    bytes.truncate(bytes.len() - 4096);
                }
                while bytes.len() > 1 && bytes.ends_with(&[0]) && path.extension().is_some_and(|e| e == "jnl") {
                    bytes.pop();
                }
                found.push((path.strip_prefix(folder).unwrap().to_owned(), bytes));
            }
        }
    }
    found
}

fn write_contents(contents: &[(PathBuf, Vec<u8>)]) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for (path, bytes) in contents {
        let path = to.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    to
}

/// What a crash leaves: the files as they are at this moment. The lock is the process's, so a copy is free.
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
        // The slot of 01:00 expires and is left half retired.
        store.set_clock(t("2026-01-01T04:10:00Z")).await.unwrap();
        let frame = store.page(&board, 0, 1).await.unwrap().frame;
        assert_eq!(frame.retiring, 1);
        // Advancing is noted without waiting; an acknowledged write behind it says that it is on the disk.
        add(&store, &board, vec![increment("seller/4 ü", 1, None, None)]).await;
        let mut steps = 0;
        let copy = crash_copy(folder.path());
        while !store.retire_step(&board).await.unwrap().done {
            steps += 1;
            assert!(steps < 100);
        }
        let expected = readable(&store, &board).await;
        store.close().await.unwrap();

        // What crashed in the middle of retiring opens with the retiring finished.
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
        assert_eq!(store.page(&board, 0, 1).await.unwrap().frame.retiring, 0);
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
async fn a_crash_loses_nothing_acknowledged() {
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
        // Dropped, not closed.
        let expected = readable(&store, &board).await;
        drop(store);
        let store = Embedded::open(options(folder.path(), durability)).await.unwrap();
        assert_eq!(readable(&store, &board).await, expected);
    }
}

#[tokio::test]
async fn a_folder_is_one_process_s() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await.unwrap();
    match open(folder.path()).await {
        Err(StoreError::Setup { detail }) => {
            assert!(detail.contains(&folder.path().display().to_string()) && detail.contains("--data-dir"), "{detail}");
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
async fn a_removed_board_stays_removed_and_a_new_one_of_its_name_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await.unwrap();
    let old = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
    add(&store, &old, vec![increment("a", 5, None, Some("id"))]).await;
    assert!(store.undefine(&old).await.unwrap());
    assert!(!store.undefine(&old).await.unwrap());
    let new = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
    assert!(matches!(store.page(&old, 0, 1).await, Err(StoreError::BoardChanged)));
    assert_eq!(add(&store, &new, vec![increment("a", 1, None, Some("id"))]).await, [Outcome::Counted { score: None }]);
    drop(store);
    let store = open(folder.path()).await.unwrap();
    let board = store.board(&name("b")).await.unwrap().unwrap();
    assert_eq!(board.generation(), new.generation());
    assert_eq!(store.count(&board, &subject("a"), Reach::Slots(24)).await.unwrap().units(), 1);
}

/// Opens a damaged copy. Sound means: everything acknowledged is there. `None` stands for a clear error.
async fn open_damaged(folder: &Path, expected: &str) -> Option<()> {
    match open(folder).await {
        Ok(store) => {
            let board = store.board(&name("b")).await.unwrap().expect("the board is lost, silently");
            assert_eq!(readable(&store, &board).await, expected, "something is lost, silently");
            store.close().await.unwrap();
            Some(())
        }
        Err(StoreError::Corrupt { detail }) => {
            assert!(detail.contains(&folder.display().to_string()) && detail.contains("backup"), "{detail}");
            None
        }
        Err(other) => panic!("not a clear error: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_an_error_or_harmless_and_never_silent() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(options(folder.path(), Durability::EverySecond)).await.unwrap();
    let board = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
    for round in 0..30 {
        let likes = (0..20).map(|i| increment(&format!("post-{}", i * round % 37), 1 + i, None, None)).collect();
        add(&store, &board, likes).await;
    }
    let expected = readable(&store, &board).await;
    store.close().await.unwrap();
    drop(store);

    let sound = contents(folder.path());
    let (mut noticed, mut harmless) = (0, 0);
    for (index, (path, bytes)) in sound.iter().enumerate() {
        let positions = if path.extension().is_some_and(|e| e == "jnl") { 60 } else { 12 };
        for at in (0..bytes.len()).step_by((bytes.len() / positions).max(1)) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let mut zeroed = bytes.clone();
            zeroed[at..].fill(0);
            for damaged in [flipped, bytes[..at].to_vec(), zeroed] {
                let mut copy = sound.clone();
                copy[index].1 = damaged;
                match open_damaged(write_contents(&copy).path(), &expected).await {
                    Some(()) => harmless += 1,
                    None => noticed += 1,
                }
            }
        }
    }
    assert!(noticed > 50, "{noticed} noticed, {harmless} harmless");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_can_be_accepted_by_deleting_the_watermark() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(options(folder.path(), Durability::Always)).await.unwrap();
    let board = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
    for _ in 0..20 {
        add(&store, &board, vec![increment("a", 1, None, None)]).await;
    }
    store.close().await.unwrap();
    drop(store);
    let contents = contents(folder.path());
    let (log, bytes) = contents.iter().find(|(path, _)| path.extension().is_some_and(|e| e == "jnl")).unwrap();
    fs::write(folder.path().join(log), &bytes[..bytes.len() - 200]).unwrap();
    let detail = match open(folder.path()).await {
        Err(StoreError::Corrupt { detail }) => detail,
        other => panic!("{other:?}"),
    };
    assert!(detail.contains("reached 22") && detail.contains("watermark"), "{detail}");
    fs::remove_file(folder.path().join("watermark")).unwrap();
    let store = open(folder.path()).await.unwrap();
    let count = store.count(&board, &subject("a"), Reach::Slots(1)).await.unwrap().units();
    assert!((1..20).contains(&count), "{count:?}");
    add(&store, &board, vec![increment("a", 1, None, None)]).await;
    store.close().await.unwrap();
    drop(store);
    let store = open(folder.path()).await.unwrap();
    assert_eq!(store.count(&board, &subject("a"), Reach::Slots(1)).await.unwrap().units(), count + 1);
}
