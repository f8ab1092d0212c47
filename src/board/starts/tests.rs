use super::*;
use crate::board::{Board, BoardName, Generation};

fn board(keys: &str) -> Result<Board, DefinitionError> {
    let definition = serde_json::from_str(&format!("{{{keys}}}")).unwrap_or_else(|error| panic!("{keys}: {error}"));
    Board::new(BoardName::parse("b").unwrap(), Generation(1), definition)
}

#[test]
fn a_start_is_a_day_or_a_whole_hour_of_it() {
    for (text, written) in [
        ("2026-11-02", "2026-11-02"),
        ("2026-11-02T00:00", "2026-11-02"),
        ("2026-11-02T05:00", "2026-11-02T05:00"),
        ("0001-01-01T23:00", "0001-01-01T23:00"),
    ] {
        assert_eq!(text.parse::<Starts>().unwrap().to_string(), written);
    }
    for text in [
        "",
        "05:00",
        "2026-11",
        "2026-11-31",
        "2026-1-2",
        " 2026-11-02",
        "+2026-11-02",
        "12026-11-02",
        "2026-11-02T",
        "2026-11-02T5:00",
        "2026-11-02T+5:00",
        "2026-11-02T05",
        "2026-11-02T05:30",
        "2026-11-02T24:00",
        "2026-11-02T05:00:00",
        "2026-11-02T05:00Z",
        "2026-11-02 05:00",
    ] {
        let error = text.parse::<Starts>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("'{text}' is not a day")), "{error}");
    }
}

#[test]
fn what_has_no_day_or_no_such_day_is_refused() {
    let effect = "has no effect without slots or periods of a day or longer, which begin with it";
    let day = "must be a day from 1 to 28 of its month, because each month or year of the board begins with that day";
    for (keys, field, why) in [
        (r#""metric":"COUNT(24h, a, b)","slot":"1h","starts":"2026-11-02""#, "starts", effect),
        (r#""metric":"COUNT(24h, a, b)","slot":"1h","movement":"1h","starts":"2026-11-02""#, "starts", effect),
        (r#""metric":"COUNT(1h, a, b)","slot":"1m","windows":["7d/6h","all"],"starts":"2026-11-02""#, "starts", effect),
        (r#""metric":"COUNT(all, a, b)","starts":"2026-11-02""#, "starts", effect),
        (r#""metric":"COUNT(all, a, b)","slot":"1h","keep":"7d","starts":"2026-11-02""#, "starts", effect),
        (r#""metric":"COUNT(all, a, b)","season":{"every":"6h"},"starts":"2026-11-02""#, "starts", effect),
        (r#""metric":"COUNT(all, a, b)","season":{"every":"manual"},"starts":"2026-11-02""#, "starts", effect),
        (r#""metric":"COUNT(1d, a, b)","mode":"from_first","ranked":false,"starts":"2026-11-02""#, "starts", effect),
        (r#""metric":"COUNT(3mo, a, b)","slot":"1mo","starts":"2026-11-29""#, "starts", day),
        (r#""metric":"COUNT(1d, a, b)","slot":"1h","windows":["1y/1y"],"starts":"2026-12-31""#, "starts", day),
        (r#""metric":"COUNT(all, a, b)","slot":"3mo","keep":"1y","starts":"2026-11-30""#, "starts", day),
        (r#""metric":"COUNT(all, a, b)","season":{"every":"6mo"},"starts":"2026-11-30""#, "starts", day),
        (
            r#""metric":"COUNT(all, a, b)","season":{"every":"14d","start":"2026-11-02"},"starts":"2026-11-02""#,
            "season",
            "must have no 'start' beside 'starts', with which its periods begin",
        ),
    ] {
        let error = board(keys).unwrap_err();
        assert_eq!((error.field(), error.to_string()), (field, format!("'{field}' {why}")), "{keys}");
    }
    for keys in [
        r#""metric":"COUNT(1d, a, b)","slot":"24h","starts":"2026-11-30T05:00""#,
        r#""metric":"COUNT(24h, a, b)","slot":"1h","windows":["7d/1d","all"],"starts":"2026-11-30T05:00""#,
        r#""metric":"COUNT(24h, a, b)","slot":"1h","movement":"1d","starts":"2026-11-30T05:00""#,
        r#""metric":"COUNT(all, a, b)","movement":"1d","starts":"2026-11-30T05:00""#,
        r#""metric":"COUNT(all, a, b)","slot":"1d","keep":"7d","starts":"2026-11-30T05:00""#,
        r#""metric":"COUNT(1y, a, b)","slot":"3mo","starts":"2026-11-28T05:00""#,
        r#""metric":"COUNT(all, a, b)","season":{"every":"1w"},"starts":"2026-11-30""#,
    ] {
        assert!(board(keys).is_ok(), "{keys}: {:?}", board(keys).map(drop));
    }
}

/// One idea of a day: slots, windows, kept slots, periods and boundaries of days begin at the same hour.
#[test]
fn every_day_of_a_board_begins_at_one_hour() {
    let now = crate::board::Timestamp::parse("2026-11-20T03:30:00Z").unwrap();
    let begin = crate::board::Timestamp::parse("2026-11-19T04:00:00Z").unwrap();
    let of = |keys: &str| board(&format!(r#"{keys},"timezone":"Europe/Berlin","starts":"2026-11-01T05:00""#)).unwrap();
    let windows =
        of(r#""metric":"COUNT(24h, a, b)","slot":"1h","windows":["1d/1d","7d/1d","6h/1h","all"],"movement":"1d""#);
    let starts = |board: &Board| board.tracks().iter().map(|track| track.calendar().slot_of(now)).collect::<Vec<_>>();
    let hour = now.plus_millis(-30 * 60_000);
    assert_eq!(starts(&windows), [hour, begin, begin, hour, crate::board::Timestamp::EPOCH]);
    let boundaries = |board: &Board| {
        board.tracks().iter().map(|track| track.boundaries_at(now).map(|(last, _)| last)).collect::<Vec<_>>()
    };
    assert_eq!(boundaries(&windows), [Some(begin); 5]);
    let kept = of(r#""metric":"COUNT(all, a, b)","slot":"1d","keep":"7d","movement":"1d""#);
    assert_eq!(starts(&kept)[1], begin);
    assert_eq!(boundaries(&kept), [Some(begin), None]);
    let season = of(r#""metric":"COUNT(all, a, b)","season":{"every":"1d"},"movement":"1d""#);
    let period = season.with_defined_at(Some(now)).edition().period().unwrap();
    assert_eq!((period.start, period.end), (begin, begin.plus_millis(DAY * 1_000)));
    // Slots that are not moved may not begin with the day.
    let keys = r#""metric":"COUNT(24h, a, b)","slot":"6h","movement":"1d""#;
    assert!(board(&format!(r#"{keys},"starts":"2026-11-01T18:00""#)).is_ok());
    assert_eq!(board(&format!(r#"{keys},"starts":"2026-11-01T05:00""#)).unwrap_err().field(), "movement");
}

#[test]
fn samples_are_for_the_same_slots_only() {
    let of = |slot: &str, more: &str| {
        board(&format!(r#""metric":"COUNT({slot}, a, b)","slot":"{slot}"{more}"#)).unwrap().edition().clone()
    };
    let monday = of("1w", r#","starts":"2026-11-02""#);
    assert!(
        monday.has_same_samples_as(&of("1w", "")) && monday.has_same_samples_as(&of("1w", r#","starts":"2026-11-09""#))
    );
    assert!(!monday.has_same_samples_as(&of("1w", r#","starts":"2026-11-01""#)));
    assert!(!monday.has_same_samples_as(&of("1w", r#","starts":"2026-11-02T05:00""#)));
    assert!(!monday.has_same_samples_as(&of("7d", r#","starts":"2026-11-02""#)), "written in another unit");
}

#[test]
fn weeks_that_are_written_in_days_have_a_note() {
    let notes = |keys: &str| board(keys).unwrap().definition().notes_of_weeks();
    let note = |what: &str, week: &str| {
        format!(
            "{what} begin on Thursdays, because days are counted from 1970-01-01: for another day give 'starts', such as \
             2026-11-02 for Mondays{week}"
        )
    };
    let or_week = ", or write 1w, which begins on Mondays";
    assert_eq!(notes(r#""metric":"COUNT(7d, a, b)","slot":"7d","windows":["21d/7d"]"#), [note("slots of 7d", or_week)]);
    assert_eq!(notes(r#""metric":"COUNT(28d, a, b)","slot":"14d""#), [note("slots of 14d", "")]);
    assert_eq!(notes(r#""metric":"COUNT(all, a, b)","season":{"every":"7d"}"#), [note("periods of 7d", or_week)]);
    for keys in [
        r#""metric":"COUNT(7d, a, b)","slot":"1d""#,
        r#""metric":"COUNT(1w, a, b)","slot":"1w""#,
        r#""metric":"COUNT(20d, a, b)","slot":"10d""#,
        r#""metric":"COUNT(7d, a, b)","slot":"7d","starts":"2026-11-02""#,
        r#""metric":"COUNT(7d, a, b)","slot":"7d","mode":"from_first","ranked":false"#,
        r#""metric":"COUNT(all, a, b)","season":{"every":"7d","start":"2026-11-02"}"#,
    ] {
        assert_eq!(notes(keys), Vec::<String>::new(), "{keys}");
    }
}
