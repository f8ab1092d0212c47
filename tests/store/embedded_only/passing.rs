//! Tests of portions of sources that meet a limit.

use rolltop::board::{Position, SourceNumber};
use rolltop::store::{Fate, Passed, Portion};

use super::*;

const SOURCE: SourceNumber = SourceNumber(1);

/// Returns a portion with three items of each of 30 subjects, in turn.
fn portion() -> Portion {
    let item = |nth: u128| (Position(nth + 1), increment(&format!("s{}", nth % 30), 1, None, None));
    Portion::new(SOURCE, (Position(0), Position(90)), (0..90).map(item)).unwrap().joining()
}

async fn pass(store: &Embedded, board: &Arc<Board>) -> Passed {
    store.pass(vec![(board.clone(), portion())]).await.remove(0).unwrap()
}

/// Returns how many items were counted.
fn counted(passed: &Passed) -> usize {
    passed.fates.iter().filter(|fate| matches!(fate, Fate::Done(Outcome::Counted { .. }))).count()
}

/// Asserts that each of the subjects has its three items.
async fn has_all(store: &Embedded, board: &Arc<Board>) {
    let page = store.page(&board.main(), 0, 100).await.unwrap();
    assert_eq!(page.total, 30);
    assert!(page.items.iter().all(|line| line.score.as_f64() == 3.0), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_stops_at_a_subject_for_which_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let limited =
        |most| EmbeddedOptions { max_subjects: Some(most), ..options(folder.path(), Durability::EverySecond) };
    let store = Embedded::open(limited(10)).await.unwrap();
    let board = define(&store, "hot", "COUNT(3h, like, post)", "1h").await;
    let passed = pass(&store, &board).await;
    assert!(counted(&passed) >= 10, "{passed:?}");
    assert!(passed.fates.contains(&Fate::Waits(Some(Rejection::TooManySubjects))));
    assert!(passed.reached.least() < Position(30));
    let again = pass(&store, &board).await;
    assert_eq!((counted(&again), &again.reached), (0, &passed.reached), "nothing is counted twice");
    let first = counted(&passed);
    store.close().await.unwrap();
    drop(store);
    let store = Embedded::open(limited(1_000)).await.unwrap();
    let passed = pass(&store, &board).await;
    assert_eq!((counted(&passed), passed.reached.least()), (90 - first, Position(90)));
    has_all(&store, &board).await;
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portion_without_memory_is_counted_later() {
    let folder = tempfile::tempdir().unwrap();
    let limited =
        |bytes| EmbeddedOptions { memory_limit: Some(bytes), ..options(folder.path(), Durability::EverySecond) };
    let store = Embedded::open(limited(1 << 30)).await.unwrap();
    let board = define(&store, "hot", "COUNT(3h, like, post)", "1h").await;
    add(&store, &board, vec![increment("s1", 10, None, None)]).await;
    store.close().await.unwrap();
    drop(store);
    let store = Embedded::open(limited(1)).await.unwrap();
    let passed = pass(&store, &board).await;
    assert!(passed.fates.contains(&Fate::Waits(Some(Rejection::MemoryFull))), "{passed:?}");
    let known = passed.fates.iter().skip(1).step_by(30).filter(|fate| matches!(fate, Fate::Done(_))).count();
    assert_eq!(counted(&passed), known, "only the subject that exists is counted");
    store.close().await.unwrap();
    drop(store);
    let store = Embedded::open(limited(1 << 30)).await.unwrap();
    let passed = pass(&store, &board).await;
    assert_eq!((counted(&passed), passed.reached.least()), (90 - known, Position(90)));
    let removed = store.remove(&board, &subject("s1")).await.unwrap();
    assert_eq!(removed.score.map(|score| score.as_f64()), Some(13.0));
    store.close().await.unwrap();
}
