//! Tests of the bound of a slot: nothing exceeds it.

use rolltop::board::{Definition, EXACT_MAX};
use rolltop::store::{Outcome, Rejection};

use crate::given::{Units, With, definition, plus, subject, unranked};
use crate::site::{COUNTED, DUPLICATE, Site, counted, duplicate};

fn all_time(sum: &str) -> Definition {
    Definition::without_slots(sum.replace("3h", "all").parse().unwrap())
}

const REFUSED: Outcome = Outcome::Rejected(Rejection::OutOfRange);

pub async fn amounts_that_exceed_the_slot_bound_are_rejected(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let bound = board.edition().main().slot_bound().0;
    assert_eq!(site.score(&board, vec![plus("a", bound), plus("b", 1)]).await, [counted(bound), counted(1)]);
    let more = vec![plus("a", 1), plus("b", 1), plus("a", 1).at("2026-01-01T08:00:00Z")];
    assert_eq!(site.add(&board, more).await, [REFUSED, COUNTED, COUNTED]);
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), bound + 1), (2, "b".to_owned(), 2)]);
    site.count(&board, vec![plus("a", -1), plus("b", 1)]).await;
    assert_eq!(site.add(&board, vec![plus("a", 1), plus("b", bound)]).await, [COUNTED, REFUSED]);
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), bound + 1), (2, "b".to_owned(), 3)]);
}

pub async fn amounts_below_the_negative_slot_bound_are_rejected(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let bound = board.edition().main().slot_bound().0;
    site.count(&board, vec![plus("a", -bound), plus("b", 2)]).await;
    assert_eq!(site.add(&board, vec![plus("a", -1), plus("b", -bound)]).await, [REFUSED, COUNTED]);
    assert_eq!(
        site.add(&board, vec![plus("b", -3), plus("a", 2 * bound), plus("c", 1)]).await,
        [REFUSED, COUNTED, COUNTED]
    );
    let expected = [(1, "a".to_owned(), bound), (2, "c".to_owned(), 1), (3, "b".to_owned(), 2 - bound)];
    assert_eq!(site.ranking(&board).await, expected);
}

pub async fn items_of_a_refused_sum_are_tried_one_by_one(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let bound = board.edition().main().slot_bound().0;
    // Together they exceed the bound. Tried one by one, those that fit are counted.
    let items = vec![plus("a", bound - 1), plus("b", 7), plus("a", 5), plus("a", 1), plus("a", 1), plus("a", -4)];
    let outcomes = site.score(&board, items).await;
    let score = bound - 4;
    assert_eq!(outcomes, [counted(score), counted(7), REFUSED, counted(score), REFUSED, counted(score)]);
    // Even if all of them together would fit.
    let outcomes = site.score(&board, vec![plus("a", 10), plus("b", 1), plus("a", -10)]).await;
    assert_eq!(outcomes, [REFUSED, counted(8), counted(score - 10)]);
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), score - 10), (2, "b".to_owned(), 8)]);
}

/// Compares batches with boards that receive the same items one by one. In `windows` all items have the same slots.
pub async fn items_of_a_batch_have_the_outcomes_of_items_one_by_one(site: Site) {
    let sum = "SUM(3h, sale, amount, seller)";
    let windows = vec!["1d/6h".parse().unwrap(), "all".parse().unwrap()];
    let kept = Definition { slot: "1h".parse().ok(), keep: "3h".parse().ok(), ..all_time(sum) };
    for shape in [
        definition(sum, "1h"),
        unranked(sum, "1h"),
        Definition { windows, ..definition(sum, "1h") },
        Definition { ranked: false, ..kept.clone() },
        kept,
    ] {
        let [batch, single] = [site.define("batch", &shape).await, site.define("single", &shape).await];
        let bound = batch.tracks().iter().map(|track| track.slot_bound().0).min().unwrap();
        let a = |amount| plus("a", amount);
        let sequences = [
            vec![a(bound), a(bound), a(-bound)],
            vec![a(-bound), a(-bound), a(bound), a(bound), a(bound), a(1), a(-1)],
            vec![a(bound - 3), a(5), a(-5), a(3), a(-1), a(2), a(-7)],
            // Amounts around items with ids, and of another subject.
            vec![
                a(bound),
                a(1).id("x"),
                a(-bound),
                plus("b", 7),
                a(bound).id("y"),
                a(1),
                a(-1),
                a(bound).id("z"),
                a(0),
            ],
            vec![a(5), a(-3).id("w"), plus("b", bound), a(9), plus("b", -8), a(-9), plus("b", 9), a(bound), a(-4)],
            // Intermediate sums that no number holds.
            vec![a(i64::MAX), a(i64::MAX), a(2), a(i64::MIN), a(i64::MIN), a(i64::MIN), a(-3)],
            vec![a(EXACT_MAX), a(EXACT_MAX), a(-EXACT_MAX), a(-EXACT_MAX), a(4), a(-EXACT_MAX), a(-4)],
        ];
        for (number, items) in sequences.into_iter().enumerate() {
            let mut one_by_one = Vec::new();
            for item in &items {
                one_by_one.extend(site.add(&single, vec![item.clone()]).await);
            }
            assert_eq!(site.add(&batch, items).await, one_by_one, "{shape:?}, sequence {number}");
            for who in ["a", "b"] {
                let values = [site.value(&batch, who).await, site.value(&single, who).await];
                assert_eq!(values[0], values[1], "{shape:?}, {who} after sequence {number}");
            }
        }
        site.audit(&batch).await;
        assert!(site.store.undefine(&batch).await.unwrap() && site.store.undefine(&single).await.unwrap());
    }
}

pub async fn every_item_of_a_subject_has_the_score_after_the_last_of_them(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let bound = board.edition().main().slot_bound().0;
    site.count(&board, vec![plus("a", 3).id("x")]).await;
    // The items of the newest slot are tried one by one, after those of the other slots were counted.
    let items = vec![
        plus("a", 5).at("2026-01-01T08:30:00Z"),
        plus("b", 7),
        plus("a", 1).id("x"),
        plus("a", bound - 4),
        plus("a", 2),
        plus("a", 1),
    ];
    let score = bound + 5;
    let all = [counted(score), counted(7), duplicate(score), counted(score), REFUSED, counted(score)];
    assert_eq!(site.score(&board, items).await, all);
}

pub async fn ids_of_out_of_range_items_are_not_remembered(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let bound = board.edition().main().slot_bound().0;
    let items = vec![plus("a", bound + 1).id("x"), plus("b", 1).id("x"), plus("a", 2).id("x"), plus("a", 3).id("x")];
    assert_eq!(site.add(&board, items).await, [REFUSED, COUNTED, COUNTED, DUPLICATE]);
    // The id is known, so the amount is not checked.
    assert_eq!(site.add(&board, vec![plus("a", bound + 1).id("x"), plus("b", 1)]).await, [DUPLICATE, COUNTED]);
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 2), (1, "a".to_owned(), 2)]);
}

pub async fn extreme_amounts_are_rejected_without_overflow(site: Site) {
    let board = site.board("SUM(1h, sale, amount, seller)", "1h").await;
    for extreme in [i64::MAX, i64::MIN, i64::MAX - 1, 1 << 53, -(1 << 53), (1 << 62) + 1] {
        let items =
            vec![plus("a", extreme), plus("b", 1), plus("a", extreme), plus("a", extreme).id("x"), plus("a", 1)];
        assert_eq!(site.add(&board, items).await, [REFUSED, COUNTED, REFUSED, REFUSED, COUNTED], "{extreme}");
    }
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 6), (1, "a".to_owned(), 6)]);
}

pub async fn sums_of_large_batches_are_exact(site: Site) {
    let board = site.board("SUM(1h, sale, amount, seller)", "1h").await;
    let bound = board.edition().main().slot_bound().0;
    let times = |times: usize, who: &'static str, amount: i64| (0..times).map(move |_| plus(who, amount));
    // The sum fits, and none of the large items does.
    let items = times(1_025, "a", EXACT_MAX).chain(times(1_025, "a", -EXACT_MAX)).chain([plus("a", 5)]);
    assert_eq!(site.add(&board, items.collect()).await, [&[REFUSED; 2_050][..], &[COUNTED]].concat());
    // The intermediate sums fit too.
    let items = (0..1_000).flat_map(|_| [plus("a", bound - 5), plus("a", 5 - bound)]);
    assert_eq!(site.add(&board, items.collect()).await, vec![COUNTED; 2_000]);
    // The sum is 2^53 − 1, which no slot can hold.
    let items = times(1_025, "a", EXACT_MAX).chain(times(1_024, "a", -EXACT_MAX));
    assert_eq!(site.add(&board, items.collect()).await, vec![REFUSED; 2_049]);
    // Tried one by one, each item is checked against the content of the slot at that time.
    let items = times(3, "b", bound).chain(times(4, "b", -bound)).chain(times(2_100, "b", -EXACT_MAX));
    let singly = [COUNTED, REFUSED, REFUSED, COUNTED, COUNTED, REFUSED, REFUSED];
    assert_eq!(site.add(&board, items.collect()).await, [&singly[..], &[REFUSED; 2_100]].concat());
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), 5), (2, "b".to_owned(), -bound)]);
    assert_eq!(site.add(&board, vec![plus("b", bound), plus("b", EXACT_MAX)]).await, [COUNTED, REFUSED]);
    // The same holds for retractions, and for the extremes of the type.
    let undone = |amount: i64| plus("c", amount).undone().at("2026-01-01T09:30:00Z");
    let items = (0..1_025).map(|_| undone(EXACT_MAX)).chain(times(1_025, "c", EXACT_MAX)).chain([undone(7)]);
    assert_eq!(site.add(&board, items.collect()).await, [&[REFUSED; 2_050][..], &[COUNTED]].concat());
    assert_eq!(
        site.add(&board, vec![undone(i64::MIN), undone(1), undone(i64::MIN)]).await,
        [REFUSED, COUNTED, REFUSED]
    );
    assert_eq!(site.ranking(&board).await, [(1, "a".to_owned(), 5), (2, "c".to_owned(), -8)]);
}

pub async fn scores_of_full_slots_are_exact(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    let bound = board.edition().main().slot_bound().0;
    let hours = ["2026-01-01T07:00:00Z", "2026-01-01T08:00:00Z", "2026-01-01T09:00:00Z"];
    for (hour, amount) in hours.into_iter().zip([-bound, bound, bound]) {
        site.count(&board, vec![plus("a", amount).at(hour), plus("b", -amount).at(hour), plus("c", 1).at(hour)]).await;
    }
    assert_eq!(site.store.standing(&board.main(), &subject("a")).await.unwrap().score.units(), bound);
    // The negative slot expires while the newest one fills up: the score is at its highest.
    site.clock("2026-01-01T10:00:00Z").await;
    site.count(&board, vec![plus("a", bound), plus("b", -bound), plus("c", 1)]).await;
    assert_eq!(
        site.ranking(&board).await,
        [(1, "a".to_owned(), 3 * bound), (2, "c".to_owned(), 3), (3, "b".to_owned(), -3 * bound)]
    );
    site.clock("2026-01-01T12:59:59.999Z").await;
    assert_eq!(
        site.ranking(&board).await,
        [(1, "a".to_owned(), bound), (2, "c".to_owned(), 1), (3, "b".to_owned(), -bound)]
    );
}
