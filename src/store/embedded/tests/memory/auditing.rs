//! Tests of audits and retiring, in steps.

use super::contents::live_contents;
use super::*;
use crate::board::Value;
use crate::store::AuditCursor;
use crate::store::embedded::hashed_name::HashedName;

fn like(number: i64, amount: i64) -> Increment {
    named(format!("post {number}"), Change::Amount(Amount(amount)))
}

#[tokio::test]
async fn an_audit_misses_no_record_that_a_compaction_moves_between_its_steps() {
    let store = fresh();
    let board = define(&store, "COUNT(3h, like, post)").await;
    add(&store, &board, (0..4_000).map(|number| like(number, 1)).collect()).await.unwrap();
    let live = live(&store);
    {
        let mut data = live.state.lock();
        let holdings = &mut data.holdings;
        for number in 0..3_500 {
            holdings.remove(HashedName::from(format!("post {number}").as_str()), 0);
        }
        // The scores of two of the remaining subjects are not the sums of their cells.
        for id in [3_520, 3_950] {
            let entry = |score| holdings.subjects.entry(id, score);
            let (old, wrong) = (entry(1), entry(9));
            holdings.ranking.replace(old, wrong, &holdings.subjects);
            holdings.subjects.get_mut(id).unwrap().sort_key = 9;
        }
        holdings.subjects.begin_compaction();
    }
    let mut step = store.audit_step(&board.main(), AuditCursor::default(), false).await.unwrap();
    assert!(step.checked < 500, "the first step must leave some records");
    let mut differences = std::mem::take(&mut step.differences);
    {
        let mut data = live.state.lock();
        let moved = (3_500..4_000).filter(|id| {
            let floors = data.floors();
            data.holdings.expire_subject(*id, floors, 0);
            data.holdings.subjects.get(*id).is_none()
        });
        assert_eq!(moved.count(), 500);
    }
    while let Some(next) = step.next {
        step = store.audit_step(&board.main(), next, false).await.unwrap();
        differences.extend(std::mem::take(&mut step.differences));
    }
    let mut found: Vec<_> = differences.iter().map(|difference| difference.subject.as_str()).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, ["post 3520", "post 3950"]);
}

#[tokio::test]
async fn an_audit_finds_and_repairs_extra_and_missing_amounts() {
    let store = fresh();
    let board = define(&store, "COUNT(3h, like, post)").await;
    add(&store, &board, (0..2_500).map(|number| like(number, 1 + number % 7)).collect()).await.unwrap();
    let audit = async |repair| {
        let (mut cursor, mut checked, mut differences, mut repaired) = (AuditCursor::default(), 0, Vec::new(), 0);
        loop {
            let step = store.audit_step(&board.main(), cursor, repair).await.unwrap();
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
        let mut data = live.state.lock();
        let holdings = &mut data.holdings;
        let entry = |score, id: u32| holdings.subjects.entry(id, score);
        let (missing, doubled) = (entry(1, 0), entry(100, 2_499));
        // One subject is not ranked, one is ranked a second time, and one has a score that is not the sum of its
        // cells.
        holdings.ranking.remove(missing, &holdings.subjects);
        holdings.ranking.insert(doubled, &holdings.subjects);
        let (old, wrong) = (entry(2, 1), entry(9, 1));
        holdings.ranking.replace(old, wrong, &holdings.subjects);
        holdings.subjects.get_mut(1).unwrap().sort_key = 9;
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
    live_contents(&live(&store).state.lock());
}

#[tokio::test]
async fn retire_steps_are_bounded_unless_everything_expired() {
    let store = fresh();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let likes = |range: std::ops::Range<i64>| range.map(|number| like(number, 1)).collect::<Vec<_>>();
    add(&store, &board, likes(0..10_000)).await.unwrap();
    store.set_clock(START.plus_millis(HOUR)).await.unwrap();
    add(&store, &board, likes(9_000..11_000)).await.unwrap();
    store.set_clock(START.plus_millis(3 * HOUR)).await.unwrap();
    let (mut touched, mut removed, mut slots, mut steps) = (0, 0, 0, 0);
    loop {
        let step = store.retire_step(&board.main()).await.unwrap();
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
    assert_eq!(store.page(&board.main(), 0, 1).await.unwrap().total, 2_000);

    store.set_clock(START.plus_millis(100 * HOUR)).await.unwrap();
    let step = store.retire_step(&board.main()).await.unwrap();
    assert_eq!((step.done, step.slots_retired, step.slots_advanced), (true, 1, 97));
    assert_eq!(store.page(&board.main(), 0, 1).await.unwrap().total, 0);
}
