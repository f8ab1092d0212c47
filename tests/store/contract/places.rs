//! Tests of pages that continue at a place of the ranking.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::board::{Board, Order, Value};
use rolltop::store::{Direction, NextTo, Page, PageStart, Place, Ranked, Store};

use crate::carrying::some_of;
use crate::given::{Units, definition, exact, plus, sample_of, subject};
use crate::site::Site;

fn place(line: &Ranked) -> Place {
    Place { score: line.score, subject: line.subject.clone() }
}

async fn read(store: &Arc<dyn Store>, board: &Arc<Board>, next_to: NextTo, limit: u32) -> Page {
    store.page_from(&board.main(), &PageStart::Place(next_to), limit).await.unwrap()
}

/// Defines the same sums in both orders.
async fn in_both_orders(site: &Site) -> [Arc<Board>; 2] {
    let mut ascending = definition("SUM(3h, lap, time, driver)", "1h");
    ascending.order = Order::Asc;
    [site.board("SUM(3h, lap, time, driver)", "1h").await, site.define("ascending", &ascending).await]
}

/// Reads the whole ranking page by page, to its end and back to its start, and compares every page with the ranking.
async fn walk(site: &Site, board: &Arc<Board>, limit: usize) {
    let all = site.store.page(&board.main(), 0, 1_000).await.unwrap().items;
    let check = |page: &Page, first: usize, last: usize| {
        assert_eq!(&page.items[..], &all[first..last], "limit {limit}, lines {first} to {last}");
        assert_eq!((page.first, page.total), (first as u64, all.len() as u64));
    };
    let mut page = site.store.page(&board.main(), 0, limit as u32).await.unwrap();
    let mut first = 0;
    loop {
        let last = (first + limit).min(all.len());
        check(&page, first, last);
        let next = read(&site.other, board, NextTo::after(place(&page.items[last - first - 1])), limit as u32).await;
        if last == all.len() {
            check(&next, last, last);
            break;
        }
        (page, first) = (next, last);
    }
    while first > 0 {
        let (last, before) = (first, NextTo::before(place(&page.items[0])));
        page = read(&site.store, board, before, limit as u32).await;
        first = last.saturating_sub(limit);
        check(&page, first, last);
    }
    check(&read(&site.store, board, NextTo::before(place(&page.items[0])), limit as u32).await, 0, 0);
}

pub async fn pages_follow_from_place_to_place(site: Site) {
    for board in in_both_orders(&site).await {
        // Ties that are shorter and longer than a page, and names whose orders by bytes and by UTF-16 differ.
        let scores = [9, 7, 7, 7, 5, 4, 4, -2, -2, -2, -2, -2, -2, -2, -2, -2, -3];
        let names = ["a", "B", "ab", "日本", "\u{ffee}", "🎉"];
        let items = scores.iter().enumerate().map(|(i, score)| plus(&format!("{}{i}", names[i % 6]), *score));
        site.count(&board, items.collect()).await;
        for limit in [1, 3, 7, 16, 17, 18, 1_000] {
            walk(&site, &board, limit).await;
        }
    }
}

pub async fn a_place_need_not_have_a_line(site: Site) {
    for board in in_both_orders(&site).await {
        let names = ["b", "d", "f"];
        let items = [10, 20, 30].iter().flat_map(|score| names.map(|name| plus(&format!("{name}{score}"), *score)));
        site.count(&board, items.collect()).await;
        let all = site.store.page(&board.main(), 0, 100).await.unwrap().items;
        let is_before = |line: &Ranked, place: &Place| match board.edition().order() {
            Order::Asc => (line.score, &line.subject) < (place.score, &place.subject),
            Order::Desc => (line.score, &line.subject) > (place.score, &place.subject),
        };
        for score in some_of(&site, vec![-5, 0, 9, 10, 11, 20, 25, 30, 31]) {
            for name in ["a", "b10", "b20", "c", "d20", "d30", "e", "f10", "f30", "z", "日本"] {
                let place = Place { score: exact(score).unwrap(), subject: subject(name) };
                let before = all.iter().filter(|line| is_before(line, &place)).count();
                let has_line = all.iter().any(|line| line.score == place.score && line.subject == place.subject);
                for inclusive in [false, true] {
                    for (direction, limit) in [
                        (Direction::Forward, 0),
                        (Direction::Forward, 2),
                        (Direction::Forward, u32::MAX),
                        (Direction::Backward, 0),
                        (Direction::Backward, 2),
                        (Direction::Backward, u32::MAX),
                    ] {
                        let is_after_line = has_line && (direction == Direction::Forward) != inclusive;
                        let boundary = before + usize::from(is_after_line);
                        let wanted = match direction {
                            Direction::Forward => boundary..boundary.saturating_add(limit as usize).min(all.len()),
                            Direction::Backward => boundary.saturating_sub(limit as usize)..boundary,
                        };
                        let next_to = NextTo { place: place.clone(), direction, inclusive };
                        let page = read(&site.store, &board, next_to.clone(), limit).await;
                        assert_eq!(page.first, wanted.start as u64, "{next_to:?}, limit {limit}");
                        assert_eq!(&page.items[..], &all[wanted], "{next_to:?}, limit {limit}");
                        assert_eq!(page.total, 9);
                    }
                }
            }
        }
    }
}

pub async fn a_ranking_without_lines_has_places(site: Site) {
    for board in in_both_orders(&site).await {
        let place = Place { score: exact(3).unwrap(), subject: subject("a") };
        for next_to in [NextTo::after(place.clone()), NextTo::before(place.clone()), NextTo::after(place).others()] {
            let page = read(&site.store, &board, next_to, 10).await;
            assert_eq!((page.items.len(), page.first, page.total), (0, 0, 0));
        }
    }
}

pub async fn places_stay_when_their_subjects_leave(site: Site) {
    for board in in_both_orders(&site).await {
        site.count(&board, (1..=9).map(|i| plus(&format!("s{i}"), 10 * i)).collect()).await;
        let all = site.store.page(&board.main(), 0, 100).await.unwrap().items;
        let (middle, names) =
            (place(&all[4]), |page: Page| -> Vec<_> { page.items.into_iter().map(|line| line.subject).collect() });
        let expected = |lines: &[Ranked]| -> Vec<_> { lines.iter().map(|line| line.subject.clone()).collect() };
        site.store.remove(&board, &middle.subject).await.unwrap();
        assert_eq!(names(read(&site.store, &board, NextTo::after(middle.clone()), 9).await), expected(&all[5..]));
        assert_eq!(names(read(&site.other, &board, NextTo::before(middle.clone()), 9).await), expected(&all[..4]));
        // It comes back with a different score, which is not that of the place.
        site.count(&board, vec![plus(middle.subject.as_str(), 1_000)]).await;
        let after = names(read(&site.store, &board, NextTo::after(middle.clone()), 100).await);
        let before = names(read(&site.other, &board, NextTo::before(middle.clone()), 100).await);
        let (up, down) = if board.edition().order() == Order::Asc { (&after, &before) } else { (&before, &after) };
        assert!(up.contains(&middle.subject) && !down.contains(&middle.subject));
        assert_eq!(before.len() + after.len(), 9);
    }
}

pub async fn places_of_means_are_exact(site: Site) {
    let mut ascending = definition("AVG(3h, drive, speed, driver)", "1h");
    ascending.order = Order::Asc;
    let boards = [site.board("AVG(3h, drive, speed, driver)", "1h").await, site.define("ascending", &ascending).await];
    for board in boards {
        let means = [(10, 3), (10, 3), (1, 3), (2, 6), (-1, 7), (0, 5), (40_000_001, 11), (22, 7), (22, 7)];
        let now = site.store.now().await.unwrap();
        let head = board.edition().main().window_at(now).head.to_string();
        let items = means.iter().enumerate();
        site.count(&board, items.map(|(i, (sum, count))| sample_of(&format!("s{i}"), *sum, *count, &head)).collect())
            .await;
        for limit in [1, 2, 5] {
            walk(&site, &board, limit).await;
        }
        // One step of a float away from a mean is a different place.
        let third = 10.0_f64 / 3.0;
        for (score, equal) in [(third.next_down(), 0), (third, 2), (third.next_up(), 0)] {
            let count = |direction, inclusive| {
                let place = Place { score: Value::Real(score), subject: subject("s1") };
                let (store, board) = (site.store.clone(), board.clone());
                async move { read(&store, &board, NextTo { place, direction, inclusive }, 100).await.items.len() }
            };
            let (before, through) = (count(Direction::Backward, false).await, count(Direction::Backward, true).await);
            assert_eq!(through - before, usize::from(equal > 0), "{score}");
            assert_eq!(before + count(Direction::Forward, true).await, 9, "{score}");
        }
    }
}

/// Subjects that stay are on exactly one page each, in their order, however others come, go and move between the pages.
pub async fn nothing_unchanged_is_skipped_or_repeated(site: Site) {
    let seed = crate::drawn::seed();
    let mut rng = StdRng::seed_from_u64(seed);
    for board in in_both_orders(&site).await {
        let name = |i: usize| format!("s{i:02}");
        let mut scores: Vec<i64> = (0..60).map(|_| rng.random_range(-4..=12)).collect();
        site.count(&board, (0..60).map(|i| plus(&name(i), scores[i])).collect()).await;
        let stays: BTreeSet<String> = (0..60).filter(|i| i % 2 == 0 && scores[*i] != 0).map(name).collect();
        let expected: Vec<String> = (site.store.page(&board.main(), 0, 1_000).await.unwrap().items.into_iter())
            .map(|line| line.subject.to_string())
            .filter(|subject| stays.contains(subject))
            .collect();
        for (limit, direction) in
            [1, 3, 7].into_iter().flat_map(|limit| [(limit, Direction::Forward), (limit, Direction::Backward)])
        {
            let mut seen = Vec::new();
            let mut start = match direction {
                Direction::Forward => PageStart::Offset(0),
                // All subjects are before this place.
                Direction::Backward => PageStart::Place(NextTo::before(Place {
                    score: exact(if board.edition().order() == Order::Asc { 1_000 } else { -1_000 }).unwrap(),
                    subject: subject("z"),
                })),
            };
            for nth in 0.. {
                assert!(nth < 10_000, "seed {seed}: the pages do not end");
                let store = if nth % 2 == 0 { &site.store } else { &site.other };
                let page = store.page_from(&board.main(), &start, limit).await.unwrap();
                let next = match direction {
                    Direction::Forward => page.items.last().map(|line| NextTo::after(place(line))),
                    Direction::Backward => page.items.first().map(|line| NextTo::before(place(line))),
                };
                let mut names: Vec<String> = page.items.into_iter().map(|line| line.subject.to_string()).collect();
                if direction == Direction::Backward {
                    names.reverse();
                }
                seen.extend(names.into_iter().filter(|name| stays.contains(name)));
                let Some(next) = next else { break };
                start = PageStart::Place(next);
                // Some of the others move, leave or come back.
                let mut changes = Vec::new();
                for _ in 0..rng.random_range(0..6) {
                    let i = 2 * rng.random_range(0..30) + 1;
                    let score = if rng.random_bool(0.2) { 0 } else { rng.random_range(-4..=12) };
                    changes.push(plus(&name(i), score - scores[i]));
                    scores[i] = score;
                }
                if rng.random_bool(0.2) {
                    let i = 2 * rng.random_range(0..30) + 1;
                    changes.retain(|change| change.subject.as_str() != name(i));
                    scores[i] = 0;
                    site.store.remove(&board, &subject(&name(i))).await.unwrap();
                }
                site.count(&board, changes).await;
            }
            if direction == Direction::Backward {
                seen.reverse();
            }
            assert_eq!(seen, expected, "seed {seed}, limit {limit}, {direction:?}, {:?}", board.edition().order());
        }
        let ranking = site.store.page(&board.main(), 0, 1_000).await.unwrap();
        for line in ranking.items {
            let i: usize = line.subject.as_str()[1..].parse().unwrap();
            assert_eq!(line.score.units(), scores[i], "seed {seed}");
        }
    }
}
