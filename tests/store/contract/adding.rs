//! Tests of the outcome of each item of a batch.

use rolltop::board::Decimals;
use rolltop::store::{Batch, Outcome, Rejection};

use crate::given::{Units, With, definition, plus, subject, sums, t};
use crate::site::{COUNTED, DUPLICATE, Site, counted, duplicate};

const LATE: Outcome = Outcome::Rejected(Rejection::TooLate);
const EARLY: Outcome = Outcome::Rejected(Rejection::TooEarly);

pub async fn outcomes_are_in_the_order_of_the_items(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let outcomes = site
        .add(
            &board,
            vec![
                plus("a", 1),
                plus("b", 1).at("2026-01-01T06:59:59.999Z"),
                plus("a", 2).id("x"),
                plus("c", 1).at("2026-01-01T09:30:05.001Z"),
                plus("a", 2).id("x"),
                plus("b", 7).at("2026-01-01T07:00:00Z"),
                plus("d", i64::MAX),
            ],
        )
        .await;
    let refused = Outcome::Rejected(Rejection::OutOfRange);
    assert_eq!(outcomes, [COUNTED, LATE, COUNTED, EARLY, DUPLICATE, COUNTED, refused]);
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 7), (2, "a".to_owned(), 3)]);
}

pub async fn items_of_one_subject_are_summed_by_slot(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 5), plus("b", 1), plus("a", -2), plus("a", 1).at("2026-01-01T08:10:00Z")]).await;
    let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    let slots: Vec<(String, i64)> =
        sums(&standing.slots).into_iter().map(|(slot, sum)| (slot.to_string(), sum)).collect();
    assert_eq!(slots, [("2026-01-01T08:00:00Z".to_owned(), 1), ("2026-01-01T09:00:00Z".to_owned(), 3)]);
    assert_eq!(standing.score.units(), 4);
}

pub async fn returned_scores_include_the_whole_batch(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let first = vec![plus("a", 5), plus("b", 1).id("x"), plus("c", 2).at("2026-01-01T08:10:00Z")];
    assert_eq!(site.score(&board, first).await, [counted(5), counted(1), counted(2)]);
    // Each score is the subject's score after the step, for each of its items that asks for it.
    let second = vec![plus("a", 2), plus("a", 10).at("2026-01-01T08:00:00Z"), plus("b", 9).id("x"), plus("c", -2)];
    assert_eq!(site.score(&board, second).await, [counted(17), counted(17), duplicate(1), counted(0)]);
    assert_eq!(site.add(&board, vec![plus("a", 1), plus("b", 1).id("x")]).await, [COUNTED, DUPLICATE]);
}

pub async fn an_empty_batch_is_accepted(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    for return_scores in [false, true] {
        let added = site.store.add(&board, Batch { increments: Vec::new(), return_scores }).await.unwrap();
        assert_eq!(added.outcomes, []);
        assert_eq!(added.frame.as_of, t("2026-01-01T09:30:00Z"));
    }
}

pub async fn late_items_are_rejected_and_the_others_counted(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let outcomes = site
        .add(
            &board,
            vec![
                plus("a", 1).at("2026-01-01T06:59:59.999Z"),
                plus("a", 2).at("2026-01-01T07:00:00Z"),
                plus("a", 4).at("1970-01-01T00:00:00Z"),
                plus("a", 8),
            ],
        )
        .await;
    assert_eq!(outcomes, [LATE, COUNTED, LATE, COUNTED]);
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), 10)]);
    let only_late = site.add(&board, vec![plus("a", 1).at("2025-01-01T00:00:00Z"); 3]).await;
    assert_eq!(only_late, [LATE; 3]);
}

pub async fn items_up_to_five_seconds_early_count_in_the_current_slot(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.clock("2026-01-01T09:59:58Z").await;
    let outcomes = site
        .add(
            &board,
            vec![
                plus("a", 1).at("2026-01-01T09:59:59.999Z"),
                plus("a", 2).at("2026-01-01T10:00:00Z"),
                plus("a", 4).at("2026-01-01T10:00:03Z"),
                plus("a", 8).at("2026-01-01T10:00:03.001Z"),
                plus("a", 16).at("9999-12-31T23:59:59.999Z"),
            ],
        )
        .await;
    assert_eq!(outcomes, [COUNTED, COUNTED, COUNTED, EARLY, EARLY]);
    // There are no future slots: everything is in the slot of nine o'clock and expires with it.
    let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!(sums(&standing.slots), [(t("2026-01-01T09:00:00Z"), 7)]);
    site.clock("2026-01-01T12:00:00Z").await;
    assert_eq!(site.ranking(&board).await, []);
}

pub async fn items_are_placed_in_slots_to_the_millisecond(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(
        &board,
        vec![
            plus("a", 1).at("2026-01-01T07:59:59.999Z"),
            plus("a", 2).at("2026-01-01T08:00:00Z"),
            plus("a", 4).at("2026-01-01T08:59:59.999Z"),
            plus("a", 8).at("2026-01-01T09:00:00Z"),
        ],
    )
    .await;
    let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!(standing.slots.iter().map(|(_, aggregate)| aggregate.units()).collect::<Vec<_>>(), [1, 6, 8]);
}

pub async fn sums_with_decimals_are_exact(site: Site) {
    let mut sums = definition("SUM(2h, sale, amount, seller)", "1h");
    sums.decimals = Decimals::new(2).unwrap();
    let board = site.define("sales", &sums).await;
    // 0.10 + 0.20 − 0.30 is exactly zero.
    site.count(&board, vec![plus("a", 10), plus("a", 20).at("2026-01-01T08:00:00Z"), plus("b", 1)]).await;
    site.count(&board, vec![plus("a", -30), plus("b", 16_660)]).await;
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 16_661)]);
    // When one of the slots expires, the rest of the sum is not zero.
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 16_661), (2, "a".to_owned(), -20)]);
}

pub async fn a_batch_of_5000_items_is_counted(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let hour = |i: i64| ["2026-01-01T07:10:00Z", "2026-01-01T08:10:00Z", "2026-01-01T09:10:00Z"][(i % 3) as usize];
    let item = |i: i64| {
        let item = plus(&format!("s{:04}", i % 2_500), i + 1).at(hour(i));
        if i % 4 == 0 { item.id(&format!("e{i}")) } else { item }
    };
    let outcomes = site.score(&board, (0..5_000).map(item).collect()).await;
    assert_eq!(outcomes.len(), 5_000);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { score: Some(_) })));
    let ranking = site.ranking(&board).await;
    assert_eq!(ranking.len(), 2_500);
    assert_eq!(ranking[0], (1, "s2499".to_owned(), 2_500 + 5_000));
    assert_eq!(ranking[2_499], (2_500, "s0000".to_owned(), 1 + 2_501));
    assert_eq!(ranking.iter().map(|(_, _, score)| score).sum::<i64>(), 5_000 * 5_001 / 2);
}

pub async fn a_batch_of_5000_items_of_one_subject_is_counted(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let item = |i: i64| if i % 2 == 0 { plus("a", i) } else { plus("a", i).id(&format!("e{i}")) };
    site.count(&board, (0..5_000).map(item).collect()).await;
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), 5_000 * 4_999 / 2)]);
}

pub async fn amounts_of_zero_change_nothing(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 0), plus("b", 0).id("x"), plus("c", 3), plus("c", -3), plus("d", 1)]).await;
    assert_eq!(site.ranking(&board).await, [(1, "d".to_owned(), 1)]);
    assert_eq!(site.store.standing(&board.main(), &subject("c")).await.unwrap().slots, []);
    assert_eq!(site.store.status(&board.main()).await.unwrap().slots, [(t("2026-01-01T09:00:00Z"), 1)]);
    assert_eq!(site.add(&board, vec![plus("b", 5).id("x")]).await, [DUPLICATE]);
}
