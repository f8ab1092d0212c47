//! Tests of calendar windows: today, this week and this month end at midnight in the board's time zone, or where the
//! definition says.

use std::sync::Arc;

use rolltop::board::{Board, Definition};

use crate::given::{With, definition, exact, plus, seen};
use crate::site::Site;

/// Returns one ranked and one unranked board of each metric, in one zone.
async fn boards(site: &Site, window: &str, zone: &str, starts: Option<&str>) -> Vec<Arc<Board>> {
    let metrics = ["COUNT({w}, a, b)", "AVG({w}, a, v, b)", "MAX({w}, a, v, b)", "COUNT_DISTINCT({w}, a, b, c)"];
    let mut boards = Vec::new();
    for (nth, metric) in metrics.iter().enumerate() {
        for ranked in [true, false] {
            let metric = metric.replace("{w}", window);
            let starts = starts.map(|starts| starts.parse().unwrap());
            let own = definition(&metric, window);
            let definition = Definition { timezone: zone.parse().unwrap(), starts, ranked, ..own };
            boards.push(site.define(&format!("{window}{nth}{ranked}"), &definition).await);
        }
    }
    boards
}

/// Counts at one time, and checks that the count is there until the last millisecond and not in the next.
async fn lasts_until(site: &Site, window: &str, zone: &str, counted: &str, last: &str) {
    begun_lasts_until(site, window, (zone, None), counted, last).await;
}

async fn begun_lasts_until(site: &Site, window: &str, begin: (&str, Option<&str>), counted: &str, last: &str) {
    let site = Site::new(site.kind.clone()).await;
    let (zone, starts) = begin;
    let boards = boards(&site, window, zone, starts).await;
    let item = |board: &Board, who: &str| match board.edition().takes(&plus(who, 5).change) {
        true => plus(who, 5),
        false => seen(who, "u"),
    };
    site.clock(counted).await;
    for board in &boards {
        site.count(board, vec![item(board, "a")]).await;
    }
    site.clock(last).await;
    for board in &boards {
        let value = site.value(board, "a").await;
        assert!(value.is_some() && value != exact(0), "{window} in {zone} at {last}: {value:?}");
    }
    let over = rolltop::board::Timestamp::parse(last).unwrap().plus_millis(1);
    site.clock_at(over).await;
    for board in &boards {
        assert_eq!(site.value(board, "a").await, board.kind().absent(), "{window} in {zone} after {last}");
        site.count(board, vec![item(board, "a").at_time(over)]).await;
        assert_ne!(site.value(board, "a").await, board.kind().absent());
    }
}

pub async fn a_tumbling_day_ends_at_local_midnight(site: Site) {
    for (zone, counted, last) in [
        ("UTC", "2026-03-29T00:00:00Z", "2026-03-29T23:59:59.999Z"),
        // The days of 23 and of 25 hours.
        ("Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59.999Z"),
        ("Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T22:59:59.999Z"),
        ("America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T04:59:59.999Z"),
        // Here midnight itself is skipped, and the day begins at one o'clock.
        ("America/Havana", "2026-03-08T05:00:00Z", "2026-03-09T03:59:59.999Z"),
    ] {
        lasts_until(&site, "1d", zone, counted, last).await;
    }
}

pub async fn a_tumbling_week_ends_at_the_end_of_the_local_sunday(site: Site) {
    lasts_until(&site, "1w", "UTC", "2026-01-05T00:00:00Z", "2026-01-11T23:59:59.999Z").await;
    lasts_until(&site, "1w", "Europe/Berlin", "2026-03-22T23:00:00Z", "2026-03-29T21:59:59.999Z").await;
}

pub async fn a_tumbling_month_ends_at_the_end_of_its_last_local_day(site: Site) {
    lasts_until(&site, "1mo", "UTC", "2026-02-01T00:00:00Z", "2026-02-28T23:59:59.999Z").await;
    lasts_until(&site, "1mo", "Europe/Berlin", "2026-02-28T23:00:00Z", "2026-03-31T21:59:59.999Z").await;
}

pub async fn a_tumbling_window_ends_where_the_definition_begins_the_next_one(site: Site) {
    for (window, zone, starts, counted, last) in [
        ("1d", "Europe/Berlin", "2026-11-01T05:00", "2026-03-28T04:00:00Z", "2026-03-29T02:59:59.999Z"),
        // Clocks jump from two to three, and show the hour from two to three twice.
        ("1d", "Europe/Berlin", "2026-11-01T02:00", "2026-03-29T01:00:00Z", "2026-03-29T23:59:59.999Z"),
        ("1d", "Europe/Berlin", "2026-11-01T02:00", "2026-10-25T00:00:00Z", "2026-10-26T00:59:59.999Z"),
        ("1w", "UTC", "2026-11-01", "2026-01-04T00:00:00Z", "2026-01-10T23:59:59.999Z"),
        ("7d", "UTC", "2026-11-03T05:00", "2026-01-06T05:00:00Z", "2026-01-13T04:59:59.999Z"),
        ("1mo", "Europe/Berlin", "2026-11-15", "2026-03-14T23:00:00Z", "2026-04-14T21:59:59.999Z"),
        ("3mo", "America/New_York", "2026-11-01T05:00", "2026-02-01T10:00:00Z", "2026-05-01T08:59:59.999Z"),
    ] {
        begun_lasts_until(&site, window, (zone, Some(starts)), counted, last).await;
    }
}
