//! Tests of second keys, by which subjects with the same score are ordered.

use std::sync::Arc;

use rolltop::board::{Amount, Board, Definition, Order};
use rolltop::store::{Increment, Outcome, Rejection};

use crate::given::{With, definition, plus, sample};
use crate::site::Site;

/// Returns the definition of a board whose second keys are at most 4,800, which is 100 in each of 24 slots.
fn keyed(metric: &str, slot: &str, order: Order, of_ties: &str) -> Definition {
    let tie_break = serde_json::from_value(serde_json::json!({"most": 4_800, "order": of_ties})).unwrap();
    Definition { order, tie_break: Some(tie_break), ..definition(metric, slot) }
}

fn number(board: &Board, amount: i64, key: i64) -> i64 {
    board.scale().number(Amount(amount), key).unwrap().0
}

/// Returns an item with a second key.
fn item(board: &Board, who: &str, amount: i64, key: i64) -> Increment {
    plus(who, number(board, amount, key))
}

/// Returns the lines of the ranking: rank, subject, score, second key.
async fn lines(site: &Site, board: &Arc<Board>) -> Vec<(u64, String, i64, i64)> {
    let scale = board.scale();
    let lines = site.ranking(board).await.into_iter();
    lines
        .map(|(rank, who, number)| {
            let number = Amount(number);
            (rank, who, scale.amount(number).0, scale.key(number).unwrap())
        })
        .collect()
}

fn line(rank: u64, who: &str, score: i64, key: i64) -> (u64, String, i64, i64) {
    (rank, who.to_owned(), score, key)
}

pub async fn sums_add_up_scores_and_second_keys(site: Site) {
    let board = site.define("sums", &keyed("SUM(24h, e, v, s)", "1h", Order::Desc, "asc")).await;
    let seven = "2026-01-01T07:10:00Z";
    let items = vec![
        item(&board, "a", 5, 20).at(seven),
        item(&board, "a", 2, 10),
        item(&board, "b", 7, 29),
        item(&board, "c", 7, 30),
        item(&board, "d", -3, 0),
        item(&board, "e", 0, 4),
    ];
    site.count(&board, items).await;
    let all = [line(1, "b", 7, 29), line(2, "c", 7, 30), line(2, "a", 7, 30), line(4, "e", 0, 4), line(5, "d", -3, 0)];
    assert_eq!(lines(&site, &board).await, all, "the fewest first");
    // Taken back, and left behind by the window, with the key.
    site.count(&board, vec![item(&board, "c", 1, 12).undone()]).await;
    site.clock("2026-01-02T07:30:00Z").await;
    site.retire(&board).await;
    let rest = [line(1, "b", 7, 29), line(2, "c", 6, 18), line(3, "a", 2, 10), line(4, "e", 0, 4), line(5, "d", -3, 0)];
    assert_eq!(lines(&site, &board).await, rest);
    site.audit(&board).await;
    site.count(&board, vec![item(&board, "e", 0, 4).undone().at("2026-01-01T09:30:00Z")]).await;
    assert_eq!(lines(&site, &board).await.len(), 4, "neither score nor key is left");
}

pub async fn second_keys_are_bounded_in_each_slot(site: Site) {
    let refused = Outcome::Rejected(Rejection::OutOfRange);
    for (name, order) in [("asc", "asc"), ("desc", "desc")] {
        let board = site.define(name, &keyed("SUM(24h, e, v, s)", "1h", Order::Desc, order)).await;
        let one = |amount, key| item(&board, "a", amount, key);
        let outcomes =
            site.add(&board, vec![one(5, 60), one(1, 41), one(1, 40), one(0, 1), one(0, -201), one(0, -200)]).await;
        let are_refused: Vec<bool> = outcomes.iter().map(|outcome| *outcome == refused).collect();
        assert_eq!(are_refused, [false, true, false, true, true, false], "{outcomes:?}");
        assert_eq!(lines(&site, &board).await, [line(1, "a", 6, -100)]);
        // An item with the largest key is refused, and not carried over into the score, in whatever batch it is.
        let many = (0..50).map(|_| one(1, 4_800)).collect();
        assert_eq!(site.add(&board, many).await, [refused; 50]);
        assert_eq!(lines(&site, &board).await, [line(1, "a", 6, -100)]);
        let set = |amount, key| sample("a", number(&board, amount, key), "2026-01-01T08:00:00Z");
        assert_eq!(site.add(&board, vec![set(3, 101)]).await, [refused]);
        site.count(&board, vec![set(3, 100)]).await;
        assert_eq!(lines(&site, &board).await, [line(1, "a", 9, 0)]);
    }
    let over_all_time = Definition::without_slots("SUM(all, e, v, s)".parse().unwrap());
    let tie_break = keyed("SUM(24h, e, v, s)", "1h", Order::Desc, "desc").tie_break;
    let all = site.define("all", &Definition { tie_break, ..over_all_time }).await;
    let outcomes = site.add(&all, vec![item(&all, "a", 1, 4_800), item(&all, "a", 1, 1)]).await;
    assert_eq!((outcomes[1], lines(&site, &all).await), (refused, vec![line(1, "a", 1, 4_800)]));
}

pub async fn extremes_and_newest_values_have_the_key_of_their_item(site: Site) {
    let seven = "2026-01-01T07:10:00Z";
    let max = site.define("max", &keyed("MAX(24h, e, v, s)", "1h", Order::Desc, "asc")).await;
    let min = site.define("min", &keyed("MIN(24h, e, v, s)", "1h", Order::Asc, "asc")).await;
    let last = site.define("last", &keyed("LAST(24h, e, v, s)", "1h", Order::Desc, "desc")).await;
    let of = |board: &Board| {
        vec![
            item(board, "a", 9, 4_000).at(seven),
            item(board, "a", 9, 4_500),
            item(board, "b", 9, 4_100),
            item(board, "b", 8, 0),
            item(board, "c", 9, 4_500),
        ]
    };
    for board in [&max, &min, &last] {
        site.count(board, of(board)).await;
    }
    assert_eq!(lines(&site, &max).await, [line(1, "a", 9, 4_000), line(2, "b", 9, 4_100), line(3, "c", 9, 4_500)]);
    assert_eq!(lines(&site, &min).await, [line(1, "b", 8, 0), line(2, "a", 9, 4_000), line(3, "c", 9, 4_500)]);
    assert_eq!(lines(&site, &last).await, [line(1, "c", 9, 4_500), line(1, "a", 9, 4_500), line(3, "b", 8, 0)]);
    site.clock("2026-01-02T07:30:00Z").await;
    site.retire(&max).await;
    assert_eq!(lines(&site, &max).await, [line(1, "b", 9, 4_100), line(2, "c", 9, 4_500), line(2, "a", 9, 4_500)]);
    site.audit(&max).await;
}
