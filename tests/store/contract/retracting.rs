//! Tests of retractions.

use rolltop::board::{Aggregate, Amount, Definition, Kind, Mode};
use rolltop::store::{Outcome, Rejection};

use crate::given::{With, definition, exact, plus, seen, t, unranked};
use crate::site::{COUNTED, DUPLICATE, Site, counted};

const SUM: &str = "SUM(3h, sale, amount, seller)";
const LIKES: &str = "COUNT_DISTINCT(3h, like, post, user)";
const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const NINE: &str = "2026-01-01T09:10:00Z";

pub async fn a_retraction_subtracts_from_the_slot_of_its_time(site: Site) {
    let boards = site.both(SUM, "1h").await;
    for board in &boards {
        site.count(board, vec![plus("a", 5).at(SEVEN), plus("a", 2).at(SEVEN), plus("a", 1), plus("b", 3).at(EIGHT)])
            .await;
        let scores = site.score(board, vec![plus("a", 5).at(SEVEN).undone(), plus("b", 3).at(EIGHT).undone()]).await;
        assert_eq!(scores, [counted(3), counted(0)]);
        assert_eq!(site.value(board, "a").await, exact(3));
        assert_eq!(site.slots(board, "b").await, []);
    }
    // If it were subtracted now, −5 would remain when the slot of the reversed event expires.
    site.clock("2026-01-01T10:00:00Z").await;
    for board in &boards {
        assert_eq!(site.value(board, "a").await, exact(1));
    }
    assert_eq!(site.ranking(&boards[0]).await, [(1, "a".to_owned(), 1)]);
    site.audit(&boards[0]).await;
}

pub async fn retractions_are_summed_with_the_other_items(site: Site) {
    for board in site.both("COUNT(3h, like, post)", "1h").await {
        let bound = board.edition().main().slot_bound().0;
        let items =
            vec![plus("a", 1), plus("a", 1).at(NINE).undone(), plus("a", 7).at(NINE), plus("b", 2).at(EIGHT).undone()];
        assert_eq!(site.score(&board, items).await, [counted(7), counted(7), counted(7), counted(-2)]);
        assert_eq!(site.slots(&board, "b").await, [("2026-01-01T08:00:00Z".to_owned(), Aggregate::Sum(Amount(-2)))]);
        let refused = Outcome::Rejected(Rejection::OutOfRange);
        assert_eq!(site.add(&board, vec![plus("b", bound).at(EIGHT).undone(), plus("a", 1)]).await, [refused, COUNTED]);
        assert_eq!(site.value(&board, "b").await, exact(-2));
    }
}

pub async fn a_retraction_older_than_the_window_has_no_effect(site: Site) {
    for metric in [SUM, "COUNT(3h, like, post)", LIKES, "AVG(3h, pay, amount, user)"] {
        for board in site.both(metric, "1h").await {
            let distinct = metric == LIKES;
            let item = |who: &str| if distinct { seen(who, "u1") } else { plus(who, 4) };
            site.count(&board, vec![item("a"), item("b")]).await;
            let before = (site.value(&board, "a").await, site.value(&board, "b").await);
            let gone = || item("a").at("2026-01-01T06:59:59.999Z").undone();
            let scores = site.score(&board, vec![gone(), gone().id("x"), gone().id("x")]).await;
            assert_eq!(scores, [Outcome::Counted { score: before.0 }; 3], "{metric}");
            assert_eq!((site.value(&board, "a").await, site.value(&board, "b").await), before);
            // Its id is not stored, because nothing was counted with it.
            assert_eq!(site.add(&board, vec![item("a").id("x"), item("a").id("x")]).await, [COUNTED, DUPLICATE]);
            let early = Outcome::Rejected(Rejection::TooEarly);
            assert_eq!(site.add(&board, vec![item("a").at("2026-01-01T09:31:00Z").undone()]).await, [early]);
            assert!(site.store.undefine(&board).await.unwrap());
        }
    }
}

pub async fn a_retraction_older_than_the_window_with_a_used_id_is_a_duplicate(site: Site) {
    let day = || "3d".parse().ok();
    let mean = "AVG(3h, pay, amount, user)";
    for metric in [SUM, "COUNT(3h, like, post)", LIKES, mean] {
        for ranked in [true, false] {
            let plain = Definition { ranked, dedupe: day(), ..definition(metric, "1h") };
            let windows = if ranked { vec!["10m/1m".parse().unwrap()] } else { Vec::new() };
            for definition in [Definition { windows, ..plain.clone() }, plain] {
                check_used_ids_below_the_window(&site, &definition).await;
            }
        }
    }
    let counter = Definition { mode: Mode::FromFirst, ..unranked(SUM, "1d") };
    check_used_ids_below_the_window(&site, &Definition { dedupe: day(), ..counter }).await;
}

async fn check_used_ids_below_the_window(site: &Site, definition: &Definition) {
    let board = site.define("used", definition).await;
    let item = |who: &str| if definition.kind() == Kind::Distinct { seen(who, "u1") } else { plus(who, 4) };
    let begun = site.store.now().await.unwrap();
    site.count(&board, vec![item("a").id("x"), item("b").id("x")]).await;
    let gone = |who: &str| item(who).at_time(begun.plus_millis(-86_400_000)).undone();
    let before = (site.value(&board, "a").await, site.value(&board, "b").await);
    // The order of the items decides: `y` is counted by the second of its three items.
    let items = vec![
        gone("a").id("x"),
        gone("a").id("y"),
        item("a").id("y"),
        gone("a").id("y"),
        gone("a"),
        gone("b").id("y"),
        gone("b").id("x"),
    ];
    let outcomes = site.score(&board, items).await;
    let after = (site.value(&board, "a").await, site.value(&board, "b").await);
    let [is_a, is_b] = [after.0, after.1].map(|score| (Outcome::Duplicate { score }, Outcome::Counted { score }));
    assert_eq!(outcomes, [is_a.0, is_a.1, is_a.1, is_a.0, is_a.1, is_b.1, is_b.0], "{definition:?}");
    assert_eq!(after.1, before.1);
    // Also when the event has left the window since, and without scores.
    site.clock_at(begun.plus_millis(2 * 86_400_000)).await;
    let undone = |who: &str| item(who).at_time(begun).undone();
    let items = vec![undone("a").id("x"), undone("a").id("z"), undone("a"), item("c").at_time(begun).id("x")];
    let late = Outcome::Rejected(Rejection::TooLate);
    assert_eq!(site.add(&board, items).await, [DUPLICATE, COUNTED, COUNTED, late], "{definition:?}");
    // Its horizon is that of every id.
    site.clock_at(begun.plus_millis(3 * 86_400_000)).await;
    assert_eq!(site.add(&board, vec![undone("a").id("x")]).await, [COUNTED], "{definition:?}");
    assert!(site.store.undefine(&board).await.unwrap());
}

pub async fn a_retraction_with_an_id_counts_once(site: Site) {
    for board in site.both(SUM, "1h").await {
        site.count(&board, vec![plus("a", 5).at(EIGHT).id("like"), plus("a", 5).at(EIGHT)]).await;
        // With the id of the reversed event it is a duplicate.
        let undo = || plus("a", 5).at(EIGHT).undone();
        assert_eq!(site.add(&board, vec![undo().id("like")]).await, [DUPLICATE]);
        assert_eq!(site.add(&board, vec![undo().id("undo"), undo().id("undo")]).await, [COUNTED, DUPLICATE]);
        assert_eq!(site.add(&board, vec![undo().id("undo")]).await, [DUPLICATE]);
        assert_eq!(site.value(&board, "a").await, exact(5));
    }
}

pub async fn repeated_likes_and_retractions_count_each_user_once(site: Site) {
    let boards = site.both(LIKES, "1h").await;
    for board in &boards {
        let like = |who: &str, at: &str| seen("post", who).at(at);
        // The number of clicks does not matter.
        site.count(board, vec![like("ann", SEVEN), like("ann", EIGHT), like("ann", NINE), like("bob", SEVEN)]).await;
        assert_eq!(site.value(board, "post").await, exact(2));
        site.count(board, vec![like("ann", "2026-01-01T09:11:00Z").undone()]).await;
        assert_eq!(site.value(board, "post").await, exact(1));
        site.count(
            board,
            vec![like("ann", "2026-01-01T09:11:00Z").undone(), like("ann", "2026-01-01T09:12:00Z").undone()],
        )
        .await;
        assert_eq!(site.value(board, "post").await, exact(1));
        assert_eq!(site.score(board, vec![like("ann", "2026-01-01T09:13:00Z")]).await, [counted(2)]);
        assert_eq!(site.score(board, vec![like("bob", SEVEN).undone()]).await, [counted(1)]);
        assert_eq!(site.values(board, "post").await, [("ann".to_owned(), "2026-01-01T09:13:00Z".to_owned())]);
    }
    site.audit(&boards[0]).await;
    assert_eq!(site.ranking(&boards[0]).await, [(1, "post".to_owned(), 1)]);
}

pub async fn a_retraction_wins_over_a_sighting_at_the_same_time(site: Site) {
    for board in site.both(LIKES, "1h").await {
        site.count(&board, vec![seen("a", "u").at(EIGHT), seen("a", "u").at(EIGHT).undone()]).await;
        site.count(&board, vec![seen("b", "u").at(EIGHT).undone(), seen("b", "u").at(EIGHT)]).await;
        // An event of another time is a separate sighting.
        site.count(&board, vec![seen("c", "u").at(EIGHT), seen("c", "u").at("2026-01-01T08:09:59.999Z").undone()])
            .await;
        site.count(&board, vec![seen("e", "u").at(EIGHT), seen("e", "u").at("2026-01-01T08:10:00.001Z").undone()])
            .await;
        for (who, count) in [("a", 0), ("b", 0), ("c", 1), ("e", 0)] {
            assert_eq!(site.value(&board, who).await, exact(count), "{who}");
        }
    }
}

pub async fn a_late_sighting_does_not_restore_a_retracted_value(site: Site) {
    for board in site.both(LIKES, "1h").await {
        site.count(&board, vec![seen("a", "u").at(NINE).undone()]).await;
        for late in [SEVEN, EIGHT, NINE] {
            assert_eq!(site.score(&board, vec![seen("a", "u").at(late)]).await, [counted(0)], "{late}");
        }
        // An older retraction does not move the tombstone back. A later one moves it forward.
        site.count(&board, vec![seen("a", "u").at(SEVEN).undone(), seen("a", "u").at(EIGHT)]).await;
        site.count(&board, vec![seen("a", "u").at("2026-01-01T09:20:00Z").undone()]).await;
        assert_eq!(site.score(&board, vec![seen("a", "u").at("2026-01-01T09:15:00Z")]).await, [counted(0)]);
        assert_eq!(site.score(&board, vec![seen("a", "u").at("2026-01-01T09:20:00.001Z")]).await, [counted(1)]);
        assert_eq!(site.slots(&board, "a").await.len(), 1);
    }
}

pub async fn a_tombstone_expires_with_its_slot(site: Site) {
    let boards = site.both("COUNT_DISTINCT(3h, like, post, user)", "1h").await;
    for board in &boards {
        site.count(board, vec![seen("a", "u").at(EIGHT), seen("a", "u").at(EIGHT).undone(), seen("b", "u")]).await;
    }
    site.clock("2026-01-01T10:59:59.999Z").await;
    for board in &boards {
        assert_eq!(site.score(board, vec![seen("a", "u").at("2026-01-01T08:05:00Z")]).await, [counted(0)]);
    }
    site.clock("2026-01-01T11:00:00Z").await;
    for board in &boards {
        // Every late event is too late by now. New events count.
        assert_eq!(site.score(board, vec![seen("a", "u").at("2026-01-01T09:00:00Z")]).await, [counted(1)]);
        assert_eq!(site.store.now().await.unwrap(), t("2026-01-01T11:00:00Z"));
        assert_eq!(site.value(board, "a").await, exact(1));
    }
    site.audit(&boards[0]).await;
}

pub async fn a_later_retraction_removes_the_value_from_the_slot_that_has_it(site: Site) {
    let boards = site.both(LIKES, "1h").await;
    for board in &boards {
        site.count(board, vec![seen("a", "u1").at(SEVEN), seen("a", "u2").at(SEVEN), seen("a", "u3").at(NINE)]).await;
        // The retraction is later than the event: it removes the value from the slot that has it, not from its own
        // slot.
        site.count(board, vec![seen("a", "u1").at(NINE).undone()]).await;
        let slots: Vec<Aggregate> = site.slots(board, "a").await.into_iter().map(|(_, aggregate)| aggregate).collect();
        assert_eq!(slots, [Aggregate::Sum(Amount(1)), Aggregate::Sum(Amount(1))]);
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for board in &boards {
        // While its old slot retires, that slot contains only u2.
        site.count(board, vec![seen("a", "u2").at("2026-01-01T09:59:00Z").undone()]).await;
        assert_eq!(site.value(board, "a").await, exact(1));
    }
    site.audit(&boards[0]).await;
}
