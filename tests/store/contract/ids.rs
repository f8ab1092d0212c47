//! Tests that an id counts once per (board, subject, id) within the dedupe horizon of its arrival.

use std::sync::Arc;

use rolltop::board::{Board, Cover, Definition, Kind, Mode, Span};
use rolltop::store::{Batch, Outcome, Rejection};

use crate::given::{With, definition, plus, seen, subject, unranked};
use crate::site::{COUNTED, DUPLICATE, Site, counted, duplicate};

pub async fn repeated_ids_in_a_request_count_once(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let items =
        vec![plus("a", 1).id("x"), plus("a", 1).id("x"), plus("a", 1), plus("b", 1).id("x"), plus("a", 1).id("y")];
    let outcomes = site.score(&board, items).await;
    assert_eq!(outcomes, [counted(3), duplicate(3), counted(3), counted(1), counted(3)]);
}

pub async fn repeated_ids_across_requests_and_instances_count_once(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1).id("x"), plus("b", 1).id("y")]).await;
    for store in [&site.other, &site.store] {
        let increments = vec![plus("a", 1).id("x"), plus("b", 1).id("y"), plus("b", 1)];
        let added = store.add(&board, Batch { increments, return_scores: false }).await.unwrap();
        assert_eq!(added.outcomes, [DUPLICATE, DUPLICATE, COUNTED]);
    }
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 3), (2, "a".to_owned(), 1)]);
}

pub async fn a_repeated_id_with_another_amount_or_time_is_a_duplicate(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1).id("x"), plus("b", 5)]).await;
    let items = vec![plus("a", 100).id("x"), plus("a", -1).id("x"), plus("a", 1).id("x").at("2026-01-01T08:00:00Z")];
    assert_eq!(site.score(&board, items).await, [duplicate(1); 3]);
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 5), (2, "a".to_owned(), 1)]);
}

pub async fn ids_are_scoped_to_a_subject_and_a_board(site: Site) {
    let one = site.board("COUNT(3h, like, post)", "1h").await;
    let two = site.define("other", &definition("COUNT(3h, like, post)", "1h")).await;
    let items = || vec![plus("a", 1).id("x"), plus("b", 1).id("x"), plus("a", 1).id("X"), plus("a", 1).id("x ")];
    site.count(&one, items()).await;
    site.count(&two, items()).await;
    assert_eq!(site.add(&one, items()).await, [DUPLICATE; 4]);
    assert_eq!(site.add(&two, items()).await, [DUPLICATE; 4]);
}

pub async fn ids_are_remembered_for_the_dedupe_horizon(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let items = || vec![plus("a", 1).id("x"), plus("b", 1).id("x")];
    site.count(&board, items()).await;
    site.clock("2026-01-01T12:29:59.999Z").await;
    assert_eq!(site.add(&board, items()).await, [DUPLICATE; 2]);
    site.clock("2026-01-01T12:30:00Z").await;
    assert_eq!(site.add(&board, items()).await, [COUNTED; 2]);
    assert_eq!(site.add(&board, items()).await, [DUPLICATE; 2]);
    // This also holds long afterwards.
    site.clock("2026-03-01T00:00:00Z").await;
    assert_eq!(site.add(&board, items()).await, [COUNTED; 2]);
    assert_eq!(site.add(&board, items()).await, [DUPLICATE; 2]);
}

pub async fn ids_are_remembered_for_at_most_a_day(site: Site) {
    let board = site.board("COUNT(7d, like, post)", "1d").await;
    let items = || vec![plus("a", 1).id("x"), plus("b", 1).id("x")];
    site.count(&board, items()).await;
    site.clock("2026-01-02T09:29:59.999Z").await;
    assert_eq!(site.add(&board, items()).await, [DUPLICATE; 2]);
    site.clock("2026-01-02T09:30:00Z").await;
    assert_eq!(site.score(&board, items()).await, [counted(2); 2]);
}

/// Checks that an id counts once for `horizon`, in which housekeeping runs as usual, and again after it.
async fn is_remembered_for(site: &Site, board: &Arc<Board>, horizon: &str) {
    let (what, horizon) = (&board.definition().metric, horizon.parse::<Span>().unwrap().approximate_millis());
    let begun = site.store.now().await.unwrap();
    let item = || match board.kind() {
        Kind::Distinct => seen("a", "v").id("x"),
        _ => plus("a", 1).id("x"),
    };
    for part in 0..8 {
        site.clock_at(begun.plus_millis(horizon / 8 * part)).await;
        site.retire(board).await;
        let expected = if part == 0 { COUNTED } else { DUPLICATE };
        assert_eq!(site.add(board, vec![item()]).await, [expected], "{what}: {part}/8 of {horizon} ms");
    }
    site.clock_at(begun.plus_millis(horizon - 1)).await;
    site.retire(board).await;
    assert_eq!(site.add(board, vec![item(), item()]).await, [DUPLICATE; 2], "{what}: {horizon} ms");
    site.clock_at(begun.plus_millis(horizon)).await;
    assert_eq!(site.add(board, vec![item(), item()]).await, [COUNTED, DUPLICATE], "{what}: {horizon} ms");
}

pub async fn ids_are_remembered_as_long_as_defined(site: Site) {
    let metrics = ["COUNT(2h, e, s)", "AVG(2h, e, v, s)", "LAST(2h, e, v, s)", "COUNT_DISTINCT(2h, e, s, v)"];
    for metric in metrics {
        for ranked in [true, false] {
            // Longer and shorter than the window.
            for dedupe in ["3d", "7m"] {
                let dedupe_only = Definition { dedupe: dedupe.parse().ok(), ..definition(metric, "15m") };
                let board = site.define("b", &Definition { ranked, ..dedupe_only.clone() }).await;
                is_remembered_for(&site, &board, dedupe).await;
                assert!(site.store.undefine(&board).await.unwrap());
                assert_eq!(dedupe_only.differences(&definition(metric, "15m")), ["dedupe"]);
            }
        }
    }
    let counter = Definition { mode: Mode::FromFirst, ..unranked("SUM(90m, e, v, s)", "1d") };
    for (dedupe, horizon) in [(None, "90m"), (Some("1d"), "1d"), (Some("20m"), "20m")] {
        let dedupe = dedupe.and_then(|text| text.parse().ok());
        let board = site.define("b", &Definition { dedupe, ..counter.clone() }).await;
        is_remembered_for(&site, &board, horizon).await;
        assert!(site.store.undefine(&board).await.unwrap());
    }
    let windows = vec!["1d/1h".parse().unwrap(), "10m/1m".parse().unwrap()];
    let several = Definition { windows, dedupe: "40h".parse().ok(), ..definition("COUNT(2h, e, s)", "15m") };
    is_remembered_for(&site, &site.define("b", &several).await, "40h").await;
}

/// With one slot more, an item counts longer than the window.
pub async fn an_id_is_remembered_until_its_item_leaves_a_window_with_an_additional_slot(site: Site) {
    let full = |metric: &str, slot: &str| Definition { cover: Cover::Full, ..definition(metric, slot) };
    for (metric, slot, horizon) in [
        ("COUNT(2h, e, s)", "15m", "135m"),
        ("SUM(2h, e, v, s)", "2h", "4h"),
        ("MAX(10m, e, v, s)", "1m", "11m"),
        ("COUNT(20h, e, s)", "4h", "24h"),
        ("COUNT(7d, e, s)", "1d", "24h"),
    ] {
        for ranked in [true, false] {
            let board = site.define("b", &Definition { ranked, ..full(metric, slot) }).await;
            is_remembered_for(&site, &board, horizon).await;
            assert!(site.store.undefine(&board).await.unwrap());
        }
    }
    let windows = vec!["3h/1h".parse().unwrap(), "1h/1h".parse().unwrap()];
    let several = Definition { windows, ..full("COUNT(2h, e, s)", "15m") };
    is_remembered_for(&site, &site.define("b", &several).await, "4h").await;
    // The oldest item that still counts is a duplicate.
    let board = site.define("oldest", &full("COUNT(2h, e, s)", "15m")).await;
    let begun = board.edition().main().calendar().next(site.store.now().await.unwrap());
    site.clock_at(begun).await;
    site.count(&board, vec![plus("a", 1).id("x")]).await;
    site.clock_at(begun.plus_millis(135 * 60_000 - 1)).await;
    assert_eq!(site.score(&board, vec![plus("a", 1).id("x")]).await, [duplicate(1)]);
    site.clock_at(begun.plus_millis(135 * 60_000)).await;
    site.retire(&board).await;
    assert_eq!(site.score(&board, vec![plus("a", 1).id("x")]).await, [counted(1)]);
}

pub async fn the_dedupe_horizon_starts_at_the_first_arrival(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let items = || vec![plus("a", 1).id("x"), plus("b", 1).id("x")];
    // The horizon begins at the arrival, whatever the event's own time.
    site.count(&board, vec![plus("a", 1).id("x").at("2026-01-01T07:00:00Z"), plus("b", 1).id("x")]).await;
    site.clock("2026-01-01T12:20:00Z").await;
    // A repetition does not extend it.
    assert_eq!(site.add(&board, items()).await, [DUPLICATE; 2]);
    site.clock("2026-01-01T12:30:00Z").await;
    assert_eq!(site.add(&board, items()).await, [COUNTED; 2]);
}

pub async fn ids_of_late_and_early_items_are_not_remembered(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let late = || plus("a", 1).id("x").at("2026-01-01T06:00:00Z");
    let early = || plus("a", 1).id("y").at("2026-01-01T09:31:00Z");
    let (too_late, too_early) = (Outcome::Rejected(Rejection::TooLate), Outcome::Rejected(Rejection::TooEarly));
    assert_eq!(site.add(&board, vec![late(), early()]).await, [too_late, too_early]);
    assert_eq!(site.add(&board, vec![plus("a", 1).id("x"), plus("a", 1).id("y")]).await, [COUNTED; 2]);
    // The placement is checked first.
    assert_eq!(site.add(&board, vec![late(), early()]).await, [too_late, too_early]);
}

pub async fn ids_are_remembered_after_their_subject_is_removed(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1).id("x"), plus("b", 1).id("x")]).await;
    site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!(site.add(&board, vec![plus("a", 1).id("x"), plus("a", 1).id("y")]).await, [DUPLICATE, COUNTED]);
}

pub async fn ids_are_forgotten_when_their_board_is_removed(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1).id("x"), plus("b", 1).id("x")]).await;
    assert!(site.store.undefine(&board).await.unwrap());
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    site.count(&board, vec![plus("a", 1).id("x"), plus("b", 1).id("x")]).await;
}
