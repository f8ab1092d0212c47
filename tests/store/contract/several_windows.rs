//! Tests of boards with several windows.

use std::sync::Arc;

use rolltop::board::{Board, Definition, WindowLength};
use rolltop::store::{Defined, Outcome, Rejection, SlotRange, StoreError};

use crate::carrying::some_of;
use crate::given::{Units, With, exact, name, new_board, plus, seen, subject, t};
use crate::site::{COUNTED, DUPLICATE, Site, counted};

const LATE: Outcome = Outcome::Rejected(Rejection::TooLate);
const REFUSED: Outcome = Outcome::Rejected(Rejection::OutOfRange);

fn with_windows(metric: &str, slot: Option<&str>, windows: &[&str]) -> Definition {
    let metric = metric.parse().unwrap();
    let windows = windows.iter().map(|window| window.parse().unwrap()).collect();
    match slot {
        Some(slot) => Definition { windows, ..Definition::new(metric, slot.parse().unwrap()) },
        None => Definition { windows, ..Definition::without_slots(metric) },
    }
}

/// Returns a subject's value in each window.
async fn values(site: &Site, board: &Arc<Board>, who: &str) -> Vec<Option<i64>> {
    let mut values = Vec::new();
    for window in board.each_window() {
        values.push(site.value(&window, who).await.map(|value| value.units()));
    }
    values
}

fn each(of: &[i64]) -> Vec<Option<i64>> {
    of.iter().map(|units| Some(*units)).collect()
}

pub async fn an_item_counts_in_every_window_that_reaches_back_to_it(site: Site) {
    let board = site.define("board", &with_windows("COUNT(3h, like, post)", Some("1h"), &["10m/1m", "all"])).await;
    let items = vec![
        plus("a", 1),
        plus("a", 2).at("2026-01-01T09:20:00Z"),
        plus("a", 4).at("2026-01-01T07:00:00Z"),
        plus("a", 8).at("2001-09-09T01:46:40Z"),
        plus("b", 16).at("1970-01-01T00:00:00Z"),
    ];
    let outcomes = site.score(&board, items).await;
    assert_eq!(outcomes, [counted(7), counted(7), counted(7), counted(7), counted(0)], "scores of the main window");
    assert_eq!(values(&site, &board, "a").await, each(&[7, 1, 15]));
    assert_eq!(values(&site, &board, "b").await, each(&[0, 0, 16]));
    let [short, all] = [1, 2].map(|number| board.each_track().nth(number).unwrap());
    assert_eq!(site.ranking(&all).await, [(1, "b".to_owned(), 16), (2, "a".to_owned(), 15)]);
    assert_eq!(site.ranking(&short).await, [(1, "a".to_owned(), 1)]);
    let early = Outcome::Rejected(Rejection::TooEarly);
    assert_eq!(site.add(&board, vec![plus("a", 1).at("2026-01-01T09:30:06Z")]).await, [early]);
    for (window, expired) in board.each_window().zip([(8, 11), (8, 11), (9, 99)]) {
        let status = site.store.status(&window).await.unwrap();
        let events: u64 = status.events.iter().map(|(_, items)| items).sum();
        assert_eq!(status.total, Some(site.ranking_size(&window).await), "{expired:?}");
        assert_eq!(events, [3, 1, 5][window.number()]);
    }
}

pub async fn an_item_is_too_late_only_if_no_window_reaches_back_to_it(site: Site) {
    let board = site.define("board", &with_windows("COUNT(10m, like, post)", Some("1m"), &["3h/1h"])).await;
    let at = |time: &str| plus("a", 1).at(time);
    let items = vec![at("2026-01-01T09:21:00Z"), at("2026-01-01T09:20:59.999Z"), at("2026-01-01T06:59:59.999Z")];
    assert_eq!(site.add(&board, items).await, [COUNTED, COUNTED, LATE]);
    assert_eq!(values(&site, &board, "a").await, each(&[1, 2]));
    // A retraction without an event to reverse is accepted, wherever its slot is.
    let undone = vec![at("2026-01-01T09:20:59.999Z").undone(), at("2026-01-01T06:59:59.999Z").undone()];
    assert_eq!(site.add(&board, undone).await, [COUNTED, COUNTED]);
    assert_eq!(values(&site, &board, "a").await, each(&[1, 1]));
}

pub async fn windows_retire_each_at_its_own_time(site: Site) {
    let board = site
        .define("board", &with_windows("SUM(3h, sale, amount, shop)", Some("1h"), &["10m/1m", "2d/1d", "all"]))
        .await;
    site.count(&board, vec![plus("a", 5), plus("b", 7).at("2026-01-01T07:10:00Z")]).await;
    for (now, a, b) in [
        ("2026-01-01T09:39:59.999Z", [5, 5, 5, 5], [7, 0, 7, 7]),
        ("2026-01-01T09:40:00Z", [5, 0, 5, 5], [7, 0, 7, 7]),
        ("2026-01-01T10:00:00Z", [5, 0, 5, 5], [0, 0, 7, 7]),
        ("2026-01-01T12:00:00Z", [0, 0, 5, 5], [0, 0, 7, 7]),
        ("2026-01-02T23:59:59.999Z", [0, 0, 5, 5], [0, 0, 7, 7]),
        ("2026-01-03T00:00:00Z", [0, 0, 0, 5], [0, 0, 0, 7]),
        ("2040-01-03T00:00:00Z", [0, 0, 0, 5], [0, 0, 0, 7]),
    ] {
        site.clock(now).await;
        assert_eq!(values(&site, &board, "a").await, each(&a), "{now}");
        assert_eq!(values(&site, &board, "b").await, each(&b), "{now}");
        for window in board.each_window() {
            site.audit(&window).await;
        }
    }
}

pub async fn a_bound_passed_in_one_window_refuses_the_item_in_all(site: Site) {
    for metric in ["SUM(3h, sale, amount, shop)", "AVG(3h, sale, amount, shop)"] {
        let board = site.define("board", &with_windows(metric, Some("1h"), &["all", "2000s/1s"])).await;
        let bound = board.tracks()[2].slot_bound().0;
        assert!(bound < board.edition().main().slot_bound().0);
        site.count(&board, vec![plus("a", bound)]).await;
        assert_eq!(site.add(&board, vec![plus("a", 1).id("x")]).await, [REFUSED], "{metric}");
        for window in board.each_window() {
            assert_eq!(site.value(&window, "a").await.map(|value| value.as_f64()), Some(bound as f64), "{metric}");
        }
        // The id is not remembered, and where the short window does not reach there is room.
        let earlier = plus("a", 3).at("2026-01-01T08:00:00Z").id("x");
        assert_eq!(site.add(&board, vec![earlier]).await, [COUNTED]);
        assert_eq!(site.add(&board, vec![plus("a", -1).id("x")]).await, [DUPLICATE]);
        for window in board.each_window() {
            site.audit(&window).await;
        }
        assert!(site.store.undefine(&board).await.unwrap());
    }
}

pub async fn items_of_a_sum_refused_in_one_window_are_tried_one_by_one(site: Site) {
    let board = site.define("board", &with_windows("SUM(all, sale, amount, shop)", None, &["2000s/1s"])).await;
    let bound = board.tracks()[1].slot_bound().0;
    let items = vec![plus("a", bound - 1), plus("b", 2), plus("a", 5), plus("a", 1), plus("a", 1), plus("a", -4)];
    assert_eq!(site.add(&board, items).await, [COUNTED, COUNTED, REFUSED, COUNTED, REFUSED, COUNTED]);
    assert_eq!(values(&site, &board, "a").await, each(&[bound - 4, bound - 4]));
    // Items of other slots are other sums.
    let items = vec![plus("a", bound).at("2026-01-01T09:29:00Z"), plus("a", bound).at("2026-01-01T09:28:00Z")];
    assert_eq!(site.add(&board, items).await, [COUNTED, COUNTED]);
    assert_eq!(values(&site, &board, "a").await, each(&[3 * bound - 4, 3 * bound - 4]));
}

pub async fn an_id_counts_once_in_all_windows(site: Site) {
    let board = site.define("board", &with_windows("COUNT(1m, like, post)", Some("10s"), &["7d/6h"])).await;
    assert_eq!(board.dedupe_horizon(), 86_400_000);
    assert_eq!(site.add(&board, vec![plus("a", 1).id("x"), plus("a", 1).id("x")]).await, [COUNTED, DUPLICATE]);
    site.clock("2026-01-02T09:29:59.999Z").await;
    assert_eq!(site.add(&board, vec![plus("a", 1).id("x")]).await, [DUPLICATE]);
    assert_eq!(values(&site, &board, "a").await, each(&[0, 1]));
    // An id that arrived with an item for the long window only is remembered too.
    let late = || plus("a", 1).id("y").at("2026-01-01T09:30:00Z");
    assert_eq!(site.add(&board, vec![late()]).await, [COUNTED]);
    assert_eq!(site.add(&board, vec![late()]).await, [DUPLICATE]);
    assert_eq!(site.add(&board, vec![plus("a", 1).id("y")]).await, [DUPLICATE]);
    assert_eq!(values(&site, &board, "a").await, each(&[0, 2]));
}

pub async fn a_board_holds_what_boards_of_its_windows_hold(site: Site) {
    let windows = [("90s", Some("30s")), ("all", None), ("6h", Some("1h")), ("3d", Some("1d"))];
    let metrics = vec![
        "COUNT({}, like, post)",
        "SUM({}, sale, amount, shop)",
        "AVG({}, sale, amount, shop)",
        "MIN({}, lap, time, driver)",
        "MAX({}, lap, time, driver)",
        "LAST({}, rating, elo, player)",
        "COUNT_DISTINCT({}, visit, page, user)",
        "APPROX_COUNT_DISTINCT({}, visit, page, user)",
    ];
    for metric in some_of(&site, metrics) {
        let of = |length: &str| metric.replace("{}", length);
        let further: Vec<String> =
            windows[1..].iter().map(|(w, slot)| slot.map_or((*w).to_owned(), |slot| format!("{w}/{slot}"))).collect();
        let further: Vec<&str> = further.iter().map(String::as_str).collect();
        let mut definition = with_windows(&of(windows[0].0), windows[0].1, &further);
        definition.timezone = "Asia/Kathmandu".parse().unwrap();
        let board = site.define("board", &definition).await;
        let mut singles = Vec::new();
        for (nth, (length, slot)) in windows.into_iter().enumerate() {
            let mut single = with_windows(&of(length), slot, &[]);
            if slot.is_some() {
                single.timezone = definition.timezone;
            }
            singles.push(site.define(&format!("single{nth}"), &single).await);
        }
        let start = site.store.now().await.unwrap();
        for (nth, step) in [0, 700, 31_000, 95_000, 3_600_000, 90_000_000].into_iter().enumerate() {
            site.clock_at(site.store.now().await.unwrap().plus_millis(step)).await;
            let now = site.store.now().await.unwrap();
            for (who, back) in [("a", 0), ("b", 40_000), ("a", 4_000_000), ("c", 50_000_000), ("b", 0), ("c", 80_000)] {
                let amount = (nth as i64 * 7 + back / 1_000) % 11 - 3;
                let mut item = if board.edition().takes(&plus(who, 1).change) {
                    plus(who, if metric.starts_with("COUNT") { 1 } else { amount })
                } else {
                    seen(who, &format!("v{}", amount % 4))
                };
                item = item.at_time(now.plus_millis(-back).max(start.plus_millis(-70_000_000)));
                if board.edition().takes_retractions() && (nth as i64 + back) % 3 == 1 {
                    item = item.undone();
                }
                site.count(&board, vec![item.clone()]).await;
                for single in &singles {
                    let outcome = site.add(single, vec![item.clone()]).await;
                    assert!(outcome == [COUNTED] || outcome == [LATE], "{outcome:?}");
                }
            }
            for (window, single) in board.each_window().zip(&singles) {
                let about = format!("{} at {now}", window.metric());
                site.retire(&window).await;
                site.retire(single).await;
                let (one, other) =
                    (site.store.page(&window, 0, 100).await, site.other.page(&single.main(), 0, 100).await);
                assert_eq!(one.unwrap(), other.unwrap(), "{about}");
                for who in ["a", "b", "c", "d"] {
                    assert_eq!(site.value(&window, who).await, site.value(single, who).await, "{who}: {about}");
                    let slots = SlotRange::Slots(window.slots().div_ceil(2));
                    let half = site.store.count(&window, &subject(who), slots).await.unwrap();
                    assert_eq!(
                        half,
                        site.store.count(&single.main(), &subject(who), slots).await.unwrap(),
                        "{who}: {about}"
                    );
                }
                let (one, other) = (site.store.status(&window).await, site.store.status(&single.main()).await);
                assert_eq!(one.unwrap().events, other.unwrap().events, "{about}");
                assert_eq!(site.audit(&window).await, site.audit(single).await, "{about}");
            }
        }
        for board in singles.iter().chain([&board]) {
            assert!(site.store.undefine(board).await.unwrap());
        }
    }
}

pub async fn a_subject_is_removed_from_every_window(site: Site) {
    let board = site.define("board", &with_windows("COUNT(3h, like, post)", Some("1h"), &["10m/1m", "all"])).await;
    site.count(&board, vec![plus("a", 2), plus("a", 4).at("2026-01-01T08:00:00Z"), plus("b", 3)]).await;
    let removal = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots), (exact(6), 2), "of the main window");
    for window in board.each_window() {
        site.audit(&window).await;
    }
    assert_eq!(values(&site, &board, "a").await, each(&[0, 0, 0]));
    assert_eq!(values(&site, &board, "b").await, each(&[3, 3, 3]));
}

pub async fn the_list_of_windows_is_part_of_the_definition(site: Site) {
    let definition = with_windows("COUNT(3h, like, post)", Some("1h"), &["10m/1m", "all"]);
    let board = site.define("board", &definition).await;
    site.count(&board, vec![plus("a", 1)]).await;
    for windows in [&["10m/1m"][..], &["all", "10m/1m"], &[]] {
        let other = with_windows("COUNT(3h, like, post)", Some("1h"), windows);
        let defined = site.store.define(new_board(&name("board"), &other)).await.unwrap();
        assert!(matches!(&defined, Defined::Conflict(_)), "{defined:?}");
        assert_eq!(board.definition().differences(&other), ["windows"]);
    }
    let found = site.other.board(&name("board")).await.unwrap().unwrap();
    assert_eq!((found.generation(), found.definition()), (board.generation(), &definition));
    let all = found.window_of(WindowLength::All).unwrap();
    assert_eq!(site.ranking(&all).await, [(1, "a".to_owned(), 1)]);
    assert!(site.store.undefine(&board).await.unwrap());
    for window in board.each_window() {
        let page = site.store.page(&window, 0, 1).await;
        assert!(matches!(page, Err(StoreError::BoardChanged)), "{page:?}");
    }
    let again = site.define("board", &definition).await;
    assert_eq!(values(&site, &again, "a").await, each(&[0, 0, 0]));
}

pub async fn a_batch_of_many_subjects_counts_in_every_window(site: Site) {
    let board = site
        .define("board", &with_windows("SUM(2h, sale, amount, shop)", Some("1h"), &["3m/1m", "1d/6h", "all"]))
        .await;
    let (now, mut items) = (t("2026-01-01T09:30:00Z"), Vec::new());
    for nth in 0..1_500_i64 {
        let item = plus(&format!("s{}", nth % 700), 1 + nth % 3).at_time(now.plus_millis(-(nth * 7_919 % 100_000_000)));
        items.push(if nth % 5 == 0 { item.id(&format!("id{nth}")) } else { item });
    }
    let mut totals = [0; 4];
    for item in &items {
        let (at, units) = (
            item.at.unwrap(),
            item.signed(match item.change {
                rolltop::board::Change::Amount(amount) => amount,
                _ => unreachable!("only amounts are sent"),
            }),
        );
        for (window, total) in board.each_window().zip(&mut totals) {
            *total += if at >= window.window_at(now).floor { units.0 } else { 0 };
        }
    }
    site.count(&board, items.clone()).await;
    for (window, total) in board.each_window().zip(totals) {
        let sum: i64 = site.ranking(&window).await.into_iter().map(|(_, _, score)| score).sum();
        assert_eq!(sum, total, "{}", window.metric());
        site.audit(&window).await;
    }
    let again: Vec<_> = items.into_iter().filter(|item| item.id.is_some()).collect();
    let sent = again.len();
    assert_eq!(site.add(&board, again).await, vec![DUPLICATE; sent]);
}
