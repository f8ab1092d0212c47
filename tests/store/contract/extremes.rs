//! Tests of MIN and MAX: the extreme of each slot, and the best of those that remain.

use rolltop::board::{Aggregate, Amount, EXACT_MAX, Order};
use rolltop::store::Outcome;

use crate::given::{With, definition, exact, plus, sample};
use crate::site::{Site, counted, duplicate};

const MAX: &str = "MAX(3h, lap, speed, driver)";
const MIN: &str = "MIN(3h, lap, time, driver)";
const SEVEN: &str = "2026-01-01T07:10:00Z";
const EIGHT: &str = "2026-01-01T08:10:00Z";
const NINE: &str = "2026-01-01T09:10:00Z";

pub async fn an_extreme_is_the_best_value_of_all_slots(site: Site) {
    for (nth, (metric, best)) in [(MAX, [9, 7, 7]), (MIN, [5, 5, 7])].into_iter().enumerate() {
        for ranked in [true, false] {
            let mut extremes = definition(metric, "1h");
            extremes.ranked = ranked;
            let board = site.define(&format!("b{nth}{ranked}"), &extremes).await;
            site.count(&board, vec![plus("a", 9).at(SEVEN), plus("a", 5).at(EIGHT), plus("a", 7).at(NINE)]).await;
            assert_eq!(site.value(&board, "a").await, exact(best[0]));
            assert_eq!(site.newest(&board, "a", 2).await, exact(best[1]));
            assert_eq!(site.newest(&board, "a", 1).await, exact(best[2]));
            let slot = |hour: &str, units| (hour.to_owned(), Aggregate::Extreme(Amount(units)));
            let slots =
                [slot("2026-01-01T07:00:00Z", 9), slot("2026-01-01T08:00:00Z", 5), slot("2026-01-01T09:00:00Z", 7)];
            assert_eq!(site.slots(&board, "a").await, slots);
            assert_eq!(site.value(&board, "nobody").await, None);
        }
    }
}

pub async fn an_extreme_expires_with_its_slot(site: Site) {
    let [max, loose_max] = site.both(MAX, "1h").await;
    let min = site.define("min", &definition(MIN, "1h")).await;
    for board in [&max, &loose_max, &min] {
        let mut items = vec![plus("down", 9).at(SEVEN), plus("down", 8).at(EIGHT), plus("down", 7).at(NINE)];
        items.extend([plus("up", 7).at(SEVEN), plus("up", 8).at(EIGHT), plus("up", 9).at(NINE)]);
        items.extend([plus("dip", 9).at(SEVEN), plus("dip", 1).at(EIGHT), plus("dip", 5).at(NINE)]);
        items.extend([plus("same", 4).at(SEVEN), plus("same", 4).at(EIGHT), plus("once", 6).at(SEVEN)]);
        site.count(board, items).await;
    }
    let who = ["down", "up", "dip", "same", "once"];
    let [none, seven, eight, nine] = [None, exact(7), exact(8), exact(9)];
    for (now, greatest, least) in [
        (
            "2026-01-01T09:59:59.999Z",
            [nine, nine, nine, exact(4), exact(6)],
            [seven, seven, exact(1), exact(4), exact(6)],
        ),
        ("2026-01-01T10:00:00Z", [eight, nine, exact(5), exact(4), none], [seven, eight, exact(1), exact(4), none]),
        ("2026-01-01T11:00:00Z", [seven, nine, exact(5), none, none], [seven, nine, exact(5), none, none]),
        ("2026-01-01T12:00:00Z", [none; 5], [none; 5]),
    ] {
        site.clock(now).await;
        for (who, (greatest, least)) in who.into_iter().zip(greatest.into_iter().zip(least)) {
            assert_eq!(site.value(&max, who).await, greatest, "{who}, {now}");
            assert_eq!(site.value(&loose_max, who).await, greatest, "{who}, {now}");
            assert_eq!(site.value(&min, who).await, least, "{who}, {now}");
        }
        let ranked = greatest.iter().filter(|score| score.is_some()).count() as u64;
        assert_eq!((site.ranking_size(&max).await, site.ranking_size(&min).await), (ranked, ranked));
        site.audit(&max).await;
        site.audit(&min).await;
    }
}

pub async fn extremes_of_zero_or_less_are_ranked(site: Site) {
    let board = site.board(MAX, "1h").await;
    site.count(&board, vec![plus("a", 0), plus("b", -3), plus("c", 0).at(SEVEN), plus("c", -1), plus("d", 1)]).await;
    let line = |rank, who: &str, score| (rank, who.to_owned(), score);
    assert_eq!(site.ranking(&board).await, [line(1, "d", 1), line(2, "c", 0), line(2, "a", 0), line(4, "b", -3)]);
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.ranking(&board).await, [line(1, "d", 1), line(2, "a", 0), line(3, "c", -1), line(4, "b", -3)]);
    let mut laps = definition(MIN, "1h");
    laps.order = Order::Asc;
    let board = site.define("laps", &laps).await;
    site.count(&board, vec![plus("a", 0), plus("b", -3), plus("c", 0), plus("c", 7), plus("d", 1)]).await;
    assert_eq!(site.ranking(&board).await, [line(1, "b", -3), line(2, "a", 0), line(2, "c", 0), line(4, "d", 1)]);
}

pub async fn late_values_of_an_extreme_count_in_their_slot(site: Site) {
    let boards = site.both(MAX, "1h").await;
    for board in &boards {
        site.count(board, vec![plus("a", 5), plus("b", 5)]).await;
        site.count(board, vec![plus("a", 9).at(EIGHT), plus("b", 3).at(EIGHT), plus("b", 4).at(SEVEN)]).await;
        site.count(board, vec![plus("a", 7).at(SEVEN), plus("a", 8).at(EIGHT)]).await;
        assert_eq!(site.value(board, "a").await, exact(9));
        assert_eq!(site.value(board, "b").await, exact(5));
    }
    for (now, a) in [("2026-01-01T10:30:00Z", 9), ("2026-01-01T11:30:00Z", 5)] {
        site.clock(now).await;
        for board in &boards {
            assert_eq!(site.value(board, "a").await, exact(a), "{now}");
            assert_eq!(site.value(board, "b").await, exact(5), "{now}");
        }
    }
}

pub async fn a_sample_can_replace_an_extreme_with_a_worse_value(site: Site) {
    for (name, metric, sign) in [("max", MAX, 1), ("min", MIN, -1)] {
        for ranked in [true, false] {
            let mut extremes = definition(metric, "1h");
            extremes.ranked = ranked;
            let board = site.define(&format!("{name}{ranked}"), &extremes).await;
            let plus = |units: i64, at| plus("a", sign * units).at(at);
            let set = |units: i64, at| sample("a", sign * units, at);
            site.count(&board, vec![plus(9, SEVEN), plus(7, EIGHT), plus(8, NINE)]).await;
            // The best slot becomes the worst: the score is that of the next best slot.
            site.count(&board, vec![set(1, SEVEN)]).await;
            assert_eq!(site.value(&board, "a").await, exact(sign * 8));
            // A slot that was dominated counts when the slot that dominated it is made worse.
            site.count(&board, vec![set(2, NINE)]).await;
            assert_eq!(site.value(&board, "a").await, exact(sign * 7));
            site.count(&board, vec![set(0, EIGHT), set(0, EIGHT)]).await;
            assert_eq!(site.value(&board, "a").await, exact(sign * 2));
            let slots: Vec<Aggregate> =
                site.slots(&board, "a").await.into_iter().map(|(_, aggregate)| aggregate).collect();
            assert_eq!(slots, [1, 0, 2].map(|units| Aggregate::Extreme(Amount(sign * units))));
            // Later measurements count as usual.
            site.count(&board, vec![plus(5, EIGHT), set(3, NINE), plus(4, NINE)]).await;
            assert_eq!(site.value(&board, "a").await, exact(sign * 5));
            if ranked {
                site.audit(&board).await;
            }
        }
    }
}

pub async fn an_extreme_worsened_by_a_sample_expires_with_its_slot(site: Site) {
    let boards = site.both(MAX, "1h").await;
    for board in &boards {
        site.count(board, vec![plus("a", 1).at(SEVEN), plus("a", 3).at(EIGHT), plus("a", 9).at(NINE)]).await;
        site.count(board, vec![sample("a", 2, NINE), plus("b", 1)]).await;
    }
    for (now, a) in [("2026-01-01T10:00:00Z", 3), ("2026-01-01T11:00:00Z", 2)] {
        site.clock(now).await;
        for board in &boards {
            assert_eq!(site.value(board, "a").await, exact(a), "{now}");
        }
    }
    site.clock("2026-01-01T12:00:00Z").await;
    assert_eq!(site.value(&boards[0], "a").await, None);
    assert_eq!(site.ranking_size(&boards[0]).await, 0);
}

pub async fn extremes_return_scores_and_count_ids_once(site: Site) {
    for board in site.both(MAX, "1h").await {
        let items = vec![plus("a", 3).id("x"), plus("a", 100).id("x"), plus("a", 2), plus("b", -1).at(SEVEN)];
        assert_eq!(site.score(&board, items).await, [counted(3), duplicate(3), counted(3), counted(-1)]);
    }
}

pub async fn extremes_accept_the_largest_and_smallest_amounts(site: Site) {
    for board in site.both(MIN, "1h").await {
        site.count(&board, vec![plus("a", EXACT_MAX), plus("b", -EXACT_MAX), plus("b", 1)]).await;
        assert_eq!(site.value(&board, "a").await, exact(EXACT_MAX));
        assert_eq!(site.value(&board, "b").await, exact(-EXACT_MAX));
        let late = plus("a", 1).at("2026-01-01T06:59:59.999Z");
        let refused = site.add(&board, vec![late]).await;
        assert!(matches!(refused[..], [Outcome::Rejected(_)]));
    }
}

pub async fn a_removed_extreme_starts_over(site: Site) {
    let boards = site.both(MAX, "1h").await;
    for board in &boards {
        site.count(board, vec![plus("a", 9).at(SEVEN), plus("a", 8), plus("b", 2)]).await;
        let removal = site.store.remove(board, &crate::given::subject("a")).await.unwrap();
        assert_eq!((removal.score, removal.live_slots), (exact(9), 2));
        assert_eq!(site.value(board, "a").await, None);
        site.count(board, vec![plus("a", 1).at(EIGHT)]).await;
        assert_eq!(site.value(board, "a").await, exact(1));
    }
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.ranking(&boards[0]).await, [(1, "b".to_owned(), 2), (2, "a".to_owned(), 1)]);
    site.audit(&boards[0]).await;
}
