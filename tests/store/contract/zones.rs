//! Tests of slots of local time, on the days on which clocks change.

use std::sync::Arc;

use rolltop::board::{Board, Timestamp};
use rolltop::store::{ClockMode, SlotRange};

use crate::given::{Units, definition, plus, subject, sums, t};
use crate::site::Site;

async fn begin(site: Site, now: &str, metric: &str, slot: &str, zone: &str) -> (Site, Arc<Board>) {
    let site = Site::on(site.kind, ClockMode::Simulated(t(now))).await;
    let mut local = definition(metric, slot);
    local.timezone = zone.parse().unwrap();
    let board = site.define("local", &local).await;
    (site, board)
}

/// Posts once at each time. Returns the starts of the slots, and the number of posts in each.
async fn post(site: &Site, board: &Arc<Board>, times: &[&str]) -> Vec<(Timestamp, i64)> {
    for time in times {
        site.clock(time).await;
        site.count(board, vec![plus("a", 1), plus("b", 2)]).await;
    }
    site.retire(board).await;
    site.audit(board).await;
    let standing = site.store.standing(&board.main(), &subject("a")).await.unwrap();
    assert_eq!(standing.score.units(), standing.slots.iter().map(|(_, aggregate)| aggregate.units()).sum::<i64>());
    sums(&standing.slots)
}

pub async fn hourly_slots_across_the_spring_clock_change(site: Site) {
    let (site, board) = begin(site, "2026-03-28T22:30:00Z", "COUNT(3h, like, post)", "1h", "Europe/Berlin").await;
    let times =
        ["2026-03-28T23:59:59.999Z", "2026-03-29T00:30:00Z", "2026-03-29T00:59:59.999Z", "2026-03-29T01:00:00Z"];
    let slots = post(&site, &board, &times).await;
    let expected =
        [("2026-03-28T23:00:00Z", 1), ("2026-03-29T00:00:00Z", 2), ("2026-03-29T01:00:00Z", 1)].map(|(s, n)| (t(s), n));
    assert_eq!(slots, expected);
    let slots = post(&site, &board, &["2026-03-29T02:00:00Z"]).await;
    assert_eq!(slots[0], (t("2026-03-29T00:00:00Z"), 2));
}

pub async fn hourly_slots_across_the_autumn_clock_change(site: Site) {
    let (site, board) = begin(site, "2026-10-24T23:30:00Z", "COUNT(3h, like, post)", "1h", "Europe/Berlin").await;
    // From two o'clock to the second three o'clock is one slot of two hours.
    let times =
        ["2026-10-24T23:59:59.999Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:59:59.999Z"];
    let slots = post(&site, &board, &times).await;
    assert_eq!(slots, [("2026-10-24T23:00:00Z", 1), ("2026-10-25T00:00:00Z", 3)].map(|(s, n)| (t(s), n)));
    let slots = post(&site, &board, &["2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"]).await;
    let expected = [("2026-10-25T00:00:00Z", 3), ("2026-10-25T02:00:00Z", 1), ("2026-10-25T03:00:00Z", 1)];
    assert_eq!(slots, expected.map(|(s, n)| (t(s), n)));
    let slots = post(&site, &board, &["2026-10-25T04:00:00Z"]).await;
    assert_eq!(slots[0], (t("2026-10-25T02:00:00Z"), 1));
}

pub async fn daily_and_monthly_slots_follow_the_time_zone(site: Site) {
    let kind = site.kind.clone();
    let (site, days) = begin(site, "2026-03-27T12:00:00Z", "COUNT(2d, like, post)", "1d", "America/New_York").await;
    let times = ["2026-03-28T03:59:59.999Z", "2026-03-28T04:00:00Z", "2026-03-29T03:59:59.999Z"];
    let slots = post(&site, &days, &times).await;
    assert_eq!(slots, [("2026-03-27T04:00:00Z", 1), ("2026-03-28T04:00:00Z", 2)].map(|(s, n)| (t(s), n)));

    let site = Site::new(kind).await;
    let (site, months) = begin(site, "2025-12-31T22:30:00Z", "COUNT(3mo, like, post)", "1mo", "Europe/Berlin").await;
    let times =
        ["2025-12-31T22:59:59.999Z", "2025-12-31T23:00:00Z", "2026-01-31T22:59:59.999Z", "2026-02-28T23:00:00Z"];
    let slots = post(&site, &months, &times).await;
    assert_eq!(slots, [("2025-12-31T23:00:00Z", 2), ("2026-02-28T23:00:00Z", 1)].map(|(s, n)| (t(s), n)));
    let count = site.store.count(&months.main(), &subject("a"), SlotRange::Slots(2)).await.unwrap();
    assert_eq!((count.units(), count.frame.window.floor), (1, t("2026-01-31T23:00:00Z")));
}

pub async fn weekly_slots_start_on_monday(site: Site) {
    let (site, board) = begin(site, "2026-01-01T00:00:00Z", "COUNT(2w, like, post)", "1w", "UTC").await;
    let times =
        ["2026-01-04T23:59:59.999Z", "2026-01-05T00:00:00Z", "2026-01-11T23:59:59.999Z", "2026-01-12T00:00:00Z"];
    let slots = post(&site, &board, &times).await;
    assert_eq!(slots, [("2026-01-05T00:00:00Z", 2), ("2026-01-12T00:00:00Z", 1)].map(|(s, n)| (t(s), n)));
}

pub async fn a_skipped_calendar_day_has_no_slot(site: Site) {
    // Samoa skipped December 30, 2011.
    let (site, board) = begin(site, "2011-12-29T00:00:00Z", "COUNT(2d, like, post)", "1d", "Pacific/Apia").await;
    let times =
        ["2011-12-29T09:59:59.999Z", "2011-12-29T10:00:00Z", "2011-12-30T09:59:59.999Z", "2011-12-30T10:00:00Z"];
    let slots = post(&site, &board, &times).await;
    assert_eq!(slots, [("2011-12-29T10:00:00Z", 2), ("2011-12-30T10:00:00Z", 1)].map(|(s, n)| (t(s), n)));
}
