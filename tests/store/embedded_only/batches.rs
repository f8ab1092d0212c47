//! Tests of large batches, which are applied in portions.

use std::sync::atomic::{AtomicBool, Ordering};

use rolltop::board::Value;

use super::*;

const ITEMS: usize = 5_000;

fn likes(ids: bool) -> Vec<Increment> {
    let like = |nth: usize| {
        let id = format!("like {nth}");
        increment(&format!("post {}", nth % 1_250), 1 + (nth % 3) as i64, None, ids.then_some(&id))
    };
    (0..ITEMS).map(like).collect()
}

/// Returns the score of each item's subject after this many such batches.
fn scores(batches: i64) -> Vec<Option<Value>> {
    let of = |nth: usize| (nth % 1_250..ITEMS).step_by(1_250).map(|nth| 1 + (nth % 3) as i64).sum::<i64>();
    (0..ITEMS).map(|nth| Some(Value::Exact(Amount(batches * of(nth))))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_batch_counts_ids_once_and_returns_every_score() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await.unwrap();
    let board = define(&store, "b", "COUNT(3h, like, post)", "1h").await;
    let send = async |store: &Embedded, increments, return_scores| {
        let added = store.add(&board, Batch { increments, return_scores }).await.unwrap();
        assert_eq!(added.outcomes.len(), ITEMS);
        added.outcomes
    };
    let counted = |batches| scores(batches).into_iter().map(|score| Outcome::Counted { score }).collect::<Vec<_>>();
    let known = |batches| scores(batches).into_iter().map(|score| Outcome::Duplicate { score }).collect::<Vec<_>>();
    assert_eq!(send(&store, likes(true), true).await, counted(1));
    assert_eq!(send(&store, likes(true), true).await, known(1));
    assert_eq!(send(&store, likes(false), true).await, counted(2));
    assert_eq!(send(&store, likes(false), false).await, vec![Outcome::Counted { score: None }; ITEMS]);
    let expected = readable(&store, &board).await;
    // Refused items change nothing, wherever they are in the batch.
    let mut increments = likes(true);
    for nth in (0..ITEMS).step_by(500) {
        increments[nth].at = Some(t("2025-12-31T00:00:00Z"));
    }
    for (nth, outcome) in send(&store, increments, false).await.into_iter().enumerate() {
        let late = Outcome::Rejected(Rejection::TooLate);
        assert_eq!(outcome, if nth % 500 == 0 { late } else { Outcome::Duplicate { score: None } });
    }
    let copy = crash_copy(folder.path());
    store.close().await.unwrap();
    drop(store);
    for path in [folder.path(), copy.path()] {
        let store = open(path).await.unwrap();
        assert_eq!(readable(&store, &board).await, expected);
        assert_eq!(send(&store, likes(true), true).await, known(3));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_batches_let_concurrent_reads_and_writes_through() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_eager(folder.path()).await;
    let board = define(&store, "b", "COUNT(3h, like, post)", "1h").await;
    let done = Arc::new(AtomicBool::new(false));
    let reading = {
        let (store, board, done) = (store.clone(), board.clone(), done.clone());
        tokio::spawn(async move {
            let (mut before, mut reads) = (0, 0);
            while !done.load(Ordering::SeqCst) {
                let page = store.page(&board.main(), 0, 2_000).await.unwrap();
                let sum = page.items.iter().map(|item| item.score.units()).sum::<i64>();
                assert!(sum >= before && page.total == page.items.len() as u64);
                assert!(page.items.is_sorted_by(|a, b| a.score.units() >= b.score.units()));
                (before, reads) = (sum, reads + 1);
                tokio::task::yield_now().await;
            }
            reads
        })
    };
    let writing = {
        let (store, board, done) = (store.clone(), board.clone(), done.clone());
        tokio::spawn(async move {
            let mut written = 0;
            while !done.load(Ordering::SeqCst) {
                add(&store, &board, vec![increment("post 7", 1, None, None)]).await;
                written += 1;
            }
            written
        })
    };
    for round in 0..4 {
        let outcomes = add(&store, &board, likes(round % 2 == 0)).await;
        let again = round == 2;
        let expected = if again { Outcome::Duplicate { score: None } } else { Outcome::Counted { score: None } };
        assert_eq!(outcomes, vec![expected; ITEMS]);
    }
    done.store(true, Ordering::SeqCst);
    let (reads, written) = (reading.await.unwrap(), writing.await.unwrap());
    assert!(reads > 0);
    let sum: i64 = store.page(&board.main(), 0, 2_000).await.unwrap().items.iter().map(|item| item.score.units()).sum();
    let each: i64 = (0..ITEMS).map(|nth| 1 + (nth % 3) as i64).sum();
    assert_eq!(sum, 3 * each + written);
    let copy = crash_copy(folder.path());
    let crashed = open(copy.path()).await.unwrap();
    assert_eq!(readable(&crashed, &board).await, readable(&store, &board).await);
}

/// Tests that each item is either counted in a slot of the window or refused, if slots end while batches are applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_of_slots_that_end_during_a_batch_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_eager(folder.path()).await;
    let board = define(&store, "b", "COUNT(100s, like, post)", "1s").await;
    let done = Arc::new(AtomicBool::new(false));
    let clock = {
        let (store, done) = (store.clone(), done.clone());
        tokio::spawn(async move {
            let mut moves = 0;
            // Fast enough that a slot ends, slow enough that the whole window does not pass.
            while !done.load(Ordering::SeqCst) && moves < 90 {
                store.set_clock(store.now().await.unwrap().plus_millis(1_000)).await.unwrap();
                moves += 1;
                tokio::task::yield_now().await;
            }
            moves
        })
    };
    let (mut counted, mut late) = (0, 0);
    for round in 0..3 {
        let now = store.now().await.unwrap();
        // The oldest slots of the window, which leave it while the batch is applied.
        let item = |nth: usize| {
            let at = now.plus_millis(-((nth % 100) as i64) * 1_000);
            Increment { at: Some(at), ..increment(&format!("post {nth}"), 1, None, Some(&format!("{round}"))) }
        };
        for outcome in add(&store, &board, (0..ITEMS).map(item).collect()).await {
            match outcome {
                Outcome::Counted { .. } => counted += 1,
                Outcome::Duplicate { .. } => {}
                Outcome::Rejected(Rejection::TooLate) => late += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    done.store(true, Ordering::SeqCst);
    let moves = clock.await.unwrap();
    assert!(counted > 0);
    println!("{counted} counted, {late} too late, {moves} slots");
    let sum = async |store: &Embedded| {
        while !store.retire_step(&board.main()).await.unwrap().done {}
        let page = store.page(&board.main(), 0, 2 * ITEMS as u32).await.unwrap();
        page.items.iter().map(|item| item.score.units()).sum::<i64>()
    };
    let live = sum(&store).await;
    assert!(live <= counted, "{live} of {counted}");
    let expected = readable(&store, &board).await;
    store.close().await.unwrap();
    drop(store);
    let store = open(folder.path()).await.unwrap();
    assert_eq!(sum(&store).await, live);
    assert_eq!(readable(&store, &board).await, expected);
    assert_eq!(store.audit_step(&board.main(), Default::default(), false).await.unwrap().differences.len(), 0);
}
