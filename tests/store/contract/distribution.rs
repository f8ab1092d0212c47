//! Tests of how the scores of a ranking are distributed.

use rolltop::board::{
    Amount, BoardTrack, Definition, ModerationChange, Order, Percentile, RankingKey, Value, Visibility,
};
use rolltop::store::AtScore;

use super::keys::InKey as _;
use crate::given::{With, definition, plus, subject};
use crate::site::Site;

/// Asserts that an answer is the one that follows from the page of the whole ranking. Returns the number of lines.
async fn check(site: &Site, track: &BoardTrack) -> u64 {
    let page = site.other.page(track, 0, 1_000).await.unwrap();
    let lines: Vec<Value> = page.items.iter().map(|line| line.score).collect();
    let texts = ["50", "0", "0.001", "12.5", "33.333", "66.667", "90", "99.999", "100", "50"];
    let percentiles = texts.map(|text| text.parse::<Percentile>().unwrap());
    let beyond = [-1, 0, 4, 5, 1_000].map(|units| match lines.first() {
        Some(Value::Real(_)) => Value::Real(units as f64 + 0.5),
        _ => Value::Exact(Amount(units)),
    });
    let scores: Vec<Value> = lines.iter().copied().chain(beyond).collect();
    let answer = site.store.distribution(track, &percentiles, &scores).await.unwrap();
    assert_eq!((answer.total, answer.frame.window), (page.total, page.frame.window));
    let is_better = |one: &Value, other: &Value| match track.order() {
        Order::Desc => one > other,
        Order::Asc => one < other,
    };
    let better = |score: &Value| lines.iter().filter(|line| is_better(line, score)).count() as u64;
    for (percentile, found) in percentiles.iter().zip(&answer.percentiles) {
        // The worst score that has the percentile.
        let has =
            |line: &&Value| (page.total - better(line)) * 100_000 >= page.total * u64::from(percentile.thousandths());
        assert_eq!(*found, lines.iter().rev().find(has).copied(), "{percentile} of {lines:?}");
    }
    for (score, found) in scores.iter().zip(&answer.scores) {
        let equal = lines.iter().filter(|line| *line == score).count() as u64;
        assert_eq!(*found, AtScore { better: better(score), equal }, "{score:?} in {lines:?}");
    }
    page.total
}

pub async fn a_distribution_is_that_of_the_lines(site: Site) {
    for (name, metric, order) in [
        ("sums", "SUM(3h, e, v, s)", Order::Desc),
        ("ascending", "MIN(3h, e, v, s)", Order::Asc),
        ("means", "AVG(3h, e, v, s)", Order::Desc),
        ("low-means", "AVG(3h, e, v, s)", Order::Asc),
    ] {
        let windows = vec!["6h/2h".parse().unwrap()];
        let given = Definition { order, windows, ..definition(metric, "1h") };
        let board = site.define(name, &given).await;
        assert_eq!(check(&site, &board.main()).await, 0);
        site.count(&board, vec![plus("only", 4)]).await;
        assert_eq!(check(&site, &board.main()).await, 1);
        // Many ties, and some that are alone.
        let items = (0..60).map(|n| plus(&format!("s{n}"), [1, 1, 1, 2, 5, 5, n][n as usize % 7])).collect();
        site.count(&board, items).await;
        site.count(&board, (0..9).map(|n| plus(&format!("s{n}"), 2 * n)).collect()).await;
        for track in board.each_track() {
            assert!(check(&site, &track).await > 55);
        }
        // What rankings leave out is not counted.
        let hide = ModerationChange::Visibility(Visibility::Hidden);
        let hidden: Vec<_> = (0..60).step_by(3).map(|n| (subject(&format!("s{n}")), hide)).collect();
        site.store.moderate(&board, &hidden).await.unwrap();
        assert!(check(&site, &board.main()).await <= 41);
        let none = site.store.distribution(&board.main(), &[], &[]).await.unwrap();
        assert!(none.percentiles.is_empty() && none.scores.is_empty() && none.total > 0);
    }
}

pub async fn a_distribution_is_that_of_one_key(site: Site) {
    let board = site.define("keys", &definition("COUNT(3h, like, post BY community)", "1h")).await;
    let items = (0..40).map(|n| plus(&format!("s{}", n % 13), n).by(["rust", "art"][n as usize % 2])).collect();
    site.count(&board, items).await;
    for (key, lines) in [("rust", 13), ("art", 13), ("none", 0)] {
        let track = board.main().of_key(Some(RankingKey::parse(key).unwrap()));
        assert_eq!(check(&site, &track).await, lines);
    }
}

pub async fn a_distribution_follows_the_window(site: Site) {
    let board = site.define("board", &definition("COUNT(3h, like, post)", "1h")).await;
    site.count(&board, (0..20).map(|n| plus(&format!("s{n}"), n % 5).at("2026-01-01T08:00:00Z")).collect()).await;
    site.count(&board, (0..10).map(|n| plus(&format!("s{n}"), 1)).collect()).await;
    check(&site, &board.main()).await;
    site.clock("2026-01-01T11:00:00Z").await;
    site.retire(&board).await;
    assert_eq!(check(&site, &board.main()).await, 10);
}
