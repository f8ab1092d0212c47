//! Tests of the number of items that a board counted in each slot.

use std::sync::Arc;

use rolltop::board::{Board, Timestamp};

use crate::given::{With, definition, plus, sample, seen, subject, t, unranked};
use crate::site::Site;

const SEVEN: &str = "2026-01-01T07:00:00Z";
const EIGHT: &str = "2026-01-01T08:00:00Z";
const NINE: &str = "2026-01-01T09:00:00Z";

async fn events(site: &Site, board: &Arc<Board>) -> Vec<(Timestamp, u64)> {
    site.store.status(&board.main()).await.unwrap().events
}

pub async fn each_counted_item_is_an_event_of_its_slot(site: Site) {
    for is_ranked in [true, false] {
        let mut definition = definition("SUM(3h, sale, amount, seller)", "1h");
        definition.ranked = is_ranked;
        let board = site.define(if is_ranked { "ranked" } else { "unranked" }, &definition).await;
        assert_eq!(events(&site, &board).await, []);
        let items = vec![
            plus("a", 5),
            plus("a", 7),
            plus("b", 1).id("x"),
            plus("b", 1).id("x"),
            plus("a", 0),
            plus("a", 1).at("2026-01-01T06:59:59Z"),
            plus("c", 2).at(EIGHT),
            plus("a", 5).at("2026-01-01T09:10:00Z").undone(),
            sample("d", 100, "2026-01-01T07:30:00Z"),
            // Refused as a sum, and then one of the two items.
            plus("e", board.edition().main().slot_bound().0),
            plus("e", 1),
            plus("f", i64::MAX).id("y"),
        ];
        site.add(&board, items).await;
        assert_eq!(events(&site, &board).await, [(t(SEVEN), 1), (t(EIGHT), 1), (t(NINE), 6)], "{is_ranked}");
        site.add(&board, vec![plus("g", 1), plus("g", 1), plus("b", 1).id("x")]).await;
        site.score(&board, vec![plus("g", 1), plus("h", 1)]).await;
        assert_eq!(events(&site, &board).await[2], (t(NINE), 10), "{is_ranked}");
    }
}

pub async fn events_of_every_metric_are_counted(site: Site) {
    for (number, (metric, is_of_values)) in [
        ("COUNT(3h, e, s)", false),
        ("AVG(3h, e, v, s)", false),
        ("MIN(3h, e, v, s)", false),
        ("MAX(3h, e, v, s)", false),
        ("COUNT_DISTINCT(3h, e, s, v)", true),
        ("APPROX_COUNT_DISTINCT(3h, e, s, v)", true),
    ]
    .into_iter()
    .enumerate()
    {
        for is_ranked in [true, false] {
            let mut definition = definition(metric, "1h");
            definition.ranked = is_ranked;
            let board = site.define(&format!("b{number}-{is_ranked}"), &definition).await;
            let item = |i: i64| if is_of_values { seen("a", &format!("v{}", i % 3)) } else { plus("a", i % 3) };
            let items = (0..7).map(item).chain([item(1).at("2026-01-01T08:10:00Z")]).collect();
            site.count(&board, items).await;
            assert_eq!(events(&site, &board).await, [(t(EIGHT), 1), (t(NINE), 7)], "{metric} {is_ranked}");
        }
    }
}

pub async fn events_stay_when_subjects_go_and_go_with_their_slot(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let mut definition = unranked("COUNT(3h, like, post)", "1h");
    definition.keep = Some("5h".parse().unwrap());
    let kept = site.define("kept", &definition).await;
    for board in [&board, &kept] {
        site.count(board, vec![plus("a", 1), plus("a", 1).at(SEVEN)]).await;
        site.store.remove(board, &subject("a")).await.unwrap();
        assert_eq!(events(&site, board).await, [(t(SEVEN), 1), (t(NINE), 1)]);
        site.count(board, vec![plus("b", 1), plus("b", -1)]).await;
        assert_eq!(events(&site, board).await, [(t(SEVEN), 1), (t(NINE), 3)]);
    }
    assert_eq!(site.store.status(&board.main()).await.unwrap().slots, []);
    site.clock("2026-01-01T10:00:00Z").await;
    for board in [&board, &kept] {
        assert_eq!(events(&site, board).await, [(t(NINE), 3)]);
        site.retire(board).await;
        assert_eq!(events(&site, board).await, [(t(NINE), 3)]);
    }
    site.clock("2026-01-03T10:00:00Z").await;
    for board in [&board, &kept] {
        assert_eq!(events(&site, board).await, []);
        site.count(board, vec![plus("b", 1)]).await;
        site.retire(board).await;
        assert_eq!(events(&site, board).await, [(t("2026-01-03T10:00:00Z"), 1)]);
    }
}
