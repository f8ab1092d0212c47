use super::*;
use crate::board::calendar::oracle::ZONES;
use crate::board::{BoardName, Generation};

fn t(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn definition(more: &str) -> Definition {
    serde_json::from_str(&format!(r#"{{"metric":"COUNT(all, e, s)",{more}}}"#)).unwrap()
}

fn board(more: &str, at: &str) -> Arc<Board> {
    let board = Board::new(BoardName::parse("b").unwrap(), Generation(7), definition(more)).unwrap();
    Arc::new(board.with_defined_at(Some(t(at))))
}

fn name(board: &Arc<Board>) -> String {
    board.current().period_name().unwrap().to_string()
}

#[test]
fn names_are_local_and_in_the_order_of_the_periods() {
    let name_of = |every: &str, zone: &str, now: &str| {
        let board = board(&format!(r#""timezone":"{zone}","season":{{"every":"{every}","grace":"5m"}}"#), now);
        name(&board)
    };
    assert_eq!(name_of("1y", "UTC", "2026-01-20T10:00:00Z"), "2026");
    assert_eq!(name_of("1w", "UTC", "2026-01-20T10:00:00Z"), "2026-01-19");
    assert_eq!(name_of("6h", "America/New_York", "2026-01-20T10:30:00Z"), "2026-01-20T00");
    // The hour that is shown twice belongs to one period.
    for (now, expected) in
        [("2026-10-25T00:30:00Z", "T02"), ("2026-10-25T01:30:00Z", "T02"), ("2026-10-25T02:00:00Z", "T03")]
    {
        assert_eq!(name_of("1h", "Europe/Berlin", now), format!("2026-10-25{expected}"), "{now}");
    }
    let before = |one: &str, other: &str| PeriodName::new(one) < PeriodName::new(other);
    assert!(before("2026-09", "2026-10") && before("9", "10") && !before("10", "9") && !before("7", "7"));
}

#[test]
fn fortnights_begin_with_their_start() {
    for (start, expected) in [("2026-01-01", "2026-01-15"), ("2026-01-14", "2026-01-14"), ("2030-01-02", "2026-01-21")]
    {
        let board = board(&format!(r#""season":{{"every":"14d","start":"{start}"}}"#), "2026-01-27T10:00:00Z");
        assert_eq!(name(&board), expected, "{start}");
    }
}

#[test]
fn periods_that_are_moved_are_named_by_their_first_day() {
    let now = "2026-11-16T04:30:00Z"; // a Monday, 05:30 in Berlin
    for (every, starts, expected) in [
        ("1d", None, "2026-11-16"),
        ("1d", Some("2026-11-01T05:00"), "2026-11-16"),
        ("1d", Some("2026-11-01T06:00"), "2026-11-15"),
        ("24h", Some("2026-11-01T06:00"), "2026-11-15"),
        ("1w", Some("2026-11-01"), "2026-11-15"),
        ("14d", Some("2026-11-05"), "2026-11-05"),
        ("1mo", None, "2026-11"),
        // Months of the calendar, whatever the day of another length would be.
        ("1mo", Some("2026-05-01"), "2026-11"),
        ("1mo", Some("2026-05-01T05:00"), "2026-11-01"),
        ("1mo", Some("2026-11-15"), "2026-11-15"),
        ("1mo", Some("2026-11-17"), "2026-10-17"),
        ("3mo", None, "2026-10-01"),
        ("3mo", Some("2026-11-01"), "2026-11-01"),
        ("3mo", Some("2026-09-15T05:00"), "2026-09-15"),
        ("6mo", Some("2026-04-01"), "2026-10-01"),
        ("1y", None, "2026"),
        ("12mo", None, "2026"),
        ("1y", Some("2024-01-01"), "2026"),
        ("1y", Some("2024-01-01T05:00"), "2026-01-01"),
        ("1y", Some("2024-04-01"), "2026-04-01"),
        ("6h", None, "2026-11-16T00"),
    ] {
        let starts = starts.map(|starts| format!(r#""starts":"{starts}","#)).unwrap_or_default();
        let board = board(&format!(r#"{starts}"timezone":"Europe/Berlin","season":{{"every":"{every}"}}"#), now);
        assert_eq!(name(&board), expected, "{every} {starts}");
    }
}

/// Each period follows the one before it without a gap, and its name is that of no other one and greater.
#[test]
fn names_of_two_years_in_seventeen_zones_are_those_of_one_period_each() {
    let years = ZONES.map(|zone| (zone, "2026-01-01T00:00:00Z"));
    for (zone, begin) in years.into_iter().chain([("Pacific/Apia", "2011-01-01T00:00:00Z")]) {
        for every in ["6h", "1d", "2d", "1w", "1mo", "3mo", "1y"] {
            for starts in ["2026-11-01", "2026-11-15T05:00", "2024-02-28T02:00"] {
                let starts = if every == "6h" { String::new() } else { format!(r#""starts":"{starts}","#) };
                let keys = format!(r#"{starts}"timezone":"{zone}","season":{{"every":"{every}","grace":"5m"}}"#);
                let board = board(&keys, begin);
                let season = board.season().unwrap();
                let name = |period: Period| season.name_of(board.definition(), period).unwrap();
                let mut period = board.period_at(t(begin), None).unwrap();
                while period.start < t(begin).plus_millis(740 * DAY) {
                    let next = board.period_at(period.end, Some(period)).unwrap();
                    let [earlier, later] = [name(period), name(next)];
                    assert_eq!((next.start, next.number), (period.end, period.number + 1), "{keys}");
                    assert!(earlier < later && later.is_like(&earlier), "{keys}: {earlier} {later}");
                    assert_eq!(name(board.period_at(next.end.plus_millis(-1), Some(period)).unwrap()), later, "{keys}");
                    period = next;
                }
            }
        }
    }
}
