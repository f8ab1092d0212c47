//! Tests of AVG: sums and counts per slot, and their quotient.

use rolltop::board::{Aggregate, Amount, Decimals, Definition, Order, Value};
use rolltop::store::{Outcome, Rejection};

use crate::given::{With, definition, mean, plus};
use crate::site::{COUNTED, Site};

const METRIC: &str = "AVG(3h, pay, amount, user)";
const NOTHING: Outcome = Outcome::Counted { score: None };

pub async fn a_mean_covers_the_amounts_in_the_window(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let (seven, eight) = ("2026-01-01T07:10:00Z", "2026-01-01T08:10:00Z");
        site.count(&board, vec![plus("a", 1).at(seven), plus("a", 2).at(eight), plus("a", 4)]).await;
        assert_eq!(site.value(&board, "a").await, mean(7, 3));
        assert_eq!(site.newest(&board, "a", 2).await, mean(6, 2));
        assert_eq!(site.newest(&board, "a", 1).await, mean(4, 1));
        let slot = |hour: &str, sum| (hour.to_owned(), Aggregate::Mean { sum: Amount(sum), count: 1 });
        let slots = [slot("2026-01-01T07:00:00Z", 1), slot("2026-01-01T08:00:00Z", 2), slot("2026-01-01T09:00:00Z", 4)];
        assert_eq!(site.slots(&board, "a").await, slots);
    }
}

pub async fn means_change_as_slots_expire(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    for board in &boards {
        let (seven, eight) = ("2026-01-01T07:10:00Z", "2026-01-01T08:10:00Z");
        let items = vec![plus("a", 1).at(seven), plus("a", 5).at(eight), plus("a", 4), plus("b", 9).at(seven)];
        site.count(board, items).await;
    }
    for (now, a) in
        [("2026-01-01T10:00:00Z", mean(9, 2)), ("2026-01-01T11:00:00Z", mean(4, 1)), ("2026-01-01T12:00:00Z", None)]
    {
        site.clock(now).await;
        for board in &boards {
            assert_eq!(site.value(board, "a").await, a, "{now}");
            assert_eq!(site.value(board, "b").await, None, "{now}");
        }
        assert_eq!(site.ranking_size(&boards[0]).await, u64::from(a.is_some()));
        site.audit(&boards[0]).await;
    }
}

pub async fn means_are_ranked_by_quotient(site: Site) {
    for (name, order) in [("down", Order::Desc), ("up", Order::Asc)] {
        let mut means = definition(METRIC, "1h");
        means.order = order;
        let board = site.define(name, &means).await;
        let items =
            [("a", 1), ("b", 3), ("b", 4), ("b", 5), ("c", 1), ("c", 0), ("d", 2), ("d", -1), ("d", 1), ("d", 0)];
        site.count(&board, items.map(|(who, units)| plus(who, units)).to_vec()).await;
        let line = |rank, who: &str, score| (rank, who.to_owned(), score);
        // c and d are equal, although their sums differ.
        let expected = match order {
            Order::Desc => [line(1, "b", 4.0), line(2, "a", 1.0), line(3, "d", 0.5), line(3, "c", 0.5)],
            Order::Asc => [line(1, "c", 0.5), line(1, "d", 0.5), line(3, "a", 1.0), line(4, "b", 4.0)],
        };
        assert_eq!(site.means(&board).await, expected);
        site.audit(&board).await;
    }
}

pub async fn means_of_zero_or_less_are_ranked(site: Site) {
    let board = site.board(METRIC, "1h").await;
    site.count(&board, vec![plus("a", 5), plus("a", -5), plus("b", -1), plus("c", 0), plus("d", -1), plus("d", -2)])
        .await;
    let line = |rank, who: &str, score| (rank, who.to_owned(), score);
    assert_eq!(
        site.means(&board).await,
        [line(1, "c", 0.0), line(1, "a", 0.0), line(3, "b", -1.0), line(4, "d", -1.5)]
    );
    assert_eq!(site.value(&board, "a").await, Some(Value::Real(0.0)));
    assert_eq!(site.value(&board, "d").await, mean(-3, 2));
}

pub async fn means_of_fewer_than_min_samples_are_not_ranked(site: Site) {
    let mut few = definition(METRIC, "1h");
    few.min_samples = 3;
    let board = site.define("few", &few).await;
    let (seven, eight) = ("2026-01-01T07:10:00Z", "2026-01-01T08:10:00Z");
    let two = vec![plus("a", 100).at(seven), plus("a", 100).at(eight), plus("b", 1)];
    assert_eq!(site.score(&board, two).await, [NOTHING; 3]);
    assert_eq!(site.value(&board, "a").await, None);
    assert_eq!(site.ranking_size(&board).await, 0);
    assert_eq!(site.slots(&board, "a").await.len(), 2);
    let third = site.score(&board, vec![plus("a", 1), plus("b", 1)]).await;
    assert_eq!(third, [Outcome::Counted { score: mean(201, 3) }, NOTHING]);
    assert_eq!(site.value(&board, "a").await, mean(201, 3));
    assert_eq!(site.ranking_size(&board).await, 1);
    // It leaves the ranking again with its first measurement.
    site.clock("2026-01-01T10:00:00Z").await;
    assert_eq!(site.value(&board, "a").await, None);
    assert_eq!(site.ranking_size(&board).await, 0);
    site.audit(&board).await;
    site.count(&board, vec![plus("a", 0), plus("b", 1)]).await;
    assert_eq!(site.means(&board).await, [(1, "a".to_owned(), 101.0 / 3.0), (2, "b".to_owned(), 1.0)]);
}

pub async fn a_prior_draws_few_measurements_to_its_mean(site: Site) {
    // 35 units, ten times.
    let prior = serde_json::from_value(serde_json::json!({"mean": 3.5, "weight": 10})).unwrap();
    let mut definition = Definition { prior: Some(prior), ..definition(METRIC, "1h") };
    definition.decimals = Decimals::new(1).unwrap();
    definition.windows = vec!["2h/1h".parse().unwrap(), "all".parse().unwrap()];
    let board = site.define("prior", &definition).await;
    let mixed = |sum: i64, count: i64| mean(sum + 350, count + 10);
    let eight = "2026-01-01T08:10:00Z";
    let many: Vec<_> = (0..90).map(|_| plus("many", 45).at(eight)).collect();
    let seven = "2026-01-01T07:10:00Z";
    let scores =
        site.score(&board, [vec![plus("two", 50), plus("two", 50), plus("old", 50).at(seven)], many].concat()).await;
    assert_eq!(scores[1], Outcome::Counted { score: mixed(100, 2) });
    for (subject, expected) in
        [("two", mixed(100, 2)), ("many", mixed(4_050, 90)), ("old", mixed(50, 1)), ("none", None)]
    {
        assert_eq!(site.value(&board, subject).await, expected, "{subject}");
    }
    let real = |value: Option<Value>| value.unwrap().as_f64();
    let lines = [("many", mixed(4_050, 90)), ("two", mixed(100, 2)), ("old", mixed(50, 1))];
    let lines = lines.map(|(subject, score)| (subject.to_owned(), real(score)));
    let ranked: Vec<_> = site.means(&board).await.into_iter().map(|(_, subject, score)| (subject, score)).collect();
    assert_eq!(ranked, lines, "two of 5.0 do not lead 90 of 4.5");
    assert_eq!(site.newest(&board, "two", 1).await, mixed(100, 2));
    assert_eq!(site.newest(&board, "many", 1).await, None, "which has no measurement of its own there");

    // Measurements leave, the prior stays, and goes with the last one.
    site.count(&board, vec![plus("two", 50).at("2026-01-01T09:30:00Z").undone()]).await;
    site.clock("2026-01-01T10:10:00Z").await;
    assert_eq!((site.value(&board, "two").await, site.value(&board, "old").await), (mixed(50, 1), None));
    site.audit(&board).await;
    site.clock("2026-01-01T11:10:00Z").await;
    assert_eq!(site.value(&board, "many").await, None);
    site.audit(&board).await;

    let unranked = Definition { ranked: false, windows: Vec::new(), ..definition };
    let board = site.define("unranked", &unranked).await;
    site.count(&board, vec![plus("two", 50), plus("two", 40)]).await;
    assert_eq!(site.value(&board, "two").await, mixed(90, 2));
}

pub async fn means_equal_the_f64_quotient_bit_for_bit(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let bound = board.edition().main().slot_bound().0;
        let cases: [&[i64]; 7] = [
            &[10, 0, 0],
            &[1, 1, 0],
            &[bound, -1, 0, 0, 0, 0, 0],
            &[-bound, 2, 0],
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12],
            &[bound / 3, bound / 3 + 1, 7],
            &[-10, 0, 0],
        ];
        for (nth, amounts) in cases.iter().enumerate() {
            let who = format!("s{nth}");
            site.count(&board, amounts.iter().map(|units| plus(&who, *units)).collect()).await;
            let (sum, count) = (amounts.iter().sum::<i64>(), amounts.len() as i64);
            let bits = (sum as f64 / count as f64).to_bits();
            assert_eq!(site.value(&board, &who).await.unwrap().as_f64().to_bits(), bits, "{amounts:?}");
        }
    }
}

pub async fn sums_of_means_beyond_the_slot_bound_are_rejected(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let bound = board.edition().main().slot_bound().0;
        let refused = Outcome::Rejected(Rejection::OutOfRange);
        let items =
            vec![plus("a", bound), plus("a", 1), plus("a", -1), plus("b", bound + 1).id("x"), plus("b", 3).id("x")];
        assert_eq!(site.add(&board, items).await, [COUNTED, refused, COUNTED, refused, COUNTED]);
        assert_eq!(site.value(&board, "a").await, mean(bound - 1, 2));
        assert_eq!(site.value(&board, "b").await, mean(3, 1));
    }
}

pub async fn a_retracted_mean_item_is_subtracted_from_its_original_slot(site: Site) {
    let boards = site.both(METRIC, "1h").await;
    let seven = "2026-01-01T07:10:00Z";
    for board in &boards {
        site.count(board, vec![plus("a", 8).at(seven), plus("a", 1).at(seven), plus("a", 4), plus("b", 1).at(seven)])
            .await;
        site.count(board, vec![plus("a", 8).at(seven).undone(), plus("b", 1).at(seven).undone()]).await;
        assert_eq!(site.value(board, "a").await, mean(5, 2));
        assert_eq!(site.value(board, "b").await, None);
        assert_eq!(site.slots(board, "b").await, []);
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for board in &boards {
        assert_eq!(site.value(board, "a").await, mean(4, 1));
        // The event that it reverses has left the window, so there is nothing to undo.
        site.count(board, vec![plus("a", 1).at(seven).undone()]).await;
        assert_eq!(site.value(board, "a").await, mean(4, 1));
        // Without an event to reverse, the slot has a negative count, and the result states it.
        site.count(board, vec![plus("c", 3).at("2026-01-01T09:00:00Z").undone()]).await;
        assert_eq!(site.value(board, "c").await, None);
        let owes = Aggregate::Mean { sum: Amount(-3), count: -1 };
        assert_eq!(site.slots(board, "c").await, [("2026-01-01T09:00:00Z".to_owned(), owes)]);
        site.count(board, vec![plus("c", 5), plus("c", 6)]).await;
        assert_eq!(site.value(board, "c").await, mean(8, 1));
    }
    site.audit(&boards[0]).await;
}

pub async fn means_return_scores_and_count_ids_once(site: Site) {
    for board in site.both(METRIC, "1h").await {
        let items = vec![plus("a", 3).id("x"), plus("a", 100).id("x"), plus("a", 4), plus("b", 0)];
        let scores = site.score(&board, items).await;
        let counted = |sum, count| Outcome::Counted { score: mean(sum, count) };
        assert_eq!(scores, [counted(7, 2), Outcome::Duplicate { score: mean(7, 2) }, counted(7, 2), counted(0, 1)]);
    }
}

pub async fn means_with_a_count_of_zero_keep_their_slots(site: Site) {
    let (seven, eight) = ("2026-01-01T07:10:00Z", "2026-01-01T08:10:00Z");
    let boards = site.both(METRIC, "1h").await;
    for board in &boards {
        site.count(board, vec![plus("a", 4).at(seven), plus("a", 4).at(eight).undone(), plus("b", 1)]).await;
        assert_eq!(site.value(board, "a").await, None);
        assert_eq!(site.slots(board, "a").await.len(), 2);
    }
    site.audit(&boards[0]).await;
    // The remaining count is negative, and the next measurement makes it zero.
    site.clock("2026-01-01T10:00:00Z").await;
    for board in &boards {
        assert_eq!(site.value(board, "a").await, None);
        assert_eq!(site.slots(board, "a").await.len(), 1);
    }
    site.audit(&boards[0]).await;
    for board in &boards {
        site.count(board, vec![plus("a", 3), plus("a", 9)]).await;
        assert_eq!(site.value(board, "a").await, mean(8, 1));
    }
    site.audit(&boards[0]).await;
    site.clock("2026-01-01T11:00:00Z").await;
    for board in &boards {
        assert_eq!(site.value(board, "a").await, mean(12, 2));
    }
    assert_eq!(site.means(&boards[0]).await, [(1, "a".to_owned(), 6.0), (2, "b".to_owned(), 1.0)]);
    site.audit(&boards[0]).await;
}
