//! Tests of calls by those who do not know yet that the editions of a board have changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use rolltop::board::{Board, Change, NotCounted, TrackId};
use rolltop::store::{
    Added, AuditCursor, Batch, ContentsCursor, ImportId, Increment, PageStart, Piece, SlotRange, StoreError,
    ValuesStart,
};

use super::editions::{LONGER, SUM, amount, and, attach, detach, exchange, state, twice, values};
use crate::given::{With, definition, exact, plus, sample, seen, subject, t};
use crate::site::{COUNTED, DUPLICATE, START, Site};

/// Writes with a board that is no longer the present one.
async fn add(site: &Site, board: &Arc<Board>, increments: Vec<Increment>) -> Added {
    site.other.add(board, Batch { increments, return_scores: false }).await.unwrap()
}

const LATER: &str = "2026-01-01T09:45:00Z";

pub async fn a_write_of_before_a_second_edition_counts_the_same_items_in_both(site: Site) {
    let alone = site.define("pair", &definition(SUM, "1h")).await;
    let board = attach(&site, &alone, &definition(LONGER, "1h")).await;
    site.clock(LATER).await;
    let item = || plus("a", 1).id("x");
    let added = add(&site, &alone, vec![item(), item(), plus("a", 2), plus("b", 4).undone().at(START)]).await;
    assert_eq!(added.outcomes, [COUNTED, DUPLICATE, COUNTED, COUNTED]);
    let newer = added.newer.expect("the board as it is now");
    assert_eq!(newer.stored_editions(), board.stored_editions());
    assert_eq!(newer.partitions(), board.partitions());
    assert_eq!(values(&site, &newer, "a").await, [Some(3); 2]);
    assert_eq!(values(&site, &board, "b").await, [Some(-4); 2]);
    assert_eq!(state(&site, &board).await, (t(START), [BTreeMap::new(), BTreeMap::new()]));
    // Samples too, as these have the same slots.
    let added = add(&site, &alone, vec![sample("a", 7, "2026-01-01T09:00:00Z")]).await;
    assert_eq!(added.outcomes, [COUNTED]);
    assert_eq!(values(&site, &board, "a").await, [Some(7); 2]);
    let added = site.store.add(&board, Batch::default()).await.unwrap();
    assert!(added.newer.is_none(), "{added:?}");
    // Of several boards, each has its own answer.
    let single = site.define("single", &definition(SUM, "1h")).await;
    let batch = |who| Batch { increments: vec![plus(who, 1)], return_scores: false };
    let all = vec![(single.clone(), batch("a")), (alone.clone(), batch("c")), (board.clone(), batch("c"))];
    let newer: Vec<_> = site.other.add_all(all).await.into_iter().map(|added| added.unwrap().newer.is_some()).collect();
    assert_eq!(newer, [false, true, false]);
    assert_eq!(values(&site, &board, "c").await, [Some(2), Some(1)]);
}

pub async fn a_write_whose_effect_on_an_edition_is_not_known_moves_the_beginning(site: Site) {
    for (nth, next) in
        ["SUM(3h, sale, tax, seller)", "SUM(3h, sale, amount, seller WHERE big = true)"].iter().enumerate()
    {
        let alone = site.define(&format!("pair{nth}"), &definition(SUM, "1h")).await;
        let board = attach(&site, &alone, &definition(next, "1h")).await;
        let start = site.store.now().await.unwrap();
        site.count(&board, vec![and(plus("a", 1), amount(8)), and(plus("b", 1), Change::Not(NotCounted::Filtered))])
            .await;
        let mut missed = [BTreeMap::new(), BTreeMap::from([(NotCounted::Filtered, 1)])];
        assert_eq!(state(&site, &board).await, (start, missed.clone()));
        // The caller knew no second edition: what the item is there follows from its amount, if it says so.
        assert_eq!(add(&site, &alone, vec![plus("a", 2).id("x")]).await.outcomes, [COUNTED]);
        if nth == 0 {
            missed[1].insert(NotCounted::NotAccepted, 1);
        }
        assert_eq!(state(&site, &board).await, (start, missed.clone()));
        let now = start.plus_millis(60_000);
        site.clock_at(now).await;
        // It did not say what the item is there.
        let item = plus("a", 4).id("y");
        assert_eq!(add(&site, &board, vec![item.clone()]).await.outcomes, [COUNTED]);
        assert_eq!(state(&site, &board).await, (now, missed.clone()));
        // What is not counted says nothing.
        site.clock_at(now.plus_millis(1)).await;
        assert_eq!(add(&site, &board, vec![item]).await.outcomes, [DUPLICATE]);
        let late = plus("a", 2).at("2025-12-31T00:00:00Z");
        assert_ne!(add(&site, &board, vec![late]).await.outcomes, [COUNTED]);
        assert_eq!(state(&site, &board).await, (now, missed.clone()));
        assert_eq!(values(&site, &board, "a").await, [Some(7), Some(if nth == 0 { 8 } else { 10 })]);
        let exchanged = exchange(&site, &board).await;
        let [first, second] = missed;
        assert_eq!(state(&site, &exchanged).await, (now, [second, first]));
    }
}

pub async fn a_write_of_before_an_exchange_counts_in_the_same_editions(site: Site) {
    let alone = site.define("pair", &definition(SUM, "1h")).await;
    let board = attach(&site, &alone, &definition("COUNT(3h, sale, seller)", "1h")).await;
    let item = |units| and(plus("a", units), amount(1));
    site.count(&board, vec![item(10).id("x"), item(20)]).await;
    let exchanged = exchange(&site, &board).await;
    let added = add(&site, &board, vec![item(40).id("y"), item(80), item(1_000).id("x"), item(-5)]).await;
    assert_eq!(added.outcomes, [COUNTED, COUNTED, DUPLICATE, COUNTED]);
    assert_eq!(added.newer.unwrap().epoch(), exchanged.epoch());
    assert_eq!(values(&site, &exchanged, "a").await, [Some(5), Some(145)]);
    // Sent again by who knows the exchange.
    let now = and(plus("a", 1).id("y"), amount(40));
    assert_eq!(add(&site, &exchanged, vec![now]).await.outcomes, [DUPLICATE]);
    let since = site.store.now().await.unwrap();
    assert_eq!(state(&site, &exchanged).await, (since, [BTreeMap::new(), BTreeMap::new()]));
    // And by who does not know any second edition: it counts one event.
    site.clock(LATER).await;
    assert_eq!(add(&site, &alone, vec![plus("a", 200)]).await.outcomes, [COUNTED]);
    assert_eq!(values(&site, &exchanged, "a").await, [Some(6), Some(345)]);
    assert_eq!(state(&site, &exchanged).await.0, since);
}

pub async fn a_write_of_before_an_edition_was_removed_counts_in_the_other_one(site: Site) {
    let alone = site.define("pair", &definition(SUM, "1h")).await;
    let both = attach(&site, &alone, &definition("COUNT(3h, sale, seller)", "1h")).await;
    let item = |units| and(plus("a", units), amount(1));
    site.count(&both, vec![item(10)]).await;
    let detached = detach(&site, &both).await;
    let added = add(&site, &both, vec![item(20).id("x"), item(40)]).await;
    assert_eq!(added.outcomes, [COUNTED, COUNTED]);
    assert_eq!(added.newer.unwrap().epoch(), detached.epoch());
    assert_eq!(add(&site, &alone, vec![plus("a", 80), plus("a", 160).id("x")]).await.outcomes, [COUNTED, DUPLICATE]);
    // An item of the removed edition only counts nowhere.
    let of_next = Increment { change: Change::Not(NotCounted::Filtered), ..item(0) };
    assert_eq!(add(&site, &both, vec![of_next, item(320)]).await.outcomes, [COUNTED, COUNTED]);
    assert_eq!(site.value(&detached, "a").await, exact(470));
    let events = site.store.status(&detached.main()).await.unwrap().events;
    assert_eq!(events.iter().map(|(_, items)| items).sum::<u64>(), 5);
    site.audit(&detached).await;
    // After three changes at once.
    let both = attach(&site, &detached, &definition(LONGER, "1h")).await;
    let alone = detach(&site, &exchange(&site, &both).await).await;
    assert_eq!(add(&site, &both, vec![twice(plus("a", 1))]).await.outcomes, [COUNTED]);
    assert_eq!(add(&site, &detached, vec![plus("a", 2)]).await.outcomes, [COUNTED]);
    assert_eq!(site.value(&alone, "a").await, exact(3));
    // Written by replacing, too.
    let replaced = site.store.replace(&alone, plus("a", 7)).await.unwrap();
    assert_eq!((replaced.outcomes.len(), replaced.newer.is_some()), (1, false));
    assert_eq!(site.value(&alone, "a").await, exact(7));
}

pub async fn other_calls_of_before_a_change_of_editions_change_nothing(site: Site) {
    let distinct = "COUNT_DISTINCT(3h, login, device, user)";
    let alone = site.define("pair", &definition(distinct, "1h")).await;
    site.count(&alone, vec![seen("a", "v")]).await;
    let both = attach(&site, &alone, &definition("COUNT_DISTINCT(6h, login, device, user)", "1h")).await;
    let exchanged = exchange(&site, &both).await;
    let who = || subject("a");
    for board in [&alone, &both] {
        let store = &site.other;
        for track in board.each_track() {
            let next = PageStart::Offset(0);
            let values = ValuesStart::Offset(0);
            let piece = Piece { number: 1, contents: Vec::new(), events: Vec::new() };
            let errors = [
                store.page_from(&track, &next, 1).await.err(),
                store.neighbors(&track, &who(), 1).await.err(),
                store.lookup(&track, &[who()], true).await.err(),
                store.standing(&track, &who()).await.err(),
                store.count(&track, &who(), SlotRange::Slots(1)).await.err(),
                store.values_from(&track, &who(), &values, 1).await.err(),
                store.status(&track).await.err(),
                store.retire_step(&track).await.err(),
                store.audit_step(&track, AuditCursor::default(), true).await.err(),
                store.contents_step(&track, ContentsCursor::default()).await.err(),
                store.merge(&track, ImportId(1), &piece).await.err(),
                store.fill(&board.main(), &track, &[(who(), t("2026-01-01T09:00:00Z"))]).await.err(),
                store.compare([&board.main(), &track], &[who()]).await.err(),
            ];
            for (nth, error) in errors.into_iter().enumerate() {
                assert!(matches!(error, Some(StoreError::StaleEpoch)), "call {nth}: {error:?}");
            }
        }
        let to = match board.other() {
            Some(_) => board.detached(),
            None => board.attached(definition(distinct, "1h"), TrackId(7)).unwrap(),
        };
        let errors = [
            store.remove(board, &who()).await.err(),
            store.begin_import(board, ImportId(1)).await.err(),
            store.end_import(board, ImportId(1)).await.err(),
            store.dual_run(board).await.err(),
            store.end_fill(board, &[(0, board.tracks().len() - 1)]).await.err(),
            store.undefine(board).await.err(),
            store.change_editions(board, to).await.err(),
        ];
        for (nth, error) in errors.into_iter().enumerate() {
            assert!(matches!(error, Some(StoreError::StaleEpoch)), "call {nth} about the board: {error:?}");
        }
    }
    assert_eq!(values(&site, &exchanged, "a").await, [Some(0), Some(1)]);
    assert_eq!(site.store.dual_run(&exchanged).await.unwrap().filled, None);
    let alone_again = detach(&site, &exchanged).await;
    let page = site.store.page(&exchanged.main(), 0, 1).await;
    assert!(matches!(page, Err(StoreError::StaleEpoch)), "{page:?}");
    assert_eq!(site.ranking(&alone_again).await, []);
}

pub async fn writers_that_know_nothing_of_changes_lose_and_double_nothing(site: Site) {
    let alone = site.define("pair", &definition(SUM, "1h")).await;
    let mut writers = Vec::new();
    for writer in 0..3_usize {
        let (store, mut board) = ([&site.store, &site.other][writer % 2].clone(), alone.clone());
        writers.push(tokio::spawn(async move {
            for round in 0..40 {
                let item = |nth: i64| plus(&format!("s{nth}"), 1 + nth);
                let with_id = |nth: i64| item(nth).id(&format!("{writer} {round}"));
                let increments: Vec<Increment> = (0..5).map(item).chain((5..8).map(with_id)).collect();
                // The first writer never learns anything; the others use what they are told.
                let increments: Vec<Increment> = match board.editions().len() {
                    2 => increments.into_iter().map(twice).collect(),
                    _ => increments,
                };
                let added = store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
                assert_eq!(added.outcomes, [COUNTED; 8]);
                if let (Some(newer), true) = (added.newer, writer > 0) {
                    board = newer;
                }
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        }));
    }
    // Each edition of the last pair has been there the whole time, or is compared with nothing.
    let mut board = attach(&site, &alone, &definition(LONGER, "1h")).await;
    let mut original = 0;
    for _ in 0..5 {
        tokio::time::sleep(std::time::Duration::from_millis(4)).await;
        board = exchange(&site, &board).await;
        original = 1 - original;
    }
    board = exchange(&site, &board).await;
    board = detach(&site, &board).await;
    assert_eq!(board.edition().id(), alone.edition().id());
    board = attach(&site, &board, &definition(SUM, "15m")).await;
    for writer in writers {
        writer.await.unwrap();
    }
    for nth in 0..8 {
        let [all, later] = values(&site, &board, &format!("s{nth}")).await;
        assert_eq!(all, Some(120 * (1 + nth)), "s{nth}");
        assert!(later <= all, "{later:?}");
    }
    for track in board.each_track() {
        site.audit(&track).await;
    }
    let events = site.store.status(&board.main()).await.unwrap().events;
    assert_eq!(events.iter().map(|(_, items)| items).sum::<u64>(), 120 * 8);
}
