//! Tests of unranked boards that are read as of a past time.

use std::sync::Arc;

use rolltop::board::{Board, Definition, Frame, Value, Window};
use rolltop::store::{Result, SlotContents, SlotQuery, SlotRange, StoreError};

use crate::given::{With, exact, mean, plus, seen, subject, t, unranked};
use crate::site::Site;

async fn read(site: &Site, board: &Arc<Board>, range: SlotRange, as_of: &str) -> Result<SlotContents> {
    let ask = SlotQuery { track: board.main(), subject: subject("a"), range, as_of: Some(t(as_of)) };
    site.store.read(vec![ask]).await.pop().unwrap()
}

async fn value_at(site: &Site, board: &Arc<Board>, slots: u32, as_of: &str) -> Option<Value> {
    let reading = read(site, board, SlotRange::Slots(slots), as_of).await.unwrap();
    assert_eq!(reading.slots, slots);
    reading.value(board.edition().main())
}

async fn beyond(site: &Site, board: &Arc<Board>, range: SlotRange, as_of: &str, floor: &str) {
    let answer = read(site, board, range, as_of).await;
    let right = matches!(answer, Err(StoreError::BeyondWindow { floor: found }) if found == t(floor));
    assert!(right, "{range:?} as of {as_of}: {answer:?}");
}

/// Returns an hourly board on which `a` was counted 1, 2, 4, … in the hours from 09 to 16.
async fn kept(site: &Site, metric: &str, keep: Option<&str>) -> Arc<Board> {
    let keep = keep.map(|keep| keep.parse().unwrap());
    let board = site.define("kept", &Definition { keep, ..unranked(metric, "1h") }).await;
    for hour in 9..=16 {
        site.clock(&format!("2026-01-01T{hour:02}:30:00Z")).await;
        site.count(&board, vec![plus("a", 1 << (hour - 9)), plus("b", 1)]).await;
    }
    board
}

pub async fn a_past_window_within_keep_is_read_exactly(site: Site) {
    let board = kept(&site, "COUNT(3h, login, device)", Some("6h")).await;
    // The hours from 11 to 16 are stored, and now is 16:30.
    for (as_of, slots, sum) in [
        ("2026-01-01T16:30:00Z", 3, 32 + 64 + 128),
        ("2026-01-01T16:00:00Z", 3, 32 + 64 + 128),
        ("2026-01-01T15:59:59.999Z", 3, 16 + 32 + 64),
        ("2026-01-01T15:00:00Z", 2, 32 + 64),
        ("2026-01-01T13:00:00Z", 3, 4 + 8 + 16),
        ("2026-01-01T11:59:00Z", 1, 4),
    ] {
        assert_eq!(value_at(&site, &board, slots, as_of).await, exact(sum), "{as_of}");
    }
    let reading = read(&site, &board, SlotRange::Slots(2), "2026-01-01T13:20:00Z").await.unwrap();
    let window =
        Window { floor: t("2026-01-01T12:00:00Z"), head: t("2026-01-01T13:00:00Z"), end: t("2026-01-01T14:00:00Z") };
    assert_eq!(reading.frame, Frame { window, as_of: t("2026-01-01T16:30:00Z"), retiring: 0 });
    assert_eq!((reading.aggregates.len(), reading.capped), (2, false));
}

pub async fn a_past_window_beyond_keep_is_an_error(site: Site) {
    let board = kept(&site, "COUNT(3h, login, device)", Some("6h")).await;
    let kept_from = "2026-01-01T11:00:00Z";
    for (slots, as_of) in [
        (3, "2026-01-01T12:59:59.999Z"),
        (2, "2026-01-01T11:30:00Z"),
        (1, "2026-01-01T10:59:59.999Z"),
        (1, "1970-01-01T00:00:00Z"),
        (4, "2026-01-01T16:00:00Z"),
        // A time in the future.
        (1, "2026-01-01T16:30:00.001Z"),
        (1, "2026-01-01T17:00:00Z"),
    ] {
        beyond(&site, &board, SlotRange::Slots(slots), as_of, kept_from).await;
    }
    for (from, as_of) in [
        ("2026-01-01T10:59:59.999Z", "2026-01-01T12:00:00Z"),
        // More slots than the window has.
        ("2026-01-01T12:00:00Z", "2026-01-01T15:00:00Z"),
    ] {
        beyond(&site, &board, SlotRange::From(t(from)), as_of, kept_from).await;
    }
    // Stored slots expire as time passes.
    assert_eq!(value_at(&site, &board, 1, "2026-01-01T11:30:00Z").await, exact(4));
    site.clock("2026-01-01T17:00:00Z").await;
    beyond(&site, &board, SlotRange::Slots(1), "2026-01-01T11:30:00Z", "2026-01-01T12:00:00Z").await;
    // A subject that was written to after that still has its stored slots.
    site.count(&board, vec![plus("a", 1_000)]).await;
    assert_eq!(value_at(&site, &board, 1, "2026-01-01T12:00:00Z").await, exact(8));
    assert_eq!(value_at(&site, &board, 3, "2026-01-01T17:00:00Z").await, exact(64 + 128 + 1_000));
}

pub async fn by_default_one_slot_beyond_the_window_is_kept(site: Site) {
    let board = kept(&site, "COUNT(3h, login, device)", None).await;
    assert_eq!(value_at(&site, &board, 3, "2026-01-01T15:00:00Z").await, exact(16 + 32 + 64));
    assert_eq!(value_at(&site, &board, 1, "2026-01-01T13:59:00Z").await, exact(16));
    beyond(&site, &board, SlotRange::Slots(2), "2026-01-01T13:59:00Z", "2026-01-01T13:00:00Z").await;
    beyond(&site, &board, SlotRange::Slots(3), "2026-01-01T14:59:59.999Z", "2026-01-01T13:00:00Z").await;
}

pub async fn a_past_window_can_start_at_a_given_time(site: Site) {
    let board = kept(&site, "COUNT(3h, login, device)", Some("6h")).await;
    for (from, as_of, sum, slots) in [
        ("2026-01-01T12:00:00Z", "2026-01-01T14:00:00Z", 8 + 16 + 32, 3),
        ("2026-01-01T12:59:59.999Z", "2026-01-01T13:00:00Z", 8 + 16, 2),
        ("2026-01-01T13:10:00Z", "2026-01-01T13:05:00Z", 16, 1),
        ("2026-01-01T15:00:00Z", "2026-01-01T13:00:00Z", 16, 1),
    ] {
        let reading = read(&site, &board, SlotRange::From(t(from)), as_of).await.unwrap();
        assert_eq!((reading.value(board.edition().main()), reading.slots), (exact(sum), slots), "{from}");
    }
}

pub async fn past_windows_are_read_for_every_supporting_metric(site: Site) {
    for (metric, past) in [
        ("AVG(3h, pay, amount, user)", mean(4 + 8 + 16, 3)),
        ("MIN(3h, pay, amount, user)", exact(4)),
        ("MAX(3h, pay, amount, user)", exact(16)),
        ("SUM(3h, pay, amount, user)", exact(4 + 8 + 16)),
    ] {
        let site = Site::new(site.kind.clone()).await;
        let board = kept(&site, metric, Some("6h")).await;
        assert_eq!(value_at(&site, &board, 3, "2026-01-01T13:00:00Z").await, past, "{metric}");
        assert_eq!(site.value(&board, "a").await, site.newest(&board, "a", 3).await);
    }
    let sketches = unranked("APPROX_COUNT_DISTINCT(3h, login, device, user)", "1h");
    let board = site.define("sketches", &Definition { keep: Some("8h".parse().unwrap()), ..sketches }).await;
    for hour in 9..=14 {
        site.clock(&format!("2026-01-01T{hour:02}:30:00Z")).await;
        site.count(&board, vec![seen("a", &format!("u{hour}")), seen("a", "every hour")]).await;
    }
    assert_eq!(value_at(&site, &board, 3, "2026-01-01T11:00:00Z").await, exact(4));
    assert_eq!(value_at(&site, &board, 1, "2026-01-01T09:00:00Z").await, exact(2));
}

pub async fn past_windows_of_days_follow_the_time_zone(site: Site) {
    let mut days = unranked("COUNT(1d, login, device)", "1d");
    (days.timezone, days.keep) = ("Europe/Berlin".parse().unwrap(), Some("7d".parse().unwrap()));
    let board = site.define("days", &days).await;
    // In Berlin the clocks go forward on the 29th.
    for (nth, now) in ["2026-03-27T12:00:00Z", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", "2026-03-30T12:00:00Z"]
        .iter()
        .enumerate()
    {
        site.clock(now).await;
        site.count(&board, vec![plus("a", 1 << nth)]).await;
    }
    for (as_of, sum) in [
        ("2026-03-28T22:59:59.999Z", 2),
        ("2026-03-28T23:00:00Z", 4),
        ("2026-03-29T21:59:59.999Z", 4),
        ("2026-03-29T22:00:00Z", 8),
        ("2026-03-26T23:00:00Z", 1),
        ("2026-03-26T22:59:59.999Z", 0),
    ] {
        assert_eq!(value_at(&site, &board, 1, as_of).await, exact(sum), "{as_of}");
    }
}

pub async fn late_items_count_in_past_windows(site: Site) {
    let board = kept(&site, "COUNT(3h, login, device)", Some("6h")).await;
    assert_eq!(value_at(&site, &board, 1, "2026-01-01T14:30:00Z").await, exact(32));
    site.count(&board, vec![plus("a", 1_000).at("2026-01-01T14:00:00Z")]).await;
    assert_eq!(value_at(&site, &board, 1, "2026-01-01T14:30:00Z").await, exact(1_032));
    assert_eq!(value_at(&site, &board, 3, "2026-01-01T15:30:00Z").await, exact(16 + 1_032 + 64));
    let removal = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots), (exact(1_032 + 64 + 128), 3));
    assert_eq!(value_at(&site, &board, 1, "2026-01-01T12:30:00Z").await, exact(0));
}
