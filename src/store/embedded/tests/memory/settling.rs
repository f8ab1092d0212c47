//! Tests of small rankings that are settled before they are read.

use super::*;
use crate::board::{BoardTrack, RankingKey, Value};
use crate::store::Page;

fn in_key(who: i64, key: &str, amount: i64) -> Increment {
    let key = RankingKey::parse(key).unwrap();
    let item = named(format!("post {who}"), Change::Amount(Amount(amount)));
    Increment { subject: item.subject.in_ranking(Some(&key)), ..item }
}

fn of(board: &Arc<Board>, key: &str) -> BoardTrack {
    board.main().of_key(Some(RankingKey::parse(key).unwrap()))
}

/// Returns the number of slots of which a page says that they are retiring, its total and its best score.
fn figures(page: &Page) -> (u64, u64, Option<Value>) {
    (page.frame.retiring, page.total, page.items.first().map(|line| line.score))
}

fn units(amount: i64) -> Option<Value> {
    Some(Value::Exact(Amount(amount)))
}

/// Returns a board of which a slot has expired, with keys of 200 and 201 subjects, and one with a subject whose amounts
/// come to 0.
async fn with_an_expired_slot(store: &Embedded) -> Arc<Board> {
    let board = define(store, "COUNT(2h, like, post BY community)").await;
    for (key, subjects) in [("small", 200), ("large", 201)] {
        add(store, &board, (0..subjects).map(|who| in_key(who, key, 10)).collect()).await.unwrap();
    }
    add(store, &board, vec![in_key(1, "zero", 5), in_key(2, "zero", 7)]).await.unwrap();
    store.set_clock(START.plus_millis(HOUR)).await.unwrap();
    let live = vec![in_key(3, "small", 1), in_key(3, "large", 1), in_key(1, "zero", -5)];
    add(store, &board, live).await.unwrap();
    store.set_clock(START.plus_millis(2 * HOUR)).await.unwrap();
    board
}

#[tokio::test]
async fn a_small_ranking_is_exact_before_its_slots_have_retired() {
    let store = fresh();
    let board = with_an_expired_slot(&store).await;
    let page = async |key| figures(&store.page(&of(&board, key), 0, 10).await.unwrap());
    assert_eq!(page("small").await, (0, 1, units(1)));
    assert_eq!(page("large").await, (1, 201, units(11)));
    assert_eq!(page("unknown").await, (0, 0, None));
    // The subject without a rank gets one when its expired amount is subtracted, so this ranking cannot be settled.
    assert_eq!(page("zero").await, (1, 1, units(7)));
    // Retiring finds what is left.
    let (mut touched, mut is_done) = (0, false);
    while !is_done {
        let step = store.retire_step(&board.main()).await.unwrap();
        (touched, is_done) = (touched + step.subjects_touched, step.done);
    }
    assert_eq!(touched, 201 + 2);
    assert_eq!(page("large").await, (0, 1, units(1)));
    assert_eq!(page("zero").await, (0, 1, units(-5)));
}

#[tokio::test]
async fn settling_is_bounded_and_the_next_read_goes_on() {
    let store = fresh();
    let board = define(&store, "COUNT(8h, like, post BY community)").await;
    for hour in 0..8 {
        store.set_clock(START.plus_millis(hour * HOUR)).await.unwrap();
        add(&store, &board, (0..200).map(|who| in_key(who, "k", 1)).collect()).await.unwrap();
    }
    // The newest slot stays.
    store.set_clock(START.plus_millis(14 * HOUR)).await.unwrap();
    let read = async || figures(&store.page(&of(&board, "k"), 0, 1).await.unwrap());
    let (retiring, _, _) = read().await;
    assert!(retiring > 0, "the first read settled everything");
    assert_eq!(read().await, (0, 200, units(1)));
}
