//! Tests of boards over all time.

use std::sync::Arc;

use rolltop::board::{Aggregate, Amount, Board, Definition, EXACT_MAX, Timestamp};
use rolltop::store::{Outcome, Rejection};

use crate::given::{With, exact, mean, plus, sample, sample_of, seen};
use crate::site::{COUNTED, DUPLICATE, Site, counted, duplicate};

const LIKES: &str = "COUNT(all, like, post)";
const SALES: &str = "SUM(all, sale, amount, seller)";
const VISITORS: &str = "COUNT_DISTINCT(all, visit, page, user)";
const EPOCH: &str = "1970-01-01T00:00:00Z";

fn all_time(metric: &str) -> Definition {
    Definition::without_slots(metric.parse().unwrap())
}

/// Defines the same board with a ranking and without.
async fn both(site: &Site, metric: &str) -> [Arc<Board>; 2] {
    let unranked = Definition { ranked: false, ..all_time(metric) };
    [site.define("board", &all_time(metric)).await, site.define("unranked", &unranked).await]
}

fn whole(units: i64) -> Vec<(String, Aggregate)> {
    vec![(EPOCH.to_owned(), Aggregate::Sum(Amount(units)))]
}

pub async fn nothing_expires_and_nothing_is_too_late(site: Site) {
    let boards = both(&site, LIKES).await;
    for board in &boards {
        site.count(board, vec![plus("a", 1), plus("a", 2).at(EPOCH), plus("b", 1).at("2001-09-09T01:46:40Z")]).await;
    }
    for later in ["2026-01-01T10:00:00Z", "2026-01-03T00:00:00Z", "2062-12-31T23:59:59.999Z", "9000-01-01T00:00:00Z"] {
        site.clock(later).await;
        for board in &boards {
            assert_eq!(site.retire(board).await, Default::default(), "{later}");
            assert_eq!(site.value(board, "a").await, exact(3), "{later}");
            assert_eq!(site.slots(board, "a").await, whole(3), "{later}");
        }
        assert_eq!(site.ranking(&boards[0]).await, [(1, "a".to_owned(), 3), (2, "b".to_owned(), 1)]);
    }
    for board in &boards {
        site.count(board, vec![plus("b", 4).at(EPOCH), plus("b", 5).at("2026-01-01T09:30:00Z")]).await;
        assert_eq!(site.value(board, "b").await, exact(10));
        let early = Outcome::Rejected(Rejection::TooEarly);
        assert_eq!(site.add(board, vec![plus("b", 1).at("9000-01-01T00:00:05.001Z")]).await, [early]);
    }
    assert_eq!(site.audit(&boards[0]).await, 2);
}

pub async fn every_metric_has_a_total_of_all_time(site: Site) {
    for (metric, total, ranked) in [
        ("AVG(all, e, v, s)", mean(10, 3), true),
        ("MIN(all, e, v, s)", exact(1), true),
        ("MAX(all, e, v, s)", exact(6), true),
        ("SUM(all, e, v, s)", exact(10), true),
        ("APPROX_COUNT_DISTINCT(all, e, s, c)", exact(3), true),
        (VISITORS, exact(3), true),
        ("SUM(all, e, v, s)", exact(10), false),
        ("APPROX_COUNT_DISTINCT(all, e, s, c)", exact(3), false),
    ] {
        let board = site.define("board", &Definition { ranked, ..all_time(metric) }).await;
        for (nth, amount) in [6, 3, 1].into_iter().enumerate() {
            let item = if board.edition().takes(&plus("a", 1).change) {
                plus("a", amount)
            } else {
                seen("a", &format!("u{nth}"))
            };
            site.clock_at(site.store.now().await.unwrap().plus_millis(40 * 86_400_000)).await;
            site.count(&board, vec![item.at("2025-01-01T00:00:00Z")]).await;
        }
        assert_eq!(site.value(&board, "a").await, total, "{metric}");
        site.audit(&board).await;
        let removal = site.store.remove(&board, &crate::given::subject("a")).await.unwrap();
        assert_eq!((removal.score, removal.retiring_slots), (total, 0), "{metric}");
        assert_eq!(site.value(&board, "a").await, board.kind().absent(), "{metric}");
        assert!(site.store.undefine(&board).await.unwrap());
    }
}

pub async fn retractions_of_any_age_subtract(site: Site) {
    for board in both(&site, SALES).await {
        site.count(&board, vec![plus("a", 7), plus("a", 5).at("1999-01-01T00:00:00Z")]).await;
        let scores = site.score(&board, vec![plus("a", 5).at("1999-01-01T00:00:00Z").undone()]).await;
        assert_eq!(scores, [counted(7)]);
        // Without a slot to choose, the time may be left out.
        assert_eq!(site.score(&board, vec![plus("a", 7).undone()]).await, [counted(0)]);
        assert_eq!(site.slots(&board, "a").await, []);
        assert_eq!(site.score(&board, vec![plus("a", 1).undone()]).await, [counted(-1)]);
    }
}

pub async fn samples_set_the_total(site: Site) {
    for board in both(&site, SALES).await {
        site.count(&board, vec![plus("a", 7), sample("a", 100, "2020-05-05T00:00:00Z"), plus("a", 1)]).await;
        assert_eq!(site.value(&board, "a").await, exact(101));
        let mut untimed = sample("a", -4, "2020-05-05T00:00:00Z");
        untimed.at = None;
        assert_eq!(site.score(&board, vec![untimed]).await, [counted(-4)]);
    }
    let mean_board = site.define("mean", &all_time("AVG(all, e, v, s)")).await;
    site.count(&mean_board, vec![plus("a", 7), sample_of("a", 90, 4, "2020-05-05T00:00:00Z"), plus("a", 10)]).await;
    assert_eq!(site.value(&mean_board, "a").await, mean(100, 5));
    let best = site.define("best", &all_time("MAX(all, e, v, s)")).await;
    site.count(&best, vec![plus("a", 7), sample("a", 3, "2020-05-05T00:00:00Z"), plus("a", 2)]).await;
    assert_eq!(site.value(&best, "a").await, exact(3));
}

pub async fn totals_reach_the_largest_exact_number(site: Site) {
    for board in both(&site, SALES).await {
        assert_eq!(board.edition().main().slot_bound(), Amount(EXACT_MAX));
        let refused = Outcome::Rejected(Rejection::OutOfRange);
        site.count(&board, vec![plus("a", EXACT_MAX)]).await;
        assert_eq!(site.add(&board, vec![plus("a", 1), plus("a", 2).id("x")]).await, [refused, refused]);
        assert_eq!(site.value(&board, "a").await, exact(EXACT_MAX));
        // The difference between these samples is beyond what a float holds.
        for sum in [-EXACT_MAX, EXACT_MAX, 1 - EXACT_MAX, EXACT_MAX - 1, -EXACT_MAX] {
            site.count(&board, vec![sample("a", sum, EPOCH)]).await;
            assert_eq!(site.value(&board, "a").await, exact(sum));
            site.audit(&board).await;
        }
        assert_eq!(site.add(&board, vec![plus("a", 1).at(EPOCH).undone()]).await, [refused]);
    }
    let board = site.define("mean", &all_time("AVG(all, e, v, s)")).await;
    for sum in [-EXACT_MAX, EXACT_MAX, 1 - EXACT_MAX] {
        site.count(&board, vec![sample_of("a", sum, 1, EPOCH)]).await;
        assert_eq!(site.value(&board, "a").await, mean(sum, 1));
        site.audit(&board).await;
    }
}

pub async fn ids_are_remembered_for_a_day_or_as_defined(site: Site) {
    let long = Definition { dedupe: Some("30d".parse().unwrap()), ..all_time(LIKES) };
    let boards = [
        (site.define("day", &all_time(LIKES)).await, 86_400_000),
        (site.define("month", &long).await, 30 * 86_400_000),
        (site.define("minute", &Definition { dedupe: Some("1m".parse().unwrap()), ..all_time(LIKES) }).await, 60_000),
    ];
    for (board, horizon) in boards {
        let begun: Timestamp = site.store.now().await.unwrap();
        site.count(&board, vec![plus("a", 1).id("x")]).await;
        for part in [1, 2, 3] {
            site.clock_at(begun.plus_millis(horizon / 4 * part)).await;
            site.retire(&board).await;
            assert_eq!(site.add(&board, vec![plus("a", 1).at(EPOCH).id("x")]).await, [DUPLICATE], "{}", board.name());
        }
        site.clock_at(begun.plus_millis(horizon - 1)).await;
        assert_eq!(site.score(&board, vec![plus("a", 1).id("x")]).await, [duplicate(1)]);
        site.clock_at(begun.plus_millis(horizon)).await;
        assert_eq!(site.score(&board, vec![plus("a", 1).id("x")]).await, [counted(2)]);
    }
}

pub async fn values_stay_and_tombstones_last_a_day(site: Site) {
    for board in both(&site, VISITORS).await {
        let begun: Timestamp = site.store.now().await.unwrap();
        let after = |millis: i64| begun.plus_millis(millis);
        site.count(&board, vec![seen("page", "ann"), seen("page", "bob").at(EPOCH), seen("page", "cy")]).await;
        site.count(&board, vec![seen("page", "cy").undone()]).await;
        assert_eq!(site.value(&board, "page").await, exact(2));
        // A late event from before the retraction does not bring the value back.
        site.clock_at(after(86_400_000)).await;
        site.count(&board, vec![seen("page", "cy").at_time(begun)]).await;
        assert_eq!(site.value(&board, "page").await, exact(2));
        // One millisecond later the retraction is no longer remembered.
        site.clock_at(after(86_400_001)).await;
        site.count(&board, vec![seen("page", "cy").at_time(begun)]).await;
        assert_eq!(site.value(&board, "page").await, exact(3));
        // A retraction of a day ago or more removes the value, and leaves nothing behind.
        site.count(&board, vec![seen("page", "bob").at("1980-01-01T00:00:00Z").undone()]).await;
        assert_eq!(site.value(&board, "page").await, exact(2));
        site.count(&board, vec![seen("page", "bob").at(EPOCH)]).await;
        assert_eq!(site.value(&board, "page").await, exact(3));
        // A retraction older than the last event changes nothing.
        site.count(&board, vec![seen("page", "ann").at("1980-01-01T00:00:00Z").undone()]).await;
        site.clock_at(after(400 * 86_400_000)).await;
        assert_eq!(site.value(&board, "page").await, exact(3));
        assert_eq!(site.values(&board, "page").await.last(), Some(&("bob".to_owned(), EPOCH.to_owned())));
        // A tombstone that has already expired hides nothing, not even later items of its own batch.
        let (old, older) = ("1990-01-02T00:00:00Z", "1990-01-01T00:00:00Z");
        site.count(&board, vec![seen("page", "dan").at(old).undone(), seen("page", "dan").at(older)]).await;
        assert_eq!(site.value(&board, "page").await, exact(4));
        site.audit(&board).await;
    }
}

pub async fn a_capped_subject_stays_capped(site: Site) {
    let few = |ranked| Definition { max_values: Some(2), ranked, ..all_time(VISITORS) };
    for ranked in [true, false] {
        let board = site.define(&format!("few-{ranked}"), &few(ranked)).await;
        site.count(&board, vec![seen("page", "a").at(EPOCH), seen("page", "b"), seen("page", "c")]).await;
        let standing = |site: &Site| {
            let (store, board) = (site.store.clone(), board.clone());
            async move { store.standing(&board.main(), &crate::given::subject("page")).await.unwrap() }
        };
        assert!(standing(&site).await.capped);
        for days in [1, 2, 40] {
            site.clock_at(site.store.now().await.unwrap().plus_millis(days * 86_400_000)).await;
            // Each write removes some of what has expired.
            site.count(&board, vec![seen("page", "b"), seen("page", "gone").undone()]).await;
            site.retire(&board).await;
            let standing = standing(&site).await;
            assert!(standing.capped, "{days} {ranked}");
            assert_eq!(standing.score, exact(2), "{days} {ranked}");
        }
    }
}

pub async fn a_board_over_all_time_reads_its_one_slot(site: Site) {
    let board = site.define("board", &all_time(LIKES)).await;
    site.count(&board, vec![plus("a", 2), plus("b", 1)]).await;
    let status = site.store.status(&board.main()).await.unwrap();
    assert_eq!((status.total, status.slots.len(), status.retiring.len()), (Some(2), 1, 0));
    assert_eq!((status.frame.window.floor, status.frame.window.end), (Timestamp::EPOCH, Timestamp::MAX));
    assert_eq!(site.newest(&board, "a", 1).await, exact(2));
    assert_eq!(site.add(&board, vec![plus("a", 1)]).await, [COUNTED]);
}
