//! Tests of when a call returns (after the log contains its result and everything that the result relies on), and of
//! what it returns when the disk fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use super::*;
use crate::board::Value;
use crate::store::StoreError;
use crate::store::embedded::storage::files::simulated::{DiskOperation, Fault, OperationKind};
use crate::store::embedded::tests::new_board;

/// The bytes of a frame without operations.
const EMPTY_FRAME: u64 = 32;

/// Returns whether an operation writes operations to the log.
fn is_frame(op: &DiskOperation) -> bool {
    op.kind == OperationKind::Write && op.path.contains("/log/") && op.bytes > EMPTY_FRAME
}

/// Creates a disk that counts the frames written.
fn counting() -> (Simulated, Arc<AtomicUsize>) {
    let (disk, frames) = (Simulated::new(), Arc::new(AtomicUsize::new(0)));
    let counter = frames.clone();
    disk.on_operation(Box::new(move |_, op| {
        counter.fetch_add(usize::from(is_frame(op)), Ordering::SeqCst);
    }));
    (disk, frames)
}

/// Keeps frames from being written until the disk is [opened](open_gate).
fn shut_gate(disk: &Simulated) {
    disk.when(u32::MAX, Fault::Hang, is_frame);
}

fn open_gate(disk: &Simulated) {
    disk.clear_faults();
    disk.release();
}

/// Polls a call more often than the call checks for its result. Returns `true` if it is still waiting, and panics if it
/// has a result.
fn is_waiting<F: Future<Output: std::fmt::Debug> + Unpin>(call: &mut F) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    (0..20).all(|_| match std::pin::Pin::new(&mut *call).poll(&mut context) {
        Poll::Pending => true,
        Poll::Ready(answer) => panic!("it does not wait: {answer:?}"),
    })
}

/// Waits until a counter has reached a count.
async fn reached(counter: &AtomicUsize, count: usize) {
    let wait = async {
        while counter.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("it is reached");
}

#[tokio::test]
async fn results_wait_until_earlier_writes_are_in_the_log() {
    let disk = Simulated::new();
    let store = open(&disk, usual()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let like = || Box::pin(add(&store, &board, vec![increment(2, 1, None, Some(1))]));
    add(&store, &board, vec![increment(1, 5, None, None)]).await.unwrap();

    shut_gate(&disk);
    let (name, definition) = (BoardName::parse("new").unwrap(), board.definition().clone());
    let (mut first, mut again) =
        (store.define(new_board(&name, &definition)), store.define(new_board(&name, &definition)));
    assert!(is_waiting(&mut first));
    assert!(is_waiting(&mut again), "the board is not in the log yet");
    let one = subject(1);
    let (mut removed, mut gone) = (store.remove(&board, &one), store.remove(&board, &one));
    assert!(is_waiting(&mut removed));
    assert!(is_waiting(&mut gone), "the removal is not in the log yet");
    let (mut counted, mut repeated) = (like(), like());
    assert!(is_waiting(&mut counted));
    assert!(is_waiting(&mut repeated), "what it repeats is not in the log yet");

    open_gate(&disk);
    assert!(matches!(first.await, Ok(Defined::Created(_))) && matches!(again.await, Ok(Defined::Unchanged(_))));
    assert_eq!((removed.await.unwrap().live_slots, gone.await.unwrap().live_slots), (1, 0));
    assert_eq!(counted.await.unwrap(), [Outcome::Counted { score: None }]);
    assert_eq!(repeated.await.unwrap(), [Outcome::Duplicate { score: None }]);
    assert_eq!(like().await.unwrap(), [Outcome::Duplicate { score: None }]);
}

/// Tests that a write that changes nothing waits for the earlier write on which its result relies.
#[tokio::test]
async fn a_write_without_effect_waits_for_the_write_it_relies_on() {
    for metric in ["MAX(3h, sale, amount, seller)", "APPROX_COUNT_DISTINCT(3h, login, device, user)"] {
        let disk = Simulated::new();
        let store = open(&disk, usual()).unwrap();
        let board = define(&store, metric).await;
        let item = || Increment { change: change(&board, 7), ..increment(1, 0, None, None) };
        let call = || Box::pin(add(&store, &board, vec![item()]));
        shut_gate(&disk);
        let (mut first, mut again) = (call(), call());
        assert!(is_waiting(&mut first));
        assert!(is_waiting(&mut again), "what it relies on is not in the log yet");
        open_gate(&disk);
        assert_eq!(again.await.unwrap(), first.await.unwrap());
    }
}

/// Has the log write a frame that hangs, and returns the call that waits for it. All that is appended before the disk is
/// released gets into one frame.
async fn keep_the_log_busy<'a>(
    disk: &Simulated,
    frames: &AtomicUsize,
    store: &'a Embedded,
    board: &'a Arc<Board>,
) -> impl Future<Output = Result<Vec<Outcome>>> + 'a {
    let before = frames.load(Ordering::SeqCst);
    shut_gate(disk);
    let item = Increment { change: change(board, 7), ..increment(2, 0, None, None) };
    let mut busy = Box::pin(add(store, board, vec![item]));
    assert!(is_waiting(&mut busy));
    reached(frames, before + 1).await;
    busy
}

#[tokio::test]
async fn writes_to_several_boards_share_a_frame_and_fail_separately() {
    let (disk, frames) = counting();
    let store = open(&disk, Pace { unknown_after: Duration::from_secs(2), ..usual() }).unwrap();
    let mut boards = Vec::new();
    for (nth, definition) in every_definition().iter().enumerate() {
        match store.define(new_board(&BoardName::parse(&format!("b{nth}")).unwrap(), definition)).await.unwrap() {
            Defined::Created(board) => boards.push(board),
            other => panic!("{other:?}"),
        }
    }
    // For one board the store has a different generation, as if the board had been removed.
    let gone = Board::new(boards[3].name().clone(), Generation(1), boards[3].definition().clone()).unwrap();
    boards[3] = Arc::new(gone);
    let batches = |id: Option<u8>| {
        let batch = |board: &Arc<Board>| {
            let item = Increment { change: change(board, 7), ..increment(1, 0, None, id) };
            (board.clone(), Batch { increments: vec![item], return_scores: false })
        };
        boards.iter().map(batch).collect::<Vec<_>>()
    };
    let before = frames.load(Ordering::SeqCst);
    let busy = keep_the_log_busy(&disk, &frames, &store, &boards[0]).await;
    let mut all = store.add_all(batches(Some(1)));
    assert!(is_waiting(&mut all), "all is appended, and waits for the disk");
    open_gate(&disk);
    busy.await.unwrap();
    let mut all = Some(all);
    for expected in [Outcome::Counted { score: None }, Outcome::Duplicate { score: None }] {
        let added = match all.take() {
            Some(all) => all.await,
            None => store.add_all(batches(Some(1))).await,
        };
        for (nth, added) in added.into_iter().enumerate() {
            match added {
                Err(StoreError::BoardChanged) => assert_eq!(nth, 3),
                added => assert_eq!(added.unwrap().outcomes, [expected]),
            }
        }
        assert_eq!(frames.load(Ordering::SeqCst), before + 2, "all in one frame, and duplicates in none");
    }
    let busy = keep_the_log_busy(&disk, &frames, &store, &boards[0]).await;
    let mut all = store.add_all(batches(None));
    assert!(is_waiting(&mut all), "all is appended before the log fails");
    disk.clear_faults();
    disk.when(u32::MAX, Fault::NoSpace, |op| op.path.contains("/log/"));
    disk.release();
    assert!(matches!(busy.await, Err(StoreError::TimedOut { .. })), "its frame is not written to the end");
    for (nth, added) in all.await.into_iter().enumerate() {
        match added {
            Err(StoreError::BoardChanged) => assert_eq!(nth, 3),
            Err(StoreError::TimedOut { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    while store.check().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for (nth, added) in store.add_all(batches(None)).await.into_iter().enumerate() {
        match added {
            Err(StoreError::BoardChanged) => assert_eq!(nth, 3),
            Err(StoreError::ReadOnly { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn while_the_log_fails_writes_are_refused_before_memory_changes() {
    let disk = Simulated::new();
    let store = open(&disk, Pace { unknown_after: Duration::from_millis(200), ..usual() }).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    add(&store, &board, vec![increment(1, 5, None, None)]).await.unwrap();
    store.check().await.unwrap();

    disk.when(u32::MAX, Fault::NoSpace, |op| op.path.contains("/log/"));
    // The write is in memory when its frame fails, and stays there.
    assert!(matches!(
        add(&store, &board, vec![increment(1, 1, None, Some(1))]).await,
        Err(StoreError::TimedOut { .. })
    ));
    let refused = |error: StoreError| match error {
        StoreError::ReadOnly { reason } => assert!(reason.contains("log"), "{reason}"),
        other => panic!("{other:?}"),
    };
    refused(add(&store, &board, vec![increment(1, 1, None, None)]).await.unwrap_err());
    refused(store.remove(&board, &subject(1)).await.unwrap_err());
    refused(store.undefine(&board).await.unwrap_err());
    refused(store.define(new_board(&BoardName::parse("new").unwrap(), board.definition())).await.unwrap_err());
    refused(store.set_clock(START.plus_millis(HOUR)).await.unwrap_err());
    refused(store.check().await.unwrap_err());
    assert_eq!(store.now().await.unwrap(), START);
    let score = |standing: crate::store::Standing| standing.score;
    assert_eq!(score(store.standing(&board.main(), &subject(1)).await.unwrap()), Some(Value::Exact(Amount(6))));

    disk.clear_faults();
    let resumed = async {
        while store.check().await.is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), resumed).await.expect("writes resume");
    assert_eq!(
        add(&store, &board, vec![increment(1, 1, None, Some(1))]).await.unwrap(),
        [Outcome::Duplicate { score: None }]
    );
    store.close().await.unwrap();
    drop(store);
    let store = open(&disk, usual()).unwrap();
    assert_eq!(store.now().await.unwrap(), START);
    assert_eq!(store.boards.read().len(), 1);
    assert_eq!(score(store.standing(&board.main(), &subject(1)).await.unwrap()), Some(Value::Exact(Amount(6))));
}

/// Tests that a checkpoint that waits for a log which cannot be written does not prevent the store from closing.
#[tokio::test]
async fn close_ends_when_the_log_cannot_be_written() {
    let disk = Simulated::new();
    let tick = Duration::from_millis(1);
    let pace = Pace { age: Duration::ZERO, unknown_after: Duration::from_millis(50), tick, ..usual() };
    let store = open(&disk, pace).unwrap();
    let checkpoints = Arc::new(AtomicUsize::new(0));
    let counter = checkpoints.clone();
    disk.on_operation(Box::new(move |_, op| {
        let is_new = op.kind == OperationKind::Create && op.path.contains("/checkpoints/");
        counter.fetch_add(usize::from(is_new), Ordering::SeqCst);
    }));
    disk.when(u32::MAX, Fault::NoSpace, |op| op.path.contains("/log/"));
    let definition = hours("COUNT(3h, like, post)");
    let defined = store.define(new_board(&BoardName::parse("b").unwrap(), &definition)).await;
    assert!(matches!(defined, Err(StoreError::TimedOut { .. } | StoreError::ReadOnly { .. })));
    if defined.is_err() && !store.boards.read().is_empty() {
        reached(&checkpoints, 1).await;
    }
    match store.close().await {
        Err(StoreError::ReadOnly { reason }) => assert!(reason.contains("log has ended"), "{reason}"),
        other => panic!("{other:?}"),
    }
}
