//! Tests of windows that begin with a subject's first event and end a fixed time later.

use std::sync::Arc;

use rolltop::board::{Aggregate, Amount, Board, Definition, Mode, Timestamp};
use rolltop::store::{Outcome, Rejection, SlotRange};

use crate::given::{With, exact, name, plus, subject, t, unranked};
use crate::site::{COUNTED, DUPLICATE, Site, counted};

async fn counters(site: &Site, metric: &str) -> Arc<Board> {
    let definition = Definition { mode: Mode::FromFirst, ..unranked(metric, "1d") };
    site.define("counters", &definition).await
}

/// Returns when the current counter began and will end, and its value.
async fn life(site: &Site, board: &Arc<Board>, who: &str) -> Option<(String, String, i64)> {
    let reading = site.store.count(&board.main(), &subject(who), SlotRange::Slots(1)).await.unwrap();
    let window = reading.frame.window;
    assert_eq!((reading.slots, window.floor, reading.capped), (1, window.head, false));
    assert_eq!(reading.frame.retiring, 0);
    let standing = site.store.standing(&board.main(), &subject(who)).await.unwrap();
    assert_eq!((standing.score, standing.rank), (reading.value(board.edition().main()), None));
    match reading.aggregates[..] {
        [] => {
            assert_eq!(window.floor, reading.frame.as_of);
            assert_eq!(reading.value(board.edition().main()), exact(0));
            None
        }
        [(start, Aggregate::Sum(Amount(units)))] => {
            assert_eq!(window.floor, start);
            Some((start.to_string(), window.end.to_string(), units))
        }
        _ => panic!("{reading:?}"),
    }
}

fn lives(start: &str, end: &str, units: i64) -> Option<(String, String, i64)> {
    Some((format!("2026-01-01T{start}Z"), format!("2026-01-01T{end}Z"), units))
}

pub async fn a_from_first_window_starts_at_the_first_event(site: Site) {
    let board = counters(&site, "COUNT(1h, login, device)").await;
    assert_eq!(life(&site, &board, "a").await, None);
    assert_eq!(site.score(&board, vec![plus("a", 1)]).await, [counted(1)]);
    site.clock("2026-01-01T09:50:00Z").await;
    assert_eq!(site.score(&board, vec![plus("a", 2), plus("b", 1)]).await, [counted(3), counted(1)]);
    assert_eq!(life(&site, &board, "a").await, lives("09:30:00", "10:30:00", 3));
    assert_eq!(life(&site, &board, "b").await, lives("09:50:00", "10:50:00", 1));
    site.clock("2026-01-01T10:29:59.999Z").await;
    assert_eq!(site.score(&board, vec![plus("a", 4)]).await, [counted(7)]);
    site.clock("2026-01-01T10:30:00Z").await;
    assert_eq!(life(&site, &board, "a").await, None);
    assert_eq!(life(&site, &board, "b").await, lives("09:50:00", "10:50:00", 1));
    // The next event begins a new counter.
    assert_eq!(site.score(&board, vec![plus("a", 8)]).await, [counted(8)]);
    assert_eq!(life(&site, &board, "a").await, lives("10:30:00", "11:30:00", 8));
}

pub async fn a_from_first_window_starts_at_the_time_of_its_event(site: Site) {
    let board = counters(&site, "SUM(1h, sale, amount, seller)").await;
    site.count(&board, vec![plus("a", 1).at("2026-01-01T09:00:00Z")]).await;
    assert_eq!(life(&site, &board, "a").await, lives("09:00:00", "10:00:00", 1));
    // An earlier event is added to it. The counter does not begin earlier because of it.
    site.count(&board, vec![plus("a", 2).at("2026-01-01T08:40:00Z")]).await;
    assert_eq!(life(&site, &board, "a").await, lives("09:00:00", "10:00:00", 3));
    let items = vec![
        plus("b", 1).at("2026-01-01T08:30:00Z"),
        plus("b", 1).at("2026-01-01T08:30:00.001Z"),
        plus("c", 1).at("2026-01-01T09:30:05Z"),
        plus("c", 1).at("2026-01-01T09:30:05.001Z"),
    ];
    let (late, early) = (Outcome::Rejected(Rejection::TooLate), Outcome::Rejected(Rejection::TooEarly));
    assert_eq!(site.add(&board, items).await, [late, COUNTED, COUNTED, early]);
    assert_eq!(life(&site, &board, "b").await, lives("08:30:00.001", "09:30:00.001", 1));
    // An event slightly in the future counts as now.
    assert_eq!(life(&site, &board, "c").await, lives("09:30:00", "10:30:00", 1));
    site.clock("2026-01-01T10:10:00Z").await;
    // An event from the time of an ended counter begins a counter at its own time.
    site.count(&board, vec![plus("a", 4).at("2026-01-01T09:59:00Z")]).await;
    assert_eq!(life(&site, &board, "a").await, lives("09:59:00", "10:59:00", 4));
}

pub async fn a_retraction_does_not_start_a_from_first_window(site: Site) {
    let board = counters(&site, "COUNT(1h, like, post)").await;
    site.count(&board, vec![plus("a", 1).undone().at("2026-01-01T09:30:00Z")]).await;
    assert_eq!(life(&site, &board, "a").await, None);
    site.count(&board, vec![plus("a", 1), plus("a", 1), plus("a", 1).at("2026-01-01T09:30:00Z").undone()]).await;
    assert_eq!(life(&site, &board, "a").await, lives("09:30:00", "10:30:00", 1));
    site.count(&board, vec![plus("a", 1).at("2026-01-01T09:30:00Z").undone()]).await;
    // A counter at zero keeps running.
    assert_eq!(life(&site, &board, "a").await, lives("09:30:00", "10:30:00", 0));
    site.clock("2026-01-01T10:00:00Z").await;
    site.count(&board, vec![plus("a", 5)]).await;
    assert_eq!(life(&site, &board, "a").await, lives("09:30:00", "10:30:00", 5));
    site.clock("2026-01-01T10:30:00Z").await;
    site.count(&board, vec![plus("a", 1).at("2026-01-01T10:00:00Z").undone()]).await;
    assert_eq!(life(&site, &board, "a").await, None);
    // Before any possible counter: accepted without effect.
    site.count(&board, vec![plus("a", 1).at("2026-01-01T08:00:00Z").undone()]).await;
}

pub async fn from_first_counters_respect_bounds_ids_and_removal(site: Site) {
    let board = counters(&site, "SUM(1h, sale, amount, seller)").await;
    let bound = board.edition().main().slot_bound().0;
    let refused = Outcome::Rejected(Rejection::OutOfRange);
    let items =
        vec![plus("a", bound + 1).id("x"), plus("a", bound).id("x"), plus("a", 1), plus("a", -1), plus("a", 5).id("x")];
    assert_eq!(site.add(&board, items).await, [refused, COUNTED, refused, COUNTED, DUPLICATE]);
    assert_eq!(life(&site, &board, "a").await, lives("09:30:00", "10:30:00", bound - 1));
    let removal = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots, removal.retiring_slots), (exact(bound - 1), 1, 0));
    assert_eq!(life(&site, &board, "a").await, None);
    site.clock("2026-01-01T09:40:00Z").await;
    site.count(&board, vec![plus("a", 1)]).await;
    assert_eq!(life(&site, &board, "a").await, lives("09:40:00", "10:40:00", 1));
    site.clock("2026-01-01T10:30:00Z").await;
    assert_eq!(site.add(&board, vec![plus("a", 5).id("x")]).await, [COUNTED]);
    assert!(site.store.retire_step(&board.main()).await.unwrap().done);
    assert_eq!(site.store.now().await.unwrap(), t("2026-01-01T10:30:00Z"));
}

pub async fn a_from_first_window_longer_than_time_ends_at_the_largest_timestamp(site: Site) {
    for (board, window) in [("months", "4294967295mo"), ("days", "4294967295d")] {
        let metric = format!("SUM({window}, sale, amount, seller)");
        let board = site.define(board, &Definition { mode: Mode::FromFirst, ..unranked(&metric, "1d") }).await;
        let items = vec![plus("a", 1).at("1970-01-01T00:00:00Z"), plus("a", 2).id("x"), plus("b", 4)];
        assert_eq!(site.score(&board, items).await, [counted(3), counted(3), counted(4)], "{metric}");
        let end = Timestamp::MAX.to_string();
        assert_eq!(life(&site, &board, "b").await.unwrap(), ("2026-01-01T09:30:00Z".to_owned(), end, 4), "{metric}");
    }
    let board = site.store.board(&name("months")).await.unwrap().unwrap();
    site.clock("2026-01-02T09:30:00Z").await;
    assert_eq!(site.score(&board, vec![plus("a", 8), plus("b", 8).id("x")]).await, [counted(11), counted(12)]);
    site.clock_at(Timestamp::MAX.plus_millis(-1)).await;
    assert_eq!(site.score(&board, vec![plus("b", 1), plus("c", 1)]).await, [counted(13), counted(1)]);
}
