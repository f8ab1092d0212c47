//! Tests of fills of a second edition with what the current one has, and of comparisons of the two.

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rolltop::board::{Board, BoardTrack, Change, Definition, Kind as Metric, NotCounted, Order, Subject};
use rolltop::store::{Compared, Increment, MAX_FILLED};

use super::editions::{LONGER, SUM, attach, exchange, pair, twice, values};
use crate::carrying::{METRICS, all_of_track, assert_same, cells_of, history, some_of, subjects};
use crate::given::{With, definition, exact, plus, subject, t, unranked};
use crate::site::{START, Site};

/// Returns the tracks with these numbers, each in its edition.
fn tracks(board: &Arc<Board>, from: usize, to: usize) -> (BoardTrack, BoardTrack) {
    let track = |number| board.each_track().nth(number).unwrap();
    (track(from), track(board.editions()[1].numbers().start + to))
}

/// Gives tracks of the second edition everything that tracks of the current one have, and ends the fill.
pub async fn fill(site: &Site, board: &Arc<Board>, pairs: &[(usize, usize)]) {
    let mut numbers = Vec::new();
    for (from, to) in pairs {
        let (from, to) = tracks(board, *from, *to);
        let cells = cells_of(std::slice::from_ref(&site.store), &from).await.unwrap();
        for cells in cells.chunks(70.min(MAX_FILLED)) {
            site.other.fill(&from, &to, cells).await.unwrap();
        }
        numbers.push((from.number(), to.number()));
    }
    site.store.end_fill(board, &numbers).await.unwrap();
}

/// Two definitions, of which the second can be filled from the first, with the tracks of both.
type Fillable = (Definition, Definition, Vec<(usize, usize)>);

fn fillable() -> Vec<Fillable> {
    let mut all = Vec::new();
    for metric in METRICS {
        let over = |window: &str| metric.replace("{w}", window);
        let hours = definition(&over("6h"), "1h");
        let total = Definition::without_slots(over("all").parse().unwrap());
        let further = |windows: &[&str], main: &Definition| Definition {
            windows: windows.iter().map(|window| window.parse().unwrap()).collect(),
            ..main.clone()
        };
        all.push((hours.clone(), Definition { order: Order::Asc, ..definition(&over("3h"), "1h") }, vec![(0, 0)]));
        all.push((hours.clone(), unranked(&over("4h"), "2h"), vec![(0, 0)]));
        let from_five = Definition { starts: "2025-11-01T05:00".parse().ok(), ..definition(&over("1d"), "1d") };
        all.push((hours.clone(), from_five, vec![(0, 0)]));
        let several = further(&["all", "2h/30m"], &hours);
        let others = further(&["4h/2h", "all"], &definition(&over("2h"), "1h"));
        all.push((several, others, vec![(0, 0), (0, 1), (1, 2)]));
        match hours.kind() {
            Metric::Distinct => all.push((total.clone(), Definition { order: Order::Asc, ..total }, vec![(0, 0)])),
            _ => {
                let kept = Definition { slot: "1h".parse().ok(), keep: "4h".parse().ok(), ..total };
                let longer = Definition { order: Order::Asc, slot: "2h".parse().ok(), ..kept.clone() };
                all.push((kept, longer, vec![(0, 0), (1, 1)]));
            }
        }
    }
    all
}

pub async fn a_filled_edition_holds_what_a_board_of_its_own_holds(site: Site) {
    let mut rng = StdRng::seed_from_u64(crate::drawn::seed());
    let now = t(START);
    // The scores of all are on the page.
    let subjects: Vec<Subject> = subjects().into_iter().step_by(6).collect();
    for (nth, (current, next, pairs)) in some_of(&site, fillable()).into_iter().enumerate() {
        let about = format!("{} from {}", next.metric, current.metric);
        let alone = site.define(&format!("pair{nth}"), &current).await;
        let single = site.define(&format!("single{nth}"), &next).await;
        // What is older than the window of the source is nowhere to be had.
        let floor = alone.tracks().iter().map(|track| track.window_at(now).floor).min().unwrap();
        let mut items = history(&mut rng, &alone, 60, now);
        items.retain(|item| item.at.is_some_and(|at| at >= floor));
        let later = items.split_off(40.min(items.len()));
        let before = |item: &Increment| item.at.is_some_and(|at| at < now.plus_millis(-3 * 3_600_000));
        items.sort_by_key(|item| !before(item));
        site.add(&alone, items.clone()).await;
        site.add(&single, items).await;
        let board = attach(&site, &alone, &next).await;
        fill(&site, &board, &pairs).await;
        assert_eq!(site.other.dual_run(&board).await.unwrap().filled, Some(now), "{about}");
        for more in [Vec::new(), later] {
            site.add(&board, more.iter().cloned().map(twice).collect()).await;
            site.add(&single, more).await;
            // Also when everything is filled again.
            fill(&site, &board, &pairs).await;
            let tracks = board.editions()[1].numbers().filter_map(|number| board.each_track().nth(number));
            for (track, single) in tracks.zip(single.each_track()) {
                let expected = all_of_track(&site, &single, &subjects).await;
                assert_same(&all_of_track(&site, &track, &subjects).await, &expected, &about);
            }
        }
        for board in [&board, &single] {
            assert!(site.store.undefine(board).await.unwrap());
        }
    }
}

pub async fn slots_of_which_a_part_is_missing_are_not_filled(site: Site) {
    // At half past nine the slots from 04:00 on are there.
    let alone = site.define("pair", &definition(LONGER, "1h")).await;
    let at = |hour: &str, units| plus("a", units).at(&format!("2026-01-01T{hour}:10:00Z"));
    site.count(&alone, vec![at("04", 1), at("05", 2), at("06", 4), at("08", 8), at("09", 16), plus("b", 32)]).await;
    let board = attach(&site, &alone, &definition("SUM(12h, sale, amount, seller)", "3h")).await;
    let (from, to) = tracks(&board, 0, 0);
    fill(&site, &board, &[(0, 0)]).await;
    let slots = site.slots(&to, "a").await;
    let starts: Vec<&str> = slots.iter().map(|(start, _)| start.as_str()).collect();
    assert_eq!(starts, ["2026-01-01T06:00:00Z", "2026-01-01T09:00:00Z"]);
    assert_eq!(values(&site, &board, "a").await, [Some(31), Some(28)]);
    let events = site.store.status(&to).await.unwrap().events;
    assert_eq!(events, [(t("2026-01-01T06:00:00Z"), 2), (t("2026-01-01T09:00:00Z"), 2)]);
    // A slot below the floor of the second edition is not filled either, and nobody else gets anything.
    site.store.fill(&from, &to, &[(subject("c"), t("2026-01-01T09:00:00Z"))]).await.unwrap();
    assert_eq!(values(&site, &board, "c").await, [Some(0); 2]);
    let short = site.define("short", &definition(LONGER, "1h")).await;
    site.count(&short, vec![at("07", 1), at("08", 2)]).await;
    let short = attach(&site, &short, &definition("SUM(2h, sale, amount, seller)", "1h")).await;
    fill(&site, &short, &[(0, 0)]).await;
    assert_eq!(values(&site, &short, "a").await, [Some(3), Some(2)]);
    for track in board.each_track().chain(short.each_track()) {
        site.audit(&track).await;
    }
}

pub async fn a_fill_gives_back_what_only_the_second_edition_lost(site: Site) {
    let board = pair(&site, &definition(SUM, "1h"), &definition(SUM, "1h")).await;
    let not = || Some(Box::new(Change::Not(NotCounted::NotAccepted)));
    site.count(&board, vec![twice(plus("a", 1)), Increment { other: not(), ..plus("a", 2) }]).await;
    assert_eq!(values(&site, &board, "a").await, [Some(3), Some(1)]);
    fill(&site, &board, &[(0, 0)]).await;
    fill(&site, &board, &[(0, 0)]).await;
    assert_eq!(values(&site, &board, "a").await, [Some(3), Some(3)]);
    let (from, to) = tracks(&board, 0, 0);
    assert_eq!(site.store.status(&to).await.unwrap().events, site.store.status(&from).await.unwrap().events);
    // In its last slot, an amount of zero is none.
    site.count(&board, vec![Increment { other: not(), ..plus("a", -3) }]).await;
    site.store.fill(&from, &to, &[(subject("a"), t("2026-01-01T09:00:00Z"))]).await.unwrap();
    assert_eq!((values(&site, &board, "a").await, site.ranking(&to).await), ([Some(0), Some(0)], Vec::new()));
    // What expires in between is gone, and is not filled.
    site.count(&board, vec![Increment { other: not(), ..plus("b", 5) }]).await;
    site.clock("2026-01-01T12:00:00Z").await;
    site.store.fill(&from, &to, &[(subject("b"), t("2026-01-01T09:00:00Z"))]).await.unwrap();
    assert_eq!(values(&site, &board, "b").await, [Some(0), Some(0)]);
    site.store.end_fill(&board, &[(0, 1)]).await.unwrap();
    assert_eq!(site.store.dual_run(&board).await.unwrap().filled, Some(t("2026-01-01T12:00:00Z")));
    for track in [from, to] {
        assert_eq!(site.store.status(&track).await.unwrap().events, []);
        site.audit(&track).await;
    }
}

pub async fn a_comparison_shows_both_editions_at_one_instant(site: Site) {
    let next = Definition { order: Order::Asc, ..definition("AVG(6h, sale, amount, seller)", "1h") };
    let board = pair(&site, &definition(SUM, "1h"), &next).await;
    let items = vec![twice(plus("a", 2)), twice(plus("a", 4)), twice(plus("b", 0))];
    site.count(&board, items).await;
    site.add(&board, vec![twice(plus("c", 7).at("2026-01-01T05:00:00Z"))]).await;
    let (one, two) = tracks(&board, 0, 0);
    let who = ["a", "c", "nobody", "b", "a"].map(subject);
    let Compared { frames, values } = site.store.compare([&one, &two], &who).await.unwrap();
    let now = t(START);
    assert_eq!(frames.map(|frame| (frame.as_of, frame.window)), [&one, &two].map(|track| (now, track.window_at(now))));
    let values: Vec<_> = values.into_iter().map(|pair| pair.map(|value| value.map(|value| value.as_f64()))).collect();
    let a = [Some(6.0), Some(3.0)];
    assert_eq!(values, [a, [None, Some(7.0)], [None, None], [None, Some(0.0)], a]);
    assert!(site.store.compare([&one, &two], &[]).await.unwrap().values.is_empty());
    // The other way round, and what has no ranking.
    let swapped = site.other.compare([&two, &one], &[subject("a")]).await.unwrap();
    assert_eq!(swapped.values[0].map(|value| value.map(|value| value.as_f64())), [Some(3.0), Some(6.0)]);
    let board = exchange(&site, &board).await;
    let (one, two) = tracks(&board, 0, 0);
    let found = site.store.compare([&one, &two], &[subject("a")]).await.unwrap();
    assert_eq!(found.values[0].map(|value| value.map(|value| value.as_f64())), [Some(3.0), Some(6.0)]);
    let alone = site.define("unranked", &unranked(SUM, "1h")).await;
    let board = attach(&site, &alone, &unranked("MAX(2h, sale, amount, seller)", "1h")).await;
    site.count(&board, vec![twice(plus("a", 2)), twice(plus("a", 4))]).await;
    let many: Vec<Subject> = (0..Compared::MAX_SUBJECTS - 1).map(|nth| subject(&format!("s{nth}"))).collect();
    let (one, two) = tracks(&board, 0, 0);
    let who: Vec<Subject> = std::iter::once(subject("a")).chain(many).collect();
    let found = site.store.compare([&one, &two], &who).await.unwrap().values;
    assert_eq!((found.len(), found[0]), (Compared::MAX_SUBJECTS, [exact(6), exact(4)]));
    // The newest value is that of the newest slot, whichever was written last.
    let alone = site.define("latest", &unranked("LAST(3h, sale, amount, seller)", "1h")).await;
    let board = attach(&site, &alone, &unranked("LAST(6h, sale, amount, seller)", "15m")).await;
    for (at, units) in
        [(START, 4), ("2026-01-01T08:00:00Z", 7), ("2026-01-01T09:00:00Z", 9), ("2026-01-01T07:00:00Z", 2)]
    {
        site.count(&board, vec![twice(plus("a", units).at(at))]).await;
    }
    let (one, two) = tracks(&board, 0, 0);
    assert_eq!(site.store.compare([&one, &two], &[subject("a")]).await.unwrap().values, [[exact(4); 2]]);
    let is_nothing = |value: &Option<rolltop::board::Value>| value.is_none_or(|value| Some(value) == exact(0));
    assert!(found[1..].iter().flatten().all(is_nothing), "{found:?}");
}
