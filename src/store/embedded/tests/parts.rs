//! How the parts work together: failures of the disk, what is acknowledged when, audits, retiring.

use std::task::{Context, Waker};

use futures_util::FutureExt;

use super::contents::live_contents;
use super::*;
use crate::board::{Generation, Value};
use crate::store::embedded::codec::JOURNAL;
use crate::store::embedded::ranking::{Entry, Texts};
use crate::store::{AuditCursor, StoreError};

#[tokio::test]
async fn a_failed_write_turns_the_store_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Memory::default());
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    add(&store, &board, vec![increment(1, 5, None, None)]).await.unwrap();
    store.check().await.unwrap();

    disk.fails.store(true, Ordering::SeqCst);
    // The first is told when its group fails, the next before they begin; both the reason.
    for _ in 0..2 {
        match add(&store, &board, vec![increment(2, 1, None, None)]).await {
            Err(error @ StoreError::ReadOnly { .. }) => assert!(error.to_string().contains("no space left"), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    disk.fails.store(false, Ordering::SeqCst);
    assert!(matches!(store.remove(&board, &subject(1)).await, Err(StoreError::ReadOnly { .. })));
    assert!(matches!(store.check().await, Err(StoreError::ReadOnly { .. })));
    assert_eq!(store.standing(&board, &subject(1)).await.unwrap().score, Some(Value::Exact(Amount(5))));
    assert!(store.close().await.is_err());
    drop(store);

    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    assert_eq!(store.page(&board, 0, 10).await.unwrap().total, 1, "what was refused did not count");
}

#[tokio::test]
async fn nothing_is_vouched_for_that_is_still_on_its_way_to_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Memory::default());
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let like = || add(&store, &board, vec![increment(2, 1, None, Some(1))]);
    add(&store, &board, vec![increment(1, 5, None, None)]).await.unwrap();

    let gate = disk.gate.lock();
    let (name, definition) = (BoardName::parse("new").unwrap(), board.definition().clone());
    let (mut first, mut again) = (store.define(&name, &definition), store.define(&name, &definition));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut again).now_or_never().is_none(), "the board is not on the disk yet");
    let one = subject(1);
    let (mut removed, mut gone) = (store.remove(&board, &one), store.remove(&board, &one));
    assert!((&mut removed).now_or_never().is_none());
    assert!((&mut gone).now_or_never().is_none(), "the removal is not on the disk yet");
    let (mut counted, mut repeated) = (like().boxed(), like().boxed());
    assert!((&mut counted).now_or_never().is_none());
    assert!((&mut repeated).now_or_never().is_none(), "what it repeats is not on the disk yet");

    drop(gate);
    assert!(matches!(first.await, Ok(Defined::Created(_))) && matches!(again.await, Ok(Defined::Unchanged(_))));
    assert_eq!((removed.await.unwrap().live_slots, gone.await.unwrap().live_slots), (1, 0));
    counted.await.unwrap();
    assert_eq!(repeated.await.unwrap(), [Outcome::Duplicate { score: None }]);
}

#[tokio::test]
async fn the_audit_finds_and_repairs_what_is_wrong_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &Arc::new(Memory::default()), Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let likes = (0..2_500).map(|i| Increment {
        subject: Subject::parse(&format!("post {i}")).unwrap(),
        change: Change::Amount(Amount(1 + i % 7)),
        retract: false,
        at: None,
        id: None,
    });
    add(&store, &board, likes.collect()).await.unwrap();
    let audit = async |repair| {
        let (mut cursor, mut checked, mut differences, mut repaired) = (AuditCursor::default(), 0, Vec::new(), 0);
        loop {
            let step = store.audit_step(&board, cursor, repair).await.unwrap();
            assert!(step.checked <= 1_000);
            checked += step.checked;
            differences.extend(step.differences);
            repaired += step.repaired;
            match step.next {
                Some(next) => cursor = next,
                None => return (checked, differences, repaired),
            }
        }
    };
    assert_eq!(audit(false).await, (2_500, vec![], 0));

    {
        let live = live(&store);
        let mut tables = live.tables.lock();
        let holdings = &mut tables.holdings;
        let entry = |score, id: u32| Entry::new(score, holdings.subjects.text(id), id);
        let (missing, doubled) = (entry(1, 0), entry(100, 2_499));
        // One is not ranked, one is ranked a second time, one has a score that is not its slices' sum.
        holdings.ranking.remove(missing, &holdings.subjects);
        holdings.ranking.insert(doubled, &holdings.subjects);
        let (old, wrong) = (entry(2, 1), entry(9, 1));
        holdings.ranking.replace(old, wrong, &holdings.subjects);
        holdings.subjects.get_mut(1).unwrap().key = 9;
    }
    let (_, differences, repaired) = audit(false).await;
    let mut seen: Vec<_> = differences.iter().map(|d| (d.subject.as_str(), d.score, d.slots)).collect();
    seen.sort_unstable();
    let units = |units| Some(Value::Exact(Amount(units)));
    let expected =
        [("post 0", units(0), units(1)), ("post 1", units(9), units(2)), ("post 2499", units(100), units(1))];
    assert_eq!(seen, expected);
    assert_eq!(repaired, 0);
    assert_eq!(audit(true).await.2, 3);
    assert_eq!(audit(false).await, (2_500, vec![], 0));
    live_contents(&live(&store).tables.lock());
}

#[tokio::test]
async fn a_step_of_retiring_is_bounded_and_everything_expired_goes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Memory::default());
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let like = |i: i64| Subject::parse(&format!("post {i}")).unwrap();
    let likes = |range: std::ops::Range<i64>| {
        range
            .map(|i| Increment {
                subject: like(i),
                change: Change::Amount(Amount(1)),
                retract: false,
                at: None,
                id: None,
            })
            .collect::<Vec<_>>()
    };
    add(&store, &board, likes(0..10_000)).await.unwrap();
    store.set_clock(START.plus_millis(HOUR)).await.unwrap();
    add(&store, &board, likes(9_000..11_000)).await.unwrap();
    store.set_clock(START.plus_millis(3 * HOUR)).await.unwrap();
    let (mut touched, mut removed, mut slots, mut steps) = (0, 0, 0, 0);
    loop {
        let step = store.retire_step(&board).await.unwrap();
        assert!(step.subjects_touched <= 4_096);
        touched += step.subjects_touched;
        removed += step.subjects_removed;
        slots += step.slots_retired;
        steps += 1;
        if step.done {
            assert_eq!(step.frame.retiring, 0);
            break;
        }
        assert_eq!(step.frame.retiring, 1);
    }
    assert_eq!((touched, removed, slots), (10_000, 9_000, 1));
    assert!(steps >= 3);
    assert_eq!(store.page(&board, 0, 1).await.unwrap().total, 2_000);

    store.set_clock(START.plus_millis(100 * HOUR)).await.unwrap();
    let step = store.retire_step(&board).await.unwrap();
    assert_eq!((step.done, step.slots_retired, step.slots_advanced), (true, 1, 97));
    assert_eq!(store.page(&board, 0, 1).await.unwrap().total, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_waits_for_what_counted_it() {
    let (folder, disk) = (tempfile::tempdir().unwrap(), Arc::new(Memory::default()));
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let increments = || vec![increment(1, 1, None, Some(1)), increment(2, 1, None, Some(2))];
    let counted = [Outcome::Counted { score: None }; 2];
    let (mut first, mut second) = {
        let _shut = disk.gate.lock();
        let mut first = Box::pin(add(&store, &board, increments()));
        let mut once = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut once).is_pending());
        let mut second = Box::pin(add(&store, &board, increments()));
        assert!(second.as_mut().poll(&mut once).is_pending(), "the disk does not have it yet");
        (first, second)
    };
    assert_eq!(first.as_mut().await.unwrap(), counted);
    assert_eq!(second.as_mut().await.unwrap(), [Outcome::Duplicate { score: None }; 2]);
    assert_eq!(add(&store, &board, increments()).await.unwrap(), [Outcome::Duplicate { score: None }; 2]);
}

/// What changes nothing relies on what it met there.
#[tokio::test]
async fn what_is_no_new_extreme_waits_for_the_better_one() {
    for metric in ["MAX(3h, sale, amount, seller)", "APPROX_COUNT_DISTINCT(3h, login, device, user)"] {
        let (folder, disk) = (tempfile::tempdir().unwrap(), Arc::new(Memory::default()));
        let store = open(folder.path(), &disk, Pace::default()).unwrap();
        let board = define(&store, metric).await;
        let item = || Increment { change: change(&board, 7), ..increment(1, 0, None, None) };
        let gate = disk.gate.lock();
        let (mut first, mut again) =
            (add(&store, &board, vec![item()]).boxed(), add(&store, &board, vec![item()]).boxed());
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut again).now_or_never().is_none(), "what it relies on is not on the disk yet");
        drop(gate);
        assert_eq!(again.await.unwrap(), first.await.unwrap());
    }
}

#[tokio::test]
async fn writes_to_several_boards_share_a_group_and_fail_each_for_itself() {
    let (folder, disk) = (tempfile::tempdir().unwrap(), Arc::new(Memory::default()));
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let mut boards = Vec::new();
    for (nth, definition) in every_definition().iter().enumerate() {
        match store.define(&BoardName::parse(&format!("b{nth}")).unwrap(), definition).await.unwrap() {
            Defined::Created(board) => boards.push(board),
            other => panic!("{other:?}"),
        }
    }
    // Of one board the store knows another generation, as if it had been removed.
    let gone = Board::new(boards[3].name().clone(), Generation(1), boards[3].definition().clone()).unwrap();
    boards[3] = Arc::new(gone);
    let groups = || disk.entries.lock().keys().filter(|key| key.starts_with(JOURNAL)).count();
    let batches = || {
        let batch = |board: &Arc<Board>| {
            let item = Increment { change: change(board, 7), ..increment(1, 0, None, Some(1)) };
            (board.clone(), Batch { increments: vec![item], return_scores: false })
        };
        boards.iter().map(batch).collect::<Vec<_>>()
    };
    // A writer on its way back from an earlier group would take what has been appended so far: it is kept busy with a
    // group of its own until all has been.
    let gate = disk.gate.lock();
    let knocks = disk.knocks.load(Ordering::SeqCst);
    let before = groups() + 1;
    let item = Increment { change: change(&boards[0], 7), ..increment(2, 0, None, None) };
    let mut busy = add(&store, &boards[0], vec![item]).boxed();
    // The second time it wakes the writer.
    assert!((&mut busy).now_or_never().is_none() && (&mut busy).now_or_never().is_none());
    while disk.knocks.load(Ordering::SeqCst) == knocks {
        std::thread::yield_now();
    }
    let mut all = store.add_all(batches());
    assert!((&mut all).now_or_never().is_none(), "all is appended, and waits for the disk");
    drop(gate);
    busy.await.unwrap();
    let mut all = Some(all);
    for expected in [Outcome::Counted { score: None }, Outcome::Duplicate { score: None }] {
        let added = match all.take() {
            Some(all) => all.await,
            None => store.add_all(batches()).await,
        };
        for (nth, added) in added.into_iter().enumerate() {
            match added {
                Err(StoreError::BoardChanged) => assert_eq!(nth, 3),
                added => assert_eq!(added.unwrap().outcomes, [expected]),
            }
        }
        assert_eq!(groups(), before + 1, "all in one, and duplicates in none");
    }
    disk.fails.store(true, Ordering::SeqCst);
    let all = batches().into_iter().map(|(board, mut batch)| {
        batch.increments[0].id = None;
        (board, batch)
    });
    for (nth, added) in store.add_all(all.collect()).await.into_iter().enumerate() {
        match added {
            Err(StoreError::BoardChanged) => assert_eq!(nth, 3),
            Err(StoreError::ReadOnly { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}
