use super::*;
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
