//! Tests of boards with two editions: what each of them counts, and changes of the editions while a batch is applied.

use super::*;
use crate::board::{NotCounted, TrackId, Value};
use crate::store::{Rejection, StoreError};

const SECOND: TrackId = TrackId(77);

/// Returns a board with a successor.
async fn with_two(store: &Embedded, metrics: [&str; 2]) -> Arc<Board> {
    let board = define(store, metrics[0]).await;
    attach(store, &board, metrics[1]).await
}

async fn attach(store: &Embedded, board: &Arc<Board>, metric: &str) -> Arc<Board> {
    store.change_editions(board, board.attached(hours(metric), SECOND).unwrap()).await.unwrap()
}

async fn exchange(store: &Embedded, board: &Arc<Board>) -> Arc<Board> {
    store.change_editions(board, board.exchanged(START).unwrap()).await.unwrap()
}

/// Returns an item for two editions.
fn both(item: Increment, other: Change) -> Increment {
    Increment { other: Some(Box::new(other)), ..item }
}

fn amount(amount: i64) -> Change {
    Change::Amount(Amount(amount))
}

/// Returns the score of a subject in the main track of each edition.
async fn scores(store: &Embedded, board: &Arc<Board>, who: u8) -> Vec<i64> {
    let mut scores = Vec::new();
    for edition in board.editions() {
        let track = board.track_with(edition.id()).unwrap();
        match store.standing(&track, &subject(who)).await.unwrap().score {
            Some(Value::Exact(Amount(score))) => scores.push(score),
            other => panic!("{other:?}"),
        }
    }
    scores
}

/// Returns the numbers of counted items in the main track of each edition.
async fn events(store: &Embedded, board: &Arc<Board>) -> Vec<u64> {
    let mut events = Vec::new();
    for edition in board.editions() {
        let status = store.status(&board.track_with(edition.id()).unwrap()).await.unwrap();
        events.push(status.events.iter().map(|(_, items)| items).sum());
    }
    events
}

const COUNTED: Outcome = Outcome::Counted { score: None };
const TOO_LATE: Outcome = Outcome::Rejected(Rejection::TooLate);
const OUT_OF_RANGE: Outcome = Outcome::Rejected(Rejection::OutOfRange);

#[tokio::test]
async fn each_edition_counts_an_item_by_itself() {
    let store = fresh();
    let board = with_two(&store, ["SUM(2h, sale, amount, seller)", "SUM(4h, sale, amount, seller)"]).await;
    let at = |hours: i64| Some(START.plus_millis(-hours * HOUR));
    let items = vec![
        both(increment(1, 3, None, None), amount(5)),
        both(increment(1, 4, None, None), amount(-1)),
        both(increment(1, 1, None, Some(1)), Change::Not(NotCounted::Filtered)),
        both(increment(1, 7, at(3), Some(2)), amount(7)),
        both(increment(1, 9, at(9), None), amount(9)),
        Increment { change: Change::Not(NotCounted::NotAccepted), ..both(increment(1, 0, None, None), amount(2)) },
        both(increment(1, 1, None, Some(1)), amount(1)),
    ];
    let outcomes = add(&store, &board, items).await.unwrap();
    let duplicate = Outcome::Duplicate { score: None };
    assert_eq!(outcomes, [COUNTED, COUNTED, COUNTED, TOO_LATE, TOO_LATE, COUNTED, duplicate]);
    assert_eq!(scores(&store, &board, 1).await, [8, 13]);
    assert_eq!(events(&store, &board).await, [3, 4]);
    let run = store.dual_run(&board).await.unwrap();
    assert_eq!(run.since, START);
    let by_first = vec![(NotCounted::NotAccepted, 1), (NotCounted::TooLate, 1)];
    assert_eq!(run.not_counted, [by_first, vec![(NotCounted::Filtered, 1)]]);
    // The id of an item is remembered if any edition has counted it.
    let again = both(increment(1, 7, at(1), Some(2)), amount(7));
    assert_eq!(add(&store, &board, vec![again]).await.unwrap(), [duplicate]);
    assert_eq!(scores(&store, &board, 1).await, [8, 13]);
}

#[tokio::test]
async fn a_sum_that_one_edition_refuses_is_tried_item_by_item() {
    let store = fresh();
    let board = with_two(&store, ["SUM(2h, sale, amount, seller)", "SUM(200h, sale, amount, seller)"]).await;
    let bounds: Vec<i64> = board.tracks().iter().map(|track| track.slot_bound().0).collect();
    assert!(bounds[0] > bounds[1]);
    let item = |units: i64| both(increment(1, units, None, None), amount(units));
    let outcomes = add(&store, &board, vec![item(bounds[1]), item(5), item(-2)]).await.unwrap();
    assert_eq!(outcomes, [COUNTED; 3]);
    assert_eq!(scores(&store, &board, 1).await, [bounds[1] + 3, bounds[1] - 2]);
    let run = store.dual_run(&board).await.unwrap();
    assert_eq!(run.not_counted, [vec![], vec![(NotCounted::OutOfRange, 1)]]);
    assert_eq!(events(&store, &board).await, [3, 2]);
    // What neither counts is noted nowhere.
    let outcomes = add(&store, &board, vec![item(bounds[0]), item(bounds[0])]).await.unwrap();
    assert_eq!(outcomes, [OUT_OF_RANGE; 2]);
    assert_eq!(store.dual_run(&board).await.unwrap(), run);
    assert_eq!(events(&store, &board).await, [3, 2]);
}

#[tokio::test]
async fn a_caller_that_does_not_know_an_edition_moves_the_begin_of_the_dual_run() {
    let store = fresh();
    let board = with_two(&store, ["SUM(2h, sale, amount, seller)", "AVG(2h, sale, amount, seller)"]).await;
    let later = START.plus_millis(HOUR);
    store.set_clock(later).await.unwrap();
    assert_eq!(store.dual_run(&board).await.unwrap().since, START);
    add(&store, &board, vec![increment(1, 1, None, None)]).await.unwrap();
    let run = store.dual_run(&board).await.unwrap();
    assert_eq!((run.since, run.not_counted), (later, [vec![], vec![]]));
}

#[tokio::test]
async fn a_stale_epoch_is_refused_except_for_writes() {
    let store = fresh();
    let metric = "SUM(2h, sale, amount, seller)";
    let first = define(&store, metric).await;
    let board = attach(&store, &first, "SUM(4h, sale, amount, seller)").await;
    let stale = |result: Result<()>| assert!(matches!(result, Err(StoreError::StaleEpoch)), "{result:?}");
    stale(store.status(&first.main()).await.map(drop));
    stale(store.remove(&first, &subject(1)).await.map(drop));
    stale(store.undefine(&first).await.map(drop));
    stale(store.begin_import(&first, crate::store::ImportId(1)).await.map(drop));
    stale(store.change_editions(&first, first.attached(hours(metric), TrackId(99)).unwrap()).await.map(drop));
    // A repeat of the same change is a success.
    let again =
        store.change_editions(&first, first.attached(board.editions()[1].definition().clone(), SECOND).unwrap());
    assert_eq!(again.await.unwrap().epoch(), board.epoch());
    let refused = store.begin_import(&board, crate::store::ImportId(1)).await;
    assert!(matches!(refused, Err(StoreError::NoImport { .. })), "{refused:?}");
    // A write is carried over: the new edition counts the same items.
    let added = store.add(&first, Batch { increments: vec![increment(1, 4, None, None)], return_scores: true });
    let added = added.await.unwrap();
    assert_eq!(added.newer.unwrap().epoch(), board.epoch());
    assert_eq!(added.outcomes, [Outcome::Counted { score: Some(Value::Exact(Amount(4))) }]);
    assert_eq!(scores(&store, &board, 1).await, [4, 4]);
    assert_eq!(store.dual_run(&board).await.unwrap().not_counted, [vec![], vec![]]);
    let replaced = store.replace(&first, increment(1, 6, None, None)).await.unwrap();
    assert!(replaced.newer.is_some());
    assert_eq!(scores(&store, &board, 1).await, [6, 6]);
    // It is answered with the outcome and the score of the edition that the caller knows as the current one.
    let board = exchange(&store, &board).await;
    let late = increment(1, 1, Some(START.plus_millis(-3 * HOUR)), None);
    let batch = Batch { increments: vec![late, increment(1, 1, None, None)], return_scores: true };
    let added = store.add(&first, batch).await.unwrap();
    assert_eq!(added.outcomes, [TOO_LATE, Outcome::Counted { score: Some(Value::Exact(Amount(7))) }]);
    assert_eq!(added.frame.window, board.tracks()[1].window_at(START));
    assert_eq!(scores(&store, &board, 1).await, [8, 7]);
    assert_eq!(store.dual_run(&board).await.unwrap().not_counted, [vec![], vec![(NotCounted::TooLate, 1)]]);
    let only = store.change_editions(&board, board.detached()).await.unwrap();
    assert_eq!(scores(&store, &only, 1).await, [8]);
    // An item that is only for an edition that is gone counts nowhere.
    let of_other =
        Increment { change: Change::Not(NotCounted::Filtered), ..both(increment(1, 0, None, None), amount(9)) };
    let items = vec![of_other, both(increment(1, 2, None, None), Change::Not(NotCounted::Filtered))];
    assert_eq!(add(&store, &board, items).await.unwrap(), [COUNTED, COUNTED]);
    assert_eq!(scores(&store, &only, 1).await, [10]);
    let stale_step = store.change_editions(&first, first.detached()).await;
    assert!(matches!(stale_step, Err(StoreError::StaleEpoch)), "{stale_step:?}");
    assert!(matches!(store.dual_run(&only).await, Err(StoreError::Unsupported { .. })));
    assert!(store.undefine(&only).await.unwrap());
    assert!(matches!(store.add(&first, Batch::default()).await, Err(StoreError::BoardChanged)));
}

#[tokio::test]
async fn an_open_import_refuses_a_change_of_editions() {
    let store = fresh();
    let board = define(&store, "COUNT_DISTINCT(2h, login, device, user)").await;
    let import = crate::store::ImportId(1);
    store.begin_import(&board, import).await.unwrap();
    let to = board.attached(hours("COUNT(2h, login, device)"), SECOND).unwrap();
    assert!(matches!(store.change_editions(&board, to.clone()).await, Err(StoreError::ImportOpen)));
    assert!(store.end_import(&board, import).await.unwrap());
    assert_eq!(store.change_editions(&board, to).await.unwrap().editions().len(), 2);
}

/// A batch of many portions goes on in the editions that the board has in the meantime, and no item counts twice.
#[tokio::test]
async fn editions_may_change_between_the_portions_of_a_batch() {
    const ITEMS: usize = 3_000;
    let store = fresh();
    let first = define(&store, "SUM(2h, sale, amount, seller)").await;
    let item =
        |number: usize| increment((number % 7) as u8, 1, None, number.is_multiple_of(3).then_some((number / 12) as u8));
    let batch = Batch { increments: (0..ITEMS).map(item).collect(), return_scores: true };
    let change = async {
        tokio::task::yield_now().await;
        let board = attach(&store, &first, "SUM(4h, sale, amount, seller)").await;
        tokio::task::yield_now().await;
        let board = exchange(&store, &board).await;
        tokio::task::yield_now().await;
        store.change_editions(&board, board.detached()).await.unwrap()
    };
    let (added, board) = tokio::join!(store.add(&first, batch), change);
    let added = added.unwrap();
    let counted = added.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Counted { .. })).count();
    assert_eq!(added.outcomes.len(), ITEMS);
    // The edition that is left counts since it exists, and counts everything from then on.
    let mut score = 0;
    for who in 0..7 {
        score += scores(&store, &board, who).await[0];
    }
    assert!(score > 0 && (score as usize) < counted, "{score} of {counted}");
    assert_eq!(events(&store, &board).await, [score as u64]);
    assert!(added.outcomes.iter().all(|outcome| match outcome {
        Outcome::Counted { score } | Outcome::Duplicate { score } => score.is_some(),
        Outcome::Rejected(_) => false,
    }));
    assert_eq!(added.newer.map(|newer| newer.epoch()), Some(board.epoch()));
}

/// The memory of an edition that is removed is freed.
#[tokio::test]
async fn the_memory_of_a_removed_edition_is_freed() {
    let store = fresh();
    let board = define(&store, "SUM(2h, sale, amount, seller)").await;
    let used = || store.memory.used();
    let empty = used();
    let board = attach(&store, &board, "SUM(4h, sale, amount, seller)").await;
    let items = (0..2_000).map(|number| named(format!("subject-{number}"), amount(1)));
    add(&store, &board, items.map(|item| both(item, amount(1))).collect()).await.unwrap();
    let with_two = used();
    let board = store.change_editions(&board, board.detached()).await.unwrap();
    reach(|| used() < empty + (with_two - empty) * 6 / 10).await;
    assert_eq!(store.page(&board.main(), 0, 1).await.unwrap().total, 2_000);
}

/// A fill of subjects with more values than a portion gives is complete, whatever is written in between.
#[tokio::test]
async fn a_fill_in_portions_is_complete() {
    const VALUES: usize = 1_000;
    let store = fresh();
    let board = define(&store, "COUNT_DISTINCT(2h, login, device, user)").await;
    let seen = |number: usize| Change::Seen(Counted::parse(&format!("value-{number}")).unwrap());
    let item = |number: usize| named("subject-1".to_owned(), seen(number));
    add(&store, &board, (0..VALUES).map(item).collect()).await.unwrap();
    let gone = |number: usize| Increment { retract: true, at: Some(START), ..item(number) };
    add(&store, &board, (0..VALUES / 4).map(gone).collect()).await.unwrap();
    let board = attach(&store, &board, "COUNT_DISTINCT(4h, login, device, user)").await;
    let [from, to] = [0, 1].map(|number| board.each_track().nth(number).unwrap());
    let cells: Vec<_> = (0..3).map(|who| (subject(who), START)).collect();
    let write = async {
        for number in VALUES..VALUES + 20 {
            let items = vec![both(item(number), seen(number)), both(item(0), seen(0))];
            add(&store, &board, items).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let (filled, ()) = tokio::join!(store.fill(&from, &to, &cells), write);
    filled.unwrap();
    // At the time of its retraction a value stays retracted.
    let expected = (VALUES - VALUES / 4 + 20) as i64;
    assert_eq!(scores(&store, &board, 1).await, [expected, expected]);
    let compared = store.compare([&from, &to], &[subject(1), subject(2)]).await.unwrap();
    let value = Some(Value::Exact(Amount(expected)));
    assert_eq!(compared.values, [[value, value], [None, None]]);
    assert!(store.fill(&from, &from, &cells).await.is_err());
}
