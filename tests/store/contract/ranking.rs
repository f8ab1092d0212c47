//! Tests of order, ranks, pages, neighbors and standings.

use rolltop::board::{Definition, Order, Subject};

use crate::given::{Units, definition, exact, plus, subject, t};
use crate::site::{START, Site, plain};

/// Subjects whose orders by bytes, by UTF-16 and by the rules of languages differ.
const TIED: [&str; 9] = ["a", "B", "ab", "a\u{301}", "á", "z", "日本", "\u{ffee}", "🎉"];

pub async fn a_descending_board_breaks_ties_by_bytes_descending(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let mut items: Vec<_> = TIED.iter().map(|who| plus(who, 3)).collect();
    items.extend([plus("low", 1), plus("high", 9), plus("under", -3)]);
    site.count(&board, items).await;
    let lines: Vec<String> = site.ranking(&board).await.into_iter().map(|(_, who, _)| who).collect();
    assert_eq!(
        lines,
        ["high", "🎉", "\u{ffee}", "日本", "á", "z", "a\u{301}", "ab", "a", "B", "low", "under"].map(String::from)
    );
}

pub async fn an_ascending_board_breaks_ties_by_bytes_ascending(site: Site) {
    let mut laps = definition("SUM(3h, lap, time, driver)", "1h");
    laps.order = Order::Asc;
    let board = site.define("laps", &laps).await;
    let mut items: Vec<_> = TIED.iter().map(|who| plus(who, 3)).collect();
    items.extend([plus("low", 1), plus("high", 9), plus("under", -3)]);
    site.count(&board, items).await;
    let lines = site.ranking(&board).await;
    let names: Vec<&str> = lines.iter().map(|(_, who, _)| who.as_str()).collect();
    assert_eq!(names, ["under", "low", "B", "a", "ab", "a\u{301}", "z", "á", "日本", "\u{ffee}", "🎉", "high"]);
    let ranks: Vec<u64> = lines.iter().map(|(rank, _, _)| *rank).collect();
    assert_eq!(ranks, [1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 12]);
    let standing = site.store.standing(&board.main(), &subject("z")).await.unwrap();
    assert_eq!((standing.rank, standing.better, standing.total), (Some(3), 2, 12));
    let around = site.store.neighbors(&board.main(), &subject("z"), 1).await.unwrap();
    assert_eq!(
        around.items.into_iter().map(|line| line.subject.to_string()).collect::<Vec<_>>(),
        ["a\u{301}", "z", "á"]
    );
}

pub async fn ties_share_a_rank_across_pages(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let scores = [("a", 9), ("b", 7), ("c", 7), ("d", 7), ("e", 2), ("f", 2), ("g", 1)];
    site.count(&board, scores.iter().map(|(who, score)| plus(who, *score)).collect()).await;
    let expected: Vec<(u64, String, i64)> =
        [(1, "a", 9), (2, "d", 7), (2, "c", 7), (2, "b", 7), (5, "f", 2), (5, "e", 2), (7, "g", 1)]
            .map(|(rank, who, score)| (rank, who.to_owned(), score))
            .to_vec();
    for limit in 1..=8 {
        for offset in 0..7 {
            let page = site.store.page(&board.main(), offset, limit).await.unwrap();
            let lines: Vec<_> = page.items.into_iter().map(plain).collect();
            let wanted: Vec<_> = expected.iter().skip(offset as usize).take(limit as usize).cloned().collect();
            assert_eq!(lines, wanted, "offset {offset} limit {limit}");
        }
    }
}

pub async fn pages_beyond_the_end_of_the_ranking_are_empty_or_short(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let empty = site.store.page(&board.main(), 0, 10).await.unwrap();
    assert_eq!((empty.total, empty.items.len()), (0, 0));
    site.count(&board, vec![plus("a", 1), plus("b", 2), plus("c", 3)]).await;
    for (offset, limit, lines) in [
        (0, 0, 0),
        (0, 3, 3),
        (0, 4, 3),
        (2, 10, 1),
        (3, 10, 0),
        (4, 1, 0),
        (0, u32::MAX, 3),
        (1, u32::MAX, 2),
        (u64::from(u32::MAX), 10, 0),
        (i64::MAX as u64, 10, 0),
        (i64::MAX as u64, u32::MAX, 0),
        (u64::MAX, 10, 0),
        (u64::MAX, u32::MAX, 0),
    ] {
        let page = site.store.page(&board.main(), offset, limit).await.unwrap();
        assert_eq!((page.items.len(), page.total), (lines, 3), "offset {offset} limit {limit}");
    }
}

pub async fn a_ranking_of_thousands_of_subjects_pages_in_order(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    // Scores rise, fall and tie, and change after they were ranked.
    let score = |i: i64| i * 7_919 % 997 - 100;
    let first = (0..3_000).map(|i| plus(&format!("s{i}"), 1 + i % 13)).collect();
    let second = (0..3_000).map(|i| plus(&format!("s{i}"), score(i) - 1 - i % 13)).collect();
    site.count(&board, first).await;
    site.count(&board, second).await;
    let mut expected: Vec<(i64, String)> =
        (0..3_000).map(|i| (score(i), format!("s{i}"))).filter(|(score, _)| *score != 0).collect();
    expected.sort_by(|a, b| b.cmp(a));
    let ranking = site.ranking(&board).await;
    assert_eq!(ranking.iter().map(|(_, who, score)| (*score, who.clone())).collect::<Vec<_>>(), expected);
    for (place, (rank, _, score)) in ranking.iter().enumerate() {
        let better = expected.partition_point(|(other, _)| other > score);
        assert_eq!(*rank, better as u64 + 1, "place {place}");
    }
    for place in [0, 1, 511, 512, 513, 1_500, 2_995] {
        let page = site.store.page(&board.main(), place as u64, 3).await.unwrap();
        assert_eq!(page.items.into_iter().map(plain).collect::<Vec<_>>(), ranking[place..ranking.len().min(place + 3)]);
        let standing = site.store.standing(&board.main(), &subject(&ranking[place].1)).await.unwrap();
        assert_eq!((standing.rank, standing.score.units()), (Some(ranking[place].0), ranking[place].2));
    }
}

pub async fn subjects_at_zero_are_unranked_and_negatives_rank_last(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 2), plus("b", -1), plus("c", 5), plus("d", -7)]).await;
    site.count(&board, vec![plus("a", -2), plus("c", -4)]).await;
    let expected = [(1, "c".to_owned(), 1), (2, "b".to_owned(), -1), (3, "d".to_owned(), -7)];
    assert_eq!(site.ranking(&board).await, expected);
    let gone = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!((gone.score, gone.rank, gone.total), (exact(0), None, 3));
    site.count(&board, vec![plus("a", 1), plus("b", 1), plus("d", 8)]).await;
    let expected = [(1, "d".to_owned(), 1), (1, "c".to_owned(), 1), (1, "a".to_owned(), 1)];
    assert_eq!(site.ranking(&board).await, expected);
}

pub async fn neighbors_are_cut_off_at_the_ends_of_the_ranking(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, (1..=6).map(|i| plus(&format!("s{i}"), 10 - i / 2)).collect()).await;
    let ranking = site.ranking(&board).await;
    for (place, (_, who, _)) in ranking.iter().enumerate() {
        for radius in [0, 1, 2, 5, 6, 1_000, u32::MAX] {
            let page = site.store.neighbors(&board.main(), &subject(who), radius).await.unwrap();
            let first = place.saturating_sub(radius as usize);
            let last = (place + radius as usize).min(ranking.len() - 1);
            let lines: Vec<_> = page.items.into_iter().map(plain).collect();
            assert_eq!(lines, ranking[first..=last], "{who} radius {radius}");
            assert_eq!(page.total, 6);
        }
    }
}

pub async fn an_unranked_subject_has_no_neighbors(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", 2), plus("c", 0)]).await;
    for who in ["c", "nobody"] {
        let page = site.store.neighbors(&board.main(), &subject(who), 3).await.unwrap();
        assert_eq!((page.items.len(), page.total), (0, 2));
    }
}

pub async fn lookup_returns_scores_in_the_order_of_the_request(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1), plus("b", -2), plus("c", 0), plus("日本", 4)]).await;
    let asked = ["nobody", "日本", "b", "c", "a", "b"].map(subject);
    let lookup = site.store.lookup(&board.main(), &asked, false).await.unwrap();
    let scores: Vec<Option<i64>> = lookup.scores.iter().map(|score| score.map(|score| score.units())).collect();
    assert_eq!(scores, [None, Some(4), Some(-2), None, Some(1), Some(-2)]);
    assert_eq!((lookup.total, lookup.ranks), (3, vec![None; 6]));
    for ranks in [false, true] {
        let nobody = site.store.lookup(&board.main(), &[], ranks).await.unwrap();
        assert_eq!((nobody.total, nobody.scores, nobody.ranks), (3, vec![], vec![]));
    }
    let many: Vec<_> = (0..2_000).map(|i| subject(if i % 2 == 0 { "a" } else { "nobody" })).collect();
    let scores = site.store.lookup(&board.main(), &many, false).await.unwrap().scores;
    assert_eq!(scores.iter().flatten().count(), 1_000);
}

pub async fn lookup_returns_the_rank_on_the_whole_board(site: Site) {
    let asked = ["nobody", "d", "a", "f", "gone", "zero", "e", "b", "d"].map(subject);
    let amounts = [("a", 9), ("b", 7), ("c", 7), ("d", 7), ("e", 2), ("f", -3), ("gone", 8), ("zero", 0)];
    for (order, ranks) in [
        (Order::Desc, [None, Some(2), Some(1), Some(6), None, None, Some(5), Some(2), Some(2)]),
        (Order::Asc, [None, Some(3), Some(6), Some(1), None, None, Some(2), Some(3), Some(3)]),
    ] {
        let definition = Definition { order, ..definition("SUM(3h, lap, time, driver)", "1h") };
        let board = site.define(&format!("laps-{}", order as u8), &definition).await;
        site.count(&board, amounts.iter().map(|(who, amount)| plus(who, *amount)).collect()).await;
        site.store.remove(&board, &subject("gone")).await.unwrap();
        let lookup = site.store.lookup(&board.main(), &asked, true).await.unwrap();
        assert_eq!((lookup.total, lookup.ranks.as_slice()), (6, ranks.as_slice()), "{order:?}");
        for (who, rank) in asked.iter().zip(lookup.ranks) {
            assert_eq!(site.store.standing(&board.main(), who).await.unwrap().rank, rank, "{who}");
        }
    }
}

pub async fn lookup_returns_the_ranks_of_a_retiring_window(site: Site) {
    let means = site.define("means", &definition("AVG(2h, rating, stars, film)", "1h")).await;
    let counts = site.define("counts", &definition("COUNT(2h, like, post)", "1h")).await;
    let who: Vec<_> = (0..200).map(|i| subject(&format!("s{i}"))).collect();
    for round in 0..5 {
        site.clock_at(t(START).plus_millis(round * 3_600_000)).await;
        for board in [&means, &counts] {
            // Every other hour, some subjects have no data at all.
            let items = (0..200).filter(|i| round % 2 == 0 || i % 3 > 0);
            site.count(board, items.map(|i| plus(&format!("s{i}"), 1 + (i * 31 + round * 7) % 40)).collect()).await;
            if round > 3 {
                site.store.retire_step(&board.main()).await.unwrap();
            }
            // A part of the expired amounts may still be in the scores. The ranks are those of the ranking as it is.
            let lookup = site.store.lookup(&board.main(), &who, true).await.unwrap();
            let page = site.store.page(&board.main(), 0, 1_000).await.unwrap();
            let line = |who: &Subject| page.items.iter().find(|line| line.subject == *who);
            let ranks: Vec<_> = who.iter().map(|who| line(who).map(|line| line.rank)).collect();
            assert_eq!(lookup.ranks, ranks, "{} {round}", board.name());
            assert_eq!(lookup.total, page.total);
        }
    }
}

pub async fn standing_returns_the_rank_and_the_number_of_better_subjects(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 9), plus("b", 7), plus("c", 7), plus("d", 1), plus("e", -1)]).await;
    for (who, score, rank, better) in [("a", 9, 1, 0), ("b", 7, 2, 1), ("c", 7, 2, 1), ("d", 1, 4, 3), ("e", -1, 5, 4)]
    {
        let standing = site.store.standing(&board.main(), &subject(who)).await.unwrap();
        assert_eq!((standing.score, standing.rank, standing.better), (exact(score), Some(rank), better), "{who}");
        assert_eq!(standing.total, 5);
    }
}

pub async fn standing_of_an_unknown_subject_is_zero_and_unranked(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    for _ in 0..2 {
        let standing = site.store.standing(&board.main(), &subject("nobody")).await.unwrap();
        assert_eq!((standing.score, standing.rank, standing.slots), (exact(0), None, Vec::new()));
        site.count(&board, vec![plus("a", 9), plus("b", -7)]).await;
    }
}
