//! Tests of the store on a simulated disk that crashes, fills up, fails and hangs at every operation.
//!
//! A script of writes, each with an id and with a change of a row, is run against a store with tiny segments and
//! constant checkpoints. Whatever the disk did, the store must open again, must contain the result of a prefix of the
//! script that includes everything acknowledged, and must count every write exactly once when the whole script is sent
//! again.
//!
//! `ROLLTOP_CRASH_POINTS=<n>` sets how many points of each kind are tried, 120 by default; 0 stands for all.

mod crashes;
#[path = "../../../../../tests/support/drawn.rs"]
mod drawn;
mod editions;
mod faults;
mod importing;
mod movement;
mod passing;
mod seasons;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join;

use crate::board::{Amount, Board, BoardName, Change, Counted, Definition, EventId, Subject, Timestamp, Value};
use crate::store::embedded::options::Pace;
use crate::store::embedded::storage::files::simulated::Simulated;
use crate::store::embedded::tests::new_board;
use crate::store::embedded::{Durability, Embedded, EmbeddedOptions};
use crate::store::{Batch, ClockMode, Defined, Increment, Lifecycle, Outcome, Result, Store, StoreError, TableName};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// The number of writes in the script.
const WRITES: usize = 60;

fn pace() -> Pace {
    Pace {
        log_bytes: 1_500,
        segment_bytes: 4_096,
        age: Duration::from_secs(3_600),
        unknown_after: Duration::from_millis(300),
        tick: Duration::from_millis(1),
    }
}

fn open(disk: &Simulated, durability: Durability) -> Result<Arc<Embedded>> {
    let options = EmbeddedOptions { durability, ..EmbeddedOptions::new("/data", ClockMode::Simulated(START)) };
    Embedded::open_on(Arc::new(disk.clone()), options, pace())
}

/// The boards of the script: ranked sums, distinct values, and sums in several windows.
const BOARDS: [(&str, &str, &[&str]); 3] = [
    ("sums", "SUM(4h, sale, amount, seller)", &[]),
    ("seen", "COUNT_DISTINCT(4h, login, device, user)", &[]),
    ("tabs", "SUM(4h, sale, amount, seller)", &["10m/1m", "all"]),
];
/// The board of each window.
const BOARD_OF_WINDOW: [usize; 5] = [0, 1, 2, 2, 2];

async fn define(store: &Embedded) -> Result<Vec<Arc<Board>>> {
    let mut boards = Vec::new();
    for (name, metric, windows) in BOARDS {
        let windows = windows.iter().map(|window| window.parse().unwrap()).collect();
        let definition = Definition { windows, ..Definition::new(metric.parse().unwrap(), "1h".parse().unwrap()) };
        boards.push(match store.define(new_board(&BoardName::parse(name).unwrap(), &definition)).await? {
            Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => board,
        });
    }
    Ok(boards)
}

fn subject(number: usize) -> Subject {
    Subject::parse(&format!("subject-{}", number % 5)).unwrap()
}

/// Returns the batch that write `number` sends to each board.
fn batch(board: usize, number: usize) -> Batch {
    let change = match board {
        1 => Change::Seen(Counted::parse(&format!("user-{number}")).unwrap()),
        _ => Change::Amount(Amount(1 << (number % 20))),
    };
    let id = Some(EventId::parse(&format!("write-{number}")).unwrap());
    let increment = Increment {
        other: None,
        subject: subject(number),
        change,
        retract: false,
        at: None,
        id,
        period: None,
        event: None,
    };
    Batch { increments: vec![increment], return_scores: false }
}

/// Returns the id of the row that write `number` changes, and its text before and after. A text is never written twice.
/// Every second write changes the same row, and the others one of four, so that some rows are often in the part of the
/// log that is read and others often only in the manifest. Each row is added, replaced, removed and added again.
fn row_change(number: usize) -> (String, Option<String>, Option<String>) {
    let (row, every) = if number.is_multiple_of(2) { (0, 2) } else { (1 + number / 2 % 4, 8) };
    let text = |number: usize| (number / every % 4 != 2).then(|| format!("text-{number}"));
    (format!("row-{row}"), number.checked_sub(every).and_then(text), text(number))
}

/// Returns the rows after the first `count` writes.
fn expected_rows(count: usize) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    for number in 0..count {
        match row_change(number) {
            (id, _, Some(text)) => rows.insert(id, text),
            (id, _, None) => rows.remove(&id),
        };
    }
    rows
}

async fn rows(store: &Embedded) -> BTreeMap<String, String> {
    store.rows(TableName::Keys, None).await.unwrap().unwrap().rows
}

/// Changes a row, unless it was changed already.
async fn change_row(store: &Embedded, number: usize) -> Result<()> {
    let (id, from, to) = row_change(number);
    store.change_row(TableName::Keys, &id, from.as_deref(), to.as_deref()).await.map(drop)
}

/// Sends one write to each board and changes a row. Returns how many writes to boards were duplicates.
async fn send(store: &Embedded, boards: &[Arc<Board>], number: usize) -> Result<usize> {
    let (duplicates, changed) = join(send_to_boards(store, boards, number), change_row(store, number)).await;
    changed.and(duplicates)
}

async fn send_to_boards(store: &Embedded, boards: &[Arc<Board>], number: usize) -> Result<usize> {
    let batches = boards.iter().enumerate().map(|(at, board)| (board.clone(), batch(at, number))).collect();
    let mut duplicates = 0;
    for added in store.add_all(batches).await {
        match added?.outcomes[..] {
            [Outcome::Counted { .. }] => {}
            [Outcome::Duplicate { .. }] => duplicates += 1,
            ref other => panic!("{other:?}"),
        }
    }
    Ok(duplicates)
}

/// Returns the store's score of every subject in every window of every board, by window and subject.
async fn state(store: &Embedded, boards: &[Arc<Board>]) -> BTreeMap<(usize, Subject), i64> {
    let mut found = BTreeMap::new();
    for (at, window) in boards.iter().flat_map(Board::each_window).enumerate() {
        let page = store.page(&window, 0, 1_000).await.unwrap();
        for item in page.items {
            let Value::Exact(Amount(score)) = item.score else { panic!("{:?}", item.score) };
            found.insert((at, item.subject), score);
        }
    }
    found
}

/// Returns the result of the first `count` writes.
fn expected(count: usize) -> BTreeMap<(usize, Subject), i64> {
    let mut state = BTreeMap::new();
    for (window, board) in BOARD_OF_WINDOW.into_iter().enumerate() {
        for number in 0..count {
            let amount = if board == 1 { 1 } else { 1 << (number % 20) };
            *state.entry((window, subject(number))).or_default() += amount;
        }
    }
    state
}

/// Checks that a store contains prefixes of the script with at least `acknowledged` writes, the same in all windows of
/// a board, and that sending everything again counts each write once.
async fn check(store: &Embedded, acknowledged: usize, what: &str) {
    let boards = define(store).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = state(store, &boards).await;
    let of = |state: &BTreeMap<(usize, Subject), i64>, board: usize| {
        let of_board = state.iter().filter(|((window, _), _)| BOARD_OF_WINDOW[*window] == board);
        of_board.map(|(place, n)| (place.clone(), *n)).collect::<Vec<_>>()
    };
    let prefix = |board: usize| (0..=WRITES).find(|count| of(&expected(*count), board) == of(&found, board));
    let counts: Vec<Option<usize>> = (0..BOARDS.len()).map(prefix).collect();
    let found_rows = rows(store).await;
    let Some(changed_rows) = (acknowledged..=WRITES).find(|count| expected_rows(*count) == found_rows) else {
        panic!("{what}: {acknowledged} acknowledged, found the rows {found_rows:?}")
    };
    let Some(counts) = counts.iter().copied().collect::<Option<Vec<usize>>>() else {
        panic!("{what}: not a prefix of the script in {counts:?}: {found:?}")
    };
    assert!(counts.iter().all(|count| *count >= acknowledged), "{what}: {acknowledged} acknowledged, {counts:?} found");
    let mut duplicates = 0;
    for number in 0..WRITES {
        // A change of a row that was removed later would be made again. It is only made if it was not made before, so
        // that after a further crash the rows are those of a prefix again.
        let sent = match number < changed_rows {
            true => send_to_boards(store, &boards, number).await,
            false => send(store, &boards, number).await,
        };
        duplicates += sent.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert_eq!(duplicates, counts.iter().sum::<usize>(), "{what}: a retry was judged wrongly");
    assert_eq!(state(store, &boards).await, expected(WRITES), "{what}: after sending everything again");
    assert_eq!(rows(store).await, expected_rows(WRITES), "{what}: rows after sending everything again");
}

/// Returns the number of points to try, of `all`.
fn points(all: usize) -> usize {
    let wanted = std::env::var("ROLLTOP_CRASH_POINTS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
    if wanted == 0 { all } else { all.min(wanted) }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// Runs the script until a write fails. `acknowledged` is set to the number of writes acknowledged.
async fn run(store: &Embedded, boards: &[Arc<Board>], acknowledged: &AtomicUsize) -> Result<(), StoreError> {
    for number in 0..WRITES {
        send(store, boards, number).await?;
        acknowledged.store(number + 1, Ordering::SeqCst);
    }
    Ok(())
}
