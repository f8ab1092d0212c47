use super::*;
use crate::board::{BoardName, EditionsChange, Generation};

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

/// Returns the board after all steps that are due, each of which is one change, and has a stored form.
fn at(mut board: Arc<Board>, now: &str) -> Arc<Board> {
    while let Some(next) = board.season_step(t(now)) {
        assert!(EditionsChange::between(&board, &next).is_some(), "{board:?} to {next:?}");
        let first = Board::new(board.name().clone(), board.generation(), board.definition().clone()).unwrap();
        let stored = first.with_stored_editions(next.epoch(), next.stored_editions().as_deref()).unwrap();
        let ids = |board: &Board| -> Vec<_> {
            board.all_editions().iter().map(|edition| (edition.id(), edition.period())).collect()
        };
        let stored = stored.with_defined_at(board.defined_at());
        assert_eq!((ids(&stored), stored.other()), (ids(&next), next.other()));
        board = Arc::new(next);
    }
    board
}

/// Returns the names of the periods, the newest first, each with `*` if it is final.
fn names(board: &Arc<Board>) -> Vec<String> {
    let name = |edition: BoardEdition| {
        format!("{}{}", edition.period_name().unwrap(), if edition.is_final() { "*" } else { "" })
    };
    board.each_period().map(name).collect()
}

#[test]
fn a_period_ends_takes_late_items_is_sealed_and_leaves_the_archive() {
    let season = r#""timezone":"Europe/Berlin","season":{"every":"1mo","grace":"2h","archive":2}"#;
    let mut board = board(season, "2026-01-20T10:00:00Z");
    for (now, expected, due) in [
        ("2026-01-31T22:59:59.999Z", &["2026-01"][..], "2026-01-31T23:00:00Z"),
        ("2026-01-31T23:00:00Z", &["2026-02", "2026-01"], "2026-02-01T01:00:00Z"),
        ("2026-02-01T00:59:59.999Z", &["2026-02", "2026-01"], "2026-02-01T01:00:00Z"),
        ("2026-02-01T01:00:00Z", &["2026-02", "2026-01*"], "2026-02-28T23:00:00Z"),
        ("2026-03-01T00:00:00Z", &["2026-03", "2026-02", "2026-01*"], "2026-03-01T01:00:00Z"),
        // Summer time has begun.
        ("2026-03-31T22:00:00Z", &["2026-04", "2026-03", "2026-02*", "2026-01*"], "2026-04-01T00:00:00Z"),
        ("2026-04-01T00:00:00Z", &["2026-04", "2026-03*", "2026-02*"], "2026-04-30T22:00:00Z"),
    ] {
        board = at(board, now);
        assert_eq!(names(&board), expected, "{now}");
        assert_eq!(board.season_step_at(), Some(t(due)), "{now}");
    }
    let periods: Vec<Period> = board.each_period().filter_map(|edition| edition.period()).collect();
    assert!(periods.windows(2).all(|two| two[0].start == two[1].end && two[0].number == two[1].number + 1));
    assert_eq!(board.written_tracks().len(), 1);
    assert_eq!(board.tracks().len(), 3);
}

#[test]
fn periods_to_which_nothing_could_be_written_are_left_out() {
    let season = r#""season":{"every":"1d","grace":"2h","archive":9}"#;
    let begun = || board(season, "2026-01-01T10:00:00Z");
    assert_eq!(names(&at(begun(), "2026-03-01T01:59:59Z")), ["2026-03-01", "2026-02-28", "2026-01-01*"]);
    assert_eq!(names(&at(begun(), "2026-03-01T02:00:00Z")), ["2026-03-01", "2026-01-01*"]);
    assert_eq!(names(&at(begun(), "2026-01-02T01:00:00Z")), ["2026-01-02", "2026-01-01"]);
}

#[test]
fn names_are_local_and_in_the_order_of_the_periods() {
    let name = |every: &str, zone: &str, now: &str| {
        let board = board(&format!(r#""timezone":"{zone}","season":{{"every":"{every}","grace":"5m"}}"#), now);
        board.current().period_name().unwrap().to_string()
    };
    assert_eq!(name("1y", "UTC", "2026-01-20T10:00:00Z"), "2026");
    assert_eq!(name("1w", "UTC", "2026-01-20T10:00:00Z"), "2026-01-19");
    assert_eq!(name("6h", "America/New_York", "2026-01-20T10:30:00Z"), "2026-01-20T00");
    // The hour that is shown twice belongs to one period.
    for (now, expected) in
        [("2026-10-25T00:30:00Z", "T02"), ("2026-10-25T01:30:00Z", "T02"), ("2026-10-25T02:00:00Z", "T03")]
    {
        assert_eq!(name("1h", "Europe/Berlin", now), format!("2026-10-25{expected}"), "{now}");
    }
    let before = |one: &str, other: &str| PeriodName::new(one) < PeriodName::new(other);
    assert!(before("2026-09", "2026-10") && before("9", "10") && !before("10", "9") && !before("7", "7"));
}

#[test]
fn fortnights_begin_with_their_start() {
    for (start, expected) in [("2026-01-01", "2026-01-15"), ("2026-01-14", "2026-01-14"), ("2030-01-02", "2026-01-21")]
    {
        let board = board(&format!(r#""season":{{"every":"14d","start":"{start}"}}"#), "2026-01-27T10:00:00Z");
        assert_eq!(names(&board), [expected], "{start}");
    }
}

#[test]
fn a_period_is_closed_by_hand_when_the_one_before_is_final() {
    let manual = board(r#""season":{"every":"manual","grace":"10m","archive":5}"#, "2026-01-20T10:00:00Z");
    assert_eq!((names(&manual), manual.season_step_at()), (vec!["1".to_owned()], Some(Timestamp::MAX)));
    let closed = Arc::new(manual.closed(t("2026-01-20T11:00:00Z")).unwrap());
    assert_eq!(EditionsChange::between(&manual, &closed), Some(EditionsChange::Close));
    let second = at(closed, "2026-01-20T11:00:00Z");
    assert_eq!(names(&second), ["2", "1"]);
    assert_eq!(second.closed(t("2026-01-20T11:01:00Z")).unwrap_err(), CloseError::InGrace(t("2026-01-20T11:10:00Z")));
    let alone = at(second, "2026-01-20T11:10:00Z");
    assert_eq!(names(&alone), ["2", "1*"]);
    assert!(alone.closed(t("2026-01-20T11:10:00Z")).is_ok());
    let months = board(r#""season":{"every":"1mo"}"#, "2026-01-20T10:00:00Z");
    assert_eq!(months.closed(t("2026-01-21T10:00:00Z")).unwrap_err(), CloseError::ByCalendar);
    let plain = Board::new(BoardName::parse("b").unwrap(), Generation(7), definition(r#""order":"asc""#)).unwrap();
    assert_eq!(plain.closed(t("2026-01-21T10:00:00Z")).unwrap_err(), CloseError::NoSeason);
}
