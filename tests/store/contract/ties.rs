//! Tests of the numbers of subjects that are not worse, which tiers depend on.

use rolltop::board::{BoardTrack, Definition, ModerationChange, Order, Subject, Visibility};
use rolltop::store::{Direction, NextTo, PageStart, Place, Ranked};

use super::keys::InKey as _;
use crate::given::{counting_ties, definition, plus, subject};
use crate::site::Site;

/// Asserts that all reads of a ranking count the ties that the page of all lines shows. Returns the number of lines.
async fn check(site: &Site, track: &BoardTrack) -> usize {
    let plain = site.other.page(track, 0, 1_000).await.unwrap();
    assert_eq!(plain.not_worse, None, "nothing is counted without tiers");
    let lines = plain.items.to_vec();
    let not_worse = |of: &Ranked| {
        let last = lines.iter().rposition(|line| line.score == of.score).unwrap();
        last as u64 + 1
    };
    let (store, track) = (&site.store, &counting_ties(track.clone()));
    for (offset, limit) in [(0, 0), (0, 1), (0, 3), (1, 4), (5, 9), (0, 1_000), (900, 5)] {
        for _ in 0..2 {
            let page = store.page(track, offset, limit).await.unwrap();
            assert_eq!(page.not_worse, page.items.last().map(not_worse), "{offset} {limit} {lines:?}");
        }
    }
    for line in &lines {
        for direction in [Direction::Forward, Direction::Backward] {
            let place = Place { score: line.score, subject: line.subject.clone() };
            let start = PageStart::Place(NextTo { place, direction, inclusive: false });
            let page = store.page_from(track, &start, 3).await.unwrap();
            assert_eq!(page.not_worse, page.items.last().map(not_worse), "{line:?} in {lines:?}");
        }
        let around = store.neighbors(track, &line.subject, 1).await.unwrap();
        assert_eq!(around.not_worse, around.items.last().map(not_worse), "{line:?} in {lines:?}");
        let standing = store.standing(track, &line.subject).await.unwrap();
        assert_eq!(standing.not_worse, Some(not_worse(line)), "{line:?} in {lines:?}");
    }
    let mut asked: Vec<Subject> = lines.iter().map(|line| line.subject.clone()).collect();
    asked.insert(lines.len() / 2, subject("nobody"));
    let found = store.lookup(track, &asked, true).await.unwrap();
    let mut expected: Vec<_> = lines.iter().map(|line| Some(not_worse(line))).collect();
    expected.insert(lines.len() / 2, None);
    assert_eq!(found.not_worse, expected);
    let scores_only = store.lookup(track, &asked, false).await.unwrap();
    assert!(scores_only.not_worse.iter().all(Option::is_none));
    assert_eq!(store.standing(track, &subject("nobody")).await.unwrap().not_worse, None);
    lines.len()
}

pub async fn ties_are_counted_by_every_read(site: Site) {
    for (name, metric, order) in [
        ("sums", "SUM(3h, e, v, s)", Order::Desc),
        ("ascending", "MIN(3h, e, v, s)", Order::Asc),
        ("means", "AVG(3h, e, v, s)", Order::Desc),
        ("low-means", "AVG(3h, e, v, s)", Order::Asc),
    ] {
        let windows = vec!["6h/2h".parse().unwrap()];
        let board = site.define(name, &Definition { order, windows, ..definition(metric, "1h") }).await;
        assert_eq!(check(&site, &board.main()).await, 0);
        let items = (0..40).map(|n| plus(&format!("s{n}"), [1, 1, 1, 2, 5, 5, n][n as usize % 7])).collect();
        site.count(&board, items).await;
        site.count(&board, (0..9).map(|n| plus(&format!("s{n}"), 2 * n)).collect()).await;
        for track in board.each_track() {
            assert!(check(&site, &track).await > 35);
        }
        // A hidden subject ties with nobody; a shadowed one is not counted among the others.
        let hide = |visibility| ModerationChange::Visibility(visibility);
        let hidden = [("s1", hide(Visibility::Hidden)), ("s2", hide(Visibility::Shadowed))];
        let hidden = hidden.map(|(name, change)| (subject(name), change));
        site.store.moderate(&board, &hidden).await.unwrap();
        check(&site, &board.main()).await;
        let track = counting_ties(board.main());
        assert_eq!(site.store.standing(&track, &subject("s1")).await.unwrap().not_worse, None);
        let shadowed = site.store.standing(&track, &subject("s2")).await.unwrap();
        let lines = site.store.page(&board.main(), 0, 1_000).await.unwrap().items.to_vec();
        let score = shadowed.score.unwrap();
        let is_worse = |line: &&Ranked| match order {
            Order::Desc => line.score < score,
            Order::Asc => line.score > score,
        };
        let not_worse = lines.len() - lines.iter().filter(is_worse).count();
        assert_eq!(shadowed.not_worse, Some(not_worse as u64));
    }
}

pub async fn ties_of_one_key_are_counted(site: Site) {
    let board = site.define("keys", &definition("COUNT(3h, like, post BY community)", "1h")).await;
    let items = (0..40).map(|n| plus(&format!("s{}", n % 13), n % 3).by(["rust", "art"][n as usize % 2])).collect();
    site.count(&board, items).await;
    for key in ["rust", "art", "none"] {
        let track = board.main().of_key(Some(rolltop::board::RankingKey::parse(key).unwrap()));
        check(&site, &track).await;
    }
}
