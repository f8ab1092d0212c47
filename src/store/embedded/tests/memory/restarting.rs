//! Tests that a start holds no more data than the store had.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::store::embedded::storage::files::Files;
use crate::store::embedded::storage::files::simulated::{Crash, OperationKind};

/// The number of new subjects in each hour.
const SUBJECTS: usize = 2_000;

/// Returns the bytes that a board takes, without its ids.
fn bytes(live: &LiveBoard) -> usize {
    let state = live.state.lock();
    state.tracks.iter().map(|data| data.holdings.memory_bytes()).sum()
}

/// Returns the largest number of subjects that the windows of a board have held at once. The lowest free id is assigned
/// first, so this is at most the highest id in use.
fn most_subjects(live: &LiveBoard) -> usize {
    let state = live.state.lock();
    let last = |data: &TrackData| data.holdings.subjects.last_before(u32::MAX).map_or(0, |id| id as usize + 1);
    state.tracks.iter().map(last).sum()
}

/// Tests that a start does not load what has expired since the log began: with names of any length, on boards of every
/// metric, with several windows.
#[tokio::test]
async fn expired_data_is_not_loaded() {
    let lengths = [8, 53, 325, 450, 512].map(|length| (length, Definition { ..hours("COUNT(3h, like, post)") }));
    // A window of all time keeps every subject.
    let windows = vec!["10m/1m".parse().unwrap(), "1h/30m".parse().unwrap()];
    let several = Definition { windows, ..hours("COUNT(3h, like, post)") };
    let metrics = every_definition().into_iter().chain([several]).map(|definition| (53, definition));
    for (length, definition) in lengths.into_iter().chain(metrics) {
        let disk = Simulated::new();
        let store = open(&disk, usual()).unwrap();
        let board = define_as(&store, &definition).await;
        for hour in 0..12 {
            store.set_clock(START.plus_millis(hour as i64 * HOUR)).await.unwrap();
            for track in board.each_track() {
                while !store.retire_step(&track).await.unwrap().done {}
            }
            let item = |nth: usize| Increment {
                id: Some(EventId::parse(&format!("{nth}")).unwrap()),
                ..named(format!("{nth:0length$}"), change(&board, nth as i64 % 9 + 1))
            };
            add(&store, &board, (hour * SUBJECTS..(hour + 1) * SUBJECTS).map(item).collect()).await.unwrap();
        }
        let (before, held) = (bytes(&live(&store)), most_subjects(&live(&store)));
        let copy = open(&disk.crash(0, Crash::Killed), usual()).unwrap();
        let (after, loaded) = (bytes(&live(&copy)), most_subjects(&live(&copy)));
        let what = format!("names of {length} bytes, {}, ranked {}", definition.metric, definition.ranked);
        assert!(loaded <= held, "{what}: {loaded} subjects were loaded, {held} were held before");
        assert!(after as f64 <= 1.1 * before as f64, "{what}: {after} bytes after the start, {before} before");
    }
}

/// Tests that the files of a board are not read if the log removes it.
#[tokio::test]
async fn removed_boards_are_not_loaded() {
    let disk = Simulated::new();
    let pace = Pace { log_bytes: 1, age: Duration::ZERO, tick: Duration::from_millis(1), ..usual() };
    let store = open(&disk, pace).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    add(&store, &board, vec![increment(1, 1, None, None)]).await.unwrap();
    reach(|| live(&store).logged.first().is_none() && !disk.list("checkpoints").unwrap().is_empty()).await;
    store.close().await.unwrap();
    drop(store);

    let store = open(&disk, Pace { tick: Duration::from_secs(3_600), ..pace }).unwrap();
    let board = live(&store).board();
    assert!(store.undefine(&board).await.unwrap());
    let crashed = disk.crash(0, Crash::Killed);
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = opened.clone();
    crashed.on_operation(Box::new(move |_, op| {
        let is_checkpoint = op.kind == OperationKind::Open && op.path.contains("/checkpoints/");
        counter.fetch_add(usize::from(is_checkpoint), Ordering::SeqCst);
    }));
    assert!(open(&crashed, usual()).unwrap().boards.read().is_empty());
    assert_eq!(opened.load(Ordering::SeqCst), 0);
}
