//! Tests of `ties`: of subjects with the same score, the one that has had it for longer is first.

use std::sync::Arc;

use rolltop::board::{Amount, Board, Definition, Order, Tie};
use rolltop::store::{Increment, Outcome, Rejection};

use crate::given::{With, definition, plus, sample};
use crate::site::Site;

/// Returns the definition of a board with an order of equal scores.
fn timed(metric: &str, slot: &str, order: Order, ties: &str) -> Definition {
    Definition { order, ties: Some(ties.parse().unwrap()), ..definition(metric, slot) }
}

/// Returns an item with the number that callers send: it has no time yet.
fn item(board: &Board, who: &str, amount: i64) -> Increment {
    plus(who, board.scale().number(Amount(amount), 0).unwrap().0)
}

/// Returns the lines of the ranking: rank, subject, score, and the time of its day, or "" if there is none.
async fn lines(site: &Site, board: &Arc<Board>) -> Vec<(u64, String, i64, String)> {
    let scale = board.scale();
    let time = |number| match scale.tie(number) {
        None => String::new(),
        Some(Tie::Time(time)) => time.to_string()[11..].to_owned(),
        other => panic!("{other:?} is no time"),
    };
    let lines = site.ranking(board).await.into_iter();
    lines.map(|(rank, who, number)| (rank, who, scale.amount(Amount(number)).0, time(Amount(number)))).collect()
}

fn line(rank: u64, who: &str, score: i64, time: &str) -> (u64, String, i64, String) {
    (rank, who.to_owned(), score, time.to_owned())
}

/// Returns a time of the day on which sites begin.
fn at(time: &str) -> String {
    format!("2026-01-01T{time}Z")
}

pub async fn equal_sums_are_ordered_by_their_newest_item(site: Site) {
    for (name, order, ties, is_ascending) in [
        ("first", Order::Desc, "first", false),
        ("last", Order::Desc, "last", false),
        ("first-asc", Order::Asc, "first", true),
        ("last-asc", Order::Asc, "last", true),
    ] {
        let board = site.define(name, &timed("SUM(24h, e, v, s)", "1h", order, ties)).await;
        let items = vec![
            item(&board, "a", 5).at(&at("07:10:00")),
            item(&board, "a", 2).at(&at("08:00:01.900")),
            item(&board, "b", 7).at(&at("08:00:02")),
            item(&board, "c", 8).at(&at("06:59:59.999")),
            item(&board, "c", -1).at(&at("08:00:01.100")),
            item(&board, "d", 3),
            item(&board, "d", 0).at(&at("09:00:00")),
            item(&board, "e", -4).at(&at("03:00:00")),
            item(&board, "e", 4).at(&at("04:00:00")),
        ];
        site.count(&board, items).await;
        let seven = |who: &str, rank| line(rank, who, 7, if who == "b" { "08:00:02Z" } else { "08:00:01Z" });
        let mut expected = vec![line(1, "d", 3, "09:30:00Z")];
        // Those of the same second share a rank.
        let (with_time, alone) = (if is_ascending { ["a", "c"] } else { ["c", "a"] }, "b");
        let first = expected.len() as u64;
        let is_first = ties == "first";
        let mut sevens: Vec<_> = with_time.iter().map(|who| seven(who, if is_first { 1 } else { 2 })).collect();
        sevens.insert(if is_first { 2 } else { 0 }, seven(alone, if is_first { 3 } else { 1 }));
        expected = match is_ascending {
            true => {
                sevens.iter_mut().for_each(|line| line.0 += first);
                [expected, sevens].concat()
            }
            false => {
                expected[0].0 = 4;
                [sevens, expected].concat()
            }
        };
        assert_eq!(lines(&site, &board).await, expected, "{name}");
        site.audit(&board).await;
    }
}

pub async fn a_time_stays_when_an_item_is_taken_back_and_leaves_with_its_slot(site: Site) {
    for (ties, day) in [("first", 0), ("last", 2)] {
        let at = |time: &str| format!("2026-01-0{}T{time}Z", day + 1);
        let next = |time: &str| format!("2026-01-0{}T{time}Z", day + 2);
        site.clock(&at("09:30:00")).await;
        let board = site.define(ties, &timed("COUNT(24h, e, s)", "1h", Order::Desc, ties)).await;
        let items = vec![
            item(&board, "a", 1).at(&at("07:10:00")),
            item(&board, "a", 1).at(&at("08:20:00")),
            item(&board, "a", 1).at(&at("08:20:00")).undone(),
            item(&board, "b", 1).at(&at("08:10:00")),
            // Taken back before it arrives.
            item(&board, "c", 1).at(&at("09:00:00")).undone(),
            item(&board, "c", 1).at(&at("09:00:00")),
            item(&board, "c", 1).at(&at("06:00:00")),
            item(&board, "z", 1).at(&at("06:00:00")),
            item(&board, "z", 1).at(&at("06:00:00")).undone(),
        ];
        site.count(&board, items).await;
        let mut expected =
            vec![line(1, "b", 1, "08:10:00Z"), line(2, "a", 1, "08:20:00Z"), line(3, "c", 1, "09:00:00Z")];
        if ties == "last" {
            expected = vec![line(1, "c", 1, "09:00:00Z"), line(2, "a", 1, "08:20:00Z"), line(3, "b", 1, "08:10:00Z")];
        }
        assert_eq!(lines(&site, &board).await, expected, "{ties}");
        site.audit(&board).await;
        // The slots of 6 and 7 o'clock leave: only times are left of two of them.
        site.clock(&next("07:30:00")).await;
        site.retire(&board).await;
        assert_eq!(lines(&site, &board).await, [line(1, "b", 1, "08:10:00Z")], "{ties}");
        site.audit(&board).await;
        // They are there again, with the newest of all times.
        let items = ["a", "c", "z"].map(|who| item(&board, who, 1).at(&at("08:30:00")));
        site.count(&board, items.to_vec()).await;
        let mut expected = vec![
            line(1, "b", 1, "08:10:00Z"),
            line(2, "z", 1, "08:30:00Z"),
            line(2, "a", 1, "08:30:00Z"),
            line(4, "c", 1, "09:00:00Z"),
        ];
        if ties == "last" {
            expected = vec![
                line(1, "c", 1, "09:00:00Z"),
                line(2, "z", 1, "08:30:00Z"),
                line(2, "a", 1, "08:30:00Z"),
                line(4, "b", 1, "08:10:00Z"),
            ];
        }
        assert_eq!(lines(&site, &board).await, expected, "{ties}");
        site.audit(&board).await;
        site.clock(&next("08:30:00")).await;
        site.retire(&board).await;
        assert_eq!(lines(&site, &board).await, [], "{ties}");
        site.clock(&next("09:30:00")).await;
        site.retire(&board).await;
        site.audit(&board).await;
        site.count(&board, vec![item(&board, "c", 1)]).await;
        assert_eq!(lines(&site, &board).await, [line(1, "c", 1, "09:30:00Z")], "{ties}");
    }
}

pub async fn a_score_below_zero_keeps_the_time_of_slots_that_cancel_each_other(site: Site) {
    let board = site.define("board", &timed("SUM(24h, e, v, s)", "1h", Order::Desc, "first")).await;
    let items = vec![
        item(&board, "a", 5).at(&at("06:10:00")),
        item(&board, "a", -5).at(&at("08:20:00")),
        item(&board, "b", -5).at(&at("08:10:00")),
    ];
    site.count(&board, items).await;
    assert_eq!(lines(&site, &board).await, [line(1, "b", -5, "08:10:00Z")]);
    site.clock("2026-01-02T06:00:00Z").await;
    site.retire(&board).await;
    assert_eq!(lines(&site, &board).await, [line(1, "b", -5, "08:10:00Z"), line(2, "a", -5, "08:20:00Z")]);
    site.audit(&board).await;
}

pub async fn scores_are_bounded_in_each_slot_whatever_their_time_is(site: Site) {
    let refused = Outcome::Rejected(Rejection::OutOfRange);
    for (name, ties) in [("first", "first"), ("last", "last")] {
        let board = site.define(name, &timed("SUM(24h, e, v, s)", "1h", Order::Desc, ties)).await;
        let most = board.scale().largest_within(board.edition().main().slot_bound()).0;
        assert_eq!(most, 174_761);
        let outcomes = site
            .add(
                &board,
                vec![item(&board, "a", most), item(&board, "a", 1), item(&board, "b", -most), item(&board, "b", -1)],
            )
            .await;
        let are_refused: Vec<bool> = outcomes.iter().map(|outcome| *outcome == refused).collect();
        assert_eq!(are_refused, [false, true, false, true]);
        // In all slots together.
        for hour in 0..9 {
            let time = at(&format!("0{hour}:59:59"));
            site.count(&board, vec![item(&board, "a", most).at(&time), item(&board, "b", -most).at(&time)]).await;
        }
        let expected = [line(1, "a", 10 * most, "09:30:00Z"), line(2, "b", -10 * most, "09:30:00Z")];
        assert_eq!(lines(&site, &board).await, expected);
        site.audit(&board).await;
    }
}

pub async fn extremes_and_newest_values_have_the_time_of_their_item(site: Site) {
    let max = site.define("max", &timed("MAX(24h, e, v, s)", "1h", Order::Desc, "first")).await;
    let min = site.define("min", &timed("MIN(24h, e, v, s)", "1h", Order::Asc, "last")).await;
    let last = site.define("newest", &timed("LAST(24h, e, v, s)", "1h", Order::Desc, "last:1ms")).await;
    for board in [&max, &min, &last] {
        let items = vec![
            item(board, "a", 9).at(&at("07:10:00")),
            item(board, "a", 9).at(&at("08:10:00.007")),
            item(board, "b", 9).at(&at("08:00:00")),
            item(board, "c", 9).at(&at("08:10:00.008")),
        ];
        site.count(board, items).await;
    }
    let expected = [line(1, "a", 9, "07:10:00Z"), line(2, "b", 9, "08:00:00Z"), line(3, "c", 9, "08:10:00Z")];
    assert_eq!(lines(&site, &max).await, expected);
    let expected = [line(1, "a", 9, "08:10:00Z"), line(1, "c", 9, "08:10:00Z"), line(3, "b", 9, "08:00:00Z")];
    assert_eq!(lines(&site, &min).await, expected);
    let expected = [line(1, "c", 9, "08:10:00.008Z"), line(2, "a", 9, "08:10:00.007Z"), line(3, "b", 9, "08:00:00Z")];
    assert_eq!(lines(&site, &last).await, expected);
    site.count(&max, vec![sample("d", item_number(&max, 9), &at("09:00:00"))]).await;
    assert_eq!(lines(&site, &max).await[3], line(4, "d", 9, "09:00:00Z"));
    site.clock("2026-01-02T07:30:00Z").await;
    site.retire(&max).await;
    let rest = [
        line(1, "b", 9, "08:00:00Z"),
        line(2, "c", 9, "08:10:00Z"),
        line(2, "a", 9, "08:10:00Z"),
        line(4, "d", 9, "09:00:00Z"),
    ];
    assert_eq!(lines(&site, &max).await, rest);
    site.audit(&max).await;
}

fn item_number(board: &Board, amount: i64) -> i64 {
    board.scale().number(Amount(amount), 0).unwrap().0
}

pub async fn a_sample_of_a_total_says_when_it_was_reached(site: Site) {
    let over_all_time = Definition::without_slots("SUM(all, e, v, s)".parse().unwrap());
    let board = site.define("all", &Definition { ties: Some("first".parse().unwrap()), ..over_all_time }).await;
    site.count(&board, vec![item(&board, "a", 3).at(&at("07:00:00")), item(&board, "a", 2).at(&at("09:00:00"))]).await;
    site.count(&board, vec![item(&board, "b", 4).at(&at("08:00:00"))]).await;
    assert_eq!(lines(&site, &board).await[0], line(1, "a", 5, "09:00:00Z"));
    site.count(&board, vec![sample("a", item_number(&board, 4), &at("07:00:00"))]).await;
    assert_eq!(lines(&site, &board).await, [line(1, "a", 4, "07:00:00Z"), line(2, "b", 4, "08:00:00Z")]);
    site.audit(&board).await;
    site.count(&board, vec![sample("a", item_number(&board, 0), &at("07:00:00"))]).await;
    assert_eq!(lines(&site, &board).await, [line(1, "b", 4, "08:00:00Z")]);
    site.audit(&board).await;
}
