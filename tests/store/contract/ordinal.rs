//! Tests of ordinal ranks: each line has a rank of its own, in the order of the lines, in every read.

use rolltop::board::{
    Amount, BoardTrack, Definition, ModerationChange, Movement, Order, RankingKey, Ranks, Subject, Value, Visibility,
};
use rolltop::store::{Direction, Increment, NextTo, PageStart, Place};

use crate::given::{With, definition, plus, subject};
use crate::site::Site;

/// Asserts that all reads of a ranking agree on the ranks of its lines. Returns the names in their order.
async fn check(site: &Site, track: &BoardTrack) -> Vec<String> {
    let store = &site.store;
    let lines = store.page(track, 0, 1_000).await.unwrap().items.to_vec();
    let total = lines.len() as u64;
    assert!(lines.iter().map(|line| line.rank).eq(1..=total), "{lines:?}");
    for (offset, limit) in [(0, 3), (1, 4), (5, 9), (total.saturating_sub(1), 5), (40, 1_000)] {
        for _ in 0..2 {
            let page = store.page(track, offset, limit).await.unwrap();
            let [from, till] = [offset, offset + u64::from(limit)].map(|at| at.min(total) as usize);
            assert_eq!(page.items[..], lines[from..till]);
        }
    }
    for (line, rank) in lines.iter().zip(1..) {
        for direction in [Direction::Forward, Direction::Backward] {
            let place = Place { score: line.score, subject: line.subject.clone() };
            let start = PageStart::Place(NextTo { place, direction, inclusive: true });
            let page = store.page_from(track, &start, 3).await.unwrap();
            let from = page.first as usize;
            assert_eq!(page.items[..], lines[from..from + page.items.len()]);
            assert!(page.items.contains(line), "{line:?} in {page:?}");
        }
        let around = store.neighbors(track, &line.subject, 2).await.unwrap();
        let from = around.first as usize;
        assert_eq!(around.items[..], lines[from..from + around.items.len()], "{line:?}");
        let standing = store.standing(track, &line.subject).await.unwrap();
        assert_eq!((standing.rank, standing.better, standing.total), (Some(rank), rank - 1, total), "{line:?}");
    }
    let mut asked: Vec<Subject> = lines.iter().map(|line| line.subject.clone()).collect();
    asked.insert(lines.len() / 2, subject("nobody"));
    let found = store.lookup(track, &asked, true).await.unwrap();
    let mut expected: Vec<Option<u64>> = (1..=total).map(Some).collect();
    expected.insert(lines.len() / 2, None);
    assert_eq!(found.ranks, expected);
    assert!(store.lookup(track, &asked, false).await.unwrap().ranks.iter().all(Option::is_none));
    lines.into_iter().map(|line| line.subject.to_string()).collect()
}

pub async fn each_line_has_a_rank_of_its_own_in_every_read(site: Site) {
    for (name, metric, order) in [
        ("sums", "SUM(3h, e, v, s)", Order::Desc),
        ("ascending", "MIN(3h, e, v, s)", Order::Asc),
        ("means", "AVG(3h, e, v, s)", Order::Desc),
    ] {
        let windows = vec!["6h/2h".parse().unwrap()];
        let wanted = Definition { order, windows, ranks: Ranks::Ordinal, ..definition(metric, "1h") };
        let board = site.define(name, &wanted).await;
        assert!(check(&site, &board.main()).await.is_empty());
        let items = (0..60).map(|n| plus(&format!("s{n:02}"), [1, 1, 1, 2, 5, 5, n][n as usize % 7])).collect();
        site.count(&board, items).await;
        for track in board.each_track() {
            assert_eq!(check(&site, &track).await.len(), 60);
        }
        // A hidden subject has no line, and a shadowed one sees the rank that it would have.
        let before = check(&site, &board.main()).await;
        let (hidden, shadowed) = (before[7].clone(), before[9].clone());
        let hide = |visibility| ModerationChange::Visibility(visibility);
        let changes = [(hidden, hide(Visibility::Hidden)), (shadowed.clone(), hide(Visibility::Shadowed))];
        let changes = changes.map(|(name, change)| (subject(&name), change));
        site.store.moderate(&board, &changes).await.unwrap();
        let expected: Vec<_> =
            before.iter().filter(|name| **name != before[7] && **name != shadowed).cloned().collect();
        assert_eq!(check(&site, &board.main()).await, expected);
        let standing = site.store.standing(&board.main(), &subject(&shadowed)).await.unwrap();
        assert_eq!((standing.rank, standing.better), (Some(9), 8), "after the eight lines that are not hidden");
    }
}

pub async fn ordinal_ranks_are_those_of_one_key(site: Site) {
    let wanted = Definition { ranks: Ranks::Ordinal, ..definition("COUNT(3h, e, s BY k)", "1h") };
    let board = site.define("keyed", &wanted).await;
    let key = |text: &str| RankingKey::parse(text).unwrap();
    let item = |name: &str, of: &str| {
        let plain = plus(name, 1);
        Increment { subject: subject(name).in_ranking(Some(&key(of))), ..plain }
    };
    let mut items: Vec<_> = (0..9).map(|n| item(&format!("s{n}"), "red")).collect();
    items.extend((0..5).map(|n| item(&format!("s{n}"), "blue")));
    site.count(&board, items).await;
    assert_eq!(check(&site, &board.main().of_key(Some(key("red")))).await.len(), 9);
    assert_eq!(check(&site, &board.main().of_key(Some(key("blue")))).await, ["s4", "s3", "s2", "s1", "s0"]);
}

pub async fn earlier_ranks_are_ordinal_too(site: Site) {
    let movement = Some(Movement::Hour);
    let wanted = Definition { ranks: Ranks::Ordinal, movement, ..definition("COUNT(24h, e, s)", "1h") };
    let board = site.define("moving", &wanted).await;
    site.count(&board, ["a", "b", "c", "d"].map(|who| plus(who, 1)).to_vec()).await;
    site.count(&board, vec![plus("d", 1).at("2026-01-01T09:10:00Z")]).await;
    site.clock("2026-01-01T10:00:01Z").await;
    site.store.page(&board.main(), 0, 1).await.unwrap();
    let earlier = site.store.earlier_ranks(&board.main()).await.unwrap().unwrap();
    let ranks = ["d", "c", "b", "a", "x"].map(|who| earlier.rank_of(&subject(who)));
    assert_eq!(ranks, [Some(1), Some(2), Some(3), Some(4), None]);
    assert_eq!(site.value(&board, "d").await, Some(Value::Exact(Amount(2))));
}
